package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/internal/recipe"
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
type EmbedOptions struct {
	// TrainOptions are the options of gnb.Train, with these differences: Batch counts walks, and 0 means
	// 256; Epochs 0 means 10; there is no evaluation, so Eval, EvalEvery, Patience and BestBy are not there.
	// For a model with features, Embedding learns rows in their place.
	gnb.TrainOptions
	// Model computes embeddings from features of nodes and their neighbours (GraphSAGE without labels); nil
	// means [Table], which learns a row for each node.
	Model gnb.AnyModel
	// Dim is the number of columns of an embedding; 0 means 128.
	Dim int
	// Length is the number of steps of a walk (0 means 20), PerNode that of walks from each node in an epoch
	// (0 means 10), and Window the largest number of steps between the nodes of a pair (0 means 5).
	Length, PerNode, Window int
	// P and Q are node2vec's parameters (see [WalkOptions]); 0 means 1, a uniform walk (DeepWalk).
	P, Q float64
	// Negatives is the number of negatives for each pair of a walk; 0 means 1.
	Negatives int
	// NegativesFrom is uniform, degree or degree75; "" means uniform.
	NegativesFrom string
}

// embedArgs is the argument of Embed's program.
type embedArgs struct {
	Model                   string
	Sizes                   gnb.ModelConfig
	Loader                  gnb.Loader
	Length, PerNode, Window int
	P, Q                    float64
	Negatives               NegativeOptions
	Epochs                  int
	recipe.Optimizing
	Digest bool
}

func (o EmbedOptions) args(ds *gnb.Dataset) (embedArgs, error) {
	var a embedArgs
	if err := checkRun(ds, o.TrainOptions, "Embed"); err != nil {
		return a, err
	}
	table := o.model().Name() == Table.Name()
	switch {
	case o.Eval != "" && o.Eval != "none" || o.EvalEvery != 0 || o.EvalBatches != 0 || o.Patience != 0 || o.Metric != "" || o.BestBy != "":
		return a, errors.New("links: Embed does not evaluate, because it knows no labels; leave Eval, EvalEvery, EvalBatches, Patience, Metric and BestBy out")
	case !(o.P >= 0 && o.Q >= 0) || math.IsInf(o.P+o.Q, 0):
		return a, fmt.Errorf("links: P is %v and Q is %v; they are numbers above 0", o.P, o.Q)
	case o.Dim < 0 || o.Negatives < 0:
		return a, errors.New("links: Dim and Negatives cannot be negative")
	case table && o.Embedding != 0 && o.Embedding != o.Dim:
		return a, fmt.Errorf("links: Embedding is %d and Dim %d; model table has one number of columns, Dim", o.Embedding, o.Dim)
	}
	for name, set := range map[string]bool{
		"Layers": o.Layers != 0, "Hidden": o.Hidden != 0, "Fanouts": o.Fanouts != nil, "RelationFanouts": o.RelationFanouts != nil, "Sampler": o.Sampler != "",
		"BatchDependency": o.BatchDependency != 0, "LayerDependency": o.LayerDependency, "Norm": o.Norm != "", "JK": o.JK != "", "Residual": o.Residual, "Bases": o.Bases != 0,
	} {
		if table && set {
			return a, fmt.Errorf("links: %s is an option of graph networks, and model table has no layers; leave it out, or set Model", name)
		}
	}
	from, err := pairs.ParseDistribution(o.NegativesFrom)
	if err != nil {
		return a, err
	}
	dim := cmp.Or(o.Dim, 128)
	if table {
		o.Embedding, o.Layers, o.Fanouts = dim, 1, []int{0}
	}
	if o.Dropout == 0 {
		o.Dropout = gnb.None
	}
	made, sizes, err := inside.Settings(ds, o.TrainOptions, dim)
	if err != nil {
		return a, err
	}
	o.Eval = "none"
	setRate(ds, &o.TrainOptions)
	how, err := optimizing(o.TrainOptions, inside.OrNone(o.Epochs, 10))
	if err != nil {
		return a, err
	}
	a = embedArgs{
		Model: o.model().Name(), Sizes: sizes, Loader: loaderOf(made.(gnb.Loader), o.TrainOptions),
		Length: cmp.Or(o.Length, 20), PerNode: cmp.Or(o.PerNode, 10), Window: cmp.Or(o.Window, 5), P: cmp.Or(o.P, 1), Q: cmp.Or(o.Q, 1),
		Negatives: NegativeOptions{From: from, PerEdge: max(1, o.Negatives)},
		Epochs:    inside.OrNone(o.Epochs, 10), Optimizing: how, Digest: o.Digest,
	}
	if a.Loader.Batch == 0 && a.Loader.BatchPerWorker == 0 {
		a.Loader.Batch = 256
	}
	return a, nil
}

