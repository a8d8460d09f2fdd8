package divided

import (
	"cmp"
	"context"
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/mapped"
)

// CheckOnce checks a divided dataset before a run: the graph and the splits as
// [dataset.Dataset.CheckOnce] does, and the parts that are on this machine by their sums. The edges of
// the parts of a dataset that CheckOnce would check every time are read too.
func CheckOnce(ctx context.Context, ds *dataset.Dataset, o dataset.CheckOnceOptions) error {
	if !ds.Stored() {
		return fmt.Errorf("divided: %s was changed in memory since it was opened; change the undivided dataset, and divide that", ds.Name())
	}
	if err := ds.CheckOnce(ctx, o); err != nil {
		return err
	}
	if always := cmp.Or(o.Always, 256<<20); ds.Bytes() > always {
		_, err := ds.Digests(ctx, o.Report)
		return err
	}
	b, err := Of(ds)
	if err != nil {
		return err
	}
	defer func() { _ = b.CloseParts() }()
	return b.Check(ctx)
}

// Check reads the book and every part that is on this machine, and returns the first error in them:
// what [Book.Part] and [dataset.Dataset.Digests] report, and sources that are not those of the whole
// graph or, without it, out of range or order. A machine without any part is an error.
func (b *Book) Check(ctx context.Context) error {
	if err := b.ds.Check(ctx); err != nil {
		return err
	}
	if _, err := b.ds.Digests(ctx, nil); err != nil {
		return err
	}
	here := 0
	for i := range b.parts {
		if !b.Has(i) {
			continue
		}
		here++
		p, err := b.Part(i)
		if err == nil {
			err = mapped.Guard(func() error { return p.checkEdges(ctx) })
		}
		if err != nil {
			return err
		}
	}
	if here == 0 && !IsFar(b.ds) {
		return fmt.Errorf("divided: %s has no part on this machine: part-0000 and so on are absent from %s", b.ds.Name(), b.ds.Dir())
	}
	return nil
}

// checkEdges checks the sources of every own node.
func (p *Part) checkEdges(ctx context.Context) error {
	whole := p.book.ds.Graph
	if x := p.Graph.EdgeFeatures; x != nil {
		if row, col := x.FirstNotFinite(0, x.Rows()); row >= 0 {
			return fmt.Errorf("divided: %s/edge_features.npy: row %d, column %d is not finite; divide the dataset again", p.ds.Dir(), row, col)
		}
	}
	relations, types := 0, p.Graph.EdgeTypes
	if s := p.book.ds.Schema(); s != nil {
		relations = len(s.Relations)
	}
	for k, v := range p.Own {
		if k%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		before := int32(-1)
		for e, u := range p.Graph.InNeighbors(int32(k)) {
			if u < 0 || int(u) >= p.Graph.NumNodes() {
				return fmt.Errorf("divided: %s/indices.npy: node %d has the source %d; the part's nodes are 0 to %d", p.ds.Dir(), v, u, p.Graph.NumNodes()-1)
			}
			id := p.Global(int(u))
			if id < before || whole != nil && whole.InNeighbors(v)[e] != id {
				return fmt.Errorf("divided: %s/indices.npy: source %d of node %d is node %d, and not that of the whole graph", p.ds.Dir(), e, v, id)
			}
			before = id
			if types == nil {
				continue
			}
			at := p.Graph.Indptr[k] + int64(e)
			if int(types[at]) >= relations || whole != nil && types[at] != whole.EdgeTypes[whole.Indptr[v]+int64(e)] {
				return fmt.Errorf("divided: %s/edge_types.npy: entry %d, an edge into node %d, is %d, and not that of the whole graph, which has %d relations; divide the dataset again", p.ds.Dir(), at, v, types[at], relations)
			}
		}
	}
	return nil
}
