package sample_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/testneed"
)

// refKnown is when an edge is known, from its own time and those of its ends.
func refKnown(g *graphops.Graph, nodes []int64, v int32, e int64) int64 {
	t := int64(math.MinInt64)
	if g.EdgeTimes != nil {
		t = g.EdgeTimes[e]
	}
	if nodes != nil {
		t = max(t, nodes[v], nodes[g.Indices[e]])
	}
	return t
}

// refAsOf is the tree of a seed with a time, by the rules of [sample.AsOf] in the simplest code: the picked CSC positions of
// each node and the number of edges that are hidden from it, by hop. by are fanouts of relations.
func refAsOf(g *graphops.Graph, a sample.AsOf, key uint64, epoch, step int, fanouts sample.Fanouts, by map[int]sample.Fanouts, seed int32, time int64) (hops []map[int32][]int64, hidden int64, latest int64) {
	words := philox.Block(key, [4]uint32{uint32(seed), uint32(time), uint32(uint64(time) >> 32), philox.C3(philox.Trees, 0, 0)})
	own := uint64(words[0]) | uint64(words[1])<<32
	reached := map[int32]bool{seed: true}
	latest = math.MinInt64
	for hop := range fanouts {
		picks, next := map[int32][]int64{}, map[int32]bool{}
		for v := range reached {
			next[v] = true
			draws := philox.NewStream(own, int64(v), step, philox.C3(philox.Sample, hop, epoch))
			seen := map[int][]int64{} // by relation
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				t := refKnown(g, a.NodeTimes, v, e)
				if t > time || a.Strict && t == time || a.Window > 0 && time-t > a.Window {
					hidden++
					continue
				}
				r := 0
				if by != nil {
					r = int(g.EdgeTypes[e])
				}
				seen[r] = append(seen[r], e)
			}
			relations := make([]int, 0, len(seen))
			for r := range seen {
				relations = append(relations, r)
			}
			slices.Sort(relations)
			picks[v] = nil
			for _, r := range relations {
				edges, k := seen[r], fanouts[hop]
				if of, ok := by[r]; ok {
					k = of[hop]
				}
				slices.SortStableFunc(edges, func(x, y int64) int {
					return cmp.Compare(refKnown(g, a.NodeTimes, v, x), refKnown(g, a.NodeTimes, v, y))
				})
				switch n := len(edges); {
				case k < 0 || k >= n:
				case a.Strategy == sample.TakeRecent:
					edges = edges[n-k:]
				case a.Strategy == sample.TakeByAge:
					edges = refByAge(g, a, v, edges, k, &draws)
				default:
					chosen := map[int]bool{}
					for j := n - k; j < n; j++ {
						t := int(uint64(draws.Next()) * uint64(j+1) >> 32)
						if chosen[t] {
							t = j
						}
						chosen[t] = true
					}
					var some []int64
					for i, e := range edges {
						if chosen[i] {
							some = append(some, e)
						}
					}
					edges = some
				}
				picks[v] = append(picks[v], edges...)
			}
			slices.Sort(picks[v])
			for _, e := range picks[v] {
				next[g.Indices[e]] = true
				latest = max(latest, refKnown(g, a.NodeTimes, v, e))
			}
		}
		hops = append(hops, picks)
		reached = next
	}
	return hops, hidden, latest
}

func refByAge(g *graphops.Graph, a sample.AsOf, v int32, edges []int64, k int, draws *philox.Stream) (picks []int64) {
	n := len(edges)
	last := refKnown(g, a.NodeTimes, v, edges[n-1])
	age := func(e int64) int64 { return last - refKnown(g, a.NodeTimes, v, e) }
	var left []int64
	for _, e := range edges {
		if age(e)/a.HalfLife <= 30 {
			left = append(left, e)
		}
	}
	if len(left) <= k {
		return edges[n-k:]
	}
	for len(picks) < k {
		count, sum := [31]uint64{}, uint64(0)
		for _, e := range left {
			count[age(e)/a.HalfLife]++
			sum += 1 << (30 - age(e)/a.HalfLife)
		}
		u := uint64(draws.Next()) << 32
		r, _ := bits.Mul64(u|uint64(draws.Next()), sum)
		h := 0
		for ; r >= count[h]<<(30-h); h++ {
			r -= count[h] << (30 - h)
		}
		at := int(uint64(draws.Next()) * count[h] >> 32)
		for i, e := range left {
			if age(e)/a.HalfLife != int64(h) {
				continue
			}
			if at == 0 {
				part := age(e) % a.HalfLife * 1024 / a.HalfLife
				if float64(draws.Next()) < math.Floor(math.Exp2(32-float64(part)/1024)) {
					picks, left = append(picks, e), slices.Delete(left, i, i+1)
				}
				break
			}
			at--
		}
	}
	return picks
}

