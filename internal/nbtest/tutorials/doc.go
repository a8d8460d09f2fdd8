// Package tutorials tests the notebooks of the folder of that name in a real kernel.
package tutorials
