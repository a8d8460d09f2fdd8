package optim

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/expect"
)

// refStep is one step of an optimiser in float64, written from PyTorch's
// documentation (torch.optim.Adam, AdamW, SGD, the boxed algorithms), t from 1.
type refStep func(t float64, w, g, s1, s2 []float64)

func refAdam(o AdamOptions) refStep {
	return func(t float64, w, g, m, v []float64) {
		for i := range w {
			d := g[i]
			if o.Decoupled {
				w[i] -= o.LR * o.WeightDecay * w[i]
			} else {
				d += o.WeightDecay * w[i]
			}
			m[i] = o.Beta1*m[i] + (1-o.Beta1)*d
			v[i] = o.Beta2*v[i] + (1-o.Beta2)*d*d
			mHat := m[i] / (1 - math.Pow(o.Beta1, t))
			vHat := v[i] / (1 - math.Pow(o.Beta2, t))
			w[i] -= o.LR * mHat / (math.Sqrt(vHat) + o.Eps)
		}
	}
}

func refSGD(o SGDOptions) refStep {
	return func(t float64, w, g, b, _ []float64) {
		for i := range w {
			d := g[i] + o.WeightDecay*w[i]
			if o.Momentum != 0 {
				if t > 1 {
					b[i] = o.Momentum*b[i] + d
				} else {
					b[i] = d
				}
				if o.Nesterov {
					d += o.Momentum * b[i]
				} else {
					d = b[i]
				}
			}
			w[i] -= o.LR * d
		}
	}
}

type optimizerCase struct {
	name string
	make func() Optimizer
	ref  refStep
}

func optimizers() []optimizerCase {
	var list []optimizerCase
	adam := func(name string, o, full AdamOptions) {
		list = append(list, optimizerCase{name, func() Optimizer { return NewAdam(o) }, refAdam(full)})
	}
	sgd := func(name string, o, full SGDOptions) {
		list = append(list, optimizerCase{name, func() Optimizer { return NewSGD(o) }, refSGD(full)})
	}
	adam("adam", AdamOptions{}, AdamOptions{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8})
	o := AdamOptions{LR: 0.01, Beta1: 0.8, Beta2: 0.95, Eps: 1e-3, WeightDecay: 0.1}
	adam("adam with options", o, o)
	o.Decoupled = true
	adam("adamw with options", o, o)
	list = append(list, optimizerCase{
		"adamw", func() Optimizer { return NewAdamW(AdamOptions{}) },
		refAdam(AdamOptions{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.01, Decoupled: true}),
	})
	sgd("sgd", SGDOptions{}, SGDOptions{LR: 1e-3})
	s := SGDOptions{LR: 0.05, WeightDecay: 0.02}
	sgd("sgd with decay", s, s)
	s.Momentum = 0.9
	sgd("sgd with momentum", s, s)
	s.Nesterov = true
	sgd("sgd nesterov", s, s)
	return list
}

func gradients(n, step int) []float32 {
	g := expect.Normal(n, uint64(1000+step))
	for i := range g {
		g[i] *= float32(i%5) * 8 // parameters differ in size, some gradients are 0; 8 is the total weight
	}
	return g
}

func TestOptimizersAgainstFloat64(t *testing.T) {
	t.Parallel()
	const n, steps = 23, 60
	for _, tc := range optimizers() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := expect.Normal(n, 1)
			var rw, s1, s2 [n]float64
			for i, v := range w {
				rw[i] = float64(v)
			}
			opt := tc.make()
			for step := 1; step <= steps; step++ {
				g := gradients(n, step)
				opt.Step(w, g, 1.0/8)
				var rg [n]float64
				for i, v := range g {
					rg[i] = float64(v) / 8
				}
				tc.ref(float64(step), rw[:], rg[:], s1[:], s2[:])
			}
			// Rounding of 60 steps whose weights reach 10: 60·10·2^-24.
			expect.Near(t, "weights", w, rw[:], 4e-5, 1e-5)
			if opt.Steps() != steps {
				t.Errorf("the optimiser counts %d steps, want %d", opt.Steps(), steps)
			}
		})
	}
}

