package dataset

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestKarate(t *testing.T) {
	d := Karate()
	if err := d.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	if d.Nodes() != 34 || d.Edges() != 156 || d.FeatureDim() != 34 || d.Classes() != 2 {
		t.Errorf("got %s", d)
	}
	// The degrees of Zachary's matrix.
	want := []int32{
		16, 9, 10, 6, 3, 4, 4, 4, 5, 2, 3, 1, 2, 5, 2, 2, 2,
		2, 2, 3, 2, 2, 2, 5, 3, 3, 2, 4, 3, 4, 4, 6, 12, 17,
	}
	if got := d.Graph.InDegrees(); !slices.Equal(got, want) {
		t.Errorf("degrees %v, want %v", got, want)
	}
	var factions [2]int
	crossing := 0
	for v, y := range d.Labels {
		factions[y]++
		for _, u := range d.Graph.InNeighbors(int32(v)) {
			if d.Labels[u] != y {
				crossing++
			}
		}
	}
	if factions != [2]int{17, 17} || d.Labels[0] != 0 || d.Labels[33] != 1 {
		t.Errorf("factions of %v, leaders in %d and %d", factions, d.Labels[0], d.Labels[33])
	}
	// 11 of the 78 friendships cross the factions; each is two edges.
	if crossing != 22 {
		t.Errorf("%d edges cross, want 22", crossing)
	}
	seen := make([]int, 34)
	for _, name := range d.SplitNames() {
		for _, v := range d.Splits[name] {
			seen[v]++
		}
	}
	if slices.Min(seen) != 1 || slices.Max(seen) != 1 {
		t.Errorf("the splits do not cover each node once: %v", seen)
	}
	train, _ := d.Split("train")
	if !slices.Contains(train, 0) || !slices.Contains(train, 33) {
		t.Error("the leaders are not in the training split")
	}
	d.Features.F32[0] = 7
	if Karate().Features.F32[0] != 1 {
		t.Error("two calls share memory")
	}
}

func TestSplitAndString(t *testing.T) {
	d := small(t)
	if got := d.SplitNames(); !slices.Equal(got, []string{"train", "val", "test", "extra"}) {
		t.Errorf("names %v", got)
	}
	if ids, err := d.Split("test"); err != nil || !slices.Equal(ids, []int32{4, 3}) {
		t.Errorf("test: %v, %v", ids, err)
	}
	_, err := d.Split("valid")
	if !errors.Is(err, ErrNoSplit) || !strings.Contains(err.Error(), `"valid"; it has train, val, test, extra`) {
		t.Errorf("valid: %v", err)
	}
	d.Splits = nil
	if _, err := d.Split("train"); err == nil || !strings.Contains(err.Error(), "it has none") {
		t.Errorf("no splits: %v", err)
	}
	if got, want := d.String(), "small: 5 nodes, 8 edges, 2 features, 3 classes; 140 B in memory"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := group(n); got != want {
			t.Errorf("group(%d) = %q", n, got)
		}
	}
	if err := d.Close(); err != nil {
		t.Errorf("Close of a dataset in memory returned %v", err)
	}
}

func TestGather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 50).Draw(t, "rows"), rapid.IntRange(0, 5000).Draw(t, "cols")
		m := &Matrix{Rows: rows, Cols: cols, F32: make([]float32, rows*cols)}
		for i := range m.F32 {
			m.F32[i] = float32(i)
		}
		ids := rapid.SliceOf(rapid.Int32Range(0, int32(rows-1))).Draw(t, "ids")
		got := make([]float32, len(ids)*cols)
		m.Gather(got, ids, rapid.IntRange(1, 3).Draw(t, "threads"))
		for i, v := range ids {
			if !slices.Equal(got[i*cols:(i+1)*cols], m.Row(int(v))) {
				t.Fatalf("row %d", i)
			}
		}
		n := rapid.IntRange(0, rows).Draw(t, "n")
		got = make([]float32, n*cols)
		m.Gather(got, nil, 2)
		if !slices.Equal(got, m.F32[:n*cols]) {
			t.Fatal("the first rows differ")
		}
	})
	m := &Matrix{Rows: 2, Cols: 2, F32: []float32{1, 2, 3, 4}}
	for name, gather := range map[string]func(){
		"too small":     func() { m.Gather(make([]float32, 3), []int32{0, 1}, 1) },
		"too large":     func() { m.Gather(make([]float32, 6), []int32{0, 1}, 1) },
		"too many rows": func() { m.Gather(make([]float32, 6), nil, 1) },
		"out of range":  func() { m.Gather(make([]float32, 2), []int32{2}, 1) },
		"half a row":    func() { m.Gather(make([]float32, 3), nil, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			gather()
		}()
	}
}
