package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// EdgeInput is the features of a block's edges as an Input [edges, cols], in the space of the edges:
// row e is that of the block's edge Indptr()[0]+e. In a block made by SelfLooped, an added self-loop
// has the mean of the features of its destination's other edges in the block, zeros if there are
// none; see [graphops.Block.GatherEdgeFeatures]. It has no gradient.
//
// The rows are gathered in the host's memory at each call, and copied to a device from there. It
// panics with an [*Error] if the edges of the block's graph have another number of features than cols,
// or none. In a block of one relation, the number is the relation's own; where a divided graph gives the rows of all
// relations one width, the first cols features are taken. A block without edges whose graph is not known gives [0, cols].
func (f *Fwd) EdgeInput(b *graphops.Block, cols int) *Tensor {
	const op = "EdgeInput"
	have := b.EdgeFeatureCols()
	switch {
	case cols < 1:
		fail(op, "the edges cannot have %d features", cols)
	case have == 0 && !b.HasEdgeData() && b.NumEdges() > 0:
		fail(op, "the edges need %d features, but neither the block nor a graph has them; add edge features to the dataset, or make the layer without them", cols)
	case have == 0 && b.HasEdgeData():
		fail(op, "the edges need %d features, but those of the graph have none; add edge features to the dataset, or make the layer without them", cols)
	case have > cols && b.PaddedEdges():
	case have != 0 && have != cols:
		fail(op, "the edges need %d features, but those of the graph have %d; make the layer with the dataset's EdgeFeatureDim", cols, have)
	}
	edges := b.NumEdges()
	out := f.result(edges, cols, ops.EdgeSpace(b))
	if m, ok := f.be.(interface{ edgeRows(edges, cols int) }); ok && edges > 0 {
		m.edgeRows(edges, cols)
	}
	_, dry := out.buf.Dev.(absent)
	switch {
	case edges == 0 || dry:
	case out.buf.Dev == nil:
		b.GatherEdgeFeatures(out.buf.Host, cols, f.cfg.Threads)
	default:
		host := make([]float32, edges*cols)
		b.GatherEdgeFeatures(host, cols, f.cfg.Threads)
		f.be.Upload(out.buf, host)
	}
	return out
}
