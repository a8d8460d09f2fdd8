package cluster

import (
	"errors"
	"fmt"
	"strconv"
)

// Exit statuses of a rank, the same for every rank of a run. docs/cluster.md has them in a table; again.sh, train.sbatch, the
// batch script of a notebook and the manifests for Kubernetes act on them.
const (
	// exitFailed is the status after an error of the program, which would come again.
	exitFailed = 1
	// ExitLost is the status after a failure of a rank, a machine or the network: one that vanished, hung, stood still or
	// was cut off. It is EX_UNAVAILABLE of sysexits.h. Starting the same job again resumes the run from its last checkpoint.
	ExitLost = 69
	// ExitResumable is the exit status of every rank after a run that was interrupted: EX_TEMPFAIL of
	// sysexits.h. Starting the same job again resumes the run.
	ExitResumable = 75
)

// Lost is an error of a rank, a machine or the network, not of the program: the run can be started again.
type Lost struct{ Err error }

func (e *Lost) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Lost) Unwrap() error { return e.Err }

// lost makes a [Lost].
func lost(format string, args ...any) error { return &Lost{fmt.Errorf(format, args...)} }

// statusOf is the status of a rank that ends with an error before its first job.
func statusOf(err error) int {
	if _, ok := errors.AsType[*Lost](err); ok {
		return ExitLost
	}
	return exitFailed
}

// statusText is a status as a frame carries it, and statusIn the status of a frame; one that makes no sense is a failure.
func statusText(status int) []byte { return []byte(strconv.Itoa(status)) }

func statusIn(text []byte) int {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 || n > 255 {
		return exitFailed
	}
	return n
}
