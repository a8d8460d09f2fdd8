//go:build cuda && linux && cgo

package e2e

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// logged returns the sum of a count in the log of devices.
func logged(t *testing.T, log, name string) (sum int64) {
	t.Helper()
	for _, l := range devices(t, log) {
		if m := regexp.MustCompile(" " + name + `=(\d+)`).FindStringSubmatch(l); m != nil {
			n, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// Rows that stay on GPUs change neither losses nor weights, whatever their share, wherever the other rows come from and in
// whichever format they are. They are neither asked of other machines, servers or the disk nor copied again. Without
// GNB_SOAK each source has one share, in turn.
func TestRowsStayOnGPUs(t *testing.T) {
	testneed.NotShort(t, "it trains many times on the interpreter")
	whole := load(t, "planted?nodes=300&classes=3&features=8&degree=5")
	parts := dividedtest.Parts(t, whole, divided.Options{})
	write := func(ds *gnb.Dataset) *gnb.Dataset {
		dir := filepath.Join(t.TempDir(), "whole")
		if err := dataset.Write(dir, ds); err != nil {
			t.Fatal(err)
		}
		return load(t, dir)
	}
	half, err := whole.Features.Float16()
	if err != nil {
		t.Fatal(err)
	}
	halved := *whole
	halved.Features = half
	server := servetest.Start(t, parts, serve.Options{})
	for _, c := range []struct {
		name  string
		ds    *gnb.Dataset
		width int64 // bytes of a row
		sizes []string
		set   gnb.TrainOptions
	}{
		{"parts in files", parts, 32, []string{"0", "20%", "200%"}, gnb.TrainOptions{}},
		{"parts of others", parts, 32, []string{"9600B", "20%"}, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Prefetch: 2}, VirtualRanks: 1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		{"float16 parts, cache", dividedtest.Parts(t, &halved, divided.Options{}), 16, []string{"30%"}, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Cache: "20%"}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		{"divided topology", parts, 32, []string{"20%"}, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Topology: "divided", Prefetch: 2}, VirtualRanks: 1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		{"cooperative", parts, 32, []string{"20%"}, gnb.TrainOptions{Cooperative: true, LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Prefetch: 2}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		{"servers", load(t, "grpc://"+server.Addr), 32, []string{"200%", "20%"}, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{VirtualRanks: 1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		{"disk", write(whole), 32, []string{"20%", "200%"}, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Features: "disk", Prefetch: 2}}, EvaluationOptions: gnb.EvaluationOptions{Eval: "full"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
		{"float16 on disk, replaced", write(&halved), 16, []string{"20%"}, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Features: "disk", Cache: "10%", CachePolicy: "belady"}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			train := func(size string) (losses []float64, text string, run *runs.Run, written int64) {
				log := cluster(t, 2, machine{})
				o := c.set
				o.Hidden, o.Fanouts, o.Batch, o.Epochs, o.InputDropout, o.Workers, o.Eval = 8, []int{3, 2}, 90, 2, 0.1, 2, cmp.Or(o.Eval, "sampled")
				o.Device, o.Digest, o.GPUCache = "cuda", true, size
				losses, text, run, err := trained(t, c.ds, gnb.SAGE, o)
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range devices(t, log) {
					if !strings.Contains(l, " 0 left behind") || strings.Contains(l, " spmm_f16") != (c.width == 16) {
						t.Error(l)
					}
				}
				return losses, text, run, logged(t, log, "written_bytes")
			}
			want, _, without, before := train("")
			if c.name != "parts in files" && !testneed.Soak.Here() {
				c.sizes = c.sizes[:1]
			}
			for _, size := range c.sizes {
				got, text, run, written := train(size)
				if !slices.Equal(got, want) || len(got) != 2 {
					t.Errorf("GPUCache %q: losses %v, want %v", size, got, want)
				}
				for name, sum := range without.Result.Weights {
					if run.Result.Weights[name] != sum || sum == "" {
						t.Errorf("GPUCache %q: other weights", size)
					}
				}
				if a, b := without.Result.Text["digest"], run.Result.Text["digest"]; a != b || a == "" {
					t.Errorf("GPUCache %q: digest %s, want %s", size, b, a)
				}
				r := run.Result.Rows
				if r == nil || (r.GPU > 0) != (size != "0") {
					t.Fatalf("GPUCache %q: %v", size, r)
				}
				if size == "0" {
					continue
				}
				all := r.GPU + r.Own + r.Cached + r.Window + r.Remote + r.Disk
				if r.Copied != (all-r.GPU)*c.width || size == "200%" && 10*r.GPU < 9*all {
					t.Errorf("GPUCache %q: %+v", size, r)
				}
				if was := without.Result.Rows; was != nil && (was.Own+was.Cached+was.Window+was.Remote+was.Disk != all || r.Window+r.Remote+r.Disk > was.Window+was.Remote+was.Disk) {
					t.Errorf("GPUCache %q: %+v, without %+v", size, r, was)
				}
				// Beside the rows that stay, each row of a batch has a number, and so have the rows that it can have.
				if most := before - r.GPU*c.width + kept(t, text)*2*c.width + 8*all; written > most {
					t.Errorf("GPUCache %q: %d bytes were copied to the GPUs, and %d without it; want at most %d", size, written, before, most)
				}
			}
		})
	}
}

// Rows of a whole dataset that the host copies to GPUs stay there too; the GPU still samples. Where the GPU reads the features
// itself, and on the CPU, the option has no effect, and the run says so.
func TestRowsOfWholeDatasets(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	ds := load(t, "planted?nodes=300&classes=3&features=8&degree=5")
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 2}, Digest: true}, OptimizerOptions: gnb.OptimizerOptions{Batch: 90, Epochs: 2}, LaunchOptions: gnb.LaunchOptions{Workers: 2}, EvaluationOptions: gnb.EvaluationOptions{Eval: "sampled"}}
	for _, c := range []struct {
		features, graph, device, size string
		no                            bool
	}{{"staged", "device", "cuda", "20%", false}, {"staged", "staged", "cuda", "200%", false}, {"device", "device", "cuda", "20%", true}, {"", "", "cpu", "20%", true}} {
		var want, got []float64
		var text string
		var runs [2]*runs.Run
		for i, size := range []string{"", c.size} {
			log := cluster(t, 2, machine{})
			t.Setenv("GNB_CUDA_FEATURES", c.features)
			t.Setenv("GNB_CUDA_GRAPH", c.graph)
			o.GPUCache, o.Device = size, c.device
			var err error
			want = got
			if got, text, runs[i], err = trained(t, ds, gnb.SAGE, o); err != nil {
				t.Fatal(err)
			}
			if c.device == "cuda" && (logged(t, log, "sample_count") > 0) != (c.graph == "device") {
				t.Errorf("%+v: %s", c, devices(t, log))
			}
		}
		if a, b := runs[0].Result.Text["digest"], runs[1].Result.Text["digest"]; !slices.Equal(got, want) || a != b || a == "" {
			t.Errorf("%+v: losses %v, want %v; digest %s, want %s", c, got, want, b, a)
		}
		r := runs[1].Result.Rows
		if (r == nil || r.GPU == 0) != c.no || !c.no && r.Copied != 32*r.Own || strings.Contains(text, "GPUCache has no effect") != c.no {
			t.Errorf("%+v: %v; the run says\n%s", c, r, text)
		}
	}
}

// kept returns the number of rows that the run says to stay on rank 0's GPU.
func kept(t *testing.T, text string) int64 {
	t.Helper()
	m := regexp.MustCompile(`the GPU of rank 0 keeps the ([\d,]+) rows that batches read most`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("the run does not say what stays on the GPU:\n%s", text)
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A program reads the features of a batch whose rows stay on the GPU in part, and a rank whose share of a batch is empty
// takes part.
func TestFeaturesOfFedBatches(t *testing.T) {
	testneed.NotShort(t, "it starts two runs on the interpreter")
	parts := dividedtest.Parts(t, load(t, "planted?nodes=200&classes=3&features=6&degree=5"), divided.Options{})
	var sums [2]float64
	for i, size := range []string{"", "30%"} {
		cluster(t, 2, machine{})
		run, err := gnb.Launch(t.Context(), fedFeatures, 0, gnb.LaunchOptions{Data: parts, Workers: 2, VirtualRanks: 1, Device: "cuda", PlaneOptions: gnb.PlaneOptions{GPUCache: size}, Quiet: true, Resume: gnb.Never})
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = run.Value("sum")
		if r := run.Result.Rows; size != "" && (r == nil || r.GPU == 0) {
			t.Errorf("%v", r)
		}
	}
	if sums[0] != sums[1] || sums[0] == 0 {
		t.Errorf("features add up to %v, and without rows on the GPU to %v", sums[1], sums[0])
	}
}

var fedFeatures = gnb.Program("e2e.fedfeatures", func(w *gnb.Worker, _ int) error {
	sums := make([]float64, 1)
	for range w.Epochs(2) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{3, 2}, Batch: 1}) { // one of two ranks has no seed
			x := b.Features()
			if n := len(b.InputIDs()) * w.Dataset().FeatureDim(); len(x) != n {
				return fmt.Errorf("%d features, want %d", len(x), n)
			}
			for i, y := range x {
				sums[0] += float64(y) * float64(i+1)
			}
		}
	}
	w.AllReduce(sums)
	w.Result("sum", sums[0])
	return nil
})

