package sampler

import (
	"math/bits"
	"slices"

	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
	"github.com/graphnb/graphnb/internal/cuda/store"
	"github.com/graphnb/graphnb/internal/philox"
)

// stream is where kernels are launched: a [cuda.Stream], or the interpreter in
// tests.
type stream interface {
	Launch(name string, grid, block cuda.Dim, shared int, args ...any)
	Fill32(dst cuda.Ptr, v uint32, n int64)
}

// The constants of internal/cuda/kernels/sample.cuh.
const (
	digits    = sizes.Digits
	part      = sizes.Part
	emptyWord = 0xffffffff

	repeatedSeed   = 1
	damagedOffsets = 2
	damagedEdge    = 3
	badWeight      = 4
	overCapacity   = 5
)

// arrays are a hop's block on the device. dst, the destination of each edge, is needed for the
// transpose and for the list of chunks. A pointer is 0 if the array does not exist.
type arrays struct {
	indptr, indices, edgePos, dst, weights cuda.Ptr
	tIndptr, tDst, tEdge                   cuda.Ptr
	long, tLong                            cuda.Ptr // see cuda.ChunkList; 0 if fanouts exclude long rows
}

// scratch is memory of one batch at a time.
type scratch struct {
	table cuda.Ptr // u32 [nodes]
	state cuda.Ptr // i64 [stateWords(hops)]
	local cuda.Ptr // i64 [destinations]
	count cuda.Ptr // i64 [destinations], weighted only
	tops  cuda.Ptr // f32 [destinations], weighted only
	tiles cuda.Ptr // i64 [tiles of destinations]
	edges cuda.Ptr // i64 [tiles of edges]
	bits  cuda.Ptr // u32 [32 a tile of edges]

	before cuda.Ptr // u32 [32 a tile of edges]; for self-loops only, as is the next
	rowOf  cuda.Ptr // i32 [edges and destinations]

	digits        cuda.Ptr // i64 [256 per tile of edges]; for transposes only, as are the next four
	parts         cuda.Ptr // i64 [parts of digits]
	keys1, keys2  cuda.Ptr // i32 [edges]
	values        cuda.Ptr // i32 [edges]
	sharedForPick int      // bytes a block may have
}

// hops launches the kernels of one batch. The sizes that it takes are the upper bounds that the
// host knows.
type hops struct {
	s        stream
	g        *store.Graph
	m        scratch
	n        int      // hops
	ids      cuda.Ptr // i32 [nodes of the batch]
	weighted bool
	labor    *sample.Labor // nil unless it is the picker
	seed     uint64
	step     uint32
}

func dim(s kernels.Shape) (grid, block cuda.Dim) {
	return cuda.Dim{X: s.Grid}, cuda.Dim{X: s.X, Y: s.Y}
}

func (h *hops) launch(name string, s kernels.Shape, args ...any) {
	if s.Grid > 0 {
		grid, block := dim(s)
		h.s.Launch(name, grid, block, 0, args...)
	}
}

// known and edges return the addresses of a hop's sizes in the state.
func (h *hops) known(hop int) cuda.Ptr { return h.m.state + cuda.Ptr(8*(1+2*hop)) }
func (h *hops) edges(hop int) cuda.Ptr { return h.m.state + cuda.Ptr(8*(2+2*hop)) }

// long and tLong return the addresses of the sizes of a hop's lists of chunks, of destinations and of
// sources with more edges than kernels.LongRow; longAt and tLongAt return the positions of these words
// in the state.
func (h *hops) long(hop int) cuda.Ptr  { return h.m.state + cuda.Ptr(8*longAt(h.n, hop)) }
func (h *hops) tLong(hop int) cuda.Ptr { return h.m.state + cuda.Ptr(8*tLongAt(h.n, hop)) }

func longAt(hops, hop int) int  { return 2 + 2*hops + 2*hop }
func tLongAt(hops, hop int) int { return 3 + 2*hops + 2*hop }

// loopedAt returns the position in the state of the number of edges of a hop's block with self-loops. The sizes of its
// lists of chunks follow, of destinations and of sources.
func loopedAt(hops, hop int) int { return 2 + 4*hops + 3*hop }

// stateWords returns the length of the state of a batch with the given number of hops: the words of
// internal/cuda/kernels/sample.cuh, then the sizes of the lists of chunks, then those of the blocks with self-loops.
func stateWords(hops int) int { return sizes.StateWords(hops) }

func tiles(n int64) int { return int(sizes.Tiles(n)) }

