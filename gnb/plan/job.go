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
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Job is a run to plan, with all defaults of its options filled in. gnb.Plan makes it from the options of
// gnb.Train.
type Job struct {
	Data  *dataset.Dataset
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

	mine    bool          // only the workers of this machine count
	counts  *counts       // nil for a check
	at      GPU           // where the dataset is in a run on GPUs
	network Network       // between the machines
	free    int64         // memory of this machine
	spread  time.Duration // over which a trial's steps are spread
	parts   *parts        // of a dataset in parts; made by open
}

// counts are what a plan counts of the rows and edges that other workers have. A check before a run goes without: these would be
// linked into every cell.
type counts struct {
	window func(j *Job, ctx context.Context, l *load, shares []awayShare) (windowRows, error)
	asks   func(j *Job, blocks []*graphops.Block, rank int, owner func(int32) int) []Asks
	// own is ownBlocks. A check takes a worker's share of the whole cooperative batch instead, without the halo.
	own     func(blocks []*graphops.Block, owner func(int32) int, sums bool, threads int) []*graphops.Block
	fetched func(first *graphops.Block) []int32
}

var allCounts = &counts{(*Job).window, (*Job).asks, ownBlocks, fetchedRows}

// fetchedRows returns the nodes whose rows a rank gets from a disk or from servers, for its part of a batch's first block.
func fetchedRows(b *graphops.Block) []int32 {
	ids := b.SrcIDs()
	if b.Halo != nil {
		ids = ids[:b.Halo.Own]
	}
	return slices.Clone(ids)
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

// fetches reports whether a plan counts rows that a disk or servers have.
func (j *Job) fetches() bool { return j.counts != nil && (j.Disk || j.far()) }

// elsewhere reports whether workers lack some features, which others or servers have. A plan takes it that each of several
// machines has its own parts alone.
func (j *Job) elsewhere() bool {
	switch {
	case !divided.Is(j.Data) || j.far():
		return j.far()
	case j.counts != nil && j.machines() > 1:
		return true
	}
	return j.lacksParts()
}

// lacksParts reports whether parts of the dataset are on other machines alone.
func (j *Job) lacksParts() bool {
	p, err := j.open()
	return err == nil && !p.book.HasAll()
}

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
	case j.Data.Graph == nil && j.Data.Meta.Parts != nil && j.Cooperative && j.Workers > 1:
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
	b       *sample.Batch
	blocks  []*graphops.Block // of the rank's own part if the batch is cooperative
	seconds float64           // that sampling took, with the job's threads
	remote  float64           // share of the inputs that other workers have
	away    []int32           // these, for a dataset in parts
	asks    []Asks            // of each hop, the seeds' first, in a run that asks other workers for edges
	rank    int
}

// sampler returns the sampler of training, and the training nodes.
func (j *Job) sampler(threads int) (sampler, []int32, error) {
	ids, err := j.Data.Split("train")
	if err != nil {
		return nil, nil, err
	}
	picker := j.Picker
	if picker == nil {
		picker = sample.Fanouts(j.Fanouts)
	}
	c := sample.Config{Picker: picker, Seed: j.Seed, Threads: threads, Transpose: true, TransposeInput: j.Embedding > 0}
	if j.Data.Graph == nil {
		s, err := j.divided(c)
		return s, ids, err
	}
	s, err := sample.New(j.Data.Graph, c)
	return s, ids, err
}

// sampleShare samples a share of a step, whose seeds are all.
func sampleShare(s sampler, epoch, step int, all, seeds []int32) (b *sample.Batch, err error) {
	err = mapped.Guard(func() (err error) {
		if s, is := s.(*sample.Sampler); is {
			if err := s.ForStep(epoch, step, all); err != nil {
				return err
			}
		}
		b, err = s.Sample(epoch, step, seeds)
		return err
	})
	return b, err
}

