package gnb_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

func TestSmall(t *testing.T) {
	for value, want := range map[string]string{"": "reddit", "0": "reddit", "1": "planted"} {
		t.Setenv("GNB_SMALL", value)
		if got := gnb.Small("reddit", "planted"); got != want {
			t.Errorf("GNB_SMALL=%s: %s, want %s", value, got, want)
		}
	}
}

// A run without an explicit number of workers uses GNB_WORKERS, and its result has the work of each
// worker.
func TestWorkersFromEnvironment(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	o := gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 2, Batch: 100}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5}}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, LaunchOptions: gnb.LaunchOptions{Quiet: true, Resume: gnb.Never, CheckpointEvery: -1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
	train := func(workers int) (*runs.Run, error) {
		o.Workers, o.RunDir = workers, t.TempDir()
		return gnb.Train(t.Context(), gnb.Must(gnb.Load(t.Context(), smallSet)), gnb.SAGE, o)
	}
	t.Setenv("GNB_WORKERS", "3")
	for asked, want := range map[int]int{0: 3, 2: 2} {
		run, err := train(asked)
		if err != nil {
			t.Fatal(err)
		}
		seeds := run.Result.WorkerSeeds
		if run.Config.Workers != want || len(seeds) != want {
			t.Errorf("with %d workers requested, %d ran and %d reported their work; want %d", asked, run.Config.Workers, len(seeds), want)
		}
		sum := int64(0)
		for _, n := range seeds {
			sum += n
		}
		ids := gnb.Must(gnb.Must(gnb.Load(t.Context(), smallSet)).Split("train"))
		if sum != 2*int64(len(ids)) || slices.Contains(seeds, 0) {
			t.Errorf("workers trained on %v seeds, %d in all; want a share for each of 2 × %d", seeds, sum, len(ids))
		}
	}
	for _, bad := range []string{"none", "0", "-1", "100000"} {
		t.Setenv("GNB_WORKERS", bad)
		if _, err := train(0); err == nil || !strings.Contains(err.Error(), "GNB_WORKERS") {
			t.Errorf("GNB_WORKERS=%s: %v, want an error that names it", bad, err)
		}
		if _, err := train(1); err != nil {
			t.Errorf("GNB_WORKERS=%s for a run with an explicit number of workers gave %v", bad, err)
		}
	}
}
