package nn

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/expect"
)

// A row of the initial table depends on seed, node and column alone.
func TestEmbeddingInit(t *testing.T) {
	t.Parallel()
	const rows, cols = 3000, 12
	whole := NewEmbedding(rows, cols)
	whole.Init(7, 0, rows)
	parts := NewEmbedding(rows, cols)
	for _, cut := range [][2]int{{1200, 3000}, {0, 1}, {1, 1200}, {5, 5}} {
		parts.Init(7, cut[0], cut[1])
	}
	expect.SameBits(t, "a table made in parts", parts.W, whole.W)
	other := NewEmbedding(rows, cols)
	other.Init(8, 0, rows)
	if slices.Equal(other.W, whole.W) {
		t.Error("two seeds give the same table")
	}
	bound, sum, squares := math.Sqrt(3.0/cols), 0.0, 0.0
	for i, v := range whole.W {
		if math.Abs(float64(v)) > bound+1e-6 {
			t.Fatalf("element %d is %v, outside ±%v", i, v, bound)
		}
		sum, squares = sum+float64(v), squares+float64(v)*float64(v)
	}
	// The standard errors of mean and mean square over 36,000 elements are 0.0015 and 0.0004.
	n := float64(len(whole.W))
	if mean, square := sum/n, squares/n; math.Abs(mean) > 0.008 || math.Abs(square-1.0/cols) > 0.002 {
		t.Errorf("the elements have mean %.5f and mean square %.5f, want 0 and %.5f", mean, square, 1.0/cols)
	}
	seen := map[float32]int{}
	for _, v := range whole.W {
		seen[v]++
	}
	if len(seen) < len(whole.W)*99/100 {
		t.Errorf("%d of %d elements differ; rows or columns share draws", len(seen), len(whole.W))
	}
}

// embeddingLoss is the loss of a layer on a batch whose input are rows of a table.
func embeddingLoss(e *Embedding, conv *SAGEConv, b *Block, ids []int32, threads int) (*Loss, *Tensor) {
	f := NewFwd(Config{Train: true, Threads: threads})
	x := e.Leaf(f, ids, tensor.SrcSpace(b))
	return CrossEntropy(conv.Forward(f, b, x), []int32{1, 0, 2}[:b.NumDst]), x
}

// The gradient of the rows that a batch reads is that of central differences, also for a row that the
// batch has twice.
func TestEmbeddingGradient(t *testing.T) {
	t.Parallel()
	const cols = 3
	b := sampledBlock()
	e := NewEmbedding(20, cols)
	e.Init(3, 0, 20)
	conv := NewSAGE(cols, 3)
	mustCollect(t, conv).Init(5)
	ids := []int32{11, 2, 19, 0, 7, 11, 4, 3, 5, 6}[:b.NumSrc]
	loss, x := embeddingLoss(e, conv, b, ids, 1)
	loss.Backward()
	got := make([]float32, len(e.W))
	for i, v := range ids {
		for c := range cols {
			got[int(v)*cols+c] += x.Grad()[i*cols+c]
		}
	}
	want := make([]float64, len(e.W))
	const h = 1.0 / 64
	for i, v := range e.W {
		at := func(d float32) float64 {
			e.W[i] = v + d
			l, _ := embeddingLoss(e, conv, b, ids, 1)
			e.W[i] = v
			return float64(l.Sum.Data()[0])
		}
		// Richardson extrapolation: the error is of order h⁴, and rounding some 1e-6/h.
		wide, narrow := (at(h)-at(-h))/(2*h), (at(h/2)-at(-h/2))/h
		want[i] = (4*narrow - wide) / 3
	}
	expect.Near(t, "gradient of the table", got, want, 5e-4, 1e-3)
	if slices.Max(got) < 0.01 {
		t.Error("the gradient is zero")
	}
}

func TestEmbeddingRefuses(t *testing.T) {
	t.Parallel()
	e := NewEmbedding(4, 2)
	f := NewFwd(Config{Train: true})
	for name, do := range map[string]func(){
		"no columns":            func() { NewEmbedding(4, 0) },
		"rows beyond the table": func() { e.Init(1, 2, 5) },
		"more columns than random draws": func() {
			NewEmbedding(0, 1<<18+1).Init(1, 0, 0)
		},
		"reading row 4 of 4":       func() { e.Leaf(f, []int32{0, 4}, &Space{}) },
		"reading row -1":           func() { e.Leaf(f, []int32{-1}, &Space{}) },
		"stepping row 4 of 4":      func() { optim.NewSparseAdam(optim.AdamOptions{}).Step(e.W, 2, []int32{4}, make([]float32, 2), 1) },
		"a gradient of other size": func() { optim.NewSparseAdam(optim.AdamOptions{}).Step(e.W, 2, []int32{1}, make([]float32, 3), 1) },
		"weight decay":             func() { optim.NewSparseAdam(optim.AdamOptions{WeightDecay: 0.1}) },
		"decoupled decay":          func() { optim.NewSparseAdam(optim.AdamOptions{Decoupled: true}) },
		"a state of another table": func() {
			a := optim.NewSparseAdam(optim.AdamOptions{})
			a.Step(e.W, 2, nil, nil, 1)
			a.Step(make([]float32, 6), 2, nil, nil, 1)
		},
	} {
		var misuse *tensor.Error
		if err := Try(do); !errors.As(err, &misuse) {
			t.Errorf("%s: error %v, want a *tensor.Error", name, err)
		}
	}
	if err := optim.NewSparseAdam(optim.AdamOptions{}).SetState(3, make([]float32, 4), make([]float32, 6)); err == nil {
		t.Error("SetState takes two buffers of different lengths")
	}
}

