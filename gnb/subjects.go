package gnb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
)

// TaskOptions are the options of a task: a struct that embeds [OptimizerOptions] and [LaunchOptions], [EvaluationOptions]
// for a task that measures, and [ModelOptions] and [SamplerOptions] for one with a graph network. What else it has are the
// task's own options; they reach workers as JSON.
type TaskOptions interface {
	optimizer() *OptimizerOptions
	launch() *LaunchOptions
}

func (o *ModelOptions) model() *ModelOptions                { return o }
func (o *SamplerOptions) sampler() *SamplerOptions          { return o }
func (o *OptimizerOptions) optimizer() *OptimizerOptions    { return o }
func (o *EvaluationOptions) evaluation() *EvaluationOptions { return o }
func (o *LaunchOptions) launch() *LaunchOptions             { return o }

var _ TaskOptions = &TrainOptions{}

// modelOf, samplerOf and evaluationOf return the subjects that not every task has, nil without.
func modelOf(o TaskOptions) *ModelOptions {
	if m, ok := o.(interface{ model() *ModelOptions }); ok {
		return m.model()
	}
	return nil
}

func samplerOf(o TaskOptions) *SamplerOptions {
	if s, ok := o.(interface{ sampler() *SamplerOptions }); ok {
		return s.sampler()
	}
	return nil
}

func evaluationOf(o TaskOptions) *EvaluationOptions {
	if e, ok := o.(interface{ evaluation() *EvaluationOptions }); ok {
		return e.evaluation()
	}
	return nil
}

// Defaults are what a task's options mean by zero. The zero value has those of [Train].
type Defaults struct {
	Epochs    int     // 10
	Batch     int     // 1024
	LR        float64 // 0.01
	EvalEvery int     // 1
}

// complete checks the options that all tasks share, and fills in their defaults for a dataset.
func complete(o TaskOptions, ds *Dataset, d Defaults) error {
	opt, eval := o.optimizer(), evaluationOf(o)
	if err := opt.complete(d); err != nil {
		return err
	}
	if eval != nil {
		if err := eval.complete(d); err != nil {
			return err
		}
	}
	switch _, samples := o.(interface{ evaluatesSamples() }); {
	case eval != nil && eval.Eval == "sampled" && !samples:
		return errors.New(`gnb: Eval is "sampled", and this task measures with all neighbours; take "full" or "none"`)
	case opt.Schedule.Kind == "plateau" && eval == nil:
		return errors.New("gnb: the Schedule is a plateau, which watches a validation split, and this task measures nothing during training; choose another schedule")
	case opt.Schedule.Kind == "plateau" && eval.Eval == "none":
		return errors.New("gnb: the Schedule is a plateau, which watches the validation split, but Eval is none; evaluate, or choose another schedule")
	}
	m, s := modelOf(o), samplerOf(o)
	if m != nil {
		m.Hidden = cmp.Or(m.Hidden, 64)
		if err := m.check(ds, o.launch()); err != nil {
			return err
		}
	}
	if s == nil {
		if m != nil {
			m.Layers = cmp.Or(m.Layers, 2)
		}
		return nil
	}
	layers := 0
	if m != nil {
		layers = m.Layers
	}
	if err := s.complete(ds, layers); err != nil {
		return err
	}
	if m != nil {
		m.Layers = len(s.Fanouts)
	}
	return nil
}

func (o *OptimizerOptions) complete(d Defaults) error {
	if err := cmp.Or(entry.CheckAll(
		entry.Whole("Epochs", o.Epochs, 1, sample.MaxEpochs), entry.Whole("Batch", o.Batch, 1, entry.MaxCount), entry.Whole("BatchPerWorker", o.BatchPerWorker, 1, entry.MaxCount),
		entry.Whole("Accumulate", o.Accumulate, 1, maxVirtual),
	), entry.CheckNumbers(
		entry.Rate("LR", o.LR), entry.Rate("WeightDecay", o.WeightDecay), entry.Rate("ClipNorm", o.ClipNorm),
	)); err != nil {
		return err
	}
	if o.Batch > 0 && o.BatchPerWorker > 0 {
		return fmt.Errorf("gnb: Batch (%d, over all workers) or BatchPerWorker (%d), not both", o.Batch, o.BatchPerWorker)
	}
	o.Epochs, o.LR = cmp.Or(o.Epochs, d.Epochs, 10), cmp.Or(o.LR, d.LR, 0.01)
	if o.BatchPerWorker == 0 {
		o.Batch = cmp.Or(o.Batch, d.Batch, 1024)
	}
	if o.Accumulate == 1 {
		o.Accumulate = 0
	}
	switch o.Optimizer {
	case "adam":
		o.Optimizer = ""
	case "", "adamw":
	default:
		return fmt.Errorf(`gnb: Optimizer is %q; it is "adam" or "adamw"`, o.Optimizer)
	}
	for _, g := range o.Groups {
		if err := g.Check(o.LR); err != nil {
			return err
		}
	}
	if err := o.Average.Check(float64(o.Epochs)); err != nil {
		return err
	}
	return o.Schedule.Check(o.LR, float64(o.Epochs))
}

