package predict

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

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
func (s *source) dense(ctx context.Context, dst []float32, nodes []int32, threads int) error {
	if s.book == nil {
		s.ds.Features.Gather(dst, nodes, threads)
		return nil
	}
	if len(nodes) == 0 || len(dst) == 0 {
		return nil
	}
	if !divided.IsFar(s.ds) {
		var m dataset.Matrix
		if !s.book.Half() {
			m.F32 = dst[:0:len(dst)]
		}
		if _, err := s.book.Gather(&m, nodes, threads); err != nil {
			return fmt.Errorf("predict: the features of nodes: %w", err)
		}
		if s.book.Half() {
			m.Gather(dst, nil, threads)
		}
		return nil
	}
	_, far, err := s.book.Far()
	if err != nil {
		return err
	}
	size := 4
	if s.book.Half() {
		size = 2
	}
	raw := make([]byte, size*len(dst))
	if err := far.Rows(ctx, nodes, raw); err != nil {
		return fmt.Errorf("predict: the features of nodes: %w", err)
	}
	if s.book.Half() {
		m := dataset.Matrix{Rows: len(nodes), Cols: len(dst) / len(nodes), F16: make([]uint16, len(dst))}
		for i := range m.F16 {
			m.F16[i] = binary.LittleEndian.Uint16(raw[2*i:])
		}
		m.Gather(dst, nil, threads)
		return nil
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return nil
}

// sparseRows returns the sparse features of nodes: row(i) are those of nodes[i], without values where all are 1.
func (s *source) sparseRows(ctx context.Context, nodes []int32) (row func(i int) (cols []int32, values []float32), err error) {
	if s.book == nil {
		return func(i int) ([]int32, []float32) { return s.ds.SparseFeatures.Row(int(nodes[i])) }, nil
	}
	var x dataset.Sparse
	if divided.IsFar(s.ds) {
		var far divided.Far
		if _, far, err = s.book.Far(); err == nil {
			err = far.SparseRows(ctx, nodes, &x)
		}
	} else {
		_, err = s.book.GatherSparse(&x, nodes, 1)
	}
	if err != nil {
		return nil, fmt.Errorf("predict: the features of nodes: %w", err)
	}
	return x.Row, nil
}
