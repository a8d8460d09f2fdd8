package gnb

import (
	"io"
	"reflect"
	"slices"

	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// keptSampler is a sampler with its tables, kept from one loop to the next.
type keptSampler struct {
	picker   Picker
	frontier FrontierPicker
	hops     int
	purpose  philox.Purpose
	sampler  batchSampler
	loops    int // that use it now
}

// fewEdges is the edges of a graph all of which are sampled faster than another
// thread wakes.
const fewEdges = 1 << 15

// maxSamplers bounds how many samplers are kept, each with a table of the graph's
// nodes: an epoch may train with one loader and test with another.
const maxSamplers = 4

// sampler returns a sampler for a loader: that of an earlier loop, where the
// loader is the same. One purpose's loops follow each other, so that no two of
// them use a sampler at a time. The loop ends with done.
func (w *Worker) sampler(l Loader, purpose philox.Purpose) (s batchSampler, done func(), err error) {
	for _, k := range w.samplers {
		if k.purpose == purpose && k.hops == l.Hops && samePicker(k.picker, l.Sampler) && samePicker(k.frontier, l.Frontier) {
			return k.sampler, k.use(), nil
		}
	}
	picker := l.Sampler
	switch p := picker.(type) { // the program may change its slice
	case Fanouts:
		picker = slices.Clone(p)
	case sample.Weighted:
		picker = sample.Weighted{Fanouts: slices.Clone(p.Fanouts)}
	}
	s, err = w.deviceSampler(l, picker, purpose)
	if err == nil && s == nil {
		s, err = w.hostSampler(l, picker, purpose)
	}
	if err != nil {
		return nil, nil, err
	}
	if !samePicker(picker, picker) || !samePicker(l.Frontier, l.Frontier) {
		return s, func() { w.check(closeSampler(s)) }, nil // nobody will ask for it again
	}
	if len(w.samplers) >= maxSamplers {
		for i, k := range w.samplers {
			if k.loops == 0 {
				w.samplers = slices.Delete(w.samplers, i, i+1)
				w.check(closeSampler(k.sampler))
				break
			}
		}
	}
	k := &keptSampler{picker: picker, frontier: l.Frontier, hops: l.Hops, purpose: purpose, sampler: s}
	w.samplers = append(w.samplers, k)
	return s, k.use(), nil
}

// use counts a loop.
func (k *keptSampler) use() (done func()) {
	k.loops++
	return func() { k.loops-- }
}

// closeSampler gives a device's sampler's memory back; that of batches still in use when
// they are released.
func closeSampler(s batchSampler) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (w *Worker) hostSampler(l Loader, picker Picker, purpose philox.Purpose) (batchSampler, error) {
	threads := w.job.Threads
	if w.ds.Graph.NumEdges() < fewEdges {
		threads = 1
	}
	return sample.New(w.ds.Graph, sample.Config{
		Picker: picker, Frontier: l.Frontier, Hops: l.Hops,
		Seed: w.job.Seed, Purpose: sample.Purpose(purpose), Threads: threads, Transpose: purpose == philox.Sample,
	})
}

// samePicker says whether two pickers are certain to pick alike from now on: the
// same fanouts, or the same value of a type that can be compared.
func samePicker(a, b any) bool {
	switch f := a.(type) {
	case Fanouts:
		g, ok := b.(Fanouts)
		return ok && slices.Equal(f, g)
	case sample.Weighted:
		g, ok := b.(sample.Weighted)
		return ok && slices.Equal(f.Fanouts, g.Fanouts)
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if !x.IsValid() || !y.IsValid() {
		return x.IsValid() == y.IsValid()
	}
	return x.Comparable() && y.Comparable() && a == b
}

// keptMatrix is a matrix of layer-wise evaluation that stays for the next one: a
// fresh one costs a page fault for every 4 KiB, which for a small graph is more
// than the evaluation, and for one of 169,343 nodes half as much.
type keptMatrix struct {
	collective.Matrix
	layer int
}

// Release keeps the memory.
func (keptMatrix) Release() {}

// keptBytes bounds the matrices that are kept, together: memory that all ranks
// share.
const keptBytes = 512 << 20

// matrix is memory for the rows of all nodes after a layer. Every rank asks for
// the same, so every rank keeps the same.
func (w *Worker) matrix(layer, cols int) (collective.Matrix, error) {
	rows := w.ds.Nodes()
	bytes := 4 * rows * cols
	for _, k := range w.matrices {
		if k.layer == layer && k.Cols() == cols {
			return k, nil
		}
		bytes += 4 * rows * k.Cols()
	}
	m, err := w.comm.NewMatrix(w.site("evaluate"), rows, cols)
	if err != nil || bytes > keptBytes {
		return m, err
	}
	k := keptMatrix{m, layer}
	w.matrices = append(w.matrices, k)
	return k, nil
}
