package onnx

import (
	"context"
	"fmt"
	"strconv"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/onnx"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// graphRun is what the examples of a run of whole graphs are made of.
type graphRun struct {
	ds    *dataset.Dataset // with its features as the run has them
	model *graphs.Model
	out   graphs.Outputs
}

// exportGraphs is [Export] for a run that predicts whole graphs.
func exportGraphs(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o predict.Options) (*Exported, error) {
	id := run.Config.ID
	if o.Layer != 0 || o.Fanouts != nil {
		return nil, fmt.Errorf("onnx: Options.Layer is %d and Fanouts are %v, and run %s predicts whole graphs, which have neither; leave them out", o.Layer, o.Fanouts, id)
	}
	var said notice.List
	all, err := feed.AsTrained(ctx, "onnx", id, run.Config.FeatureNames, ds, o.Quiet, &said)
	if err != nil {
		return nil, err
	}
	if all.Graph == nil {
		return nil, fmt.Errorf("onnx: %s; examples of graphs need the graph in this process", all.WhyNoGraph())
	}
	if all, _, err = all.WithoutZeroWeights(); err != nil {
		return nil, err
	}
	weights, _, err := run.WeightsFile(o.Final)
	if err != nil {
		return nil, err
	}
	n, err := build(run, o.Final, weights)
	if err != nil {
		return nil, err
	}
	if have := all.FeatureDim(); have != n.sizes.In {
		return nil, fmt.Errorf("onnx: %s has %d features a node, and the network of run %s takes %d; take the dataset of the run, or one with its features", ds.Name(), have, id, n.sizes.In)
	}
	out, err := graphs.OutputsOf(run)
	if err != nil {
		return nil, err
	}
	e := &Exported{run: id, columns: out.Columns, kind: predict.Classes, graphs: &graphRun{all, n.model.(*graphs.Model), out}}
	switch {
	case out.Numeric:
		e.kind = predict.Numbers
	case out.Several:
		e.kind = predict.Labels
	}
	e.model, err = onnx.ExportGraphs(e.graphs.model, n.params, onnx.Options{
		In: n.sizes.In, EdgeDim: n.sizes.EdgeDim, EdgeWeights: all.Graph.EdgeWeights != nil, GraphDim: out.GraphDim, Slice: true,
		UnitRows: n.sizes.ScaleInput && all.Features == nil && all.SparseFeatures != nil,
	})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	e.finish(run, ds, n, &out.LossOptions)
	return e, nil
}

// ofGraphs is Example for graphs, by their numbers.
func (e *Exported) ofGraphs(ids []string) (*Example, error) {
	ds, g := e.graphs.ds, e.graphs.ds.Graph
	h := graphops.HostBlock{Graph: g, Indptr: []int64{0}, Indices: []int32{}, EdgePos: []int64{}, SrcIDs: []int32{}}
	if g.EdgeWeights != nil {
		h.Weights = []float32{}
	}
	offsets, of := []int32{0}, make([]int32, len(ids))
	for k, id := range ids {
		i, err := strconv.Atoi(id)
		if err != nil || i < 0 || i >= ds.NumGraphs() {
			return nil, fmt.Errorf("onnx: %q is no graph of %s, whose graphs are the numbers 0 to %d", id, ds.Name(), ds.NumGraphs()-1)
		}
		of[k] = int32(i)
		lo, hi := ds.GraphSpan(int32(i))
		first := int32(len(h.SrcIDs))
		for v := lo; v < hi; v++ {
			for at := g.Indptr[v]; at < g.Indptr[v+1]; at++ {
				h.Indices, h.EdgePos = append(h.Indices, first+g.Indices[at]-lo), append(h.EdgePos, at)
				if g.EdgeWeights != nil {
					h.Weights = append(h.Weights, g.EdgeWeights[at])
				}
			}
			h.SrcIDs, h.Indptr = append(h.SrcIDs, v), append(h.Indptr, int64(len(h.Indices)))
		}
		offsets = append(offsets, int32(len(h.SrcIDs)))
	}
	h.NumSrc, h.NumDst = len(h.SrcIDs), len(h.SrcIDs)
	b := h.Block()
	own, err := graphs.Own(ds, of)
	if err != nil {
		return nil, err
	}
	batch := onnx.Batch{Blocks: []*graphops.Block{b}, X: make([]float32, len(h.SrcIDs)*ds.FeatureDim()), Own: own, Offsets: offsets}
	f := nn.NewFwd(nn.Config{})
	input := e.graphs.rows(f, b, batch.X)
	x := &Example{Nodes: ids}
	if x.Inputs, err = e.model.Feed(batch); err != nil {
		return nil, err
	}
	var y *nn.Tensor
	if err := nn.Try(func() { y = e.graphs.model.Graphs(f, b, offsets, input, own) }); err != nil {
		return nil, fmt.Errorf("onnx: the network of run %s: %w", e.run, err)
	}
	rows := &dataset.Matrix{Rows: y.Rows(), Cols: y.Cols(), F32: append([]float32(nil), y.Data()...)}
	if e.kind == predict.Numbers {
		for i := range rows.Rows {
			e.graphs.out.Undo(rows.Row(i), rows.Row(i))
		}
	}
	x.Expected = e.expected(&predict.Answers{Kind: e.kind, IDs: ids, Columns: e.columns, Rows: rows})
	return x, nil
}

// rows returns the features of a block's nodes as the network takes them, and writes them to x.
func (r *graphRun) rows(f *nn.Fwd, b *graphops.Block, x []float32) *nn.Tensor {
	ids, cols, sp := b.SrcIDs(), r.ds.FeatureDim(), tensor.SrcSpace(b)
	if r.ds.Features != nil || r.ds.SparseFeatures == nil {
		if r.ds.Features != nil {
			r.ds.Features.Gather(x, ids, 0)
		}
		return f.Input(len(ids), cols, x, sp)
	}
	indptr, indices, values := []int64{0}, []int32{}, []float32{}
	for i, v := range ids {
		columns, some := r.ds.SparseFeatures.Row(int(v))
		for k, c := range columns {
			y := float32(1)
			if some != nil {
				y = some[k]
			}
			x[i*cols+int(c)] = y
			indices, values = append(indices, c), append(values, y)
		}
		indptr = append(indptr, int64(len(indices)))
	}
	return f.SparseInput(len(ids), cols, indptr, indices, values, sp)
}
