package predict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/safetensors"
)

// firstLayers is a network of the first layers of another one.
type firstLayers struct {
	nn.Model
	n int
}

// NumLayers implements [nn.Model].
func (m firstLayers) NumLayers() int { return m.n }

// someLayers is a network of some layers of another one.
type someLayers struct {
	m  nn.Model
	of span
}

// NumLayers implements [nn.Model].
func (m someLayers) NumLayers() int { return m.of.to - m.of.from }

// Layer implements [nn.Model].
func (m someLayers) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	return m.m.Layer(f, m.of.from+i, b, h)
}

// load builds the run's network and loads its weights.
func (p *Predictor) load(run *runs.Run) error {
	ts, file, info, err := run.ReadWeights(p.o.Final)
	if err != nil {
		return err
	}
	if info = cmp.Or(run.Result.Model, info); info == nil {
		return fmt.Errorf("predict: run %s has not recorded its model; it is %s", p.run, run.Result.State)
	}
	ds := p.ds
	switch c := info.Config; {
	case c.Embedding && run.Config.Nodes != ds.Nodes():
		return fmt.Errorf("predict: run %s has learned a row for each of the %d nodes of %s, and %s has %d nodes; take the dataset of the run", p.run, run.Config.Nodes, run.Config.Dataset, ds.Name(), ds.Nodes())
	case !c.Embedding && len(c.Learned) == 0 && ds.FeatureDim() != c.In:
		return fmt.Errorf("predict: %s has %d features a node, and the model of run %s takes %d; take the dataset of the run, or one with its features", ds.Name(), ds.FeatureDim(), p.run, c.In)
	case p.o.Layer > c.Layers:
		return fmt.Errorf("predict: Options.Layer is %d, and the model of run %s has the layers 1 to %d", p.o.Layer, p.run, c.Layers)
	case c.EdgeStates:
		return fmt.Errorf("predict: the layers of run %s read rows of edges that the layer before computed, which batches of whole graphs have alone; take a model without EdgeStates", p.run)
	}
	p.sizes, p.weights = info.Config, file
	sizes, err := info.Config.On(ds.Schema())
	if err != nil {
		return fmt.Errorf("predict: run %s and %s: %w", p.run, ds.Name(), err)
	}
	if sizes.Schema != nil { // the network counts nodes as this package numbers them
		sizes.Schema = p.schema
	}
	var m nn.Model
	if links.Predicts(run) {
		var l *links.Model
		if l, err = links.Build(info.Name, sizes); err == nil {
			m, p.decoder = l, l.Decoder
		}
	} else {
		m, err = gnb.BuildModel(info.Name, sizes)
	}
	if err != nil {
		return fmt.Errorf("predict: the network of run %s: %w", p.run, err)
	}
	if err := p.setWeights(m, info, ts); err != nil {
		return err
	}
	p.model = m
	if p.o.Layer > 0 {
		p.model = firstLayers{m, p.o.Layer}
	}
	return nil
}

// setWeights sets the parameters of m, and the learned rows, to those of the file.
func (p *Predictor) setWeights(m nn.Model, info *runs.ModelInfo, ts []safetensors.Tensor) (err error) {
	at := slices.IndexFunc(ts, func(t safetensors.Tensor) bool { return t.Name == saving.EmbeddingWeights })
	if s := info.Config; s.Embedding || len(s.Learned) > 0 {
		rows := &learnedRows{cols: s.In}
		n := p.ds.Nodes()
		if len(s.Learned) > 0 {
			if rows.spans, err = feed.SpansOf(p.ds.Schema(), s.Learned); err != nil {
				return err
			}
			n = 0
			for _, r := range rows.spans {
				n += r.Hi - r.Lo
			}
		}
		switch {
		case at < 0:
			return fmt.Errorf("predict: %s has no learned rows of nodes, which are the input of the network of run %s", p.weights, p.run)
		case !slices.Equal(ts[at].Shape, []int{n, s.In}):
			return fmt.Errorf("predict: run %s has learned rows of nodes of shape %v, and %s needs [%d %d]; take the dataset of the run, because learned rows fit no other", p.run, ts[at].Shape, p.ds.Name(), n, s.In)
		}
		rows.w, p.learned = ts[at].F32, rows
	}
	if at >= 0 {
		ts = slices.Delete(ts, at, at+1)
	}
	params, err := nn.Collect(m)
	if err == nil {
		err = saving.Load(params, ts)
		for _, e := range params.List() {
			e.G = nil // answers need none, and explanations take those of their input alone
		}
	}
	if err != nil {
		return fmt.Errorf("predict: the weights of run %s, %s: %w", p.run, p.weights, err)
	}
	return nil
}

// findWidths finds the numbers of columns of the input and of each layer's rows.
func (p *Predictor) findWidths() error {
	f := nn.NewFwd(nn.Config{Threads: 1})
	p.widths = []int{p.inputCols()}
	for i := range p.model.NumLayers() {
		cols, err := nn.LayerCols(p.model, f, i, p.widths[i])
		if err != nil {
			return fmt.Errorf("predict: the network of run %s: %w", p.run, err)
		}
		p.widths = append(p.widths, cols)
	}
	p.cols = p.widths[p.model.NumLayers()]
	return nil
}

// inputCols is the number of columns of the network's input.
func (p *Predictor) inputCols() int {
	if p.learned != nil {
		return p.learned.cols
	}
	return p.ds.FeatureDim()
}

// learnedRows are rows that a run has learned for nodes, in place of features.
type learnedRows struct {
	w     []float32
	cols  int
	spans []feed.Span // of the nodes that have some; nil: all
}

// of returns the learned row of a node of the dataset, nil if it has features.
func (l *learnedRows) of(v int32) []float32 {
	at := int(v)
	if l.spans != nil {
		first, found := 0, false
		for _, r := range l.spans {
			if int(v) >= r.Lo && int(v) < r.Hi {
				at, found = first+int(v)-r.Lo, true
				break
			}
			first += r.Hi - r.Lo
		}
		if !found {
			return nil
		}
	}
	return l.w[at*l.cols : (at+1)*l.cols]
}

// learns reports whether the nodes of a type have learned rows.
func (p *Predictor) learns(typ int) bool {
	if p.learned == nil {
		return false
	}
	return p.learned.spans == nil || slices.Contains(p.sizes.Learned, p.typeName(typ))
}

// typeName is the name of a node type, "" without types.
func (p *Predictor) typeName(typ int) string {
	if p.schema == nil {
		return ""
	}
	return p.schema.Nodes[typ].Name
}

// typeNames lists the node types.
func (p *Predictor) typeNames() string {
	var names []string
	for _, t := range p.schema.Nodes {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}
