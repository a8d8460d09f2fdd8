// Package device holds what the worker loop trains where it is computed, in host memory or on a rank's GPU: a network's
// [Parameters], and the [Gradients] of a step with their sum over ranks. It opens the GPU, stores data of the run there,
// and lets the ranks agree to use GPUs.
//
// Only the build tag cuda (on Linux, with cgo) adds an implementation; without it [Open] reports
// that the program was built without GPU support. Only worker processes open a device: [Count]
// opens no driver.
package device

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Plan returns the number of GPUs of this machine for a run whose device is "auto", "cpu" or "cuda"; if there is none,
// why is the reason, and with "cuda" an error. launched says that a launcher has started the ranks and this is rank 0:
// with "auto" a note then says why all ranks compute on the CPU.
func Plan(mode string, launched bool, note func(format string, args ...any)) (gpus int, why string, err error) {
	if mode == "cpu" {
		return 0, "the CPU was asked for", nil
	}
	gpus, err = Count()
	if err == nil {
		return gpus, "", nil
	}
	on := ""
	if launched {
		host, _ := os.Hostname() // "" says less
		on = fmt.Sprintf(" on rank 0 (%s)", host)
	}
	if mode == "cuda" {
		return 0, "", fmt.Errorf(`gnb: Device is "cuda" and there is none%s: %w`, on, err)
	}
	if launched && built {
		note("all ranks are on the CPU, since there is no GPU%s: %v", on, err)
	}
	return 0, err.Error(), nil
}

// Device is a rank's GPU and the data of the run that it stores.
type Device interface {
	Backend() ops.Backend
	// Weights keeps a network's parameters, gradient and optimiser state on the device.
	Weights(p *nn.Params) (Weights, error)
	// Sampler returns a sampler on the device, or nil if the CPU must sample.
	Sampler(c sample.Config) (sample.Batcher, error)
	// Hold copies a matrix of host memory to the device, for passes to read until release is
	// called; ok is false if there is no room.
	Hold(host []float32) (release func(), ok bool)
	// Room keeps memory on the device in place of a matrix in host memory, until release is called: what passes copy
	// into the matrix stays on the device. ok is false if there is too little.
	Room(host []float32) (release func(), ok bool)
	// broadcast sends rows of such a matrix from the rank root to all, which are more than one. Collective.
	broadcast(rows []float32, root int)
	// Staged reports whether features are in host memory that the device does not read; a [Stager]
	// then copies each batch's rows.
	Staged() bool
	// String describes the device and the placement of data.
	String() string
	// Close releases the device and its memory. It does not return an error that an earlier call
	// has returned.
	Close() error

	// join connects the ranks so that they sum gradients on their devices. Collective.
	join(o *Options) error
	feed.Device // keeps rows while the host gathers batches
	mover(c collective.Comm, site func(kind string) collective.Site) feed.Mover
	// stager returns a [Stager] of the features in host memory or, with fed, of batches that the host gathers; nil if all features
	// are on the device.
	stager(fed bool) (Stager, error)
}

// Fed returns a device to which the host copies the rows of each batch, else nil: one that the host feeds, or whose features are
// staged.
func Fed(d Device, fed bool) feed.Device {
	if d == nil || !fed && !d.Staged() {
		return nil
	}
	return d
}

// StagerOf returns what brings the features of a loop's batches to the device ahead of their use, or nil if nothing does. With
// fed, the host gathers the batches.
func StagerOf(d Device, fed bool) (Stager, error) {
	if d == nil {
		return nil, nil
	}
	return d.stager(fed)
}

// Mover returns what moves the rows of cooperative batches between the ranks' devices, with a communicator of NCCL that
// it opens when it first does; nil for one rank, and without a device. The goroutine that runs the program uses
// it, and no other: its operations and those of [Weights] then have one order on all ranks.
func Mover(d Device, c collective.Comm, site func(kind string) collective.Site) feed.Mover {
	if d == nil {
		return nil
	}
	return d.mover(c, site)
}

// Weights are a network's parameters on a device, with their gradient and an optimiser's state. Host memory is
// stale until Pull.
type Weights interface {
	ZeroGrad()
	ClipScale(scale float32, limit float64) (clipped float32, norm float64, err error)
	Step(o optim.Optimizer, scale float32) error
	// Remember copies the parameters before a step, and Recall restores the copy of one of the
	// last two steps. Neither waits for the device.
	Remember(step int64) error
	Recall(step int64) error
	// Put copies the parameters to the device, and Pull copies all state from it.
	Put() error
	Pull(o optim.Optimizer) error
	// PutFixed and PullFixed copy only the parameters that are not trained.
	PutFixed() error
	PullFixed() error
	// Reduce sums the gradient over all ranks. Collective.
	Reduce()
}

