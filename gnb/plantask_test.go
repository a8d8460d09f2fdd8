package gnb_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/plan"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/testneed"
)

// mostMemory is the largest anonymous and shared memory of the worker processes while do runs.
func mostMemory(do func()) (most int64) {
	var watching sync.WaitGroup
	done := make(chan struct{})
	watching.Go(func() {
		for {
			if _, workers, err := machine.Resident(os.Getpid()); err == nil {
				most = max(most, workers)
			}
			select {
			case <-done:
				return
			case <-time.After(25 * time.Millisecond):
			}
		}
	})
	do()
	close(done)
	watching.Wait()
	return most
}

// Plans of numbers and of whole graphs have the steps of the run, and the memory that its workers then take.
func TestPlanOfTasks(t *testing.T) {
	testneed.Raced(t, "two runs of a second")
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		t.Skipf("this system does not say how much memory a process has: %v", err)
	}
	if testneed.UnderRace() {
		t.Skip("the race detector has memory of its own")
	}
	launch := gnb.LaunchOptions{Workers: 2, Threads: 1, Device: "cpu", Quiet: true, Resume: gnb.Never}
	for _, c := range []struct {
		name, unit   string
		batch, steps int
		plan         func(dir string) (*gnb.Dataset, *plan.Plan, func() (*runs.Run, error), error)
	}{
		{"graphs", "graphs", 128, 13, func(dir string) (*gnb.Dataset, *plan.Plan, func() (*runs.Run, error), error) {
			ds := gnb.Must(gnb.Load(t.Context(), "molecules?graphs=2000"))
			o := graphs.Options{Predict: "targets"}
			o.Epochs, o.LaunchOptions, o.RunDir = 4, launch, dir
			p, err := graphs.Task.Plan(t.Context(), ds, o)
			return ds, p, func() (*runs.Run, error) { return graphs.Train(t.Context(), ds, o) }, err
		}},
		{"numbers", "seeds", 1024, 10, func(dir string) (*gnb.Dataset, *plan.Plan, func() (*runs.Run, error), error) {
			ds := gnb.Must(gnb.Load(t.Context(), "planted?nodes=20000&features=64"))
			ds.Targets = &dataset.Matrix{Rows: ds.Nodes(), Cols: 1}
			for v := range ds.Nodes() {
				ds.Targets.F32 = append(ds.Targets.F32, ds.Features.Row(v)[0])
			}
			var o numbers.Options
			o.Epochs, o.LaunchOptions, o.RunDir = 3, launch, dir
			p, err := numbers.Task.Plan(t.Context(), ds, o)
			return ds, p, func() (*runs.Run, error) { return numbers.Train(t.Context(), ds, o) }, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds, p, train, err := c.plan(t.TempDir() + "/run")
			if err != nil {
				t.Fatal(err)
			}
			defer ds.Close()
			if p.Task != c.name || p.Unit != c.unit || p.Batch != c.batch || p.Steps != c.steps || p.Fit != "fits" || p.StepSeconds <= 0 || p.EpochSeconds <= float64(p.Steps)*p.StepSeconds || p.Hops[0].Edges == 0 || len(p.Choices) < 2 {
				t.Errorf("%s", p)
			}
			var run *runs.Run
			most := mostMemory(func() { run, err = train() })
			if err != nil {
				t.Fatal(err)
			}
			if int64(p.Steps*run.Result.Epochs) != run.Result.Steps || p.Weights != run.Result.Model.Parameters {
				t.Errorf("%d steps an epoch and %d weights are planned; the run had %d steps in %d epochs and %d weights", p.Steps, p.Weights, run.Result.Steps, run.Result.Epochs, run.Result.Model.Parameters)
			}
			isPlanned(t, p, ds, float64(most))
		})
	}
}

// A plan of a task that cannot be tried here is refused.
func TestPlanOfTaskOnGPUsElsewhere(t *testing.T) {
	o := graphs.Options{Predict: "labels"}
	o.Quiet = true
	if _, err := graphs.Task.Plan(plan.ForGPU(context.Background(), 1<<30), gnb.Must(gnb.Load(t.Context(), "molecules?graphs=50")), o); err == nil || !strings.Contains(err.Error(), "are not here") {
		t.Errorf("a plan for GPUs elsewhere: %v", err)
	}
}
