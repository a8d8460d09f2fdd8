package convert

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
)

// TU folders become the arrays that PyG makes of them: testdata/tu.py recorded their digests.
func TestPyGReadsTheSameTU(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/tu.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]struct {
		Graphs, Nodes, Edges, Features int
		EdgeFeatures                   int `json:"edge_features"`
		SHA256                         string
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "tu", name)
			if name != "TINY" {
				path = realData(t, "graphs/"+name)
			}
			d, stats := converted(t, path, Options{})
			if stats.Graphs != want.Graphs || d.Nodes() != want.Nodes || d.Edges() != int64(want.Edges) || d.FeatureDim() != want.Features || d.EdgeFeatureDim() != want.EdgeFeatures {
				t.Errorf("%s, want %+v", d, want)
			}
			h := sha256.New()
			put := func(x any) { _ = binary.Write(h, binary.LittleEndian, x) }
			put(d.GraphOffsets)
			put(d.Graph.Indices)
			for v := range d.Nodes() {
				put(slices.Repeat([]int32{int32(v)}, int(d.Graph.Indptr[v+1]-d.Graph.Indptr[v])))
			}
			if x := d.Graph.EdgeFeatures; x != nil {
				put(x.F32)
			}
			put(d.Features.F32)
			if d.Graphs.Targets != nil {
				put(d.Graphs.Targets.F32)
			} else {
				put(d.Graphs.Labels)
			}
			if sum := fmt.Sprintf("%x", h.Sum(nil)); sum != want.SHA256 {
				t.Errorf("the arrays have the digest %s, and PyG's %s", sum, want.SHA256)
			}
			n := 0
			for _, name := range []string{"train", "val", "test"} {
				n += len(d.Graphs.Splits[name])
			}
			if n != want.Graphs {
				t.Errorf("the random splits have %d graphs", n)
			}
		})
	}
}

// The published folds of PROTEINS are the sets of splits.
func TestFairSplits(t *testing.T) {
	t.Parallel()
	src := realData(t, "graphs/PROTEINS")
	d, _ := converted(t, src, Options{Split: filepath.Join(src, "fair_splits.json"), Features: "labels"})
	var tested []int32
	for k := range 10 {
		test := d.Graphs.Splits[dataset.SplitSetName("test", k)]
		tested = append(tested, test...)
		if n := len(test) + len(d.Graphs.Splits[dataset.SplitSetName("train", k)]) + len(d.Graphs.Splits[dataset.SplitSetName("val", k)]); n != 1113 {
			t.Errorf("set %d has %d graphs", k, n)
		}
	}
	slices.Sort(tested)
	if len(slices.Compact(tested)) != 1113 || !slices.Equal(d.Graphs.Splits["test"][:4], []int32{6, 18, 28, 29}) || d.Graphs.SplitSets() != 10 || d.FeatureDim() != 3 {
		t.Errorf("%s: the folds test on %d graphs, the first on %v", d, len(tested), d.Graphs.Splits["test"][:4])
	}
}

// tuFiles are four graphs, of which the third has no nodes.
func tuFiles() map[string]string {
	return map[string]string{
		"D_A.txt":               "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
		"D_graph_indicator.txt": "1\n1\n1\n2\n2\n4\n",
		"D_graph_labels.txt":    "no\nyes\nyes\n?\n",
	}
}

