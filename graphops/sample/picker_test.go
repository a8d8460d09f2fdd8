package sample_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
)

type pickFunc func(h *sample.Hop, v int32, nbrs, out []int32) []int32

func (f pickFunc) Pick(h *sample.Hop, v int32, nbrs []int32, out []int32) []int32 {
	return f(h, v, nbrs, out)
}

type frontierFunc func(h *sample.Hop, g *graphops.Graph, dst []int32, pick func(int, []int32)) error

func (f frontierFunc) PickFrontier(h *sample.Hop, g *graphops.Graph, dst []int32, pick func(int, []int32)) error {
	return f(h, g, dst, pick)
}

// four is a picker as a user might write it.
type four struct{ Fan []int }

func (s four) Pick(h *sample.Hop, _ int32, nbrs []int32, out []int32) []int32 {
	return h.Uniform(len(nbrs), s.Fan[h.Index], out)
}

// The built-in picker uses a faster path than a user's picker with the same rule; both give the
// same bits.
func TestOwnUniformPickerIsFanouts(t *testing.T) {
	g := random(400, 20, 2)
	for threads := 1; threads <= 3; threads++ {
		s := newSampler(t, g, sample.Config{Picker: four{[]int{60, 5}}, Hops: 2, Seed: 9, Threads: threads})
		for step := range 3 {
			b := mustSample(t, s, 4, step, all(400)[step:])
			checkEqual(t, b, refSample(g, 9, philox.Sample, 4, step, []int{60, 5}, all(400)[step:]))
		}
	}
}

// A picker may return positions in any order, with repeats, none at all, or in its own slice.
func TestOwnPicksAreSortedAndCopied(t *testing.T) {
	g := build(4, edge{0, 3}, edge{1, 3}, edge{2, 3}, edge{0, 1}, edge{1, 2}, edge{2, 2})
	mine := []int32{2, 0, 2}
	s := newSampler(t, g, sample.Config{Hops: 1, Picker: pickFunc(func(h *sample.Hop, v int32, nbrs, out []int32) []int32 {
		switch v {
		case 0:
			t.Error("the picker was called for a node without in-edges")
		case 1:
			return nil
		case 2:
			if h.Position(0) != g.Indptr[2] || !slices.Equal(nbrs, []int32{1, 2}) || h.Epoch() != 8 || h.Step() != 9 {
				t.Errorf("node 2: EdgePos %d, nbrs %v, epoch %d, step %d", h.Position(0), nbrs, h.Epoch(), h.Step())
			}
			return append(out, 1)
		}
		return mine
	})})
	for range 2 {
		k := mustSample(t, s, 8, 9, []int32{3, 0, 1, 2}).Blocks[0]
		at := g.Indptr[3]
		if want := []int64{at, at + 2, at + 2, g.Indptr[2] + 1}; !slices.Equal(k.EdgePos(), want) || !slices.Equal(k.Indptr(), []int64{0, 3, 3, 3, 4}) {
			t.Errorf("edges %v at %v, want %v", k.EdgePos(), k.Indptr(), want)
		}
		if !slices.Equal(k.Indices(), []int32{1, 3, 3, 3}) {
			t.Errorf("source rows %v", k.Indices())
		}
	}
	if !slices.Equal(mine, []int32{2, 0, 2}) {
		t.Errorf("sampling changed the picker's own slice to %v", mine)
	}
}

// With replacement, a node can have more picks than in-neighbours, and more than any buffer holds.
func TestManyPicks(t *testing.T) {
	g := build(2, edge{0, 1}, edge{1, 1})
	const k = 100_000
	s := newSampler(t, g, sample.Config{Hops: 1, Seed: 1, Picker: pickFunc(func(h *sample.Hop, _ int32, nbrs, out []int32) []int32 {
		for range k {
			out = append(out, int32(h.Bounded(len(nbrs))))
		}
		return out
	})})
	b := mustSample(t, s, 0, 0, []int32{1})
	ones := 0
	for _, p := range b.Blocks[0].EdgePos() {
		ones += int(p)
	}
	// 100,000 fair coins have a standard deviation of 158; the bound is 5 of them.
	if b.Edges() != k || ones < k/2-790 || ones > k/2+790 {
		t.Errorf("%d edges, %d of them the second one", b.Edges(), ones)
	}
}

