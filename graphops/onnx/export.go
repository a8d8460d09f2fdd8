package onnx

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// Options say what the batches of a network are.
type Options struct {
	In          int  // features of a node; 0 is an error
	EdgeDim     int  // features of an edge; 0 means none
	EdgeWeights bool // edges have weights
	// Schema has the types of nodes and the relations of edges, for a network over types: the schema that the network was made with.
	Schema *graphops.Schema
	// GraphDim is the number of features of a graph, for [ExportGraphs]; 0 means none.
	GraphDim int
	// Slice records the network on blocks with [graphops.Block.SliceOf], as inference computes: layers then aggregate the narrower rows,
	// which takes less time, and a GCN has the degrees of the graph also with BatchDegrees.
	Slice bool
	// UnitRows divides each row of the input by the root mean square of its elements that are not 0, as nn.ModelConfig.ScaleInput does
	// with sparse features.
	UnitRows bool
	// Rows are learned rows [any, In], from which the model takes its input by the numbers of rows; nil for features. With SomeRows
	// nodes of number -1 have features.
	Rows     []float32
	SomeRows bool
}

// Export records the forward pass of a network as a model. params are the network's, as [nn.Collect] returned them. The model does not
// keep them: weights are copied when the file is written, so write it before they change.
//
// It returns an error for a network that has no ONNX form, which names the layer. It takes milliseconds beyond the copies.
func Export(m nn.Model, params *nn.Params, o Options) (*Model, error) {
	if m == nil {
		return nil, errNothing
	}
	layers := m.NumLayers()
	if layers < 1 {
		return nil, fmt.Errorf("onnx: %T has no layers", m)
	}
	return export(&subject{
		name:   fmt.Sprintf("%T", m),
		layer:  func(i int) string { return nn.LayerType(m, i) },
		blocks: layers,
		forward: func(r *recorder, f *nn.Fwd, t *trial, x *nn.Tensor) *nn.Tensor {
			for i, b := range t.blocks {
				if r.g.layer = i; i > 0 {
					x = f.Sources(b, x)
				}
				if x = m.Layer(f, i, b, x); x == nil || x.Rows() != b.NumDst {
					refuse("it does not return a row for each destination")
				}
			}
			return x
		},
	}, params, o)
}

// GraphNetwork is a network whose output has a row for each of many graphs.
type GraphNetwork interface {
	// Graphs computes the rows of graphs from the rows x of their nodes: those of graph g are offsets[g] to offsets[g+1]-1. All
	// edges are in b, whose destinations are its sources. own are the features of the graphs, row by row, or nil. It is an evaluation.
	Graphs(f *nn.Fwd, b *nn.Block, offsets []int32, x *nn.Tensor, own []float32) *nn.Tensor
}

// ExportGraphs is [Export] for a network of whole graphs. The inputs are the nodes and the edges of any number of graphs, and the graph
// of each node. Degrees are those of the edges, which must be all edges of the graphs.
func ExportGraphs(m GraphNetwork, params *nn.Params, o Options) (*Model, error) {
	switch {
	case m == nil:
		return nil, errNothing
	case o.Schema != nil || o.Rows != nil:
		return nil, errors.New("onnx: Options.Schema or Rows are set, and whole graphs have neither types nor learned rows; leave them out")
	}
	return export(&subject{
		name:   fmt.Sprintf("%T", m),
		layer:  func(int) string { return "" },
		blocks: 1,
		graphs: true,
		forward: func(r *recorder, f *nn.Fwd, t *trial, x *nn.Tensor) *nn.Tensor {
			r.g.layer = 0
			y := m.Graphs(f, t.blocks[0], t.offsets, x, t.own)
			if y == nil || y.Rows() != len(t.offsets)-1 {
				refuse("it does not return a row for each graph")
			}
			return y
		},
	}, params, o)
}

// subject is what is exported.
type subject struct {
	name    string           // its Go type
	layer   func(int) string // the Go type of a layer, or ""
	blocks  int
	graphs  bool
	forward func(r *recorder, f *nn.Fwd, t *trial, x *nn.Tensor) *nn.Tensor
}

// where names a layer in an error.
func (s *subject) where(layer int) string {
	switch t := s.layer(layer); {
	case s.graphs:
		return s.name
	case t == "":
		return fmt.Sprintf("layer %d of %s", layer, s.name)
	default:
		return fmt.Sprintf("layer %d of %s (%s)", layer, s.name, t)
	}
}

