package gnb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// ExplainOptions say which batch [Explain] looks at, and with what network.
type ExplainOptions struct {
	Fanouts []int // nil means [10, 10]; -1 takes all neighbours
	// Split, Batch, Epoch and Step choose the seeds where none are given: those of
	// that step of training with these settings and this Seed, on one worker.
	Split string // "" means "train"
	Batch int    // 0 means 1024
	Epoch int    // 0 means the first epoch
	Step  int    // 0 means the epoch's first step
	Seed  uint64 // 0 means the seed 0
	// Draw is which of the seeds has its neighbourhood drawn; 0 means the first.
	Draw int
	// Model is what is computed on the batch, SAGE by default.
	Model   AnyModel
	Hidden  int     // columns of its hidden layers; 0 means 64
	Dropout float64 // between its layers; 0 means 0.5, and [None] no dropout
	Threads int     // 0 means all CPUs
	Device  string
	Quiet   bool // shows no picture in a cell
}

// Explanation is what one batch is made of: the result of [Explain].
type Explanation struct {
	Dataset string    `json:"dataset"`
	Model   string    `json:"model"`
	Device  string    `json:"device"`
	Threads int       `json:"threads"`
	Fanouts []int     `json:"fanouts"`
	Epoch   int       `json:"epoch"`
	Step    int       `json:"step"`
	Seeds   int       `json:"seeds"`
	Hops    []HopSize `json:"hops"` // the seeds' first
	// Spans are what a step does, one after the other, with nothing overlapping, as
	// measured in the last of a few rounds. In training, sampling and fetching run
	// beside the rest.
	Spans []Span `json:"spans"`
	// Around is what was sampled around one seed.
	Around Neighborhood `json:"around"`
}

// HopSize is one hop of a batch.
type HopSize struct {
	Dst   int `json:"destinations"` // nodes that received messages
	Src   int `json:"sources"`      // nodes reached so far, the destinations included
	Edges int `json:"edges"`
	// Duplication is how many edges end at the mean source that is not a
	// destination: how often its row is used, once it is there. Without
	// de-duplication each edge would need a row of its own.
	Duplication float64 `json:"duplication"`
	Bytes       int64   `json:"bytes"` // of the block's arrays
}

// Span is a stretch of a step's time.
type Span struct {
	Stage   string  `json:"stage"`
	Start   float64 `json:"start"` // seconds from the step's beginning
	Seconds float64 `json:"seconds"`
	// Bytes is what the stage cannot do without: blocks written by sampling; rows
	// of features read and rows of output written by a layer, once each, and the
	// gradients of both backward; gradients and weights by the optimiser.
	Bytes int64 `json:"bytes"`
}

// Neighborhood is the nodes that were sampled around a seed, nearest first, up to
// some hundreds of them.
type Neighborhood struct {
	Seed  int32          `json:"seed"`
	Nodes []NeighborNode `json:"nodes"` // Nodes[0] is the seed
	Edges []NeighborEdge `json:"edges"`
	// LeftOut is how many more nodes were sampled.
	LeftOut int `json:"left_out"`
}

// NeighborNode is a node of a [Neighborhood].
type NeighborNode struct {
	ID  int32 `json:"id"`
	Hop int   `json:"hop"` // at which it was first reached; 0 for the seed
}

// NeighborEdge is an edge that was sampled, as indices into Nodes.
type NeighborEdge struct {
	Src int `json:"src"`
	Dst int `json:"dst"`
	Hop int `json:"hop"` // from 1
}

type explainArgs struct {
	Seeds   []int32
	Split   string
	Batch   int
	Fanouts []int
	Epoch   int
	Step    int
	Draw    int
	Model   string
	Sizes   ModelConfig
}

// Explain looks at one batch under the microscope: its nodes and edges hop by hop,
// how often a row is used, what each stage of a step on it takes in time and
// bytes, and what was sampled around one seed. seeds are the batch's; nil takes
// those that training would take at a step. In a cell it shows a picture; print
// the explanation for the numbers.
//
// It samples with the seed's draws, so the batch is the very one of training, and
// computes in one worker process for a fraction of a second beyond what a few
// steps take.
func Explain(ctx context.Context, ds *Dataset, seeds []int32, o ExplainOptions) (Explanation, error) {
	multigpuEnter()
	var e Explanation
	if multigpu.InWorker() {
		return e, errWorker
	}
	a, err := o.args(ds, seeds)
	if err != nil {
		return e, err
	}
	run, err := launchScratch(ctx, explainProgram, a, LaunchOptions{
		Data: ds, Workers: 1, Threads: o.Threads, Device: o.Device, Seed: o.Seed, Quiet: true,
	})
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal([]byte(run.Result.Text["explanation"]), &e); err != nil {
		return e, fmt.Errorf("gnb: the worker's explanation cannot be read: %w", err)
	}
	e.Dataset, e.Model, e.Device, e.Threads = ds.Name(), a.Model, run.Config.Device, run.Config.Threads
	if !o.Quiet {
		_ = live.ShowBatch(e.picture(), e.String()) // a broken display is no failure of the measurement
	}
	return e, nil
}

