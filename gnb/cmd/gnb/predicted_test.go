package main

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// A model of one column has the logit of the second of two classes.
func TestPredictedOfOneColumn(t *testing.T) {
	for name, c := range map[string]struct {
		row         []float32
		names       []string
		class       string
		probability float64
	}{
		"one column, above 0":      {[]float32{2}, nil, "1", 1 / (1 + math.Exp(-2))},
		"one column, below 0":      {[]float32{-1}, nil, "0", 1 / (1 + math.Exp(-1))},
		"one column, a class name": {[]float32{-1}, []string{"late"}, "0", 1 / (1 + math.Exp(-1))},
		"two columns":              {[]float32{0, 2}, []string{"no", "yes"}, "yes", 1 / (1 + math.Exp(-2))},
	} {
		ds := &gnb.Dataset{Meta: dataset.Metadata{ClassNames: c.names}}
		_, class, p := predicted{ds, &dataset.Matrix{Rows: 1, Cols: len(c.row), F32: c.row}, nil}.of(0)
		if class != c.class || math.Abs(p-c.probability) > 1e-6 {
			t.Errorf("%s: class %s with probability %v, want %s with %v", name, class, p, c.class, c.probability)
		}
	}
}
