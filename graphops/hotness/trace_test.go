package hotness

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func made(seed uint64, batches, size, nodes int) Trace {
	r := rand.New(rand.NewPCG(seed, 1))
	t := make(Trace, batches)
	for i := range t {
		for range r.IntN(size + 1) {
			t[i] = append(t[i], int32(float64(nodes)*r.Float64()*r.Float64()))
		}
		slices.Sort(t[i])
		t[i] = slices.Compact(t[i])
	}
	return t
}

func TestTraceByHand(t *testing.T) {
	trace := Trace{{1, 2, 3}, {1, 4}, {}, {2, 4}, {1}}
	for name, c := range map[string]struct{ got, want int64 }{
		"none":             {trace.Rows(), 8},
		"static":           {trace.Static([]int32{1, 9}), 5},
		"best":             {trace.Static(trace.Best(1)), 5},
		"windowed 0":       {trace.Windowed(0, nil), 8},
		"windowed 1":       {trace.Windowed(1, nil), 7},
		"windowed 2":       {trace.Windowed(2, nil), 6},
		"windowed 3":       {trace.Windowed(3, []int32{3}), 3},
		"LRU 0":            {trace.LRU(0, nil), 8},
		"LRU 2":            {trace.LRU(2, nil), 7}, // the only hit is row 4 in the fourth batch
		"LRU 2, warm":      {trace.LRU(2, []int32{1, 7}), 7 - 1},
		"oracle 0":         {trace.Belady(0, 0, nil, nil), 8},
		"oracle 1":         {trace.Belady(1, 0, nil, nil), 6},
		"oracle 2":         {trace.Belady(2, 0, nil, nil), 5},
		"oracle 2, warm":   {trace.Belady(2, 0, nil, []int32{1, 3, 2}), 3},
		"oracle 9":         {trace.Belady(9, 0, nil, nil), 4},
		"oracle 1, prior":  {Trace{{1, 2}, {}, {2}}.Belady(1, 1, []float32{0, 0, 9}, nil), 2},
		"no prior":         {Trace{{1, 2}, {}, {2}}.Belady(1, 1, nil, nil), 3},
		"oracle 1, 1 only": {trace.Belady(1, 1, nil, nil), 6},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d misses, want %d", name, c.got, c.want)
		}
	}
}

func TestMerge(t *testing.T) {
	a, b := Trace{{1, 3}, {}, {2}}, Trace{{2, 3}, {5}}
	for name, c := range map[string]struct{ got, want Trace }{
		"none":    {Merge(), nil},
		"one":     {Merge(a), a},
		"two":     {Merge(b, a), Trace{{1, 2, 3}, {5}, {2}}},
		"without": {a.Without(func(v int32) bool { return v == 3 }), Trace{{1}, {}, {2}}},
	} {
		if !slices.EqualFunc(c.got, c.want, slices.Equal[[]int32]) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if !slices.Equal(a[0], []int32{1, 3}) || !slices.Equal(b[0], []int32{2, 3}) {
		t.Errorf("Merge or Without changed its traces: %v, %v", a, b)
	}
}

// lru is the definition of LRU, with a list.
func lru(t Trace, n int) (misses int64) {
	var rows []int32 // ordered by last use, the most recent last
	for _, batch := range t {
		for _, v := range batch {
			if i := slices.Index(rows, v); i >= 0 {
				rows = slices.Delete(rows, i, i+1)
			} else {
				misses++
			}
			rows = append(rows, v)
			rows = rows[max(0, len(rows)-n):]
		}
	}
	return misses
}

// belady is the definition of Belady without a prior: it searches for the next use of each row.
func belady(t Trace, n, ahead int) (misses int64) {
	var rows []int32
	last := map[int32]int{}
	for i, batch := range t {
		for _, v := range batch {
			last[v] = i
			if !slices.Contains(rows, v) {
				misses++
				rows = append(rows, v)
			}
		}
		next := func(v int32) int {
			for k := i + 1; k < min(len(t), i+1+ahead); k++ {
				if slices.Contains(t[k], v) {
					return k
				}
			}
			return len(t)
		}
		slices.SortFunc(rows, func(a, b int32) int {
			if x, y := next(a), next(b); x != y {
				return x - y
			}
			if last[a] != last[b] {
				return last[b] - last[a]
			}
			return int(a) - int(b)
		})
		rows = rows[:min(n, len(rows))]
	}
	return misses
}

func TestTraceAgainstDefinitions(t *testing.T) {
	for seed := range uint64(30) {
		trace := made(seed, 20, 15, 40)
		for _, n := range []int{1, 3, 10, 39, 100} {
			if got, want := trace.LRU(n, nil), lru(trace, n); got != want {
				t.Fatalf("seed %d, %d rows: LRU misses %d, want %d", seed, n, got, want)
			}
			for _, ahead := range []int{1, 4, 100} {
				if got, want := trace.Belady(n, ahead, nil, nil), belady(trace, n, ahead); got != want {
					t.Fatalf("seed %d, %d rows, %d batches ahead: %d misses, want %d", seed, n, ahead, got, want)
				}
			}
			best := trace.Best(n)
			oracle := trace.Belady(n, 0, nil, best)
			if static := trace.Static(best); oracle > static || oracle > trace.LRU(n, best) || static > trace.Static(trace[0]) && len(trace[0]) <= n {
				t.Fatalf("seed %d, %d rows: the oracle misses %d, the best static cache %d, LRU %d", seed, n, oracle, static, trace.LRU(n, best))
			}
		}
	}
}
