package recipe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/launch"
	planning "github.com/graphnb/graphnb/gnb/plan"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/machine"
)

// Job describes a run to package plan; build is the build function of the recipe's model, and saves
// tells whether the run writes checkpoints.
func (a Recipe) Job(r launch.Resolved, saves bool, build func(nn.ModelConfig) nn.Model) planning.Job {
	if len(Evaluated(r.Data)) == 0 {
		a.Eval = "none"
	}
	return planning.Job{
		Data: r.Data, Model: a.Model, Build: func() nn.Model { return build(a.Sizes) }, Embedding: a.Embedding(),
		Fanouts: a.Fanouts, Picker: a.Picker(a.Fanouts), Batch: a.StepBatch(), PerWorker: a.BatchPerWorker, Cooperative: a.Cooperative, Epochs: a.Epochs, Eval: a.Eval, EvalEvery: a.EvalEvery,
		Saves: saves, Workers: r.Workers, Virtual: r.VirtualRanks, Threads: r.Threads, Here: r.Here, First: r.First, GPU: r.GPU, FirstGPU: r.FirstGPU, Precision: r.Precision, Divided: r.Divided, Disk: r.Disk && !a.Sizes.Embedding, Cache: r.Cache, CachePolicy: r.CachePolicy, Prefetch: r.Prefetch, GPUCache: r.GPUCache, Seed: r.Seed,
	}
}

// Fits says whether a run fits into memory. raw is its recipe; nil stands for a run of a program other than gnb.Train's,
// of which Fits knows the dataset alone. library returns the build function of a model that comes with the library, and
// nil for others: their code belongs into workers, where its panics and its os.Exit are reported.
func Fits(ctx context.Context, raw json.RawMessage, r launch.Resolved, library func(model string) func(nn.ModelConfig) nn.Model) (warning string, err error) {
	if r.Data == nil {
		return "", nil
	}
	job := planning.Job{Data: r.Data, Workers: r.Workers, Virtual: r.VirtualRanks, Threads: r.Threads, Here: r.Here, First: r.First}
	if raw != nil {
		var a Recipe
		if err := json.Unmarshal(raw, &a); err != nil {
			return "", err
		}
		if e := a.Embedding(); e > 0 {
			here := cmp.Or(r.Here, r.Workers)
			need := feed.EmbeddingBytes((r.Data.Nodes()*here+r.Workers-1)/r.Workers, e)
			if err := machine.Room(fmt.Sprintf("learned embeddings of %d nodes in %d columns", r.Data.Nodes(), e), float64(need)); err != nil {
				return "", fmt.Errorf("gnb: %w; %s", err, FewerColumns)
			}
		}
		wide, layers := float64(a.Sizes.Hidden), float64(a.Sizes.Layers)
		// Making a model of billions of weights takes seconds; workers report it.
		if small := wide*wide*max(0, layers-2)+wide*float64(a.Sizes.In+a.Sizes.Out) < 1e8; small {
			if build := library(a.Model); build != nil {
				job = a.Job(r, !r.Scratch, build)
			}
		}
	}
	if warning, err = planning.Check(ctx, job); err != nil {
		return "", fmt.Errorf("gnb: %w", err)
	}
	return warning, nil
}
