//go:build cuda && linux && cgo

package e2e

import (
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/testkit/linkstest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Training on links samples and predicts on GPUs what it does on CPUs, with every loader and number of
// workers: one digest, no leak in any batch, losses within rounding, and metrics of nearly the same
// network.
func TestLinks(t *testing.T) {
	testneed.NotShort(t, "it trains on links with many loaders on the interpreter")
	ds := load(t, "planted?nodes=120&features=6&classes=3&degree=4&homophily=0.9&seed=5")
	for i, s := range linkstest.Settings() {
		if !slices.Contains([]int{0, 3, 5, 6, 9, 11, 13, 17}, i) && !testneed.Soak.Here() {
			continue // half a second each on the interpreter; those left have each sampler, decoder and kind of graph
		}
		t.Run(s.Name, func(t *testing.T) {
			s.Epochs, s.Hidden, s.LastMetrics = 2, 8, true
			if s.Batch = 60; s.Whole {
				s.Epochs = 3
			}
			gpus := 1 + i%2
			train := func(device string, workers int) (*runs.Run, []float64) {
				t.Helper()
				run, err := gnb.Launch(t.Context(), linkstest.Program, s.Setting, gnb.LaunchOptions{Data: ds, Device: device, Workers: workers, Quiet: true, Seed: 3, RunDir: t.TempDir(), CheckpointEvery: -1})
				if err != nil {
					t.Fatal(err)
				}
				losses, err := run.Losses()
				if err != nil {
					t.Fatal(err)
				}
				return run, losses
			}
			cpu, want := train("cpu", gpus)
			cluster(t, gpus, machine{})
			gpu, got := train("cuda", gpus)
			same(t, got, want)
			if a, b := gpu.Result.Text["digest"], cpu.Result.Text["digest"]; a != b || a == "" && !s.Whole {
				t.Errorf("the digest is %q, on the CPU %q", a, b)
			}
			for _, name := range []string{"pairs", "predicted", "checked"} {
				if a, b := gpu.Value(name), cpu.Value(name); a != b || a == 0 {
					t.Errorf("%s is %v, on the CPU %v", name, a, b)
				}
			}
			// Rounding can change the order of pairs with nearly the same score.
			for _, name := range []string{"test_auc", "test_ap", "test_mrr"} {
				if a, b := gpu.Value(name), cpu.Value(name); !(math.Abs(a-b) <= 0.02) {
					t.Errorf("%s is %v, on the CPU %v", name, a, b)
				}
			}
		})
	}
}
