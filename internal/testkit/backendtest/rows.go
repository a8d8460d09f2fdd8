package backendtest

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/internal/testkit/ref"
)

// tableRows are the operations on an input that is rows of a table, and one that
// makes it a matrix.
func tableRows(b *graphops.Block, c int) []testCase {
	cases := tableRowsOf(b, c, "RowsInput", "SourceRows", func(x []float32) tensor.Table { return tensor.Table{F32: x} })
	return append(cases, tableRowsOf(b, c, "RowsInput/f16", "SourceRows/f16", func(x []float32) tensor.Table {
		half := make([]uint16, len(x))
		simd.ToHalf(half, x)
		simd.FromHalf(x, half)
		return tensor.Table{F16: half}
	})...)
}

// tableRowsOf returns the cases for tables that store makes of float32 elements, which it may
// round.
func tableRowsOf(b *graphops.Block, c int, rowsInput, sourceRows string, store func([]float32) tensor.Table) []testCase {
	const nodes = 19
	table := random(nodes, c)
	stored := store(table.data)
	ids := make([]int32, b.NumSrc)
	picked := ref.New(b.NumSrc, c)
	for s := range ids {
		ids[s] = int32(7 * s % nodes)
		for i := range c {
			picked.Set(s, i, float64(table.data[int(ids[s])*c+i]))
		}
	}
	in := func(f *fwd) *tns { return f.TableRows(stored, c, ids, tensor.SrcSpace(b)) }
	w := random(5, c)
	times := func(op func(f *fwd) *tns, want func() mat) testCase {
		return testCase{"", []input{w}, func(f *fwd, x []*tns) *tns { return f.Linear(op(f), x[0], nil) }, func(x []mat) mat { return ref.Linear(want(), x[0], mat{}) }}
	}
	var cases []testCase
	for _, op := range []tensor.Op{tensor.Mean, tensor.Sum, tensor.Max} {
		tc := times(func(f *fwd) *tns { return f.Aggregate(b, in(f), op) }, func() mat { return ref.Aggregate(b, picked, op) })
		tc.name = rowsInput + "/Aggregate/" + op.String()
		cases = append(cases, tc)
	}
	weights := random(b.NumEdges(), 1).data
	for e := range weights {
		if e%5 == 3 {
			weights[e] = 0
		}
	}
	tc := times(func(f *fwd) *tns { return f.AggregateWeighted(b, in(f), weights, tensor.Sum) }, func() mat {
		return ref.AggregateHeads(b, picked, ref.From(len(weights), 1, weights))
	})
	tc.name = rowsInput + "/AggregateWeighted"
	cases = append(cases, tc)
	tc = times(func(f *fwd) *tns { return f.Dst(b, in(f)) }, func() mat { return ref.Rows(picked, b.DstStart, b.DstStart+b.NumDst) })
	tc.name = rowsInput + "/Dst"
	cases = append(cases, tc)
	// The sources' own rows: by their ids, and where these are their numbers.
	for _, named := range []bool{true, false} {
		host := graphops.HostBlock{NumDst: b.NumDst, NumSrc: b.NumSrc, DstStart: b.DstStart, Indptr: b.Indptr(), Indices: b.Indices()}
		own := random(b.NumSrc, c)
		from := store(own.data)
		want, name := ref.From(b.NumSrc, c, own.data), sourceRows+"/numbers"
		if named {
			host.SrcIDs, from, want, name = ids, stored, picked, sourceRows+"/ids"
		}
		of := host.Block()
		tc := times(func(f *fwd) *tns {
			x := f.SourceTable(from, c, of)
			return f.Add(f.Aggregate(of, x, tensor.Sum), f.Dst(of, x))
		}, func() mat {
			sum := ref.Aggregate(b, want, tensor.Sum)
			return ref.Zip(sum, ref.Rows(want, b.DstStart, b.DstStart+b.NumDst), func(a, b float64) float64 { return a + b })
		})
		tc.name = name
		cases = append(cases, tc)
	}
	// All rows of a table, and some of them.
	whole := random(b.NumSrc, c)
	all := store(whole.data)
	lo, hi := b.NumSrc/3, b.NumSrc-b.NumSrc/4
	tc = times(func(f *fwd) *tns { return f.Rows(f.TableInput(all, b.NumSrc, c, nil), lo, hi) }, func() mat {
		return ref.Rows(ref.From(b.NumSrc, c, whole.data), lo, hi)
	})
	tc.name = rowsInput + "/all"
	cases = append(cases, tc)
	return append(cases, testCase{
		rowsInput + "/matrix",
		[]input{w},
		func(f *fwd, x []*tns) *tns { return f.Linear(f.Scale(in(f), 2), x[0], nil) },
		func(x []mat) mat {
			return ref.Linear(picked.Map(func(v float64) float64 { return 2 * v }), x[0], mat{})
		},
	})
}
