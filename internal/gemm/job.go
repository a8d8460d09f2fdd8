package gemm

import (
	"sync"
	"unsafe"

	"github.com/graphnb/graphnb/internal/parallel"
)

const (
	// minWork is the number of flops that justify another block, about 5 µs.
	minWork = 1 << 20
	// hookRows is the number of rows per call of a hook outside of the blocks.
	hookRows = 192
)

// segment is elements [k0, k0+k) of one term's inner dimension: up to blocking.depth steps of the
// kernels.
type segment struct {
	term, k0, k int
	depth       int // steps
	at          int // start of its panels in the packed B
}

// job is a call of Multiply. Its loop bodies are bound once, because creating a closure each time
// would allocate.
type job struct {
	path  *path
	cuts  blocking
	m, n  int
	c     []float32
	ldc   int
	terms []Term
	o     Options

	segments []segment
	collides []bool // per term: its A is packed
	rowBlock int    // rows of a block of C
	subBlock int    // rows of a block that are computed at a time
	resident bool   // B stays in the second-level cache
	colBlock int    // columns of a block
	blocks   int    // blocks of columns

	// The columns and segments that are currently packed.
	jc, nc int
	now    []segment
	packed buffer
	first  bool // whether these are the first segments

	chunkLen int
	turned   bool // the chunks' partial results are Cᵀ
	tree     tree

	packBody, blockBody, chunkBody, finishBody func(lo, hi int)
}

var jobs = sync.Pool{New: func() any {
	j := new(job)
	j.packBody, j.blockBody, j.chunkBody, j.finishBody = j.packItems, j.block, j.chunk, j.finish
	return j
}}

func multiply(p *path, m, n int, c []float32, ldc int, terms []Term, o Options) {
	j := jobs.Get().(*job)
	j.path, j.cuts, j.m, j.n, j.c, j.ldc, j.o = p, *cut.Load(), m, n, c, ldc, o
	j.terms = append(j.terms[:0], terms...)
	j.run()
	clear(j.terms)
	j.c, j.o = nil, Options{}
	jobs.Put(j)
}

func (j *job) run() {
	depth := 0
	for i := range j.terms {
		depth += j.terms[i].K
	}
	if j.m == 0 || j.n == 0 || depth == 0 {
		j.before()
		j.startRows(0, j.m)
		j.after()
		return
	}
	j.collide()
	if chunk := j.chunkSize(); chunk > 0 {
		j.sumChunks(chunk)
		return
	}
	j.cut()
	j.plan(depth)
	inBlocks := j.blocks == 1 && !j.terms[0].A.Trans
	if !inBlocks {
		j.before()
		j.o.Before = nil
	}
	after := j.o.After
	if j.blocks > 1 {
		j.o.After = nil
	}
	j.passes()
	if j.blocks > 1 {
		j.o.After = after
		j.after()
	}
}

// collide finds the terms whose A must be packed: it is stored by rows that collide in the cache
// and that a kernel would otherwise read in place.
func (j *job) collide() {
	j.collides = j.collides[:0]
	p := j.path
	for i := range j.terms {
		a := &j.terms[i].A
		inPlace := !a.Trans && a.Index == nil && !j.o.BF16
		j.collides = append(j.collides, inPlace && p.transpose8 != nil && j.cuts.l1.collide(min(j.m, p.kernels[0].rows), 4*a.Stride))
	}
}

// before and after call the hooks outside of the blocks.
func (j *job) before() {
	if j.o.Before == nil || len(j.terms) == 0 {
		return
	}
	rows := j.m
	if j.terms[0].A.Trans {
		rows = j.terms[0].K
	}
	parallel.For(j.o.Threads, rows, hookRows, j.o.Before)
}

func (j *job) after() {
	if j.o.After != nil {
		parallel.For(j.o.Threads, j.m, hookRows, j.o.After)
	}
}

// cut makes the segments of about equal length, so that none is short.
func (j *job) cut() {
	j.segments = j.segments[:0]
	for t := range j.terms {
		k := j.terms[t].K
		pieces := parallel.Chunks(k, j.path.maxK(j.cuts.depth))
		for i := range pieces {
			s := j.piece(0, k, i, pieces)
			s.term = t
			j.segments = append(j.segments, s)
		}
	}
}

