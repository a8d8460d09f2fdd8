package convert

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy/npytest"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/testneed"
)

// shchur returns a graph of four nodes: 0→1, 1→0, 1→2, 3→3, and 0→1 once more. Row 2 of its
// features is unsorted and has a repeated column.
func shchur() []npytest.Array {
	return []npytest.Array{
		npytest.Of("adj_data", float32(1), 2, 1, 1, 1),
		npytest.Of("adj_indices", int32(1), 1, 0, 2, 3),
		npytest.Of("adj_indptr", int32(0), 2, 4, 4, 5),
		npytest.Of("adj_shape", int64(4), 4),
		npytest.Of("attr_data", float32(3), 1, 2, 5, 0),
		npytest.Of("attr_indices", int32(2), 1, 0, 1, 2),
		npytest.Of("attr_indptr", int64(0), 1, 1, 4, 5),
		npytest.Of("attr_shape", int64(4), 3),
		npytest.Of("labels", int64(1), 0, -1, 1),
		{Name: "node_names", Type: "<U1", Shape: "(4,)", Data: []byte("a\x00\x00\x00b\x00\x00\x00c\x00\x00\x00d\x00\x00\x00")},
	}
}

// heterophilous returns a path of four nodes and a self-loop, with two splits.
func heterophilous() []npytest.Array {
	return []npytest.Array{
		npytest.Of("node_features", float32(1), 0, .5, 2, -1, 0, 0, 3).Reshaped("(4, 2)"),
		npytest.Of("node_labels", int64(0), 1, 1, 0),
		npytest.Of("edges", int64(0), 1, 1, 2, 2, 3, 3, 3).Reshaped("(4, 2)"),
		npytest.Of("train_masks", true, false, false, false, false, false, false, true).Reshaped("(2, 4)"),
		npytest.Of("val_masks", false, true, false, false, false, true, false, false).Reshaped("(2, 4)"),
		npytest.Of("test_masks", false, false, true, true, true, false, true, false).Reshaped("(2, 4)"),
	}
}

// npzWith returns arrays together with others; an array of others replaces one of the same name.
func npzWith(arrays []npytest.Array, others ...npytest.Array) []npytest.Array {
	for _, o := range others {
		if i := slices.IndexFunc(arrays, func(a npytest.Array) bool { return a.Name == o.Name }); i >= 0 {
			arrays[i] = o
		} else {
			arrays = append(arrays, o)
		}
	}
	return arrays
}

func without(arrays []npytest.Array, name string) []npytest.Array {
	return slices.DeleteFunc(arrays, func(a npytest.Array) bool { return a.Name == name })
}

