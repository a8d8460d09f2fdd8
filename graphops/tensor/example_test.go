package tensor_test

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// A gradient step by hand.
func Example() {
	w := &tensor.Param{Name: "w", Rows: 1, Cols: 2, W: []float32{1, -1}, G: make([]float32, 2)}
	f := tensor.NewFwd(tensor.Config{Train: true})
	x := f.Input(3, 2, []float32{1, 2, 3, 4, 5, 6}, nil)
	y := f.Linear(x, f.Param(w), nil) // [3,1]
	loss := f.SumAll(f.Mul(y, y))
	if err := loss.Backward(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(y.Data(), loss.Data(), w.G)
	// Output: [-1 -1 -1] [3] [-18 -24]
}

// The mean over the neighbours, on a path 0 - 1 - 2.
func ExampleFwd_Aggregate() {
	g := &graphops.Graph{Indptr: []int64{0, 1, 3, 4}, Indices: []int32{1, 0, 2, 1}}
	f := tensor.NewFwd(tensor.Config{})
	h := f.Input(3, 1, []float32{1, 2, 5}, nil)
	fmt.Println(f.Aggregate(g.Block(), h, tensor.Mean).Data())
	// Output: [2 3 2]
}

// A message that depends on both ends of the edge.
func ExampleFwd_Propagate() {
	g := &graphops.Graph{Indptr: []int64{0, 1, 3, 4}, Indices: []int32{1, 0, 2, 1}}
	f := tensor.NewFwd(tensor.Config{})
	h := f.Input(3, 1, []float32{1, 2, 5}, nil)
	out := f.Propagate(g.Block(), h, func(f *tensor.Fwd, src, dst *tensor.Tensor) *tensor.Tensor {
		return f.ReLU(f.Sub(src, dst))
	}, tensor.Sum)
	fmt.Println(out.Data())
	// Output: [1 3 0]
}

// A user's own operation with its gradient.
func ExampleFwd_Custom() {
	f := tensor.NewFwd(tensor.Config{Grad: true})
	x := f.Leaf(1, 3, []float32{1, 2, 3}, nil)
	cube := f.Custom("cube", []*tensor.Tensor{x}, 1, 3, func(out []float32) {
		for i, v := range x.Data() {
			out[i] = v * v * v
		}
	}, func(dOut []float32, dIn [][]float32) {
		for i, v := range x.Data() {
			dIn[0][i] = 3 * v * v * dOut[i]
		}
	})
	if err := f.SumAll(cube).Backward(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(cube.Data(), x.Grad())
	// Output: [1 8 27] [3 12 27]
}

// Dropout must know which node each row belongs to: a node has one mask, in every row that holds
// it.
func ExampleFwd_Dropout() {
	f := tensor.NewFwd(tensor.Config{})
	ones := []float32{1, 1, 1, 1, 1, 1, 1, 1}
	for _, ids := range [][]int32{{7, 8}, {8, 7}} {
		f.Reset(tensor.Config{Train: true, Seed: 1}) // the same step again
		y := f.Dropout(f.Input(2, 4, ones, &tensor.Space{IDs: ids}), 0.5)
		for r, id := range ids {
			fmt.Println("node", id, f.Rows(y, r, r+1).Data())
		}
	}
	// Output:
	// node 7 [2 2 0 2]
	// node 8 [0 2 0 0]
	// node 8 [0 2 0 0]
	// node 7 [2 2 0 2]
}
