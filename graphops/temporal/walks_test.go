package temporal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/expect"
)

// drawn returns events of a small graph: some at one time, some of a node with itself, and pauses.
func drawn(t *testing.T, seed uint64, nodes, events, step int) *Events {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	src, dst, time := make([]int32, events), make([]int32, events), make([]int64, events)
	now := int64(1_000_000_000)
	for i := range src {
		src[i], dst[i] = int32(r.IntN(nodes)), int32(r.IntN(nodes))
		now += int64(r.IntN(3)) / 2 * int64(1+r.IntN(step))
		time[i] = now
	}
	e, err := New(nodes, src, dst, time)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// walksFrom returns the row of u of A⁽ⁱ⁾(t), by its definition: all walks back in time whose events are before a time.
func walksFrom(e *Events, u int32, i int, before, t int64, decay float64) []float64 {
	row := make([]float64, e.Nodes)
	if i == 0 {
		row[u] = 1
		return row
	}
	for k := range e.Src {
		if e.Time[k] >= before || e.Src[k] != u && e.Dst[k] != u {
			continue
		}
		for v, x := range walksFrom(e, e.Other(int32(k), u), i-1, e.Time[k], t, decay) {
			row[v] += math.Exp(-decay*float64(t-e.Time[k])) * x
		}
	}
	return row
}

// featuresByDefinition are the features of a pair.
func featuresByDefinition(e *Events, u, v int32, t int64, hops int, decay float64) []float64 {
	var of [2][][]float64
	for k, x := range []int32{u, v} {
		for i := range hops + 1 {
			of[k] = append(of[k], walksFrom(e, x, i, math.MaxInt64, t, decay))
		}
	}
	var out []float64
	add := func(a, b []float64) {
		sum := 0.0
		for c, x := range a {
			sum += x * b[c]
		}
		out = append(out, math.Log1p(sum))
	}
	for _, p := range []struct{ a, b int }{{0, 0}, {0, 1}, {1, 1}} {
		for i := range hops + 1 {
			for j := range hops + 1 {
				if p.a != p.b || i <= j {
					add(of[p.a][i], of[p.b][j])
				}
			}
		}
	}
	return out
}

// asked returns the features of all pairs of nodes at a time.
func asked(t *testing.T, w *Walks, nodes int, at int64) []float32 {
	t.Helper()
	var src, cands, starts []int32
	var times []int64
	for u := range int32(nodes) {
		src, times, starts = append(src, u), append(times, at), append(starts, int32(len(cands)))
		for v := range int32(nodes) {
			cands = append(cands, v)
		}
	}
	out := make([]float32, len(cands)*w.Cols())
	if err := w.Features(out, src, times, append(starts, int32(len(cands))), cands); err != nil {
		t.Fatal(err)
	}
	return out
}

// With the matrices themselves, the features are those of the definition at any moment.
func TestWalksAreTheirDefinition(t *testing.T) {
	t.Parallel()
	const nodes, events = 6, 18
	for seed := range uint64(12) {
		for _, decay := range []float64{0, 0.01, 0.4, 30} {
			for _, hops := range []int{1, 3, 4} {
				e := drawn(t, seed, nodes, events, 10)
				w, err := NewWalks(e, WalkOptions{Exact: true, Decay: decay, Hops: hops})
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range []int{0, 1, 7, 8, 9, events} {
					h := e.Head(n)
					w.See(h)
					at := e.Time[max(n-1, 0)] + int64(seed%3)
					var want []float64
					for u := range int32(nodes) {
						for v := range int32(nodes) {
							want = append(want, featuresByDefinition(h, u, v, at, hops, decay)...)
						}
					}
					expect.Near(t, fmt.Sprintf("seed %d, decay %g, %d hops, %d events", seed, decay, hops, n), asked(t, w, nodes, at), want, 2e-6, 2e-6)
				}
			}
		}
	}
}

// The rows do not depend on the steps in which the events are seen, on what was seen and forgotten, or on the number of threads.
func TestWalksAreFunctionsOfTheStream(t *testing.T) {
	t.Parallel()
	const nodes, events = 100, 20_000
	e := drawn(t, 3, nodes, events, 20)
	o := WalkOptions{Dim: 200, Decay: 0.02, Seed: 5, Threads: 1}
	at := e.Time[events-1]
	var first []float32
	for _, run := range []struct{ threads, step int }{{1, events}, {2, events}, {3, 1000}, {1, 1}, {2, 5000}} {
		o.Threads = run.threads
		w, err := NewWalks(e, o)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < events; n += run.step {
			w.See(e.Head(n))
		}
		w.See(e)
		if first == nil {
			first = asked(t, w, nodes, at)
		}
		expect.SameBits(t, fmt.Sprintf("%+v", run), first, asked(t, w, nodes, at))
		w.See(e.Head(777))
		w.See(e)
		expect.SameBits(t, "after a step back", first, asked(t, w, nodes, at))
	}
	o.Seed++
	w, err := NewWalks(e, o)
	if err != nil {
		t.Fatal(err)
	}
	w.See(e)
	if slices.Equal(asked(t, w, nodes, at), first) {
		t.Error("another seed gives the same projection")
	}
}

// Thousands of events of one time are taken in in steps of any size, with the bits of one step, and with pauses before that fade rows. A
// step reads its own events alone: what is known of other nodes of that time stays.
func TestWalksOfManyEventsAtOneTime(t *testing.T) {
	t.Parallel()
	const nodes, events = 60, 3000
	r := rand.New(rand.NewPCG(4, 2))
	src, dst, time := make([]int32, events), make([]int32, events), make([]int64, events)
	for i := range src {
		src[i], dst[i], time[i] = int32(r.IntN(nodes)), int32(r.IntN(nodes)), int64(i/700)*int64(1+i/1400*100)
	}
	e, err := New(nodes, src, dst, time)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []WalkOptions{{Dim: 40, Decay: 0.3}, {Dim: 40, Hops: 2}, {Dim: 40, Hops: 1, Decay: 2}, {Exact: true, Hops: 4, Decay: 0.05}} {
		var first []float32
		for _, step := range []int{events, 1, 7, 200, 699} {
			w, err := NewWalks(e, o)
			if err != nil {
				t.Fatal(err)
			}
			for n := 0; n < 2500; n += step { // within the events of a time
				w.See(e.Head(n))
				if n == step {
					asked(t, w, nodes, e.Time[n-1])
				}
			}
			w.See(e.Head(2500))
			got := asked(t, w, nodes, e.Time[2499])
			w.See(e)
			got = append(got, asked(t, w, nodes, e.Time[events-1])...)
			if first == nil {
				first = got
			}
			expect.SameBits(t, fmt.Sprintf("%+v, steps of %d", o, step), first, got)
		}
	}
	w, err := NewWalks(e, WalkOptions{Dim: 40})
	if err != nil {
		t.Fatal(err)
	}
	w.See(e.Head(650))
	asked(t, w, nodes, 0)
	w.See(e.Head(651))
	for v := range int32(nodes) {
		if w.known[v] == (v == src[650] || v == dst[650]) {
			t.Errorf("after one more event, of %d and %d, what is known of node %d is %v", src[650], dst[650], v, w.known[v])
		}
	}
}

// Over centuries with millions of half-lives, nothing overflows or vanishes: the features are those of the last events alone.
func TestWalksOverLongSpans(t *testing.T) {
	t.Parallel()
	const nodes, events = 5, 4000
	for _, decay := range []float64{1e-9, 1e-3, 1} {
		e := drawn(t, 8, nodes, events, 10_000_000)
		w, err := NewWalks(e, WalkOptions{Exact: true, Decay: decay, Hops: 2})
		if err != nil {
			t.Fatal(err)
		}
		w.See(e)
		// The same, in float64, with one product for each event.
		var a [3][nodes][nodes]float64
		for u := range nodes {
			a[0][u][u] = 1
		}
		for lo := 0; lo < events; {
			hi := lo + 1
			for hi < events && e.Time[hi] == e.Time[lo] {
				hi++
			}
			was := a
			for k := lo; k < hi; k++ {
				for i := 1; i < 3; i++ {
					for c := range nodes {
						u, v := e.Src[k], e.Dst[k]
						a[i][u][c] += was[i-1][v][c]
						if u != v {
							a[i][v][c] += was[i-1][u][c]
						}
					}
				}
			}
			if hi < events {
				for i := 1; i < 3; i++ {
					for u := range nodes {
						for c := range nodes {
							a[i][u][c] *= math.Exp(-float64(i) * decay * float64(e.Time[hi]-e.Time[lo]))
						}
					}
				}
			}
			lo = hi
		}
		got := asked(t, w, nodes, e.Time[events-1])
		cols := w.Cols()
		for u := range nodes {
			for v := range nodes {
				want := 0.0
				for c := range nodes {
					want += a[2][u][c] * a[2][v][c]
				}
				if x := float64(got[(u*nodes+v)*cols+6+8]); math.Abs(x-math.Log1p(want)) > 1e-4*(1+math.Log1p(want)) {
					t.Errorf("decay %g: the product of %d and %d is %v, want %v", decay, u, v, x, math.Log1p(want))
				}
			}
		}
	}
}

// Projected inner products are right on average, and within their spread each.
func TestWalksProject(t *testing.T) {
	t.Parallel()
	const nodes, dim = 400, 128
	e := drawn(t, 2, nodes, 3000, 5)
	exact, err := NewWalks(e, WalkOptions{Exact: true, Hops: 2})
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWalks(e, WalkOptions{Dim: dim, Hops: 2, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	exact.See(e)
	w.See(e)
	row := func(w *Walks, hop, u int) []float32 { return w.h[hop][u*w.o.Dim : (u+1)*w.o.Dim] }
	dot := func(a, b []float32) (sum float64) {
		for i, x := range a {
			sum += float64(x) * float64(b[i])
		}
		return sum
	}
	mean, far, n := 0.0, 0, 0
	for u := range nodes {
		for v := range u {
			a, b := row(exact, 1, u), row(exact, 2, v)
			scale := math.Sqrt(dot(a, a) * dot(b, b))
			if scale == 0 {
				continue
			}
			off := (dot(row(w, 1, u), row(w, 2, v)) - dot(a, b)) / scale * math.Sqrt(dim)
			mean += off
			if math.Abs(off) > 3 {
				far++
			}
			n++
		}
	}
	if mean /= float64(n); math.Abs(mean) > 0.1 || far > n/100 {
		t.Errorf("of %d products, the mean error is %.3f standard deviations, and %d errors exceed 3", n, mean, far)
	}
}

// What does not fit is an error that says so, and asking about the past is one of them.
func TestWalksRefuse(t *testing.T) {
	t.Parallel()
	e := drawn(t, 1, 5, 20, 4)
	for want, o := range map[string]WalkOptions{
		"Hops is 1 to 4":         {Hops: 5},
		"Dim is a number":        {Dim: -1},
		"Decay is 0 or a":        {Decay: math.NaN()},
		"for each of the 5 node": {Exact: true, Dim: 7},
	} {
		if _, err := NewWalks(e, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	if _, err := NewWalks(e, WalkOptions{Dim: 1 << 50}); err == nil || !strings.Contains(err.Error(), "give a smaller Dim") {
		t.Errorf("rows of 2⁵⁰ columns: %v", err)
	}
	w, err := NewWalks(e, WalkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.See(e)
	now := e.Time[19]
	for want, ask := range map[string]func() error{
		"ask before they see it": func() error {
			return w.Features(make([]float32, 36), []int32{1}, []int64{now - 1}, []int32{0, 1}, []int32{2})
		},
		"a candidate is no node": func() error {
			return w.Features(make([]float32, 36), []int32{1}, []int64{now}, []int32{0, 1}, []int32{5})
		},
		"source 0 is node -1": func() error {
			return w.Features(make([]float32, 36), []int32{-1}, []int64{now}, []int32{0, 1}, []int32{2})
		},
		"give 36 for each": func() error {
			return w.Features(make([]float32, 35), []int32{1}, []int64{now}, []int32{0, 1}, []int32{2})
		},
		"one start more": func() error { return w.Features(nil, []int32{1}, []int64{now}, []int32{0}, nil) },
		"ascend within them": func() error {
			return w.Features(make([]float32, 36), []int32{1}, []int64{now}, []int32{0, 2}, []int32{2})
		},
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The features of a batch of evaluation: 200 sources with 1,000 candidates each.
func BenchmarkWalkFeatures(b *testing.B) {
	const nodes, questions, each = 1900, 200, 1000
	r := rand.New(rand.NewPCG(1, 1))
	src, dst, time := make([]int32, 60_000), make([]int32, 60_000), make([]int64, 60_000)
	for i := range src {
		src[i], dst[i], time[i] = int32(r.IntN(nodes)), int32(r.IntN(nodes)), int64(i)
	}
	e, err := New(nodes, src, dst, time)
	if err != nil {
		b.Fatal(err)
	}
	w, err := NewWalks(e, WalkOptions{Decay: 1e-4})
	if err != nil {
		b.Fatal(err)
	}
	w.See(e)
	var ask struct {
		src, starts, cands []int32
		times              []int64
	}
	for range questions {
		ask.src, ask.times, ask.starts = append(ask.src, int32(r.IntN(nodes))), append(ask.times, 60_000), append(ask.starts, int32(len(ask.cands)))
		for range each {
			ask.cands = append(ask.cands, int32(r.IntN(nodes)))
		}
	}
	ask.starts = append(ask.starts, int32(len(ask.cands)))
	out := make([]float32, len(ask.cands)*w.Cols())
	for b.Loop() {
		if err := w.Features(out, ask.src, ask.times, ask.starts, ask.cands); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/questions/each, "ns/pair")
}

// The walks of a stream of 60,000 events.
func BenchmarkWalksSee(b *testing.B) {
	const nodes, events = 1900, 60_000
	r := rand.New(rand.NewPCG(1, 1))
	src, dst, time := make([]int32, events), make([]int32, events), make([]int64, events)
	for i := range src {
		src[i], dst[i], time[i] = int32(r.IntN(nodes)), int32(r.IntN(nodes)), int64(i)
	}
	e, err := New(nodes, src, dst, time)
	if err != nil {
		b.Fatal(err)
	}
	w, err := NewWalks(e, WalkOptions{Decay: 1e-4})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		w.Reset()
		w.See(e)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
}
