package gnb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/multigpu"
)

// Digest turns on the digest of sampling for the rest of the program: a SHA-256 over everything
// that all ranks sample in [Worker.Batches]. It depends on seed, graph, fanouts and batch, but not
// on workers, threads or device. The run's result holds it as Text["digest"], and the number of
// distinct edges as "unique_edges". It is part of every checkpoint. A run that is resumed from a
// checkpoint without it has none, because it saw only part of the samples.
func (w *Worker) Digest() {
	if w.digest != nil || w.saving.Resumed.There() && !w.saving.Kept.Has(digestName) {
		return
	}
	d := tally.NewDigest()
	w.check(w.saving.Kept.Add(digestName, d.Digest, entry.CallSite()))
	w.digest = d
}

// digestName is the name of the digest in a checkpoint.
const digestName = "gnb.Digest"

// addDigest adds one batch of each rank. Collective.
func (w *Worker) addDigest(d *tally.Digest, b *Batch) {
	w.check(d.Add(w.comm, w.site("digest"), b.Batch, b.global, b.EndsStep))
}

// SampleOptions configure [Sample].
type SampleOptions struct {
	Fanouts         []int            // nil means [10, 10]
	Sampler         string           // the option of TrainOptions
	BatchDependency int              // the option of TrainOptions; 0 means 1
	LayerDependency bool             // the option of TrainOptions
	Split           string           // "" means "train"
	Batch           int              // seeds per step over all workers; 0 means 1024
	RelationFanouts map[string][]int // the option of TrainOptions
	Cooperative     bool             // the option of Loader
	Topology        string           // the option of LaunchOptions
	Cache           string           // the option of LaunchOptions; with it or Prefetch, the time includes that of getting rows
	CachePolicy     string           // the option of LaunchOptions
	Prefetch        int              // the option of LaunchOptions; 0 means 4
	Seed            uint64           // 0 means the seed 0
	Epoch           int              // 0 means the first epoch
	Steps           int              // 0 means the whole split
	Workers         int              // 0 means 1, or the ranks of a launcher
	Threads         int              // threads per worker; 0 means an even share of the CPUs
	Device          string
	Quiet           bool
}

// SampleResult is the result of [Sample].
type SampleResult struct {
	Batches int     `json:"batches"`
	Edges   int64   `json:"edges"`
	Nodes   int64   `json:"nodes"` // sum over batches of the rows of features that workers read
	Seconds float64 `json:"seconds"`
	// EdgesPerSecond is the edges of all workers divided by the longest time of any worker.
	EdgesPerSecond float64 `json:"edges_per_second"`
	// Digest is the SHA-256 of everything sampled; see [Worker.Digest].
	Digest string `json:"digest"`
	// UniqueEdges and UniqueNodes are the edges and nodes of one worker with the same batches: workers
	// with batches of their own sample some edges, and read some rows, more than once.
	UniqueEdges int64 `json:"unique_edges"`
	UniqueNodes int64 `json:"unique_nodes"`
	// MovedBytes is what workers get from each other: ids and features of cooperative batches, and the
	// edges of a divided topology.
	MovedBytes int64 `json:"moved_bytes"`
	// Rows counts the rows of features by source; nil if workers read files.
	Rows *runs.FeatureRows `json:"rows,omitempty"`
}

func (r SampleResult) String() string {
	return fmt.Sprintf("%d batches of %d edges (%d of them different within a step) and %d nodes in %.2f s, %.3g edges/s\ndigest %s",
		r.Batches, r.Edges, r.UniqueEdges, r.Nodes, r.Seconds, r.EdgesPerSecond, r.Digest)
}

type sampleArgs struct {
	Fanouts []int
	feed.Sampling
	Split               string
	Batch, Epoch, Steps int
	Cooperative         bool
}

