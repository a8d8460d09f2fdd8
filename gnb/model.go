package gnb

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/finite"
	"github.com/graphnb/graphnb/gnb/internal/names"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
)

// modelDef is a declared model, its type forgotten.
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

// Describe says what a network of these sizes is, without a worker: fmt.Println shows
// its layers' parameters with shapes and counts.
func (m *ModelOf[T]) Describe(s ModelConfig) (*runs.ModelInfo, error) {
	multigpuEnter()
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
	return (&network{name: m.name, sizes: s, params: params}).info(), nil
}

// New makes a network for this worker: parameters initialised from the seed, or
// taken from the checkpoint that the run resumes from, and equal on all ranks.
func (m *ModelOf[T]) New(w *Worker, s ModelConfig) *Net[T] {
	if _, err := models.Get(m.name); err != nil {
		w.Fail(err)
	}
	var net T
	w.built(m.name, func() { net = m.build(s) })
	return &Net[T]{Model: net, network: w.newNetwork(m.name, s, net)}
}

// built calls a model's function, and says which model it is where that is misused.
func (w *Worker) built(name string, build func()) {
	if err := nn.Try(build); err != nil {
		w.Fail(fmt.Errorf("gnb: model %q, at %s: %w", name, callSite(), err))
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
	// GIN is the graph isomorphism network of Xu et al. 2019 (arXiv:1810.00826).
	GIN = Model("gin", nn.NewGINModel)
	// MLP looks at a node's own features only: the baseline that tells what the
	// graph is worth.
	MLP = Model("mlp", nn.NewMLPModel)
)

// ModelByName finds a declared model: "sage", "gcn", "gat", "gin", "mlp" or one
// of the program's own.
func ModelByName(name string) (AnyModel, error) {
	multigpuEnter()
	d, err := models.Get(name)
	if err != nil {
		return nil, err
	}
	return &ModelOf[nn.Model]{d.name, d.build}, nil
}

// Network is a network in a worker, whatever its model's type: what optimisers,
// evaluation and checkpoints work on.
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
	params *nn.Params
	fwd    *nn.Fwd
	// Where gradients are summed, made at the first step, and of how many of this
	// rank's batches in the current step.
	grads     gradients
	micro     int
	last      lastPass
	dev       device.Weights // the parameters on a device, nil on the CPU
	host      hostCopy
	eval      evaluation
	described string // the model as JSON, for files of weights; made when needed
}

// lastPass is what a network's last pass was over.
type lastPass struct {
	batch *Batch
	at    finite.Step // whose dropout it had
}

// hostCopy says how far host memory is behind the parameters on a device.
type hostCopy struct {
	behind  bool
	stepped nn.Optimizer // that stepped them last
	applied int64        // steps on the device, where earlier weights are remembered
}

// evaluation is how a network is evaluated.
type evaluation struct {
	// onHost has the CPU do it: the device has no room for a layer's rows, or for the
	// features.
	onHost bool
	pass   *nn.Fwd // made when needed
	cols   int     // columns of the last layer-wise output
	widths []int   // columns of the layers' outputs
}

func (n *network) net() *network { return n }

// netOf is the network that a method was given, which stops the rank where that
// is none, or another worker's.
func (w *Worker) netOf(net Network, method string) *network {
	if v := reflect.ValueOf(net); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() || net.net() == nil {
		w.Fail(fmt.Errorf("gnb: %s got no network, at %s; make one with New of a model, such as gnb.SAGE.New(w, sizes)", method, callSite()))
	}
	n := net.net()
	if n.w != w {
		w.Fail(fmt.Errorf("gnb: %s got a network of another worker, at %s; make networks inside the program", method, callSite()))
	}
	return n
}

// Params are the network's parameters, as they are now. On a GPU their memory is a
// copy, which later steps do not change.
func (n *network) Params() *nn.Params {
	n.w.check(n.toHost())
	return n.params
}

// Forward runs the network on a batch: logits, one row per seed. With it starts
// a new pass: tensors of the one before are no longer valid.
//
// A batch that a sampler of the program's own has made is given as &Batch{Batch: b}: it
// gets the features of its sources and, unless it has some, the labels of its seeds.
func (n *network) Forward(b *Batch) *nn.Tensor {
	f, x := n.Pass(b)
	out, err := nn.TryForward(n.model, f, b.blocks(n.model.NumLayers()), x)
	if err != nil {
		n.w.Fail(fmt.Errorf("gnb: model %q: %w", n.name, err))
	}
	return out
}

