package remote

import (
	"context"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// SparseRows sets dst to the features of nodes, in their order, of a dataset with sparse features, in
// the memory of its slices. Nodes are asked for at their servers at the same time.
func (c *Client) SparseRows(ctx context.Context, nodes []int32, dst *dataset.Sparse) error {
	m := &c.hello.Metadata
	if m.FeatureFormat == "" {
		return fmt.Errorf("remote: the features of %s are not sparse", m.Name)
	}
	ones := m.FeatureFormat == dataset.FormatCSROnes
	places, err := c.byPartOf(ctx, nodes)
	if err != nil {
		return err
	}
	row := int(bulk.SparseBytes(1, int64(c.hello.Largest), ones)) // the largest row; an answer has 8 bytes more
	most := max(1, min(c.hello.Limits.Nodes, c.hello.Limits.Bytes/max(1, row)))
	type piece struct {
		places []int
		rows   dataset.Sparse
	}
	var pieces []*piece
	var calls together
	for p, at := range places {
		for chunk := range slices.Chunk(at, most) {
			one := &piece{places: chunk}
			pieces = append(pieces, one)
			calls.start(ctx, func(ctx context.Context) error { return c.sparse(ctx, p, nodes, chunk, ones, &one.rows) })
		}
	}
	if err := calls.wait(); err != nil {
		return err
	}
	dst.Rows, dst.Cols = len(nodes), m.FeatureDim
	dst.Indptr = slices.Grow(dst.Indptr[:0], len(nodes)+1)[:len(nodes)+1]
	clear(dst.Indptr)
	for _, one := range pieces {
		for k, i := range one.places {
			dst.Indptr[i+1] = one.rows.Indptr[k+1] - one.rows.Indptr[k]
		}
	}
	for i := range nodes {
		dst.Indptr[i+1] += dst.Indptr[i]
	}
	n := int(dst.Indptr[len(nodes)])
	dst.Indices = slices.Grow(dst.Indices[:0], n)[:n]
	if dst.Values = nil; !ones {
		dst.Values = make([]float32, n)
	}
	for _, one := range pieces {
		for k, i := range one.places {
			cols, values := one.rows.Row(k)
			copy(dst.Indices[dst.Indptr[i]:], cols)
			copy(dst.Values[min(int64(len(dst.Values)), dst.Indptr[i]):], values)
		}
	}
	return nil
}

// sparse gets the sparse rows of nodes[i], for i in places, which are in one part.
func (c *Client) sparse(ctx context.Context, part int, nodes []int32, places []int, ones bool, rows *dataset.Sparse) error {
	q := bulk.RowsRequest{What: bulk.Features, Nodes: make([]int32, len(places))}
	for i, at := range places {
		q.Nodes[i] = nodes[at]
	}
	most := bulk.SparseBytes(len(places), int64(len(places))*int64(c.hello.Largest), ones)
	var b []byte
	err := c.do(ctx, request{
		method: bulk.RowsMethod, body: q.Append(nil), what: fmt.Sprintf("the features of %d nodes", len(places)), part: part, at: c.preferred(part),
		begin: func() { b = b[:0] },
		take: func(data []byte) error {
			if int64(len(b)+len(data)) > most {
				return fmt.Errorf("the answer is longer than %d bytes, the most for what was asked for", most)
			}
			b = append(b, data...)
			return nil
		},
	})
	if err != nil {
		return err
	}
	if err := bulk.DecodeSparse(b, len(places), c.hello.Metadata.FeatureDim, ones, rows); err != nil {
		return fmt.Errorf("remote: %s: %w", c.servers[c.owner[part]].address, err)
	}
	return nil
}
