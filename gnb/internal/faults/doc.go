// Package faults has tests that provoke faults in runs: a process is killed, stopped, panics or runs
// out of memory, a disk is full, a clock is set, each at a chosen stage of a run and in a chosen
// process. The run must continue correctly, or end in bounded time with an error that names rank,
// step and stage; it must leave nothing behind but a checkpoint from which it resumes to the same
// bits. docs/faults.md lists what each fault prints; the tests write it.
package faults
