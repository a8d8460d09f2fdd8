package backendtest

import (
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/testkit/ref"
)

// csr is a sparse matrix [rows,cols], a third full, whose offsets start at 2;
// without values its elements are 1.
type csr struct {
	rows, cols int
	indptr     []int64
	indices    []int32
	values     []float32
}

func randomCSR(rows, cols int, values bool) csr {
	x := random(rows, cols)
	s := csr{rows: rows, cols: cols, indptr: []int64{2}, indices: []int32{-1, -1}}
	all := []float32{0, 0}
	for r := range rows {
		for c, v := range x.data[r*cols : (r+1)*cols] {
			if v > 0.4 && r%7 != 3 {
				s.indices = append(s.indices, int32(c))
				all = append(all, v)
			}
		}
		s.indptr = append(s.indptr, int64(len(s.indices)))
	}
	if values {
		s.values = all
	}
	return s
}

func (s csr) input(f *fwd, sp *tensor.Space) *tns {
	return f.SparseInput(s.rows, s.cols, s.indptr, s.indices, s.values, sp)
}

func (s csr) dense() mat {
	m := ref.New(s.rows, s.cols)
	for r := range s.rows {
		for i := s.indptr[r]; i < s.indptr[r+1]; i++ {
			v := 1.0
			if s.values != nil {
				v = float64(s.values[i])
			}
			m.Set(r, int(s.indices[i]), v)
		}
	}
	return m
}

// sparseCases are the operations that know sparse tensors, and two that do not.
func sparseCases(r, c int) []testCase {
	ids := &tensor.Space{IDs: make([]int32, r)}
	for i := range ids.IDs {
		ids.IDs[i] = int32(5 * i)
	}
	var cases []testCase
	for _, values := range []bool{false, true} {
		s := randomCSR(r, c, values)
		suffix := "/ones"
		if values {
			suffix = "/values"
		}
		lo, hi := r/3, r-r/4
		cases = append(cases, testCase{
			"Sparse/Linear" + suffix,
			[]input{random(33, c), random(1, 33)},
			func(f *fwd, x []*tns) *tns { return f.Linear(s.input(f, nil), x[0], x[1]) },
			func(x []mat) mat { return ref.Linear(s.dense(), x[0], x[1]) },
		}, testCase{
			"Sparse/MatMul" + suffix,
			[]input{random(c, 17)},
			func(f *fwd, x []*tns) *tns { return f.MatMul(s.input(f, nil), x[0]) },
			func(x []mat) mat { return ref.MatMul(s.dense(), x[0]) },
		}, testCase{
			"Sparse/Rows" + suffix,
			[]input{random(3, c)},
			func(f *fwd, x []*tns) *tns { return f.Linear(f.Rows(s.input(f, ids), lo, hi), x[0], nil) },
			func(x []mat) mat { return ref.Linear(ref.Rows(s.dense(), lo, hi), x[0], mat{}) },
		}, testCase{
			"Sparse/Dropout" + suffix,
			[]input{random(3, c)},
			func(f *fwd, x []*tns) *tns {
				h := f.Dropout(s.input(f, ids), 0.3)
				// Rows of a tensor after dropout, with dense and sparse uses.
				y := f.Linear(f.Rows(h, lo, r), x[0], nil)
				return f.Add(y, f.Linear(f.ReLU(f.Rows(h, lo, r)), x[0], nil))
			},
			func(x []mat) mat {
				h := ref.Dropout(s.dense(), spaceIDs(ids, r), config.Seed, config.Epoch, config.Step, 0, 0.3)
				h = ref.Rows(h, lo, r)
				both := ref.Zip(h, ref.Unary(ops.ReLUOp, h, 0), func(a, b float64) float64 { return a + b })
				return ref.Linear(both, x[0], mat{})
			},
		}, testCase{
			"Sparse/dense" + suffix,
			[]input{random(r, c)},
			func(f *fwd, x []*tns) *tns { return f.Mul(x[0], f.Tanh(s.input(f, nil))) },
			func(x []mat) mat {
				return ref.Zip(x[0], ref.Unary(ops.TanhOp, s.dense(), 0), func(a, b float64) float64 { return a * b })
			},
		})
	}
	return cases
}

// weighted is the operations with weights of edges, with c columns a head.
func weighted(b *graphops.Block, c int) []testCase {
	h := random(b.NumSrc, c).in(tensor.SrcSpace(b))
	w := slices.Clone(random(b.NumEdges(), 1).data)
	for i := range w {
		if i%5 == 2 {
			w[i] = 0
		}
	}
	rw := ref.From(len(w), 1, w)
	sum := func(x []mat) mat { return ref.AggregateHeads(b, x[0], rw) }
	const heads = 3
	multi := random(b.NumSrc, heads*c).in(tensor.SrcSpace(b))
	scores := random(b.NumEdges(), heads)
	return []testCase{
		{
			"AggregateWeighted/sum",
			[]input{h},
			func(f *fwd, x []*tns) *tns { return f.AggregateWeighted(b, x[0], w, tensor.Sum) },
			sum,
		}, {
			"AggregateWeighted/mean",
			[]input{h},
			func(f *fwd, x []*tns) *tns { return f.AggregateWeighted(b, x[0], w, tensor.Mean) },
			func(x []mat) mat {
				y := sum(x)
				inv := ref.New(b.NumDst, 1)
				for d := range inv.Data {
					inv.Data[d] = 1 / float64(max(1, b.InDegree(d)))
				}
				return ref.MulRows(y, inv)
			},
		}, {
			"AggregateWeighted/none",
			[]input{h},
			func(f *fwd, x []*tns) *tns { return f.AggregateWeighted(b, x[0], nil, tensor.Mean) },
			func(x []mat) mat { return ref.Aggregate(b, x[0], tensor.Mean) },
		}, {
			"AggregateHeads",
			[]input{multi, scores},
			func(f *fwd, x []*tns) *tns { return f.AggregateHeads(b, x[0], x[1]) },
			func(x []mat) mat { return ref.AggregateHeads(b, x[0], x[1]) },
		}, {
			"EdgeHeadDot",
			[]input{random(b.NumDst, multi.cols), multi},
			func(f *fwd, x []*tns) *tns { return f.EdgeHeadDot(b, x[0], x[1], heads) },
			func(x []mat) mat { return ref.EdgeHeadDot(b, x[0], x[1], heads) },
		}, {
			"EdgeSoftmax",
			[]input{scores},
			func(f *fwd, x []*tns) *tns { return f.EdgeSoftmax(b, x[0]) },
			func(x []mat) mat { return ref.EdgeSoftmax(b, x[0]) },
		}, {
			"attention",
			[]input{multi, scores},
			func(f *fwd, x []*tns) *tns {
				return f.HeadMean(f.AggregateHeads(b, x[0], f.Dropout(f.EdgeSoftmax(b, x[1]), 0.5)), heads)
			},
			func(x []mat) mat {
				pos := make([]int64, b.NumEdges())
				for e := range pos {
					pos[e] = b.Pos(b.Indptr()[0] + int64(e))
				}
				a := ref.Dropout(ref.EdgeSoftmax(b, x[1]), pos, config.Seed, config.Epoch, config.Step, 0, 0.5)
				return ref.HeadMean(ref.AggregateHeads(b, x[0], a), heads)
			},
		},
	}
}
