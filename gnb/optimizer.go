package gnb

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/internal/machine"
)

// Optimizer updates one network's parameters in [Worker.Step]. Every rank steps it with the same
// gradient, so parameters stay equal without communication.
type Optimizer struct {
	n     *network
	opt   optim.Optimizer
	start float64 // the initial learning rate
	clip  float64
	norm  float64

	schedule *optim.Schedule // nil if the program sets the rate
	steps    int64           // of the schedule
	watch    optim.Watch
}

// Adam returns the Adam optimiser (Kingma and Ba 2015, arXiv:1412.6980) with PyTorch's defaults on
// the network's parameters.
func (w *Worker) Adam(net Network, lr float64) *Optimizer {
	o := optim.NewAdam(optim.AdamOptions{})
	o.SetLR(lr) // a rate of 0 is not a default
	return w.Optimizer(net, o)
}

// SGD returns stochastic gradient descent on the network's parameters.
func (w *Worker) SGD(net Network, lr float64) *Optimizer {
	o := optim.NewSGD(optim.SGDOptions{})
	o.SetLR(lr) // a rate of 0 is not a default
	return w.Optimizer(net, o)
}

// Optimizer applies any optimiser of package optim to a network; a resumed run loads its state from
// the checkpoint:
//
//	opt := w.Optimizer(net, optim.NewAdam(optim.AdamOptions{LR: 0.01, WeightDecay: 5e-4}))
//
// With [optim.NewAveraged], the average takes the place of the network's weights where they are evaluated (Evaluate) or
// saved (SaveBest, BestBy, the run's weights), but not after the program has loaded others, until the next step.
func (w *Worker) Optimizer(net Network, o optim.Optimizer) *Optimizer {
	opt := &Optimizer{n: w.netOf(net, "Optimizer"), opt: o}
	if o == nil {
		w.Fail(fmt.Errorf("gnb: Optimizer got no optimiser, at %s; make one with optim.NewAdam or optim.NewSGD", entry.CallSite()))
	}
	w.check(w.optimizerRoom(opt.n, len(o.State())))
	names, sizes := opt.n.params.Trained()
	w.check(optim.Bind(o, names, sizes))
	opt.start = o.LR()
	w.opts = append(w.opts, opt)
	w.check(w.saving.Resumed.Optimizer(len(w.opts)-1, o, opt.n.params.Len(), opt.start, w.job.Changed))
	return opt
}

// Clip bounds the norm of the gradient (of the mean loss) over all parameters of the network, its learned rows included;
// 0 turns it off. It returns o.
func (o *Optimizer) Clip(norm float64) *Optimizer {
	if err := entry.CheckNumbers(entry.Rate("Clip's bound", norm)); err != nil {
		o.n.w.Fail(fmt.Errorf("%w, at %s", err, entry.CallSite()))
	}
	o.clip = norm
	return o
}

// SetLR changes the learning rate from the next step on. It has no effect on an optimiser that follows a schedule.
func (o *Optimizer) SetLR(lr float64) { o.opt.SetLR(lr) }

// Follow makes the learning rate follow a schedule, whose times are steps, over a training of the given number
// of steps. The rate with which the optimiser was made is the schedule's highest one. A resumed run has the same rates
// as one that was not interrupted. Follow returns o.
//
//	steps := w.StepsPerEpoch("train", loader)
//	opt := w.Adam(net, 0.01).Follow(optim.Cosine(0).After(100), epochs*steps)
//
// A plateau ([optim.Plateau]) also needs [Optimizer.Observe].
func (o *Optimizer) Follow(s optim.Schedule, steps int) *Optimizer {
	w := o.n.w
	if err := s.Check(o.start, float64(steps)); err != nil {
		w.Fail(fmt.Errorf("%w, at %s", err, entry.CallSite()))
	}
	if o.schedule == nil && s.Kind == "plateau" {
		w.Keep(fmt.Sprintf("plateau of optimiser %d", slices.Index(w.opts, o)), &o.watch)
	}
	o.schedule, o.steps = &s, int64(steps)
	return o
}

// Observe gives a plateau a measurement, of which more is better: pass the negative of a loss. Every rank must call
// it with the same value, after the epoch's loops over batches ([Worker.Evaluate] returns the same on all ranks). For
// other schedules it does nothing.
func (o *Optimizer) Observe(value float64) {
	if o.schedule != nil {
		o.watch.Observe(*o.schedule, value)
	}
}

// follow sets the learning rate of the next step.
func (o *Optimizer) follow() {
	if s := o.schedule; s != nil {
		o.opt.SetLR(o.watch.Rate(*s, s.Rate(o.start, o.opt.Steps(), o.steps)))
	}
}

// StepsPerEpoch returns the number of steps of a loop over a split with [Worker.Batches].
func (w *Worker) StepsPerEpoch(split string, l Loader) int {
	p, err := w.plan(split, l)
	w.check(err)
	return p.steps
}

// StepsOf returns the number of steps of a loop over items with [Worker.BatchesOf].
func (w *Worker) StepsOf(items int, l Loader) int {
	p, err := w.planOf(feed.Numbers(items), l)
	w.check(err)
	return p.steps
}

// GradNorm returns the gradient's norm at the last step, before clipping; 0 without clipping.
func (o *Optimizer) GradNorm() float64 { return o.norm }

// averaged calls use with the average of the network's weights in their place, if an optimiser keeps one.
func (n *network) averaged(use func()) {
	at := slices.IndexFunc(n.w.opts, func(o *Optimizer) bool {
		a, ok := o.opt.(*optim.Averaged)
		return ok && o.n == n && a.Average() != nil
	})
	if at < 0 || n.loaded {
		use()
		return
	}
	w, avg := n.params.Flat(), n.w.opts[at].opt.(*optim.Averaged).Average()
	swap := func() {
		n.w.check(n.params.ToHost())
		for i := range w {
			w[i], avg[i] = avg[i], w[i]
		}
		n.w.check(n.params.ToDevice())
	}
	swap()
	use()
	swap()
}

// networkRoom returns an error if this machine has no memory for a network's weights and gradients
// in every worker. It is called before they are allocated.
func (w *Worker) networkRoom(name string, weights int64) error {
	// Three copies: the model's weights, the flat buffer they are copied into, and the gradient.
	return w.room(fmt.Sprintf("the %d weights of model %q with their gradient", weights, name), 12*float64(weights)*float64(w.World()), smallerModel)
}

// optimizerRoom returns an error if this machine has no memory for an optimiser's state (the given
// number of buffers per weight), the gradients that ranks sum, and the copies that checkpoints are
// written from.
func (w *Worker) optimizerRoom(n *network, buffers int) error {
	weights, world := float64(n.params.Len()), float64(w.World())
	need := 4 * weights * float64(buffers) * world
	if n.params.Device == nil {
		need += 4 * weights * (world*float64(w.job.Virtual) + 1)
	}
	if w.saving.On() {
		need += 4 * weights * float64(buffers+1)
	}
	return w.room(fmt.Sprintf("training the %d weights of model %q", n.params.Len(), n.name), need, smallerModel)
}

// smallerModel is the way out of an error for a model that does not fit.
const smallerModel = "take a smaller model (Hidden, Layers, Heads) or fewer workers"

func (w *Worker) room(what string, bytes float64, wayOut string) error {
	if w.World() > 1 {
		what += fmt.Sprintf(" in %d workers", w.World())
	}
	if err := machine.Room(what, bytes); err != nil {
		return fmt.Errorf("gnb: %w; %s", err, wayOut)
	}
	return nil
}
