package onnx

import (
	"context"
	"errors"

	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/graphops/onnx"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// Example is a sampled block of some nodes as inputs of the model, with its outputs for comparison.
type Example struct {
	Nodes  []string
	Inputs []onnx.Array
	// Expected are the outputs that package predict gives, by the names of the model's with "expected_" in front.
	Expected []onnx.Array
}

// Example makes the inputs for graphs of the dataset by their numbers, if the run predicts whole graphs, or for nodes of the dataset, by their ids as [predict.Predictor.Nodes] takes them, from the neighbourhoods of
// the options of [Export]. Row i of the outputs is that of ids[i]. The neighbourhoods of several nodes are side by side, so a node that
// is in two of them comes twice.
func (e *Exported) Example(ctx context.Context, ids ...string) (*Example, error) {
	if len(ids) == 0 {
		return nil, errors.New("onnx: Example needs the ids of nodes")
	}
	if e.graphs != nil {
		return e.ofGraphs(ids)
	}
	var all []sampled
	for _, id := range ids {
		err := e.of.Neighbourhood(ctx, id, func(n *predict.Neighbourhood) error {
			s, err := e.sampled(n)
			all = append(all, s)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	a, err := e.of.Nodes(ctx, ids...)
	if err != nil {
		return nil, err
	}
	x := &Example{Nodes: ids, Inputs: e.together(all)}
	x.Expected = e.expected(a)
	return x, nil
}

// sampled is the neighbourhood of one node.
type sampled struct {
	arrays []onnx.Array
	sizes  []int // of the input nodes, and of each layer's destinations
}

func (e *Exported) sampled(n *predict.Neighbourhood) (s sampled, err error) {
	b := onnx.Batch{Blocks: n.Blocks, X: n.X}
	for _, v := range n.Nodes {
		typ, number := 0, int(v.Place)
		if e.schema != nil {
			typ = e.schema.NodeType(v.Type)
			number -= e.schema.Starts()[typ] + typ*room
			b.Types = append(b.Types, int32(typ))
		}
		if e.rows != nil {
			row := -1
			if e.rows[typ] >= 0 {
				row = e.rows[typ] + number
			}
			b.Rows = append(b.Rows, int32(row))
		}
	}
	s.sizes = []int{n.Blocks[0].NumSrc}
	for _, k := range n.Blocks {
		s.sizes = append(s.sizes, k.NumDst)
	}
	s.arrays, err = e.model.Feed(b)
	return s, err
}

// together puts neighbourhoods side by side. Rows are ordered by how far they are from the asked nodes, so that the destinations of
// each layer are its first rows.
func (e *Exported) together(all []sampled) []onnx.Array {
	layers := len(all[0].sizes) - 1
	at := make([][]int64, len(all)) // the row of each neighbourhood's rows
	for g := range all {
		at[g] = make([]int64, all[g].sizes[0])
	}
	next, sizes := int64(0), make([]int64, layers+1)
	for k := layers; k >= 0; k-- {
		for g := range all {
			from := 0
			if k < layers {
				from = all[g].sizes[k+1]
			}
			for i := from; i < all[g].sizes[k]; i++ {
				at[g][i] = next
				next++
			}
		}
		sizes[k] = next
	}
	joined := make([]onnx.Array, len(e.Inputs))
	for i, in := range e.Inputs {
		out := onnx.Array{Name: in.Name}
		for g, s := range all {
			a := s.arrays[i]
			switch part := in.Part; {
			case part == onnx.Counts:
				out.Ints, out.Shape = []int64{sizes[in.Layer+1]}, []int{1}
			case part == onnx.Nodes:
				out.PutRows(&a, at[g], int(sizes[0]))
			case part == onnx.Ends:
				for _, v := range a.Ints {
					out.Ints = append(out.Ints, at[g][v])
				}
				out.Shape = []int{len(out.Ints)}
			default:
				out.AddRows(&a)
			}
		}
		joined[i] = out
	}
	return joined
}

// expected are the answers as outputs.
func (e *Exported) expected(a *predict.Answers) (all []onnx.Array) {
	rows := a.Rows
	add := func(name string, cols int, x []float32) {
		all = append(all, onnx.Array{Name: "expected_" + name, Shape: []int{rows.Rows, cols}, Floats: x})
	}
	switch a.Kind {
	case predict.Classes, predict.Labels:
		add("logits", rows.Cols, rows.F32)
		var p []float32
		for i := range rows.Rows {
			for _, v := range a.Probabilities(i) {
				p = append(p, float32(v))
			}
		}
		add("probabilities", len(p)/rows.Rows, p)
	default:
		add(e.Outputs[len(e.Outputs)-1].Name, rows.Cols, rows.F32)
	}
	return all
}

// WriteFile writes the inputs and the expected outputs as an archive that numpy.load opens.
func (x *Example) WriteFile(path string) error {
	content, err := onnx.NPZ(append(append([]onnx.Array{}, x.Inputs...), x.Expected...))
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, content, 0o644)
}