// timedCase is a graph with times, and how seeds see it.
type timedCase struct {
	g       *graphops.Graph
	asOf    sample.AsOf
	by      map[int]sample.Fanouts
	fanouts sample.Fanouts
	seeds   sample.Seeds
}

// drawCase makes a graph and options. It is one of those that have all.
func drawCase(seed uint64) (c timedCase) {
	r := rand.New(rand.NewPCG(seed, 46))
	nodes := 1 + r.IntN(150)
	g := random(nodes, 1+r.IntN(12), seed)
	n := len(g.Indices)
	spread := int64(1 + r.IntN(60)) // few times: many are equal
	var data graphops.EdgeData
	data.Times = make([]int64, n)
	for e := range n {
		data.Times[e] = r.Int64N(spread) - spread/3
	}
	if r.IntN(3) == 0 { // in order already
		for v := range nodes {
			slices.Sort(data.Times[g.Indptr[v]:g.Indptr[v+1]])
		}
	}
	if r.IntN(2) == 0 {
		data.Types = make([]uint16, n)
		for v := range nodes {
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				if data.Types[e] = uint16(r.IntN(4)); e > g.Indptr[v] && g.Indices[e] == g.Indices[e-1] {
					data.Types[e] = max(data.Types[e], data.Types[e-1])
				}
			}
		}
	}
	if r.IntN(2) == 0 {
		data.Weights = make([]float32, n)
		for e := range n {
			data.Weights[e] = 1 + r.Float32()
		}
	}
	c.g = g.WithEdges(data)
	hops := 1 + r.IntN(3)
	draw := func() (f sample.Fanouts) {
		for range hops {
			f = append(f, []int{-1, 0, 1, 2, 3, 7}[r.IntN(6)])
		}
		return f
	}
	c.fanouts = draw()
	if data.Types != nil && r.IntN(2) == 0 {
		c.by = map[int]sample.Fanouts{1: draw(), 3: draw()}
	}
	c.asOf = sample.AsOf{Strict: r.IntN(2) == 0, Strategy: []string{"", sample.TakeUniform, sample.TakeRecent, sample.TakeByAge}[seed%4]}
	if r.IntN(2) == 0 {
		c.asOf.Window = 1 + r.Int64N(spread)
	}
	if c.asOf.Strategy == sample.TakeByAge {
		c.asOf.HalfLife = 1 + r.Int64N(1+spread/4)
	}
	if r.IntN(2) == 0 {
		c.asOf.NodeTimes = make([]int64, nodes)
		for v := range c.asOf.NodeTimes {
			c.asOf.NodeTimes[v] = r.Int64N(spread) - spread
			if r.IntN(8) == 0 { // after some of its edges
				c.asOf.NodeTimes[v] += spread
			}
		}
	}
	for range 1 + r.IntN(40) {
		c.seeds.IDs = append(c.seeds.IDs, int32(r.IntN(nodes)))
		c.seeds.Times = append(c.seeds.Times, r.Int64N(2*spread)-spread/2)
	}
	return c
}

func (c *timedCase) picker() sample.Picker {
	if c.by != nil {
		return &sample.RelationFanouts{All: c.fanouts, By: c.by}
	}
	return c.fanouts
}

func (c *timedCase) String() string {
	return fmt.Sprintf("%d nodes, %d edges, as of %+v, fanouts %v and %v", c.g.NumNodes(), len(c.g.Indices), c.asOf, c.fanouts, c.by)
}

