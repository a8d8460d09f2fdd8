package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
	"github.com/graphnb/graphnb/internal/testneed"
)

// graphs returns blocks whose edges begin in the middle of their arrays: without destinations, with
// destinations without edges, with duplicate edges, and with a hub.
func graphs() []*graphops.Block {
	var all []*graphops.Block
	for _, size := range [][2]int{{0, 3}, {1, 1}, {33, 70}, {31, 40}} {
		r := rand.New(rand.NewPCG(uint64(size[0]), 3))
		b := graphops.HostBlock{NumDst: size[0], NumSrc: size[1], Indptr: []int64{2}, Indices: []int32{-9, -9}}
		for d := range size[0] {
			n := r.IntN(3) * r.IntN(5)
			if d == 5 {
				n = 1025
			}
			for range n {
				b.Indices = append(b.Indices, r.Int32N(int32(size[1])))
			}
			b.Indptr = append(b.Indptr, int64(len(b.Indices)))
		}
		all = append(all, b.Block())
	}
	return all
}

// dev holds the addresses of a block's arrays on the device, and those of its transpose.
type dev struct {
	indptr, indices        uint64
	tIndptr, tDst, tEdge   uint64
	first                  int64
	numDst, numSrc, number int
}

func upload(g *gpu, b *graphops.Block) dev {
	t := b.Transposed()
	return dev{
		put(g, b.Indptr()), put(g, b.Indices()), put(g, t.Indptr), put(g, t.Dst), put(g, t.Edge),
		b.Indptr()[0], b.NumDst, b.NumSrc, b.NumEdges(),
	}
}

var widths = []int{1, 3, 4, 33, 132}

// eachGraph tests every graph with every width, in every order of blocks, adding and not. On large graphs, which take
// the interpreter longest, a pair of order and width either adds or does not, such that each width and each order has
// both; with GNB_SOAK, every pair does both.
func eachGraph(t *testing.T, test func(g *gpu, b *graphops.Block, d dev, cols int, acc bool)) {
	turn := 0
	each(t, func(g *gpu) {
		turn++
		for _, b := range graphs() {
			d := upload(g, b)
			for i, cols := range widths {
				if testing.Short() && cols != 4 && cols != 33 {
					continue
				}
				if cols > 33 && b.NumEdges() > 1000 && g.m.Order.Descending {
					continue // slow, and the other two orders cover it
				}
				for _, acc := range []bool{false, true} {
					if adds := (turn+i)%3 == 2; b.NumEdges() > 1000 && acc != adds && !testing.Short() && !testneed.Soak.Here() {
						continue
					}
					test(g, b, d, cols, acc)
				}
			}
		}
	})
}

// same compares a kernel's output with want.
func same(g *gpu, what string, at uint64, want []float32, units float64, args ...any) {
	g.t.Helper()
	near(g.t, what+fmt.Sprint(args...), get[float32](g, at, len(want)), want, units)
}

// sameSums compares sums over the rows of indptr with the CPU's. Short rows have the CPU's bits. In a long row of n
// edges, each of n additions of normal numbers rounds a sum of about √n, so sums in two orders differ by less than
// √n·√n units.
func sameSums(g *gpu, what string, at uint64, want []float32, indptr []int64, args ...any) {
	g.t.Helper()
	got := get[float32](g, at, len(want))
	rows := len(indptr) - 1
	cols := len(want) / max(rows, 1)
	for r := range rows {
		units := float64(indptr[r+1] - indptr[r])
		if units <= LongRow {
			units = 0
		}
		near(g.t, fmt.Sprint(what, " row ", r, args), got[r*cols:(r+1)*cols], want[r*cols:(r+1)*cols], units)
	}
}

// variants returns the kernel for a table's type that reads as many columns at a time as its rows
// allow, and that number of columns.
func variants(name string, cols int, half bool) (kernel string, vector int) {
	kernel = name + "_f32"
	if half {
		kernel = name + "_f16"
	}
	if cols%4 == 0 {
		return kernel + "x4", 4
	}
	return kernel, 1
}

// toHalf rounds x to what f16 holds, in place, and returns its bits.
func toHalf(x []float32) []uint16 {
	h := make([]uint16, len(x))
	for i, v := range x {
		f := math.Float32bits(v)
		sign, exp, frac := uint16(f>>16&0x8000), int(f>>23&0xff)-112, f>>13&0x3ff
		switch {
		case exp <= 0: // subnormal numbers become zero, which is enough for these tests
			sign, exp, frac = 0, 0, 0
		case exp > 30:
			exp, frac = 30, 0
		}
		h[i] = sign | uint16(exp<<10) | uint16(frac)
		x[i] = 0
		if exp > 0 {
			x[i] = math.Float32frombits(uint32(sign)<<16 | uint32(exp+112)<<23 | frac<<13)
		}
	}
	return h
}

