package kge

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
	"github.com/graphnb/graphnb/internal/expect"
)

// Losses and scores of smoothed labels agree with PyTorch's at each of 12 steps of Adam: see testdata/losses.py.
func TestOneVsAllSmoothIsPyTorch(t *testing.T) {
	raw, err := os.ReadFile("testdata/losses.json")
	var py struct {
		Answers [][]int32
		Cases   []struct {
			Smoothing      float64
			Losses, Scores []float64
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &py)
	}
	if err != nil || len(py.Cases) != 3 {
		t.Fatalf("losses.json has %d cases, %v; run scripts/fixtures.sh", len(py.Cases), err)
	}
	var all Triples
	ids := make([]int32, len(py.Answers))
	for i, answers := range py.Answers {
		ids[i] = int32(i)
		for _, tail := range answers {
			all = all.Append(int32(i), 0, tail)
		}
	}
	q := NewQueries(all)
	for _, c := range py.Cases {
		x, cols := make([]float32, len(c.Scores)), len(c.Scores)/len(ids)
		for i := range x {
			x[i] = float32((i*37+7*11)%29-14) / 8
		}
		opt := optim.NewAdam(optim.AdamOptions{LR: 0.05})
		for step, want := range c.Losses {
			f := nn.NewFwd(nn.Config{Threads: 2, Grad: true})
			z := f.Leaf(len(ids), cols, slices.Clone(x), nil)
			l := OneVsAllSmooth(z, q, ids, c.Smoothing)
			expect.Near(t, fmt.Sprintf("smoothing %v, step %d", c.Smoothing, step), []float32{float32(l.Mean())}, []float64{want}, 1e-6, 1e-6)
			l.Backward()
			opt.Step(x, z.Grad(), float32(1/l.Weight))
			f.Close()
		}
		expect.Near(t, fmt.Sprintf("smoothing %v, scores", c.Smoothing), x, c.Scores, 1e-6, 1e-6)
	}
	gradcheck.Check(t, func(_ *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
		return OneVsAllSmooth(x[0], q, ids, 0.3).Sum
	}, gradcheck.Random(len(ids), 6, 4))
	f := nn.NewFwd(nn.Config{})
	defer f.Close()
	if err := nn.Try(func() { OneVsAllSmooth(f.Input(1, 6, make([]float32, 6), nil), q, ids[:1], 1) }); err == nil {
		t.Error("a smoothing of 1 is accepted")
	}
}