// Sample samples an epoch of mini-batches without training on them. It measures the cost of a
// setting, and computes a digest by which to compare two machines or versions. It runs twice: once
// for time, once for the digest.
func Sample(ctx context.Context, ds *Dataset, o SampleOptions) (SampleResult, error) {
	entry.Enter()
	var r SampleResult
	if multigpu.InWorker() {
		return r, entry.ErrWorker
	}
	if ds == nil {
		return r, noDataset("Sample")
	}
	if err := getdata.Opened(ctx, ds, true); err != nil {
		return r, err
	}
	if err := cmp.Or(entry.CheckAll(
		entry.Whole("Epoch", o.Epoch, 0, maxEpochs-1), entry.Whole("Steps", o.Steps, 0, maxCount), entry.Whole("Batch", o.Batch, 1, maxCount),
	), LaunchOptions{Workers: o.Workers, Threads: o.Threads}.inBounds()); err != nil {
		return r, err
	}
	if err := sample.Fanouts(o.Fanouts).Check(); err != nil {
		return r, fmt.Errorf("gnb: Fanouts: %w", err)
	}
	sampling, err := feed.Sampling{Sampler: o.Sampler, BatchDependency: o.BatchDependency, LayerDependency: o.LayerDependency}.Normal()
	if err != nil {
		return r, err
	}
	if o.Fanouts == nil {
		o.Fanouts = []int{sampling.Fanout(), sampling.Fanout()}
	}
	if sampling, err = sampling.ByRelation(ds.Schema(), o.Fanouts, o.RelationFanouts); err != nil {
		return r, err
	}
	args := sampleArgs{o.Fanouts, sampling, cmp.Or(o.Split, "train"), cmp.Or(o.Batch, 1024), o.Epoch, o.Steps, o.Cooperative}
	ranks, err := entry.Ranks(o.Workers, nil)
	if err != nil {
		return r, err
	}
	workers := cmp.Or(o.Workers, ranks, 1)
	run, err := Launch(ctx, sampleProgram, args, LaunchOptions{
		Data: ds, Scratch: true, Workers: workers, VirtualRanks: virtualOfBatches(o.Cooperative), Threads: o.Threads, Device: o.Device, Seed: o.Seed, Quiet: o.Quiet, Title: "sampling " + ds.Name(),
		PlaneOptions: PlaneOptions{Topology: o.Topology, Features: feed.FeaturesInMemory, Cache: o.Cache, CachePolicy: o.CachePolicy, Prefetch: o.Prefetch},
	})
	if err != nil {
		return r, err
	}
	v := run.Value
	return SampleResult{
		Batches: int(v("batches")), Edges: int64(v("edges")), Nodes: int64(v("nodes")), Seconds: v("seconds"),
		EdgesPerSecond: v("edges") / v("seconds"), Digest: run.Result.Text["digest"], UniqueEdges: int64(v("unique_edges")), UniqueNodes: int64(v("unique_nodes")),
		MovedBytes: int64(v("moved")), Rows: run.Result.Rows,
	}, nil
}

var sampleProgram = Program("gnb.sample", func(w *Worker, a sampleArgs) error {
	loader := Loader{Sampler: a.Picker(a.Fanouts), Batch: a.Batch, MaxSteps: a.Steps, Cooperative: a.Cooperative}
	if loader.Sampler == nil {
		loader.Fanouts = a.Fanouts
	}
	p, err := w.plan(a.Split, loader)
	if err != nil {
		return err
	}
	s, done, err := w.sampler(p.Loader, philox.Sample)
	if err != nil {
		return err
	}
	w.stage(runfile.StageSample)
	ids := sample.EpochOrder(w.job.Seed, a.Epoch, p.ids)
	feed.Foresee(s, a.Epoch, 0, p.steps, func(step int) []int32 { return p.seedsOf(ids, step) })
	progress := w.Progress("sample", p.steps)
	w.Barrier()
	start := time.Now()
	for step := range p.steps {
		if w.feed.fetcher != nil { // the time includes that of rows of features
			for b, err := range w.load(p, philox.Sample, a.Epoch, 0, 0) {
				w.check(err)
				progress(b.Step + 1)
			}
			w.stage(runfile.StageSample)
			break
		}
		for v := range w.job.Virtual {
			b := w.sampleShare(s, p, ids, a.Epoch, 0, step, v)
			if b.err != nil {
				return b.err
			}
			b.release()
		}
		progress(step + 1)
	}
	took := make([]float64, w.World()+1)
	took[w.Rank()], took[w.World()] = time.Since(start).Seconds(), float64(w.team().Moved())
	done()
	w.AllReduce(took)
	d := tally.NewDigest()
	counts, err := w.countRepeated(p, a.Epoch, p.steps, func(step int, b *Batch) {
		w.addDigest(d, b)
		progress(step + 1)
	})
	if err != nil {
		return err
	}
	w.Result("edges", counts[0])
	w.Result("nodes", counts[1])
	w.Result("unique_nodes", counts[3])
	w.reportDigest(d)
	w.Result("batches", float64(p.steps))
	w.Result("seconds", slices.Max(took[:w.World()]))
	w.Result("moved", took[w.World()])
	return nil
})