func rowsOfTable(ids []int32) ops.Rows { return ops.Rows{N: len(ids), IDs: ids} }

func TestGather(t *testing.T) {
	each(t, func(g *gpu) {
		for _, rows := range []int{0, 1, 31, 33, 1025} {
			for _, cols := range widths {
				for _, half := range []bool{false, true} {
					table := random(50*cols, 4)
					at := put(g, table)
					if half {
						at = put(g, toHalf(table))
					}
					ids := make([]int32, rows)
					for i := range ids {
						ids[i] = int32(i * 7 % 50)
					}
					want := make([]float32, rows*cols)
					cpu.GatherRows(buf(want), buf(table), rowsOfTable(ids), cols)
					out, _ := g.out(rows*cols, false)
					name, v := variants("gather", cols, half)
					g.run(name, Gathered(rows, cols, v), out, at, 0, 0, put(g, ids), rows, cols)
					same(g, name, out, want, 0, rows, cols)
				}
			}
		}
	})
}

// Rows that a cache holds are read only from the cache.
func TestCachedRows(t *testing.T) {
	each(t, func(g *gpu) {
		for _, cols := range widths {
			for _, half := range []bool{false, true} {
				const nodes, cached = 50, 20
				table := random(nodes*cols, 4)
				var bits []uint16
				if half {
					bits = toHalf(table)
				}
				// In the table, the cached rows hold large values that would spoil a result.
				slots := make([]int32, nodes)
				cache, rest := make([]float32, cached*cols), slices.Clone(table)
				cacheBits, restBits := make([]uint16, cached*cols), slices.Clone(bits)
				for r := range slots {
					slots[r] = -1
					if r%5 < 2 {
						s := r/5*2 + r%5
						slots[r] = int32(s)
						copy(cache[s*cols:], table[r*cols:(r+1)*cols])
						for c := range cols {
							rest[r*cols+c] = 1e30
							if half {
								cacheBits[s*cols+c], restBits[r*cols+c] = bits[r*cols+c], 0x7bff
							}
						}
					}
				}
				x, k := put(g, rest), put(g, cache)
				if half {
					x, k = put(g, restBits), put(g, cacheBits)
				}
				ids := make([]int32, 33)
				for i := range ids {
					ids[i] = int32(i * 7 % nodes)
				}
				want := make([]float32, len(ids)*cols)
				cpu.GatherRows(buf(want), buf(table), rowsOfTable(ids), cols)
				out := g.room(4 * len(want))
				name, v := variants("gather", cols, half)
				g.run(name, Gathered(len(ids), cols, v), out, x, k, put(g, slots), put(g, ids), len(ids), cols)
				same(g, name, out, want, 0, cols)

				b := graphs()[2]
				d := upload(g, b)
				rows := make([]int32, b.NumSrc)
				for i := range rows {
					rows[i] = int32(i * 3 % nodes)
				}
				want = make([]float32, b.NumDst*cols)
				cpu.SpMMRows(tensor.Sum, buf(want), b, ops.Buffer{}, buf(table), rowsOfTable(rows), cols)
				out = g.room(4 * len(want))
				name, v = variants("spmm", cols, half)
				g.spmm(name, v, b.NumDst, cols, out, d.indptr, d.indices, put(g, rows), x, k, put(g, slots), 0, 0, d.first, b.NumDst, cols, 1, 0, 0)
				sameSums(g, name, out, want, b.Indptr(), cols)
			}
		}
	})
}

// spmm runs an aggregation: a kernel of spmm.cu, and the kernels of hub.cu for the long rows.
func (g *gpu) spmm(name string, v, rows, cols int, args ...any) {
	g.run(name, Tiled(rows, cols, v), args...)
	n, parts := g.chunks(args[1].(uint64), rows)
	at := g.room(4 * parts * cols)
	g.hub("hub"+name[len("spmm"):], func(n int) Shape { return HubSums(n, cols, v) }, args[1].(uint64), rows, args[:10], slices.Concat(args[11:], []any{at})...)
	g.join(n, parts, at, args[0].(uint64), args[1].(uint64), rows, cols, args[13], args[14])
}