func (o *EvaluationOptions) complete(d Defaults) error {
	if err := entry.CheckAll(entry.Whole("EvalEvery", o.EvalEvery, 1, sample.MaxEpochs), entry.Whole("Patience", o.Patience, 0, sample.MaxEpochs)); err != nil {
		return err
	}
	o.Eval, o.EvalEvery = cmp.Or(o.Eval, "full"), cmp.Or(o.EvalEvery, d.EvalEvery, 1)
	switch o.Eval {
	case "full", "sampled", "none":
		return nil
	}
	return fmt.Errorf(`gnb: Eval is %q; it is "full" or "none" (of nodes also "sampled")`, o.Eval)
}

// check returns an error for options of a network, whose Hidden is set, that do not fit the dataset or each other.
func (o *ModelOptions) check(ds *Dataset, l *LaunchOptions) error {
	if err := cmp.Or(entry.CheckAll(
		entry.Whole("Layers", o.Layers, 1, sample.MaxHops), entry.Whole("Hidden", o.Hidden, 1, entry.MaxHidden),
		entry.Whole("Heads", o.Heads, 1, entry.MaxHidden), entry.Whole("OutHeads", o.OutHeads, 1, entry.MaxHidden), entry.Whole("Bases", o.Bases, 1, entry.MaxHidden),
		entry.Whole("Embedding", o.Embedding, 1, philox.MaxDraws),
	), entry.CheckNumbers(entry.Share("Dropout", o.Dropout), entry.Share("InputDropout", o.InputDropout))); err != nil {
		return err
	}
	switch {
	case o.Embedding == 0 && ds.FeatureDim() == 0:
		return fmt.Errorf("gnb: %s has no node features to train on; learn a row for each node instead (Embedding: 64, --embedding 64), or convert it with features (gnb data convert --features)", ds.Name())
	case (o.Embedding > 0 || o.LearnMissing) && l.Device == "cuda":
		return errors.New("gnb: learned embeddings train on CPUs only so far; choose the CPU (Device: \"cpu\", --device cpu)")
	case o.Norm != "" && o.Norm != "none" && o.Norm != "layer" && o.Norm != "batch":
		return fmt.Errorf(`gnb: Norm is %q; it is "none", "layer" or "batch"`, o.Norm)
	case o.JK != "" && !slices.Contains(nn.Jumps, o.JK):
		return fmt.Errorf(`gnb: JK is %q; it is "", "cat", "max", "lstm" or "sum"`, o.JK)
	case o.ScaleInput && (ds.SparseFeatures == nil || ds.Features != nil || o.Embedding > 0):
		return fmt.Errorf("gnb: ScaleInput (--scale-input) is for sparse features of %s, and the input is dense or learned; leave it out", ds.Name())
	case o.Arrangement != "" && o.Arrangement != nn.Strong:
		return fmt.Errorf(`gnb: Arrangement is %q; it is "" or "strong"`, o.Arrangement)
	case o.Heads > 0 && o.Hidden%o.Heads != 0:
		return fmt.Errorf("gnb: %d hidden columns do not divide among %d heads", o.Hidden, o.Heads)
	case o.EdgeWeights && !ds.EdgeShape().Weighted:
		return fmt.Errorf("gnb: the edges of %s have no weights; leave EdgeWeights (--edge-weights) out", ds.Name())
	}
	_, err := o.learned(ds, l.Features)
	return err
}

