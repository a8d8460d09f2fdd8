package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// readsArgs are those of reads: Within evaluates in the loop, by sampled batches, and Leaves leaves each of two epochs early.
type readsArgs struct{ Within, Cooperative, Leaves bool }

// reads trains for an epoch, and writes which rows the batches of each rank read.
var reads = gnb.Program("test.serve.reads", func(w *gnb.Worker, a readsArgs) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2})
	opt := w.Adam(net, 0.02)
	var trace [][]int32
	epochs := 1
	if a.Leaves {
		epochs = 2
	}
	for range w.Epochs(epochs) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{5, 4}, Batch: 250, Cooperative: a.Cooperative}) {
			ids := slices.Clone(b.InputIDs())
			slices.Sort(ids)
			trace = append(trace, ids)
			w.Step(b.Loss(net.Forward(b)), opt)
			if a.Within && b.Step == 1 && b.EndsStep {
				w.Evaluate(net, gnb.Sampled([]int{3, 3}, 0, 1), "val")
			}
			if a.Leaves && b.Step == 1 {
				break
			}
		}
	}
	text, err := json.Marshal(trace)
	if err != nil {
		return err
	}
	return os.WriteFile(tracePath(w.RunDir(), w.Rank()), text, 0o600)
})

func tracePath(dir string, rank int) string {
	return filepath.Join(dir, fmt.Sprintf("trace-%d.json", rank))
}

// sentRows returns the bytes of rows, of features and labels, that a server has sent.
func sentRows(t *testing.T, s *servetest.Server) (bytes int64) {
	t.Helper()
	r := httptest.NewRecorder()
	s.Serving.Metrics().ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range strings.Split(r.Body.String(), "\n") {
		if rest, ok := strings.CutPrefix(line, `gnb_serve_sent_bytes_total{method="Rows"} `); ok {
			var x float64
			if _, err := fmt.Sscan(rest, &x); err != nil {
				t.Fatal(err)
			}
			return int64(x)
		}
	}
	t.Fatalf("the server's metrics have no bytes of rows:\n%s", r.Body)
	return 0
}

// The workers of a machine have one window where servers or a disk have the rows: each distinct row of the window is asked
// for once, by the servers' own count, or read once, in the run's own trace. The weights are those of any number of workers,
// also if a sampled evaluation is within the loop.
func TestOneWindowForAMachine(t *testing.T) {
	t.Setenv(envknob.Home.Name, t.TempDir())
	const features = 12
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 1500, Features: features, Classes: 4, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	stored := filepath.Join(t.TempDir(), "stored")
	if err := dataset.Write(stored, ds); err != nil {
		t.Fatal(err)
	}
	parts := dividedtest.Parts(t, ds, divided.Options{})
	for _, c := range []struct {
		name     string
		topology string // at servers; "" on disk
		workers  []int
	}{
		{"disk", "", []int{1, 2, 4}},
		{"servers", "?", []int{1, 2, 4}},
		{"servers with a copied topology", "?copy=topology", []int{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var weights []byte
			for _, workers := range c.workers {
				if workers == 1 || strings.Contains(c.topology, "copy") {
					testneed.Raced(t, "another number of workers")
				}
				o := gnb.LaunchOptions{Workers: workers, VirtualRanks: 4 / workers, Threads: 1, Seed: 3, PlaneOptions: gnb.PlaneOptions{Prefetch: 3}, Quiet: true, Resume: gnb.Never, Device: "cpu", RunDir: filepath.Join(t.TempDir(), "run")}
				var s *servetest.Server
				if c.topology == "" {
					o.Data, o.Features, o.Cache = load(t, stored), "disk", "0"
				} else {
					s = servetest.Start(t, parts, serve.Options{})
					o.Data = load(t, "grpc://"+s.Addr+strings.TrimSuffix(c.topology, "?"))
				}
				run, err := gnb.Launch(t.Context(), reads, readsArgs{}, o)
				if err != nil {
					t.Fatal(err)
				}
				read, alone, most, fewest := rowsOfTraces(t, run.Dir, workers)
				got := *run.Result.Rows
				asked := got.Remote + got.Disk
				if s != nil {
					if sent := sentRows(t, s); sent != 4*features*asked+4*int64(ds.Nodes()) {
						t.Errorf("%d workers: the server has sent %d bytes of features and labels, for %d rows and %d labels", workers, sent, asked, ds.Nodes())
					}
				}
				p, err := gnb.Plan(t.Context(), o.Data, gnb.SAGE, gnb.TrainOptions{
					SamplerOptions:    gnb.SamplerOptions{Fanouts: []int{5, 4}},
					OptimizerOptions:  gnb.OptimizerOptions{Batch: 250, Epochs: 1},
					ModelOptions:      gnb.ModelOptions{Hidden: 8, Dropout: 0.5},
					EvaluationOptions: gnb.EvaluationOptions{Eval: "none"},
					LaunchOptions: gnb.LaunchOptions{
						Quiet:        true,
						Device:       "cpu",
						Workers:      workers,
						VirtualRanks: o.VirtualRanks,
						Threads:      1,
						Seed:         o.Seed,
						PlaneOptions: gnb.PlaneOptions{Prefetch: o.Prefetch, Features: o.Features, Cache: o.Cache},
					},
				})
				if c.topology == "?" {
					if err == nil || !strings.Contains(err.Error(), "copy=topology") {
						t.Errorf("a plan without edges: %v", err)
					}
				} else if err != nil {
					t.Fatal(err)
				} else {
					predicted := int64(0)
					for _, s := range p.Sources {
						if s.Name == "disk" || s.Name == "remote" {
							predicted += s.Bytes
						}
					}
					predicted = predicted * int64(p.Steps*workers) / (4 * features)
					// How far workers and their samplers are apart changes what is still in the window. At servers rows are kept, and
					// the steps that a plan tries are not the first ones.
					if s != nil && predicted > fewest || s == nil && (float64(predicted) < 0.95*float64(fewest) || float64(predicted) > 1.05*float64(most) || workers > 1 && predicted > alone) {
						t.Errorf("%d workers ask for %d rows, and the plan says %d; once each are %d, and with a window each at least %d", workers, asked, predicted, fewest, alone)
					}
				}
				if asked < fewest || asked > most || s != nil && asked != fewest || got.Window+asked != read {
					t.Errorf("%d workers: the rows are %+v; once each are %d, once in each batch of all workers %d, and %d are read", workers, got, fewest, most, read)
				}
				if workers == 4 && most >= alone {
					t.Errorf("4 workers ask for at most %d rows together and at least %d alone, which shows nothing", most, alone)
				}
				t.Logf("%d workers: %d rows asked for, of %d read; with a window each at least %d", workers, asked, read, alone)
				b, err := os.ReadFile(filepath.Join(run.Dir, "model.safetensors"))
				if err != nil {
					t.Fatal(err)
				}
				if weights == nil {
					weights = b
				}
				if !bytes.Equal(b, weights) {
					t.Errorf("%d workers: the weights differ", workers)
				}
				if workers != 2 {
					continue
				}
				o.RunDir = filepath.Join(t.TempDir(), "run")
				if run, err = gnb.Launch(t.Context(), reads, readsArgs{Within: true}, o); err != nil {
					t.Fatal(err)
				}
				if b, err := os.ReadFile(filepath.Join(run.Dir, "model.safetensors")); err != nil || !bytes.Equal(b, weights) {
					t.Errorf("with a sampled evaluation in the loop the weights differ, or %v", err)
				}
			}
		})
	}
}