// piece returns one of several equal pieces of [lo, hi) of an inner dimension; all but the last are
// a multiple of 32.
func (j *job) piece(lo, hi, i, pieces int) segment {
	size := ((hi-lo)/pieces + 31) &^ 31
	k0, k1 := lo+i*size, lo+(i+1)*size
	if i == pieces-1 {
		k1 = hi
	}
	return segment{k0: k0, k: k1 - k0, depth: j.path.steps(k1 - k0)}
}

// plan chooses the blocks of C: about 32 blocks of rows, each large enough for a task; if there are
// few rows, blocks of columns too.
func (j *job) plan(depth int) {
	row := max(1, 2*j.n*depth) // flops
	maxRows := j.cuts.rows
	if j.resident = depth*j.n <= j.cuts.resident; j.resident {
		j.subBlock = j.cuts.sub
		j.rowBlock = max(min(maxRows, (j.m+31)/32), (minWork+row-1)/row)
	} else {
		j.subBlock = maxRows
		even := (j.m + 8*maxRows - 1) / (8 * maxRows) * 8
		j.rowBlock = (j.m + even - 1) / even
	}
	j.rowBlock = (j.rowBlock + 11) / 12 * 12
	j.colBlock, j.blocks = j.n, 1
	if rows := parallel.Chunks(j.m, j.rowBlock); rows < 8 && j.n > 2*j.path.width {
		want := min(32/rows, j.m*row/minWork)
		if want > 1 {
			j.colBlock = (j.n + want - 1) / want
			j.colBlock = (j.colBlock + 31) / 32 * 32
			j.blocks = parallel.Chunks(j.n, j.colBlock)
		}
	}
}

// passes packs as much of B as fits, computes all blocks of C with it, and repeats until all of B
// is used. One pass is enough except for large factors.
func (j *job) passes() {
	wide := j.cuts.packed / j.cuts.depth // columns of which at least one segment fits
	rows := parallel.Chunks(j.m, j.rowBlock)
	after := j.o.After
	for j.jc = 0; j.jc < j.n; j.jc += wide {
		j.nc = min(wide, j.n-j.jc)
		padded := j.path.padded(j.nc)
		for s := 0; s < len(j.segments); {
			first, total := s, 0
			for s < len(j.segments) && (s == first || total+j.segments[s].depth*padded <= j.cuts.packed) {
				j.segments[s].at = total
				total += j.segments[s].depth * padded
				s++
			}
			j.now, j.first = j.segments[first:s], first == 0
			j.o.After = nil
			if s == len(j.segments) && j.jc+j.nc == j.n {
				j.o.After = after
			}
			j.packed.get(total)
			panels := parallel.Chunks(j.nc, j.path.width)
			grain := max(1, (1<<16)*len(j.now)*panels/total)
			parallel.For(j.o.Threads, len(j.now)*panels, grain, j.packBody)
			parallel.For(j.o.Threads, rows*j.blocks, 1, j.blockBody)
			j.o.Before = nil
		}
	}
}

// packItems packs panels; item is the segment's number times the number of panels, plus the panel.
func (j *job) packItems(lo, hi int) {
	w := j.path.width
	panels := parallel.Chunks(j.nc, w)
	worker := getWorker()
	for item := lo; item < hi; item++ {
		s := &j.now[item/panels]
		col := item % panels * w
		j.pack(worker, j.packed.mem[s.at+col*s.depth:], s, j.jc+col, min(w, j.nc-col))
	}
	worker.free()
}

// pack copies columns [from, from+cols) of a segment of B into panels.
func (j *job) pack(w *worker, dst []float32, s *segment, from, cols int) {
	p, b, k0 := j.path, j.terms[s.term].B, s.k0
	if b.Index != nil {
		if b.Trans {
			b = p.gather(&b, from, cols, k0, s.k, &w.gathered)
		} else {
			b = p.gather(&b, k0, s.k, from, cols, &w.gathered)
		}
		k0, from = 0, 0
	}
	if j.o.BF16 {
		b, k0, from = p.narrow(&b, !b.Trans, k0, s.k, from, cols, &w.narrow), 0, 0
	}
	for col := 0; col < cols; col += p.width {
		n := min(p.width, cols-col)
		width := p.panelWidth(n)
		panel := dst[col*s.depth:][:width*s.depth]
		p.packPanel(panel, &b, k0, s.depth, from+col, n, width)
	}
}

