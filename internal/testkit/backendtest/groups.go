package backendtest

import (
	"fmt"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/testkit/ref"
)

// runGroups: operations on blocks whose destinations are no sources, with more groups than rows, empty groups, and a group
// whose sum a device divides.
func runGroups(t *testing.T, be ops.Backend) {
	for _, g := range []struct {
		name    string
		offsets []int32
		cols    int
	}{
		{"no groups", []int32{0}, 3},
		{"empty", []int32{0, 0, 0, 1, 1}, 3},
		{"small", []int32{0, 3, 3, 4, 11}, 8},
		{"long", []int32{0, 2, 602, 602, 605}, 5},
	} {
		for _, tc := range grouped(graphops.Groups(g.offsets), graphops.Spread(g.offsets), g.cols) {
			t.Run(fmt.Sprintf("%s/%s", g.name, tc.name), func(t *testing.T) { check(t, be, tc) })
		}
	}
}

func grouped(pool, spread *graphops.Block, c int) []testCase {
	rows, groups := random(pool.NumSrc, c), random(pool.NumDst, c)
	cases := []testCase{{
		"Spread",
		[]input{groups},
		func(f *fwd, x []*tns) *tns { return f.Aggregate(spread, x[0], tensor.Sum) },
		func(x []mat) mat { return ref.Aggregate(spread, x[0], tensor.Sum) },
	}, {
		"attention",
		[]input{rows, groups},
		func(f *fwd, x []*tns) *tns {
			return f.AggregateHeads(pool, x[0], f.EdgeSoftmax(pool, f.EdgeHeadDot(pool, x[1], x[0], 1)))
		},
		func(x []mat) mat {
			return ref.AggregateHeads(pool, x[0], ref.EdgeSoftmax(pool, ref.EdgeHeadDot(pool, x[1], x[0], 1)))
		},
	}}
	for _, op := range []tensor.Op{tensor.Mean, tensor.Sum, tensor.Max} {
		cases = append(cases, testCase{
			op.String(),
			[]input{rows},
			func(f *fwd, x []*tns) *tns { return f.Aggregate(pool, x[0], op) },
			func(x []mat) mat { return ref.Aggregate(pool, x[0], op) },
		})
	}
	return cases
}