func (w *Worker) reportDigest(d *tally.Digest) {
	w.Result("unique_edges", float64(d.Edges()))
	w.ResultText("digest", d.Sum())
}

// countRepeated samples the first steps of an epoch, calls each with every batch, and counts over all
// ranks what [tally.CountRepeated] does. Collective.
func (w *Worker) countRepeated(p plan, epoch, steps int, each func(step int, b *Batch)) (counts [4]float64, err error) {
	p.InputHalo = true // rows count once, at their owner
	s, done, err := w.sampler(p.Loader, philox.Sample)
	if err != nil {
		return counts, err
	}
	defer done()
	one := p.Loader
	one.Cooperative = false
	alone, done, err := w.sampler(one, philox.Sample)
	if err != nil {
		return counts, err
	}
	defer done()
	ids := sample.EpochOrder(w.job.Seed, epoch, p.ids)
	counts, err = tally.CountRepeated(w.comm, steps, w.job.Virtual, func(step, v int) (*sample.Batch, error) {
		b := w.sampleShare(s, p, ids, epoch, 0, step, v)
		if b.err == nil {
			each(step, b)
		}
		return b.Batch, b.err
	}, w.job.Divided, func(step int, mine bool) (*sample.Batch, error) {
		if !mine {
			return alone.Sample(epoch, step, Seeds{})
		}
		seeds, items := Seeds{}, p.seedsOf(ids, step)
		if p.own == nil {
			return alone.Sample(epoch, step, Seeds{IDs: items})
		}
		err := mapped.Guard(func() (err error) {
			w.feed.ofItems.Lock()
			defer w.feed.ofItems.Unlock()
			seeds, _, err = p.own.Of(epoch, step, items, 0, len(items))
			return err
		})
		if err != nil {
			return nil, err
		}
		return alone.Sample(epoch, step, seeds)
	})
	if err == nil {
		w.AllReduce(counts[:])
	}
	return counts, err
}

// SingleSteps runs the stages of training steps one after the other, without overlap, in a program with one worker.
type SingleSteps struct {
	w    *Worker
	s    sample.Batcher
	st   device.Stager
	done func()
}

// SingleSteps makes the SingleSteps of a worker, with a number of neighbours per hop. Close them.
func (w *Worker) SingleSteps(fanouts []int) *SingleSteps {
	s, done, err := w.sampler(feed.Loader{Sampler: Fanouts(fanouts), Hops: len(fanouts)}, philox.Sample)
	w.check(err)
	st, err := device.StagerOf(w.gpu, false)
	if err != nil {
		done()
		w.Fail(err)
	}
	return &SingleSteps{w, s, st, done}
}

// Sample samples the neighbourhoods of seeds with the random draws of a step, counted from 0 over the epoch's loops.
func (s *SingleSteps) Sample(seeds []int32, epoch, step int) *Batch {
	b := s.w.sampleShare(s.s, plan{Loader: feed.Loader{Batch: len(seeds)}, steps: 1}, seeds, epoch, step, 0, 0)
	s.w.check(b.err)
	return b
}

// Fetch fetches a batch's labels and features.
func (s *SingleSteps) Fetch(b *Batch) { s.w.check(s.w.fetch(b, s.st, nil)) }

// Release returns a batch's memory for reuse.
func (s *SingleSteps) Release(b *Batch) { b.release() }

// Close releases the sampler.
func (s *SingleSteps) Close() {
	if s.st != nil {
		s.st.Close()
	}
	s.done()
}
