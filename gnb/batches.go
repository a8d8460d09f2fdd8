package gnb

import (
	"cmp"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/philox"
)

// Loader configures the mini-batches of [Worker.Batches]. The zero value samples ten in-neighbours
// per hop for a global batch of 1024 shuffled seeds.
type Loader struct {
	// Fanouts[0] is the number of in-neighbours sampled for each seed, Fanouts[1] for each node
	// that the first hop reaches, and so on; -1 takes all, 0 none. The default is 10 for each
	// layer of the program's network. There is no default if the program has networks of different
	// depths.
	Fanouts []int `json:",omitempty"`
	// Sampler is a custom sampler, used instead of Fanouts. Frontier is a custom sampler that sees
	// a whole frontier; its results depend on the number of workers.
	Sampler  Picker
	Frontier FrontierPicker
	// Hops is the number of hops to sample if the sampler does not set it; 0 means the number of
	// layers of the program's networks.
	Hops int `json:",omitempty"`
	// Batch is the number of seeds per step over all workers; 0 means BatchPerWorker times the
	// number of virtual ranks of all workers, or 1024 if BatchPerWorker is 0 too.
	Batch int `json:",omitempty"`
	// BatchPerWorker is the number of seeds per step of each worker or virtual rank; 0 means that
	// Batch is used.
	BatchPerWorker int `json:",omitempty"`
	// InOrder keeps the split's order; the default shuffles it, differently in
	// each epoch.
	InOrder bool `json:",omitempty"`
	// MaxSteps ends the loop after this many steps; 0 means the whole split. No node is dropped:
	// the last batch holds the remaining nodes.
	MaxSteps int `json:",omitempty"`
	// Cooperative makes the workers expand one batch together: each node has one owner, which
	// samples it, reads its features and computes its rows for all, so that no work is repeated.
	// Rows travel between workers instead. Virtual ranks and Frontier are refused. See docs/samplers.md.
	// Owners says which worker owns each node, equally on all workers; nil is a hash of the id.
	Cooperative bool `json:",omitempty"`
	Owners      sample.Owners
	// InputHalo makes the first block of a cooperative batch list the rows that workers read of each
	// other, as its other blocks do. A layer needs it that exchanges rows of its input (Fwd.Sources) as
	// the first one: of the library's layers, a GCNConv with BatchDegrees. It takes two of a batch's
	// exchanges.
	InputHalo bool `json:",omitempty"`
	// Disjoint gives each seed a tree of its own, as PyG's option of that name does: a node that several seeds reach has a
	// row for each of them, with neighbours of its own. [Batch].Trees says whose tree a row is in. Seeds with times need
	// it; see [Seeds]. Cooperative batches are refused, and a GPU leaves the sampling to the CPU.
	Disjoint bool `json:",omitempty"`
	// AsOf says what seeds with times see of the graph, and what they take of that: a window, strictly earlier edges, the most
	// recent ones or those by age, and times of nodes. It needs Disjoint. See [AsOf].
	AsOf AsOf `json:",omitzero"`
	// ProveTime checks each batch of seeds with times against the dataset's arrays, without the sampler: no seed sees its
	// future. A batch that has a leak ends the run with the seed, the hop and the edge. The run's result has what was checked as
	// Text["proof"], and as the values proved_batches, proved_seeds, proved_edges and hidden_edges. It costs a pass over all
	// in-edges of each node of a batch. See [sample.Prover].
	ProveTime bool `json:",omitempty"`
	// Induced makes batches of the seeds and the edges between them alone, without sampling: the graphs of a dataset of many,
	// or clusters of one graph. All layers compute on the one block. See [sample.Induced]. On the CPU, of graphs that are whole
	// in each worker; Fanouts and samplers are refused.
	Induced bool `json:",omitempty"`
	// Ahead is the number of batches prepared ahead of the one in use; 0 means 2. It bounds the
	// memory that batches use.
	Ahead int `json:",omitempty"`
}

// feeding is the part of a Worker that prepares batches. It keeps memory from one loop to the
// next.
type feeding struct {
	samplers feed.Samplers
	spare    feed.Spares
	left     *Batch          // the last batch of a loop that ended early: the program may still use it
	matrices layerMatrices   // of layer-wise evaluations, kept for the next one
	parts    *feed.Parts     // of a divided dataset, else nil
	fetcher  *feed.Fetcher   // gets rows of features of other ranks; nil if this rank has all
	team     *feed.Team      // makes cooperative batches; see Worker.team
	slices   graphops.Slicer // cuts the graph into blocks; see Worker.graph
	replaced bool            // the edges of the graph are no longer those of the dataset's parts; see Worker.useGraph
	// turnInput makes samplers transpose the farthest hop too, because a network's input has a gradient.
	turnInput bool
	every     []int32    // the ids of all nodes; see Worker.everyNode
	ofItems   sync.Mutex // one call of Items.Of at a time
	atMost    atMost
	// noFeatures leaves out the features of batches, because the program's only network reads learned rows.
	noFeatures bool
}

