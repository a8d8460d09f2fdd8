package onnx

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
)

// Batch is what a model's inputs are made of.
type Batch struct {
	Blocks  []*graphops.Block
	X       []float32 // [sources of the first block, features]
	Types   []int32   // of the sources of the first block, for a model over types
	Own     []float32 // the features of the graphs, for a model of whole graphs
	Offsets []int32   // the first node of each graph, and the number of nodes
	Rows    []int32   // the learned rows of these sources, -1 for none, for a model with learned rows
}

// Array is an input of a model: float32 or int64 numbers with a shape.
type Array struct {
	Name   string
	Shape  []int
	Floats []float32
	Ints   []int64
}

// Feed returns the inputs of a model for a batch, in the order of m.Inputs. It returns an error for blocks that are not those of a
// sampled batch, or that have not what the model reads. The arrays do not share memory with the blocks, and the features are b.X.
func (m *Model) Feed(b Batch) ([]Array, error) {
	if len(b.Blocks) == 0 {
		return nil, fmt.Errorf("onnx: Feed: the batch has no blocks; there is one for each layer")
	}
	first := b.Blocks[0]
	all := map[string]Array{}
	floats := func(name string, cols int, x []float32) {
		shape := []int{len(x)}
		if cols > 0 {
			shape = []int{len(x) / cols, cols}
		}
		all[name] = Array{name, shape, x, nil}
	}
	ints := func(name string, x []int64) { all[name] = Array{name, []int{len(x)}, nil, x} }
	floats(inputFeatures, max(len(b.X)/max(first.NumSrc, 1), 1), b.X)
	ints(inputType, wide(b.Types))
	ints(inputRow, wide(b.Rows))
	if d := first.Degrees(); d != nil {
		degree, in, loop := make([]float32, first.NumSrc), make([]float32, first.NumSrc), make([]float32, first.NumSrc)
		for s := range degree {
			id := first.SrcID(s)
			degree[s], in[s], loop[s] = d.LoopedDegree(id), float32(d.InDegree(id)), 1
			if w, ok := d.SelfLoop(id); ok {
				loop[s] = w
			}
		}
		floats(inputDegree, 0, degree)
		floats(inputInDegree, 0, in)
		floats(inputLoop, 0, loop)
	}
	name := at
	if b.Offsets != nil {
		name = func(name string, _ int) string { return name }
		graphs := len(b.Offsets) - 1
		of := edgesOf(graphops.Groups(b.Offsets))
		ints(inputGraph, wide(of.target))
		ints(inputGraphs, []int64{int64(graphs)})
		floats(inputOwn, max(len(b.Own)/max(graphs, 1), 1), b.Own)
	}
	for i, k := range b.Blocks {
		if k.DstStart != 0 || i > 0 && k.NumSrc != b.Blocks[i-1].NumDst {
			return nil, fmt.Errorf("onnx: Feed: block %d has %d sources, and its destinations begin at row %d; take the blocks of a sampled batch, where the destinations are the first sources and the sources are the destinations of the block before", i, k.NumSrc, k.DstStart)
		}
		e := edgesOf(k)
		ints(name("src", i), wide(e.source))
		ints(name("dst", i), wide(e.target))
		ints(name("num_dst", i), []int64{int64(k.NumDst)})
		weights := slices.Clone(k.Weights())
		if weights == nil {
			weights = make([]float32, k.NumEdges())
			for j := range weights {
				weights[j] = 1
			}
		}
		floats(name("edge_weight", i), 0, weights)
		kinds := make([]int64, 0, k.NumEdges())
		for _, t := range k.EdgeTypes() {
			kinds = append(kinds, int64(t))
		}
		ints(name("edge_type", i), kinds)
	}
	out := make([]Array, len(m.Inputs))
	for i, in := range m.Inputs {
		a, ok := all[in.Name]
		if in.Part == Edges && len(in.Shape) == 2 && in.Layer < len(b.Blocks) {
			a, ok = edgeFeatures(in.Name, b.Blocks[in.Layer], in.Shape[1].(int)), true
		}
		if !ok || len(a.Shape) != len(in.Shape) {
			return nil, fmt.Errorf("onnx: Feed: the batch has no %s, %s; give blocks of the graph that the network was made for", in.Name, in.Doc)
		}
		if cols, fixed := in.Shape[len(in.Shape)-1].(int); fixed && a.Shape[0] > 0 && a.Shape[len(a.Shape)-1] != cols {
			return nil, fmt.Errorf("onnx: Feed: %s is %v, and the model takes %v", in.Name, a.Shape, in.Shape)
		} else if fixed && len(in.Shape) == 2 {
			a.Shape[1] = cols
		}
		out[i] = a
	}
	return out, nil
}

