package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/tabular"
	"github.com/graphnb/graphnb/internal/testneed"
)

func TestEdgeListSyntax(t *testing.T) {
	for name, tc := range map[string]struct{ file, text string }{
		"tabs and SNAP comments": {"g.txt", "# Directed graph: g\n# FromNodeId\tToNodeId\n0\t1\n0\t2\n1\t2\n2\t3\n"},
		"spaces, no last break":  {"g.txt", "0 1\n0  2\n 1 2 \n2 3"},
		"commas and a header":    {"g.csv", "src,dst\n0,1\n0, 2\n1 ,2\n2,3\n"},
		"quoted header":          {"g.csv", "\"source\";\"target\"\n0;1\n0;2\n1;2\n2;3\n"},
		"percent and slashes":    {"g.edges", "% sym\n// nothing\n0 1\n\n0 2\n1 2\n2 3\n"},
		"CRLF":                   {"g.txt", "0 1\r\n0 2\r\n1 2\r\n2 3\r\n"},
		"gzip":                   {"g.txt.gz", gz("0 1\n0 2\n1 2\n2 3\n")},
		"two gzip members":       {"g.txt.gz", gz("0 1\n0 2\n1 ") + gz("2\n2 3\n")},
		"duplicates":             {"g.txt", "2 3\n0 1\n0 2\n0 1\n1 2\n"},
		"weights of 1":           {"g.txt", "0 1 1\n0 2 1.0\n1 2 1e0\n2 3 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d, stats := converted(t, one(t, tc.file, tc.text), Options{})
			sameGraph(t, d.Graph, handGraph(t, 4, false))
			if d.Graph.EdgeWeights != nil || d.Name() != "g" || stats.Format != "edgelist" || d.Meta.Undirected {
				t.Errorf("%s: weights %v, format %s, undirected %v", d, d.Graph.EdgeWeights, stats.Format, d.Meta.Undirected)
			}
			d, _ = converted(t, one(t, tc.file, tc.text), Options{Undirected: true, Format: "edgelist", Name: "other", Threads: 1})
			sameGraph(t, d.Graph, handGraph(t, 4, true))
			if d.Name() != "other" || !d.Meta.Undirected {
				t.Errorf("%s: undirected %v", d, d.Meta.Undirected)
			}
		})
	}
}

func TestEdgeListWeights(t *testing.T) {
	d, _ := converted(t, one(t, "g.txt", "0,1,0.5\n0,2,2\n1,2,3\n2,3,4\n0,1,0.25\n"), Options{})
	sameGraph(t, d.Graph, handGraph(t, 4, false))
	if want := []float32{0.75, 2, 3, 4}; !slices.Equal(d.Graph.EdgeWeights, want) {
		t.Errorf("weights %v, want %v", d.Graph.EdgeWeights, want)
	}
}

func TestEdgeListNumbering(t *testing.T) {
	// The nodes 7, 90 and 5000000000 become 0, 1 and 2.
	d, _ := converted(t, one(t, "g.txt", "90 7\n7 5000000000\n"), Options{Relabel: true})
	if d.Nodes() != 3 || !slices.Equal(d.Graph.Indices, []int32{1, 0}) || !slices.Equal(d.Graph.Indptr, []int64{0, 1, 1, 2}) {
		t.Errorf("relabelled: %v %v", d.Graph.Indptr, d.Graph.Indices)
	}
	if ids, err := d.IDs(); err != nil || !slices.Equal(ids, []string{"7", "90", "5000000000"}) {
		t.Errorf("relabelled: the ids are %v (%v)", ids, err)
	}
	// Ids are kept, whatever number of nodes a comment counts.
	d, _ = converted(t, one(t, "g.txt", "# Nodes: 4 Edges: 4\n1 2\n1 4\n2 4\n4 5\n"), Options{})
	if d.Nodes() != 6 || !slices.Equal(d.Graph.Indices, []int32{1, 1, 2, 4}) || d.Graph.Indptr[5] != 3 {
		t.Errorf("with a comment: %v %v", d.Graph.Indptr, d.Graph.Indices)
	}
	// If a comment declares more nodes than there are ids, the last nodes have no edges.
	d, _ = converted(t, one(t, "g.txt", "# Nodes: 5 Edges: 4\n0 1\n0 2\n1 2\n2 3\n"), Options{})
	sameGraph(t, d.Graph, handGraph(t, 5, false))
	var notes []string
	d, _ = converted(t, one(t, "g.txt", "1 2\n1 3\n2 3\n3 4\n"), Options{Note: func(s string) { notes = append(notes, s) }})
	if d.Nodes() != 5 || len(notes) != 1 || !strings.Contains(notes[0], "node 0") {
		t.Errorf("%s with the notes %q; want 5 nodes and a note on node 0", d, notes)
	}
}

