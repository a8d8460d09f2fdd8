//go:build cuda && linux && cgo

package store

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/backend"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/internal/testneed"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// onGPU makes the tests run on a real device; "make gpu-check" sets it.
var onGPU = fakegpu.Real()

// fake installs simulated devices; it returns nil if the tests run on a real one.
func fake(t testing.TB, c fakegpu.Config) *fakegpu.Driver {
	if onGPU {
		return nil
	}
	return fakegpu.New(t, c)
}

// open opens a device and closes it when the test ends.
func open(t testing.TB, o cuda.Options) *cuda.Device {
	t.Helper()
	d, err := cuda.Open(o)
	ok(t, err)
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return d
}

// ring returns a graph of n nodes in which only the lowest quarter of the nodes has out-edges, four
// each.
func ring(n int) *graphops.Graph {
	g := &graphops.Graph{Indptr: []int64{0}}
	for v := range n {
		g.Indices = append(g.Indices, int32(v/4))
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

func numbers(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i))) * 100
	}
	return x
}

// inPages returns a copy of x in pages of its own, like those of a mapped file, until the test
// ends.
func inPages(t testing.TB, x []float32) []float32 {
	t.Helper()
	m, err := syscall.Mmap(-1, 0, 4*len(x), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	ok(t, err)
	t.Cleanup(func() { ok(t, syscall.Munmap(m)) })
	out := unsafe.Slice((*float32)(unsafe.Pointer(&m[0])), len(x))
	copy(out, x)
	return out
}

// some returns n of the nodes, unsorted.
func some(nodes, n, salt int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((i*7 + salt) % nodes) // 7 does not divide the numbers of nodes here
	}
	return ids
}

// gathered returns the rows that the backend reads.
func gathered(t *testing.T, be *backend.Backend, f *Features, x tensor.Table, ids []int32) []float32 {
	t.Helper()
	st, err := f.Stager()
	ok(t, err)
	defer st.Close()
	r, err := st.Prepare(nil, ids)
	ok(t, err)
	defer r.Done()
	r.Use(be)
	table, found := be.Kept(x.F32)
	if f.Half {
		table, found = be.KeptHalf(x.F16)
	}
	if !found {
		t.Fatal("the features are not shared with the backend")
	}
	out := be.Alloc(len(ids) * f.Cols)
	defer be.Free(out)
	be.GatherRows(out, table, ops.Rows{N: len(ids), IDs: ids}, f.Cols)
	got := make([]float32, len(ids)*f.Cols)
	be.Download(got, out)
	return got
}

// stored returns x as a table in float16 or float32, and the numbers that the table holds.
func stored(x []float32, half bool) (tensor.Table, []float32) {
	if !half {
		return tensor.Table{F32: x}, x
	}
	bits, rounded := make([]uint16, len(x)), make([]float32, len(x))
	simd.ToHalf(bits, x)
	simd.FromHalf(rounded, bits)
	return tensor.Table{F16: bits}, rounded
}

// The backend reads the same rows from every place, at any width and in any number.
func TestFeatures(t *testing.T) {
	testneed.NotShort(t, "it copies features to many places")
	const nodes = 1100
	g := ring(nodes)
	for _, cols := range []int{1, 4, 33} {
		x := numbers(nodes * cols)
		for _, half := range []bool{false, true} {
			table, want := stored(x, half)
			for _, place := range []Place{Device, Cached, Pinned, Staged} {
				t.Run(fmt.Sprint(cols, " ", half, " ", place), func(t *testing.T) {
					fake(t, fakegpu.Config{})
					d := open(t, cuda.Options{Exact: true})
					be, err := backend.New(d, nil)
					ok(t, err)
					defer be.Close()
					f, err := PutFeatures(d, table, nodes, cols, FeatureOptions{Place: place, Graph: g, CacheBytes: 4*nodes + 100*int64(cols), Mapped: false})
					ok(t, err)
					defer func() { ok(t, f.Close()) }()
					if f.Place != place || (f.CachedRows > 0) != (place == Cached) {
						t.Errorf("%s, %d rows cached", f.Place, f.CachedRows)
					}
					f.Share(be)
					for i, n := range []int{1, 0, 1, 31, 32, 33, 1025} {
						ids := some(nodes, n, i)
						got := gathered(t, be, f, table, ids)
						for r, v := range ids {
							if !slices.Equal(got[r*cols:(r+1)*cols], want[int(v)*cols:(int(v)+1)*cols]) {
								t.Fatalf("row %d of %d is %v, want node %d's %v", r, n, got[r*cols:(r+1)*cols], v, want[int(v)*cols:(int(v)+1)*cols])
							}
						}
					}
					if n := d.Launches()["slots_i32"]; (n > 0) != (place == Staged) {
						t.Errorf("slots_i32 was launched %d times", n)
					}
				})
			}
		}
	}
}

