// Package notebooks tests the notebooks of the folder of that name, and cells of its own, in a real kernel.
package notebooks