// block computes one block of C with the packed panels.
func (j *job) block(item, _ int) {
	lo := item / j.blocks * j.rowBlock
	hi := min(lo+j.rowBlock, j.m)
	from := item % j.blocks * j.colBlock
	to := min(from+j.colBlock, j.nc)
	if from >= to {
		return
	}
	if j.o.Before != nil {
		j.o.Before(lo, hi)
	}
	w := getWorker()
	first := j.start(lo, hi, j.jc+from, j.jc+to)
	for r := lo; r < hi; r += j.subBlock {
		end := min(r+j.subBlock, hi)
		next := end
		if end == hi {
			next += (parallel.Threads(j.o.Threads) - 1) * j.rowBlock
		}
		j.aheadOfRows(w, end-r, to-from, next, min(next+j.subBlock, j.m))
		mode := first
		for i := range j.now {
			s := &j.now[i]
			w.tile = tile{c: unsafe.Pointer(&j.c[r*j.ldc+j.jc+from]), ldc: uintptr(4 * j.ldc), mode: mode}
			if mode == fromBias {
				w.tile.bias = unsafe.Pointer(&j.o.Bias[j.jc+from])
			}
			j.view(w, &j.terms[s.term].A, r, end-r, s)
			j.panels(w, s, j.packed.mem[s.at+from*s.depth:], end-r, to-from)
			mode = fromC
		}
	}
	w.free()
	if j.o.After != nil {
		j.o.After(lo, hi)
	}
}

// aheadOfRows plans to prefetch the next rows of A.
func (j *job) aheadOfRows(w *worker, rows, cols, lo, hi int) {
	w.ahead = ahead{}
	if lo >= hi || !j.resident {
		return
	}
	prefetches := 0
	for i := range j.now {
		prefetches += j.path.prefetches(j.now[i].depth, j.path.tiles(rows, cols))
	}
	var regions [2][]float32
	for i := range j.terms[:min(2, len(j.terms))] {
		k := j.terms[i].K
		if a := &j.terms[i].A; k > 0 && a.Index == nil && !a.Trans && a.Stride <= 2*k {
			regions[i] = a.Data[lo*a.Stride : (hi-1)*a.Stride+k]
		}
	}
	w.ahead.plan(prefetches, regions[:]...)
}

// panels adds a segment's product to rows × cols of C at w.tile.c, with the
// packed panels of these columns.
func (j *job) panels(w *worker, s *segment, packed []float32, rows, cols int) {
	p := j.path
	first := w.tile
	for col := 0; col < cols; col += p.width {
		n := min(p.width, cols-col)
		t := &w.tile
		*t = first
		t.k = s.depth
		t.b = unsafe.Pointer(&packed[col*s.depth])
		t.c = unsafe.Add(first.c, 4*col)
		if t.mode == fromBias {
			t.bias = unsafe.Add(first.bias, 4*col)
		}
		if !j.resident && col+n < cols {
			w.ahead.plan(p.prefetches(s.depth, p.tiles(rows, n)), packed[(col+p.width)*s.depth:][:min(p.width, cols-col-n)*s.depth])
		}
		p.column(t, &w.ahead, rows, n, p.panelWidth(n))
	}
	w.tile = first
}

// start returns the mode of a block's first segment. With both a bias and Acc, the bias is added to
// C first.
func (j *job) start(lo, hi, from, to int) int {
	switch {
	case !j.first:
		return fromC
	case !j.o.Acc && j.o.Bias == nil:
		return fromZero
	case !j.o.Acc:
		return fromBias
	}
	if j.o.Bias != nil {
		for i := lo; i < hi; i++ {
			row := j.c[i*j.ldc:]
			for k := from; k < to; k++ {
				row[k] += j.o.Bias[k]
			}
		}
	}
	return fromC
}

// startRows sets rows of C to the initial values of the sums, if there are no products.
func (j *job) startRows(lo, hi int) {
	for i := lo; i < hi && j.n > 0; i++ {
		row := j.c[i*j.ldc:][:j.n]
		if !j.o.Acc {
			clear(row)
		}
		for k, b := range j.o.Bias {
			row[k] += b
		}
	}
}
