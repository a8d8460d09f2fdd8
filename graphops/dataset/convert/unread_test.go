package convert

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
)

// Data of other kinds is named, with what to do instead, and no edge list is seen in it.
func TestUnread(t *testing.T) {
	tu := putFile(t, map[string]string{"MUTAG_A.txt": "1, 2\n2, 1\n", "MUTAG_graph_indicator.txt": "1\n1\n", "MUTAG_graph_labels.txt": "1\n"})
	for src, word := range map[string]string{
		filepath.Join(tu, "MUTAG_A.txt"): "convert its folder",
		putFile(t, map[string]string{"graphs.csv": "graph,y\n", "nodes.csv": "graph,id\n", "edges.csv": "source,target\n"}): "--format tables",
		one(t, "any.bin", "SQLite format 3\x00\x10\x00"):                                                                    "SQLite",
		putFile(t, map[string]string{"x.dat": "SQLite format 3\x00\x10\x00"}):                                               "SQLite",
		one(t, "g.xml", "<?xml version=\"1.0\"?>\n<graphml>"):                                                               "GraphML",
		one(t, "g.gml", "graph [\n  node [\n"):                                                                              "GML",
		one(t, "x.npy", npyFile("<f4", "1,", []float32{1})):                                                                 "edge_index.npy",
		"postgres://me:secret@host/db":                                                                                      "database", "mysql+pymysql://host/db": "database", "sqlite:graph.db": "database", "s3://bucket/x": "address",
	} {
		_, err := Convert(t.Context(), src, filepath.Join(t.TempDir(), "out"), Options{})
		var unread *UnreadError
		if !errors.As(err, &unread) || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error is %v; want %q", src, err, word)
		}
	}
}

// Lists of edges in the shapes in which other programs write them.
func TestEdgeListShapes(t *testing.T) {
	kinds := func(pairs ...string) Options {
		o := Options{Kinds: map[string]columns.Kind{}}
		for i := 0; i < len(pairs); i += 2 {
			o.Kinds[pairs[i]] = columns.Kind(pairs[i+1])
		}
		return o
	}
	for _, c := range []struct {
		name, file, text string
		o                Options
		want             string
		said             string
	}{
		{"times", "g.txt", "0 1 1082040961\n1 2 1082155839\n", Options{}, "0→1@1082040961 1→2@1082155839", "looks like a UNIX time"},
		{"times in nanoseconds", "g.txt", "0 1 1700000000000000001\n1 2 1700000000000000003\n", Options{}, "0→1@1700000000000000001 1→2@1700000000000000003", "UNIX time"},
		{"large weights, as given", "g.txt", "0 1 1082040961\n1 2 3\n", Options{}, "0→1(1.082041e+09) 1→2(3)", ""},
		{"a name", "g.csv", "source,target,timestamp\n0,1,5\n1,2,6\n", Options{}, "0→1@5 1→2@6", ""},
		{"names in another order", "g.csv", "weight,target,source\n2,1,0\n3,2,1\n", Options{}, "0→1(2) 1→2(3)", ""},
		{"a column with no use", "g.csv", "source,target,w,note\n0,1,2,x\n1,2,3,y\n", Options{}, "0→1(2) 1→2(3)", `the column "note" is not read`},
		{"attributes", "g.txt", "0 1 {}\n1 2 {}\n", Options{}, "0→1 1→2", ""},
		{"attributes with weights", "g.txt", "0 1 {'weight': 3}\n1 2 {'a': 1, 'weight': 4.5}\n", Options{}, "0→1(3) 1→2(4.5)", ""},
		{"KONECT", "g.txt", "% asym posweighted\n0 1 2 1237\n1 2 3 1238\n", Options{}, "0→1(2)@1237 1→2(3)@1238", "the fourth times"},
		{"KONECT, undirected", "g.txt", "% sym unweighted\n0 1\n1 2\n", Options{}, "1→0 0→1 2→1 1→2", "says sym"},
		{"columns, as given", "g.txt", "0 9 1 7\n1 9 2 8\n", kinds("2", "skip", "3", "target", "4", "weight"), "0→1(7) 1→2(8)", ""},
		{"matrix, symmetric", "g.mtx", "%%MatrixMarket matrix coordinate real symmetric\n% c\n3 3 3\n2 1 0.5\n3 2 2\n3 3 4\n", Options{}, "1→0(0.5) 0→1(0.5) 2→1(2) 1→2(2) 2→2(4)", "counted from 1"},
		{"matrix, general pattern", "g.dat", "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n", Options{}, "0→1 1→2", "counted from 1"},
		{"adjacency", "g.adjlist", "0 1 2\n1 2\n2\n", Options{}, "0→1 0→2 1→2", "--undirected"},
		{"adjacency by comments", "g.txt", "#x.py\n# GMT Mon\n# g\n0 1 2\n1 2 0\n", Options{}, "1→0 0→1 0→2 1→2", "--undirected"},
		{"adjacency, as given", "g.txt", "0 1 2\n1 2 0\n2 0 1\n", Options{Format: "adjlist"}, "1→0 2→0 0→1 2→1 0→2 1→2", ""},
		{"three columns, as given", "g.txt", "0 1 2\n1 2 0\n2 0 1\n", kinds("3", "weight"), "2→0(1) 0→1(2) 1→2(0)", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := ""
			c.o.Note = func(s string) { said += s + "\n" }
			d, _ := converted(t, one(t, c.file, c.text), c.o)
			if got := drawn(d.Graph); got != c.want {
				t.Errorf("the edges are %s, want %s", got, c.want)
			}
			if !strings.Contains(said, c.said) {
				t.Errorf("said %q, want %q", said, c.said)
			}
		})
	}
	for name, c := range map[string]struct {
		file, text string
		words      []string
	}{
		"adjacency with two neighbours each": {"g.txt", "0 1 2\n1 2 3\n2 3 0\n3 0 1\n", []string{"--format adjlist", "--kinds 3=weight"}},
		"more neighbours":                    {"g.txt", "0 1 2 3 4\n1 2\n", []string{"--format adjlist"}},
		"skew-symmetric":                     {"g.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 1\n", []string{"skew-symmetric"}},
		"complex":                            {"g.mtx", "%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n2 1 1 0\n", []string{"complex"}},
		"array":                              {"g.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n1\n", []string{"array"}},
		"not square":                         {"g.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n2 3\n", []string{"square"}},
		"entries missing":                    {"g.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n2 3\n", []string{"2 edges", "there are 1"}},
		"no values":                          {"g.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 1\n2 3\n", []string{"no value"}},
		"bipartite":                          {"g.txt", "% bip unweighted\n1 1\n2 1\n", []string{"bipartite"}},
		"negative ratings":                   {"g.txt", "6,2,-4,1289241911\n6,5,2,1289241941\n", []string{"--kinds 3=skip"}},
	} {
		t.Run(name, func(t *testing.T) { refused(t, one(t, c.file, c.text), Options{}, c.words...) })
	}
}

