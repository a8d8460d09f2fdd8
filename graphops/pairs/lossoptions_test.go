package pairs

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
	"github.com/graphnb/graphnb/internal/expect"
)

// Losses and scores agree with PyTorch's at each of 12 steps of Adam: see testdata/losses.py.
func TestLossOptionsArePyTorch(t *testing.T) {
	raw, err := os.ReadFile("testdata/losses.json")
	var py struct {
		Negatives int
		Cases     []struct {
			Kind              string
			Weight, Smoothing float64
			Losses, Scores    []float64
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &py)
	}
	if err != nil || len(py.Cases) != 7 {
		t.Fatalf("losses.json has %d cases, %v; run scripts/fixtures.sh", len(py.Cases), err)
	}
	for _, c := range py.Cases {
		o := LossOptions{Smoothing: c.Smoothing}
		if c.Weight != 1 {
			o.PosWeight = c.Weight
		}
		loss := o.BCE
		if c.Kind == "softmax" {
			loss = o.Softmax
		}
		x := make([]float32, len(c.Scores))
		for i := range x {
			x[i] = float32((i*37+3*11)%29-14) / 8
		}
		opt := optim.NewAdam(optim.AdamOptions{LR: 0.05})
		for step, want := range c.Losses {
			f := nn.NewFwd(nn.Config{Threads: 2, Grad: true})
			z := f.Leaf(len(x), 1, slices.Clone(x), nil)
			l := loss(z, py.Negatives)
			expect.Near(t, fmt.Sprintf("%s, step %d", c.Kind, step), []float32{float32(l.Mean())}, []float64{want}, 1e-6, 1e-6)
			l.Backward()
			opt.Step(x, z.Grad(), float32(1/l.Weight))
			f.Close()
		}
		expect.Near(t, c.Kind+", scores", x, c.Scores, 1e-6, 1e-6)
	}
}

// Gradients are those of central differences, losses count right answers, and no number of threads changes a bit.
func TestLossOptions(t *testing.T) {
	o := LossOptions{PosWeight: 2.5, Smoothing: 0.2}
	gradcheck.Check(t, func(_ *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor { return o.BCE(x[0], 2).Sum }, gradcheck.Random(12, 1, 4))
	gradcheck.Check(t, func(_ *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
		return LossOptions{Smoothing: 0.2}.Softmax(x[0], 2).Sum
	}, gradcheck.Random(12, 1, 5))
	many := make([]float32, 30_000)
	for i := range many {
		many[i] = float32(i%101-50) / 7
	}
	var sums [2]float32
	for i, threads := range []int{1, 3} {
		f := nn.NewFwd(nn.Config{Threads: threads})
		l := o.BCE(f.Input(len(many), 1, many, nil), 2)
		right := int64(0)
		for j, v := range many {
			if (v > 0) == (j%3 == 0) {
				right++
			}
		}
		if l.Correct() != right || l.Count != int64(len(many)) || l.Weight != float64(len(many)) {
			t.Errorf("%d of %d scores are right and the weight is %v, want %d", l.Correct(), l.Count, l.Weight, right)
		}
		sums[i] = l.Sum.Data()[0]
		f.Close()
	}
	if sums[0] != sums[1] {
		t.Errorf("three threads give %v, and one %v", sums[1], sums[0])
	}
	f := nn.NewFwd(nn.Config{})
	defer f.Close()
	far := f.Input(4, 1, []float32{-200, 200, 200, -200}, nil)
	if got := o.BCE(far, 1).Mean(); math.IsNaN(got) || math.IsInf(got, 0) {
		t.Errorf("the loss of large scores is %v", got)
	}
	for want, loss := range map[string]func(){
		"weight of edges is -1":      func() { LossOptions{PosWeight: -1}.BCE(far, 1) },
		"weight of edges is NaN":     func() { LossOptions{PosWeight: math.NaN()}.BCE(far, 1) },
		"smoothing of labels is 1":   func() { LossOptions{Smoothing: 1}.BCE(far, 1) },
		"no groups of an edge":       func() { o.BCE(far, 2) },
		"of an edge and its":         func() { o.Softmax(far, 1) },
		"it needs at least one":      func() { LossOptions{Smoothing: 0.1}.Softmax(far, 0) },
		"smoothing of labels is NaN": func() { LossOptions{Smoothing: math.NaN()}.Softmax(far, 1) },
	} {
		if err := nn.Try(loss); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
