package gnb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/recipe"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/launch"
	planning "github.com/graphnb/graphnb/gnb/plan"
	"github.com/graphnb/graphnb/graphops/nn"
)

// Plan predicts what [Train] with these arguments takes: the memory of each worker, the bytes of a batch by stage and by source, and
// the time of a step, also with other numbers of workers and in other modes. In a cell it shows the plan; print it for its tables. It
// samples a few steps, and workers compute some for about a second and a half, and for less with each other number of workers; see
// package plan.
func Plan(ctx context.Context, ds *Dataset, model AnyModel, o TrainOptions) (*planning.Plan, error) {
	if err := entry.Start(); err != nil {
		return nil, err
	}
	if err := checkModel(model, "Plan"); err != nil {
		return nil, err
	}
	ds, err := feed.OneWidth(ctx, ds, o.Quiet)
	if err != nil {
		return nil, err
	}
	args, err := o.args(ds, model.Name())
	if err != nil {
		return nil, err
	}
	r, err := launch.Resolve(launch.Settings(o.launch(ds, model)), planning.GPUOf(ctx) > 0)
	if err != nil {
		return nil, err
	}
	d, err := models.Get(args.Model)
	if err != nil {
		return nil, err
	}
	job := args.Job(r, !r.Scratch, d.build)
	job.Trier = trier{args, o.launch(ds, model)}
	p, err := planning.Make(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("gnb: %w", err)
	}
	if !o.Quiet {
		p.Show()
	}
	return p, nil
}

// checkModel refuses what is no declared model.
func checkModel(model AnyModel, method string) error {
	if v := reflect.ValueOf(model); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("gnb: " + method + " needs a model, such as gnb.SAGE")
	}
	_, err := models.Get(model.Name())
	return err
}

// fits is [recipe.Fits] for a run of a program.
func fits(ctx context.Context, program string, raw json.RawMessage, r launch.Resolved) (warning string, err error) {
	if program != trainProgram.Name() {
		raw = nil
	}
	return recipe.Fits(ctx, raw, r, func(model string) func(ModelConfig) nn.Model {
		if !slices.ContainsFunc([]AnyModel{SAGE, GCN, GAT, GATv2, GIN, MLP}, func(m AnyModel) bool { return m.Name() == model }) {
			return nil
		}
		d, _ := models.Get(model) // the library declares it
		return d.build
	})
}