// shares samples the shares of the first virtual rank of a number of steps from the step first on, with the random draws of
// training; for a dataset in parts, those of each virtual rank in turn. At most budget is spent after the first. each is called with every share, which is valid until it
// returns.
func (j *Job) shares(ctx context.Context, first, steps int, budget time.Duration, threads int, each func(sampled) error) error {
	s, ids, err := j.sampler(threads)
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
	for i := first; i < first+steps; i++ {
		if i > first+1 && time.Since(begin) > budget || epochSteps == 0 {
			return nil
		}
		epoch, step := i/epochSteps, i%epochSteps
		if step == 0 || i == first {
			order = sample.EpochOrder(j.Seed, epoch, ids)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		seeds := order[step*batch : min((step+1)*batch, len(ids))]
		all := seeds
		var parts *feed.Parts
		rank := 0
		if len(ranks) > 0 {
			of := ranks[0]
			if !j.Cooperative { // parts do not have the same seeds
				of = ranks[i%len(ranks)]
			}
			parts, rank = of.parts, of.rank
		}
		switch {
		case j.Cooperative && j.Workers > 1:
		case parts != nil:
			seeds = parts.Share(seeds, i/len(ranks)%j.Virtual)
		default:
			share := 0
			if j.fetches() { // the workers' rows have one window
				share = i % j.world()
				rank = share / j.Virtual
			}
			lo, hi := sample.Share(len(seeds), share, j.world())
			seeds = seeds[lo:hi]
		}
		start := time.Now()
		b, err := sampleShare(s, epoch, step, all, seeds)
		if err != nil {
			return err
		}
		got := sampled{b: b, blocks: b.Blocks, rank: rank, seconds: time.Since(start).Seconds()}
		if j.Cooperative && j.Workers > 1 && j.counts != nil {
			owner := func(v int32) int { return sample.Owner(v, j.Workers) }
			if parts != nil {
				owner = func(v int32) int { return parts.Owner(v, j.Workers) }
			}
			got.blocks = j.counts.own(b.Blocks, owner, !j.GPU, threads)
			got.seconds /= float64(j.Workers)
		}
		switch b := got.blocks[0]; {
		case b.Halo != nil:
			got.remote = float64(b.Halo.Others) / float64(max(1, b.NumSrc))
		case j.far():
			got.remote = 1
		case parts != nil:
			for _, v := range b.SrcIDs() {
				if !parts.Mine(v) {
					got.away = append(got.away, v)
				}
			}
			got.remote = float64(len(got.away)) / float64(max(1, b.NumSrc))
		}
		if j.fetches() {
			got.away = j.counts.fetched(got.blocks[0])
		}
		if parts != nil && j.Divided && j.counts != nil {
			got.asks = j.counts.asks(j, b.Blocks, rank, func(v int32) int { return parts.Owner(v, j.Workers) })
		}
		if err := each(got); err != nil {
			return err
		}
		b.Release()
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

// ownBlocks returns the part that rank 0 computes of a batch of all ranks: the destinations that it owns, with their
// edges, and for their sources first those that it owns. With sums it adds up its rows for the others, as on the CPU; on GPUs
// the rows of others are fetched (feed.Team.Cooperative).
func ownBlocks(blocks []*graphops.Block, owner func(int32) int, sums bool, threads int) []*graphops.Block {
	out := make([]*graphops.Block, len(blocks))
	for i, b := range slices.Backward(blocks) {
		ids := b.SrcIDs()
		row := make([]int32, b.NumSrc) // of each source, -1 for none
		var own, halo []int32          // global ids
		for s, v := range ids {
			if row[s] = -1; owner(v) == 0 {
				row[s] = int32(len(own))
				own = append(own, v)
			}
		}
		h := graphops.HostBlock{Level: b.Level, Graph: b.Graph, Degrees: b.Degrees(), Indptr: []int64{0}, Indices: []int32{}, EdgePos: []int64{}}
		indptr, indices, pos, weights := b.Indptr(), b.Indices(), b.EdgePos(), b.Weights()
		for d := range b.NumDst {
			if owner(b.DstID(d)) != 0 {
				continue
			}
			for e := indptr[d]; e < indptr[d+1]; e++ {
				s := indices[e]
				if row[s] < 0 {
					row[s] = int32(len(own) + len(halo))
					halo = append(halo, ids[s])
				}
				h.Indices, h.EdgePos = append(h.Indices, row[s]), append(h.EdgePos, pos[e])
				if weights != nil {
					h.Weights = append(h.Weights, weights[e])
				}
			}
			h.NumDst++
			h.Indptr = append(h.Indptr, int64(len(h.Indices)))
		}
		h.SrcIDs = append(own, halo...)
		h.NumSrc = len(h.SrcIDs)
		h.Halo = &graphops.Halo{Own: len(own), Others: len(halo), From: [][]int32{}}
		out[i] = h.Block()
		if i > 0 && sums {
			h.Halo.Sums = ownSums(b, own, row, owner)
			h.Halo.Sums.Block.Transpose(&graphops.Transposed{}, threads)
		}
	}
	return out
}

// ownSums returns how rank 0 adds up the rows that it owns, of a block of all ranks: own are their ids, and row[s] is
// below len(own) for each source s among them.
func ownSums(b *graphops.Block, own, row []int32, owner func(int32) int) *graphops.HaloSums {
	h := graphops.HostBlock{Level: b.Level, Graph: b.Graph, NumSrc: len(own), SrcIDs: own, Indptr: []int64{0}, Indices: []int32{}}
	s := &graphops.HaloSums{}
	for _, mine := range []bool{true, false} {
		for d := range b.NumDst {
			if (owner(b.DstID(d)) == 0) != mine {
				continue
			}
			edges := len(h.Indices)
			for _, src := range b.Indices()[b.Indptr()[d]:b.Indptr()[d+1]] {
				if r := row[src]; uint(r) < uint(len(own)) {
					h.Indices = append(h.Indices, r)
				}
			}
			if mine || len(h.Indices) > edges {
				h.NumDst++
				h.Indptr = append(h.Indptr, int64(len(h.Indices)))
			}
		}
		if mine {
			s.Halo.Own = h.NumDst
		}
	}
	s.Block = h.Block()
	s.Halo.Others = h.NumDst - s.Halo.Own // about as many as the others have for this rank
	return s
}

// pass is what a dry pass over batches found.
type pass struct {
	held    int64 // bytes of tensors
	left    int64 // bytes that larger tensors have replaced, in all batches so far
	work    tensor.Work
	costs   []tensor.Cost
	made    int64   // bytes made anew for each batch, which become garbage
	seconds float64 // of the parts that ran: what layers derive from blocks, and the loss
}

// dry runs forward and backward passes of a network on shares, without arithmetic.
type dry struct {
	fwd     *nn.Fwd
	c       nn.Config
	m       nn.Model
	params  *nn.Params
	now     pass
	learned int                      // columns of the learned rows of nodes that are the input; 0 if features are
	zeros   []float32                // rows of batches that have their input in memory of their own
	turned  map[*graphops.Block]bool // blocks whose transposes were counted
	keep    func(rows []float32)     // is called with the input of each layer of an evaluation, unless it is nil
}

func newDry(j *Job, train bool) (*dry, error) {
	d := &dry{learned: j.Embedding, turned: map[*graphops.Block]bool{}}
	err := nn.Try(func() { d.m = j.Build() })
	if err == nil {
		d.params, err = nn.Collect(d.m)
	}
	if err != nil {
		return nil, fmt.Errorf("plan: model %q: %w", j.Model, err)
	}
	d.params.SetGrad(make([]float32, d.params.Len()))
	d.c = nn.Config{Train: train, Threads: j.Threads, Seed: j.Seed, Exchanger: tensor.DryExchanger{}}
	d.c.Backend = tensor.Dry(&d.now.work, func(c tensor.Cost) {
		if c.Kind == tensor.TransposeCost {
			if c.Block.HasTransposed() || d.turned[c.Block] {
				return
			}
			d.turned[c.Block] = true
			d.now.made += c.Block.TransposeBytes()
			c.Elements, c.Block = int64(c.Block.NumEdges()), nil
		}
		d.now.costs = append(d.now.costs, c)
	})
	d.fwd = nn.NewFwd(d.c)
	return d, nil
}

// begin starts a pass.
func (d *dry) begin(step int) {
	d.now.work, d.now.costs, d.now.made, d.now.held = tensor.Work{}, d.now.costs[:0], 0, 0
	clear(d.turned)
	d.c.Step = step
	d.fwd.Reset(d.c)
}

// batch runs a share.
func (d *dry) batch(ds *dataset.Dataset, s sampled, gathered bool) (pass, error) {
	d.begin(s.b.Step)
	start := time.Now()
	x := d.input(ds, s, gathered)
	out, err := nn.TryForward(d.m, d.fwd, s.blocks, x)
	if err == nil {
		err = nn.Try(func() {
			l := loss(ds, out)
			if d.c.Train {
				l.Backward()
			}
			_ = l.Correct()
		})
	}
	d.now.seconds = time.Since(start).Seconds()
	d.now.held, d.now.left = d.fwd.Held()
	return d.now, err
}

// loss computes the loss of zeros; labels of all nodes are class 0.
func loss(ds *dataset.Dataset, out *nn.Tensor) *nn.Loss {
	if y := ds.MultiLabels; y != nil {
		return nn.BCEWithLogits(out, make([]int8, out.Rows()*out.Cols()))
	}
	return nn.CrossEntropy(out, make([]int32, out.Rows()))
}

// input returns the first layer's input as a run gives it.
func (d *dry) input(ds *dataset.Dataset, s sampled, gathered bool) *nn.Tensor {
	b, f := s.blocks[0], d.fwd
	if cols := d.learned; cols > 0 {
		return f.Leaf(b.NumSrc, cols, d.rows(b.NumSrc*cols), tensor.SrcSpace(b))
	}
	if x := ds.SparseFeatures; x != nil && ds.Features == nil {
		var rows dataset.Sparse
		x.Gather(b.SrcIDs(), &rows, d.c.Threads)
		return f.SparseInput(rows.Rows, rows.Cols, rows.Indptr, rows.Indices, rows.Values, tensor.SrcSpace(b))
	}
	cols := ds.FeatureDim()
	if gathered {
		return f.Input(b.NumSrc, cols, d.rows(b.NumSrc*cols), tensor.SrcSpace(b))
	}
	return f.SourceTable(nn.Table{F32: ds.Features.F32, F16: ds.Features.F16}, cols, b)
}

// rows returns n zeros.
func (d *dry) rows(n int) []float32 {
	if n > len(d.zeros) {
		d.zeros = make([]float32, n)
	}
	return d.zeros[:n]
}