// join adds the partial sums of n chunks, if there are any.
func (g *gpu) join(n, parts int, at, out, indptr uint64, rows, cols int, mean, acc any) {
	if parts > 0 {
		g.hub("hub_join_f32", func(int) Shape { return Hubs(n, cols) }, indptr, rows, []any{out, at, indptr}, cols, mean, acc)
	}
}

// chunks returns the number of chunks of long rows, and that of their partial results.
func (g *gpu) chunks(indptr uint64, rows int) (n, parts int) {
	list, parts := Chunks(get[int64](g, indptr, rows+1))
	return len(list) / 4, parts
}

// hub runs a kernel for long rows. It passes the list of their chunks and its length between the
// arguments before and after.
func (g *gpu) hub(name string, shape func(chunks int) Shape, indptr uint64, rows int, before []any, after ...any) {
	list, _ := Chunks(get[int64](g, indptr, rows+1))
	n := len(list) / 4
	g.run(name, shape(n), slices.Concat(before, []any{put(g, list), n}, after)...)
}

// max runs max_f32, and the kernels of hubmax.cu for the long rows.
func (g *gpu) max(indptr uint64, rows, cols int, args ...any) {
	g.run("max_f32", Tiled(rows, cols, 1), args...)
	_, parts := g.chunks(indptr, rows)
	at := []any{g.room(4 * parts * cols), g.room(4 * parts * cols)}
	shape := func(n int) Shape { return Hubs(n, cols) }
	g.hub("hub_max_f32", shape, indptr, rows, args[:6], slices.Concat(args[7:], at)...)
	if parts > 0 {
		g.hub("hub_max_join_f32", shape, indptr, rows, args[:2], slices.Concat(args[7:], at)...)
	}
}

// maxGrad runs max_grad_f32, and the kernels of hubmax.cu for the long rows.
func (g *gpu) maxGrad(indptr uint64, rows, cols int, args ...any) {
	g.run("max_grad_f32", Tiled(rows, cols, 1), args...)
	n, parts := g.chunks(indptr, rows)
	at := g.room(4 * parts * cols)
	g.hub("hub_max_grad_f32", func(n int) Shape { return Hubs(n, cols) }, indptr, rows, args[:6], slices.Concat(args[7:], []any{at})...)
	g.join(n, parts, at, args[0].(uint64), indptr, rows, cols, 0, args[8])
}

// The aggregation in all its forms: sums and means, weighted by head, over a table through an
// index, over messages, and backward over the transposed block.
func TestSpMM(t *testing.T) {
	testneed.NotShort(t, "it interprets kernels on many graphs")
	eachGraph(t, func(g *gpu, b *graphops.Block, d dev, cols int, acc bool) {
		for _, half := range []bool{false, true} {
			x := random(b.NumSrc*cols, 1)
			at := put(g, x)
			if half {
				at = put(g, toHalf(x))
			}
			name, v := variants("spmm", cols, half)
			for mean := range 2 {
				want := make([]float32, b.NumDst*cols)
				cpu.SpMM(tensor.Op(1-mean), buf(want), ops.Buffer{}, b, buf(x), cols)
				out, was := g.out(len(want), acc)
				for i := range want {
					want[i] += was[i]
				}
				g.spmm(name, v, b.NumDst, cols, out, d.indptr, d.indices, 0, at, 0, 0, 0, 0, d.first, b.NumDst, cols, 1, mean, asFlag(acc))
				sameSums(g, name, out, want, b.Indptr(), " mean ", mean, b, cols)
			}
			for _, heads := range []int{1, 3} {
				if cols%heads != 0 || half {
					continue
				}
				w := random(b.NumEdges()*heads, 6)
				for e := range w {
					if e%4 == 1 {
						w[e] = 0
					}
				}
				vec := name
				if v > 1 && cols/heads%4 != 0 {
					vec, v = "spmm_f32", 1
				}
				out, want := g.out(b.NumDst*cols, acc)
				cpu.SpMMWeighted(buf(want), b, buf(w), heads, buf(x), cols, acc)
				g.spmm(vec, v, b.NumDst, cols, out, d.indptr, d.indices, 0, at, 0, 0, put(g, w), 0, d.first, b.NumDst, cols, heads, 0, asFlag(acc))
				if len(w) > 0 {
					sameSums(g, vec, out, want, b.Indptr(), " weighted ", b, cols, heads)
				}
				if len(w) > 0 {
					dout := random(b.NumDst*cols, 8)
					out, want := g.out(b.NumSrc*cols, acc)
					cpu.SpMMWeightedGrad(buf(want), buf(dout), buf(w), heads, b, cols, acc)
					g.spmm(vec, v, b.NumSrc, cols, out, d.tIndptr, d.tDst, 0, put(g, dout), 0, 0, put(g, w), d.tEdge, 0, b.NumSrc, cols, heads, 0, asFlag(acc))
					sameSums(g, vec, out, want, b.Transposed().Indptr, " backward ", b, cols, heads)
				}
			}
		}
		table := random(99*cols, 9)
		rows := make([]int32, b.NumSrc)
		for i := range rows {
			rows[i] = int32(i * 5 % 99)
		}
		name, v := variants("spmm", cols, false)
		want := make([]float32, b.NumDst*cols)
		cpu.SpMMRows(tensor.Mean, buf(want), b, ops.Buffer{}, buf(table), rowsOfTable(rows), cols)
		out := g.room(4 * len(want))
		g.spmm(name, v, b.NumDst, cols, out, d.indptr, d.indices, put(g, rows), put(g, table), 0, 0, 0, 0, d.first, b.NumDst, cols, 1, 1, 0)
		sameSums(g, name, out, want, b.Indptr(), " of a table ", b, cols)
		msg := random(b.NumEdges()*cols, 10)
		out, want = g.out(b.NumDst*cols, acc)
		cpu.Segment(tensor.Mean, buf(want), ops.Buffer{}, b, buf(msg), cols, acc)
		g.spmm(name, v, b.NumDst, cols, out, d.indptr, 0, 0, put(g, msg), 0, 0, 0, 0, d.first, b.NumDst, cols, 1, 1, asFlag(acc))
		sameSums(g, name, out, want, b.Indptr(), " of messages ", b, cols)
	})
}

