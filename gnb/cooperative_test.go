package gnb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testneed"
)

// trainModel trains as train does, with any model.
func trainModel(t testing.TB, ds *gnb.Dataset, m gnb.AnyModel, o gnb.TrainOptions) *runs.Run {
	t.Helper()
	o.Quiet, o.Resume, o.RunDir = true, gnb.Never, t.TempDir()
	run, err := gnb.Train(t.Context(), ds, m, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// sameAs compares the digest, the number of sampled edges and the losses of the first ten steps with
// those of one worker.
func sameAs(t *testing.T, one, run *runs.Run) {
	t.Helper()
	if d, want := run.Result.Text["digest"], one.Result.Text["digest"]; d != want || d == "" {
		t.Errorf("digest %s, want %s as with one worker", d, want)
	}
	if got, want := run.Result.SampledEdges, one.Result.SampledEdges; got != want || float64(got) != run.Value("unique_edges") {
		t.Errorf("%d edges were sampled, of which %v differ; one worker samples %d", got, run.Value("unique_edges"), want)
	}
	want, err := one.Losses()
	if err != nil {
		t.Fatal(err)
	}
	got, err := run.Losses()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) || len(got) < 3 {
		t.Fatalf("%d steps, want %d", len(got), len(want))
	}
	for i := range min(10, len(want)) {
		if d := math.Abs(got[i]-want[i]) / want[i]; !(d <= 1e-5) {
			t.Errorf("the loss of step %d is %v, with one worker %v: they differ by %.2g", i, got[i], want[i], d)
		}
	}
}

// Workers that make batches together sample the edges that one worker samples and have its losses,
// for each model, and for a last batch with fewer seeds than workers. A repeated run has the same
// bits.
func TestCooperativeIsOneWorker(t *testing.T) {
	ds := load(t, "planted?nodes=3000&degree=12&features=20&classes=5&seed=3")
	for _, c := range []struct {
		m       gnb.AnyModel
		degrees bool
	}{{gnb.SAGE, false}, {gnb.GCN, false}, {gnb.GCN, true}, {gnb.GAT, false}, {gnb.GATv2, false}, {gnb.GIN, false}, {gnb.GatedGCN, false}, {gnb.PNA, false}, {gnb.MLP, false}} {
		m := c.m
		t.Run(fmt.Sprint(m.Name(), " by the batch's degrees ", c.degrees), func(t *testing.T) {
			if testing.Short() && m.Name() != gnb.SAGE.Name() {
				t.Skip("with -short, one model is enough")
			}
			o := gnb.TrainOptions{
				LaunchOptions:     gnb.LaunchOptions{Threads: 1, Seed: 11, CheckpointEvery: -1},
				OptimizerOptions:  gnb.OptimizerOptions{Batch: 149, Epochs: 1, LR: 1e-3},
				SamplerOptions:    gnb.SamplerOptions{Fanouts: []int{4, 3, 3}, Digest: true},
				ModelOptions:      gnb.ModelOptions{Hidden: 16, Dropout: 0.5, InputDropout: 0.1, Residual: m == gnb.AnyModel(gnb.SAGE), BatchDegrees: c.degrees},
				EvaluationOptions: gnb.EvaluationOptions{Eval: "none"},
				Cooperative:       true,
			}
			if m == gnb.AnyModel(gnb.GAT) || m == gnb.AnyModel(gnb.GATv2) {
				o.Heads = 2
			}
			one := trainModel(t, ds, m, o)
			for _, o.Workers = range []int{2, 4} {
				run := trainModel(t, ds, m, o)
				sameAs(t, one, run)
				if o.Workers == 2 {
					if !bytes.Equal(weights(t, run), weights(t, trainModel(t, ds, m, o))) {
						t.Error("a repeated run has other bits")
					}
				}
			}
		})
	}
}

// The losses of the first steps differ from those of one worker by no more than bench/notes/samplers.md says. The graph has hubs and
// labels that cannot be learnt, so many gradients are near 0, as on the graphs of bench/rounding.py.
func TestCooperativeRounding(t *testing.T) {
	testneed.NotShort(t, "it trains eight times")
	data, seeds := "rmat?scale=14&degree=20&features=48&classes=12&noise=9", 1
	o := gnb.TrainOptions{
		LaunchOptions:     gnb.LaunchOptions{Threads: 1, CheckpointEvery: -1},
		OptimizerOptions:  gnb.OptimizerOptions{Batch: 512, Epochs: 1},
		SamplerOptions:    gnb.SamplerOptions{Fanouts: []int{10, 6, 4}},
		ModelOptions:      gnb.ModelOptions{Hidden: 48, Dropout: 0.5},
		EvaluationOptions: gnb.EvaluationOptions{Eval: "none"},
		Cooperative:       true,
	}
	if testneed.Soak.Here() {
		data, seeds, o.Batch, o.Fanouts, o.Hidden = "rmat?scale=17&degree=20&features=100&classes=47&noise=9", 2, 1024, []int{15, 10, 5}, 64
	}
	ds := load(t, data)
	alone := o
	alone.Workers, alone.Cooperative = 2, false
	for _, c := range []struct{ lr, most float64 }{{0.001, 1e-5}, {0.01, 3e-4}} {
		for seed := range seeds {
			losses := func(o gnb.TrainOptions, workers int) []float64 {
				o.LR, o.Seed, o.Workers = c.lr, uint64(seed), workers
				l := gnb.Must(trainModel(t, ds, gnb.SAGE, o).Losses())
				if len(l) < 10 {
					t.Fatalf("%d steps, want at least 10", len(l))
				}
				return l[:10]
			}
			one := losses(o, 1)
			for name, got := range map[string][]float64{"2 cooperative": losses(o, 2), "4 cooperative": losses(o, 4), "2 independent": losses(alone, 2)} {
				most := 0.0
				for i, loss := range got {
					d := math.Abs(loss-one[i]) / one[i]
					if most = max(most, d); i < 2 && !(d <= 1e-6) {
						t.Errorf("LR %v, seed %d, %s: the loss of step %d is %v, with one worker %v: they differ by %.2g", c.lr, seed, name, i, loss, one[i], d)
					}
				}
				if !(most <= c.most) {
					t.Errorf("LR %v, seed %d, %s: the losses differ from those of one worker by %.2g, want at most %v", c.lr, seed, name, most, c.most)
				}
				t.Logf("LR %v, seed %d, %s: %.2g", c.lr, seed, name, most)
			}
		}
	}
}

// togetherArgs configure the tests' program with cooperative batches.
type togetherArgs struct {
	Kind   string
	Alone  bool   // batches are independent
	Owners string // "", "range" or "parts"
}

// owners divides the nodes of ds among the workers as Owners names.
func (a togetherArgs) owners(ds *gnb.Dataset) sample.Owners {
	switch a.Owners {
	case "range":
		return sample.RangeOwners(ds.Nodes())
	case "parts":
		of := make([]int32, ds.Nodes())
		for v := range of {
			of[v] = int32(v % 7 % 5)
		}
		return gnb.Must(sample.NewPartOwners(of, 5))
	}
	return nil
}

var togetherModel = gnb.Model("test.together", nn.NewSAGEModel)

// together trains in its own loops, which it leaves early, and calls the layers itself.
var together = gnb.Program("test.together", func(w *gnb.Worker, a togetherArgs) error {
	ds := w.Dataset()
	net := togetherModel.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 16, Out: ds.Classes(), Layers: 2, Dropout: 0.3})
	opt := w.Adam(net, 1e-3)
	w.Digest()
	owners := a.owners(ds)
	for epoch := range w.Epochs(3) {
		steps := 0
		for b := range w.Batches("train", gnb.Loader{Sampler: gnb.Fanouts{4, 3}, Batch: 61, Cooperative: !a.Alone, Owners: owners, Ahead: 1 + epoch}) {
			f, h := net.Pass(b)
			for i, k := range b.Blocks {
				if i > 0 {
					h = f.Sources(k, h)
				}
				h = net.Model.Layer(f, i, k, h)
			}
			loss := b.Loss(h)
			if a.Kind == "diverge" && w.Rank() == 1 && steps == 2 {
				break // only one rank leaves the loop here
			}
			if a.Kind == "fail" && w.Rank() == 1 && steps == 2 {
				w.Fail(errors.New("this rank gives up"))
			}
			w.Step(loss, opt)
			if steps++; steps == 5+epoch {
				break
			}
		}
		// Batches have 2 seeds, fewer than there may be workers. The first epoch has a single
		// batch.
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{4, 3}, Batch: 2, MaxSteps: 1 + 2*epoch, Cooperative: !a.Alone}) {
			w.Step(b.Loss(net.Forward(b)), opt)
		}
		w.Log(w.Evaluate(net, gnb.Sampled([]int{4, 4}, 0, 0), "val"))
	}
	return nil
})

