package nn

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
)

// Rows of edges have the right gradient, and rows that do not fit are an error that says which do.
func TestTransformerForwardEdges(t *testing.T) {
	t.Parallel()
	b := pygGraph(t, false).Block()
	c, plain := NewTransformerWith(3, 2, TransformerOptions{Heads: 2, EdgeDim: 4}), NewTransformer(3, 2)
	in := append(inputsOf(t, c, 8, 3), gradcheck.Random(14, 4, 9))
	gradcheck.Check(t, func(f *Fwd, x []*Tensor) *Tensor { return c.ForwardEdges(f, b, x[0], x[1]) }, in...)
	f := NewFwd(Config{})
	h := f.Input(8, 3, pygValues(24, 0), nil)
	rows := func(n, cols int) *Tensor { return f.Input(n, cols, make([]float32, n*cols), nil) }
	for want, run := range map[string]func(){
		"got none; give them":                  func() { c.ForwardEdges(f, b, h, nil) },
		"tensor [13,4] for a block of 14 edge": func() { c.ForwardEdges(f, b, h, rows(13, 4)) },
		"one row of 4 columns for each edge":   func() { c.ForwardEdges(f, b, h, rows(14, 3)) },
		"make it with EdgeDim 3":               func() { plain.ForwardEdges(f, b, h, rows(14, 3)) },
	} {
		if err := Try(run); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
