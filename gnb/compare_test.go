package gnb_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

func TestCompareShowsWhatDiffers(t *testing.T) {
	ds := load(t, "karate")
	dir := t.TempDir()
	var found []*runs.Run
	for i, lr := range []float64{0.01, 0.02} {
		run := train(t, ds, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1 + i, Threads: 1, RunDir: filepath.Join(dir, "r"+string('0'+rune(i)))}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 2, LR: lr}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}})
		again, err := runs.Open(run.Dir)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, again)
	}
	c := runs.Compare(found...)
	differ := map[string][]string{}
	for _, r := range c.Settings {
		differ[r.Name] = r.Values
	}
	if len(differ) != 2 || strings.Join(differ["args.LR"], " ") != "0.01 0.02" || strings.Join(differ["workers"], " ") != "1 2" {
		t.Errorf("the settings that differ are %v, want args.LR and workers", differ)
	}
	reported := 0
	for _, r := range c.Results {
		if r.Name == "val_accuracy" || r.Name == "loss" {
			reported++
		}
	}
	if reported != 2 {
		t.Errorf("results: %v", c.Results)
	}
	for _, want := range []string{found[0].Config.ID, "args.LR", "val_accuracy", "loss by step, 1 to 2", "val accuracy by epoch, 1 to 2", "LR 0.01, workers 1\n", "LR 0.02, workers 2\n"} {
		if !strings.Contains(c.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, c)
		}
	}
}

// A live comparison ends when the last of its runs ends, and shows the final state of each.
// Cancelling a comparison does not end the runs.
func TestCompareLive(t *testing.T) {
	testneed.NotShort(t, "it trains several runs")
	ds := load(t, smallSet)
	dir := t.TempDir()
	begun := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		var once sync.Once
		_, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{
			LaunchOptions: gnb.LaunchOptions{
				Workers: 1,
				Threads: 1,
				RunDir:  filepath.Join(dir, "a"),
				Quiet:   true,
				Events: func(e runs.Event) {
					if e.Kind == "epoch" {
						once.Do(func() { close(begun) })
					}
				},
			},
			OptimizerOptions: gnb.OptimizerOptions{Epochs: 40, Batch: 32},
			ModelOptions:     gnb.ModelOptions{Hidden: 32, Dropout: 0.5},
		})
		ended <- err
	}()
	done := train(t, ds, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, RunDir: filepath.Join(dir, "b")}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 2}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}})
	<-begun
	going, err := runs.Open(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := runs.CompareLive(ctx, going, done); len(c.Runs) != 2 || err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled comparison has %d runs, %v", len(c.Runs), err)
	}
	c, err := runs.CompareLive(t.Context(), going, done)
	if err != nil {
		t.Fatal(err)
	}
	if c.Runs[0].Result.State != runs.StateDone || c.Runs[0].Result.Epochs != 40 || c.Runs[1].Result.Epochs != 2 {
		t.Errorf("compared %v and %v", c.Runs[0], c.Runs[1])
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := runs.CompareLive(t.Context(), &runs.Run{Dir: filepath.Join(dir, "none")}); err == nil {
		t.Error("comparing no runs gave no error")
	}
}
