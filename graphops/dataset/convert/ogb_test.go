package convert

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// magFiles is a small graph in the files of ogbn-mag, decompressed.
func magFiles() map[string]string {
	return map[string]string{
		"raw/num-node-dict.csv":                                                  "paper,author,field_of_study,institution\n3,2,0,1\n",
		"raw/triplet-type-list.csv":                                              "author,writes,paper\nauthor,affiliated_with,institution\npaper,cites,paper\npaper,has_topic,field_of_study\n",
		"raw/nodetype-has-feat.csv":                                              "paper,author,field_of_study,institution\nTrue,False,False,False\n",
		"raw/nodetype-has-label.csv":                                             "paper,author,field_of_study,institution\nTrue,False,False,False\n",
		"raw/node-feat/paper/node-feat.csv":                                      "0.5,1\n-2,3\n4,5e-1\n",
		"raw/node-feat/paper/node_year.csv":                                      "2015\n2016\n2017\n",
		"raw/node-label/paper/node-label.csv":                                    "2\n0\n1\n",
		"raw/relations/author___writes___paper/edge.csv":                         "0,0\n0,1\n1,2\n",
		"raw/relations/author___writes___paper/num-edge-list.csv":                "3\n",
		"raw/relations/author___writes___paper/edge_reltype.csv":                 "0\n0\n0\n",
		"raw/relations/author___affiliated_with___institution/edge.csv":          "1,0\n",
		"raw/relations/author___affiliated_with___institution/num-edge-list.csv": "1\n",
		"raw/relations/paper___cites___paper/edge.csv":                           "0,2\n2,1\n",
		"raw/relations/paper___cites___paper/num-edge-list.csv":                  "2\n",
		"raw/relations/paper___has_topic___field_of_study/edge.csv":              "",
		"raw/relations/paper___has_topic___field_of_study/num-edge-list.csv":     "0\n",
		"split/time/nodetype-has-split.csv":                                      "paper,author,field_of_study,institution\nTrue,False,False,False\n",
		"split/time/paper/train.csv":                                             "0\n",
		"split/time/paper/valid.csv":                                             "2\n",
		"split/time/paper/test.csv":                                              "1\n",
	}
}

// The types, relations, features, labels and splits of a folder in the layout of ogbn-mag, in the order of OGB's loader.
func TestTypedOGB(t *testing.T) {
	t.Parallel()
	d, stats := typedConverted(t, putFile(t, magFiles()), Options{Name: "mag"})
	want := []graphops.NodeType{{Name: "author", Count: 2}, {Name: "field_of_study", Count: 0}, {Name: "institution", Count: 1}, {Name: "paper", Count: 3}}
	if stats.Format != "ogb-typed" || !slices.Equal(d.Schema().Nodes, want) {
		t.Fatalf("the format is %s, the types %v", stats.Format, d.Schema().Nodes)
	}
	if want := "mag (ogb-typed): 6 nodes, 6 edges of 4 relations, features of 1 type, 3 classes"; stats.String() != want {
		t.Errorf("the conversion is described as %q, want %q", stats, want)
	}
	if got := relationNames(d); !slices.Equal(got, []string{"author:affiliated_with:institution", "author:writes:paper", "paper:cites:paper", "paper:has_topic:field_of_study"}) {
		t.Errorf("the relations are %v", got)
	}
	edges := []string{"author 0 writes paper 0", "author 0 writes paper 1", "author 1 affiliated_with institution 0", "author 1 writes paper 2", "paper 0 cites paper 2", "paper 2 cites paper 1"}
	if got := edgesOf(t, d); !slices.Equal(got, edges) {
		t.Errorf("the edges are %v, want %v", got, edges)
	}
	if x := d.NodeFeatures[3].Dense; x.Cols != 2 || !slices.Equal(x.F32, []float32{0.5, 1, -2, 3, 4, 0.5}) || d.NodeFeatures[0].Cols() != 0 {
		t.Errorf("the features are %v", d.NodeFeatures)
	}
	if !slices.Equal(d.Labels, []int32{-1, -1, -1, 2, 0, 1}) || d.ClassesOf(3) != 3 || d.ClassesOf(0) != 0 {
		t.Errorf("the labels are %v", d.Labels)
	}
	for name, v := range map[string]int32{"train": 3, "val": 5, "test": 4} {
		if !slices.Equal(d.Splits[name], []int32{v}) {
			t.Errorf("the split %s is %v", name, d.Splits[name])
		}
	}
}

