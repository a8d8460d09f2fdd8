//go:build cuda && linux && cgo

package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/graphnb/graphnb/internal/phrase"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/backend"
	"github.com/graphnb/graphnb/internal/cuda/cublas"
	"github.com/graphnb/graphnb/internal/cuda/libs"
	"github.com/graphnb/graphnb/internal/cuda/nccl"
	"github.com/graphnb/graphnb/internal/cuda/sampler"
	"github.com/graphnb/graphnb/internal/cuda/store"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// built says that the program can use GPUs.
const built = true

// Count returns the number of GPUs that workers may use, or the reason why there is none. It opens
// no driver.
func Count() (int, error) {
	slots, err := machine.GPUSlots()
	return len(slots), err
}

// gpu is the implementation of [Device].
type gpu struct {
	d     *cuda.Device
	be    *backend.Backend
	blas  *cublas.Handle // nil if GraphNB's own kernel multiplies
	ranks *nccl.Comm     // nil for one rank
	data  *store.Store   // nil for a run without a dataset
	fed   *store.Fed     // for batches that the host gathers
	notes []string
}

// open opens the device of this rank and places the dataset on it.
func open(of *Options) (_ Device, err error) {
	world := of.Comm.Size()
	rank, local, err := sharing(of)
	if err != nil {
		return nil, err
	}
	slot, err := machine.ChooseGPU(rank, local, of.FirstGPU)
	if err != nil {
		return nil, err
	}
	// Set the variables before the driver and NCCL load, because they read them then.
	if slot.Visible != "" {
		if err := os.Setenv("CUDA_VISIBLE_DEVICES", slot.Visible); err != nil {
			return nil, err
		}
	}
	if os.Getenv("CUDA_VISIBLE_DEVICES") == "" && os.Getenv("CUDA_DEVICE_ORDER") == "" {
		if err := os.Setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID"); err != nil { // the order in which GPUs were counted
			return nil, err
		}
	}
	if _, set := os.LookupEnv(nccl.ShareEnv); slot.Shared && !set {
		if err := os.Setenv(nccl.ShareEnv, "1"); err != nil {
			return nil, err
		}
	}
	if world > 1 { // fail now, not at the first sum over ranks
		if _, err := libs.Find(libs.NCCL, 0); err != nil {
			return nil, err
		}
	}
	limit, err := sizeSetting(envknob.CUDAMemory)
	if err != nil {
		return nil, err
	}
	o := store.Options{Host: &store.Host{Free: of.host.Free, Limit: of.host.Limit, Ranks: of.Ranks}}
	pinned, err := sizeSetting(envknob.CUDAPinned)
	if err != nil {
		return nil, err
	}
	if pinned > 0 {
		o.Host.Free, o.Host.Limit, o.Host.Set = pinned, 0, true
	}
	for name, to := range map[*envknob.Knob]*store.Place{envknob.CUDAGraph: &o.Graph, envknob.CUDAFeatures: &o.Features} {
		if *to, err = placeSetting(name); err != nil {
			return nil, err
		}
	}
	g := &gpu{}
	if g.d, err = cuda.Open(cuda.Options{Device: slot.Device, Rank: of.Comm.Rank(), Ranks: world, Limit: limit}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	info := g.d.Info()
	g.note("on %s (GPU %d) with %s", info.Name, slot.Device, phrase.Bytes(info.Memory))
	precision := cublas.F32
	switch {
	case of.BF16:
		precision = cublas.BF16
	case of.TF32:
		precision = cublas.TF32
	}
	g.blas, err = cublas.Open(g.d, cublas.Options{Precision: precision})
	switch {
	case err == nil:
		g.note("products by cuBLAS %d.%d in %v", g.blas.Version()/10000, g.blas.Version()/100%100, precision)
	case g.d.Err() != nil || precision != cublas.F32 || envknob.LibCuBLAS.Get() != "":
		return nil, err
	default:
		g.blas = nil
		g.note("products by GraphNB's own kernel, at about a third of cuBLAS's speed (%v)", err)
	}
	if g.be, err = backend.New(g.d, g.blas); err != nil {
		return nil, err
	}
	g.fed = store.NewFed(g.d)
	ds := of.Data
	if ds == nil {
		return g, nil
	}
	x := store.Data{Graph: ds.Graph, Mapped: ds.Mapped(), Resident: of.InMemory}
	if m := ds.Features; m != nil && m.Rows > 0 {
		x.Features, x.Cols = nn.Table{F32: m.F32, F16: m.F16}, m.Cols
	}
	if g.data, err = store.Open(g.d, x, o); err != nil {
		return nil, err
	}
	if f := g.data.Features; f != nil {
		f.Share(g.be)
	}
	if on := g.data.Graph; on != nil && on.Place != store.Staged {
		g.be.ShareGraph(on.Host, on.Indptr, on.Indices)
	}
	g.note("%v", g.data)
	return g, nil
}

// placeSetting returns the placement of data that the environment selects: "device", "cached" (the
// most used rows on the device), "pinned" (in host memory that kernels read) or "staged" (in host
// memory). If unset, the placement depends on free memory.
func placeSetting(name *envknob.Knob) (store.Place, error) {
	text := name.Get()
	p, ok := map[string]store.Place{
		"": store.Auto, "device": store.Device, "cached": store.Cached, "pinned": store.Pinned, "staged": store.Staged,
	}[text]
	if !ok || name == envknob.CUDAGraph && p == store.Cached {
		return 0, fmt.Errorf("the environment variable %s is %q; it is \"device\", \"pinned\", \"staged\" or, for features, \"cached\"", name, text)
	}
	return p, nil
}

