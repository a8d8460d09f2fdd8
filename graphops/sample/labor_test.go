package sample

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/testneed"
)

// refNumber is a source's number by Labor's definition.
func refNumber(seed uint64, step int, c3 uint32, u int32, kappa int) uint32 {
	x := uint64(uint32(u)^uint32(seed)) * 0x9E3779B1 % (1 << 32)
	x = (x ^ x/(1<<15)) * 0x85EBCA77 % (1 << 32)
	phase := int(x * uint64(kappa) / (1 << 32))
	s := philox.NewStream(seed, int64(u), (step+phase)/kappa, c3)
	return s.Next()
}

// refLabor is Labor's definition, with a sort.
func refLabor(seed uint64, step, hop int, l Labor, nbrs []int32) []int32 {
	k, n := l.Fanouts[hop], len(nbrs)
	if l.LayerDependency {
		hop = 0
	}
	all, r := make([]int32, n), make([]uint32, n)
	for i, u := range nbrs {
		all[i], r[i] = int32(i), refNumber(seed, step, philox.C3(philox.Sample, hop, 2), u, max(1, l.BatchDependency))
	}
	switch {
	case k < 0 || k >= n:
		return all
	case l.Poisson:
		return slices.DeleteFunc(all, func(i int32) bool { // r/2^32 >= k/n
			return k == 0 || new(big.Int).Mul(big.NewInt(int64(r[i])), big.NewInt(int64(n))).Cmp(big.NewInt(int64(k)<<32)) >= 0
		})
	}
	slices.SortStableFunc(all, func(a, b int32) int { return cmp.Compare(r[a], r[b]) })
	return slices.Sorted(slices.Values(all[:k]))
}

func TestLaborIsItsDefinition(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		for _, l := range []Labor{
			{},
			{BatchDependency: 1, Poisson: true},
			{BatchDependency: 2},
			{BatchDependency: 5, LayerDependency: true},
			{BatchDependency: 64, Poisson: true},
			{BatchDependency: MaxBatchDependency},
			{LayerDependency: true, Poisson: true},
		} {
			for _, step := range []int{0, 1, 2, 3, 4, 7, 63, 64, 100, 1<<31 - 1} {
				h := Hop{seed: 77 << 30, step: step, c3: philox.C3(philox.Sample, 1, 2), Index: 1}
				for _, n := range []int{1, 2, 3, 17, 32, 300} {
					nbrs := make([]int32, n)
					for i := range nbrs {
						nbrs[i] = int32(i*i/3 + 5) // some twice
					}
					nbrs[n-1] = math.MaxInt32
					for _, k := range []int{-1, 0, 1, 2, 5, 16, 100, 299, 300} {
						l.Fanouts = Fanouts{9, k}
						if got, want := l.Pick(&h, 3, nbrs, nil), refLabor(h.seed, step, 1, l, nbrs); !slices.Equal(got, want) {
							t.Fatalf("%+v, step %d, %d of %d: %v, want %v", l, step, k, n, got, want)
						}
					}
				}
			}
		}
	})
}

// The k smallest of any draws are picked, also of many equal ones, and when so few are below the bound that all count.
func TestSmallest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 400).Draw(t, "n")
		k := rapid.IntRange(1, n-1).Draw(t, "k")
		most := rapid.SampledFrom([]uint32{0, 3, 1 << 20, math.MaxUint32}).Draw(t, "most")
		h := Hop{hopScratch: hopScratch{labor: laborScratch{draws: make([]uint32, n)}}}
		order := make([]int32, n)
		for i := range h.labor.draws {
			order[i], h.labor.draws[i] = int32(i), rapid.Uint32Range(0, most).Draw(t, "r")
			if rapid.Bool().Draw(t, "high") {
				h.labor.draws[i] = math.MaxUint32 - h.labor.draws[i]
			}
		}
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(h.labor.draws[a], h.labor.draws[b]) })
		if got, want := h.smallest(k, nil), slices.Sorted(slices.Values(order[:k])); !slices.Equal(got, want) {
			t.Fatalf("%d smallest of %v are %v, want %v", k, h.labor.draws, got, want)
		}
	})
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
		b, err := s.Sample(0, step, Seeds{IDs: seeds})
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

// A node's picks are uniform at each step: each neighbour is picked as often, and Poisson picks the fanout on average.
func TestLaborIsUniform(t *testing.T) {
	testneed.NotShort(t, "it draws 20,000 picks of each kind")
	const n, k, runs = 12, 3, 20_000
	nbrs := make([]int32, n)
	for i := range nbrs {
		nbrs[i] = int32(10 * i)
	}
	for _, l := range []Labor{{Fanouts: Fanouts{k}}, {Fanouts: Fanouts{k}, BatchDependency: 4}, {Fanouts: Fanouts{k}, BatchDependency: 4, Poisson: true}} {
		for _, step := range []int{0, 2, 5} {
			var count [n]float64
			for seed := range uint64(runs) {
				h := Hop{seed: seed, step: step, c3: philox.C3(philox.Sample, 0, 0)}
				for _, at := range l.Pick(&h, 0, nbrs, nil) {
					count[at]++
				}
			}
			const mean = runs * k / n
			for at, c := range count {
				if dev := math.Sqrt(mean * (1 - k/float64(n))); math.Abs(c-mean) > 5*dev {
					t.Errorf("%+v, step %d: neighbour %d is picked %.0f times, want about %.0f", l, step, at, c, float64(mean))
				}
			}
		}
	}
}

