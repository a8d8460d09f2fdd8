package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

// GPU is what a worker takes of its GPU's memory.
type GPU struct {
	Parts []Item `json:"parts"`
	// Graph and Features say where the dataset is: "GPU", "cached" (the rows that are used most are on the GPU), "pinned" (in host
	// memory that the GPU reads) or "host" (copied for each batch).
	Graph    string `json:"graph"`
	Features string `json:"features"`
	// Free is the memory that is free on the GPU, and Limit what the worker takes of it at most; both are 0 if unknown.
	Free  int64 `json:"free,omitempty"`
	Limit int64 `json:"limit,omitempty"`
	// Fit is as that of the plan, "" if Limit is unknown.
	Fit string `json:"fit,omitempty"`

	graph, features int64 // bytes of them on the GPU
}

// Bytes is the sum of the parts.
func (g *GPU) Bytes() int64 { return sumOf(g.Parts) }

type gpuKey struct{}

// ForGPU returns a context in which gnb.Plan plans a run whose workers have a GPU each, with this many bytes of free
// memory, whatever GPUs this machine has.
func ForGPU(ctx context.Context, free int64) context.Context {
	return context.WithValue(ctx, gpuKey{}, free)
}

// GPUOf returns the bytes that [ForGPU] has put into a context, 0 if it has not.
func GPUOf(ctx context.Context) int64 {
	free, _ := ctx.Value(gpuKey{}).(int64)
	return free
}

// locate puts the dataset where the workers will, as far as the memory of their GPUs is known.
func (j *Job) locate(ctx context.Context) {
	g := GPU{Free: GPUOf(ctx)}
	j.imagined = g.Free > 0
	limit, err := phrase.ParseBytes(envknob.CUDAMemory.Get())
	switch {
	case g.Free == 0 && err == nil:
		g.Limit = limit
	case g.Free == 0 && j.here() == j.Workers && !machine.SharingGPUs(): // else the GPUs are those of other machines, or of several workers
		g.Free = machine.FreeGPUMemory(ctx, j.FirstGPU, j.Workers)
	}
	if g.Limit == 0 {
		g.Limit = sizes.Limit(g.Free, j.Workers)
	}
	if j.gathered() || j.far() {
		g.Graph, g.Features = onTheHost, onTheHost
		if rows := j.gpuRows(); rows > 0 {
			g.Features, g.features = "cached", min(int64(rows)*rowBytes(j.Data), max(0, g.dataRoom()))
		}
	} else {
		j.place(&g, j.free-j.free/16)
	}
	j.at = g
}

// room returns the memory of a worker's GPU, very much if it is unknown.
func (g *GPU) room() int64 { return cmp.Or(g.Limit, math.MaxInt64/2) }

// dataRoom is the memory of a worker's GPU for the dataset.
func (g *GPU) dataRoom() int64 { return int64(sizes.Data*float64(g.room())) - g.products() }

// gpuRows is the number of rows that stay on a worker's GPU where the host gathers batches.
func (j *Job) gpuRows() int {
	if !j.GPU || !j.gathered() || j.GPUCache == "" {
		return 0
	}
	share, bytes, _ := plane.ParseSize("GPUCache", j.GPUCache) // a run reports the error
	rows := int(bytes / max(1, rowBytes(j.Data)))
	if share > 0 {
		rows = int(share * float64(j.Data.Nodes()) / float64(j.Workers))
	}
	return min(rows, j.Data.Nodes())
}

// products is the workspace of matrix products.
func (g *GPU) products() int64 { return sizes.Batch(sizes.Round(sizes.Products(g.room()))) }

// onGPU counts the memory that passes of a network take on a GPU.
type onGPU struct {
	*dry
	live      map[int64]int // buffers by size
	now, most int64
	beside    int64 // the most that an operation takes beside these buffers
	tables    map[*float32]bool
	sampler   *sizes.Sampler // on the GPU; nil if the host samples
	fanouts   []int

	there        map[*graphops.Block]int // what the pass finds of blocks
	partial      int64                   // the most that an operation takes for the partial results of long rows
	copied, rows int64                   // by the pass

	// What the largest batches take: the buffers of a sampler on the GPU, copies of blocks, rows of the
	// input, and all buffers with the rows that are gathered from a table in host memory.
	batches, scratch          []int64
	copies, sources, withRows int64

	ahead int64 // the bytes of the rows that the GPU gathers from there one batch ahead
}