var errNothing = errors.New("onnx: Export needs a network and its parameters; get them from nn.Collect")

// export records a subject twice, and compares.
func export(s *subject, params *nn.Params, o Options) (*Model, error) {
	if params == nil {
		return nil, errNothing
	}
	if o.In < 1 || o.EdgeDim < 0 {
		return nil, fmt.Errorf("onnx: Options.In is %d and EdgeDim %d; they are the numbers of features of a node, at least 1, and of an edge", o.In, o.EdgeDim)
	}
	if len(o.Rows)%o.In != 0 || o.SomeRows && o.Rows == nil {
		return nil, fmt.Errorf("onnx: Options.Rows are %d numbers, which are no rows of Options.In, %d", len(o.Rows), o.In)
	}
	var last error
	const attempts = 100
	for seed := range uint64(attempts) {
		a, err := record(s, params, &o, 2*seed+1)
		if err == nil {
			var b *recorder
			if b, err = record(s, params, &o, 2*seed+2); err == nil {
				if err = compare(s, a, b); err == nil {
					return finish(a, s, &o), nil
				}
			}
		}
		last = err
		if !errors.Is(err, errChance) {
			break
		}
	}
	return nil, last
}

// errChance is wrapped by the error of a recording that another one may not have.
var errChance = errors.New("the recorded batch is special")

// record runs the network on a made-up batch.
func record(s *subject, params *nn.Params, o *Options, seed uint64) (*recorder, error) {
	t, err := newTrial(seed, s, o)
	if err != nil {
		return nil, err
	}
	r := &recorder{g: newGraph(), params: map[*float32]weight{}, dims: map[int]string{}, bounds: map[bound]string{}, found: map[*graphops.Block]*edges{}, inputs: map[*float32]value{}, graphs: s.graphs}
	for _, e := range params.List() {
		if len(e.W) > 0 {
			name := e.Name
			if !strings.Contains(name, ".") { // as names of inputs and results
				name = "weights." + name
			}
			r.params[&e.W[0]] = weight{name, e.Rows, e.Cols, e.W}
		}
		if len(e.W) == 1 {
			r.means = append(r.means, e.W[0])
		}
	}
	r.begin(t, o)
	f := nn.NewFwd(nn.Config{Backend: r})
	err = nn.Try(func() {
		x := s.forward(r, f, t, f.Input(t.sets[0].n, o.In, t.x, tensor.SrcSpace(t.blocks[0])))
		r.last = true
		x.CopyTo(make([]float32, x.Rows()*x.Cols()))
	})
	if err == nil {
		return r, nil
	}
	return nil, fmt.Errorf("onnx: %s has no ONNX form: %w", s.where(r.g.layer), err)
}

// chance is an error that another batch may not have.
type chance struct{ error }

func (e chance) Unwrap() []error { return []error{e.error, errChance} }

// begin makes the inputs of a batch known.
func (r *recorder) begin(t *trial, o *Options) {
	g := r.g
	x := inputFeatures
	if o.Rows != nil {
		table := g.constant("rows", tensorData{floats: o.Rows, shape: []int64{int64(len(o.Rows) / o.In), int64(o.In)}})
		row := inputRow
		if o.SomeRows {
			row = g.do("Max", of(inputRow, g.ints(0)))
		}
		learned := r.pick(table, row)
		if o.SomeRows {
			x = g.do("Where", of(r.columnOf(g.do("Less", of(inputRow, g.ints(0)))), x, learned))
		} else {
			x = learned
		}
	}
	t.sets[0].count = g.do("Slice", of(g.do("Shape", of(x)), g.ints(0), g.ints(1)))
	if o.UnitRows {
		x = r.unitRows(x)
	}
	r.inputs[&t.x[0]] = value{name: x, rows: t.sets[0].n, cols: o.In}
	if r.graphs {
		r.beginGraphs(t, o)
	}
	if o.Schema != nil {
		r.kinds = len(o.Schema.Nodes)
	}
	for i, s := range t.sets {
		if i > 0 && !r.graphs {
			s.count = at("num_dst", i-1)
		}
		r.named(s.n, s.count)
		if i > 0 {
			r.bounded(t.sets[i-1].n, s.n, s.count)
		}
		if s.types != nil {
			s.typed = inputType
			if i > 0 {
				s.typed = r.first(inputType, s.count)
			}
		}
	}
	for i, b := range t.blocks {
		e := edgesOf(b)
		e.from, e.to = t.sets[i], t.sets[i+1]
		at := at
		if r.graphs {
			at = func(name string, _ int) string { return name }
		}
		e.src, e.dst, e.nSrc, e.nDst = at("src", i), at("dst", i), e.from.count, e.to.count
		if o.EdgeWeights {
			e.weights = at("edge_weight", i)
		}
		if o.EdgeDim > 0 {
			e.features = at("edge_features", i)
		}
		if o.Schema != nil {
			e.types, e.kinds, e.relations = at("edge_type", i), b.EdgeTypes(), len(o.Schema.Relations)
		}
		r.all = append(r.all, e)
		r.found[b] = e
		r.learn(e, t.degrees, t.perBlock[i])
	}
}