// What seeds with times see and take is what the rules say, on graphs with and without types, with equal times, windows,
// times of nodes, and every strategy; also where the graph is divided among owners, with any number of threads and of
// workers, and where edges that are excluded make the picker see a list of edges instead of choosing in the order of time.
func TestAsOfIsTheReference(t *testing.T) {
	const cases = 60
	typed, nodes := 0, 0
	for seed := range uint64(cases) {
		c := drawCase(seed)
		if c.by != nil {
			typed++
		}
		if c.asOf.NodeTimes != nil {
			nodes++
		}
		const key, epoch = 21, 3
		config := sample.Config{Picker: c.picker(), Seed: key, Disjoint: true, AsOf: c.asOf, Threads: 1 + int(seed%2)}
		whole := newSampler(t, c.g, config)
		config.Picker = &sample.Excluding{Picker: c.picker(), Of: func(int, int) *sample.EdgeSet { return everyNode(c.g) }}
		excluding := newSampler(t, c.g, config)
		config.Picker = c.picker()
		of := make([]int32, c.g.NumNodes())
		for v := range of {
			of[v] = int32(v * 7 % 3)
		}
		answering := sample.AnswererOptions{NodeTimes: c.asOf.NodeTimes}
		if c.by != nil {
			answering.Picker = c.picker()
		}
		config.Threads = 1
		d, err := sample.NewDivided(divide(t, c.g, of, []int{0, 1, 1}, 2, answering), config)
		if err != nil {
			t.Fatalf("case %d: %v", seed, err)
		}
		proof := prover(t, c.g, config)
		for step := range 2 {
			b, err := whole.Sample(epoch, step, c.seeds)
			if err != nil {
				t.Fatalf("case %d: %v", seed, err)
			}
			got := treesOf(t, b)
			for i, v := range c.seeds.IDs {
				at := c.seeds.Times[i]
				want, hidden, latest := refAsOf(c.g, c.asOf, key, epoch, step, c.fanouts, c.by, v, at)
				edges := int64(0)
				for hop := range want {
					for u, p := range want[hop] {
						if is, ok := got[hop][[2]int32{int32(i), u}]; !ok || !slices.Equal(is, p) && len(is)+len(p) > 0 {
							t.Fatalf("case %d (%s), step %d, hop %d, seed %d at %d, node %d: edges %v, want %v", seed, &c, step, hop, v, at, u, is, p)
						}
						edges += int64(len(p))
					}
				}
				view := b.Views()[i]
				if view.Seed != v || view.Time != at || view.Edges != edges || view.Hidden != hidden || edges > 0 && view.Latest != latest {
					t.Fatalf("case %d: the view of seed %d at %d is %+v, want %d edges, %d hidden, %d the latest", seed, v, at, view, edges, hidden, latest)
				}
			}
			if err := proof.Check(b, c.seeds); err != nil {
				t.Fatalf("case %d (%s): %v", seed, &c, err)
			}
			for name, other := range map[string]sample.Batcher{"divided": d, "excluding": excluding} {
				o, err := other.Sample(epoch, step, c.seeds)
				if err != nil {
					t.Fatalf("case %d, %s: %v", seed, name, err)
				}
				if !sameDigest(b, o) || !slices.Equal(o.Views(), b.Views()) {
					t.Fatalf("case %d (%s): the batch of the %s sampler is another one", seed, &c, name)
				}
				if err := proof.Check(o, c.seeds); err != nil {
					t.Fatalf("case %d (%s): %s: %v", seed, &c, name, err)
				}
			}
			for _, world := range []int{2, 4} {
				one, shares, picks := sample.NewDigest(), sample.NewDigest(), [][]byte(nil)
				one.AddBatch(b)
				for rank := range world {
					lo, hi := sample.Share(c.seeds.Len(), rank, world)
					part, err := whole.Sample(epoch, step, c.seeds.Slice(lo, hi))
					if err != nil {
						t.Fatal(err)
					}
					picks = append(picks, sample.EncodePicks(part))
					part.Release()
				}
				if err := shares.AddStep(c.seeds, picks); err != nil || one.Sum() != shares.Sum() {
					t.Fatalf("case %d, %d workers: %v, another digest than of one", seed, world, err)
				}
			}
		}
	}
	if typed < 10 || nodes < 10 {
		t.Errorf("%d cases with fanouts by relation and %d with times of nodes", typed, nodes)
	}
}