// Stager.Prepare copies the next batch's rows while a batch is in use, and the rows of the batch in
// use stay valid.
func TestStagedAhead(t *testing.T) {
	const nodes, cols = 1100, 5
	x := numbers(nodes * cols)
	for _, schedule := range []fakegpu.Schedule{fakegpu.Lazy, fakegpu.Eager, fakegpu.Random} {
		t.Run(fmt.Sprint(schedule), func(t *testing.T) {
			fake(t, fakegpu.Config{Schedule: schedule, Seed: 3})
			d := open(t, cuda.Options{})
			be, err := backend.New(d, nil)
			ok(t, err)
			defer be.Close()
			f, err := PutFeatures(d, tensor.Table{F32: x}, nodes, cols, FeatureOptions{Place: Staged})
			ok(t, err)
			defer func() { ok(t, f.Close()) }()
			st, err := f.Stager()
			ok(t, err)
			defer st.Close()
			next := make(chan *Rows, 1)
			go func() {
				defer close(next)
				for step := range 6 {
					r, err := st.Prepare(nil, some(nodes, 40+step, step))
					if err != nil {
						t.Error(err)
						return
					}
					next <- r
				}
			}()
			step := 0
			for r := range next {
				r.Use(be)
				ids := some(nodes, 40+step, step)
				table, _ := be.Kept(x)
				out := be.Alloc(len(ids) * cols)
				be.GatherRows(out, table, ops.Rows{N: len(ids), IDs: ids}, cols)
				r.Done()
				got := make([]float32, len(ids)*cols)
				be.Download(got, out)
				be.Free(out)
				for i, v := range ids {
					if !slices.Equal(got[i*cols:(i+1)*cols], x[int(v)*cols:(int(v)+1)*cols]) {
						t.Fatalf("batch %d: row %d differs from node %d's", step, i, v)
					}
				}
				step++
			}
			if step != 6 {
				t.Errorf("%d batches", step)
			}
		})
	}
}

