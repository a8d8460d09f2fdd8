package graphops

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := drawEdges(t)
		src, dst := columns(edges)
		g, err := FromEdges(nodes, src, dst, BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lo := rapid.IntRange(0, nodes).Draw(t, "lo")
		hi := rapid.IntRange(lo, nodes).Draw(t, "hi")
		b := g.Slice(lo, hi)
		if b.NumDst != hi-lo || b.NumSrc != nodes || b.DstStart != lo {
			t.Fatalf("%v for nodes [%d, %d)", b, lo, hi)
		}
		total := 0
		for d := range b.NumDst {
			v := int32(lo + d)
			if b.DstID(d) != v || b.InDegree(d) != g.InDegree(v) {
				t.Fatalf("row %d is node %d with in-degree %d", d, b.DstID(d), b.InDegree(d))
			}
			for e := b.Indptr()[d]; e < b.Indptr()[d+1]; e++ {
				if b.Pos(e) != e || b.SrcID(int(b.Indices()[e])) != g.Indices[e] {
					t.Fatalf("edge %d", e)
				}
				total++
			}
		}
		if b.NumEdges() != total {
			t.Fatalf("%d edges, want %d", b.NumEdges(), total)
		}
	})
}

func TestTransposed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := drawEdges(t)
		src, dst := columns(edges)
		g, err := FromEdges(nodes, src, dst, BuildOptions{KeepDuplicates: true})
		if err != nil {
			t.Fatal(err)
		}
		lo := rapid.IntRange(0, nodes).Draw(t, "lo")
		b := g.Slice(lo, rapid.IntRange(lo, nodes).Draw(t, "hi"))
		tr := b.Transposed()
		if tr != b.Transposed() {
			t.Fatal("made twice")
		}
		if len(tr.Indptr) != b.NumSrc+1 || tr.Indptr[b.NumSrc] != int64(b.NumEdges()) {
			t.Fatalf("indptr ends at %d", tr.Indptr[len(tr.Indptr)-1])
		}
		seen := make([]bool, b.NumEdges())
		for s := range b.NumSrc {
			row := tr.Edge[tr.Indptr[s]:tr.Indptr[s+1]]
			if !slices.IsSorted(row) {
				t.Fatalf("the edges of source %d do not ascend: %v", s, row)
			}
			for i, e := range row {
				d, pos := tr.Dst[tr.Indptr[s]+int64(i)], b.Indptr()[0]+int64(e)
				if seen[e] || int(b.Indices()[pos]) != s || pos < b.Indptr()[d] || pos >= b.Indptr()[d+1] {
					t.Fatalf("edge %d of source %d goes to row %d", e, s, d)
				}
				seen[e] = true
			}
		}
	})
}

// Transposing gives the same with any number of threads and in memory with any earlier contents.
func TestTransposeInParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	memory := &Transposed{}
	for _, c := range []struct{ dst, src, edges int }{
		{0, 0, 0},
		{1, 1, 0},
		{3, 5, 7},
		{1, 1000, 5 * transposePart},
		{1000, 1, 3 * transposePart},
		{5000, 70001, 2*transposePart - 1},
		{5000, 70001, 2 * transposePart},
		{7001, 9001, 7*transposePart + 11},
	} {
		list := make([]int32, c.edges)
		g := &Graph{Indptr: make([]int64, c.dst+1), Indices: make([]int32, c.edges)}
		for i := range list {
			list[i] = int32(r.IntN(c.dst)) * int32(r.IntN(3)/2) // a third of the sources is random, the others are 0
			g.Indices[i] = int32(r.IntN(c.src))
		}
		for _, d := range list {
			g.Indptr[d+1]++
		}
		for d := range c.dst {
			g.Indptr[d+1] += g.Indptr[d]
		}
		for lo := range min(c.dst+1, 2) { // starts at the first destination, then at the second
			whole := func() *Block {
				return HostBlock{NumDst: c.dst - lo, NumSrc: c.src, Indptr: g.Indptr[lo:], Indices: g.Indices}.Block()
			}
			want := whole()
			want.Transpose(&Transposed{}, 1)
			for threads := 2; threads <= 5; threads++ {
				got := whole()
				got.Transpose(memory, threads)
				tr, w := got.Transposed(), want.Transposed()
				if tr != memory || !slices.Equal(tr.Indptr, w.Indptr) || !slices.Equal(tr.Dst, w.Dst) || !slices.Equal(tr.Edge, w.Edge) {
					t.Fatalf("%v: the transpose on %d threads differs from that on one", got, threads)
				}
			}
		}
	}
}

func TestSampledBlockIDs(t *testing.T) {
	b := HostBlock{
		NumDst: 1, NumSrc: 3, Indptr: []int64{0, 2}, Indices: []int32{1, 2},
		EdgePos: []int64{40, 42}, SrcIDs: []int32{7, 3, 9},
	}.Block()
	if b.DstID(0) != 7 || b.SrcID(2) != 9 || b.Pos(1) != 42 || b.NumEdges() != 2 {
		t.Errorf("%v: destination %d, last source %d, last position %d", b, b.DstID(0), b.SrcID(2), b.Pos(1))
	}
}

// More edges than the transpose can number are refused before memory is requested.
func TestTransposedRefusesTooManyEdges(t *testing.T) {
	defer func() {
		if r, ok := recover().(string); !ok || !strings.Contains(r, "2147483648 edges") {
			t.Errorf("the panic is %v", r)
		}
	}()
	b := HostBlock{NumDst: 1, NumSrc: 1, Indptr: []int64{5, 5 + 1<<31}}.Block()
	b.Transposed()
}