// edgeFeatures are the features of a block's edges; a block without edges needs none.
func edgeFeatures(name string, b *graphops.Block, cols int) Array {
	x := make([]float32, b.NumEdges()*cols)
	if b.NumEdges() > 0 {
		b.GatherEdgeFeatures(x, cols, 0)
	}
	return Array{name, []int{b.NumEdges(), cols}, x, nil}
}

func wide(x []int32) []int64 {
	y := make([]int64, len(x))
	for i, v := range x {
		y[i] = int64(v)
	}
	return y
}

// AddRows puts the rows of b under those of a, which is empty or has as many columns.
func (a *Array) AddRows(b *Array) {
	if a.Shape == nil {
		a.Shape = slices.Clone(b.Shape)
		a.Shape[0] = 0
		if b.Floats != nil {
			a.Floats = []float32{}
		} else {
			a.Ints = []int64{}
		}
	}
	a.Shape[0] += b.Shape[0]
	a.Floats, a.Ints = append(a.Floats, b.Floats...), append(a.Ints, b.Ints...)
}

// PutRows sets row at[i] of a, which is empty or has n rows, to row i of b.
func (a *Array) PutRows(b *Array, at []int64, n int) {
	cols := 1
	if len(b.Shape) > 1 {
		cols = b.Shape[1]
	}
	if a.Shape == nil {
		a.Shape = slices.Clone(b.Shape)
		a.Shape[0] = n
		if b.Ints == nil {
			a.Floats = make([]float32, n*cols)
		} else {
			a.Ints = make([]int64, n*cols)
		}
	}
	for i, to := range at {
		if b.Ints == nil {
			copy(a.Floats[int(to)*cols:(int(to)+1)*cols], b.Floats[i*cols:])
		} else {
			copy(a.Ints[int(to)*cols:(int(to)+1)*cols], b.Ints[i*cols:])
		}
	}
}

// NPY returns the array as a file of NumPy.
func (a *Array) NPY() []byte {
	kind := "<f4"
	if a.Floats == nil && a.Ints != nil {
		kind = "<i8"
	}
	shape := strings.ReplaceAll(strings.Trim(fmt.Sprint(a.Shape), "[]"), " ", ", ")
	if len(a.Shape) == 1 {
		shape += ","
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kind, shape)
	const magic = 10 // bytes before the header, which ends at a multiple of 64
	for (magic+len(header)+1)%64 != 0 {
		header += " "
	}
	header += "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(out[8:], uint16(len(header)))
	out = append(out, header...)
	for _, v := range a.Floats {
		out = appendFloat(out, v)
	}
	for _, v := range a.Ints {
		out = appendInt64(out, v)
	}
	return out
}

// NPZ returns arrays as an archive of NumPy, which numpy.load opens.
func NPZ(arrays []Array) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range arrays {
		w, err := z.CreateHeader(&zip.FileHeader{Name: arrays[i].Name + ".npy", Method: zip.Store})
		if err == nil {
			_, err = io.Copy(w, bytes.NewReader(arrays[i].NPY()))
		}
		if err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}