// The result does not depend on the number of blocks.
func TestEdgeListOfManyBlocks(t *testing.T) {
	testneed.Raced(t, "it converts a list of 400,000 edges")
	var text strings.Builder
	n := 400_000
	if testneed.UnderRace() {
		n = 100_000 // five blocks
	}
	for i := range n {
		text.WriteString(itoa(i))
		text.WriteByte('\t')
		text.WriteString(itoa((i + 1) % n))
		text.WriteByte('\n')
	}
	path := one(t, "ring.txt.gz", gz(text.String()))
	for threads := 1; threads <= 3; threads++ {
		d, _, err := read(t.Context(), path, &tabular.Meter{}, Options{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		if d.Nodes() != n || d.Edges() != int64(n) {
			t.Fatalf("%d threads: %s", threads, d)
		}
		for v, u := range d.Graph.Indices {
			if int(u) != (v+n-1)%n {
				t.Fatalf("%d threads: the neighbour of %d is %d", threads, v, u)
			}
		}
	}
	// An error far from the beginning names its line.
	bad := text.String() + "7\tx\n"
	_, _, err := read(t.Context(), one(t, "ring.txt", bad), &tabular.Meter{}, Options{})
	if want := fmt.Sprintf("line %d", n+1); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v; want %s", err, want)
	}
}

func itoa(i int) string { return fmt.Sprintf("%d", i) }

func TestCountedFormats(t *testing.T) {
	for name, tc := range map[string]struct {
		file, text, format string
		undirected         bool
		weights            []float32
	}{
		"jlg undirected": {"g.jlg", "5,4,u,graph\n1,2\n1,3\n2,3\n3,4\n", "jlg", true, nil},
		"jlg directed":   {"g.jlg", gz("5,4,d,graph\n1,2\n1,3\n2,3\n3,4\n"), "jlg", false, nil},
		"dimacs arcs":    {"g.gr", "c road\nc\np sp 5 4\na 1 2 7\na 1 3 1\na 2 3 2\nc between\na 3 4 5\n", "dimacs", false, []float32{7, 1, 2, 5}},
		"dimacs edges":   {"g.col", "c colour\np edge 5 4\ne 1 2\ne 1 3\ne 2 3\ne 3 4\n", "dimacs", true, nil},
		"pace":           {"g.gr", "c tree width\np tw 5 4\n1 2\n1 3\n2 3\n3 4\n", "dimacs", true, nil},
		"metis":          {"g.graph", "% hand\n5 4\n2 3\n1 3\n1 2 4\n3\n\n", "metis", true, nil},
		"metis with edge weights": {
			"g.graph", "5 4 1\n2 7 3 1\n1 7 3 2\n1 1 2 2 4 5\n3 5\n\n", "metis", true,
			[]float32{7, 1, 7, 2, 1, 2, 5, 5},
		},
		"metis with node weights": {"g.graph", "5 4 110 2\n9 1 1 2 3\n9 1 1 1 3\n9 1 1 1 2 4\n9 1 1 3\n9 1 1\n", "metis", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, o := range []Options{{}, {Undirected: tc.undirected}} {
				d, stats := converted(t, one(t, tc.file, tc.text), o)
				sameGraph(t, d.Graph, handGraph(t, 5, tc.undirected))
				if !slices.Equal(d.Graph.EdgeWeights, tc.weights) || stats.Format != tc.format || d.Meta.Undirected != tc.undirected {
					t.Errorf("weights %v (want %v), format %s, undirected %v", d.Graph.EdgeWeights, tc.weights, stats.Format, d.Meta.Undirected)
				}
			}
		})
	}
}

