//go:build mpi

package mpi

import "runtime"

// thread is a goroutine locked to a thread of the system. MPI starts and ends on it, as the standard
// wants; messages travel on the goroutines that send them.
type thread chan func()

func newThread() thread {
	t := make(thread)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		for f := range t {
			f()
		}
	}()
	return t
}

// do runs f on the thread.
func (t thread) do(f func()) {
	done := make(chan struct{})
	t <- func() { defer close(done); f() }
	<-done
}

// stop ends the thread, after MPI has ended.
func (t thread) stop() { close(t) }