func readGood(t *testing.T, arrays []npytest.Array) *dataset.Dataset {
	t.Helper()
	d, err := npzRead(npytest.Write(t, "small", npytest.Zip(t, arrays...)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	return d
}

func checkGraph(t *testing.T, d *dataset.Dataset, neighbours [][]int32) {
	t.Helper()
	for v, want := range neighbours {
		if got := d.Graph.InNeighbors(int32(v)); !slices.Equal(got, want) {
			t.Errorf("the neighbours of node %d are %v, want %v", v, got, want)
		}
	}
}

func TestShchur(t *testing.T) {
	d := readGood(t, shchur())
	checkGraph(t, d, [][]int32{{1}, {0, 2}, {1}, {}})
	if want := (&dataset.Sparse{Rows: 4, Cols: 3, Indptr: []int64{0, 1, 1, 3, 3}, Indices: []int32{2, 0, 1}}); !reflect.DeepEqual(d.SparseFeatures, want) {
		t.Errorf("the features are %+v, want %+v", d.SparseFeatures, want)
	}
	if d.Name() != "small" || !slices.Equal(d.Labels, []int32{1, 0, -1, 1}) || d.Classes() != 2 || len(d.Splits) != 0 || !d.Meta.Undirected || d.Features != nil {
		t.Errorf("the dataset is %v with the classes %v", d, d.Labels)
	}
	d = readGood(t, npzWith(shchur(), npytest.Of("attr_data", float32(3), 1, 2, -5, 0)))
	if want := []float32{3, 2, -4}; !slices.Equal(d.SparseFeatures.Values, want) {
		t.Errorf("with negative values the features are %v, want %v", d.SparseFeatures.Values, want)
	}
	// A file without features and classes, and one with dense features.
	bare := shchur()[:4]
	if d = readGood(t, bare); d.SparseFeatures != nil || d.Labels != nil || d.Classes() != 0 {
		t.Errorf("a file with only a graph is read as %v", d)
	}
	d = readGood(t, npzWith(bare, npytest.Of("attr_matrix", 1.5, 2, 3, 4, 5, 6, 7, 8).Reshaped("(4, 2)")))
	if d.SparseFeatures != nil || d.Features == nil || !slices.Equal(d.Features.F32, []float32{1.5, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("dense features: %v", d)
	}
}

func TestHeterophilous(t *testing.T) {
	d := readGood(t, heterophilous())
	checkGraph(t, d, [][]int32{{1}, {0, 2}, {1, 3}, {2, 3}})
	if !slices.Equal(d.Features.F32, []float32{1, 0, .5, 2, -1, 0, 0, 3}) || d.Features.Cols != 2 || !slices.Equal(d.Labels, []int32{0, 1, 1, 0}) {
		t.Errorf("the dataset is %v, %v, %v", d, d.Features, d.Labels)
	}
	want := map[string][]int32{"train": {0}, "val": {1}, "test": {2, 3}, "train@1": {3}, "val@1": {1}, "test@1": {0, 2}}
	if !reflect.DeepEqual(d.Splits, want) || d.SplitSets() != 2 {
		t.Errorf("the splits are %v, want %v", d.Splits, want)
	}
	if d.Meta.Metric != dataset.MetricROCAUC {
		t.Errorf("the metric of two classes is %q", d.Meta.Metric)
	}
	d = readGood(t, npzWith(heterophilous(), npytest.Of("node_labels", int64(0), 1, 2, 0)))
	if d.Meta.Metric != dataset.MetricAccuracy || d.Classes() != 3 {
		t.Errorf("the metric of %d classes is %q", d.Classes(), d.Meta.Metric)
	}
}

// What a file has and the dataset has not is counted: weights, self-loops, counts of words, repeated edges, arrays.
func TestNpzLeftOutIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		arrays []npytest.Array
		want   []string
	}{
		"shchur": {shchur(), []string{
			"dropped: small.npz: edges have a weight other than 1 in adj_data", "(1 of 5); edge_index.npy and edge_weight.npy",
			"edges from a node to itself are left out (1 of 4)", "counts of words, which become 0 and 1", "(3 of 3)",
			"nothing was read of the arrays node_names (1)",
		}},
		"heterophilous": {npzWith(heterophilous(), npytest.Of("edges", int64(0), 1, 1, 2, 2, 1, 3, 3, 3, 2).Reshaped("(5, 2)"), npytest.Of("years", int64(1), 2, 3, 4)), []string{
			"merged: small.npz: edges that repeat another one or its reverse are kept once (1 of 5)", "nothing was read of the arrays years (1)",
		}},
		"nothing": {heterophilous(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			if _, err := npzRead(npytest.Write(t, "small", npytest.Zip(t, c.arrays...)), func(n notice.Notice) { said = append(said, n.String()) }); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(strings.Join(said, "\n"), want) {
					t.Errorf("said %q, want %q", said, want)
				}
			}
			if c.want == nil && said != nil {
				t.Errorf("said %q of a file that is read whole", said)
			}
		})
	}
}