// longRows returns a block with short and long rows, adjacent and far apart: next to the lengths of chunks, and of what a
// block of threads loads at once. Its edges begin in the middle of their arrays.
func longRows(lengths ...int) *graphops.Block {
	h := graphops.HostBlock{NumSrc: 600, Indptr: []int64{7}, Indices: make([]int32, 7)}
	for d, n := range lengths {
		for e := range n {
			h.Indices = append(h.Indices, int32((e*31+d)%h.NumSrc))
		}
		h.Indptr = append(h.Indptr, int64(len(h.Indices)))
		for range 9 * (d % 4) { // empty rows in between, over the rows of several thread blocks
			h.Indptr = append(h.Indptr, int64(len(h.Indices)))
		}
	}
	h.NumDst = len(h.Indptr) - 1
	return h.Block()
}

// Sums and means over rows of up to LongRow edges and more match the CPU's. All orders of threads and sizes of grids give
// the same bits, and so do the kernels that read one column at a time and four.
func TestHubs(t *testing.T) {
	testneed.NotShort(t, "it interprets kernels on long rows")
	const chunk = 2 * LongRow
	b := longRows(LongRow-1, LongRow, LongRow+1, 0, 383, chunk-1, chunk, chunk+1, 1, 2*chunk, 9*chunk, 9*chunk+1)
	first := map[string][]float32{}
	each(t, func(g *gpu) {
		d := upload(g, b)
		for _, cols := range []int{1, 3, 4, 35, 132} {
			if cols > 4 && g.m.Order.Descending {
				continue // slow, and the other two orders cover it
			}
			x, w := random(b.NumSrc*cols, 1), random(b.NumEdges(), 2)
			for i := range w {
				if i%5 == 0 {
					w[i] = 0
				}
			}
			for mean, weights := range [][]float32{w, nil} {
				var at uint64
				want := make([]float32, b.NumDst*cols)
				if weights == nil {
					cpu.SpMM(tensor.Mean, buf(want), ops.Buffer{}, b, buf(x), cols)
				} else {
					at = put(g, weights)
					cpu.SpMMWeighted(buf(want), b, buf(weights), 1, buf(x), cols, false)
				}
				for _, v := range []int{1, 4} {
					name := map[int]string{1: "spmm_f32", 4: "spmm_f32x4"}[v]
					if cols%v > 0 {
						continue
					}
					out := g.room(4 * len(want))
					g.spmm(name, v, b.NumDst, cols, out, d.indptr, d.indices, 0, put(g, x), 0, 0, at, 0, d.first, b.NumDst, cols, 1, mean, 0)
					sameSums(g, name, out, want, b.Indptr(), cols, weights != nil)
					sameBits(g, first, fmt.Sprint(cols, mean), out, len(want))
				}
			}
		}
	})
}

