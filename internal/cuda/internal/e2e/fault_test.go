//go:build cuda && linux && cgo

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/testneed"
)

// small takes about a second on the interpreter.
var small = gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 6, Epochs: 4}, LaunchOptions: gnb.LaunchOptions{Device: "cuda"}}

// A fault of a device ends the run with one readable sentence that names device and rank. A run
// with Device "cuda" never falls back to the CPU.
func TestFaultsEndTheRun(t *testing.T) {
	testneed.NotShort(t, "it starts five runs")
	for name, c := range map[string]struct {
		gpus  int
		m     machine
		words []string
	}{
		"out of memory": {
			1,
			machine{Fault: &fakegpu.Fault{Call: "cuMemAlloc_v2", After: 2, Status: 2}},
			[]string{"device 0 (PTX interpreter), rank 0", "out of memory", "held are", "the limit is"},
		},
		"device lost during the run": {
			2,
			machine{Fault: &fakegpu.Fault{Device: 1, Kernel: "adam_f32", After: 2, Status: 719, Lost: true}},
			[]string{"rank 1", "device 1 (PTX interpreter)", "the kernel failed", "GNB_CUDA_DEBUG=1"},
		},
		"illegal address": {
			1,
			machine{Fault: &fakegpu.Fault{Kernel: "adam_f32", Status: 700, Lost: true}},
			[]string{"rank 0", "illegal address"},
		},
		"no driver": {
			1,
			machine{Config: fakegpu.Config{Missing: "libcuda.so.1: cannot open shared object file"}},
			[]string{"rank 0", "no NVIDIA driver", "libcuda.so.1"},
		},
		"old driver": {
			1,
			machine{Config: fakegpu.Config{Version: 11020}},
			[]string{"rank 0", "driver is too old", "CUDA 11.2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.m.Config.Quiet = true
			log := cluster(t, c.gpus, c.m)
			_, text, err := train(t, load(t, "karate"), small)
			if err == nil {
				t.Fatalf("the run succeeded:\n%s", text)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if n := strings.Count(err.Error(), "\n"); n > 0 {
				t.Errorf("%q has %d further lines", err, n)
			}
			if strings.Contains(text, "on the CPU") {
				t.Errorf("the run fell back to the CPU: %s", text)
			}
			if _, err := os.Stat(log); err == nil { // a device was open, and the failed rank must have closed it
				for _, l := range devices(t, log) {
					if !strings.Contains(l, " 0 left behind") {
						t.Error(l)
					}
				}
			}
		})
	}
}

// With GNB_CUDA_SHARE=1, more workers than GPUs share the GPUs. GraphNB then sets
// NCCL_MULTI_RANK_GPU_ENABLE, unless the environment sets it.
func TestSharing(t *testing.T) {
	ds := load(t, "karate")
	cluster(t, 1, machine{})
	t.Setenv("GNB_CUDA_SHARE", "1")
	t.Setenv("FAKE_NCCL", "shared")
	o := small
	o.Workers = 2
	if _, text, err := train(t, ds, o); err != nil || !strings.Contains(text, "added up by NCCL") {
		t.Errorf("%v\n%s", err, text)
	}
	t.Setenv("NCCL_MULTI_RANK_GPU_ENABLE", "0")
	if _, _, err := train(t, ds, o); err == nil || !strings.Contains(err.Error(), "several ranks are on one device") {
		t.Errorf("%v", err)
	}
}

// A missing or faulty part of the machine ends the run with an error that names it.
func TestNothingToRunOn(t *testing.T) {
	testneed.NotShort(t, "it starts six runs")
	ds := load(t, "karate")
	t.Run("no GPU", func(t *testing.T) {
		cluster(t, 0, machine{})
		_, _, err := train(t, ds, small)
		if err == nil || !strings.Contains(err.Error(), `Device is "cuda" and there is none`) || !strings.Contains(err.Error(), "no NVIDIA driver loaded") {
			t.Errorf("%v", err)
		}
	})
	t.Run("too many workers", func(t *testing.T) {
		cluster(t, 2, machine{})
		o := small
		o.Workers = 3
		_, _, err := train(t, ds, o)
		if err == nil || !strings.Contains(err.Error(), "3 workers on this machine, which has 2 GPUs: take 2 workers") {
			t.Errorf("%v", err)
		}
	})
	t.Run("no NCCL", func(t *testing.T) {
		cluster(t, 2, machine{})
		t.Setenv("GNB_LIBNCCL", "/nowhere/libnccl.so.2")
		_, _, err := train(t, ds, small)
		if err == nil || !strings.Contains(err.Error(), "the file named by GNB_LIBNCCL is not NCCL") {
			t.Errorf("%v", err)
		}
	})
	t.Run("NCCL refuses", func(t *testing.T) {
		cluster(t, 2, machine{})
		t.Setenv("FAKE_NCCL", "init")
		_, _, err := train(t, ds, small)
		if err == nil || !strings.Contains(err.Error(), "joining the group of 2 ranks by NCCL") || !strings.Contains(err.Error(), "no socket interface found") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a rank is lost", func(t *testing.T) {
		cluster(t, 2, machine{})
		t.Setenv("FAKE_NCCL", "async:1:1")
		_, _, err := train(t, ds, small)
		if err == nil || !strings.Contains(err.Error(), "communication of 2 ranks by NCCL") || !strings.Contains(err.Error(), "rank") {
			t.Errorf("%v", err)
		}
	})
	t.Run("no cuBLAS", func(t *testing.T) {
		cluster(t, 1, machine{})
		t.Setenv("GNB_LIBCUBLAS", "/nowhere/libcublas.so.12")
		_, _, err := train(t, ds, small)
		if err == nil || !strings.Contains(err.Error(), "the file named by GNB_LIBCUBLAS is not cuBLAS") {
			t.Errorf("%v", err)
		}
	})
}

// With Device "auto", a machine without a usable GPU is no error: the run prints one line with the
// reason why it uses the CPU.
func TestAutoSaysWhy(t *testing.T) {
	testneed.NotShort(t, "it starts four runs")
	ds := load(t, "karate")
	t.Setenv("GNB_RUNS", t.TempDir())
	o := small
	o.Device = "cpu"
	want, _, err := train(t, ds, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Device = "auto"
	for name, c := range map[string]struct {
		gpus int
		m    machine
		says string
	}{
		"no GPU":     {0, machine{}, "1 worker on the CPU: cuda: no GPU"},
		"old driver": {2, machine{Config: fakegpu.Config{Version: 11020}}, "on the CPU: cuda: the NVIDIA driver is too old"},
		"no driver":  {1, machine{Config: fakegpu.Config{Missing: "libcuda.so.1: not there"}}, "on the CPU: cuda: no NVIDIA driver: libcuda.so.1: not there"},
		"one of two": {2, machine{Fault: &fakegpu.Fault{Device: 1, Call: "cuDevicePrimaryCtxRetain", Status: 2}}, "on the CPU: cuda: device 1 (PTX interpreter), rank 1: taking the device: out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster(t, c.gpus, c.m)
			var losses []float64
			run, err := gnb.Train(t.Context(), ds, gnb.SAGE, with(o, func(e runs.Event) {
				if e.Kind == "epoch" {
					losses = append(losses, e.Loss)
				}
				o.Quiet = o.Quiet || strings.Contains(e.Text, c.says)
			}))
			if err != nil {
				t.Fatal(err)
			}
			if !o.Quiet {
				t.Errorf("the run does not say %q", c.says)
			}
			o.Quiet = false
			if run.Config.Device != "cpu" {
				t.Errorf("the run's record has the device %s", run.Config.Device)
			}
			same(t, losses, want)
		})
	}
}

func with(o gnb.TrainOptions, f func(runs.Event)) gnb.TrainOptions {
	o.Quiet, o.Resume, o.Events = true, gnb.Never, f
	return o
}

// A cell's process is built with the cuda tag and launches runs on GPUs, but it neither maps a CUDA
// library nor opens a device file.
func TestCellTouchesNoDriver(t *testing.T) {
	cluster(t, 1, machine{})
	if _, _, err := train(t, load(t, "karate"), small); err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for _, lib := range []string{"libcuda", "libcublas", "libnccl", "/dev/nvidia"} {
		if strings.Contains(string(maps), lib) {
			t.Errorf("the launching process has %s", lib)
		}
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); err == nil && strings.HasPrefix(to, "/dev/nvidia") {
			t.Errorf("the launching process has %s open", to)
		}
	}
}