// Arrays in column-major order hold the same dataset.
func TestColumnMajor(t *testing.T) {
	want := readGood(t, heterophilous())
	for name, rows := range map[string]int{"node_features": 4, "edges": 4, "train_masks": 2, "val_masks": 2, "test_masks": 2} {
		arrays := heterophilous()
		for i, a := range arrays {
			if a.Name == name {
				arrays[i] = a.ColumnMajor(rows)
			}
		}
		got := readGood(t, arrays)
		a, err := got.Digests(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := want.Digests(t.Context(), nil)
		if err != nil || a != b {
			t.Errorf("%s in column-major order: %v differ (%v)", name, a.Differences(b), err)
		}
	}
	_, err := npzRead(npytest.Write(t, "bad", npytest.Zip(t, npzWith(heterophilous(),
		npytest.Of("node_features", float32(1), 0, .5, 2, -1, 0, 0, float32(math.NaN())).Reshaped("(4, 2)").ColumnMajor(4))...)), nil)
	if err == nil || !strings.Contains(err.Error(), "row 3, column 1") {
		t.Errorf("a NaN in the last feature gave %v", err)
	}
}

func TestHostile(t *testing.T) {
	nan := float32(math.NaN())
	object := npytest.Array{Name: "class_names", Type: "|O", Shape: "(1,)", Data: []byte("cposix\nsystem\n(S'id'\ntR.")}
	for _, c := range []struct {
		name   string
		arrays []npytest.Array
		want   string
	}{
		{"nothing of a dataset", []npytest.Array{npytest.Of("x", int32(1))}, `its arrays are ["x"]; a dataset has`},
		{"no arrays", nil, "its arrays are []"},
		{"code in names", npzWith(shchur(), object), `class_names.npy: its Python objects: at byte 0: it names "system" of the module "posix"`},
		{"code for classes", npzWith(shchur(), npytest.Array{Name: "labels", Type: "|O", Shape: "(4,)", Data: object.Data}), "labels.npy: its Python objects"},
		{"no adjacency", without(shchur(), "adj_indptr"), "the array adj_indptr is missing"},
		{"no shape", without(shchur(), "adj_shape"), "the array adj_shape is missing"},
		{"no values", without(shchur(), "attr_data"), "the array attr_data is missing"},
		{"a neighbour that is negative", npzWith(shchur(), npytest.Of("adj_indices", int32(1), 1, -1, 2, 3)), "entry 2 of adj_indices is -1; the columns are 0 to 3"},
		{"a neighbour beyond the last", npzWith(shchur(), npytest.Of("adj_indices", int32(1), 1, 0, 2, 4)), "entry 4 of adj_indices is 4"},
		{"a neighbour of 2^40", npzWith(shchur(), npytest.Of("adj_indices", int64(1), 1, 0, 1<<40, 4)), "entry 3 of adj_indices is 1099511627776"},
		{"bounds that descend", npzWith(shchur(), npytest.Of("adj_indptr", int32(0), 2, 1, 4, 5)), "entry 2 of adj_indptr is 1 after 2"},
		{"a shape of 2^40", npzWith(shchur(), npytest.Of("adj_shape", int64(1)<<40, 1<<40)), "the shape is [1099511627776, 1099511627776]"},
		{"a shape that is negative", npzWith(shchur(), npytest.Of("attr_shape", int64(4), -3)), "the shape is [4, -3]"},
		{"a shape of three", npzWith(shchur(), npytest.Of("adj_shape", int64(4), 4, 4)), "it must hold two numbers"},
		{"a shape that is not square", npzWith(shchur(), npytest.Of("adj_shape", int64(4), 5)), "an adjacency matrix is square"},
		{"features of no columns", npzWith(shchur(), npytest.Of("attr_shape", int64(4), 0), npytest.Of[int32]("attr_indices"), npytest.Of[float32]("attr_data"), npytest.Of("attr_indptr", int32(0), 0, 0, 0, 0)), "at least one column"},
		{"a column beyond the last", npzWith(shchur(), npytest.Of("attr_indices", int32(2), 1, 0, 3, 2)), "entry 3 of attr_indices is 3"},
		{"features of fewer nodes", npzWith(shchur(), npytest.Of("attr_shape", int64(3), 3), npytest.Of("attr_indptr", int32(0), 1, 1, 5)), "4 nodes need as many rows"},
		{"a value that is NaN", npzWith(shchur(), npytest.Of("attr_data", 3, nan, 2, 5, 0)), "entry 1 of attr_data is NaN"},
		{"a class of 2^40", npzWith(shchur(), npytest.Of("labels", int64(1), 0, 1<<40, 1)), "entry 2 of labels is 1099511627776; a class is at least 0"},
		{"a class below -1", npzWith(shchur(), npytest.Of("labels", int64(1), 0, -2, 1)), "entry 2 of labels is -2"},
		{"no class at all", npzWith(shchur(), npytest.Of("labels", int64(-1), -1, -1, -1)), "no class for any node"},
		{"classes of fewer nodes", npzWith(shchur(), npytest.Of("labels", int64(1), 0, 1)), "labels has 3 elements for 4 nodes"},
		{"classes that are fractions", npzWith(shchur(), npytest.Of("labels", 1.5, 0, 1, 1)), "of whole numbers was expected"},
		{"classes in a matrix", npzWith(shchur(), npytest.Of("labels_indptr", int32(0))), "nodes of several classes"},
		{"names in the place of numbers", npzWith(shchur(), npytest.Array{Name: "adj_indices", Type: "<U1", Shape: "(5,)", Data: make([]byte, 20)}), "of whole numbers was expected"},

		{"no edges", without(heterophilous(), "edges"), "the array edges is missing"},
		{"no features", without(heterophilous(), "node_features"), "the array node_features is missing"},
		{"no classes", without(heterophilous(), "node_labels"), "the array node_labels is missing"},
		{"an edge of three ends", npzWith(heterophilous(), npytest.Of("edges", int64(0), 1, 2).Reshaped("(1, 3)")), "it must have two columns"},
		{"an edge to a negative node", npzWith(heterophilous(), npytest.Of("edges", int64(0), 1, 1, -2).Reshaped("(2, 2)")), "row 1 of edges has the node -2"},
		{"an edge to a node beyond the last", npzWith(heterophilous(), npytest.Of("edges", int64(0), 4).Reshaped("(1, 2)")), "row 0 of edges has the node 4"},
		{"features of fewer nodes", npzWith(heterophilous(), npytest.Of("node_features", float32(1), 2, 3).Reshaped("(3, 1)")), "4 nodes need as many rows"},
		{"a feature that is infinite", npzWith(heterophilous(), npytest.Of("node_features", 1, 2, 3, math.Inf(1)).Reshaped("(4, 1)")), "row 3, column 0 of node_features is +Inf"},
		{"a float64 beyond float32", npzWith(heterophilous(), npytest.Of("node_features", 1, 2, 1e300, 4).Reshaped("(4, 1)")), "row 2, column 0 of node_features is +Inf"},
		{"masks of fewer nodes", npzWith(heterophilous(), npytest.Of("val_masks", true, false).Reshaped("(2, 1)")), "a column for each of 4 nodes"},
		{"masks of other numbers", npzWith(heterophilous(), npytest.Of("val_masks", int64(0), 1, 2, 0, 0, 0, 0, 0).Reshaped("(2, 4)")), "row 0, column 2 of val_masks is 2"},
		{"masks of other splits", npzWith(heterophilous(), npytest.Of("val_masks", true, false, false, false).Reshaped("(1, 4)")), "must have as many rows"},
		{"masks without training", without(heterophilous(), "train_masks"), "train_masks, which must have as many rows"},
	} {
		path := npytest.Write(t, "small", npytest.Zip(t, c.arrays...))
		_, err := npzRead(path, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is %v, want one with the path and %q", c.name, err, c.want)
		}
	}
}

func TestTruncated(t *testing.T) {
	for _, arrays := range [][]npytest.Array{shchur(), heterophilous()} {
		content := npytest.Zip(t, arrays...)
		path := npytest.Write(t, "small", content)
		for n := len(content) - 1; n >= 0; n-- {
			if err := os.Truncate(path, int64(n)); err != nil {
				t.Fatal(err)
			}
			if _, err := npzRead(path, nil); err == nil || !strings.Contains(err.Error(), path) {
				t.Fatalf("the first %d of %d bytes: %v", n, len(content), err)
			}
		}
	}
}

// Each byte is damaged in turn. A file that is still accepted gives the same dataset, because
// checksums cover the arrays, or lacks an optional array.
func TestDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, arrays := range [][]npytest.Array{shchur(), heterophilous()} {
		content := npytest.Zip(t, arrays...)
		path := npytest.Write(t, "small", content)
		step := 1
		if testing.Short() {
			step = 9
		}
		for i := 0; i < len(content); i += step {
			bad := slices.Clone(content)
			bad[i] ^= byte(1 + rng.IntN(255))
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			d, err := npzRead(path, nil)
			if err != nil {
				continue
			}
			if err := d.Check(context.Background()); err != nil {
				t.Fatalf("byte %d is %#x: %v", i, bad[i], err)
			}
		}
	}
}