func (o ExplainOptions) args(ds *Dataset, seeds []int32) (a explainArgs, err error) {
	if ds == nil || ds.Graph == nil {
		return a, errors.New("gnb: Explain needs a dataset with a graph; get one from gnb.Load")
	}
	if err := cmp.Or(inBounds(
		bound{"Batch", o.Batch, 1, maxCount}, bound{"Epoch", o.Epoch, 0, maxEpochs - 1}, bound{"Step", o.Step, 0, maxCount}, bound{"Draw", o.Draw, 0, maxCount},
		bound{"Hidden", o.Hidden, 1, maxHidden}, bound{"Threads", o.Threads, 1, maxThreads()},
	), numbers(dropped("Dropout", o.Dropout, true))); err != nil {
		return a, err
	}
	if err := sample.Fanouts(o.Fanouts).Check(); err != nil {
		return a, fmt.Errorf("gnb: Fanouts: %w", err)
	}
	model := AnyModel(SAGE)
	if v := reflect.ValueOf(o.Model); v.IsValid() && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		model = o.Model
	}
	if _, err := models.get(model.Name()); err != nil {
		return a, err
	}
	a = explainArgs{
		Seeds: seeds, Split: cmp.Or(o.Split, "train"), Batch: cmp.Or(o.Batch, 1024), Fanouts: o.Fanouts,
		Epoch: o.Epoch, Step: o.Step, Draw: o.Draw, Model: model.Name(),
	}
	if a.Fanouts == nil {
		a.Fanouts = []int{10, 10}
	}
	a.Sizes = ModelConfig{
		In: ds.FeatureDim(), Out: max(ds.Classes(), 1), Layers: len(a.Fanouts), Hidden: cmp.Or(o.Hidden, 64), Dropout: orNone(o.Dropout, 0.5),
	}
	switch {
	case len(a.Fanouts) == 0:
		return a, errors.New("gnb: Explain needs Fanouts, a number of neighbours for each hop")
	case ds.FeatureDim() == 0:
		return a, fmt.Errorf("gnb: %s has no node features for model %q to compute on; add some to the dataset", ds.Name(), a.Model)
	}
	for _, v := range seeds {
		if v < 0 || int(v) >= ds.Nodes() {
			return a, fmt.Errorf("gnb: Explain got node %d as a seed; %s has the nodes 0 to %d", v, ds.Name(), ds.Nodes()-1)
		}
	}
	return a, nil
}

// explainRounds is how often the step is made; the last is shown, when memory is
// there and caches are warm as in training.
const explainRounds = 5

