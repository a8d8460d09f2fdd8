package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Job is a run to plan, with all defaults of its options filled in. gnb.Plan makes it from the options of
// gnb.Train, and TaskOf.Plan from those of a task.
type Job struct {
	Data *dataset.Dataset
	// Task is the name of the run's task, if it is not to classify nodes. Only the task can make its network and its batches, so
	// that all figures come from the Trier: Model, Build, Fanouts, Picker, Batch and PerWorker are not used.
	Task  string
	Model string          // its name
	Build func() nn.Model // makes a network of the job's sizes
	// Embedding is the number of columns of the learned rows of nodes that are the input, 0 if features are.
	Embedding int

	Fanouts     []int
	Picker      sample.Picker // of training; nil means Fanouts, by which evaluations sample
	Batch       int           // seeds per step over all workers; 0 means 1024, or that of BatchPerWorker
	PerWorker   int           // seeds per step of each worker or virtual rank; 0 means that Batch is used
	Cooperative bool
	Epochs      int
	Eval        string // "full", "sampled" or "none"
	EvalEvery   int
	Saves       bool // the run has a directory, with checkpoints and best weights

	Workers, Virtual, Threads int
	// Here is the number of workers on this machine; 0 means all. First is the rank of the first of them.
	Here      int
	First     int
	GPU       bool   // the workers use GPUs
	FirstGPU  int    // the GPU of the first worker of this machine
	Precision string // "float32", "bf16" or "tf32"
	Divided   bool   // workers ask each other for edges
	Disk      bool   // features are read from disk
	Cache     string // gnb.TrainOptions.Cache
	// CachePolicy is gnb.TrainOptions.CachePolicy.
	CachePolicy string
	Prefetch    int    // gnb.TrainOptions.Prefetch
	GPUCache    string // gnb.TrainOptions.GPUCache
	Seed        uint64

	// Trier computes steps in workers; nil if nothing is to be tried.
	Trier Trier

	mine     bool    // only the workers of this machine count
	imagined bool    // the GPUs of the run are not here
	at       GPU     // where the dataset is in a run on GPUs
	network  Network // between the machines
	free     int64   // memory of this machine
	parts    *parts  // of a dataset in parts; made by open
}

// ahead is the number of batches that a loop prepares ahead: gnb.Loader.Ahead of gnb.Train.
const ahead = 2

// world is the number of virtual ranks.
func (j *Job) world() int { return j.Workers * j.Virtual }

// here is the number of workers on this machine.
func (j *Job) here() int { return cmp.Or(j.Here, j.Workers) }

// learnedRows is the number of learned rows on this machine: its share of the nodes.
func (j *Job) learnedRows() int { return (j.Data.Nodes()*j.here() + j.Workers - 1) / j.Workers }

// far reports whether servers have all features.
func (j *Job) far() bool { return divided.IsFar(j.Data) }

// elsewhere reports whether workers lack some features, which others or servers have. A plan takes it that each of several
// machines has its own parts alone.
func (j *Job) elsewhere() bool {
	switch {
	case !divided.Is(j.Data) || j.far():
		return j.far()
	case !j.mine && j.machines() > 1:
		return true
	}
	return j.lacksParts()
}

// lacksParts reports whether parts of the dataset are on other machines alone.
func (j *Job) lacksParts() bool {
	p, err := j.open()
	return err == nil && !p.book.HasAll()
}

// cooperates reports whether workers make batches together.
func (j *Job) cooperates() bool { return j.Cooperative && j.Workers > 1 }

// inputCols returns the number of columns of a node's input.
func (j *Job) inputCols() int { return cmp.Or(j.Embedding, j.Data.FeatureDim()) }

// gathered reports whether batches have their features in memory of their own.
func (j *Job) gathered() bool { return j.Disk || j.Data.Meta.Parts != nil }

// batch returns the number of seeds per step, and steps the number of steps of an epoch.
func (j *Job) batch(seeds int) int {
	b := j.Batch
	if b == 0 {
		b = 1024
		if j.PerWorker > 0 {
			b = min(j.PerWorker, max(1, seeds)) * j.world()
		}
	}
	return min(b, max(1, seeds))
}

func (j *Job) steps(seeds int) int {
	b := j.batch(seeds)
	return (seeds + b - 1) / b
}

// samplerName describes the sampler of training, "" for uniform sampling.
func (j *Job) samplerName() string {
	l, ok := j.Picker.(sample.Labor)
	by := ""
	if r, is := j.Picker.(*sample.RelationFanouts); is {
		by = "other fanouts of " + phrase.Count(len(r.By), "relation")
		if r.Labor == nil {
			return by
		}
		l, ok, by = *r.Labor, true, ", "+by
	}
	if s, is := j.Picker.(fmt.Stringer); is && !ok {
		return s.String()
	}
	if !ok {
		return ""
	}
	name := "labor"
	if l.Poisson {
		name = "labor-poisson"
	}
	if l.BatchDependency > 1 {
		name += fmt.Sprintf(", batch dependency %d", l.BatchDependency)
	}
	if l.LayerDependency {
		name += ", layer dependency"
	}
	return name + by
}

