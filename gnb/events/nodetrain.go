package events

import (
	"context"
	"fmt"
	"iter"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
)

// nodeTrainer is a worker's part of a training run about nodes.
type nodeTrainer struct {
	w      *gnb.Worker
	o      NodeOptions
	r      *nodeRows
	model  *nodeModel
	net    *gnb.Net[nn.Model]
	audit  *nodeAuditor
	metric gnb.Metric
	plain  map[string]bool // the splits whose baselines are recorded
	state  *nodeState      // of training; nil before the first step
	within bool            // a step has begun, and another virtual rank's share of it follows
	taken  int             // the events that state had taken in at the last boundary, for checkpoints
}

func startNodes(w *gnb.Worker, o NodeOptions) (gnb.Task, error) {
	ds, err := edgesOfWorker(w)
	if err != nil {
		return nil, err
	}
	r, err := newNodeRows(ds, &o)
	if err != nil {
		return nil, err
	}
	t := &nodeTrainer{w: w, o: o, r: r, plain: map[string]bool{}}
	if t.metric, err = o.metric(r.classes); err != nil {
		return nil, err
	}
	if t.audit, err = newNodeAuditor(ds, r, &o); err != nil {
		return nil, err
	}
	x, err := o.nodeFeatures(context.Background(), w.Dataset())
	if err != nil {
		return nil, err
	}
	w.Keep("proof", &t.audit.Proof)
	w.Keep("taken", &t.taken)
	train, val := r.ranges["train"], r.ranges["val"]
	w.Printf("%d questions for training, %d for validation and %d for the test; %s", train[1], val[1]-val[0], len(r.nodes)-val[1], r.dropped)
	if r.given != nil {
		if n := r.strangers(); n > 0 {
			w.Printf("%d of these questions are about nodes that have had no event by then", n)
		}
		if n := len(r.stepsOf("train")); o.Together == "" && train[1] < 4*n && o.Batch >= 8 {
			w.Printf("a step asks about %.1f nodes, because questions of different times are not asked together; Together (--together 1d) lets those within a span share a step, whose answers then rest on the events until the first of them", float64(train[1])/float64(n))
		}
	}
	switch {
	case o.readsFeatures():
		sayFeatures(w, r.stream)
	case o.asksOfFeature(ds):
		sayFitted(w, r.stream)
	}
	t.model = o.newModel(r, x, r.Nodes)
	t.net = w.NetworkOf(o.Model+" of nodes", nn.ModelConfig{}, t.model)
	w.WithoutFeatures() // the model reads rows of its own
	return t, nil
}

// askedNodes are questions with what a model takes of the stream to answer them.
type askedNodes struct {
	*nodeQuestions
	step int
	view *nodeView
}

// of implements gnb.Items.Of: it returns the questions of a share of a step. A step has Batch items, which stand for its questions: there can be
// fewer.
func (t *nodeTrainer) of(_, _ int, items []int32, lo, hi int) (seeds gnb.Seeds, value any, err error) {
	step := int(items[0]) / t.o.Batch
	s := t.r.steps[step]
	n := s.hi - s.lo
	q := &askedNodes{nodeQuestions: t.r.about(s, s.lo+lo*n/len(items), s.lo+hi*n/len(items)), step: step}
	q.view = t.model.view(q.nodeQuestions)
	var nodes numbered
	for _, v := range q.nodes {
		nodes.add(v)
	}
	return gnb.Seeds{IDs: nodes.ids}, q, nil
}

// Network implements [gnb.Task].
func (t *nodeTrainer) Network() gnb.Network { return t.net }

// loader is that of the batches of nodes, which have no neighbours: a model finds those in the stream.
func (t *nodeTrainer) loader() gnb.Loader { return streamLoader(t.w, t.o.OptimizerOptions) }

// items is the number of items of an epoch.
func (t *nodeTrainer) items() int { return len(t.r.stepsOf("train")) * t.o.Batch }

// Batches implements [gnb.Task].
func (t *nodeTrainer) Batches(int) iter.Seq[*gnb.Batch] {
	return t.w.BatchesOf(gnb.Items{Name: "questions", Count: t.items(), Of: t.of}, t.loader())
}

// Steps implements [gnb.Task].
func (t *nodeTrainer) Steps() int { return t.w.StepsOf(t.items(), t.loader()) }

// End implements [gnb.Ender]: the run records what it has checked of itself.
func (t *nodeTrainer) End() error {
	t.w.Result("proved_steps", float64(t.audit.Steps))
	t.w.Result("proved_questions", float64(t.audit.Questions))
	return nil
}

// Loss implements [gnb.Task].
func (t *nodeTrainer) Loss(b *gnb.Batch) (loss *nn.Loss) {
	q := b.Value.(*askedNodes)
	s := t.r.steps[q.step]
	if err := t.enter(q, s); err != nil {
		t.w.Fail(err)
	}
	if err := t.audit.check(q.nodeQuestions, s, "train", t.state.taken()); err != nil {
		t.w.Fail(err)
	}
	f := t.net.Begin(b)
	if err := try(func() error {
		out := t.state.outputs(f, q.nodeQuestions, q.view)
		if t.r.classes == 0 {
			loss = t.o.LossOf(out, q.targets)
			return nil
		}
		labels := make([]int32, len(q.targets))
		for i, y := range q.targets {
			labels[i] = int32(y)
		}
		loss = nn.CrossEntropy(out, labels)
		return nil
	}); err != nil {
		t.w.Fail(fmt.Errorf("events: the answers of %s: %w", t.o.Model, err))
	}
	if b.EndsStep { // the state follows with the weights that answered
		if next := q.step + 1; next < len(t.r.stepsOf("train")) {
			if err := t.state.happen(t.r.steps[next].known, ranksOf(t.w, t.o.Threads)); err != nil {
				t.w.Fail(err)
			}
		}
		t.taken, t.within = t.state.taken(), false
		t.audit.Steps++
		t.audit.Questions += int64(s.hi - s.lo)
	}
	return loss
}

// enter brings the state of training to the beginning of a step.
func (t *nodeTrainer) enter(q *askedNodes, s nodeStep) (err error) {
	switch {
	case q.step == 0 && !t.within: // of an epoch, also of one that is tried again
		if t.state, err = t.model.begin(true); err == nil {
			err = t.state.happen(s.known, ranksOf(t.w, t.o.Threads))
		}
	case t.state == nil:
		t.state, err = t.model.resumed(q.happened, t.taken)
	}
	t.within = true
	return err
}