// saintFiles returns the hand graph as GraphSAINT's files.
func saintFiles() map[string]string {
	return map[string]string{
		"adj_full.npz": npzFile(map[string]string{
			"indptr":  npyFile("<i4", "6,", []int32{0, 2, 3, 4, 4, 4}),
			"indices": npyFile("<i4", "4,", []int32{1, 2, 2, 3}),
			"shape":   npyFile("<i8", "2,", []int64{5, 5}),
			"data":    npyFile("|b1", "4,", []byte{1, 1, 1, 1}),
			"format":  npyFile("|S3", "", []byte("csr")),
		}),
		"class_map.json": `{"4": 2, "0": 1, "1": 0, "2": 2.0}`,
		"role.json":      `{"tr": [0, 4], "va": [1], "te": [3, 2]}`,
		"feats.npy":      npyFile("<f8", "5, 2", []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
	}
}

func TestGraphSAINT(t *testing.T) {
	d, stats := converted(t, putFile(t, saintFiles()), Options{})
	sameGraph(t, d.Graph, handGraph(t, 5, false))
	checkHand(t, d)
	if stats.Format != "graphsaint" || d.Features.Row(3)[1] != 7 {
		t.Errorf("format %s, features %v", stats.Format, d.Features)
	}
	d, _ = converted(t, putFile(t, saintFiles()), Options{Undirected: true})
	sameGraph(t, d.Graph, handGraph(t, 5, true))

	files := saintFiles()
	files["class_map.json"] = `{"0": [0, 1, 0], "1": [1, 1, 0], "3": [0, 0, 0], "4": [0.0, 0, 1]}`
	delete(files, "feats.npy")
	d, _ = converted(t, putFile(t, files), Options{})
	if want := []int8{0, 1, 0, 1, 1, 0, -1, -1, -1, 0, 0, 0, 0, 0, 1}; d.MultiLabels == nil || !slices.Equal(d.MultiLabels.Data, want) || d.Classes() != 3 {
		t.Errorf("labels %+v, want %v", d.MultiLabels, want)
	}
	if d.Metric() != dataset.MetricMicroF1 || d.FeatureDim() != 0 {
		t.Errorf("metric %s, %d features", d.Metric(), d.FeatureDim())
	}
}

// checkHand compares labels and splits with those of the hand graph.
func checkHand(t *testing.T, d *dataset.Dataset) {
	t.Helper()
	if want := []int32{1, 0, 2, -1, 2}; !slices.Equal(d.Labels, want) || d.Classes() != 3 {
		t.Errorf("labels %v of %d classes, want %v", d.Labels, d.Classes(), want)
	}
	for name, want := range map[string][]int32{"train": {0, 4}, "val": {1}, "test": {2, 3}} {
		ids, err := d.Split(name)
		if err != nil || !slices.Equal(slices.Sorted(slices.Values(ids)), want) {
			t.Errorf("split %s is %v (%v), want %v", name, ids, err, want)
		}
	}
}

func TestGraphSAGE(t *testing.T) {
	feats := npyFile("<f4", "5, 1", []float32{0, 10, 20, 30, 40})
	classes := `{"a": 1, "b": 0, "c": 2, "e": 2}`
	for name, g := range map[string]string{
		"texts, links by place": `{"directed": false, "graph": {"x": [1, {"y": null}]}, "multigraph": false,
			"nodes": [{"id": "e", "val": false, "test": false}, {"id": "a", "val": false, "test": false, "feature": [0.5]},
				{"id": "b", "test": false, "val": true}, {"id": "c", "test": true, "val": false}, {"id": "d", "test": true, "val": false}],
			"links": [{"source": 1, "target": 2}, {"source": 1, "target": 3, "weight": 2}, {"target": 3, "source": 2}, {"source": 3, "target": 4}]}`,
		"links first, by id": `{"links": [{"source": "a", "target": "b"}, {"source": "a", "target": "c"}, {"source": "b", "target": "\u0063"}, {"source": "c", "target": "d"}],
			"nodes": [{"id": "a", "val": false, "test": false}, {"id": "b", "test": false, "val": true}, {"id": "c", "test": true, "val": false},
				{"id": "d", "test": true, "val": false}, {"id": "e", "val": false, "test": false}], "directed": false}`,
	} {
		t.Run(name, func(t *testing.T) {
			d, stats := converted(t, putFile(t, map[string]string{
				"toy-G.json": g, "toy-id_map.json": `{"a": 0, "b": 1, "c": 2, "d": 3, "e": 4}`, "toy-class_map.json": classes, "toy-feats.npy": feats, "toy-walks.txt": "a b\n",
			}), Options{})
			sameGraph(t, d.Graph, handGraph(t, 5, true))
			checkHand(t, d)
			if stats.Format != "graphsage" || d.Name() != "toy" || d.Features.F32[4] != 40 {
				t.Errorf("%s, format %s, features %v", d, stats.Format, d.Features.F32)
			}
		})
	}
	// The ids are numbers that differ from the positions.
	d, _ := converted(t, putFile(t, map[string]string{
		"toy-G.json": `{"directed": true, "nodes": [{"id": 30}, {"id": 10}, {"id": 11}, {"id": 12}, {"id": 13}],
			"links": [{"source": 10, "target": 11}, {"source": 10, "target": 12}, {"source": 11, "target": 12}, {"source": 12, "target": 13}]}`,
		"toy-id_map.json": `{"10": 0, "11": 1, "12": 2, "13": 3, "30": 4}`, "toy-class_map.json": `{"30": [1, 0], "10": [0, 1], "11": [1, 1]}`,
	}), Options{})
	sameGraph(t, d.Graph, handGraph(t, 5, false))
	if d.MultiLabels == nil || !slices.Equal(d.MultiLabels.Row(4), []int8{1, 0}) || !slices.Equal(d.MultiLabels.Row(3), []int8{-1, -1}) {
		t.Errorf("labels %+v", d.MultiLabels)
	}
}

func ogbFiles() map[string]string { return maps.Clone(ogbOnce()) }

// The files are compressed once, because compressing takes most of a test's time.
var ogbOnce = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"raw/edge.csv.gz":          gz("0,1\n0,2\n1,2\n2,3\n"),
		"raw/num-node-list.csv.gz": gz("5\n"),
		"raw/num-edge-list.csv.gz": gz("4\n"),
		"raw/node-feat.csv.gz":     gz("0,1\n2,3\n4,5\n6,7e0\n8,-9.5\n"),
		"raw/node-label.csv.gz":    gz("1\n0\n2\nnan\n2.0\n"),
		"split/time/train.csv.gz":  gz("0\n4\n"),
		"split/time/valid.csv.gz":  gz("1\n"),
		"split/time/test.csv.gz":   gz("2\n3\n"),
	}
})