// An optimiser with a restored state continues with the same bits.
func TestOptimizerState(t *testing.T) {
	t.Parallel()
	const n = 23
	for _, tc := range optimizers() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := tc.make()
			w := expect.Normal(n, 1)
			a.SetLR(0.02)
			for step := range 10 {
				a.Step(w, gradients(n, step), 0.5)
			}
			saved := map[string][]float32{}
			b := tc.make()
			for i, s := range a.State() {
				saved[s.Name] = s.Data
				if fresh := b.State()[i]; fresh.Name != s.Name || len(fresh.Data) != 0 {
					t.Errorf("before the first step the state is %v", fresh)
				}
			}
			b.SetLR(a.LR())
			if err := b.SetState(a.Steps(), saved); err != nil {
				t.Fatal(err)
			}
			v := append([]float32(nil), w...)
			for step := 10; step < 20; step++ {
				b.Step(v, gradients(n, step), 0.5)
			}
			for step := 10; step < 20; step++ {
				a.Step(w, gradients(n, step), 0.5)
			}
			expect.SameBits(t, "weights", w, v)
			if a.Steps() != b.Steps() || a.Name() != b.Name() {
				t.Errorf("%s at step %d and %s at step %d", a.Name(), a.Steps(), b.Name(), b.Steps())
			}

			// The state before the first step can be restored too.
			empty := map[string][]float32{}
			for _, s := range b.State() {
				empty[s.Name] = nil
			}
			if err := b.SetState(0, empty); err != nil || b.Steps() != 0 {
				t.Errorf("the empty state gives %v", err)
			}
		})
	}
}

func TestOptimizerStateErrors(t *testing.T) {
	t.Parallel()
	two, three := make([]float32, 2), make([]float32, 3)
	for _, tc := range []struct {
		steps int64
		state map[string][]float32
		parts []string
	}{
		{1, map[string][]float32{"exp_avg": two}, []string{"adam", "exp_avg_sq"}},
		{1, map[string][]float32{"exp_avg": two, "exp_avg_sq": three}, []string{"3 elements", "2 in exp_avg"}},
		{1, map[string][]float32{"exp_avg": nil, "exp_avg_sq": nil}, []string{"0 elements"}},
		{0, map[string][]float32{"exp_avg": two, "exp_avg_sq": two}, []string{"step 0"}},
		{-1, map[string][]float32{"exp_avg": nil, "exp_avg_sq": nil}, []string{"negative"}},
		{1, map[string][]float32{"exp_avg": two, "exp_avg_sq": two, "momentum_buffer": two}, []string{"nothing else"}},
	} {
		a := NewAdam(AdamOptions{})
		expect.Error(t, a.SetState(tc.steps, tc.state), tc.parts...)
		if a.Steps() != 0 || len(a.State()[0].Data) != 0 {
			t.Errorf("a refused state changed the optimiser")
		}
	}
	expect.Error(t, NewSGD(SGDOptions{}).SetState(1, map[string][]float32{"momentum_buffer": two}), "sgd", "nothing else")
}

func TestOptimizerMisuse(t *testing.T) {
	t.Parallel()
	for what, fn := range map[string]func(){
		"NewAdam: LR is -2":                       func() { NewAdam(AdamOptions{LR: -2}) },
		"NewAdam: LR is NaN":                      func() { NewAdam(AdamOptions{LR: math.NaN()}) },
		"NewAdam: Beta1 is 1":                     func() { NewAdam(AdamOptions{Beta1: 1}) },
		"NewAdam: Beta2 is -0.5":                  func() { NewAdam(AdamOptions{Beta2: -0.5}) },
		"NewAdam: Eps is +Inf":                    func() { NewAdam(AdamOptions{Eps: math.Inf(1)}) },
		"NewAdam: WeightDecay is -2":              func() { NewAdamW(AdamOptions{WeightDecay: -2}) },
		"NewSGD: Momentum is -1":                  func() { NewSGD(SGDOptions{Momentum: -1}) },
		"NewSGD: Nesterov is set":                 func() { NewSGD(SGDOptions{Nesterov: true}) },
		"SetLR: LR is -2":                         func() { NewSGD(SGDOptions{}).SetLR(-2) },
		"SetLR: LR is NaN":                        func() { NewAdam(AdamOptions{}).SetLR(math.NaN()) },
		"ClipNorm: limit is 0":                    func() { ClipNorm(nil, 1, 0) },
		"ClipScale: limit is -1":                  func() { ClipScale(nil, 1, -1) },
		"adam: there are 2 weights but 1 grad":    func() { NewAdam(AdamOptions{}).Step(make([]float32, 2), make([]float32, 1), 1) },
		"sgd: the optimiser's state is for a mod": func() { s := NewSGD(SGDOptions{Momentum: 1}); s.Step(one(2), one(2), 1); s.Step(one(3), one(3), 1) },
	} {
		err := nn.Try(fn)
		var te *tensor.Error
		if !errors.As(err, &te) {
			t.Errorf("%s: got %v", what, err)
			continue
		}
		expect.Error(t, err, what)
	}
	a := NewAdam(AdamOptions{})
	a.SetLR(0)
	if a.LR() != 0 {
		t.Errorf("a learning rate of 0 set later is %v", a.LR())
	}
}