// A run whose rows stay on GPUs restarts when a GPU is lost, and ends with the losses of a run without a failure.
func TestRowsOnALostGPU(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	parts := dividedtest.Parts(t, load(t, "planted?nodes=200&classes=3&features=6&degree=5"), divided.Options{})
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 2}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 40, Epochs: 3}, LaunchOptions: gnb.LaunchOptions{Workers: 2, Device: "cuda", CheckpointEvery: 1, Restarts: 3, PlaneOptions: gnb.PlaneOptions{GPUCache: "40%", Prefetch: 2}}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}}
	cluster(t, 2, machine{})
	want, _, _, err := trained(t, parts, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	log := cluster(t, 2, machine{Fault: &fakegpu.Fault{Device: 1, Kernel: "adam_f32", After: 4, Status: 719, Lost: true}, Config: fakegpu.Config{Quiet: true}})
	o.RunDir = filepath.Join(t.TempDir(), "run")
	_, _, run, err := trained(t, parts, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	if l := run.Config.Restarts; len(l) == 0 || l[0].Rank != 1 || !strings.Contains(l[0].Reason, "the kernel failed") {
		t.Errorf("restarts %v", l)
	}
	var got []float64
	if err := run.Events(func(e runs.Event) {
		if e.Kind == runs.KindEpoch {
			got = append(got, e.Loss)
		}
	}); err != nil {
		t.Fatal(err)
	}
	same(t, got, want)
	for _, l := range devices(t, log) {
		if !strings.Contains(l, " 0 left behind") {
			t.Error(l)
		}
	}
}
