package gnb

import (
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/phrase"
)

// openDevice opens this rank's device if the run uses devices, or reports why all ranks use the
// CPU. Collective.
func (w *Worker) openDevice() error {
	if w.job.Device == "" {
		return nil
	}
	ds := w.ds
	if w.hostFeeds() {
		ds = nil
	}
	d, onCPU, err := device.Open(device.Options{
		Comm: w.comm, Site: w.site, Mode: w.job.Device, FirstGPU: w.job.FirstGPU, Machine: w.p.Machine, Ranks: w.p.LocalWorld, Host: w.p.Host, BF16: w.job.BF16, TF32: w.job.TF32,
		Data: ds, InMemory: w.job.DataInMemory,
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
	where := ""
	if w.hostFeeds() {
		where = "; batches are sampled and their rows gathered on the host"
	}
	w.Printf("%v%s", d, where)
	return nil
}

// hostFeeds reports whether the host samples and gathers each batch, because no device can hold the
// data: a dataset in parts, and features that are read from disk.
func (w *Worker) hostFeeds() bool {
	return w.feed.parts != nil || w.job.Plane.Features == feed.FeaturesOnDisk
}

// deviceSampler returns the device's sampler for a loop. It is nil if the CPU must sample because
// the program has a custom Picker or FrontierPicker, the batch is cooperative, or the host feeds the device.
func (w *Worker) deviceSampler(k feed.Key) (sample.Batcher, error) {
	if w.gpu == nil || k.Frontier != nil || k.Cooperative || k.Induced || w.hostFeeds() {
		return nil, nil
	}
	s, err := w.gpu.Sampler(sample.Config{
		Picker: k.Picker, Hops: k.Hops, Disjoint: k.Disjoint, Seed: w.job.Seed, Purpose: sample.Purpose(k.Purpose), Transpose: k.Purpose == philox.Sample,
	})
	if spec, ok := sample.SpecOf(k.Picker); ok && s == nil && err == nil {
		switch {
		case k.Disjoint:
			w.Printf("batches are sampled on the CPU: disjoint trees have no GPU kernel")
		case spec.Labor != nil && spec.Labor.Poisson:
			w.Printf("batches are sampled on the CPU: layer-neighbour sampling by Poisson has no GPU kernel")
		}
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
	return n.params.ToHost()
}

// gradients returns a network's gradients, which it makes at the network's first step. Collective.
func (n *network) gradients() (device.Gradients, error) {
	w := n.w
	return n.params.Gradients(device.GradientOptions{
		Comm: w.comm, Site: w.site, Virtual: w.job.Virtual,
		Await: func(read func() error) error {
			w.stage(runfile.StageBackward)
			defer w.stage(runfile.StageReduce)
			return n.rows.Await(read)
		},
		Look: func(losses []float32) { w.watchLosses(n, losses) },
	})
}

// toHost copies the state of all networks from the device to host memory.
func (w *Worker) toHost() error {
	for _, n := range w.nets {
		if err := n.params.ToHost(); err != nil {
			return err
		}
	}
	return nil
}
