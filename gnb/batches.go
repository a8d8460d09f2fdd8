package gnb

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/names"
	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/philox"
)

// Loader says how [Worker.Batches] makes mini-batches. The zero value samples
// ten in-neighbours a hop for a global batch of 1024 shuffled seeds.
type Loader struct {
	// Fanouts[0] is how many in-neighbours are sampled for each seed, Fanouts[1]
	// for each node reached then, and so on; -1 takes all, 0 none. The default is 10
	// for each layer of the program's network; networks of several depths have none.
	Fanouts []int
	// Sampler is a sampler of your own, in place of Fanouts; Frontier one that
	// sees a whole frontier, whose results depend on the number of workers.
	Sampler  Picker
	Frontier FrontierPicker
	// Hops is how many hops to sample, where the sampler does not say so itself; 0
	// means the number of layers of the program's network, or networks.
	Hops int
	// Batch is the number of seeds of a step over all workers; 0 means BatchPerWorker
	// times the number of workers (each virtual rank counts as one), and 1024 where
	// that is 0 too.
	Batch int
	// BatchPerWorker is the number of seeds of a step of each worker or virtual rank; 0
	// means that Batch says it.
	BatchPerWorker int
	// InOrder keeps the split's order; the default shuffles it, differently in
	// each epoch.
	InOrder bool
	// MaxSteps ends the loop after this many steps; 0 means all of the split. No
	// node is dropped: the last batch is as long as what is left.
	MaxSteps int
	// Ahead is how many batches are prepared ahead of the one in use; 0 means 2.
	// Memory is bounded by it.
	Ahead int
}

// Batch is one worker's share of one step: its seeds, the blocks sampled for
// them, features of the first block's sources and the seeds' labels. It is valid
// until the loop's next iteration, or the next loop where this one was broken off:
// later batches take over its memory. Copy what is to last longer, labels too.
type Batch struct {
	*sample.Batch
	// Sparse are the features of the first block's sources where the dataset has
	// sparse ones; see Features for dense ones.
	Sparse *dataset.Sparse
	// Labels are the seeds' labels, -1 where there is none; where a node has
	// several labels they are Targets [seeds, classes]: 1, 0, or -1 where unknown.
	Labels  []int32
	Targets []int8
	// Last is true for the last step of the loop.
	Last bool
	// EndsStep is true for this worker's last batch of a step, the one at which
	// parameters change: for each batch, unless the run has virtual ranks.
	EndsStep bool

	x       *dataset.Matrix // the features of all nodes; nil where they are sparse
	threads int
	full    bool    // the whole graph, at whatever step
	global  []int32 // the seeds of the step over all ranks
	err     error   // of sampling, then of the batch

	fetchErr error

	memory *feed.Memory // of Sparse, Labels and Targets
	spare  *feed.Spares // where that goes
	staged device.Rows  // the features on a device; nil where it reads all of them
}

func (b *Batch) space() *nn.Space {
	if len(b.Blocks) == 0 {
		return &nn.Space{}
	}
	return tensor.SrcSpace(b.Blocks[0])
}

func (b *Batch) String() string {
	s := fmt.Sprintf("batch of %d seeds, epoch %d, step %d", len(b.Seeds), b.Epoch, b.Step)
	for i, k := range b.Blocks {
		s += fmt.Sprintf("\n  layer %d: %v", i, k)
	}
	return s
}

// feeding is the part of a Worker that prepares what it computes on, and keeps memory
// from one loop to the next.
type feeding struct {
	samplers feed.Samplers
	spare    feed.Spares
	left     *Batch          // that a loop was broken off with: the program may still use it
	matrices []keptMatrix    // of small evaluations
	slices   graphops.Slicer // the graph, cut into blocks; see Worker.graph
}

// plan is a loader with its defaults filled in.
type plan struct {
	Loader
	ids   []int32
	steps int
}