func runTogether(t *testing.T, ds *gnb.Dataset, a togetherArgs, workers int) (*runs.Run, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return gnb.Launch(ctx, together, a, gnb.LaunchOptions{Data: ds, Workers: workers, Threads: 1, Seed: 5, Quiet: true, Resume: gnb.Never, RunDir: t.TempDir()})
}

// The program leaves its own loops early, at the same step on all workers, and calls the layers
// itself. Nodes are divided by ranges (two workers) or by parts (three workers). The samples and
// losses are those of one worker.
func TestCooperativeLoops(t *testing.T) {
	testneed.Raced(t, "it trains several times")
	ds := load(t, smallSet)
	one, err := runTogether(t, ds, togetherArgs{Alone: true}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for workers, owners := range []string{"", "range", "parts"} {
		run, err := runTogether(t, ds, togetherArgs{Owners: owners}, workers+1)
		if err != nil {
			t.Fatalf("%d workers: %v", workers+1, err)
		}
		sameAs(t, one, run)
	}
}

// If a worker fails, or leaves a loop that the others do not leave, the run ends with an error that
// names the worker, although the others sample together ahead of it.
func TestCooperativeLoopsFail(t *testing.T) {
	ds := load(t, smallSet)
	for kind, want := range map[string]string{
		"fail":    "this rank gives up",
		"diverge": "rank 0 is at .* rank 1 at |left the loop over batches",
	} {
		_, err := runTogether(t, ds, togetherArgs{Kind: kind}, 2)
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want %q", kind, err, want)
		}
	}
}

