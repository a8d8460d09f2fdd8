package dataset_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// payments is a graph 0 → 1, 0 → 1, 1 → 0, 2 → 1, 3 → 2, 3 → 3 with weights, of which one is 0, times, and an amount of each edge but
// 2 → 1. The positions of its edges are 0: 1 → 0, 1 and 2: 0 → 1, 3: 2 → 1, 4: 3 → 2, 5: 3 → 3.
func payments(t *testing.T) *dataset.Dataset {
	t.Helper()
	src, dst := []int32{0, 0, 1, 2, 3, 3}, []int32{1, 1, 0, 1, 2, 3}
	times := []int64{30, 10, 20, 40, 50, 60}
	numbers := dataset.RowNumbers(len(src), times)
	g, err := graphops.FromEdgesWith(4, src, dst, graphops.EdgeData{Weights: []float32{1, 2, 3, 4, 0, 6}, Times: numbers}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g, at := dataset.FromRowNumbers(g, src, dst, numbers, times)
	if want := []int64{2, 1, 0, 3, 4, 5}; !slices.Equal(at, want) { // of equal edges, the earlier one comes first
		t.Fatalf("the edges are at %v, want %v", at, want)
	}
	if want := []int64{20, 10, 30, 40, 50, 60}; !slices.Equal(g.EdgeTimes, want) {
		t.Fatalf("the times are %v, want %v", g.EdgeTimes, want)
	}
	d := &dataset.Dataset{Graph: g, Splits: map[string][]int32{}, Meta: dataset.Metadata{Name: "payments"}}
	nan := float32(math.NaN())
	amounts := &dataset.Matrix{Rows: 6, Cols: 1, F32: []float32{300, 100, 200, nan, 500, 600}}
	rows, err := d.SetEdgeTargets(at, amounts, []string{"amount"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{2, 1, 0, 3, 4, 5}; !slices.Equal(rows, want) {
		t.Fatalf("the rows are %v, want %v", rows, want)
	}
	d.EdgeAnswers.Splits = map[string][]int32{"train": {0, 1, 2}, "val": {4}, "test": {5}, "train@1": {4, 5}, "val@1": {0}, "test@1": {1}}
	return d
}

// Targets of edges survive a directory and shared memory with the same digests, which tell other targets apart, and views choose
// their splits.
func TestEdgeAnswersAreKept(t *testing.T) {
	d, ctx := payments(t), context.Background()
	want, err := d.Digests(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "d")
	if err := dataset.Write(dir, d); err != nil {
		t.Fatal(err)
	}
	opened, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	f, err := d.Share(ctx, dataset.CheckOnceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := dataset.OpenFD(f)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	for name, got := range map[string]*dataset.Dataset{"opened": opened, "shared": shared} {
		if have, err := got.Digests(ctx, nil); err != nil || have != want {
			t.Errorf("%s: the digests are %v, %v", name, have, err)
		}
		if err := got.Check(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(got.EdgeRows, d.EdgeRows) || !sameFloats(got.EdgeAnswers.Targets.F32, d.EdgeAnswers.Targets.F32) || got.EdgeAnswers.Meta.TargetNames[0] != "amount" || len(got.EdgeAnswers.Splits) != 6 {
			t.Errorf("%s: %v, %+v", name, got.EdgeRows, got.EdgeAnswers)
		}
		view, err := got.WithSplitSet(1)
		if err != nil || !slices.Equal(view.EdgeAnswers.Splits["train"], []int32{4, 5}) || got.SplitSets() != 2 || name == "opened" && !view.Stored() {
			t.Errorf("%s: set 1 is %v, %v", name, view, err)
		}
		if text := got.String(); !strings.Contains(text, "with numbers of 6 edges (1 target, train 3, val 1, test 1, 2 split sets)") {
			t.Errorf("%s: %s", name, text)
		}
	}
	d.EdgeAnswers.Targets.F32[0]++
	if have, err := d.Digests(ctx, nil); err != nil || have.Labels == want.Labels || have.Structure != want.Structure {
		t.Errorf("with another target the digests are %v, %v", have, err)
	}
}

// Of some nodes, and without edges of weight 0, an edge keeps its own number and split.
func TestEdgeAnswersOfFewerEdges(t *testing.T) {
	d := payments(t)
	some, err := d.Subset([]int32{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := dataset.Write(filepath.Join(t.TempDir(), "some"), some); err != nil {
		t.Fatal(err)
	}
	// The edges are 2 → 1, 3 → 2 and 3 → 3, with the positions 0, 1 and 2 now.
	nan := float32(math.NaN())
	if !slices.Equal(some.EdgeRows, []int64{0, 1, 2}) || !sameFloats(some.EdgeAnswers.Targets.F32, []float32{nan, 500, 600}) || !slices.Equal(some.EdgeAnswers.Splits["val"], []int32{1}) || len(some.EdgeAnswers.Splits["train"]) != 0 {
		t.Errorf("%v, %v, %v", some.EdgeRows, some.EdgeAnswers.Targets.F32, some.EdgeAnswers.Splits)
	}
	rest, zeros, err := d.WithoutZeroWeights()
	if err != nil || zeros != 1 {
		t.Fatal(zeros, err)
	}
	if err := rest.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rest.EdgeRows, []int64{0, 1, 2, 3, 4}) || !sameFloats(rest.EdgeAnswers.Targets.F32, []float32{200, 100, 300, nan, 600}) || !slices.Equal(rest.EdgeAnswers.Splits["test"], []int32{4}) || len(rest.EdgeAnswers.Splits["val"]) != 0 {
		t.Errorf("%v, %v, %v", rest.EdgeRows, rest.EdgeAnswers.Targets.F32, rest.EdgeAnswers.Splits)
	}
	if other := d.WithGraph(rest.Graph); other.EdgeRows != nil || other.EdgeAnswers != nil || other.Meta.EdgeAnswers != nil {
		t.Errorf("another graph has the edges %v", other.EdgeRows)
	}
	if same := d.WithGraph(d.Graph); same.EdgeAnswers != d.EdgeAnswers {
		t.Error("the same graph has lost the numbers of its edges")
	}
}

// A split divides the edges with a number, keeps those between two nodes together, and by time takes the latest for the test.
func TestSplitEdges(t *testing.T) {
	d := payments(t)
	if err := d.SplitEdges(dataset.EdgeSplitOptions{Val: 0.2, Test: 0.2, ByTime: true}); err != nil {
		t.Fatal(err)
	}
	for split, want := range map[string][]int32{"train": {0, 1, 2}, "val": {4}, "test": {5}} {
		if got := d.EdgeAnswers.Splits[split]; !slices.Equal(got, want) {
			t.Errorf("by time %s has the rows %v, want %v", split, got, want)
		}
	}
	seen := map[string]bool{}
	for seed := range uint64(20) {
		if err := d.SplitEdges(dataset.EdgeSplitOptions{Val: 0.6, Test: 0.2, Seed: seed}); err != nil {
			continue // the edges between 0 and 1 in val can leave none for train
		}
		all := 0
		for split, rows := range d.EdgeAnswers.Splits {
			if all += len(rows); slices.Contains(rows, 0) != slices.Contains(rows, 1) || slices.Contains(rows, 0) != slices.Contains(rows, 2) || slices.Contains(rows, 3) {
				t.Errorf("seed %d: %s has the rows %v", seed, split, rows)
			}
			if slices.Contains(rows, 0) {
				seen[split] = true
			}
		}
		if all != 5 {
			t.Errorf("seed %d: %d rows are in splits", seed, all)
		}
	}
	if len(seen) < 2 {
		t.Errorf("all seeds put edge 0 into %v", seen)
	}
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		change func(d *dataset.Dataset)
		o      dataset.EdgeSplitOptions
		want   string
	}{
		"shares":   {nil, dataset.EdgeSplitOptions{Val: 0.6, Test: 0.5}, "their sum is below 1"},
		"no times": {func(d *dataset.Dataset) { d.Graph = d.Graph.WithEdgeData(nil, nil) }, dataset.EdgeSplitOptions{ByTime: true}, "the edges have no times"},
		"unknown": {func(d *dataset.Dataset) {
			for i := range d.EdgeAnswers.Targets.F32 {
				d.EdgeAnswers.Targets.F32[i] = nan
			}
		}, dataset.EdgeSplitOptions{}, "every target of every edge is unknown"},
		"few":        {nil, dataset.EdgeSplitOptions{Val: 0.05, Test: 0.2}, "val gets none"},
		"no targets": {func(d *dataset.Dataset) { d.EdgeAnswers = nil }, dataset.EdgeSplitOptions{}, "no edge has a target"},
	} {
		t.Run(name, func(t *testing.T) {
			d := payments(t)
			if c.change != nil {
				c.change(d)
			}
			if err := d.SplitEdges(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}

// Wrong targets of edges are one sentence, whether a program sets them or a file has them.
func TestBadEdgeAnswers(t *testing.T) {
	one := &dataset.Matrix{Rows: 1, Cols: 1, F32: []float32{1}}
	two := &dataset.Matrix{Rows: 2, Cols: 1, F32: []float32{1, 2}}
	for _, c := range []struct {
		at    []int64
		m     *dataset.Matrix
		names []string
		want  string
	}{
		{[]int64{6}, one, nil, "position 6 is none of the graph's edges, 0 to 5"},
		{[]int64{3, 3}, two, nil, "edge 3 is there twice"},
		{[]int64{3}, two, nil, "2 rows for 1 edges"},
		{[]int64{3}, one, []string{"a", "b"}, "2 names of 1 targets"},
		{[]int64{3}, nil, nil, "a row for each edge"},
	} {
		if _, err := payments(t).SetEdgeTargets(c.at, c.m, c.names); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want %q", err, c.want)
		}
	}
	d := payments(t)
	if _, err := d.FindEdges([]int32{0, 2}, []int32{1, 3}, 0); err == nil || !strings.Contains(err.Error(), "no edge 2 → 3") {
		t.Errorf("finding 2 → 3: %v", err)
	}
	if at, err := d.FindEdges([]int32{0, 3}, []int32{1, 3}, 0); err != nil || !slices.Equal(at, []int64{1, 5}) {
		t.Errorf("the edges are at %v, %v", at, err)
	}
	for name, c := range map[string]struct {
		change func(d *dataset.Dataset)
		want   string
	}{
		"infinite":  {func(d *dataset.Dataset) { d.EdgeAnswers.Targets.F32[4] = float32(math.Inf(-1)) }, "row 4, column 0 is -Inf"},
		"order":     {func(d *dataset.Dataset) { d.EdgeRows[2] = 1 }, "edge_rows.npy of payments: entry 2 is 1"},
		"range":     {func(d *dataset.Dataset) { d.EdgeRows[5] = 6 }, "entry 5 is 6; positions of edges ascend, from 0 to 5"},
		"split":     {func(d *dataset.Dataset) { d.EdgeAnswers.Splits["val"][0] = 6 }, "entry 0 is 6"},
		"overlap":   {func(d *dataset.Dataset) { d.EdgeAnswers.Splits["val"][0] = 1 }, "which is also in split train"},
		"rows":      {func(d *dataset.Dataset) { d.EdgeRows = d.EdgeRows[:5] }, "6 rows of targets for 5 edges with answers"},
		"half":      {func(d *dataset.Dataset) { d.EdgeAnswers = nil }, "have both EdgeRows and EdgeAnswers"},
		"no labels": {func(d *dataset.Dataset) { d.EdgeAnswers.Labels = make([]int32, 6) }, "has targets and splits, and nothing else"},
	} {
		t.Run(name, func(t *testing.T) {
			d := payments(t)
			c.change(d)
			if err := d.Check(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
	dir := filepath.Join(t.TempDir(), "d")
	if err := dataset.Write(dir, payments(t)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "edge_answer_targets.npy")); err != nil {
		t.Fatal(err)
	}
	if _, err := dataset.Open(dir); err == nil || !strings.Contains(err.Error(), "edge_answer_targets.npy") {
		t.Errorf("without the file of targets: %v", err)
	}
}