func (o EmbedOptions) model() gnb.AnyModel {
	if o.Model == nil {
		return Table
	}
	return o.Model
}

// Embed learns an embedding of each node without labels: nodes that occur together on random walks get
// embeddings with a high inner product, others a low one. Without a Model it is DeepWalk or, with P and Q,
// node2vec, with one table of rows for both ends, as PyG's Node2Vec; with a model such as gnb.SAGE it is
// GraphSAGE without labels. It runs as gnb.Train does: with interrupts, checkpoints, exact resumption and a
// run directory.
//
// The run's directory gets the embeddings as embeddings.npy, float32 [nodes, Dim]; see [Embeddings].
func Embed(ctx context.Context, ds *gnb.Dataset, o EmbedOptions) (*runs.Run, error) {
	ds, err := feed.OneWidth(ctx, ds, o.Quiet)
	if err != nil {
		return nil, err
	}
	a, err := o.args(ds)
	if err != nil {
		return nil, err
	}
	rest, zeros, err := ds.WithoutZeroWeights()
	switch {
	case err != nil:
		return nil, err
	case rest.Edges() == 0 && zeros > 0:
		return nil, fmt.Errorf("links: all %d edges of %s have weight 0, so no walk takes a step and there is nothing to learn from", zeros, ds.Name())
	case rest.Edges() == 0:
		return nil, fmt.Errorf("links: %s has no edges, so no walk takes a step and there is nothing to learn from", ds.Name())
	}
	lo := inside.LaunchOptions(ds, o.model(), o.TrainOptions).(gnb.LaunchOptions)
	lo.Title = cmp.Or(o.Title, "embeddings of "+ds.Name()+" by walks and "+a.Model)
	return gnb.Launch(ctx, embedProgram, a, lo)
}

// embeddingsFile is the name of the embeddings in a run's directory.
const embeddingsFile = "embeddings.npy"

// embedProgram is the training loop of Embed.
var embedProgram = gnb.Program("gnb.embed", func(w *gnb.Worker, a embedArgs) error {
	if a.Sizes.Embedding {
		w.WithoutFeatures()
	}
	a.Loader.Batch = a.WholeBatch(a.Loader.Batch, 256, a.Loader.BatchPerWorker)
	sayRate(w, a.LR, a.Sizes)
	l := NewWalks(w, WalkOptions{Loader: a.Loader, Length: a.Length, PerNode: a.PerNode, Window: a.Window, P: a.P, Q: a.Q, Negatives: a.Negatives})
	net := New(w, byName(a.Model), "dot", a.Sizes)
	opt := inside.Optimizer(w, net, a.Optimizing, w.Dataset().Nodes()*a.PerNode, a.Loader, a.Epochs).(*gnb.Optimizer)
	if a.Digest {
		w.Digest()
	}
	for range w.Epochs(a.Epochs) {
		for b := range l.Batches() {
			w.Step(BCE(net.Score(b), b.PerEdge), opt)
		}
	}
	WriteEmbeddings(w, net, filepath.Join(w.RunDir(), embeddingsFile))
	return nil
})

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
