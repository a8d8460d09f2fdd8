package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// Value is an input or an output of a model.
type Value struct {
	Name string
	// Integers says that the elements are int64; otherwise they are float32.
	Integers bool
	// Shape has the dimensions: a number, or the name of one that is free, such as "edges_0". The same name means the same number.
	Shape []any
	Doc   string // what it is, in one sentence
	// Part and Layer say what an input is of, for programs that make inputs.
	Part  Part
	Layer int
}

// Part is what the rows of an input are of.
type Part int

// The parts of a batch.
const (
	Nodes  Part = iota // the input nodes
	Counts             // the number of destinations of a layer
	Ends               // the edges of a layer, as rows of nodes
	Edges              // the edges of a layer
	Groups             // the nodes, as numbers of graphs
	Graphs             // the graphs
)

// Property is an entry of a model's metadata.
type Property struct{ Key, Value string }

// Model is an ONNX model. Make one by [Export].
type Model struct {
	Inputs  []Value
	Outputs []Value
	// Doc says what the model computes, and Metadata is what else a reader may want to know. Both are the caller's.
	Doc      string
	Metadata []Property

	g *graph
}

// mostBytes is the largest size of a protocol buffer.
const mostBytes = math.MaxInt32

// Encode returns the content of the file: a ModelProto. It returns an error if the model has 2 GiB or more.
func (m *Model) Encode() ([]byte, error) {
	var outputs []string
	for _, o := range m.Outputs {
		outputs = append(outputs, o.Name)
	}
	nodes, read := m.g.used(outputs)
	size := int64(0)
	for name, t := range m.g.consts {
		if read[name] {
			size += 4*int64(len(t.floats)) + 8*int64(len(t.ints))
		}
	}
	if size > mostBytes-1<<24 {
		return nil, fmt.Errorf("onnx: the model has %d bytes of weights, and a file of ONNX holds less than 2 GiB; make the model smaller", size)
	}
	var g message
	for i := range nodes {
		g.bytes(graphNode, nodes[i].encode())
	}
	g.string(graphName, "forward")
	for _, name := range m.g.names {
		if t := m.g.consts[name]; read[name] {
			g.bytes(graphInitializer, t.encode(name))
		}
	}
	for i := range m.Inputs {
		g.bytes(graphInput, m.Inputs[i].encode())
	}
	for i := range m.Outputs {
		g.bytes(graphOutput, m.Outputs[i].encode())
	}
	var all, set message
	all.int(modelIRVersion, irVersion)
	all.string(modelProducer, "GraphNB")
	if m.Doc != "" {
		all.string(modelDoc, m.Doc)
	}
	all.bytes(modelGraph, g)
	set.int(opsetVersion, opset)
	all.bytes(modelOpset, set)
	for _, p := range m.Metadata {
		var e message
		e.string(entryKey, p.Key)
		e.string(entryValue, p.Value)
		all.bytes(modelMetadata, e)
	}
	if len(all) >= mostBytes {
		return nil, fmt.Errorf("onnx: the model has %d bytes, and a file of ONNX holds less than 2 GiB; make the model smaller", len(all))
	}
	return all, nil
}

// WriteFile writes the model to a file, whole or not at all.
func (m *Model) WriteFile(path string) error {
	content, err := m.Encode()
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, content, 0o644)
}

// encode is the ValueInfoProto.
func (v *Value) encode() (m message) {
	var shape message
	for _, d := range v.Shape {
		var dim message
		switch d := d.(type) {
		case int:
			dim.int(dimValue, int64(d))
		case string:
			dim.string(dimParam, d)
		}
		shape.bytes(shapeDim, dim)
	}
	var tensor, kind message
	elem := int64(typeFloat)
	if v.Integers {
		elem = typeInt64
	}
	tensor.int(tensorTypeElem, elem)
	tensor.bytes(tensorTypeDims, shape)
	kind.bytes(typeTensor, tensor)
	m.string(valueName, v.Name)
	m.bytes(valueType, kind)
	if v.Doc != "" {
		m.string(valueDoc, v.Doc)
	}
	return m
}

func appendInt64(b []byte, v int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(v)) }

func appendFloat(b []byte, v float32) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
}
