package tables

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/testneed"
)

// many writes tables of three graphs, whose nodes have ids of their own within each graph and come in another order.
func manyTables(t *testing.T, change map[string]string) (string, Files) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"graphs.csv": "graph,name,class,weight,activity,split\nb,x,yes,1,0.5,train\na,y,no,3,,train\nc,z,yes,2,1.5,test\n",
		"nodes.csv":  "graph,id,atom,charge\na,1,C,1\na,2,O,3\nb,1,C,5\nb,2,N,5\na,3,C,2\nb,3,F,7\n",
		"edges.csv":  "graph,source,target,bond\na,1,2,single\na,2,3,double\nb,1,2,single\nb,3,1,single\n",
	}
	for name, text := range change {
		files[name] = text
	}
	write(t, dir, files)
	f, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, f
}

// Tables with a column of graphs become a dataset of many graphs: ids within graphs, nodes in the order of the graphs, features
// fitted to the nodes of training graphs, and a graph without nodes.
func TestGraphs(t *testing.T) {
	dir, f := manyTables(t, nil)
	var said notice.List
	o := Options{Undirected: true, Encode: "rw:2", Kinds: map[string]Kind{"activity": Target, "atom": Category, "bond": Category, "class": Label}, Notice: func(n notice.Notice) { said.Add(n) }}
	ds := read(t, dir+"/ds", f, o)
	g := ds.Graphs
	if !slices.Equal(ds.GraphOffsets, []int64{0, 3, 6, 6}) || ds.Edges() != 8 || ds.EdgeFeatureDim() != 2 {
		t.Fatalf("%s: the offsets are %v", ds, ds.GraphOffsets)
	}
	if !slices.Equal(g.Labels, []int32{1, 0, 1}) || !slices.Equal(g.Meta.ClassNames, []string{"no", "yes"}) || g.Targets.F32[0] != 0.5 || !math.IsNaN(float64(g.Targets.F32[1])) || !slices.Equal(g.Meta.TargetNames, []string{"activity"}) {
		t.Errorf("labels %v of %v, targets %v of %v", g.Labels, g.Meta.ClassNames, g.Targets.F32, g.Meta.TargetNames)
	}
	if !slices.Equal(g.Splits["train"], []int32{0, 1}) || !slices.Equal(g.Splits["test"], []int32{2}) || g.FeatureDim() != 1 || g.Features.F32[0] >= 0 {
		t.Errorf("the splits are %v, the graphs' features %v", g.Splits, g.Features)
	}
	// In the order b, a: atoms C N F C O C, charges 5 5 7 1 3 2.
	if want := []string{"atom=C", "atom=F", "atom=N", "atom=O", "charge"}; !slices.Equal(ds.Meta.FeatureNames[:5], want) || ds.Features.Row(1)[2] != 1 || ds.Features.Row(4)[3] != 1 || !(ds.Features.Row(2)[4] > ds.Features.Row(0)[4]) {
		t.Errorf("the features are %v: %v", ds.Meta.FeatureNames, ds.Features.F32)
	}
	if got := ds.Graph.InNeighbors(3); !slices.Equal(got, []int32{4}) {
		t.Errorf("node 1 of graph a has the neighbours %v", got)
	}
	if names, err := dataset.ReadNames(ds.Dir(), dataset.GraphNamesFile); err != nil || !slices.Equal(names, []string{"b", "a", "c"}) {
		t.Errorf("the graphs' ids are %v (%v)", names, err)
	}
	for _, want := range []string{"sorted by the order of their graphs", "no node has the id", `the column "name" has another value for most graphs`, `the target "activity" is missing; these graphs`} {
		if !strings.Contains(lines(said), want) {
			t.Errorf("the notices lack %q:\n%s", want, lines(said))
		}
	}
	if own := ds.Meta.FeatureNames; own[len(own)-1] != "rw 2" {
		t.Errorf("the features are %v", own)
	}
	recipe, err := ReadRecipe(ds.Dir())
	if err != nil || !recipe.Nodes[0].Local || recipe.Graphs == nil {
		t.Fatalf("the recipe is %v (%v)", recipe, err)
	}
	// Tables of new graphs are read by the same recipe, and have the same features.
	dir, f = manyTables(t, map[string]string{
		"graphs.csv": "graph,weight\nq,3\n", "nodes.csv": "graph,id,atom,charge\nq,1,N,5\nq,2,C,2\n", "edges.csv": "graph,source,target,bond\nq,1,2,double\n",
	})
	more := read(t, dir+"/more", f, Options{Recipe: recipe})
	if more.NumGraphs() != 1 || more.FeatureDim() != 7 || !slices.Equal(more.Features.Row(0)[:5], ds.Features.Row(1)[:5]) || !slices.Equal(more.Features.Row(1)[:5], ds.Features.Row(5)[:5]) || more.Features.Row(0)[6] != 1 || more.Graphs.Features.F32[0] != g.Features.F32[1] || more.Edges() != 2 {
		t.Errorf("%s: the features of new nodes are %v", more, more.Features.F32)
	}
	if _, err := Append(t.Context(), dir+"/appended", ds, f, AppendOptions{Quiet: true}); err == nil || !strings.Contains(err.Error(), "Options.Recipe") {
		t.Errorf("appended graphs: %v", err)
	}
}

