//go:build cuda && linux && cgo

package e2e

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/testneed"
)

// usesOf are the uses of device memory to which the parts of a plan belong.
var usesOf = map[string]cuda.Use{
	"graph": cuda.Graph, "copies of sampled blocks": cuda.Graph, "features": cuda.Features,
	"weights and gradients": cuda.Params, "optimiser state": cuda.Params, "weights of the last two steps": cuda.Params,
	"batches sampled ahead": cuda.Sampling, "sampler's tables": cuda.Sampling, "copies of rows": cuda.Staging, "rows gathered ahead": cuda.Staging,
	"activations and their gradients": cuda.Activations, "evaluation": cuda.Activations, "rows between layers": cuda.Activations, "workspace of matrix products": cuda.Workspace, "sums of long rows": cuda.Workspace,
}

// mostOf returns the most bytes that each use had on the device of a worker whose trace is in a file.
func mostOf(t *testing.T, file string) map[cuda.Use]int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	most := map[cuda.Use]int64{}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "memory most ")
		if !ok {
			continue
		}
		n, use, _ := strings.Cut(rest, " ")
		bytes, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		most[cuda.Use(use)] = max(most[cuda.Use(use)], bytes)
	}
	return most
}

// A plan predicts what each use takes of a GPU within a tenth (and 16 KB, for buffers of a few bytes), for samplers, evaluations
// and places of the dataset; all of it within a tenth of what the GPU counts (and 2 MB, a segment). An exception:
// a run may hold fewer batches ahead than it may have, and copies of fewer.
func TestPlanOfGPUMemory(t *testing.T) {
	testneed.NotShort(t, "it trains seven times on the interpreter")
	ds := load(t, "planted?nodes=1500&classes=5&features=40&degree=6")
	base := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{4, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Device: "cuda"}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}}
	for name, c := range map[string]struct {
		model gnb.AnyModel
		gpus  int
		set   func(o *gnb.TrainOptions)
		env   map[string]string
	}{
		"sage, evaluated":   {gnb.SAGE, 1, func(o *gnb.TrainOptions) { o.Eval = "full" }, nil},
		"gcn":               {gnb.GCN, 1, func(o *gnb.TrainOptions) {}, nil},
		"gat, sampled eval": {gnb.GAT, 1, func(o *gnb.TrainOptions) { o.Heads, o.Eval = 2, "sampled" }, nil},
		"two, labor":        {gnb.SAGE, 2, func(o *gnb.TrainOptions) { o.Sampler = "labor" }, nil},
		"cooperative":       {gnb.SAGE, 2, func(o *gnb.TrainOptions) { o.Cooperative = true }, nil},
		"staged":            {gnb.SAGE, 1, func(o *gnb.TrainOptions) {}, map[string]string{"GNB_CUDA_FEATURES": "staged", "GNB_CUDA_GRAPH": "staged"}},
		"pinned":            {gnb.SAGE, 1, func(o *gnb.TrainOptions) {}, map[string]string{"GNB_CUDA_FEATURES": "pinned"}},
		"cached, small GPU": {gnb.SAGE, 1, func(o *gnb.TrainOptions) { o.Eval = "full" }, map[string]string{"GNB_CUDA_FEATURES": "cached", "GNB_CUDA_MEMORY": "4MB"}},
	} {
		t.Run(name, func(t *testing.T) {
			log := cluster(t, c.gpus, machine{})
			trace := filepath.Join(t.TempDir(), "trace")
			t.Setenv("GNB_CUDA_TRACE", trace)
			t.Setenv("GNB_CUDA_MEMORY", "200MB")
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			o := base
			c.set(&o)
			o.Quiet = true
			p, err := gnb.Plan(t.Context(), ds, c.model, o)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, _, err := trained(t, ds, c.model, o); err != nil {
				t.Fatal(err)
			}
			planned, all := map[cuda.Use]int64{}, int64(0)
			for _, i := range p.GPU.Parts {
				planned[usesOf[i.Name]] += i.Bytes
			}
			most := mostOf(t, trace)
			for _, use := range []cuda.Use{cuda.Graph, cuda.Features, cuda.Params, cuda.Sampling, cuda.Staging, cuda.Activations, cuda.Workspace} {
				less, more := 0.1, 0.1
				switch {
				case use == cuda.Graph && c.model == gnb.GAT: // copies of the first batches alone: the sampler makes later blocks with self-loops
					more = 1
				case use == cuda.Sampling || use == cuda.Graph:
					more = 0.5
				case use == cuda.Activations && o.Cooperative: // of the whole batch, of which a worker has its part and a halo
					more = 0.5
				case use == cuda.Staging && p.GPU.Features != "host": // for rows gathered ahead, if there is room when they are
					more = math.Inf(1)
				}
				if d := float64(planned[use] - most[use]); d < -less*float64(most[use])-16<<10 || d > more*float64(most[use])+16<<10 {
					t.Errorf("%s: %d bytes are planned, and %d were held", use, planned[use], most[use])
				}
			}
			all = int64(number(t, devices(t, log)[0], "peak_bytes"))
			if d := math.Abs(float64(p.GPU.Bytes() - all)); d > 0.1*float64(all)+2<<20 {
				t.Errorf("%d bytes are planned of a GPU, and %d were taken", p.GPU.Bytes(), all)
			}
		})
	}
}

// A run that certainly does not fit on its GPUs ends with the sizes before workers start; one that is near the limit starts
// with a warning.
func TestTrainRefusesWhatGPUsHaveNoRoomFor(t *testing.T) {
	ds := load(t, "planted?nodes=600&classes=5&features=40&degree=6")
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 256, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{4, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 200, Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Device: "cuda"}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}}
	log := cluster(t, 1, machine{})
	t.Setenv("GNB_CUDA_MEMORY", "1MB")
	_, text, err := train(t, ds, o)
	for _, want := range []string{"sage on planted takes about ", " of each worker's GPU (", " for activations and their gradients", "and GNB_CUDA_MEMORY allows 1.0 MiB; take more Workers with a GPU each, or a smaller Batch"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("the error is %v, want %q in it", err, want)
		}
	}
	if _, err := os.Stat(log); err == nil || text != "" {
		t.Errorf("a worker has started: %s", text)
	}
	p, err := gnb.Plan(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 256, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{4, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 200, Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Device: "cuda", Quiet: true}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}})
	if err != nil || p.GPU.Fit != "no" || p.StepSeconds != 0 || !strings.Contains(p.String(), "the run does not fit") {
		t.Errorf("the plan says %+v, %v:\n%s", p.GPU, err, p)
	}
}
