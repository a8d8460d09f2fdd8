package tensor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// Types that do not fit are an *Error that names them.
func TestAggregateTypedMisuse(t *testing.T) {
	b := graphops.HostBlock{NumDst: 1, NumSrc: 2, Indptr: []int64{0, 2}, Indices: []int32{0, 1}}.Block()
	for _, c := range []struct {
		name  string
		rows  int
		types []uint16
		op    tensor.Op
		want  string
	}{
		{"type out of range", 2, []uint16{0, 3}, tensor.Sum, "edge 1 has type 3"},
		{"a self-loop's type", 2, []uint16{0, graphops.LoopType}, tensor.Mean, "edge 1 has type 65535"},
		{"too few types", 2, []uint16{0}, tensor.Sum, "1 types"},
		{"no types", 2, nil, tensor.Sum, "0 types"},
		{"maximum", 2, []uint16{0, 1}, tensor.Max, "max"},
		{"rows", 3, []uint16{0, 1}, tensor.Sum, "2 sources"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				err, _ := recover().(error)
				var e *tensor.Error
				if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("it panics with %v, want an error with %q", err, c.want)
				}
			}()
			f := tensor.NewFwd(tensor.Config{})
			f.AggregateTyped(b, f.Input(c.rows, 1, make([]float32, c.rows), nil), c.types, f.Input(2, 1, []float32{1, 2}, nil), c.op)
		})
	}
}