// Draws of a source are the same for every destination, as layer-neighbour sampling needs.
func TestDrawsOfTheSource(t *testing.T) {
	g := random(300, 10, 8)
	s := newSampler(t, g, sample.Config{Hops: 1, Seed: 5, Threads: 3, Picker: pickFunc(func(h *sample.Hop, _ int32, nbrs, out []int32) []int32 {
		for i, u := range nbrs {
			if h.At(u); h.Float32() < 0.5 {
				out = append(out, int32(i))
			}
		}
		return out
	})})
	k := mustSample(t, s, 0, 0, all(300)).Blocks[0]
	kept := map[int32]bool{}
	for _, r := range k.Indices() {
		kept[k.SrcIDs()[r]] = true
	}
	want := 0
	for _, u := range g.Indices {
		if kept[u] {
			want++
		}
	}
	if k.NumEdges() != want || len(kept) < 100 || len(kept) > 200 {
		t.Errorf("%d sources kept %d of their %d edges", len(kept), k.NumEdges(), want)
	}
}

func TestPickersErrors(t *testing.T) {
	g := build(600, func() (list []edge) {
		for v := range int32(599) {
			list = append(list, edge{v, v + 1}, edge{v, v + 1})
		}
		return list
	}()...)
	var index []int
	cases := []struct {
		name  string
		pick  pickFunc
		want  string
		stack bool
	}{
		{"too large", func(_ *sample.Hop, v int32, _, out []int32) []int32 {
			if v >= 130 {
				return append(out, 0, 2)
			}
			return out
		}, "sample: sample_test.pickFunc, picking for node 130 at hop 1, returned position 2 as pick 1 of 2, but the node has 2 in-neighbours: positions are 0 to 1", false},
		{"negative", func(_ *sample.Hop, v int32, _, out []int32) []int32 {
			return append(out, -1)
		}, "returned position -1 as pick 0 of 1", false},
		{"index", func(h *sample.Hop, v int32, _, out []int32) []int32 {
			if v >= 131 {
				out[h.Index] = int32(index[v])
			}
			return out
		}, "picking for node 131 at hop 1, panicked at ", true},
		{"value", func(*sample.Hop, int32, []int32, []int32) []int32 { panic("no weights") }, "no weights", true},
		{"error", func(*sample.Hop, int32, []int32, []int32) []int32 { panic(io.ErrUnexpectedEOF) }, io.ErrUnexpectedEOF.Error(), true},
		{"too many draws", func(h *sample.Hop, _ int32, _, out []int32) []int32 {
			for range philox.MaxDraws + 1 {
				h.Next()
			}
			return out
		}, "more than 2^18 draws", true},
	}
	for _, c := range cases {
		for threads := 1; threads <= 3; threads++ {
			calm := true
			s := newSampler(t, g, sample.Config{Hops: 2, Threads: threads, Picker: pickFunc(func(h *sample.Hop, v int32, nbrs, out []int32) []int32 {
				if h.Index == 0 || calm {
					return append(out, 1)
				}
				return c.pick(h, v, nbrs, out)
			})})
			want := mustSample(t, s, 0, 0, all(600)).Blocks[0].EdgePos()
			calm = false
			_, err := s.Sample(0, 0, sample.Seeds{IDs: all(600)})
			var pe *sample.PickError
			if !errors.As(err, &pe) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%s: error %v, want one with %q", c.name, err, c.want)
			}
			if pe.Hop != 1 || pe.Picker != "sample_test.pickFunc" || (pe.Stack != nil) != c.stack {
				t.Errorf("%s: hop %d, picker %s, stack of %d bytes", c.name, pe.Hop, pe.Picker, len(pe.Stack))
			}
			if c.stack && (!strings.Contains(string(pe.Stack), "picker_test.go") || !strings.Contains(err.Error(), "picker_test.go:")) {
				t.Errorf("%s: the position of the panic is missing: %v\n%s", c.name, err, pe.Stack)
			}
			if c.name == "error" && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v does not wrap the panic's error", err)
			}
			calm = true
			if got := mustSample(t, s, 0, 0, all(600)).Blocks[0].EdgePos(); !slices.Equal(got, want) {
				t.Errorf("%s: after the error the sampler picks %v", c.name, got)
			}
		}
	}
}

