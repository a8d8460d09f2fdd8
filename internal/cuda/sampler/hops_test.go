package sampler

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/internal/ptx"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
	"github.com/graphnb/graphnb/internal/cuda/store"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/testneed"
)

// gpu runs kernels on the interpreter, without a driver. With narrow, each launch has one block.
type gpu struct {
	t        *testing.T
	m        *ptx.Machine
	launched map[string]int
	narrow   bool
}

var parsed = sync.OnceValues(func() (map[string]*ptx.Kernel, error) {
	all := map[string]*ptx.Kernel{}
	for _, m := range kernels.Modules() {
		mod, err := ptx.Parse(m.Name+".ptx", m.PTX)
		if err != nil {
			return nil, err
		}
		for _, k := range mod.Kernels() {
			all[k.Name] = k
		}
	}
	return all, nil
})

func (g *gpu) Launch(name string, grid, block cuda.Dim, shared int, args ...any) {
	g.t.Helper()
	all, err := parsed()
	if err != nil {
		g.t.Fatal(err)
	}
	for i, a := range args {
		if p, ok := a.(cuda.Ptr); ok {
			args[i] = uint64(p)
		}
	}
	g.launched[name]++
	if g.narrow {
		grid.X = 1 // kernels stride by their grid
	}
	if err := g.m.Launch(all[name], ptx.Dim(grid), ptx.Dim(block), shared, args...); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gpu) Fill32(dst cuda.Ptr, v uint32, n int64) {
	if err := g.m.Memory.Fill(uint64(dst), binary.LittleEndian.AppendUint32(nil, v), 4*n); err != nil {
		g.t.Fatal(err)
	}
}

// room allocates exactly n unwritten bytes.
func (g *gpu) room(n int64) cuda.Ptr {
	g.t.Helper()
	at, err := g.m.Memory.Alloc(max(n, 1))
	if err != nil {
		g.t.Fatal(err)
	}
	return cuda.Ptr(at)
}

func put[T any](g *gpu, s []T) cuda.Ptr {
	if s == nil {
		return 0
	}
	b, err := binary.Append(nil, binary.LittleEndian, s)
	if err != nil {
		g.t.Fatal(err)
	}
	at := g.room(int64(len(b)))
	if err := g.m.Memory.Write(uint64(at), b); err != nil {
		g.t.Fatal(err)
	}
	return at
}

func get[T int32 | int64 | float32](g *gpu, at cuda.Ptr, n int) []T {
	g.t.Helper()
	out := make([]T, n)
	b := make([]byte, binary.Size(out))
	if err := g.m.Memory.Read(uint64(at), b); err != nil {
		g.t.Fatal(err)
	}
	if _, err := binary.Decode(b, binary.LittleEndian, out); err != nil {
		g.t.Fatal(err)
	}
	return out
}

// random returns a graph with skewed in-degrees, nodes without in-edges, a hub, duplicate edges and
// self-loops.
func random(nodes, degree int, seed uint64) *graphops.Graph {
	r := rand.New(rand.NewPCG(seed, 1))
	g := &graphops.Graph{Indptr: make([]int64, nodes+1)}
	for v := range nodes {
		n := 0
		switch {
		case v == nodes/2:
			n = 20 * degree
		case r.IntN(8) > 0:
			n = r.IntN(2*degree + 1)
		}
		from := len(g.Indices)
		for range n {
			g.Indices = append(g.Indices, int32(r.IntN(nodes)))
		}
		slices.Sort(g.Indices[from:])
		g.Indptr[v+1] = int64(len(g.Indices))
	}
	return g
}

