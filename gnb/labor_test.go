package gnb_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/scaling"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testneed"
)

const laborSet = "planted?nodes=2000&features=8&classes=4&degree=15&seed=2"

// laborOptions are samplers of different batches.
var laborOptions = []gnb.TrainOptions{
	{SamplerOptions: gnb.SamplerOptions{Sampler: "labor"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, {SamplerOptions: gnb.SamplerOptions{Sampler: "labor", BatchDependency: 4}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, {SamplerOptions: gnb.SamplerOptions{Sampler: "labor", LayerDependency: true}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, {SamplerOptions: gnb.SamplerOptions{Sampler: "labor-poisson", BatchDependency: 3, LayerDependency: true}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
}

// A run's batches are those of the sampler that its options name.
func TestTrainLabor(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, laborSet)
	ids, err := ds.Split("train")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, o := range append(laborOptions, gnb.TrainOptions{SamplerOptions: gnb.SamplerOptions{Sampler: "uniform"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}) {
		var picker sample.Picker = gnb.Labor{Fanouts: []int{5, 3}, BatchDependency: o.BatchDependency, LayerDependency: o.LayerDependency, Poisson: o.Sampler == "labor-poisson"}
		if o.Sampler == "uniform" {
			picker = sample.Fanouts{5, 3}
		}
		s, err := sample.New(ds.Graph, sample.Config{Picker: picker, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		d := sample.NewDigest()
		for epoch := range 2 {
			order := sample.EpochOrder(7, epoch, ids)
			for step := 0; step*100 < len(order); step++ {
				b, err := s.Sample(epoch, step, sample.Seeds{IDs: order[step*100 : min((step+1)*100, len(order))]})
				if err != nil {
					t.Fatal(err)
				}
				d.AddBatch(b)
				b.Release()
			}
		}
		o.Workers, o.Threads, o.Hidden, o.Batch, o.Fanouts, o.Epochs, o.Seed, o.Eval, o.Digest = 2, 1, 8, 100, []int{5, 3}, 2, 7, "sampled", true
		run := train(t, ds, o)
		if got := run.Result.Text["digest"]; got != d.Sum() || seen[got] {
			t.Errorf("%s, %d, %v: digest %s, want %s, and no other sampler's", o.Sampler, o.BatchDependency, o.LayerDependency, got, d.Sum())
		}
		seen[d.Sum()] = true
		model, again, err := gnb.OptionsOf(run)
		want := o.Sampler
		if want == "uniform" {
			want = ""
		}
		if err != nil || model != "sage" || again.Sampler != want || again.BatchDependency != o.BatchDependency || again.LayerDependency != o.LayerDependency {
			t.Errorf("OptionsOf: %+v, %v", again, err)
		}
	}
}

// A sampled evaluation is uniform, whatever the sampler of training.
func TestLaborEvaluation(t *testing.T) {
	ds := load(t, laborSet)
	var want string
	for _, sampler := range []string{"uniform", "labor"} {
		run := train(t, ds, gnb.TrainOptions{SamplerOptions: gnb.SamplerOptions{Sampler: sampler, Fanouts: []int{2, 2}}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1, LR: 1e-30}, LaunchOptions: gnb.LaunchOptions{Seed: 7}, EvaluationOptions: gnb.EvaluationOptions{Eval: "sampled"}, BestBy: "loss"})
		if got := fmt.Sprint(run.Value("val_loss"), run.Value("test_accuracy")); want == "" {
			want = got
		} else if got != want {
			t.Errorf("the evaluation of the initial weights has loss and accuracy %s, with uniform sampling %s", got, want)
		}
	}
}

// One digest for any number of workers and threads, on the whole graph and on parts with replicated and divided topology,
// in cooperative batches, with caches and prefetched rows. Training on parts has the bits of the same division of the
// batches without caches.
func TestLaborDigests(t *testing.T) {
	testneed.NotShort(t, "it samples and trains many times")
	ds := load(t, laborSet)
	parts, bare := dividedtest.Parts(t, ds, divided.Options{}), dividedtest.Parts(t, ds, divided.Options{NoTopology: true})
	for _, l := range laborOptions {
		var want gnb.SampleResult
		for i, c := range []struct {
			ds               *gnb.Dataset
			workers, threads int
			topology         string
			together         bool
		}{{ds: ds, workers: 1, threads: 1}, {ds: ds, workers: 1, threads: 2}, {ds: ds, workers: 2, threads: 1}, {ds: ds, workers: 4, threads: 2}, {ds: ds, workers: 2, together: true}, {ds: parts, workers: 2}, {ds: parts, workers: 2, topology: "divided"}, {ds: bare, workers: 4}} {
			got, err := gnb.Sample(t.Context(), c.ds, gnb.SampleOptions{
				Fanouts: []int{6, 4}, Sampler: l.Sampler, BatchDependency: l.BatchDependency, LayerDependency: l.LayerDependency, Batch: 150, Steps: 6, Seed: 5,
				Workers: c.workers, Threads: c.threads, Topology: c.topology, Cooperative: c.together, Quiet: true, Device: "cpu",
			})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				want = got
			} else if got.Digest != want.Digest || got.UniqueEdges != want.UniqueEdges {
				t.Errorf("%+v on %d workers, %q, cooperative %v: %v, want %v", l, c.workers, c.topology, c.together, got, want)
			}
		}
	}
	var want []byte
	digest := ""
	for _, c := range []gnb.TrainOptions{{LaunchOptions: gnb.LaunchOptions{Workers: 2}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, {LaunchOptions: gnb.LaunchOptions{Workers: 2, PlaneOptions: gnb.PlaneOptions{Cache: "20%", Prefetch: 6}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, {LaunchOptions: gnb.LaunchOptions{Workers: 4, PlaneOptions: gnb.PlaneOptions{Topology: "divided", Prefetch: 2}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, {LaunchOptions: gnb.LaunchOptions{Workers: 1, PlaneOptions: gnb.PlaneOptions{Topology: "divided"}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}} {
		c.Sampler, c.BatchDependency, c.Threads, c.Hidden, c.Fanouts, c.Batch, c.Epochs, c.Eval, c.Digest = "labor", 8, 1, 8, []int{5, 3}, 128, 2, "none", true
		run := train(t, parts, c)
		if got := weights(t, run); want == nil {
			want, digest = got, run.Result.Text["digest"]
		} else if !bytes.Equal(got, want) || run.Result.Text["digest"] != digest {
			t.Errorf("%d workers, topology %q, cache %q: other weights or another digest", c.Workers, c.Topology, c.Cache)
		}
	}
}

// The plan and the scaling curve count the batches of the run's sampler.
func TestPlanAndScalingOfLabor(t *testing.T) {
	ds := load(t, laborSet)
	o := gnb.TrainOptions{SamplerOptions: gnb.SamplerOptions{Fanouts: []int{6, 4}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 300}, LaunchOptions: gnb.LaunchOptions{Seed: 3, Quiet: true, Device: "cpu"}, EvaluationOptions: gnb.EvaluationOptions{Eval: "sampled"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
	uniform, err := gnb.Plan(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Sampler, o.BatchDependency = "labor", 16
	labor, err := gnb.Plan(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := uniform.Hops[1].Sources, labor.Hops[1].Sources; b >= a || !strings.Contains(labor.String(), "sampler labor, batch dependency 16, batch 300") {
		t.Errorf("%d sources uniformly, %d with LABOR:\n%s", a, b, labor)
	}
	s := gnb.SampleOptions{Fanouts: o.Fanouts, Sampler: o.Sampler, BatchDependency: o.BatchDependency, Batch: o.Batch, Seed: o.Seed, Steps: 3, Quiet: true}
	want, err := gnb.Sample(t.Context(), ds, s)
	if err != nil {
		t.Fatal(err)
	}
	c, err := scaling.Measure(t.Context(), ds, gnb.SAGE, scaling.Options{TrainOptions: o, Repeats: 1, Steps: 3, WarmUp: 1}, []int{1})
	if err != nil || len(c.Points) != 1 {
		t.Fatal(c, err)
	}
	if p := c.Points[0]; p.Rows != float64(want.Nodes)/3 || p.Edges != float64(want.Edges)/3 {
		t.Errorf("%v rows and %v edges a step; Sample has %+v", p.Rows, p.Edges, want)
	}
}

func TestLaborMisuse(t *testing.T) {
	ds := load(t, "karate")
	for want, o := range map[string]gnb.TrainOptions{
		`Sampler is "cluster"; it is "uniform", "labor", "labor-poisson", "hgt"`:             {SamplerOptions: gnb.SamplerOptions{Sampler: "cluster"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
		"BatchDependency is 4, but uniform sampling draws anew at each step; set Sampler to": {SamplerOptions: gnb.SamplerOptions{BatchDependency: 4}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
		"LayerDependency is set, but uniform":                                                {SamplerOptions: gnb.SamplerOptions{Sampler: "uniform", LayerDependency: true}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
		"BatchDependency is -1; it is a number of steps":                                     {SamplerOptions: gnb.SamplerOptions{Sampler: "labor", BatchDependency: -1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
		"BatchDependency is 1048577; it is a number of steps, 1 to 1048576":                  {SamplerOptions: gnb.SamplerOptions{Sampler: "labor-poisson", BatchDependency: sample.MaxBatchDependency + 1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
	} {
		if _, err := gnb.Train(t.Context(), ds, gnb.SAGE, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Train: error %v, want one with %q", err, want)
		}
		if _, err := gnb.Sample(t.Context(), ds, gnb.SampleOptions{Sampler: o.Sampler, BatchDependency: o.BatchDependency, LayerDependency: o.LayerDependency}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Sample: error %v, want one with %q", err, want)
		}
	}
}