// sameBits compares n results with those that the first order of threads has given.
func sameBits(g *gpu, first map[string][]float32, what string, at uint64, n int) {
	g.t.Helper()
	got := get[float32](g, at, n)
	if _, ok := first[what]; !ok {
		first[what] = got
	}
	if !slices.Equal(first[what], got) {
		g.t.Fatalf("%s: the bits differ between orders of threads", what)
	}
}

// hubSoftmax runs the kernels of a softmax or its gradient for long rows. args are the arguments of the first of them
// before and after the list.
func (g *gpu) hubSoftmax(kernel string, indptr uint64, rows, cols int, before, after []any) {
	_, parts := g.chunks(indptr, rows)
	room := []any{g.room(8 * parts * cols)}
	if kernel == "hub_edge_softmax" {
		room = []any{g.room(4 * parts * cols), room[0]}
	}
	shape := func(n int) Shape { return Hubs(n, cols) }
	after = slices.Concat([]any{cols}, after, room)
	g.hub(kernel+"_f32", shape, indptr, rows, before, after...)
	if parts > 0 {
		g.hub(kernel+"_join_f32", shape, indptr, rows, room, cols)
		g.hub(kernel+"_end_f32", shape, indptr, rows, before, after...)
	}
}

// Softmax over rows of about LongRow edges, and next to the lengths of chunks, matches the CPU's. All orders of threads
// give the same bits.
func TestHubsSoftmax(t *testing.T) {
	testneed.NotShort(t, "it interprets kernels on long rows")
	const chunk = 2 * LongRow
	b := longRows(LongRow-1, LongRow, LongRow+1, 0, chunk-1, chunk, 1, chunk+1, 2*chunk, 20*chunk+5)
	first := map[string][]float32{}
	for _, cols := range []int{1, 3, 4, 35} {
		x, dy := random(b.NumEdges()*cols, 3), random(b.NumEdges()*cols, 4)
		for i := range x {
			x[i] *= 20 // so that few edges have almost all of the weight
		}
		for i := range 11 * chunk * cols { // the last row's last chunks have no other elements
			x[len(x)-1-i] = float32(math.Inf(-1))
		}
		each(t, func(g *gpu) {
			if cols > 4 && g.m.Order.Descending {
				return // slow, and the other two orders cover it
			}
			indptr := put(g, b.Indptr())
			want := make([]float32, len(x))
			cpu.EdgeSoftmax(buf(want), b, buf(x), cols)
			y := g.room(4 * len(x))
			g.hubSoftmax("hub_edge_softmax", indptr, b.NumDst, cols, []any{y, indptr, put(g, x), b.Indptr()[0]}, nil)
			g.run("edge_softmax_f32", Rows(b.NumDst, cols), y, indptr, put(g, x), b.Indptr()[0], b.NumDst, cols)
			same(g, "hub_edge_softmax_f32", y, want, 8, cols)
			sameBits(g, first, fmt.Sprint("softmax ", cols), y, len(x))
			for _, acc := range []bool{false, true} {
				dx, wantX := g.out(len(x), acc)
				cpu.EdgeSoftmaxGrad(buf(wantX), buf(dy), buf(want), b, cols, acc)
				args := []any{dx, indptr, put(g, dy), put(g, want), b.Indptr()[0], b.NumDst, cols}
				g.hubSoftmax("hub_edge_softmax_grad", indptr, b.NumDst, cols, args[:5], []any{asFlag(acc)})
				g.run("edge_softmax_grad_f32", Rows(b.NumDst, cols), append(args, asFlag(acc))...)
				same(g, "hub_edge_softmax_grad_f32", dx, wantX, 8, cols, acc)
				sameBits(g, first, fmt.Sprint("gradient ", cols, acc), dx, len(x))
			}
		})
	}
}

