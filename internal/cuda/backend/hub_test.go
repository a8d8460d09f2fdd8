//go:build cuda && linux && cgo

package backend

import (
	"fmt"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The kernels for long rows are launched only in a direction in which a block has a long row,
// however many edges the block has.
func TestHubKernelsOnlyForLongRows(t *testing.T) {
	star := func(n int) graphops.HostBlock { // n edges into one destination, from n sources
		h := graphops.HostBlock{NumDst: 1, NumSrc: n, Indptr: []int64{0, int64(n)}}
		for s := range n {
			h.Indices = append(h.Indices, int32(s))
		}
		return h
	}
	fan := graphops.HostBlock{NumDst: 300, NumSrc: 301, Indptr: []int64{0}} // an edge into each of 300, from one source
	for d := range 300 {
		fan.Indices, fan.Indptr = append(fan.Indices, 300), append(fan.Indptr, int64(d+1))
	}
	ring := graphops.HostBlock{NumDst: 300, NumSrc: 300, Indptr: []int64{0}} // two in, two out
	for d := range 300 {
		ring.Indices, ring.Indptr = append(ring.Indices, int32((d+1)%300), int32((d+2)%300)), append(ring.Indptr, int64(2*d+2))
	}
	for name, c := range map[string]struct {
		h                  graphops.HostBlock
		forward, backwards int64
		chunks             int
	}{
		"a long row":             {star(257), 1, 0, 1},
		"a row of two chunks":    {star(513), 1, 0, 2},
		"the longest short row":  {star(256), 0, 0, 0},
		"a source of many edges": {fan, 0, 1, 1},
		"many edges, short rows": {ring, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			be := open(t, fakegpu.Config{NoRaces: true})
			b := c.h.Block()
			defer b.Reset()
			x, y := be.Alloc(b.NumSrc), be.Alloc(b.NumDst)
			defer be.Free(x)
			defer be.Free(y)
			be.Zero(x)
			be.Zero(y)
			hubs := func() int64 {
				t.Helper()
				if err := be.s.Sync(); err != nil {
					t.Fatal(err)
				}
				return be.d.Launches()["hub_f32"]
			}
			be.SpMM(tensor.Sum, y, ops.Buffer{}, b, x, 1)
			if n := hubs(); n != c.forward {
				t.Errorf("forward, hub_f32 is launched %d times, want %d", n, c.forward)
			}
			before := hubs()
			be.SpMMGrad(tensor.Sum, x, y, ops.Buffer{}, b, 1, false)
			if n := hubs() - before; n != c.backwards {
				t.Errorf("backward, hub_f32 is launched %d times, want %d", n, c.backwards)
			}
			if a := cuda.ArraysOf(b); a.Long.N+a.TLong.N != c.chunks {
				t.Errorf("the block has %d and %d chunks of long rows", a.Long.N, a.TLong.N)
			}
			if joins := be.d.Launches()["hub_join_f32"]; joins != int64(c.chunks/2) {
				t.Errorf("hub_join_f32 is launched %d times, want %d", joins, c.chunks/2)
			}
		})
	}
}

// Maximum, weighted sum and their gradients match the CPU's on a block with a destination of many
// edges and a source of many edges.
func TestOperationsOnHubs(t *testing.T) {
	for _, cols := range []int{3, 4} {
		t.Run(fmt.Sprint(cols, " columns"), func(t *testing.T) { operationsOnHubs(t, cols) })
	}
}

