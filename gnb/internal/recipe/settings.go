package recipe

import (
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

// Settings have the fields of gnb.TrainOptions, which documents them: package gnb converts one into
// the other.
type Settings struct {
	Layers          int
	Hidden          int
	Dropout         float64
	InputDropout    float64
	Heads           int
	OutHeads        int
	Bases           int
	Norm            string
	Residual        bool
	JK              string
	BatchDegrees    bool
	EdgeWeights     bool
	Fanouts         []int
	RelationFanouts map[string][]int
	Sampler         string
	BatchDependency int
	LayerDependency bool
	Embedding       int
	LearnMissing    bool
	Batch           int
	BatchPerWorker  int
	Accumulate      int
	Cooperative     bool
	Epochs          int
	LR              float64
	Schedule        optim.Schedule
	Optimizer       string
	WeightDecay     float64
	Groups          []optim.Group
	Average         optim.Averaging
	ClipNorm        float64
	ClassWeights    []float32
	LabelSmoothing  float64
	OwnLoss         string
	Eval            string
	EvalEvery       int
	EvalBatches     int
	Metric          string
	BestBy          string
	Patience        int
	WatchTest       bool
	Digest          bool
	Workers         int
	VirtualRanks    int
	Threads         int
	Device          string
	FirstGPU        int
	Precision       string
	Seed            uint64
	Topology        string
	Features        string
	Cache           string
	CachePolicy     string
	Prefetch        int
	GPUCache        string
	RunDir          string
	Scratch         bool
	Resume          string
	ResumeChanged   bool
	From            string
	CheckpointEvery int
	KeepCheckpoints int
	Restarts        int
	TensorBoard     bool
	Quiet           bool
	Title           string
	Tags            []string
	Notes           string
	Events          func(runs.Event)
	Cluster         cluster.Batch
}
