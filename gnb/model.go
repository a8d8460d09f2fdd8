package gnb

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
)

// modelDef is a declared model without its type parameter.
type modelDef struct {
	name  string
	build func(ModelConfig) nn.Model
}

// AnyModel is a model declared with [Model], whatever its type.
type AnyModel interface {
	// Name is the name the model was declared under.
	Name() string
}

// ModelOf is a declared model whose networks are of type T.
type ModelOf[T nn.Model] struct {
	name  string
	build func(ModelConfig) T
}

// Model declares a model under a name that must be unique in the program: build
// makes a network of the given sizes. Declare it at package level:
//
//	var GNN = gnb.Model("gnn", func(s gnb.ModelConfig) *gnn { return &gnn{nn.Stack(s, nn.NewSAGE)} })
//
// The parameters are what package nn finds in T: fields of type *nn.Param,
// layers, slices of layers. They are initialised from the run's seed.
func Model[T nn.Model](name string, build func(ModelConfig) T) *ModelOf[T] {
	models.Add(name, build != nil, build, modelDef{name, func(s ModelConfig) nn.Model { return build(s) }})
	return &ModelOf[T]{name, build}
}

// Name is the name the model was declared under.
func (m *ModelOf[T]) Name() string { return m.name }

func (m *ModelOf[T]) String() string { return "model " + m.name }

// Describe describes a network of these sizes, without a worker: fmt.Println shows its layers'
// parameters with shapes and counts.
func (m *ModelOf[T]) Describe(s ModelConfig) (*runs.ModelInfo, error) {
	entry.Enter()
	if _, err := models.Get(m.name); err != nil {
		return nil, err
	}
	var params *nn.Params
	var err error
	if e := nn.Try(func() { params, err = nn.Collect(m.build(s)) }); e != nil {
		err = e
	}
	if err != nil {
		return nil, fmt.Errorf("gnb: model %q: %w", m.name, err)
	}
	return (&network{name: m.name, sizes: s, params: &device.Parameters{Params: params}}).info(), nil
}

// BuildModel makes a network of the declared model with this name, in the calling process: all that layers compute with, but
// not the input that a worker adds (learned rows of nodes). Its parameters have the values that the model's function gave them; load a run's
// with [nn.Collect] and [nn.Params.Load]. Package predict answers with such a network.
func BuildModel(model string, s ModelConfig) (m nn.Model, err error) {
	entry.Enter()
	d, err := models.Get(model)
	if err != nil {
		return nil, err
	}
	if err := nn.Try(func() { m = d.build(s) }); err != nil {
		return nil, fmt.Errorf("gnb: model %q: %w", model, err)
	}
	return m, nil
}

// New makes a network for this worker: parameters initialised from the seed, or
// taken from the checkpoint that the run resumes from, and equal on all ranks.
func (m *ModelOf[T]) New(w *Worker, s ModelConfig) *Net[T] {
	if _, err := models.Get(m.name); err != nil {
		w.Fail(err)
	}
	s = w.withDegrees(m.name, s)
	var net T
	w.built(m.name, func() { net = m.build(s) })
	return &Net[T]{Model: net, network: w.newNetwork(m.name, s, net)}
}

// withDegrees sets the degrees that a PNA is built from to those of the dataset's nodes, unless the program gave some or the graph is
// not in this process.
func (w *Worker) withDegrees(model string, s ModelConfig) ModelConfig {
	if g := w.ds.Graph; model == PNA.name && s.LogDegree == 0 && g != nil {
		s.LogDegree = g.MeanLogDegree()
	}
	return s
}

// built calls a model's build function and names the model in the error if the function panics.
func (w *Worker) built(name string, build func()) {
	if err := nn.Try(build); err != nil {
		w.Fail(fmt.Errorf("gnb: model %q, at %s: %w", name, entry.CallSite(), err))
	}
}

