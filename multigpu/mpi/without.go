//go:build !mpi

package mpi

// Library is the name and version of the MPI library that this program was built for, such as
// "Open MPI 4.1.4", or "" without the tag mpi.
func Library() string { return "" }