func TestTUFolder(t *testing.T) {
	t.Parallel()
	var said []string
	o := Options{Features: "degree", Split: "folds:3", Note: func(text string) { said = append(said, text) }}
	d, _ := converted(t, putFile(t, tuFiles()), o)
	g := d.Graphs
	if !slices.Equal(d.GraphOffsets, []int64{0, 3, 5, 5, 6}) || !slices.Equal(g.Labels, []int32{0, 1, 1, -1}) || !slices.Equal(g.Meta.ClassNames, []string{"no", "yes"}) || !d.Meta.Undirected {
		t.Errorf("%s: offsets %v, labels %v of %v", d, d.GraphOffsets, g.Labels, g.Meta.ClassNames)
	}
	if x := d.SparseFeatures; x.Cols != 3 || !slices.Equal(x.Indices, []int32{1, 2, 1, 1, 1, 0}) || g.SplitSets() != 3 || len(g.Splits["test"]) != 1 {
		t.Errorf("the degrees are %v, the splits %v", x, g.Splits)
	}
	if all := strings.Join(said, "\n"); !strings.Contains(all, "the first is graph 3, which line 6 passes over") || !strings.Contains(all, `labels that are "?" are unknown`) {
		t.Errorf("it says %s", all)
	}
	e, _ := converted(t, putFile(t, tuFiles()), Options{Features: "degree", Encode: "rw:4,laplacian:1"})
	if e.FeatureDim() != 3+5 || !slices.Equal(e.Meta.FeatureNames[2:4], []string{"degree=2", "rw 1"}) {
		t.Errorf("%s: with encodings the features are %v", e, e.Meta.FeatureNames)
	}
	refused(t, putFile(t, tuFiles()), Options{Encode: "rw:none"}, "--encode", "rw:STEPS")
	// Numbers with fractions are targets, as are whole ones that --kinds says are numbers.
	files := tuFiles()
	files["D_graph_labels.txt"] = "1.5\n-2\nnan\n0\n"
	d, _ = converted(t, putFile(t, files), Options{Features: "constant"})
	if y := d.Graphs.Targets; d.Graphs.Labels != nil || y.F32[0] != 1.5 || !math.IsNaN(float64(y.F32[2])) || d.Features.F32[5] != 1 {
		t.Errorf("the targets are %v", y)
	}
	files["D_graph_labels.txt"] = "1\n2\n3\n4\n"
	if d, _ = converted(t, putFile(t, files), Options{Kinds: map[string]columns.Kind{"graph_labels": columns.Target}}); d.Graphs.Labels != nil || d.Graphs.Targets.F32[3] != 4 {
		t.Errorf("%s: whole numbers are no targets", d)
	}
	files["D_graph_labels.txt"] = "1,0\n0,-1\n1,nan\n0,0\n"
	if d, _ = converted(t, putFile(t, files), Options{}); !slices.Equal(d.Graphs.MultiLabels.Data, []int8{1, 0, 0, -1, 1, -1, 0, 0}) || d.Graphs.Metric() != dataset.MetricROCAUC {
		t.Errorf("%s: several labels are %v", d, d.Graphs.MultiLabels)
	}
	said = nil
	files["D_graph_labels.txt"] = "2.5\n2.5\n2.5\n2.5\n"
	converted(t, putFile(t, files), Options{Note: func(text string) { said = append(said, text) }})
	if all := strings.Join(said, "\n"); !strings.Contains(all, "every known value of target 0 is 2.5") || !strings.Contains(all, "--features degree") {
		t.Errorf("of equal targets it says %s", all)
	}
}