// Batches of LABOR reach fewer nodes than uniform ones, fewer still with the same numbers at all hops; and the nodes that
// a batch reads and the one before did not are the fewer, the larger BatchDependency is.
func TestLaborDepends(t *testing.T) {
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
	uniform, _ := size(reached(t, g, Fanouts{4, 4}, 64))
	for _, poisson := range []bool{false, true} {
		before, apart := math.MaxInt, 0
		for _, kappa := range []int{1, 4, 16, 64} {
			nodes, fresh := size(reached(t, g, Labor{Fanouts: Fanouts{4, 4}, BatchDependency: kappa, Poisson: poisson}, 64))
			if nodes >= uniform || fresh >= before {
				t.Errorf("BatchDependency %d, Poisson %v: %d nodes and %d anew, uniform %d nodes, a smaller dependency %d anew", kappa, poisson, nodes, fresh, uniform, before)
			}
			before = fresh
			if kappa == 1 {
				apart = nodes
			}
		}
		if nodes, _ := size(reached(t, g, Labor{Fanouts: Fanouts{4, 4}, LayerDependency: true, Poisson: poisson}, 64)); nodes >= apart {
			t.Errorf("LayerDependency, Poisson %v: %d nodes, without it %d", poisson, nodes, apart)
		}
	}
}

// About 1/κ of the sources draw anew at each step, whatever the distance of their ids, and all within κ steps.
func TestBatchDependency(t *testing.T) {
	const n, kappa = 4096, 8
	for _, stride := range []int32{1, 2, 64, 2584, 4181, 1 << 16} {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(i) * stride
		}
		draws := func(step int) []uint32 {
			h := Hop{seed: 5, step: step}
			Labor{BatchDependency: kappa}.draw(&h, ids)
			return h.labor.draws
		}
		changes := func(a, b []uint32) (count int) {
			for i := range a {
				if a[i] != b[i] {
					count++
				}
			}
			return count
		}
		for step := range 2 * kappa {
			if c := changes(draws(step), draws(step+1)); c < n/kappa*3/4 || c > n/kappa*5/4 {
				t.Errorf("stride %d, step %d: %d of %d sources draw anew, want about %d", stride, step+1, c, n, n/kappa)
			}
			if c := changes(draws(step), draws(step+kappa)); c != n {
				t.Errorf("stride %d: %d of %d numbers of step %d are new %d steps later, want all", stride, c, n, step, kappa)
			}
		}
	}
}

// The shares of several workers, and samplers that ask the owners of edges, pick what one worker picks.
func TestLaborIsInvariant(t *testing.T) {
	for _, l := range []Labor{{BatchDependency: 6}, {LayerDependency: true}, {BatchDependency: 3, Poisson: true}, {BatchDependency: 3, LayerDependency: true, Poisson: true}} {
		l.Fanouts = Fanouts{4, 3}
		t.Run(l.name(), func(t *testing.T) { laborIsInvariant(t, l) })
	}
}

