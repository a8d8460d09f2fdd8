package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"reflect"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// Table is the model without layers and parameters: the embedding of a node is its learned row. It needs
// gnb.ModelConfig's Embedding, and In and Out are the columns of a row. With walks it is DeepWalk or
// node2vec, and with edges a matrix factorisation.
var Table = gnb.Model("table", func(s gnb.ModelConfig) *TableModel {
	if !s.Embedding || s.In != s.Out {
		panic(&tensor.Error{Op: "Table", Detail: fmt.Sprintf("its rows have %d columns and its embeddings %d, and Embedding is %v; set Embedding, and equally many columns", s.In, s.Out, s.Embedding)})
	}
	return &TableModel{}
})

// TableModel is the network of [Table].
type TableModel struct{}

// NumLayers implements [nn.Model]: one layer, which hands on the rows of its destinations.
func (*TableModel) NumLayers() int { return 1 }

// NoParams says that the model has no parameters on purpose; see [nn.Collect].
func (*TableModel) NoParams() bool { return true }

// Layer implements [nn.Model].
func (*TableModel) Layer(f *nn.Fwd, _ int, b *nn.Block, h *nn.Tensor) *nn.Tensor { return f.Dst(b, h) }

// EmbedOptions configure [Embed]. The zero value is DeepWalk with 128 columns.
//
// Batch counts walks, and 0 means 256. Nothing is evaluated, because Embed knows no labels. The model and the sampler are
// those of a graph network; without a Model there is none. For a model with features, Embedding learns rows in their place.
type EmbedOptions struct {
	gnb.ModelOptions
	gnb.SamplerOptions
	gnb.OptimizerOptions
	gnb.LaunchOptions
	// Model computes embeddings from features of nodes and their neighbours (GraphSAGE without labels); nil
	// means [Table], which learns a row for each node.
	Model gnb.AnyModel `json:"-" flag:"model" help:"sage, gcn, … on features (default table: learned rows)"`
	// Dim is the number of columns of an embedding; 0 means 128.
	Dim int `json:",omitempty" flag:"dim" help:"columns of an embedding (default 128)" least:"1"`
	// Length is the number of steps of a walk; 0 means 20.
	Length int `json:",omitempty" flag:"length" help:"steps of a walk (default 20)" least:"1"`
	// PerNode is the number of walks from each node in an epoch; 0 means 10.
	PerNode int `json:",omitempty" flag:"walks" help:"walks from each node in an epoch (default 10)" least:"1"`
	// Window is the largest number of steps between the nodes of a pair; 0 means 5.
	Window int `json:",omitempty" flag:"window" help:"most steps between the nodes of a pair (default 5)" least:"1"`
	// P is node2vec's return parameter (see [WalkOptions]); 0 means 1, a uniform walk (DeepWalk).
	P float64 `json:",omitempty" flag:"p" help:"node2vec's p: above 1, walks return less (default 1)" positive:"true"`
	// Q is node2vec's in-out parameter; 0 means 1.
	Q float64 `json:",omitempty" flag:"q" help:"node2vec's q: above 1, walks stay near (default 1)" positive:"true"`
	// Negatives is the number of negatives for each pair of a walk; 0 means 1.
	Negatives int `json:",omitempty" flag:"negatives" help:"negatives for each pair (default 1)" least:"1"`
	// NegativesFrom is uniform, degree or degree75; "" means uniform.
	NegativesFrom string `json:",omitempty" flag:"negatives-from" help:"uniform, degree or degree75 (default uniform)"`
}

// recordedWalks are the options as a run records them, with the model by its name.
type recordedWalks struct {
	Model string
	EmbedOptions
}

