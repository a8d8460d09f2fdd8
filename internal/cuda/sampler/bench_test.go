//go:build cuda && linux && cgo

package sampler

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/store"
)

// limit is an H200's memory bandwidth in bytes per second; shares are relative to it.
const limit = 4.8e12

// products returns a graph like ogbn-products: 2.4 million nodes, 124 million edges, and degrees
// that follow a power law. GNB_BENCH_NODES reduces the number of nodes.
func products(b *testing.B) *graphops.Graph {
	nodes := 2_400_000
	if s := os.Getenv("GNB_BENCH_NODES"); s != "" {
		n, err := strconv.Atoi(s)
		ok(b, err)
		nodes = n
	}
	r := rand.New(rand.NewPCG(1, 1))
	g := &graphops.Graph{Indptr: make([]int64, nodes+1)}
	for v := range nodes {
		d := min(17*math.Pow(1-r.Float64(), -0.67), 17000) // 51 on average
		g.Indptr[v+1] = g.Indptr[v] + int64(d)
	}
	g.Indices = make([]int32, g.Indptr[nodes])
	for i := range g.Indices {
		// Sources follow a power law too: squaring makes low ids frequent.
		u := r.Float64()
		g.Indices[i] = int32(u * u * float64(nodes))
	}
	return g
}

// onDevice opens a real device, or skips the benchmark.
func onDevice(b *testing.B) *cuda.Device {
	d, err := cuda.Open(cuda.Options{})
	if errors.Is(err, cuda.ErrNoDriver) || errors.Is(err, cuda.NoDevice) {
		b.Skip(err)
	}
	ok(b, err)
	b.Cleanup(func() { ok(b, d.Close()) })
	return d
}

// BenchmarkSample measures sampled edges per second, with the graph in device memory and in host
// memory.
func BenchmarkSample(b *testing.B) {
	d := onDevice(b)
	g := products(b)
	ids := sample.EpochOrder(1, 0, seedsOf(g.NumNodes(), g.NumNodes()))
	for _, place := range []store.Place{store.Device, store.Pinned} {
		for _, fan := range []sample.Fanouts{{15, 10, 5}, {10, 10}, {-1}} {
			b.Run(fmt.Sprint(place, "/", []int(fan)), func(b *testing.B) {
				sg, err := store.PutGraph(d, g, place, false)
				ok(b, err)
				defer sg.Close()
				s, err := New(d, sg, Config{Config: sample.Config{Picker: fan, Seed: 1, Transpose: true}})
				ok(b, err)
				defer s.Close()
				edges, step := 0, 0
				one := func() {
					lo := step * 1024 % (len(ids) - 1024)
					batch, err := s.Sample(0, step, sample.Seeds{IDs: ids[lo : lo+1024]})
					ok(b, err)
					edges += batch.Edges()
					batch.Release()
					step++
				}
				for range 3 {
					one()
				}
				edges = 0
				for b.Loop() {
					one()
				}
				b.ReportMetric(float64(edges)/b.Elapsed().Seconds(), "edges/s")
			})
		}
	}
}

// timed measures the time of each launch by events. The events exist before the batch starts, because making one
// takes longer than most kernels.
type timed struct {
	b      *testing.B
	s      *cuda.Stream
	names  []string
	events []*cuda.Event
	free   []*cuda.Event
}

// newTimed returns a timed with room for a batch's launches.
func newTimed(b *testing.B, s *cuda.Stream) *timed {
	t := &timed{b: b, s: s}
	for range 400 {
		e, err := s.Device().Event(true)
		ok(b, err)
		t.free = append(t.free, e)
	}
	return t
}

func (t *timed) Launch(name string, grid, block cuda.Dim, shared int, args ...any) {
	t.event()
	t.s.Launch(name, grid, block, shared, args...)
	t.names = append(t.names, name)
	t.event()
}

func (t *timed) event() {
	if len(t.free) == 0 {
		t.b.Fatal("a batch has more launches than there are events")
	}
	e := t.free[0]
	t.free = t.free[1:]
	t.s.Record(e)
	t.events = append(t.events, e)
}

func (t *timed) Fill32(dst cuda.Ptr, v uint32, n int64) { t.s.Fill32(dst, v, n) }

// BenchmarkKernels measures each kernel's time in a batch, and the share of the device's bandwidth
// that it reaches with the bytes in its comment.
func BenchmarkKernels(b *testing.B) {
	d := onDevice(b)
	g := products(b)
	sg, err := store.PutGraph(d, g, store.Device, false)
	ok(b, err)
	defer sg.Close()
	s, err := New(d, sg, Config{Config: sample.Config{Picker: sample.Fanouts{15, 10, 5}, Seed: 1, Transpose: true, TransposeInput: true}})
	ok(b, err)
	defer s.Close()
	seconds, bytes := map[string]float64{}, map[string]float64{}
	for step := range 8 {
		var t *timed
		if step >= 3 { // after a warm-up
			t = newTimed(b, d.Sampling)
			s.through = t
		}
		batch, err := s.Sample(0, step, sample.Seeds{IDs: seedsOf(g.NumNodes(), 1024)})
		ok(b, err)
		if t != nil {
			for i, name := range t.names {
				e, err := t.events[2*i+1].Since(t.events[2*i])
				ok(b, err)
				seconds[name] += e.Seconds()
			}
			moved(bytes, batch)
		}
		batch.Release()
	}
	for b.Loop() { // the loop above has measured already
	}
	names := []string{}
	for name := range seconds {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b.ReportMetric(seconds[name]/5*1e6, name+"-us")
		if bytes[name] > 0 {
			b.ReportMetric(100*bytes[name]/seconds[name]/limit, name+"-%")
		}
	}
}

// moved adds the bytes that the kernels of a batch move, according to the kernels' comments.
func moved(bytes map[string]float64, batch *sample.Batch) {
	bytes["sample_seeds"] += 40 * float64(len(batch.Seeds))
	bytes["sample_clear"] += 36 * float64(batch.Blocks[0].NumSrc)
	for _, k := range batch.Blocks {
		n, e, fresh := float64(k.NumDst), float64(k.NumEdges()), float64(k.NumSrc-k.NumDst)
		bytes["sample_count"] += 44 * n
		pick := map[bool]string{true: "sample_pick_8", false: "sample_pick_16"}[k.Level == 2]
		bytes[pick] += 52*n + 108*e
		bytes["sample_first"] += 36 * e
		bytes["sample_number"] += 4*e + 40*fresh
		bytes["sample_relabel"] += 40 * e
		bytes["bysource_finish"] += 12*e + 8*float64(k.NumSrc)
		passes := 2.0
		if k.NumSrc > 1<<16 {
			passes = 3
		}
		bytes["bysource_count"] += passes * 6 * e
		bytes["bysource_place"] += passes * 18 * e
	}
}
