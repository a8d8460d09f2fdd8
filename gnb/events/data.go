package events

import (
	"context"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/machine"
)

// withEdges returns a dataset with all edges: a stream is every event, in each process. report may be nil; it is told how many edges of how
// many have come from parts or servers.
func withEdges(ctx context.Context, ds *dataset.Dataset, report func(done, total int64)) (*dataset.Dataset, error) {
	whole, err := divided.WithEdges(ctx, ds, report)
	if err != nil {
		return nil, fmt.Errorf("events: each worker needs the events of all nodes: %w", err)
	}
	return whole, nil
}

// denseFeatures reports whether nodes have dense features, in memory, in parts or at servers. Models read no others.
func denseFeatures(ds *dataset.Dataset) bool {
	if divided.Is(ds) {
		return ds.FeatureDim() > 0 && ds.Meta.FeatureFormat == ""
	}
	return ds.Features != nil
}

// nodeFeatures returns the features of all nodes, those in parts or at servers in memory; nil if a dataset has no dense ones, or the model reads
// none.
func (o *Options) nodeFeatures(ctx context.Context, ds *dataset.Dataset) (x *dataset.Matrix, err error) {
	k, err := kindOf(o.Model)
	if err != nil || !k.features || !denseFeatures(ds) {
		return nil, err
	}
	if !divided.Is(ds) {
		return ds.Features, nil
	}
	fail := func(err error) (*dataset.Matrix, error) {
		return nil, fmt.Errorf("events: the model %s reads the features of all nodes: %w", o.Model, err)
	}
	if err := machine.Room(fmt.Sprintf("%d features of each of %d nodes", ds.FeatureDim(), ds.Nodes()), 4*float64(ds.FeatureDim())*float64(ds.Nodes())); err != nil {
		return fail(err)
	}
	book, err := divided.Of(ds)
	if err != nil {
		return fail(err)
	}
	defer func() { err = errors.Join(err, book.CloseParts()) }()
	x, _, missing, err := new(feed.Memory).RowsOf(ctx, book, feed.Numbers(ds.Nodes()), o.Threads)
	if err == nil && len(missing) > 0 {
		_, err = book.Part(book.PartOf(int32(missing[0])))
	}
	if err != nil {
		return fail(err)
	}
	return x, nil
}
