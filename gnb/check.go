package gnb

import (
	"errors"

	"github.com/graphnb/graphnb/gnb/internal/entry"
)

// Must is for cells only: it returns v, or prints the error and ends the cell
// with status 1, as [Check] does.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Check is [Must] for functions that return nothing but an error.
//
// The error is one line, the last one: what failed, where and why. In a notebook, the cells and lines that it
// names come before it. If a worker panicked, a notebook shows the stack trace folded above the message;
// with GNB_TRACE=1 in the environment the trace is printed everywhere.
func Check(err error) {
	if err != nil {
		entry.Exit(err, errors.Is(err, ErrInterrupted))
	}
}

// Trace returns the text to print above the message of an error caused by a panic in a worker:
// with GNB_TRACE=1 in the environment the stack, innermost call first, otherwise a hint that
// explains how to see it. It is "" for other errors.
func Trace(err error) string { return entry.Trace(err) }
