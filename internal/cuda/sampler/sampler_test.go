//go:build cuda && linux && cgo

package sampler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/cuda/store"
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

// fake installs simulated devices, unless the tests run on a real one.
func fake(t testing.TB, c fakegpu.Config) {
	if !onGPU {
		fakegpu.New(t, c)
	}
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

// start returns a sampler over g on a device, and closes both when the test ends.
func start(t testing.TB, d *cuda.Device, g *graphops.Graph, place store.Place, c Config) *Sampler {
	t.Helper()
	if place == store.Pinned {
		g = &graphops.Graph{Indptr: mapped(t, g.Indptr), Indices: mapped(t, g.Indices), EdgeWeights: mapped(t, g.EdgeWeights)}
	}
	sg, err := store.PutGraph(d, g, place, place == store.Pinned)
	ok(t, err)
	s, err := New(d, sg, c)
	ok(t, err)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), sg.Close()); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return s
}

// mapped returns a copy of s in pages of its own, like those of a mapped file, until the test ends.
// Such pages are registered, not copied.
func mapped[T int32 | int64 | float32](t testing.TB, s []T) []T {
	t.Helper()
	if len(s) == 0 {
		return nil
	}
	size := len(s) * int(unsafe.Sizeof(s[0]))
	m, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	ok(t, err)
	t.Cleanup(func() { ok(t, syscall.Munmap(m)) })
	out := unsafe.Slice((*T)(unsafe.Pointer(&m[0])), len(s))
	copy(out, s)
	return out
}

// epoch returns the digest of an epoch of batches.
func epoch(t testing.TB, sample_ func(epoch, step int, seeds sample.Seeds) (*sample.Batch, error), nodes, size int) string {
	t.Helper()
	d := sample.NewDigest()
	ids := sample.EpochOrder(3, 2, seedsOf(nodes, nodes))
	for step := 0; step*size < nodes; step++ {
		b, err := sample_(2, step, sample.Seeds{IDs: ids[step*size : min((step+1)*size, nodes)]})
		ok(t, err)
		d.AddBatch(b)
		b.Release()
	}
	return d.Sum()
}

// Samples of a device have the CPU's digest, wherever the graph is placed, and in every schedule of
// streams.
func TestDigest(t *testing.T) {
	testneed.NotShort(t, "it samples an epoch twenty times on the interpreter")
	g := random(300, 6, 4)
	w := weigh(g, 5)
	for name, c := range map[string]struct {
		g      *graphops.Graph
		picker sample.Picker
	}{
		"15, 10, 5":    {g, sample.Fanouts{15, 10, 5}},
		"all":          {g, sample.Fanouts{-1, -1}},
		"some, all, 0": {g, sample.Fanouts{3, -1, 0}},
		"many":         {g, sample.Fanouts{60, 40}},
		"labor":        {g, sample.Labor{Fanouts: sample.Fanouts{15, 10, 5}, BatchDependency: 4}},
		"by weight":    {w, sample.Weighted{Fanouts: sample.Fanouts{4, -1, 2}}},
	} {
		cpu, err := sample.New(c.g, sample.Config{Picker: c.picker, Seed: 9})
		ok(t, err)
		want := epoch(t, cpu.Sample, 300, 70)
		for _, place := range []store.Place{store.Device, store.Pinned} {
			for _, schedule := range []fakegpu.Schedule{fakegpu.Lazy, fakegpu.Random} {
				t.Run(fmt.Sprint(name, "/", place, "/", schedule), func(t *testing.T) {
					fake(t, fakegpu.Config{Schedule: schedule, Seed: 4})
					s := start(t, open(t, cuda.Options{}), c.g, place, Config{Config: sample.Config{Picker: c.picker, Seed: 9}})
					if got := epoch(t, s.Sample, 300, 70); got != want {
						t.Errorf("the digest is %s, want %s", got, want)
					}
				})
			}
		}
	}
}

