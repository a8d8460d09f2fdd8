// Package sizes says how much of a device's memory the packages of cuda take, to programs that plan a run and open no
// device. It computes with numbers alone, and the packages that allocate share its constants.
package sizes

import (
	"math/bits"
	"slices"
)

// Data is the share of a worker's memory that its dataset may take; the rest is for activations, gradients and batches.
const Data = 0.6

// Limit is the memory that a worker takes for its buffers on a device with this much free memory: a twentieth is left for
// the driver and libraries. With several ranks at least 1 GB is left for NCCL's channels, or a quarter of the free memory if that is less.
func Limit(free int64, ranks int) int64 {
	spare := free / 20
	if ranks > 1 {
		spare = max(spare, min(1<<30, free/4))
	}
	return free - spare
}

// Products is the size of the workspace that cuBLAS gets, of a worker that may take limit bytes: as much as cuBLAS uses on
// the largest devices.
func Products(limit int64) int64 { return min(32<<20, limit/16) }

// Sizes of the cache of a device's memory, in bytes. Small buffers share segments of SmallSegment bytes. Larger ones are
// cut from segments of LargeSegment bytes, and the largest have a segment each.
const (
	Granule      = 512 // every buffer starts at a multiple of this
	SmallMax     = 1 << 20
	SmallSegment = 2 << 20
	LargeSegment = 20 << 20
	LargeMax     = 10 << 20
	LargeGranule = 2 << 20
)

// Round returns a size as a multiple of Granule.
func Round(bytes int64) int64 { return up(max(bytes, 1), Granule) }

// Batch returns the size to allocate for a large buffer whose size differs from batch to batch:
// one of eight sizes per octave, so that batches whose sizes vary by a few percent reuse each
// other's memory. size is a multiple of Granule.
func Batch(size int64) int64 {
	if size <= SmallMax {
		return size
	}
	return up(size, int64(1)<<(bits.Len64(uint64(size-1))-4))
}

func up(n, step int64) int64 { return (n + step - 1) / step * step }

// Segments returns the memory that the driver gives for buffers of these sizes on one stream, if the largest are allocated
// first; those of other orders have at most a few segments more.
func Segments(sizes []int64) (bytes int64) {
	sizes = slices.Clone(sizes)
	slices.Sort(sizes)
	var small int64
	var room []int64 // what is left of each large segment
	for _, n := range slices.Backward(sizes) {
		switch {
		case n <= SmallMax:
			small += n
		case n >= LargeMax:
			bytes += up(n, LargeGranule)
		default:
			at := slices.IndexFunc(room, func(r int64) bool { return r >= n })
			if at < 0 {
				at, bytes = len(room), bytes+LargeSegment
				room = append(room, LargeSegment)
			}
			room[at] -= n
		}
	}
	return bytes + up(small, SmallSegment)
}

// GatherFirst reports whether the rows of a table in the host's memory are gathered before the
// edges read them. An aggregation reads w bytes per edge, over PCIe 5 at no more than 55 GB/s, and
// caches keep few of the rows. If the rows are gathered first, the bus carries w bytes per source,
// and the device's memory, at 4.8 TB/s, w bytes (or 4 bytes per element) per source written and as
// much per edge read: with E edges and S sources E·w/55 becomes S·w/55 + (S+E)·w/4800, less from E
// = 1.02·S on. What is between that and 1.2 is not worth the memory, nor, for a slice of the graph,
// finding its sources. For 0.75·10^6 edges of 0.5·10^6 sources with w = 400, about a batch of
// products-like, 5.5 ms become 3.7 ms.
func GatherFirst(edges, sources int) bool { return 5*edges > 6*sources }

// LongRow is the largest number of edges in a row that the spmm kernels sum; the hub kernels sum longer rows, in
// chunks of at most LongChunk edges.
const (
	LongRow   = 256
	LongChunk = 2 * LongRow
)

// Chunks returns the number of chunks of a row of the given number of edges, 0 if the row is not long.
func Chunks(edges int64) int64 {
	if edges <= LongRow {
		return 0
	}
	return (edges + LongChunk - 1) / LongChunk
}

// Partials returns the number of partial results for the rows of indptr: those of rows of several chunks.
func Partials(indptr []int64) (n int64) {
	for r := range len(indptr) - 1 {
		if of := Chunks(indptr[r+1] - indptr[r]); of > 1 {
			n += of
		}
	}
	return n
}

// Room returns the size of a workspace that is made for n bytes: as much again as a quarter, so that operations on
// batches of about the same size need no larger one.
func Room(n int64) int64 { return n + n/4 }

// ChunkList returns the bytes of a list of the chunks of all long rows of a graph of at most the given number of edges.
func ChunkList(edges int64) int64 { return 16 * (edges/LongRow + 1) }

// Parts of the sampler's kernels: edges or destinations of a tile, digits of a sort, and counters of a part of its sums.
const (
	Tile   = 1024
	Digits = 256
	Part   = 2048
)

