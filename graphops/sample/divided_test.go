package sample_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
)

// partRows holds the rows of one part under local ids: first the part's own nodes in ascending
// order, then the sources that belong to other parts.
type partRows struct {
	g     *graphops.Graph
	ids   []int32
	own   int
	first []int64
}

func (p *partRows) Edges() graphops.EdgeShape { return p.g.EdgeShape() }

func (p *partRows) Row(v int32) (r sample.Row, ok bool) {
	i, ok := slices.BinarySearch(p.ids[:p.own], v)
	if !ok {
		return r, false
	}
	lo, hi := p.g.Indptr[i], p.g.Indptr[i+1]
	data := p.g.EdgeData()
	return sample.Row{Sources: p.g.Indices[lo:hi], IDs: p.ids, First: p.first[i], Edges: &data, At: lo}, true
}

func (p *partRows) Find(nodes []int32, out []sample.Place) int {
	return find(nodes, out, func(v int32) (sample.Row, int32, bool) { r, ok := p.Row(v); return r, 0, ok })
}

func (p *partRows) Arrays() []sample.RowArray {
	data := p.g.EdgeData()
	return []sample.RowArray{{Sources: p.g.Indices, IDs: p.ids, Edges: &data}}
}

// find is the definition of sample.Rows' Find; row returns the row of a node and the number of its array.
func find(nodes []int32, out []sample.Place, row func(v int32) (sample.Row, int32, bool)) int {
	for i, v := range nodes {
		r, array, ok := row(v)
		if !ok {
			return i
		}
		out[i] = sample.Place{Array: array, N: int32(len(r.Sources)), At: r.At, First: r.First}
	}
	return len(nodes)
}

// cut returns part number part of g, where of[v] is the part of node v.
func cut(g *graphops.Graph, of []int32, part int32) *partRows {
	p := &partRows{g: &graphops.Graph{Indptr: []int64{0}, Indices: []int32{}}}
	local := map[int32]int32{}
	for v, q := range of {
		if q == part {
			local[int32(v)] = int32(len(p.ids))
			p.ids = append(p.ids, int32(v))
		}
	}
	p.own = len(p.ids)
	var halo []int32
	for _, v := range p.ids[:p.own] {
		for _, u := range g.InNeighbors(v) {
			if _, ok := local[u]; !ok {
				local[u] = -1
				halo = append(halo, u)
			}
		}
	}
	slices.Sort(halo)
	for _, u := range halo {
		local[u] = int32(len(p.ids))
		p.ids = append(p.ids, u)
	}
	var data graphops.EdgeData
	data.SetLen(g.EdgeShape(), 0)
	all := g.EdgeData()
	for _, v := range p.ids[:p.own] {
		p.first = append(p.first, g.Indptr[v])
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			p.g.Indices = append(p.g.Indices, local[g.Indices[e]])
			data.Append(all.Slice(e, e+1))
		}
		p.g.Indptr = append(p.g.Indptr, int64(len(p.g.Indices)))
	}
	p.g = p.g.WithEdges(data)
	return p
}

// oneOf holds the rows of the parts of one owner.
type oneOf struct {
	of    []int32
	parts map[int32]*partRows
	shape graphops.EdgeShape
}

func (o *oneOf) Edges() graphops.EdgeShape { return o.shape }

func (o *oneOf) Row(v int32) (sample.Row, bool) {
	if uint(v) < uint(len(o.of)) && o.parts[o.of[v]] != nil {
		return o.parts[o.of[v]].Row(v)
	}
	return sample.Row{}, false
}

func (o *oneOf) Find(nodes []int32, out []sample.Place) int {
	return find(nodes, out, func(v int32) (r sample.Row, array int32, ok bool) {
		if r, ok = o.Row(v); ok {
			array = o.of[v]
		}
		return r, array, ok
	})
}

func (o *oneOf) Arrays() []sample.RowArray {
	all := make([]sample.RowArray, 1+slices.Max(o.of))
	for p, part := range o.parts {
		if int(p) < len(all) {
			all[p] = part.Arrays()[0]
			if p == 0 { // other owners sort rows for each request
				all[p].TimeOrder = part.g.TimeOrder
			}
		}
	}
	return all
}

