package gnb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/internal/launch"
	planning "github.com/graphnb/graphnb/gnb/plan"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/machine"
)

// Plan predicts what [Train] with these arguments takes, without starting a worker: the memory of each worker, the
// bytes of a batch by stage and by source, and the time of a step, also with other numbers of workers and in other modes. In a cell it
// shows the plan; print it for its tables. It samples a few steps, and the first plan on a machine measures the machine's rates for about two
// seconds; see package plan.
func Plan(ctx context.Context, ds *Dataset, model AnyModel, o TrainOptions) (*planning.Plan, error) {
	if err := entry.Start(); err != nil {
		return nil, err
	}
	if err := checkModel(model, "Plan"); err != nil {
		return nil, err
	}
	ds, err := feed.OneWidth(ds)
	if err != nil {
		return nil, err
	}
	args, err := o.args(ds, model.Name())
	if err != nil {
		return nil, err
	}
	r, err := launch.Resolve(launch.Settings(o.launch(ds, model)))
	if err != nil {
		return nil, err
	}
	job, err := args.job(r, inside.HasDir(ctx))
	if err != nil {
		return nil, err
	}
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

// job describes a run of Train to package plan.
func (a trainArgs) job(r launch.Resolved, saves bool) (planning.Job, error) {
	d, err := models.Get(a.Model)
	if len(evaluatedSplits(r.Data)) == 0 {
		a.Eval = "none"
	}
	return planning.Job{
		Data: r.Data, Model: a.Model, Build: func() nn.Model { return d.build(a.Sizes) }, Embedding: a.embedding(),
		Fanouts: a.Fanouts, Picker: a.Picker(a.Fanouts), Batch: a.Batch, PerWorker: a.BatchPerWorker, Cooperative: a.Cooperative, Epochs: a.Epochs, Eval: a.Eval, EvalEvery: a.EvalEvery,
		Saves: saves, Workers: r.Workers, Virtual: r.VirtualRanks, Threads: r.Threads, Here: r.Here, GPU: r.GPU, Precision: r.Precision, Divided: r.Divided, Disk: r.Disk && !a.Sizes.Embedding, Cache: r.Cache, CachePolicy: r.CachePolicy, Prefetch: r.Prefetch, Seed: r.Seed,
	}, err
}

// fits says whether a run fits into memory. Of programs other than Train's it knows the dataset alone, and also of models that are
// not the library's: their code belongs into workers, where its panics and its os.Exit are reported.
func fits(ctx context.Context, program string, raw json.RawMessage, r launch.Resolved) (warning string, err error) {
	if r.Data == nil {
		return "", nil
	}
	job := planning.Job{Data: r.Data, Workers: r.Workers, Virtual: r.VirtualRanks, Threads: r.Threads, Here: r.Here}
	if program == trainProgram.Name() {
		var a trainArgs
		if err := json.Unmarshal(raw, &a); err != nil {
			return "", err
		}
		if e := a.embedding(); e > 0 {
			here := cmp.Or(r.Here, r.Workers)
			need := feed.EmbeddingBytes((r.Data.Nodes()*here+r.Workers-1)/r.Workers, e)
			if err := machine.Room(fmt.Sprintf("learned embeddings of %d nodes in %d columns", r.Data.Nodes(), e), float64(need)); err != nil {
				return "", fmt.Errorf("gnb: %w; %s", err, fewerColumns)
			}
		}
		wide, layers := float64(a.Sizes.Hidden), float64(a.Sizes.Layers)
		// Making a model of billions of weights takes seconds; workers report it.
		if wide*wide*max(0, layers-2)+wide*float64(a.Sizes.In+a.Sizes.Out) < 1e8 && slices.ContainsFunc([]AnyModel{SAGE, GCN, GAT, GATv2, GIN, MLP}, func(m AnyModel) bool { return m.Name() == a.Model }) {
			if job, err = a.job(r, inside.HasDir(ctx)); err != nil {
				return "", err
			}
		}
	}
	if warning, err = planning.Check(ctx, job); err != nil {
		return "", fmt.Errorf("gnb: %w", err)
	}
	return warning, nil
}
