package events

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
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
	begin(training bool) (state, error)
	// resumed returns the state of a resumed training after some events, of which the one in the checkpoint had taken in so many.
	resumed(happened *temporal.Events, taken int) (state, error)
}

// state is what a model knows of the events that have happened.
type state interface {
	// scores returns the scores of the candidates of questions about the next step, and leaves the state as it is.
	scores(f *nn.Fwd, q *questions, view any) (*nn.Tensor, error)
	// happen adds the events of now behind the first before, a step. Collective.
	happen(now *temporal.Events, before int, w ranks) error
	// taken is the number of events that happen has added.
	taken() int
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
	audit *auditor
	draws *temporal.Drawer
	// wrong are the negatives of validation and test, and banks the ranks of EdgeBanks among them; nil before the first measure.
	wrong wrongOf
	banks []*ofBank
	state state // of training; nil before the first step
	taken int   // the events that state had taken in at the last boundary, for checkpoints
}

func start(w *gnb.Worker, o Options) (gnb.Task, error) {
	ds, err := edgesOfWorker(w)
	if err != nil {
		return nil, err
	}
	s, err := newStream(ds, &o)
	if err != nil {
		return nil, err
	}
	t := &trainer{w: w, o: o, s: s}
	if t.audit, err = newAuditor(ds.Graph, ds.NodeTimes, s); err != nil {
		return nil, err
	}
	x, err := o.nodeFeatures(context.Background(), w.Dataset())
	if err != nil {
		return nil, err
	}
	t.draws = temporal.NewDrawer(s.Events, temporal.DrawOptions{Count: o.Negatives, History: o.History, Strict: true})
	w.Keep("proof", &t.audit.Proof)
	w.Keep("taken", &t.taken)
	if t.model, err = o.model(s, x, s.Nodes); err != nil {
		return nil, err
	}
	for _, split := range []string{"train", "val", "test"} {
		if n := s.sameTime(split); n > 0 {
			lo, hi := s.part(split)
			w.Printf("%d of the %d events of %s follow others of their own time in an earlier step: there the order of the data tells what was known", n, hi-lo, split)
		}
	}
	if k, err := kindOf(o.Model); err == nil && k.features {
		sayFeatures(w, s)
	}
	t.net = w.NetworkOf(o.Model, nn.ModelConfig{}, t.model)
	w.WithoutFeatures() // the model reads rows of its own
	return t, nil
}

// model makes the model of a run's options; x has the features of nodes, nil for none, and trained is the number of nodes of the run's dataset.
func (o *Options) model(s *stream, x *dataset.Matrix, trained int) (model, error) {
	k, err := kindOf(o.Model)
	if err != nil {
		return nil, err
	}
	return k.make(s, x, trained, o), nil
}

// of implements gnb.Items.Of: it returns the questions about a share of a step.
func (t *trainer) of(epoch, step int, items []int32, lo, hi int) (seeds gnb.Seeds, value any, err error) {
	q := &asked{questions: t.s.before(int(items[0]))}
	var sources numbered
	for _, e := range items[lo:hi] {
		negatives := t.draws.Append(nil, t.w.Seed(), epoch, int(e))
		if len(negatives) < t.o.Negatives { // no other destination exists yet
			continue
		}
		q.ask(t.s, e, negatives)
		for i := range 1 + len(negatives) {
			q.names = append(q.names, e*int32(1+len(negatives))+int32(i))
		}
		q.events = append(q.events, e)
		sources.add(t.s.Src[e])
	}
	q.view = t.model.view(q.questions)
	return gnb.Seeds{IDs: sources.ids}, q, nil
}

// asked are questions with what a model takes of the stream to answer them.
type asked struct {
	*questions
	events []int32 // those that are asked about
	view   any
}

// Network implements [gnb.Task].
func (t *trainer) Network() gnb.Network { return t.net }

