package convert

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// A relation whose reverse the data has gets no other by --reverses, and that is said.
func TestReversesThatAreThereAreSaid(t *testing.T) {
	s := &graphops.Schema{
		Nodes:     []graphops.NodeType{{Name: "user", Count: 2}, {Name: "item", Count: 2}},
		Relations: []graphops.Relation{{Src: "user", Name: "likes", Dst: "item"}, {Src: "item", Name: "rev_likes", Dst: "user"}, {Src: "user", Name: "knows", Dst: "user"}},
	}
	g, err := graphops.FromEdgesWith(4, []int32{0, 2, 0}, []int32{2, 0, 1}, graphops.EdgeData{Types: []uint16{0, 1, 2}}, graphops.BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(s, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := &dataset.Dataset{Graph: g}
	d.Meta.Name = "shop"
	var said notice.List
	d, err = Transform(Changes{Reverses: true})(d, said.Add)
	if err != nil || len(d.Schema().Relations) != 4 {
		t.Fatalf("%v: relations %v", err, d.Schema().Relations)
	}
	if len(said) != 1 || said[0].Count != 2 || !strings.Contains(said[0].String(), "likes") || strings.Contains(said[0].String(), "knows") {
		t.Errorf("said %v", said)
	}
}