func TestOGB(t *testing.T) {
	d, stats := converted(t, putFile(t, ogbFiles()), Options{})
	sameGraph(t, d.Graph, handGraph(t, 5, false))
	checkHand(t, d)
	if stats.Format != "ogb" || !slices.Equal(d.Features.F32, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, -9.5}) {
		t.Errorf("format %s, features %v", stats.Format, d.Features.F32)
	}

	files := ogbFiles()
	files["raw/node-label.csv"] = "0,1\n1,0\nnan,1\n0,0\n1,1\n"
	delete(files, "raw/node-label.csv.gz")
	delete(files, "raw/node-feat.csv.gz")
	files["split/random/train.csv.gz"] = gz("3\n")
	files["split/random/valid.csv.gz"] = gz("")
	files["split/random/test.csv.gz"] = gz("0\n")
	d, _ = converted(t, putFile(t, files), Options{Name: "random", Undirected: true})
	sameGraph(t, d.Graph, handGraph(t, 5, true))
	if want := []int8{0, 1, 1, 0, -1, 1, 0, 0, 1, 1}; d.MultiLabels == nil || !slices.Equal(d.MultiLabels.Data, want) || d.Metric() != dataset.MetricROCAUC {
		t.Errorf("labels %+v, metric %s", d.MultiLabels, d.Metric())
	}
	if ids, err := d.Split("train"); err != nil || !slices.Equal(ids, []int32{3}) {
		t.Errorf("train is %v (%v)", ids, err)
	}

	files = ogbFiles()
	for name := range files {
		if strings.HasPrefix(name, "raw/") {
			delete(files, name)
		}
	}
	files["raw/data.npz"] = npzFile(map[string]string{
		"edge_index": npyFile("<i8", "2, 4", []int64{0, 0, 1, 2, 1, 2, 2, 3}),
		"node_feat":  npyFile("<f4", "5, 1", []float32{1, 2, 3, 4, 5}),
	})
	files["raw/node-label.npz"] = npzFile(map[string]string{"node_label": npyFile("<f4", "5, 1", []float32{1, 0, 2, -1, 2})})
	d, _ = converted(t, putFile(t, files), Options{})
	sameGraph(t, d.Graph, handGraph(t, 5, false))
	checkHand(t, d)
	if d.FeatureDim() != 1 {
		t.Errorf("%s; want a feature", d)
	}
}

