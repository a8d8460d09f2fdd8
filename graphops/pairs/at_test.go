package pairs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// A split of given positions predicts just these edges, also copies and loops, and no graph of it has an edge of validation or the
// test, a copy or the reverse of one.
func TestAt(t *testing.T) {
	// 0: 1 → 0, 1 and 2: 0 → 1, 3: 2 → 1, 4: 1 → 2, 5: 3 → 2, 6: 3 → 3
	g, err := graphops.FromEdges(4, []int32{0, 0, 1, 2, 1, 3, 3}, []int32{1, 1, 0, 1, 2, 2, 3}, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := pairs.At(g, []int64{5, 1}, []int64{2}, []int64{6}, pairs.SplitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Train.Src, []int32{3, 0}) || !slices.Equal(s.Train.Dst, []int32{2, 1}) || !slices.Equal(s.Val.Src, []int32{0}) || !slices.Equal(s.Test.Dst, []int32{3}) || s.Val.Neg.Len() != 0 {
		t.Errorf("%+v", s)
	}
	src, dst, _ := s.Message.EdgesAt([]int64{0, 1, 2})
	if s.Message.NumEdges() != 3 || !slices.Equal(src, []int32{2, 1, 3}) || !slices.Equal(dst, []int32{1, 2, 2}) || s.Training != s.Message {
		t.Errorf("the messages are %v → %v", src, dst)
	}
	if set := s.Excluded(s.Train.Edges); !set.Has(2, 3) || !set.Has(1, 0) || set.Has(2, 1) {
		t.Error("a step does not leave out its edges and their reverses alone")
	}
	typed, err := g.WithTypes(&graphops.Schema{
		Nodes:     []graphops.NodeType{{Name: "a", Count: 4}},
		Relations: []graphops.Relation{{Src: "a", Name: "pays", Dst: "a"}, {Src: "a", Name: "knows", Dst: "a"}},
	}, []uint16{0, 0, 0, 1, 0, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	if s, err = pairs.At(typed, []int64{1}, []int64{4}, nil, pairs.SplitOptions{Relation: "pays", Reverse: pairs.NoReverse}); err != nil {
		t.Fatal(err)
	}
	if s.Message.NumEdges() != 6 || !slices.Contains(s.Message.InNeighbors(1), 2) || len(s.Message.InNeighbors(2)) != 1 { // knows stays
		t.Errorf("%d messages, into 1 from %v and into 2 from %v", s.Message.NumEdges(), s.Message.InNeighbors(1), s.Message.InNeighbors(2))
	}
	for _, c := range []struct {
		g          *graphops.Graph
		train, val []int64
		relation   string
		want       string
	}{
		{g, []int64{7}, nil, "", "edges for training is 7; the graph has the edges 0 to 6"},
		{g, []int64{1}, []int64{1}, "", "edge 1 is there twice"},
		{typed, []int64{3}, nil, "pays", "edge 3, which is not of the relation a:pays:a"},
		{typed, []int64{3}, nil, "buys", `no relation "buys"`},
		{nil, nil, nil, "", "the graph is missing"},
	} {
		if _, err := pairs.At(c.g, c.train, c.val, nil, pairs.SplitOptions{Relation: c.relation}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want %q", err, c.want)
		}
	}
}
