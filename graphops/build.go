package graphops

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync"

	"github.com/graphnb/graphnb/internal/parallel"
)

// BuildOptions configures how [FromEdges] turns a list of edges into a graph. The zero value builds
// the simple directed graph: each edge once, self-loops as given.
type BuildOptions struct {
	// Undirected adds the reverse of every edge. A self-loop is its own reverse and is not doubled.
	Undirected bool
	// SelfLoops adds a self-loop to every node that has none in the list.
	SelfLoops bool
	// KeepDuplicates keeps every copy of an edge that occurs more than once; with Undirected, an
	// edge listed in both directions occurs twice in each direction. By default each edge is kept
	// once.
	KeepDuplicates bool
	// Threads is the number of threads; 0 means GOMAXPROCS. It does not change the result.
	Threads int
	// Progress, if not nil, is called from any of the threads with the number of edges counted,
	// moved or sorted since the last call. The numbers add up to [BuildPasses] times the edges of
	// the list. The additional passes for weights are not reported.
	Progress func(edges int)
}

// BuildPasses is the number of passes of [FromEdges] over the edges.
const BuildPasses = 3

// FromEdges builds the graph with the edges src[i] → dst[i] on the given number of nodes. The
// result depends neither on the order of the edges nor on the number of threads. The slices are
// only read, and not kept.
//
// It returns an error if nodes is negative or above 2^31-1, if the slices differ in length, or if
// an edge names a node outside [0, nodes).
//
// Cost: O(nodes + edges) for the counting sort, plus a sort of each node's sources; 8 bytes of
// scratch memory per edge in addition to the graph.
func FromEdges(nodes int, src, dst []int32, o BuildOptions) (*Graph, error) {
	if err := checkEdges(nodes, src, dst, o.Threads); err != nil {
		return nil, err
	}
	b := builder{nodes: nodes, edges: len(src), dedup: !o.KeepDuplicates, threads: o.Threads, progress: o.Progress}
	if o.Undirected {
		b.pack = func(buf []uint64, lo, hi int) []uint64 {
			for i := lo; i < hi; i++ {
				buf = append(buf, packEdge(src[i], dst[i]))
				if src[i] != dst[i] {
					buf = append(buf, packEdge(dst[i], src[i]))
				}
			}
			return buf
		}
	} else {
		b.pack = func(buf []uint64, lo, hi int) []uint64 {
			for i := lo; i < hi; i++ {
				buf = append(buf, packEdge(src[i], dst[i]))
			}
			return buf
		}
	}
	g := b.build()
	if o.SelfLoops {
		g = g.AddSelfLoops(o.Threads)
	}
	return g, nil
}

// checkEdges returns an error if the arguments of FromEdges describe no graph.
func checkEdges(nodes int, src, dst []int32, threads int) error {
	if nodes < 0 || nodes > math.MaxInt32 {
		return fmt.Errorf("graphops: a graph of %d nodes: node ids are int32, so the number of nodes must lie in [0, %d]", nodes, math.MaxInt32)
	}
	if len(src) != len(dst) {
		return fmt.Errorf("graphops: %d sources but %d destinations: edge i is src[i] → dst[i], so the lists must be equally long", len(src), len(dst))
	}
	if i := firstBadEdge(nodes, src, dst, threads); i >= 0 {
		return fmt.Errorf("graphops: edge %d is %d → %d, but the graph has the nodes 0 to %d", i, src[i], dst[i], nodes-1)
	}
	return nil
}

// firstBadEdge is the first edge with an end outside [0, nodes), or -1.
func firstBadEdge(nodes int, src, dst []int32, threads int) int {
	bad := make([]int, parallel.Chunks(len(src), edgeGrain))
	parallel.For(threads, len(src), edgeGrain, func(lo, hi int) {
		bad[lo/edgeGrain] = -1
		for i := lo; i < hi; i++ {
			if uint32(src[i]) >= uint32(nodes) || uint32(dst[i]) >= uint32(nodes) {
				bad[lo/edgeGrain] = i
				return
			}
		}
	})
	for _, i := range bad {
		if i >= 0 {
			return i
		}
	}
	return -1
}

const (
	edgeGrain = 1 << 15 // edges of one chunk of a loop over edges
	rowGrain  = 1 << 12 // nodes of one chunk of a loop over nodes

	// A bucket is a range of destinations that is sorted by one thread: few
	// enough that the write heads of a scatter stay in the cache, and wide enough
	// that a small graph is one bucket.
	maxBuckets     = 1 << 10
	minBucketShift = 9
)

// packEdge holds an edge in one word, so that the scatter moves it in one store.
func packEdge(src, dst int32) uint64 { return uint64(uint32(dst))<<32 | uint64(uint32(src)) }

// builder sorts edges into a graph in two steps: a scatter into buckets of
// neighbouring destinations, and a counting sort within each bucket. Chunks and
// buckets depend on sizes alone and every row is sorted at the end, so the
// result is the same for any number of threads.
type builder struct {
	nodes, edges int
	// pack appends the directed edges that input edges [lo, hi) stand for.
	pack     func(buf []uint64, lo, hi int) []uint64
	dedup    bool
	threads  int
	progress func(edges int)
}