// Errors are found before memory is allocated for the valid parts: the last class of 2^20 nodes is
// invalid, and everything else compresses well.
func TestMemory(t *testing.T) {
	const n = 1 << 17
	labels, indptr := make([]int64, n), make([]int32, n+1)
	labels[n-1] = -5
	indices, data := make([]int32, 8*n), make([]float32, 8*n)
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range indices {
		indices[i] = int32(rng.IntN(n))
	}
	for i := range indptr {
		indptr[i] = int32(8 * i)
	}
	content := npytest.Zip(t,
		npytest.Of("adj_data", data...), npytest.Of("adj_indices", indices...), npytest.Of("adj_indptr", indptr...),
		npytest.Of("adj_shape", int64(n), n), npytest.Of("labels", labels...))
	path := npytest.Write(t, "large", content)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := npzRead(path, nil)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "entry 131071 of labels is -5") {
		t.Fatal(err)
	}
	// The bound covers blocks and decompressors and does not depend on the file's size.
	if got := after.TotalAlloc - before.TotalAlloc; got > 2<<20 {
		t.Errorf("%d bytes were allocated before a file of %d was refused", got, len(content))
	}
}

// realFile returns the path of a public dataset.
func realFile(t *testing.T, name string) string {
	t.Helper()
	return testneed.RealData(t, name)
}

