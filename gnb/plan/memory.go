package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/goheap"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/phrase"
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
	launcherItem = "the process that starts the workers"
	datasetItem  = "the dataset, which is in memory"
)

// Sizes of a process, measured on Linux with a graph of 34 nodes: the runtime, its stacks and caches, what a worker makes
// before its first step, and each thread's stacks, caches and buffers of matrix products.
const (
	processBytes  = 7 << 19
	threadBytes   = 5 << 17
	launcherBytes = 7 << 20
	// processHeap is the part of processBytes that is in the heap.
	processHeap = 3 << 20
	// stepGarbage is what a step leaves to the garbage collector besides the arrays that dry passes count: tensors'
	// headers, closures and events. epochGarbage is an epoch's besides its order of the seeds.
	stepGarbage, epochGarbage = 16 << 10, 8 << 10
	// manyEpochs are as many as the heap is followed through.
	manyEpochs = 1000
	// keptMatrices is the limit up to which an evaluation's matrices stay in memory (layerwise.Matrices).
	keptMatrices = 512 << 20
)

// load is what the batches of a virtual rank take.
type load struct {
	shares  int
	held    int64 // of the tensors of all shares
	batch   int64 // of the largest batch, without its rows of features
	rows    int64 // of features of the batches that have their own at a time
	regrown int64 // garbage of these, until they have their size
	made    int64 // garbage of a mean share
	left    int64 // garbage of the first shares, until memory has its size
	again   int64 // memory that each further epoch's last batch takes anew
	evalled evaluated
	gpu     gpuPasses // what passes of training take on a GPU; nil for the CPU

	seeds, inputs, edges float64 // of a mean share
	hops                 []Hop
	params               int
	// last is a whole share's pass, with costs of its own: those of one share.
	last     pass
	sampling float64 // seconds of a mean share
	derived  float64 // seconds of a mean share's host work
	remote   float64 // share of the inputs that other workers' parts hold
	window   windowRows
	// onGPU is the share of the inputs that stay on the GPU, and awayOnGPU of these what other workers' parts hold.
	onGPU, awayOnGPU float64
	// busy is how much larger the shares are of the worker with most seeds than those of all, and whole how much larger the
	// share is of which last has the costs.
	busy, whole float64
}

// Hop is one hop of a worker's mean share of a step.
type Hop struct {
	Destinations int `json:"destinations"`
	Sources      int `json:"sources"`
	Edges        int `json:"edges"`
	Asks
}

// Asks are the messages by which a worker gets the edges of a hop that other workers have (Topology "divided").
type Asks struct {
	Messages int   `json:"messages,omitempty"` // requests to all other workers, and their replies
	Asked    int64 `json:"asked,omitempty"`    // bytes of the requests
	Answered int64 `json:"answered,omitempty"` // bytes of the replies
	far      int64 // bytes of those between machines
}

