package backend

import (
	"fmt"
	"math"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
)

// Weights are a model's weights on the device, those that are not trained too (such as
// the running statistics of a nn.BatchNorm, which training passes move there), with the
// gradient, which backward passes add to there, and the state of an optimiser.
//
//	w, err := be.Weights(params)
//	for … {
//		w.ZeroGrad()
//		loss.Backward()
//		err = w.Step(adam, 1/float32(loss.Weight))
//	}
//	err = w.Pull(adam) // before a checkpoint, or anything on the CPU
//
// The host's weights, gradient and state are those of the last Push or Pull.
type Weights struct {
	b     *Backend
	p     *nn.Params
	grad  []float32
	w, g  *Memory
	state []*cuda.Buffer
	kept  [2]*cuda.Buffer // see Remember
}

// Weights copies the weights and the gradient of p to the device and keeps them there,
// until Close. p's gradient must not move while they are (see [nn.Params.SetGrad]).
func (b *Backend) Weights(p *nn.Params) (*Weights, error) {
	w := &Weights{b: b, p: p, grad: p.Grad()}
	if len(w.grad) != p.Len() {
		return nil, fmt.Errorf("backend: the model has %d weights, but a gradient of %d elements; give it memory with SetGrad", p.Len(), len(w.grad))
	}
	var err error
	if w.w, err = b.Keep(p.Flat()); err != nil {
		return nil, err
	}
	if w.g, err = b.Keep(w.grad); err != nil {
		b.Drop(p.Flat())
		return nil, err
	}
	if len(p.Fixed()) > 0 {
		if _, err = b.Keep(p.Fixed()); err != nil {
			b.Drop(p.Flat())
			b.Drop(w.grad)
			return nil, err
		}
	}
	return w, nil
}

// Close frees what is on the device. It does not Pull.
func (w *Weights) Close() {
	w.b.Drop(w.p.Flat())
	w.b.Drop(w.grad)
	w.b.Drop(w.p.Fixed())
	for _, s := range w.state {
		s.Free()
	}
	for i, k := range w.kept {
		if k != nil {
			k.Free()
		}
		w.kept[i] = nil
	}
	w.state = nil
}

// Remember copies the weights on the device before a step. The copies of the last two steps are
// kept, so that [Weights.Recall] can find the cause of an error that is noticed late. It does not
// wait.
func (w *Weights) Remember(step int64) error {
	i := step & 1
	if w.kept[i] == nil {
		var err error
		if w.kept[i], err = w.b.d.Alloc(cuda.Params, int64(4*w.Len())); err != nil {
			return err
		}
	}
	w.b.s.Copy(w.kept[i].Ptr, w.w.Ptr, int64(4*w.Len()))
	return w.b.d.Err()
}

// Recall restores the weights from before one of the last two steps that were remembered. The
// gradient and the optimiser's state do not change.
func (w *Weights) Recall(step int64) error {
	if k := w.kept[step&1]; k != nil {
		w.b.s.Copy(w.w.Ptr, k.Ptr, int64(4*w.Len()))
	}
	return w.b.d.Err()
}

// Len returns the number of weights.
func (w *Weights) Len() int { return w.p.Len() }

// Grad returns the gradient's address: Len float32 values in the order of [nn.Params.Flat], which
// ranks sum.
func (w *Weights) Grad() cuda.Ptr { return w.g.Ptr }

// Data returns the weights' address: Len float32 values.
func (w *Weights) Data() cuda.Ptr { return w.w.Ptr }

// ZeroGrad clears the gradient.
func (w *Weights) ZeroGrad() { w.b.s.Fill32(w.g.Ptr, 0, int64(w.Len())) }

// GradNorm is the L2 norm of scale·gradient, summed over fixed chunks. It waits.
func (w *Weights) GradNorm(scale float32) (float64, error) {
	at := w.b.room(&w.b.words, 4)
	w.b.columns(at, w.g.Ptr, w.g.Ptr, w.Len(), 1, false)
	var sum [1]float32
	err := cuda.CopyOut(w.b.s, sum[:], at)
	return math.Sqrt(float64(sum[0])) * math.Abs(float64(scale)), err
}

// ClipScale is [optim.ClipScale] for the gradient. It waits.
func (w *Weights) ClipScale(scale float32, limit float64) (clipped float32, norm float64, err error) {
	norm, err = w.GradNorm(scale)
	return float32(float64(scale) * optim.ClipFactor(norm, limit)), norm, err
}