// passes returns passes of the job's network on a GPU.
func (j *Job) passes(train bool) (*onGPU, error) {
	d, err := newDry(j, train)
	if err != nil {
		return nil, err
	}
	g := &onGPU{dry: d, live: map[int64]int{}, tables: map[*float32]bool{}, there: map[*graphops.Block]int{}}
	for _, p := range d.params.List() {
		for _, x := range [][]float32{p.W, p.G} {
			if len(x) > 0 {
				g.tables[&x[0]] = true
			}
		}
	}
	if x := j.Data.Features; x != nil && len(x.F32) > 0 && !j.gathered() {
		g.tables[&x.F32[0]] = true
	}
	d.keep = func(rows []float32) { g.tables[&rows[0]] = true }
	d.c.Exchanger = tensor.DryExchanger{Each: func(h *graphops.Halo, cols int) {
		g.beside = max(g.beside, 4*int64(h.Others)*int64(1+cols))
	}}
	d.c.Backend = tensor.DryDevice(func(host []float32) bool { return g.tables[&host[0]] }, func(n int64) {
		of := sizes.Batch(sizes.Round(max(n, -n)))
		if n > 0 {
			g.live[of]++
			g.now += of
		} else {
			g.live[of]--
			g.now -= of
		}
		g.most = max(g.most, g.now)
	}, g.reads)
	d.fwd.Reset(d.c)
	g.sampler, g.fanouts = j.gpuSampler(train)
	return g, nil
}

// buffers returns the sizes of the buffers that are there now.
func (g *onGPU) buffers() (all []int64) {
	for n, count := range g.live {
		for range count {
			all = append(all, n)
		}
	}
	return all
}

// reads notes what is copied to a GPU of a block for the pass, and what an operation takes for its long rows.
func (g *onGPU) reads(b *graphops.Block, part tensor.BlockPart, use tensor.BlockUse) {
	has, e := g.there[b], int64(b.NumEdges())
	g.partial = max(g.partial, e/sizes.LongChunk*int64(use.Partial)) // as if all edges were in rows of several chunks
	for i, bytes := range []int64{
		sizes.Round(8*int64(b.NumDst+1)) + sizes.Round(4*e), sizes.Round(8*int64(b.NumSrc+1)) + 2*sizes.Round(4*e), sizes.Round(8 * e),
	} {
		if (i == 0 || i == int(part)) && has&(1<<i) == 0 && (i != int(tensor.BlockPositions) || b.EdgePos() != nil) {
			g.copied, has = g.copied+bytes, has|1<<i
		}
	}
	if use.TableCols > 0 && has&gathered == 0 && sizes.GatherFirst(b.NumEdges(), b.NumSrc) {
		g.rows, has = g.rows+sizes.Batch(sizes.Round(4*int64(b.NumSrc)*int64(use.TableCols))), has|gathered
	}
	g.there[b] = has
}

// What a GPU has of a block, by 1 << [tensor.BlockPart], and the rows of its sources.
const (
	sampledParts = 1<<tensor.BlockEdges | 1<<tensor.BlockPositions
	gathered     = 1 << 8
)

// share passes a share of a step.
func (g *onGPU) share(j *Job, sh sampled) error {
	s := g.sampler
	clear(g.there)
	g.copied, g.rows = 0, 0
	for i, b := range sh.b.Blocks {
		if s != nil {
			if g.there[b] = sampledParts; s.Transpose && i > 0 {
				g.there[b] |= 1 << tensor.BlockTransposes
			}
		}
	}
	if _, err := g.batch(j.Data, sh, j.gathered()); err != nil {
		return err
	}
	g.copies, g.withRows = max(g.copies, g.copied), max(g.withRows, g.now+g.rows)
	g.sources = max(g.sources, int64(sh.b.Blocks[0].NumSrc))
	if b := sh.b.Blocks[0]; s != nil && sizes.GatherFirst(b.NumEdges(), b.NumSrc) {
		g.ahead = max(g.ahead, 4*int64(b.NumSrc)*int64(j.Data.FeatureDim()))
	}
	if s == nil {
		return nil
	}
	hops := s.Hops(int64(len(sh.b.Seeds)), g.fanouts, func(hop int) (destinations, edges int64) {
		b := sh.b.Blocks[len(sh.b.Blocks)-1-hop]
		return int64(b.NumDst), int64(b.NumEdges())
	})
	// After its first batches, which the host completes, the sampler makes what the model reads of a block.
	for i, b := range sh.b.Blocks {
		h, looped := &hops[len(hops)-1-i], 0
		if b.HasSelfLooped() {
			looped = g.there[b.SelfLooped()]
		}
		h.Loops, h.Turned = looped != 0, (g.there[b]|looped)&(1<<tensor.BlockTransposes) != 0
	}
	if batch := s.Batch(hops); total(batch) > total(g.batches) {
		g.batches, g.scratch = batch, s.Scratch(hops)
	}
	return nil
}

// total is what buffers of these sizes take.
func total(all []int64) (n int64) {
	for _, b := range all {
		n += sizes.Batch(sizes.Round(b))
	}
	return n
}

