//go:build cuda && linux && cgo

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A run gives up a GPU that fails repeatedly: it first restarts all workers, then continues with
// one worker on the other GPU. Losses equal those of a run without failures. Each device that was
// opened has freed its memory.
func TestRestartsGiveUpAGPU(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	ds := load(t, "karate")
	o := small
	o.Workers, o.Epochs, o.CheckpointEvery, o.Restarts = 2, 8, 1, 3
	cluster(t, 2, machine{})
	whole, _, err := train(t, ds, o)
	if err != nil {
		t.Fatal(err)
	}
	for broken := range 2 {
		t.Run(fmt.Sprintf("device %d", broken), func(t *testing.T) {
			log := cluster(t, 2, machine{Fault: &fakegpu.Fault{Device: broken, Kernel: "adam_f32", After: 2, Status: 719, Lost: true}, Config: fakegpu.Config{Quiet: true}})
			o := o
			o.RunDir, o.Quiet, o.Resume = filepath.Join(t.TempDir(), "run"), true, gnb.Never
			run, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
			if err != nil {
				t.Fatal(err)
			}
			l := run.Config.Restarts
			if len(l) != 2 || l[0].Workers != 2 || l[1].Workers != 1 || run.Config.VirtualRanks != 2 {
				t.Fatalf("restarts %v, then %d virtual ranks", l, run.Config.VirtualRanks)
			}
			for _, r := range l {
				if r.Rank != broken || !strings.Contains(r.Reason, "the kernel failed") {
					t.Errorf("restart %v; want the rank of the broken GPU, %d", r, broken)
				}
			}
			var losses []float64
			err = run.Events(func(e runs.Event) {
				if e.Kind == runs.KindEpoch {
					losses = append(losses, e.Loss)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			same(t, losses, whole)
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
				if !strings.Contains(line, " 0 left behind") {
					t.Error(line)
				}
			}
		})
	}
}
