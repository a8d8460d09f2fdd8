package main

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
)

// gnb data info prints the types of a dataset whose parts alone have the edges, with the features that each type had.
func TestSchemaTableOfParts(t *testing.T) {
	ds := dataset.Karate()
	n := ds.Nodes()
	s := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "member", Count: n}, {Name: "hall"}}, Relations: []graphops.Relation{{Src: "member", Name: "knows", Dst: "member"}}}
	g, err := ds.Graph.WithTypes(s, make([]uint16, ds.Edges()))
	if err != nil {
		t.Fatal(err)
	}
	ds = ds.WithGraph(g)
	ds.Features, ds.SparseFeatures = nil, nil
	ds.NodeFeatures = []dataset.NodeFeatures{{Dense: &dataset.Matrix{Rows: n, Cols: 2, F32: make([]float32, 2*n)}}, {}}
	for _, c := range []struct {
		o     divided.Options
		edges string
	}{{divided.Options{}, "156"}, {divided.Options{NoTopology: true}, "in the parts"}} {
		parts := dividedtest.Parts(t, ds, c.o)
		got := strings.Join(strings.Fields(schemaTable(parts, relationRows(parts))), " ")
		if want := "node type nodes features classes member 34 2 2 hall 0 none none relation edges member:knows:member " + c.edges; got != want {
			t.Errorf("the table is %q, want %q", got, want)
		}
	}
}
