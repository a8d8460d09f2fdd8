package nn

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/expect"
)

// The aggregations are those of the messages: here of the sources 3, -1 and 4, and of one source alone, and none.
func TestPNAAggregationsByHand(t *testing.T) {
	t.Parallel()
	b := graphops.HostBlock{NumDst: 3, NumSrc: 4, Indptr: []int64{0, 3, 4, 4}, Indices: []int32{0, 1, 2, 3}}.Block()
	c := NewPNA(1, 1, PNAOptions{Aggregators: pnaAggregators})
	f := NewFwd(Config{})
	got := f.Concat(c.aggregations(f, b, f.Input(4, 1, []float32{3, -1, 4, 7000}, nil))...).Data()
	want := []float64{ // mean, min, max, std, sum, var
		2, -1, 4, 2.1602468994692865, 6, 14. / 3,
		7000, 7000, 7000, 0, 7000, 0, // the difference of two means would be far from 0
		0, 0, 0, 0, 0, 0,
	}
	expect.Near(t, "aggregations", got, want, 0, 1e-6)
}

func TestPNAErrors(t *testing.T) {
	t.Parallel()
	b := pygGraph(t, false).Block()
	f := NewFwd(Config{})
	h := f.Input(8, 4, make([]float32, 32), &Space{})
	zero := NewPNA(4, 2, PNAOptions{})
	zero.AvgLogDegree.W[0] = 0
	for want, bad := range map[string]func(){
		"the layer is nil; create it with NewPNA":                           func() { (*PNAConv)(nil).Forward(f, b, h) },
		`Aggregators has "median"; choose of mean, min, max, std, sum, var`: func() { NewPNA(4, 2, PNAOptions{Aggregators: []string{"median"}}) },
		"Scalers is empty; choose at least one of identity":                 func() { NewPNA(4, 2, PNAOptions{Scalers: []string{}}) },
		"LogDegree is -1":           func() { NewPNA(4, 2, PNAOptions{LogDegree: -1}) },
		"EdgeDim is -2":             func() { NewPNA(4, 2, PNAOptions{EdgeDim: -2}) },
		"the mean of log(d+1) is 0": func() { zero.Forward(f, b, h) },
		"h is [8,4] and the layer was made for 5 columns": func() { NewPNA(5, 2, PNAOptions{}).Forward(f, b, h) },
	} {
		if err := Try(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}
