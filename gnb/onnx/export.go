package onnx

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/onnx"
	"github.com/graphnb/graphnb/graphops/safetensors"
)

// Exported is the network of a run as an ONNX model. Close it when it is no longer needed.
type Exported struct {
	// Inputs and Outputs are those of the model.
	Inputs, Outputs []onnx.Value

	model   *onnx.Model
	of      *predict.Predictor // nil for whole graphs
	graphs  *graphRun          // nil for nodes
	run     string
	kind    predict.Kind
	columns []string
	schema  *graphops.Schema // nil without types
	rows    []int            // by type: its first learned row, -1 without any
}

// room is the number of new nodes of a type for which the predictor numbers nodes.
const room = 1

// Export makes the model of a run that predicts nodes, links or whole graphs. o says which weights and which layer are taken, as for
// answers, and which neighbours [Exported.Example] samples. The caller keeps the dataset open until Close.
//
// It returns the errors of [predict.Open], and one for a network that has no ONNX form, which says why.
func Export(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o predict.Options) (*Exported, error) {
	entry.Enter()
	if run == nil || ds == nil {
		return nil, errors.New("onnx: Export needs a run (runs.Last, runs.Open) and a dataset (gnb.Load)")
	}
	id := run.Config.ID
	switch {
	case graphs.Trained(run):
		return exportGraphs(ctx, run, ds, o)
	case numbers.TrainedEdges(run):
		return nil, fmt.Errorf("onnx: run %s predicts numbers of edges, and models are made of networks of nodes and of whole graphs; take numbers.PredictEdges (gnb infer --pairs)", id)
	}
	o.MaxNew, o.Precompute = room, 0
	of, err := predict.Open(ctx, run, ds, o)
	if err != nil {
		return nil, err
	}
	e := &Exported{of: of, run: id, schema: ds.Schema(), kind: of.Kind(), columns: of.Columns()}
	if err := e.export(run, ds, o); err != nil {
		return nil, errors.Join(err, of.Close())
	}
	return e, nil
}

// network is a run's network with its weights.
type network struct {
	model  any // a nn.Model, or a *graphs.Model
	params *nn.Params
	sizes  nn.ModelConfig
	name   string
	rows   []float32 // learned rows of nodes
}

// build makes a run's network, for a graph with nodes of each type.
func build(run *runs.Run, final bool, weights string) (*network, error) {
	id := run.Config.ID
	_, info, err := run.WeightsFile(final)
	if err != nil {
		return nil, err
	}
	if info = cmp.Or(run.Result.Model, info); info == nil {
		return nil, fmt.Errorf("onnx: run %s has not recorded its model; it is %s", id, run.Result.State)
	}
	n := &network{sizes: info.Config, name: info.Name}
	if s := n.sizes.Schema; s != nil { // the recording needs nodes of each type
		all := &graphops.Schema{Relations: s.Relations}
		for _, t := range s.Nodes {
			all.Nodes = append(all.Nodes, graphops.NodeType{Name: t.Name, Count: 8})
		}
		n.sizes.Schema = all
	}
	switch {
	case graphs.Trained(run):
		n.model, err = graphs.Build(run, n.sizes)
	case links.Predicts(run):
		n.model, err = links.Build(info.Name, n.sizes)
	default:
		n.model, err = gnb.BuildModel(info.Name, n.sizes)
	}
	if err != nil {
		return nil, fmt.Errorf("onnx: the network of run %s: %w", id, err)
	}
	ts, _, err := safetensors.ReadFile(weights)
	if err != nil {
		return nil, fmt.Errorf("onnx: the weights of run %s: %w", id, err)
	}
	if at := slices.IndexFunc(ts, func(t safetensors.Tensor) bool { return t.Name == saving.EmbeddingWeights }); at >= 0 {
		n.rows = ts[at].F32
		ts = slices.Delete(ts, at, at+1)
	}
	if n.params, err = nn.Collect(n.model); err == nil {
		err = saving.Load(n.params, ts)
	}
	if err != nil {
		return nil, fmt.Errorf("onnx: the weights of run %s, %s: %w", id, weights, err)
	}
	return n, nil
}

