package nn

import (
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/internal/expect"
	"github.com/graphnb/graphnb/internal/philox"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	s := ModelConfig{In: 3, Hidden: 4, Out: 2, Layers: 2}
	a, b := mustCollect(t, NewSAGEModel(s)), mustCollect(t, NewSAGEModel(s))
	a.Init(1)
	b.Init(2)
	if err := b.Load(a.Values()); err != nil {
		t.Fatal(err)
	}
	expect.SameBits(t, "weights", a.Flat(), b.Flat())
	if shape := a.Values()["convs.0.lin_l.bias"].Shape; !slices.Equal(shape, []int{4}) {
		t.Errorf("a bias has shape %v", shape)
	}

	v := a.Values()
	delete(v, "convs.1.lin_l.bias")
	v["convs.2.lin_l.weight"] = Value{}
	v["convs.0.lin_l.bias"] = Value{[]int{1, 4}, make([]float32, 4)}
	v["convs.0.lin_r.weight"] = Value{[]int{4, 3}, make([]float32, 11)}
	v["convs.0.lin_l.weight"] = Value{[]int{4, 3}, make([]float32, 12)}
	expect.Error(t, b.Load(v), "missing: convs.1.lin_l.bias", "unexpected: convs.2.lin_l.weight",
		"convs.0.lin_l.bias is [1, 4] and the model's is [4]", "convs.0.lin_r.weight has 11 elements")
	expect.SameBits(t, "weights after an error", a.Flat(), b.Flat())
	many := mustCollect(t, NewSAGEModel(ModelConfig{In: 1, Hidden: 1, Out: 1, Layers: 4}))
	expect.Error(t, many.Load(nil), "convs.1.lin_r.weight and 6 more")
}

// The initial value of element e of parameter k is draw 0 of (e, 0, C3(Init, 0, k)).
func TestInit(t *testing.T) {
	t.Parallel()
	const seed = 99
	m := NewSAGEModel(ModelConfig{In: 100, Hidden: 50, Out: 3, Layers: 2})
	p := mustCollect(t, m)
	p.Init(seed)
	for k, e := range p.List() {
		in := 100
		if k >= 3 {
			in = 50
		}
		bound := float32(1 / math.Sqrt(float64(in)))
		var sum, sq float64
		for i, w := range e.W {
			s := philox.NewStream(seed, int64(i), 0, philox.C3(philox.Init, 0, k))
			if want := bound * (2*philox.Float32(s.Next()) - 1); w != want {
				t.Fatalf("element %d of %s is %v, want %v", i, e.Name, w, want)
			}
			sum += float64(w)
			sq += float64(w) * float64(w)
		}
		if n := float64(len(e.W)); n > 1000 { // mean 0 and variance bound²/3, within 5 standard deviations
			variance := float64(bound) * float64(bound) / 3
			if math.Abs(sum/n) > 5*math.Sqrt(variance/n) || math.Abs(sq/n/variance-1) > 5*math.Sqrt(0.8/n) {
				t.Errorf("%s has mean %g and variance %g, want 0 and %g", e.Name, sum/n, sq/n, variance)
			}
		}
	}
	first := slices.Clone(p.Flat())
	p.Init(seed)
	expect.SameBits(t, "the same seed", first, p.Flat())
	p.Init(seed + 1)
	if slices.Equal(first, p.Flat()) {
		t.Error("another seed gives the same weights")
	}
}

type norm struct {
	Scale *Param `nn:"weight,vector"`
	Shift *Param `nn:"bias,vector"`
	Lin   *Linear
	Loose *Param
	Gone  *Param `nn:"gone,optional"`
}

func (n *norm) Reset(init func(*Param, float64)) {
	for i := range n.Scale.W {
		n.Scale.W[i] = 1
	}
	init(n.Shift, 0)
	init(n.Lin.Bias, 0) // called after the layer's own Reset
	init(n.Gone, 1)     // a nil parameter is skipped
}

func TestInitOfOwnLayer(t *testing.T) {
	t.Parallel()
	n := &norm{Scale: NewParam(1, 3), Shift: NewParam(1, 3), Lin: NewLinear(2, 2, true), Loose: NewParam(2, 4)}
	n.Shift.W[0] = 5
	p := mustCollect(t, n)
	p.Init(1)
	if !slices.Equal(n.Scale.W, []float32{1, 1, 1}) || !slices.Equal(n.Shift.W, []float32{0, 0, 0}) || !slices.Equal(n.Lin.Bias.W, []float32{0, 0}) {
		t.Errorf("Reset did not set the parameters: %v %v %v", n.Scale.W, n.Shift.W, n.Lin.Bias.W)
	}
	if n.Lin.Weight.W[0] == 0 || n.Loose.W[0] == 0 || math.Abs(float64(n.Loose.W[0])) > 0.5 {
		t.Errorf("weights start as %v and %v", n.Lin.Weight.W, n.Loose.W)
	}
	n.Shift = NewParam(1, 3)
	expect.Error(t, Try(func() { p.Init(1) }), "*nn.norm", "not part of the model")
}

func TestParamsTable(t *testing.T) {
	t.Parallel()
	p := mustCollect(t, NewSAGEModel(ModelConfig{In: 3, Out: 2, Layers: 1}))
	want := `parameter             shape   weights
convs.0.lin_l.weight  [2, 3]  6
convs.0.lin_l.bias    [2]     2
convs.0.lin_r.weight  [2, 3]  6
total                         14`
	if got := p.String(); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
	if p.Get("convs.0.lin_l.bias") == nil || p.Get("nothing") != nil {
		t.Error("Get returns the wrong parameters")
	}
}