func operationsOnHubs(t *testing.T, cols int) {
	const edges = 2*kernels.LongRow + 44
	h := graphops.HostBlock{NumDst: edges, NumSrc: edges + 1, Indptr: []int64{0}}
	for d := range edges { // all sources into the first destination, and the last source into the others
		if d == 0 {
			for s := range edges {
				h.Indices = append(h.Indices, int32(s))
			}
		} else {
			h.Indices = append(h.Indices, edges)
		}
		h.Indptr = append(h.Indptr, int64(len(h.Indices)))
	}
	b := h.Block()
	x, w := make([]float32, (edges+1)*cols), make([]float32, len(h.Indices))
	for i := range x {
		x[i] = float32(i*29%97) / 8
	}
	for i := range w {
		w[i] = float32(i*7%19) / 4
	}
	compute := func(be ops.Backend) (out [][]float32) {
		f := tensor.NewFwd(tensor.Config{Backend: be, Train: true})
		defer f.Close()
		in, weights := f.Leaf(edges+1, cols, x, nil), f.Leaf(len(w), 1, w, nil)
		most, sum := f.Aggregate(b, in, tensor.Max), f.AggregateHeads(b, in, weights)
		out = append(out, slices.Clone(most.Data()), slices.Clone(sum.Data()))
		if err := f.SumAll(f.Add(most, sum)).Backward(); err != nil {
			t.Fatal(err)
		}
		return append(out, slices.Clone(in.Grad()), slices.Clone(weights.Grad()))
	}
	want := compute(nil)
	be := open(t, fakegpu.Config{})
	got := compute(be)
	b.Reset()
	for i, name := range []string{"maximum", "weighted sum", "gradient of the rows", "gradient of the weights"} {
		near(t, name, got[i], want[i])
	}
	for _, name := range []string{"hub_max_f32", "hub_max_join_f32", "hub_max_grad_f32", "hub_edge_dot_f32", map[int]string{3: "hub_f32", 4: "hub_f32x4"}[cols], "hub_join_f32"} {
		if be.Device().Launches()[name] == 0 {
			t.Errorf("%s was not launched", name)
		}
	}
}

// The partial results of long rows take the workspace that the backend without memory asks for, in each operation.
func TestDryDeviceAsksForPartialResults(t *testing.T) {
	testneed.NotShort(t, "it interprets kernels on long rows")
	t.Setenv("GNB_CUDA_EXACT", "1") // buffers have the sizes that were asked for
	const cols, edges = 4, 3*sizes.LongChunk + 1
	h := graphops.HostBlock{NumDst: 2, NumSrc: 1, Indptr: []int64{0, 1, 1 + edges}, Indices: make([]int32, 1+edges)}
	b := h.Block()
	be := open(t, fakegpu.Config{NoRaces: true})
	buffers := func(of ops.Backend) (x, y, out, arg, w ops.Buffer) {
		return of.Alloc(edges * cols * 2), of.Alloc(edges * cols * 2), of.Alloc(edges * cols * 2), of.Alloc(edges * cols), of.Alloc(edges * 2)
	}
	x, y, out, arg, w := buffers(be)
	for _, m := range []ops.Buffer{x, y, out, arg, w} {
		be.Zero(m)
		defer be.Free(m)
	}
	rows := ops.Rows{N: 1, IDs: []int32{0}}
	for name, run := range map[string]func(be ops.Backend){
		"sum":               func(be ops.Backend) { be.SpMM(tensor.Sum, out, ops.Buffer{}, b, x, cols) },
		"max":               func(be ops.Backend) { be.SpMM(tensor.Max, out, arg, b, x, cols) },
		"rows":              func(be ops.Backend) { be.SpMMRows(tensor.Mean, out, b, ops.Buffer{}, x, rows, cols) },
		"gradient of mean":  func(be ops.Backend) { be.SpMMGrad(tensor.Mean, out, x, ops.Buffer{}, b, cols, false) },
		"gradient of max":   func(be ops.Backend) { be.SpMMGrad(tensor.Max, out, x, arg, b, cols, false) },
		"scattered":         func(be ops.Backend) { be.ScatterSrc(out, b, x, cols, false) },
		"segments":          func(be ops.Backend) { be.Segment(tensor.Sum, out, ops.Buffer{}, b, x, cols, false) },
		"greatest segments": func(be ops.Backend) { be.Segment(tensor.Max, out, arg, b, x, cols, false) },
		"weighted":          func(be ops.Backend) { be.SpMMWeighted(out, b, w, 1, x, cols, false) },
		"its gradient":      func(be ops.Backend) { be.SpMMWeightedGrad(out, x, w, 1, b, cols, false) },
		"softmax":           func(be ops.Backend) { be.EdgeSoftmax(out, b, x, cols) },
		"softmax, gradient": func(be ops.Backend) { be.EdgeSoftmaxGrad(out, x, y, b, cols, false) },
	} {
		partial := 0
		run(tensor.DryDevice(func([]float32) bool { return true }, func(int64) {}, func(_ *graphops.Block, part tensor.BlockPart, use tensor.BlockUse) {
			partial = use.Partial
		}))
		be.chunks.Free()
		be.chunks = nil
		run(be)
		want := sizes.Room(int64(4 * partial)) // either direction has one row of four chunks
		if partial == 0 || be.chunks == nil || be.chunks.Bytes != want {
			t.Errorf("%s: the workspace is %+v, want %d bytes", name, be.chunks, want)
		}
	}
	b.Reset()
}