// divide divides g among owners. It encodes and decodes all requests and replies, as between
// machines.
func divide(t rapid.TB, g *graphops.Graph, of []int32, ownerOf []int, owners int, o sample.AnswererOptions) sample.Division {
	d := sample.Division{Nodes: g.NumNodes(), Edges: g.EdgeShape(), Part: of, OwnerOf: ownerOf, Owners: owners}
	if of == nil {
		of = make([]int32, g.NumNodes())
	}
	answerers := make([]*sample.Answerer, owners)
	for r := range answerers {
		held := &oneOf{of: of, parts: map[int32]*partRows{}, shape: g.EdgeShape()}
		for p, owner := range ownerOf {
			if owner == r {
				held.parts[int32(p)] = cut(g, of, int32(p))
			}
		}
		answerers[r] = sample.NewAnswerer(held, o)
	}
	d.Degrees = tableOf(t, g, of, ownerOf)
	replies := make([]sample.HopReply, owners)
	var q sample.HopRequest
	d.Ask = func(requests []sample.HopRequest) ([]sample.HopReply, error) {
		for r := range requests {
			if err := q.Decode(requests[r].Append(nil)); err != nil {
				return nil, err
			}
			var reply sample.HopReply
			if err := answerers[r].Answer(&q, &reply); err != nil {
				return nil, err
			}
			if err := replies[r].Decode(reply.Append(nil)); err != nil {
				return nil, err
			}
		}
		return replies, nil
	}
	return d
}

// tableOf returns the degrees of g, computed from its parts.
func tableOf(t rapid.TB, g *graphops.Graph, of []int32, ownerOf []int) *graphops.DegreeTable {
	table := &graphops.DegreeTable{In: g.InDegrees(), Looped: make([]float32, g.NumNodes())}
	if g.EdgeWeights != nil {
		table.Loops = make([]float32, g.NumNodes())
	}
	for p := range ownerOf {
		part := cut(g, of, int32(p))
		for _, v := range part.ids[:part.own] {
			row, _ := part.Row(v)
			degree, loop := row.LoopedDegree(v)
			table.Looped[v] = degree
			if g.EdgeWeights != nil {
				table.Loops[v] = loop
			}
			if w, ok := table.SelfLoop(v); g.EdgeWeights != nil {
				if want, has := g.SelfLoop(v); ok != has || w != want {
					t.Fatalf("node %d has a self-loop of weight %v (%v), want %v (%v)", v, w, ok, want, has)
				}
			}
		}
	}
	return table
}

// labor takes the edges whose sources have small draws; a source has the same draw for every
// destination.
type labor struct{}

func (labor) Pick(h *sample.Hop, v int32, nbrs, out []int32) []int32 {
	for i, u := range nbrs {
		h.At(u)
		if h.Float32() < 0.4 || h.Position(0)%7 == 3 {
			out = append(out, int32(i))
		}
	}
	return out
}

// edgeData returns features of a type, "" for none, and times of edges.
func edgeData(edges int, features string, timed bool) (x *graphops.EdgeFeatures, times []int64) {
	var d graphops.EdgeData
	s := graphops.EdgeShape{Half: features == "f16", Times: timed}
	if features != "" {
		s.FeatureCols = 3
	}
	d.SetLen(s, edges)
	for e := range edges {
		if timed {
			d.Times[e] = int64(e*e%101) - 50
		}
		for c := range s.FeatureCols {
			if s.Half {
				d.Features.F16[3*e+c] = uint16(0x3c00 + (3*e+c)%1024) // from 1 to 2
			} else {
				d.Features.F32[3*e+c] = float32(3*e+c) / 8
			}
		}
	}
	return d.Features, d.Times
}

// replacing picks three times with replacement, in no particular order, by weights and times if the
// edges have them.
type replacing struct{}