// Splits of graphs by the options replace those of the table, and features are fitted to the training graphs among them.
func TestSplitsOfGraphs(t *testing.T) {
	graphs, nodes := "graph,weight,y,split\n", "graph,id,x\n"
	for i := range 30 {
		graphs += fmt.Sprintf("g%d,%d,%d.5,test\n", i, i, i)
		nodes += fmt.Sprintf("g%d,1,%d\ng%d,2,3\n", i, i, i)
	}
	change := map[string]string{"graphs.csv": graphs, "nodes.csv": nodes, "edges.csv": "graph,source,target\ng0,1,2\n"}
	dir, f := manyTables(t, change)
	ds := read(t, dir+"/ds", f, Options{Quiet: true, Split: "folds:5", Seed: 3})
	if ds.Graphs.SplitSets() != 5 || len(ds.Graphs.Splits["train"]) != 18 || len(ds.Graphs.Splits["test@4"]) != 6 {
		t.Errorf("%s", ds)
	}
	// A deviation of 1 and a mean of 0 over the training graphs, of their own feature and of their nodes'.
	var sum, nodeSum float64
	for _, g := range ds.Graphs.Splits["train"] {
		sum += float64(ds.Graphs.Features.F32[g])
		lo, hi := ds.GraphSpan(g)
		for v := lo; v < hi; v++ {
			nodeSum += float64(ds.Features.F32[v])
		}
	}
	if math.Abs(sum) > 1e-4 || math.Abs(nodeSum) > 1e-4 {
		t.Errorf("over the training graphs the features add up to %v, and those of their nodes to %v", sum, nodeSum)
	}
	for split, want := range map[string]string{"stratified": "no classes to divide by", "folds:2": "from 3 to 1000", "nowhere": "nor the path"} {
		if _, err := Read(t.Context(), dir+"/no", f, Options{Quiet: true, Split: split}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", split, err, want)
		}
	}
	f.Graphs = ""
	if _, err := Read(t.Context(), dir+"/no", f, Options{Quiet: true, Split: "random"}); err == nil || !strings.Contains(err.Error(), "graphs.csv") {
		t.Errorf("splits of one graph: %v", err)
	}
}

