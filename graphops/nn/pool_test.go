package nn

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
	"github.com/graphnb/graphnb/internal/expect"
)

// inputsOf is a random input and the parameters of a layer, for gradcheck.
func inputsOf(t *testing.T, layer any, rows, cols int) []gradcheck.Input {
	t.Helper()
	in := []gradcheck.Input{gradcheck.Random(rows, cols, 3).In(&Space{})}
	p, err := Collect(layer)
	if err != nil {
		return in // it has none
	}
	p.Init(4)
	for _, e := range p.List() {
		if !e.Fixed {
			in = append(in, gradcheck.Param(e.Param))
		}
	}
	return in
}

// Sums, means and maxima are by group, and an empty group has zeros with every pooling.
func TestPoolingByHand(t *testing.T) {
	t.Parallel()
	h := []float32{1, -2, 3, 4, -5, 6, -7, -8}
	groups := graphops.Groups([]int32{0, 3, 3, 4})
	for name, want := range map[string][]float32{
		"sum":  {-1, 8, 0, 0, -7, -8},
		"mean": {-1. / 3, 8. / 3, 0, 0, -7, -8},
		"max":  {3, 6, 0, 0, -7, -8},
	} {
		f := NewFwd(Config{})
		expect.Near(t, name, NewPool(name).Forward(f, groups, f.Input(4, 2, h, nil)).Data(), floats64(want), 1e-6, 0)
	}
	for _, name := range PoolingNames() {
		pool, cols := NewPooling(name, 2)
		if p, err := Collect(pool); err == nil {
			p.Init(1)
		}
		f := NewFwd(Config{})
		y := pool.Forward(f, groups, f.Input(4, 2, h, nil))
		if y.Rows() != 3 || y.Cols() != cols {
			t.Fatalf("%s: it returned %v, and promised %d columns", name, y, cols)
		}
		for i, v := range y.Data()[cols : 2*cols] {
			if v != 0 {
				t.Errorf("%s: column %d of an empty group is %v", name, i, v)
			}
		}
	}
}

// Every pooling has the gradients of its function, and so has the opposite direction.
func TestPoolingGradients(t *testing.T) {
	t.Parallel()
	offsets := []int32{0, 4, 4, 5, 9}
	groups, spread := graphops.Groups(offsets), graphops.Spread(offsets)
	for _, name := range PoolingNames() {
		pool, _ := NewPooling(name, 3)
		gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
			return pool.Forward(f, groups, x[0])
		}, inputsOf(t, pool, 9, 3)...)
	}
	gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
		return f.Aggregate(spread, x[0], Sum)
	}, gradcheck.Random(4, 3, 1))
}

// A graph's row has the same bits alone and among others, on any number of threads.
func TestPooledRowsAreTheirGroups(t *testing.T) {
	t.Parallel()
	const cols = 6
	offsets := []int32{0}
	for g := range 300 {
		offsets = append(offsets, offsets[g]+int32(g*7%23))
	}
	rows := int(offsets[300])
	x := expect.Normal(rows*cols, 2)
	for _, name := range PoolingNames() {
		pool, out := NewPooling(name, cols)
		if p, err := Collect(pool); err == nil {
			p.Init(1)
		}
		f, two := NewFwd(Config{Threads: 1}), NewFwd(Config{Threads: 3})
		all := pool.Forward(f, graphops.Groups(offsets), f.Input(rows, cols, x, nil)).Data()
		expect.SameBits(t, name+" on 3 threads", all, pool.Forward(two, graphops.Groups(offsets), two.Input(rows, cols, x, nil)).Data())
		for _, g := range []int{0, 5, 299} {
			lo, hi := offsets[g], offsets[g+1]
			one := NewFwd(Config{})
			y := pool.Forward(one, graphops.Groups([]int32{0, hi - lo}), one.Input(int(hi-lo), cols, x[int(lo)*cols:int(hi)*cols], nil)).Data()
			expect.SameBits(t, name, all[g*out:(g+1)*out], y)
		}
	}
}

func TestPoolingErrors(t *testing.T) {
	t.Parallel()
	groups := graphops.Groups([]int32{0, 2, 3})
	f := NewFwd(Config{Train: true})
	h := f.Input(3, 4, make([]float32, 12), &Space{})
	for want, bad := range map[string]func(){
		`no pooling "median"; choose sum, mean, max, attention, set2set`: func() { NewPooling("median", 4) },
		"the rows have 0 columns":                      func() { NewPooling("sum", 0) },
		`no aggregation "set2set"`:                     func() { NewPool("set2set") },
		"0 steps":                                      func() { NewSet2Set(4, 0) },
		"the gate returns 2 columns for rows of 4":     func() { NewAttentionPool(NewLinear(4, 2, true), nil).Forward(f, groups, h) },
		"Dst: the block's destinations are no sources": func() { NewSAGE(4, 2).Forward(f, groups, h) },
		"the tensor has no row space":                  func() { f.Dropout(NewPool("sum").Forward(f, groups, h), 0.5) },
	} {
		err := Try(bad)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	y := NewPool("sum").Forward(f, groups, h).SetSpace(&Space{IDs: []int32{7, 9}})
	if d := f.Dropout(y, 0.5); d.Space().ID(1) != 9 {
		t.Errorf("a pooled row is of graph %d, want 9", d.Space().ID(1))
	}
}