// begin gives n seeds their rows. The table must be empty.
func (h *hops) begin(seeds cuda.Ptr, n int) {
	h.s.Fill32(h.m.state, 0, int64(2*stateWords(h.n)))
	h.s.Fill32(h.m.state, emptyWord, 2)
	h.launch("sample_seeds", kernels.Items(n), h.ids, h.m.table, seeds, n, h.m.state)
}

// count counts the edges that each destination takes, and their total, at most limit.
func (h *hops) count(hop, fanout int, destinations, limit int64) {
	given := cuda.Ptr(0)
	if h.weighted && fanout >= 0 {
		given = h.m.count
		h.launch("sample_weigh", kernels.Items(32*int(destinations)), h.m.count, h.m.tops, h.ids, h.g.Indptr, h.g.Weights, h.g.Edges, fanout, hop, h.m.state)
	}
	h.launch("sample_count", kernels.Blocks(tiles(destinations)), h.m.local, h.m.tiles, h.ids, h.g.Indptr, given, h.g.Edges, fanout, hop, h.m.state)
	h.scan(h.m.tiles, h.known(hop), 0, h.edges(hop), limit)
}

// scan computes prefix sums over tiles; see sample_scan.
func (h *hops) scan(sums, items, plus, total cuda.Ptr, limit int64) {
	h.launch("sample_scan", kernels.Blocks(1), sums, items, 1, 1, plus, total, limit, h.m.state)
}

// scanDigits sums the digits of at most tiles tiles. It returns the address of the sums to add per
// part, or 0 if there are none.
func (h *hops) scanDigits(items cuda.Ptr, tiles int) (parts cuda.Ptr) {
	if tiles <= fewTiles {
		h.launch("sample_scan", kernels.Blocks(1), h.m.digits, items, digits, 1, 0, 0, 0, h.m.state)
		return 0
	}
	h.launch("sample_scan_parts", kernels.Blocks(partsOf(tiles)), h.m.digits, h.m.parts, items, digits)
	h.launch("sample_scan", kernels.Blocks(1), h.m.parts, items, digits, part, 0, 0, 0, h.m.state)
	return h.m.parts
}

// fewTiles is the number of tiles whose digits one block sums in the time of one or two launches.
const fewTiles = 16

// partsOf returns the number of parts into which the digits of the given number of tiles are
// divided.
func partsOf(tiles int) int { return int(sizes.Parts(int64(tiles))) }

// c3 is the last word of the counters of a hop's random numbers.
func (h *hops) c3(p philox.Purpose, hop, epoch int) uint32 {
	if h.labor != nil && h.labor.LayerDependency {
		hop = 0 // all hops have the numbers of the first
	}
	return philox.C3(p, hop, epoch)
}

// pick picks the edges, at most edges of them.
func (h *hops) pick(hop, fanout int, c3 uint32, a *arrays, destinations, edges int64) {
	args := []any{
		a.indptr, a.edgePos, a.indices, a.dst, a.weights, h.m.table, h.ids, h.g.Indptr, h.g.Indices, h.g.Weights,
		h.g.Nodes, h.g.Edges, h.m.local, h.m.tiles, hop, fanout, h.seed, h.step, c3, h.m.state,
	}
	n := max(int(destinations), 1) // the first offset is written in any case
	switch {
	case fanout < 0:
		h.launch("sample_offsets", kernels.Items(n), args...)
		h.launch("sample_pick_all", kernels.Items(int(edges)), args...)
	case h.weighted:
		warps := max(1, min(kernels.Threads/32, h.m.sharedForPick/pickRoom(fanout)))
		h.s.Launch("sample_pick_weighted", cuda.Dim{X: kernels.Blocks((n + warps - 1) / warps).Grid}, cuda.Dim{X: 32 * warps}, warps*pickRoom(fanout), append(args, h.m.tops)...)
	case h.labor != nil:
		window, last := h.labor.Window(h.step)
		args[17] = window // in place of the step
		h.launch("sample_pick_labor", kernels.Items(32*n), append(args, int64(last))...)
	case fanout <= 8:
		h.launch("sample_pick_8", kernels.Items(8*n), args...)
	case fanout <= 16:
		h.launch("sample_pick_16", kernels.Items(16*n), args...)
	case fanout <= 32:
		h.launch("sample_pick_32", kernels.Items(32*n), args...)
	default:
		h.launch("sample_pick_many", kernels.Items(32*n), args...)
	}
}

// shortRows reports that a fanout lets no destination have more edges than kernels.LongRow.
func shortRows(fanout int) bool { return !sizes.Hop{Fanout: fanout}.Long(0) }

