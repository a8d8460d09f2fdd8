// Package collective lets the ranks of a run exchange data: barriers, sums, gathers, and matrices
// that all ranks fill together.
//
// A collective is a call that every rank makes in the same order with the same arguments. Each call
// carries a [Site]: its purpose, the position in the run and the line of the program. The ranks
// compare their sites and arguments. If one rank took another path (such as a break out of a loop
// on one rank only), every rank gets a [*Mismatch] that names both lines, instead of a hang.
//
// # Implementations
//
//   - [NewSingle]: one rank, no processes, ordinary memory.
//   - [Open]: ranks on one machine over two files without names (Linux memfd)
//     that [NewShared] makes and worker processes inherit.
//   - [NewLinked]: ranks that a transport of messages connects, such as MPI.
//   - [NewMachines]: ranks on several machines, over one network connection for each pair of
//     machines or a transport of messages between them, and one of the above within each.
//
// # Determinism
//
// A [Reducer] adds its slots as a fixed pairwise tree in slot order, so the
// result has the same bits on every rank, whatever arrives first, and for any
// division of the same slots among ranks and of ranks among machines. See [ReduceTree].
//
// # Caveats
//
// One goroutine at a time uses a Comm; a second one gets an error. [Comm.Split] gives a second
// goroutine a Comm of its own. Slices from a Reducer or Matrix
// are in memory shared with the other ranks. Each method documents who may write them and when;
// none may be used after Release or Close. After an error a Comm stays failed: every later call
// returns it.
package collective

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// Site is the place of a collective in a run. Ranks compare whole sites.
type Site struct {
	// Kind is the purpose of the collective: "step", "evaluate", "finish".
	Kind string
	// Epoch and Step are the position in the run, or -1.
	Epoch, Step int
	// At is the line of the program, "cell.go:12".
	At string
}

// String formats a site for errors: "step (cell.go:12, epoch 1, step 17)".
func (s Site) String() string {
	at := ""
	if s.At != "" {
		at = shortAt(s.At)
	}
	if s.Epoch >= 0 && s.Step >= 0 {
		if at != "" {
			at += ", "
		}
		at += fmt.Sprintf("epoch %d, step %d", s.Epoch, s.Step)
	}
	kind := s.Kind
	if kind == "" {
		kind = "a collective"
	}
	if at == "" {
		return kind
	}
	return kind + " (" + at + ")"
}

// shortAt keeps the file's name of a path: an error is one readable sentence.
func shortAt(at string) string {
	if filepath.IsAbs(at) {
		return filepath.Base(at)
	}
	return at
}

// Comm connects the ranks of a run. A method that takes a Site is collective: each rank calls it, in
// the same order, with an equal Site.
type Comm interface {
	// Rank is this process's number, 0 to Size()-1.
	Rank() int
	// Size is the number of ranks.
	Size() int

	// Barrier returns when every rank has called it.
	Barrier(s Site) error

	// AllGather returns the data of every rank, by rank. Lengths may differ and may be 0. The
	// result is the caller's.
	AllGather(s Site, mine []byte) ([][]byte, error)

	// AllToAll sends send[r] to rank r and returns what every rank sent to this one, by rank.
	// Lengths may differ and may be 0; len(send) is Size(). The result is the caller's. An
	// implementation may keep memory of a few times its largest call until Close. See [AllToAllInto]
	// for many calls.
	AllToAll(s Site, send [][]byte) ([][]byte, error)

	// SumInt64 replaces v, equally long on every rank, by its sum over ranks.
	SumInt64(s Site, v []int64) error

	// Broadcast replaces data, equally long on every rank, by root's.
	Broadcast(s Site, root int, data []float32) error

	// NewReducer makes Size()×virtual slots of n float32.
	NewReducer(s Site, n, virtual int) (Reducer, error)

	// NewMatrix makes a matrix [rows, cols] of zeros, row-major, that every
	// rank reads and writes.
	NewMatrix(s Site, rows, cols int) (Matrix, error)

	// Split returns another Comm of the same ranks, whose collectives run beside those of this one,
	// in another goroutine. A Comm is split at most once, and a Comm that came from Split not at
	// all; more is an error. Closing the Comm closes the one split from it.
	Split(s Site) (Comm, error)

	// Abort makes every current and later collective of this rank return an error that matches
	// [ErrAborted] and contains reason, also those of the Comm split from it. Other ranks get the
	// same error where this one can reach them (shared memory, open connections). Any goroutine may
	// call Abort. The first reason is kept.
	Abort(reason string)

	// Aborted reports whether collectives of this rank are aborted, by whichever rank, and the reason, for a rank
	// that waits for something else than a collective. It may be false until the rank's next collective if only the
	// connection to the other rank has failed. Any goroutine may call it.
	Aborted() (reason string, yes bool)

	// Waiting returns the site at which this rank now waits for others, if it does, here or in the
	// Comm split from this one. Any goroutine may call it.
	Waiting() (Site, bool)

	// Close frees this rank's memory; it is not collective. Nothing obtained from the Comm may be
	// used afterwards.
	Close() error
}