// The maximum over long rows, with ties and NaN, has the CPU's values and winners. Its gradient to sources of many edges
// matches the CPU's, and all orders of threads and sizes of grids give the same bits.
func TestHubsMax(t *testing.T) {
	testneed.NotShort(t, "it interprets kernels on long rows")
	const chunk = 2 * LongRow
	b := longRows(LongRow+1, 3, chunk, chunk+1, 9*chunk+1, 3*chunk, 600)
	first := map[string][]float32{}
	nan := float32(math.NaN())
	each(t, func(g *gpu) {
		d := upload(g, b)
		for _, cols := range []int{1, 35} {
			if cols > 1 && g.m.Order.Descending {
				continue // slow, and the other two orders cover it
			}
			x := random(b.NumEdges()*cols, 1)
			for i := range x {
				x[i] = float32(math.Round(float64(2 * x[i]))) // makes ties
				if i%(300*cols) < cols/2 {
					x[i] = nan // in half of the columns, several times in a long row
				}
			}
			want, arg := make([]float32, b.NumDst*cols), make([]float32, b.NumDst*cols)
			cpu.Segment(tensor.Max, buf(want), buf(arg), b, buf(x), cols, false)
			out, args := g.room(4*len(want)), g.room(4*len(want))
			g.max(d.indptr, b.NumDst, cols, out, args, d.indptr, 0, put(g, x), d.first, b.NumDst, cols, 0)
			same(g, "hub_max_f32", out, want, 0, cols)
			if got := get[uint32](g, args, len(want)); !slices.Equal(got, buf(arg).Words()) {
				g.t.Fatalf("%d columns: the winners are edges\n%v, want\n%v", cols, got, buf(arg).Words())
			}
		}
		// Each of two sources has the edges to 1200 destinations of one or two edges.
		h := graphops.HostBlock{NumDst: 2400, NumSrc: 2, Indptr: []int64{0}}
		for d := range h.NumDst {
			h.Indices = append(h.Indices, []int32{int32(d % 2), int32(d / 2 % 2)}[:1+d%2]...)
			h.Indptr = append(h.Indptr, int64(len(h.Indices)))
		}
		b := h.Block()
		d = upload(g, b)
		for _, cols := range []int{1, 35} {
			x, dout := random(2*cols, 1), random(b.NumDst*cols, 2)
			want, arg := make([]float32, b.NumDst*cols), make([]float32, b.NumDst*cols)
			cpu.SpMM(tensor.Max, buf(want), buf(arg), b, buf(x), cols)
			for _, acc := range []bool{false, true} {
				dx, wantX := g.out(2*cols, acc)
				cpu.SpMMGrad(tensor.Max, buf(wantX), buf(dout), buf(arg), b, cols, acc)
				g.maxGrad(d.tIndptr, b.NumSrc, cols, dx, put(g, dout), put(g, buf(arg).Words()), d.tIndptr, d.tDst, d.tEdge, b.NumSrc, cols, asFlag(acc))
				sameSums(g, "hub_max_grad_f32", dx, wantX, b.Transposed().Indptr, cols)
				sameBits(g, first, fmt.Sprint(cols, acc), dx, len(wantX))
			}
		}
	})
}

// In the gradient of a mean, each edge has the weight 1 over the number of its destination's edges.
func TestShares(t *testing.T) {
	each(t, func(g *gpu) {
		for _, b := range graphs() {
			d, want := upload(g, b), make([]float32, b.NumDst)
			for i := range want {
				want[i] = 1 / float32(max(b.InDegree(i), 1))
			}
			w := g.room(4 * len(want))
			g.run("shares_f32", Items(b.NumDst), w, d.indptr, b.NumDst)
			same(g, "shares_f32", w, want, 0, b)
			dout := random(b.NumDst*3, 1)
			dx, wantX := g.out(b.NumSrc*3, true)
			cpu.SpMMGrad(tensor.Mean, buf(wantX), buf(dout), ops.Buffer{}, b, 3, true)
			g.spmm("spmm_f32", 1, b.NumSrc, 3, dx, d.tIndptr, d.tDst, 0, put(g, dout), 0, 0, w, d.tDst, 0, b.NumSrc, 3, 1, 0, 1)
			sameSums(g, "spmm_f32", dx, wantX, b.Transposed().Indptr, b)
		}
	})
}

// An edge of weight 0 adds nothing, even if its value is NaN.
func TestSpMMZeroWeight(t *testing.T) {
	each(t, func(g *gpu) {
		nan := float32(math.NaN())
		out := g.room(4)
		g.spmm("spmm_f32", 1, 1, 1, out, put(g, []int64{0, 2}), put(g, []int32{0, 1}), 0, put(g, []float32{nan, 3}), 0, 0, put(g, []float32{0, 2}), 0, int64(0), 1, 1, 1, 0, 0)
		if got := get[float32](g, out, 1)[0]; got != 6 {
			g.t.Errorf("the sum is %g, want 6", got)
		}
	})
}