// Stager brings the features of one loop's batches to the device, one batch ahead.
type Stager interface {
	// Prepare starts copying the features of a batch: of its input nodes or, where the host gathers batches, rest, which are those
	// that do not stay on the device; places then says where each row is ([feed.Ticket]). It returns nil where the batch
	// has all rows. While two batches are in use it waits, at most until stop is closed.
	Prepare(stop <-chan struct{}, b *sample.Batch, places []int32, rest *dataset.Matrix) (Batch, error)
	// Close ends the loop. All of its batches must be finished.
	Close()
}

// Batch is the features of a batch on the device.
type Batch interface {
	// Input is the features as the input of a pass on the device, in the space sp, or nil if passes now read the rows of the dataset's
	// matrix there.
	Input(f *nn.Fwd, sp *nn.Space) *nn.Tensor
	// Features returns a copy in host memory; nil if the host has all rows.
	Features() []float32
	Done() // frees the rows once the work launched so far has ended
}

// Options select the device that a rank opens, and the data that it places there.
type Options struct {
	Comm collective.Comm
	Site func(kind string) collective.Site // names a collective call
	// Mode is "auto", or "cuda" to fail if a rank has no device.
	Mode     string
	FirstGPU int // the GPU of rank 0; others follow
	// Machine is the number of this rank's machine, Ranks the number of ranks on it, and Host its name, which errors
	// give; "" without a launcher.
	Machine, Ranks int
	Host           string
	BF16           bool
	TF32           bool
	// Data is the dataset to place there, or nil. InMemory means that it is in a memory file
	// instead of files on disk.
	Data     *dataset.Dataset
	InMemory bool

	// host is the free host memory before any rank pins memory.
	host machine.Memory
}

// Open opens this rank's device. Either all ranks get one or none: with Mode "auto", one rank without a device
// makes all ranks use the CPU, d is nil, and onCPU is the reason; otherwise its error is the run's. Collective.
func Open(o Options) (d Device, onCPU string, err error) {
	if err := o.readHost(); err != nil {
		return nil, "", err
	}
	err = mapped.Guard(func() (err error) {
		d, err = open(&o)
		return err
	})
	var text string
	if err != nil {
		text = err.Error()
		if o.Host != "" {
			text = fmt.Sprintf("rank %d (%s): %s", o.Comm.Rank(), o.Host, text)
		}
	}
	all, gatherErr := o.Comm.AllGather(o.Site("devices"), []byte(text))
	if gatherErr != nil {
		err = cmp.Or(err, gatherErr)
		return nil, "", errors.Join(err, Close(d))
	}
	for rank, t := range all {
		if len(t) == 0 {
			continue
		}
		t = bytes.Clone(t) // the gathered bytes belong to the collective
		if e := Close(d); e != nil && err == nil {
			err = e
		}
		switch {
		case o.Mode == "auto" && !o.TF32:
			return nil, string(t), nil
		case err != nil:
			return nil, "", fmt.Errorf("gnb: %w", err)
		}
		return nil, "", fmt.Errorf("gnb: %w: rank %d has no device: %s", collective.ErrAborted, rank, t) // that rank's own error is the run's
	}
	if err := d.join(&o); err != nil {
		return nil, "", errors.Join(fmt.Errorf("gnb: %w", err), Close(d))
	}
	return d, "", nil
}

// readHost reads the free host memory before any rank pins memory. Collective.
func (o *Options) readHost() error {
	m, err := machine.ReadMemory()
	if err != nil {
		m.Free = math.MaxInt64 // unknown; rely on pinning to fail
	}
	if o.Comm.Size() > 1 {
		all, err := o.Comm.AllGather(o.Site("host memory"), binary.LittleEndian.AppendUint64(nil, uint64(m.Free)))
		if err != nil {
			return err
		}
		for _, b := range all {
			m.Free = min(m.Free, int64(binary.LittleEndian.Uint64(b)))
		}
	}
	o.host = m
	return nil
}

// Close closes a device, which may be nil.
func Close(d Device) error {
	if d == nil {
		return nil
	}
	return d.Close()
}
