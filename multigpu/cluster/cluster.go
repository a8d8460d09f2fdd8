// Package cluster finds the ranks that a launcher has started on one or many machines: Slurm, Open
// MPI, MPICH, or whatever sets torchrun's variables.
//
// [Detect] tells which rank this process is. An [Engine], such as MPI, can connect the ranks;
// package multigpu/mpi registers one.
package cluster