// A pick that panics midway leaves no bits behind in the buffers of the next pick.
func TestAfterAPanicInUniform(t *testing.T) {
	const degree = philox.MaxDraws + 5000
	g := &graphops.Graph{Indptr: []int64{0, degree}, Indices: make([]int32, degree)}
	k := philox.MaxDraws + 1
	s := newSampler(t, g, sample.Config{Hops: 1, Seed: 1, Picker: pickFunc(func(h *sample.Hop, _ int32, nbrs, out []int32) []int32 {
		return h.Uniform(len(nbrs), k, out)
	})})
	if _, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{0}}); err == nil || !strings.Contains(err.Error(), "2^18 draws") {
		t.Errorf("a picker with too many draws gave %v", err)
	}
	k = 1000
	checkEqual(t, mustSample(t, s, 0, 0, []int32{0}), refSample(g, 1, philox.Sample, 0, 0, []int{k}, []int32{0}))
}

type fault struct{ error }

func (fault) Addr() uintptr { return 1 << 20 }

// A fault in a mapped file while a picker reads its neighbours is not reported as an error of the
// picker: it reaches the code that owns the mapping.
func TestFaultsPassThrough(t *testing.T) {
	g := random(1000, 5, 1)
	for threads := 1; threads <= 3; threads++ {
		s := newSampler(t, g, sample.Config{Hops: 1, Threads: threads, Picker: pickFunc(func(_ *sample.Hop, _ int32, nbrs, _ []int32) []int32 {
			panic(fault{fmt.Errorf("unexpected fault address")})
		})})
		func() {
			defer func() {
				err, _ := recover().(error)
				var f fault
				if !errors.As(err, &f) {
					t.Errorf("threads %d: recovered %v, want the fault of the mapping", threads, err)
				}
			}()
			_, err := s.Sample(0, 0, sample.Seeds{IDs: all(1000)})
			t.Errorf("threads %d: Sample returned %v", threads, err)
		}()
	}
}

func TestConcurrentUseIsAnError(t *testing.T) {
	g := build(2, edge{0, 1})
	var s *sample.Sampler
	var inner atomic.Value
	s = newSampler(t, g, sample.Config{Hops: 1, Picker: pickFunc(func(_ *sample.Hop, _ int32, _, out []int32) []int32 {
		_, err := s.Sample(0, 0, sample.Seeds{})
		inner.Store(err)
		return out
	})})
	mustSample(t, s, 0, 0, []int32{1})
	if err, _ := inner.Load().(error); err == nil || !strings.Contains(err.Error(), "two goroutines") {
		t.Errorf("a second Sample during the first returned %v", err)
	}
}

// ladies picks K sources for the whole frontier, each with a probability proportional to the number
// of the frontier's in-edges that it has, and keeps all edges from these sources: LADIES with
// uniform edge weights.
type ladies struct{ K []int }

func (l ladies) Hops() int { return len(l.K) }

