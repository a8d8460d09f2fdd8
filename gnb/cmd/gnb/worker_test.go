package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/inspect"
	"github.com/graphnb/graphnb/gnb/monitor"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/scaling"
	"github.com/graphnb/graphnb/gnb/sweep"
)

// refusedProgram calls, in a worker, functions that only the launching process may call.
var refusedProgram = gnb.Program("test.refused", func(w *gnb.Worker, _ struct{}) error {
	ctx, ds := context.Background(), w.Dataset()
	for name, call := range map[string]func() error{
		"train":   func() error { _, err := gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{}); return err },
		"infer":   func() error { _, err := gnb.Infer(ctx, &runs.Run{}, ds, "", gnb.InferOptions{}); return err },
		"sample":  func() error { _, err := gnb.Sample(ctx, ds, gnb.SampleOptions{}); return err },
		"inspect": func() error { _, err := inspect.Batch(ctx, ds, []int32{0}, inspect.Options{}); return err },
		"monitor": func() error { _, err := monitor.Watch(ctx, monitor.Options{}); return err },
		"compare": func() error { _, err := runs.CompareLive(ctx, &runs.Run{}, &runs.Run{}); return err },
		"attach":  func() error { _, err := gnb.Attach(ctx, &runs.Run{}); return err },
		"scaling": func() error { _, err := scaling.Measure(ctx, ds, gnb.SAGE, scaling.Options{}, []int{1}); return err },
		"sweep": func() error {
			_, err := sweep.Run(ctx, ds, gnb.SAGE, func(*sweep.Trial) gnb.TrainOptions { return gnb.TrainOptions{} }, sweep.Options{Trials: 1})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "worker") {
			return fmt.Errorf("%s within a worker gave %v", name, err)
		}
	}
	w.Printf("all refused on rank %d", w.Rank())
	return nil
})

// A worker cannot start runs, sweeps or monitors: each call returns an error that says so.
func TestWorkersStartNothing(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	ds, err := gnb.Load(t.Context(), "karate")
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	if _, err := gnb.Launch(t.Context(), refusedProgram, struct{}{}, gnb.LaunchOptions{
		Data:    ds,
		Workers: 2,
		Device:  "cpu",
		Quiet:   true,
		Events: func(e runs.Event) {
			if e.Kind == runs.KindPrint {
				said += e.Text
			}
		},
	}); err != nil {
		t.Fatal(err)
	}
	if said != "all refused on rank 0" {
		t.Errorf("the program printed %q", said)
	}
}
