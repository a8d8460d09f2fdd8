package backendtest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/testkit/ref"
)

// input is one matrix that a case is differentiated by.
type input struct {
	rows, cols int
	data       []float32
	space      *tensor.Space
}

// testCase is an operation at one shape, twice: by a Fwd and by package ref.
type testCase struct {
	name   string
	inputs []input
	build  func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor
	want   func(x []ref.Matrix) ref.Matrix
}

// config is the configuration of every pass of the suite and of dropout's reference.
var config = tensor.Config{Train: true, Seed: 0x1234_5678_9abc_def0, Epoch: 3, Step: 5}

type (
	fwd = tensor.Fwd
	tns = tensor.Tensor
	mat = ref.Matrix
)

func random(rows, cols int) input {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	data := make([]float32, rows*cols)
	for i := range data {
		data[i] = float32(r.NormFloat64())
	}
	return input{rows: rows, cols: cols, data: data}
}

func (in input) in(sp *tensor.Space) input {
	in.space = sp
	return in
}

// dense is the operations on matrices, with r and c as rows and columns.
func dense(r, c int) []testCase {
	x, y := random(r, c), random(r, c)
	y.data = append([]float32(nil), y.data...)
	for i := range y.data {
		y.data[i] = y.data[i]*0.5 + 0.25
	}
	ids := &tensor.Space{IDs: make([]int32, r)}
	for i := range ids.IDs {
		ids.IDs[i] = int32(7 * i)
	}
	// With these no result of a layer norm is so near to 0, where ReLU has a corner, that
	// a central difference goes across.
	small, apart := random(1, c), random(1, c)
	small.data, apart.data = append([]float32(nil), small.data...), append([]float32(nil), apart.data...)
	for i, v := range apart.data {
		small.data[i] *= 0.02
		apart.data[i] = v + float32(math.Copysign(1, float64(v)))
	}
	cases := []testCase{
		{
			"MatMul/rows",
			[]input{x, random(c, 5)},
			func(f *fwd, x []*tns) *tns { return f.MatMul(x[0], x[1]) },
			func(x []mat) mat { return ref.MatMul(x[0], x[1]) },
		}, {
			"MatMul/inner",
			[]input{random(5, r), x},
			func(f *fwd, x []*tns) *tns { return f.MatMul(x[0], x[1]) },
			func(x []mat) mat { return ref.MatMul(x[0], x[1]) },
		}, {
			"Linear/bias",
			[]input{x, random(33, c), random(1, 33)},
			func(f *fwd, x []*tns) *tns { return f.Linear(x[0], x[1], x[2]) },
			func(x []mat) mat { return ref.Linear(x[0], x[1], x[2]) },
		}, {
			"Linear/none",
			[]input{x, random(3, c)},
			func(f *fwd, x []*tns) *tns { return f.Linear(x[0], x[1], nil) },
			func(x []mat) mat { return ref.Linear(x[0], x[1], mat{}) },
		}, {
			"Affine/sum, ReLU, dropout",
			[]input{x.in(ids), random(c, 21), random(3, 21), random(1, 21), random(r, 3)},
			func(f *fwd, x []*tns) *tns {
				y := f.AddRow(f.Add(f.MatMul(x[0], x[1]), f.MatMul(x[4], x[2])), x[3])
				return f.Dropout(f.ReLU(y), 0.3)
			},
			func(x []mat) mat {
				y := ref.AddRow(ref.Zip(ref.MatMul(x[0], x[1]), ref.MatMul(x[4], x[2]), func(a, b float64) float64 { return a + b }), x[3])
				return ref.Dropout(ref.Unary(ops.ReLUOp, y, 0), spaceIDs(ids, r), config.Seed, config.Epoch, config.Step, 0, 0.3)
			},
		}, {
			"Affine/dropout",
			[]input{x.in(ids), random(21, c)},
			func(f *fwd, x []*tns) *tns { return f.Dropout(f.Linear(x[0], x[1], nil), 0.6) },
			func(x []mat) mat {
				return ref.Dropout(ref.Linear(x[0], x[1], mat{}), spaceIDs(ids, r), config.Seed, config.Epoch, config.Step, 0, 0.6)
			},
		}, {
			"Affine/parts used twice",
			[]input{x, random(9, c), random(9, c), random(1, 9)},
			func(f *fwd, x []*tns) *tns {
				a, b := f.Linear(x[0], x[1], x[3]), f.Linear(x[0], x[2], x[3])
				return f.Add(f.Mul(f.ReLU(a), a), f.Add(b, f.Add(a, f.Linear(x[0], x[2], nil))))
			},
			func(x []mat) mat {
				sum := func(a, b float64) float64 { return a + b }
				a, b := ref.Linear(x[0], x[1], x[3]), ref.Linear(x[0], x[2], x[3])
				return ref.Zip(ref.Zip(ref.Unary(ops.ReLUOp, a, 0), a, func(a, b float64) float64 { return a * b }), ref.Zip(b, ref.Zip(a, ref.Linear(x[0], x[2], mat{}), sum), sum), sum)
			},
		}, {
			"AddRow",
			[]input{x, random(1, c)},
			func(f *fwd, x []*tns) *tns { return f.AddRow(x[0], x[1]) },
			func(x []mat) mat { return ref.AddRow(x[0], x[1]) },
		}, {
			"SumAll",
			[]input{x},
			func(f *fwd, x []*tns) *tns { return f.SumAll(x[0]) },
			func(x []mat) mat { return ref.Sum(x[0]) },
		}, {
			"Add",
			[]input{x, y},
			func(f *fwd, x []*tns) *tns { return f.Add(x[0], x[1]) },
			func(x []mat) mat { return ref.Zip(x[0], x[1], func(a, b float64) float64 { return a + b }) },
		}, {
			"Sub",
			[]input{x, y},
			func(f *fwd, x []*tns) *tns { return f.Sub(x[0], x[1]) },
			func(x []mat) mat { return ref.Zip(x[0], x[1], func(a, b float64) float64 { return a - b }) },
		}, {
			"Mul",
			[]input{x, y},
			func(f *fwd, x []*tns) *tns { return f.Mul(x[0], x[1]) },
			func(x []mat) mat { return ref.Zip(x[0], x[1], func(a, b float64) float64 { return a * b }) },
		}, {
			"Mul/square",
			[]input{x},
			func(f *fwd, x []*tns) *tns { return f.Mul(x[0], x[0]) },
			func(x []mat) mat { return x[0].Map(func(v float64) float64 { return v * v }) },
		}, {
			"MulRows",
			[]input{x, random(r, 1)},
			func(f *fwd, x []*tns) *tns { return f.MulRows(x[0], x[1]) },
			func(x []mat) mat { return ref.MulRows(x[0], x[1]) },
		}, {
			"LogSoftmax",
			[]input{x},
			func(f *fwd, x []*tns) *tns { return f.LogSoftmax(x[0]) },
			func(x []mat) mat { return ref.LogSoftmax(x[0]) },
		}, {
			"L2Normalize",
			[]input{x},
			func(f *fwd, x []*tns) *tns { return f.L2Normalize(x[0]) },
			func(x []mat) mat { return ref.L2Normalize(x[0]) },
		}, {
			"RowNorm",
			[]input{x},
			func(f *fwd, x []*tns) *tns { return f.RowNorm(x[0], 0.1) },
			func(x []mat) mat { return ref.RowNorm(x[0], 0.1) },
		}, {
			"LayerNorm",
			[]input{x, random(1, c), random(1, c)},
			func(f *fwd, x []*tns) *tns { return f.LayerNorm(x[0], x[1], x[2], 0.1) },
			layerNorm,
		}, {
			"LayerNorm/ReLU",
			[]input{x, small, apart},
			func(f *fwd, x []*tns) *tns { return f.LayerNormReLU(x[0], x[1], x[2], 0.1, 0) },
			func(x []mat) mat { return ref.Unary(ops.ReLUOp, layerNorm(x), 0) },
		}, {
			"LayerNorm/ReLU, dropout",
			[]input{x.in(ids), small, apart},
			func(f *fwd, x []*tns) *tns { return f.LayerNormReLU(x[0], x[1], x[2], 0.1, 0.3) },
			func(x []mat) mat {
				return ref.Dropout(ref.Unary(ops.ReLUOp, layerNorm(x), 0), spaceIDs(ids, r), config.Seed, config.Epoch, config.Step, 0, 0.3)
			},
		}, {
			"BatchNorm",
			[]input{x, random(1, c), random(1, c)},
			func(f *fwd, x []*tns) *tns { y, _, _ := f.BatchNorm(x[0], x[1], x[2], 0.1); return y },
			batchNorm,
		}, {
			"BatchNorm/ReLU",
			[]input{x, small, apart},
			func(f *fwd, x []*tns) *tns { y, _, _ := f.BatchNormReLU(x[0], x[1], x[2], 0.1, 0); return y },
			func(x []mat) mat { return ref.Unary(ops.ReLUOp, batchNorm(x), 0) },
		}, {
			"BatchNorm/ReLU, dropout",
			[]input{x.in(ids), small, apart},
			func(f *fwd, x []*tns) *tns { y, _, _ := f.BatchNormReLU(x[0], x[1], x[2], 0.1, 0.3); return y },
			func(x []mat) mat {
				return ref.Dropout(ref.Unary(ops.ReLUOp, batchNorm(x), 0), spaceIDs(ids, r), config.Seed, config.Epoch, config.Step, 0, 0.3)
			},
		}, {
			"NormBy",
			[]input{x, random(1, c), random(1, c)},
			func(f *fwd, x []*tns) *tns {
				mean, variance := statistics(c)
				return f.NormBy(x[0], f.Input(1, c, mean, nil), f.Input(1, c, variance, nil), x[1], x[2], 0.1)
			},
			normBy,
		}, {
			"NormBy/ReLU",
			[]input{x, small, apart},
			func(f *fwd, x []*tns) *tns {
				mean, variance := statistics(c)
				return f.NormByReLU(x[0], f.Input(1, c, mean, nil), f.Input(1, c, variance, nil), x[1], x[2], 0.1, 0)
			},
			func(x []mat) mat { return ref.Unary(ops.ReLUOp, normBy(x), 0) },
		}, {
			"MulCols",
			[]input{x, random(1, c)},
			func(f *fwd, x []*tns) *tns { return f.MulCols(x[0], x[1]) },
			func(x []mat) mat { return ref.MulCols(x[0], x[1]) },
		}, {
			"ScaleBy",
			[]input{x, random(1, 1)},
			func(f *fwd, x []*tns) *tns { return f.ScaleBy(x[0], x[1]) },
			func(x []mat) mat { return x[0].Map(func(v float64) float64 { return v * x[1].Data[0] }) },
		}, {
			"HeadMean",
			[]input{random(r, 3*c)},
			func(f *fwd, x []*tns) *tns { return f.HeadMean(x[0], 3) },
			func(x []mat) mat { return ref.HeadMean(x[0], 3) },
		}, {
			"HeadDot",
			[]input{random(r, 2*c), random(1, 2*c)},
			func(f *fwd, x []*tns) *tns { return f.HeadDot(x[0], x[1], 2) },
			func(x []mat) mat { return ref.HeadDot(x[0], x[1], 2) },
		}, {
			"Concat",
			[]input{x, random(r, 2), random(r, 0)},
			func(f *fwd, x []*tns) *tns { return f.Concat(x[0], x[1], x[2], x[0]) },
			func(x []mat) mat { return ref.Concat(x[0], x[1], x[2], x[0]) },
		}, {
			"Rows",
			[]input{x},
			func(f *fwd, x []*tns) *tns { return f.Rows(x[0], r/3, r-r/4) },
			func(x []mat) mat { return ref.Rows(x[0], r/3, r-r/4) },
		}, {
			"AddProducts",
			[]input{x.in(ids), y, random(c, c), random(1, c)},
			func(f *fwd, x []*tns) *tns {
				z := f.Tanh(f.AddProducts(x[0], f.MatMul(x[1], x[2])))
				return f.Mul(f.Dropout(f.ReLU(f.AddRow(f.AddProducts(z, f.MatMul(x[1], x[2])), x[3])), 0.3), x[0])
			},
			func(x []mat) mat {
				add := func(a, b float64) float64 { return a + b }
				z := ref.Unary(ops.TanhOp, ref.Zip(x[0], ref.MatMul(x[1], x[2]), add), 0)
				z = ref.Unary(ops.ReLUOp, ref.AddRow(ref.Zip(z, ref.MatMul(x[1], x[2]), add), x[3]), 0)
				z = ref.Dropout(z, spaceIDs(ids, r), config.Seed, config.Epoch, config.Step, 0, 0.3)
				return ref.Zip(z, x[0], func(a, b float64) float64 { return a * b })
			},
		}, {
			"Split",
			[]input{x, random(c, c)},
			func(f *fwd, x []*tns) *tns { // contributions to the whole before and after those to its parts
				z := f.Tanh(x[0])
				p := f.Split(x[0], []int{0, r / 3, r / 3, r})
				return f.Mul(f.Add(f.Stack(f.MatMul(p[0], x[1]), f.MatMul(p[2], x[1]), f.Mul(p[1], p[1])), z), x[0])
			},
			func(x []mat) mat {
				z := ref.Zip(ref.MatMul(x[0], x[1]), ref.Unary(ops.TanhOp, x[0], 0), func(a, b float64) float64 { return a + b })
				return ref.Zip(z, x[0], func(a, b float64) float64 { return a * b })
			},
		}, {
			"Split/some",
			[]input{x},
			func(f *fwd, x []*tns) *tns {
				p := f.Split(x[0], []int{0, r / 3, r - r/4, r})
				return f.Mul(p[1], p[1])
			},
			func(x []mat) mat {
				z := ref.Rows(x[0], r/3, r-r/4)
				return ref.Zip(z, z, func(a, b float64) float64 { return a * b })
			},
		}, {
			"Dropout",
			[]input{x.in(ids)},
			func(f *fwd, x []*tns) *tns { return f.Dropout(f.Dropout(x[0], 0), 0.3) },
			func(x []mat) mat {
				return ref.Dropout(x[0], spaceIDs(ids, r), config.Seed, config.Epoch, config.Step, 1, 0.3)
			},
		}, {
			"Dropout/all",
			[]input{x.in(ids)},
			func(f *fwd, x []*tns) *tns { return f.Dropout(x[0], 1) },
			func(x []mat) mat { return ref.New(r, c) },
		}, {
			"Stack",
			[]input{x, random(3, c), y},
			func(f *fwd, x []*tns) *tns { return f.Tanh(f.Stack(x[0], x[1], x[2], x[0])) },
			func(x []mat) mat { return ref.Unary(ops.TanhOp, ref.Stack(x[0], x[1], x[2], x[0]), 0) },
		}, {
			"Custom",
			[]input{x, y},
			cubeTimes,
			func(x []mat) mat { return ref.Zip(x[0], x[1], func(a, b float64) float64 { return a * a * a * b }) },
		}, {
			"CustomSet",
			[]input{x},
			func(f *fwd, x []*tns) *tns { // the input has a gradient before and after
				square := func(x *tns) *tns {
					return f.CustomSet("square", []*tns{x}, r, c, func(out []float32) {
						for i, v := range x.Data() {
							out[i] = v * v
						}
					}, func(dOut []float32, dIn [][]float32) {
						for i, v := range x.Data() {
							dIn[0][i] = 2 * v * dOut[i]
						}
					})
				}
				return f.Mul(f.Add(square(x[0]), square(x[0])), x[0])
			},
			func(x []mat) mat { return x[0].Map(func(v float64) float64 { return 2 * v * v * v }) },
		},
	}
	cases = append(cases, sparseCases(r, c)...)
	for _, u := range []struct {
		op    ops.UnaryOp
		name  string
		alpha float64
		run   func(f *fwd, x *tns) *tns
	}{
		{ops.ScaleOp, "Scale", -1.5, func(f *fwd, x *tns) *tns { return f.Scale(x, -1.5) }},
		{ops.ReLUOp, "ReLU", 0, (*fwd).ReLU},
		{ops.LeakyReLUOp, "LeakyReLU", 0.2, func(f *fwd, x *tns) *tns { return f.LeakyReLU(x, 0.2) }},
		{ops.ELUOp, "ELU", 1, (*fwd).ELU},
		{ops.SigmoidOp, "Sigmoid", 0, (*fwd).Sigmoid},
		{ops.TanhOp, "Tanh", 0, (*fwd).Tanh},
		{ops.ExpOp, "Exp", 0, (*fwd).Exp},
		{ops.GELUOp, "GELU", 0, (*fwd).GELU},
		{ops.SqrtOp, "Sqrt", 0.3, func(f *fwd, x *tns) *tns { return f.Sqrt(x, 0.3) }},
		{ops.ReciprocalOp, "Reciprocal", 7, func(f *fwd, x *tns) *tns { return f.Reciprocal(x, 7) }},
	} {
		cases = append(cases, testCase{
			u.name,
			[]input{x},
			func(f *fwd, x []*tns) *tns { return u.run(f, x[0]) },
			func(x []mat) mat { return ref.Unary(u.op, x[0], u.alpha) },
		})
	}
	return cases
}

