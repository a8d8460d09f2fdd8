// Package interpreted replaces the GPU by the interpreter of the kernels in a program's workers, if
// the program imports it and is built with -tags "cuda gnb_interpreted". Only the test of a "make
// gpu-check" bundle on a machine without a GPU uses it.
package interpreted
