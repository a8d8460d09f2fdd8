package pairs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/gemm"
	"github.com/graphnb/graphnb/internal/parallel"
)

// TopOptions configure [TopK] and [Heuristic.TopK].
type TopOptions struct {
	// K is the number of nodes to choose for each node, 1 or more; 0 is an error.
	K int
	// Candidates are the nodes that can be chosen, ascending and each once; nil means all nodes.
	Candidates []int32
	// Known has, as the row of a node, the nodes that are not chosen for it, ascending (see
	// [Destinations]); nil means that only the node itself is not chosen.
	Known *graphops.Graph
	// Graph is the graph that a [GraphDecoder] reads; others do not need it.
	Graph *graphops.Graph
	// Threads is the number of threads; 0 means GOMAXPROCS. It does not change the result.
	Threads int
}

// Top holds the chosen nodes of a list of nodes, K for each, in rows.
type Top struct {
	K int
	// IDs [len(nodes), K] are the chosen nodes, the best first. Where there are fewer than K candidates,
	// the rest of the row is -1.
	IDs []int32
	// Scores [len(nodes), K] are their scores, NaN where IDs is -1.
	Scores []float32
}

// Of returns the chosen nodes of the i-th node, the best first, with their scores. The slices share
// memory with t.
func (t Top) Of(i int) (ids []int32, scores []float32) {
	ids, scores = t.IDs[i*t.K:(i+1)*t.K], t.Scores[i*t.K:(i+1)*t.K]
	if end := slices.Index(ids, -1); end >= 0 {
		ids, scores = ids[:end], scores[:end]
	}
	return ids, scores
}

// GridDecoder is a [Decoder] that scores all pairs of two lists of nodes at less cost than one by one. A
// decoder may implement it; [TopK] uses it. The scores may differ from those of Score by rounding.
type GridDecoder interface {
	Decoder
	// ScoreGrid writes the score of src[i] → dst[j] to out[i*len(dst)+j]. h [_, cols] are embeddings. It
	// must be safe for concurrent use.
	ScoreGrid(h []float32, cols int, src, dst []int32, out []float32)
}

// ScoreGrid implements [GridDecoder] by a matrix product.
func (Dot) ScoreGrid(h []float32, cols int, src, dst []int32, out []float32) {
	gemm.Multiply(len(src), len(dst), out, len(dst), []gemm.Term{{
		K: cols, A: gemm.Operand{Data: h, Stride: cols, Index: src}, B: gemm.Operand{Data: h, Stride: cols, Index: dst, Trans: true},
	}}, gemm.Options{Threads: 1})
}

// ScoreGrid implements [GridDecoder] by two matrix products.
func (b *Bilinear) ScoreGrid(h []float32, cols int, src, dst []int32, out []float32) {
	left := make([]float32, len(src)*cols)
	gemm.Multiply(len(src), cols, left, cols, []gemm.Term{{
		K: cols, A: gemm.Operand{Data: h, Stride: cols, Index: src}, B: gemm.Operand{Data: b.Weight.W, Stride: cols},
	}}, gemm.Options{Threads: 1})
	gemm.Multiply(len(src), len(dst), out, len(dst), []gemm.Term{{
		K: cols, A: gemm.Operand{Data: left, Stride: cols}, B: gemm.Operand{Data: h, Stride: cols, Index: dst, Trans: true},
	}}, gemm.Options{Threads: 1})
}

// The sizes of a block of [TopK]: topRows nodes are scored with topCols candidates.
const (
	topRows = 32
	topCols = 1024
)

// TopK returns, for each of the given nodes, the K candidates with the highest scores of an edge to
// them, by embeddings h [_, cols]. Of equal scores the smaller id is first. A node is not a candidate
// for itself.
//
// The choice is exact: every candidate is scored, in blocks, and memory is that of the result and one
// block for each thread, never nodes × nodes. A [GridDecoder] takes a matrix product for each block;
// for others, Score is called with chunks of pairs. The result of a node depends neither on the other
// nodes nor on threads.
//
// It returns an error if K is below 1 or above the number of candidates, for a node or candidate
// without an embedding, for candidates that do not ascend, and for a score that is NaN.
// Cost: len(nodes)·candidates scores.
func TopK(d Decoder, h []float32, cols int, nodes []int32, o TopOptions) (Top, error) {
	if cols < 1 || len(h)%cols != 0 {
		return Top{}, fmt.Errorf("pairs: %d numbers are not embeddings of %d columns", len(h), cols)
	}
	candidates, err := o.check(nodes, len(h)/cols)
	if err != nil {
		return Top{}, err
	}
	if _, ok := d.(GraphDecoder); ok && (o.Graph == nil || o.Graph.NumNodes() != len(h)/cols) {
		return Top{}, fmt.Errorf("pairs: a decoder of type %T reads the graph around each pair, and TopOptions has none with the %d nodes that have embeddings; set Graph", d, len(h)/cols)
	}
	if s, ok := d.(*Structural); ok {
		return s.topIn(h, cols, nodes, candidates, o)
	}
	grid, ok := d.(GridDecoder)
	if !ok {
		return topByPairs(d, h, cols, nodes, candidates, o)
	}
	return topByGrid(grid, h, cols, nodes, candidates, o, nil)
}