func one(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 1
	}
	return x
}

// GOMAXPROCS applies to the whole process, so this test is not parallel.
func TestOptimizerThreads(t *testing.T) {
	const n = 3*stepGrain + 17
	old := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(old)
	g := gradients(n, 1)
	for _, tc := range optimizers() {
		var want []float32
		for threads := 1; threads <= 3; threads++ {
			runtime.GOMAXPROCS(threads)
			w := expect.Normal(n, 1)
			opt := tc.make()
			for range 3 {
				opt.Step(w, g, 0.125)
			}
			if threads == 1 {
				want = w
			}
			expect.SameBits(t, fmt.Sprintf("%s on %d threads", tc.name, threads), want, w)
		}
	}
	var norms []float64
	for threads := 1; threads <= 3; threads++ {
		runtime.GOMAXPROCS(threads)
		norms = append(norms, GradNorm(g, 0.5))
	}
	if norms[0] != norms[1] || norms[0] != norms[2] {
		t.Errorf("norms differ between thread counts: %v", norms)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	g := []float32{3, 0, -4}
	for _, tc := range []struct {
		scale        float32
		limit        float64
		norm, factor float64
	}{
		{1, 10, 5, 1},
		{1, 5, 5, 5 / (5 + 1e-6)},
		{1, 1, 5, 1 / (5 + 1e-6)},
		{2, 1, 10, 1 / (10 + 1e-6)},
		{0.1, 1, 0.5, 1},
		{0, 1, 0, 1},
	} {
		if norm := GradNorm(g, tc.scale); math.Abs(norm-tc.norm) > 1e-6 {
			t.Errorf("the norm times %v is %v, want %v", tc.scale, norm, tc.norm)
		}
		scale, norm := ClipScale(g, tc.scale, tc.limit)
		if math.Abs(norm-tc.norm) > 1e-6 || math.Abs(float64(scale)-float64(tc.scale)*tc.factor) > 1e-7 {
			t.Errorf("ClipScale(%v, %v) = %v, %v; want a factor of %v", tc.scale, tc.limit, scale, norm, tc.factor)
		}
		c := append([]float32(nil), g...)
		if norm := ClipNorm(c, tc.scale, tc.limit); math.Abs(norm-tc.norm) > 1e-6 {
			t.Errorf("ClipNorm(%v, %v) = %v", tc.scale, tc.limit, norm)
		}
		expect.Near(t, "clipped", c, []float64{3 * tc.factor, 0, -4 * tc.factor}, 1e-6, 1e-6)
	}
	nan := []float32{float32(math.NaN()), 1}
	if norm := ClipNorm(nan, 1, 1); !math.IsNaN(norm) || nan[1] != 1 {
		t.Errorf("a gradient of NaN has norm %v and is %v after clipping", norm, nan)
	}
	if norm := ClipNorm(nil, 1, 1); norm != 0 {
		t.Errorf("the norm of no gradients is %v", norm)
	}
}

// None means 0 in fields whose zero value selects a default.
func TestNoneIsZero(t *testing.T) {
	for name, o := range map[string]Optimizer{
		"adam": NewAdam(AdamOptions{LR: None, Beta1: None, Beta2: None}), "adamw": NewAdamW(AdamOptions{LR: None, WeightDecay: None}), "sgd": NewSGD(SGDOptions{LR: None}),
	} {
		if o.LR() != 0 {
			t.Errorf("%s: the rate is %v", name, o.LR())
		}
		w := []float32{1, -2, 3}
		o.Step(w, []float32{4, 5, -6}, 1)
		if w[0] != 1 || w[1] != -2 || w[2] != 3 {
			t.Errorf("%s: weights moved at a rate of 0: %v", name, w)
		}
	}
	// If both momentums are 0, Adam's step is the learning rate in the gradient's direction.
	o, w := NewAdam(AdamOptions{LR: 0.5, Beta1: None, Beta2: None}), []float32{0, 0}
	o.Step(w, []float32{4, -1e-3}, 1)
	if math.Abs(float64(w[0])+0.5) > 1e-5 || math.Abs(float64(w[1])-0.5) > 1e-4 {
		t.Errorf("weights %v", w)
	}
	if d := NewAdamW(AdamOptions{LR: 1, WeightDecay: None}); d.o.WeightDecay != 0 {
		t.Errorf("the decay is %v", d.o.WeightDecay)
	}
	if d := NewAdamW(AdamOptions{LR: 1}); d.o.WeightDecay != 0.01 {
		t.Errorf("the decay is %v by default", d.o.WeightDecay)
	}
}