// Sampling without training also has one worker's digest, and counts each of its edges and nodes
// once.
func TestSampleCooperative(t *testing.T) {
	ds := load(t, smallSet)
	o := gnb.SampleOptions{Fanouts: []int{5, 4}, Batch: 60, Quiet: true}
	one := gnb.Must(gnb.Sample(t.Context(), ds, o))
	if one.Edges != one.UniqueEdges || one.Nodes != one.UniqueNodes || one.MovedBytes != 0 {
		t.Errorf("one worker: %+v", one)
	}
	for _, o.Workers = range []int{2, 3} {
		o.Cooperative = false
		alone := gnb.Must(gnb.Sample(t.Context(), ds, o))
		o.Cooperative = true
		r := gnb.Must(gnb.Sample(t.Context(), ds, o))
		if r.Digest != one.Digest || alone.Digest != one.Digest {
			t.Errorf("%d workers: digests %s and %s, want %s", o.Workers, r.Digest, alone.Digest, one.Digest)
		}
		if alone.Nodes <= one.Nodes || alone.UniqueNodes != one.Nodes || alone.UniqueEdges != one.Edges || alone.MovedBytes != 0 {
			t.Errorf("%d workers with independent batches: %+v, one worker: %+v", o.Workers, alone, one)
		}
		if r.Nodes != one.Nodes || r.UniqueNodes != one.Nodes || r.Edges != one.Edges || r.UniqueEdges != one.Edges || r.MovedBytes == 0 {
			t.Errorf("%d workers with cooperative batches: %+v, one worker: %+v", o.Workers, r, one)
		}
	}
}

// Options that do not allow cooperative batches are refused before a worker starts, with one
// sentence.
func TestCooperativeRefuses(t *testing.T) {
	ds := load(t, smallSet)
	_, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{
		LaunchOptions: gnb.LaunchOptions{
			Workers:      2,
			VirtualRanks: 2,
			Quiet:        true,
			Resume:       gnb.Never,
			RunDir:       t.TempDir(),
		},
		Cooperative:  true,
		ModelOptions: gnb.ModelOptions{Dropout: 0.5},
	})
	if err == nil || !strings.Contains(err.Error(), "cannot be divided among 2 virtual ranks per worker; leave VirtualRanks out, or Cooperative") || strings.Contains(err.Error(), "rank 0") {
		t.Error(err)
	}
}

// An overflow in the first layer is found, even if the loss that shows it belongs to another
// worker.
func TestCooperativeNotFinite(t *testing.T) {
	ds := load(t, smallSet)
	bad := *ds
	x := *ds.Features
	x.F32 = append([]float32(nil), x.F32...)
	for c := range x.Cols {
		x.F32[1234*x.Cols+c] = 3e38
	}
	bad.Features = &x
	_, err := gnb.Train(t.Context(), &bad, gnb.SAGE, gnb.TrainOptions{
		LaunchOptions:     gnb.LaunchOptions{Workers: 2, Quiet: true, Resume: gnb.Never, RunDir: t.TempDir()},
		SamplerOptions:    gnb.SamplerOptions{Fanouts: []int{20, 20}},
		OptimizerOptions:  gnb.OptimizerOptions{Batch: 400},
		Cooperative:       true,
		EvaluationOptions: gnb.EvaluationOptions{Eval: "none"},
	})
	if !errors.Is(err, gnb.ErrNotFinite) || !strings.Contains(err.Error(), "layer 0 (*nn.SAGEConv) of model") {
		t.Error(err)
	}
}
