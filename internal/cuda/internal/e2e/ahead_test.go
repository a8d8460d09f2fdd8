//go:build cuda && linux && cgo

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

// While a loop trains, the device does not idle because the host waits. When the host waits for a
// piece of work, it has already submitted at least the launches of one whole later step and those
// of the current step. The host frees no device memory in a loop, because that waits for the device
// too.
func TestTheHostIsAStepAhead(t *testing.T) {
	testneed.NotShort(t, "it trains three times on the interpreter")
	for name, o := range map[string]gnb.TrainOptions{
		"one batch a step":  {},
		"two virtual ranks": {LaunchOptions: gnb.LaunchOptions{VirtualRanks: 2}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
		"batch norm":        {ModelOptions: gnb.ModelOptions{Norm: "batch", Dropout: 0.5}},
	} {
		t.Run(name, func(t *testing.T) {
			ds := load(t, "planted?nodes=1400&classes=7&features=32&degree=4")
			trace := filepath.Join(t.TempDir(), "trace")
			t.Setenv("GNB_CUDA_TRACE", trace)
			cluster(t, 1, machine{})
			o.Hidden, o.Fanouts, o.Batch, o.Epochs, o.Eval, o.Device = 8, []int{3, 2}, 32, 1, "none", "cuda"
			o.CheckpointEvery = -1 // the host waits for a checkpoint's weights
			if _, _, err := train(t, ds, o); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(trace)
			if err != nil {
				t.Fatal(err)
			}
			const first = 8
			lines := strings.Split(string(b), "\n")
			last := strings.Count(string(b), "compute adam_f32\n") - 1
			var steps, waits, perStep, sinceStep int
			for _, l := range lines {
				f := strings.Fields(l)
				if len(f) < 3 {
					continue
				}
				inside := steps >= first && steps < last // at the end the host waits for the loss
				switch what, on := f[0], f[1]; {
				case (what == "launch" || what == "submit") && on == "compute":
					sinceStep++
					if f[2] == "adam_f32" {
						steps, perStep, sinceStep = steps+1, sinceStep, 0
					}
				case what == "memory" && on == "giving" && inside:
					t.Errorf("after %d steps: %s", steps, l)
				case what == "wait" && on == "compute" && inside:
					waits++
					var since int
					if _, err := fmt.Sscan(f[2], &since); err != nil {
						t.Fatal(err)
					}
					if since <= perStep+sinceStep {
						t.Errorf("after %d steps and %d of the %d launches of the next step, the host waits for work that only %d launches follow", steps, sinceStep, perStep, since)
					}
				}
			}
			if last < 2*first || waits < last-first {
				t.Errorf("%d steps with %d waits", last+1, waits)
			}
		})
	}
}
