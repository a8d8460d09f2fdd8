package gnb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/codeid"
)

// Models and programs by the names under which cells declared them.
var (
	models   = entry.Registry[modelDef]{Kind: "model"}
	programs = entry.Registry[programDef]{Kind: "program"}
	losses   = entry.Registry[func(b *Batch, logits *nn.Tensor) *nn.Loss]{Kind: "loss"}
)

// programDef is a declared program without its argument's type.
type programDef struct {
	name string
	run  func(w *Worker, args json.RawMessage) error
	// whole says that the program gets edges of weight 0 too; see [TaskDef.Whole].
	whole bool
}

// ProgramOf is a declared program whose argument is of type A.
type ProgramOf[A any] struct {
	name string
}

// Program declares a training loop of your own under a name that must be unique in the program.
// Each worker runs it once; args is the argument of [Launch], encoded to JSON and back: Launch
// refuses arguments that would lose a part, such as unexported fields that are set. A [Loader] with a
// sampler can be one: see [DeclareSampler]. Declare the program at package level.
func Program[A any](name string, run func(w *Worker, args A) error) *ProgramOf[A] {
	programs.Add(name, run != nil, run, programDef{name: name, run: decoded("arguments of program", name, run)})
	return &ProgramOf[A]{name}
}

// decoded returns a function that calls run with what its JSON says; what and name say in errors what that is.
func decoded[A any](what, name string, run func(w *Worker, args A) error) func(w *Worker, raw json.RawMessage) error {
	return func(w *Worker, raw json.RawMessage) error {
		var args A
		if err := json.Unmarshal(raw, &args); err != nil {
			return fmt.Errorf("gnb: the %s %q do not fit %T: %w", what, name, args, err)
		}
		return run(w, args)
	}
}

// Name is the name the program was declared under.
func (p *ProgramOf[A]) Name() string { return p.name }

func (p *ProgramOf[A]) String() string { return "program " + p.name }

// Launch runs a program in worker processes and returns when all have ended. The run's directory,
// its result and its metrics are in the [runs.Run], which is not nil if the run started, even if
// it then failed.
//
// Cancelling ctx, or the notebook's ■, interrupts the run: a checkpoint is written, all workers
// end within 5 s (under a launcher the checkpoint may take 50 s), and the error is [ErrInterrupted]. The next Launch with the same program, code,
// arguments, data and options resumes from it; a Launch with others reports what differs (see
// [LaunchOptions.Resume]).
func Launch[A any](ctx context.Context, p *ProgramOf[A], args A, o LaunchOptions) (*runs.Run, error) {
	entry.Enter()
	if p == nil {
		return nil, errors.New("gnb: Launch needs a program; declare one with gnb.Program")
	}
	raw, err := entry.EncodeArgs(p.name, args)
	if err != nil {
		return nil, err
	}
	return start(ctx, p.name, raw, o)
}

// codeOf returns the code identity of a program with its arguments. It includes models that the
// code references as variables, or that code or arguments name.
func codeOf(program string, args json.RawMessage) runs.CodeIdentity {
	roots := programs.Roots(program)
	for name := range entry.StringsIn(args) {
		roots = append(roots, entry.RootsOf(name)...)
	}
	return runs.CodeIdentity(codeid.Of(roots, codeid.Options{Library: entry.Module, Own: entry.OwnPackage, Named: models.Roots}))
}
