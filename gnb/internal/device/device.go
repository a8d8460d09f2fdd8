// Package device is a rank's GPU for the worker loop: what of a run lies there, and how ranks agree to use theirs.
//
// The build tag cuda alone (on Linux, with cgo) puts an implementation behind [Open]; without it Open says that the
// program was built without GPU support. Only worker processes open a device: [Count] touches no driver.
package device

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Device is a rank's GPU and what of the run lies there.
type Device interface {
	Backend() tensor.Backend
	// Weights keeps a network's parameters, gradient and optimiser state on the device.
	Weights(p *nn.Params) (Weights, error)
	// Sampler is a sampler on the device, or nil if the CPU has to sample.
	Sampler(c sample.Config) (feed.Sampler, error)
	// Hold copies a matrix of host memory to the device, where passes read it until release; ok is false if
	// there is no room.
	Hold(host []float32) (release func(), ok bool)
	// Staged says that features lie in host memory that the device does not read: a [Stager] copies each
	// batch's rows.
	Staged() bool
	Stager() (Stager, error)
	// String says which device it is and what lies where.
	String() string
	// Close releases the device and its memory. It does not repeat a failure that a call has returned.
	Close() error

	// join makes ranks add up gradients on their devices. Collective.
	join(o *Options) error
}

// Weights are a network's parameters on a device, with their gradient and an optimiser's state. Host memory is
// stale until Pull.
type Weights interface {
	ZeroGrad()
	ClipScale(scale float32, limit float64) (clipped float32, norm float64, err error)
	Step(o nn.Optimizer, scale float32) error
	// Remember copies the parameters before a step, and Recall restores the copy of one of the last two
	// steps. Neither waits.
	Remember(step int64) error
	Recall(step int64) error
	// Put copies the parameters to the device, Pull everything from it.
	Put() error
	Pull(o nn.Optimizer) error
	// PutFixed and PullFixed copy only the parameters that are not trained.
	PutFixed() error
	PullFixed() error
	// Reduce adds up the gradient over all ranks. Collective.
	Reduce()
}

// Stager copies the features of one loop's batches to the device, one batch ahead.
type Stager interface {
	// Prepare begins to copy the features of nodes. While two batches are in use it waits, until stop is closed.
	Prepare(stop <-chan struct{}, ids []int32) (Rows, error)
	// Close ends the loop. Its batches must be done.
	Close()
}

// Rows are the features of a batch on the device.
type Rows interface {
	Use()  // makes passes that begin later read these rows
	Done() // ends their use by what was launched so far
}

// Options say which device a rank opens, and what it puts there.
type Options struct {
	Comm collective.Comm
	Site func(kind string) collective.Site // names a collective call
	// Mode is "auto", or "cuda" if a rank without a device ends the run.
	Mode     string
	FirstGPU int // the GPU of rank 0; others follow
	BF16     bool
	TF32     bool
	// Data is the dataset to put there, or nil. InMemory says that it lies in a memory file, and not in
	// files.
	Data     *dataset.Dataset
	InMemory bool

	// host is the host's memory before any rank pins some.
	host machine.Memory
}

// Open opens this rank's device. Either all ranks get one or none: with Mode "auto", one rank without a device
// makes all ranks use the CPU, d is nil, and onCPU is the reason. Collective.
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
		t = bytes.Clone(t) // the gathering's own memory
		if e := Close(d); e != nil && err == nil {
			err = e
		}
		switch {
		case o.Mode == "auto" && !o.TF32:
			return nil, string(t), nil
		case err != nil:
			return nil, "", fmt.Errorf("gnb: %w", err)
		}
		return nil, "", fmt.Errorf("gnb: rank %d has no device: %s", rank, t)
	}
	if err := d.join(&o); err != nil {
		return nil, "", fmt.Errorf("gnb: %w", err)
	}
	return d, "", nil
}

// readHost reads how much host memory is free before any rank pins some. Collective.
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