// The models that come with the library.
var (
	// SAGE is GraphSAGE with mean aggregation (Hamilton et al. 2017,
	// arXiv:1706.02216), ReLU and dropout between the layers.
	SAGE = Model("sage", nn.NewSAGEModel)
	// GCN is the graph convolutional network of Kipf and Welling 2017
	// (arXiv:1609.02907), with the full graph's degrees.
	GCN = Model("gcn", nn.NewGCNModel)
	// GAT is the graph attention network of Veličković et al. 2018
	// (arXiv:1710.10903).
	GAT = Model("gat", nn.NewGATModel)
	// GATv2 is graph attention as Brody et al. 2022 improved it (arXiv:2105.14491). It uses the features
	// of edges where the dataset has them.
	GATv2 = Model("gatv2", nn.NewGATv2Model)
	// GIN is the graph isomorphism network of Xu et al. 2019 (arXiv:1810.00826).
	GIN = Model("gin", nn.NewGINModel)
	// GINE is GIN with features of edges, where the dataset has them (Hu et al. 2020, arXiv:1905.12265), in the arrangement of GNN+
	// (Luo et al. 2025, arXiv:2502.09263), which GatedGCN and PNA have too; see [nn.Plus].
	GINE = Model("gine", nn.NewGINEModel)
	// GatedGCN weighs messages by gates for each edge and column (Bresson and Laurent 2017, arXiv:1711.07553). It uses the features of
	// edges where the dataset has them.
	GatedGCN = Model("gatedgcn", nn.NewGatedGCNModel)
	// PNA joins the mean, the least, the greatest and the deviation of the messages, scaled by the degree (Corso et al. 2020,
	// arXiv:2004.05718). It uses the features of edges where the dataset has them.
	PNA = Model("pna", nn.NewPNAModel)
	// RGCN is the relational graph convolutional network of Schlichtkrull et al. 2018 (arXiv:1703.06103),
	// for graphs with types.
	RGCN = Model("rgcn", nn.NewRGCNModel)
	// HGT is the heterogeneous graph transformer of Hu et al. 2020 (arXiv:2003.01332), for graphs with
	// types.
	HGT = Model("hgt", nn.NewHGTModel)
	// MLP uses a node's own features only: a baseline that shows how much the graph contributes.
	MLP = Model("mlp", nn.NewMLPModel)
)

// ModelByName finds a declared model: "sage", "gcn", "gat", "gatv2", "gin", "gine", "gatedgcn", "pna",
// "rgcn", "hgt", "mlp"
// or one that the program declares.
func ModelByName(name string) (AnyModel, error) {
	entry.Enter()
	d, err := models.Get(name)
	if err != nil {
		return nil, err
	}
	return &ModelOf[nn.Model]{d.name, d.build}, nil
}

// Network is a network in a worker, of any model type. Optimisers, evaluation and checkpoints work
// on it.
type Network interface {
	net() *network
}

// Net is a network of model type T in a worker.
type Net[T nn.Model] struct {
	// Model is the value that the model's function built.
	Model T
	*network
}

type network struct {
	w      *Worker
	index  int
	name   string
	sizes  ModelConfig
	model  nn.Model
	params *device.Parameters
	table  *feed.Embeddings // learned rows of nodes; nil if the input are features
	fwd    *nn.Fwd
	rows   *feed.Exchanger // moves rows of cooperative batches
	// grads sums gradients and is made at the first step; micro is the number of this rank's
	// batches that it holds in the current step.
	grads     device.Gradients
	micro     int
	last      lastPass
	eval      evaluation
	loaded    bool   // the weights are those of a file, and of no step after it
	described string // the model as JSON, for files of weights; made when needed
}

// lastPass is the batch and step of a network's last pass.
type lastPass struct {
	batch *Batch
	at    atStep // the step whose dropout it used
	// together is set if the batch is cooperative: a rank can search only its first layer, and all do.
	together bool
	// rows are the learned rows that the pass reads, of the nodes ids; nil if the input are features.
	rows *nn.Tensor
	ids  []int32
}

