package backendtest

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/internal/testkit/ref"
)

// edgeInputs are the operations on the features of a block's edges, in float32 and in float16, by
// positions in the graph and in a slice of it.
func edgeInputs(b *graphops.Block, c int) []testCase {
	if c == 0 {
		return nil // edges have at least one feature
	}
	var cases []testCase
	for _, name := range []string{"EdgeInput", "EdgeInput/f16", "EdgeInput/slice"} {
		first, edges := int(b.Indptr()[0]), b.NumEdges()
		total := first + edges + 3
		table := random(total, c).data
		x := &graphops.EdgeFeatures{Cols: c, F32: table}
		if name == "EdgeInput/f16" {
			x = &graphops.EdgeFeatures{Cols: c, F16: make([]uint16, len(table))}
			simd.ToHalf(x.F16, table)
			simd.FromHalf(table, x.F16)
		}
		g := (&graphops.Graph{Indptr: []int64{0, int64(total)}, Indices: make([]int32, total)}).WithEdgeData(x, nil)
		h := graphops.HostBlock{NumDst: b.NumDst, NumSrc: b.NumSrc, DstStart: b.DstStart, Indptr: b.Indptr(), Indices: b.Indices(), Graph: g}
		want := ref.New(edges, c)
		if name != "EdgeInput/slice" {
			h.EdgePos = []int64{}
		}
		for e := range edges {
			pos := first + e
			if h.EdgePos != nil {
				pos = (5*e + 1) % total
				h.EdgePos = append(h.EdgePos, int64(pos))
			}
			for i := range c {
				want.Set(e, i, float64(table[pos*c+i]))
			}
		}
		of, w := h.Block(), random(5, c)
		cases = append(cases, testCase{
			name,
			[]input{w},
			func(f *fwd, x []*tns) *tns {
				return f.AggregateEdges(of, f.Linear(f.EdgeInput(of, c), x[0], nil), tensor.Sum)
			},
			func(x []mat) mat { return ref.AggregateEdges(b, ref.Linear(want, x[0], mat{}), tensor.Sum) },
		})
	}
	return cases
}