// firstLayers is a network of the first layers of another one.
type firstLayers struct {
	nn.Model
	n int
}

// NumLayers implements [nn.Model].
func (m firstLayers) NumLayers() int { return m.n }

// export makes the model.
func (e *Exported) export(run *runs.Run, ds *gnb.Dataset, o predict.Options) error {
	n, err := build(run, o.Final, e.of.Weights())
	if err != nil {
		return err
	}
	m := n.model.(nn.Model)
	if o.Layer > 0 {
		m = firstLayers{m, o.Layer}
	}
	if err := e.learns(n, ds); err != nil {
		return err
	}
	e.model, err = onnx.Export(m, n.params, onnx.Options{
		In: n.sizes.In, EdgeDim: n.sizes.EdgeDim, EdgeWeights: ds.EdgeShape().Weighted, Schema: n.sizes.Schema,
		UnitRows: n.sizes.ScaleInput && n.rows == nil && sparse(ds),
		Rows:     n.rows, SomeRows: len(n.sizes.Learned) > 0, Slice: true,
	})
	if err != nil {
		return fmt.Errorf("run %s: %w", e.run, err)
	}
	var scale *numbers.LossOptions
	if e.kind == predict.Numbers {
		o, err := numbers.OptionsOf(run)
		if err != nil {
			return err
		}
		scale = &o.LossOptions
	}
	e.finish(run, ds, n, scale)
	return nil
}

// finish adds the outputs of the task, scale being that of numbers, and the documentation.
func (e *Exported) finish(run *runs.Run, ds *gnb.Dataset, n *network, scale *numbers.LossOptions) {
	e.outputs(scale)
	e.describe(run, ds, n)
	e.Inputs, e.Outputs = slices.Clone(e.model.Inputs), slices.Clone(e.model.Outputs)
}

// sparse reports whether the features of nodes are sparse ones.
func sparse(ds *gnb.Dataset) bool {
	if ds.Meta.Parts != nil {
		return ds.Meta.FeatureFormat != ""
	}
	return ds.Features == nil && ds.SparseFeatures != nil
}

// learns finds out where the learned rows of each type begin.
func (e *Exported) learns(n *network, ds *gnb.Dataset) error {
	switch s := n.sizes; {
	case s.Embedding:
		e.rows = []int{0}
		if e.schema != nil {
			e.rows = e.schema.Starts()[:len(e.schema.Nodes)]
		}
	case len(s.Learned) > 0:
		spans, err := feed.SpansOf(ds.Schema(), s.Learned)
		if err != nil {
			return err
		}
		e.rows = slices.Repeat([]int{-1}, len(e.schema.Nodes))
		first := 0
		for i, name := range s.Learned {
			e.rows[e.schema.NodeType(name)] = first
			first += spans[i].Hi - spans[i].Lo
		}
	}
	return nil
}

// outputs adds the outputs of the task.
func (e *Exported) outputs(o *numbers.LossOptions) {
	m, each := e.model, e.row()
	switch e.kind {
	case predict.Classes:
		doc := "the logits of the classes of each " + each
		if m.Outputs[0].Shape[1] == 1 {
			doc = "the logit of the second of two classes of each " + each
		}
		m.Rename("logits", doc)
		m.Probabilities("probabilities", false, "the probabilities of the classes of each "+each)
	case predict.Labels:
		m.Rename("logits", "the logits of the labels of each "+each)
		m.Probabilities("probabilities", true, "the probability of each label of each "+each)
	case predict.Numbers:
		m.Rename("standardised", "the numbers of each "+each+", standardised as the targets were in training")
		n := len(e.columns)
		scale, shift := make([]float32, n), make([]float32, n)
		var low, high []float32
		for k := range n {
			t := k / (n / o.Targets())
			scale[k], shift[k] = float32(o.Scale.Deviation[t]), float32(o.Scale.Mean[t])
			if o.Bounded {
				low, high = append(low, float32(o.Scale.Low[t])), append(high, float32(o.Scale.High[t]))
			}
		}
		m.Scaled("numbers", scale, shift, low, high, "the numbers of each "+each+", in the unit of the targets")
	case predict.Embeddings:
		m.Rename("embeddings", "the embedding of each "+each)
	}
}