// Blocks that are only on the device hold the same arrays as the CPU's, including transposes, while
// later batches are sampled.
func TestArraysOnTheDevice(t *testing.T) {
	g := weigh(random(300, 6, 4), 1)
	fake(t, fakegpu.Config{})
	d := open(t, cuda.Options{Exact: true})
	c := sample.Config{Picker: sample.Fanouts{4, 20, -1}, Seed: 9, Transpose: true, TransposeInput: true}
	s := start(t, d, g, store.Device, Config{Config: c})
	cpu, err := sample.New(g, c)
	ok(t, err)
	var batches []*sample.Batch
	for step := range 3 {
		b, err := s.Sample(1, step, sample.Seeds{IDs: seedsOf(300, 20+step)})
		ok(t, err)
		batches = append(batches, b)
	}
	for step, b := range batches {
		want, err := cpu.Sample(1, step, sample.Seeds{IDs: seedsOf(300, 20+step)})
		ok(t, err)
		if b.Epoch != 1 || b.Step != step || !slices.Equal(b.Seeds, want.Seeds) || b.Edges() != want.Edges() {
			t.Errorf("%v, not %v", b, want)
		}
		for i, k := range b.Blocks {
			a, ref := cuda.ArraysOf(k), want.Blocks[i]
			if a == nil || k.Remote() == nil || k.Level != ref.Level || k.NumEdges() != ref.NumEdges() || k.Graph != ref.Graph {
				t.Fatalf("block %d: %+v", i, a)
			}
			sameThere(t, d, k, ref)
		}
		b.Release()
		b.Release()
	}
}

// sameThere compares the arrays that a block has on a device, transpose included, with those of a block on the host.
func sameThere(t *testing.T, d *cuda.Device, k, ref *graphops.Block) {
	t.Helper()
	a, n := cuda.ArraysOf(k), ref.NumEdges()
	sameChunks(t, ref.Level, "destinations", out[int32](t, d, a.Long.Ptr, 4*a.Long.N), a.Long, ref.Indptr())
	sameChunks(t, ref.Level, "sources", out[int32](t, d, a.TLong.Ptr, 4*a.TLong.N), a.TLong, ref.Transposed().Indptr)
	there := graphops.HostBlock{
		NumDst: k.NumDst, NumSrc: k.NumSrc, Indptr: out[int64](t, d, a.Indptr, ref.NumDst+1), Indices: out[int32](t, d, a.Indices, n),
		EdgePos: out[int64](t, d, a.EdgePos, n), SrcIDs: out[int32](t, d, a.SrcIDs, ref.NumSrc),
	}
	if a.Weights != 0 {
		there.Weights = out[float32](t, d, a.Weights, n)
	}
	b := there.Block()
	b.Dev = &graphops.Transposed{Indptr: out[int64](t, d, a.TIndptr, ref.NumSrc+1), Dst: out[int32](t, d, a.TDst, n), Edge: out[int32](t, d, a.TEdge, n)}
	same(t, ref.Level, b, ref)
}