func (replacing) Pick(h *sample.Hop, _ int32, nbrs, out []int32) []int32 {
	for range 3 {
		i := h.Bounded(len(nbrs))
		if w := h.Weights(); w != nil && w[i] < 0.3 {
			continue
		}
		if times := h.Times(); times != nil && times[i]%5 == 0 {
			continue
		}
		out = append(out, int32(i))
	}
	return out
}

// sameBatch compares two batches by row, edge and bit.
func sameBatch(t rapid.TB, got, want *sample.Batch) {
	t.Helper()
	if !slices.Equal(got.Trees, want.Trees) || !slices.Equal(got.Times, want.Times) {
		t.Fatalf("trees %v and times %v, want %v and %v", got.Trees, got.Times, want.Trees, want.Times)
	}
	if !slices.Equal(got.Seeds, want.Seeds) || len(got.Blocks) != len(want.Blocks) {
		t.Fatalf("seeds %v and %d blocks, want %v and %d", got.Seeds, len(got.Blocks), want.Seeds, len(want.Blocks))
	}
	for i, w := range want.Blocks {
		k := got.Blocks[i]
		if k.NumDst != w.NumDst || k.NumSrc != w.NumSrc || k.Level != w.Level || k.DstStart != 0 || k.Graph != nil || k.Weighted() != w.Weighted() || k.HasTransposed() != w.HasTransposed() {
			t.Fatalf("block %d is %+v, want %+v", i, k, w)
		}
		if !slices.Equal(k.SrcIDs(), w.SrcIDs()) || !slices.Equal(k.Indptr(), w.Indptr()) || !slices.Equal(k.Indices(), w.Indices()) || !slices.Equal(k.EdgePos(), w.EdgePos()) || !slices.Equal(k.Weights(), w.Weights()) {
			t.Fatalf("block %d: ids %v, offsets %v, sources %v, positions %v, weights %v; want %v, %v, %v, %v, %v", i,
				k.SrcIDs(), k.Indptr(), k.Indices(), k.EdgePos(), k.Weights(), w.SrcIDs(), w.Indptr(), w.Indices(), w.EdgePos(), w.Weights())
		}
		if a, b := k.Transposed(), w.Transposed(); !slices.Equal(a.Indptr, b.Indptr) || !slices.Equal(a.Dst, b.Dst) || !slices.Equal(a.Edge, b.Edge) {
			t.Fatalf("block %d: the transposes differ", i)
		}
		sameEdgeData(t, k, w)
		sameEdgeData(t, k.SelfLooped(), w.SelfLooped())
		if l, m := k.SelfLooped(), w.SelfLooped(); !slices.Equal(l.Indices(), m.Indices()) || !slices.Equal(l.Weights(), m.Weights()) || !slices.Equal(l.EdgePos(), m.EdgePos()) {
			t.Fatalf("block %d: the self-loops are %v, want %v", i, l.Weights(), m.Weights())
		}
	}
}

// sameEdgeData compares the features and times of two blocks' edges.
func sameEdgeData(t rapid.TB, got, want *graphops.Block) {
	t.Helper()
	cols := want.EdgeFeatureCols()
	if got.EdgeFeatureCols() != cols || got.HasTimes() != want.HasTimes() || !slices.Equal(got.Times(), want.Times()) {
		t.Fatalf("%d features and the times %v, want %d and %v", got.EdgeFeatureCols(), got.Times(), cols, want.Times())
	}
	if cols == 0 {
		return
	}
	x, y := make([]float32, cols*want.NumEdges()), make([]float32, cols*want.NumEdges())
	got.GatherEdgeFeatures(x, got.EdgeFeatureCols(), 2)
	want.GatherEdgeFeatures(y, want.EdgeFeatureCols(), 1)
	if !slices.Equal(x, y) {
		t.Fatalf("the features of edges are %v, want %v", x, y)
	}
}