func (w *Worker) plan(split string, l Loader) (plan, error) {
	ids, err := w.Dataset().Split(split)
	if err != nil {
		return plan{}, err
	}
	switch {
	case l.Batch < 0 || l.BatchPerWorker < 0 || l.MaxSteps < 0 || l.Ahead < 0 || l.Hops < 0:
		return plan{}, errors.New("gnb: a Loader's Batch, BatchPerWorker, MaxSteps, Ahead and Hops cannot be negative")
	case l.Batch > 0 && l.BatchPerWorker > 0:
		return plan{}, fmt.Errorf("gnb: a Loader takes Batch (%d, over all workers) or BatchPerWorker (%d), not both", l.Batch, l.BatchPerWorker)
	case l.Sampler != nil && l.Frontier != nil:
		return plan{}, errors.New("gnb: a Loader takes one of Sampler and Frontier, not both")
	case (l.Sampler != nil || l.Frontier != nil) && l.Fanouts != nil:
		return plan{}, errors.New("gnb: a Loader takes Fanouts or a sampler of your own, not both; give the sampler its fanouts itself")
	}
	if l.Batch == 0 {
		l.Batch = 1024
		if l.BatchPerWorker > 0 { // a batch as large as the split is as large as can be
			ranks := w.World() * w.job.Virtual
			l.Batch = min(l.BatchPerWorker, max(1, len(ids))) * ranks
		}
	}
	l.Batch = min(l.Batch, max(1, len(ids)))
	if l.Ahead == 0 {
		l.Ahead = 2
	}
	if l.Hops == 0 && l.Fanouts == nil {
		if l.Hops, err = w.depth(); err != nil && !knowsHops(l.Sampler) {
			return plan{}, err
		}
	}
	if l.Sampler == nil && l.Frontier == nil {
		if l.Fanouts == nil {
			for range l.Hops {
				l.Fanouts = append(l.Fanouts, 10)
			}
		}
		l.Sampler, l.Hops = Fanouts(l.Fanouts), len(l.Fanouts)
	} else if h, ok := l.Sampler.(interface{ Hops() int }); ok {
		l.Hops = h.Hops()
	}
	if l.Hops == 0 {
		return plan{}, errors.New("gnb: a Loader needs Fanouts, or Hops for a sampler of your own, when no network has been made before")
	}
	p := plan{Loader: l, ids: ids, steps: (len(ids) + l.Batch - 1) / l.Batch}
	if l.MaxSteps > 0 {
		p.steps = min(p.steps, l.MaxSteps)
	}
	p.Ahead = min(p.Ahead, max(1, p.steps*w.job.Virtual)) // there are no more
	return p, nil
}

// depth is the number of layers of the program's networks, 0 where it has none; an error
// where they differ.
func (w *Worker) depth() (layers int, err error) {
	for i, n := range w.nets {
		switch l := n.model.NumLayers(); {
		case i == 0:
			layers = l
		case l != layers:
			return 0, fmt.Errorf("gnb: networks %q and %q have %d and %d layers, so a Loader has no default; give it Fanouts, or Hops for a sampler of your own", w.nets[0].name, n.name, layers, l)
		}
	}
	return layers, nil
}

// knowsHops says whether a sampler says itself how many hops it takes.
func knowsHops(s Picker) bool {
	_, ok := s.(interface{ Hops() int })
	return ok
}

