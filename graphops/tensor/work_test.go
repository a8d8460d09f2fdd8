package tensor

import (
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// The work of a layer with an aggregation, counted by hand: three destinations, four sources and
// five edges; 2 columns in, 3 columns out.
func TestWorkOfALayer(t *testing.T) {
	b := graphops.HostBlock{NumDst: 3, NumSrc: 4, Indptr: []int64{0, 2, 4, 5}, Indices: []int32{0, 3, 1, 2, 3}}.Block()
	const d, s, e, in, out = 3, 4, 5, 2, 3
	w := Param{Name: "w", Rows: out, Cols: in, W: make([]float32, in*out), G: make([]float32, in*out)}
	var work Work
	f := NewFwd(Config{Threads: 1, Train: true, Work: &work})
	want := func(after string, flop, rows, stream int64) {
		t.Helper()
		if got := (Work{flop, 4 * rows, 4 * stream}); work != got {
			t.Errorf("%s: %+v, want %+v", after, work, got)
		}
		work = Work{}
	}
	x := f.Leaf(s, in, make([]float32, s*in), nil)
	want("the input", 0, 0, 0)
	h := f.Aggregate(b, x, ops.Sum)
	// One row is read per edge, plus indices and results in order.
	want("the sum", 0, e*in, e+d*in)
	y := f.Linear(h, f.Param(&w), nil)
	y.Data()
	want("the product", 2*d*in*out, 0, d*in+in*out+d*out)
	sum := f.SumAll(y)
	want("the loss", 0, 0, d*out)
	if err := f.Backward(sum, 1); err != nil {
		t.Fatal(err)
	}
	// The loss's gradient is spread to one value and to [d,out]. Two products follow, of which one
	// adds to the weights' gradient. Then the sum's rows go along each edge back to the sources.
	want("backward", 2*2*d*in*out, e*in,
		1+d*out+
			(d*out+out*in+d*in)+
			(d*out+d*in+2*in*out)+
			e+s*in)
}

// Counting work changes no bit of the results.
func TestWorkChangesNothing(t *testing.T) {
	b := graphops.HostBlock{NumDst: 2, NumSrc: 3, Indptr: []int64{0, 2, 3}, Indices: []int32{0, 2, 1}}.Block()
	pass := func(c Config) []float32 {
		c.Train, c.Seed = true, 7
		f := NewFwd(c)
		x := f.Leaf(3, 4, []float32{1, 2, 3, 4, -1, -2, -3, -4, .5, .25, .125, 0}, &ops.Space{})
		h := f.Dropout(f.ReLU(f.Aggregate(b, x, ops.Mean)), 0.5)
		if err := f.Backward(f.SumAll(f.Mul(h, h)), 1); err != nil {
			t.Fatal(err)
		}
		return append(append([]float32(nil), h.Data()...), x.Grad()...)
	}
	var work Work
	plain, metered := pass(Config{}), pass(Config{Work: &work})
	for i := range plain {
		if plain[i] != metered[i] {
			t.Errorf("element %d is %v, but %v if work is counted", i, plain[i], metered[i])
		}
	}
	if work.RowBytes == 0 || work.StreamBytes == 0 {
		t.Errorf("nothing was counted: %+v", work)
	}
}
