package feed

import (
	"cmp"
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// PartFirst configures [Parts.FirstLayer].
type PartFirst struct {
	Comm    collective.Comm
	Site    collective.Site
	Graph   *graphops.Graph  // of all nodes; its edges can differ from those of the parts
	Degrees graphops.Degrees // nil means those of Graph
	Model   nn.Model
	Threads int
	Rows    int // the most rows of features in memory; 0 means as many as chunkBytes hold
}

// chunkBytes bounds the features of a chunk.
const chunkBytes = 256 << 20

// FirstLayer computes the rows [lo, hi) of a model's first layer on a graph from the features of a dataset in parts, in
// chunks whose sources have room in memory, as [Fetcher.FirstLayer] does. The rows have the bits of [nn.LayerRowsFrom] with
// all features in memory. If some ranks lack features, the ranks ask each other once for each chunk: collective then.
func (p *Parts) FirstLayer(o PartFirst, fwd *nn.Fwd, lo, hi int, out []float32, done func(rows int)) error {
	meta := &p.Dataset().Meta
	most := o.Rows
	if most == 0 {
		most = max(1, chunkBytes/max(1, 4*meta.FeatureDim))
	}
	c := newChunk(o.Graph, cmp.Or[graphops.Degrees](o.Degrees, o.Graph))
	rounds := 0 // as many as there are chunks
	var x *plane.Exchange
	if p.apart && !divided.IsFar(p.Dataset()) {
		var err error
		if rounds, err = p.rounds(o, c, lo, hi, most); err != nil {
			return err
		}
		own := p.ownRows(o.Threads)
		x = &plane.Exchange{Comm: o.Comm, Site: o.Site, Own: own, RowBytes: own.RowBytes(), Owner: func(v int32) int { return p.Rank(p.PartOf(v)) }}
	}
	var memory Memory
	return c.firstLayer(o.Model, fwd, lo, hi, most, rounds, out, done, func(ids []int32) (*dataset.Matrix, *dataset.Sparse, error) {
		return p.chunkRows(&memory, x, ids, o.Threads)
	})
}

// rounds is the largest number of chunks of a rank. Collective.
func (p *Parts) rounds(o PartFirst, c *chunk, lo, hi, most int) (int, error) {
	mine := 0
	for at := lo; at < hi; at = c.grow(at, hi, most) {
		mine++
	}
	return p.largest(o.Comm, o.Site, mine)
}

// chunkRows returns the features of distinct nodes: dense or sparse, the other is nil. Collective if x is not nil.
func (p *Parts) chunkRows(m *Memory, x *plane.Exchange, ids []int32, threads int) (*dataset.Matrix, *dataset.Sparse, error) {
	if x == nil {
		return m.Rows(p, ids, threads)
	}
	own, size := x.Own.(Own), x.RowBytes
	rows := own.Reset(&m.dense, len(ids))
	var away []int32
	var places []int
	for i, v := range ids {
		if own.Has(v) {
			continue
		}
		away, places = append(away, v), append(places, i)
	}
	if err := own.Gather(rows, ids); err != nil { // those that are not here stay as they are
		return nil, nil, err
	}
	got := make([]byte, len(away)*size)
	if err := x.Rows(context.Background(), away, got); err != nil {
		return nil, nil, fmt.Errorf("gnb: getting the features of %d nodes of other ranks: %w", len(away), err)
	}
	for k, i := range places {
		copy(rows[i*size:(i+1)*size], got[k*size:])
	}
	return m.written(own, rows)
}
