package gnb

import (
	"time"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

// The options of training, by subject. Each subject is declared here alone: every task's options embed the subjects that
// the task has, runs record them, and commands make flags of them.

// ModelOptions are the sizes and parts of a graph network.
type ModelOptions struct {
	// Layers is the number of layers; 0 means as many as there are Fanouts, else 2.
	Layers int `json:",omitempty" flag:"layers" help:"number of layers (default 2, or one per fanout)" least:"1"`
	// Hidden is the width of the hidden layers; 0 means 64.
	Hidden int `json:",omitempty" flag:"hidden" help:"width of the hidden layers (default 64)" least:"1"`
	// Dropout is the dropout probability between layers; 0 means none, and 0.5 is usual for few labels.
	Dropout float64 `json:",omitempty" flag:"dropout" help:"dropout probability between layers (default none)"`
	// InputDropout is the dropout probability of the first layer's input; 0 means none.
	InputDropout float64 `json:",omitempty" flag:"input-dropout" help:"dropout probability of the first layer's input"`
	// ScaleInput divides the rows of sparse features by the root mean squares of their elements. Bags of words that were
	// divided by the sums of their rows, such as those of the citation graphs here, have ones again.
	ScaleInput bool `json:",omitempty" flag:"scale-input" help:"divide rows of sparse features by their root mean square"`
	// Heads is the number of attention heads of a GAT, GATv2 or HGT; 0 means 1. Hidden is the width of all heads
	// together.
	Heads int `json:",omitempty" flag:"heads" help:"attention heads of gat, gatv2, hgt, sharing --hidden (default 1)" least:"1"`
	// OutHeads is the number of heads of the last layer of a GAT or GATv2; 0 means Heads.
	OutHeads int `json:",omitempty" flag:"out-heads" help:"attention heads of the last layer (default --heads)" least:"1"`
	// Bases is the number of bases that the relations of each layer of an RGCN share; 0 means none: a matrix
	// for each relation.
	Bases int `json:",omitempty" flag:"bases" help:"bases that rgcn's relations share (default none)"`
	// Norm between layers is "none", "layer" or "batch"; "" means the task's default, which is none except for whole graphs.
	// Residual adds each layer's input to its output.
	Norm     string `json:",omitempty" flag:"norm" help:"normalisation between layers: layer, batch or none (default none)"`
	Residual bool   `json:",omitempty" flag:"residual" help:"add each layer's input to its output"`
	// Arrangement is "" for models as PyTorch Geometric has them, or "strong" for those of the strong baselines: each layer,
	// with Residual plus a linear layer of its input, then the norm, ReLU and dropout, and a linear layer to the output. See
	// [nn.Between]. PreLinear puts a linear layer to Hidden columns before the first layer.
	Arrangement string `json:",omitempty" flag:"arrangement" help:"how layers are put together: strong (default as in PyG)"`
	PreLinear   bool   `json:",omitempty" flag:"pre-linear" help:"a linear layer before the first layer"`
	// FeedForward adds a perceptron of two layers after each layer of a GINE, GatedGCN or PNA. See [nn.Plus].
	FeedForward bool `json:",omitempty" flag:"feed-forward" help:"perceptron after each layer of gine, gatedgcn or pna"`
	// JK makes the output of the outputs of all layers (jumping knowledge): "cat" of their concatenation, "max" of the
	// greatest elements, "lstm" of a weighted sum, "sum" of their sum. "" means the last layer's alone. See [nn.ModelConfig].
	JK string `json:",omitempty" flag:"jk" help:"output from all layers: cat, max, lstm or sum (default last)"`
	// BatchDegrees makes a GCN normalise by the sampled batch's degrees, as PyG does, instead of
	// the full graph's.
	BatchDegrees bool `json:",omitempty" flag:"batch-degrees" help:"gcn normalisation by the batch's degrees, not the graph's"`
	// EdgeWeights weighs the messages of SAGE (a weighted mean) and GIN (a weighted sum) by the edges' weights. GCN always
	// reads them, and the other models never do.
	EdgeWeights bool `json:",omitempty" flag:"edge-weights" help:"weighted mean (sage) or sum (gin) by edge weights"`
	// Embedding is the number of columns of learned embeddings: the input of the first layer is then a
	// trained row for each node instead of the node's features, which the dataset need not have. A step
	// reads and changes only the rows of the nodes that its batches reach, by [optim.SparseAdam] at the
	// rate LR; WeightDecay applies to the network's weights alone. 0 means the features are
	// the input. On CPUs only. See docs/models.md.
	Embedding int `json:",omitempty" flag:"embedding" help:"<columns> of learned embeddings, instead of features" least:"1"`
	// LearnMissing learns a row for each node of the types without features, beside the features of the other
	// types; otherwise they have zeros. On CPUs; features are read from memory, parts or servers.
	LearnMissing bool `json:",omitempty" flag:"learn-missing" help:"learn rows for the node types without features"`
}

// SamplerOptions say how the neighbourhoods of a batch are sampled.
type SamplerOptions struct {
	// Fanouts[0] is the hop next to the seeds; -1 takes all neighbours, 0 none.
	Fanouts []int `json:",omitempty" flag:"fanout" help:"neighbours per hop, seeds' hop first: <15,full> (default 10)"`
	// RelationFanouts are the fanouts of relations that differ from Fanouts, by name such as "cites" or
	// "paper:cites:paper", with as many hops: {"cites": {15, 10}, "writes": {5, 0}}. A node takes at most
	// its fanout of each relation's edges. Sampled evaluation takes Fanouts. See [sample.RelationFanouts].
	RelationFanouts map[string][]int `json:",omitempty" flag:"relation-fanout" help:"fanouts of one relation, repeatable: <cites=15,10>"`
	// Sampler chooses the neighbours of training batches: "uniform" (the default), or "labor" and
	// "labor-poisson" for layer-neighbour sampling, whose batches reach fewer nodes because nodes with
	// common neighbours pick the same ones: Fanouts of them each, or on average (see [Labor]). Sampled
	// evaluation is uniform. "hgt" is the sampler of package gnb/budget, which the program must import:
	// Fanouts are then numbers of nodes of each type that a step adds at each hop (nil means 512), and evaluation
	// cannot be sampled. Another name is that of a declared sampler with the methods OfFanouts([]int)
	// sample.Picker and DefaultFanout() int; see [DeclareSampler].
	Sampler string `json:",omitempty" flag:"sampler" help:"uniform, labor, labor-poisson or hgt (default uniform)"`
	// BatchDependency is the number of steps for which layer-neighbour sampling keeps a node's random
	// number, so that consecutive batches reach many of the same nodes; 0 means 1, which draws anew at
	// each step. LayerDependency gives all hops of a step the same numbers.
	BatchDependency int  `json:",omitempty" flag:"batch-dependency" help:"<steps> for which labor keeps random numbers (default 1)" least:"1"`
	LayerDependency bool `json:",omitempty" flag:"layer-dependency" help:"same random numbers of labor at all hops"`
	// TimeWindow, TimeStrict, TimeStrategy and HalfLife are for tasks whose seeds have times, such as links with AsOf; see [AsOf].
	// TimeWindow is how far a seed sees into the past, in the unit of the edges' times; 0 means without end.
	TimeWindow int64 `json:",omitempty" flag:"time-window" help:"<length> of the past that seeds with times see" least:"1"`
	// TimeStrict hides the edges of a seed's own time too.
	TimeStrict bool `json:",omitempty" flag:"time-strict" help:"hide edges of a seed's own time"`
	// TimeStrategy chooses the edges that a seed takes: "uniform", "recent", or "age", by which older edges are less probable; ""
	// means uniform.
	TimeStrategy string `json:",omitempty" flag:"time-strategy" help:"edges of seeds with times: uniform, recent or age"`
	// HalfLife is the age at which an edge is half as probable, by the strategy "age", which needs it; 0 means none.
	HalfLife int64 `json:",omitempty" flag:"half-life" help:"<age> at which edges are half as probable" least:"1"`
	// ProveTime checks that no seed with a time sees its future: see Loader.ProveTime.
	ProveTime bool `json:",omitempty" flag:"prove-time" help:"check each batch: no seed sees its future"`
	// Digest also computes the digest of all samples, which is the same for every number of
	// workers, and counts distinct edges. It costs a pass over all samples.
	Digest bool `json:",omitempty" flag:"digest" help:"also compute the digest of all samples"`
}

// OptimizerOptions say how training changes the weights: for how long, by which batches, and by which rule.
type OptimizerOptions struct {
	// Epochs is the number of epochs; 0 means 10.
	Epochs int `json:",omitempty" flag:"epochs" help:"number of epochs (default 10)" least:"1"`
	// Batch is the number of seeds per step over all workers; 0 means 1024, or a batch given by
	// BatchPerWorker.
	Batch int `json:",omitempty" flag:"batch" help:"items per step over all workers (default 1024)" least:"1"`
	// BatchPerWorker is the number of seeds per step of each worker or virtual rank, instead of
	// Batch; 0 means that Batch is used.
	BatchPerWorker int `json:",omitempty" flag:"batch-per-worker" help:"items per step and worker, instead of --batch" least:"1"`
	// Accumulate is the number of batches whose gradients a step adds up; 0 means 1. A step is then that of a batch
	// Accumulate times as large, to the bit that of Accumulate × VirtualRanks virtual ranks, and has the memory of the
	// small one and a gradient for each.
	Accumulate int `json:",omitempty" flag:"accumulate" help:"batches whose gradients one step adds up (default 1)" least:"1"`
	// LR is the learning rate of Adam; 0 means 0.01.
	LR float64 `json:",omitempty" flag:"lr" help:"learning rate (default 0.01)" positive:"true"`
	// Schedule changes the learning rate over the epochs, in which its times are counted: for instance
	// optim.Cosine(0).After(5), a warm-up of five epochs and then half a cosine down to 0. The zero value keeps it. A
	// plateau watches the value that chooses the best epoch (BestBy), which it sees at each evaluation.
	Schedule optim.Schedule `json:",omitzero" flag:"schedule" help:"learning rate: <cosine>, step:30:0.1, plateau:5:0.5, onecycle, with ,warmup:5 (default constant)"`
	// Optimizer is "adam" (the default), or "adamw", which subtracts the weight decay from the weights themselves.
	Optimizer string `json:",omitempty" flag:"optimizer" help:"adam or adamw (default adam)"`
	// WeightDecay times the weight is added to the gradient; 0 means none.
	WeightDecay float64 `json:",omitempty" flag:"weight-decay" help:"weight decay"`
	// Groups give some parameters a learning rate and a weight decay of their own, by the name of a module or parameter
	// or a pattern of names: {Match: "convs.0", LR: 0.001}, {Match: "*.bias", WeightDecay: optim.None}. A parameter belongs to the
	// first one that matches; nil means none. Learned embeddings have no group.
	Groups []optim.Group `json:",omitempty" flag:"groups" help:"parameters with rates of their own: <convs.0:lr=0.001;*.bias:decay=0>"`
	// Average keeps an average of the weights, which is then evaluated and saved in their place: optim.EMA(0.99), or
	// optim.SWA(5) for the mean of the weights after each epoch but the first five. The zero value means none.
	// Learned embeddings are not averaged.
	Average optim.Averaging `json:",omitzero" flag:"average" help:"average of the weights: <ema:0.99>, or swa:START (default none)"`
	// ClipNorm is the limit of the gradient's norm over all parameters, learned rows included; 0 means no limit.
	ClipNorm float64 `json:",omitempty" flag:"clip" help:"limit of the gradient's norm (0 means none)"`
}

// EvaluationOptions say when a network is measured during training, by what, and which epoch is the best.
type EvaluationOptions struct {
	// Eval is "full" (the default: exact, with all neighbours), "sampled" (with
	// Fanouts) or "none".
	Eval string `json:",omitempty" flag:"eval" help:"evaluation: full or none; of nodes also sampled (default full)"`
	// EvalEvery is the number of epochs between evaluations; 0 means 1.
	EvalEvery int `json:",omitempty" flag:"eval-every" help:"epochs between evaluations (default 1)" least:"1"`
	// Metric measures nodes: "accuracy", "auc" (ROC AUC), "ap" (average precision), "micro_f1", "macro_f1", "balanced_accuracy",
	// "mcc" (Matthews' correlation coefficient) or one that the program declares ([DeclareMetric]); "" means the dataset's own
	// ([dataset.Dataset.Metric]). It chooses the best epoch, and gives the values of the result their names, such as val_auc.
	Metric string `json:",omitempty" flag:"metric" help:"what chooses the best epoch: auc, ap, macro_f1, mrr, …"`
	// Patience stops training after this many epochs without improvement; 0 means never.
	Patience int `json:",omitempty" flag:"patience" help:"<epochs> without improvement before training stops (default no limit)"`
	// WatchTest also evaluates the test split at each evaluation. By default it is evaluated once, at the end, with
	// the weights of the best epoch, since one tunes on what one sees.
	WatchTest bool `json:",omitempty" flag:"watch-test" help:"also evaluate the test split at each evaluation"`
}

// PlaneOptions say where the workers have the data that they do not hold in memory of their own.
type PlaneOptions struct {
	// Topology is where the edges of a divided dataset are: "replicated" (the default) maps the whole
	// graph in each worker, and with "divided" workers have their parts' edges and ask each other.
	Topology string `json:",omitempty" flag:"topology" help:"edges of a dataset in parts: replicated or divided"`
	// Features is where dense features are: "memory" maps their file, "disk" reads rows from it ahead of
	// use, and "" takes disk on CPUs if the dataset does not fit the free memory. It does not change
	// results. See docs/data.md.
	Features string `json:",omitempty" flag:"features" help:"memory or disk (default disk if memory is too small)"`
	// Cache is the size of the cache that the workers of a machine share, of rows of features that are on
	// disk or, for a divided dataset, that others have: for each worker a share of the rows that a worker
	// has on average ("0.2", "20%"), or bytes of the machine ("512MB"). "" means no cache for a divided
	// dataset, and a quarter of the machine's free memory for features on disk.
	Cache string `json:",omitempty" flag:"cache" help:"cached rows: <20%> of a worker's, or 512MB per machine"`
	// CachePolicy is "static" (the default), or "belady" to replace the rows of a worker's own cache by what
	// the next Prefetch steps read. It does not change results. See docs/partition.md.
	CachePolicy string `json:",omitempty" flag:"cache-policy" help:"static, or belady for what the next steps read"`
	// Prefetch is the number of steps ahead that such rows are asked for; 0 means 4. If it or Cache is set
	// for a divided dataset, each worker reads only its own parts' rows from files, as on a machine of
	// its own. Neither changes results. See docs/partition.md.
	Prefetch int `json:",omitempty" flag:"prefetch" help:"<steps> ahead that such rows are asked for (default 4)"`
	// GPUCache is the size, for each worker, of the rows of features that stay in its GPU's memory where the
	// host gathers batches (parts, servers, disk): a share, as of Cache, or bytes of each worker; "" means none.
	// See docs/gpu.md.
	GPUCache string `json:",omitempty" flag:"gpu-cache" help:"rows kept on each GPU: <20%> of a worker's, 2GiB"`
}

// LaunchOptions say on what a run runs, and what is kept of it. The zero value runs one worker per GPU, or one
// worker on the CPU if there is no GPU.
type LaunchOptions struct {
	// Data is the dataset that [Worker.Dataset] returns on every rank; it is shared, not copied.
	Data *Dataset `json:"-"`
	// Workers is the number of worker processes; 0 means the value of the environment variable
	// GNB_WORKERS, else one per GPU, else one. The maximum is 64, or eight per core if that is
	// more. Under a launcher (Slurm, MPI, torchrun) each rank is a worker, and Workers is 0.
	Workers int `json:",omitempty" flag:"workers" help:"number of worker processes (default one per GPU, or one)"`
	// VirtualRanks is the number of virtual ranks per worker; 0 means 1 or, if the data is divided
	// into parts, one per part. Runs with the same Workers × VirtualRanks have the same weights to the bit.
	VirtualRanks int `json:",omitempty" flag:"virtual-ranks" help:"virtual ranks per worker (default 1, or one per part)" least:"1"`
	// Threads is the number of threads per worker; 0 means an even share of the CPUs.
	Threads int `json:",omitempty" flag:"threads" help:"threads per worker (default an even share of the CPUs)"`
	// Device is "auto" (the default), "cpu" or "cuda". Only auto falls back.
	Device string `json:",omitempty" flag:"device" help:"auto, cpu or cuda (default auto)"`
	// FirstGPU is the GPU of rank 0; 0 means the first one. The next ranks use the following GPUs,
	// and the first one after the last. Set different values for concurrent runs.
	FirstGPU int `json:",omitempty" flag:"first-gpu" help:"GPU of rank 0 (default the first)"`
	// Precision of the matrix products of training is "float32" (the default) or "bf16": factors
	// rounded to bfloat16 and their products summed in float32, which is faster on processors with
	// instructions for it (the run prints the method). Weights, optimiser and evaluation stay
	// float32. "tf32" works on GPUs only: factors rounded to 10 bits after the point.
	Precision string `json:",omitempty" flag:"precision" help:"precision of matrix products: float32, bf16, or tf32 (GPUs)"`
	// Seed is the random seed; 0 means the seed 0.
	Seed uint64 `json:",omitempty" flag:"seed" help:"random seed"`
	PlaneOptions
	// RunDir is the run's directory, by default a new one in [runs.Dir].
	RunDir string `json:",omitempty" flag:"run" help:"<directory> of the run (default a new one in runs)"`
	// Scratch runs without a directory: nothing is saved, and the Run that Launch returns has all that is left.
	Scratch bool `json:"-"`
	// Resume is the directory of a run to resume, in place. It must have the same data, code,
	// arguments, seed and precision, otherwise the error names the difference. The number of
	// workers and the device may differ; the run reports this. By default the last interrupted run in
	// [runs.Dir] with the same settings is resumed, and under a launcher one that failed or was killed; if its settings
	// differ, the run reports the difference and starts from the beginning. [Never] always starts a new run.
	Resume string `json:",omitempty" flag:"resume" help:"<run> to resume, or never (default the last interrupted run)"`
	// ResumeChanged resumes the run of Resume even if its data, code or settings differ. The new
	// settings, including the learning rate, apply from then on, and the run's config.json lists
	// each change with its time and step.
	ResumeChanged bool `json:",omitempty" flag:"resume-changed" help:"resume even if data or flags differ, and record it"`
	// From is the directory of a run whose weights this run starts with, by the names and shapes of parameters: the best ones,
	// or the final ones if there are no best ones. The run reports what did not match, which keeps its initial values, and fails
	// if nothing does. Learned rows of nodes match only on the same graph. Optimisers start anew, and so do epochs.
	From string `json:",omitempty" flag:"from" help:"<run> whose weights the new run starts with"`
	// CheckpointEvery is the number of steps between checkpoints; 0 means one per minute, and
	// -1 no checkpoint.
	CheckpointEvery int `json:",omitempty" flag:"checkpoint-every" help:"<steps> between checkpoints, -1 for none (default one per minute)"`
	// KeepCheckpoints is the number of checkpoints to keep; 0 means 3.
	KeepCheckpoints int `json:",omitempty" flag:"keep" help:"number of checkpoints to keep (default 3)" least:"1"`
	// Restarts is how often failed workers are started again from the last checkpoint; 0 means
	// never. The second failure of a rank makes the workers fewer, and an error of the program ends
	// the run: see [multigpu.Restarts] for the rules. The weights are those of a run without a
	// failure, to the bit.
	Restarts int `json:",omitempty" flag:"restarts" help:"restarts of failed workers from the last checkpoint (default none)"`
	// TensorBoard also writes the run's metrics for TensorBoard, into the run's directory during
	// the run: "tensorboard --logdir runs" shows all such runs. See [runs.Export] for what is
	// written, and for runs without it.
	TensorBoard bool `json:",omitempty" flag:"tensorboard" help:"also write TensorBoard files during the run"`
	// Quiet shows nothing.
	Quiet bool `json:",omitempty"`
	// Title is the run's name in panels and lists, by default the program and the dataset.
	Title string `json:",omitempty" flag:"title" help:"name of the run in panels and lists"`
	// Tags are words by which [runs.List] finds the run, for instance with the filter "tag=baseline".
	Tags []string `json:",omitempty" flag:"tags" help:"tags of the run, for filters: <a,b>"`
	// Notes is a text that is kept with the run.
	Notes string `json:",omitempty" flag:"notes" help:"text kept with the run"`
	// Events is called with each event of the run, one call at a time: the kinds of event Start,
	// Epoch, Log, Metrics, Metric, Print, Checkpoint and Restart.
	Events func(runs.Event) `json:"-"`
	// StallAfter is the longest time that a rank may stay in one stage while the others wait for
	// it; then the run fails. 0 means 5 minutes, and a negative value no limit.
	StallAfter time.Duration `json:",omitempty"`
	// Cluster makes the run a job of Slurm, with one worker per rank. The run's directory, and the
	// dataset's, must be on a file system that all machines share. An interrupt makes the job write a
	// checkpoint and end; launching the same run again follows its job, or resumes it as a new one.
	Cluster Slurm `json:"-"`
}

// Slurm describes the job that a run becomes; see [LaunchOptions.Cluster].
type Slurm = cluster.Batch

// Never is for LaunchOptions.Resume: always start a new run.
const Never = "never"

// TrainOptions configure [Train]. The zero value means 2 layers, hidden 64, fanout 10 per layer,
// global batch 1024, 10 epochs, Adam with learning rate 0.01, no dropout, exact evaluation of the
// validation split after every epoch and of the test split once, at the best epoch.
type TrainOptions struct {
	ModelOptions
	SamplerOptions
	OptimizerOptions
	EvaluationOptions
	LaunchOptions
	// Recipe chooses the options that are zero: "strong" by rules from the dataset's size, degrees, features, label rate and
	// homophily, and the name of a published set, such as "cora", as its best results were published. "" means the defaults.
	// See [RecipeFor].
	Recipe string `json:",omitempty" flag:"recipe" help:"options by rules: strong; or published ones of a set: <cora>"`
	// Chosen says why the recipe chose what it chose. It is set when the recipe is applied, and keeps it from being applied again.
	Chosen string `json:",omitempty"`
	// FullGraph makes each epoch one step over the whole graph, as [Worker.FullGraph] does: Batch is then the whole training
	// split, and Fanouts take all neighbours. More workers do not make it faster.
	FullGraph bool `json:",omitempty" flag:"full-graph" help:"one step per epoch over the whole graph"`
	// Cooperative is the option of [Loader].
	Cooperative bool `json:",omitempty" flag:"cooperative" help:"workers make one batch together and repeat no work"`
	// ClassWeights are the weights of the classes in the training loss, one each; nil means that all are 1. See
	// [BalancedWeights]. Metrics and validation losses are not weighted.
	ClassWeights []float32 `json:",omitempty" flag:"class-weights" help:"classes' weights in the loss: <balanced> or 1,2.5,… (default 1)"`
	// LabelSmoothing is the probability that the training loss gives to all classes alike instead of to the label;
	// 0 means none. See [nn.CrossEntropyOptions].
	LabelSmoothing float64 `json:",omitempty" flag:"label-smoothing" help:"probability spread over all classes (default none)"`
	// OwnLoss is the name of the training loss, one that [DeclareLoss] has declared; "" means the cross-entropy (binary, if
	// a node can have several labels). Validation losses are cross-entropies.
	OwnLoss string `json:",omitempty"`
	// EvalBatches is the largest number of batches of a sampled evaluation; 0 means all.
	EvalBatches int `json:",omitempty" flag:"eval-batches" help:"batches of a sampled evaluation (default all)"`
	// BestBy chooses the epoch whose weights and metrics the run reports: the one with the best
	// metric on the validation split ("metric", the default) or with the lowest loss on it
	// ("loss").
	BestBy string `json:",omitempty" flag:"best-by" help:"choice of the best epoch: highest metric or lowest loss"`
}