// loads samples shares and passes the model over them.
func (j *Job) loads(ctx context.Context, steps int, budget time.Duration) (*load, error) {
	l := &load{}
	d, err := newDry(j, true)
	if err != nil {
		return nil, err
	}
	l.params = d.params.Len()
	if j.GPU && gpus != nil {
		if l.gpu, err = gpus.passes(j, true); err != nil {
			return nil, err
		}
	}
	var sampling, derived []float64
	var hops [][3]float64
	var asks []Asks
	most := 0
	rows := j.rowSlots()
	windowed := j.counts != nil && j.Embedding == 0 && j.sizes(&load{}, 0).Ahead > 0
	var far []awayShare
	var onGPU gpuCounter
	if j.GPU && gpus != nil {
		onGPU = gpus.reads(j)
	}
	seedsOf, sharesOf := make([]float64, j.Workers), make([]float64, j.Workers)
	err = j.shares(ctx, 0, steps, budget, j.Threads, func(s sampled) error {
		p, err := d.batch(j.Data, s, j.gathered())
		if err != nil {
			return err
		}
		if l.gpu != nil && l.shares < j.Epochs*j.steps(j.seedsOf()) { // a GPU takes what it is asked for, even if it is asked once
			if err := l.gpu.share(j, s); err != nil {
				return err
			}
		}
		l.shares++
		l.held, l.left = max(l.held, p.held), p.left
		l.batch = max(l.batch, j.batchBytes(s))
		rows.add(s.rank, j.batchRows(s))
		l.made += p.made + int64(8*len(s.b.Seeds))
		l.seeds += float64(len(s.b.Seeds))
		l.inputs += float64(s.blocks[0].NumSrc)
		if hops == nil {
			hops = make([][3]float64, len(s.blocks))
		}
		for i, b := range s.blocks {
			l.edges += float64(b.NumEdges())
			h := &hops[len(s.blocks)-1-i]
			h[0], h[1], h[2] = h[0]+float64(b.NumDst), h[1]+float64(b.NumSrc), h[2]+float64(b.NumEdges())
		}
		for i, a := range s.asks {
			if asks == nil {
				asks = make([]Asks, len(s.asks))
			}
			asks[i] = Asks{a.Messages, asks[i].Asked + a.Asked, asks[i].Answered + a.Answered, asks[i].far + a.far}
		}
		seedsOf[s.rank] += float64(len(s.b.Seeds))
		sharesOf[s.rank]++
		l.remote += s.remote
		if windowed && s.away != nil {
			far = append(far, awayShare{j.machineOf(s.rank), s.rank, s.away})
		}
		if onGPU != nil {
			onGPU.add(s)
		}
		sampling, derived = append(sampling, s.seconds), append(derived, p.seconds)
		if len(s.b.Seeds) >= most { // an epoch's last share may be smaller than the others
			most, l.last = len(s.b.Seeds), p
			l.last.costs = slices.Clone(p.costs)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if l.shares == 0 {
		return nil, errors.New("plan: split \"train\" has no nodes")
	}
	seeds := j.seedsOf()
	l.rows, l.regrown = rows.found(j.steps(seeds) * j.Virtual)
	if last := j.steps(seeds) - 1; steps > 1 && last >= steps && seeds%j.batch(seeds) != 0 {
		// An epoch's last batch is smaller, so that it takes other memory.
		err := j.shares(ctx, last, 1, 0, j.Threads, func(s sampled) error {
			p, err := d.batch(j.Data, s, j.gathered())
			if last >= tensor.KeepPasses { // dropped until the next epoch's last batch
				l.again = max(0, p.held-l.held) + p.left - l.left
			}
			l.held, l.left = max(l.held, p.held), p.left
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	n := float64(l.shares)
	l.made = int64(float64(l.made) / n)
	l.seeds, l.inputs, l.edges, l.remote = l.seeds/n, l.inputs/n, l.edges/n, l.remote/n
	for _, h := range hops {
		l.hops = append(l.hops, Hop{Destinations: int(h[0]/n + 0.5), Sources: int(h[1]/n + 0.5), Edges: int(h[2]/n + 0.5)})
	}
	for i, a := range asks {
		n := int64(l.shares)
		l.hops[i].Asks = Asks{a.Messages, a.Asked / n, a.Answered / n, a.far / n}
	}
	l.sampling, l.derived = short(sampling), short(derived)
	l.busy, l.whole = 1, max(1, float64(most)/max(1, l.seeds))
	for rank, n := range sharesOf {
		if n > 0 {
			l.busy = max(l.busy, seedsOf[rank]/n/max(1, l.seeds))
		}
	}
	if w := int64(j.Workers); j.Cooperative && j.counts == nil {
		l.held, l.batch, l.rows, l.regrown, l.left, l.made, l.inputs = l.held/w, l.batch/w, l.rows/w, l.regrown/w, l.left/w, l.made/w, l.inputs/float64(w)
	}
	if len(far) > 0 {
		if l.window, err = j.counts.window(j, ctx, l, far); err != nil {
			return nil, err
		}
	}
	if onGPU != nil {
		l.awayOnGPU, l.onGPU = onGPU.found()
	}
	l.evalled, err = j.evaluated()
	return l, err
}

// short returns a typical one of the times of several batches on an idle machine: that at a sixth of them from the shortest, without the first batch, which
// takes fresh memory, if there are more than two.
func short(times []float64) float64 {
	if len(times) > 1 {
		times = slices.Clone(times[1:])
	}
	slices.Sort(times)
	return times[min(max(1, len(times)/6), len(times)-1)]
}

// seedsOf returns the number of training nodes.
func (j *Job) seedsOf() int {
	ids, _ := j.Data.Split("train")
	return len(ids)
}

// batchBytes returns the memory of a batch without features: the sampler's arrays, and what layers derive from its
// blocks.
func (j *Job) batchBytes(s sampled) int64 {
	b := s.blocks[0]
	n := 4*int64(b.NumSrc) + 12*int64(len(s.b.Seeds))
	for i, b := range s.blocks {
		edges := int64(b.NumEdges())
		n += 8*int64(b.NumDst+1) + 12*edges + b.Derived()
		if b.Weighted() {
			n += 4 * edges
		}
		if i > 0 || j.Embedding > 0 {
			turned := b
			if h := b.Halo; h != nil && h.Sums != nil {
				turned = h.Sums.Block
				n += 8*int64(turned.NumDst+1) + 4*int64(turned.NumEdges()) + 8*int64(turned.NumDst-h.Sums.Halo.Own)
			}
			n += turned.TransposeBytes()
		}
		if h := b.Halo; h != nil {
			n += 4*int64(b.NumSrc) + 8*int64(h.Others)
		}
	}
	if y := j.Data.MultiLabels; y != nil {
		n += int64(len(s.b.Seeds) * y.Cols)
	}
	return n
}

// batchRows returns the memory of a batch's own features.
func (j *Job) batchRows(s sampled) int64 {
	if j.gathered() || j.Data.Features == nil && j.Data.SparseFeatures != nil {
		return int64(s.blocks[0].NumSrc) * rowBytes(j.Data)
	}
	return 0
}

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

// evaluated is what an evaluation takes.
type evaluated struct {
	held     int64 // bytes of a worker's tensors
	batch    int64 // bytes of a worker's batches, and of what is derived from slices of a small graph
	matrices int64 // bytes of the layers' outputs, which all workers share
	made     int64
	left     int64     // bytes that the first one replaces
	again    int64     // bytes that each later one replaces
	steps    int       // batches of a worker, if they are sampled
	sampling float64   // seconds in which one of them is sampled
	loop     int       // those of the larger split
	gpu      gpuPasses // nil for the CPU
	inputs   int64     // bytes of the largest input of a layer above the first, which a GPU keeps meanwhile
	between  int64     // bytes of such an input and the layer's output, which a GPU keeps too if it has room
	last     pass
	times    float64 // how often a worker makes this pass, if it is not once: for its parts
}

// evaluationSteps is the number of batches of a sampled evaluation that are predicted, in evaluationTime.
const (
	evaluationSteps = 8
	evaluationTime  = 500 * time.Millisecond
)

// evaluated passes the model over an evaluation.
func (j *Job) evaluated() (e evaluated, err error) {
	switch j.Eval {
	case "full":
		return j.fullEvaluation()
	case "sampled":
		e := *j
		e.Batch, e.PerWorker, e.Cooperative, e.Picker = 1024, 0, false, nil
		var splits []int
		for _, split := range []string{"val", "test"} {
			if ids, err := j.Data.Split(split); err == nil && len(ids) > 0 {
				splits = append(splits, len(ids))
			}
		}
		if len(splits) > 0 {
			e.Batch = min(e.Batch, slices.Max(splits))
		}
		d, err := newDry(&e, false)
		if err != nil {
			return evaluated{}, err
		}
		var got evaluated
		if j.GPU && gpus != nil {
			if got.gpu, err = gpus.passes(&e, false); err != nil {
				return evaluated{}, err
			}
		}
		var times []float64
		err = e.shares(context.Background(), 0, evaluationSteps, evaluationTime, j.Threads, func(s sampled) error {
			p, err := d.batch(j.Data, s, j.gathered())
			if err == nil && got.gpu != nil {
				err = got.gpu.share(&e, s)
			}
			got.held, got.left, got.made, got.last = max(got.held, p.held), p.left, p.made, p
			times = append(times, s.seconds)
			got.batch = max(got.batch, (ahead+2)*(j.batchBytes(s)+j.batchRows(s))+4*int64(j.Data.Nodes()))
			return err
		})
		if len(times) > 0 {
			got.sampling = short(times)
		}
		for _, n := range splits {
			got.steps += (n + e.Batch - 1) / e.Batch
			got.loop = max(got.loop, (n+e.Batch-1)/e.Batch)
		}
		return got, err
	}
	return e, nil
}

// fullEvaluation passes the model over the share of rank 0 of an evaluation with all neighbours.
func (j *Job) fullEvaluation() (e evaluated, err error) {
	d, err := newDry(j, false)
	if err != nil {
		return e, err
	}
	ds := j.Data
	hi := ds.Nodes() / j.Workers
	graph := &lastSlice{}
	var part *evaluatedPart
	if ds.Meta.Parts != nil {
		if part, err = j.largestPart(); err != nil {
			return e, err
		}
	}
	if part != nil && part.graph != nil {
		graph.Slicer, hi = part.graph, part.own
	} else {
		graph.Slicer = graphops.KeepSlices(ds.Graph)
	}
	_, large := graph.Slicer.(*graphops.Graph) // slices of a small graph keep what is derived from them
	widths := make([]int, d.m.NumLayers())
	var left int64
	for round := range 3 { // the second one finds the memory of the first one, and the third what all later ones find
		if err := j.evaluateOnce(d, graph, large, hi, widths, &e); err != nil {
			return e, err
		}
		kept, replaced := d.fwd.Held()
		if e.held, e.again, left = max(e.held, kept), replaced-left, replaced; round == 0 {
			e.left = replaced
		}
	}
	if j.GPU && gpus != nil {
		if e.gpu, err = gpus.passes(j, false); err != nil {
			return e, err
		}
		err = j.evaluateOnce(e.gpu.network(), graph, large, hi, widths, &e)
	}
	if part != nil && part.graph != nil {
		j.ofParts(part, widths, &e)
	}
	return e, err
}

// evaluateOnce is one evaluation of the rows before hi. Widths are those of the layers, which the first one finds out.
func (j *Job) evaluateOnce(d *dry, graph *lastSlice, large bool, hi int, widths []int, e *evaluated) error {
	ds := j.Data
	nodes := graph.NumNodes()
	d.begin(0)
	cols, before, kept := j.inputCols(), int64(0), int64(0)
	e.matrices, e.batch = 0, 0
	made := int64(0)
	start := time.Now()
	for i := range d.m.NumLayers() {
		if widths[i] == 0 {
			out, err := nn.LayerCols(d.m, d.fwd, i, cols)
			if err != nil {
				return err
			}
			widths[i] = out
		}
		out := widths[i]
		rows, free := blank(nodes * (cols + out))
		to := rows[nodes*cols:][:hi*out]
		if d.keep != nil {
			d.keep(rows[:nodes*cols])
		}
		if i > 0 {
			e.inputs = max(e.inputs, 4*int64(nodes)*int64(cols))
			if i < d.m.NumLayers()-1 {
				e.between = max(e.between, 4*int64(nodes)*int64(cols+out))
			}
		}
		input := func(f *nn.Fwd) *nn.Tensor { return f.Input(nodes, cols, rows[:nodes*cols], &nn.Space{}) }
		if i == 0 && j.Embedding == 0 && ds.Features == nil && ds.SparseFeatures != nil {
			x := ds.SparseFeatures
			input = func(f *nn.Fwd) *nn.Tensor {
				return f.SparseInput(x.Rows, x.Cols, x.Indptr, x.Indices, x.Values, &nn.Space{})
			}
		}
		err := nn.LayerRowsFrom(d.m, d.fwd, i, graph, input, 0, hi, to, func(int) {
			if b := graph.last; large { // made for each chunk
				made += b.Derived()
			} else {
				e.batch += b.Derived()
			}
		})
		free()
		if err != nil {
			return err
		}
		m := 4 * int64(nodes) * int64(out)
		e.matrices, before, kept = max(e.matrices, before+m), m, kept+m
		cols = out
	}
	if kept <= keptMatrices {
		e.matrices = kept
	}
	e.made, e.last = d.now.made+made, d.now
	e.last.seconds = time.Since(start).Seconds()
	if !large {
		e.made = 0
	}
	return nil
}

// lastSlice keeps the last block.
type lastSlice struct {
	graphops.Slicer
	last *graphops.Block
}

func (s *lastSlice) Slice(lo, hi int) *graphops.Block {
	s.last = s.Slicer.Slice(lo, hi)
	return s.last
}

// sizes is the memory of a worker for rows that it does not have, on a machine with free bytes of memory.
func (j *Job) sizes(l *load, free int64) feed.Sizes {
	o := feed.PlaneOptions{Cache: j.Cache, CachePolicy: j.CachePolicy, Prefetch: j.Prefetch}
	if j.Disk {
		o.Features = feed.FeaturesOnDisk
	}
	inputs := l.inputs * float64(j.Virtual)
	remote := l.remote * inputs
	if w := l.window; w.away > 0 { // what the cache has is not asked for
		remote = w.held * float64(j.Virtual)
	} else if j.counts == nil && j.Cache != "" { // which rows it has is not known
		remote = 0
	}
	return o.Sizes(feed.Reads{
		Own: float64(j.Data.Nodes()) / float64(j.Workers), Nodes: j.Data.Nodes(), Remote: remote, Inputs: inputs,
		RowBytes: rowBytes(j.Data), Elsewhere: j.elsewhere(), Servers: j.far(), Free: free, Local: j.here(),
	})
}

// poolBytes is what a cache of Belady's policy knows of each row: an entry, its place in a map, and candidates.
const poolBytes = 120

// cache is the memory of the cache that the workers of this machine share.
func (j *Job) cache(s feed.Sizes) int64 {
	return min(s.Cache*int64(j.here()), int64(j.Data.Nodes())*rowBytes(j.Data))
}

// policyNote compares a cache of Belady's policy with the static one, whose window keeps the rows of more steps beside it;
// "" for a static one.
func (j *Job) policyNote(l *load, free int64) string {
	mine := j.sizes(l, free)
	if !mine.Alone || mine.Ahead == 0 {
		return ""
	}
	o := *j
	o.CachePolicy = ""
	static, here := o.sizes(l, free), int64(j.here())
	bytes := o.cache(static) + here*static.Window
	note := fmt.Sprintf("A static cache of this size, with its window of %d steps, would take %s", static.Ahead, phrase.Bytes(bytes))
	if here > 1 {
		note += ", and the workers would share the cache"
	}
	if equal := bytes/here - mine.Window; equal > mine.Cache {
		note += fmt.Sprintf("; with Belady's policy as much memory has room for a cache of %s for each worker", phrase.Bytes(equal))
	}
	return note + "."
}

// memory adds up what a run takes on a machine with free bytes of memory.
func (j *Job) memory(l *load, free int64) Memory {
	p := 4 * int64(l.params)
	ds := j.Data
	steps, sizes := j.steps(j.seedsOf()), j.sizes(l, free)
	batches := int64(min(max(ahead, sizes.Ahead*j.Virtual+sizes.Late)+2, steps*j.Virtual))
	prepared := batches*l.batch + l.rows
	var m Memory
	add := func(to *[]Item, name string, bytes int64) {
		if bytes > 0 {
			*to = append(*to, Item{name, bytes})
		}
	}
	add(&m.Worker, "process", processBytes+int64(j.Threads)*threadBytes)
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
	add(&m.Worker, "batches prepared", prepared)
	if !j.GPU {
		add(&m.Worker, "activations and their gradients", l.held)
	}
	add(&m.Worker, "learned rows of a batch", j.learnedBytes(l))
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
	if j.Eval != "none" {
		evaluation := l.evalled.held + l.evalled.batch
		if j.GPU {
			evaluation = l.evalled.batch
		}
		if j.Disk && j.Eval == "full" { // the rows of a chunk of the first layer
			evaluation += sizes.Window
		}
		add(&m.Worker, "evaluation", evaluation)
	}
	if garbage := j.heapBytes(l, m, batches*l.batch+l.regrown) - kept(m); garbage > 0 {
		add(&m.Worker, "garbage", garbage)
	}
	add(&m.Shared, "gradients of all ranks and their sum", p*int64(j.here()*j.Virtual+1))
	add(&m.Shared, "evaluation's outputs of all nodes", l.evalled.matrices)
	if !sizes.Alone {
		add(&m.Shared, "cache of "+of, j.cache(sizes))
	}
	if j.Embedding > 0 {
		add(&m.Shared, "learned embeddings with their optimiser state", feed.EmbeddingBytes(j.learnedRows(), j.Embedding))
	}
	if j.Saves {
		copies, of := 4*p+feed.SavedEmbeddingBytes(ds.Nodes(), j.Embedding), "checkpoints and best weights"
		if j.Eval == "none" { // no weights are the best
			copies, of = copies/4*3, "checkpoints"
		}
		add(&m.Shared, "copies for "+of, copies)
	}
	add(&m.Shared, launcherItem, launcherBytes)
	if ds.Dir() == "" {
		add(&m.Shared, datasetItem, 2*ds.Bytes()) // as it was made, and as workers share it
	} else {
		m.Mapped = ds.Bytes()
		if j.Disk {
			m.Mapped -= int64(ds.Nodes()) * rowBytes(ds)
		}
	}
	return m
}

// kept is what a worker's heap keeps, of the memory m.
func kept(m Memory) int64 {
	return m.PerWorker() - m.Worker[0].Bytes + processHeap
}

// learnedBytes is the memory of a step's learned rows: as the pass reads them, and their gradients as they are sent, got
// and added up. Each has room for a quarter more rows.
func (j *Job) learnedBytes(l *load) int64 {
	return 4 * int64(j.Embedding) * int64(l.inputs) * int64(1+3*j.Virtual) * 5 / 4
}

// heapBytes is the largest size of a worker's heap, of which m has what it keeps; grown are the bytes that batches replace until
// they have their size.
func (j *Job) heapBytes(l *load, m Memory, grown int64) int64 {
	h := goheap.New()
	h.Leave(l.window.fill)
	e := l.evalled
	evaluations := j.evaluations()
	later := e.held + e.batch // what only an evaluation takes
	if j.GPU {
		later = e.batch
	}
	if evaluations == 0 {
		later = 0
	}
	h.Keep(kept(m) - later)
	h.Replace(l.left + grown + j.learnedBytes(l))
	steps := j.steps(j.seedsOf())
	for epoch := range min(j.Epochs, manyEpochs) {
		h.Leave(int64(steps*j.Virtual) * (stepGarbage + l.made))
		h.Leave(int64(steps*j.Virtual) * l.window.garbage)
		h.Replace(4*int64(j.seedsOf()) + epochGarbage)
		if epoch > 0 {
			h.Replace(l.again)
		}
		if !j.evaluates(epoch) {
			continue
		}
		if later > 0 {
			h.Keep(later)
			h.Replace(e.left)
			later = 0
		} else {
			h.Replace(e.again)
		}
		h.Leave(int64(e.steps)*(stepGarbage+e.made) + e.made)
	}
	return h.Resident()
}
