package gnb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/recipe"
	"github.com/graphnb/graphnb/gnb/internal/tally"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
)

// TrainOptions configure [Train]. The zero value means 2 layers, hidden 64, fanout 10 per layer,
// global batch 1024, 10 epochs, Adam with learning rate 0.01, dropout 0.5, exact evaluation of the
// validation split after every epoch and of the test split once, at the best epoch.
type TrainOptions struct {
	// Layers is the number of layers; 0 means as many as there are Fanouts, else 2.
	Layers int
	// Hidden is the width of the hidden layers; 0 means 64.
	Hidden int
	// Dropout is the dropout probability between layers; 0 means 0.5, and [None] no dropout.
	Dropout float64
	// InputDropout is the dropout probability of the first layer's input; 0 means none.
	InputDropout float64
	// Heads is the number of attention heads of a GAT, GATv2 or HGT; 0 means 1. Hidden is the width of all heads
	// together.
	Heads int
	// OutHeads is the number of heads of the last layer of a GAT or GATv2; 0 means Heads.
	OutHeads int
	// Bases is the number of bases that the relations of each layer of an RGCN share; 0 means none: a matrix
	// for each relation.
	Bases int
	// Norm between layers is "", "layer" or "batch"; Residual adds each layer's
	// input to its output.
	Norm     string
	Residual bool
	// JK makes the output of the outputs of all layers (jumping knowledge): "cat" of their concatenation, "max" of the
	// greatest elements, "lstm" of a weighted sum. "" means the last layer's alone. See [nn.ModelConfig].
	JK string `json:",omitempty"`
	// BatchDegrees makes a GCN normalise by the sampled batch's degrees, as PyG does, instead of
	// the full graph's.
	BatchDegrees bool
	// EdgeWeights weighs the messages of SAGE (a weighted mean) and GIN (a weighted sum) by the edges' weights. GCN always
	// reads them, and the other models never do.
	EdgeWeights bool
	// Fanouts[0] is the hop next to the seeds; -1 takes all neighbours, 0 none.
	Fanouts []int
	// RelationFanouts are the fanouts of relations that differ from Fanouts, by name such as "cites" or
	// "paper:cites:paper", with as many hops: {"cites": {15, 10}, "writes": {5, 0}}. A node takes at most
	// its fanout of each relation's edges. Sampled evaluation takes Fanouts. See [sample.RelationFanouts].
	RelationFanouts map[string][]int `json:",omitempty"`
	// Sampler chooses the neighbours of training batches: "uniform" (the default), or "labor" and
	// "labor-poisson" for layer-neighbour sampling, whose batches reach fewer nodes because nodes with
	// common neighbours pick the same ones: Fanouts of them each, or on average (see [Labor]). Sampled
	// evaluation is uniform. "hgt" is the sampler of package gnb/budget, which the program must import:
	// Fanouts are then numbers of nodes of each type that a step adds at each hop (nil means 512), and evaluation
	// cannot be sampled. Another name is that of a declared sampler with the methods OfFanouts([]int)
	// sample.Picker and DefaultFanout() int; see [DeclareSampler].
	Sampler string `json:",omitempty"`
	// BatchDependency is the number of steps for which layer-neighbour sampling keeps a node's random
	// number, so that consecutive batches reach many of the same nodes; 0 means 1, which draws anew at
	// each step. LayerDependency gives all hops of a step the same numbers.
	BatchDependency int  `json:",omitempty"`
	LayerDependency bool `json:",omitempty"`
	// Embedding is the number of columns of learned embeddings: the input of the first layer is then a
	// trained row for each node instead of the node's features, which the dataset need not have. A step
	// reads and changes only the rows of the nodes that its batches reach, by [optim.SparseAdam] at the
	// rate LR; WeightDecay applies to the network's weights alone. 0 means the features are
	// the input. On CPUs only. See docs/models.md.
	Embedding int `json:",omitempty"`
	// LearnMissing learns a row for each node of the types without features, beside the features of the other
	// types; otherwise they have zeros. On CPUs; features are read from memory, parts or servers.
	LearnMissing bool `json:",omitempty"`
	// Batch is the number of seeds per step over all workers; 0 means 1024, or a batch given by
	// BatchPerWorker.
	Batch int
	// BatchPerWorker is the number of seeds per step of each worker or virtual rank, instead of
	// Batch; 0 means that Batch is used.
	BatchPerWorker int
	// Accumulate is the number of batches whose gradients a step adds up; 0 means 1. A step is then that of a batch
	// Accumulate times as large, to the bit that of Accumulate × VirtualRanks virtual ranks, and has the memory of the
	// small one and a gradient for each.
	Accumulate int `json:",omitempty"`
	// Cooperative is the option of [Loader].
	Cooperative bool
	// Epochs is the number of epochs; 0 means 10, and [None] no epoch: the initial weights are
	// evaluated and saved.
	Epochs int
	// LR is the learning rate of Adam; 0 means 0.01, and [None] a rate of 0.
	LR float64
	// Schedule changes the learning rate over the epochs, in which its times are counted: for instance
	// optim.Cosine(0).After(5), a warm-up of five epochs and then half a cosine down to 0. The zero value keeps it. A
	// plateau watches the value that chooses the best epoch (BestBy), which it sees at each evaluation.
	Schedule optim.Schedule `json:",omitzero"`
	// Optimizer is "adam" (the default), or "adamw", which subtracts the weight decay from the weights themselves.
	Optimizer string `json:",omitempty"`
	// WeightDecay times the weight is added to the gradient; 0 means none.
	WeightDecay float64
	// Groups give some parameters a learning rate and a weight decay of their own, by the name of a module or parameter
	// or a pattern of names: {Match: "convs.0", LR: 0.001}, {Match: "*.bias", WeightDecay: None}. A parameter belongs to the
	// first one that matches; nil means none. Learned embeddings have no group.
	Groups []optim.Group `json:",omitempty"`
	// Average keeps an average of the weights, which is then evaluated and saved in their place: optim.EMA(0.99), or
	// optim.SWA(5) for the mean of the weights after each epoch but the first five. The zero value means none.
	// Learned embeddings are not averaged.
	Average optim.Averaging `json:",omitzero"`
	// ClipNorm is the limit of the gradient's norm over all parameters, learned rows included; 0 means no limit.
	ClipNorm float64
	// ClassWeights are the weights of the classes in the training loss, one each; nil means that all are 1. See
	// [BalancedWeights]. Metrics and validation losses are not weighted.
	ClassWeights []float32 `json:",omitempty"`
	// LabelSmoothing is the probability that the training loss gives to all classes alike instead of to the label;
	// 0 means none. See [nn.CrossEntropyOptions].
	LabelSmoothing float64 `json:",omitempty"`
	// OwnLoss is the name of the training loss, one that [DeclareLoss] has declared; "" means the cross-entropy (binary, if
	// a node can have several labels). Validation losses are cross-entropies.
	OwnLoss string `json:",omitempty"`
	// Eval is "full" (the default: exact, with all neighbours), "sampled" (with
	// Fanouts) or "none".
	Eval string
	// EvalEvery is the number of epochs between evaluations; 0 means 1.
	EvalEvery int
	// EvalBatches is the largest number of batches of a sampled evaluation; 0 means all.
	EvalBatches int
	// Metric measures nodes: "accuracy", "auc" (ROC AUC), "ap" (average precision), "micro_f1" or "macro_f1"; "" means the
	// dataset's own ([dataset.Dataset.Metric]). It chooses the best epoch, and gives the values of the result their names,
	// such as val_auc.
	Metric string `json:",omitempty"`
	// BestBy chooses the epoch whose weights and metrics the run reports: the one with the best
	// metric on the validation split ("metric", the default) or with the lowest loss on it
	// ("loss").
	BestBy string
	// Patience stops training after this many epochs without improvement; 0 means never.
	Patience int
	// WatchTest also evaluates the test split at each evaluation. By default it is evaluated once, at the end, with
	// the weights of the best epoch, since one tunes on what one sees.
	WatchTest bool `json:",omitempty"`
	// Digest also computes the digest of all samples, which is the same for every number of
	// workers, and counts distinct edges. It costs a pass over all samples.
	Digest bool

	// The fields below say how the run is launched, as in [LaunchOptions].

	// Workers is the number of worker processes; 0 means the value of the environment variable
	// GNB_WORKERS, else one per GPU, else one. The maximum is 64, or eight per core if that is
	// more. Under a launcher (Slurm, MPI, torchrun) each rank is a worker, and Workers is 0.
	Workers int
	// VirtualRanks is the number of virtual ranks per worker; 0 means 1 or, if the data is divided
	// into parts, one per part. Runs with the same Workers × VirtualRanks have the same weights to the bit.
	VirtualRanks int
	// Threads is the number of threads per worker; 0 means an even share of the CPUs.
	Threads int
	// Device is "auto" (the default), "cpu" or "cuda". Only auto falls back.
	Device string
	// FirstGPU is the GPU of rank 0; 0 means the first one. The next ranks use the following GPUs,
	// and the first one after the last. Set different values for concurrent runs.
	FirstGPU int `json:",omitempty"`
	// Precision of the matrix products of training is "float32" (the default) or "bf16": factors
	// rounded to bfloat16 and their products summed in float32, which is faster on processors with
	// instructions for it (the run prints the method). Weights, optimiser and evaluation stay
	// float32. "tf32" works on GPUs only: factors rounded to 10 bits after the point.
	Precision string
	// Seed is the random seed; 0 means the seed 0.
	Seed uint64
	// Topology is where the edges of a divided dataset are: "replicated" (the default) maps the whole
	// graph in each worker, and with "divided" workers have their parts' edges and ask each other.
	Topology string `json:",omitempty"`
	// Features is where dense features are: "memory" maps their file, "disk" reads rows from it ahead of
	// use, and "" takes disk on CPUs if the dataset does not fit the free memory. It does not change
	// results. See docs/data.md.
	Features string `json:",omitempty"`
	// Cache is the size of the cache that the workers of a machine share, of rows of features that are on
	// disk or, for a divided dataset, that others have: for each worker a share of the rows that a worker
	// has on average ("0.2", "20%"), or bytes of the machine ("512MB"). "" means no cache for a divided
	// dataset, and a quarter of the machine's free memory for features on disk.
	Cache string `json:",omitempty"`
	// CachePolicy is "static" (the default), or "belady" to replace the rows of a worker's own cache by what
	// the next Prefetch steps read. It does not change results. See docs/partition.md.
	CachePolicy string `json:",omitempty"`
	// Prefetch is the number of steps ahead that such rows are asked for; 0 means 4. If it or Cache is set
	// for a divided dataset, each worker reads only its own parts' rows from files, as on a machine of
	// its own. Neither changes results. See docs/partition.md.
	Prefetch int `json:",omitempty"`
	// GPUCache is the size, for each worker, of the rows of features that stay in its GPU's memory where the
	// host gathers batches (parts, servers, disk): a share, as of Cache, or bytes of each worker; "" means none.
	// See docs/gpu.md.
	GPUCache string `json:",omitempty"`
	// RunDir is the run's directory, by default a new one in [runs.Dir].
	RunDir string
	// Scratch runs without a directory: nothing is saved, and the Run that Train returns has all that is left.
	Scratch bool `json:"-"`
	// Resume is the directory of a run to resume, in place. It must have the same data, code,
	// arguments, seed and precision, otherwise the error names the difference. The number of
	// workers and the device may differ; the run reports this. By default the last interrupted run in
	// [runs.Dir] with the same settings is resumed, and under a launcher one that failed or was killed; if its settings
	// differ, the run reports the difference and starts from the beginning. [Never] always starts a new run.
	Resume string
	// ResumeChanged resumes the run of Resume even if its data, code or settings differ. The new
	// settings, including the learning rate, apply from then on, and the run's config.json lists
	// each change with its time and step.
	ResumeChanged bool
	// From is the directory of a run whose weights this run starts with, by the names and shapes of parameters: the best ones,
	// or the final ones if there are no best ones. The run reports what did not match, which keeps its initial values, and fails
	// if nothing does. Learned rows of nodes match only on the same graph. Optimisers start anew, and so do epochs.
	From string `json:",omitempty"`
	// CheckpointEvery is the number of steps between checkpoints; 0 means one per minute, and
	// [None] no checkpoint.
	CheckpointEvery int
	// KeepCheckpoints is the number of checkpoints to keep; 0 means 3.
	KeepCheckpoints int
	// Restarts is how often failed workers are started again from the last checkpoint; 0 means
	// never. The second failure of a rank makes the workers fewer, and an error of the program ends
	// the run: see [multigpu.Restarts] for the rules. The weights are those of a run without a
	// failure, to the bit.
	Restarts int `json:",omitempty"`
	// TensorBoard also writes the run's metrics for TensorBoard, into the run's directory during
	// the run: "tensorboard --logdir runs" shows all such runs. See [runs.Export] for what is
	// written, and for runs without it.
	TensorBoard bool
	// Quiet shows nothing.
	Quiet bool
	// Title is the run's name in panels and lists, by default the program and the dataset.
	Title string `json:",omitempty"`
	// Tags are words by which [runs.List] finds the run, for instance with the filter "tag=baseline".
	Tags []string `json:",omitempty"`
	// Notes is a text that is kept with the run.
	Notes string `json:",omitempty"`
	// Events is called with each event of the run, one call at a time: the kinds of event Start,
	// Epoch, Log, Metrics, Print, Checkpoint and Restart.
	Events func(runs.Event) `json:"-"`
	// Cluster makes the run a job of Slurm, with one worker per rank. The run's directory, and the
	// dataset's, must be on a file system that all machines share. An interrupt makes the job write a
	// checkpoint and end; launching the same run again follows its job, or resumes it as a new one.
	Cluster Slurm `json:"-"`
}