// prover returns a prover of a graph's batches.
func prover(t testing.TB, g *graphops.Graph, c sample.Config) *sample.Prover {
	t.Helper()
	p, err := sample.ProverOf(g, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sameDigest(a, b *sample.Batch) bool {
	x, y := sample.NewDigest(), sample.NewDigest()
	x.AddBatch(a)
	y.AddBatch(b)
	return x.Sum() == y.Sum()
}

// everyNode is a set with an edge to each node, none of which exists in the graph.
func everyNode(g *graphops.Graph) *sample.EdgeSet {
	var src, dst []int32
	for v := range int32(g.NumNodes()) {
		src, dst = append(src, int32(g.NumNodes())), append(dst, v)
	}
	return sample.NewEdgeSet(src, dst, false)
}

// NumPy computes the same digests of seeds with times, for every option.
func TestDigestOfAsOfIsNumPys(t *testing.T) {
	testneed.NotShort(t, "it starts Python")
	python := testneed.PythonWith(t, "numpy")
	for i, typed := range []bool{false, true} {
		const nodes = 300
		g := random(nodes, 9, uint64(34+i))
		n := len(g.Indices)
		times := make([]int64, n)
		for e := range times {
			times[e] = int64(e*e*31%160) - 80
		}
		g = g.WithEdgeData(nil, times)
		if typed {
			g = typedGraph(t, nodes, 3)
			times = make([]int64, len(g.Indices))
			for e := range times {
				times[e] = int64(e*e*31%160) - 80
			}
			g = g.WithEdgeData(nil, times)
		}
		train := sample.EpochOrder(1, 0, all(nodes))[:100]
		dir := filepath.Join(t.TempDir(), "set")
		if err := dataset.Write(dir, &dataset.Dataset{Graph: g, Splits: map[string][]int32{"train": train}, Meta: dataset.Metadata{Name: "random"}}); err != nil {
			t.Fatal(err)
		}
		when, born := make([]int64, nodes), make([]int64, nodes)
		for v := range nodes {
			when[v], born[v] = int64(v*v%97)-15, int64(v*7%60)-90
		}
		for name, x := range map[string][]int64{"seed_times.i64": when, "node_times.i64": born} {
			var file []byte
			for _, t := range x {
				file = binary.LittleEndian.AppendUint64(file, uint64(t))
			}
			if err := os.WriteFile(filepath.Join(dir, name), file, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cases := map[string]sample.AsOf{
			"trees/times/window:30":                     {Window: 30},
			"trees/times/strict":                        {Strict: true},
			"trees/times/recent":                        {Strategy: sample.TakeRecent},
			"trees/times/age:4":                         {Strategy: sample.TakeByAge, HalfLife: 4},
			"trees/times/nodes":                         {NodeTimes: born},
			"trees/times/strict/window:50/age:20/nodes": {Strict: true, Window: 50, Strategy: sample.TakeByAge, HalfLife: 20, NodeTimes: born},
		}
		for name, asOf := range cases {
			var p sample.Picker = sample.Fanouts{4, -1, 2}
			if typed {
				name += "/1:2,3,1"
				p = &sample.RelationFanouts{All: sample.Fanouts{4, -1, 2}, By: map[int]sample.Fanouts{1: {2, 3, 1}}}
			}
			out, err := exec.Command(python, "testdata/digest.py", dir, "77", "5", "12", "4,-1,2", "1", name).CombinedOutput()
			if err != nil {
				t.Fatalf("digest.py: %v\n%s", err, out)
			}
			s := newSampler(t, g, sample.Config{Picker: p, Seed: 77, Disjoint: true, AsOf: asOf})
			d, order := sample.NewDigest(), sample.EpochOrder(77, 5, train)
			for step := range 1 {
				seeds := sample.Seeds{IDs: order[12*step : 12*step+12]}
				for _, v := range seeds.IDs {
					seeds.Times = append(seeds.Times, when[v])
				}
				b, err := s.Sample(5, step, seeds)
				if err != nil {
					t.Fatal(err)
				}
				d.AddBatch(b)
			}
			if got := strings.TrimSpace(string(out)); got != d.Sum() {
				t.Errorf("%s: digest %s, NumPy's %s", name, d.Sum(), got)
			}
		}
	}
}

// Picks by age have the probabilities that the half-life says.
func TestPicksByAge(t *testing.T) {
	const n, life = 40, 10
	g := &graphops.Graph{Indptr: []int64{0, n}, Indices: make([]int32, n)}
	times := make([]int64, n)
	for e := range times {
		times[e] = int64(e*7%n) * 2 // ages 0 to 78
	}
	for v := range n {
		g.Indptr = append(g.Indptr, n)
		g.Indices[v] = int32(v + 1)
	}
	g = g.WithEdgeData(nil, times)
	s := newSampler(t, g, sample.Config{Picker: sample.Fanouts{1}, Disjoint: true, AsOf: sample.AsOf{Strategy: sample.TakeByAge, HalfLife: life}})
	count := make([]float64, n)
	const draws = 40000
	for step := range draws {
		b, err := s.Sample(0, step, sample.Seeds{IDs: []int32{0}, Times: []int64{1000}})
		if err != nil {
			t.Fatal(err)
		}
		count[b.Blocks[0].EdgePos()[0]]++
		b.Release()
	}
	sum := 0.0
	for e := range n {
		sum += math.Exp2(-float64(2*(n-1)-times[e]) / life)
	}
	for e := range n {
		want := draws * math.Exp2(-float64(2*(n-1)-times[e])/life) / sum
		if d := math.Abs(count[e] - want); d > 5*math.Sqrt(want)+1 {
			t.Errorf("the edge of time %d was taken %v times, want about %.0f", times[e], count[e], want)
		}
	}
}

// Times at the ends of their range are compared, not subtracted.
func TestExtremeTimes(t *testing.T) {
	g := &graphops.Graph{Indptr: []int64{0, 4, 4, 4, 4, 4}, Indices: []int32{1, 2, 3, 4}}
	g = g.WithEdgeData(nil, []int64{math.MaxInt64, math.MinInt64, 0, math.MinInt64 + 1})
	for _, c := range []struct {
		at   int64
		asOf sample.AsOf
		want int
	}{
		{math.MinInt64, sample.AsOf{Strict: true}, 0},
		{math.MinInt64, sample.AsOf{Window: 5}, 1},
		{math.MinInt64 + 1, sample.AsOf{Window: math.MaxInt64}, 2},
		{math.MaxInt64, sample.AsOf{Window: 1}, 1},
		{math.MaxInt64, sample.AsOf{Window: math.MaxInt64}, 2},
		{math.MaxInt64, sample.AsOf{Strict: true}, 3},
		{math.MaxInt64, sample.AsOf{Strategy: sample.TakeByAge, HalfLife: 1}, 4},
	} {
		s := newSampler(t, g, sample.Config{Picker: sample.Fanouts{-1}, Disjoint: true, AsOf: c.asOf})
		b, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{0}, Times: []int64{c.at}})
		if err != nil || b.Edges() != c.want {
			t.Errorf("%+v at %d: %v, %d edges, want %d", c.asOf, c.at, err, b.Edges(), c.want)
		}
	}
	s := newSampler(t, g, sample.Config{Picker: sample.Fanouts{3}, Disjoint: true, AsOf: sample.AsOf{Strategy: sample.TakeByAge, HalfLife: 1 << 53}})
	b, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{0}, Times: []int64{math.MaxInt64}})
	if err != nil || !slices.Equal(b.Blocks[0].EdgePos(), []int64{0, 2, 3}) {
		t.Errorf("by age over the whole range: %v, %v", err, b.Blocks[0].EdgePos())
	}
}