// evaluation is the state of a network's evaluation.
type evaluation struct {
	// onHost evaluates on the CPU, because the device has no room for a layer's rows or for the
	// features.
	onHost bool
	// batches says that passes are those of [Worker.EvaluateOf].
	batches bool
	pass    *nn.Fwd // made when needed
	widths  []int   // columns of the layers' outputs
	layers  int     // the number of layers to compute; 0 means all
}

func (n *network) net() *network { return n }

// netOf returns a method's network argument. It stops the rank if the argument is nil or another
// worker's network.
func (w *Worker) netOf(net Network, method string) *network {
	if v := reflect.ValueOf(net); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() || net.net() == nil {
		w.Fail(fmt.Errorf("gnb: %s got no network, at %s; make one with New of a model, such as gnb.SAGE.New(w, sizes)", method, entry.CallSite()))
	}
	n := net.net()
	if n.w != w {
		w.Fail(fmt.Errorf("gnb: %s got a network of another worker, at %s; make networks inside the program", method, entry.CallSite()))
	}
	return n
}

// Params returns the network's current parameters. On a GPU they are a copy, which later steps do
// not change.
func (n *network) Params() *nn.Params {
	n.w.check(n.params.ToHost())
	return n.params.Params
}

// Forward runs the network on a batch and returns logits, one row per seed. It starts a new pass:
// tensors of the previous pass become invalid.
//
// Pass a batch of your own sampler as &Batch{Batch: b}: Forward adds the features of its sources
// and, unless it has labels, the labels of its seeds.
//
// Collective on several machines for a network with learned embeddings, whose rows it gets from their owners.
func (n *network) Forward(b *Batch) *nn.Tensor {
	f, x := n.Pass(b)
	out, err := nn.TryForward(n.model, f, b.blocks(n.model.NumLayers()), x)
	if err != nil {
		n.w.Fail(fmt.Errorf("gnb: model %q: %w", n.name, err))
	}
	return out
}

// Pass starts a new pass for a batch, for programs that call layers themselves. It returns the
// pass and the batch's input features as a tensor.
func (n *network) Pass(b *Batch) (*nn.Fwd, *nn.Tensor) {
	n.w.checkBatch(b, n)
	n.w.complete(b)
	if n.eval.batches {
		f := n.evalFwd()
		f.Reset(n.config(false, 0, b.Step))
		return f, n.input(f, b)
	}
	n.start(b)
	return n.fwd, n.trainInput(b)
}

// Begin starts a new pass for a batch without its features as input, for networks that read rows of their own.
func (n *network) Begin(b *Batch) *nn.Fwd {
	n.start(b)
	n.last.batch = nil // its blocks do not lead to the loss: a search for its cause looks at parameters alone
	return n.fwd
}

// start starts a new pass for a batch.
func (n *network) start(b *Batch) {
	w := n.w
	w.stage(runfile.StageForward)
	epoch, step := b.Epoch, b.Step
	if b.full { // one batch for all steps, each with its own dropout
		epoch, step = w.loop.Draw()
		if !w.loop.InLoop() {
			w.report.rate.enterWhole(len(b.Seeds), b.Edges())
		}
	}
	n.params.BeginPass()
	n.rows.Begin()
	c := n.config(true, epoch, step)
	c.KeepFixed = n.micro > 0
	n.fwd.Reset(c)
	n.last = lastPass{batch: b, at: atStep{epoch: epoch, step: step}, together: b.Cooperative()}
}

// complete adds features and labels to a batch that no loop made.
func (w *Worker) complete(b *Batch) {
	if b.x != nil || b.Sparse != nil || b.memory != nil || b.full {
		return
	}
	labels, targets := b.Labels, b.Targets
	w.check(w.fetch(b, nil, nil))
	b.memory, b.spare = nil, nil // the batch keeps its memory
	if labels != nil || targets != nil {
		b.Labels, b.Targets = labels, targets
	}
}