// learned returns the types of nodes whose rows are learned.
func (o *ModelOptions) learned(ds *Dataset, features string) ([]string, error) {
	if !o.LearnMissing {
		return nil, nil
	}
	return feed.TypesToLearn(ds, o.Embedding > 0, features == feed.FeaturesOnDisk)
}

// checkModelReads refuses options that the library's model of this name has no use for.
func (o *ModelOptions) checkModelReads(model string) error {
	plus := slices.Contains([]string{GINE.name, GatedGCN.name, PNA.name}, model)
	switch {
	case o.EdgeWeights && (plus || slices.Contains([]string{"gat", "gatv2", "rgcn", "hgt", "mlp"}, model)):
		return fmt.Errorf("gnb: model %s does not read edge weights; leave EdgeWeights (--edge-weights) out, or take sage, gin or gcn", model)
	case o.FeedForward && slices.Contains([]string{"sage", "gcn", "gat", "gatv2", "gin", "rgcn", "hgt", "mlp"}, model):
		return fmt.Errorf("gnb: model %s has no feed-forward part; leave FeedForward (--feed-forward) out, or take gine, gatedgcn or pna", model)
	case o.JK != "" && plus:
		return fmt.Errorf("gnb: model %s has no jumping knowledge; leave JK (--jk) out", model)
	}
	if (model == HGT.name || plus) && (o.Arrangement != "" || o.PreLinear || o.ScaleInput) {
		return fmt.Errorf("gnb: model %s has an arrangement of its own; leave Arrangement (--arrangement), PreLinear (--pre-linear) and ScaleInput (--scale-input) out, or take another model", model)
	}
	return nil
}

// Config returns what a network with out columns is built from on a dataset.
func (o ModelOptions) Config(ds *Dataset, out int) ModelConfig {
	learned, _ := o.learned(ds, "") // an error was one before the run
	if o.Norm == "none" {
		o.Norm = ""
	}
	return ModelConfig{
		In: cmp.Or(o.Embedding, ds.FeatureDim()), Embedding: o.Embedding > 0, Learned: learned, Hidden: cmp.Or(o.Hidden, 64), Out: out, Layers: cmp.Or(o.Layers, 2), Dropout: o.Dropout,
		EdgeDim: ds.EdgeFeatureDim(), Schema: ds.Schema(), Bases: o.Bases, InputDropout: o.InputDropout, ScaleInput: o.ScaleInput, Heads: o.Heads, OutHeads: o.OutHeads, Norm: o.Norm, Residual: o.Residual, Arrangement: o.Arrangement, PreLinear: o.PreLinear, FeedForward: o.FeedForward, JK: o.JK, BatchDegrees: o.BatchDegrees, EdgeWeights: o.EdgeWeights,
	}
}

// sampling returns the choice of the sampler on a dataset.
func (o *SamplerOptions) sampling(ds *Dataset) (feed.Sampling, error) {
	s, err := feed.Sampling{Sampler: o.Sampler, BatchDependency: o.BatchDependency, LayerDependency: o.LayerDependency}.Normal()
	if err != nil {
		return s, err
	}
	return s.ByRelation(ds.Schema(), o.Fanouts, o.RelationFanouts)
}

// asOf returns what seeds with times see, if the task gives them times.
func (o *SamplerOptions) asOf() AsOf {
	return AsOf{Window: o.TimeWindow, Strict: o.TimeStrict, Strategy: o.TimeStrategy, HalfLife: o.HalfLife}
}

// complete checks the options, and fills in the fanouts of layers hops; 0 layers means as many as there are Fanouts, else 2.
func (o *SamplerOptions) complete(ds *Dataset, layers int) error {
	if layers > 0 && o.Fanouts != nil && layers != len(o.Fanouts) {
		return fmt.Errorf("gnb: %d layers and %d fanouts %v; a layer needs a fanout", layers, len(o.Fanouts), o.Fanouts)
	}
	if err := sample.Fanouts(o.Fanouts).Check(); err != nil {
		return fmt.Errorf("gnb: Fanouts: %w", err)
	}
	if o.TimeStrategy == sample.TakeUniform {
		o.TimeStrategy = ""
	}
	if asOf := o.asOf(); asOf.Check() != nil {
		return asOf.Check()
	}
	s, err := feed.Sampling{Sampler: o.Sampler, BatchDependency: o.BatchDependency, LayerDependency: o.LayerDependency}.Normal()
	if err != nil {
		return err
	}
	hops := cmp.Or(layers, len(o.Fanouts), 2)
	o.Fanouts = slices.Clone(o.Fanouts)
	for len(o.Fanouts) < hops {
		o.Fanouts = append(o.Fanouts, s.Fanout())
	}
	if s, err = s.ByRelation(ds.Schema(), o.Fanouts, o.RelationFanouts); err != nil {
		return err
	}
	o.Sampler, o.BatchDependency, o.LayerDependency, o.RelationFanouts = s.Sampler, s.BatchDependency, s.LayerDependency, s.RelationFanouts(ds.Schema())
	return nil
}

