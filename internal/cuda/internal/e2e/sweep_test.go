//go:build cuda && linux && cgo

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Concurrent trials of a sweep run on different GPUs, and no result depends on the GPU.
func TestSweepSpreadsOverGPUs(t *testing.T) {
	testneed.NotShort(t, "it runs a sweep on the interpreter")
	ds := load(t, "karate")
	search := func(device string, parallel int) *sweep.Study {
		t.Helper()
		s, err := sweep.Run(t.Context(), ds, gnb.SAGE, func(tr *sweep.Trial) gnb.TrainOptions {
			o := small
			o.Device, o.Quiet, o.Epochs = device, true, 2
			o.LR = sweep.Choice(tr, "lr", 0.01, 0.02, 0.03, 0.04)
			if device == "cpu" {
				o.Workers = 1
			}
			return o
		}, sweep.Options{Method: "grid", Parallel: parallel, Quiet: true, Resume: gnb.Never, Dir: filepath.Join(t.TempDir(), "sweep")})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	log := cluster(t, 2, machine{})
	want, got := search("cpu", 1), search("cuda", 2)
	for i, trial := range got.Trials {
		if trial.Error != "" || trial.Value != want.Trials[i].Value {
			t.Errorf("trial %d: %v %s, on the CPU %v", i, trial.Value, trial.Error, want.Trials[i].Value)
		}
	}
	on := map[byte]int{}
	for _, line := range devices(t, log) {
		on[line[len("device ")]]++
	}
	if on['0'] == 0 || on['1'] == 0 || on['0']+on['1'] != 4 {
		t.Errorf("trials by device: %v", on)
	}
}
