package gnb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	planning "github.com/graphnb/graphnb/gnb/plan"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Plan predicts what [Train] with these arguments takes: the memory of each worker, the bytes of a batch by stage and by source, and
// the time of a step, also with other numbers of workers and in other modes. In a cell it shows the plan; print it for its tables. It
// samples a few steps, and workers compute some for about a second and a half, and for less with each other number of workers; see
// package plan.
func Plan(ctx context.Context, ds *Dataset, model AnyModel, o TrainOptions) (*planning.Plan, error) {
	if err := entry.Start(); err != nil {
		return nil, err
	}
	ds, full, err := o.named(ctx, ds, model, "Plan")
	if err != nil {
		return nil, err
	}
	return nodes.Plan(ctx, ds, full)
}

// Plan predicts what [TaskOf.Train] with these arguments takes, as [Plan] does for nodes: workers train some steps by the task's own
// code, with the run's number of workers and with others, and the memory and times are those that they take. It returns an error
// where the run cannot be tried: on several machines, or on GPUs that are not here.
func (t *TaskOf[O]) Plan(ctx context.Context, ds *Dataset, o O) (*planning.Plan, error) {
	if err := entry.Start(); err != nil {
		return nil, err
	}
	if ds == nil {
		return nil, noDataset(t.Name())
	}
	quiet := t.subject(&o).launch().Quiet
	ds, err := feed.OneWidth(ctx, ds, quiet)
	if err != nil {
		return nil, err
	}
	full, l, err := t.complete(ctx, ds, o)
	if err != nil {
		return nil, err
	}
	r, err := resolve(l, planning.GPUOf(ctx) > 0, t.def.Whole)
	if err != nil {
		return nil, err
	}
	job := t.tried(r, &full)
	if t.def.job != nil {
		if job, err = t.def.job(r, &full); err != nil {
			return nil, err
		}
	}
	job.Trier = trier[O]{t, full, l}
	p, err := planning.Make(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("gnb: %w", err)
	}
	if !quiet {
		p.Show()
	}
	return p, nil
}

// Plan is [TaskOf.Plan].
func (t *TaskAs[O, R]) Plan(ctx context.Context, ds *Dataset, o O) (*planning.Plan, error) {
	if ds == nil {
		return nil, noDataset(t.Name())
	}
	return t.task.Plan(ctx, ds, t.record(ds, o))
}

// tried describes a run of a task, of which only the task knows the network and the batches, to package plan.
func (t *TaskOf[O]) tried(r resolved, o *O) planning.Job {
	of := t.subject(o)
	j := r.job()
	j.Task, j.Epochs, j.Eval, j.EvalEvery = strings.TrimPrefix(t.Name(), "gnb."), of.optimizer().Epochs, "none", 1
	if e := evaluationOf(of); e != nil {
		j.Eval, j.EvalEvery = e.Eval, e.EvalEvery
	}
	return j
}

// job describes a run to package plan, without what its task computes.
func (r resolved) job() planning.Job {
	return planning.Job{
		Data: r.Data, Saves: !r.Scratch, Workers: r.Workers, Virtual: r.VirtualRanks, Threads: r.Threads, Here: r.Here, First: r.First, GPU: r.GPU, FirstGPU: r.FirstGPU,
		Precision: r.Precision, Divided: r.Divided, Disk: r.Disk, Cache: r.Cache, CachePolicy: r.CachePolicy, Prefetch: r.Prefetch, GPUCache: r.GPUCache, Seed: r.Seed,
	}
}

// checkModel refuses what is no declared model.
func checkModel(model AnyModel, method string) error {
	if v := reflect.ValueOf(model); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("gnb: " + method + " needs a model, such as gnb.SAGE")
	}
	_, err := models.Get(model.Name())
	return err
}

// job describes a run of [Train] to package plan; build is the build function of its model.
func (o nodeOptions) job(r resolved, build func(ModelConfig) nn.Model) planning.Job {
	sizes, eval := o.Config(r.Data, r.Data.Classes()), o.Eval
	if len(evaluated(r.Data)) == 0 {
		eval = "none"
	}
	s, _ := o.sampling(r.Data) // an error was one before
	j := r.job()
	j.Model, j.Build, j.Embedding = o.Model, func() nn.Model { return build(sizes) }, o.Embedding
	j.Fanouts, j.Picker, j.Batch, j.PerWorker, j.Cooperative = o.Fanouts, s.Picker(o.Fanouts), o.stepBatch(), o.BatchPerWorker, o.Cooperative
	j.Epochs, j.Eval, j.EvalEvery, j.Disk = o.Epochs, eval, o.EvalEvery, r.Disk && o.Embedding == 0
	return j
}

// fewerColumns is the way out of an error for learned embeddings that do not fit.
const fewerColumns = "take fewer columns (Embedding, --embedding)"

// fits says whether a run of a program fits into memory. Of a program other than Train's it knows the dataset alone. Models
// that do not come with the library are not built here: their code belongs into workers, where its panics and its os.Exit
// are reported.
func fits(ctx context.Context, program string, raw json.RawMessage, r resolved) (warning string, err error) {
	if r.Data == nil {
		return "", nil
	}
	job := planning.Job{Data: r.Data, Workers: r.Workers, Virtual: r.VirtualRanks, Threads: r.Threads, Here: r.Here, First: r.First}
	if program == nodes.Name() {
		var o nodeOptions
		if err := json.Unmarshal(raw, &o); err != nil {
			return "", err
		}
		if o.Embedding > 0 {
			here := cmp.Or(r.Here, r.Workers)
			need := feed.EmbeddingBytes((r.Data.Nodes()*here+r.Workers-1)/r.Workers, o.Embedding)
			if err := machine.Room(fmt.Sprintf("learned embeddings of %d nodes in %d columns", r.Data.Nodes(), o.Embedding), float64(need)); err != nil {
				return "", phrase.Errorf("gnb", "%w; %s", err, fewerColumns)
			}
		}
		sizes := o.Config(r.Data, r.Data.Classes())
		wide, layers := float64(sizes.Hidden), float64(sizes.Layers)
		// Making a model of billions of weights takes seconds; workers report it.
		small := wide*wide*max(0, layers-2)+wide*float64(sizes.In+sizes.Out) < 1e8
		if slices.ContainsFunc([]AnyModel{SAGE, GCN, GAT, GATv2, GIN, MLP}, func(m AnyModel) bool { return small && m.Name() == o.Model }) {
			d, err := models.Get(o.Model)
			if err != nil {
				return "", err
			}
			job = o.job(r, d.build)
		}
	}
	if warning, err = planning.Check(ctx, job); err != nil {
		return "", phrase.Errorf("gnb", "%w", err)
	}
	return warning, nil
}