// hubs returns a graph whose first nodes have about as many in-edges as a warp loads at once, and
// as all pieces of weights hold at their smallest length.
func hubs() *graphops.Graph {
	g := &graphops.Graph{Indptr: []int64{0}}
	for _, n := range []int{127, 128, 129, 1 << 15, 1<<15 + 1, 40000} {
		for e := range n {
			g.Indices = append(g.Indices, int32(e%5000))
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	for len(g.Indptr) <= 5000 {
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

// everywhere returns a graph in which two nodes have an edge to every node.
func everywhere(nodes int) *graphops.Graph {
	g := &graphops.Graph{Indptr: []int64{0}}
	for d := range nodes {
		g.Indices = append(g.Indices, 3, int32(nodes-1))
		g.Indptr = append(g.Indptr, int64(2*d+2))
	}
	return g
}

// weigh gives the edges weights of many sizes, zeros and subnormal ones among them.
func weigh(g *graphops.Graph, seed uint64) *graphops.Graph {
	r := rand.New(rand.NewPCG(seed, 2))
	w := make([]float32, len(g.Indices))
	for i := range w {
		switch r.IntN(10) {
		case 0:
		case 1:
			w[i] = math.Float32frombits(uint32(1 + r.IntN(1<<20)))
		case 2:
			w[i] = r.Float32() * 1e30
		default:
			w[i] = r.Float32()
		}
	}
	return g.WithEdgeWeights(w)
}

// seedsOf returns n distinct nodes in random order.
func seedsOf(nodes, n int) []int32 {
	ids := make([]int32, nodes)
	for i := range ids {
		ids[i] = int32(i)
	}
	return sample.EpochOrder(5, 0, ids)[:n]
}

type testCase struct {
	name    string
	g       *graphops.Graph
	picker  sample.Picker
	seeds   []int32
	purpose philox.Purpose
}

func cases() []testCase {
	g := random(400, 12, 1)
	w := weigh(g, 3)
	big := random(3000, 6, 9)
	empty := &graphops.Graph{Indptr: make([]int64, 41), Indices: []int32{}}
	cycle := &graphops.Graph{Indptr: []int64{0, 1, 2, 3}, Indices: []int32{2, 0, 1}}
	loop := &graphops.Graph{Indptr: []int64{0, 3}, Indices: []int32{0, 0, 0}}
	return []testCase{
		{"fanouts", g, sample.Fanouts{15, 10, 5}, seedsOf(400, 7), philox.Sample},
		{"each width of picking", g, sample.Fanouts{8, 9, 33}, seedsOf(400, 5), philox.Sample},
		{"a width and one more", g, sample.Fanouts{16, 17, 32}, seedsOf(400, 3), philox.Evaluate},
		{"one and none", g, sample.Fanouts{1, 0, 2}, seedsOf(400, 40), philox.Sample},
		{"many", g, sample.Fanouts{100, 70}, []int32{200, 3, 4}, philox.Sample},
		{"all", g, sample.Fanouts{-1, -1}, seedsOf(400, 9), philox.Sample},
		{"all, then some", g, sample.Fanouts{-1, 4}, seedsOf(400, 2), philox.Sample},
		{"tails", big, sample.Fanouts{3}, seedsOf(3000, 1025), philox.Sample},
		{"tile", big, sample.Fanouts{1}, seedsOf(3000, 1024), philox.Sample},
		{"sums in rounds", random(3000, 14, 9), sample.Fanouts{14}, seedsOf(3000, 1025), philox.Sample},
		{"31", big, sample.Fanouts{2, 2}, seedsOf(3000, 31), philox.Sample},
		{"32", big, sample.Fanouts{2, 2}, seedsOf(3000, 32), philox.Sample},
		{"33", big, sample.Fanouts{2, 2}, seedsOf(3000, 33), philox.Sample},
		{"no seeds", g, sample.Fanouts{5, -1}, nil, philox.Sample},
		{"no edges", empty, sample.Fanouts{5, -1, 40}, seedsOf(40, 5), philox.Sample},
		{"a cycle", cycle, sample.Fanouts{2, 2}, []int32{1}, philox.Sample},
		{"loops", loop, sample.Fanouts{2, -1}, []int32{0}, philox.Sample},
		{"a source of many edges", everywhere(700), sample.Fanouts{1, 2}, seedsOf(700, 600), philox.Sample},
		{"edges have weights", w, sample.Fanouts{4, -1}, seedsOf(400, 9), philox.Sample},
		{"by weight", w, sample.Weighted{Fanouts: sample.Fanouts{6, 40, 3}}, seedsOf(400, 5), philox.User},
		{"hubs, all", hubs(), sample.Fanouts{-1}, []int32{0, 1, 2, 3, 9}, philox.Sample}, // 33 tiles: digits in parts
		{"hubs, by weight", weigh(hubs(), 4), sample.Weighted{Fanouts: sample.Fanouts{9}}, []int32{0, 1, 2, 3, 4, 5}, philox.Sample},
		{"labor", g, sample.Labor{Fanouts: sample.Fanouts{15, 10, 5}}, seedsOf(400, 7), philox.Sample},
		{"labor with dependencies", g, sample.Labor{Fanouts: sample.Fanouts{4, 4, 2}, LayerDependency: true, BatchDependency: 3}, seedsOf(400, 30), philox.Sample},
		{"labor, some and none", w, sample.Labor{Fanouts: sample.Fanouts{1, -1, 0}, BatchDependency: 7}, seedsOf(400, 5), philox.Evaluate},
		{"labor, copies of edges", everywhere(300), sample.Labor{Fanouts: sample.Fanouts{1, 1}}, seedsOf(300, 200), philox.Sample},
		{"labor, hubs", hubs(), sample.Labor{Fanouts: sample.Fanouts{200}}, []int32{0, 1, 2, 3, 4, 5}, philox.Sample},
		{"labor, loops", loop, sample.Labor{Fanouts: sample.Fanouts{2, 1}}, []int32{0}, philox.Sample},
		{"all, by weight", w, sample.Weighted{Fanouts: sample.Fanouts{-1, 3}}, seedsOf(400, 5), philox.Sample},
	}
}

// run samples a batch on the interpreter and returns its blocks as host blocks, from the seeds
// outwards.
func run(g *gpu, c testCase, epoch, step int) []*graphops.Block {
	t := g.t
	c.g, _ = c.g.WithoutZeroWeights()
	sg := &store.Graph{Host: c.g, Nodes: int64(c.g.NumNodes()), Edges: c.g.NumEdges(), Indptr: put(g, c.g.Indptr), Indices: put(g, c.g.Indices), Weights: put(g, c.g.EdgeWeights)}
	spec, _ := sample.SpecOf(c.picker)
	fan, weighted, labor := spec.Fanouts, spec.Weighted, spec.Labor
	table := g.room(4 * sg.Nodes)
	g.Fill32(table, emptyWord, sg.Nodes)
	h := &hops{s: g, g: sg, weighted: weighted, labor: labor, seed: 77, step: uint32(step), n: len(fan), ids: g.room(4 * sg.Nodes)}
	h.m = scratch{table: table, state: g.room(int64(8 * stateWords(len(fan)))), sharedForPick: 5000}
	h.begin(put(g, append([]int32{}, c.seeds...)), len(c.seeds))
	size := func(p cuda.Ptr) int64 { return get[int64](g, p, 1)[0] }
	var blocks []*graphops.Block
	for hop, k := range fan {
		// All buffers have exactly the needed size, so the interpreter detects an access beyond
		// them.
		n := size(h.known(hop))
		h.m.local, h.m.tiles, h.m.count, h.m.tops = g.room(8*n), g.room(8*int64(tiles(n))), g.room(8*n), g.room(4*n)
		h.count(hop, k, n, sg.Edges)
		e := size(h.edges(hop))
		h.m.edges, h.m.bits = g.room(8*int64(tiles(e))), g.room(128*int64(tiles(e)))
		a := arrays{indptr: g.room(8 * (n + 1)), indices: g.room(4 * e), edgePos: g.room(8 * e), dst: g.room(4 * e), long: g.room(sizes.ChunkList(e)), tLong: g.room(sizes.ChunkList(e))}
		if sg.Weights != 0 {
			a.weights = g.room(4 * e)
		}
		h.pick(hop, k, h.c3(c.purpose, hop, epoch), &a, n, e)
		h.longRows(hop, k, &a)
		h.number(hop, &a, e)
		rows := size(h.known(hop + 1))
		h.m.digits, h.m.parts, h.m.keys1, h.m.keys2, h.m.values = g.room(8*256*int64(tiles(e))), g.room(8*int64(partsOf(tiles(e)))), g.room(4*e), g.room(4*e), g.room(4*e)
		a.tIndptr, a.tDst, a.tEdge = g.room(8*(rows+1)), g.room(4*e), g.room(4*e)
		rowOf := h.transpose(hop, &a, rows, e)
		b := fetched(g, h, hop, &a, e, h.long(hop), h.tLong(hop))
		blocks = append(blocks, b)

		// The block with self-loops, in memory for the edges that it has.
		want := b.SelfLooped()
		looped, total := int64(want.NumEdges()), h.m.state+cuda.Ptr(8*loopedAt(h.n, hop))
		h.m.before, h.m.rowOf = g.room(128*int64(tiles(e))), g.room(4*looped)
		l := arrays{indptr: g.room(8 * (n + 1)), indices: g.room(4 * looped), edgePos: g.room(8 * looped), long: g.room(sizes.ChunkList(looped)), tLong: g.room(sizes.ChunkList(looped))}
		l.tIndptr, l.tDst, l.tEdge = g.room(8*(rows+1)), g.room(4*looped), g.room(4*looped)
		h.loops(hop, &a, &l, rowOf, n, rows, e)
		if got := size(total); got != looped {
			t.Fatalf("hop %d: %d edges with self-loops, want %d", hop, got, looped)
		}
		if g.t.Failed() {
			continue
		}
		if w := want.Weights(); w != nil {
			l.weights = put(g, w) // they are not made
		}
		same(t, hop, fetched(g, h, hop, &l, looped, total+8, total+16), want)
	}
	h.end(size(h.known(len(fan))))
	for v, w := range get[int32](g, table, int(sg.Nodes)) {
		if w != -1 {
			t.Errorf("the table still holds %d for node %d", w, v)
		}
	}
	if s := get[int64](g, h.m.state, 1)[0]; s != -1 {
		t.Errorf("fault %#x", uint64(s))
	}
	return blocks
}

// fetched returns a hop's block of e edges as a host block, and checks its lists of chunks, whose sizes are in two words.
func fetched(g *gpu, h *hops, hop int, a *arrays, e int64, long, tLong cuda.Ptr) *graphops.Block {
	word := func(p cuda.Ptr) int64 { return get[int64](g, p, 1)[0] }
	n, rows := int(word(h.known(hop))), int(word(h.known(hop+1)))
	host := graphops.HostBlock{NumDst: n, NumSrc: rows, Indptr: get[int64](g, a.indptr, n+1), Indices: get[int32](g, a.indices, int(e)), EdgePos: get[int64](g, a.edgePos, int(e))}
	host.SrcIDs = get[int32](g, h.ids, rows)
	if a.weights != 0 {
		host.Weights = get[float32](g, a.weights, int(e))
	}
	b := host.Block()
	list := func(at, word cuda.Ptr) ([]int32, cuda.ChunkList) {
		l := cuda.ChunkListAt(at, get[int64](g, word, 1)[0])
		return get[int32](g, at, 4*l.N), l
	}
	chunks, l := list(a.long, long)
	sameChunks(g.t, hop, "destinations", chunks, l, b.Indptr())
	chunks, l = list(a.tLong, tLong)
	sameChunks(g.t, hop, "sources", chunks, l, b.Transposed().Indptr)
	b.Dev = &graphops.Transposed{Indptr: get[int64](g, a.tIndptr, rows+1), Dst: get[int32](g, a.tDst, int(e)), Edge: get[int32](g, a.tEdge, int(e))}
	return b
}

// sameChunks compares a list of chunks of long rows with that of indptr.
func sameChunks(t *testing.T, hop int, what string, got []int32, l cuda.ChunkList, indptr []int64) {
	t.Helper()
	want, parts := kernels.Chunks(indptr)
	if !slices.Equal(got, want) || l.N != len(want)/4 || l.Parts != parts {
		t.Errorf("hop %d: the chunks of %s with many edges are %v with %d parts, want %v with %d", hop, what, got, l.Parts, want, parts)
	}
}

// same compares blocks, array by array.
func same(t *testing.T, hop int, got, want *graphops.Block) {
	t.Helper()
	for _, c := range []struct {
		name string
		a, b any
	}{
		{"offsets", got.Indptr(), want.Indptr()},
		{"sources", got.Indices(), want.Indices()},
		{"positions", got.EdgePos(), want.EdgePos()},
		{"nodes", got.SrcIDs(), want.SrcIDs()},
		{"weights", got.Weights(), want.Weights()},
		{"destinations", got.NumDst, want.NumDst},
		{"rows", got.NumSrc, want.NumSrc},
	} {
		if v, w := reflect.ValueOf(c.a), reflect.ValueOf(c.b); v.Kind() == reflect.Slice && v.Len()+w.Len() == 0 && c.name != "weights" {
			continue // nil or not
		}
		if !reflect.DeepEqual(c.a, c.b) {
			t.Errorf("hop %d: %s are\n%v, want\n%v", hop, c.name, c.a, c.b)
		}
	}
	if tr, ok := got.Dev.(*graphops.Transposed); ok {
		ref := want.Transposed()
		if !slices.Equal(tr.Indptr, ref.Indptr) || !slices.Equal(tr.Dst, ref.Dst) || !slices.Equal(tr.Edge, ref.Edge) {
			t.Errorf("hop %d: the transpose is\n%v %v %v, want\n%v %v %v", hop, tr.Indptr, tr.Dst, tr.Edge, ref.Indptr, ref.Dst, ref.Edge)
		}
	}
}

// The kernels sample the same blocks as the CPU, in every order of threads and with one block or
// many, without races and without accesses beyond memory of exactly the right size. Without
// GNB_SOAK each case runs shuffled, and either ascending or descending.
func TestHops(t *testing.T) {
	testneed.NotShort(t, "it interprets every kernel of sampling for seconds")
	launched := map[string]int{}
	for name, order := range map[string]ptx.Order{"ascending": {}, "descending": {Descending: true}, "shuffled": {Shuffle: 3}} {
		for i, c := range cases() {
			if order.Shuffle == 0 && order.Descending != (i%2 == 1) && !testneed.Soak.Here() {
				continue // one of these orders for each case
			}
			t.Run(fmt.Sprint(name, "/", c.name), func(t *testing.T) {
				g := &gpu{t, ptx.NewMachine(ptx.NewMemory(0, 1<<30)), launched, order.Shuffle != 0}
				g.m.Order = order
				cpu, err := sample.New(c.g, sample.Config{Picker: c.picker, Seed: 77, Purpose: sample.Purpose(c.purpose)})
				if err != nil {
					t.Fatal(err)
				}
				want, err := cpu.Sample(3, 12, sample.Seeds{IDs: c.seeds})
				if err != nil {
					t.Fatal(err)
				}
				for hop, got := range run(g, c, 3, 12) {
					same(t, hop, got, want.Blocks[len(want.Blocks)-1-hop])
				}
			})
		}
	}
	for _, m := range kernels.Modules() {
		if m.Name != "sample" && m.Name != "weighted" && m.Name != "labor" && m.Name != "bysource" && m.Name != "loops" {
			continue
		}
		for _, k := range m.Kernels {
			if launched[k.Name] == 0 {
				t.Errorf("no test launched %s", k.Name)
			}
		}
	}
}

// For any graph, fanouts and seeds, the kernels sample the same blocks as the CPU.
func FuzzHops(f *testing.F) {
	f.Add(uint64(1), uint16(50), uint8(4), uint8(9), []byte{3, 200, 40}, false, false)
	f.Add(uint64(2), uint16(300), uint8(20), uint8(200), []byte{17, 9}, true, false)
	f.Add(uint64(3), uint16(200), uint8(30), uint8(100), []byte{17, 2, 70}, false, true)
	f.Fuzz(func(t *testing.T, seed uint64, nodes uint16, degree, seeds uint8, fanouts []byte, weighted, labor bool) {
		n := int(nodes)%80 + 1
		var fan sample.Fanouts
		for _, k := range fanouts[:min(len(fanouts), 3)] {
			fan = append(fan, int(k)%70-1)
		}
		if len(fan) == 0 {
			return
		}
		c := testCase{g: random(n, int(degree)%8+1, seed), picker: fan, seeds: seedsOf(n, min(int(seeds), n)), purpose: philox.Sample}
		if labor {
			c.picker = sample.Labor{Fanouts: fan, BatchDependency: int(seed % 9), LayerDependency: seed%2 == 0}
		}
		if weighted {
			c.g, c.picker = weigh(c.g, seed), sample.Weighted{Fanouts: fan}
		}
		cpu, err := sample.New(c.g, sample.Config{Picker: c.picker, Seed: 77})
		if err != nil {
			t.Fatal(err)
		}
		want, err := cpu.Sample(3, int(seed>>40), sample.Seeds{IDs: c.seeds})
		if err != nil {
			t.Fatal(err)
		}
		g := &gpu{t, ptx.NewMachine(ptx.NewMemory(0, 1<<30)), map[string]int{}, seed%2 == 0}
		g.m.Order = ptx.Order{Shuffle: seed}
		for hop, got := range run(g, c, 3, int(seed>>40)) {
			same(t, hop, got, want.Blocks[len(want.Blocks)-1-hop])
		}
	})
}
