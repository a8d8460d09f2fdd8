package convert

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// listed lists the edges of a dataset with their features and times.
func listed(d *dataset.Dataset) string {
	var s []string
	g := d.Graph
	for v := range int32(d.Nodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			text := fmt.Sprintf("%d→%d", g.Indices[e], v)
			if x := g.EdgeFeatures; x != nil {
				row := make([]float32, x.Cols)
				x.CopyRow(row, e)
				text += fmt.Sprint(row)
			}
			if d.HasEdgeTimes() {
				text += fmt.Sprintf("@%d", g.EdgeTimes[e])
			}
			s = append(s, text)
		}
	}
	return strings.Join(s, " ")
}

// The edges of these tables are listed in another order than the dataset has.
func edgeTables() map[string]string {
	return map[string]string{
		"nodes.csv": "id\na\nb\nc\n",
		"edges.csv": "source,target,Kind,since,note,size\nb,c,1,30,x,10\na,b,2,20.0,y,20\nc,b,3,30,z,30\na,c,4,-5,,40\n",
	}
}

func TestCSVEdgeData(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
		note string
	}{
		{"features", Options{EdgeFeatures: "size, kind"}, "0→1[20 2] 2→1[30 3] 0→2[40 4] 1→2[10 1]", `the column "note" is not read (4); --edge-features or --edge-times can name it`},
		{"times", Options{EdgeTimes: "Since"}, "0→1@20 2→1@30 0→2@-5 1→2@30", `the column "size" is not read`},
		{"both, undirected", Options{EdgeFeatures: "kind,size", EdgeTimes: "since", Undirected: true}, "1→0[2 20]@20 2→0[4 40]@-5 0→1[2 20]@20 2→1[2 20]@30 0→2[4 40]@-5 1→2[2 20]@30", "the features of the edges are kind, size"},
		{"none", Options{}, "0→1 2→1 0→2 1→2", `the column "kind" is not read`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var notes []string
			c.o.Note = func(s string) { notes = append(notes, s) }
			d, stats := converted(t, putFile(t, edgeTables()), c.o)
			if got := listed(d); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if stats.EdgeFeatures != d.EdgeFeatureDim() || stats.EdgeTimes != d.HasEdgeTimes() {
				t.Errorf("stats are %+v of %s", stats, d)
			}
			if all := strings.Join(notes, "\n"); !strings.Contains(all, c.note) {
				t.Errorf("the notes are %q; want %q", all, c.note)
			}
		})
	}
	files := edgeTables()
	files["edges.csv"] = strings.NewReplacer(",note", "", ",x,", ",", ",y,", ",", ",z,", ",", "-5,,", "-5,").Replace(files["edges.csv"])
	d, _ := converted(t, putFile(t, files), Options{EdgeFeatures: "all", EdgeTimes: "since", EdgeFeatureType: "f16"})
	if got, want := listed(d), "0→1[2 20]@20 2→1[3 30]@30 0→2[4 40]@-5 1→2[1 10]@30"; got != want || !d.Graph.EdgeFeatures.Half() {
		t.Errorf("with all columns: got %s, want %s", got, want)
	}
	// The largest component keeps its edges' data.
	files["nodes.csv"] = "id\nalone\na\nb\nc\n"
	d, _ = converted(t, putFile(t, files), Options{EdgeFeatures: "size", EdgeTimes: "since", LargestComponent: true})
	if got, want := listed(d), "0→1[20]@20 2→1[30]@30 0→2[40]@-5 1→2[10]@30"; got != want {
		t.Errorf("the largest component: got %s, want %s", got, want)
	}
}