// An interrupted run on a device resumes from its checkpoint, which holds the weights and the
// optimiser's state of the device.
func TestResume(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	ds := load(t, "karate")
	cluster(t, 1, machine{})
	whole, _, err := train(t, ds, with(small, nil))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	o := small
	o.RunDir, o.Quiet, o.CheckpointEvery = dir, true, 1
	text := os.Getenv(machineEnv)
	cluster(t, 1, machine{Fault: &fakegpu.Fault{Kernel: "adam_f32", After: 2, Status: 719, Lost: true}, Config: fakegpu.Config{Quiet: true}})
	if _, err := gnb.Train(t.Context(), ds, gnb.SAGE, o); err == nil {
		t.Fatal("the run succeeded despite the fault")
	}
	t.Setenv(machineEnv, text)
	o.RunDir, o.Resume = "", dir
	var losses []float64
	o.Events = func(e runs.Event) {
		if e.Kind == "epoch" {
			losses = append(losses, e.Loss)
		}
	}
	if _, err := gnb.Train(t.Context(), ds, gnb.SAGE, o); err != nil {
		t.Fatal(err)
	}
	// The resumed run repeats the failed step, so its epochs have the losses of the uninterrupted
	// run.
	same(t, losses, whole[len(whole)-len(losses):])
	if len(losses) == len(whole) {
		t.Errorf("the run started from the first epoch: %v", losses)
	}
}

