package convert

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// dglFiles is a dataset as DGL's documentation writes it, with users whose ids are neither sorted nor from 0.
func dglFiles() map[string]string {
	return map[string]string{
		"meta.yaml": `dataset_name: mini_hetero_dataset  # a comment
edge_data:
- file_name: edges_0.csv
  etype: [user, follow, user]
- file_name: edges_1.csv
  etype:
  - user
  - like
  - item
node_data:
  - file_name: "nodes_0.csv"
    ntype: user
  - file_name: nodes_1.csv
    ntype: item
    node_id_field: sku
`,
		"nodes_0.csv": "node_id,label,train_mask,val_mask,test_mask,feat\n20,1,True,False,False,\"0.5, 1.5\"\n3,0,False,True,False,\"[2, 3]\"\n10,1,False,False,True,\"4,5\"\n",
		"nodes_1.csv": "sku\nb2\na1\n",
		"edges_0.csv": "src_id,dst_id,feat\n3,10,\"1,2\"\n20,3,\"3,4\"\n",
		"edges_1.csv": "src_id,dst_id,label\n10,a1,1\n3,b2,0\n",
	}
}

// The tables of meta.yaml become types in its order, and nodes are numbered by ascending id.
func TestDGL(t *testing.T) {
	t.Parallel()
	d, stats := typedConverted(t, putFile(t, dglFiles()), Options{EdgeFeatures: "feat"})
	want := []graphops.NodeType{{Name: "user", Count: 3}, {Name: "item", Count: 2}}
	if stats.Format != "dgl-csv" || d.Name() != "mini_hetero_dataset" || !slices.Equal(d.Schema().Nodes, want) {
		t.Fatalf("the format is %s, the name %s, the types %v", stats.Format, d.Name(), d.Schema().Nodes)
	}
	if got := relationNames(d); !slices.Equal(got, []string{"user:follow:user", "user:like:item"}) {
		t.Errorf("the relations are %v", got)
	}
	edges := []string{"user 0 follow user 1", "user 0 like item 1", "user 1 like item 0", "user 2 follow user 0"}
	if got := edgesOf(t, d); !slices.Equal(got, edges) {
		t.Errorf("the edges are %v, want %v", got, edges)
	}
	if x := d.NodeFeatures[0].Dense; x.Cols != 2 || !slices.Equal(x.F32, []float32{2, 3, 4, 5, 0.5, 1.5}) {
		t.Errorf("the features are %v", x)
	}
	if !slices.Equal(d.Labels, []int32{0, 1, 1, -1, -1}) || !slices.Equal(d.Splits["train"], []int32{2}) || !slices.Equal(d.Splits["val"], []int32{0}) || !slices.Equal(d.Splits["test"], []int32{1}) {
		t.Errorf("the labels are %v, the splits %v", d.Labels, d.Splits)
	}
	if d.EdgeFeatureDim() != 2 {
		t.Errorf("an edge has %d features", d.EdgeFeatureDim())
	}
	if got, err := dataset.ReadNames(d.Dir(), "names.user.txt"); err != nil || !slices.Equal(got, []string{"3", "10", "20"}) {
		t.Errorf("the names of users are %v, %v", got, err)
	}
	if got, err := dataset.ReadNames(d.Dir(), "names.item.txt"); err != nil || !slices.Equal(got, []string{"a1", "b2"}) {
		t.Errorf("the names of items are %v, %v", got, err)
	}
}

// A dataset of one type and one relation has DGL's names for them.
func TestDGLOneType(t *testing.T) {
	t.Parallel()
	d, _ := typedConverted(t, putFile(t, map[string]string{
		"meta.yaml": "dataset_name: mini\nedge_data:\n- file_name: edges.csv\nnode_data:\n- file_name: nodes.csv\n",
		"nodes.csv": "node_id,graph_id\n0,0\n1,0\n",
		"edges.csv": "src_id,dst_id,graph_id\n0,1,0\n",
	}), Options{})
	if d.Schema().Nodes[0].Name != "_V" || d.Schema().Relations[0].String() != "_V:_E:_V" || d.NodeFeatures != nil {
		t.Errorf("the types are %v and %v, the features %v", d.Schema().Nodes, d.Schema().Relations, d.NodeFeatures)
	}
}