// convolve returns the output of a GCN on the first block. A GCN reads the degrees of the whole
// graph.
func convolve(t rapid.TB, b *sample.Batch) []float32 {
	t.Helper()
	k := b.Blocks[0]
	c := nn.NewGCN(2, 3)
	x := make([]float32, 2*k.NumSrc)
	for i, v := range k.SrcIDs() {
		x[2*i], x[2*i+1] = float32(v), 1/(1+float32(v))
	}
	for i := range c.Lin.Weight.W {
		c.Lin.Weight.W[i] = float32(i) - 2.5
	}
	f := nn.NewFwd(nn.Config{})
	var y []float32
	if err := nn.Try(func() { y = c.Forward(f, k, f.Input(k.NumSrc, 2, x, nil)).Data() }); err != nil {
		t.Fatal(err)
	}
	return y
}

// The batches of a divided graph are those of the whole graph, for any graph, division, picker and
// seeds. The cases include parts and owners without nodes, and reused memory.
func TestDivided(t *testing.T) {
	pickers := map[string]sample.Config{
		"uniform":   {Picker: sample.Fanouts{3, 2, -1}},
		"wide":      {Picker: sample.Fanouts{60, 0, 1}},
		"weighted":  {Picker: sample.Weighted{Fanouts: sample.Fanouts{2, 4}}},
		"labor":     {Picker: labor{}, Hops: 3},
		"replacing": {Picker: replacing{}, Hops: 2, Purpose: sample.Evaluation},
	}
	names := []string{"uniform", "wide", "weighted", "labor", "replacing"}
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 300).Draw(t, "nodes")
		g := random(nodes, rapid.IntRange(0, 12).Draw(t, "degree"), rapid.Uint64().Draw(t, "graph"))
		name := rapid.SampledFrom(names).Draw(t, "picker")
		if name == "weighted" || rapid.Bool().Draw(t, "weights") {
			w := make([]float32, len(g.Indices))
			r := rand.New(rand.NewPCG(uint64(nodes), 2))
			for i := range w {
				w[i] = r.Float32()
			}
			g = g.WithEdgeWeights(w)
		}
		g = g.WithEdgeData(edgeData(len(g.Indices), rapid.SampledFrom([]string{"", "f32", "f16"}).Draw(t, "features"), rapid.Bool().Draw(t, "times")))
		disjoint := rapid.Bool().Draw(t, "disjoint")
		timed := disjoint && g.EdgeTimes != nil && rapid.Bool().Draw(t, "times of seeds")
		owners := rapid.IntRange(1, 4).Draw(t, "owners")
		ownerOf := rapid.SliceOfN(rapid.IntRange(0, owners-1), 1, 6).Draw(t, "owner of part")
		of := make([]int32, nodes)
		used := rapid.IntRange(1, len(ownerOf)).Draw(t, "parts with nodes")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "division"), 3))
		for v := range of {
			of[v] = int32(r.IntN(used))
		}
		c := pickers[name]
		c.Disjoint = disjoint
		c.Seed, c.Threads, c.Transpose, c.TransposeInput = 5, rapid.IntRange(1, 2).Draw(t, "threads"), true, rapid.Bool().Draw(t, "transpose input")
		d := divide(t, g, of, ownerOf, owners, sample.AnswererOptions{Picker: c.Picker, Threads: c.Threads})
		s, err := sample.NewDivided(d, c)
		if err != nil {
			t.Fatal(err)
		}
		whole := newSampler(t, g, c)
		if s.Hops() != whole.Hops() {
			t.Fatalf("%d hops, want %d", s.Hops(), whole.Hops())
		}
		got, want := sample.NewDigest(), sample.NewDigest()
		order := sample.EpochOrder(2, 0, all(nodes))
		for step := range 4 {
			n := rapid.IntRange(0, min(nodes, 40)).Draw(t, "seeds")
			seeds := sample.Seeds{IDs: slices.Clone(order[:n])}
			if disjoint && n > 1 {
				seeds.IDs[n-1] = seeds.IDs[0]
			}
			if timed {
				seeds.Times = rapid.SliceOfN(rapid.Int64Range(-60, 60), n, n).Draw(t, "times")
			}
			b, err := s.Sample(7, step, seeds)
			if err != nil {
				t.Fatal(err)
			}
			w, err := whole.Sample(7, step, seeds)
			if err != nil {
				t.Fatal(err)
			}
			sameBatch(t, b, w)
			if !timed { // a GCN would ask for the degrees of the whole graph
				if x, y := convolve(t, b), convolve(t, w); !slices.Equal(x, y) {
					t.Fatalf("step %d: a GCN outputs %v, want %v", step, x, y)
				}
			}
			got.AddBatch(b)
			want.AddBatch(w)
			if step%2 == 0 {
				b.Release()
			}
		}
		if got.Sum() != want.Sum() {
			t.Fatal("another digest")
		}
	})
}