// blocks are the batch's blocks for the given number of layers: for the whole graph it returns any
// number of blocks.
func (b *Batch) blocks(layers int) []*graphops.Block {
	if !b.full || len(b.Blocks) == layers {
		return b.Blocks
	}
	return slices.Repeat(b.Blocks[:1], layers)
}

// checkBatch refuses batches that no network can run on.
func (w *Worker) checkBatch(b *Batch, n *network) {
	model := n.name
	switch {
	case b == nil || b.Batch == nil:
		w.Fail(fmt.Errorf("gnb: model %q got no batch, at %s; take one from Worker.Batches or FullGraph", model, entry.CallSite()))
	case len(b.Blocks) == 0:
		w.Fail(fmt.Errorf("gnb: model %q got a batch of an earlier iteration, at %s; a batch is valid until the loop's next one", model, entry.CallSite()))
	case w.ds.FeatureDim() == 0 && n.table == nil:
		w.Fail(fmt.Errorf("gnb: %s has no node features for model %q, at %s; add some to the dataset, or learn a row for each node (ModelConfig.Embedding)", w.ds.Name(), model, entry.CallSite()))
	}
}

// String lists the layers' parameters with shapes and counts.
func (n *network) String() string { return n.info().String() }

func (n *network) info() *runs.ModelInfo {
	info := &runs.ModelInfo{Name: n.name, Config: n.sizes, Parameters: n.params.Len(), Text: n.params.String()}
	if t := n.table; t != nil {
		info.Text += fmt.Sprintf("\nlearned embeddings  [%d, %d]  %d", t.Rows(), t.Cols, t.Rows()*t.Cols)
	}
	return info
}

// newNetwork initialises or loads a network's parameters and makes them equal on all ranks.
func (w *Worker) newNetwork(name string, s ModelConfig, m nn.Model) *network {
	if w.loop.InLoop() {
		w.Fail(fmt.Errorf("gnb: a network of model %q is made inside a loop over batches, at %s; make it before the loop", name, entry.CallSite()))
	}
	weights, err := nn.Count(m)
	if err == nil {
		w.check(w.networkRoom(name, weights))
	}
	params, err := nn.Collect(m)
	if err == nil && m.NumLayers() < 1 {
		err = errors.New("it has no layers")
	}
	if err != nil {
		w.Fail(fmt.Errorf("gnb: model %q: %w", name, err))
	}
	n := &network{w: w, index: len(w.nets), name: name, sizes: s, model: m, params: &device.Parameters{Params: params, Model: name}, rows: w.team().Exchanger()}
	n.fwd = nn.NewFwd(n.config(true, 0, 0))
	// A pass records gradients only for parameters that have memory for them; from the first step
	// on that memory is a slot shared by all ranks.
	params.SetGrad(make([]float32, params.Len()))
	params.Init(w.job.Seed + uint64(n.index))
	w.check(w.saving.Resumed.Parameters(n.name, n.saved().Prefix(), params))
	// All ranks draw the same initial parameters from the seed. The broadcast makes them equal
	// even if a custom layer draws its initial values from another source.
	w.check(w.comm.Broadcast(w.site("parameters of model "+name), 0, params.Flat()))
	w.check(n.newTable())
	w.check(n.startFrom())
	w.check(n.params.Place(w.gpu))
	w.nets = append(w.nets, n)
	info, ignored := n.info(), unread(w.ds, m, s.Embedding)
	info.Unread = partsOf(ignored)
	w.emit(runs.Event{Kind: runs.KindModel, Model: info})
	if text := unreadText(name, ignored); text != "" {
		w.emitFirst(runs.Event{Kind: runs.KindStart, Text: text})
	}
	return n
}

func (n *network) config(train bool, epoch, step int) nn.Config {
	c := nn.Config{Train: train, Threads: n.w.threads, BF16: train && n.w.job.BF16, Seed: n.w.job.Seed, Epoch: epoch, Step: step}
	if train {
		c.Work, c.Exchanger = &n.w.report.rate.work, n.rows
	}
	if g := n.w.gpu; g != nil {
		c.Backend = g.Backend()
	}
	return c
}
