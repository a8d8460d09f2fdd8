// Package inspect looks at a dataset, and measures one batch of training: its nodes and edges per hop, how often rows are
// used, the time and bytes of each stage of a step on it, and the neighbourhood sampled around one
// seed.
//
// # Basics
//
// [Batch] takes the batch of a training step, or seeds of your own. In a cell it shows a picture; print the
// [Report] for the numbers:
//
//	ds := gnb.Must(gnb.Load(ctx, "planted"))
//	fmt.Println(gnb.Must(inspect.Batch(ctx, ds, nil, inspect.Options{Fanouts: []int{15, 10}})))
//
// The command "gnb inspect" does the same in a terminal. [Dataset] draws a dataset: degrees, homophily, classes, sizes, targets.
// [Schema] draws the types of its nodes and edges. "gnb data show" prints both.
//
// # Caveats
//
// The stages of the measured step do not overlap. In training, sampling and fetching of later
// batches run during the computation.
package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/boards"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Options are the settings of [Batch].
type Options struct {
	Fanouts []int // neighbours per hop; nil means [10, 10]; -1 takes all
	// Split, Batch, Epoch and Step choose the seeds if none are given: the seeds of that training
	// step with these settings and this Seed, on one worker.
	Split string // "" means "train"
	Batch int    // 0 means 1024
	Epoch int    // 0 means the first epoch
	Step  int    // 0 means the epoch's first step
	Seed  uint64 // 0 means the seed 0
	// Draw is the index of the seed whose neighbourhood is drawn; 0 means the first.
	Draw int
	// Model is the model that computes on the batch; SAGE by default.
	Model   gnb.AnyModel
	Hidden  int     // columns of the hidden layers; 0 means 64
	Dropout float64 // dropout between the layers; 0 means none
	Threads int     // 0 means all CPUs
	Device  string  // "auto" (also ""), "cpu" or "cuda"
	Quiet   bool    // show no picture in a cell
}

// Report is the result of [Batch].
type Report struct {
	Dataset string `json:"dataset"`
	Model   string `json:"model"`
	Device  string `json:"device"`
	Threads int    `json:"threads"`
	Fanouts []int  `json:"fanouts"`
	Epoch   int    `json:"epoch"`
	Step    int    `json:"step"`
	Seeds   int    `json:"seeds"`
	Hops    []Hop  `json:"hops"` // the seeds' hop first
	// Spans are the stages of a step in their order, as measured in the last of a few rounds. They do not
	// overlap.
	Spans []Span `json:"spans"`
	// Around is the neighbourhood sampled around one seed.
	Around Neighborhood `json:"around"`
	// Types are the types of the dataset's nodes with their own numbers of features; nil if nodes have no types. The
	// measured rows have as many columns as those of the widest type, as in training.
	Types []TypeOf `json:"types,omitempty"`
}

// Hop is one hop of a batch.
type Hop struct {
	Dst   int `json:"destinations"` // nodes that received messages
	Src   int `json:"sources"`      // nodes reached so far, destinations included
	Edges int `json:"edges"`
	// Duplication is the mean number of edges per newly reached source. Without de-duplication each of
	// these edges would need a row of features of its own.
	Duplication float64 `json:"duplication"`
	Bytes       int64   `json:"bytes"` // size of the block's arrays
}

// Span is one stage of a step.
type Span struct {
	Stage   string  `json:"stage"`
	Start   float64 `json:"start"` // seconds since the step began
	Seconds float64 `json:"seconds"`
	// Bytes is the minimal memory traffic of the stage: the blocks that sampling writes; the
	// features that a layer reads and the output that it writes, once each, and the gradients of
	// both in the backward pass; gradients and weights in the optimiser.
	Bytes int64 `json:"bytes"`
}

// Neighborhood is the nodes that were sampled around a seed, the nearest first, at most 300 of them.
type Neighborhood struct {
	Seed  int32  `json:"seed"`
	Nodes []Node `json:"nodes"` // Nodes[0] is the seed
	Edges []Edge `json:"edges"`
	// LeftOut is the number of further nodes that were sampled.
	LeftOut int `json:"left_out"`
}

// Node is a node of a [Neighborhood].
type Node struct {
	ID  int32 `json:"id"`
	Hop int   `json:"hop"` // hop that first reached the node; 0 for the seed
}

// Edge is an edge that was sampled. Src and Dst are indices into [Neighborhood].Nodes.
type Edge struct {
	Src int `json:"src"`
	Dst int `json:"dst"`
	Hop int `json:"hop"` // from 1
}

type args struct {
	Seeds   []int32
	Split   string
	Batch   int
	Fanouts []int
	Epoch   int
	Step    int
	Draw    int
	Model   string
	Sizes   gnb.ModelConfig
}