// Once a program has used a block with self-loops, and its edges by source, later batches have both on the device, for that
// hop alone, while other batches are in use. The host reads the same arrays there, and the weights of a weighted graph.
func TestLoopsOnTheDevice(t *testing.T) {
	testneed.NotShort(t, "it samples for seconds on the interpreter")
	g := random(300, 6, 4) // it has loops of its own
	fake(t, fakegpu.Config{})
	d := open(t, cuda.Options{Exact: true})
	c := sample.Config{Picker: sample.Fanouts{4, 256, -1}, Seed: 9, Transpose: true}
	cpu, err := sample.New(g, c)
	ok(t, err)
	s := start(t, d, g, store.Device, Config{Config: c})
	batches, refs := []*sample.Batch{}, []*sample.Batch{}
	for step := range 6 {
		b, err := s.Sample(1, step, sample.Seeds{IDs: seedsOf(300, 20+step)})
		ok(t, err)
		ref, err := cpu.Sample(1, step, sample.Seeds{IDs: seedsOf(300, 20+step)})
		ok(t, err)
		batches, refs = append(batches, b), append(refs, ref)
		if step == 0 { // the sampler is a batch ahead
			continue
		}
		b, ref = batches[step-1], refs[step-1]
		made := step-1 >= 2              // the others were sampled before the first was used
		for i, k := range b.Blocks[:2] { // the nearest hop has no such block
			l, want := k.SelfLooped(), ref.Blocks[i].SelfLooped()
			if (l.Remote() != nil) != made {
				t.Fatalf("step %d, block %d: the block with self-loops is on the device: %v", step-1, i, !made)
			}
			if !made {
				if a := cuda.ArraysOf(k); i == 0 {
					if a.HasTransposed() || a.Turn == nil {
						t.Fatalf("step %d: the farthest hop's edges are grouped by source unasked", step-1)
					}
					a.Turn()
				}
				continue
			}
			if l.NumEdges() != want.NumEdges() || l.Level != want.Level || l.Graph != g {
				t.Fatalf("step %d, block %d: %v, want %v", step-1, i, l, want)
			}
			sameThere(t, d, l, want)
			same(t, want.Level, graphops.HostBlock{
				NumDst: l.NumDst, NumSrc: l.NumSrc, Indptr: l.Indptr(), Indices: l.Indices(), EdgePos: l.EdgePos(), SrcIDs: l.SrcIDs(),
			}.Block(), want)
			if twice := l.SelfLooped(); twice.Remote() != nil || !slices.Equal(twice.Indices(), want.Indices()) {
				t.Errorf("step %d, block %d: a block that has self-loops gets others", step-1, i)
			}
		}
		b.Release()
	}
	if n := d.Launches()["loops_place"]; n != 2*4 {
		t.Errorf("loops_place was launched %d times, want twice for each of 4 batches", n)
	}

	w := weigh(g, 3)
	wcpu, err := sample.New(w, c)
	ok(t, err)
	s = start(t, d, w, store.Device, Config{Config: c})
	for step := range 3 {
		b, err := s.Sample(0, step, sample.Seeds{IDs: seedsOf(300, 9)})
		ok(t, err)
		l := b.Blocks[0].SelfLooped()
		if (l.Remote() != nil) != (step > 0) {
			t.Errorf("weighted, step %d: on the device: %v", step, step == 0)
		}
		ref, err := wcpu.Sample(0, step, sample.Seeds{IDs: seedsOf(300, 9)})
		ok(t, err)
		if want := ref.Blocks[0].SelfLooped(); !l.Weighted() || !slices.Equal(l.Weights(), want.Weights()) || !slices.Equal(l.Indices(), want.Indices()) {
			t.Errorf("step %d: the weights are %v, want %v", step, l.Weights(), want.Weights())
		}
		b.Release()
	}
}

func out[T int32 | int64 | float32](t testing.TB, d *cuda.Device, p cuda.Ptr, n int) []T {
	t.Helper()
	s := make([]T, n)
	ok(t, cuda.CopyOut(d.Compute, s, p))
	return s
}

// Several ranks, each on its own device, together pick what one rank picks.
func TestSeveralDevices(t *testing.T) {
	if onGPU {
		t.Skip("needs several devices")
	}
	g := random(300, 6, 4)
	c := sample.Config{Picker: sample.Fanouts{5, 3}, Seed: 9}
	cpu, err := sample.New(g, c)
	ok(t, err)
	ids := seedsOf(300, 64)
	b, err := cpu.Sample(0, 0, sample.Seeds{IDs: ids})
	ok(t, err)
	want := sample.NewDigest()
	want.AddBatch(b)
	for _, world := range []int{2, 4} {
		t.Run(fmt.Sprint(world), func(t *testing.T) {
			fake(t, fakegpu.Config{Devices: world})
			picks := make([][]byte, world)
			for rank := range world {
				s := start(t, open(t, cuda.Options{Device: rank, Rank: rank}), g, store.Auto, Config{Config: c})
				lo, hi := sample.Share(len(ids), rank, world)
				b, err := s.Sample(0, 0, sample.Seeds{IDs: ids[lo:hi]})
				ok(t, err)
				picks[rank] = sample.EncodePicks(b)
			}
			got := sample.NewDigest()
			ok(t, got.AddStep(sample.Seeds{IDs: ids}, picks))
			if got.Sum() != want.Sum() {
				t.Errorf("the digest is %s, want %s", got.Sum(), want.Sum())
			}
		})
	}
}