func (b *builder) passed(edges int) {
	if b.progress != nil {
		b.progress(edges)
	}
}

func (b *builder) build() *Graph {
	shift := max(minBucketShift, bits.Len(uint(max(b.nodes-1, 0)))-bits.Len(maxBuckets-1))
	buckets := parallel.Chunks(b.nodes, 1<<shift)
	packed, starts := b.scatter(shift, buckets)

	g := &Graph{Indptr: make([]int64, b.nodes+1), Indices: make([]int32, len(packed))}
	kept := make([]int64, buckets) // edges of each bucket without duplicates
	parallel.For(b.threads, buckets, 1, func(k, _ int) {
		first := k << shift
		last := min(first+1<<shift, b.nodes)
		edges := packed[starts[k]:starts[k+1]]
		// The rows' ends within the bucket are written to Indptr[first+1:last+1];
		// the bucket's own start is added when all buckets are known.
		kept[k] = sortBucket(edges, int32(first), g.Indptr[first+1:last+1], g.Indices[starts[k]:starts[k+1]], b.dedup)
		// The bucket's part of the input list, which is shorter than the list of directed edges.
		share := func(at int64) int { return int(float64(b.edges) * (float64(at) / float64(len(packed)))) }
		if len(packed) > 0 {
			b.passed(share(starts[k+1]) - share(starts[k]))
		}
	})

	var total int64
	for k := range buckets {
		copy(g.Indices[total:], g.Indices[starts[k]:starts[k]+kept[k]])
		starts[k], total = total, total+kept[k]
	}
	g.Indices = g.Indices[:total:total]
	parallel.For(b.threads, buckets, 1, func(k, _ int) {
		first := k << shift
		for v := first; v < min(first+1<<shift, b.nodes); v++ {
			g.Indptr[v+1] += starts[k]
		}
	})
	return g
}

// scatter groups the edges by bucket: those of bucket k are
// packed[starts[k]:starts[k+1]].
func (b *builder) scatter(shift, buckets int) (packed []uint64, starts []int64) {
	// At most 512 chunks, so that the table of counts stays small.
	grain := max(edgeGrain, (b.edges+511)/512)
	chunks := parallel.Chunks(b.edges, grain)
	heads := make([]int64, chunks*buckets)
	pool := sync.Pool{New: func() any { s := make([]uint64, 0, 2*min(edgeGrain, b.edges)); return &s }}
	each := func(lo, hi int, visit func(edges []uint64)) {
		buf := pool.Get().(*[]uint64)
		for ; lo < hi; lo += edgeGrain {
			*buf = b.pack((*buf)[:0], lo, min(lo+edgeGrain, hi))
			visit(*buf)
		}
		pool.Put(buf)
	}
	parallel.For(b.threads, b.edges, grain, func(lo, hi int) {
		count := heads[lo/grain*buckets:][:buckets]
		each(lo, hi, func(edges []uint64) {
			for _, e := range edges {
				count[e>>(32+shift)]++
			}
		})
		b.passed(hi - lo)
	})
	starts = make([]int64, buckets+1)
	var n int64
	for k := range buckets {
		starts[k] = n
		for c := range chunks {
			heads[c*buckets+k], n = n, n+heads[c*buckets+k]
		}
	}
	starts[buckets] = n
	packed = make([]uint64, n)
	parallel.For(b.threads, b.edges, grain, func(lo, hi int) {
		head := heads[lo/grain*buckets:][:buckets]
		each(lo, hi, func(edges []uint64) {
			for _, e := range edges {
				k := e >> (32 + shift)
				packed[head[k]] = e
				head[k]++
			}
		})
		b.passed(hi - lo)
	})
	return packed, starts
}

// sortBucket sorts the edges of the rows first, first+1, … into out and their
// ends, counted from the bucket's start, into ends. It returns the number of
// edges kept.
func sortBucket(edges []uint64, first int32, ends []int64, out []int32, dedup bool) int64 {
	for _, e := range edges {
		ends[int32(e>>32)-first]++
	}
	var n int64
	for v, degree := range ends {
		ends[v], n = n, n+degree
	}
	for _, e := range edges {
		v := int32(e>>32) - first
		out[ends[v]] = int32(uint32(e))
		ends[v]++
	}
	var lo, kept int64
	for v, hi := range ends {
		row := out[lo:hi]
		lo = hi
		slices.Sort(row)
		if dedup {
			row = slices.Compact(row)
		}
		kept += int64(copy(out[kept:], row))
		ends[v] = kept
	}
	return kept
}

// rowOf is the node whose in-edges hold CSC position e.
func (g *Graph) rowOf(e int64) int {
	return sort.Search(g.NumNodes(), func(v int) bool { return g.Indptr[v+1] > e })
}

// eachEdge calls visit(src, dst) for the CSC positions [lo, hi).
func (g *Graph) eachEdge(lo, hi int, visit func(src, dst int32)) {
	if lo >= hi {
		return
	}
	v := g.rowOf(int64(lo))
	for e := int64(lo); e < int64(hi); e++ {
		for e >= g.Indptr[v+1] {
			v++
		}
		visit(g.Indices[e], int32(v))
	}
}
