// Package entry starts the processes of a run: exported functions enter the worker loop through it
// ([Enter]), it encodes a program's argument for workers ([EncodeArgs]), names source lines of the
// program in errors ([CallSite]), checks the range of numeric options ([CheckAll]), and sets up a
// process at its start.
//
// Every exported function of package gnb and its subpackages that a program may call calls [Enter]
// first. A worker is the same program started again: normally flag.Parse turns it into a worker,
// and a program that never parses flags becomes one in its first call of this module.
package entry

import (
	"errors"

	"github.com/graphnb/graphnb/multigpu"
)

// Enter runs the worker loop or the job, and does not return, in a process that was started for one
// and has not entered it yet. In every other process, and within a worker's program, it does
// nothing.
func Enter() {
	multigpu.EnterIfWorker()
	enterJob()
}

// ErrWorker is the error of functions that start workers, when a worker calls them.
var ErrWorker = errors.New("gnb: a worker cannot start a run of its own; start runs from the cell or from main, or pass what the worker needs as the program's argument")

// Start is [Enter] for functions that start workers; it returns [ErrWorker] within a worker's program.
func Start() error {
	Enter()
	if multigpu.InWorker() {
		return ErrWorker
	}
	return nil
}