// longRows lists the chunks of destinations with many edges, if there can be any.
func (h *hops) longRows(hop, fanout int, a *arrays) {
	if !shortRows(fanout) {
		h.launch("long_rows", kernels.Blocks(1), a.long, h.long(hop), a.indptr, a.dst, h.edges(hop), h.known(hop))
	}
}

// pickBytes is the size of a Pick in internal/cuda/kernels/weighted.cu, and sumBytes that of the sums of its
// pieces.
const (
	pickBytes = 24
	sumBytes  = 8 * 256
)

// pickRoom returns the shared memory that a destination's picks need.
func pickRoom(fanout int) int { return sumBytes + pickBytes*fanout }

// number numbers the new nodes' rows, and gives each edge the row of its source.
func (h *hops) number(hop int, a *arrays, edges int64) {
	h.launch("sample_first", kernels.Blocks(tiles(edges)), h.m.bits, h.m.edges, a.indices, h.m.table, hop, h.m.state)
	h.scan(h.m.edges, h.edges(hop), h.known(hop), h.known(hop+1), h.g.Nodes)
	h.launch("sample_number", kernels.Blocks(tiles(edges)), h.ids, h.m.table, a.indices, h.m.bits, h.m.edges, hop, h.m.state)
	h.launch("sample_relabel", kernels.Items(int(edges)), a.indices, h.m.table, hop, h.m.state)
}

// transpose groups the edges by source, at most sources of them, and lists the chunks of sources with
// many edges. It returns the address of the source of each entry, in scratch memory.
func (h *hops) transpose(hop int, a *arrays, sources, edges int64) (rowOf cuda.Ptr) {
	passes := max((bits.Len64(uint64(max(sources-1, 0)))+7)/8, 1)
	keys, values := a.indices, cuda.Ptr(0)
	blocks := kernels.Blocks(tiles(edges))
	for p := range passes {
		toKeys, toValues := h.m.keys1, h.m.values
		if p%2 == 1 {
			toKeys = h.m.keys2
		}
		if (passes-1-p)%2 == 0 {
			toValues = a.tEdge
		}
		h.launch("bysource_count", blocks, h.m.digits, keys, 8*p, h.edges(hop))
		parts := h.scanDigits(h.edges(hop), tiles(edges))
		h.launch("bysource_place", blocks, toKeys, toValues, keys, values, h.m.digits, parts, 8*p, h.edges(hop))
		keys, values = toKeys, toValues
	}
	h.launch("bysource_finish", kernels.Items(int(max(sources+1, edges))), a.tIndptr, a.tDst, a.tEdge, keys, a.dst, h.edges(hop), h.known(hop+1))
	h.launch("long_rows", kernels.Blocks(1), a.tLong, h.tLong(hop), a.tIndptr, keys, h.edges(hop), h.known(hop+1))
	return keys
}

// loops makes l the block with self-loops of a, in both orders if rowOf, the result of transpose, is not 0.
func (h *hops) loops(hop int, a, l *arrays, rowOf cuda.Ptr, destinations, sources, edges int64) {
	total := h.m.state + cuda.Ptr(8*loopedAt(h.n, hop))
	removed := []any{h.m.bits, h.m.before, h.m.edges, hop}
	h.launch("loops_find", kernels.Blocks(tiles(edges)), h.m.bits, h.m.before, h.m.edges, a.indices, a.dst, hop, h.m.state)
	h.scan(h.m.edges, h.edges(hop), 0, 0, 0)
	dst := cuda.Ptr(0)
	if l.long != 0 {
		dst = h.m.rowOf
	}
	h.launch("loops_place", kernels.Items(int(max(edges, destinations+1))), slices.Concat(
		[]any{l.indptr, l.indices, l.edgePos, dst, a.indptr, a.indices, a.edgePos, a.dst, h.ids}, removed, []any{total, h.m.state})...)
	if l.long != 0 {
		h.launch("long_rows", kernels.Blocks(1), l.long, total+8, l.indptr, dst, total, h.known(hop))
	}
	if rowOf == 0 {
		return
	}
	h.launch("loops_by_source", kernels.Items(int(max(edges, sources+1))), slices.Concat(
		[]any{l.tIndptr, l.tDst, l.tEdge, h.m.rowOf, a.tIndptr, a.tDst, a.tEdge, rowOf, a.indptr}, removed, []any{h.m.state})...)
	h.launch("long_rows", kernels.Blocks(1), l.tLong, total+16, l.tIndptr, h.m.rowOf, total, h.known(hop+1))
}

// end empties the table.
func (h *hops) end(nodes int64) {
	h.launch("sample_clear", kernels.Items(int(nodes)), h.m.table, h.ids, h.n, h.m.state)
}
