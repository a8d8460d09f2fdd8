package notebooks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/nbtest"
)

// A cell submits a run to Slurm and shows it live. ■ ends the cell, and the job writes its checkpoint; the cell run
// again resumes from there, to the weights of a run in one go on this machine.
func TestSlurmInNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	clustertest.Slurm(t).Setenv(t)
	dir := t.TempDir()
	t.Setenv("GNB_RUNS", filepath.Join(dir, "runs"))
	const program = `import "github.com/graphnb/graphnb/gnb"

%%
ctx := context.Background()
ds := gnb.Must(gnb.Load(ctx, "planted?nodes=20000&seed=5"))
var o gnb.TrainOptions
o.Epochs, o.Seed, o.Batch, o.Device, o.CheckpointEvery = 12, 7, 256, "cpu", 5
OPTIONS
run := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, o))
fmt.Println(run.Result.Weights)`
	first, second := env.Interrupt(t, dir, strings.Replace(program, "OPTIONS", `o.Cluster = gnb.Slurm{Nodes: 2, Options: []string{"--time=10"}}`, 1), 12, "step ")
	if first.Status == "ok" {
		t.Fatalf("the interrupted cell is %s: %s", first.Status, first.Shown)
	}
	if !strings.Contains(first.Shown+first.Stdout, "interrupted") || !strings.Contains(first.Shown, "job ") {
		t.Errorf("the interrupted cell says %q, and shows %q", first.Stderr, first.Shown)
	}
	if second.Status != "ok" || second.Updates < 3 {
		t.Fatalf("the cell run again is %s after %d updates: %s", second.Status, second.Updates, second.Stderr)
	}
	t.Logf("ended %.1f s after ■; the second run took %.1f s with %d updates", first.Idle, second.Seconds, second.Updates)
	all, err := runs.List(t.Context(), runs.Options{Dir: filepath.Join(dir, "runs")})
	if err != nil || len(all) != 1 || all[0].Result.State != runs.StateDone {
		t.Fatalf("the two cells left %v, %v; want one run that is done", all, err)
	}
	log, err := os.ReadFile(filepath.Join(all[0].Dir, "slurm", "output"))
	if err != nil || !strings.Contains(string(log), "resuming run") {
		t.Errorf("the jobs printed %s, %v; want that the second resumes the first", log, err)
	}
	here := env.Run(t, notebookOf(t, strings.Replace(program, "OPTIONS", `o.Workers, o.Resume = 2, gnb.Never`, 1)), nbtest.Options{})
	if err := here.Err(); err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(here.Stdout()); want == "" || !strings.Contains(second.Stdout, want) {
		t.Errorf("the weights of the interrupted job are %q, and of a run on this machine %q", second.Stdout, want)
	}
}
