// Package interpreted puts the interpreter of the kernels in place of a GPU in a program's workers, where that
// program is built with -tags "cuda gnb_interpreted" and imports it. It is how a bundle of "make gpu-check" is
// tried on a machine without a GPU; nobody else needs it.
package interpreted
