package gnb

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// openDevice opens this rank's device if the run uses devices, or reports why all ranks use the
// CPU. Collective.
func (w *Worker) openDevice() error {
	if w.job.Device == "" {
		return nil
	}
	d, onCPU, err := device.Open(device.Options{
		Comm: w.comm, Site: w.site, Mode: w.job.Device, FirstGPU: w.job.FirstGPU, Machine: w.p.Machine, Ranks: w.p.LocalWorld, Host: w.p.Host, BF16: w.job.BF16, TF32: w.job.TF32,
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

// deviceSampler returns the device's sampler for a loop. It is nil if the CPU must sample because
// the program has a custom Picker or FrontierPicker, or the batch is cooperative.
func (w *Worker) deviceSampler(k feed.Key) (feed.Sampler, error) {
	if w.gpu == nil || k.Frontier != nil || k.Cooperative || w.job.Divided {
		return nil, nil
	}
	s, err := w.gpu.Sampler(sample.Config{
		Picker: k.Picker, Hops: k.Hops, Seed: w.job.Seed, Purpose: sample.Purpose(k.Purpose), Transpose: k.Purpose == philox.Sample,
	})
	if _, ok := k.Picker.(Labor); ok && s == nil && err == nil {
		w.Printf("batches are sampled on the CPU: layer-neighbour sampling has no GPU kernel")
	}
	return s, err
}

// holdInput keeps a layer's input rows on the device while layer-wise inference computes the
// layer's chunks; otherwise each chunk would copy all rows to the device. If the rows do not fit,
// this network is evaluated on the CPU from then on.
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
	n.evaluateOnHost(fmt.Sprintf("the device has no room for %s of a layer's rows", phrase.Bytes(int64(4*len(h)))))
	return func() {}, n.evalOnHost()
}

// evaluateOnHost switches the network's layer-wise evaluation to the CPU from now on.
func (n *network) evaluateOnHost(why string) {
	n.w.Printf("layer-wise evaluation runs on the CPU: %s", why)
	n.eval.onHost = true
	if n.eval.pass != nil {
		n.eval.pass.Close()
		n.eval.pass = nil
	}
}

// evalOnHost copies the weights to host memory if evaluation runs on the CPU.
func (n *network) evalOnHost() error {
	if !n.eval.onHost {
		return nil
	}
	return n.toHost()
}

// gradients holds the gradients of a step and sums them over ranks.
type gradients interface {
	// begin prepares the micro-th batch of a step: it sets the parameters' gradient to 0, or to
	// the sum over this step's earlier batches, and the tail [tailLen] to 0.
	begin(micro int)
	// note writes the known parts of the micro-th batch's loss into its tail, before the backward
	// pass.
	note(micro int, loss *nn.Loss)
	// empty marks the micro-th batch as contributing nothing.
	empty(micro int)
	// loss returns the micro-th batch's loss, after note; known is false if the loss is still on a
	// device.
	loss(micro int) (sum float32, known bool)
	// own returns this rank's gradient of the micro-th batch, nil if it is on a device.
	own(micro int) []float32
	// sum adds the tails and the gradient over all ranks. grad is nil if it is on a device. If
	// losses of the step are still on a device, the tail lacks them and late delivers them later.
	// Collective.
	sum(w *Worker) (grad, tail []float32, late *lateStep, err error)
}

// noteWeight writes the parts of a loss that are known before the backward pass into a tail.
func noteWeight(tail []float32, loss *nn.Loss) {
	tail[tailWeight], tail[tailCount] = float32(loss.Weight), float32(loss.Count)
}

// gradients returns a network's gradients, which it makes at the network's first step. Collective.
func (n *network) gradients() (gradients, error) {
	w := n.w
	if n.dev != nil {
		return &deviceGradients{n: n, tails: make([]float32, tailLen*w.job.Virtual), figures: make([]lossFigures, w.job.Virtual)}, nil
	}
	r, err := w.comm.NewReducer(w.site("gradient buffer"), n.params.Len()+tailLen, w.job.Virtual)
	return &sharedGradients{n, r}, err
}

// sharedGradients are in slots of memory shared by all ranks. Each batch of a step has one slot:
// the gradient, then the tail.
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

// deviceGradients and their losses are on this rank's device; the tails are on the host.
type deviceGradients struct {
	n       *network
	tails   []float32
	figures []lossFigures // per batch of the step; nil for a batch that contributes nothing
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

// sum waits for the losses if other ranks need them: ranks exchange losses through host memory.
func (g *deviceGradients) sum(w *Worker) (grad, tail []float32, late *lateStep, err error) {
	g.n.dev.Reduce()
	if w.World() == 1 {
		late = &lateStep{w: w, n: g.n, tails: slices.Clone(g.tails), figures: slices.Clone(g.figures), made: g.n.madeOf(), applied: g.n.host.applied}
		return nil, rounded(sumTails(g.tails)), late, nil
	}
	w.stage(runfile.StageBackward) // the host waits here for this rank's device
	err = g.n.rows.Await(func() error { return readFigures(g.tails, g.figures) })
	w.stage(runfile.StageReduce)
	if err != nil {
		return nil, nil, nil, err
	}
	w.watchTails(g.n, g.tails)
	sum := sumTails(g.tails)
	w.AllReduce(sum)
	return nil, rounded(sum), nil, nil
}

// toHost copies the network's and its optimiser's state from the device to host memory; toDevice
// copies parameters read from a file to the device. Both do nothing on the CPU.
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

// toHost copies the state of all networks from the device to host memory.
func (w *Worker) toHost() error {
	for _, n := range w.nets {
		if err := n.toHost(); err != nil {
			return err
		}
	}
	return nil
}