// Sampling on the device has the CPU's digest, for every fanout.
func TestDigests(t *testing.T) {
	testneed.NotShort(t, "it samples with several workers on the interpreter")
	ds := load(t, "planted?nodes=300&classes=3&features=4&degree=6")
	for _, fanouts := range [][]int{{3, 2}, {-1, 2}} {
		o := gnb.SampleOptions{Fanouts: fanouts, Batch: 40, Steps: 2, Workers: 2, Quiet: true, Device: "cpu"}
		cluster(t, 2, machine{})
		want, err := gnb.Sample(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		o.Device = "cuda"
		got, err := gnb.Sample(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest != want.Digest || got.UniqueEdges != want.UniqueEdges || got.Edges != want.Edges {
			t.Errorf("fanouts %v: digest %s, %d edges; on the CPU %s, %d", fanouts, got.Digest, got.Edges, want.Digest, want.Edges)
		}
	}
}

// The device samples by layer-neighbour sampling what the CPU does; with Poisson the CPU samples for it, which
// the run says. The losses are the CPU's.
func TestLabor(t *testing.T) {
	testneed.NotShort(t, "it trains on the interpreter")
	ds := load(t, "planted?nodes=300&classes=3&features=4&degree=6")
	for sampler, onCPU := range map[string]bool{"labor": false, "labor-poisson": true} {
		o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 2}, Sampler: sampler, BatchDependency: 2, LayerDependency: true}, OptimizerOptions: gnb.OptimizerOptions{Batch: 40, Epochs: 1}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, LaunchOptions: gnb.LaunchOptions{Device: "cpu"}}
		cluster(t, 1, machine{})
		want, _, err := train(t, ds, o)
		if err != nil {
			t.Fatal(err)
		}
		o.Device = "cuda"
		got, text, err := train(t, ds, o)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, want)
		if strings.Contains(text, "batches are sampled on the CPU: layer-neighbour sampling by Poisson has no GPU kernel") != onCPU {
			t.Errorf("%s: the CPU samples (%v), and the run says %s", sampler, onCPU, text)
		}
	}
	o := gnb.SampleOptions{Fanouts: []int{3, 2}, Sampler: "labor", Batch: 40, Steps: 2, Workers: 1, Quiet: true, Device: "cpu"}
	want, err := gnb.Sample(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Device = "cuda"
	if got, err := gnb.Sample(t.Context(), ds, o); err != nil || got.Digest != want.Digest {
		t.Errorf("the digest is %v (%v), on the CPU %s", got, err, want.Digest)
	}
}

// The places of data and the limits of memory can be set; an invalid setting is an error.
func TestSettings(t *testing.T) {
	testneed.NotShort(t, "it trains six times on the interpreter")
	ds := load(t, "karate")
	t.Setenv("GNB_RUNS", t.TempDir())
	o := small
	o.Device = "cpu"
	want, _, err := train(t, ds, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ variable, value, says, fails string }{
		{"GNB_CUDA_GRAPH", "pinned", "the graph (904 B) in pinned host memory", ""},
		{"GNB_CUDA_FEATURES", "pinned", "features of 34 nodes (4.5 KiB) in pinned host memory", ""},
		{"GNB_CUDA_FEATURES", "cached", "rows used most", ""},
		{"GNB_CUDA_MEMORY", "64MB", "of 64.0 MiB of device memory", ""},
		{"GNB_CUDA_MEMORY", "1000KB", "of 1.0 MiB of device memory", ""},
		{"GNB_CUDA_MEMORY", "much", "", "GNB_CUDA_MEMORY is \"much\""},
		{"GNB_CUDA_GRAPH", "cached", "", "GNB_CUDA_GRAPH is \"cached\""},
	} {
		t.Run(c.variable+" "+c.value, func(t *testing.T) {
			cluster(t, 1, machine{})
			t.Setenv(c.variable, c.value)
			got, text, err := train(t, ds, small)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, want)
			if !strings.Contains(text, c.says) {
				t.Errorf("the run does not say %q:\n%s", c.says, text)
			}
		})
	}
}