// LoaderOf returns the loader of the batches of a task's training, by its options.
func (w *Worker) LoaderOf(s SamplerOptions, o OptimizerOptions) Loader {
	l, err := loaderOf(w.Dataset(), s, o)
	w.check(err)
	return l
}

func loaderOf(ds *Dataset, s SamplerOptions, o OptimizerOptions) (Loader, error) {
	l := Loader{Batch: o.stepBatch(), BatchPerWorker: o.BatchPerWorker, AsOf: s.asOf(), ProveTime: s.ProveTime}
	c, err := s.sampling(ds)
	if l.Sampler = c.Picker(s.Fanouts); l.Sampler == nil {
		l.Fanouts = s.Fanouts
	}
	return l, err
}

// stepBatch returns the items of a step over all workers; 0 if there is a batch of each worker, which the virtual ranks
// multiply.
func (o *OptimizerOptions) stepBatch() int {
	if o.BatchPerWorker > 0 {
		return 0
	}
	return o.Batch * max(1, o.Accumulate)
}

// virtual returns the number of virtual ranks to launch: batches that are accumulated are virtual ranks, and a cooperative
// batch belongs to all workers together.
func virtual(o TaskOptions) int {
	asked, a := o.launch().VirtualRanks, o.optimizer().Accumulate
	if c, ok := o.(interface{ cooperative() bool }); ok && c.cooperative() {
		return virtualOfBatches(true)
	}
	if a > 1 {
		return max(1, asked) * a
	}
	return asked
}

// virtualOfBatches returns the number of virtual ranks to ask for: 1 for cooperative batches, else the default.
func virtualOfBatches(cooperative bool) int {
	if cooperative {
		return 1
	}
	return 0
}

// made makes the optimiser of a training of perEpoch steps an epoch.
func (o *OptimizerOptions) made(perEpoch int) (made optim.Optimizer) {
	made = optim.NewAdam(optim.AdamOptions{LR: o.LR, WeightDecay: o.WeightDecay, Decoupled: o.Optimizer == "adamw"})
	if len(o.Groups) > 0 {
		made = optim.NewGrouped(made, o.Groups...)
	}
	if o.Average != (optim.Averaging{}) {
		made = optim.NewAveraged(made, o.Average.Steps(float64(perEpoch)))
	}
	return made
}

// timed reports whether the optimiser counts steps of an epoch.
func (o *OptimizerOptions) timed() bool {
	return o.Schedule != (optim.Schedule{}) || o.Average != (optim.Averaging{})
}

// OptimizerOf makes the optimiser of a network for a task's options; steps returns the number of steps of an epoch.
func (w *Worker) OptimizerOf(net Network, o OptimizerOptions, steps func() int) *Optimizer {
	perEpoch := 0
	if o.timed() {
		perEpoch = steps()
	}
	opt := w.Optimizer(net, o.made(perEpoch)).Clip(o.ClipNorm)
	if o.Schedule != (optim.Schedule{}) {
		opt.Follow(o.Schedule.Steps(float64(perEpoch)), o.Epochs*perEpoch)
	}
	return opt
}

// again sets the options of a run that its configuration records beside the task's options.
func again(o TaskOptions, c runs.Config) {
	l := o.launch()
	*l = LaunchOptions{Workers: c.Workers, VirtualRanks: c.VirtualRanks / max(1, o.optimizer().Accumulate), Precision: c.Precision, Seed: c.Seed}
	if c.Device == "cpu" { // a run on a GPU can resume on a machine without one
		l.Device = c.Device
	}
}
