//go:build cuda && linux && cgo

package backend

import (
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/cublas"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
)

// work is an operation, with the bytes that it must move at least (each counted once) or the
// arithmetic that bounds its time.
type work struct {
	name  string
	bytes float64
	flops float64
	run   func()
}

// works returns the operations over n rows; 2^18 and more rows keep a large device busy.
func works(t testing.TB, be *Backend, n int) []work {
	const cols, degree, classes, features = 256, 10, 64, 100
	area := float64(n) * cols
	alloc := func(elems int) ops.Buffer {
		x := be.Alloc(elems)
		be.Zero(x)
		t.Cleanup(func() { be.Free(x) })
		return x
	}
	x, y, out := alloc(n*cols), alloc(n*cols), alloc(n*cols)
	row, column, mask := alloc(cols), alloc(n), alloc(ops.MaskWords(n, cols))
	table, fetched := alloc(n*features), alloc(n*features)
	half := &Memory{Ptr: addr(table), Half: true}
	arg, scores, probabilities := alloc(n*cols), alloc(n*degree*4), alloc(n*degree*4)
	logits, labels, one := alloc(n*classes), alloc(n), alloc(1)
	w := alloc(cols * cols)
	key := ops.DropoutKey{Space: &tensor.Space{}, Seed: 1, Threshold: 1 << 15, Scale: 2}

	// Each destination has degree sources, spread over all of them.
	b := graphops.HostBlock{NumDst: n, NumSrc: n, Indptr: make([]int64, n+1), Indices: make([]int32, n*degree)}.Block()
	ids := make([]int32, n)
	for i := range b.Indices() {
		b.Indices()[i] = int32(uint64(i) * 2654435761 % uint64(n))
		b.Indptr()[i/degree+1] = int64(i + 1)
	}
	for i := range ids {
		ids[i] = int32(uint64(i) * 2654435761 % uint64(n))
	}
	t.Cleanup(b.Reset)
	at := upload(t, be, ids)
	rows := ops.Rows{N: n, Of: &graphops.Block{NumSrc: n, Dev: &cuda.BlockArrays{Indptr: at, SrcIDs: at}}}
	edges := float64(n * degree)
	hub := graphops.HostBlock{NumDst: 1, NumSrc: n, Indptr: []int64{0, int64(n / 2)}, Indices: b.Indices()[:n/2]}.Block() // 2^17 edges on a device
	t.Cleanup(hub.Reset)
	hubs := graphops.HostBlock{NumSrc: n, Indptr: []int64{0}, Indices: b.Indices()} // rows of 1000 edges
	for e := 0; e < n*degree; {
		e = min(e+1000, n*degree)
		hubs.NumDst, hubs.Indptr = hubs.NumDst+1, append(hubs.Indptr, int64(e))
	}
	many := hubs.Block()
	t.Cleanup(many.Reset)
	return []work{
		{"unary", 8 * area, 0, func() { be.Unary(ops.TanhOp, out, x, 0, false) }},
		{"binary", 12 * area, 0, func() { be.Binary(ops.MulOp, out, x, y, false) }},
		{"add row", 4 * area, 0, func() { be.AddRow(out, row, n, cols, false) }},
		{"row scale", 8 * area, 0, func() { be.RowScale(out, x, column, n, cols, false) }},
		{"row dot", 8 * area, 0, func() { be.RowDot(column, x, y, n, cols, false) }},
		{"column sum", 4 * area, 0, func() { be.ColSum(row, x, n, cols, false) }},
		{"sum", 4 * area, 0, func() { be.Sum(one, x, false) }},
		{"transpose", 8 * area, 0, func() { be.Transpose(out, x, n, cols, false) }},
		{"dropout", 8.125 * area, 0, func() { be.Dropout(out, mask, x, n, cols, key) }},
		{"mask", 8.125 * area, 0, func() { be.Mask(out, x, mask, n, cols, 2, false) }},
		{"log-softmax", 8 * area, 0, func() { be.LogSoftmax(out, x, n, cols) }},
		{"row norm", 8 * area, 0, func() { be.RowNorm(out, column, x, n, cols, 1e-5) }},
		{"cross-entropy gradient", 8 * float64(n*classes), 0, func() { be.CrossEntropyGrad(fetched, one, logits, labels, n, classes, false) }},
		{"gather f32", 8 * float64(n*features), 0, func() { be.GatherRows(fetched, table, rows, features) }},
		{"gather f16", 6 * float64(n*features), 0, func() {
			be.GatherRows(fetched, ops.Buffer{Dev: half, N: n * features}, rows, features)
		}},
		{"mean over edges", 4*edges*(cols+1) + 4*area, 0, func() { be.SpMM(tensor.Mean, out, ops.Buffer{}, b, x, cols) }},
		{"sum of a hub", 4 * float64(n/2) * (cols + 1), 0, func() { be.SpMM(tensor.Sum, out, ops.Buffer{}, hub, x, cols) }},
		{"sums of many hubs", 4*edges*(cols+1) + 4*float64(many.NumDst*cols), 0, func() { be.SpMM(tensor.Sum, out, ops.Buffer{}, many, x, cols) }},
		{"max of a hub", 4 * float64(n/2) * (cols + 1), 0, func() { be.SpMM(tensor.Max, out, arg, hub, x, cols) }},
		{"gradient of the mean", 4*edges*(cols+2) + 4*area, 0, func() { be.SpMMGrad(tensor.Mean, out, x, ops.Buffer{}, b, cols, false) }},
		{"max over edges", 4*edges*(cols+1) + 8*area, 0, func() { be.SpMM(tensor.Max, out, arg, b, x, cols) }},
		{"gradient of the max", 8*edges*(cols+1) + 4*area, 0, func() { be.SpMMGrad(tensor.Max, out, x, arg, b, cols, false) }},
		{"mean of features", 4*edges*(features+2) + 4*float64(n*features), 0, func() {
			be.SpMMRows(tensor.Mean, fetched, b, ops.Buffer{}, table, rows, features)
		}},
		{"edge softmax", 8 * 4 * edges, 0, func() { be.EdgeSoftmax(probabilities, b, scores, 4) }},
		{"edge softmax of a hub", 8 * 4 * float64(n/2), 0, func() { be.EdgeSoftmax(probabilities, hub, scores, 4) }},
		{"edge softmax's gradient", 12 * 4 * float64(n/2), 0, func() { be.EdgeSoftmaxGrad(probabilities, scores, scores, hub, 4, false) }},
		{"edge dot of a hub", 4 * float64(n/2) * (cols + 5), 0, func() { be.EdgeDot(scores, hub, x, y, 4, cols, false) }},
		{"edge dot", 4*edges*(cols+5) + 4*area, 0, func() { be.EdgeDot(scores, b, x, y, 4, cols, false) }},
		{"product", 4 * (2*area + cols*cols), 2 * area * cols, func() { be.product(addr(out), addr(x), addr(w), n, cols, cols, false, true, false) }},
		{"weight gradient", 4 * (2*area + cols*cols), 2 * area * cols, func() { be.product(addr(w), addr(x), addr(y), cols, cols, n, true, false, false) }},
	}
}