// The answer for a node does not depend on the other nodes of the request, and an owner with the
// whole graph gives the same answers as owners of its parts.
func TestAnswersAreOfTheNodeAlone(t *testing.T) {
	g := random(400, 20, 4)
	of := make([]int32, 400)
	for v := range of {
		of[v] = int32(v % 3)
	}
	q := sample.HopRequest{Seed: 3, Purpose: sample.Training, Epoch: 1, Step: 2, Hop: 1, Picker: sample.UniformPicker, Fanout: 5, Nodes: all(400)}
	var whole sample.HopReply
	if err := sample.NewAnswerer(sample.RowsOf(g), sample.AnswererOptions{}).Answer(&q, &whole); err != nil {
		t.Fatal(err)
	}
	parts := []*sample.Answerer{}
	for p := range int32(3) {
		parts = append(parts, sample.NewAnswerer(cut(g, of, p), sample.AnswererOptions{Threads: 1}))
	}
	at := int32(0)
	for v := range int32(400) {
		q.Nodes = []int32{v, v}
		var r sample.HopReply
		if err := parts[of[v]].Answer(&q, &r); err != nil {
			t.Fatal(err)
		}
		n := whole.Counts[v]
		want := whole.Sources[at : at+n]
		if r.First[0] != g.Indptr[v] || r.Counts[0] != n || !slices.Equal(r.Sources, slices.Concat(want, want)) || !slices.Equal(r.Offsets[:n], whole.Offsets[at:at+n]) {
			t.Fatalf("node %d: %+v, want %v at %v", v, r, want, whole.Offsets[at:at+n])
		}
		at += n
	}
}