// cubeTimes is a³·b by Custom, one gradient set and the other added.
func cubeTimes(f *fwd, x []*tns) *tns {
	a, b := x[0], x[1]
	return f.Custom("cubeTimes", x, a.Rows(), a.Cols(), func(out []float32) {
		av, bv := a.Data(), b.Data()
		for i := range out {
			out[i] += av[i] * av[i] * av[i] * bv[i]
		}
	}, func(dOut []float32, dIn [][]float32) {
		av, bv := a.Data(), b.Data()
		for i, g := range dOut {
			if dIn[0] != nil {
				dIn[0][i] = g * 3 * av[i] * av[i] * bv[i]
			}
			if dIn[1] != nil {
				dIn[1][i] += g * av[i] * av[i] * av[i]
			}
		}
	})
}

func spaceIDs(sp *tensor.Space, rows int) []int64 {
	ids := make([]int64, rows)
	for r := range ids {
		ids[r] = sp.ID(r)
	}
	return ids
}

// graph is the operations on a block, with c columns.
func graph(b *graphops.Block, c int) []testCase {
	h := random(b.NumSrc, c).in(tensor.SrcSpace(b))
	perDst := random(b.NumDst, c)
	msg := random(b.NumEdges(), c)
	dst := func(x mat) mat { return ref.Rows(x, b.DstStart, b.DstStart+b.NumDst) }
	cases := append(edgeInputs(b, c), []testCase{
		{
			"Dst",
			[]input{h},
			func(f *fwd, x []*tns) *tns { return f.Dst(b, x[0]) },
			func(x []mat) mat { return dst(x[0]) },
		}, {
			"GatherSrc",
			[]input{h},
			func(f *fwd, x []*tns) *tns { return f.GatherSrc(b, x[0]) },
			func(x []mat) mat { return ref.GatherSrc(b, x[0]) },
		}, {
			"GatherDst/sources",
			[]input{h},
			func(f *fwd, x []*tns) *tns { return f.GatherDst(b, x[0]) },
			func(x []mat) mat { return ref.GatherDst(b, dst(x[0])) },
		}, {
			"GatherDst/destinations",
			[]input{perDst},
			func(f *fwd, x []*tns) *tns { return f.GatherDst(b, x[0]) },
			func(x []mat) mat { return ref.GatherDst(b, x[0]) },
		}, {
			"Propagate",
			[]input{h},
			func(f *fwd, x []*tns) *tns {
				return f.Propagate(b, x[0], func(f *fwd, src, dst *tns) *tns {
					return f.Mul(src, f.Tanh(f.Sub(src, dst)))
				}, tensor.Mean)
			},
			func(x []mat) mat {
				m := ref.Zip(ref.GatherSrc(b, x[0]), ref.GatherDst(b, dst(x[0])), func(s, d float64) float64 { return s * math.Tanh(s-d) })
				return ref.AggregateEdges(b, m, tensor.Mean)
			},
		}, {
			"Dropout/edges",
			[]input{h},
			func(f *fwd, x []*tns) *tns { return f.Dropout(f.GatherSrc(b, x[0]), 0.5) },
			func(x []mat) mat {
				pos := make([]int64, b.NumEdges())
				for e := range pos {
					pos[e] = b.Pos(b.Indptr()[0] + int64(e))
				}
				return ref.Dropout(ref.GatherSrc(b, x[0]), pos, config.Seed, config.Epoch, config.Step, 0, 0.5)
			},
		}, {
			"SAGE",
			[]input{h, random(4, c), random(1, 4), random(4, c)},
			func(f *fwd, x []*tns) *tns {
				y := f.Add(f.Linear(f.Aggregate(b, x[0], tensor.Mean), x[1], x[2]), f.Linear(f.Dst(b, x[0]), x[3], nil))
				return f.Dropout(f.ReLU(y), 0.25)
			},
			func(x []mat) mat {
				y := ref.Zip(ref.Linear(ref.Aggregate(b, x[0], tensor.Mean), x[1], x[2]), ref.Linear(dst(x[0]), x[3], mat{}), func(a, b float64) float64 { return a + b })
				ids := make([]int64, b.NumDst)
				for d := range ids {
					ids[d] = int64(b.DstID(d))
				}
				return ref.Dropout(ref.Unary(ops.ReLUOp, y, 0), ids, config.Seed, config.Epoch, config.Step, 0, 0.25)
			},
		},
	}...)
	cases = append(cases, tableRows(b, c)...)
	cases = append(cases, weighted(b, c)...)
	cases = append(cases, typedEdges(b, c)...)
	for _, op := range []tensor.Op{tensor.Mean, tensor.Sum, tensor.Max} {
		cases = append(cases, testCase{
			"Aggregate/" + op.String(),
			[]input{h},
			func(f *fwd, x []*tns) *tns { return f.Aggregate(b, x[0], op) },
			func(x []mat) mat { return ref.Aggregate(b, x[0], op) },
		}, testCase{
			"AggregateEdges/" + op.String(),
			[]input{msg},
			func(f *fwd, x []*tns) *tns { return f.AggregateEdges(b, x[0], op) },
			func(x []mat) mat { return ref.AggregateEdges(b, x[0], op) },
		})
	}
	return cases
}

