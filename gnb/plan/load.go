package plan

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
)

// load is what the batches of a virtual rank take.
type load struct {
	shares  int
	held    int64 // of the tensors of all shares
	batch   int64 // of the largest batch, without its rows of features
	rows    int64 // of features of the largest batch, if batches have their own, with the room that they get
	made    int64 // garbage of a mean share
	left    int64 // garbage of the first shares, until memory has its size
	evalled evaluated
	gpu     *onGPU // what passes of training take on a GPU; nil for the CPU

	seeds, inputs, edges float64 // of a mean share
	moved                int64   // bytes that the passes of a mean share read and write
	hops                 []Hop
	params               int
	remote               float64 // share of the inputs that other workers' parts or servers hold
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
	if j.GPU {
		if l.gpu, err = j.passes(true); err != nil {
			return nil, err
		}
	}
	runs := j.Epochs * j.steps(j.seedsOf()) // a GPU takes what it is asked for, even if it is asked once
	err = j.shares(ctx, steps, budget, func(s sampled) error {
		p, err := d.batch(j.Data, s, j.gathered())
		if err == nil && l.gpu != nil && l.shares < runs {
			err = l.gpu.share(j, s)
		}
		if err != nil {
			return err
		}
		l.shares++
		first := s.b.Blocks[0]
		l.held, l.left = max(l.held, p.held), p.left
		l.batch = max(l.batch, j.batchBytes(s))
		l.rows = max(l.rows, j.batchRows(first.NumSrc)*9/8) // see plane.Reset
		l.made += p.made + int64(8*len(s.b.Seeds))
		l.moved += p.work.RowBytes + p.work.StreamBytes
		l.seeds += float64(len(s.b.Seeds))
		l.inputs += float64(first.NumSrc)
		l.remote += s.remote
		if l.hops == nil {
			l.hops = make([]Hop, len(s.b.Blocks))
		}
		for i, b := range s.b.Blocks {
			h := &l.hops[len(l.hops)-1-i]
			l.edges += float64(b.NumEdges())
			h.Destinations, h.Sources, h.Edges = h.Destinations+b.NumDst, h.Sources+b.NumSrc, h.Edges+b.NumEdges()
		}
		for i, a := range s.asks {
			h := &l.hops[i]
			h.Asks = Asks{a.Messages, h.Asked + a.Asked, h.Answered + a.Answered, h.far + a.far}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if l.shares == 0 {
		return nil, errors.New("plan: split \"train\" has no nodes")
	}
	l.mean(j)
	l.evalled, err = j.evaluated()
	return l, err
}

// mean divides the sums by the number of shares. A worker has its part of a cooperative batch.
func (l *load) mean(j *Job) {
	n := l.shares
	if j.cooperates() {
		n *= j.Workers
		w := int64(j.Workers)
		l.held, l.batch, l.rows, l.left = l.held/w, l.batch/w, l.rows/w, l.left/w
	}
	l.made, l.moved = l.made/int64(n), l.moved/int64(n)
	l.seeds, l.inputs, l.edges, l.remote = l.seeds/float64(n), l.inputs/float64(n), l.edges/float64(n), l.remote/float64(l.shares)
	for i := range l.hops {
		h := &l.hops[i]
		round := func(sum int) int { return (sum + n/2) / n }
		h.Destinations, h.Sources, h.Edges = round(h.Destinations), round(h.Sources), round(h.Edges)
		h.Asked, h.Answered, h.far = h.Asked/int64(n), h.Answered/int64(n), h.far/int64(n)
	}
}

// seedsOf returns the number of training nodes.
func (j *Job) seedsOf() int {
	ids, _ := j.Data.Split("train")
	return len(ids)
}

// batchBytes returns the memory of a batch without features: the sampler's arrays, and what layers derive from its
// blocks.
func (j *Job) batchBytes(s sampled) int64 {
	n := 4*int64(s.b.Blocks[0].NumSrc) + 12*int64(len(s.b.Seeds))
	for i, b := range s.b.Blocks {
		edges := int64(b.NumEdges())
		n += 8*int64(b.NumDst+1) + 12*edges + b.Derived()
		if b.Weighted() {
			n += 4 * edges
		}
		if i > 0 || j.Embedding > 0 {
			n += b.TransposeBytes()
		}
	}
	if y := j.Data.MultiLabels; y != nil {
		n += int64(len(s.b.Seeds) * y.Cols)
	}
	return n
}

// batchRows returns the memory of a batch's own features, of a number of nodes.
func (j *Job) batchRows(nodes int) int64 {
	if j.gathered() || j.Data.Features == nil && j.Data.SparseFeatures != nil {
		return int64(nodes) * rowBytes(j.Data)
	}
	return 0
}

// evaluated is what an evaluation takes.
type evaluated struct {
	held     int64 // bytes of a worker's tensors
	batch    int64 // bytes of a worker's batches, and of what is derived from slices of a small graph
	matrices int64 // bytes of the layers' outputs, which all workers share
	made     int64
	left     int64 // bytes that the first one replaces
	steps    int   // batches of a worker, if they are sampled
	loop     int   // those of the larger split
	gpu      *onGPU
	inputs   int64 // bytes of the largest input of a layer above the first, which a GPU keeps meanwhile
	between  int64 // bytes of such an input and the layer's output, which a GPU keeps too if it has room
}

const (
	// keptMatrices is the limit up to which an evaluation's matrices stay in memory (layerMatrices of package gnb).
	keptMatrices = 512 << 20
	// evaluationSteps is the number of batches of a sampled evaluation that are predicted, in evaluationTime.
	evaluationSteps = 8
	evaluationTime  = 500 * time.Millisecond
	// manyEdges is the number of edges up to which an evaluation with all neighbours is passed over the graph, in about a second.
	manyEdges = 100e6
)

// evaluated passes the model over an evaluation.
func (j *Job) evaluated() (e evaluated, err error) {
	switch {
	case j.Eval == "full" && j.Data.Edges() > manyEdges:
		return j.roughEvaluation(), nil
	case j.Eval == "full":
		return j.fullEvaluation()
	case j.Eval == "sampled":
		return j.sampledEvaluation()
	}
	return e, nil
}

func (j *Job) sampledEvaluation() (got evaluated, err error) {
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
		return got, err
	}
	if j.GPU {
		if got.gpu, err = e.passes(false); err != nil {
			return got, err
		}
	}
	err = e.shares(context.Background(), evaluationSteps, evaluationTime, func(s sampled) error {
		p, err := d.batch(j.Data, s, j.gathered())
		if err == nil && got.gpu != nil {
			err = got.gpu.share(&e, s)
		}
		got.held, got.left, got.made = max(got.held, p.held), p.left, p.made
		got.batch = max(got.batch, (ahead+2)*(j.batchBytes(s)+j.batchRows(s.b.Blocks[0].NumSrc))+4*int64(j.Data.Nodes()))
		return err
	})
	for _, n := range splits {
		got.steps += (n + e.Batch - 1) / e.Batch
		got.loop = max(got.loop, (n+e.Batch-1)/e.Batch)
	}
	return got, err
}

// fullEvaluation passes the model over the share of rank 0 of an evaluation with all neighbours.
func (j *Job) fullEvaluation() (e evaluated, err error) {
	d, err := newDry(j, false)
	if err != nil {
		return e, err
	}
	part, err := j.largestPart()
	if err != nil {
		return e, err
	}
	graph, hi := &lastSlice{}, j.Data.Nodes()/j.Workers
	if part.graph != nil {
		graph.Slicer, hi = part.graph, part.own
	} else {
		graph.Slicer = graphops.KeepSlices(j.Data.Graph)
	}
	var widths []int
	for round := range 2 { // the second one finds the memory of the first one
		if widths, err = j.evaluateOnce(d, graph, hi, &e); err != nil {
			return e, err
		}
		kept, replaced := d.fwd.Held()
		if e.held = max(e.held, kept); round == 0 {
			e.left = replaced
		}
	}
	if j.GPU {
		if e.gpu, err = j.passes(false); err != nil {
			return e, err
		}
		_, err = j.evaluateOnce(e.gpu.dry, graph, hi, &e)
	}
	if part.graph != nil { // no worker has rows of all nodes
		e.matrices, e.batch = 0, e.batch+part.bytes(j, widths)
	}
	return e, err
}

// evaluateOnce is one evaluation of the rows before hi. It returns the widths of the layers.
func (j *Job) evaluateOnce(d *dry, graph *lastSlice, hi int, e *evaluated) (widths []int, err error) {
	ds, nodes := j.Data, graph.NumNodes()
	_, large := graph.Slicer.(*graphops.Graph) // slices of a small graph keep what is derived from them
	d.begin(0)
	cols, before, kept, made := j.inputCols(), int64(0), int64(0), int64(0)
	e.matrices, e.batch = 0, 0
	for i := range d.m.NumLayers() {
		out, err := nn.LayerCols(d.m, d.fwd, i, cols)
		if err != nil {
			return nil, err
		}
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
		if x := ds.SparseFeatures; i == 0 && j.Embedding == 0 && ds.Features == nil && x != nil {
			input = func(f *nn.Fwd) *nn.Tensor {
				return f.SparseInput(x.Rows, x.Cols, x.Indptr, x.Indices, x.Values, &nn.Space{})
			}
		}
		err = nn.LayerRowsFrom(d.m, d.fwd, i, graph, input, 0, hi, to, func(int) {
			if b := graph.last; large { // made for each chunk
				made += b.Derived()
			} else {
				e.batch += b.Derived()
			}
		})
		free()
		if err != nil {
			return nil, err
		}
		m := 4 * int64(nodes) * int64(out)
		e.matrices, before, kept = max(e.matrices, before+m), m, kept+m
		widths, cols = append(widths, out), out
	}
	if kept <= keptMatrices {
		e.matrices = kept
	}
	if large {
		e.made = d.now.made + made
	}
	return widths, nil
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