// atMost bounds the steps of loops over batches: a short run then ends them without batches in preparation.
type atMost struct {
	steps int   // of the next loop; 0 means no bound
	last  *plan // the last loop, as it would be without a bound; nil before the first
}

// bound returns the plan of a loop with the steps that it may have.
func (m *atMost) bound(p plan) plan {
	whole := p
	m.last = &whole
	if m.steps > 0 {
		p.steps = min(p.steps, m.steps)
	}
	return p
}

// plan is a loop over batches: a Loader with its defaults filled in.
type plan struct {
	feed.Loader
	ids   []int32
	steps int
	own   *Items // whose items ids are; nil if ids are seeds

	prover *sample.Prover // of a loop with ProveTime
}

func (w *Worker) plan(split string, l Loader) (plan, error) {
	ids, err := w.Dataset().Split(split)
	if err != nil {
		return plan{}, err
	}
	return w.planOf(ids, l)
}

// planOf is plan for any seeds, or items.
func (w *Worker) planOf(ids []int32, l Loader) (p plan, err error) {
	p.ids = ids
	p.Loader, p.steps, err = feed.Loader(l).Complete(feed.Setting{Seeds: len(ids), World: w.World(), Virtual: w.job.Virtual, Depth: w.depth, Parts: w.feed.parts})
	return p, err
}

// unit names what the loop goes through, "" for seeds.
func (p *plan) unit() string {
	if p.own == nil {
		return ""
	}
	return cmp.Or(p.own.Name, "items")
}

// depth returns the number of layers of the program's networks, 0 if it has none. It fails if
// their depths differ.
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

// Batches loops over the nodes of a split in mini-batches: each step's seeds are cut into even
// shares, one per worker (a share can be empty), or go to the workers that have their parts if the
// dataset is divided (package parts). Sampling and fetching of the next batches
// overlap the current one. A resumed run continues at the checkpoint's position. An epoch can have
// several such loops, one after the other, each with its own order and draws.
//
// With virtual ranks a worker gets several batches per step, one per virtual rank.
func (w *Worker) Batches(split string, l Loader) iter.Seq[*Batch] {
	return w.loopOver(split, func() (plan, error) { return w.plan(split, l) })
}

// loopOver is the loop over the batches of a plan.
func (w *Worker) loopOver(name string, planned func() (plan, error)) iter.Seq[*Batch] {
	return func(yield func(*Batch) bool) {
		at := cmp.Or(entry.CallSite(), "a place unknown")
		if w.loop.InLoop() {
			w.Fail(fmt.Errorf("gnb: a loop over batches at %s begins inside the one at %s; end that first, or use Evaluate to measure a network within it", at, w.loop.LoopAt))
		}
		p, err := planned()
		w.check(err)
		p = w.feed.atMost.bound(p)
		first, all := w.loop.EnterLoop(p.steps)
		if all {
			return
		}
		w.emit(runs.Event{Kind: runs.KindLoop, Split: name, Unit: p.unit(), Steps: p.steps, Step: first})
		w.report.rate.enter()
		epoch, base := w.loop.Pos.Epoch, w.loop.Pos.InAll-first
		w.found.loop = &looping{p, epoch, base}
		for b, err := range w.load(p, philox.Sample, epoch, base, first) {
			w.check(err)
			w.addProof(p, b)
			if w.digest != nil {
				w.addDigest(w.digest, b)
			} else {
				w.saving.Kept.Drop(digestName) // an earlier one lacks this batch
			}
			counted, edges := b.counted(), b.Edges()
			w.stage(runfile.StageProgram)
			w.loop.LoopAt = at
			ok := yield(b)
			w.loop.LoopAt = ""
			w.report.rate.add(counted, edges)
			if b.EndsStep || !ok { // an iteration that ended early has used its draws too
				w.loop.EndIteration()
			}
			if !ok {
				break
			}
			if b.EndsStep {
				w.boundary(false)
			}
		}
		w.stage(runfile.StageProgram)
		w.flush(true)
		w.found.loop = nil
		w.loop.EndLoop()
		w.boundary(true)
	}
}