// Batches of the same size allocate no memory after the first ones, and each needs the same number
// of launches.
func TestSteadyState(t *testing.T) {
	g := random(300, 6, 4)
	fake(t, fakegpu.Config{})
	d := open(t, cuda.Options{})
	s := start(t, d, g, store.Device, Config{Config: sample.Config{Picker: sample.Fanouts{5, 3}, Seed: 9, Transpose: true}})
	calls := int64(0)
	for step := range 5 {
		b, err := s.Sample(0, step, sample.Seeds{IDs: seedsOf(300, 32)})
		ok(t, err)
		if step > 1 && d.Memory().Calls != calls {
			t.Errorf("batch %d took memory from the driver", step)
		}
		calls = d.Memory().Calls
		b.Release()
	}
	for name, n := range map[string]int64{"sample_seeds": 5, "sample_count": 10, "sample_pick_8": 10, "sample_first": 10, "sample_number": 10, "sample_relabel": 10, "bysource_finish": 5, "sample_clear": 5, "sample_pick_all": 0} {
		if got := d.Launches()[name]; got != n {
			t.Errorf("%s was launched %d times, want %d", name, got, n)
		}
	}
}

// Invalid seeds and damaged graphs give an error with the reason, on the device and on the CPU, and
// the sampler stays usable.
func TestErrors(t *testing.T) {
	good := random(100, 4, 2)
	damage := func(change func(g *graphops.Graph)) *graphops.Graph {
		g := &graphops.Graph{Indptr: slices.Clone(good.Indptr), Indices: slices.Clone(good.Indices)}
		change(g)
		return g
	}
	for _, c := range []struct {
		name   string
		g      *graphops.Graph
		picker sample.Picker
		seeds  []int32
		says   string
	}{
		{"a seed twice", good, sample.Fanouts{2}, []int32{5, 6, 7, 6, 5}, "seed 6 occurs twice, at positions 1 and 3"},
		{"a seed that is not a node", good, sample.Fanouts{2}, []int32{5, 100}, "seed 100 at position 1 is not a node: the graph's nodes are 0 to 99"},
		{"a negative seed", good, sample.Fanouts{2}, []int32{-1}, "seed -1 at position 0"},
		{"an edge with an invalid source", damage(func(g *graphops.Graph) { g.Indices[g.Indptr[50]] = 100 }), sample.Fanouts{-1}, []int32{50}, "has an invalid source"},
		{"offsets that decrease", damage(func(g *graphops.Graph) { g.Indptr[51] = 1 }), sample.Fanouts{2}, []int32{50}, "the offsets of node 50"},
		{"offsets beyond the edges", damage(func(g *graphops.Graph) { g.Indptr[51] = 1 << 40 }), sample.Fanouts{2, -1}, []int32{50}, "the offsets of node 50"},
		{"a negative weight", damage(func(g *graphops.Graph) {
			w := slices.Repeat([]float32{1}, len(g.Indices))
			w[g.Indptr[50]+1] = -1
			*g = *g.WithEdgeWeights(w)
		}), sample.Weighted{Fanouts: sample.Fanouts{2}}, []int32{50}, "has a weight that is negative"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake(t, fakegpu.Config{})
			s := start(t, open(t, cuda.Options{}), c.g, store.Device, Config{Config: sample.Config{Picker: c.picker, Seed: 1}})
			cpu, err := sample.New(c.g, sample.Config{Picker: c.picker, Seed: 1})
			ok(t, err)
			for range 2 {
				if _, err := s.Sample(0, 0, sample.Seeds{IDs: c.seeds}); err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v, want one with %q", err, c.says)
				}
				if _, err := cpu.Sample(0, 0, sample.Seeds{IDs: c.seeds}); err == nil {
					t.Error("the CPU sampler returns no error")
				}
			}
			b, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{90}})
			ok(t, err)
			want, err := cpu.Sample(0, 0, sample.Seeds{IDs: []int32{90}})
			ok(t, err)
			same(t, 0, b.Blocks[len(b.Blocks)-1], want.Blocks[len(want.Blocks)-1])
		})
	}
	fake(t, fakegpu.Config{})
	d := open(t, cuda.Options{})
	sg, err := store.PutGraph(d, good, store.Auto, false)
	ok(t, err)
	defer sg.Close()
	for says, c := range map[string]sample.Config{
		"runs only on the CPU":   {Picker: picker{}, Hops: 1},
		"has no picker":          {},
		"needs edge weights":     {Picker: sample.Weighted{Fanouts: sample.Fanouts{2}}},
		"are the graph's own":    {Picker: sample.Fanouts{2}, Weights: []float32{1}},
		"a fanout is 0 to":       {Picker: sample.Fanouts{-2}},
		"Config.Hops is 3":       {Picker: sample.Fanouts{2}, Hops: 3},
		"a frontier picker runs": {Frontier: frontier{}, Hops: 1},
	} {
		_, err := New(d, sg, Config{Config: c})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one with %q", err, says)
		}
	}
}