// gpuSampler describes a sampler on the GPU, and its fanouts; nil if the host samples.
func (j *Job) gpuSampler(train bool) (s *sizes.Sampler, fanouts []int) {
	if j.at.Graph == onTheHost || train && j.cooperates() {
		return nil, nil
	}
	g := j.Data.Graph
	s = &sizes.Sampler{Nodes: int64(g.NumNodes()), Edges: g.NumEdges(), HasWeights: g.EdgeWeights != nil, Transpose: train}
	if j.Picker == nil {
		return s, j.Fanouts
	}
	spec, ok := sample.SpecOf(j.Picker)
	if !ok || spec.Labor != nil && spec.Labor.Poisson {
		return nil, nil
	}
	s.ByWeight = spec.Weighted
	return s, spec.Fanouts
}

// setting returns what the environment says of the place of data.
func setting(k *envknob.Knob) string {
	return map[string]string{"device": onTheGPU, "cached": "cached", "pinned": "pinned", "staged": onTheHost}[k.Get()]
}

// Places of data.
const (
	onTheGPU  = "GPU"
	onTheHost = "host"
)

// place puts the dataset where the workers will, with pin bytes of host memory that can be pinned.
func (j *Job) place(g *GPU, pin int64) {
	room := g.dataRoom()
	auto := func(k *envknob.Knob, bytes int64) string {
		switch at := setting(k); {
		case at != "":
			return at
		case bytes <= room:
			return onTheGPU
		case bytes <= pin:
			return "pinned"
		}
		return onTheHost
	}
	of := j.Data.Graph
	g.graph = 8*int64(len(of.Indptr)) + 4*int64(len(of.Indices)+len(of.EdgeWeights))
	if g.Graph = auto(envknob.CUDAGraph, g.graph); g.Graph != onTheGPU {
		g.graph = 0
	}
	room -= g.graph
	nodes, width := int64(j.Data.Nodes()), rowBytes(j.Data)
	g.features = nodes * width
	if g.Features = auto(envknob.CUDAFeatures, g.features); g.Features == "pinned" && setting(envknob.CUDAFeatures) == "" && room > 4*nodes+width {
		g.Features = "cached"
	}
	switch g.Features {
	case "cached":
		g.features = min(g.features+4*nodes, max(0, room))
	case "pinned", onTheHost:
		g.features = 0
	}
}

// gpuMemory adds up what a worker takes of its GPU.
func (j *Job) gpuMemory(l *load) *GPU {
	g := j.at
	p, t, e := sizes.Round(4*int64(l.params)), l.gpu, l.evalled.gpu
	add := func(name string, bytes int64) {
		if bytes > 0 {
			g.Parts = append(g.Parts, Item{name, bytes})
		}
	}
	var staging, optional int64
	rows := t.sources
	batches := int64(min(ahead+2, j.steps(j.seedsOf())*j.Virtual))
	prepared, scratch, copies, active := batches*total(t.batches), total(t.scratch), batches*t.copies, t.most
	evaluating := int64(0)
	if e != nil {
		rows = max(rows, e.sources)
		each := min(ahead+2, int64(max(1, l.evalled.loop)))
		prepared += each * total(e.batches)
		scratch += total(e.scratch)
		copies += each * e.copies
		evaluating = e.most
	}
	switch {
	case j.gathered() || j.far() || g.Features == onTheGPU:
	case g.Features == onTheHost:
		// Two batches: a buffer that grows gets an eighth more, and the former one waits until its memory is needed.
		staging = 2 * (total([]int64{rows * rowBytes(j.Data), 4 * rows, 4 * int64(j.Data.Nodes())}) + total([]int64{rows * rowBytes(j.Data) * 9 / 8, rows * 9 / 2}))
	default: // the first batches' rows are gathered without the memory of later ones
		active = max(active, t.withRows)
		ahead := t.ahead
		if e != nil {
			evaluating, ahead = max(evaluating, e.withRows), max(ahead, e.ahead)
		}
		optional = 2 * (total([]int64{ahead}) + total([]int64{ahead * 9 / 8}))
	}
	add("graph", g.graph)
	add("features", g.features)
	add("weights and gradients", 2*p+sizes.Round(4*int64(len(t.params.Fixed()))))
	add("optimiser state", 2*p)
	if j.Workers == 1 {
		add("weights of the last two steps", 2*p) // to find where numbers are no longer finite
	}
	add("batches sampled ahead", prepared)
	add("sampler's tables", scratch)
	add("copies of sampled blocks", copies)
	add("copies of rows", staging)
	add("activations and their gradients", active+t.beside)
	if e != nil && (j.Eval != "full" || g.Features != onTheHost) {
		add("evaluation", evaluating+e.beside+sizes.Batch(sizes.Round(l.evalled.inputs)))
		if more := l.evalled.between - l.evalled.inputs; more > 0 && (g.Limit == 0 || g.Limit-g.Bytes() >= 4*more) {
			add(betweenItem, sizes.Batch(sizes.Round(more)))
		}
	}
	partial := t.partial
	if e != nil {
		partial = max(partial, e.partial)
	}
	if partial > 0 {
		add("sums of long rows", sizes.Batch(sizes.Round(sizes.Room(partial))))
	}
	add("workspace of matrix products", g.products())
	if g.Limit == 0 || g.Limit-g.Bytes() >= optional {
		add(aheadItem, optional)
	}
	if gaps := j.gaps(l, &g); gaps > 0 {
		add(gapsItem, gaps)
	}
	if g.Limit > 0 {
		g.Fit = fit(g.Bytes(), g.Limit)
	}
	return &g
}