// loader is that of the batches of sources, which have no neighbours: a model finds those in the stream.
func (t *trainer) loader() gnb.Loader { return streamLoader(t.w, t.o.OptimizerOptions) }

// streamLoader is the loader of batches in the order of time, whose seeds have no neighbours.
func streamLoader(w *gnb.Worker, o gnb.OptimizerOptions) gnb.Loader {
	l := w.LoaderOf(gnb.SamplerOptions{Fanouts: []int{0}}, o)
	l.InOrder = true
	return l
}

// Batches implements [gnb.Task].
func (t *trainer) Batches(int) iter.Seq[*gnb.Batch] {
	return t.w.BatchesOf(gnb.Items{Name: "events", Count: t.s.Train, Of: t.of}, t.loader())
}

// Steps implements [gnb.Task].
func (t *trainer) Steps() int { return t.w.StepsOf(t.s.Train, t.loader()) }

// End implements [gnb.Ender]: the run records what it has checked of itself.
func (t *trainer) End() error {
	p := t.audit.Proof
	for _, v := range []struct {
		name  string
		value int64
	}{{"proved_steps", p.Steps}, {"proved_questions", p.Questions}, {"same_time_questions", p.SameTime}} {
		t.w.Result(v.name, float64(v.value))
	}
	return nil
}

// Loss implements [gnb.Task].
func (t *trainer) Loss(b *gnb.Batch) (loss *nn.Loss) {
	q := b.Value.(*asked)
	err := t.enter(q.happened)
	if err == nil {
		err = t.audit.check(q.questions, q.events, t.state.taken())
	}
	if err != nil {
		t.w.Fail(err)
	}
	f := t.net.Begin(b)
	if err := try(func() error {
		scores, err := t.state.scores(f, q.questions, q.view)
		if err != nil {
			return err
		}
		if t.o.Loss == "softmax" {
			loss = pairs.Softmax(scores, t.o.Negatives)
		} else {
			loss = pairs.LossOptions{PosWeight: float64(t.o.Negatives)}.BCE(scores, t.o.Negatives)
		}
		return nil
	}); err != nil {
		t.w.Fail(fmt.Errorf("events: the scores of %s: %w", t.o.Model, err))
	}
	if b.EndsStep { // the state follows with the weights that answered
		at := q.happened.Len()
		_, end := t.s.stepOf(at)
		if err := t.state.happen(t.s.Head(end), at, ranksOf(t.w, t.o.Threads)); err != nil {
			t.w.Fail(err)
		}
		t.taken = t.state.taken()
		t.audit.count(at, end)
	}
	return loss
}

// try calls a function that computes tensors, and returns its error, or that of a misused one.
func try(compute func() error) (err error) {
	if misused := nn.Try(func() { err = compute() }); misused != nil {
		return misused
	}
	return err
}

// enter brings the state of training to the beginning of a step.
func (t *trainer) enter(happened *temporal.Events) (err error) {
	switch {
	case happened.Len() == 0 && (t.state == nil || t.state.taken() > 0):
		t.state, err = t.model.begin(true)
	case t.state == nil:
		t.state, err = t.model.resumed(happened, t.taken)
	}
	return err
}

// alone is a worker without peers.
func alone(threads int) ranks {
	return ranks{world: 1, threads: threads, gather: func(rows []float32) []float32 { return rows }}
}

// ranksOf are a worker and its peers.
func ranksOf(w *gnb.Worker, threads int) ranks {
	if w.World() == 1 {
		return alone(threads)
	}
	return ranks{w.Rank(), w.World(), threads, func(rows []float32) []float32 {
		mine := make([]byte, 0, 4*len(rows))
		for _, v := range rows {
			mine = binary.LittleEndian.AppendUint32(mine, math.Float32bits(v))
		}
		var all []float32
		for _, of := range w.AllGather(mine) {
			for ; len(of) > 0; of = of[4:] {
				all = append(all, math.Float32frombits(binary.LittleEndian.Uint32(of)))
			}
		}
		return all
	}}
}