type namedBlock struct {
	name string
	*graphops.Block
}

// blocks are graphs that can be drawn by hand, the ways a block can lie in its
// arrays, and random ones of the odd sizes.
func blocks() []namedBlock {
	whole := &graphops.Graph{Indptr: []int64{0, 2, 2, 5, 6, 7}, Indices: []int32{1, 2, 0, 3, 4, 3, 0}}
	cycle := &graphops.Graph{Indptr: []int64{0, 1, 2, 3}, Indices: []int32{2, 0, 1}}
	bs := []namedBlock{
		{"nothing", graphops.HostBlock{Indptr: []int64{0}}.Block()},
		{"no destinations", graphops.HostBlock{NumSrc: 3, Indptr: []int64{0}}.Block()},
		{"one isolated node", graphops.HostBlock{NumDst: 1, NumSrc: 1, Indptr: []int64{0, 0}}.Block()},
		{"self loop", graphops.HostBlock{NumDst: 1, NumSrc: 1, Indptr: []int64{0, 1}, Indices: []int32{0}}.Block()},
		{"duplicate edge", graphops.HostBlock{NumDst: 2, NumSrc: 3, Indptr: []int64{0, 3, 4}, Indices: []int32{2, 2, 1, 2}}.Block()},
		{"star", graphops.HostBlock{NumDst: 1, NumSrc: 5, Indptr: []int64{0, 4}, Indices: []int32{1, 2, 3, 4}}.Block()},
		{"cycle", cycle.Block()},
		{"graph", whole.Block()},
		{"slice of a graph", whole.Slice(2, 4)},
		{"last node of a graph", whole.Slice(4, 5)},
		{"sampled", graphops.HostBlock{
			NumDst: 2, NumSrc: 4, Indptr: []int64{0, 2, 3}, Indices: []int32{2, 3, 0},
			EdgePos: []int64{1 << 33, 17, 4}, SrcIDs: []int32{9, 3, 1 << 30, 0},
		}.Block()},
		{"sampled slice", graphops.HostBlock{
			NumDst: 2, NumSrc: 4, DstStart: 1, Indptr: []int64{1, 3, 4}, Indices: []int32{99, 2, 3, 0, 99},
			EdgePos: []int64{5, 8, 2}, SrcIDs: []int32{9, 3, 5, 0},
		}.Block()},
	}
	for _, n := range []int{31, 32, 33} {
		bs = append(bs, namedBlock{fmt.Sprintf("random %d", n), randomBlock(n, 2*n)})
	}
	return bs
}