// touchedRows returns the rows that sparseadam.py touches at step t.
func touchedRows(t, rows int) (ids []int32) {
	for i := range 1 + t%4 {
		if v := int32((t + i*i) % rows); !slices.Contains(ids, v) {
			ids = append(ids, v)
		}
	}
	return ids
}

// optim.SparseAdam has the results of torch.optim.SparseAdam: the fixture was written by PyTorch.
func TestSparseAdamIsPyTorch(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/sparseadam.json")
	if err != nil {
		t.Fatal(err)
	}
	var py struct {
		Rows, Cols, Steps int
		Cases             map[string]map[string][]float64
	}
	if err := json.Unmarshal(raw, &py); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]optim.AdamOptions{"defaults": {}, "options": {LR: 0.05, Beta1: 0.8, Beta2: 0.95, Eps: 1e-3}} {
		want := py.Cases[name]
		w := pyValues(py.Rows*py.Cols, 1)
		a := optim.NewSparseAdam(o)
		for step := range py.Steps {
			ids := touchedRows(step, py.Rows)
			a.Step(w, py.Cols, ids, pyValues(len(ids)*py.Cols, step), 1)
		}
		expect.Near(t, name, w, want["w"], 2e-6, 2e-6)
		for _, s := range a.State() {
			expect.Near(t, name+" "+s.Name, s.Data, want[s.Name], 1e-6, 1e-6)
		}
	}
}

// A step is the dense formula on the touched rows, in float64, and leaves every other row and its
// state as they are.
func TestSparseAdamAgainstFloat64(t *testing.T) {
	t.Parallel()
	const rows, cols, steps, lr = 11, 7, 60, 0.02
	w := expect.Normal(rows*cols, 1)
	rw, rm, rv := make([]float64, len(w)), make([]float64, len(w)), make([]float64, len(w))
	for i, v := range w {
		rw[i] = float64(v)
	}
	a := optim.NewSparseAdam(optim.AdamOptions{LR: lr})
	for step := 1; step <= steps; step++ {
		ids := touchedRows(step, rows)
		g := gradients(len(ids)*cols, step)
		before := slices.Clone(w)
		a.Step(w, cols, ids, g, 1.0/8)
		size := lr * math.Sqrt(1-math.Pow(0.999, float64(step))) / (1 - math.Pow(0.9, float64(step)))
		for k, v := range ids {
			for c := range cols {
				i, d := int(v)*cols+c, float64(g[k*cols+c])/8
				rm[i] = 0.9*rm[i] + 0.1*d
				rv[i] = 0.999*rv[i] + 0.001*d*d
				rw[i] -= size * rm[i] / (math.Sqrt(rv[i]) + 1e-8)
			}
		}
		for v := range rows {
			if row := w[v*cols : (v+1)*cols]; !slices.Contains(ids, int32(v)) && !slices.Equal(row, before[v*cols:(v+1)*cols]) {
				t.Fatalf("step %d changes row %d, which it does not touch", step, v)
			}
		}
	}
	expect.Near(t, "weights", w, rw, 4e-5, 1e-5)
	for i, s := range a.State() {
		expect.Near(t, s.Name, s.Data, [][]float64{rm, rv}[i], 1e-5, 1e-5)
	}
	if a.Steps() != steps {
		t.Errorf("it counts %d steps, want %d", a.Steps(), steps)
	}
}

// Two optimisers that share table and state, and step half of the rows each, have the bits of one; so
// does one that goes on from the other's state.
func TestSparseAdamShared(t *testing.T) {
	t.Parallel()
	const rows, cols, steps = 600, 33, 12
	whole := optim.NewSparseAdam(optim.AdamOptions{LR: 0.1})
	w := expect.Normal(rows*cols, 1)
	shared, m, v := slices.Clone(w), make([]float32, len(w)), make([]float32, len(w))
	halves := []*optim.SparseAdam{optim.NewSparseAdam(optim.AdamOptions{LR: 0.1}), optim.NewSparseAdam(optim.AdamOptions{LR: 0.1})}
	for _, h := range halves {
		if err := h.SetState(0, m, v); err != nil {
			t.Fatal(err)
		}
	}
	ids := make([]int32, 0, rows)
	for step := range steps {
		ids = ids[:0]
		for r := step % 3; r < rows; r += 1 + step%4 {
			ids = append(ids, int32(r))
		}
		g := expect.Normal(len(ids)*cols, uint64(step))
		whole.Step(w, cols, ids, g, 0.5)
		half := len(ids) / 3
		halves[0].Step(shared, cols, ids[:half], g[:half*cols], 0.5)
		halves[1].Step(shared, cols, ids[half:], g[half*cols:], 0.5)
		if step == steps/2 {
			halves[0] = optim.NewSparseAdam(optim.AdamOptions{LR: 0.1})
			if err := halves[0].SetState(int64(step+1), m, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect.SameBits(t, "table", shared, w)
	expect.SameBits(t, "exp_avg", m, whole.State()[0].Data)
	expect.SameBits(t, "exp_avg_sq", v, whole.State()[1].Data)
}

func gradients(n, step int) []float32 {
	g := expect.Normal(n, uint64(1000+step))
	for i := range g {
		g[i] *= float32(i%5) * 8 // parameters differ in size, some gradients are 0; 8 is the total weight
	}
	return g
}