// A nested loop has memory of its own, a stopped Prepare does not wait, and reading rows that are
// not on the device is an error.
func TestStagers(t *testing.T) {
	const nodes, cols = 100, 3
	x := numbers(nodes * cols)
	fake(t, fakegpu.Config{})
	d := open(t, cuda.Options{})
	be, err := backend.New(d, nil)
	ok(t, err)
	defer be.Close()
	f, err := PutFeatures(d, tensor.Table{F32: x}, nodes, cols, FeatureOptions{Place: Staged})
	ok(t, err)
	defer func() { ok(t, f.Close()) }()
	outer, err := f.Stager()
	ok(t, err)
	var rows []*Rows
	for step := range 2 {
		r, err := outer.Prepare(nil, some(nodes, 10, step))
		ok(t, err)
		rows = append(rows, r)
	}
	rows[0].Use(be)
	first, _ := be.Kept(x)
	for step := range 3 { // a nested loop
		got := gathered(t, be, f, tensor.Table{F32: x}, some(nodes, 20, step))
		if v := some(nodes, 20, step)[7]; !slices.Equal(got[7*cols:8*cols], x[int(v)*cols:(int(v)+1)*cols]) {
			t.Fatalf("row 7 of batch %d of the nested loop differs from node %d's", step, v)
		}
	}
	if now, _ := be.Kept(x); now.Dev != first.Dev {
		t.Error("after the nested loop, the backend does not read the outer loop's batch")
	}
	out := be.Alloc(10 * cols) // the first batch's rows are still on the device
	be.GatherRows(out, first, ops.Rows{N: 10, IDs: some(nodes, 10, 0)}, cols)
	got := make([]float32, 10*cols)
	be.Download(got, out)
	if v := some(nodes, 10, 0)[9]; !slices.Equal(got[9*cols:], x[int(v)*cols:(int(v)+1)*cols]) {
		t.Errorf("row 9 differs from node %d's", v)
	}
	stop := make(chan struct{})
	close(stop)
	if r, err := outer.Prepare(stop, some(nodes, 5, 0)); !errors.Is(err, ErrStopped) {
		t.Errorf("%v, %v; want ErrStopped, because two batches are in use", r, err)
	}
	gather := func(table ops.Buffer, r ops.Rows) error {
		return nn.Try(func() { be.GatherRows(out, table, r, cols) })
	}
	ids := some(nodes, 10, 0)
	absent := int32(0)
	for slices.Contains(ids, absent) {
		absent++
	}
	prefix := graphops.HostBlock{NumSrc: nodes}.Block() // its rows are all nodes, in order
	for name, c := range map[string]struct {
		rows ops.Rows
		says string
	}{
		"another node":         {ops.Rows{N: 2, IDs: []int32{ids[3], absent}}, fmt.Sprintf("the features of node %d are read", absent)},
		"of a block":           {ops.Rows{N: 2, From: 1, Of: graphops.HostBlock{NumSrc: 3, SrcIDs: []int32{absent, ids[1], absent}}.Block()}, "and the node is not in this batch"},
		"of a block's numbers": {ops.Rows{N: nodes, Of: prefix}, "and the node is not in this batch"},
		"in another order":     {ops.Rows{N: 2, IDs: []int32{ids[3], ids[1]}}, ""},
		"of a smaller block":   {ops.Rows{N: 2, From: 1, Of: graphops.HostBlock{NumSrc: 3, SrcIDs: []int32{absent, ids[1], ids[2]}}.Block()}, ""},
		"none":                 {ops.Rows{IDs: []int32{}}, ""},
	} {
		if err := gather(first, c.rows); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, r := range rows {
		r.Done()
	}
	outer.Close()
	now, _ := be.Kept(x)
	for name, table := range map[string]ops.Buffer{"the first batch's": first, "the current one": now} {
		if err := gather(table, ops.Rows{N: 1, IDs: ids[:1]}); err == nil || !strings.Contains(err.Error(), "outside a batch, or reads those of an earlier batch") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if again, err := f.Stager(); err != nil || len(f.loops.all) != 2 {
		t.Errorf("%v, %v; %d stagers were made, want 2", again, err, len(f.loops.all))
	}
	err = nn.Try(func() { be.Binary(ops.AddOp, out, first, first, false) })
	if err == nil || !strings.Contains(err.Error(), "only the rows of a batch are copied to the device, but an operation reads all of them") {
		t.Errorf("%v", err)
	}
	be.Free(out)
}

// Open places data by the free memory unless the options choose a place, and reports the places.
func TestDecision(t *testing.T) {
	const nodes, cols = 1000, 64 // 256,000 bytes of features, 12,008 of graph
	x := numbers(nodes * cols)
	for _, c := range []struct {
		name  string
		limit int64
		o     Options
		fault string // a call that fails twice with OutOfMemory
		after int    // number of calls that succeed first
		says  []string
		graph Place
		feats Place
	}{
		{"all fits", 1 << 20, Options{}, "", 0, []string{"the graph (11.7 KiB) on the device", "features of 1000 nodes (250 KiB) on the device", "of 1.0 MiB of device memory are left"}, Device, Device},
		{"half of the rows", 256 << 10, Options{}, "", 0, []string{"the graph (11.7 KiB) on the device", "rows used most", "the others in pinned host memory"}, Device, Cached},
		{"nothing fits", 4 << 10, Options{}, "", 0, []string{"the graph (11.7 KiB) in pinned host memory", "features of 1000 nodes (250 KiB) in pinned host memory"}, Pinned, Pinned},
		{"f16 fits", 256 << 10, Options{}, "", 0, []string{"features of 1000 nodes in float16 (125 KiB) on the device"}, Device, Device},
		{"the host pins nothing", 64 << 10, Options{Graph: Device}, "cuMemHostAlloc", 0, []string{"in host memory, each batch's rows copied to the device"}, Device, Staged},
		{"the device is full after all", 1 << 20, Options{}, "cuMemAlloc_v2", 2, []string{"the graph (11.7 KiB) on the device", "the 1000 rows used most"}, Device, Cached},
		{"no room anywhere", 10 << 10, Options{Host: &Host{}}, "", 0, []string{"the graph (11.7 KiB) in host memory, sampled by the CPU (store: putting what lies in pinned host memory: pinning 7.8 KiB", "each batch's rows copied"}, Staged, Staged},
		{"all in host memory", 1 << 20, Options{Graph: Staged, Features: Staged}, "", 0, []string{"the graph (11.7 KiB) in host memory, sampled by the CPU;", "each batch's rows copied to the device;"}, Staged, Staged},
		{"asked for", 1 << 20, Options{Graph: Pinned, Features: Staged}, "", 0, []string{"the graph (11.7 KiB) in pinned host memory", "each batch's rows"}, Pinned, Staged},
		{"a small cache", 1 << 20, Options{Features: Cached, CacheBytes: 4*nodes + 10*4*cols}, "", 0, []string{"the 10 rows used most (2.5 KiB) on the device"}, Device, Cached},
	} {
		t.Run(c.name, func(t *testing.T) {
			drv := fake(t, fakegpu.Config{})
			d := open(t, cuda.Options{Exact: true, Limit: c.limit})
			table, _ := stored(x, c.name == "f16 fits")
			data := Data{Graph: ring(nodes), Features: table, Cols: cols}
			if c.fault != "" {
				if onGPU {
					t.Skip("needs a simulated fault")
				}
				// The first copy allocates the ring of chunks, before the fault is injected.
				b, err := d.Alloc(cuda.Workspace, 4)
				ok(t, err)
				ok(t, cuda.CopyIn(d.Compute, b.Ptr, []int32{1}))
				b.Free()
				drv.Inject(fakegpu.Fault{Call: c.fault, Status: int(cuda.OutOfMemory), Times: 2, After: c.after})
			}
			s, err := Open(d, data, c.o)
			ok(t, err)
			defer func() { ok(t, s.Close()) }()
			if s.Graph.Place != c.graph || s.Features.Place != c.feats {
				t.Errorf("the graph is %s, features are %s", s.Graph.Place, s.Features.Place)
			}
			for _, part := range c.says {
				if !strings.Contains(s.String(), part) {
					t.Errorf("%q does not say %q", s, part)
				}
			}
		})
	}
}

// Data that exceeds the host's free memory is not pinned, whether it is mapped or not. Features are
// then staged for each batch, and the report gives the reason.
func TestHostMemory(t *testing.T) {
	t.Cleanup(func() { hostMemory = machine.ReadMemory })
	const nodes, cols = 1000, 64
	x := inPages(t, numbers(nodes*cols))
	for name, c := range map[string]struct {
		m    machine.Memory
		o    FeatureOptions
		at   Place
		says string
	}{
		"enough":    {machine.Memory{Free: 300 << 10}, FeatureOptions{}, Pinned, "in pinned host memory"},
		"no room":   {machine.Memory{Free: 250 << 10}, FeatureOptions{}, Staged, "pinning 250 KiB of host memory: out of memory; the host has 250 KiB"},
		"half":      {machine.Memory{Free: 150 << 10}, FeatureOptions{}, Pinned, "in pinned host memory"},
		"half of":   {machine.Memory{Free: 100 << 10}, FeatureOptions{}, Staged, "pinning 125 KiB"},
		"container": {machine.Memory{Free: 100 << 10, Limit: 1 << 20}, FeatureOptions{Mapped: true}, Staged, "the container's memory limit of 1.0 MiB leaves 100 KiB"},
		"resident":  {machine.Memory{Free: 100 << 10}, FeatureOptions{Mapped: true, Resident: true}, Pinned, "in pinned host memory"},
		"asked for": {machine.Memory{Free: 100 << 10}, FeatureOptions{Place: Pinned, Mapped: true}, Pinned, "out of memory; the host has 100 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			hostMemory = func() (machine.Memory, error) { return c.m, nil }
			fake(t, fakegpu.Config{})
			d := open(t, cuda.Options{Limit: 10 << 10})
			table, _ := stored(x, strings.HasPrefix(name, "half"))
			f, err := PutFeatures(d, table, nodes, cols, c.o)
			if c.o.Place == Pinned {
				if !errors.Is(err, cuda.OutOfMemory) || !strings.Contains(err.Error(), c.says) {
					t.Error(err)
				}
				return
			}
			ok(t, err)
			defer func() { ok(t, f.Close()) }()
			if f.Place != c.at || !strings.Contains(f.String(), c.says) {
				t.Errorf("%v", f)
			}
		})
	}
}

// Memory that several workers pin adds up, except for pages of files, which they share.
func TestHostMemoryOfSeveralWorkers(t *testing.T) {
	const nodes, cols = 1000, 64 // 250 KiB
	x := inPages(t, numbers(nodes*cols))
	for name, c := range map[string]struct {
		h    *Host
		o    FeatureOptions
		at   Place
		says string
	}{
		"one":               {&Host{Free: 600 << 10}, FeatureOptions{}, Pinned, "in pinned host memory"},
		"two":               {&Host{Free: 600 << 10, Ranks: 2}, FeatureOptions{}, Pinned, "in pinned host memory"},
		"three":             {&Host{Free: 600 << 10, Ranks: 3}, FeatureOptions{}, Staged, "pinning 250 KiB of host memory for each of 3 workers: out of memory; the host has 600 KiB"},
		"in a container":    {&Host{Free: 600 << 10, Limit: 700 << 10, Ranks: 3}, FeatureOptions{}, Staged, "for each of 3 workers: out of memory; the container's memory limit of 700 KiB leaves 600 KiB"},
		"one file":          {&Host{Free: 300 << 10, Ranks: 3}, FeatureOptions{Mapped: true}, Pinned, "in pinned host memory"},
		"in memory":         {&Host{Ranks: 3}, FeatureOptions{Mapped: true, Resident: true}, Pinned, "in pinned host memory"},
		"in memory, not so": {&Host{Free: 249 << 10, Ranks: 3, Set: true}, FeatureOptions{Mapped: true, Resident: true}, Staged, "GNB_CUDA_PINNED=249 KiB leaves 249 KiB"},
		"set":               {&Host{Free: 500 << 10, Ranks: 2, Set: true}, FeatureOptions{}, Pinned, "in pinned host memory"},
	} {
		t.Run(name, func(t *testing.T) {
			fake(t, fakegpu.Config{})
			d := open(t, cuda.Options{Limit: 10 << 10})
			if c.o.Mapped && (!d.Info().ReadOnlyOK || !d.Info().HostReads) {
				t.Skip("this device registers no read-only memory")
			}
			c.o.Host = c.h
			table := tensor.Table{F32: x}
			f, err := PutFeatures(d, table, nodes, cols, c.o)
			ok(t, err)
			if f.Place != c.at || !strings.Contains(f.String(), c.says) {
				t.Errorf("%v", f)
			}
			if name == "two" { // there is no room for a second table
				if _, err := PutFeatures(d, table, nodes, cols, FeatureOptions{Place: Pinned, Host: c.h}); !errors.Is(err, cuda.OutOfMemory) || !strings.Contains(err.Error(), "the host has 100 KiB") {
					t.Error(err)
				}
			}
			ok(t, f.Close())
			if n := c.h.copies.Load() + pinnedFiles.Load(); n != 0 {
				t.Errorf("%d bytes are still counted", n)
			}
		})
	}
}

// Pages of files that are pinned in place count as used, although the host reports them as free.
func TestPinnedFiles(t *testing.T) {
	fake(t, fakegpu.Config{})
	d := open(t, cuda.Options{})
	if !d.Info().ReadOnlyOK || !d.Info().HostReads {
		t.Skip("this device registers no read-only memory")
	}
	hostMemory = func() (machine.Memory, error) { return machine.Memory{Free: 300 << 10}, nil }
	t.Cleanup(func() { hostMemory = machine.ReadMemory })
	const nodes, cols = 1000, 50
	o := FeatureOptions{Place: Pinned, Mapped: true}
	x, y := inPages(t, numbers(nodes*cols)), inPages(t, numbers(nodes*cols))
	first, err := PutFeatures(d, tensor.Table{F32: x}, nodes, cols, o)
	ok(t, err)
	if _, err := PutFeatures(d, tensor.Table{F32: y}, nodes, cols, o); !errors.Is(err, cuda.OutOfMemory) || !strings.Contains(err.Error(), "the host has 105 KiB") {
		t.Errorf("%v", err)
	}
	ok(t, first.Close())
	second, err := PutFeatures(d, tensor.Table{F32: y}, nodes, cols, o)
	ok(t, err)
	ok(t, second.Close())
	if n := pinnedFiles.Load(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}

// A dataset in a memory file, which a worker inherits, is read in place: workers make no copies,
// and need no memory for them.
func TestMemoryFile(t *testing.T) {
	hostMemory = func() (machine.Memory, error) { return machine.Memory{}, nil }
	t.Cleanup(func() { hostMemory = machine.ReadMemory })
	file, err := dataset.Karate().Share(t.Context(), dataset.CheckOnceOptions{})
	ok(t, err)
	ds, err := dataset.OpenFD(file)
	ok(t, err)
	defer func() { ok(t, errors.Join(ds.Close(), file.Close())) }()
	fake(t, fakegpu.Config{})
	d := open(t, cuda.Options{})
	if !d.Info().ReadOnlyOK || !d.Info().HostReads {
		t.Skip("this device registers no read-only memory")
	}
	s, err := Open(d, Data{Graph: ds.Graph, Features: tensor.Table{F32: ds.Features.F32}, Cols: ds.Features.Cols, Mapped: ds.Mapped(), Resident: true}, Options{Graph: Pinned, Features: Pinned})
	ok(t, err)
	defer func() { ok(t, s.Close()) }()
	for name, p := range map[string]struct {
		is   cuda.Ptr
		host unsafe.Pointer
	}{
		"indptr":   {s.Graph.Indptr, unsafe.Pointer(&ds.Graph.Indptr[0])},
		"indices":  {s.Graph.Indices, unsafe.Pointer(&ds.Graph.Indices[0])},
		"features": {s.Features.mem.Ptr, unsafe.Pointer(&ds.Features.F32[0])},
	} {
		if !onGPU && p.is != cuda.Ptr(uintptr(p.host)) { // a real device may map the memory at another address
			t.Errorf("%s: read at %#x, want its own address %p", name, p.is, p.host)
		}
	}
}

func TestErrors(t *testing.T) {
	fake(t, fakegpu.Config{})
	d := open(t, cuda.Options{Limit: 1 << 20})
	x := numbers(60)
	says := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	_, err := PutFeatures(d, tensor.Table{F32: x}, 10, 7, FeatureOptions{})
	says(err, "60 numbers do not form a matrix of 10 rows and 7 columns")
	_, err = PutFeatures(d, tensor.Table{F32: x}, 10, 6, FeatureOptions{Graph: ring(11)})
	says(err, "features of 10 nodes, but the graph has 11")
	_, err = PutFeatures(d, tensor.Table{F32: x}, 10, 6, FeatureOptions{Place: Cached})
	says(err, "needs the graph")
	_, err = PutFeatures(d, tensor.Table{F32: x}, 10, 6, FeatureOptions{Place: Cached, Graph: ring(10), CacheBytes: 50})
	says(err, "a cache of 50 B is too small for a row")
	_, err = PutGraph(d, nil, Auto, false)
	says(err, "the graph is missing")
	_, err = PutGraph(d, ring(10), Cached, false)
	says(err, "a graph lies on the device or in pinned memory, not partly on the device")
	_, err = PutFeatures(d, tensor.Table{F32: numbers(1 << 20)}, 1<<10, 1<<10, FeatureOptions{Place: Device})
	if !errors.Is(err, cuda.OutOfMemory) {
		t.Error(err)
	}
	says(err, "GNB_CUDA_FEATURES")
	empty, err := Open(d, Data{}, Options{})
	ok(t, err)
	ok(t, empty.Close())
	f, err := PutFeatures(d, tensor.Table{}, 0, 6, FeatureOptions{})
	ok(t, err)
	ok(t, f.Close())
}

// Mapped files are pinned in place, in whole pages. If the device cannot register read-only memory,
// they are copied.
func TestMapped(t *testing.T) {
	const nodes = 600
	g := ring(nodes)
	file, err := os.CreateTemp(t.TempDir(), "")
	ok(t, err)
	defer file.Close()
	raw := append(make([]byte, 12), bytesOf(g.Indices)...) // not at the start of a page
	_, err = file.Write(raw)
	ok(t, err)
	m, err := syscall.Mmap(int(file.Fd()), 0, len(raw), syscall.PROT_READ, syscall.MAP_SHARED)
	ok(t, err)
	defer func() { ok(t, syscall.Munmap(m)) }()
	fake(t, fakegpu.Config{})
	d := open(t, cuda.Options{})
	a, err := put(d, cuda.Graph, m[12:], Pinned, mapping{mapped: true})
	ok(t, err)
	defer func() { ok(t, a.close()) }()
	if want := cuda.Ptr(uintptr(unsafe.Pointer(&m[12]))); a.ptr != want && d.Info().ReadOnlyOK {
		t.Errorf("it is read at %#x, want its own address %#x", a.ptr, want)
	}
	ids, err := d.Alloc(cuda.Workspace, 4*8)
	ok(t, err)
	out, err := d.Alloc(cuda.Workspace, 4*8)
	ok(t, err)
	ok(t, cuda.CopyIn(d.Compute, ids.Ptr, []int32{0, 1, 2, 3, 596, 597, 598, 599}))
	shape := kernels.Tiled(8, 1, 1) // rows of one number, copied bit by bit
	d.Launch("gather_f32", cuda.Dim{X: shape.Grid}, cuda.Dim{X: shape.X, Y: shape.Y}, 0, out.Ptr, a.ptr, cuda.Ptr(0), cuda.Ptr(0), ids.Ptr, 8, 1)
	got := make([]int32, 8)
	ok(t, cuda.CopyOut(d.Compute, got, out.Ptr))
	if want := []int32{0, 0, 0, 0, 149, 149, 149, 149}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	ids.Free()
	out.Free()
}