// Tiles returns the number of tiles of n edges or destinations, and Parts that of the parts of a sort over tiles.
func Tiles(n int64) int64     { return (n + Tile - 1) / Tile }
func Parts(tiles int64) int64 { return (Digits*tiles + Part - 1) / Part }

// LookAbove is the number of possible edges above which a hop waits for its actual number before its memory is allocated.
const LookAbove = 1 << 24

// Hop is a hop of a batch as a sampler on a device makes room for it.
type Hop struct {
	Fanout              int   // -1 takes all in-edges
	Destinations, Edges int64 // upper bounds
	// Loops means that the block with self-loops is made too, and Turned that the edges by source are, whatever
	// Sampler.Transpose says.
	Loops, Turned bool
}

// Sampler describes a sampler on a device over a graph.
type Sampler struct {
	Nodes, Edges int64
	ByWeight     bool // weights decide which edges are picked
	HasWeights   bool // the graph's edges have weights
	Transpose    bool // all hops but the last have their transposes
}

// Hops returns the hops of a batch of a number of seeds. sampled returns the actual numbers of destinations and edges of a
// hop, which are bounds too where fanouts say little.
func (s *Sampler) Hops(seeds int64, fanouts []int, sampled func(hop int) (destinations, edges int64)) []Hop {
	hops, n := make([]Hop, len(fanouts)), seeds
	for i, k := range fanouts {
		e := s.Edges
		if k >= 0 && int64(k) < (1<<62)/max(n, 1) {
			e = min(e, n*int64(k))
		}
		hops[i] = Hop{Fanout: k, Destinations: n, Edges: e}
		if k < 0 && e > 0 || e > LookAbove {
			n, e = sampled(i)
			hops[i].Edges = e
		}
		n = min(s.Nodes, n+e)
	}
	return hops
}

// Long reports that destinations can have more than LongRow edges, with loops one more each.
func (h Hop) Long(loops int) bool { return h.Fanout < 0 || h.Fanout+loops > LongRow }

// sources returns the most nodes that the sources of a hop can be.
func (s *Sampler) sources(h Hop) int64 { return min(s.Nodes, h.Destinations+h.Edges) }

// turned reports that a hop has its edges by source.
func (s *Sampler) turned(hops []Hop, i int) bool {
	return s.Transpose && i < len(hops)-1 || hops[i].Turned
}

// Batch returns the sizes of a batch's buffers.
func (s *Sampler) Batch(hops []Hop) (sizes []int64) {
	for i, h := range hops {
		e := h.Edges
		if i == 0 {
			sizes = append(sizes, 4*h.Destinations)
		}
		sizes = append(sizes, 8*(h.Destinations+1), 4*e, 8*e)
		if s.Transpose || h.Turned || h.Loops || h.Long(0) {
			sizes = append(sizes, 4*e)
		}
		if h.Long(0) {
			sizes = append(sizes, ChunkList(e))
		}
		if s.HasWeights {
			sizes = append(sizes, 4*e)
		}
		turned := s.turned(hops, i)
		if turned {
			sizes = append(sizes, 8*(s.sources(h)+1), 4*e, 4*e, ChunkList(e))
		}
		if looped := e + h.Destinations; h.Loops {
			sizes = append(sizes, 8*(h.Destinations+1), 4*looped, 8*looped)
			if h.Long(1) {
				sizes = append(sizes, ChunkList(looped))
			}
			if turned {
				sizes = append(sizes, 8*(s.sources(h)+1), 4*looped, 4*looped, ChunkList(looped))
			}
		}
		if i == len(hops)-1 {
			sizes = append(sizes, 4*s.sources(h))
		}
	}
	return sizes
}

// Scratch returns the sizes of the buffers that a sampler needs for batches of these hops, of which it has one set.
func (s *Sampler) Scratch(hops []Hop) (sizes []int64) {
	var b [11]int64
	need := func(i int, n int64) {
		if n > b[i] {
			if b[i] > 0 {
				n += n / 8
			}
			b[i] = n
		}
	}
	for i, h := range hops {
		t := Tiles(h.Edges)
		need(0, 8*h.Destinations)
		need(1, 8*Tiles(h.Destinations))
		if s.ByWeight {
			need(2, 8*h.Destinations)
			need(3, 4*h.Destinations)
		}
		need(4, 8*t)
		need(5, 128*t)
		turned := s.turned(hops, i)
		if turned {
			need(6, 8*Digits*t)
			need(7, 8*Parts(t))
			need(8, 4*h.Edges)
		}
		if h.Loops {
			need(9, 128*t)
			if turned || h.Long(1) {
				need(10, 4*(h.Edges+h.Destinations))
			}
		}
	}
	return append(b[:], b[8], b[8], 4*s.Nodes, int64(8*StateWords(len(hops))))
}

// StateWords returns the length of the state of a batch with the given number of hops.
func StateWords(hops int) int { return 2 + 7*hops }
