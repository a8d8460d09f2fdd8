package dataset

import (
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// planted returns a planted partition; package datasets, which has the generator, imports this one.
func planted(t testing.TB, nodes, features int) *Dataset {
	t.Helper()
	p := graphops.PlantedDraw{Nodes: nodes, Classes: 5, Features: features, Degree: 16, Homophily: 0.62, Noise: 2.3, Key: 1}
	p.Assign()
	src, dst := p.DrawEdges(func(int) {}, func(int) bool { return true })
	g, err := graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	d := &Dataset{
		Graph: g, Features: &Matrix{Rows: nodes, Cols: features, F32: p.DrawFeatures(func(int) bool { return true })},
		Labels: p.Class, Splits: p.DrawSplits(), Meta: Metadata{Name: "planted", NumClasses: 5, Undirected: true},
	}
	d.Describe()
	return d
}