func TestHostileTU(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, text string
		o          Options
		words      string
	}{
		"not ascending":      {"D_graph_indicator.txt", "1\n2\n1\n2\n2\n4\n", Options{}, "line 3: node 3 is of graph 1, but the node before it is of graph 2"},
		"from 0":             {"D_graph_indicator.txt", "0\n0\n0\n1\n1\n3\n", Options{}, "line 1: the graph is 0; graphs are counted from 1"},
		"more than labels":   {"D_graph_indicator.txt", "1\n1\n1\n2\n2\n5\n", Options{}, "line 6: node 6 is of graph 5, but there are labels or attributes of 4"},
		"text":               {"D_graph_indicator.txt", "1\n1\nx\n2\n2\n4\n", Options{}, "line 3: \"x\" is not a whole number"},
		"empty":              {"D_graph_indicator.txt", "", Options{}, "it has no nodes"},
		"between graphs":     {"D_A.txt", "# edges\n1, 2\n\n3, 4\n", Options{}, "line 4: the edge leads from node 3, of graph 1, to node 4, of graph 2"},
		"beyond the nodes":   {"D_A.txt", "1, 2\n2, 7\n", Options{}, "line 2: the edge names the node 7, but D_graph_indicator.txt has 6"},
		"node 0":             {"D_A.txt", "0, 1\n", Options{}, "line 1"},
		"infinite":           {"D_graph_labels.txt", "1\ninf\n2\n3\n", Options{}, "line 2: the label is \"inf\""},
		"infinite targets":   {"D_graph_attributes.txt", "1\n2\n-inf\n3\n", Options{}, "line 3: column 1 is \"-inf\""},
		"too few targets":    {"D_graph_attributes.txt", "1\n2\n", Options{}, "it has 2 lines, but there are labels of 4 graphs"},
		"unknown targets":    {"D_graph_attributes.txt", "nan\nnan\nnan\nnan\n", Options{}, "every label is unknown"},
		"an empty line":      {"D_graph_labels.txt", "1\n\n2\n3\n", Options{}, "line 2 is empty"},
		"unknown labels":     {"D_graph_labels.txt", "?\n?\n?\n?\n", Options{}, "every label is unknown"},
		"NaN":                {"D_node_attributes.txt", "1\nnan\n1\n1\n1\n1\n", Options{}, "line 2: column 1 is \"nan\""},
		"too few labels":     {"D_node_labels.txt", "1\n2\n", Options{}, "it has 2 rows, but there are 6 nodes"},
		"too many labels":    {"D_node_labels.txt", "1\n1\n1\n1\n1\n1\n1\n", Options{}, "line 7: it has more lines than there are nodes"},
		"ragged labels":      {"D_node_labels.txt", "1\n1,2\n1\n1\n1\n1\n", Options{}, "line 2: it has 2 labels"},
		"no such features":   {"D_node_labels.txt", "1\n1\n1\n1\n1\n1\n", Options{Features: "attributes"}, "has no file D_node_attributes.txt"},
		"edge labels":        {"D_edge_labels.txt", "1\n", Options{}, "it has 1 rows, but there are 6 edges"},
		"a share":            {"x", "", Options{Split: "random:0.5,0.5"}, "give the shares of train, val and test"},
		"two folds":          {"x", "", Options{Split: "folds:2"}, "from 3 to 1000"},
		"no splits":          {"x", "", Options{Split: "randomly"}, "neither random, stratified, folds:K"},
		"the largest part":   {"x", "", Options{LargestComponent: true}, "--largest-component is for one graph"},
		"stratified targets": {"D_graph_labels.txt", "1.5\n2\n3\n4\n", Options{Split: "stratified"}, "has no classes to divide by"},
		"degree of what":     {"x", "", Options{Features: "degree:0"}, "the largest degree"},
		"as many text classes": {"D_graph_labels.txt", func() string { // a column of names
			var b bytes.Buffer
			for i := range 100 {
				fmt.Fprintf(&b, "name%d\n", i)
			}
			return b.String()
		}(), Options{}, "--kinds graph_labels=target"},
	} {
		t.Run(name, func(t *testing.T) {
			files := tuFiles()
			files[c.file] = c.text
			refused(t, putFile(t, files), c.o, c.words)
		})
	}
	for _, file := range []string{"D_A.txt"} {
		files := tuFiles()
		delete(files, file)
		refused(t, putFile(t, files), Options{}, file, "is missing")
	}
}

// Splits are read from lists, in folders and JSON files.
func TestSplitsFromFiles(t *testing.T) {
	t.Parallel()
	src := putFile(t, tuFiles())
	for name, files := range map[string]map[string]string{
		"folder": {"train.txt": "3\n0\n", "valid.csv": "1\n", "test.txt": "", "train@1.txt": "2\n"},
		"json":   {"s.json": `[{"train": [3, 0], "valid": [1], "test": [], "note": {"a": [1]}}, {"train": [2]}]`},
	} {
		path := putFile(t, files)
		if name == "json" {
			path = filepath.Join(path, "s.json")
		}
		d, _ := converted(t, src, Options{Split: path})
		want := map[string][]int32{"train": {0, 3}, "val": {1}, "test": {}, "train@1": {2}}
		if !maps.EqualFunc(d.Graphs.Splits, want, slices.Equal[[]int32]) {
			t.Errorf("%s: %v", name, d.Graphs.Splits)
		}
	}
	for text, word := range map[string]string{
		`{"train": [4]}`: "the indices are 0 to 3", `{"train": [1, 1]}`: "the index 1 twice", `{"train": [-1]}`: "the indices are 0 to 3",
		`{"a": []}`: "no lists named train", `{"train": [0], "val": [0]}`: "also in split train", `{"train": [0], "Training": [1]}`: "listed twice", `{"train": 3}`: "",
	} {
		refused(t, src, Options{Split: one(t, "s.json", text)}, word)
	}
	refused(t, src, Options{Split: putFile(t, map[string]string{"train.txt": "9\n"})}, "line 1", "out of range")
	// Splits of nodes come from the same option.
	d, _ := converted(t, putFile(t, cSVFiles()), Options{Split: "random:0.5,0.25,0.25"})
	if len(d.Splits["train"]) == 0 || d.SplitSets() != 1 {
		t.Errorf("the nodes are divided into %v", d.Splits)
	}
}

func FuzzTU(f *testing.F) {
	names := slices.Sorted(maps.Keys(tuFiles()))
	for i, name := range names {
		f.Add([]byte(tuFiles()[name]), uint8(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		fuzzed(t, tuFiles(), names[int(which)%len(names)], data, Options{})
	})
}