// Folders that contradict themselves are refused with a sentence.
func TestDGLHostile(t *testing.T) {
	t.Parallel()
	meta := func(old, with string) map[string]string {
		files := dglFiles()
		if !strings.Contains(files["meta.yaml"], old) {
			t.Fatalf("meta.yaml has no %q", old)
		}
		files["meta.yaml"] = strings.Replace(files["meta.yaml"], old, with, 1)
		return files
	}
	put := func(file, text string) map[string]string {
		files := dglFiles()
		if files[file] = text; text == "" {
			delete(files, file)
		}
		return files
	}
	for name, c := range map[string]struct {
		files map[string]string
		words []string
	}{
		"a type out of range":     {meta("[user, follow, user]", "[user, follow, shop]"), []string{"edges_0.csv", `the end "shop"`}},
		"two names":               {meta("[user, follow, user]", "[user, user]"), []string{"meta.yaml", "has the etype", "a source type, a name and a destination type"}},
		"a word for a relation":   {meta("[user, follow, user]", "follow"), []string{"meta.yaml", "line 4", "cannot unmarshal"}},
		"a type twice":            {meta("ntype: item", "ntype: user"), []string{`two tables of the node type "user"`}},
		"a relation twice":        {meta("- like\n  - item", "- follow\n  - user"), []string{"edges_1.csv", `"a1" is the id of no node of type user`}},
		"a table that is missing": {put("nodes_1.csv", ""), []string{"nodes_1.csv is missing", "the nodes of type item"}},
		"a file elsewhere":        {meta("edges_0.csv", "../edges_0.csv"), []string{"it is a file of the folder"}},
		"no file":                 {meta("file_name: edges_0.csv", "name: edges_0.csv"), []string{`has the file_name ""`}},
		"no nodes":                {meta("node_data:", "nodes:"), []string{"it has no list node_data"}},
		"a separator":             {meta("edge_data:", "separator: '|'\nedge_data:"), []string{`the separator is "|"`}},
		"braces":                  {meta("[user, follow, user]", "{a: b}"), []string{"meta.yaml", "line 4", "cannot unmarshal"}},
		"a tab":                   {meta("  etype:\n", "\tetype:\n"), []string{"meta.yaml", "found a tab character"}},
		"an open list":            {meta("[user, follow, user]", "[user,"), []string{"meta.yaml", "line 4", "did not find expected"}},
		"no column of ids":        {put("nodes_1.csv", "id\nb2\n"), []string{"nodes_1.csv", `no column is named "sku"`}},
		"several graphs":          {put("nodes_1.csv", "sku,graph_id\nb2,0\na1,1\n"), []string{"line 3", "datasets of one graph are read"}},
		"several graphs of edges": {put("edges_0.csv", "src_id,dst_id,graph_id\n3,10,0\n3,10,1\n"), []string{"line 3", "datasets of one graph are read"}},
		"lists that differ":       {put("nodes_0.csv", "node_id,feat\n3,\"1,2\"\n10,\"1\"\n20,\"1,2\"\n"), []string{"line 3", "has 1 numbers, and that of the first node 2"}},
		"two splits":              {put("nodes_0.csv", "node_id,train_mask,val_mask\n3,1,1\n10,0,0\n20,0,0\n"), []string{"line 2", "in the splits train and val"}},
		"no mask":                 {put("nodes_0.csv", "node_id,train_mask\n3,maybe\n"), []string{"a mask is 0 or 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			typedRefused(t, putFile(t, c.files), Options{Format: "dgl-csv"}, c.words...)
		})
	}
}

// No text makes the reader of meta.yaml panic or run without end.
func FuzzMeta(f *testing.F) {
	f.Add([]byte(dglFiles()["meta.yaml"]))
	f.Add([]byte("a: &a [x, x]\nb: [*a, *a]\nnode_data: *a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := parseMeta(text); err == nil && (len(m.Nodes) == 0 || len(m.Edges) == 0) {
			t.Errorf("%q has no tables and no error", text)
		}
	})
}