// Batches loops over the nodes of a split in mini-batches: each step's seeds are
// cut into even shares, one per worker (a share can be empty), and sampling and
// fetching of the next batches overlap the current one. It goes on from where
// the checkpoint stands when the run resumes. An epoch can have several such
// loops, one after the other, and each has an order and draws of its own.
//
// With virtual ranks a worker gets several batches a step, one per virtual rank.
func (w *Worker) Batches(split string, l Loader) iter.Seq[*Batch] {
	return func(yield func(*Batch) bool) {
		at := cmp.Or(callSite(), "a place unknown")
		if w.loop.InLoop() {
			w.Fail(fmt.Errorf("gnb: a loop over batches at %s begins inside the one at %s; end that first, or use Evaluate to measure a network within it", at, w.loop.LoopAt))
		}
		p, err := w.plan(split, l)
		w.check(err)
		first, all := w.loop.EnterLoop(p.steps)
		if all {
			return
		}
		w.emit(runs.Event{Kind: runs.KindLoop, Split: split, Steps: p.steps, Step: first})
		w.rate.enter()
		epoch, base := w.loop.Pos.Epoch, w.loop.Pos.InAll-first
		w.found.loop = &looping{p, epoch, base}
		for b, err := range w.load(p, philox.Sample, epoch, base, first) {
			w.check(err)
			if w.digest != nil {
				w.digest.add(w, b)
			}
			seeds, edges := len(b.Seeds), b.Edges()
			w.stage(names.Program)
			w.loop.LoopAt = at
			ok := yield(b)
			w.loop.LoopAt = ""
			w.rate.add(seeds, edges)
			if b.EndsStep || !ok { // an iteration that was broken off has used its draws
				w.loop.EndIteration()
			}
			if !ok {
				break
			}
			if b.EndsStep {
				w.boundary(false)
			}
		}
		w.stage(names.Program)
		w.flush(true)
		w.found.loop = nil
		w.loop.EndLoop()
		w.boundary(true)
	}
}

// load yields the batches of the steps from first on: sampling runs in one
// goroutine, fetching in another, Ahead batches in front of the consumer.
// stepBase is what the epoch's earlier loops count.
func (w *Worker) load(p plan, purpose philox.Purpose, epoch, stepBase, first int) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		w.stage(names.Sample)
		if purpose == philox.Sample {
			w.keepLeft(nil)
		}
		s, done, err := w.sampler(p.Loader, purpose)
		if err != nil {
			yield(nil, err)
			return
		}
		defer done()
		st, err := w.stager()
		if err != nil {
			yield(nil, err)
			return
		}
		if st != nil {
			defer st.Close()
		}
		ids := w.order(p, epoch, stepBase)
		var current *Batch // the one that the consumer has
		defer func() {
			switch {
			case current == nil:
			case purpose == philox.Sample:
				current.unstage()
				w.keepLeft(current)
			default:
				current.release()
			}
		}()
		if (p.steps-first)*w.job.Virtual == 1 { // nothing to overlap with
			b := w.sampleShare(s, p, ids, epoch, stepBase, first, 0)
			if b.err == nil {
				w.stage(names.Fetch)
				b.err = w.fetch(b, st, nil)
			}
			current = b
			if w.hand(b, purpose, yield) {
				b.release()
				current = nil
			}
			return
		}
		virtual := w.job.Virtual
		batches := feed.Pipeline[*Batch]{
			Items: (p.steps - first) * virtual, Ahead: p.Ahead, Release: (*Batch).release,
			Sample: func(i int) (*Batch, bool) {
				b := w.sampleShare(s, p, ids, epoch, stepBase, first+i/virtual, i%virtual)
				return b, b.err == nil
			},
			Fetch: func(b *Batch, stop <-chan struct{}) { b.fetchErr = w.fetch(b, st, stop) },
		}.Start()
		defer batches.Close()
		for {
			w.stage(names.Sample)
			b, ok := batches.Next()
			if !ok {
				return
			}
			if b.err == nil {
				w.stage(names.Fetch)
				batches.Wait()
				b.err = b.fetchErr
			}
			current = b
			if !w.hand(b, purpose, yield) {
				return
			}
			b.release()
			current = nil
		}
	}
}

// keepLeft keeps the batch that a loop was broken off with until the next loop begins, for
// the program may use it until then.
func (w *Worker) keepLeft(b *Batch) {
	if w.feed.left != nil {
		w.feed.left.release()
	}
	w.feed.left = b
}

// order is that of a loop's seeds.
func (w *Worker) order(p plan, epoch, stepBase int) []int32 {
	if p.InOrder {
		return p.ids
	}
	return sample.EpochOrder(w.job.Seed, epoch+stepBase<<20, p.ids)
}