// topByGrid is TopK for a decoder of grids. added, unless it is nil, is called for each group of nodes; what it returns adds
// to the scores of the candidates of block, which ascend from call to call, for node i of the group.
func topByGrid(grid GridDecoder, h []float32, cols int, nodes, candidates []int32, o TopOptions, added func(nodes []int32) (add func(i int, block []int32, scores []float32))) (Top, error) {
	t := newTop(len(nodes), o.K)
	var failed firstError
	memory := sync.Pool{New: func() any { s := make([]float32, topRows*topCols); return &s }}
	parallel.For(o.Threads, len(nodes), topRows, func(lo, hi int) {
		scores := *memory.Get().(*[]float32)
		defer memory.Put(&scores)
		add := func(int, []int32, []float32) {}
		if added != nil {
			add = added(nodes[lo:hi])
		}
		rows := make([]selection, hi-lo)
		for i := range rows {
			rows[i] = o.selection(nodes[lo+i])
		}
		for c := 0; c < len(candidates); c += topCols {
			block := candidates[c:min(c+topCols, len(candidates))]
			if err := nn.Try(func() { grid.ScoreGrid(h, cols, nodes[lo:hi], block, scores) }); err != nil {
				failed.put(lo, fmt.Errorf("pairs: scoring nodes: %w", err))
				return
			}
			for i := range rows {
				row := scores[i*len(block) : (i+1)*len(block)]
				add(i, block, row)
				if err := rows[i].offer(block, row); err != nil {
					failed.put(lo, err)
					return
				}
			}
		}
		for i := range rows {
			rows[i].write(t, lo+i)
		}
	})
	return t, failed.err
}

// topByPairs is TopK for a decoder that scores pairs alone.
func topByPairs(d Decoder, h []float32, cols int, nodes, candidates []int32, o TopOptions) (Top, error) {
	t := newTop(len(nodes), o.K)
	f := nn.NewFwd(nn.Config{})
	src := make([]int32, min(4*topCols, len(candidates)))
	for i, u := range nodes {
		row := o.selection(u)
		for j := range src {
			src[j] = u
		}
		for c := 0; c < len(candidates); c += len(src) {
			block := candidates[c:min(c+len(src), len(candidates))]
			var scores []float32
			if err := nn.Try(func() {
				f.Reset(nn.Config{Threads: o.Threads})
				scores = ScoreIn(d, f, o.Graph, Edges{src[:len(block)], block}, f.Input(len(h)/cols, cols, h, nil), src[:len(block)], block).Data()
			}); err != nil {
				return Top{}, fmt.Errorf("pairs: scoring nodes: %w", err)
			}
			if len(scores) != len(block) {
				return Top{}, fmt.Errorf("pairs: a decoder of type %T returned %d scores for %d pairs; it returns one for each", d, len(scores), len(block))
			}
			if err := row.offer(block, scores); err != nil {
				return Top{}, err
			}
		}
		row.write(t, i)
	}
	return t, nil
}

// Check returns the error that [TopK] returns for these options and nodes, of a graph with all nodes.
func (o TopOptions) Check(nodes []int32, all int) error {
	_, err := o.check(nodes, all)
	return err
}

// check returns the candidates, or an error for options that do not fit.
func (o TopOptions) check(nodes []int32, all int) (candidates []int32, err error) {
	for i, v := range nodes {
		if uint32(v) >= uint32(all) {
			return nil, fmt.Errorf("pairs: node %d of the list is %d, but there are the nodes 0 to %d", i, v, all-1)
		}
	}
	for i, v := range o.Candidates {
		switch {
		case uint32(v) >= uint32(all):
			return nil, fmt.Errorf("pairs: candidate %d is node %d, but there are the nodes 0 to %d", i, v, all-1)
		case i > 0 && v <= o.Candidates[i-1]:
			return nil, fmt.Errorf("pairs: candidate %d is node %d, after node %d; give candidates in ascending order, each once", i, v, o.Candidates[i-1])
		}
	}
	if o.Known != nil && o.Known.NumNodes() != all {
		return nil, fmt.Errorf("pairs: the graph of known edges has %d nodes, and there are %d embeddings; give those of the same graph", o.Known.NumNodes(), all)
	}
	candidates = o.Candidates
	if candidates == nil {
		candidates = make([]int32, all)
		for v := range candidates {
			candidates[v] = int32(v)
		}
	}
	most := len(candidates)
	if o.Candidates == nil {
		most-- // without the node itself
	}
	switch {
	case o.K < 1 || o.K > most:
		return nil, fmt.Errorf("pairs: K is %d; choose 1 to %d, the number of candidates", o.K, most)
	case len(nodes) > maxChosen/o.K:
		return nil, fmt.Errorf("pairs: %d nodes with %d candidates each are more than the %d that one call chooses; give fewer nodes at a time, or a smaller K", len(nodes), o.K, maxChosen)
	}
	return candidates, nil
}

