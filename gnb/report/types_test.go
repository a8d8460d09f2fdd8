package report_test

import (
	"errors"
	"testing"

	"github.com/graphnb/graphnb/gnb/report"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Classes of one number of two types are different ones: a report is of one type, and has the names of its classes.
func TestTypes(t *testing.T) {
	g, err := graphops.FromEdgesWith(4, []int32{0, 2}, []int32{2, 1}, graphops.EdgeData{Types: []uint16{0, 1}}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g, err = g.WithTypes(&graphops.Schema{
		Nodes:     []graphops.NodeType{{Name: "paper", Count: 2}, {Name: "author", Count: 2}},
		Relations: []graphops.Relation{{Src: "paper", Name: "by", Dst: "author"}, {Src: "author", Name: "wrote", Dst: "paper"}},
	}, g.EdgeTypes)
	if err != nil {
		t.Fatal(err)
	}
	ds := &dataset.Dataset{
		Graph: g, Labels: []int32{0, 1, 0, -1}, Splits: map[string][]int32{"test": {0, 1, 2, 3}},
		Meta: dataset.Metadata{Name: "typed", NumClasses: 2, NodeTypes: []dataset.NodeType{
			{Name: "paper", Count: 2, NumClasses: 2, ClassNames: []string{"maths", "physics"}}, {Name: "author", Count: 2, NumClasses: 1, ClassNames: []string{"human"}},
		}},
	}
	logits := &dataset.Matrix{Rows: 4, Cols: 2, F32: []float32{1, 0, 1, 0, 1, 0, 0, 1}}
	if _, err := report.New(ds, logits, report.Options{}); !errors.Is(err, report.ErrTypes) {
		t.Errorf("labels of two types: %v", err)
	}
	r, err := report.New(ds, logits, report.Options{Type: "paper"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Nodes != 2 || r.Accuracy != 0.5 || r.Type != "paper" || r.Classes[0].Name != "maths" || r.Classes[1].Name != "physics" {
		t.Errorf("%+v", r)
	}
	if _, err := report.New(ds, logits, report.Options{Type: "venue"}); err == nil {
		t.Error("a type that does not exist is taken")
	}
	ds.Labels[2] = -1
	if r, err = report.New(ds, logits, report.Options{}); err != nil || r.Type != "paper" || r.Skipped != 0 {
		t.Errorf("one type with labels: %v, %+v", err, r)
	}
}