func TestMax(t *testing.T) {
	nan := float32(math.NaN())
	eachGraph(t, func(g *gpu, b *graphops.Block, d dev, cols int, acc bool) {
		x := random(b.NumSrc*cols, 1)
		for i := range x {
			x[i] = float32(math.Round(float64(x[i]))) // makes ties
			if i%67 == 5 {
				x[i] = nan
			}
		}
		arg := make([]float32, b.NumDst*cols)
		want := make([]float32, b.NumDst*cols)
		cpu.SpMM(tensor.Max, buf(want), buf(arg), b, buf(x), cols)
		out, was := g.out(len(want), acc)
		for i := range want {
			want[i] += was[i]
			if want[i] != want[i] {
				want[i] = nan // with acc, any NaN counts
			}
		}
		args := g.room(4 * len(want))
		g.max(d.indptr, b.NumDst, cols, out, args, d.indptr, d.indices, put(g, x), d.first, b.NumDst, cols, asFlag(acc))
		for i, v := range get[float32](g, out, len(want)) {
			if v != want[i] && (v == v || want[i] == want[i]) {
				g.t.Fatalf("%v, %d columns: element %d is %g, want %g", b, cols, i, v, want[i])
			}
		}
		for i, v := range get[uint32](g, args, len(want)) {
			if v != buf(arg).Words()[i] {
				g.t.Fatalf("%v, %d columns: the winner of element %d is edge %d, want %d", b, cols, i, int32(v), int32(buf(arg).Words()[i]))
			}
		}
		dout := random(b.NumDst*cols, 3)
		dx, wantX := g.out(b.NumSrc*cols, acc)
		cpu.SpMMGrad(tensor.Max, buf(wantX), buf(dout), buf(arg), b, cols, acc)
		g.maxGrad(d.tIndptr, b.NumSrc, cols, dx, put(g, dout), args, d.tIndptr, d.tDst, d.tEdge, b.NumSrc, cols, asFlag(acc))
		sameSums(g, "max_grad_f32", dx, wantX, b.Transposed().Indptr, b, cols)
		for _, op := range []tensor.Op{tensor.Mean, tensor.Sum, tensor.Max} {
			at := args
			if op != tensor.Max {
				at = 0
			}
			dm, wantM := g.out(b.NumEdges()*cols, acc)
			cpu.SegmentGrad(op, buf(wantM), buf(dout), buf(arg), b, cols, acc)
			g.run("segment_grad_f32", Tiled(b.NumDst, cols, 1), dm, put(g, dout), at, d.indptr, d.first, b.NumDst, cols, asFlag(op == tensor.Mean), asFlag(acc))
			same(g, "segment_grad_f32", dm, wantM, 4, op, b, cols)
		}
	})
}

func TestEdges(t *testing.T) {
	eachGraph(t, func(g *gpu, b *graphops.Block, d dev, cols int, acc bool) {
		if b.NumEdges() == 0 {
			return
		}
		x, dout := random(b.NumSrc*cols, 1), random(b.NumDst*cols, 2)
		for _, heads := range []int{1, cols} {
			dw, want := g.out(b.NumEdges()*heads, acc)
			cpu.EdgeDot(buf(want), b, buf(dout), buf(x), heads, cols, acc)
			args := []any{dw, d.indptr, d.indices, put(g, dout), put(g, x), d.first, b.NumDst, cols, heads, asFlag(acc)}
			kernel, vector := "edge_dot_f32", 1
			if cols/heads%4 == 0 {
				kernel, vector = "edge_dot_f32x4", 4
			}
			g.run(kernel, Rows(b.NumDst*heads, cols/heads/vector), args...)
			g.hub("hub_edge_dot_f32", func(n int) Shape { return HubHeads(n, heads, cols/heads) }, d.indptr, b.NumDst, args[:6], args[7:]...)
			same(g, kernel, dw, want, 128, b, cols, heads)
		}
		scores, dy := random(b.NumEdges()*cols, 3), random(b.NumEdges()*cols, 4)
		y := make([]float32, len(scores))
		cpu.EdgeSoftmax(buf(y), b, buf(scores), cols)
		out := g.room(4 * len(y))
		g.run("edge_softmax_f32", Rows(b.NumDst, cols), out, d.indptr, put(g, scores), d.first, b.NumDst, cols)
		g.hubSoftmax("hub_edge_softmax", d.indptr, b.NumDst, cols, []any{out, d.indptr, put(g, scores), d.first}, nil)
		same(g, "edge_softmax_f32", out, y, 8, b, cols)
		dx, want := g.out(len(y), acc)
		cpu.EdgeSoftmaxGrad(buf(want), buf(dy), buf(y), b, cols, acc)
		g.run("edge_softmax_grad_f32", Rows(b.NumDst, cols), dx, d.indptr, put(g, dy), put(g, y), d.first, b.NumDst, cols, asFlag(acc))
		g.hubSoftmax("hub_edge_softmax_grad", d.indptr, b.NumDst, cols, []any{dx, d.indptr, put(g, dy), put(g, y), d.first}, []any{asFlag(acc)})
		same(g, "edge_softmax_grad_f32", dx, want, 8, b, cols)
	})
}

