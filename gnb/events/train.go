package events

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// model is a network that ranks the destinations of events.
type model interface {
	nn.Model
	// view returns what the model takes of the stream to answer questions. It is a function of its argument alone, and called ahead of
	// training.
	view(q *questions) any
	// begin returns the state before the first event; in training it is part of checkpoints, as far as it is no function of the
	// stream.
	begin(training bool) state
	// resumed returns the state of a resumed training after some events.
	resumed(happened *temporal.Events) (state, error)
}

// state is what a model knows of the events that have happened.
type state interface {
	// scores returns the scores of the candidates of questions about the next step, and leaves the state as it is.
	scores(f *nn.Fwd, q *questions, view any) *nn.Tensor
	// happen adds the events of now behind the first before, a step. Collective.
	happen(now *temporal.Events, before int, w ranks) error
}

// ranks are the workers that share the work of a state.
type ranks struct {
	rank, world, threads int
	// gather returns what all ranks give, in their order.
	gather func(rows []float32) []float32
}

// trainer is a worker's part of a training run.
type trainer struct {
	w     *gnb.Worker
	o     Options
	s     *stream
	model model
	net   *gnb.Net[nn.Model]
	state state // of training; nil before the first step
}

func start(w *gnb.Worker, o Options) (gnb.Task, error) {
	s, err := newStream(w.Dataset(), o.Batch)
	if err != nil {
		return nil, err
	}
	t := &trainer{w: w, o: o, s: s}
	switch o.Model {
	case "tgn":
		t.model = newTGN(s, w.Dataset().Features, &o)
	case "walks":
		t.model = newWalks(s, &o)
	default:
		return nil, fmt.Errorf("events: there is no model %q", o.Model)
	}
	t.net = w.NetworkOf(o.Model, nn.ModelConfig{}, t.model)
	w.WithoutFeatures() // the model reads rows of its own
	return t, nil
}

// of implements gnb.Items.Of: it returns the questions about a share of a step.
func (t *trainer) of(epoch, step int, items []int32, lo, hi int) (seeds gnb.Seeds, value any, err error) {
	q := t.s.before(int(items[0]))
	var sources numbered
	for _, e := range items[lo:hi] {
		q.ask(t.s, e, t.negatives(epoch, e))
		sources.add(t.s.Src[e])
	}
	return gnb.Seeds{IDs: sources.ids}, &asked{q, t.model.view(q)}, nil
}

// asked are questions with what a model takes of the stream to answer them.
type asked struct {
	*questions
	view any
}

// Network implements [gnb.Task].
func (t *trainer) Network() gnb.Network { return t.net }

// loader is that of the batches of sources, which have no neighbours: a model finds those in the stream.
func (t *trainer) loader() gnb.Loader {
	l := t.w.LoaderOf(gnb.SamplerOptions{Fanouts: []int{0}}, t.o.OptimizerOptions)
	l.InOrder = true
	return l
}

// Batches implements [gnb.Task].
func (t *trainer) Batches(int) iter.Seq[*gnb.Batch] {
	return t.w.BatchesOf(gnb.Items{Name: "events", Count: t.s.train, Of: t.of}, t.loader())
}

// Steps implements [gnb.Task].
func (t *trainer) Steps() int { return t.w.StepsOf(t.s.train, t.loader()) }

// Loss implements [gnb.Task].
func (t *trainer) Loss(b *gnb.Batch) (loss *nn.Loss) {
	q := b.Value.(*asked)
	if err := t.enter(q.happened); err != nil {
		t.w.Fail(err)
	}
	f := t.net.Begin(b)
	if err := nn.Try(func() {
		scores := t.state.scores(f, q.questions, q.view)
		if t.o.Loss == "softmax" {
			loss = t.o.labels().Softmax(scores, t.o.Negatives)
		} else {
			loss = t.o.labels().BCE(scores, t.o.Negatives)
		}
	}); err != nil {
		t.w.Fail(fmt.Errorf("events: the scores of %s: %w", t.o.Model, err))
	}
	if b.EndsStep { // the state follows with the weights that answered
		at := q.happened.Len()
		_, end := t.s.stepOf(at)
		if err := t.state.happen(t.s.Head(end), at, t.ranks(t.o.Threads)); err != nil {
			t.w.Fail(err)
		}
	}
	return loss
}

// enter brings the state of training to the beginning of a step.
func (t *trainer) enter(happened *temporal.Events) (err error) {
	switch {
	case happened.Len() == 0:
		t.state = t.model.begin(true)
	case t.state == nil:
		t.state, err = t.model.resumed(happened)
	}
	return err
}

// ranks are this worker and its peers.
func (t *trainer) ranks(threads int) ranks {
	return ranks{t.w.Rank(), t.w.World(), threads, func(rows []float32) []float32 {
		if t.w.World() == 1 {
			return rows
		}
		mine := make([]byte, 4*len(rows))
		for i, v := range rows {
			binary.LittleEndian.PutUint32(mine[4*i:], math.Float32bits(v))
		}
		var all []float32
		for _, of := range t.w.AllGather(mine) {
			for ; len(of) > 0; of = of[4:] {
				all = append(all, math.Float32frombits(binary.LittleEndian.Uint32(of)))
			}
		}
		return all
	}}
}
