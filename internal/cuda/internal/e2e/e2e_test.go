//go:build cuda && linux && cgo

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakelibs"
	"github.com/graphnb/graphnb/internal/testneed"
)

// machineEnv holds the fakegpu.Config of a worker's machine as JSON.
const machineEnv = "GNB_TEST_MACHINE"

// machine is a worker's machine, and a fault to inject.
type machine struct {
	Config fakegpu.Config
	Fault  *fakegpu.Fault
	Races  bool // enables race detection, which is slower
}

// TestMain also serves workers and ranks of a launcher, which run this binary again. It installs
// their machine before flag.Parse, in which a worker starts.
func TestMain(m *testing.M) {
	if text := os.Getenv(machineEnv); text != "" && (os.Getenv("GNB_WORKER") != "" || os.Getenv(rankEnv) != "") {
		var c machine
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		gpu := fakegpu.Install(c.Config)
		if c.Fault != nil {
			gpu.Inject(*c.Fault)
		}
	}
	flag.Parse()
	if text := os.Getenv(rankEnv); text != "" {
		if err := trainRank([]byte(text)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Runs go into a folder of their own, which is removed at the end.
	dir, err := os.MkdirTemp("", "gnb-e2e-runs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Setenv("GNB_RUNS", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// cluster makes a machine with simulated GPUs and the test libraries for the workers of this test.
// GraphNB counts the GPUs in the files that cluster writes in place of /proc/driver/nvidia. cluster
// returns the path of the devices' log.
func cluster(t *testing.T, gpus int, c machine) (log string) {
	t.Helper()
	dir := t.TempDir()
	for i := range gpus {
		sub := filepath.Join(dir, "gpus", fmt.Sprintf("0000:%02x:00.0", i+1))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, "information"), []byte("Model: Interpreter\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.Config.Devices = gpus
	c.Config.NoRaces = !c.Races
	c.Config.Log = filepath.Join(dir, "log")
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(machineEnv, string(text))
	t.Setenv("GNB_NVIDIA_PROC", dir)
	t.Setenv("GNB_LIBCUBLAS", fakelibs.Build(t, "cublas"))
	t.Setenv("GNB_LIBNCCL", fakelibs.Build(t, "nccl"))
	t.Setenv("GNB_RUNS", filepath.Join(dir, "runs"))
	return c.Config.Log
}

// devices returns the lines of the log: one for each device that was closed.
func devices(t *testing.T, log string) []string {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// train runs and returns each epoch's mean loss.
func train(t *testing.T, ds *gnb.Dataset, o gnb.TrainOptions) (losses []float64, text string, err error) {
	t.Helper()
	losses, text, _, err = trained(t, ds, gnb.SAGE, o)
	return losses, text, err
}

// trained is train for any model, and returns the run too.
func trained(t *testing.T, ds *gnb.Dataset, model gnb.AnyModel, o gnb.TrainOptions) (losses []float64, text string, run *runs.Run, err error) {
	t.Helper()
	o.Quiet, o.Resume = true, gnb.Never
	o.Events = func(e runs.Event) {
		if e.Kind == "epoch" {
			losses = append(losses, e.Loss)
		}
		if e.Text != "" {
			text += e.Text + "\n"
		}
	}
	run, err = gnb.Train(t.Context(), ds, model, o)
	return losses, text, run, err
}

func load(t *testing.T, spec string) *gnb.Dataset {
	t.Helper()
	ds, err := gnb.Load(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// same compares losses with the CPU's. The device sums gradients in another order, so the tolerance
// grows with the epochs.
func same(t *testing.T, got, want []float64) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d epochs, want %d", len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= 2e-5*float64(i+1)*(1+want[i])) {
			t.Fatalf("epoch %d: loss %v, on the CPU %v", i, got[i], want[i])
		}
	}
}

// weighted returns the dataset with weights of its edges.
func weighted(ds *gnb.Dataset) *gnb.Dataset {
	weights := make([]float32, ds.Graph.NumEdges())
	for e := range weights {
		weights[e] = float32(1 + e%3)
	}
	with := *ds
	with.Graph = ds.Graph.WithEdgeWeights(weights)
	return &with
}

func TestTrainingHasTheCPUsLosses(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		o    gnb.TrainOptions
		gpus []int
	}{
		"karate": {"karate", gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 6, Epochs: 4}}, []int{1, 2, 4}},
		"cora-size": {
			"planted?nodes=1400&classes=7&features=32&degree=4",
			gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 2}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 48, Epochs: 1}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}},
			[]int{1, 2, 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "karate" {
				testneed.NotShort(t, "it trains on four interpreters")
				if !testneed.Soak.Here() {
					c.gpus = c.gpus[2:] // karate and TestPlaces train on one and two
				}
			} else if testing.Short() {
				c.gpus = c.gpus[:1]
			}
			ds := load(t, c.data)
			t.Setenv("GNB_RUNS", t.TempDir())
			c.o.Device = "cpu"
			want, _, err := train(t, ds, c.o)
			if err != nil {
				t.Fatal(err)
			}
			c.o.Device = "cuda"
			for _, n := range c.gpus {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					log := cluster(t, n, machine{})
					got, text, err := train(t, ds, c.o)
					if err != nil {
						t.Fatal(err)
					}
					same(t, got, want)
					lines := devices(t, log)
					if len(lines) != n {
						t.Errorf("%d of %d devices were closed", len(lines), n)
					}
					for _, l := range lines {
						if !strings.Contains(l, " 0 left behind") || !strings.Contains(l, "adam_f32=") {
							t.Errorf("a device ended with %s", l)
						}
					}
					for _, want := range []string{"on PTX interpreter", "products by cuBLAS 12.4 in f32", "the graph (", "on the device; features of"} {
						if !strings.Contains(text, want) {
							t.Errorf("the run does not say %q:\n%s", want, text)
						}
					}
				})
			}
		})
	}
}