// sizeSetting returns a number of bytes from the environment, such as 20GB; 0 if unset.
func sizeSetting(name *envknob.Knob) (int64, error) {
	text := name.Get()
	if text == "" {
		return 0, nil
	}
	n, err := phrase.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("the environment variable %s is %q; it is a number of bytes above 0, such as 20GB or 300MB", name, text)
	}
	return n, nil
}

func (g *gpu) note(format string, args ...any) {
	g.notes = append(g.notes, fmt.Sprintf(format, args...))
}

func (g *gpu) Backend() ops.Backend { return g.be }

func (g *gpu) Hold(host []float32) (release func(), ok bool) {
	release, err := g.be.Hold(host)
	return release, err == nil // a failed device reports its error at the next pass
}

func (g *gpu) Room(host []float32) (release func(), ok bool) { return g.be.Room(host) }

func (g *gpu) broadcast(rows []float32, root int) { g.be.Broadcast(g.ranks, rows, root) }

// sharing returns this rank's number among the ranks that see the same GPUs, and the number of those:
// the ranks of its machine, unless their launcher gave each GPUs of its own. Collective.
func sharing(o *Options) (rank, count int, err error) {
	mine := strconv.Itoa(o.Machine) + " " + os.Getenv("CUDA_VISIBLE_DEVICES")
	all, err := o.Comm.AllGather(o.Site("visible GPUs"), []byte(mine))
	for r, b := range all {
		if string(b) != mine {
			continue
		}
		if r < o.Comm.Rank() {
			rank++
		}
		count++
	}
	return rank, count, err
}

func (g *gpu) String() string { return strings.Join(g.notes, "; ") }

// joinPatience is the timeout for ranks to join.
const joinPatience = 2 * time.Minute

func (g *gpu) join(o *Options) error {
	if o.Comm.Size() == 1 {
		return nil
	}
	var err error
	if g.ranks, err = g.communicator(o.Comm, o.Site("NCCL's id")); err != nil {
		return err
	}
	v := g.ranks.Version()
	g.note("gradients added up by NCCL %d.%d.%d", v/10000, v/100%100, v%100)
	return nil
}

// communicator makes a communicator of NCCL, whose id travels over comm from rank 0. Collective.
func (g *gpu) communicator(comm collective.Comm, site collective.Site) (*nccl.Comm, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), joinPatience, errors.New("timed out waiting for the other ranks"))
	defer cancel()
	var id nccl.ID
	var err error
	if comm.Rank() == 0 {
		id, err = nccl.NewID(nccl.Options{Driver: g.d.Info().Driver})
	}
	all, gatherErr := comm.AllGather(site, id[:])
	switch {
	case err != nil:
		return nil, err
	case gatherErr != nil:
		return nil, gatherErr
	}
	copy(id[:], all[0])
	if id == (nccl.ID{}) {
		return nil, fmt.Errorf("%w: rank 0 could not start NCCL", collective.ErrAborted) // rank 0's own error is the run's
	}
	return nccl.Open(ctx, g.d, id, comm.Rank(), comm.Size(), nccl.Options{Ended: func() error {
		if reason, yes := comm.Aborted(); yes {
			return fmt.Errorf("%w: %s", collective.ErrAborted, reason)
		}
		return nil
	}})
}

// rowMover is the [feed.Mover] of a device.
type rowMover struct {
	g    *gpu
	comm collective.Comm
	site func(kind string) collective.Site
	rows *nccl.Comm // nil before the first exchange
}

func (g *gpu) mover(c collective.Comm, site func(kind string) collective.Site) feed.Mover {
	if g.ranks == nil {
		return nil
	}
	return &rowMover{g: g, comm: c, site: site}
}

// open makes the communicator at the first exchange of the run, which all ranks begin together.
func (m *rowMover) open() (err error) {
	if m.rows == nil {
		m.rows, err = m.g.communicator(m.comm, m.site("NCCL's id for rows"))
	}
	return err
}

func (m *rowMover) Fill(h *graphops.Halo, rows ops.Buffer, cols int) error {
	if err := m.open(); err != nil {
		return err
	}
	m.g.be.FillHalo(m.rows, h, rows, cols)
	return nil
}

func (m *rowMover) Add(h *graphops.Halo, d ops.Buffer, cols int) error {
	if err := m.open(); err != nil {
		return err
	}
	m.g.be.AddHalo(m.rows, h, d, cols)
	return nil
}

func (g *gpu) Sampler(c sample.Config) (sample.Batcher, error) {
	if c.Disjoint || !sampler.Samples(c.Picker) {
		return nil, nil
	}
	if g.data.Graph.Place == store.Staged {
		return nil, nil
	}
	s, err := sampler.New(g.d, g.data.Graph, sampler.Config{Config: c})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (g *gpu) Staged() bool {
	return g.data != nil && g.data.Features != nil && g.data.Features.Place == store.Staged
}

// weights implements [Weights].
type weights struct {
	*backend.Weights
	g *gpu
}

func (g *gpu) Weights(p *nn.Params) (Weights, error) {
	w, err := g.be.Weights(p)
	if err != nil {
		return nil, err
	}
	return &weights{w, g}, nil
}

func (w *weights) Reduce() {
	if w.g.ranks != nil {
		w.g.ranks.AllReduce(w.g.d.Compute, w.Grad(), w.Len())
	}
}

func (g *gpu) Close() error {
	failed := g.d.Err()
	if err := g.d.Close(); failed == nil {
		return err
	}
	return nil
}