// aheadItem is the memory for rows in pinned memory that a GPU gathers one batch ahead, if it has room.
const aheadItem = "rows gathered ahead"

// betweenItem is the memory for the output of a layer of an evaluation, whose input a GPU also keeps, if it has room
// (backend.Backend.Room).
const betweenItem = "rows between layers"

// gapsItem is the memory that the driver gives beyond the sizes of buffers.
const gapsItem = "segments that are partly free"

// gaps is what the driver gives beyond the buffers' sizes, on each stream.
func (j *Job) gaps(l *load, g *GPU) int64 {
	t, e, p := l.gpu, l.evalled.gpu, sizes.Round(4*int64(l.params))
	compute := append(t.buffers(), g.products(), p, p, p, p)
	for _, n := range []int64{g.graph, g.features} {
		if n > 0 {
			compute = append(compute, sizes.Round(n))
		}
	}
	if e != nil {
		compute = append(compute, e.buffers()...)
	}
	whole := sizes.Segments(compute) - sumSizes(compute)
	if t.batches != nil {
		sampling := slices.Clone(t.scratch)
		for range min(ahead+2, j.steps(j.seedsOf())*j.Virtual) {
			sampling = append(sampling, t.batches...)
		}
		for i := range sampling {
			sampling[i] = sizes.Batch(sizes.Round(sampling[i]))
		}
		whole += sizes.Segments(sampling) - sumSizes(sampling)
	}
	return whole
}

func sumSizes(all []int64) (n int64) {
	for _, b := range all {
		n += b
	}
	return n
}

// rows adds the rows of a table of memory.
func (g *GPU) rows(add func(name string, bytes int64)) {
	for _, i := range g.Parts {
		add("on its GPU: "+i.Name, i.Bytes)
	}
	add("a worker's GPU in all", g.Bytes())
}

// text says whether the run fits on its GPUs, and what is not known.
func (g *GPU) text() []string {
	fit := "How much memory is free on the GPUs is unknown."
	switch {
	case g.Limit == 0:
	case g.Free > 0:
		fit = fmt.Sprintf("%s of a GPU are free, of which a worker takes up to %s: %s.", phrase.Bytes(g.Free), phrase.Bytes(g.Limit), fitWords(g.Fit))
	default:
		fit = fmt.Sprintf("A worker may take %s of its GPU, as %s says: %s.", phrase.Bytes(g.Limit), envknob.CUDAMemory.Name, fitWords(g.Fit))
	}
	return []string{fit, "What CUDA, its kernels and NCCL take of a GPU beside the worker's buffers is not known, and is within what a worker leaves free."}
}

// gpuVerdict compares what each worker takes with what its GPU has. Only what a worker needs counts: it evaluates on the CPU if a
// layer's input has no room, gathers no rows ahead, and takes segments of the exact size if larger ones have none.
func (j *Job) gpuVerdict(l *load) (warning string, err error) {
	l.evalled.inputs, l.evalled.between = 0, 0
	g := j.gpuMemory(l)
	g.Parts = slices.DeleteFunc(g.Parts, func(i Item) bool { return i.Name == gapsItem || i.Name == aheadItem })
	need := g.Bytes()
	room := fmt.Sprintf("%s allows %s", envknob.CUDAMemory.Name, phrase.Bytes(g.Limit))
	if g.Free > 0 {
		room = fmt.Sprintf("%s are free there, of which a worker takes up to %s", phrase.Bytes(g.Free), phrase.Bytes(g.Limit))
	}
	way := "take more Workers with a GPU each, or a smaller Batch, Hidden or Fanouts"
	if g.Graph == onTheGPU || g.Features == onTheGPU || g.Features == "cached" {
		way += fmt.Sprintf(", or leave features or graph in host memory (%s=pinned, %s=pinned)", envknob.CUDAFeatures.Name, envknob.CUDAGraph.Name)
	}
	return refuse(fit(need, g.Limit), fmt.Sprintf("%s on %s takes about %s of each worker's GPU (%s), and %s", j.Model, j.Data.Name(), phrase.Bytes(need), phrase.List(largest(g.Parts, need)), room), way+"; gnb plan shows each part")
}
