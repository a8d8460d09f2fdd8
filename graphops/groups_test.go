package graphops_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// A group's edges are its rows, an empty group has none, and a row's only edge in the opposite block is from its group.
func TestGroupsAndSpread(t *testing.T) {
	t.Parallel()
	offsets := []int32{0, 3, 3, 5}
	groups, spread := graphops.Groups(offsets), graphops.Spread(offsets)
	offsets[1] = 1 // the blocks keep their own arrays
	for _, tc := range []struct {
		name string
		b    *graphops.Block
		want string
	}{
		{"groups", groups, "3 from 5: [0 3 3 5] [0 1 2 3 4]; by source [0 1 2 3 4 5] [0 0 0 2 2]"},
		{"spread", spread, "5 from 3: [0 1 2 3 4 5] [0 0 0 2 2]; by source [0 3 3 5] [0 1 2 3 4]"},
		{"no groups", graphops.Groups([]int32{0}), "0 from 0: [0] []; by source [0] []"},
		{"more groups than rows", graphops.Groups([]int32{0, 0, 1, 1}), "3 from 1: [0 0 1 1] [0]; by source [0 1] [1]"},
	} {
		tr := tc.b.Transposed()
		got := fmt.Sprintf("%d from %d: %v %v; by source %v %v", tc.b.NumDst, tc.b.NumSrc, tc.b.Indptr(), tc.b.Indices(), tr.Indptr, tr.Dst)
		if got != tc.want || !tc.b.Apart() || tc.b.SliceOf() != 0 {
			t.Errorf("%s: %s (apart %v, a slice of %d nodes), want %s", tc.name, got, tc.b.Apart(), tc.b.SliceOf(), tc.want)
		}
	}
	for want, bad := range map[string]func(){
		"graphops: Groups: there are no offsets; give the first row of each group and the number of rows, {0} for no groups":          func() { graphops.Groups(nil) },
		"graphops: Groups: the first group begins at row 1; it must begin at 0":                                                       func() { graphops.Groups([]int32{1, 2}) },
		"graphops: Spread: group 1 goes from row 3 to row 2; offsets must ascend":                                                     func() { graphops.Spread([]int32{0, 3, 2}) },
		"graphops: SelfLooped: the block's destinations are no sources (Groups and Spread make such blocks), so it has no self-loops": func() { groups.SelfLooped() },
	} {
		func() {
			defer func() {
				if r := recover(); r != want {
					t.Errorf("panic %v, want %q", r, want)
				}
			}()
			bad()
		}()
	}
}

func TestMeanLogDegree(t *testing.T) {
	t.Parallel()
	g, err := graphops.FromEdges(4, []int32{1, 2, 3, 0}, []int32{0, 0, 0, 2}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := g.MeanLogDegree(), (math.Log(4)+math.Log(2))/4; math.Abs(got-want) > 1e-15 {
		t.Errorf("the mean of log(d+1) over 3, 0, 1, 0 in-edges is %v, want %v", got, want)
	}
	if got := (&graphops.Graph{Indptr: []int64{0}}).MeanLogDegree(); got != 0 {
		t.Errorf("without nodes it is %v", got)
	}
}