func TestHostileEdgeColumns(t *testing.T) {
	for _, c := range []struct {
		name, old, other string
		o                Options
		words            []string
	}{
		{"no such column", "", "", Options{EdgeFeatures: "kind,weather"}, []string{"edges.csv", `--edge-features names "weather"`}},
		{"the same column twice", "", "", Options{EdgeFeatures: "kind,kind"}, []string{`--edge-features names "kind"`}},
		{"an end of the edge", "", "", Options{EdgeTimes: "target"}, []string{`--edge-times names "target"`}},
		{"a feature that is the time", "", "", Options{EdgeTimes: "since", EdgeFeatures: "since"}, []string{`--edge-features names "since"`}},
		{"a word", "", "", Options{EdgeFeatures: "note"}, []string{"line 2", `the feature "note" of the edge is "x"`}},
		{"all, with a word", "", "", Options{EdgeFeatures: "all"}, []string{`"note"`}},
		{"NaN feature", "2,20.0", "nan,20.0", Options{EdgeFeatures: "kind"}, []string{"line 3", `is "nan"`, "finite"}},
		{"infinite feature", "2,20.0", "1e99,20.0", Options{EdgeFeatures: "kind"}, []string{"line 3", `is "1e99"`}},
		{"NaN time", "20.0", "NaN", Options{EdgeTimes: "since"}, []string{"line 3", `the time of the edge is "NaN"`, "whole number"}},
		{"no time", "20.0", "", Options{EdgeTimes: "since"}, []string{"line 3", `the time of the edge is ""`}},
		{"a fraction", "20.0", "20.5", Options{EdgeTimes: "since"}, []string{"line 3", `is "20.5"`}},
		{"a time beyond int64", "20.0", "1e300", Options{EdgeTimes: "since"}, []string{"line 3", `is "1e300"`}},
		{"a feature too large for float16", "2,20.0", "1e6,20.0", Options{EdgeFeatures: "kind", EdgeFeatureType: "f16"}, []string{"edge features: row 0, column 0 is 1e+06"}},
		{"unknown type", "", "", Options{EdgeFeatureType: "f8"}, []string{"--edge-feature-type", `"f8"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := edgeTables()
			files["edges.csv"] = strings.Replace(files["edges.csv"], c.old, c.other, 1)
			refused(t, putFile(t, files), c.o, c.words...)
		})
	}
	files := edgeTables()
	files["edges.csv"] = "source,target\na,b\n"
	refused(t, putFile(t, files), Options{EdgeFeatures: "all"}, "none is left for --edge-features")
}

func numpyEdges(more map[string]string) map[string]string {
	files := map[string]string{"edge_index.npy": npyFile("<i8", "2, 4", []int64{1, 0, 2, 0, 2, 1, 1, 2})}
	for name, text := range more {
		files[name] = text
	}
	return files
}

// Arrays of features and times follow the edges from the input's order, whether a folder holds them
// or the options name them.
func TestNumPyEdgeData(t *testing.T) {
	x, times := npyFile("<f8", "4, 2", []float64{1, 10, 2, 20, 3, 30, 4, 40}), npyFile("<i4", "4,", []int32{30, 20, 31, -5})
	want := "0→1[2 20]@20 2→1[3 30]@31 0→2[4 40]@-5 1→2[1 10]@30"
	d, _ := converted(t, putFile(t, numpyEdges(map[string]string{"edge_attr.npy": x, "edge_time.npy": times})), Options{})
	if got := listed(d); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	beside := putFile(t, map[string]string{"x.npy": x, "t.npy": times, "list.txt": "1 2\n0 1\n2 1\n0 2\n"})
	o := Options{EdgeFeatures: filepath.Join(beside, "x.npy"), EdgeTimes: filepath.Join(beside, "t.npy")}
	d, _ = converted(t, filepath.Join(beside, "list.txt"), o)
	if got := listed(d); got != want {
		t.Errorf("an edge list: got  %s\nwant %s", got, want)
	}
	o.EdgeTimes = "" // one feature per edge, of a vector
	o.EdgeFeatures = filepath.Join(putFile(t, map[string]string{"x.npy": npyFile("<f2", "4,", []uint16{0x3c00, 0x4000, 0x4200, 0x4400})}), "x.npy")
	d, _ = converted(t, putFile(t, numpyEdges(nil)), o)
	if got, want := listed(d), "0→1[2] 2→1[3] 0→2[4] 1→2[1]"; got != want {
		t.Errorf("a vector: got  %s\nwant %s", got, want)
	}
}

func TestHostileNumPyEdgeData(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name  string
		files map[string]string
		words []string
	}{
		{"too few rows", map[string]string{"edge_attr.npy": npyFile("<f4", "3, 1", make([]float32, 3))}, []string{"edge_attr.npy", "3 rows", "4 edges"}},
		{"no columns", map[string]string{"edge_attr.npy": npyFile("<f4", "4, 0", []float32{})}, []string{"no columns"}},
		{"three dimensions", map[string]string{"edge_attr.npy": npyFile("<f4", "4, 1, 1", make([]float32, 4))}, []string{"[edges, features]"}},
		{"NaN", map[string]string{"edge_attr.npy": npyFile("<f8", "4, 1", []float64{1, 2, nan, 4})}, []string{"entry 2 is NaN"}},
		{"too large for float32", map[string]string{"edge_attr.npy": npyFile("<f8", "4, 1", []float64{1, 1e99, 3, 4})}, []string{"entry 1 is +Inf"}},
		{"too few times", map[string]string{"edge_time.npy": npyFile("<i8", "3,", make([]int64, 3))}, []string{"edge_time.npy", "4 edges"}},
		{"a matrix of times", map[string]string{"edge_time.npy": npyFile("<i8", "2, 2", make([]int64, 4))}, []string{"each has one time"}},
		{"NaN times", map[string]string{"edge_time.npy": npyFile("<f8", "4,", []float64{1, nan, 3, 4})}, []string{"entry 1 is NaN", "every edge needs a time"}},
		{"float times", map[string]string{"edge_time.npy": npyFile("<f8", "4,", []float64{1, 2.5, 3, 4})}, []string{"float64", "astype(numpy.int64)"}},
		{"times beyond int64", map[string]string{"edge_time.npy": npyFile("<u8", "4,", []uint64{1, 1 << 63, 3, 4})}, []string{"entry 1 does not fit in int64"}},
		{"edges out of range", map[string]string{"edge_attr.npy": npyFile("<f4", "4, 1", make([]float32, 4)), "x.npy": npyFile("<f4", "2, 1", make([]float32, 2))}, []string{"edge_index.npy", "the nodes are 0 to 1"}},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, putFile(t, numpyEdges(c.files)), Options{}, c.words...) })
	}
	list := one(t, "list.txt", "0 1\n1 2\n")
	refused(t, list, Options{EdgeFeatures: "size"}, `--edge-features is "size"`, "no columns with names")
	refused(t, list, Options{EdgeTimes: filepath.Join(t.TempDir(), "no.npy")}, "no.npy is missing", "the edges' times")
	cut := npyFile("<f4", "2, 8", make([]float32, 16))
	refused(t, list, Options{EdgeFeatures: one(t, "x.npy", cut[:len(cut)-1])}, "x.npy", "cut off")
}
