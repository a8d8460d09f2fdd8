package gnb_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/plan"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/testneed"
)

func ExamplePlan() {
	defer inScratch()()
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=3000"))

	p := gnb.Must(gnb.Plan(ctx, ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 5}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}))
	fmt.Printf("%d steps of %d seeds an epoch; the run %s\n", p.Steps, p.Batch, p.Fit)
	fmt.Println(p.TotalBytes > 2*p.WorkerBytes, p.StepSeconds > 0)
	// Output:
	// 2 steps of 1024 seeds an epoch; the run fits
	// true true
}

// Workers use about as much anonymous and shared memory as the plan predicts.
func TestPlannedMemory(t *testing.T) {
	testneed.Raced(t, "three runs of a second")
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		t.Skipf("this system does not say how much memory a process has: %v", err)
	}
	if testneed.UnderRace() {
		t.Skip("the race detector has memory of its own")
	}
	ds := gnb.Must(gnb.Load(t.Context(), "planted?nodes=25000&features=64"))
	defer ds.Close()
	for name, o := range map[string]gnb.TrainOptions{
		"one worker": {ModelOptions: gnb.ModelOptions{Hidden: 128, Dropout: 0.5}, OptimizerOptions: gnb.OptimizerOptions{Batch: 2048}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}}, "two workers": {LaunchOptions: gnb.LaunchOptions{Workers: 2}, ModelOptions: gnb.ModelOptions{Hidden: 64, Dropout: 0.5, Residual: true, Norm: "layer"}},
		"two workers, learned embeddings": {LaunchOptions: gnb.LaunchOptions{Workers: 2}, ModelOptions: gnb.ModelOptions{Hidden: 32, Dropout: 0.5, Embedding: 96}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Epochs, o.Quiet, o.Device, o.Threads, o.Resume = 2, true, "cpu", 1, gnb.Never
			o.RunDir = t.TempDir() + "/run"
			p, err := gnb.Plan(t.Context(), ds, gnb.SAGE, o)
			if err != nil {
				t.Fatal(err)
			}
			o.Events = func(runs.Event) {}
			most := mostMemory(func() { _, err = gnb.Train(t.Context(), ds, gnb.SAGE, o) })
			if err != nil {
				t.Fatal(err)
			}
			isPlanned(t, p, ds, float64(most))
		})
	}
}

// isPlanned checks the most memory that the workers of a run had. This process is not "gnb train": its own memory and its share of
// the dataset do not count.
func isPlanned(t *testing.T, p *plan.Plan, ds *gnb.Dataset, most float64) {
	t.Helper()
	want := float64(int64(p.Workers) * p.WorkerBytes)
	for _, i := range p.Memory.Shared {
		switch {
		case strings.HasPrefix(i.Name, "the process"):
		case strings.HasPrefix(i.Name, "the dataset"):
			want += float64(ds.Bytes()) * float64(p.Workers) / float64(p.Workers+1)
		default:
			want += float64(i.Bytes)
		}
	}
	t.Logf("planned %.1f MB, workers had %.1f MB", want/1e6, most/1e6)
	if r := most / want; r < 0.7 || r > 1.3 {
		t.Errorf("workers had %.1f MB, %.2f of the planned size:\n%s", most/1e6, r, p)
	}
}

// A run that does not fit into memory fails with an error that names the sizes, before it creates a
// directory.
func TestTrainRefusesWhatDoesNotFit(t *testing.T) {
	m, err := machine.ReadMemory()
	if err != nil || m.Free > 64<<30 {
		t.Skipf("%d bytes are free (%v): more than a small model can ask for", m.Free, err)
	}
	ds := gnb.Must(gnb.Load(t.Context(), "planted?nodes=20000&features=8&classes=4&degree=4"))
	defer ds.Close()
	dir := t.TempDir() + "/run"
	hidden := int(m.Free / (20000 * 4)) // one matrix of all nodes fills all free memory
	_, err = gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: hidden, Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Device: "cpu", Quiet: true, RunDir: dir}})
	if err == nil || !strings.Contains(err.Error(), "are free; take fewer Workers") || !strings.Contains(err.Error(), "evaluation's outputs of all nodes") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the run created a directory")
	}
}

func TestPlanMisuse(t *testing.T) {
	ds := gnb.Must(gnb.Load(t.Context(), "karate"))
	defer ds.Close()
	for want, o := range map[string]gnb.TrainOptions{
		"Precision is": {LaunchOptions: gnb.LaunchOptions{Precision: "half"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, "Layers": {ModelOptions: gnb.ModelOptions{Layers: -3, Dropout: 0.5}}, "Workers": {LaunchOptions: gnb.LaunchOptions{Workers: -1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
	} {
		if _, err := gnb.Plan(t.Context(), ds, gnb.SAGE, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := gnb.Plan(t.Context(), ds, nil, gnb.TrainOptions{}); err == nil || !strings.Contains(err.Error(), "Plan needs a model") {
		t.Errorf("error %v", err)
	}
	if _, err := gnb.Plan(t.Context(), nil, gnb.SAGE, gnb.TrainOptions{}); err == nil {
		t.Error("a plan without a dataset gave no error")
	}
}