// Loader returns the Loader and the ModelConfig that Train uses for these options on a dataset,
// for programs that train like Train. It fails if the options are invalid.
func (o TrainOptions) Loader(ds *Dataset) (Loader, ModelConfig, error) {
	a, err := o.args(ds, "")
	return loaderOf(a), a.Sizes, err
}

// loaderOf returns the Loader of Train.
func loaderOf(a recipe.Recipe) Loader {
	l := Loader{Batch: a.StepBatch(), BatchPerWorker: a.BatchPerWorker, Cooperative: a.Cooperative, InputHalo: a.Sizes.BatchDegrees}
	if l.Sampler = a.Picker(a.Fanouts); l.Sampler == nil {
		l.Fanouts = a.Fanouts
	}
	return l
}

func (o TrainOptions) args(ds *Dataset, model string) (recipe.Recipe, error) {
	if o.OwnLoss != "" {
		if _, err := losses.Get(o.OwnLoss); err != nil {
			return recipe.Recipe{}, err
		}
	}
	return recipe.Settings(o).Recipe(ds, model)
}

// BalancedWeights returns class weights for [TrainOptions].ClassWeights that give each class of the training split
// the same total weight, as scikit-learn's "balanced": rows/(classes·count). It fails for a dataset whose labels are not
// in one file, because it is in parts or on servers, or whose nodes can have several labels.
func BalancedWeights(ds *Dataset) ([]float32, error) { return recipe.BalancedWeights(ds) }