func (l ladies) PickFrontier(h *sample.Hop, g *graphops.Graph, dst []int32, pick func(int, []int32)) error {
	var sources []int32
	weight := map[int32]int{}
	for _, v := range dst {
		for _, u := range g.InNeighbors(v) {
			if weight[u] == 0 {
				sources = append(sources, u)
			}
			weight[u]++
		}
	}
	chosen := map[int32]bool{}
	for range min(l.K[h.Index], len(sources)) {
		total := 0
		for _, u := range sources {
			if !chosen[u] {
				total += weight[u]
			}
		}
		at := h.Bounded(total)
		for _, u := range sources {
			if chosen[u] {
				continue
			}
			if at -= weight[u]; at < 0 {
				chosen[u] = true
				break
			}
		}
	}
	var positions []int32
	for i, v := range dst {
		positions = positions[:0]
		for p, u := range g.InNeighbors(v) {
			if chosen[u] {
				positions = append(positions, int32(p))
			}
		}
		if i%2 == 0 || len(positions) > 0 { // not calling Pick means no picks
			pick(i, positions)
		}
	}
	return nil
}

func TestFrontierPicker(t *testing.T) {
	g := random(500, 8, 12)
	s := newSampler(t, g, sample.Config{Frontier: ladies{[]int{20, 30}}, Seed: 3})
	seeds := all(500)[100:260]
	for step := range 3 {
		b := mustSample(t, s, 0, step, seeds)
		if again := mustSample(t, s, 0, step, seeds); !slices.Equal(again.Blocks[0].EdgePos(), b.Blocks[0].EdgePos()) {
			t.Fatal("sampling the same batch again gave other picks")
		}
		dst := seeds
		for hop, k := range []int{20, 30} {
			block := b.Blocks[1-hop]
			if block.NumDst != len(dst) || !slices.Equal(block.SrcIDs()[:block.NumDst], dst) {
				t.Fatalf("hop %d: the destinations are not the frontier", hop)
			}
			chosen := map[int32]bool{}
			for _, r := range block.Indices() {
				chosen[block.SrcIDs()[r]] = true
			}
			if len(chosen) != k {
				t.Fatalf("hop %d: %d sources, want %d", hop, len(chosen), k)
			}
			for d, v := range dst { // all edges from the chosen sources, and no others
				var want []int64
				for p, u := range g.InNeighbors(v) {
					if chosen[u] {
						want = append(want, g.Indptr[v]+int64(p))
					}
				}
				if got := block.EdgePos()[block.Indptr()[d]:block.Indptr()[d+1]]; !slices.Equal(got, want) {
					t.Fatalf("hop %d, node %d: edges %v, want %v", hop, v, got, want)
				}
			}
			dst = block.SrcIDs()
		}
	}
}

func TestFrontierPickersErrors(t *testing.T) {
	g := build(3, edge{0, 1}, edge{2, 1})
	type pick = func(int, []int32)
	cases := []struct {
		name string
		f    func(pick) error
		want string
	}{
		{"error", func(pick) error { return io.ErrUnexpectedEOF }, "sample: sample_test.frontierFunc at hop 0 failed: unexpected EOF"},
		{"panic", func(pick) error { panic("no weights") }, "panicked at "},
		{"no such destination", func(p pick) error { p(2, nil); return nil }, "picked for destination 2, but there are 2"},
		{"negative destination", func(p pick) error { p(-1, nil); return nil }, "picked for destination -1"},
		{"twice", func(p pick) error { p(0, nil); p(0, []int32{1}); return nil }, "picking for node 1 at hop 0, picked twice"},
		{"position", func(p pick) error { p(0, []int32{0, 2}); p(7, nil); return nil }, "picking for node 1 at hop 0, returned position 2 as pick 1 of 2"},
		{"position of an isolated node", func(p pick) error { p(1, []int32{0}); return nil }, "picking for node 0 at hop 0, returned position 0"},
		{"position, then a panic", func(p pick) error { p(1, []int32{0}); panic("x") }, "returned position 0"},
	}
	for _, c := range cases {
		s := newSampler(t, g, sample.Config{Hops: 1, Frontier: frontierFunc(func(_ *sample.Hop, _ *graphops.Graph, _ []int32, p func(int, []int32)) error {
			return c.f(p)
		})})
		_, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{1, 0}})
		var pe *sample.PickError
		if !errors.As(err, &pe) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
		if c.name == "error" && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v does not wrap the picker's error", err)
		}
	}
}
