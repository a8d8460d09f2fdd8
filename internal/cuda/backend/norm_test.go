//go:build cuda && linux && cgo

package backend

import (
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
)

// Running statistics of a batch norm that are kept on the device change there, without a copy to
// the host, until Pull; evaluation reads them there. If they are not kept, the host's copy changes
// in each pass.
func TestRunningStatistics(t *testing.T) {
	const rows, cols, passes = 37, 5, 3
	run := func(t *testing.T, be *Backend, keep bool) (p *nn.Params, y []float32) {
		t.Helper()
		l := nn.NewBatchNorm(cols)
		p, err := nn.Collect(l)
		if err != nil {
			t.Fatal(err)
		}
		p.Init(1)
		c := tensor.Config{Train: true}
		var w *Weights
		if be != nil {
			c.Backend = be
		}
		if keep {
			if w, err = be.Weights(p); err != nil {
				t.Fatal(err)
			}
			defer w.Close()
		}
		f := nn.NewFwd(c)
		defer f.Close()
		before := slices.Clone(p.Fixed())
		for pass := range passes {
			f.Reset(c)
			x := make([]float32, rows*cols)
			for i := range x {
				x[i] = float32(math.Sin(float64(i*(pass+1)))) + float32(i%cols)
			}
			l.Forward(f, f.Input(rows, cols, x, nil))
			if moved := !slices.Equal(p.Fixed(), before); moved == keep {
				t.Errorf("pass %d: the host's statistics have changed: %v", pass, moved)
			}
		}
		c.Train = false
		f.Reset(c)
		x := make([]float32, 2*cols)
		y = l.Forward(f, f.Input(2, cols, x, nil)).Data()
		if keep {
			if err := w.Pull(nil); err != nil {
				t.Fatal(err)
			}
		}
		return p, y
	}
	want, wantY := run(t, nil, false)
	for name, keep := range map[string]bool{"kept": true, "not kept": false} {
		t.Run(name, func(t *testing.T) {
			be := open(t, fakegpu.Config{})
			got, y := run(t, be, keep)
			near := func(what string, got, want []float32) {
				for i := range want {
					if !(math.Abs(float64(got[i]-want[i])) <= 2e-6*(1+math.Abs(float64(want[i])))) {
						t.Errorf("%s are %v, on the CPU %v", what, got, want)
						return
					}
				}
			}
			near("statistics", got.Fixed(), want.Fixed())
			near("evaluated rows", y, wantY)
			if n := be.Device().Launches()["track_f32"]; n != 2*passes {
				t.Errorf("track_f32 was launched %d times", n)
			}
		})
	}
}