// Train trains a model on a dataset by neighbour sampling, showing loss, accuracy and workers
// live. It runs as a program ([Launch]) does: with interrupts, checkpoints and a run directory.
//
// The run's val_accuracy and test_accuracy (or val_auc and so on, by TrainOptions.Metric)
// are those of the best epoch on the validation split (the run's "best_epoch"; see
// TrainOptions.BestBy). best.safetensors holds the weights of that epoch, model.safetensors the
// final ones.
func Train(ctx context.Context, ds *Dataset, model AnyModel, o TrainOptions) (*runs.Run, error) {
	entry.Enter()
	if err := checkModel(model, "Train"); err != nil {
		return nil, err
	}
	ds, err := feed.OneWidth(ctx, ds, o.Quiet)
	if err != nil {
		return nil, err
	}
	if ds, err = tally.Named(ds, o.Metric); err != nil {
		return nil, err
	}
	args, err := o.args(ds, model.Name())
	if err != nil {
		return nil, err
	}
	return Launch(ctx, trainProgram, args, o.launch(ds, model))
}

// launch returns the options of the run.
func (o TrainOptions) launch(ds *Dataset, model AnyModel) LaunchOptions {
	return LaunchOptions{
		Data: ds, Workers: o.Workers, VirtualRanks: recipe.Settings(o).Virtual(), Threads: o.Threads, Device: o.Device, Precision: o.Precision, Seed: o.Seed,
		RunDir: o.RunDir, Scratch: o.Scratch, Resume: o.Resume, ResumeChanged: o.ResumeChanged, From: o.From, CheckpointEvery: o.CheckpointEvery, KeepCheckpoints: o.KeepCheckpoints, Restarts: o.Restarts,
		TensorBoard: o.TensorBoard, Topology: o.Topology, Features: o.Features, Cache: o.Cache, CachePolicy: o.CachePolicy, Prefetch: o.Prefetch, GPUCache: o.GPUCache, Quiet: o.Quiet, Events: o.Events, Title: cmp.Or(o.Title, model.Name()+" on "+ds.Name()), Tags: o.Tags, Notes: o.Notes, FirstGPU: o.FirstGPU, Cluster: o.Cluster,
	}
}