// rowsOfTraces returns the rows that the batches of a run's workers read; those that they ask for at least with a window
// each; and those that they ask for together if no batch has rows of the one before, and if all have.
func rowsOfTraces(t *testing.T, dir string, workers int) (read, alone, most, fewest int64) {
	t.Helper()
	var traces []hotness.Trace
	for r := range workers {
		text, err := os.ReadFile(tracePath(dir, r))
		if err != nil {
			t.Fatal(err)
		}
		var trace hotness.Trace
		if err := json.Unmarshal(text, &trace); err != nil {
			t.Fatal(err)
		}
		traces = append(traces, trace)
		read += trace.Rows()
		alone += trace.Windowed(len(trace), nil)
	}
	together := hotness.Merge(traces...)
	return read, alone, together.Windowed(0, nil), together.Windowed(len(together), nil)
}

// The workers of a cooperative batch, which read rows of the farthest hop in common, have one window too: the weights of a
// run with all features in memory, fewer rows than with a window each, and loops that they leave together.
func TestOneWindowOfCooperativeBatches(t *testing.T) {
	testneed.Raced(t, "it starts servers and trains several times")
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 1500, Features: 12, Classes: 4, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	stored := filepath.Join(t.TempDir(), "stored")
	if err := dataset.Write(stored, ds); err != nil {
		t.Fatal(err)
	}
	const workers = 4
	parts := dividedtest.Parts(t, ds, divided.Options{})
	train := func(a readsArgs, data *dataset.Dataset, o gnb.LaunchOptions) (run *runs.Run, weights []byte) {
		o.Workers, o.VirtualRanks, o.Threads, o.Seed, o.Quiet, o.Resume, o.Device = workers, 1, 1, 3, true, gnb.Never, "cpu"
		o.RunDir, o.Data = filepath.Join(t.TempDir(), "run"), data
		run, err := gnb.Launch(t.Context(), reads, a, o)
		if err != nil {
			t.Fatal(err)
		}
		if weights, err = os.ReadFile(filepath.Join(run.Dir, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
		return run, weights
	}
	for from, memory := range map[string]*dataset.Dataset{"disk": load(t, stored), "servers": parts} {
		t.Run(from, func(t *testing.T) {
			data, o := memory, gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Features: "disk", Cache: "0", Prefetch: 3}}
			if from == "servers" {
				data, o = load(t, "grpc://"+servetest.Start(t, parts, serve.Options{}).Addr+"?copy=topology"), gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Prefetch: 3}}
			}
			for _, a := range []readsArgs{{Cooperative: true}, {Cooperative: true, Within: true, Leaves: true}} {
				_, want := train(a, memory, gnb.LaunchOptions{})
				run, weights := train(a, data, o)
				if !bytes.Equal(weights, want) {
					t.Errorf("%+v: the weights differ from those with features in memory", a)
				}
				if a.Leaves {
					continue
				}
				read, alone, most, fewest := rowsOfTraces(t, run.Dir, workers)
				got := *run.Result.Rows
				if asked := got.Remote + got.Disk; asked < fewest || asked > most || most >= alone || got.Window+asked != read {
					t.Errorf("%d rows asked for, %d in the window; once each are %d, once in each batch of all workers %d, with a window each at least %d, and %d are read", asked, got.Window, fewest, most, alone, read)
				}
			}
		})
	}
}