func TestDividedRefuses(t *testing.T) {
	g := random(50, 4, 1)
	ok := divide(t, g, nil, []int{0}, 1, sample.AnswererOptions{})
	with := func(f func(d *sample.Division)) sample.Division { d := ok; f(&d); return d }
	for name, c := range map[string]struct {
		d    sample.Division
		c    sample.Config
		want string
	}{
		"a frontier": {ok, sample.Config{Frontier: everything{}, Hops: 1}, "a FrontierPicker needs the whole graph"},
		"weights":    {ok, sample.Config{Picker: sample.Fanouts{1}, Weights: []float32{1}}, "write weights into its parts"},
		"no weights": {ok, sample.Config{Picker: sample.Weighted{Fanouts: sample.Fanouts{1}}}, "needs edge weights"},
		"a fanout":   {ok, sample.Config{Picker: sample.Fanouts{-2}}, "fanout of hop 0 is -2"},
		"no picker":  {ok, sample.Config{}, "no picker"},
		"nobody":     {with(func(d *sample.Division) { d.Ask = nil }), sample.Config{Picker: sample.Fanouts{1}}, "Ask reaches their owners"},
		"owners":     {with(func(d *sample.Division) { d.Owners = 0 }), sample.Config{Picker: sample.Fanouts{1}}, "1 to 65536 owners"},
		"an owner":   {with(func(d *sample.Division) { d.OwnerOf = []int{1} }), sample.Config{Picker: sample.Fanouts{1}}, "part 0 belongs to owner 1"},
		"the parts":  {with(func(d *sample.Division) { d.Part = []int32{0} }), sample.Config{Picker: sample.Fanouts{1}}, "a part for each of its 50 nodes"},
	} {
		if _, err := sample.NewDivided(c.d, c.c); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	lying := func(f func(r *sample.HopReply)) sample.Division {
		return with(func(d *sample.Division) {
			d.Ask = func(q []sample.HopRequest) ([]sample.HopReply, error) {
				r, err := ok.Ask(q)
				if err == nil {
					f(&r[0])
				}
				return r, err
			}
		})
	}
	for name, c := range map[string]struct {
		d     sample.Division
		seeds []int32
		want  string
	}{
		"a seed": {ok, []int32{1, 50}, "seed 50 at position 1 is not a node"},
		"twice":  {ok, []int32{3, 4, 3}, "seed 3 occurs twice"},
		"an error": {with(func(d *sample.Division) {
			d.Ask = func([]sample.HopRequest) ([]sample.HopReply, error) { return nil, errors.New("cut off") }
		}), all(5), "cut off"},
		"no answer": {with(func(d *sample.Division) {
			d.Ask = func([]sample.HopRequest) ([]sample.HopReply, error) { return nil, nil }
		}), all(5), "had 0 answers"},
		"few":         {lying(func(r *sample.HopReply) { r.Counts = r.Counts[:3] }), all(5), "has 3 counts and 5 positions for 5 nodes"},
		"a count":     {lying(func(r *sample.HopReply) { r.Counts[1] += 1 << 30 }), all(5), "counts 10737"},
		"negative":    {lying(func(r *sample.HopReply) { r.Counts[0], r.Counts[1] = -1, r.Counts[0]+r.Counts[1]+1 }), all(5), "edges for its nodes"},
		"a source":    {lying(func(r *sample.HopReply) { r.Sources[0] = 50 }), all(5), "a node that does not exist"},
		"a place":     {lying(func(r *sample.HopReply) { r.Offsets[0] = -1 }), all(5), "negative position"},
		"more weight": {lying(func(r *sample.HopReply) { r.Edges.Weights = make([]float32, len(r.Sources)) }), all(5), "edges with a weight each, and an edge of this graph has nothing"},
		"few times":   {lying(func(r *sample.HopReply) { r.Edges.Times = make([]int64, 1) }), all(5), "edges with a time each"},
	} {
		s, err := sample.NewDivided(c.d, sample.Config{Picker: sample.Fanouts{2, 2}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Sample(0, 0, sample.Seeds{IDs: c.seeds}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	damaged := with(func(d *sample.Division) { d.Owners, d.OwnerOf, d.Part = 2, []int{0, 1}, slices.Repeat([]int32{2}, 50) })
	if s, err := sample.NewDivided(damaged, sample.Config{Picker: sample.Fanouts{2}}); err != nil {
		t.Error(err)
	} else if _, err := s.Sample(0, 0, sample.Seeds{IDs: all(3)}); err == nil || !strings.Contains(err.Error(), "node 0 is in part 2") {
		t.Errorf("a node in a part that does not exist gave %v", err)
	}
}

func TestAnswererRefuses(t *testing.T) {
	g := random(50, 9, 1)
	good := sample.HopRequest{Purpose: sample.Training, Picker: sample.UniformPicker, Fanout: 3, Nodes: all(50)}
	a := sample.NewAnswerer(sample.RowsOf(g), sample.AnswererOptions{Picker: labor{}, MaxEdges: 60})
	bad := part0(g)
	bad.g.Indices[0] = int32(len(bad.ids))
	for name, c := range map[string]struct {
		a    *sample.Answerer
		f    func(q *sample.HopRequest)
		want string
	}{
		"a node":      {a, func(q *sample.HopRequest) { q.Nodes = []int32{3, 50} }, "node 50, which are not here"},
		"below":       {a, func(q *sample.HopRequest) { q.Nodes = []int32{-1} }, "node -1, which are not here"},
		"another":     {a, func(q *sample.HopRequest) { q.Picker = "main.Mine" }, "for the picker main.Mine, which is not here"},
		"weights":     {a, func(q *sample.HopRequest) { q.Picker = sample.WeightedPicker }, "the graph here has none"},
		"a fanout":    {a, func(q *sample.HopRequest) { q.Fanout = -2 }, "fanout -2"},
		"much":        {a, func(q *sample.HopRequest) { q.Fanout = -1 }, "an answer has at most 60"},
		"a hop":       {a, func(q *sample.HopRequest) { q.Hop = 256 }, "hop 256"},
		"an epoch":    {a, func(q *sample.HopRequest) { q.Epoch = 1 << 20 }, "epoch 1048576"},
		"a purpose":   {a, func(q *sample.HopRequest) { q.Purpose = 99 }, "purpose 99"},
		"other parts": {sample.NewAnswerer(bad, sample.AnswererOptions{}), func(*sample.HopRequest) {}, "not here"},
		"damage":      {sample.NewAnswerer(bad, sample.AnswererOptions{}), func(q *sample.HopRequest) { q.Nodes, q.Fanout = bad.ids[:bad.own], -1 }, "the part is damaged"},
		"a panic":     {sample.NewAnswerer(sample.RowsOf(g), sample.AnswererOptions{Picker: thrower{}}), func(q *sample.HopRequest) { q.Picker = "sample_test.thrower" }, "panicked"},
	} {
		q := good
		c.f(&q)
		if err := c.a.Answer(&q, &sample.HopReply{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	var limit *sample.LimitError
	if err := a.Answer(&sample.HopRequest{Purpose: sample.Training, Picker: sample.UniformPicker, Fanout: -1, Nodes: all(50)}, &sample.HopReply{}); !errors.As(err, &limit) || limit.Limit != 60 {
		t.Errorf("%v is not a LimitError of 60 edges", err)
	}
	if err := a.Answer(&sample.HopRequest{Purpose: sample.Training, Picker: sample.UniformPicker, Fanout: 1, Nodes: all(50)}, &sample.HopReply{}); err != nil {
		t.Errorf("after refusals: %v", err)
	}
}

func part0(g *graphops.Graph) *partRows {
	of := make([]int32, g.NumNodes())
	for v := range of {
		of[v] = int32(v & 1)
	}
	return cut(g, of, 0)
}

type thrower struct{}

func (thrower) Pick(*sample.Hop, int32, []int32, []int32) []int32 { panic("no") }

func FuzzHopRequest(f *testing.F) {
	q := sample.HopRequest{Seed: 1 << 40, Purpose: sample.Training, Epoch: 3, Step: 4, Hop: 2, Picker: sample.UniformPicker, Fanout: -1, Nodes: all(5)}
	f.Add(q.Append(nil))
	f.Add([]byte("HOQ1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var q sample.HopRequest
		if q.Decode(b) != nil {
			return
		}
		if len(q.Nodes)*4 > len(b) || string(q.Append(nil)) != string(b) {
			t.Fatalf("%d bytes were decoded as %+v", len(b), q)
		}
	})
}

func FuzzHopReply(f *testing.F) {
	r := sample.HopReply{Counts: []int32{1, 2}, First: []int64{4, 5}, Sources: []int32{7, 8, 9}, Offsets: []int32{0, 1, 0}}
	f.Add(r.Append(nil))
	r.Edges.Weights = []float32{1, 2, 3}
	f.Add(r.Append(nil))
	r.Edges.Times, r.Edges.Features = []int64{-4, 0, 1 << 40}, &graphops.EdgeFeatures{Cols: 2, F32: []float32{1, 2, 3, 4, 5, 6}}
	f.Add(r.Append(nil))
	r.Edges.Features = &graphops.EdgeFeatures{Cols: 1, F16: []uint16{1, 2, 3}}
	f.Add(r.Append(nil))
	f.Add([]byte("HOP2\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("HOP2\x00\x00\x00\x00\xff\xff\xff\xff\x04\x00\x00\x00\xff\xff\xff\x7f")) // the size overflows 64 bits
	f.Fuzz(func(t *testing.T, b []byte) {
		var r sample.HopReply
		if r.Decode(b) != nil {
			return
		}
		if 8*len(r.First)+(4+r.Edges.Shape().Bytes())*len(r.Sources) > len(b) || string(r.Append(nil)) != string(b) {
			t.Fatalf("%d bytes were decoded as %+v", len(b), r)
		}
	})
}