// walksTask is the task of [Embed].
var walksTask = gnb.DeclareTask("gnb.embed", gnb.TaskDef[recordedWalks]{
	Defaults: func(ds *gnb.Dataset, o *recordedWalks) gnb.Defaults {
		return gnb.Defaults{Batch: 256, LR: rateFor(ds, o.Embedding)}
	},
	Check: func(_ context.Context, ds *gnb.Dataset, o *recordedWalks) error { return o.complete(ds) },
	Title: func(ds *gnb.Dataset, o *recordedWalks) string {
		return "embeddings of " + ds.Name() + " by walks and " + o.Model
	},
	Start: startWalks,
})

// Embed learns an embedding of each node without labels: nodes that occur together on random walks get
// embeddings with a high inner product, others a low one. Without a Model it is DeepWalk or, with P and Q,
// node2vec, with one table of rows for both ends, as PyG's Node2Vec; with a model such as gnb.SAGE it is
// GraphSAGE without labels. It runs as gnb.Train does: with interrupts, checkpoints, exact resumption and a
// run directory.
//
// The run's directory gets the embeddings as embeddings.npy, float32 [nodes, Dim]; see [Embeddings].
func Embed(ctx context.Context, ds *gnb.Dataset, o EmbedOptions) (*runs.Run, error) {
	if ds == nil {
		return nil, errors.New("links: Embed needs a dataset; get one from gnb.Load")
	}
	full := recordedWalks{Model: Table.Name(), EmbedOptions: o}
	if o.Scratch {
		return nil, errors.New("links: Embed writes embeddings.npy into the run's directory, which a Scratch run has not; leave Scratch out")
	}
	if o.Dim < 0 || o.Negatives < 0 {
		return nil, errors.New("links: Dim and Negatives cannot be negative")
	}
	if full.Dim = cmp.Or(o.Dim, 128); o.Model != nil {
		full.Model = o.Model.Name()
	}
	full.EmbedOptions.Model = nil
	if full.Model == Table.Name() {
		m, s := o.ModelOptions, o.SamplerOptions
		m.Dropout, m.InputDropout, s.Digest = 0, 0, false
		if m.Embedding == full.Dim { // the same again
			m.Embedding = 0
		}
		if m != (gnb.ModelOptions{}) || !reflect.ValueOf(s).IsZero() {
			return nil, errors.New("links: model table has no layers, whose options and fanouts are those of graph networks, and its rows have Dim columns; leave them out, or set Model")
		}
		full.Embedding, full.Layers, full.Fanouts = full.Dim, 1, []int{0}
	}
	return walksTask.Train(ctx, ds, full)
}

// EmbedOptionsOf is [OptionsOf] for a run of [Embed].
func EmbedOptionsOf(r *runs.Run) (EmbedOptions, error) {
	full, err := walksTask.OptionsOf(r)
	if err != nil {
		return EmbedOptions{}, fmt.Errorf("links: %w", err)
	}
	if _, err := pairs.ParseDistribution(full.NegativesFrom); err != nil {
		return EmbedOptions{}, fmt.Errorf("links: the options of run %s are damaged", r.Dir)
	}
	o := full.EmbedOptions
	if o.Model = byName(full.Model); full.Model == Table.Name() {
		o.Model, o.Embedding, o.Layers, o.Hidden, o.Fanouts = nil, 0, 0, 0, nil
	}
	return o, nil
}

// complete checks the options, and fills in their defaults.
func (o *recordedWalks) complete(ds *gnb.Dataset) error {
	if err := checkRun(ds, o.Topology, "Embed"); err != nil {
		return err
	}
	if !(o.P >= 0 && o.Q >= 0) || math.IsInf(o.P+o.Q, 0) {
		return fmt.Errorf("links: P is %v and Q is %v; they are numbers above 0", o.P, o.Q)
	}
	from, err := pairs.ParseDistribution(o.NegativesFrom)
	if err != nil {
		return err
	}
	o.NegativesFrom, o.Negatives = from.String(), max(1, o.Negatives)
	o.Length, o.PerNode, o.Window, o.P, o.Q = cmp.Or(o.Length, 20), cmp.Or(o.PerNode, 10), cmp.Or(o.Window, 5), cmp.Or(o.P, 1), cmp.Or(o.Q, 1)
	rest, zeros, err := ds.WithoutZeroWeights()
	switch {
	case err != nil:
		return err
	case rest.Edges() == 0 && zeros > 0:
		return fmt.Errorf("links: all %d edges of %s have weight 0, so no walk takes a step and there is nothing to learn from", zeros, ds.Name())
	case rest.Edges() == 0:
		return fmt.Errorf("links: %s has no edges, so no walk takes a step and there is nothing to learn from", ds.Name())
	}
	return nil
}