var explainProgram = Program("gnb.explain", func(w *Worker, a explainArgs) error {
	net := w.Network(a.Model, a.Sizes)
	opt := w.Adam(net, 1e-3)
	p, err := w.plan(a.Split, Loader{Fanouts: a.Fanouts, Batch: a.Batch})
	if err != nil {
		return err
	}
	seeds := a.Seeds
	if seeds == nil {
		if a.Step >= p.steps {
			return fmt.Errorf("gnb: Explain asks for step %d of split %q, which has %s of %s", a.Step, a.Split, phrase.Count(p.steps, "step"), phrase.Count(p.Batch, "seed"))
		}
		ids := sample.EpochOrder(w.job.Seed, a.Epoch, p.ids)
		seeds = ids[a.Step*p.Batch : min((a.Step+1)*p.Batch, len(ids))]
	}
	if len(seeds) == 0 || a.Draw >= len(seeds) {
		return fmt.Errorf("gnb: Explain draws the neighbourhood of seed number %d, counted from 0, of a batch of %s", a.Draw, phrase.Count(len(seeds), "seed"))
	}
	s, done, err := w.sampler(p.Loader, philox.Sample)
	if err != nil {
		return err
	}
	defer done()
	st, err := w.stager()
	if err != nil {
		return err
	}
	if st != nil {
		defer st.close()
	}
	e := Explanation{Fanouts: a.Fanouts, Epoch: a.Epoch, Step: a.Step, Seeds: len(seeds)}
	for round := range explainRounds {
		e.Spans = nil
		one := plan{Loader: Loader{Batch: len(seeds)}, steps: 1}
		timer := spans{w: w, e: &e, start: time.Now(), last: time.Now()}
		b := w.sampleShare(s, one, seeds, a.Epoch, a.Step, 0, 0)
		if b.err != nil {
			return b.err
		}
		timer.done(stageSample, blockBytes(b.Blocks...))
		if err := w.fetch(b, st, nil); err != nil {
			return err
		}
		timer.done(stageFetch, fetchedBytes(b))
		timer.train(net, opt, b)
		if round == explainRounds-1 {
			e.Hops, e.Around = hopsOf(b.Blocks), neighborhood(b.Blocks, a.Draw)
		}
		b.release()
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	w.emitFirst(event{Type: evResult, Split: "explanation", Text: string(raw)})
	return nil
})

// spans times what a step does.
type spans struct {
	w           *Worker
	e           *Explanation
	start, last time.Time
}

// done ends a span at this moment.
func (s *spans) done(stage string, bytes int64) {
	now := time.Now()
	s.e.Spans = append(s.e.Spans, Span{stage, s.last.Sub(s.start).Seconds(), now.Sub(s.last).Seconds(), bytes})
	s.last = now
}

// train makes the rest of a step, layer by layer.
func (s *spans) train(net *Net[nn.Model], opt *Optimizer, b *Batch) {
	f, h := net.Pass(b)
	var passed int64 // bytes of the layers' inputs and outputs
	for i, block := range b.Blocks {
		rows, in := h.Rows(), h.Cols()
		s.w.check(nn.Try(func() {
			h = net.Model.Layer(f, i, block, h)
			h.Data() // computes what was put off
		}))
		bytes := 4 * (int64(rows)*int64(in) + int64(h.Rows())*int64(h.Cols()))
		if i == 0 && b.Sparse != nil {
			bytes = fetchedBytes(b) + 4*int64(h.Rows())*int64(h.Cols())
		}
		passed += bytes
		s.done(fmt.Sprintf("%s, layer %d", stageForward, i+1), bytes)
	}
	before := s.w.p.StageTimes()
	s.w.Step(b.Loss(h), opt)
	after := s.w.p.StageTimes()
	weights := 4 * int64(net.Params().Len())
	for _, part := range []struct {
		stage string
		bytes int64
	}{{stageBackward, 2 * passed}, {stageReduce, weights}, {stageOptimizer, 7 * weights}} {
		took := after[part.stage] - before[part.stage]
		s.e.Spans = append(s.e.Spans, Span{part.stage, s.last.Sub(s.start).Seconds(), took.Seconds(), part.bytes})
		s.last = s.last.Add(took)
	}
}

// blockBytes is what the arrays of sampled blocks take, wherever they are.
func blockBytes(blocks ...*graphops.Block) (n int64) {
	for _, b := range blocks {
		edges := int64(b.NumEdges())
		n += 8*(int64(b.NumDst)+1+edges) + 4*(edges+int64(b.NumSrc))
		if b.Weighted() {
			n += 4 * edges
		}
	}
	return n
}

// fetchedBytes is what fetching brings into memory of the batch: labels and sparse
// features. Dense ones stay where they are, for the first layer to read.
func fetchedBytes(b *Batch) int64 {
	n := 4*int64(len(b.Labels)) + int64(len(b.Targets))
	if s := b.Sparse; s != nil {
		n += 8*int64(len(s.Indptr)) + 4*int64(len(s.Indices)+len(s.Values))
	}
	return n
}

// hopsOf is the sizes of a batch's blocks, the seeds' hop first.
func hopsOf(blocks []*graphops.Block) (hops []HopSize) {
	for _, b := range slices.Backward(blocks) {
		h := HopSize{Dst: b.NumDst, Src: b.NumSrc, Edges: b.NumEdges(), Bytes: blockBytes(b)}
		if fresh := b.NumSrc - b.NumDst; fresh > 0 {
			outside := 0
			for _, s := range b.Indices()[:b.NumEdges()] {
				if int(s) >= b.NumDst {
					outside++
				}
			}
			h.Duplication = float64(outside) / float64(fresh)
		}
		hops = append(hops, h)
	}
	return hops
}

// maxAround is the most nodes of a neighbourhood that is kept.
const maxAround = 300

// neighborhood follows what was sampled from one seed through all hops.
func neighborhood(blocks []*graphops.Block, seed int) Neighborhood {
	last := blocks[len(blocks)-1]
	n := Neighborhood{Seed: last.DstID(seed), Nodes: []NeighborNode{{ID: last.DstID(seed)}}}
	at := map[int32]int{n.Seed: 0} // ids to indices of Nodes, -1 where left out
	reached := []int{seed}         // rows of the next block's destinations
	for hop := 1; hop <= len(blocks); hop++ {
		b := blocks[len(blocks)-hop]
		in := map[int]bool{}
		for _, d := range reached {
			in[d] = true
		}
		next := slices.Clone(reached)
		indptr, indices := b.Indptr(), b.Indices()
		for _, d := range reached {
			for e := indptr[d]; e < indptr[d+1]; e++ {
				row := int(indices[e])
				if !in[row] {
					in[row] = true
					next = append(next, row)
				}
				id := b.SrcID(row)
				i, known := at[id]
				if !known {
					if i = len(n.Nodes); i >= maxAround {
						n.LeftOut++
						i = -1
					} else {
						n.Nodes = append(n.Nodes, NeighborNode{ID: id, Hop: hop})
					}
					at[id] = i
				}
				if j := at[b.DstID(d)]; i >= 0 && j >= 0 {
					n.Edges = append(n.Edges, NeighborEdge{Src: i, Dst: j, Hop: hop})
				}
			}
		}
		reached = next
	}
	return n
}
