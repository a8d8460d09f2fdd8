package convert

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
)

func graphFiles() map[string]string {
	return map[string]string{
		"a.edges": "0 1\n1 2\n", "b.txt": "0 1 2.5\n", "c.mtx": "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n2 1\n", "d.txt": "0 1\n2 3\n",
		"labels.csv": "file,label,split,mass\nb,red,train,1.5\na.edges,blue,val,2.5\nc,red,test,\n",
	}
}

// Small graphs, each in a file of its own format, become one dataset in the order of the table; what is said of several is said once.
func TestGraphFiles(t *testing.T) {
	t.Parallel()
	var said []string
	kinds := map[string]columns.Kind{"label": columns.Label, "mass": columns.Target}
	d, stats := converted(t, putFile(t, graphFiles()), Options{Kinds: kinds, Undirected: true, Note: func(s string) { said = append(said, s) }})
	g := d.Graphs
	if stats.Format != "graph-files" || !slices.Equal(d.GraphOffsets, []int64{0, 2, 5, 8}) || d.Edges() != 8 || !slices.Equal(g.Labels, []int32{1, 0, 1}) || !slices.Equal(g.Meta.ClassNames, []string{"blue", "red"}) || g.Targets.F32[1] != 2.5 || g.Meta.TargetNames[0] != "mass" {
		t.Errorf("%s: offsets %v, labels %v, targets %v", d, d.GraphOffsets, g.Labels, g.Targets)
	}
	if !slices.Equal(d.Graph.InNeighbors(3), []int32{2, 4}) || d.Graph.EdgeWeights[0] != 2.5 || d.Graph.EdgeWeights[7] != 1 || !slices.Equal(g.Splits["val"], []int32{1}) || !d.Meta.Undirected {
		t.Errorf("node 3 has the neighbours %v, the weights are %v, the splits %v", d.Graph.InNeighbors(3), d.Graph.EdgeWeights, g.Splits)
	}
	if names, err := dataset.ReadNames(d.Dir(), "names.graph.txt"); err != nil || !slices.Equal(names, []string{"b", "a.edges", "c"}) {
		t.Errorf("the graphs are of the files %v (%v)", names, err)
	}
	if all := strings.Join(said, "\n"); !strings.Contains(all, "nothing was read of d.txt") {
		t.Errorf("it says %s", all)
	}
	// Folders of tables are graphs too, with features; 300 of them need two batches.
	files := map[string]string{"labels.csv": "file,y\n"}
	for i := range 300 {
		files["labels.csv"] += fmt.Sprintf("g%d,%d\n", i, i%2)
		files[fmt.Sprintf("g%d/nodes.csv", i)] = fmt.Sprintf("id,x\n1,%d\n2,3\n", i)
		files[fmt.Sprintf("g%d/edges.csv", i)] = "source,target\n1,2\n"
	}
	said = nil
	d, _ = converted(t, putFile(t, files), Options{Threads: 3, Note: func(s string) { said = append(said, s) }})
	if d.NumGraphs() != 300 || d.Features.F32[2*299] != 299 || d.Graphs.Labels[299] != 1 || len(d.Graphs.Splits["train"]) != 240 {
		t.Errorf("%s", d)
	}
	if len(said) > 3 {
		t.Errorf("it says %d sentences: %v", len(said), said)
	}
}

func TestHostileGraphFiles(t *testing.T) {
	t.Parallel()
	kinds := map[string]columns.Kind{"label": columns.Label, "mass": columns.Target}
	for file, c := range map[string][2]string{
		"a.edges":    {"0 1\n1 x\n", "line 2"},
		"b.txt":      {"SQLite format 3\x00\x10\x00", "SQLite"},
		"b.edges":    {"0 1\n", "is b.edges and b.txt; write the whole name"},
		"labels.csv": {"file,label,mass\nb,red,1\nz,blue,2\n", `line 3: the graph "z" is the name of no file`},
	} {
		files := graphFiles()
		files[file] = c[0]
		refused(t, putFile(t, files), Options{Kinds: kinds}, c[1])
	}
	for table, want := range map[string]string{
		"file,label,mass\nb,red,inf\n":           `mass is "inf"`,
		"file,label,mass\nb,red,heavy\n":         `mass is "heavy"`,
		"file,label,mass\nb,red,1\nb,blue,2\n":   "has a line already, line 2",
		"file,label,mass\n,red,1\n":              "line 2: the file of the graph is missing",
		"file,label,mass,split\nb,red,1,later\n": `the split is "later"`,
		"file,label,mass\nb,,\n":                 "every label is unknown",
		"file,label,mass\nb,1.5,2\n":             "--kinds label=target",
		"file,label,mass\n":                      "no graphs below its first line",
	} {
		files := graphFiles()
		files["labels.csv"] = table
		refused(t, putFile(t, files), Options{Kinds: kinds}, want)
	}
	files := graphFiles()
	files["labels.csv"] = "file,p,q\nb,1,2\n"
	refused(t, putFile(t, files), Options{}, "none is the label", "--kinds COLUMN=target")
}