// Step applies o.Step to the weights and the gradient, on the device if o supports it; the first
// step takes its state from o. Other optimisers run in host memory, at the cost of three copies.
func (w *Weights) Step(o optim.Optimizer, scale float32) error {
	d, ok := o.(optim.DeviceOptimizer)
	if !ok {
		if err := w.b.Pull(w.p.Flat()); err != nil {
			return err
		}
		if err := w.b.Pull(w.grad); err != nil {
			return err
		}
		o.Step(w.p.Flat(), w.grad, scale)
		return w.b.Push(w.p.Flat())
	}
	if w.state == nil {
		if err := w.push(o); err != nil {
			return err
		}
	}
	d.StepOn((*stepper)(w), scale)
	return w.b.d.Err()
}

// push sets the state on the device to that of o, which is zero before the first step.
func (w *Weights) push(o optim.Optimizer) error {
	states := o.State()
	if w.state == nil {
		w.state = make([]*cuda.Buffer, len(states))
	}
	if len(w.state) != len(states) {
		return fmt.Errorf("backend: the weights were updated by an optimiser with %d state buffers, but %s has %d; close the Weights and create them again", len(w.state), o.Name(), len(states))
	}
	for i, s := range states {
		if w.state[i] == nil {
			var err error
			if w.state[i], err = w.b.d.Alloc(cuda.Params, int64(4*w.Len())); err != nil {
				return err
			}
		}
		at := w.state[i].Ptr
		switch {
		case len(s.Data) == 0:
			w.b.s.Fill32(at, 0, int64(w.Len()))
		case len(s.Data) != w.Len():
			return fmt.Errorf("backend: %s of %s has %d elements, but the model has %d weights", s.Name, o.Name(), len(s.Data), w.Len())
		default:
			if err := cuda.CopyIn(w.b.s, at, s.Data); err != nil {
				return err
			}
		}
	}
	return w.b.d.Err()
}

// Push copies the host's weights and o's state to the device, as after loading a
// checkpoint.
func (w *Weights) Push(o optim.Optimizer) error {
	if err := w.Put(); err != nil {
		return err
	}
	return w.push(o)
}

// Put copies the host's weights to the device, but not an optimiser's state.
func (w *Weights) Put() error {
	if err := w.b.Push(w.p.Flat()); err != nil {
		return err
	}
	return w.PutFixed()
}

// PutFixed copies the host's weights that are not trained to the device, PullFixed
// from it. PullFixed waits.
func (w *Weights) PutFixed() error { return w.b.Push(w.p.Fixed()) }

// PullFixed is the reverse of PutFixed.
func (w *Weights) PullFixed() error { return w.b.Pull(w.p.Fixed()) }

// Pull copies the weights, the gradient and the optimiser's state to the host. It
// waits.
func (w *Weights) Pull(o optim.Optimizer) error {
	for _, host := range [][]float32{w.p.Flat(), w.grad, w.p.Fixed()} {
		if err := w.b.Pull(host); err != nil {
			return err
		}
	}
	if _, ok := o.(optim.DeviceOptimizer); !ok || w.state == nil || o.Steps() == 0 {
		return nil
	}
	state := map[string][]float32{}
	for i, s := range o.State() {
		host := make([]float32, w.Len())
		if err := cuda.CopyOut(w.b.s, host, w.state[i].Ptr); err != nil {
			return err
		}
		state[s.Name] = host
	}
	return o.SetState(o.Steps(), state)
}

var _ optim.Stepper = (*stepper)(nil)

// stepper gives an optimiser's step access to Weights.
type stepper Weights

// Adam implements [optim.Stepper].
func (w *stepper) Adam(s optim.AdamStep) {
	n := w.p.Len()
	w.b.run("adam_f32", kernels.Items(n), w.w.Ptr, w.state[0].Ptr, w.state[1].Ptr, w.g.Ptr, n,
		s.Scale, s.Decay, s.B1, s.C1, s.B2, s.C2, s.Keep, s.Size, s.Root, s.Eps)
}

// SGD implements [optim.Stepper].
func (w *stepper) SGD(s optim.SGDStep) {
	n := w.p.Len()
	if s.Momentum == 0 {
		w.b.run("sgd_f32", kernels.Items(n), w.w.Ptr, w.g.Ptr, n, s.LR, s.Scale, s.Decay)
		return
	}
	w.b.run("momentum_f32", kernels.Items(n), w.w.Ptr, w.state[0].Ptr, w.g.Ptr, n, s.LR, s.Scale, s.Decay, s.Momentum, asFlag(s.Nesterov))
}

var (
	_ ops.Keeper         = (*Backend)(nil)
	_ ops.CrossEntropies = (*Backend)(nil)
	_ ops.Deferrer       = (*Backend)(nil)
)
