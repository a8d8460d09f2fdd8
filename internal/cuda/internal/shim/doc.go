// Package shim lets a program linked with gorgonia.org/cu start on machines without an NVIDIA
// driver, and lets tests replace the driver.
//
// The functions of libcuda.so.1 that gorgonia.org/cu calls are defined here (zz_table.c), as jumps
// through a table that is empty until [Load] fills it from the library. gorgonia.org/cu initialises
// the driver at program start and ends the process if that fails; the cuInit defined here does
// nothing and succeeds, so that a process that never uses a GPU opens no library and no device. The
// -lcuda of gorgonia.org/cu finds lib/libcuda.so, an empty linker script.
//
// # Building
//
// include/cuda.h is this module's own small description of the driver's interface, so that CUDA
// need not be installed and the ABI does not depend on an installed version. gorgonia.org/cu finds
// it only through the environment, which the C compiler reads; see package internal/cudaheader.
// scripts/cuda-env.sh sets it for the tests and "gnb install --cuda" for the kernel.
// include/mkheader.py made it; zz_table.c is generated from it by gen. This package does not import
// gorgonia.org/cu, so it compiles without the header too, and reports what to do.
package shim

//go:generate go run ./tablegen include/cuda.h zz_table.c
