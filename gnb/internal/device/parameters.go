package device

import (
	"fmt"
	"math"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Parameters are a network's parameters in host memory and, if the rank has one, on its device, where
// they are trained. Host memory is then stale until [Parameters.ToHost].
type Parameters struct {
	*nn.Params
	Model  string  // the model's name, for errors
	Device Weights // nil on the CPU

	behind  bool            // host memory is older than the device
	stepped optim.Optimizer // the optimiser of the last step
	applied int64           // steps on the device, if it keeps earlier weights
}

// Place copies the parameters to a device, unless d is nil, where they are from then on.
func (p *Parameters) Place(d Device) (err error) {
	if d != nil {
		p.Device, err = d.Weights(p.Params)
	}
	return err
}

// ToHost copies the parameters and their optimiser's state from the device, if host memory is stale.
func (p *Parameters) ToHost() error {
	if p.Device == nil || !p.behind {
		return nil
	}
	p.behind = false
	if err := p.Device.Pull(p.stepped); err != nil {
		return fmt.Errorf("gnb: getting the weights of model %q from the device: %w", p.Model, err)
	}
	return nil
}

// ToDevice copies the parameters to the device.
func (p *Parameters) ToDevice() error {
	if p.Device == nil {
		return nil
	}
	p.behind = false
	if err := p.Device.Put(); err != nil {
		return fmt.Errorf("gnb: putting the weights of model %q on the device: %w", p.Model, err)
	}
	return nil
}

// BeginPass notes that a training pass begins, in which layers update running statistics.
func (p *Parameters) BeginPass() {
	if p.Device != nil && len(p.Fixed()) > 0 {
		p.behind = true
	}
}

// Bound is the bound of a gradient's norm; 0 means none. Squares is the sum of the squares of the gradients of parameters
// that are elsewhere, the learned rows of nodes; a device has none.
type Bound struct{ Norm, Squares float64 }

// Step steps an optimiser with the gradient scale·g, or with the gradient on the device, after it has bounded the
// gradient's norm by clip. It returns the norm before, 0 without clip. If keep is set a device keeps the
// weights from before the step for [Parameters.Recall].
func (p *Parameters) Step(o optim.Optimizer, g []float32, scale float32, clip Bound, keep bool) (norm float64, err error) {
	d := p.Device
	if d == nil {
		if clip.Norm > 0 {
			// The sum is shared by all ranks and read-only: clipping changes the scale by which the
			// optimiser multiplies it.
			if norm = optim.GradNorm(g, scale); clip.Squares != 0 {
				norm = math.Sqrt(norm*norm + clip.Squares*float64(scale)*float64(scale))
			}
			scale = optim.Clipped(scale, norm, clip.Norm)
		}
		o.Step(p.Flat(), g, scale)
		return norm, nil
	}
	if clip.Norm > 0 {
		if scale, norm, err = d.ClipScale(scale, clip.Norm); err != nil {
			return norm, err
		}
	}
	p.behind, p.stepped = true, o
	if keep {
		if err := d.Remember(p.applied); err != nil {
			return norm, err
		}
		p.applied++
	}
	return norm, d.Step(o, scale)
}

// Applied is the number of steps that were to be kept.
func (p *Parameters) Applied() int64 { return p.applied }

// Recall restores the weights on the device from before one of the last two kept steps, counted from 0.
func (p *Parameters) Recall(step int64) error {
	if p.Device == nil {
		return nil
	}
	p.behind = true
	return p.Device.Recall(step)
}

// Agree copies rank 0's untrained parameters to every rank: a BatchNorm's running statistics, which each rank computes from
// its own rows. Collective.
func (p *Parameters) Agree(c collective.Comm, s collective.Site) error {
	fixed := p.Fixed()
	switch {
	case len(fixed) == 0 || p.Device != nil && c.Size() == 1:
		return nil
	case p.Device == nil:
		return c.Broadcast(s, 0, fixed)
	}
	if err := p.Device.PullFixed(); err != nil {
		return err
	}
	if err := c.Broadcast(s, 0, fixed); err != nil {
		return err
	}
	return p.Device.PutFixed()
}
