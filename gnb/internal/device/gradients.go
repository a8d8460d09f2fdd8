package device

import (
	"slices"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Totals are the sums of a step besides its gradient: of the batches' weights and losses, and the numbers
// of correct rows and of all rows. Counts are exact up to 2^24 rows.
type Totals struct{ Weight, Loss, Correct, Count float32 }

// Offsets of a batch's totals behind its gradient.
const (
	tailWeight = iota
	tailLoss
	tailCorrect
	tailCount
	tailLen
)

func totalsOf(tail []float32) Totals {
	return Totals{tail[tailWeight], tail[tailLoss], tail[tailCorrect], tail[tailCount]}
}

// Gradients holds the gradients of a network's step, one for each batch of this rank, and sums them over
// ranks.
type Gradients interface {
	// Begin prepares the micro-th batch of a step: it sets the parameters' gradient to 0, or to the sum
	// over this step's earlier batches.
	Begin(micro int)
	// Note records the known parts of the micro-th batch's loss, before the backward pass.
	Note(micro int, loss *nn.Loss)
	// Empty marks the micro-th batch as contributing nothing.
	Empty(micro int)
	// Loss returns the micro-th batch's loss, after Note; known is false if the loss is still on a device.
	Loss(micro int) (sum float32, known bool)
	// Own returns this rank's gradient of the micro-th batch, nil if it is on a device.
	Own(micro int) []float32
	// Sum adds the totals and the gradient over all ranks. grad is nil if it is on a device. If losses of
	// the step are still on a device, late delivers the totals later, and t has only Weight and Count.
	// Collective.
	Sum() (grad []float32, t Totals, late *Late, err error)
}

// GradientOptions configure [Parameters.Gradients].
type GradientOptions struct {
	Comm    collective.Comm
	Site    func(kind string) collective.Site
	Virtual int // batches of this rank per step
	// Await calls read, which waits for this rank's device.
	Await func(read func() error) error
	// Look gets the losses of this rank's batches when they were read from a device, before they are
	// summed over ranks.
	Look func(losses []float32)
}

// Gradients makes the network's gradients where its parameters are. Collective.
func (p *Parameters) Gradients(o GradientOptions) (Gradients, error) {
	if p.Device != nil {
		return &deviceGradients{o: o, w: p.Device, late: newLate(o.Virtual)}, nil
	}
	r, err := o.Comm.NewReducer(o.Site("gradient buffer"), p.Len()+tailLen, o.Virtual)
	return &sharedGradients{o, p.Params, r, make([][]float32, o.Virtual)}, err
}

// sharedGradients are in slots of memory shared by all ranks. Each batch of a step has one slot: the
// gradient, then the totals.
type sharedGradients struct {
	o GradientOptions
	p *nn.Params
	r collective.Reducer
	// last are the slots of the last batches: Own is read after the sum.
	last [][]float32
}

func (g *sharedGradients) Begin(micro int) {
	slot := g.r.Slot(micro)
	g.last[micro] = slot
	clear(slot)
	g.p.SetGrad(slot[:g.p.Len()])
}

func (g *sharedGradients) Note(micro int, loss *nn.Loss) {
	tail := g.r.Slot(micro)[g.p.Len():]
	noteWeight(tail, loss)
	if v := loss.Sum.Data(); len(v) == 1 { // Backward refuses others
		tail[tailLoss] = v[0]
	}
	tail[tailCorrect] = float32(loss.Correct())
}

func (g *sharedGradients) Empty(micro int) {
	g.last[micro] = g.r.Slot(micro)
	clear(g.last[micro])
}

func (g *sharedGradients) Loss(micro int) (sum float32, known bool) {
	return g.last[micro][g.p.Len()+tailLoss], true
}

func (g *sharedGradients) Own(micro int) []float32 { return g.last[micro][:g.p.Len()] }

func (g *sharedGradients) Sum() (grad []float32, t Totals, late *Late, err error) {
	all, err := g.r.Reduce(g.o.Site("step"))
	if err != nil {
		return nil, t, nil, err
	}
	return all[:g.p.Len()], totalsOf(all[g.p.Len():]), nil, nil
}

// noteWeight writes the parts of a loss that are known before the backward pass.
func noteWeight(tail []float32, loss *nn.Loss) {
	tail[tailWeight], tail[tailCount] = float32(loss.Weight), float32(loss.Count)
}

// deviceGradients and their losses are on this rank's device; the totals are on the host.
type deviceGradients struct {
	o    GradientOptions
	w    Weights
	late Late // of the current step
}

func (g *deviceGradients) Begin(micro int) {
	if micro == 0 {
		g.w.ZeroGrad() // later batches of the step add to it
	}
	g.Empty(micro)
}

func (g *deviceGradients) Note(micro int, loss *nn.Loss) {
	noteWeight(g.late.tail(micro), loss)
	g.late.figures[micro] = loss.Figures()
}

func (g *deviceGradients) Empty(micro int) {
	clear(g.late.tail(micro))
	g.late.figures[micro] = nil
}

func (g *deviceGradients) Loss(int) (sum float32, known bool) { return 0, false }

func (g *deviceGradients) Own(int) []float32 { return nil }

// Sum waits for the losses if other ranks need them: ranks exchange losses through host memory.
func (g *deviceGradients) Sum() (grad []float32, t Totals, late *Late, err error) {
	g.w.Reduce()
	if g.o.Comm.Size() == 1 {
		late = &Late{slices.Clone(g.late.tails), slices.Clone(g.late.figures)}
		return nil, rounded(late.sum()), late, nil
	}
	if err := g.o.Await(g.late.read); err != nil {
		return nil, t, nil, err
	}
	g.o.Look(g.late.Losses())
	sum := g.late.sum()
	if err := collective.SumFloat64(g.o.Comm, g.o.Site("all-reduce"), sum); err != nil {
		return nil, t, nil, err
	}
	return nil, rounded(sum), nil, nil
}

// Late are the totals of a step's batches on this rank, whose losses are still on a device.
type Late struct {
	tails   []float32
	figures []func() (sum float32, correct int64) // see [nn.Loss.Figures]; nil for a batch that contributes nothing
}

func newLate(batches int) Late {
	return Late{make([]float32, tailLen*batches), make([]func() (float32, int64), batches)}
}

func (l *Late) tail(micro int) []float32 { return l.tails[tailLen*micro : tailLen*(micro+1)] }

// Wait waits for the losses and returns their totals.
func (l *Late) Wait() (Totals, error) {
	if err := l.read(); err != nil {
		return Totals{}, err
	}
	return rounded(l.sum()), nil
}

// Losses returns the batches' losses, after Wait.
func (l *Late) Losses() []float32 {
	var losses []float32
	for i := range l.figures {
		losses = append(losses, l.tail(i)[tailLoss])
	}
	return losses
}

// read waits for the losses and counts.
func (l *Late) read() error {
	return nn.Try(func() {
		for i, f := range l.figures {
			if f != nil {
				sum, correct := f()
				t := l.tail(i)
				t[tailLoss], t[tailCorrect] = sum, float32(correct)
			}
		}
	})
}

// sum adds up the batches.
func (l *Late) sum() []float64 {
	sum := make([]float64, tailLen)
	for i, v := range l.tails {
		sum[i%tailLen] += float64(v)
	}
	return sum
}

// rounded converts sums to the precision of shared memory.
func rounded(sum []float64) Totals {
	tail := make([]float32, len(sum))
	for i, v := range sum {
		tail[i] = float32(v)
	}
	return totalsOf(tail)
}
