package sampler

import (
	"sync"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda"
)

// The arrays of a hop that the host may read.
const (
	askedIndptr = iota
	askedIndices
	askedEdgePos
	askedWeights
	askedKinds
)

// onHost holds the parts of a batch that were copied to the host, and records which ones were read
// there, of each block of [memory]. Batches that use this one's device memory later reuse its memory.
type onHost struct {
	mu    sync.Mutex
	there []bool // by block and kind
	asked []bool
	ids   []int32
	idsIn bool
	idsBy bool // were asked for
	hops  []hostHop
}

// hostHop is a block's arrays on the host.
type hostHop struct {
	indptr, edgePos []int64
	indices         []int32
	weights         []float32
}

func newOnHost(blocks int) *onHost {
	return &onHost{there: make([]bool, askedKinds*blocks), asked: make([]bool, askedKinds*blocks), hops: make([]hostHop, blocks)}
}

var _ graphops.LoopedRemote = (*far)(nil)

// far is a block as the host sees it: an array is copied when the host first reads it.
type far struct {
	s    *Sampler
	m    *memory
	hop  int // from Hops on, the block with self-loops of the hop that is Hops less
	rows int // of this hop and all earlier ones
}

func (f *far) NumEdges() int   { return f.m.edges[f.hop] }
func (f *far) Weighted() bool  { return f.s.g.Weights != 0 }
func (f *far) IDsOf() any      { return f.m }
func (f *far) Indptr() []int64 { f.ask(askedIndptr); return f.m.host.hops[f.hop].indptr }
func (f *far) Indices() []int32 {
	f.ask(askedIndices)
	return f.m.host.hops[f.hop].indices
}

func (f *far) EdgePos() []int64 {
	f.ask(askedEdgePos)
	return f.m.host.hops[f.hop].edgePos
}

func (f *far) Weights() []float32 {
	if !f.Weighted() {
		return nil
	}
	if f.hop >= f.s.c.Hops {
		return f.loopedWeights()
	}
	f.ask(askedWeights)
	return f.m.host.hops[f.hop].weights
}

// loopedWeights returns the weights of a block with self-loops. They are not on the device, where no operation reads them.
func (f *far) loopedWeights() []float32 {
	x, b := &f.m.host.hops[f.hop], &f.m.structs[f.hop-f.s.c.Hops]
	f.m.host.mu.Lock()
	made := f.m.host.there[askedKinds*f.hop+askedWeights]
	f.m.host.mu.Unlock()
	if !made {
		weights := graphops.HostBlock{
			NumDst: b.NumDst, NumSrc: b.NumSrc, Graph: b.Graph, Indptr: b.Indptr(), Indices: b.Indices(), SrcIDs: b.SrcIDs(), Weights: b.Weights(),
		}.Block().SelfLooped().Weights()
		f.m.host.mu.Lock()
		x.weights, f.m.host.there[askedKinds*f.hop+askedWeights] = weights, true
		f.m.host.mu.Unlock()
	}
	return x.weights
}

func (f *far) SrcIDs() []int32 {
	h := f.m.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idsBy = true
	must(f.m.bringIDs(f.s.d.Copy))
	return h.ids[:f.rows:f.rows]
}

// SelfLooped implements [graphops.LoopedRemote]. Once it is called, later batches have the block of this hop.
func (f *far) SelfLooped(b, l *graphops.Block) bool {
	s := f.s
	if f.hop >= s.c.Hops {
		return false
	}
	s.ask(s.loops, f.hop)
	if !f.m.made[f.hop] {
		return false
	}
	l.SetRemote(&f.m.far[s.c.Hops+f.hop], b.NumDst, b.NumSrc, b.Level, b.Graph)
	dev := f.m.loops[f.hop] // a copy, because a Reset of l empties it
	l.Dev = &dev
	return true
}

// ask makes later batches have what a program has read of the block of a hop.
func (s *Sampler) ask(kind []bool, hop int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind[hop] = true
}

// ask copies an array to the host. The receiver of a batch gets it when it is complete on the
// device, so the copy waits for no stream but its own.
func (f *far) ask(kind int) {
	h := f.m.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[askedKinds*f.hop+kind] = true
	must(f.m.bring(f.s.d.Copy, f.hop, kind))
}

// must panics with a device's failure, as its backend does.
func must(err error) {
	if err != nil {
		panic(&ops.Failure{Err: err})
	}
}

// bring copies a block's array on a stream, unless that was done before; the caller holds h.mu.
func (m *memory) bring(s *cuda.Stream, hop, kind int) (err error) {
	h, at := m.host, askedKinds*hop+kind
	if h.there[at] {
		return nil
	}
	x, a, n := &h.hops[hop], m.hops[hop].arrays(), m.edges[hop]
	switch kind {
	case askedIndptr:
		x.indptr, err = fetch(s, x.indptr, a.indptr, m.structs[hop%len(m.structs)].NumDst+1)
	case askedIndices:
		x.indices, err = fetch(s, x.indices, a.indices, n)
	case askedEdgePos:
		x.edgePos, err = fetch(s, x.edgePos, a.edgePos, n)
	case askedWeights:
		x.weights, err = fetch(s, x.weights, a.weights, n)
	}
	h.there[at] = err == nil
	return err
}

// bringIDs copies the ids of the batch's nodes, unless that was done before; the caller holds h.mu.
func (m *memory) bringIDs(s *cuda.Stream) (err error) {
	h := m.host
	if h.idsIn {
		return nil
	}
	h.ids, err = fetch(s, h.ids, m.ids.Ptr, m.structs[len(m.structs)-1].NumSrc)
	h.idsIn = err == nil
	return err
}

// fetch returns the n elements at p, in the memory of old if that is large enough; the result is
// never nil.
func fetch[T int32 | int64 | float32](s *cuda.Stream, old []T, p cuda.Ptr, n int) ([]T, error) {
	if old == nil || cap(old) < n {
		old = make([]T, n, n+n/8)
	}
	old = old[:n]
	if n == 0 {
		return old, nil
	}
	return old, cuda.CopyOut(s, old, p)
}

// ahead copies to the host the arrays that the host read of the batch released last, because the
// program will probably read them again. It runs while the sampler is ahead of the program.
func (s *Sampler) ahead(m *memory) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wantIDs {
		if err := m.bringIDs(s.d.Sampling); err != nil {
			return err
		}
	}
	for at, want := range s.want {
		if block := at / askedKinds; want && (block < s.c.Hops || m.made[block-s.c.Hops]) {
			if err := m.bring(s.d.Sampling, block, at%askedKinds); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget drops a released batch's copies, and records which arrays the host read, so that the next
// batches copy them in advance.
func (s *Sampler) forget(m *memory) {
	h := m.host
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	copy(s.want, h.asked)
	s.wantIDs = h.idsBy
	clear(h.asked)
	clear(h.there)
	h.idsIn, h.idsBy = false, false
}
