package predict

import (
	"context"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
)

// source is where the dataset's edges and features are: in one graph and one matrix, or in parts, on this machine or at servers.
type source struct {
	ds   *dataset.Dataset
	book *divided.Book // nil for a dataset that is not divided
	rows sample.Rows   // of the nodes by their numbers
}

// open finds the edges of ds. Those of parts at servers are copied into memory.
func openSource(ds *dataset.Dataset) (*source, error) {
	s := &source{ds: ds}
	if !divided.Is(ds) {
		if ds.Graph == nil {
			return nil, fmt.Errorf("predict: %s; predictions of single nodes need the graph in this process", ds.WhyNoGraph())
		}
		s.rows = sample.RowsOf(ds.Graph)
		return s, nil
	}
	book, err := divided.Of(ds)
	if err != nil {
		return nil, fmt.Errorf("predict: %w", err)
	}
	s.book = book
	parts := make([]int, book.Parts())
	for i := range parts {
		parts[i] = i
	}
	if s.rows, err = book.Rows(parts); err != nil {
		err = fmt.Errorf("predict: an answer can need each part of %s: %w", ds.Name(), err)
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close closes the parts; the dataset is the caller's.
func (s *source) close() error {
	if s.book == nil {
		return nil
	}
	return s.book.CloseParts()
}

// outEdges are the edges by source: the out-neighbours of v are the in-neighbours of v in the graph.
func (s *source) outEdges(threads int) (*graphops.Graph, error) {
	if g := s.ds.Graph; g != nil {
		if s.ds.Meta.Undirected && g.Schema == nil {
			return g, nil
		}
		return g.Reverse(threads), nil
	}
	var src, dst []int32
	for v := range int32(s.ds.Nodes()) {
		r, _ := s.rows.Row(v)
		for _, u := range r.Sources {
			if r.IDs != nil {
				u = r.IDs[u]
			}
			src, dst = append(src, u), append(dst, v)
		}
	}
	return graphops.FromEdges(s.ds.Nodes(), dst, src, graphops.BuildOptions{KeepDuplicates: true, Threads: threads})
}

// sparse reports whether the features are sparse ones.
func (s *source) sparse() bool {
	if s.book != nil {
		return s.ds.Meta.FeatureDim > 0 && s.ds.Meta.FeatureFormat != ""
	}
	return s.ds.Features == nil && s.ds.SparseFeatures != nil
}

// dense writes the dense features of nodes to dst.
func (s *source) dense(ctx context.Context, m *feed.Memory, dst []float32, nodes []int32, threads int) error {
	if s.book == nil {
		s.ds.Features.Gather(dst, nodes, threads)
		return nil
	}
	if len(nodes) == 0 || len(dst) == 0 {
		return nil
	}
	x, _, _, err := m.RowsOf(ctx, s.book, nodes, threads)
	if err != nil {
		return fmt.Errorf("predict: the features of nodes: %w", err)
	}
	x.Gather(dst, nil, threads)
	return nil
}

// sparseRows returns the sparse features of nodes: row(i) are those of nodes[i], without values where all are 1.
func (s *source) sparseRows(ctx context.Context, m *feed.Memory, nodes []int32) (row func(i int) (cols []int32, values []float32), err error) {
	if s.book == nil {
		return func(i int) ([]int32, []float32) { return s.ds.SparseFeatures.Row(int(nodes[i])) }, nil
	}
	_, x, _, err := m.RowsOf(ctx, s.book, nodes, 1)
	if err != nil {
		return nil, fmt.Errorf("predict: the features of nodes: %w", err)
	}
	return x.Row, nil
}
