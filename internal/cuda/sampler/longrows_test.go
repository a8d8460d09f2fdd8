//go:build cuda && linux && cgo

package sampler

import (
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/backend"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/cuda/store"
	"github.com/graphnb/graphnb/internal/testneed"
)

// On blocks that were sampled on the device, the kernels for long rows are launched with one thread
// block for each chunk of a long row and tile of columns, in either direction, and not at all without
// long rows. Results match the CPU's.
func TestBlocksOfLongRows(t *testing.T) {
	testneed.NotShort(t, "it samples long rows on the interpreter")
	const nodes, cols, tiles = 600, 40, 2 // in one tile of the kernels that read four columns at a time
	graph := func(sources func(d int) []int32) *graphops.Graph {
		g := &graphops.Graph{Indptr: []int64{0}}
		for d := range nodes {
			g.Indices = append(g.Indices, sources(d)...)
			g.Indptr = append(g.Indptr, int64(len(g.Indices)))
		}
		return g
	}
	ring := graph(func(d int) []int32 { return []int32{int32((d + 1) % nodes), int32((d + 2) % nodes)} })
	two := graph(func(d int) []int32 { return []int32{0, 1} }) // two sources of 600 edges each
	star := graph(func(d int) []int32 {                        // a destination of 600 edges
		if d != 7 {
			return nil
		}
		all := make([]int32, nodes)
		for v := range all {
			all[v] = int32(v)
		}
		return all
	})
	for name, c := range map[string]struct {
		g                      *graphops.Graph
		fanout                 int
		forward, grads, joined int // chunks, and those of rows of several
	}{
		"no row is long":                  {ring, 2, 0, 0, 0},
		"all edges, no row is long":       {ring, -1, 0, 0, 0},
		"two long sources":                {two, 2, 0, 4, 4},
		"a long destination":              {star, -1, 2, 0, 2},
		"a long destination, by fanout":   {star, 300, 1, 0, 0},
		"a fanout that leaves short rows": {star, 200, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			drv := fakegpu.New(t, fakegpu.Config{NoRaces: true})
			d := open(t, cuda.Options{})
			be, err := backend.New(d, nil)
			ok(t, err)
			t.Cleanup(be.Close)
			config := sample.Config{Picker: sample.Fanouts{c.fanout}, Seed: 9, TransposeInput: true}
			s := start(t, d, c.g, store.Device, Config{Config: config})
			b, err := s.Sample(0, 0, sample.Seeds{IDs: seedsOf(nodes, nodes)})
			ok(t, err)
			defer b.Release()
			cpu, err := sample.New(c.g, config)
			ok(t, err)
			ref, err := cpu.Sample(0, 0, sample.Seeds{IDs: seedsOf(nodes, nodes)})
			ok(t, err)
			got, want := [][]float32{}, [][]float32{}
			for _, op := range []tensor.Op{tensor.Sum, tensor.Mean, tensor.Max} {
				got = append(got, aggregate(t, be, b.Blocks[0], op, cols)...)
				want = append(want, aggregate(t, nil, ref.Blocks[0], op, cols)...)
			}
			for i := range want {
				for j, w := range want[i] {
					// The squares of sums of 600 numbers of up to 14, in another order.
					if math.Abs(float64(got[i][j]-w)) > 1e-5*math.Abs(float64(w)) {
						t.Fatalf("element %d of result %d is %g, want %g", j, i, got[i][j], w)
					}
				}
			}
			for kernel, blocks := range map[string]int{
				"hub_f32x4": 2 * (c.forward + c.grads), "hub_join_f32": tiles * (2*c.joined + c.grads),
				"hub_max_f32": tiles * c.forward, "hub_max_join_f32": tiles * (c.joined - c.grads), "hub_max_grad_f32": tiles * c.grads,
			} {
				if n := drv.Blocks(0, kernel); n != blocks {
					t.Errorf("%d blocks of %s were launched, want %d", n, kernel, blocks)
				}
			}
		})
	}
}

// aggregate returns an aggregation over a block, and its gradient.
func aggregate(t *testing.T, be ops.Backend, b *graphops.Block, op tensor.Op, cols int) [][]float32 {
	t.Helper()
	f := tensor.NewFwd(tensor.Config{Backend: be, Train: true})
	defer f.Close()
	x := make([]float32, b.NumSrc*cols)
	for i := range x {
		x[i] = float32(i*29%97) / 7
	}
	in := f.Leaf(b.NumSrc, cols, x, nil)
	out := f.Aggregate(b, in, op)
	rows := slices.Clone(out.Data())
	if err := f.SumAll(f.Mul(out, out)).Backward(); err != nil {
		t.Fatal(err)
	}
	return [][]float32{rows, slices.Clone(in.Grad())}
}
