package convert

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// ogbGraphFiles are three graphs as OGB lays out ogbg-mol…: two tasks with missing labels, categories as features, edges once.
func ogbGraphFiles() map[string]string {
	return map[string]string{
		"raw/num-node-list.csv.gz": gz("3\n0\n2\n"), "raw/num-edge-list.csv.gz": gz("2\n0\n1\n"),
		"raw/edge.csv.gz":      gz("0,1\n1,2\n1,0\n"),
		"raw/node-feat.csv.gz": gz("5,0\n7,1\n5,0\n6,0\n5,1\n"), "raw/edge-feat.csv.gz": gz("0\n1\n2\n"),
		"raw/graph-label.csv.gz":         gz("1.0,\n0.0,1.0\n,0.0\n"),
		"split/scaffold/train.csv.gz":    gz("0\n"),
		"split/scaffold/valid.csv.gz":    gz("2\n"),
		"split/scaffold/test.csv.gz":     gz("1\n"),
		"mapping/mol.csv.gz":             gz("smiles\nC\n"),
		"processed/.keep":                "",
		"RELEASE_v1.txt":                 "",
		"raw/node_species.csv.unrelated": "",
	}
}

func TestOGBGraphs(t *testing.T) {
	t.Parallel()
	var said []string
	d, stats := converted(t, putFile(t, ogbGraphFiles()), Options{Undirected: true, Note: func(s string) { said = append(said, s) }})
	g := d.Graphs
	if stats.Format != "ogb" || !slices.Equal(d.GraphOffsets, []int64{0, 3, 3, 5}) || d.Edges() != 6 || !slices.Equal(g.MultiLabels.Data, []int8{1, -1, 0, 1, -1, 0}) || g.Metric() != dataset.MetricROCAUC {
		t.Errorf("%s: offsets %v, labels %v", d, d.GraphOffsets, g.MultiLabels)
	}
	if !slices.Equal(g.Splits["val"], []int32{2}) || !slices.Equal(d.Features.Row(1), []float32{0, 0, 1, 0, 1}) || d.EdgeFeatureDim() != 3 || !slices.Equal(d.Graph.InNeighbors(3), []int32{4}) {
		t.Errorf("splits %v, features %v of %v, edges %v", g.Splits, d.Features.Row(1), d.Meta.FeatureNames, d.Graph.Indices)
	}
	if all := strings.Join(said, "\n"); !strings.Contains(all, "2 columns of small whole numbers are categories, and become 5 one-hot features") || !strings.Contains(all, "labels that are unknown") {
		t.Errorf("it says %s", all)
	}
	files := ogbGraphFiles()
	files["raw/graph-label.csv.gz"] = gz("0.5\n-1.25\n3\n")
	d, _ = converted(t, putFile(t, files), Options{Features: "attributes"})
	if !slices.Equal(d.Graphs.Targets.F32, []float32{0.5, -1.25, 3}) || !slices.Equal(d.Features.Row(1), []float32{7, 1}) {
		t.Errorf("%s: targets %v, features %v", d, d.Graphs.Targets, d.Features.Row(1))
	}
	for name, c := range map[string][2]string{
		"raw/num-node-list.csv.gz":   {gz("3\n0\n"), "it has 2 numbers, but there are labels of 3 graphs"},
		"raw/num-edge-list.csv.gz":   {gz("2\n0\n2\n"), "it has 3 edges, but num-edge-list says 4"},
		"raw/edge.csv.gz":            {gz("0,1\n1,3\n1,0\n"), "edge 2 is 1 → 3, of graph 0, which has the nodes 0 to 2"},
		"raw/node-feat.csv.gz":       {gz("1\n2\n"), "it has 2 rows, but there are 5"},
		"raw/graph-label.csv.gz":     {gz("1\ninf\n2\n"), "line 2"},
		"split/scaffold/test.csv.gz": {gz("3\n"), "out of range"},
	} {
		files := ogbGraphFiles()
		files[name] = c[0]
		refused(t, putFile(t, files), Options{}, c[1])
	}
}