// A block that is reset and set again derives the same values as a new one, in the memory of its
// earlier derivations.
func TestBlockReset(t *testing.T) {
	b := HostBlock{NumDst: 2, NumSrc: 3, Indptr: []int64{0, 2, 3}, Indices: []int32{0, 2, 0}, Weights: []float32{2, 3, 4}}.Block()
	key := "key"
	var olds []any
	derive := func(b *Block) string {
		l, tr := b.SelfLooped(), b.Transposed()
		return fmt.Sprint(l.NumDst, l.NumSrc, l.Indptr(), l.Indices(), l.EdgePos(), l.Weights(), tr.Indptr, tr.Dst, tr.Edge, l.Transposed().Dst, b.Memo(key, func() any { return b.NumEdges() }), b.MemoIn(7, func(old any) any { olds = append(olds, old); return b.NumDst }))
	}
	derive(b)
	for range 2 {
		fresh := HostBlock{NumDst: 3, NumSrc: 4, Indptr: []int64{0, 1, 1, 4}, Indices: []int32{3, 0, 1, 2}}.Block()
		b.Reset()
		if b.HasTransposed() {
			t.Error("a block still has its transpose after Reset")
		}
		b.SetHost(HostBlock{NumDst: fresh.NumDst, NumSrc: fresh.NumSrc, Indptr: fresh.Indptr(), Indices: fresh.Indices(), Weights: fresh.Weights()})
		if got, want := derive(b), derive(fresh); got != want {
			t.Errorf("after Reset %s, for a new block %s", got, want)
		}
		if n := len(olds); olds[n-2] == nil || olds[n-1] != nil {
			t.Errorf("MemoIn's function got %v for the reset block and %v for a new one", olds[n-2], olds[n-1])
		}
		if !b.HasTransposed() {
			t.Error("HasTransposed does not report the transpose")
		}
	}
}

// A block whose arrays are on a device knows its sizes without fetching arrays, fetches each array
// and derived value on request, and on Reset keeps those that it is told to keep.
func TestBlockOnDevice(t *testing.T) {
	kept := &onDevice{}
	for _, dev := range []any{kept, 7} {
		h := HostBlock{
			NumDst: 2, NumSrc: 5, Level: 1, Indptr: []int64{0, 2, 3}, Indices: []int32{4, 0, 1},
			EdgePos: []int64{7, 9, 8}, SrcIDs: []int32{3, 5, 1, 0, 2}, Weights: []float32{1, 2, 3},
		}
		r, b := &remote{h: h}, &Block{}
		b.SetRemote(r, 2, 5, 1, nil)
		b.Dev = dev
		if b.NumEdges() != 3 || b.String() != "block: 2 destinations, 5 sources, 3 edges" || !b.Weighted() || b.RowsAreNodes() || b.Remote() != Remote(r) {
			t.Errorf("the block has %d edges and prints as %q", b.NumEdges(), b)
		}
		if len(r.asked) > 0 {
			t.Errorf("reading the sizes fetched %v", r.asked)
		}
		if b.SrcID(1) != 5 || b.DstID(0) != 3 || fmt.Sprint(r.asked) != "[SrcIDs SrcIDs]" {
			t.Errorf("reading the ids fetched %v", r.asked)
		}
		host := h.Block()
		for name, f := range map[string]func(b *Block) any{
			"arrays":    func(b *Block) any { return fmt.Sprint(b.Indptr(), b.Indices(), b.EdgePos(), b.SrcIDs(), b.Weights()) },
			"an edge":   func(b *Block) any { return fmt.Sprint(b.InDegree(0), b.Pos(1), b.Weight(2)) },
			"transpose": func(b *Block) any { return fmt.Sprint(b.Transposed().Indptr, b.Transposed().Dst, b.Transposed().Edge) },
			"self-looped": func(b *Block) any {
				l := b.SelfLooped()
				return fmt.Sprint(l.Indptr(), l.Indices(), l.EdgePos(), l.SrcIDs(), l.Weights())
			},
		} {
			if got, want := f(b), f(host); got != want {
				t.Errorf("%s: %v, for a block on the host %v", name, got, want)
			}
		}
		b.SetHost(h)
		if b.Remote() != nil || b.HasTransposed() || fmt.Sprint(b.Indices(), b.SelfLooped().Indices()) != fmt.Sprint(h.Indices, host.SelfLooped().Indices()) {
			t.Error("after SetHost the block is still on the device, or has other arrays")
		}
		if dev == any(kept) != (b.Dev == dev) {
			t.Errorf("after SetHost, Dev is %v", b.Dev)
		}
	}
	if kept.resets != 1 {
		t.Errorf("the data on the device was reset %d times", kept.resets)
	}
}

// remote is a device that records its requests.
type remote struct {
	h     HostBlock
	asked []string
}

func (r *remote) ask(what string)    { r.asked = append(r.asked, what) }
func (r *remote) NumEdges() int      { return len(r.h.Indices) }
func (r *remote) Indptr() []int64    { r.ask("Indptr"); return r.h.Indptr }
func (r *remote) Indices() []int32   { r.ask("Indices"); return r.h.Indices }
func (r *remote) EdgePos() []int64   { r.ask("EdgePos"); return r.h.EdgePos }
func (r *remote) SrcIDs() []int32    { r.ask("SrcIDs"); return r.h.SrcIDs }
func (r *remote) Weighted() bool     { return r.h.Weights != nil }
func (r *remote) Weights() []float32 { r.ask("Weights"); return r.h.Weights }
func (r *remote) IDsOf() any         { return r }

type onDevice struct{ resets int }

func (d *onDevice) Reset() { d.resets++ }