func laborIsInvariant(t *testing.T, l Labor) {
	g := laborGraph(t)
	c := Config{Picker: l, Seed: 9, Threads: 2}
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
			if err := sum.AddStep(Seeds{IDs: seeds}, all); err != nil {
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
		return func(step int, seeds []int32) (*Batch, error) { return s.Sample(2, step, Seeds{IDs: seeds}) }
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
		return func(step int, seeds []int32) (*Batch, error) { return s.Sample(2, step, Seeds{IDs: seeds}) }
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
	for _, l := range []Labor{{Fanouts: Fanouts{3}, BatchDependency: -1}, {Fanouts: Fanouts{3}, BatchDependency: MaxBatchDependency + 1}, {Fanouts: Fanouts{-2}}, {}} {
		if _, err := New(g, Config{Picker: l}); err == nil {
			t.Errorf("%+v is taken", l)
		}
	}
	a := NewAnswerer(RowsOf(g), AnswererOptions{})
	for _, name := range []string{"labor", "labor/", "labor/-1", "labor/x", "labor/1/", "labor/01", "labor/1/hops", "labor/1/poisson/layers", "labor/1/layers/layers", fmt.Sprintf("labor/%d", MaxBatchDependency+1)} {
		if err := a.Answer(&HopRequest{Purpose: Training, Picker: name, Nodes: []int32{1}}, &HopReply{}); err == nil || !strings.Contains(err.Error(), "sample.Labor") {
			t.Errorf("a request of %q: %v", name, err)
		}
	}
}

func BenchmarkLabor(b *testing.B) {
	for _, degree := range []int{16, 50, 500} {
		nbrs := make([]int32, degree)
		for i := range nbrs {
			nbrs[i] = int32(977 * i)
		}
		for name, p := range map[string]Picker{
			"uniform": Fanouts{10}, "labor": Labor{Fanouts: Fanouts{10}}, "dependent": Labor{Fanouts: Fanouts{10}, BatchDependency: 16}, "poisson": Labor{Fanouts: Fanouts{10}, Poisson: true},
		} {
			b.Run(fmt.Sprintf("degree %d/%s", degree, name), func(b *testing.B) {
				var out []int32
				h := Hop{seed: 1, step: 3}
				for v := int32(0); b.Loop(); v++ {
					h.At(v)
					out = p.Pick(&h, v, nbrs, out[:0])
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(degree), "ns/in-edge")
			})
		}
	}
}

// Levels change no pick, also where they hold too few sources, and beyond the last level.
func TestLevels(t *testing.T) { onPaths(t, testLevels) }

func testLevels(t *testing.T) {
	testneed.NotShort(t, "it draws from large graphs on every path")
	const nodes = 40_000
	all := make([]int32, nodes)
	for i := range all {
		all[i] = int32(i)
	}
	for _, l := range []Labor{{}, {BatchDependency: 3, Poisson: true}, {BatchDependency: 5, LayerDependency: true}} {
		for step := range 4 {
			plain := Hop{seed: 4, step: step, Index: 1, c3: philox.C3(philox.Sample, 1, 0)}
			fast := plain
			fast.levels = &levels{}
			fast.levels.fill(nodes, l.words(&fast), 2)
			used := false
			for _, n := range []int{10, 100, 3000, nodes} {
				for _, k := range []int{0, 1, 2, 10, 2000} {
					for _, from := range []int{0, 1, nodes - n} {
						nbrs := all[min(from, nodes-n):][:n]
						l.Fanouts = Fanouts{0, k}
						if got, want := l.Pick(&fast, 0, nbrs, nil), l.Pick(&plain, 0, nbrs, nil); !slices.Equal(got, want) {
							t.Fatalf("%+v: %d of %d are %v, want %v", l, k, n, got, want)
						}
						if few, at := fast.below(max(1, k), nbrs); at != nil {
							used = used || len(few) < n/4
							for _, u := range nbrs {
								if r := refNumber(4, step, l.words(&fast)[3], u, max(1, l.BatchDependency)); float64(r) < float64(k)/float64(n)*(1<<32) && !slices.Contains(few, u) {
									t.Fatalf("%+v: %d of %d: source %d of number %d is left out", l, k, n, u, r)
								}
							}
						}
					}
				}
			}
			if !used {
				t.Error("no node used a level")
			}
		}
	}
	// Sources that do not exist are left to the checks of picked edges.
	h := Hop{levels: &levels{}}
	h.levels.fill(100, laborWords{}, 1)
	Labor{Fanouts: Fanouts{1}}.Pick(&h, 0, []int32{-1, math.MaxInt32, 200, 3, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14, -15, -16, -17, -18, -19, -20, -21, -22, -23, -24, -25, -26, -27, -28, -29, -30, -31, -32, -33, -34, -35, -36, -37, -38, -39, -40, -41}, nil)
}

// A sampler of a graph with many edges computes levels, and samples what it samples without them.
func TestSamplerUsesLevels(t *testing.T) {
	var src, dst []int32
	for v := range int32(300) {
		for u := range int32(300) {
			src, dst = append(src, u), append(dst, v)
		}
	}
	g, err := graphops.FromEdges(300, src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seeds := make([]int32, 300)
	for i := range seeds {
		seeds[i] = int32(i)
	}
	for _, l := range []Labor{{Fanouts: Fanouts{3, 2}}, {Fanouts: Fanouts{3, 2}, LayerDependency: true}} {
		s, err := New(g, Config{Picker: l, Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := New(g, Config{Picker: unknown{l}, Hops: 2})
		if err != nil {
			t.Fatal(err)
		}
		for step := range 3 {
			a, errA := s.Sample(0, step, Seeds{IDs: seeds})
			b, errB := plain.Sample(0, step, Seeds{IDs: seeds})
			if errA != nil || errB != nil || !slices.Equal(EncodePicks(a), EncodePicks(b)) {
				t.Fatalf("%v, %v, or other picks", errA, errB)
			}
			if s.x.h.levels == nil || plain.x.h.levels != nil {
				t.Fatal("the sampler of Labor has no levels, or the other one has")
			}
		}
	}
}

// unknown hides what a picker is.
type unknown struct{ Picker }