// realScript prints what NumPy reads from a file.
const realScript = `
import json, sys
import numpy as np
z = np.load(sys.argv[1])
found = {}
if "edges" in z.files:
    n = len(z["node_labels"])
    a, b = z["edges"].T
    found["y"] = z["node_labels"].tolist()
    found["features"] = z["node_features"].astype(np.float64).sum(1).tolist()
    found["train"] = [np.flatnonzero(m).tolist() for m in z["train_masks"]]
else:
    n = len(z["labels"])
    a, b = np.repeat(np.arange(n), np.diff(z["adj_indptr"])), z["adj_indices"]
    a, b = a[a != b], b[a != b]
    found["y"] = z["labels"].tolist()
    d = z["attr_data"] != 0
    rows = np.repeat(np.arange(n), np.diff(z["attr_indptr"]))
    found["features"] = np.bincount(rows[d], z["attr_indices"][d], minlength=n).tolist()
keys = np.unique(np.concatenate([a.astype(np.int64) * n + b, b.astype(np.int64) * n + a]))
found["degree"] = np.bincount(keys // n, minlength=n).tolist()
found["neighbours"] = np.bincount(keys // n, keys % n, minlength=n).tolist()
json.dump(found, sys.stdout)
`

func TestReal(t *testing.T) {
	for _, c := range []struct {
		file                                    string
		nodes, edges, features, classes, splits int
		metric                                  string
	}{
		{"shchur/amazon_cs.npz", 13752, 245861, 767, 10, 1, "accuracy"},
		{"shchur/coauthor_phy.npz", 34493, 247962, 8415, 5, 1, "accuracy"},
		{"heterophilous/tolokers.npz", 11758, 519000, 10, 2, 10, "roc_auc"},
	} {
		t.Run(strings.TrimSuffix(filepath.Base(c.file), ".npz"), func(t *testing.T) {
			path := realFile(t, c.file)
			d, err := npzRead(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Check(context.Background()); err != nil {
				t.Fatal(err)
			}
			if d.Nodes() != c.nodes || d.Edges() != 2*int64(c.edges) || d.FeatureDim() != c.features || d.Classes() != c.classes || d.SplitSets() != c.splits || d.Meta.Metric != c.metric {
				t.Errorf("the dataset is %v with %d split sets and %s", d, d.SplitSets(), d.Meta.Metric)
			}
			if d.SparseFeatures != nil && d.SparseFeatures.Values != nil {
				t.Error("the features are not 0 and 1")
			}
			likeNumPy(t, d, path)
		})
	}
}

func likeNumPy(t *testing.T, d *dataset.Dataset, path string) {
	if testing.Short() {
		return
	}
	exe := cmp.Or(os.Getenv("GNB_PYTHON"), "python3")
	if out, err := exec.Command(exe, "-c", "import numpy").CombinedOutput(); err != nil {
		t.Logf("%s has no NumPy to compare with (set GNB_PYTHON to one that has): %v: %s", exe, err, out)
		return
	}
	cmd := exec.Command(exe, "-c", realScript, path)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Y                            []int32
		Features, Degree, Neighbours []float64
		Train                        [][]int32
	}
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Labels, want.Y) {
		t.Error("the classes differ from NumPy's")
	}
	for k, ids := range want.Train {
		if !slices.Equal(d.Splits[dataset.SplitSetName("train", k)], ids) {
			t.Errorf("split set %d differs from NumPy's", k)
		}
	}
	for v := range d.Nodes() {
		var neighbours, features float64
		for _, u := range d.Graph.InNeighbors(int32(v)) {
			neighbours += float64(u)
		}
		if d.SparseFeatures != nil {
			cols, _ := d.SparseFeatures.Row(v)
			for _, c := range cols {
				features += float64(c)
			}
		} else {
			for _, x := range d.Features.Row(v) {
				features += float64(x)
			}
		}
		if float64(d.Graph.InDegree(int32(v))) != want.Degree[v] || neighbours != want.Neighbours[v] || math.Abs(features-want.Features[v]) > 1e-9 {
			t.Fatalf("node %d has %d neighbours adding up to %v and features to %v; NumPy finds %v, %v and %v",
				v, d.Graph.InDegree(int32(v)), neighbours, features, want.Degree[v], want.Neighbours[v], want.Features[v])
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(npytest.Zip(f, shchur()...))
	f.Add(npytest.Zip(f, heterophilous()...))
	path := filepath.Join(f.TempDir(), "a.npz")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := npzRead(path, nil)
		if err != nil {
			return
		}
		if err := d.Check(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// FuzzArrays changes the elements and shapes of arrays; checksums keep FuzzRead from reaching
// these.
func FuzzArrays(f *testing.F) {
	all := append(shchur(), heterophilous()...)
	for i, a := range all {
		f.Add(uint8(i), a.Type, a.Shape, a.Data)
	}
	path := filepath.Join(f.TempDir(), "a.npz")
	f.Fuzz(func(t *testing.T, which uint8, typ, shape string, data []byte) {
		if len(typ)+len(shape) > 1<<12 {
			return
		}
		i := int(which) % len(all)
		arrays := shchur()
		if i >= len(arrays) {
			arrays = heterophilous()
		}
		if err := os.WriteFile(path, npytest.Zip(t, npzWith(arrays, npytest.Array{Name: all[i].Name, Type: typ, Shape: shape, Data: data})...), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := npzRead(path, nil)
		if err != nil {
			return
		}
		if err := d.Check(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
