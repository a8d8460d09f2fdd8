package bench

import (
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// work is the minimal work of a computation. Its floor is the sum of the times of the three parts,
// each at the machine's measured rate, without overlap and without sampling.
type work struct {
	FLOP        float64 `json:"flop"`         // of matrix products
	RandomBytes float64 `json:"random_bytes"` // of rows at random places in memory
	StreamBytes float64 `json:"stream_bytes"` // read or written one after the other
	Arithmetic  string  `json:"arithmetic"`
}

func (w work) seconds(l limits) float64 {
	return w.FLOP/l.GFLOPS/1e9 + w.RandomBytes/l.RandomGBs/1e9 + w.StreamBytes/l.CopyGBs/1e9
}

// sageWork is one training step of a GraphSAGE with the mean, whose layer l turns n rows of d columns,
// the node's own and the mean of its neighbours', into n rows of h:
//
//   - forward 2·2·n·d·h flops and as many for the gradients of both weights, and of the input except in
//     the first layer;
//   - the first layer reads a row of features for each edge and each destination, at random;
//   - the product's input, 2·d columns, is written once and read once more for the weights' gradients;
//     past the first layer its gradient is written and read, too;
//   - a hidden layer's output is written and read once, and so is its gradient.
func sageWork(hops hopSizes, s gnb.ModelConfig) work {
	var w work
	layers := len(hops)
	for l := range layers {
		hop := hops[layers-1-l] // the farthest first
		d, h := float64(s.Hidden), float64(s.Hidden)
		products := 3.0
		if l == 0 {
			d, products = float64(s.In), 2
			w.RandomBytes = 4 * d * (hop.Edges + hop.Dst)
		}
		if l == layers-1 {
			h = float64(s.Out)
		}
		w.FLOP += products * 4 * hop.Dst * d * h
		passes := 2.0
		if l > 0 {
			passes = 4
		}
		w.StreamBytes += passes * 4 * 2 * d * hop.Dst
		if l < layers-1 {
			w.StreamBytes += 4 * 4 * h * hop.Dst
		}
	}
	w.explain("in training")
	return w
}

// wholeGraphWork is one pass of a GraphSAGE with the mean over all nodes, forward or also backward: a
// layer reads a row for each edge at random, and its input and output pass through memory once. Backward
// takes a product more for each weight, and past the first layer one and the edges' rows once more for the
// input; input and output are read again, and their gradients pass through memory once.
func wholeGraphWork(ds *dataset.Dataset, s gnb.ModelConfig, training bool) work {
	var w work
	n, e := float64(ds.Nodes()), float64(ds.Edges())
	for l := range s.Layers {
		d, h := float64(s.Hidden), float64(s.Hidden)
		if l == 0 {
			d = float64(s.In)
		}
		if l == s.Layers-1 {
			h = float64(s.Out)
		}
		products, edges, passes := 1.0, 1.0, 1.0
		if training {
			products, passes = 2, 3
			if l > 0 {
				products, edges = 3, 2
			}
		}
		w.FLOP += products * 4 * n * d * h
		// A layer may transform before it aggregates.
		w.RandomBytes += edges * 4 * e * min(d, h)
		w.StreamBytes += passes * 4 * n * (d + h)
	}
	what := "in inference"
	if training {
		what = "in full-graph training"
	}
	w.explain(what)
	return w
}

func (w *work) explain(when string) {
	w.Arithmetic = fmt.Sprintf("%.2f GFLOP at peak + %.1f MB of random rows + %.1f MB of activations at the rate of a copy, %s", w.FLOP/1e9, w.RandomBytes/1e6, w.StreamBytes/1e6, when)
}
