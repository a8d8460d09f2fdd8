package sample

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/philox"
)

// refLabor is Labor's definition, with a sort.
func refLabor(seed uint64, step int, c3 uint32, nbrs []int32, k, kappa int) []int32 {
	kappa = max(1, kappa)
	number := func(u int32) uint64 {
		w, i := step/kappa, uint64(step%kappa)
		a, b := philox.NewStream(seed, int64(u), w*kappa, c3), philox.NewStream(seed, int64(u), (w+1)*kappa, c3)
		return (uint64(kappa)-i)*uint64(a.Next()) + i*uint64(b.Next())
	}
	all := make([]int32, len(nbrs))
	for i := range all {
		all[i] = int32(i)
	}
	slices.SortStableFunc(all, func(a, b int32) int {
		x, y := number(nbrs[a]), number(nbrs[b])
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return slices.Sorted(slices.Values(all[:k]))
}

func TestLaborIsItsDefinition(t *testing.T) {
	for _, kappa := range []int{0, 1, 2, 5, 64} {
		for step := range 12 {
			h := Hop{seed: 77, step: step, c3: philox.C3(philox.Sample, 1, 2), Index: 1}
			for _, n := range []int{1, 2, 3, 17, 300} {
				nbrs := make([]int32, n)
				for i := range nbrs {
					nbrs[i] = int32(i*i/3 + 5) // some twice
				}
				for _, k := range []int{0, 1, 2, 5, 100, 299, 300} {
					got := slices.Sorted(slices.Values(Labor{Fanouts{9, k}, kappa}.Pick(&h, 3, nbrs, nil)))
					want := refLabor(77, step, h.c3, nbrs, min(k, n), kappa)
					if !slices.Equal(got, want) {
						t.Fatalf("kappa %d, step %d, %d of %d: %v, want %v", kappa, step, k, n, got, want)
					}
				}
				if got := (Labor{Fanouts{9, -1}, kappa}.Pick(&h, 3, nbrs, nil)); len(got) != n {
					t.Errorf("all of %d neighbours are %v", n, got)
				}
			}
		}
	}
}

// laborGraph has nodes whose in-neighbours overlap much.
func laborGraph(t testing.TB) *graphops.Graph {
	t.Helper()
	var src, dst []int32
	for v := range int32(400) {
		for i := range int32(20) {
			src, dst = append(src, (v/40*40+i*7)%400), append(dst, v)
		}
	}
	g, err := graphops.FromEdges(400, src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// reached returns the nodes that the batches of some steps read.
func reached(t testing.TB, g *graphops.Graph, p Picker, steps int) []map[int32]bool {
	t.Helper()
	s, err := New(g, Config{Picker: p, Seed: 4, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	seeds := make([]int32, 100)
	for i := range seeds {
		seeds[i] = int32(4 * i)
	}
	all := make([]map[int32]bool, steps)
	for step := range steps {
		b, err := s.Sample(0, step, seeds)
		if err != nil {
			t.Fatal(err)
		}
		all[step] = map[int32]bool{}
		for _, v := range b.InputIDs() {
			all[step][v] = true
		}
		b.Release()
	}
	return all
}

// A node's picks are uniform at each step of a window: each neighbour is picked as often. Batches of LABOR reach fewer
// nodes than uniform ones, and the nodes that a batch reads for the first time are the fewer, the larger Kappa is.
func TestLaborDepends(t *testing.T) {
	const n, k, kappa, runs = 12, 3, 4, 20_000
	nbrs := make([]int32, n)
	for i := range nbrs {
		nbrs[i] = int32(10 * i)
	}
	for step := range 2 * kappa {
		var count [n]float64
		for seed := range uint64(runs) {
			h := Hop{seed: seed, step: step, c3: philox.C3(philox.Sample, 0, 0)}
			for _, at := range (Labor{Fanouts{k}, kappa}.Pick(&h, 0, nbrs, nil)) {
				count[at]++
			}
		}
		const mean = runs * k / n
		for at, c := range count {
			if dev := math.Sqrt(mean * (1 - k/float64(n))); math.Abs(c-mean) > 5*dev {
				t.Errorf("step %d: neighbour %d is picked %.0f times, want about %.0f", step, at, c, float64(mean))
			}
		}
	}
	g := laborGraph(t)
	size := func(all []map[int32]bool) (nodes, fresh int) {
		for i, b := range all {
			nodes += len(b)
			for v := range b {
				if i == 0 || !all[i-1][v] {
					fresh++
				}
			}
		}
		return nodes, fresh
	}
	uniform, _ := size(reached(t, g, Fanouts{4}, 64))
	before := math.MaxInt
	for _, kappa := range []int{1, 4, 16, 64} {
		nodes, fresh := size(reached(t, g, Labor{Fanouts{4}, kappa}, 64))
		if nodes >= uniform || fresh >= before {
			t.Errorf("kappa %d: %d nodes and %d anew, uniform %d nodes, a smaller kappa %d anew", kappa, nodes, fresh, uniform, before)
		}
		before = fresh
	}
}

// The shares of several workers, and samplers that ask the owners of edges, pick what one worker picks.
func TestLaborIsInvariant(t *testing.T) {
	g := laborGraph(t)
	c := Config{Picker: Labor{Fanouts{4, 3}, 6}, Seed: 9, Threads: 1}
	seeds := make([]int32, 90)
	for i := range seeds {
		seeds[i] = int32(4 * i)
	}
	digest := func(parts int, sampler func() func(step int, seeds []int32) (*Batch, error)) string {
		sum := NewDigest()
		draw := sampler()
		for step := range 14 {
			var all [][]byte
			for r := range parts {
				lo, hi := Share(len(seeds), r, parts)
				b, err := draw(step, seeds[lo:hi])
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, EncodePicks(b))
			}
			if err := sum.AddStep(seeds, all); err != nil {
				t.Fatal(err)
			}
		}
		return sum.Sum()
	}
	whole := func() func(int, []int32) (*Batch, error) {
		s, err := New(g, c)
		if err != nil {
			t.Fatal(err)
		}
		return func(step int, seeds []int32) (*Batch, error) { return s.Sample(2, step, seeds) }
	}
	asking := func() func(int, []int32) (*Batch, error) {
		a := NewAnswerer(RowsOf(g), AnswererOptions{Threads: 1, MaxEdges: 1 << 20})
		var r HopReply
		s, err := NewDivided(Division{Nodes: g.NumNodes(), Owners: 1, OwnerOf: []int{0}, Ask: func(q []HopRequest) ([]HopReply, error) {
			var sent HopRequest // over a network
			if err := sent.Decode(q[0].Append(nil)); err != nil {
				return nil, err
			}
			err := a.Answer(&sent, &r)
			return []HopReply{r}, err
		}}, c)
		if err != nil {
			t.Fatal(err)
		}
		return func(step int, seeds []int32) (*Batch, error) { return s.Sample(2, step, seeds) }
	}
	want := digest(1, whole)
	for name, got := range map[string]string{"3 shares": digest(3, whole), "asking": digest(1, asking), "asking for 2 shares": digest(2, asking)} {
		if got != want {
			t.Errorf("%s: digest %s, want %s", name, got, want)
		}
	}
}

func TestLaborRefuses(t *testing.T) {
	g := laborGraph(t)
	for _, l := range []Labor{{Fanouts{3}, -1}, {Fanouts{3}, MaxKappa + 1}, {Fanouts{-2}, 1}, {nil, 1}} {
		if _, err := New(g, Config{Picker: l}); err == nil {
			t.Errorf("%+v is taken", l)
		}
	}
	a := NewAnswerer(RowsOf(g), AnswererOptions{})
	for _, name := range []string{"labor", "labor/", "labor/-1", "labor/x", fmt.Sprintf("labor/%d", MaxKappa+1)} {
		if err := a.Answer(&HopRequest{Purpose: Training, Picker: name, Nodes: []int32{1}}, &HopReply{}); err == nil || !strings.Contains(err.Error(), "sample.Labor") {
			t.Errorf("a request of %q: %v", name, err)
		}
	}
}

func BenchmarkLabor(b *testing.B) {
	g := laborGraph(b)
	for name, p := range map[string]Picker{"uniform": Fanouts{10, 10}, "kappa 1": Labor{Fanouts{10, 10}, 1}, "kappa 16": Labor{Fanouts{10, 10}, 16}} {
		b.Run(name, func(b *testing.B) {
			s, err := New(g, Config{Picker: p, Threads: 1})
			if err != nil {
				b.Fatal(err)
			}
			step := 0
			for b.Loop() {
				batch, err := s.Sample(0, step, []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
				if err != nil {
					b.Fatal(err)
				}
				batch.Release()
				step++
			}
		})
	}
}