// Batch measures one batch: its nodes and edges per hop, how often rows are used, the time and
// bytes of each stage of a training step on it, and the neighbourhood sampled around one seed. The
// batch has the given seeds; nil means the seeds of a training step. In a cell Batch shows a
// picture.
//
// It samples with the random draws of training, so that the batch is identical to the one of that
// step. It starts one worker process and makes five steps.
func Batch(ctx context.Context, ds *gnb.Dataset, seeds []int32, o Options) (Report, error) {
	var r Report
	if err := entry.Start(); err != nil {
		return r, err
	}
	types := typesOf(ds)
	ds, err := feed.OneWidth(ctx, ds, o.Quiet)
	if err != nil {
		return r, err
	}
	a, err := o.args(ds, seeds)
	if err != nil {
		return r, err
	}
	run, err := gnb.Launch(ctx, program, a, gnb.LaunchOptions{
		Data:    ds,
		Scratch: true,
		Workers: 1,
		Threads: o.Threads,
		Device:  o.Device,
		Seed:    o.Seed,
		Quiet:   true,
	})
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(run.Result.Text[reportText]), &r); err != nil {
		return r, fmt.Errorf("inspect: the worker's report cannot be read: %w", err)
	}
	r.Types = types
	r.Dataset, r.Model, r.Device, r.Threads = ds.Name(), a.Model, run.Config.Device, run.Config.Threads
	if !o.Quiet {
		_ = boards.ShowBatch(r.picture(), r.String()) // a broken display does not fail the measurement
	}
	return r, nil
}

func (o Options) args(ds *gnb.Dataset, seeds []int32) (a args, err error) {
	switch {
	case ds == nil:
		return a, errors.New("inspect: Batch needs a dataset with a graph; get one from gnb.Load")
	case ds.Graph == nil:
		return a, errors.New("inspect: " + ds.WhyNoGraph())
	}
	if err := cmp.Or(
		entry.Check("Batch", o.Batch, 1, math.MaxInt32), entry.Check("Epoch", o.Epoch, 0, sample.MaxEpochs-1),
		entry.Check("Step", o.Step, 0, math.MaxInt32), entry.Check("Draw", o.Draw, 0, math.MaxInt32),
		entry.Check("Hidden", o.Hidden, 1, entry.MaxHidden), entry.Check("Threads", o.Threads, 1, machine.MaxThreads()),
	); err != nil {
		return a, err
	}
	if d := o.Dropout; !(d >= 0 && d < 1) {
		return a, fmt.Errorf("inspect: Dropout is %v; it is the share to drop, from 0 to below 1", d)
	}
	if err := sample.Fanouts(o.Fanouts).Check(); err != nil {
		return a, fmt.Errorf("inspect: Fanouts: %w", err)
	}
	model := gnb.AnyModel(gnb.SAGE)
	if v := reflect.ValueOf(o.Model); v.IsValid() && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		model = o.Model
	}
	if _, err := gnb.ModelByName(model.Name()); err != nil {
		return a, err
	}
	a = args{
		Seeds: seeds, Split: cmp.Or(o.Split, "train"), Batch: cmp.Or(o.Batch, 1024), Fanouts: o.Fanouts,
		Epoch: o.Epoch, Step: o.Step, Draw: o.Draw, Model: model.Name(),
	}
	if a.Fanouts == nil {
		a.Fanouts = []int{10, 10}
	}
	a.Sizes = gnb.ModelConfig{
		In: ds.FeatureDim(), Out: max(ds.Classes(), 1), Layers: len(a.Fanouts), Hidden: cmp.Or(o.Hidden, 64), EdgeDim: ds.EdgeFeatureDim(), Dropout: o.Dropout,
	}
	a.Sizes.Schema = ds.Schema()
	switch {
	case len(a.Fanouts) == 0:
		return a, errors.New("inspect: Batch needs Fanouts, a number of neighbours for each hop")
	case ds.Labels == nil && ds.MultiLabels == nil:
		return a, fmt.Errorf("inspect: %s has no labels for the loss of a training step; add some to the dataset", ds.Name())
	case ds.FeatureDim() == 0:
		return a, fmt.Errorf("inspect: %s has no node features for model %q to compute on; add some to the dataset", ds.Name(), a.Model)
	}
	if seeds == nil {
		if seeds, err = a.seedsOfStep(ds, o.Seed); err != nil {
			return a, err
		}
	}
	if a.Draw >= len(seeds) {
		return a, fmt.Errorf("inspect: Draw is %d, an index from 0, and the batch has %s", a.Draw, phrase.Count(len(seeds), "seed"))
	}
	for _, v := range seeds {
		if v < 0 || int(v) >= ds.Nodes() {
			return a, fmt.Errorf("inspect: seed %d is not a node; %s has the nodes 0 to %d", v, ds.Name(), ds.Nodes()-1)
		}
	}
	return a, nil
}

const (
	// rounds is the number of steps. The report covers the last one, when memory is already
	// allocated and caches are warm as in training.
	rounds = 5
	// reportText is the name of the report in the run's result.
	reportText = "report"
)