// hand gives a batch, or its error, to the loop, and tells whether that goes on.
func (w *Worker) hand(b *Batch, purpose philox.Purpose, yield func(*Batch, error) bool) bool {
	if b.err != nil {
		yield(nil, b.err)
		return false
	}
	if purpose == philox.Sample {
		w.p.SetPosition(b.Epoch, b.Step)
	}
	return yield(b, nil)
}

// sampleShare samples the seeds of this worker's virtual rank v at a step.
func (w *Worker) sampleShare(s feed.Sampler, p plan, ids []int32, epoch, stepBase, step, v int) *Batch {
	b := &Batch{Last: step == p.steps-1, EndsStep: v == w.job.Virtual-1}
	lo, hi := step*p.Batch, min((step+1)*p.Batch, len(ids))
	seeds := ids[lo:hi]
	ranks := w.World() * w.job.Virtual
	from, to := sample.Share(len(seeds), w.p.Rank*w.job.Virtual+v, ranks)
	b.global = seeds
	b.err = mapped.Guard(func() error {
		var err error
		b.Batch, err = s.Sample(epoch, stepBase+step, seeds[from:to])
		return err
	})
	return b
}

// stager is a loop's, or nil where no features are staged.
func (w *Worker) stager() (device.Stager, error) {
	if w.gpu == nil || !w.gpu.Staged() {
		return nil, nil
	}
	return w.gpu.Stager()
}

// fetch gets what a batch needs besides its blocks: sparse features and labels.
// Dense features stay where they are, for the first layer to read, unless there is a
// stager, which copies them to the device; stop ends its waiting for earlier batches.
func (w *Worker) fetch(b *Batch, st device.Stager, stop <-chan struct{}) error {
	var err error
	failed := nn.Try(func() { err = w.fetchAll(b, st, stop) }) // a device that was asked for ids
	return cmp.Or(err, failed)
}

func (w *Worker) fetchAll(b *Batch, st device.Stager, stop <-chan struct{}) error {
	return mapped.Guard(func() (err error) {
		b.threads = w.job.Threads
		m := w.feed.spare.Get()
		b.memory, b.spare = m, &w.feed.spare
		switch {
		case w.ds.Features != nil:
			b.x = w.ds.Features
		case w.ds.SparseFeatures != nil:
			b.Sparse = m.Sparse(w.ds.SparseFeatures, b.InputIDs(), w.job.Threads)
		}
		if w.ds.Labels != nil {
			b.Labels = m.Labels(w.ds.Labels, b.Seeds)
		}
		if y := w.ds.MultiLabels; y != nil {
			b.Targets = m.Targets(y, b.Seeds)
		}
		if st != nil {
			b.staged, err = st.Prepare(stop, b.InputIDs())
		}
		return err
	})
}

// unstage ends the use of the batch's features on a device.
func (b *Batch) unstage() {
	if b.staged != nil {
		b.staged.Done()
		b.staged = nil
	}
}

// release gives the batch's memory to later ones, and leaves nothing of it to who
// kept the batch.
func (b *Batch) release() {
	b.unstage()
	if b.Batch != nil { // sampling did not fail
		b.Release()
	}
	b.Labels, b.Targets, b.Sparse = nil, nil, nil
	if b.memory != nil { // something was fetched
		b.spare.Put(b.memory)
		b.memory = nil
	}
}

// input is the batch's features as the first layer's input.
func (b *Batch) input(f *nn.Fwd) *nn.Tensor {
	if s := b.Sparse; s != nil {
		return f.SparseInput(s.Rows, s.Cols, s.Indptr, s.Indices, s.Values, b.space())
	}
	if b.full {
		return f.TableInput(tableOf(b.x), b.x.Rows, b.x.Cols, b.space())
	}
	if b.staged != nil {
		b.staged.Use()
	}
	if len(b.Blocks) > 0 {
		return f.SourceTable(tableOf(b.x), b.x.Cols, b.Blocks[0])
	}
	return f.TableRows(tableOf(b.x), b.x.Cols, b.InputIDs(), b.space())
}