// Waiter is a Comm that measures the total time that its rank has waited in collectives for slower
// ranks. It belongs to the goroutine that makes the collectives.
type Waiter interface {
	Waited() time.Duration
}

// Reducer sums slots of equal length; each rank has virtual slots.
type Reducer interface {
	// Slot is slot v of this rank, 0 ≤ v < virtual: n float32 that only this
	// rank writes, until Reduce. The caller sets or zeroes it before each sum.
	// Its memory may be another one after Reduce; what the last one held can be
	// read until the next Reduce.
	Slot(v int) []float32

	// Reduce is collective. It returns the sum of all slots over all ranks by
	// [ReduceTree] in slot order rank·virtual+v: n float32 in memory that ranks may
	// share, to be read only, valid until this rank's next Reduce. Slots
	// may be written again as soon as it returns.
	//
	// Each rank adds its share of the elements: O(n·virtual) additions. Of few
	// elements it may add all.
	Reduce(s Site) ([]float32, error)

	// Release frees the memory; it is not collective.
	Release()
}

// Matrix is [rows, cols] float32, row-major, shared by all ranks.
type Matrix interface {
	Rows() int
	Cols() int

	// Data is the whole matrix. Between two calls of Publish, only one rank may write a row, and no
	// other rank may read it.
	Data() []float32

	// Publish is collective. This rank wrote rows lo to hi-1, and no others, since the last
	// Publish; the ranges of the ranks differ and do not overlap. After Publish, every rank sees
	// the writes of all ranks.
	Publish(s Site, lo, hi int) error

	// Release frees the memory; it is not collective.
	Release()
}

// ErrAborted matches the error of a collective that was aborted because another rank failed or the
// run ended.
var ErrAborted = errors.New("the run was ended")

// ErrClosed matches the error of a collective on a closed Comm.
var ErrClosed = errors.New("the communicator is closed")

// Mismatch is the error of two ranks that called different collectives.
type Mismatch struct {
	RankA, RankB int
	A, B         Site
	// Detail is set if the sites agree but the arguments differ.
	Detail string
}

func (m *Mismatch) Error() string {
	if m.Detail != "" {
		return fmt.Sprintf("collective: ranks %d and %d called %v with different arguments (%s); every rank must pass the same arguments",
			m.RankA, m.RankB, m.A, m.Detail)
	}
	return fmt.Sprintf("collective: rank %d is at %v, rank %d at %v; every rank must make the same collective calls in the same order",
		m.RankA, m.A, m.RankB, m.B)
}

// abortError is the error of a collective that was aborted.
type abortError struct {
	site   Site
	reason string
}

func (e *abortError) Error() string {
	return fmt.Sprintf("collective: waiting at %v for the other ranks: %v: %s", e.site, ErrAborted, e.reason)
}

func (e *abortError) Unwrap() error { return ErrAborted }

// Share is rank's part [lo, hi) of n things divided over world ranks:
// lo = ⌊rank·n/world⌋.
func Share(n, rank, world int) (lo, hi int) {
	return int(int64(rank) * int64(n) / int64(world)), int(int64(rank+1) * int64(n) / int64(world))
}
