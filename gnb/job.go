package gnb

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/multigpu"
)

// job is what a worker is started with.
type job struct {
	Program string          `json:"program"`
	Args    json.RawMessage `json:"args"`
	Seed    uint64          `json:"seed"`
	Virtual int             `json:"virtual"` // virtual ranks of each worker
	computing
	jobData
	recordFiles
}

// on returns the settings of the job as the first rank of a machine knows them, with the dataset that is there.
func (j job) on(p *multigpu.Process, ds *dataset.Dataset) resolved {
	o := j.Plane
	r := resolved{
		LaunchOptions: LaunchOptions{
			Data: ds, Workers: p.World, VirtualRanks: j.Virtual, Threads: p.Threads, FirstGPU: j.FirstGPU, Precision: "float32", Seed: j.Seed,
			PlaneOptions: PlaneOptions{Features: o.Features, Cache: o.Cache, CachePolicy: o.CachePolicy, Prefetch: o.Prefetch, GPUCache: o.GPUCache},
		},
		GPU: j.Device != "", Divided: j.Divided, Disk: o.Features == feed.FeaturesOnDisk, Here: p.LocalWorld, First: p.Rank,
	}
	if j.BF16 {
		r.Precision = "bf16"
	}
	return r
}

// computing is what a worker computes on.
type computing struct {
	BF16     bool   `json:"bf16,omitempty"`
	TF32     bool   `json:"tf32,omitempty"`
	Device   string `json:"device,omitempty"` // "auto" or "cuda"; "" for the CPU
	FirstGPU int    `json:"first_gpu,omitempty"`
}

// jobData is where a worker finds the dataset.
type jobData struct {
	DataDir      string `json:"data_dir,omitempty"`
	SplitSet     int    `json:"split_set,omitempty"` // split of the dataset in DataDir
	Metric       string `json:"metric,omitempty"`    // by which networks are measured, if it is not the dataset's own
	DataInMemory bool   `json:"data_in_memory,omitempty"`
	Divided      bool   `json:"divided,omitempty"` // ranks ask each other for edges
	// Servers is the address of the dataset's servers, which the user of the launching process has named.
	Servers string `json:"servers,omitempty"`
	// Plane is how ranks get rows of features that they do not have.
	Plane feed.PlaneOptions `json:"plane"`
}

// Open opens the dataset, from its directory or from the first of the files that the worker has
// inherited; nil if the run has none.
func (d jobData) Open(inherited []*os.File) (*dataset.Dataset, error) {
	ds, err := d.open(inherited)
	if err != nil || ds == nil || d.Metric == "" {
		return ds, err
	}
	return ds.WithMetric(d.Metric)
}

func (d jobData) open(inherited []*os.File) (*dataset.Dataset, error) {
	switch {
	case d.DataDir != "":
		if d.Servers != "" {
			divided.NameServers(d.Servers)
		}
		ds, err := dataset.Open(d.DataDir)
		if err != nil || d.SplitSet == 0 {
			return ds, err
		}
		return ds.WithSplitSet(d.SplitSet)
	case d.DataInMemory:
		if len(inherited) == 0 {
			return nil, errors.New("gnb: the dataset's memory file was not inherited")
		}
		return dataset.OpenFD(inherited[0])
	}
	return nil, nil
}

// recordFiles is what a worker reads and writes of the run's directory.
type recordFiles struct {
	RunDir          string          `json:"run_dir,omitempty"`
	Checkpoint      string          `json:"checkpoint,omitempty"`
	From            *runs.From      `json:"from,omitempty"`      // whose weights the run starts with
	FromRows        bool            `json:"from_rows,omitempty"` // their dataset is this one
	Handed          bool            `json:"handed,omitempty"`    // the checkpoint is the last of the run's files
	CheckpointEvery int             `json:"checkpoint_every"`
	KeepCheckpoints int             `json:"keep_checkpoints"`
	RunID           string          `json:"run_id,omitempty"`
	Identity        string          `json:"identity,omitempty"` // identity of the run's configuration
	Changed         bool            `json:"changed,omitempty"`  // changed since the checkpoint
	Config          json.RawMessage `json:"config,omitempty"`   // new configuration of a run resumed with changes; rank 0 records it
}
