package gnb

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/names"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/units"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// openDevice opens this rank's device where the run is to use one, or says why all ranks use the CPU. Collective.
func (w *Worker) openDevice() error {
	if w.job.Device == "" {
		return nil
	}
	d, onCPU, err := device.Open(device.Options{
		Comm: w.comm, Site: w.site, Mode: w.job.Device, FirstGPU: w.job.FirstGPU, BF16: w.job.BF16, TF32: w.job.TF32,
		Data: w.ds, InMemory: w.job.DataInMemory,
	})
	switch {
	case err != nil:
		return err
	case d == nil:
		w.emitFirst(runs.Event{Kind: runs.KindDevice, Text: "cpu"})
		w.Printf("on the CPU: %s", onCPU)
		return nil
	}
	w.gpu = d
	w.Printf("%v", d)
	return nil
}

// deviceSampler is a device's sampler for a loop, nil where the CPU has to
// sample: with a picker or a frontier of the program's own.
func (w *Worker) deviceSampler(k feed.Key) (feed.Sampler, error) {
	if w.gpu == nil || k.Frontier != nil {
		return nil, nil
	}
	return w.gpu.Sampler(sample.Config{
		Picker: k.Picker, Hops: k.Hops, Seed: w.job.Seed, Purpose: sample.Purpose(k.Purpose), Transpose: k.Purpose == philox.Sample,
	})
}

// holdInput keeps the rows before a layer of layer-wise inference on the device
// while its chunks are computed: each would copy all of them there otherwise. Where
// they do not fit, this network is evaluated on the CPU from now on.
func (n *network) holdInput(h []float32) (release func(), err error) {
	w := n.w
	if w.gpu != nil && !n.eval.onHost && w.gpu.Staged() {
		n.evaluateOnHost("the device reads no features but a batch's")
	}
	if w.gpu == nil || n.eval.onHost || len(h) == 0 {
		return func() {}, n.evalOnHost()
	}
	release, ok := w.gpu.Hold(h)
	if ok {
		return release, nil
	}
	n.evaluateOnHost(fmt.Sprintf("the device has no room for %s of a layer's rows", units.Bytes(int64(4*len(h)))))
	return func() {}, n.evalOnHost()
}

// evaluateOnHost has the network evaluated layer by layer on the CPU from now on.
func (n *network) evaluateOnHost(why string) {
	n.w.Printf("layer-wise evaluation runs on the CPU: %s", why)
	n.eval.onHost = true
	if n.eval.pass != nil {
		n.eval.pass.Close()
		n.eval.pass = nil
	}
}

// evalOnHost gets the weights where evaluation runs on the CPU.
func (n *network) evalOnHost() error {
	if !n.eval.onHost {
		return nil
	}
	return n.toHost()
}

// gradients is where the gradients of a step are and how ranks add them up.
type gradients interface {
	// begin makes room for the micro-th batch of a step: the parameters' gradient
	// is 0, or the sum of this step's batches so far, and the tail [tailLen] is 0.
	begin(micro int)
	// note puts what is known of the micro-th batch's loss into its tail, before the
	// backward pass.
	note(micro int, loss *nn.Loss)
	// empty says that the micro-th batch adds nothing.
	empty(micro int)
	// loss is the micro-th batch's, after note; known is false where a device has it.
	loss(micro int) (sum float32, known bool)
	// own is this rank's gradient of the micro-th batch, nil where a device has it.
	own(micro int) []float32
	// sum adds up over all ranks: the tails, and the gradient, which is nil where a
	// device has it. Where a device has losses of the step too, late brings them, and
	// the tail is without them. Collective.
	sum(w *Worker) (grad, tail []float32, late *lateStep, err error)
}

// noteWeight puts into a tail what of a loss is known at once.
func noteWeight(tail []float32, loss *nn.Loss) {
	tail[tailWeight], tail[tailCount] = float32(loss.Weight), float32(loss.Count)
}

// gradients makes a network's gradients at its first step. Collective.
func (n *network) gradients() (gradients, error) {
	w := n.w
	if n.dev != nil {
		return &deviceGradients{n: n, tails: make([]float32, tailLen*w.job.Virtual), figures: make([]lossFigures, w.job.Virtual)}, nil
	}
	r, err := w.comm.NewReducer(w.site("gradient buffer"), n.params.Len()+tailLen, w.job.Virtual)
	return &sharedGradients{n, r}, err
}