// row is what a row of the outputs belongs to.
func (e *Exported) row() string {
	if e.graphs != nil {
		return "graph"
	}
	return "node"
}

// describe writes what a reader needs to know into the model.
func (e *Exported) describe(run *runs.Run, ds *gnb.Dataset, n *network) {
	add := func(key string, v any) {
		text, ok := v.(string)
		if !ok {
			raw, _ := json.Marshal(v) // strings, numbers and lists of them
			text = string(raw)
		}
		if text != "" && text != "null" {
			e.model.Metadata = append(e.model.Metadata, onnx.Property{Key: key, Value: text})
		}
	}
	kind := string(e.kind)
	inputs := "The inputs are a sampled block: layer 0 is computed first, its sources are the input nodes, and the first num_dst of a layer's rows are its destinations."
	if e.graphs != nil {
		inputs = "The inputs are the nodes and all edges of some graphs."
	}
	e.model.Doc = fmt.Sprintf("%s of %ss by the network %s of run %s, trained on %s. %s Edges may come in any order.", strings.ToUpper(kind[:1])+kind[1:], e.row(), n.name, e.run, run.Config.Dataset, inputs)
	add("run", e.run)
	add("dataset", run.Config.Dataset)
	add("network", n.name)
	add("kind", kind)
	add("graphnb_version", run.Config.Version)
	add("layers", strconv.Itoa(n.sizes.Layers))
	add("columns", e.columns)
	named := ds.NamedFeatures()
	if len(run.Config.FeatureNames) > 0 {
		named = run.Config.FeatureNames
	}
	for _, typ := range sorted(named) {
		if typ == "" {
			add("features", named[typ])
		} else {
			add("features:"+typ, named[typ])
		}
	}
	if s := e.schema; s != nil {
		var types, relations []string
		for _, t := range s.Nodes {
			types = append(types, t.Name)
		}
		for _, r := range s.Relations {
			relations = append(relations, r.String())
		}
		add("node_types", types)
		add("relations", relations)
	}
	for _, t := range ds.Meta.NodeTypes {
		if k := e.kind; (k == predict.Classes || k == predict.Labels) && len(t.ClassNames) > 0 {
			add("columns:"+t.Name, t.ClassNames)
		}
	}
	if e.rows != nil && e.schema != nil {
		for t, first := range e.rows {
			if first >= 0 {
				add("first_row:"+e.schema.Nodes[t].Name, strconv.Itoa(first))
			}
		}
	}
	for _, in := range e.model.Inputs {
		add("input:"+in.Name, in.Doc)
	}
	for _, out := range e.model.Outputs {
		add("output:"+out.Name, out.Doc)
	}
}

// WriteFile writes the model, whole or not at all.
func (e *Exported) WriteFile(path string) error { return e.model.WriteFile(path) }

// Close frees what [Exported.Example] needs. The dataset stays open.
func (e *Exported) Close() error {
	if e.of == nil {
		return nil
	}
	return e.of.Close()
}

// String lists the inputs and the outputs.
func (e *Exported) String() string {
	var s strings.Builder
	list := func(what string, values []onnx.Value) {
		for _, v := range values {
			kind := "float32"
			if v.Integers {
				kind = "int64"
			}
			shape := make([]string, len(v.Shape))
			for i, d := range v.Shape {
				shape[i] = fmt.Sprint(d)
			}
			fmt.Fprintf(&s, "%s  %s  %s[%s]  %s\n", what, v.Name, kind, strings.Join(shape, ", "), v.Doc)
			what = strings.Repeat(" ", len(what))
		}
	}
	list("inputs ", e.Inputs)
	list("outputs", e.Outputs)
	return strings.TrimSuffix(s.String(), "\n")
}

func sorted[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
