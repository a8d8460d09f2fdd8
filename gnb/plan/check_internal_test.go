package plan

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
)

func job(t *testing.T) Job {
	t.Helper()
	ds, err := datasets.Load("planted?nodes=3000&features=16&classes=4&seed=5")
	if err != nil {
		t.Fatal(err)
	}
	return Job{
		Data: ds, Model: "sage", Build: func() nn.Model {
			return nn.NewSAGEModel(nn.ModelConfig{In: 16, Hidden: 32, Out: 4, Layers: 2, Dropout: 0.5})
		},
		Fanouts: []int{6, 4}, Batch: 256, Epochs: 3, Eval: "full", EvalEvery: 1, Workers: 1, Virtual: 1, Threads: 1, Precision: "float32",
	}
}

// inTwo divides a dataset into two parts, of nodes with even and odd numbers.
func inTwo(t *testing.T, ds *dataset.Dataset) *dataset.Dataset {
	t.Helper()
	return dividedtest.PartsBy(t, ds, 2, func(v int32) int { return int(v % 2) }, divided.Options{})
}

// The rough prediction is never below the careful one. By the careful one, a run that does not fit
// gets an error with its sizes, and a run that nearly fits gets a warning.
func TestCheck(t *testing.T) {
	for name, change := range map[string]func(j *Job){
		"one worker":     func(*Job) {},
		"workers":        func(j *Job) { j.Workers = 3 },
		"virtual ranks":  func(j *Job) { j.Workers, j.Virtual = 2, 2 },
		"cooperative":    func(j *Job) { j.Workers, j.Cooperative = 2, true },
		"sampled":        func(j *Job) { j.Eval = "sampled" },
		"no evaluation":  func(j *Job) { j.Eval = "none" },
		"all neighbours": func(j *Job) { j.Fanouts = []int{-1, -1} },
		"machines":       func(j *Job) { j.Workers, j.Here, j.First = 6, 2, 4 },
		"parts": func(j *Job) {
			j.Data, j.Workers = inTwo(t, j.Data), 2
		},
		"parts of all machines": func(j *Job) {
			j.Data, j.Workers, j.Here, j.First, j.Cache, j.Divided = inTwo(t, j.Data), 2, 1, 1, "20%", true
		},
		"parts of this machine": func(j *Job) {
			at := t.TempDir() + "/some"
			copyParts(t, inTwo(t, j.Data).Dir(), at, []int{1})
			ds, err := dataset.Open(at)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = ds.Close() })
			j.Data, j.Workers, j.Here, j.First = ds, 2, 1, 1
		},
		"gcn": func(j *Job) {
			j.Build = func() nn.Model { return nn.NewGCNModel(nn.ModelConfig{In: 16, Hidden: 32, Out: 4, Layers: 2}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(t)
			change(&j)
			j.mine = true
			steps := 1
			if j.Data.Meta.Parts != nil {
				steps = j.here()
			}
			l, err := j.loads(t.Context(), steps, 0)
			if err != nil {
				t.Fatal(err)
			}
			careful := j.memory(l)
			need := int64(j.here())*careful.PerWorker() + sumOf(careful.Shared) - launcherBytes
			if j.Data.Dir() == "" {
				need -= j.Data.Bytes() // this process already has one of the two copies of the dataset
			}
			if rough, ok := j.rough(t.Context()); ok && rough < need {
				t.Errorf("the rough prediction is %d bytes, but the careful one is %d", rough, need)
			}
			for free, want := range map[int64]string{need / 2: "error", need: "warning", 4 * need: ""} {
				warning, err := j.fits(t.Context(), machine.Memory{Free: free, Total: free})
				got := ""
				switch {
				case err != nil:
					got, warning = "error", err.Error()
				case warning != "":
					got = "warning"
				}
				if got != want {
					t.Errorf("with %d bytes free and %d needed: %q, want %q", free, need, warning, want)
				}
				if got != "" && (!strings.Contains(warning, "for each of") || !strings.Contains(warning, "are free") || !strings.Contains(warning, "take fewer Workers")) {
					t.Errorf("%q lacks the sizes or the advice", warning)
				}
			}
		})
	}
}

// A job passes the check if it cannot be predicted, or if its context has ended.
func TestCheckPasses(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, change := range map[string]func(j *Job) context.Context{
		"a GPU":            func(j *Job) context.Context { j.GPU = true; return t.Context() },
		"damaged parts":    func(j *Job) context.Context { j.Data.Meta.Parts = &dataset.Parts{Count: 2}; return t.Context() },
		"an ended context": func(*Job) context.Context { return ended },
	} {
		j := job(t)
		if warning, err := j.fits(change(&j), machine.Memory{Free: 1000, Total: 1000}); warning != "" || err != nil {
			t.Errorf("%s: %q, %v", name, warning, err)
		}
	}
}

// The memory of a program's own model is unknown, but that of a copy of its dataset is known.
func TestCheckOfAProgram(t *testing.T) {
	j := job(t)
	j.Build, j.Model = nil, ""
	if _, err := j.fits(t.Context(), machine.Memory{Free: 1000, Total: 1000}); err == nil || !strings.Contains(err.Error(), "write the dataset to a directory") {
		t.Errorf("error %v", err)
	}
	if warning, err := j.fits(t.Context(), machine.Memory{Free: 1 << 40, Total: 1 << 40}); warning != "" || err != nil {
		t.Errorf("%q, %v", warning, err)
	}
}