// Pass gives a fresh pass over the network's tape for a batch, for programs that
// call layers themselves, and the batch's input features as a tensor.
func (n *network) Pass(b *Batch) (*nn.Fwd, *nn.Tensor) {
	w := n.w
	w.checkBatch(b, n.name)
	w.complete(b)
	w.stage(names.Forward)
	epoch, step := b.Epoch, b.Step
	if b.full { // one batch for all steps, each with dropout of its own
		epoch, step = w.loop.Draw()
		if !w.loop.InLoop() {
			w.report.rate.enter()
			w.report.whole = &whole{len(b.Seeds), b.Edges()}
		}
	}
	if n.dev != nil && len(n.params.Fixed()) > 0 {
		n.host.behind = true // running statistics move as layers run
	}
	n.fwd.Reset(n.config(true, epoch, step))
	n.last.batch, n.last.at = b, finite.Step{Epoch: epoch, Step: step}
	return n.fwd, b.input(n.fwd)
}

// complete gives a batch that no loop has made what loops fetch.
func (w *Worker) complete(b *Batch) {
	if b.x != nil || b.Sparse != nil {
		return
	}
	labels, targets := b.Labels, b.Targets
	w.check(w.fetch(b, nil, nil))
	b.memory, b.spare = nil, nil // its memory stays its own
	if labels != nil || targets != nil {
		b.Labels, b.Targets = labels, targets
	}
}

// blocks are the batch's blocks for the given number of layers: of the whole graph as many as are
// asked for.
func (b *Batch) blocks(layers int) []*graphops.Block {
	if !b.full || len(b.Blocks) == layers {
		return b.Blocks
	}
	return slices.Repeat(b.Blocks[:1], layers)
}

// checkBatch finds batches that no network can run on.
func (w *Worker) checkBatch(b *Batch, model string) {
	switch {
	case b == nil || b.Batch == nil:
		w.Fail(fmt.Errorf("gnb: model %q got no batch, at %s; take one from Worker.Batches or FullGraph", model, callSite()))
	case len(b.Blocks) == 0:
		w.Fail(fmt.Errorf("gnb: model %q got a batch of an earlier iteration, at %s; a batch is valid until the loop's next one", model, callSite()))
	case w.ds.FeatureDim() == 0:
		w.Fail(fmt.Errorf("gnb: %s has no node features for model %q, at %s; add some to the dataset", w.ds.Name(), model, callSite()))
	}
}

// String lists the layers' parameters with shapes and counts.
func (n *network) String() string { return n.info().String() }

func (n *network) info() *runs.ModelInfo {
	return &runs.ModelInfo{Name: n.name, Config: n.sizes, Parameters: n.params.Len(), Text: n.params.String()}
}

// newNetwork finishes a network: parameters initialised (or loaded), and equal
// on all ranks.
func (w *Worker) newNetwork(name string, s ModelConfig, m nn.Model) *network {
	if w.loop.InLoop() {
		w.Fail(fmt.Errorf("gnb: a network of model %q is made inside a loop over batches, at %s; make it before the loop", name, callSite()))
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
	n := &network{w: w, index: len(w.nets), name: name, sizes: s, model: m, params: params}
	n.fwd = nn.NewFwd(n.config(true, 0, 0))
	// A pass records gradients for parameters that have a place for them; the
	// place is a slot of shared memory from the first step on.
	params.SetGrad(make([]float32, params.Len()))
	params.Init(w.job.Seed + uint64(n.index))
	w.check(w.saving.Resumed.Parameters(n.name, n.prefix(), params))
	// Ranks agree by construction; the broadcast makes it certain even when a
	// layer of the user's own draws its start from somewhere else.
	w.check(w.comm.Broadcast(w.site("parameters of model "+name), 0, params.Flat()))
	if w.gpu != nil {
		n.dev, err = w.gpu.Weights(params)
		w.check(err)
	}
	w.nets = append(w.nets, n)
	w.emit(runs.Event{Kind: runs.KindModel, Model: n.info()})
	return n
}

func (n *network) config(train bool, epoch, step int) nn.Config {
	c := nn.Config{Train: train, Threads: n.w.job.Threads, BF16: train && n.w.job.BF16, Seed: n.w.job.Seed, Epoch: epoch, Step: step}
	if train {
		c.Work = &n.w.report.rate.work
	}
	if g := n.w.gpu; g != nil {
		c.Backend = g.Backend()
	}
	return c
}