type picker struct{}

func (picker) Pick(_ *sample.Hop, _ int32, _, out []int32) []int32 { return out }

type frontier struct{ sample.FrontierPicker }

// If the device runs out of memory, the error says how much each use holds, and the sampler works
// again when memory is free.
func TestOutOfMemory(t *testing.T) {
	g := random(300, 6, 4)
	fake(t, fakegpu.Config{})
	d := open(t, cuda.Options{Limit: 8 << 20, Exact: true})
	s := start(t, d, g, store.Device, Config{Config: sample.Config{Picker: sample.Fanouts{5, 3}, Seed: 9}})
	hold, err := d.Alloc(cuda.Activations, 8<<20-40<<10)
	ok(t, err)
	_, err = s.Sample(0, 0, sample.Seeds{IDs: seedsOf(300, 200)})
	if !errors.Is(err, cuda.OutOfMemory) || !strings.Contains(err.Error(), "activations") {
		t.Errorf("%v", err)
	}
	hold.Free()
	b, err := s.Sample(0, 0, sample.Seeds{IDs: seedsOf(300, 200)})
	ok(t, err)
	b.Release()
}

// The host waits once for each batch, and once more for each hop of all in-edges. The injected
// fault makes the copy after that many fail.
func TestOneWait(t *testing.T) {
	if onGPU {
		t.Skip("needs simulated faults")
	}
	g := random(300, 6, 4)
	for name, c := range map[string]struct {
		fan   sample.Fanouts
		waits int
	}{"bounded": {sample.Fanouts{5, 3, 2}, 1}, "all": {sample.Fanouts{5, -1, 2}, 2}} {
		t.Run(name, func(t *testing.T) {
			drv := fakegpu.New(t, fakegpu.Config{})
			d, err := cuda.Open(cuda.Options{})
			ok(t, err)
			sg, err := store.PutGraph(d, g, store.Device, false)
			ok(t, err)
			s, err := New(d, sg, Config{Config: sample.Config{Picker: c.fan, Seed: 9, Transpose: true}})
			ok(t, err)
			drv.Inject(fakegpu.Fault{Call: "cuMemcpyDtoHAsync_v2", Status: int(cuda.IllegalAddress), After: c.waits, Times: 1})
			b, err := s.Sample(0, 0, sample.Seeds{IDs: seedsOf(300, 20)})
			ok(t, err)
			b.Release()
			if _, err := s.Sample(0, 1, sample.Seeds{IDs: seedsOf(300, 20)}); !errors.Is(err, cuda.IllegalAddress) {
				t.Errorf("the next batch's copy fails with %v", err)
			}
			// The device has failed, so Close returns its error, but frees everything.
			_ = errors.Join(s.Close(), sg.Close(), d.Close())
		})
	}
}

// The memory that was released first is reused first, because the compute stream passes it first.
func TestMemoryReleasedFirst(t *testing.T) {
	fake(t, fakegpu.Config{})
	g := &graphops.Graph{Indptr: []int64{0, 1, 2}, Indices: []int32{1, 0}}
	s := start(t, open(t, cuda.Options{}), g, store.Device, Config{Config: sample.Config{Hops: 1, Picker: sample.Fanouts{1}}})
	var all []*memory
	for range 3 {
		m, err := s.memory()
		ok(t, err)
		all = append(all, m)
	}
	for _, m := range all {
		s.release(m)
	}
	for i, want := range all {
		m, err := s.memory()
		ok(t, err)
		if m != want {
			t.Errorf("memory %d is not the one that was released in this place", i)
		}
	}
	for _, m := range all {
		s.keep(m)
	}
}
