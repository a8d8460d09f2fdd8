package multigpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/internal/phrase"
)

// WorkerError is the error of a run in which a worker failed.
type WorkerError struct {
	Rank, PID int
	// Host is the name of the worker's machine under a launcher, else "".
	Host string
	// Epoch, Step and Stage are the worker's position: -1 and "starting" before its program set
	// one.
	Epoch, Step int
	Stage       string
	// Reason is the cause in a few words: "killed by signal 9 (killed)".
	Reason string
	// Cause is the kind of the failure.
	Cause Cause
	// Stderr holds the last lines of the worker's standard error.
	Stderr []string
	// Stack is the stack of a panic, or empty.
	Stack string
	// Err is the error that the handler returned, or nil: a [*collective.Mismatch] as such, any
	// other error as its text and its kinds ([ErrorKind]).
	Err error
}

func (e *WorkerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "multigpu: rank %d", e.Rank)
	switch {
	case e.Host != "":
		fmt.Fprintf(&b, " (pid %d on %s)", e.PID, e.Host)
	case e.PID > 0:
		fmt.Fprintf(&b, " (pid %d)", e.PID)
	}
	fmt.Fprintf(&b, " failed%s: %s", where(e.Epoch, e.Step, e.Stage), e.Reason)
	return phrase.Sentence(b.String())
}

func (e *WorkerError) Unwrap() error { return e.Err }

// ErrorKind is a kind of error, which errors.Is finds also in the [WorkerError] of a worker whose
// handler returned it or an error that wraps it. Kinds of equal text are the same:
//
//	var ErrNoConvergence error = multigpu.ErrorKind("the solver did not converge")
type ErrorKind string

func (k ErrorKind) Error() string { return string(k) }

// kindsOf returns the kinds that err is.
func kindsOf(err error) (kinds []ErrorKind) {
	switch e := err.(type) { //nolint:errorlint // this walks the tree
	case nil:
		return nil
	case ErrorKind:
		return []ErrorKind{e}
	case *remoteError:
		return e.kinds
	case interface{ Unwrap() error }:
		return kindsOf(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			kinds = append(kinds, kindsOf(inner)...)
		}
	}
	return kinds
}

// Interrupted is the error of a run that was asked to stop.
type Interrupted struct {
	RunID string
	// Epoch and Step are where rank 0 was, -1 before its first step.
	Epoch, Step int
	// Forced are the ranks that did not stop when asked and were killed.
	Forced []int
	// Why is the reason why a rank of a launcher asked for the end of the run, or "": "rank 2
	// (node7) received the signal terminated".
	Why string
	// Cause is the cause of the context's end, or nil.
	Cause error
	// Err is the first error of a worker while it was stopping, or nil: a last
	// checkpoint that could not be written.
	Err error
}

func (e *Interrupted) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "multigpu: the run was interrupted%s", where(e.Epoch, e.Step, ""))
	if e.Why != "" {
		fmt.Fprintf(&b, ", because %s", e.Why)
	}
	if len(e.Forced) > 0 {
		fmt.Fprintf(&b, "; %s did not stop when asked and had to be ended", ranks(e.Forced))
	}
	if e.Err != nil {
		fmt.Fprintf(&b, "; while stopping: %v", e.Err)
	}
	return phrase.Sentence(b.String())
}

// Unwrap gives errors.Is the context's error.
func (e *Interrupted) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Cause, e.Err}, func(err error) bool { return err == nil })
}

func where(epoch, step int, stage string) string {
	var parts []string
	if epoch >= 0 {
		parts = append(parts, fmt.Sprintf("epoch %d", epoch))
	}
	if step >= 0 {
		parts = append(parts, fmt.Sprintf("step %d", step))
	}
	if stage != "" {
		parts = append(parts, "stage "+stage)
	}
	if len(parts) == 0 {
		return ""
	}
	return " at " + strings.Join(parts, ", ")
}

func ranks(r []int) string {
	if len(r) == 1 {
		return fmt.Sprintf("rank %d", r[0])
	}
	return "ranks " + strings.Trim(strings.ReplaceAll(fmt.Sprint(r), " ", ", "), "[]")
}

// interruption returns the error of a run that was asked to stop; failed is a failure that happened
// while it was stopping, or nil.
func interruption(s Spec, page *statusPage, forced []int, cause error, failed *WorkerError) error {
	epoch, step, _ := page.rank(0).position()
	why, _ := errors.AsType[askedError](cause)
	return &Interrupted{RunID: s.RunID, Epoch: epoch, Step: step, Forced: forced, Why: string(why), Cause: cause, Err: asError(failed)}
}

// asError keeps a nil pointer from becoming an error that is not nil.
func asError(e *WorkerError) error {
	if e == nil {
		return nil
	}
	return e
}