// drawn lists the edges in the order of their targets, with weights and times.
func drawn(g *graphops.Graph) string {
	var all []string
	for v := range g.NumNodes() {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			text := fmt.Sprintf("%d→%d", g.Indices[e], v)
			if g.EdgeWeights != nil {
				text += fmt.Sprintf("(%v)", g.EdgeWeights[e])
			}
			if g.EdgeTimes != nil {
				text += fmt.Sprintf("@%d", g.EdgeTimes[e])
			}
			all = append(all, text)
		}
	}
	return strings.Join(all, " ")
}

// Arrays of masks under other names, and labels that are unknown or amounts, mean what they mean in tables.
func TestNumPyGuesses(t *testing.T) {
	files := map[string]string{
		"edge_index.npy": npyFile("<i8", "2, 2", []int64{0, 1, 1, 2}), "y.npy": npyFile("<f8", "4,", []float64{0, 1, -1, math.NaN()}),
		"trainMask.npy": npyFile("|b1", "4,", []bool{true, false, false, false}), "mask_val.npy": npyFile("|b1", "4,", []bool{false, true, false, false}),
	}
	said := ""
	d, _ := converted(t, putFile(t, files), Options{Note: func(s string) { said += s + "\n" }})
	if len(d.Splits["train"]) != 1 || len(d.Splits["val"]) != 1 || d.Splits["val"][0] != 1 || d.Classes() != 2 {
		t.Errorf("the splits are %v of %d classes", d.Splits, d.Classes())
	}
	for _, word := range []string{"trainMask.npy", "mask_val.npy", "-1 are unknown (1 of 4)", "NaN are unknown (1 of 4)"} {
		if !strings.Contains(said, word) {
			t.Errorf("said %q, want %q", said, word)
		}
	}
	refused(t, putFile(t, map[string]string{"edge_index.npy": files["edge_index.npy"], "y.npy": npyFile("<i8", "4,", []int64{3906, 5, 643516, 77})}), Options{}, "643517 classes", "such as ranges", "--many-classes")
	refused(t, putFile(t, map[string]string{"edge_index.npy": files["edge_index.npy"], "y.npy": npyFile("<i8", "4,", []int64{-1, 1, -1, 1})}), Options{}, "-1 and 1")
}
