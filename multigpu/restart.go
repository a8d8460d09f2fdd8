package multigpu

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/multigpu/cluster"
)

// ExitResumable is the exit status of a rank whose launcher (Slurm, mpirun, torchrun, Kubernetes)
// interrupted the run after a checkpoint: EX_TEMPFAIL of sysexits.h. Starting the same job again
// resumes the run.
const ExitResumable = cluster.ExitResumable

// ExitLost is the exit status of a rank whose run ended because a rank, a machine or the network failed: EX_UNAVAILABLE of
// sysexits.h. Starting the same job again resumes the run from its last checkpoint. An error of the program has status 1.
const ExitLost = cluster.ExitLost

// Restarts decides whether a run whose worker failed is started again, and with how many workers.
// The zero value never starts a run again.
//
// The first failure of a rank restarts as many workers as before. If the same rank fails again, the
// next number of workers is the next smaller divisor of Ranks, because that rank's device or
// machine may be broken, or its memory too small; each worker then computes more virtual ranks, and
// the bits stay the same.
//
// A failure that the program itself caused is not repeated: an error that the handler returned ends
// the run at once, and a panic, an exit, a stall, a lost device or a crash of the Go runtime ends it if
// the failure before was at the same step.
type Restarts struct {
	// Max is the largest number of restarts.
	Max int
	// Ranks is the number of workers × virtual ranks, which a restart keeps.
	Ranks int

	made   int
	failed map[int]bool // ranks that failed since the number of workers last changed
	last   [2]int       // epoch and step of the last failure
}

// Made returns the number of restarts so far.
func (r *Restarts) Made() int { return r.made }

// Next returns the number of workers of the next start after a run of world workers ended with err,
// or the reason why there is none, "" if err is not the failure of a worker.
func (r *Restarts) Next(world int, err error) (next int, refused string) {
	e, ok := errors.AsType[*WorkerError](err)
	if _, asked := errors.AsType[*Interrupted](err); !ok || asked || r.Max == 0 {
		return 0, ""
	}
	at := [2]int{e.Epoch, e.Step}
	again := r.made > 0 && r.last == at
	r.last = at
	switch {
	case e.Cause == CauseError:
		return 0, "it is an error of the program, which would come again"
	case again && (e.Cause == CauseProgram || e.Cause == CauseStalled):
		return 0, "it failed at the same step as before, so the program itself is the likely cause"
	case r.made >= r.Max:
		return 0, fmt.Sprintf("all %d restarts are used up", r.Max)
	}
	r.made++
	if next = world; r.failed[e.Rank] {
		next = smaller(r.Ranks, world)
		r.failed = nil
	}
	if next == world {
		if r.failed == nil {
			r.failed = map[int]bool{}
		}
		r.failed[e.Rank] = true
	}
	return next, ""
}

// smaller returns the largest divisor of ranks below world, or 1.
func smaller(ranks, world int) int {
	for n := world - 1; n > 1; n-- {
		if ranks%n == 0 {
			return n
		}
	}
	return 1
}

// Cause is the kind of a worker's failure, which decides whether a restart can help.
type Cause int

// The causes of failures.
const (
	// CauseLost is a worker that something outside its program ended or silenced: a signal, missing
	// memory, a machine, a graph server that does not answer.
	CauseLost Cause = iota
	// CauseProgram is a panic, an exit of the process, or an end by the Go runtime.
	CauseProgram
	// CauseError is any other error that the handler returned.
	CauseError
	// CauseStalled is a stall, or a device that was lost: the machine or the program may be the reason.
	CauseStalled
)