// long_rows lists the chunks of long rows wherever they are among the edges; the kernel looks at one edge in LongRow.
func TestLongRows(t *testing.T) {
	const step = LongRow + 1
	for name, lengths := range map[string][]int{
		"no rows":               {},
		"no edges":              {0, 0, 0},
		"the longest short row": {LongRow},
		"the shortest long row": {step},
		"one after another":     {step, step, step, 2 * step, 3*step - 1},
		"at every offset":       {1, step, step, LongRow, 0, step, 2, 5 * step, LongRow, LongRow, step, 0, 0},
		"short rows alone":      {LongRow, LongRow, 1, LongRow, LongRow, LongRow, 255},
		"chunks at each offset": {1, 2 * LongRow, 2*LongRow + 1, 2*LongRow + 1, 3, 2*LongRow + 1, 4 * LongRow, 4*LongRow + 1, 250, 2*LongRow + 1},
		"several rounds":        append(slices.Repeat([]int{step, 1, LongRow}, 2100), 2050*step, step),
	} {
		t.Run(name, func(t *testing.T) {
			indptr, of := []int64{0}, []int32{}
			for r, n := range lengths {
				of = append(of, slices.Repeat([]int32{int32(r)}, n)...)
				indptr = append(indptr, int64(len(of)))
			}
			edges := int64(len(of))
			want, parts := Chunks(indptr)
			if n := sizes.ChunkList(edges); int64(4*len(want)) > n {
				t.Fatalf("the list has %d bytes, more than %d", 4*len(want), n)
			}
			each(t, func(g *gpu) {
				list, count := g.room(int(sizes.ChunkList(edges))), g.room(8)
				g.run("long_rows", Blocks(1), list, count, put(g, indptr), put(g, of), put(g, []int64{edges}), put(g, []int64{int64(len(lengths))}))
				if n := get[int64](g, count, 1)[0]; n != int64(len(want)/4)|int64(parts)<<32 {
					t.Fatalf("%#x is counted, want %d chunks and %d partial results", n, len(want)/4, parts)
				}
				if got := get[int32](g, list, len(want)); !slices.Equal(got, want) {
					t.Errorf("the chunks are %v, want %v", got, want)
				}
			})
		})
	}
}

// The kernels of distinct.cu, on sizes next to those of a word and a tile, with duplicate ids, with
// few ids and with all.
func TestDistinct(t *testing.T) {
	each(t, func(g *gpu) {
		for _, nodes := range []int{1, 31, 32, 33, 1023, 1024, 1025, 2600} {
			for _, every := range []int{1, 3, 40} {
				var list []int32
				for v := nodes - 1; v >= 0; v -= every {
					list = append(list, int32(v), int32(v/2/every*every))
				}
				ids := slices.Clone(list)
				slices.Sort(ids)
				ids = slices.Compact(ids)
				words := (nodes + 31) / 32
				tiles := (words + 31) / 32
				bits, before, sums := put(g, make([]uint32, words)), g.room(4*words), g.room(8*tiles)
				at, out, local := put(g, list), g.room(4*len(ids)), g.room(4*len(list))
				total := g.room(8)
				g.run("distinct_mark", Items(len(list)), bits, at, len(list))
				g.run("distinct_count", Warps(tiles), sums, bits, words)
				g.run("sample_scan", Blocks(1), sums, put(g, []int64{int64(nodes)}), 1, 1, 0, total, nodes, 0)
				if n := get[int64](g, total, 1)[0]; n != int64(len(ids)) {
					t.Fatalf("%d of %d ids are distinct, want %d", n, nodes, len(ids))
				}
				g.run("distinct_list", Warps(tiles), out, before, sums, bits, words)
				g.run("distinct_local", Items(len(list)), local, at, bits, before, len(list))
				if got := get[int32](g, out, len(ids)); !slices.Equal(got, ids) {
					t.Fatalf("%d nodes: the distinct ids are %v, want %v", nodes, got, ids)
				}
				for i, p := range get[int32](g, local, len(list)) {
					if ids[p] != list[i] {
						t.Fatalf("%d nodes: id %d has the wrong position %d", nodes, list[i], p)
					}
				}
			}
		}
	})
}