// Features are the features of the first block's sources, row-major, in memory of
// their own, for programs that want to see them; nil where they are sparse.
// Networks do not need it: they read the dataset's rows in place.
func (b *Batch) Features() []float32 {
	switch {
	case b.x == nil:
		return nil
	case b.full:
		return slices.Clone(b.x.Float32().F32)
	}
	ids := b.InputIDs()
	x := make([]float32, len(ids)*b.x.Cols)
	b.x.Gather(x, ids, b.threads)
	return x
}

// tableOf is a matrix as what rows are read from.
func tableOf(m *dataset.Matrix) nn.Table { return nn.Table{F32: m.F32, F16: m.F16} }

// allFeatures is the features of all nodes as the first layer's input.
func allFeatures(f *nn.Fwd, ds *Dataset) *nn.Tensor {
	if s := ds.SparseFeatures; s != nil && ds.Features == nil {
		return f.SparseInput(s.Rows, s.Cols, s.Indptr, s.Indices, s.Values, &nn.Space{})
	}
	return f.TableInput(tableOf(ds.Features), ds.Nodes(), ds.FeatureDim(), &nn.Space{})
}

// Loss is the usual loss of a network's output for the batch: cross-entropy over
// Labels, or, where a node has several labels, binary cross-entropy over Targets.
func (b *Batch) Loss(out *nn.Tensor) *nn.Loss {
	if b.Targets != nil {
		return nn.BCEWithLogits(out, b.Targets)
	}
	return nn.CrossEntropy(out, b.Labels)
}

// graph is the dataset's graph, whose blocks are kept with what was derived from
// them where it is small.
func (w *Worker) graph() graphops.Slicer {
	if w.feed.slices == nil {
		w.feed.slices = graphops.KeepSlices(w.ds.Graph)
	}
	return w.feed.slices
}

// FullGraph is the whole graph as one batch, for full-graph training: every
// layer sees every node and edge, and the result has one row per node. It can be
// used for any number of steps, outside of loops over batches, and by networks of any
// number of layers. A dataset without labels gives a batch without.
//
// Each rank computes all rows: more workers do not make it faster. So that the
// sum of the ranks' losses is the loss over the split, to the same bits on any
// number of workers, Seeds and Labels are those of the split on rank 0; the
// other ranks have no seeds, and -1 for every label.
func (w *Worker) FullGraph(split string) *Batch {
	ds := w.Dataset()
	ids, err := ds.Split(split)
	w.check(err)
	if ds.FeatureDim() == 0 {
		w.Fail(fmt.Errorf("gnb: full-graph training needs features, and %s has none", ds.Name()))
	}
	if w.gpu != nil && w.gpu.Staged() && ds.Features != nil {
		w.Fail(errors.New("gnb: full-graph training reads the features of all nodes in every step, and neither the device nor the host's memory that can be pinned has room for them: train in mini-batches, on the CPU (Device: \"cpu\"), or make room"))
	}
	layers := 1
	for _, n := range w.nets {
		layers = max(layers, n.model.NumLayers())
	}
	whole := w.graph().Slice(0, ds.Nodes())
	b := &Batch{
		Batch:    &sample.Batch{Epoch: w.loop.Pos.Epoch, Step: w.loop.Pos.EpochStep()},
		EndsStep: true, x: ds.Features, full: true,
	}
	if ds.Features == nil {
		b.Sparse = ds.SparseFeatures
	}
	for range layers {
		b.Blocks = append(b.Blocks, whole)
	}
	if w.p.Rank == 0 {
		b.Seeds = ids
	}
	if m := ds.MultiLabels; m != nil {
		b.Targets = make([]int8, len(m.Data))
		for i := range b.Targets {
			b.Targets[i] = -1
		}
		for _, v := range b.Seeds {
			copy(b.Targets[int(v)*m.Cols:], m.Row(int(v)))
		}
		return b
	}
	if ds.Labels == nil {
		return b
	}
	b.Labels = make([]int32, ds.Nodes())
	for v := range b.Labels {
		b.Labels[v] = -1
	}
	for _, v := range b.Seeds {
		b.Labels[v] = ds.Labels[v]
	}
	return b
}