// load yields the batches of the steps from first on. One goroutine samples and another fetches,
// up to Ahead batches ahead of the consumer. stepBase is the number of steps in the epoch's
// earlier loops.
func (w *Worker) load(p plan, purpose philox.Purpose, epoch, stepBase, first int) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		w.stage(runfile.StageSample)
		within, ended := w.loop.InLoop(), false
		team := w.team().Within(within)
		defer func() {
			if within && ended {
				w.check(team.End()) // then the connection is free for the program
			}
		}()
		if purpose == philox.Sample {
			w.keepLeft(nil)
		}
		s, done, err := w.sampler(p.Loader, purpose)
		if err != nil {
			yield(nil, err)
			return
		}
		defer done()
		if p, err = w.proved(p); err != nil {
			yield(nil, err)
			return
		}
		fetcher := w.feed.fetcher
		if w.feed.noFeatures {
			fetcher = nil
		}
		st, err := device.StagerOf(w.gpu, fetcher != nil)
		if err != nil {
			yield(nil, err)
			return
		}
		if st != nil {
			defer st.Close()
		}
		ids, virtual := w.order(p, epoch, stepBase), w.job.Virtual
		if p.own == nil {
			feed.Foresee(s, epoch, stepBase+first, stepBase+p.steps, func(step int) []int32 { return p.seedsOf(ids, step-stepBase) })
		}
		one := func(i int) *Batch { return w.sampleShare(s, p, ids, epoch, stepBase, first+i/virtual, i%virtual) }
		rows, err := fetcher.Open(feed.Loop{
			Sampler: s, Batches: (p.steps - first) * virtual, Virtual: virtual, Ahead: p.Ahead, Train: purpose == philox.Sample, Picker: p.Sampler, Seeds: p.ids, Items: p.own != nil, Disjoint: p.Disjoint, Batch: p.Batch, Team: team,
			Sample: func(i int) (*sample.Batch, error) { b := one(i); return b.Batch, b.err },
		})
		if err != nil {
			yield(nil, err)
			return
		}
		var current *Batch // the consumer's batch
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
		if (p.steps-first)*virtual == 1 { // a single batch: nothing to overlap
			b := one(0)
			if b.err == nil {
				w.stage(runfile.StageFetch)
				if b.rows, b.err = rows.Ask(b.Batch); b.err == nil {
					b.err = w.fetch(b, st, nil)
				}
			}
			rows.Close(b.err != nil)
			current, ended = b, b.err == nil
			if w.hand(b, purpose, yield) {
				b.release()
				current = nil
			}
			return
		}
		items := (p.steps - first) * virtual
		sampled, end := feed.InFlight(feed.LanesOf(s), items, one, (*Batch).release)
		defer end()
		batches := feed.Pipeline[*Batch]{
			Items: items, Ahead: rows.Ahead(p.Ahead), Fetched: rows.Fetched(p.Ahead), Release: (*Batch).release, Together: team.Together(s, rows),
			Stopped: func(failed bool) {
				rows.Close(failed)
				if failed {
					_ = w.feed.parts.Abandon() // the failure is what the rank reports
				}
			},
			Sample: func(i int) (*Batch, bool) {
				b := sampled(i)
				if b.err == nil {
					b.rows, b.err = rows.Ask(b.Batch)
				}
				return b, b.err == nil
			},
			Fetch: func(b *Batch, stop <-chan struct{}) { b.fetchErr = w.fetch(b, st, stop) },
		}.Start()
		defer batches.Close()
		for {
			w.stage(runfile.StageSample)
			b, ok := batches.Next()
			if ended = !ok; ended {
				return
			}
			if b.err == nil {
				w.stage(runfile.StageFetch)
				batches.Wait()
				b.err = b.fetchErr
			}
			current = b
			if !batches.Use(func() bool { return w.hand(b, purpose, yield) }) {
				return
			}
			b.release()
			current = nil
		}
	}
}

// keepLeft keeps the last batch of a loop that ended early until the next loop begins, because the
// program may use it until then.
func (w *Worker) keepLeft(b *Batch) {
	if w.feed.left != nil {
		w.feed.left.release()
	}
	w.feed.left = b
}

// order returns the order of a loop's seeds.
func (w *Worker) order(p plan, epoch, stepBase int) []int32 {
	if p.InOrder {
		return p.ids
	}
	return sample.EpochOrder(w.job.Seed, epoch+stepBase<<20, p.ids)
}

// seedsOf returns the seeds of a step, in the order of the loop's seeds.
func (p plan) seedsOf(ids []int32, step int) []int32 {
	return ids[step*p.Batch : min((step+1)*p.Batch, len(ids))]
}