// trainProgram is the training loop of Train.
var trainProgram = Program("gnb.train", func(w *Worker, a recipe.Recipe) error {
	w.feed.noFeatures = a.Sizes.Embedding
	net := w.Network(a.Model, a.Sizes)
	loader := loaderOf(a)
	opt := w.optimizing(net, a.Optimizing, func() int { return w.StepsPerEpoch("train", loader) }, a.Epochs)
	loss := func(b *Batch, logits *nn.Tensor) *nn.Loss { return b.loss(logits, a.CrossEntropy) }
	if a.OwnLoss != "" {
		own, err := losses.Get(a.OwnLoss)
		w.check(err)
		loss = own
	}
	how := FullNeighbors
	if a.Eval == "sampled" {
		how = Sampled(a.Fanouts, 0, a.EvalBatches)
	}
	how.Loss = a.ByLoss
	splits := recipe.Evaluated(w.Dataset())
	// The test split is for the end; a run without a directory keeps no weights.
	late := len(splits) > 1 && !a.WatchTest && w.RunDir() != ""
	watched := splits
	if late {
		watched = splits[:1]
	}
	if a.Digest {
		w.Digest()
	}
	evaluates := a.Eval != "none" && len(splits) > 0
	if a.Eval != "none" {
		for _, split := range recipe.Empty(w.Dataset()) {
			w.Printf("the split %s is empty, so nothing is evaluated on it", split)
		}
	}
	if evaluates {
		for _, split := range splits {
			w.sayPartly(split)
		}
	}
	if evaluates && a.Epochs > 0 {
		by := watched[0] + "_" + tally.Metric(w.Dataset())
		if a.ByLoss {
			by = watched[0] + "_loss"
		}
		w.BestBy(net, Best{By: by, Minimize: a.ByLoss, Patience: a.Patience})
	}
	// evaluate measures the network, and returns its score, of which more is better.
	evaluate := func(splits ...string) float64 {
		m := w.Evaluate(net, how, splits...)
		if a.ByLoss {
			return -m.Splits[0].Loss
		}
		return m.Splits[0].Value()
	}
	if evaluates && a.Epochs == 0 {
		w.SaveBest(net, evaluate(watched...))
	}
	for epoch := range w.Epochs(a.Epochs) {
		for b := range w.Batches("train", loader) {
			w.Step(loss(b, net.Forward(b)), opt)
		}
		if evaluates && ((epoch+1)%a.EvalEvery == 0 || epoch+1 == a.Epochs) {
			opt.Observe(evaluate(watched...))
		}
	}
	if _, ok := w.saving.Best.Epoch(net.index); ok && late {
		w.withBest(net, func() { evaluate("test") })
	} else if late && evaluates {
		w.Printf("no epoch is the best by the validation split, so the test split is evaluated with the final weights")
		evaluate("test")
	}
	return nil
})