// check refuses jobs that cannot be planned.
func (j *Job) check() error {
	switch {
	case j.Data == nil:
		return errors.New("plan: it needs a dataset; get one from gnb.Load")
	case j.Data.Graph == nil && j.far():
		return fmt.Errorf("plan: the edges of %s are at its servers, and batches are predicted by sampling them; load %s", j.Data.Name(), j.Data.Meta.Parts.WithCopy("topology"))
	case j.Data.Graph == nil && j.Data.Meta.Parts != nil && j.cooperates():
		return fmt.Errorf("plan: a cooperative batch needs the whole graph in each worker: %s, or leave Cooperative out", j.Data.WhyNoGraph())
	case j.Data.Graph == nil && j.Data.Meta.Parts == nil:
		return fmt.Errorf("plan: %s", j.Data.WhyNoGraph())
	case j.Data.Meta.Parts != nil && j.Data.Meta.FeatureFormat != "":
		return fmt.Errorf("plan: %s has sparse features in parts, whose rows are not known here; plan the undivided dataset", j.Data.Name())
	case feed.EmbeddingBytes(j.Data.Nodes(), j.Embedding) > 1<<46 && j.Embedding > 0:
		return fmt.Errorf("plan: learned embeddings of %d nodes in %d columns take more than 64 TiB; take fewer columns", j.Data.Nodes(), j.Embedding)
	case j.Build == nil || len(j.Fanouts) == 0:
		return errors.New("plan: it needs a model and fanouts")
	}
	return nil
}

// sampled is what one virtual rank's share of a step was predicted from.
type sampled struct {
	b      *sample.Batch
	remote float64 // share of the inputs that other workers or servers have
	asks   []Asks  // of each hop, the seeds' first, in a run that asks other workers for edges
	rank   int
}

// sampler returns the sampler of training, and the training nodes.
func (j *Job) sampler() (sample.Batcher, []int32, error) {
	ids, err := j.Data.Split("train")
	if err != nil {
		return nil, nil, err
	}
	picker := j.Picker
	if picker == nil {
		picker = sample.Fanouts(j.Fanouts)
	}
	c := sample.Config{Picker: picker, Seed: j.Seed, Threads: j.Threads, Transpose: true, TransposeInput: j.Embedding > 0}
	if j.Data.Graph == nil {
		s, err := j.divided(c)
		return s, ids, err
	}
	s, err := sample.New(j.Data.Graph, c)
	return s, ids, err
}

// sampleShare samples a share of a step, whose seeds are all.
func sampleShare(s sample.Batcher, epoch, step int, all, seeds []int32) (b *sample.Batch, err error) {
	err = mapped.Guard(func() (err error) {
		if s, is := s.(*sample.Sampler); is {
			if err := s.ForStep(epoch, step, sample.Seeds{IDs: all}); err != nil {
				return err
			}
		}
		b, err = s.Sample(epoch, step, sample.Seeds{IDs: seeds})
		return err
	})
	return b, err
}

// shares samples the shares of the first virtual rank of a number of steps, with the random draws of training; for a dataset in
// parts, those of each virtual rank in turn; for a cooperative batch, the whole one. At most budget is spent after the first. each is
// called with every share, which is valid until it returns.
func (j *Job) shares(ctx context.Context, steps int, budget time.Duration, each func(sampled) error) error {
	s, ids, err := j.sampler()
	if err != nil {
		return err
	}
	ranks, err := j.views()
	if err != nil {
		return err
	}
	batch, epochSteps := j.batch(len(ids)), j.steps(len(ids))
	order := ids
	begin := time.Now()
	for i := range steps {
		if i > 1 && time.Since(begin) > budget || epochSteps == 0 {
			return nil
		}
		epoch, step := i/epochSteps, i%epochSteps
		if step == 0 {
			order = sample.EpochOrder(j.Seed, epoch, ids)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		seeds := order[step*batch : min((step+1)*batch, len(ids))]
		all := seeds
		var got sampled
		var parts *feed.Parts
		if len(ranks) > 0 {
			of := ranks[0]
			if !j.cooperates() { // parts do not have the same seeds
				of = ranks[i%len(ranks)]
			}
			parts, got.rank = of.parts, of.rank
		}
		switch {
		case j.cooperates():
		case parts != nil:
			seeds = parts.Share(seeds, i/len(ranks)%j.Virtual)
		default:
			lo, hi := sample.Share(len(seeds), 0, j.world())
			seeds = seeds[lo:hi]
		}
		if got.b, err = sampleShare(s, epoch, step, all, seeds); err != nil {
			return err
		}
		b := got.b.Blocks[0]
		switch {
		case j.far():
			got.remote = 1
		case parts != nil && !j.cooperates():
			away := 0
			for _, v := range b.SrcIDs() {
				if !parts.Mine(v) {
					away++
				}
			}
			got.remote = float64(away) / float64(max(1, b.NumSrc))
		}
		if parts != nil && j.Divided {
			got.asks = j.asks(got.b.Blocks, got.rank, func(v int32) int { return parts.Owner(v, j.Workers) })
		}
		if err := each(got); err != nil {
			return err
		}
		got.b.Release()
	}
	return nil
}

// asks returns what a rank asks the others for at each hop of a batch: a request to each, whether or not it has nodes of the hop,
// and its reply.
func (j *Job) asks(blocks []*graphops.Block, rank int, owner func(int32) int) (all []Asks) {
	picker := j.Picker
	if picker == nil {
		picker = sample.Fanouts(j.Fanouts)
	}
	for _, b := range slices.Backward(blocks) {
		var nodes, edges [2]int // of others, and of those on other machines
		for d := range b.NumDst {
			if of := owner(b.DstID(d)); of != rank {
				nodes[0]++
				edges[0] += b.InDegree(d)
				if j.machineOf(of) != j.machineOf(rank) {
					nodes[1]++
					edges[1] += b.InDegree(d)
				}
			}
		}
		request, reply := sample.HopSizes(j.Workers-1, picker, nodes[0], edges[0], j.Data.EdgeShape())
		a := Asks{Messages: 2 * (j.Workers - 1), Asked: int64(request), Answered: int64(reply)}
		if j.machines() > 1 {
			request, reply = sample.HopSizes(j.Workers-j.here(), picker, nodes[1], edges[1], j.Data.EdgeShape())
			a.far = int64(request + reply)
		}
		all = append(all, a)
	}
	return all
}