var _ gnb.Ender = (*walkTask)(nil)

// walkTask learns embeddings from walks in a worker.
type walkTask struct {
	w   *gnb.Worker
	l   *Walks
	net *Net
}

func startWalks(w *gnb.Worker, o recordedWalks) (gnb.Task, error) {
	if o.Embedding > 0 {
		w.WithoutFeatures()
	}
	sayRate(w, o.LR, o.Embedding > 0)
	from, err := pairs.ParseDistribution(o.NegativesFrom)
	if err != nil {
		return nil, err
	}
	l := NewWalks(w, WalkOptions{
		Loader: w.LoaderOf(o.SamplerOptions, o.OptimizerOptions), Length: o.Length, PerNode: o.PerNode, Window: o.Window, P: o.P, Q: o.Q,
		Negatives: NegativeOptions{From: from, PerEdge: o.Negatives},
	})
	return &walkTask{w, l, New(w, byName(o.Model), "dot", o.Config(w.Dataset(), o.Dim))}, nil
}

// Network implements [gnb.Task].
func (t *walkTask) Network() gnb.Network { return t.net }

// Batches implements [gnb.Task].
func (t *walkTask) Batches(int) iter.Seq[*gnb.Batch] { return t.l.batches() }

// Steps implements [gnb.Task].
func (t *walkTask) Steps() int { return t.w.StepsOf(t.l.items(), t.l.o.Loader) }

// Loss implements [gnb.Task].
func (t *walkTask) Loss(b *gnb.Batch) *nn.Loss {
	p := pairsIn(b)
	return BCE(t.net.Score(p), p.PerEdge)
}

// Splits implements [gnb.Task]: nothing is measured.
func (t *walkTask) Splits() []string { return nil }

// Measure implements [gnb.Task].
func (t *walkTask) Measure(...string) ([]runs.NamedValue, error) { return nil, nil }

// Chooses implements [gnb.Task].
func (t *walkTask) Chooses() gnb.Metric { return gnb.Metric{} }

// End implements [gnb.Ender]: it writes the embeddings.
func (t *walkTask) End() error {
	WriteEmbeddings(t.w, t.net, filepath.Join(t.w.RunDir(), embeddingsFile))
	return nil
}

// embeddingsFile is the name of the embeddings in a run's directory.
const embeddingsFile = "embeddings.npy"

// WriteEmbeddings computes the embeddings of all nodes, with all neighbours, and writes them to a .npy
// file, float32 [nodes, columns]. Collective.
func WriteEmbeddings(w *gnb.Worker, n *Net, path string) {
	if err := w.Outputs(n.Net, nil, func(rows []float32, cols, _ int) error {
		if w.Rank() != 0 {
			return nil
		}
		nodes := w.Dataset().Nodes()
		return dataset.WriteNPY(path, nodes, cols, rows[:nodes*cols])
	}); err != nil {
		w.Fail(err)
	}
}

// Embeddings reads the embeddings that [Embed] wrote, [nodes, Dim]. The matrix has its own memory of
// 4·nodes·Dim bytes.
func Embeddings(run *runs.Run) (*dataset.Matrix, error) {
	if run == nil {
		return nil, errors.New("links: Embeddings needs a run of Embed")
	}
	return dataset.ReadNPY(filepath.Join(run.Dir, embeddingsFile))
}
