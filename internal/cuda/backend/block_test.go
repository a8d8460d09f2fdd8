//go:build cuda && linux && cgo

package backend

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
)

// sampled returns a block like those of samplers.
func sampled() *graphops.Block {
	return graphops.HostBlock{
		NumDst: 2, NumSrc: 5, Indptr: []int64{0, 3, 5}, Indices: []int32{2, 4, 2, 0, 3},
		EdgePos: []int64{70, 71, 1 << 33, 3, 5}, SrcIDs: []int32{6, 3, 0, 5, 1},
	}.Block()
}

// layers computes, forward and backward, operations that use all arrays of a block.
func layers(t *testing.T, be ops.Backend, b *graphops.Block) (out, grad []float32) {
	t.Helper()
	f := tensor.NewFwd(tensor.Config{Backend: be, Train: true, Seed: 3, Step: 1})
	defer f.Close()
	table := make([]float32, 7*6)
	for i := range table {
		table[i] = float32(i%13) - 6
	}
	x := f.SourceRows(table, 6, b)
	w := f.Leaf(6, 4, table[:24], nil)
	y := f.Dropout(f.MatMul(f.Add(f.Aggregate(b, x, tensor.Mean), f.Dst(b, x)), w), 0.4)
	h := f.MatMul(f.Dropout(x, 0.5), w)
	y = f.Add(y, f.Aggregate(b, h, tensor.Mean))
	y = f.Add(y, f.Aggregate(b, h, tensor.Max))
	y = f.Add(y, f.AggregateEdges(b, f.Dropout(f.GatherSrc(b, h), 0.5), tensor.Sum))
	if err := f.SumAll(f.Mul(y, y)).Backward(); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(y.Data()), slices.Clone(w.Grad())
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if !(math.Abs(float64(got[i]-w)) <= 1e-4*(1+math.Abs(float64(w)))) {
			t.Fatalf("%s: element %d is %g, want %g", what, i, got[i], w)
		}
	}
}

// A block whose arrays are only on the device gives the results of the same block on the CPU. The
// compute stream waits until the arrays are ready.
func TestBlockOnDeviceAlone(t *testing.T) {
	be := open(t, fakegpu.Config{Schedule: fakegpu.Lazy})
	d := be.Device()
	host := sampled()
	wantOut, wantGrad := layers(t, nil, host)
	tr := host.Transposed()
	a := &cuda.BlockArrays{}
	var mem []*cuda.Buffer
	add := func(to *cuda.Ptr, copyIn func(at cuda.Ptr) error) {
		m, err := d.Sampling.Alloc(cuda.Sampling, 64)
		if err == nil {
			err = copyIn(m.Ptr)
		}
		if err != nil {
			t.Fatal(err)
		}
		*to, mem = m.Ptr, append(mem, m)
	}
	int64s := func(to *cuda.Ptr, s []int64) {
		add(to, func(at cuda.Ptr) error { return cuda.CopyIn(d.Sampling, at, s) })
	}
	int32s := func(to *cuda.Ptr, s []int32) {
		add(to, func(at cuda.Ptr) error { return cuda.CopyIn(d.Sampling, at, s) })
	}
	int64s(&a.Indptr, host.Indptr())
	int64s(&a.EdgePos, host.EdgePos())
	int64s(&a.TIndptr, tr.Indptr)
	int32s(&a.Indices, host.Indices())
	int32s(&a.SrcIDs, host.SrcIDs())
	int32s(&a.TDst, tr.Dst)
	int32s(&a.TEdge, tr.Edge)
	var err error
	if a.Ready, err = d.Event(false); err != nil {
		t.Fatal(err)
	}
	d.Sampling.Record(a.Ready)
	released := 0
	a.Release = func(*cuda.BlockArrays) { released++ }
	b := &graphops.Block{}
	b.SetRemote(far{host}, host.NumDst, host.NumSrc, 0, nil)
	b.Dev = a
	out, grad := layers(t, be, b)
	near(t, "result", out, wantOut)
	near(t, "gradient", grad, wantGrad)
	b.Reset()
	if released != 1 {
		t.Errorf("the arrays were released %d times", released)
	}
	for _, m := range mem {
		m.Free()
	}
}

// far stands for a block's arrays on a device, and panics if the backend copies one of them to the
// host.
type far struct{ of *graphops.Block }