// beginGraphs makes the graphs of a batch known.
func (r *recorder) beginGraphs(t *trial, o *Options) {
	n := len(t.offsets) - 1
	r.named(n, inputGraphs)
	if o.GraphDim > 0 {
		r.inputs[&t.own[0]] = value{name: inputOwn, rows: n, cols: o.GraphDim}
	}
	rows := r.upTo(t.sets[0].count)
	groups, spread := edgesOf(graphops.Groups(t.offsets)), edgesOf(graphops.Spread(t.offsets))
	groups.src, groups.dst, groups.nSrc, groups.nDst = rows, inputGraph, t.sets[0].count, inputGraphs
	spread.src, spread.dst, spread.nSrc, spread.nDst = inputGraph, rows, inputGraphs, t.sets[0].count
	r.groups = []*edges{groups, spread}
	filled := make([]float32, n)
	for _, g := range groups.target {
		filled[g] = 1
	}
	r.know(filled, 1, func() string { return r.g.do("Min", of(groups.degree(r), r.g.number(1))) })
}

// unitRows divides rows by the root mean squares of their elements that are not 0.
func (r *recorder) unitRows(x string) string {
	g := r.g
	sum := func(x string) string { return g.do("ReduceSum", of(x, g.ints(1)), withInt("keepdims", 1)) }
	const least = 1e-24 // of a mean square, as in tensor.Fwd.UnitRows
	n := sum(g.do("Cast", of(g.do("Not", of(g.do("Equal", of(x, g.number(0)))))), withInt("to", typeFloat)))
	mean := g.do("Div", of(sum(g.do("Mul", of(x, x))), g.do("Max", of(n, g.number(1)))))
	return g.do("Div", of(x, g.do("Sqrt", of(g.do("Add", of(mean, g.number(least)))))))
}

// compare returns an error unless two recordings are of one model.
func compare(s *subject, a, b *recorder) error {
	n := min(len(a.g.nodes), len(b.g.nodes))
	for i := range n {
		x, y := &a.g.nodes[i], &b.g.nodes[i]
		if x.op != y.op || !slices.Equal(x.in, y.in) || !slices.Equal(x.out, y.out) || !maps.Equal(x.ints, y.ints) || !maps.Equal(x.floats, y.floats) || !maps.Equal(x.text, y.text) {
			return chance{fmt.Errorf("onnx: %s has no ONNX form: it computes two batches by different operations (%s and %s)", s.where(x.layer), x.op, y.op)}
		}
	}
	if len(a.g.nodes) != len(b.g.nodes) || len(a.unknown) != len(b.unknown) {
		return chance{fmt.Errorf("onnx: %s has no ONNX form: it computes two batches by %d and by %d operations", s.name, len(a.g.nodes), len(b.g.nodes))}
	}
	for _, name := range a.g.names {
		x, y := a.g.consts[name], b.g.consts[name]
		if slices.Equal(x.shape, y.shape) && slices.Equal(x.floats, y.floats) && slices.Equal(x.ints, y.ints) {
			continue
		}
		layer := 0
		for _, n := range a.g.nodes {
			if slices.Contains(n.in, name) {
				layer = n.layer
				break
			}
		}
		return fmt.Errorf("onnx: %s has no ONNX form: it computes numbers %v on the host from the edges or nodes of a batch, in a way that package onnx does not know", s.where(layer), x.shape)
	}
	return nil
}

