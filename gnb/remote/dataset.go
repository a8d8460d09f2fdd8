package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// view copies little-endian numbers into memory of their type.
func view[T int32 | int64 | float32 | uint16](b []byte) []T {
	var zero T
	switch any(zero).(type) {
	case int64:
		out := make([]T, len(b)/8)
		for i := range out {
			out[i] = T(int64(binary.LittleEndian.Uint64(b[8*i:])))
		}
		return out
	case uint16:
		out := make([]T, len(b)/2)
		for i := range out {
			out[i] = T(binary.LittleEndian.Uint16(b[2*i:]))
		}
		return out
	case float32:
		out := make([]T, len(b)/4)
		for i := range out {
			out[i] = T(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
		return out
	}
	out := make([]T, len(b)/4)
	for i := range out {
		out[i] = T(int32(binary.LittleEndian.Uint32(b[4*i:])))
	}
	return out
}

// graph makes the whole graph of its arrays, which get returns.
func (c *Client) graph(get func(name string) []byte) (*graphops.Graph, error) {
	g := &graphops.Graph{Indptr: view[int64](get(bulk.IndptrArray)), Indices: view[int32](get(bulk.IndicesArray))}
	s := c.hello.Edges
	var d graphops.EdgeData
	if s.Weighted {
		d.Weights = view[float32](get(bulk.WeightsArray))
	}
	if s.Times {
		d.Times = view[int64](get(bulk.TimesArray))
	}
	if s.Typed {
		d.Types = view[uint16](get(bulk.TypesArray))
	}
	if s.FeatureCols > 0 {
		d.Features = &graphops.EdgeFeatures{Cols: s.FeatureCols, Widths: c.hello.Metadata.EdgeFeatureDims}
		if raw := get(bulk.EdgesArray); s.Half {
			d.Features.F16 = view[uint16](raw)
		} else {
			d.Features.F32 = view[float32](raw)
		}
	}
	switch {
	case len(g.Indptr) != c.Nodes()+1:
		return nil, fmt.Errorf("remote: the graph has %d offsets for %d nodes", len(g.Indptr), c.Nodes())
	case !d.Has(s, len(g.Indices)):
		return nil, fmt.Errorf("remote: the arrays of what edges have (%v) are not those of %d edges", s, len(g.Indices))
	}
	g = g.WithEdges(d)
	switch {
	case s.Typed != (len(c.hello.Metadata.NodeTypes) > 0):
		return nil, errors.New("remote: the servers name types of nodes and send none of edges, or the reverse")
	case !s.Typed:
		return g, nil
	}
	g, err := g.WithTypes(c.hello.Metadata.Schema(), d.Types)
	if err != nil {
		return nil, fmt.Errorf("remote: the types of nodes and edges: %w", err)
	}
	return g, nil
}

// Dataset gets the whole dataset into memory: graph, splits, features and labels. Its content is the
// served one's, bit for bit, but features of node types come in one width, as in the parts of a divided
// dataset. report may be nil; it is told how many bytes of how many have come, sparse features not
// counted.
func (c *Client) Dataset(ctx context.Context, report func(done, total int64)) (*dataset.Dataset, error) {
	if c.hello.Arrays[bulk.IndptrArray] == 0 {
		return nil, fmt.Errorf("remote: the servers have %s in %d parts without its topology, and a program can load it only as a whole; divide it with the topology", c.hello.Metadata.Name, c.Parts())
	}
	nodes := c.Nodes()
	total := int64(nodes) * int64(c.hello.RowBytes+c.hello.LabelBytes)
	for name, n := range c.hello.Arrays {
		if strings.HasPrefix(name, bulk.SplitArray) || name == bulk.IndptrArray || name == bulk.IndicesArray || name == bulk.EventsArray || slices.Contains(bulk.EdgeArrays(c.hello.Edges), name) {
			total += n
		}
	}
	done := int64(0)
	step := func(n int) {
		done += int64(n)
		if report != nil {
			report(min(done, total), total)
		}
	}
	var failed error
	get := func(name string) []byte {
		if failed != nil {
			return nil
		}
		var b []byte
		b, failed = c.array(ctx, name, step)
		return b
	}
	g, err := c.graph(get)
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	ds := &dataset.Dataset{Graph: g, Splits: map[string][]int32{}, Meta: c.hello.Metadata}
	ds.Meta.NodeTypes = slices.Clone(ds.Meta.NodeTypes)
	for t := range ds.Meta.NodeTypes { // all nodes have features of one width
		ds.Meta.NodeTypes[t].FeatureDim, ds.Meta.NodeTypes[t].FeatureFormat = 0, ""
	}
	for name := range c.hello.Arrays {
		if split, ok := strings.CutPrefix(name, bulk.SplitArray); ok {
			ds.Splits[split] = view[int32](get(name))
		}
	}
	if ds.Meta.NumEvents > 0 {
		ds.Events, err = c.checkEvents(view[int64](get(bulk.EventsArray)))
	}
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	all := make([]int32, nodes)
	for v := range all {
		all[v] = int32(v)
	}
	if n := c.hello.RowBytes; n > 0 {
		b := make([]byte, nodes*n)
		if err := c.Rows(ctx, all, b); err != nil {
			return nil, err
		}
		step(len(b))
		m := &dataset.Matrix{Rows: nodes}
		if c.hello.Half {
			m.Cols, m.F16 = n/2, view[uint16](b)
		} else {
			m.Cols, m.F32 = n/4, view[float32](b)
		}
		ds.Features = m
	}
	if c.hello.Metadata.FeatureFormat != "" {
		ds.SparseFeatures = &dataset.Sparse{}
		if err := c.SparseRows(ctx, all, ds.SparseFeatures); err != nil {
			return nil, err
		}
	}
	if n := c.hello.LabelBytes; n > 0 {
		b := make([]byte, nodes*n)
		if err := c.Labels(ctx, all, b); err != nil {
			return nil, err
		}
		step(len(b))
		if c.hello.Metadata.MultiLabel {
			y := &dataset.Multi{Rows: nodes, Cols: n, Data: make([]int8, len(b))}
			for i, x := range b {
				y.Data[i] = int8(x)
			}
			ds.MultiLabels = y
		} else {
			ds.Labels = view[int32](b)
		}
	}
	return ds, ctx.Err()
}