func numpyFiles() map[string]string {
	return map[string]string{
		"edge_index.npy":  npyFile("<i8", "2, 4", []int64{0, 0, 1, 2, 1, 2, 2, 3}),
		"edge_weight.npy": npyFile("<f8", "4,", []float64{0.5, 1, 2, 3}),
		"x.npy":           npyFile("<f2", "5, 1", []uint16{0, 0x3c00, 0x4000, 0xc000, 0x0001}),
		"y.npy":           npyFile("<i8", "5,", []int64{1, 0, 2, -1, 2}),
		"train_mask.npy":  npyFile("|b1", "5,", []byte{1, 0, 0, 0, 1}),
		"valid_idx.npy":   npyFile("<i4", "1,", []int32{1}),
		"test.npy":        npyFile("<i8", "2,", []int64{3, 2}),
	}
}

func TestNumPy(t *testing.T) {
	d, stats := converted(t, putFile(t, numpyFiles()), Options{})
	sameGraph(t, d.Graph, handGraph(t, 5, false))
	checkHand(t, d)
	if want := []float32{0, 1, 2, -2, 1.0 / (1 << 24)}; !slices.Equal(d.Features.F32, want) || !slices.Equal(d.Graph.EdgeWeights, []float32{0.5, 1, 2, 3}) || stats.Format != "numpy" {
		t.Errorf("features %v, weights %v, format %s", d.Features.F32, d.Graph.EdgeWeights, stats.Format)
	}
	// The edges are pairs without labels: the number of nodes is the largest id plus 1.
	d, _ = converted(t, putFile(t, map[string]string{"edge_index.npy": npyFile("<u4", "4, 2", []uint32{0, 1, 0, 2, 1, 2, 2, 3})}), Options{})
	sameGraph(t, d.Graph, handGraph(t, 4, false))
	// [2, edges] in column-major order is a list of pairs.
	text := strings.Replace(npyFile("<i8", "2, 4", []int64{0, 1, 0, 2, 1, 2, 2, 3}), "'fortran_order': False", "'fortran_order': True ", 1)
	d, _ = converted(t, putFile(t, map[string]string{"edge_index.npy": text}), Options{})
	sameGraph(t, d.Graph, handGraph(t, 4, false))
}

// A folder of several files needs a name; --format is used without detection.
func TestChoosing(t *testing.T) {
	dir := putFile(t, map[string]string{"a.txt": "0 1\n", "b.graph": "2 1\n2\n1\n", "README.md": "0 1\n", "c.bin": "\x00\x01"})
	d, stats := converted(t, dir, Options{Name: "b"})
	if stats.Format != "metis" || d.Edges() != 2 || d.Name() != "b" {
		t.Errorf("%s by %s", d, stats.Format)
	}
	refused(t, dir, Options{}, "several datasets, a, b", "--name")
	refused(t, dir, Options{Name: "z"}, `no dataset "z"`)
	refused(t, dir, Options{Name: "a", Format: "excel"}, "no format \"excel\"", "graphsaint", "edgelist")
	refused(t, dir, Options{Format: "graphsaint"}, "class_map.json is missing")
	refused(t, one(t, "a.txt", "0 1\n"), Options{Format: "ogb"}, "is a file")
	refused(t, one(t, "a.bin", "\x00\x01"), Options{}, "no known format", "edgelist")
	refused(t, t.TempDir(), Options{}, "folder of no known format")
	refused(t, dir+"/nothing", Options{}, "no such file")
	d, _ = converted(t, one(t, "3.graph", "3 2\n2 0\n"), Options{Format: "edgelist"})
	if d.Nodes() != 4 {
		t.Errorf("%s; want 4 nodes", d)
	}
}
