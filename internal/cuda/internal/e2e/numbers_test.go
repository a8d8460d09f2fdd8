//go:build cuda && linux && cgo

package e2e

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Numbers of nodes and of edges train on devices with the CPU's losses, metrics and predictions within 1e-5: two targets, some unknown, by
// quantiles, on one device and on two.
func TestNumbers(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	t.Run("nodes", func(t *testing.T) { trainNumbers(t, false) })
	t.Run("edges", func(t *testing.T) { trainNumbers(t, true) })
}

func trainNumbers(t *testing.T, edges bool) {
	const n = 90
	var src, dst []int32
	ds := &gnb.Dataset{Features: &dataset.Matrix{Rows: n, Cols: 3}, Targets: &dataset.Matrix{Rows: n, Cols: 2}, Splits: map[string][]int32{}}
	for v := range int32(n) {
		src, dst = append(src, v, (v*7+3)%n), append(dst, (v+1)%n, v)
		x := []float32{float32(v%5) / 5, float32(v%7) / 7, 1}
		ds.Features.F32 = append(ds.Features.F32, x...)
		y := 100 + 10*x[0]
		if v%9 == 0 {
			y = float32(math.NaN())
		}
		ds.Targets.F32 = append(ds.Targets.F32, y, x[1]-x[0])
		split := []string{"train", "train", "val", "test"}[v%4]
		ds.Splits[split] = append(ds.Splits[split], v)
	}
	var err error
	if ds.Graph, err = graphops.FromEdges(n, src, dst, graphops.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	ds.Meta.Name = "small"
	if edges {
		x := &graphops.EdgeFeatures{Cols: 1}
		for e := range ds.Graph.NumEdges() {
			x.F32 = append(x.F32, float32(e%4)/4)
		}
		ds.Graph = ds.Graph.WithEdgeData(x, nil)
		at := make([]int64, n)
		for i := range at {
			at[i] = 2 * int64(i)
		}
		y := ds.Targets
		ds.Targets, ds.Splits = nil, map[string][]int32{}
		if _, err := ds.SetEdgeTargets(at, y, nil); err != nil {
			t.Fatal(err)
		}
		if err := ds.SplitEdges(dataset.EdgeSplitOptions{Val: 0.2, Test: 0.2}); err != nil {
			t.Fatal(err)
		}
	}
	ds.Describe()
	train := func(device string, workers int) (losses []float64, run *runs.Run, rows *dataset.Matrix) {
		var o numbers.Options
		o.Hidden, o.Batch, o.Epochs, o.Quiet, o.VirtualRanks, o.LR, o.Dropout = 8, 16, 2, true, 2/workers, 0.01, 0.2
		o.Loss, o.Quantiles = "quantile", []float64{0.2, 0.8}
		o.Device, o.Resume = device, gnb.Never
		if device == "cpu" {
			o.Workers = workers
		}
		o.Events = func(e runs.Event) {
			if e.Kind == runs.KindEpoch {
				losses = append(losses, e.Loss)
			}
		}
		run, err := numbers.Train(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		if run.Config.Device != device || run.Config.Workers != workers {
			t.Fatalf("the run is on %d × %s", run.Config.Workers, run.Config.Device)
		}
		p, err := numbers.Predict(t.Context(), run, ds, gnb.InferOptions{Quiet: true, Device: device, Final: true})
		if err != nil {
			t.Fatal(err)
		}
		return losses, run, p.Rows
	}
	for _, gpus := range []int{1, 2} {
		cluster(t, gpus, machine{})
		losses, run, rows := train("cuda", gpus)
		want, cpu, known := train("cpu", gpus)
		for i, x := range want {
			if math.Abs(losses[i]-x) > 1e-5 {
				t.Errorf("%d devices: the losses are %v, on the CPU %v", gpus, losses, want)
				break
			}
		}
		for _, name := range []string{"val_mae", "test_r2", "mean_mae", "test_coverage"} {
			if x, y := run.Value(name), cpu.Value(name); !(math.Abs(x-y) < 1e-4) {
				t.Errorf("%d devices: %s is %v, on the CPU %v", gpus, name, x, y)
			}
		}
		for i, x := range known.F32 {
			if math.Abs(float64(rows.F32[i]-x)) > 1e-3 { // of 100
				t.Errorf("%d devices: number %d is %v, on the CPU %v", gpus, i, rows.F32[i], x)
				break
			}
		}
	}
}
