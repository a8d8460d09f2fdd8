package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
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

// edgesOf is withEdges of a dataset that is about to be trained on, with a bar.
func edgesOf(ctx context.Context, ds *dataset.Dataset, quiet bool) (*dataset.Dataset, error) {
	bar := getdata.Begin("getting the events of "+ds.Name(), 0, getdata.BarOptions{Unit: "edges", After: time.Second, Quiet: quiet})
	defer bar.Done()
	return withEdges(ctx, ds, bar.Set)
}

// edgesOfWorker is withEdges of a worker's dataset.
func edgesOfWorker(w *gnb.Worker) (*dataset.Dataset, error) {
	progress := w.Progress("copy events", int(w.Dataset().Edges()))
	return withEdges(context.Background(), w.Dataset(), func(done, _ int64) { progress(int(done)) })
}

// denseFeatures reports whether nodes have dense features, in memory, in parts or at servers. Models read no others.
func denseFeatures(ds *dataset.Dataset) bool {
	if divided.Is(ds) {
		return ds.FeatureDim() > 0 && ds.Meta.FeatureFormat == ""
	}
	return ds.Features != nil
}

// nodeFeatures returns the features of all nodes, those in parts or at servers in memory; nil if a dataset has no dense ones.
func nodeFeatures(ctx context.Context, ds *dataset.Dataset, threads int) (x *dataset.Matrix, err error) {
	switch {
	case !denseFeatures(ds):
		return nil, nil
	case !divided.Is(ds):
		return ds.Features, nil
	}
	fail := func(err error) (*dataset.Matrix, error) {
		return nil, fmt.Errorf("events: the model reads the features of all nodes: %w", err)
	}
	if err := machine.Room(fmt.Sprintf("%d features of each of %d nodes", ds.FeatureDim(), ds.Nodes()), 4*float64(ds.FeatureDim())*float64(ds.Nodes())); err != nil {
		return fail(err)
	}
	book, err := divided.Of(ds)
	if err != nil {
		return fail(err)
	}
	defer func() { err = errors.Join(err, book.CloseParts()) }()
	x, _, missing, err := new(feed.Memory).RowsOf(ctx, book, feed.Numbers(ds.Nodes()), threads)
	if err == nil && len(missing) > 0 {
		_, err = book.Part(book.PartOf(int32(missing[0])))
	}
	if err != nil {
		return fail(err)
	}
	return x, nil
}
