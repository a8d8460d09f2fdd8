package dataset

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// Triples of validation and test that training has too, and entities that it lacks, are counted.
func TestEdgeOverlaps(t *testing.T) {
	schema := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "entity", Count: 6}}, Relations: []graphops.Relation{{Src: "entity", Name: "r", Dst: "entity"}, {Src: "entity", Name: "q", Dst: "entity"}}}
	type triple struct {
		h, t int32
		r    uint16
		part string
	}
	all := []triple{
		{0, 1, 0, "train"},
		{1, 2, 0, "train"},
		{2, 3, 1, "train"},
		{0, 1, 0, "val"},
		{0, 1, 1, "val"}, // the second is of another relation
		{0, 1, 0, "test"},
		{2, 3, 1, "test"},
		{0, 1, 1, "test"},
		{3, 2, 1, "test"},
		{4, 5, 0, "test"},
		{4, 0, 0, "test"},
	}
	var src, dst []int32
	var data graphops.EdgeData
	for i, x := range all {
		src, dst = append(src, x.h), append(dst, x.t)
		data.Types, data.Times = append(data.Types, x.r), append(data.Times, int64(i))
	}
	g, err := graphops.FromEdgesWith(6, src, dst, data, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	splits := map[string][]int64{}
	for e, i := range g.EdgeTimes {
		splits[all[i].part] = append(splits[all[i].part], int64(e))
	}
	if g, err = g.WithEdgeData(nil, nil).WithTypes(schema, g.EdgeTypes); err != nil {
		t.Fatal(err)
	}
	d := &Dataset{Graph: g, EdgeSplits: splits}
	o := d.EdgeOverlaps()
	if want := (Overlap{Edges: 2, InTraining: 1}); o.Val != want {
		t.Errorf("validation: %+v, want %+v", o.Val, want)
	}
	if want := (Overlap{Edges: 6, InTraining: 2, Unseen: 2, UnseenNodes: 2, InVal: 2}); o.Test != want {
		t.Errorf("test: %+v, want %+v", o.Test, want)
	}
	if text := strings.Join(o.Notes(), "\n"); !strings.Contains(text, "2 of 6 test triples are training triples too") || !strings.Contains(text, "2 such entities") {
		t.Errorf("the notes are %q", text)
	}
	delete(d.EdgeSplits, "train")
	if o := d.EdgeOverlaps(); len(o.Notes()) != 0 {
		t.Errorf("without training edges: %v", o.Notes())
	}
}
