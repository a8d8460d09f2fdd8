// Package cluster finds the ranks that a launcher has started on one or many machines: Slurm, Open
// MPI, MPICH, or whatever sets torchrun's variables.
//
// # Basics
//
// [Detect] tells which rank this process is. Rank 0 calls [Lead], and each other rank [Follow]. They
// meet over an abstract Unix socket on one machine, and over TCP otherwise, and keep one connection
// between rank 0 and each other rank for the life of the processes: the control plane.
//
//	s := cluster.Lead(place)                            // on rank 0
//	task, err := s.Begin(ctx, job, files, silent, hub)  // a job on every rank
//	files, comm, err := task.Open()
//
//	status, err := cluster.Follow(place, func(t *cluster.Task) { … }) // on every other rank
//
// A [Task] is a job on one rank. Its Comm shares memory on a machine and exchanges messages between
// machines. An [Engine], such as MPI, can connect the ranks instead; package multigpu/mpi registers
// one.
//
// # Trust
//
// On one machine the kernel tells the user at the other end of a socket, which must be this one. Over
// TCP both sides prove a token (docs/cluster.md). A frame of a peer that has not said what it is for
// has at most 1 MiB.
//
// # Caveats
//
// The package knows neither workers nor graphs: jobs, messages and states are bytes. What ranks of
// several machines send is not encrypted.
package cluster