// randomBlock has skewed degrees, some of them 0, and destinations in its middle.
func randomBlock(dst, src int) *graphops.Block {
	r := rand.New(rand.NewPCG(uint64(dst), 5))
	b := graphops.HostBlock{NumDst: dst, NumSrc: src, DstStart: (src - dst) / 2, Indptr: []int64{3}, Indices: []int32{-1, -1, -1}}
	for range dst {
		for range r.IntN(4) * r.IntN(4) {
			b.Indices = append(b.Indices, r.Int32N(int32(src)))
		}
		b.Indptr = append(b.Indptr, int64(len(b.Indices)))
	}
	return b.Block()
}

func batchNorm(x []mat) mat { return ref.AddRow(ref.MulCols(ref.ColNorm(x[0], 0.1), x[1]), x[2]) }

// statistics are a mean and a variance of each of c columns.
func statistics(c int) (mean, variance []float32) {
	mean, variance = make([]float32, c), make([]float32, c)
	for i := range mean {
		mean[i], variance[i] = float32(i%5)/4-0.5, float32(i%3)/2
	}
	return mean, variance
}

// normBy is a batch norm by [statistics].
func normBy(x []mat) mat {
	y := x[0].Map(func(v float64) float64 { return v })
	mean, variance := statistics(y.Cols)
	for i := range y.Data {
		k := i % y.Cols
		y.Data[i] = (y.Data[i] - float64(mean[k])) / math.Sqrt(float64(variance[k])+0.1)
	}
	return ref.AddRow(ref.MulCols(y, x[1]), x[2])
}

func layerNorm(x []mat) mat { return ref.AddRow(ref.MulCols(ref.RowNorm(x[0], 0.1), x[1]), x[2]) }
