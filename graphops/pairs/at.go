package pairs

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// At makes a split of the edges at given positions of a graph ([graphops.Graph].Indices), for programs that predict something else
// of edges than whether they are there: numbers of them, for instance. Train, Val and Test have just these edges, in their order, a
// self-loop and each of several copies too, and no negatives. All other edges are messages, and those of Train are. Edges of Val
// and Test are in no graph of the split, nor are their copies and reverses, which [FindRelation] finds among the relations.
//
// Of o it uses Relation and Reverse. It returns an error for a position that is no edge, for an edge of another relation, and for
// one that is in two parts. Cost: O(nodes + edges).
func At(g *graphops.Graph, train, val, test []int64, o SplitOptions) (*Split, error) {
	if err := hasNodes(g); err != nil {
		return nil, err
	}
	s := &Split{All: g}
	if o.Relation != "" {
		r, err := FindRelation(g, o.Relation, o.Reverse)
		if err != nil {
			return nil, err
		}
		s.Relation = r
	}
	for i, at := range [][]int64{train, val, test} {
		for k, e := range at {
			switch {
			case e < 0 || e >= g.NumEdges():
				return nil, fmt.Errorf("pairs: entry %d of the edges for %s is %d; the graph has the edges 0 to %d", k, partNames[i], e, g.NumEdges()-1)
			case s.Relation != nil && int(g.EdgeTypes[e]) != s.Relation.Number:
				return nil, fmt.Errorf("pairs: entry %d of the edges for %s is edge %d, which is not of the relation %s", k, partNames[i], e, s.Relation)
			}
		}
		src, dst, _ := g.EdgesAt(at)
		[]*Part{&s.Train, &s.Val, &s.Test}[i].Edges = Edges{src, dst}
	}
	all := slices.Sorted(slices.Values(slices.Concat(train, val, test)))
	for i := range all[:max(0, len(all)-1)] {
		if all[i] == all[i+1] {
			return nil, fmt.Errorf("pairs: edge %d is there twice, in one part or in two", all[i])
		}
	}
	var err error
	if s.Training, err = s.without(g, s.Val.Edges.Join(s.Test.Edges)); err != nil {
		return nil, err
	}
	s.Message = s.Training
	return s, nil
}

// partNames are the parts of a split, for errors.
var partNames = [...]string{"training", "validation", "the test"}