func (f far) NumEdges() int    { return f.of.NumEdges() }
func (far) Weighted() bool     { return false }
func (far) IDsOf() any         { return nil }
func (far) Indptr() []int64    { panic("must not be read") }
func (far) Indices() []int32   { panic("must not be read") }
func (far) EdgePos() []int64   { panic("must not be read") }
func (far) SrcIDs() []int32    { panic("must not be read") }
func (far) Weights() []float32 { panic("must not be read") }

// A host block's memory on the device is freed by Reset, or when the garbage collector frees the
// block.
func TestBlockMemory(t *testing.T) {
	be := open(t, fakegpu.Config{})
	want, _ := layers(t, nil, sampled())
	held := func() int64 { return be.Device().Memory().Held[cuda.Graph] }
	b := sampled()
	for range 2 {
		out, _ := layers(t, be, b)
		near(t, "result", out, want)
		if held() == 0 {
			t.Error("a block holds no memory on the device after use")
		}
		b.Reset()
		if n := held(); n != 0 {
			t.Errorf("%d bytes are held after Reset", n)
		}
	}
	layers(t, be, sampled())
	for end := time.Now().Add(10 * time.Second); held() != 0 && time.Now().Before(end); {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if n := held(); n != 0 {
		t.Errorf("%d bytes are held for a block that is unreachable", n)
	}
}

// Slices of a graph that is on the device use the graph's arrays there.
func TestShareGraph(t *testing.T) {
	be := open(t, fakegpu.Config{})
	g := &graphops.Graph{Indptr: []int64{0, 2, 2, 5, 6, 7}, Indices: []int32{1, 2, 0, 3, 4, 3, 0}}
	pass := func(backend ops.Backend, b *graphops.Block) []float32 {
		f := tensor.NewFwd(tensor.Config{Backend: backend})
		defer f.Close()
		x := f.Input(5, 2, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, nil)
		return slices.Clone(f.Add(f.Aggregate(b, x, tensor.Mean), f.AggregateEdges(b, f.GatherSrc(b, x), tensor.Max)).Data())
	}
	graph := func() int64 { return be.Device().Memory().Held[cuda.Graph] }
	be.ShareGraph(g, upload(t, be, g.Indptr), upload(t, be, g.Indices))
	for _, r := range [][2]int{{0, 5}, {2, 4}, {4, 5}, {3, 3}} {
		near(t, "slice", pass(be, g.Slice(r[0], r[1])), pass(nil, g.Slice(r[0], r[1])))
	}
	if n := graph(); n != 0 {
		t.Errorf("%d bytes of slices were copied", n)
	}
	// Another graph's blocks, and blocks with arrays of their own, are copied.
	other := &graphops.Graph{Indptr: slices.Clone(g.Indptr), Indices: []int32{0, 0, 1, 1, 1, 1, 1}}
	for _, b := range []*graphops.Block{other.Block(), graphops.HostBlock{NumDst: 1, NumSrc: 5, Indptr: []int64{0, 2}, Indices: []int32{4, 4}, Graph: g}.Block()} {
		near(t, "block", pass(be, b), pass(nil, b))
		if graph() == 0 {
			t.Error("a block that is not a slice of the graph was not copied")
		}
		b.Reset()
	}
}

// An allocation without room first frees the memory of unreachable blocks, but not that of the
// block that its operation is about to read.
func TestBlockUnderPressure(t *testing.T) {
	if onGPU {
		t.Skip("a real device does not detect reads of freed memory")
	}
	fakegpu.New(t, fakegpu.Config{})
	d, err := cuda.Open(cuda.Options{Limit: 8 << 20, Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	be, err := New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	const many, cols = 1 << 20, 2
	dropped := func() {
		be.arrays(graphops.HostBlock{NumDst: 1, NumSrc: 1, Indptr: []int64{0, many + many/4}, Indices: make([]int32, many+many/4)}.Block())
	}
	dropped()
	table, out := be.Wrap([]float32{1, 2, 3, 4, 5, 6}), be.Alloc(2*cols)
	ids := make([]int32, many) // its copy fits only without the dropped block
	copy(ids, []int32{2, 0, 1, 1, 0})
	err = nn.Try(func() {
		be.SpMMRows(tensor.Sum, out, sampled(), ops.Buffer{}, table, ops.Rows{IDs: ids, N: 5}, cols)
		got := make([]float32, 2*cols)
		be.Download(got, out)
		near(t, "result", got, []float32{3 + 1 + 3, 4 + 2 + 4, 5 + 3, 6 + 4})
	})
	if err != nil {
		t.Error(err)
	}
	be.Free(table)
	be.Free(out)
	be.Close()
	if err := d.Close(); err != nil && !t.Failed() {
		t.Error(err)
	}
}

// If edges would read rows of a table in host memory more often than the block has sources, each
// source's row is gathered first, so it crosses the bus once. This holds for the sum, the mean, a
// weighted sum and the rows of destinations, and results have the same bits.
func TestGatherFirst(t *testing.T) {
	const cols, sources = 5, 10
	table := make([]float32, 40*cols)
	for i := range table {
		table[i] = float32(i%13) / 7
	}
	be := open(t, fakegpu.Config{})
	for _, edges := range []int{12, 13} { // 1.2 edges for each source, which is the limit, and one more
		h := graphops.HostBlock{NumDst: 3, NumSrc: sources, Indptr: []int64{0, 4, 4, int64(edges)}}
		for e := range edges {
			h.Indices = append(h.Indices, int32(e*7%sources))
		}
		for s := range sources {
			h.SrcIDs = append(h.SrcIDs, int32(s*3+1))
		}
		b := h.Block()
		weights := make([]float32, edges)
		for e := range weights {
			weights[e] = float32(e) / 3
		}
		pass := func(mem *Memory) (out []float32) {
			be.Share(table, mem)
			defer be.Drop(table)
			f := tensor.NewFwd(tensor.Config{Backend: be})
			defer f.Close()
			x := f.SourceRows(table, cols, b)
			for _, op := range []tensor.Op{tensor.Sum, tensor.Mean} {
				out = append(out, f.Aggregate(b, x, op).Data()...)
			}
			out = append(out, f.AggregateWeighted(b, x, weights, tensor.Sum).Data()...)
			out = append(out, f.Dst(b, x).Data()...)
			return append(out, x.Data()...)
		}
		at := be.alloc(cuda.Features, 4*len(table))
		if err := cuda.CopyIn(be.s, at.Ptr, table); err != nil {
			t.Fatal(err)
		}
		gathers := func() int64 { return be.Device().Launches()["gather_f32"] }
		before := gathers()
		want := pass(&Memory{Ptr: at.Ptr})
		if n := gathers() - before; n != 2 { // for the destinations, and for all rows
			t.Errorf("%d edges: gather_f32 was launched %d times for a table on the device", edges, n)
		}
		got := pass(&Memory{Ptr: at.Ptr, Host: true})
		if n := gathers() - before - 2; n != 2 && edges == 12 || n != 1 && edges == 13 {
			t.Errorf("%d edges: gather_f32 was launched %d times for a table in host memory", edges, n)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d edges: %v, want %v as from a table on the device", edges, got, want)
		}
		held := be.Device().Memory().Held[cuda.Activations]
		b.Reset()
		if now := be.Device().Memory().Held[cuda.Activations]; (now < held) != (edges == 13) {
			t.Errorf("%d edges: %d bytes of activations were held, and %d after the block's reset", edges, held, now)
		}
		at.Free()
	}
}

// Softmax and its gradient over a destination with more edges than a warp handles, next to shorter
// ones, match the CPU's.
func TestSoftmaxOfAHub(t *testing.T) {
	const heads = 3
	b := graphops.HostBlock{NumDst: 4, NumSrc: 1, Indptr: []int64{0, 2, 2 + kernels.LongRow, 1100, 1100}, Indices: make([]int32, 1100)}.Block()
	x, dy := make([]float32, 1100*heads), make([]float32, 1100*heads)
	for i := range x {
		x[i], dy[i] = float32(i*7%41)/8, float32(i*5%23)/16
	}
	compute := func(be ops.Backend) (y, grad []float32) {
		f := tensor.NewFwd(tensor.Config{Backend: be, Train: true})
		defer f.Close()
		in := f.Leaf(1100, heads, x, nil)
		out := f.EdgeSoftmax(b, in)
		if err := f.SumAll(f.Mul(out, f.Input(1100, heads, dy, nil))).Backward(); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(out.Data()), slices.Clone(in.Grad())
	}
	wantY, wantGrad := compute(nil)
	be := open(t, fakegpu.Config{})
	y, grad := compute(be)
	b.Reset()
	near(t, "softmax", y, wantY)
	near(t, "gradient", grad, wantGrad)
	launches := be.Device().Launches()
	for _, name := range []string{"hub_edge_softmax_f32", "hub_edge_softmax_grad_f32"} {
		if launches[name] != 1 {
			t.Errorf("%s was launched %d times", name, launches[name])
		}
	}
}
