package divided

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/mapped"
)

// CheckOnce checks any dataset before it is used, as every command does: an undivided one by
// [dataset.Dataset.CheckOnce]. Of a divided dataset it checks the graph and the splits like this, the identities
// of the parts that are on this machine, and their sums. The edges of
// the parts of a dataset that CheckOnce would check every time are read too.
func CheckOnce(ctx context.Context, ds *dataset.Dataset, o dataset.CheckOnceOptions) error {
	if !Is(ds) {
		return ds.CheckOnce(ctx, o)
	}
	if !ds.Stored() {
		return fmt.Errorf("divided: %s was changed in memory since it was opened; change the undivided dataset, and divide that", ds.Name())
	}
	b, err := Of(ds) // first, for it compares the sizes of the arrays with the number of nodes
	if err != nil {
		return err
	}
	defer func() { _ = b.CloseParts() }()
	if err := ds.CheckOnce(ctx, o); err != nil {
		return err
	}
	if always := cmp.Or(o.Always, 256<<20); ds.Bytes() > always && !o.Verify {
		for i := range b.parts {
			if !b.Has(i) {
				continue
			}
			if _, err := b.Part(i); err != nil {
				return err
			}
		}
		_, err := ds.Digests(ctx, o.Report)
		return err
	}
	return b.Check(ctx)
}

// CheckOpened is [CheckOnce] for a dataset of a directory. One in memory passes: the check before a run reads it.
func CheckOpened(ctx context.Context, ds *dataset.Dataset) error {
	if ds == nil || ds.Dir() == "" {
		return nil
	}
	return CheckOnce(ctx, ds, dataset.CheckOnceOptions{})
}

// Check reads all of a dataset, with the parts that are on this machine, and returns the first error in it: see
// [dataset.Dataset.Check] and [Book.Check]. report is as of [dataset.Dataset.CheckWith].
func Check(ctx context.Context, ds *dataset.Dataset, report func(done, total int64)) error {
	if !Is(ds) {
		return ds.CheckWith(ctx, report)
	}
	b, err := Of(ds)
	if err != nil {
		return err
	}
	defer func() { _ = b.CloseParts() }()
	return b.Check(ctx)
}

// Verify reads all files of a dataset and, if it is divided, of the parts that are on this machine, and compares
// them with their recorded digests, whatever the files' times are. A difference is a [*dataset.DigestError].
func Verify(ctx context.Context, ds *dataset.Dataset, o dataset.VerifyOptions) error {
	if err := ds.Verify(ctx, o); err != nil || !Is(ds) || IsFar(ds) {
		return err
	}
	b, err := Of(ds)
	if err != nil {
		return err
	}
	defer func() { _ = b.CloseParts() }()
	o.Report = nil
	return b.verify(ctx, o)
}

// verify compares the files of the parts that are on this machine with their digests.
func (b *Book) verify(ctx context.Context, o dataset.VerifyOptions) error {
	for i := range b.parts {
		if IsFar(b.ds) || !b.Has(i) {
			continue
		}
		p, err := b.Part(i)
		if err == nil {
			err = p.ds.Verify(ctx, o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// WriteDigests is [dataset.WriteDigests] for any dataset directory. Parts must have the content that the
// directory above names; so this is for directories that an older version divided.
func WriteDigests(ctx context.Context, dir string, o dataset.WriteDigestsOptions) error {
	ds, err := dataset.Open(dir)
	if err != nil || !Is(ds) {
		if err == nil {
			err = ds.Close()
		}
		var damage *dataset.DigestError
		if err != nil && (!errors.As(err, &damage) || damage.Part) {
			return err
		}
		return dataset.WriteDigests(ctx, dir, o)
	}
	defer ds.Close()
	b, err := Of(ds)
	if err != nil {
		return err
	}
	defer func() { _ = b.CloseParts() }()
	if err := b.Check(ctx); err != nil {
		return err
	}
	p := ds.Meta.Parts
	division := cmp.Or(p.Division, divisionOf(p.Of.Whole, b.of, p.Count, p.NoTopology))
	for i := range b.parts {
		if IsFar(ds) || !b.Has(i) {
			continue
		}
		at := o
		at.Edit = func(m *dataset.Metadata) { m.Part.Division = division }
		if err := dataset.WriteDigests(ctx, dataset.PartDir(ds.Dir(), i), at); err != nil {
			return err
		}
	}
	o.Edit = func(m *dataset.Metadata) { m.Parts.Division = division }
	return dataset.WriteDigests(ctx, dir, o)
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
	if err := b.verify(ctx, dataset.VerifyOptions{}); err != nil {
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
