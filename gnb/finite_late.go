package gnb

import (
	"github.com/graphnb/graphnb/internal/philox"
)

// A device's losses are read when its steps are over and their batches released, with one rank
// a step or two later, when other weights are there. What was not finite is looked for on the
// CPU then, with the batch made once more, and with the weights of before the step, of which the
// device keeps copies.

// looping is a loop over batches that goes on.
type looping struct {
	p               plan
	epoch, stepBase int
}

// made says what a step's batches were made of.
type made struct {
	loop *looping
	full *Batch  // the whole graph, or a batch that no loop made
	step int     // of the batches
	at   foundAt // whose dropout they had
}

// madeOf is what the batches of the current step are made of.
func (n *network) madeOf() made {
	m := made{loop: n.w.looping, at: n.batchAt}
	if n.batch == nil || n.batch.Batch == nil {
		return m
	}
	m.step = n.batch.Step
	if n.batch.full || !n.w.loop.InLoop() {
		m.full = n.batch
	}
	return m
}

// again makes a loop's batch once more, of this rank's virtual rank v.
func (w *Worker) again(m made, v int) (*Batch, error) {
	if m.full != nil || m.loop == nil {
		return m.full, nil
	}
	l := m.loop
	s, err := w.hostSampler(l.p.Loader, l.p.Sampler, philox.Sample)
	if err != nil {
		return nil, err
	}
	b := w.sampleShare(s, l.p, w.order(l.p, l.epoch, l.stepBase), l.epoch, l.stepBase, m.step-l.stepBase, v)
	if b.err == nil {
		b.err = w.fetch(b, nil, nil)
	}
	return b, b.err
}

// culpritAgain is [network.culprit] of a batch that was released, with the weights that the
// device has.
func (w *Worker) culpritAgain(n *network, m made, v int) string {
	b, err := w.again(m, v)
	if err == nil {
		err = n.toHost()
	}
	if err != nil {
		return "the loss, of what could not be looked at: " + err.Error()
	}
	return n.culprit(b, m.at, true, true)
}

// watchTails looks whether a batch of this rank has a loss that is not finite, once a device
// has brought them.
func (w *Worker) watchTails(n *network, tails []float32) {
	for v := range len(tails) / tailLen {
		if loss := tails[v*tailLen+tailLoss]; !finite(loss) && w.found == "" {
			if w.found = w.culpritAgain(n, n.madeOf(), v); w.found == "" {
				w.found = n.badLoss(loss)
			}
		}
	}
}

// lateNotFinite ends the run of one rank whose step, a while ago, had a loss that is not finite.
func (w *Worker) lateNotFinite(s *lateStep, loss float32) {
	n := s.n
	if n.dev != nil {
		w.check(n.dev.Recall(s.applied))
		n.ahead = true
	}
	what := ""
	for v := range len(s.tails) / tailLen {
		if !finite(s.tails[v*tailLen+tailLoss]) && what == "" {
			what = w.culpritAgain(n, s.made, v)
		}
	}
	if what == "" {
		what = n.badLoss(loss)
	}
	w.endNotFinite(n, foundAt{s.record.Epoch, s.record.Step}, w.p.Rank, what)
}
