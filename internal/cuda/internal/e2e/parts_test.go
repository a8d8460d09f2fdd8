//go:build cuda && linux && cgo

package e2e

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	_ "github.com/graphnb/graphnb/gnb/remote"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// On a dataset in parts, and with features on disk, the host samples and gathers batches for GPUs. A run has the CPU's digest,
// its losses, and its accuracies within two nodes; every device computes passes, and the run says who samples. That holds for
// both topologies, rows that workers get from each other ahead of use, and cooperative batches.
func TestHostFeedsDevices(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	whole := load(t, "planted?nodes=300&classes=3&features=8&degree=5")
	parts := dividedtest.Parts(t, whole, divided.Options{})
	dir := filepath.Join(t.TempDir(), "whole")
	if err := dataset.Write(dir, whole); err != nil {
		t.Fatal(err)
	}
	disk := load(t, dir)
	for _, c := range []struct {
		name    string
		workers int
		ds      *gnb.Dataset
		model   gnb.AnyModel
		set     gnb.TrainOptions
	}{
		{"parts, 1 device", 1, parts, gnb.SAGE, gnb.TrainOptions{}},
		{"parts, 2 devices, cache", 2, parts, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Cache: "20%", Prefetch: 2}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		{"parts, 2 devices, divided topology", 2, parts, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Topology: "divided"}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		{"parts, 4 devices, cooperative", 4, parts, gnb.SAGE, gnb.TrainOptions{Cooperative: true, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		{"disk, 2 devices", 2, disk, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Features: "disk", Prefetch: 2}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		{"servers, 2 devices", 2, load(t, "grpc://"+servetest.Start(t, parts, serve.Options{}).Addr), gnb.SAGE, gnb.TrainOptions{}},
		{"parts with features of edges", 2, dividedtest.Parts(t, withEdgeFeatures(whole), divided.Options{}), gnb.GATv2, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Heads: 2, Dropout: 0.5}}},
		{"parts with sparse features", 2, dividedtest.Parts(t, withSparse(whole), divided.Options{}), gnb.SAGE, gnb.TrainOptions{}},
		{"parts with types", 2, dividedtest.Parts(t, bought(t), divided.Options{}), gnb.RGCN, gnb.TrainOptions{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := cluster(t, c.workers, machine{})
			o := c.set
			o.Hidden, o.Fanouts, o.Batch, o.Epochs, o.EvalEvery, o.InputDropout, o.Workers = 8, []int{3, 2}, 100, 2, 2, 0.1, c.workers
			o.Device = "cpu"
			o.Digest = true
			want, _, run, err := trained(t, c.ds, c.model, o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(log); err == nil {
				t.Fatal("the run on the CPU opened a device")
			}
			o.Device = "cuda"
			got, text, gpu, err := trained(t, c.ds, c.model, o)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, want)
			if a, b := run.Result.Text["digest"], gpu.Result.Text["digest"]; a != b || a == "" {
				t.Errorf("digest %q, the CPU's is %q", b, a)
			}
			if a, b := run.TestAccuracy(), gpu.TestAccuracy(); !(math.Abs(a-b) <= 2.0/60) {
				t.Errorf("test accuracy %v, on the CPU %v", b, a)
			}
			if !strings.Contains(text, "sampled and their rows gathered on the host") {
				t.Errorf("the run says\n%s", text)
			}
			lines := devices(t, log)
			if len(lines) != c.workers {
				t.Errorf("%d of %d devices were closed", len(lines), c.workers)
			}
			for _, l := range lines {
				for _, has := range []string{" 0 left behind", "spmm_f32", "adam_f32=", "cross_entropy_grad_f32="} {
					if !strings.Contains(l, has) {
						t.Errorf("a device ended without %q: %s", has, l)
					}
				}
			}
		})
	}
}

// Without a number of workers, a run on parts takes the largest that divides the parts and has a GPU for each.
// Inference on parts on GPUs predicts what the CPU does.
func TestPartsOnGPUs(t *testing.T) {
	testneed.NotShort(t, "it trains on the interpreter")
	parts := dividedtest.Parts(t, load(t, "planted?nodes=200&classes=3&features=6&degree=5"), divided.Options{})
	cluster(t, 3, machine{})
	_, text, run, err := trained(t, parts, gnb.SAGE, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 2}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 2}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}})
	if err != nil {
		t.Fatal(err)
	}
	if run.Config.Workers != 2 || !strings.Contains(text, "2 workers on 3 GPUs: the most that divide 4 parts evenly.") {
		t.Errorf("%d workers; the run says\n%s", run.Config.Workers, text)
	}
	var logits [2][]float32
	for i, device := range []string{"cpu", "cuda"} {
		out := filepath.Join(t.TempDir(), "logits.npy")
		if _, err := gnb.Infer(t.Context(), run, parts, out, gnb.InferOptions{Workers: 2, Device: device, Quiet: true}); err != nil {
			t.Fatal(err)
		}
		if _, logits[i], err = dataset.ReadArray[float32](out); err != nil {
			t.Fatal(err)
		}
	}
	if len(logits[0]) != 200*3 || len(logits[1]) != 200*3 {
		t.Fatalf("outputs of %d and %d numbers", len(logits[0]), len(logits[1]))
	}
	for i, x := range logits[0] {
		if math.Abs(float64(x-logits[1][i])) > 1e-4*(1+math.Abs(float64(x))) {
			t.Fatalf("output %d is %v, on the CPU %v", i, logits[1][i], x)
		}
	}
}

// withEdgeFeatures returns the dataset with two features of each edge.
func withEdgeFeatures(ds *gnb.Dataset) *gnb.Dataset {
	x := &graphops.EdgeFeatures{Cols: 2, F32: make([]float32, 2*ds.Edges())}
	for i := range x.F32 {
		x.F32[i] = float32(i%7) / 4
	}
	edged := *ds
	edged.Graph = ds.Graph.WithEdgeData(x, nil)
	return &edged
}

// withSparse returns the dataset with its positive features alone, sparse.
func withSparse(ds *gnb.Dataset) *gnb.Dataset {
	s := &dataset.Sparse{Rows: ds.Nodes(), Cols: ds.FeatureDim(), Indptr: []int64{0}}
	for v := range s.Rows {
		for c := range s.Cols {
			if x := ds.Features.F32[v*s.Cols+c]; x > 0 {
				s.Indices, s.Values = append(s.Indices, int32(c)), append(s.Values, x)
			}
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	sparse := *ds
	sparse.Features, sparse.SparseFeatures = nil, s
	return &sparse
}
