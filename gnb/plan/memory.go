package plan

import (
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Item is a part of a run's memory.
type Item struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Memory is what a run takes of a machine's memory, without pages of files, which the kernel can drop.
type Memory struct {
	// Worker are the parts that every worker has, and Shared those that all have together.
	Worker []Item `json:"worker"`
	Shared []Item `json:"shared"`
	// Mapped are the bytes of the dataset's files, which workers map: fast while they stay in memory.
	Mapped int64 `json:"mapped"`
}

// PerWorker is the memory of one worker alone.
func (m Memory) PerWorker() int64 { return sumOf(m.Worker) }

// Total is the memory of all workers of the machine, and of the process that starts them.
func (m Memory) Total(workers int) int64 { return int64(workers)*sumOf(m.Worker) + sumOf(m.Shared) }

func sumOf(items []Item) (n int64) {
	for _, i := range items {
		n += i.Bytes
	}
	return n
}

const (
	processItem  = "process"
	garbageItem  = "garbage"
	launcherItem = "the process that starts the workers"
	datasetItem  = "the dataset, which is in memory"
	outputsItem  = "evaluation's outputs of all nodes"
	copiesItem   = "copies for checkpoints"

	evaluationItem = "evaluation"
)

// Sizes of a process, measured on Linux with a graph of 34 nodes: the runtime, its stacks and caches, what a worker makes
// before its first step, and each thread's stacks, caches and buffers of matrix products.
const (
	processBytes  = 7 << 19
	threadBytes   = 5 << 17
	launcherBytes = 7 << 20
	// stepGarbage is what a step leaves besides the arrays that dry passes count: tensors' headers, closures and events.
	stepGarbage = 16 << 10
	// poolBytes is what a cache of Belady's policy knows of each row: an entry, its place in a map, and candidates.
	poolBytes = 120
)

// rowBytes returns the mean size of a node's features.
func rowBytes(ds *dataset.Dataset) int64 {
	switch x := ds.SparseFeatures; {
	case ds.Features != nil && ds.Features.Half():
		return 2 * int64(ds.Features.Cols)
	case ds.Features != nil:
		return 4 * int64(ds.Features.Cols)
	case x != nil && x.Rows > 0:
		n := 4 * int64(len(x.Indices)+len(x.Values))
		return 8 + n/int64(x.Rows)
	case ds.Meta.Parts != nil && ds.Meta.Parts.FeatureType == "f16":
		return 2 * int64(ds.FeatureDim())
	}
	return 4 * int64(ds.FeatureDim())
}

// sizes is the memory of a worker for rows that it does not have, as the run computes it.
func (j *Job) sizes(l *load) feed.Sizes {
	o := feed.PlaneOptions{Cache: j.Cache, CachePolicy: j.CachePolicy, Prefetch: j.Prefetch}
	if j.Disk {
		o.Features = feed.FeaturesOnDisk
	}
	inputs := l.inputs * float64(j.Virtual)
	return o.Sizes(feed.Reads{
		Own: float64(j.Data.Nodes()) / float64(j.Workers), Nodes: j.Data.Nodes(), Remote: l.remote * inputs, Inputs: inputs,
		RowBytes: rowBytes(j.Data), Elsewhere: j.elsewhere(), Servers: j.far(), Free: j.free, Local: j.here(),
	})
}

// cache is the memory of the cache that the workers of this machine share.
func (j *Job) cache(s feed.Sizes) int64 {
	return min(s.Cache*int64(j.here()), int64(j.Data.Nodes())*rowBytes(j.Data))
}

// rowSlots is the number of batches that have rows of their own at a time: those that are gathered and not done, with the one in use.
func (j *Job) rowSlots() int64 {
	switch {
	case j.Disk:
		return 2
	case j.sizes(&load{}).Ahead > 0:
		return ahead + 1
	}
	return ahead + 2
}

// memory adds up what a run takes of a machine: what its dry passes hold, and the arrays that the run makes for it.
func (j *Job) memory(l *load) Memory {
	p, ds := 4*int64(l.params), j.Data
	steps, sizes := j.steps(j.seedsOf()), j.sizes(l)
	batches := int64(min(max(ahead, sizes.Ahead*j.Virtual+sizes.Late)+2, steps*j.Virtual))
	var m Memory
	add := func(to *[]Item, name string, bytes int64) {
		if bytes > 0 {
			*to = append(*to, Item{name, bytes})
		}
	}
	add(&m.Worker, processItem, processBytes+int64(j.Threads)*threadBytes)
	add(&m.Worker, "weights", 2*p)
	add(&m.Worker, "optimiser state", 2*p)
	table := 4 * int64(ds.Nodes())
	if ds.Nodes() > 1<<23 {
		table = 16 * 2 * int64(l.inputs)
	} else if j.Picker != nil {
		table += table / 3 // the levels of sample.Labor
	}
	if feed.NeedsSteps(j.Picker) {
		table += 4 * int64(ds.Nodes()) // whether a node is in a step
	}
	add(&m.Worker, "sampler's tables", table+24*int64(l.inputs))
	add(&m.Worker, "batches prepared", batches*l.batch+min(j.rowSlots(), int64(steps*j.Virtual))*l.rows)
	if !j.GPU {
		add(&m.Worker, "activations and their gradients", l.held)
	}
	// A step's learned rows as the pass reads them, and their gradients as they are sent, got and added up; each has room for a quarter
	// more rows.
	add(&m.Worker, "learned rows of a batch", 4*int64(j.Embedding)*int64(l.inputs)*int64(1+3*j.Virtual)*5/4)
	of := "other workers' rows"
	switch {
	case j.Disk:
		of = "rows on disk"
	case j.far():
		of = "the servers' rows"
	}
	if sizes.Alone {
		add(&m.Worker, "cache of "+of, sizes.Cache+poolBytes*(sizes.Cache/max(1, rowBytes(ds)))+4*int64(ds.Nodes()))
	}
	add(&m.Worker, "rows asked for ahead", sizes.Window)
	add(&m.Worker, "buffers of "+of, sizes.Buffers)
	evaluation := l.evalled.batch
	if !j.GPU {
		evaluation += l.evalled.held
	}
	if j.Disk && j.Eval == "full" { // the rows of a chunk of the first layer
		evaluation += sizes.Window
	}
	add(&m.Worker, evaluationItem, evaluation)
	add(&m.Worker, garbageItem, j.garbage(l, steps))
	add(&m.Shared, "gradients of all ranks and their sum", p*int64(j.here()*j.Virtual+1))
	add(&m.Shared, outputsItem, l.evalled.matrices)
	if !sizes.Alone {
		add(&m.Shared, "cache of "+of, j.cache(sizes))
	}
	if j.Embedding > 0 {
		add(&m.Shared, "learned embeddings with their optimiser state", feed.EmbeddingBytes(j.learnedRows(), j.Embedding))
	}
	if here := j.here(); j.Embedding > 0 && here > 1 { // ids and gradients of this step and of the one before
		add(&m.Shared, "messages of learned rows", 2*int64((here-1)*j.Virtual)*int64(l.inputs)*4*int64(j.Embedding+1))
	}
	name, bytes := j.copies(l)
	add(&m.Shared, name, bytes)
	add(&m.Shared, launcherItem, launcherBytes)
	if ds.Dir() == "" {
		add(&m.Shared, datasetItem, 2*ds.Bytes()) // as it was made, and as workers share it
	} else {
		m.Mapped = ds.Bytes()
		if parts, bytes := ds.PartBytes(); parts > 0 { // the share of this machine's ranks, of parts like those here
			m.Mapped += bytes / int64(parts) * int64(ds.Meta.Parts.Count) * int64(j.here()) / int64(j.Workers)
		}
		if j.Disk {
			m.Mapped -= int64(ds.Nodes()) * rowBytes(ds)
		}
	}
	return m
}

// copies is the memory of rank 0 for what it writes into the run's directory.
func (j *Job) copies(l *load) (name string, bytes int64) {
	if !j.Saves {
		return "", 0
	}
	bytes = 16*int64(l.params) + feed.SavedEmbeddingBytes(j.Data.Nodes(), j.Embedding)
	if j.Eval == "none" { // no weights are the best
		return copiesItem, bytes / 4 * 3
	}
	// The best rows are read, and the last ones kept aside, for the test at the end.
	return copiesItem + " and best weights", bytes + 8*int64(j.Data.Nodes())*int64(j.Embedding)
}

// loopGarbage is what the loops over batches leave: each makes its own window of rows asked for ahead.
func (j *Job) loopGarbage(l *load) int64 {
	s := j.sizes(l)
	return int64(max(0, min(j.Epochs, 1<<10)-1)) * (s.Window + s.Buffers)
}

// garbage is what a worker's heap holds of what steps and evaluations leave, at most.
func (j *Job) garbage(l *load, steps int) int64 {
	e, times := &l.evalled, int64(j.evaluations())
	all := int64(min(j.Epochs, 1<<20))*int64(steps*j.Virtual)*(stepGarbage+l.made) + l.left + j.loopGarbage(l)
	if times > 0 {
		all += e.left + times*(int64(e.steps)*(stepGarbage+e.made)+e.made)
	}
	return min(all, entry.HeapRoom)
}
