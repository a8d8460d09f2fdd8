package gemm

import (
	"sync"
	"unsafe"

	"github.com/graphnb/graphnb/internal/parallel"
)

const (
	// A product is split along k if the result is small, so that the chunks' partial results stay
	// in the caches, and k is long.
	maxPartial = 1 << 18
	minChunk   = 256
	maxChunks  = 64
)

// chunkSize returns the number of rows of the long sum per task, by the shape alone; 0 if C is
// split instead.
func (j *job) chunkSize() int {
	if len(j.terms) > 1 || !j.terms[0].A.Trans {
		return 0
	}
	return SumRows(j.m, j.n, j.terms[0].K)
}

// sumChunks computes C as the sum of partial products over chunks of k, added as a pairwise tree:
// (0,1), (2,3), …, then pairs of these; an odd one moves up a level. The goroutine that finishes
// the second of a pair adds it to the first, so few partial results exist at a time, and the
// additions are the same in any order of events.
func (j *job) sumChunks(chunk int) {
	k := j.terms[0].K
	j.chunkLen, j.resident = chunk, true
	j.tree.reset(parallel.Chunks(k, chunk))
	if j.turned = j.turns(); j.turned {
		j.turn()
	}
	parallel.For(j.o.Threads, k, chunk, j.chunkBody)
	if j.turned {
		j.turn()
	}
	parallel.For(j.o.Threads, j.m, hookRows/2, j.finishBody)
	partials.Put(j.tree.root)
	j.tree.root = nil
}

// turns reports whether Cᵀ is computed: each chunk packs B, which costs as much as some 8 rows of
// C, so A is packed instead if it has at most half the columns and they fill its panels. For [47,
// 1024] by [1024, 256] the share of the peak grows from 81 to 89 %. (The elements are the same,
// because a product of two numbers is commutative.)
func (j *job) turns() bool {
	return !j.o.BF16 && !j.terms[0].B.Trans && 2*j.m <= j.n && 20*j.m >= 19*j.path.padded(j.m)
}

// turn exchanges the factors: Cᵀ = Bᵀ·A.
func (j *job) turn() {
	t := &j.terms[0]
	t.A, t.B = t.B, t.A
	t.A.Trans, t.B.Trans = true, false
	j.m, j.n = j.n, j.m
}

// chunk computes one chunk of k and adds it to the tree.
func (j *job) chunk(lo, hi int) {
	if j.o.Before != nil {
		j.o.Before(lo, hi)
	}
	p, t := j.path, &j.terms[0]
	ld := p.padded(j.n)
	w := getWorker()
	part := partials.Get().(*buffer)
	sum := part.get(j.m * ld)
	next := j.chunkLen * parallel.Threads(j.o.Threads)
	pieces := parallel.Chunks(hi-lo, p.maxK(j.cuts.depth))
	w.tile = tile{c: unsafe.Pointer(&sum[0]), ldc: uintptr(4 * ld), mode: fromZero}
	for i := range pieces {
		s := j.piece(lo, hi, i, pieces)
		j.pack(w, w.b.get(s.depth*ld), &s, 0, j.n)
		j.view(w, &t.A, 0, j.m, &s)
		// AMX would finish before the prefetches arrive.
		if !p.rowsOnly {
			then := s.k0 + s.k
			if then == hi {
				then = lo + next
			}
			// In the first half of the kernels' prefetches, so that the last lines arrive in time.
			w.ahead.plan(p.prefetches(s.depth, p.tiles(j.m, j.n))/2, t.A.stored(then, s.k, j.m), t.B.stored(then, s.k, j.n))
		}
		j.panels(w, &s, w.b.mem, j.m, ld)
		w.tile.mode = fromC
	}
	w.free()
	j.tree.join(p, part, lo/j.chunkLen)
}

// finish adds the sum to the rows of C.
func (j *job) finish(lo, hi int) {
	j.startRows(lo, hi)
	sum, ld := j.tree.root.mem, j.path.padded(j.n)
	if j.turned {
		w := getWorker()
		defer w.free()
		sum, ld = j.path.turnBack(w.turned.get(j.n*lines(hi-lo)), sum[lo:], j.path.padded(j.m), hi-lo, j.n), j.n
	} else {
		sum = sum[lo*ld:]
	}
	for i := lo; i < hi; i++ {
		j.path.add(j.c[i*j.ldc:][:j.n], sum[(i-lo)*ld:][:j.n])
	}
	if j.o.After != nil {
		j.o.After(lo, hi)
	}
}

// partials recycles the buffers of partial results.
var partials = sync.Pool{New: func() any { return new(buffer) }}

// tree adds partial results in pairs as they arrive.
type tree struct {
	mu      sync.Mutex
	nodes   []int       // number of nodes per level, down to 1
	waiting [][]*buffer // per level, the partial results whose sibling has not arrived
	root    *buffer
}

// reset prepares the tree for n leaves.
func (t *tree) reset(n int) {
	t.nodes = t.nodes[:0]
	for level := 0; ; level++ {
		t.nodes = append(t.nodes, n)
		if len(t.waiting) == level {
			t.waiting = append(t.waiting, nil)
		}
		if len(t.waiting[level]) < n {
			t.waiting[level] = make([]*buffer, n)
		}
		if n == 1 {
			return
		}
		n = (n + 1) / 2
	}
}

// join adds leaf i, and the sums that it completes, upwards while the siblings are present.
func (t *tree) join(p *path, part *buffer, i int) {
	for level, nodes := range t.nodes {
		if nodes == 1 {
			t.root = part
			return
		}
		if sibling := i ^ 1; sibling < nodes {
			t.mu.Lock()
			other := t.waiting[level][sibling]
			if other == nil {
				t.waiting[level][i] = part
				t.mu.Unlock()
				return
			}
			t.waiting[level][sibling] = nil
			t.mu.Unlock()
			if i&1 == 1 {
				part, other = other, part
			}
			p.add(part.mem, other.mem[:len(part.mem)])
			partials.Put(other)
		}
		i /= 2
	}
}

// turnBack returns dst [rows, cols], the transpose of the first rows columns of x. x has cols rows,
// stride apart, padded to whole panels. dst has room for a multiple of 8 rows.
func (p *path) turnBack(dst, x []float32, stride, rows, cols int) []float32 {
	c := 0
	if p.transpose8 != nil {
		for ; c+8 <= cols; c += 8 {
			p.transpose8(unsafe.Pointer(&dst[c]), uintptr(4*cols), unsafe.Pointer(&x[c*stride]), uintptr(4*stride), uintptr((rows+7)/8))
		}
	}
	for ; c < cols; c++ {
		scatter(dst[c:], x[c*stride:][:rows], cols)
	}
	return dst
}
