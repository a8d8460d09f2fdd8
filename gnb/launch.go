package gnb

import (
	"time"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

// LaunchOptions configure a run of a program. The zero value runs one worker per GPU, or one
// worker on the CPU if there is no GPU.
type LaunchOptions struct {
	// Data is the dataset that [Worker.Dataset] returns on every rank; it is shared, not copied.
	Data *Dataset `json:"-"`
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
	FirstGPU int
	// Precision of the matrix products of training is "float32" (the default) or "bf16": factors
	// rounded to bfloat16 and their products summed in float32, which is faster on processors with
	// instructions for it (the run prints the method). Weights, optimiser and evaluation stay
	// float32. "tf32" works on GPUs only: factors rounded to 10 bits after the point.
	Precision string
	// Seed is the random seed; 0 means the seed 0.
	Seed uint64
	// Topology is where the edges of a divided dataset are: "replicated" (the default) maps the whole
	// graph in each worker, and with "divided" workers have their parts' edges and ask each other.
	Topology string
	// Features is where dense features are: "memory" maps their file, "disk" reads rows from it ahead of
	// use, and "" takes disk on CPUs if the dataset does not fit the free memory. It does not change
	// results. See docs/data.md.
	Features string
	// Cache is the size of the cache that the workers of a machine share, of rows of features that are on
	// disk or, for a divided dataset, that others have: for each worker a share of the rows that a worker
	// has on average ("0.2", "20%"), or bytes of the machine ("512MB"). "" means no cache for a divided
	// dataset, and a quarter of the machine's free memory for features on disk.
	Cache string
	// CachePolicy is "static" (the default), or "belady" to replace the rows of a worker's own cache by what
	// the next Prefetch steps read. It does not change results. See docs/partition.md.
	CachePolicy string
	// Prefetch is the number of steps ahead that such rows are asked for; 0 means 4. If it or Cache is set
	// for a divided dataset, each worker reads only its own parts' rows from files, as on a machine of
	// its own. Neither changes results. See docs/partition.md.
	Prefetch int
	// GPUCache is the size, for each worker, of the rows of features that stay in its GPU's memory where the
	// host gathers batches (parts, servers, disk): a share, as of Cache, or bytes of each worker; "" means none.
	// See docs/gpu.md.
	GPUCache string
	// RunDir is the run's directory, by default a new one in [runs.Dir].
	RunDir string
	// Scratch runs without a directory: nothing is saved, and the Run that Launch returns has all that is left.
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
	From string
	// CheckpointEvery is the number of steps between checkpoints; 0 means one per minute, and
	// [None] no checkpoint.
	CheckpointEvery int
	// KeepCheckpoints is the number of checkpoints to keep; 0 means 3.
	KeepCheckpoints int
	// Restarts is how often failed workers are started again from the last checkpoint; 0 means
	// never. The second failure of a rank makes the workers fewer, and an error of the program ends
	// the run: see [multigpu.Restarts] for the rules. The weights are those of a run without a
	// failure, to the bit.
	Restarts int
	// TensorBoard also writes the run's metrics for TensorBoard, into the run's directory during
	// the run: "tensorboard --logdir runs" shows all such runs. See [runs.Export] for what is
	// written, and for runs without it.
	TensorBoard bool
	// Quiet shows nothing.
	Quiet bool
	// Title is the run's name in panels and lists, by default the program and the dataset.
	Title string
	// Tags are words by which [runs.List] finds the run, for instance with the filter "tag=baseline".
	Tags []string
	// Notes is a text that is kept with the run.
	Notes string
	// Events is called with each event of the run, one call at a time: the kinds of event Start,
	// Epoch, Log, Metrics, Print, Checkpoint and Restart.
	Events func(runs.Event) `json:"-"`
	// StallAfter is the longest time that a rank may stay in one stage while the others wait for
	// it; then the run fails. 0 means 5 minutes, and a negative value no limit.
	StallAfter time.Duration

	// Cluster makes the run a job of Slurm, with one worker per rank. The run's directory, and the
	// dataset's, must be on a file system that all machines share. An interrupt makes the job write a
	// checkpoint and end; launching the same run again follows its job, or resumes it as a new one.
	Cluster Slurm
}

// Slurm describes the job that a run becomes; see [LaunchOptions.Cluster].
type Slurm = cluster.Batch

// Never is for LaunchOptions.Resume: always start a new run.
const Never = "never"