// finish makes the model of a recording.
func finish(r *recorder, s *subject, o *Options) *Model {
	g := r.g
	g.layer = -1
	g.doAs("output", "Identity", of(r.output.name))
	_, read := g.used([]string{"output"})
	last, doc := at("destinations", s.blocks-1), "the rows of the last layer's destinations"
	if s.graphs {
		last, doc = "graphs", "the rows of the graphs"
	}
	out := &Model{g: g, Outputs: []Value{{Name: "output", Shape: []any{last, r.output.cols}, Doc: doc}}}
	part, layer := Nodes, 0
	add := func(name string, integers bool, doc string, shape ...any) {
		if read[name] {
			out.Inputs = append(out.Inputs, Value{Name: name, Integers: integers, Shape: shape, Doc: doc, Part: part, Layer: layer})
		}
	}
	if s.graphs {
		add(inputFeatures, false, "the features of the nodes", "nodes", o.In)
		part = Groups
		add(inputGraph, true, "the graph of each node, from 0, in any order", "nodes")
		part = Counts
		add(inputGraphs, true, "the number of graphs", 1)
		part = Graphs
		add(inputOwn, false, "the features of the graphs", "graphs", o.GraphDim)
		part = Ends
		add("src", true, "the source of each edge, a node", "edges")
		add("dst", true, "the destination of each edge, a node", "edges")
		part = Edges
		add("edge_weight", false, "the weight of each edge", "edges")
		add("edge_features", false, "the features of each edge", "edges", o.EdgeDim)
		return out
	}
	add(inputFeatures, false, "the features of the input nodes, the destinations of the last layer first", "nodes", o.In)
	add(inputRow, true, "the number of the learned row of each input node, the destinations of the last layer first; -1 for a node with features", "nodes")
	add(inputType, true, "the type of each input node", "nodes")
	add(inputDegree, false, "the weight of all in-edges of each input node in the whole graph, with exactly one self-loop: its own or, without one, one of weight 1", "nodes")
	add(inputInDegree, false, "the number of in-edges of each input node in the whole graph", "nodes")
	add(inputLoop, false, "the weight of each input node's self-loop in the whole graph, 1 without one", "nodes")
	for i := range s.blocks {
		edges := at("edges", i)
		where := fmt.Sprintf("layer %d", i)
		part, layer = Ends, i
		add(at("src", i), true, "the source of each edge of "+where+", a row of the rows before it", edges)
		add(at("dst", i), true, "the destination of each edge of "+where+", one of the first num_dst rows", edges)
		part = Counts
		add(at("num_dst", i), true, "the number of destinations of "+where+", which are the first of its rows", 1)
		part = Edges
		add(at("edge_weight", i), false, "the weight of each edge of "+where, edges)
		add(at("edge_features", i), false, "the features of each edge of "+where, edges, o.EdgeDim)
		add(at("edge_type", i), true, "the relation of each edge of "+where, edges)
	}
	return out
}

// Probabilities adds an output: the softmax of the output's columns, or the probability of each label with labels. One column without
// labels is the logit of the second of two classes.
func (m *Model) Probabilities(name string, labels bool, doc string) {
	g, cols := m.g, m.Outputs[0].Shape[1].(int)
	from := m.Outputs[0].Name
	switch {
	case labels:
		g.doAs(name, "Sigmoid", of(from))
	case cols == 1:
		second := g.do("Sigmoid", of(from))
		g.doAs(name, "Concat", of(g.do("Sub", of(g.number(1), second)), second), withInt("axis", 1))
		cols = 2
	default:
		g.doAs(name, "Softmax", of(from), withInt("axis", 1))
	}
	m.Outputs = append(m.Outputs, Value{Name: name, Shape: []any{m.Outputs[0].Shape[0], cols}, Doc: doc})
}

// Scaled adds an output: the output times scale plus shift, column by column, and within low and high unless these are nil.
func (m *Model) Scaled(name string, scale, shift, low, high []float32, doc string) {
	g, cols := m.g, m.Outputs[0].Shape[1].(int)
	row := func(what string, x []float32) string {
		return g.constant(name+":"+what, tensorData{floats: x, shape: []int64{1, int64(cols)}})
	}
	y := g.do("Add", of(g.do("Mul", of(m.Outputs[0].Name, row("scale", scale))), row("shift", shift)))
	if low != nil {
		y = g.do("Min", of(g.do("Max", of(y, row("low", low))), row("high", high)))
	}
	g.doAs(name, "Identity", of(y))
	m.Outputs = append(m.Outputs, Value{Name: name, Shape: m.Outputs[0].Shape, Doc: doc})
}

// Rename gives the output of the network another name and documentation. Call it before outputs are added.
func (m *Model) Rename(name, doc string) {
	m.g.doAs(name, "Identity", of(m.Outputs[0].Name))
	m.Outputs[0].Name, m.Outputs[0].Doc = name, doc
}
