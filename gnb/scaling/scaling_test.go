package scaling_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/scaling"
	"github.com/graphnb/graphnb/internal/nbtest"
)

// smallSet is a graph on which a measurement takes about a second.
const smallSet = "planted?nodes=3000&features=16&classes=4&seed=5"

func TestMain(m *testing.M) { runtest.Main(m, nil) }

func load(t *testing.T, spec string) *gnb.Dataset {
	t.Helper()
	ds, err := gnb.Load(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds
}

func scalingOptions() scaling.Options {
	return scaling.Options{
		TrainOptions: gnb.TrainOptions{SamplerOptions: gnb.SamplerOptions{Fanouts: []int{4, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 400}, ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Seed: 3, Quiet: true}},
		Repeats:      3, Steps: 5, WarmUp: 2, // more steps than the 4 of an epoch
	}
}

// In two real measurements, the times add up, only several workers repeat work, and the counts are
// those of Sample.
func TestScaling(t *testing.T) {
	ds, o := load(t, smallSet), scalingOptions()
	c, err := scaling.Measure(t.Context(), ds, gnb.SAGE, o, []int{2, 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Points) != 2 || c.Points[0].Workers != 1 || c.Points[1].Workers != 2 || c.Cores < 1 || c.Threads != max(1, c.Cores/2) || c.Device != "cpu" {
		t.Fatalf("curve %+v", c)
	}
	for _, p := range c.Points {
		sum := 0.0
		for _, s := range p.Stages {
			sum += s
		}
		if math.Abs(sum-p.Seconds) > 0.02*p.Seconds || p.Seconds <= 0 {
			t.Errorf("%d workers: the stages of a step add up to %v s, but the step takes %v s", p.Workers, sum, p.Seconds)
		}
		if p.Stages["forward"] <= 0 || p.Stages["backward"] <= 0 || p.Stages["evaluate"] != 0 {
			t.Errorf("%d workers: the stages are %v", p.Workers, p.Stages)
		}
		if len(p.Rates) != o.Repeats || p.Low > p.Speedup || p.Speedup > p.High || p.Batch != o.Batch {
			t.Errorf("%d workers: %+v", p.Workers, p)
		}
		// 1500 nodes in batches of 400: five steps have 4·400 seeds plus 300 seeds once.
		if seeds := p.Rate * p.Seconds * float64(o.Steps); math.Abs(seeds-1800) > 1 && math.Abs(seeds-1900) > 1 && math.Abs(seeds-2000) > 1 {
			t.Errorf("%d workers: %v seeds in %d steps", p.Workers, seeds, o.Steps)
		}
		if p.Cores != min(p.Workers*c.Threads, c.Cores) || math.Abs(p.Efficiency*p.Ideal-p.Speedup) > 1e-9 {
			t.Errorf("%d workers: %+v", p.Workers, p)
		}
		s, err := gnb.Sample(t.Context(), ds, gnb.SampleOptions{Fanouts: o.Fanouts, Batch: o.Batch, Workers: p.Workers, Seed: o.Seed, Steps: 4, Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		if p.Edges != float64(s.Edges)/4 || p.UniqueEdges != float64(s.UniqueEdges)/4 || p.Rows != float64(s.Nodes)/4 {
			t.Errorf("%d workers: %v edges, %v unique ones and %v rows per step; Sample counts %+v in 4 steps", p.Workers, p.Edges, p.UniqueEdges, p.Rows, s)
		}
	}
	one, two := c.Points[0], c.Points[1]
	if one.Speedup != 1 || one.Ideal != 1 || one.RepeatedEdges != 1 || one.RepeatedRows != 1 {
		t.Errorf("one worker: %+v", one)
	}
	if two.RepeatedEdges <= 1 || two.RepeatedRows <= 1 || two.UniqueEdges != one.UniqueEdges || two.UniqueRows != one.UniqueRows || two.UniqueRows != one.Rows {
		t.Errorf("two workers repeat no work: %+v, one worker: %+v", two, one)
	}
	checkCurve(t, c)
}

// An interrupted measurement is continued by the next one with the same settings, and by no other; a whole one leaves
// nothing.
func TestScalingResumes(t *testing.T) {
	root := filepath.Join(t.TempDir(), "runs")
	t.Setenv("GNB_RUNS", root)
	ds, o := load(t, smallSet), scalingOptions()
	kept := func() (files []string, rates [2][]float64) {
		files, _ = filepath.Glob(filepath.Join(root, ".scaling-*.json"))
		if len(files) > 0 {
			var k struct{ Measured [][]scaling.Point }
			b, err := os.ReadFile(files[0])
			if err == nil && json.Unmarshal(b, &k) == nil {
				for i, repeats := range k.Measured {
					for _, p := range repeats {
						rates[i] = append(rates[i], p.Rate)
					}
				}
			}
		}
		return files, rates
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if _, rates := kept(); len(rates[1]) > 0 {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	c, err := scaling.Measure(ctx, ds, gnb.SAGE, o, []int{1, 2})
	_, before := kept()
	if err == nil || !strings.Contains(err.Error(), "run it again to continue") || len(before[0]) == 0 || len(c.Points) != 2 {
		t.Fatalf("the interrupted measurement: %v, %+v, kept %v", err, c.Points, before)
	}
	other := o
	other.Hidden = 8
	if c, err = scaling.Measure(t.Context(), ds, gnb.SAGE, other, []int{1}); err != nil || len(c.Points[0].Rates) != 3 {
		t.Fatalf("%v, %+v", err, c.Points)
	}
	if c, err = scaling.Measure(t.Context(), ds, gnb.SAGE, o, []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	for i, p := range c.Points {
		if n := len(before[i]); len(p.Rates) != 3 || !reflect.DeepEqual(p.Rates[:n], before[i]) {
			t.Errorf("%d workers: rates %v after %v before the interrupt", p.Workers, p.Rates, before[i])
		}
	}
	if c.Device != "cpu" || c.Points[0].RepeatedEdges != 1 {
		t.Errorf("curve %+v", c)
	}
	if files, _ := kept(); len(files) > 0 {
		t.Errorf("the whole measurement leaves %v", files)
	}
}

// With weak scaling, each worker gets a batch of the same size, and three workers repeat more work
// than two.
func TestScalingWeak(t *testing.T) {
	o := scalingOptions()
	o.Weak, o.Batch, o.BatchPerWorker, o.Threads, o.Repeats = true, 0, 200, 1, 1
	c, err := scaling.Measure(t.Context(), load(t, smallSet), gnb.SAGE, o, []int{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	again := 0.0
	for i, p := range c.Points {
		if p.Batch != 200*(i+1) || p.RepeatedEdges <= again {
			t.Errorf("%d workers: batch %d, each edge is sampled %v times, with one worker fewer %v times", p.Workers, p.Batch, p.RepeatedEdges, again)
		}
		again = p.RepeatedEdges
	}
	if c.Threads != 1 || !c.Weak {
		t.Errorf("curve %+v", c)
	}
	checkCurve(t, c)
}

// The curve has points for cooperative workers besides those for independent ones; cooperative
// workers repeat no work but exchange rows.
func TestScalingCooperative(t *testing.T) {
	o := scalingOptions()
	o.Cooperative, o.Threads, o.Repeats = true, 1, 1
	c, err := scaling.Measure(t.Context(), load(t, smallSet), gnb.SAGE, o, []int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Points) != 3 || c.Points[0].Cooperative || c.Points[1].Cooperative || !c.Points[2].Cooperative || c.Points[2].Workers != 2 {
		t.Fatalf("curve %+v", c)
	}
	alone, together := c.Points[1], c.Points[2]
	if together.RepeatedEdges != 1 || together.RepeatedRows != 1 || together.Edges != c.Points[0].Edges || together.Rows != c.Points[0].Rows || together.Moved <= 0 {
		t.Errorf("cooperative workers: %+v; one worker: %+v", together, c.Points[0])
	}
	if alone.RepeatedEdges <= 1 || alone.Moved != 0 {
		t.Errorf("independent workers: %+v", alone)
	}
	if s := c.String(); !strings.Contains(s, "MB moved") || !strings.Contains(s, "2 cooperative") {
		t.Errorf("the table is\n%s", s)
	}
	checkCurve(t, c)
}

// checkCurve checks the curve as JSON, as text and as a picture.
func checkCurve(t *testing.T, c scaling.Curve) {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back scaling.Curve
	if err := json.Unmarshal(raw, &back); err != nil || !reflect.DeepEqual(back, c) {
		t.Errorf("written as JSON and read again (%v): %+v, want %+v", err, back, c)
	}
	for _, want := range []string{"scaling of sage on planted", "speed-up", "core", "more edges are sampled"} {
		if !strings.Contains(c.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, c)
		}
	}
	data, err := c.PNG()
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if n := nbtest.Drawn(img); n < 1000 {
		t.Errorf("%d pixels of the picture differ from its background", n)
	}
}

func TestScalingRefuses(t *testing.T) {
	ds := load(t, smallSet)
	for _, tc := range []struct {
		name    string
		change  func(*scaling.Options)
		workers []int
		want    string
	}{
		{"no workers", nil, nil, "[]int{1, 2, 4}"},
		{"no worker", nil, []int{0, 1}, "1 or more"},
		{"twice", nil, []int{2, 1, 2}, "different"},
		{"too many", nil, []int{1, 100000}, "Workers is 100000; it is 1 to"},
		{"workers set", func(o *scaling.Options) { o.Workers = 2 }, []int{1}, "leave Workers"},
		{"directory set", func(o *scaling.Options) { o.RunDir = "run" }, []int{1}, "RunDir"},
		{"repeats", func(o *scaling.Options) { o.Repeats = -1 }, []int{1}, "negative"},
		{"strong, by worker", func(o *scaling.Options) { o.Batch, o.BatchPerWorker = 0, 10 }, []int{1}, "set Batch"},
		{"weak, in all", func(o *scaling.Options) { o.Weak = true }, []int{1}, "set BatchPerWorker"},
		{"weak, too large", func(o *scaling.Options) { o.Weak, o.Batch, o.BatchPerWorker = true, 0, 1000 }, []int{1, 2}, "smaller batch"},
		{"as in Train", func(o *scaling.Options) { o.Dropout = 2 }, []int{1}, "Dropout"},
	} {
		o := scalingOptions()
		if tc.change != nil {
			tc.change(&o)
		}
		c, err := scaling.Measure(t.Context(), ds, gnb.SAGE, o, tc.workers)
		if err == nil || !strings.Contains(err.Error(), tc.want) || len(c.Points) > 0 {
			t.Errorf("%s: %v, want an error that says %q", tc.name, err, tc.want)
		}
	}
	if _, err := scaling.Measure(t.Context(), ds, nil, scalingOptions(), []int{1}); err == nil {
		t.Error("measuring without a model gave no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := scaling.Measure(ctx, ds, gnb.SAGE, scalingOptions(), []int{1, 2}); err == nil || len(c.Points) != 0 || !strings.Contains(c.String(), "nothing") {
		t.Errorf("a measurement with a cancelled context gave %v, %v", c, err)
	}
}

// Measuring a training that diverges gives an error.
func TestDivergence(t *testing.T) {
	ds := load(t, "planted?nodes=300&features=8&classes=3&seed=2")
	_, err := scaling.Measure(t.Context(), ds, gnb.SAGE, scaling.Options{
		TrainOptions: gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{LR: 1e30, Batch: 32}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Quiet: true}}, Steps: 5, WarmUp: 2, Repeats: 1,
	}, []int{1, 2})
	if !errors.Is(err, gnb.ErrNotFinite) || !regexp.MustCompile(`measuring 1 workers: .*stopped being finite at epoch \d+, step \d+, on rank 0: layer \d`).MatchString(err.Error()) {
		t.Error(err)
	}
}

// surface calls the package's exported function in a worker.
var surface = gnb.Program("test.scaling.surface", func(*gnb.Worker, int) error {
	if _, err := scaling.Measure(context.Background(), nil, gnb.SAGE, scaling.Options{}, []int{1}); err == nil || !strings.Contains(err.Error(), "a worker cannot start a run") {
		return fmt.Errorf("a measurement within a worker: %w", err)
	}
	return nil
})

func TestSurfaceInWorkers(t *testing.T) {
	if _, err := gnb.Launch(t.Context(), surface, 0, gnb.LaunchOptions{Workers: 2, Threads: 1, Quiet: true, RunDir: filepath.Join(t.TempDir(), "run")}); err != nil {
		t.Fatal(err)
	}
}