// A job that cannot be planned passes the check; planning it gives an error.
func TestMisuse(t *testing.T) {
	none := machine.Memory{Free: 1, Total: 1}
	for want, change := range map[string]func(j *Job){
		"has no Graph":        func(j *Job) { j.Data.Graph = nil },
		"a model and fanouts": func(j *Job) { j.Fanouts = nil },
		"no such split":       func(j *Job) { j.Data.Splits = nil },
		"Hidden is 0": func(j *Job) {
			j.Build = func() nn.Model { return nn.NewSAGEModel(nn.ModelConfig{In: 16, Out: 4, Layers: 2}) }
		},
	} {
		j := job(t)
		change(&j)
		if _, err := Make(t.Context(), j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
		if warning, err := j.fits(t.Context(), none); warning != "" || err != nil {
			t.Errorf("%s: %q, %v", want, warning, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Make(ctx, job(t)); err == nil {
		t.Error("a cancelled plan gave no error")
	}
}

// The plan's hops have the sizes that the sampler gives for the run's first steps.
func TestSharesAreTheRuns(t *testing.T) {
	j := job(t)
	l, err := j.loads(t.Context(), 2, planTime)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sample.New(j.Data.Graph, sample.Config{Picker: sample.Fanouts(j.Fanouts), Seed: j.Seed})
	if err != nil {
		t.Fatal(err)
	}
	ids := sample.EpochOrder(j.Seed, 0, j.Data.Splits["train"])
	edges := 0
	for step := range 2 {
		b, err := s.Sample(0, step, sample.Seeds{IDs: ids[step*256 : (step+1)*256]})
		if err != nil {
			t.Fatal(err)
		}
		edges += b.Edges()
	}
	if got := l.edges * 2; got != float64(edges) {
		t.Errorf("two steps have %v edges in the plan, %d in the sampler", got, edges)
	}
	j.Workers, j.Cooperative = 2, true // the same batches, each of both workers
	if l, err = j.loads(t.Context(), 2, planTime); err != nil || l.edges*4 != float64(edges) || l.hops[0].Destinations != 128 {
		t.Errorf("a worker has %v edges of two cooperative batches of %d, and hops %+v (%v)", l.edges*2, edges, l.hops, err)
	}
}

// For a dataset in parts, the plan counts rows of other workers' parts as remote and their cache as
// memory.
func TestParts(t *testing.T) {
	j := job(t)
	j.Data, j.Workers, j.Eval, j.Cache = inTwo(t, j.Data), 2, "none", "0.5"
	p, err := Make(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	bytes := map[string]int64{}
	for _, s := range p.Sources {
		bytes[s.Name] = s.Bytes
	}
	if share := float64(bytes["remote"]) / float64(bytes["remote"]+bytes["host"]); share < 0.3 || share > 0.7 {
		t.Errorf("the remote share of the rows is %.2f, want about half: %v", share, bytes)
	}
	found := false
	for _, i := range p.Memory.Shared {
		found = found || i.Name == "cache of other workers' rows" && i.Bytes == 2*750*4*16
	}
	if !found {
		t.Errorf("a cache of half of the 1500 rows of each worker is missing in %+v", p.Memory.Shared)
	}
}

// Where the host gathers batches for GPUs, the plan counts the rows that stay there: those of other workers first.
func TestRowsOnGPUs(t *testing.T) {
	j := job(t)
	j.Data, j.Workers, j.Eval, j.GPU = inTwo(t, j.Data), 2, "none", true
	sources := map[string]map[string]int64{}
	for _, size := range []string{"", "20%", "9600B", "200%"} {
		j.GPUCache = size
		p, err := Make(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		bytes, all := map[string]int64{}, int64(0)
		for _, s := range p.Sources {
			bytes[s.Name] = s.Bytes
			all += s.Bytes
		}
		bytes["all"] = all
		sources[size] = bytes
	}
	none, some, most := sources[""], sources["20%"], sources["200%"]
	if none["GPU"] != 0 || none["host"] == 0 || none["remote"] == 0 || some["all"] != none["all"] || most["all"] != none["all"] {
		t.Errorf("%v", sources)
	}
	if some["GPU"] < none["all"]/20 || some["remote"] >= none["remote"] || most["GPU"] <= some["GPU"] || most["remote"] >= some["remote"] || sources["9600B"]["GPU"] >= some["GPU"] {
		t.Errorf("%v", sources)
	}
}

// Two choices give the same weights if and only if their products of workers and virtual ranks are
// equal.
func TestChoices(t *testing.T) {
	j := job(t)
	j.Workers, j.Here, j.Virtual = 2, 2, 1
	j.Trier = &stopwatch{}
	p, err := Make(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	same, one := 0, false
	for i, c := range p.Choices {
		if c.Same {
			same++
			if c.Workers*c.Virtual != 2 {
				t.Errorf("%+v gives other weights", c)
			}
			one = one || c.Workers == 1
		}
		if i > 0 && c.EpochSeconds < p.Choices[i-1].EpochSeconds {
			t.Errorf("choice %d is faster than the previous one", i)
		}
		if c.StepSeconds <= 0 || c.TotalBytes <= c.WorkerBytes || c.Machines != 0 {
			t.Errorf("%+v", c)
		}
	}
	if same < 2 || !one {
		t.Errorf("one worker with two virtual ranks is missing among %+v", p.Choices)
	}
	for _, want := range []string{"plan of sage on planted", "2 workers of 1 thread", "activations and their gradients", "hop of a share", "rows from host", "ways to run", "the same"} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("%q is missing in\n%s", want, p)
		}
	}
	if raw, err := json.Marshal(p); err != nil || !strings.Contains(string(raw), `"total_bytes"`) {
		t.Errorf("%s, %v", raw, err)
	}
}
