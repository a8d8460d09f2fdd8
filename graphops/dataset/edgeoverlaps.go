package dataset

import "fmt"

// EdgeOverlaps counts how the edges of validation and test of a dataset depend on its training edges; see
// [Dataset.EdgeOverlaps].
type EdgeOverlaps struct{ Val, Test Overlap }

// Overlap counts edges of a part that are training edges too, or that no training edge can tell about.
type Overlap struct {
	// Edges is the number of edges of the part, InTraining that of those that are training edges too: the same
	// source, relation and destination.
	Edges, InTraining int
	// Unseen is the number of edges with a node that no training edge has, and UnseenNodes that of such nodes.
	Unseen, UnseenNodes int
	// InVal is the number of edges of the test that are edges of the validation too.
	InVal int
}

// Notes are sentences about the overlaps, none if there are none.
func (o EdgeOverlaps) Notes() (notes []string) {
	for _, p := range []struct {
		name string
		Overlap
	}{{"validation", o.Val}, {"test", o.Test}} {
		if p.InTraining > 0 {
			notes = append(notes, fmt.Sprintf("%d of %d %s triples are training triples too; they measure memory, not prediction", p.InTraining, p.Edges, p.name))
		}
		if p.InVal > 0 {
			notes = append(notes, fmt.Sprintf("%d of %d %s triples are validation triples too", p.InVal, p.Edges, p.name))
		}
		if p.Unseen > 0 {
			notes = append(notes, fmt.Sprintf("%d of %d %s triples have an entity that is in no training triple (%d such entities); their ranks are random", p.Unseen, p.Edges, p.name, p.UnseenNodes))
		}
	}
	return notes
}

// EdgeOverlaps counts which edges of the splits val and test ([Dataset.EdgeSplits]) are training edges too, and which
// have nodes that no training edge has. All counts are 0 without a split of edges named train. Cost: a map of the edges
// of validation and test, and a pass over the training edges.
func (d *Dataset) EdgeOverlaps() (o EdgeOverlaps) {
	train, ok := d.EdgeSplits["train"]
	if !ok || d.Graph == nil {
		return o
	}
	type edge struct {
		src, dst int32
		kind     uint16
	}
	of := func(positions []int64, visit func(edge)) {
		src, dst, types := d.Graph.EdgesAt(positions)
		for i := range src {
			e := edge{src: src[i], dst: dst[i]}
			if types != nil {
				e.kind = types[i]
			}
			visit(e)
		}
	}
	held := map[edge]bool{} // whether it is a training edge
	for _, name := range []string{"val", "test"} {
		of(d.EdgeSplits[name], func(e edge) { held[e] = false })
	}
	seen := make([]bool, d.Nodes())
	of(train, func(e edge) {
		seen[e.src], seen[e.dst] = true, true
		if _, ok := held[e]; ok {
			held[e] = true
		}
	})
	inVal := map[edge]bool{}
	for _, p := range []struct {
		name string
		*Overlap
	}{{"val", &o.Val}, {"test", &o.Test}} {
		unseen := map[int32]bool{}
		of(d.EdgeSplits[p.name], func(e edge) {
			p.Edges++
			if held[e] {
				p.InTraining++
			}
			if !seen[e.src] || !seen[e.dst] {
				p.Unseen++
			}
			for _, v := range []int32{e.src, e.dst} {
				if !seen[v] {
					unseen[v] = true
				}
			}
			if p.name == "val" {
				inVal[e] = true
			} else if inVal[e] {
				p.InVal++
			}
		})
		p.UnseenNodes = len(unseen)
	}
	return o
}
