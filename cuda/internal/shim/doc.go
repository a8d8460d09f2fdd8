// Package shim lets a program linked with gorgonia.org/cu start where no NVIDIA driver is installed,
// and lets the tests put another driver in its place.
//
// The functions of libcuda.so.1 that gorgonia.org/cu calls are defined here (zz_table.c), as jumps
// through a table that is empty until [Load] fills it from the library. gorgonia.org/cu initialises
// the driver as the program starts and ends the process where that fails; the cuInit defined here
// does nothing and succeeds, so that a process that never asks for a GPU opens no library and no
// device. The -lcuda of gorgonia.org/cu finds lib/libcuda.so, an empty linker script.
//
// # Building
//
// include/cuda.h is this module's own small description of the driver's interface, so that no CUDA
// needs to be installed and one ABI is compiled against, whatever is. gorgonia.org/cu finds it by the
// environment only: CGO_CFLAGS="-O2 -g -I<this directory>/include". scripts/cuda-env.sh sets it for the
// tests and "gnb install --cuda" for the kernel. include/mkheader.py made it; zz_table.c is generated
// from it by gen. This package imports nothing of gorgonia.org/cu, so that without the header it is
// compiled too and says what to do.
package shim

//go:generate go run ./tablegen include/cuda.h zz_table.c