// sharedGradients are in slots of memory that all ranks share, one for each batch
// of a step: gradient, then tail.
type sharedGradients struct {
	n *network
	r collective.Reducer
}

func (g *sharedGradients) begin(micro int) {
	slot := g.r.Slot(micro)
	clear(slot)
	g.n.params.SetGrad(slot[:g.n.params.Len()])
}

func (g *sharedGradients) note(micro int, loss *nn.Loss) {
	tail := g.r.Slot(micro)[g.n.params.Len():]
	noteWeight(tail, loss)
	if v := loss.Sum.Data(); len(v) == 1 { // Backward refuses others
		tail[tailLoss] = v[0]
	}
	tail[tailCorrect] = float32(loss.Correct())
}

func (g *sharedGradients) empty(micro int) { clear(g.r.Slot(micro)) }

func (g *sharedGradients) loss(micro int) (sum float32, known bool) {
	return g.r.Slot(micro)[g.n.params.Len()+tailLoss], true
}

func (g *sharedGradients) own(micro int) []float32 { return g.r.Slot(micro)[:g.n.params.Len()] }

func (g *sharedGradients) sum(w *Worker) (grad, tail []float32, late *lateStep, err error) {
	all, err := g.r.Reduce(w.site("step"))
	if err != nil {
		return nil, nil, nil, err
	}
	return all[:g.n.params.Len()], all[g.n.params.Len():], nil, nil
}

// deviceGradients are on this rank's device, with the losses; tails on the host.
type deviceGradients struct {
	n       *network
	tails   []float32
	figures []lossFigures // of each batch of the step; nil for one that adds nothing
}

func (g *deviceGradients) begin(micro int) {
	if micro == 0 {
		g.n.dev.ZeroGrad() // later batches of the step add to it
	}
	g.empty(micro)
}

func (g *deviceGradients) note(micro int, loss *nn.Loss) {
	noteWeight(g.tails[tailLen*micro:tailLen*(micro+1)], loss)
	g.figures[micro] = loss.Figures()
}

func (g *deviceGradients) empty(micro int) {
	clear(g.tails[tailLen*micro : tailLen*(micro+1)])
	g.figures[micro] = nil
}

func (g *deviceGradients) loss(int) (sum float32, known bool) { return 0, false }

func (g *deviceGradients) own(int) []float32 { return nil }

// sum waits for the losses where other ranks want them, which they exchange through
// the host's memory.
func (g *deviceGradients) sum(w *Worker) (grad, tail []float32, late *lateStep, err error) {
	g.n.dev.Reduce()
	if w.World() == 1 {
		late = &lateStep{w: w, n: g.n, tails: slices.Clone(g.tails), figures: slices.Clone(g.figures), made: g.n.madeOf(), applied: g.n.host.applied}
		return nil, rounded(sumTails(g.tails)), late, nil
	}
	w.stage(names.Backward) // where the host waits for this rank's device
	err = readFigures(g.tails, g.figures)
	w.stage(names.Reduce)
	if err != nil {
		return nil, nil, nil, err
	}
	w.watchTails(g.n, g.tails)
	sum := sumTails(g.tails)
	w.AllReduce(sum)
	return nil, rounded(sum), nil, nil
}

// toHost makes the network's host memory, and its optimiser's, what the device's
// is; toDevice takes parameters that were read from a file there. Both do nothing
// on the CPU.
func (n *network) toHost() error {
	if n.dev == nil || !n.host.behind {
		return nil
	}
	n.host.behind = false
	if err := n.dev.Pull(n.host.stepped); err != nil {
		return fmt.Errorf("gnb: getting the weights of model %q from the device: %w", n.name, err)
	}
	return nil
}

func (n *network) toDevice() error {
	if n.dev == nil {
		return nil
	}
	n.host.behind = false
	if err := n.dev.Put(); err != nil {
		return fmt.Errorf("gnb: putting the weights of model %q on the device: %w", n.name, err)
	}
	return nil
}

// toHost makes all networks' host memory what the device's is.
func (w *Worker) toHost() error {
	for _, n := range w.nets {
		if err := n.toHost(); err != nil {
			return err
		}
	}
	return nil
}
