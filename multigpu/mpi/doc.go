// Package mpi connects the ranks of a run through MPI, the library of the cluster's own network. It
// is behind the build tag mpi and needs cgo; without the tag it is empty. A program imports it for
// its effect:
//
//	import _ "github.com/graphnb/graphnb/multigpu/mpi"
//
//	. scripts/mpi-env.sh && go build -tags mpi ./gnb/cmd/gnb
//
// The script asks the compiler wrapper that mpicc names, or GNB_MPICC, for its flags. The program
// then works with that MPI library alone, under the mpirun of the same library. It is tested with
// Open MPI and MPICH.
//
// The package registers a [github.com/graphnb/graphnb/multigpu/cluster.Engine], which is started
// only in ranks of a launcher: never in a notebook's cell, nor in a program that was started alone.
//
// # How it works
//
// MPI carries messages between the first ranks of the machines, and [collective.NewMachines] makes the collectives of them and
// of the machines' shared memory. So sums have the bits of every other [collective.Comm]: no addition is left to MPI. The goroutine that makes a collective calls MPI
// itself, one goroutine at a time (MPI_THREAD_SERIALIZED): it starts messages with MPI_Isend and
// MPI_Irecv and polls them. Polling first spins, then naps, so that more ranks than processors do not
// keep each other from working. Messages longer than 1 GiB travel in pieces. After Abort, messages of
// the collective that it interrupted are cancelled or left behind.
package mpi
