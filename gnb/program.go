package gnb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/inside"
)

// What a cell declared under names.
var (
	models   = entry.Registry[modelDef]{Kind: "model"}
	programs = entry.Registry[programDef]{Kind: "program"}
)

// programDef is a declared program, its argument's type forgotten.
type programDef struct {
	name string
	run  func(w *Worker, args json.RawMessage) error
}

// ProgramOf is a declared program whose argument is of type A.
type ProgramOf[A any] struct {
	name string
}

// Program declares a training loop of your own under a name that must be unique
// in the program. Each worker runs it once; args is what [Launch] was given,
// after a trip through JSON: Launch refuses arguments of which a part would not arrive,
// such as unexported fields that are set. Declare it at package level.
func Program[A any](name string, run func(w *Worker, args A) error) *ProgramOf[A] {
	programs.Add(name, run != nil, run, programDef{name, func(w *Worker, raw json.RawMessage) error {
		var args A
		if err := json.Unmarshal(raw, &args); err != nil {
			return fmt.Errorf("gnb: the arguments of program %q do not fit %T: %w", name, args, err)
		}
		return run(w, args)
	}})
	return &ProgramOf[A]{name}
}

// Name is the name the program was declared under.
func (p *ProgramOf[A]) Name() string { return p.name }

func (p *ProgramOf[A]) String() string { return "program " + p.name }

// Launch runs a program in worker processes and returns when all have ended. The
// run's directory, its result and its metrics are in the [runs.Run], which is not nil
// when the error comes from the run itself rather than from its start.
//
// Cancelling ctx, or the notebook's ■, interrupts the run: a checkpoint is
// written, all workers end within 5 s, and the error is [ErrInterrupted]. The
// next Launch with the same program, its code, arguments, data and options goes on
// from there, and another one says what differs (see [LaunchOptions.Resume]).
func Launch[A any](ctx context.Context, p *ProgramOf[A], args A, o LaunchOptions) (*runs.Run, error) {
	multigpuEnter()
	if p == nil {
		return nil, errors.New("gnb: Launch needs a program; declare one with gnb.Program")
	}
	raw, err := entry.EncodeArgs(p.name, args)
	if err != nil {
		return nil, err
	}
	return launch(ctx, p.name, raw, o, inside.HasDir(ctx))
}