var program = gnb.Program("gnb.inspect", func(w *gnb.Worker, a args) error {
	net := w.Network(a.Model, a.Sizes)
	opt := w.Adam(net, 1e-3)
	seeds := a.Seeds
	if seeds == nil {
		var err error
		if seeds, err = a.seedsOfStep(w.Dataset(), w.Seed()); err != nil {
			return err
		}
	}
	steps := w.SingleSteps(a.Fanouts)
	defer steps.Close()
	r := Report{Fanouts: a.Fanouts, Epoch: a.Epoch, Step: a.Step, Seeds: len(seeds)}
	for round := range rounds {
		r.Spans = nil
		timer := timer{w: w, r: &r, start: time.Now(), last: time.Now()}
		b := steps.Sample(seeds, a.Epoch, a.Step)
		timer.done("sample", blockBytes(b.Blocks...))
		steps.Fetch(b)
		timer.done("fetch", fetchedBytes(b))
		timer.train(net, opt, b)
		if round == rounds-1 {
			r.Hops, r.Around = hopsOf(b.Blocks), neighborhood(b.Blocks, a.Draw)
		}
		steps.Release(b)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	w.ResultText(reportText, string(raw))
	return nil
})

// seedsOfStep returns the seeds of a training step.
func (a args) seedsOfStep(ds *gnb.Dataset, seed uint64) ([]int32, error) {
	ids, err := ds.Split(a.Split)
	if err != nil {
		return nil, err
	}
	batch := min(a.Batch, max(1, len(ids)))
	if steps := (len(ids) + batch - 1) / batch; a.Step >= steps {
		return nil, fmt.Errorf("inspect: Step is %d, an index from 0, and split %q has %s of %s", a.Step, a.Split, phrase.Count(steps, "step"), phrase.Count(batch, "seed"))
	}
	ids = sample.EpochOrder(seed, a.Epoch, ids)
	return ids[a.Step*batch : min((a.Step+1)*batch, len(ids))], nil
}

// timer measures the stages of a step.
type timer struct {
	w           *gnb.Worker
	r           *Report
	start, last time.Time
}

// done ends the current span.
func (s *timer) done(stage string, bytes int64) {
	now := time.Now()
	s.r.Spans = append(s.r.Spans, Span{stage, s.last.Sub(s.start).Seconds(), now.Sub(s.last).Seconds(), bytes})
	s.last = now
}

// train runs the rest of a step, layer by layer.
func (s *timer) train(net *gnb.Net[nn.Model], opt *gnb.Optimizer, b *gnb.Batch) {
	f, h := net.Pass(b)
	var passed int64 // bytes of the layers' inputs and outputs
	for i, block := range b.Blocks {
		rows, in := h.Rows(), h.Cols()
		if err := nn.Try(func() {
			h = net.Model.Layer(f, i, block, h)
			h.Data() // runs deferred computations
		}); err != nil {
			s.w.Fail(err)
		}
		bytes := 4 * (int64(rows)*int64(in) + int64(h.Rows())*int64(h.Cols()))
		if i == 0 && b.Sparse != nil {
			bytes = fetchedBytes(b) + 4*int64(h.Rows())*int64(h.Cols())
		}
		passed += bytes
		s.done(fmt.Sprintf("forward, layer %d", i+1), bytes)
	}
	before := s.w.StageTimes()
	s.w.Step(b.Loss(h), opt)
	after := s.w.StageTimes()
	weights := 4 * int64(net.Params().Len())
	for _, part := range []struct {
		stage string
		bytes int64
	}{{"backward", 2 * passed}, {"all-reduce", weights}, {"optimizer", 7 * weights}} {
		took := after[part.stage] - before[part.stage]
		s.r.Spans = append(s.r.Spans, Span{part.stage, s.last.Sub(s.start).Seconds(), took.Seconds(), part.bytes})
		s.last = s.last.Add(took)
	}
}

// blockBytes returns the size of the arrays of sampled blocks on any device.
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

// fetchedBytes returns the number of bytes that fetching copies into the batch's memory: labels
// and sparse features. The first layer reads dense features where they are mapped.
func fetchedBytes(b *gnb.Batch) int64 {
	n := 4*int64(len(b.Labels)) + int64(len(b.Targets))
	if s := b.Sparse; s != nil {
		n += 8*int64(len(s.Indptr)) + 4*int64(len(s.Indices)+len(s.Values))
	}
	return n
}

// hopsOf returns the sizes of a batch's blocks, the seeds' hop first.
func hopsOf(blocks []*graphops.Block) (hops []Hop) {
	for _, b := range slices.Backward(blocks) {
		h := Hop{Dst: b.NumDst, Src: b.NumSrc, Edges: b.NumEdges(), Bytes: blockBytes(b)}
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

// maxAround is the maximum number of nodes in a neighbourhood.
const maxAround = 300

// neighborhood collects the nodes and edges sampled from one seed through all hops.
func neighborhood(blocks []*graphops.Block, seed int) Neighborhood {
	last := blocks[len(blocks)-1]
	n := Neighborhood{Seed: last.DstID(seed), Nodes: []Node{{ID: last.DstID(seed)}}}
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
						n.Nodes = append(n.Nodes, Node{ID: id, Hop: hop})
					}
					at[id] = i
				}
				if j := at[b.DstID(d)]; i >= 0 && j >= 0 {
					n.Edges = append(n.Edges, Edge{Src: i, Dst: j, Hop: hop})
				}
			}
		}
		reached = next
	}
	return n
}