// maxChosen is the largest number of candidates that a call chooses: 8 GiB of ids and scores.
const maxChosen = 1 << 30

func newTop(nodes, k int) Top {
	t := Top{K: k, IDs: make([]int32, nodes*k), Scores: make([]float32, nodes*k)}
	for i := range t.IDs {
		t.IDs[i], t.Scores[i] = -1, float32(math.NaN())
	}
	return t
}

// scored is a candidate.
type scored struct {
	id    int32
	score float32
}

// before orders candidates: the highest score first, and of equal ones the smaller id.
func (a scored) before(b scored) bool { return a.score > b.score || a.score == b.score && a.id < b.id }

// selection is the best candidates of a node so far.
type selection struct {
	node  int32
	k     int
	known []int32
	heap  []scored // the last one at the root
}

func (o TopOptions) selection(node int32) selection {
	s := selection{node: node, k: o.K}
	if o.Known != nil {
		s.known = o.Known.InNeighbors(node)
	}
	return s
}

// offer offers candidates with their scores; without ids, those of the scores' positions.
func (s *selection) offer(ids []int32, scores []float32) error {
	least, full := float32(0), len(s.heap) == s.k
	if full {
		least = s.heap[0].score
	}
	for j, x := range scores {
		if full && x < least { // nearly all; the ids of different calls need not ascend
			continue
		}
		c := scored{int32(j), x}
		if ids != nil {
			c.id = ids[j]
		}
		switch {
		case x != x:
			return fmt.Errorf("pairs: the score of %d → %d is NaN; train with a lower learning rate, or clip the gradient", s.node, c.id)
		case full && !c.before(s.heap[0]) || c.id == s.node || s.knows(c.id):
		case full:
			s.heap[0] = c
			s.down()
		default:
			s.heap = append(s.heap, c)
			s.up()
		}
		if full = len(s.heap) == s.k; full {
			least = s.heap[0].score
		}
	}
	return nil
}

func (s *selection) knows(v int32) bool {
	_, ok := slices.BinarySearch(s.known, v)
	return ok
}

func (s *selection) up() {
	for i := len(s.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s.heap[parent].before(s.heap[i]) {
			return
		}
		s.heap[i], s.heap[parent] = s.heap[parent], s.heap[i]
		i = parent
	}
}

func (s *selection) down() {
	for i := 0; ; {
		last := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(s.heap); c++ {
			if s.heap[last].before(s.heap[c]) {
				last = c
			}
		}
		if last == i {
			return
		}
		s.heap[i], s.heap[last] = s.heap[last], s.heap[i]
		i = last
	}
}

// sorted returns the selection, the best first. It ends the selection.
func (s *selection) sorted() []scored {
	slices.SortFunc(s.heap, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
	return s.heap
}

// write writes the selection as row i of t.
func (s *selection) write(t Top, i int) {
	for j, c := range s.sorted() {
		t.IDs[i*t.K+j], t.Scores[i*t.K+j] = c.id, c.score
	}
}

// Best returns the k ids with the highest of the given scores, scores[id] of each, without those that are
// known, which ascend: the best first, and of equal scores the smaller id. There can be fewer than k. ok is
// false if a score is NaN. Cost: one pass over the scores.
func Best(scores []float32, known []int32, k int) (top Top, ok bool) {
	s := selection{node: -1, k: k, known: known}
	if err := s.offer(nil, scores); err != nil {
		return Top{}, false
	}
	top = Top{K: len(s.heap)}
	for _, c := range s.sorted() {
		top.IDs, top.Scores = append(top.IDs, c.id), append(top.Scores, c.score)
	}
	return top, true
}

// firstError keeps the error of the first chunk that failed, whichever ends first.
type firstError struct {
	mu  sync.Mutex
	at  int
	err error
}

func (e *firstError) put(at int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil || at < e.at {
		e.at, e.err = at, err
	}
}

// Destinations returns a graph whose row of a node has the destinations of its edges in g, ascending:
// what [TopOptions] takes as Known. For an undirected graph it is g itself.
func Destinations(g *graphops.Graph) *graphops.Graph {
	if g.Symmetric() {
		return g
	}
	return g.Reverse(0)
}
