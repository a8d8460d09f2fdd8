package gnb

import (
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// fewEdges is the edges of a graph all of which are sampled faster than another
// thread wakes.
const fewEdges = 1 << 15

// sampler returns a sampler for a loader: that of an earlier loop, where the
// loader is the same. The loop ends with done.
func (w *Worker) sampler(l Loader, purpose philox.Purpose) (s feed.Sampler, done func(), err error) {
	key := feed.Key{Picker: l.Sampler, Frontier: l.Frontier, Hops: l.Hops, Purpose: purpose}
	s, end, err := w.feed.samplers.Get(key, func(key feed.Key) (feed.Sampler, error) {
		s, err := w.deviceSampler(key)
		if err == nil && s == nil {
			s, err = w.hostSampler(key)
		}
		return s, err
	})
	if err != nil {
		return nil, nil, err
	}
	return s, func() { w.check(end()) }, nil
}

func (w *Worker) hostSampler(k feed.Key) (feed.Sampler, error) {
	threads := w.job.Threads
	if w.ds.Graph.NumEdges() < fewEdges {
		threads = 1
	}
	return sample.New(w.ds.Graph, sample.Config{
		Picker: k.Picker, Frontier: k.Frontier, Hops: k.Hops,
		Seed: w.job.Seed, Purpose: sample.Purpose(k.Purpose), Threads: threads, Transpose: k.Purpose == philox.Sample,
	})
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
	for _, k := range w.feed.matrices {
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
	w.feed.matrices = append(w.feed.matrices, k)
	return k, nil
}