// Features of edges are those of the relations that have them.
func TestOGBEdgeFeatures(t *testing.T) {
	t.Parallel()
	files := magFiles()
	files["raw/relations/paper___cites___paper/edge-feat.csv"] = "1,2\n3,4\n"
	d, _ := typedConverted(t, putFile(t, files), Options{})
	sum := float32(0)
	for e, r := range d.Graph.EdgeTypes {
		x := make([]float32, 2)
		d.Graph.EdgeFeatures.CopyRow(x, int64(e))
		if d.Schema().Relations[r].Name == "cites" {
			sum += x[0] + 10*x[1]
		} else if x[0] != 0 || x[1] != 0 || d.EdgeFeatureDimOf(int(r)) != 0 {
			t.Errorf("an edge of another relation has the features %v", x)
		}
	}
	if d.EdgeFeatureDim() != 2 || sum != 64 {
		t.Errorf("there are %d features, with the sum %v", d.EdgeFeatureDim(), sum)
	}
}

// Folders that contradict themselves are refused with a sentence.
func TestOGBHostile(t *testing.T) {
	t.Parallel()
	const writes = "raw/relations/author___writes___paper/"
	for name, c := range map[string]struct {
		file, text string // "" removes the file
		words      []string
	}{
		"a node out of range":       {writes + "edge.csv", "0,0\n0,1\n1,3\n", []string{"edge.csv", "line 3 names the node 3", "the type paper has 3 nodes"}},
		"a negative node":           {writes + "edge.csv", "-1,0\n0,1\n1,2\n", []string{"line 1 names the node -1"}},
		"three ends":                {writes + "edge.csv", "0,0,1\n", []string{"line 1 has 3 numbers"}},
		"an edge is missing":        {writes + "edge.csv", "0,0\n", []string{"it has 1 edges, but num-edge-list says 3"}},
		"several graphs of edges":   {writes + "num-edge-list.csv", "1\n2\n", []string{"num-edge-list.csv", "it has 2 numbers"}},
		"a relation without a file": {writes + "edge.csv", "", []string{"edge.csv.gz is missing", "the edges of author:writes:paper"}},
		"a type out of range":       {"raw/triplet-type-list.csv", "author,writes,book\n", []string{"triplet-type-list.csv", `the end "book", which is no node type`}},
		"two fields":                {"raw/triplet-type-list.csv", "author,paper\n", []string{"line 1 has 2 fields"}},
		"a relation twice":          {"raw/triplet-type-list.csv", "author,writes,paper\nauthor,writes,paper\n", []string{"the relation author:writes:paper twice"}},
		"no relations":              {"raw/triplet-type-list.csv", "", []string{"triplet-type-list.csv.gz is missing"}},
		"too many nodes":            {"raw/num-node-dict.csv", "paper,author,field_of_study,institution\n3000000000,2,0,1\n", []string{"num-node-dict.csv", "at most 2147483647 nodes"}},
		"nodes that are no number":  {"raw/num-node-dict.csv", "paper,author,field_of_study,institution\nmany,2,0,1\n", []string{`the number of nodes of type "paper" is "many"`}},
		"several graphs":            {"raw/num-node-dict.csv", "paper,author\n3,2\n3,2\n", []string{"line 3: the folder holds several graphs"}},
		"counts without a type":     {"raw/num-node-dict.csv", "paper,author\n3\n", []string{"it names 2 node types and has values for 1"}},
		"only names":                {"raw/num-node-dict.csv", "paper,author\n", []string{"it has 1 lines"}},
		"features of other nodes":   {"raw/node-feat/paper/node-feat.csv", "1\n", []string{"node-feat.csv", "it has 1 lines, but there are 3 nodes of type paper"}},
		"labels of other nodes":     {"raw/node-label/paper/node-label.csv", "1\n1\n", []string{"it has labels for 2 nodes, but num-node-dict says 3"}},
		"several labels":            {"raw/node-label/paper/node-label.csv", "1,0\n1,0\n1,0\n", []string{"it has 2 labels a node"}},
		"a fraction of a class":     {"raw/node-label/paper/node-label.csv", "1\n1.5\n0\n", []string{"entry 1", "1.5 is not a whole number"}},
		"labels of no type":         {"raw/nodetype-has-label.csv", "book\nTrue\n", []string{`it names the node type "book"`}},
		"labels maybe":              {"raw/nodetype-has-label.csv", "paper\nmaybe\n", []string{"it is True or False"}},
		"a split out of range":      {"split/time/paper/test.csv", "7\n", []string{"test.csv", "the node 7 is out of range"}},
		"a part without a file":     {"split/time/paper/valid.csv", "", []string{"valid.csv.gz is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := magFiles()
			if files[c.file] = c.text; c.text == "" {
				delete(files, c.file)
			}
			typedRefused(t, putFile(t, files), Options{Format: "ogb-typed"}, c.words...)
		})
	}
	var notes []string
	files := magFiles()
	for name := range files {
		if strings.HasPrefix(name, "split/") {
			delete(files, name)
		}
	}
	d, _ := typedConverted(t, putFile(t, files), Options{Note: func(text string) { notes = append(notes, text) }})
	if !strings.Contains(strings.Join(notes, "\n"), "no official split") || len(d.Splits) == 0 {
		t.Errorf("without splits the notes are %q, and the splits %v", notes, d.SplitNames())
	}
}