func TestHostileGraphs(t *testing.T) {
	kinds := map[string]Kind{"atom": Category, "bond": Category, "class": Label}
	for name, c := range map[string]struct {
		file, text string
		kinds      map[string]Kind
		want       string
	}{
		"an unknown graph":      {"nodes.csv", "graph,id,x\na,1,1\nd,1,2\n", nil, `line 3: the graph "d" is the id of no row of the table of graphs`},
		"no graph":              {"nodes.csv", "graph,id,x\na,1,1\n,2,2\n", nil, "line 3: the graph is missing"},
		"no column":             {"nodes.csv", "id,x\n1,1\n2,3\n", nil, "no column is the graph of the nodes"},
		"no column of edges":    {"edges.csv", "source,target\n1,2\n", nil, "no column is the graph of the edges"},
		"twice in a graph":      {"nodes.csv", "graph,id,x\na,1,1\na,1,2\n", nil, "the id \"1\" is that of row 1 too"},
		"an edge's graph":       {"edges.csv", "graph,source,target\nc,1,2\n", nil, `the source "1" is the id of no node of the graph "c"`},
		"two graphs of one id":  {"graphs.csv", "graph,class\na,yes\na,no\n", nil, "each graph has an id of its own"},
		"text to predict":       {"graphs.csv", "graph,y\na,high\nb,low\nc,2.5\n", map[string]Kind{"y": Target}, `"high" (`},
		"infinite":              {"graphs.csv", "graph,y\na,1.5\nb,inf\nc,2.5\n", map[string]Kind{"y": Target}, "inf"},
		"too large":             {"graphs.csv", "graph,y\na,1.5\nb,1e40\nc,2.5\n", map[string]Kind{"y": Target}, "too large for float32"},
		"one class":             {"graphs.csv", "graph,class\na,yes\nb,yes\nc,yes\n", nil, "one class leaves nothing to predict"},
		"a table without ids":   {"graphs.csv", "a,class\n1.5,yes\n2.5,no\n", nil, "no column is the id of the graphs"},
		"an edge between":       {"nodes.csv", "graph,id,x\na,1,1\nb,2,2\n", map[string]Kind{"edges.graph": Skip}, "the edge leads from a node of the graph"},
		"another graph's edges": {"nodes.csv", "graph,id,x\na,1,1\na,2,2\na,3,2\n", nil, "the row is of the graph"},
	} {
		dir, f := manyTables(t, map[string]string{c.file: c.text})
		o := Options{Quiet: true, Kinds: map[string]Kind{}}
		for column, kind := range kinds {
			if c.file == "graphs.csv" && column == "class" && !strings.Contains(c.text, "class") || c.file == "nodes.csv" && column == "atom" || c.file == "edges.csv" && column == "bond" {
				continue
			}
			o.Kinds[column] = kind
		}
		for column, kind := range c.kinds {
			o.Kinds[column] = kind
		}
		_, err := Read(t.Context(), dir+"/ds", f, o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
	dir, f := manyTables(t, nil)
	f.Graphs = ""
	if _, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true, Kinds: map[string]Kind{"graph": Graph}}); err == nil || !strings.Contains(err.Error(), "there is no table of graphs") {
		t.Errorf("a column of graphs without a table of them: %v", err)
	}
	dir, f = manyTables(t, map[string]string{"graphs.csv": "graph,y\na,2.5\nb,2.5\nc,2.5\n"})
	var said notice.List
	read(t, dir+"/ds", f, Options{Kinds: map[string]Kind{"bond": Category}, Notice: func(n notice.Notice) { said.Add(n) }, Fit: "all"})
	if !strings.Contains(lines(said), `every known value of the target "y" is 2.5`) {
		t.Errorf("of equal targets it says\n%s", lines(said))
	}
}

// ESOL's tables become molecules with the measured solubility to predict, in one call.
func TestESOL(t *testing.T) {
	src := testneed.RealData(t, "graphs/esol")
	f, err := Folder(src)
	if err != nil {
		t.Fatal(err)
	}
	ds := read(t, t.TempDir()+"/esol", f, Options{Kinds: map[string]Kind{"atomic_number": Category}, Encode: "rw:8,laplacian:2"})
	if n := len(ds.Meta.FeatureNames); ds.FeatureDim() != n || ds.Meta.FeatureNames[n-1] != "laplacian 2" || ds.Meta.FeatureNames[n-10] != "rw 1" {
		t.Errorf("with encodings the features are %v", ds.Meta.FeatureNames)
	}
	// Sizes of the tables, and the first molecule's measured value and bonds, as their files say.
	if ds.NumGraphs() != 1128 || ds.Nodes() != 14991 || ds.Edges() != 30856 || !ds.Meta.Undirected || ds.Graphs.Targets.F32[0] != -0.77 || ds.Graphs.Meta.TargetNames[0] != "logsol" || ds.GraphOffsets[1] != 32 {
		t.Errorf("%s: the first graph has %d nodes and the target %v", ds, ds.GraphOffsets[1], ds.Graphs.Targets.F32[0])
	}
	if fmt.Sprint(ds.Meta.EdgeFeatureNames[:4]) != "[bond=AROMATIC bond=DOUBLE bond=SINGLE bond=TRIPLE]" || ds.Graphs.FeatureDim() != 0 || !slices.Contains(ds.Meta.FeatureNames, "atomic_number=17") {
		t.Errorf("the features are %v and %v, and %d of a graph", ds.Meta.FeatureNames, ds.Meta.EdgeFeatureNames, ds.Graphs.FeatureDim())
	}
}
