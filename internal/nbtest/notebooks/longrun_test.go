package notebooks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// A run of 10,000 steps is shown at most 20 times a second, and leaves a notebook of
// less than 300 kB: one figure, one table, and what was printed.
func TestLongRunInNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	dir := filepath.Join(t.TempDir(), "run")
	r := env.Run(t, notebookOf(t, `import "github.com/graphnb/graphnb/gnb"

%%
ctx := context.Background()
ds := gnb.Must(gnb.Load(ctx, "planted?nodes=2000"))
run := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{
LaunchOptions: gnb.LaunchOptions{Workers: 2, RunDir: os.Getenv("RUN_DIR")},
OptimizerOptions: gnb.OptimizerOptions{Epochs: 100, Batch: 10},
EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 10},
ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5},
SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 3}},
}))
fmt.Println(run)`), nbtest.Options{Env: []string{"RUN_DIR=" + dir}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	run, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if run.Result.Steps != 10000 {
		t.Fatalf("the run had %d steps, want 10,000", run.Result.Steps)
	}
	for id, d := range r.Displays {
		if !strings.HasPrefix(id, "gnb_") {
			continue
		}
		// Over the run's seconds and one more: the last update does not wait.
		least, most := leastUpdates(d), 20*(d.Times[len(d.Times)-1]-d.Times[0])+20
		if d.DistinctUpdates < least || float64(d.Updates) > most {
			t.Errorf("%d updates, %d of them different, within %.1f s; want at least %d, and at most 20 a second", d.Updates, d.DistinctUpdates, d.Times[len(d.Times)-1]-d.Times[0], least)
		}
	}
	figures(t, r.Executed, 1)
	saved, err := os.Stat(r.Executed)
	if err != nil {
		t.Fatal(err)
	}
	if saved.Size() >= 300_000 || saved.Size() < 10_000 {
		t.Errorf("the saved notebook has %d bytes, want less than 300,000", saved.Size())
	}
	t.Logf("%d bytes, %d steps in %.1f s", saved.Size(), run.Result.Steps, run.Result.Seconds)
}