// optimizing makes the optimiser of a training of some epochs, of perEpoch steps each.
func (w *Worker) optimizing(net Network, a recipe.Optimizing, perEpoch func() int, epochs int) *Optimizer {
	steps := 0
	if a.Timed() {
		steps = perEpoch()
	}
	opt := w.Optimizer(net, a.Made(steps)).Clip(a.ClipNorm)
	if a.Schedule != (optim.Schedule{}) {
		opt.Follow(a.Schedule.Steps(float64(steps)), epochs*steps)
	}
	return opt
}

// Network makes a network of the model with the given name, for programs whose model is an
// argument.
func (w *Worker) Network(model string, s ModelConfig) *Net[nn.Model] {
	return w.NetworkOf(model, s, w.Build(model, s))
}

// Build builds the model with the given name, for instance as a part of another one; see [Worker.NetworkOf].
func (w *Worker) Build(model string, s ModelConfig) (m nn.Model) {
	d, err := models.Get(model)
	w.check(err)
	w.built(model, func() { m = d.build(s) })
	return m
}

// NetworkOf makes a network of a model that the program has built, under a name for errors and records; s is what it was
// built from.
func (w *Worker) NetworkOf(name string, s ModelConfig, m nn.Model) *Net[nn.Model] {
	return &Net[nn.Model]{Model: m, network: w.newNetwork(name, s, m)}
}

// OptionsOf returns the model of a run of [Train] and those of its options that determine its
// result. With them, and the run's directory as Resume, [Train] resumes the run. OptionsOf fails
// for a run of another program.
func OptionsOf(r *runs.Run) (model string, o TrainOptions, err error) {
	c := r.Config
	if c.Program != trainProgram.Name() {
		return "", o, fmt.Errorf("gnb: %s is a run of program %q, not of gnb.Train, so it has no TrainOptions", r.Dir, c.Program)
	}
	var a recipe.Recipe
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return "", o, fmt.Errorf("gnb: the arguments of run %s are damaged: %w", r.Dir, err)
	}
	return a.Model, TrainOptions(a.Settings(c)), nil
}