// Options that cannot be are said in a sentence.
func TestAsOfIsChecked(t *testing.T) {
	g := random(40, 5, 1)
	_, times := edgeData(len(g.Indices), "", true)
	timed := g.WithEdgeData(nil, times)
	for _, c := range []struct {
		picker sample.Picker
		asOf   sample.AsOf
		trees  bool
		want   string
	}{
		{sample.Fanouts{2}, sample.AsOf{Window: 3}, false, "set Disjoint"},
		{sample.Fanouts{2}, sample.AsOf{Window: -3}, true, "the window of seeds with times is -3"},
		{sample.Fanouts{2}, sample.AsOf{Strategy: "last"}, true, `"last"`},
		{sample.Fanouts{2}, sample.AsOf{Strategy: sample.TakeByAge}, true, "half-life"},
		{sample.Fanouts{2}, sample.AsOf{HalfLife: 3}, true, "half-life"},
		{sample.Labor{Fanouts: sample.Fanouts{2}}, sample.AsOf{Strategy: sample.TakeRecent}, true, "a sample.Labor takes them by a rule of its own"},
		{&sample.Excluding{Picker: looking{}, Of: func(int, int) *sample.EdgeSet { return nil }}, sample.AsOf{Strategy: sample.TakeRecent}, true, "looking takes them by a rule"},
	} {
		_, err := sample.New(timed, sample.Config{Picker: c.picker, Hops: 1, Disjoint: c.trees, AsOf: c.asOf})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T, %+v: %v, want %q", c.picker, c.asOf, err, c.want)
		}
	}
	trees := sample.Config{Picker: sample.Fanouts{2}, Disjoint: true, AsOf: sample.AsOf{Strict: true}}
	if _, err := newSampler(t, timed, trees).Sample(0, 0, sample.Seeds{IDs: []int32{1}}); err == nil || !strings.Contains(err.Error(), "but the seeds have none") {
		t.Error(err)
	}
	trees.AsOf.NodeTimes = []int64{1}
	if _, err := newSampler(t, timed, trees).Sample(0, 0, sample.Seeds{IDs: []int32{1}, Times: []int64{1}}); err == nil || !strings.Contains(err.Error(), "times of 1 nodes") {
		t.Error(err)
	}
	if _, late, err := sample.KnownTimes(build(2, edge{1, 0}, edge{0, 1}).WithEdgeData(nil, []int64{5, 9}), []int64{7, 3}, 1); late != 1 || err != nil {
		t.Errorf("%d edges are before a node's time: %v", late, err)
	}
}