// optimiser returns a step of Adam over n weights.
func optimiser(t testing.TB, be *Backend, n int) work {
	layer := nn.NewLinear(n, 1, false)
	p, err := nn.Collect(layer)
	if err != nil {
		t.Fatal(err)
	}
	w, err := be.Weights(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	adam := optim.NewAdam(optim.AdamOptions{})
	return work{"adam", 28 * float64(n), 0, func() {
		if err := w.Step(adam, 1); err != nil {
			t.Fatal(err)
		}
	}}
}

// Every operation of the benchmark runs without an error.
func TestWorks(t *testing.T) {
	be := open(t, fakegpu.Config{NoRaces: true})
	for _, w := range append(works(t, be, 40), optimiser(t, be, 100)) {
		w.run()
		if err := be.s.Sync(); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
	}
}

// BenchmarkOperations measures which share of a copy's bandwidth on the device the operations
// reach, on a real device. For products it reports the arithmetic rate of the backend's own kernels
// and of cuBLAS.
func BenchmarkOperations(b *testing.B) {
	d, err := cuda.Open(cuda.Options{})
	if err != nil {
		b.Skip(err)
	}
	defer d.Close()
	be, err := New(d, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer be.Close()
	const rows = 1 << 18
	var rate float64 // bytes a second, read and written
	b.Run("copy", func(b *testing.B) {
		const n = rows << 10
		at := be.room(&be.parts, 2*n)
		copyOne := func() { d.Compute.Copy(at, at+n, n) }
		d.Compute.Fill32(at+n, 0, n/4)
		rate = 2 * n / timed(b, be, copyOne)
		b.ReportMetric(rate/1e9, "GB/s")
	})
	blas, err := cublas.Open(d, cublas.Options{})
	if err != nil {
		b.Log(err)
	}
	for _, w := range append(works(b, be, rows), optimiser(b, be, 1<<24)) {
		run := func(name string) {
			b.Run(name, func(b *testing.B) {
				seconds := timed(b, be, w.run)
				b.ReportMetric(w.bytes/seconds/1e9, "GB/s")
				b.ReportMetric(w.bytes/seconds/rate, "of-copy")
				if w.flops > 0 {
					b.ReportMetric(w.flops/seconds/1e12, "TFLOP/s")
				}
			})
		}
		run(w.name)
		if w.flops > 0 && blas != nil {
			be.blas = blas
			run(w.name + " cuBLAS")
			be.blas = nil
		}
	}
}

// timed returns the device's time for one run in seconds.
func timed(b *testing.B, be *Backend, run func()) float64 {
	b.Helper()
	from, err := be.d.Event(true)
	if err != nil {
		b.Fatal(err)
	}
	to, err := be.d.Event(true)
	if err != nil {
		b.Fatal(err)
	}
	sync := func() {
		if err := be.s.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	run()
	n := 0
	for be.s.Record(from); b.Loop(); n++ {
		run()
		if n%16 == 15 { // else the launches of all rounds are submitted in the time of a few
			sync()
		}
	}
	be.s.Record(to)
	sync()
	spent, err := to.Since(from)
	if err != nil {
		b.Fatal(err)
	}
	return spent.Seconds() / float64(n)
}