// hand yields a batch to the loop, or fails with its error, and reports whether the loop continues.
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
func (w *Worker) sampleShare(s sample.Batcher, p plan, ids []int32, epoch, stepBase, step, v int) *Batch {
	b := &Batch{Last: step == p.steps-1, EndsStep: v == w.job.Virtual-1}
	items := p.seedsOf(ids, step)
	share := Seeds{IDs: items}
	if p.own == nil {
		b.global = share
	}
	switch {
	case p.own != nil:
		if b.err = mapped.Guard(func() (err error) {
			share, err = w.seedsOfItems(b, p, epoch, stepBase+step, items, v)
			return err
		}); b.err != nil {
			return b
		}
	case p.Cooperative:
	case w.feed.parts != nil:
		share.IDs = w.feed.parts.Share(items, v)
	default:
		share = share.Slice(sample.Share(len(items), w.p.Rank*w.job.Virtual+v, w.World()*w.job.Virtual))
	}
	b.err = mapped.Guard(func() error {
		err := feed.ForStep(s, epoch, stepBase+step, b.global)
		if err != nil {
			return err
		}
		b.Batch, err = s.Sample(epoch, stepBase+step, share)
		if err == nil && p.prover != nil {
			b.proof, err = p.prover.Prove(b.Batch, share)
		}
		return err
	})
	return b
}

// graph returns the dataset's graph. The blocks of a small graph are cached with the data derived
// from them.
func (w *Worker) graph() graphops.Slicer {
	if w.feed.slices == nil {
		w.feed.slices = graphops.KeepSlices(w.ds.Graph)
	}
	return w.feed.slices
}

// fewEdges is the size of a graph whose edges are all sampled in less time than a thread takes to
// wake up.
const fewEdges = 1 << 15

// sampler returns a sampler for a loader; it reuses the one of an earlier loop with the same
// loader. Call done at the end of the loop.
func (w *Worker) sampler(l feed.Loader, purpose philox.Purpose) (s sample.Batcher, done func(), err error) {
	within := w.loop.InLoop()
	if l.Cooperative || w.job.Divided && !(within && divided.IsFar(w.ds)) || w.feed.fetcher.Together(within) {
		w.check(w.team().Within(within).Enter())
	}
	key := feed.Key{Picker: l.Sampler, Frontier: l.Frontier, Hops: l.Hops, Purpose: purpose, Cooperative: l.Cooperative, Disjoint: l.Disjoint, AsOf: l.AsOf, Induced: l.Induced, Owners: l.Owners, InputHalo: l.Cooperative && l.InputHalo, Within: within && w.job.Divided}
	s, end, err := w.feed.samplers.Get(key, func(key feed.Key) (sample.Batcher, error) {
		s, err := w.deviceSampler(key)
		if err == nil && s == nil {
			s, err = w.hostSampler(key)
		}
		return s, err
	})
	if err != nil {
		return nil, nil, err
	}
	return s, func() { w.check(end()) }, nil
}

func (w *Worker) hostSampler(k feed.Key) (sample.Batcher, error) {
	threads := w.threads
	if w.ds.Edges() < fewEdges {
		threads = 1
	}
	c := sample.Config{
		Picker: k.Picker, Frontier: k.Frontier, Hops: k.Hops, Disjoint: k.Disjoint, AsOf: k.AsOf,
		Seed: w.job.Seed, Purpose: sample.Purpose(k.Purpose), Threads: threads, Transpose: k.Purpose == philox.Sample, TransposeInput: k.Purpose == philox.Sample && w.feed.turnInput,
	}
	if k.Cooperative {
		return w.team().Within(w.loop.InLoop()).Sampler(c, k)
	}
	if w.job.Divided {
		return w.team().Within(w.loop.InLoop()).Divided(c)
	}
	if k.Induced {
		return sample.NewInduced(w.ds.Graph, c)
	}
	return sample.New(w.ds.Graph, c)
}

// team returns this rank's part in cooperative batches.
func (w *Worker) team() *feed.Team {
	if w.feed.team == nil {
		w.feed.team = feed.NewTeam(feed.TeamOptions{
			Comm: w.comm, Site: w.site, Threads: w.threads, Data: w.ds, Parts: w.feed.parts, Mover: device.Mover(w.gpu, w.comm, w.site),
			Waited: func(stage string, d time.Duration) { w.p.MoveTime(stage, runfile.StageIdle, d) },
		})
	}
	return w.feed.team
}