// Requests with times survive the wire, and damaged ones are refused.
func TestRequestsWithTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := sample.HopRequest{
			Purpose: sample.Training, Picker: sample.UniformPicker, Fanout: 3, Nodes: []int32{4, 5}, Trees: []int32{0, 0},
			Seeds: sample.Seeds{IDs: []int32{7}, Times: []int64{rapid.Int64().Draw(t, "time")}}, NodeTimes: rapid.Bool().Draw(t, "nodes"),
			AsOf: sample.AsOf{Window: rapid.Int64Range(0, math.MaxInt64).Draw(t, "window"), Strict: rapid.Bool().Draw(t, "strict"), Strategy: sample.TakeByAge, HalfLife: 5},
		}
		b := q.Append(nil)
		var got sample.HopRequest
		if err := got.Decode(b); err != nil || !got.AsOf.Same(&q.AsOf) || got.NodeTimes != q.NodeTimes || !got.Seeds.Equal(q.Seeds) {
			t.Fatalf("%v: %+v, want %+v", err, got, q)
		}
		b[len(b)-4+rapid.IntRange(0, 3).Draw(t, "at")] |= 64
		if err := got.Decode(b); err == nil {
			t.Fatal("unknown flags are taken")
		}
	})
}

// The ages of edges reach layers: the seed's time less the edge's, also with self-loops and where the graph is divided.
func TestAgesOfEdges(t *testing.T) {
	g := build(4, edge{1, 0}, edge{2, 0}, edge{3, 1}).WithEdgeData(nil, []int64{5, 7, 2})
	c := sample.Config{Picker: sample.Fanouts{-1, -1}, Disjoint: true}
	d, err := sample.NewDivided(divide(t, g, nil, []int{0}, 1, sample.AnswererOptions{}), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []sample.Batcher{newSampler(t, g, c), d} {
		b, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{0, 0, 3}, Times: []int64{10, 6, 4}})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Blocks[1].Ages(); !slices.Equal(got, []int64{5, 3, 1}) {
			t.Errorf("ages %v", got)
		}
		if got := b.Blocks[1].SelfLooped().Ages(); !slices.Equal(got, []int64{5, 3, 5, 1, 1, 0}) {
			t.Errorf("ages with self-loops %v", got)
		}
		if at, ok := b.Blocks[0].SeedTime(1); at != 6 || !ok {
			t.Errorf("row 1 is seen as of %d", at)
		}
		if got := b.Blocks[0].Ages(); !slices.Equal(got, []int64{5, 3, 1, 8, 4}) {
			t.Errorf("ages of the second hop %v", got)
		}
	}
	b := mustSample(t, newSampler(t, g, c), 0, 0, []int32{0})
	if _, ok := b.Blocks[0].SeedTime(0); ok || b.Blocks[0].Ages() != nil {
		t.Error("a batch without times has ages")
	}
}
