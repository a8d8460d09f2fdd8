package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/internal/mapped"
)

var inf = float32(math.Inf(1))

// small returns a dataset of five nodes with graph, features, labels, splits and metadata.
func small(t testing.TB) *Dataset {
	t.Helper()
	g, err := graphops.FromEdges(5, []int32{0, 1, 2, 0}, []int32{1, 2, 3, 3}, graphops.BuildOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	return &Dataset{
		Graph:    g,
		Features: &Matrix{Rows: 5, Cols: 2, F32: []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		Labels:   []int32{0, 1, 2, -1, 0},
		Splits:   map[string][]int32{"train": {0, 2}, "val": {1}, "test": {4, 3}, "extra": {}},
		Meta:     Metadata{Name: "small", NumClasses: 3, Undirected: true, Licence: "MIT"},
	}
}

func same(t *testing.T, got, want *Dataset) {
	t.Helper()
	if !slices.Equal(got.Graph.Indptr, want.Graph.Indptr) || !slices.Equal(got.Graph.Indices, want.Graph.Indices) {
		t.Error("the graphs differ")
	}
	if (got.Features == nil) != (want.Features == nil) {
		t.Error("one has features")
	} else if got.Features != nil && (got.Features.Rows != want.Features.Rows || got.Features.Cols != want.Features.Cols ||
		!bytes.Equal(rawBytes(got.Features.F32), rawBytes(want.Features.F32))) { // compares bits, so that NaN equals itself
		t.Error("the features differ")
	}
	if (got.Labels == nil) != (want.Labels == nil) || !slices.Equal(got.Labels, want.Labels) {
		t.Error("the labels differ")
	}
	if !bytes.Equal(rawBytes(got.Graph.EdgeWeights), rawBytes(want.Graph.EdgeWeights)) || (got.Graph.EdgeWeights == nil) != (want.Graph.EdgeWeights == nil) {
		t.Error("the weights differ")
	}
	if !slices.Equal(got.Graph.EdgeTimes, want.Graph.EdgeTimes) || (got.Graph.EdgeTimes == nil) != (want.Graph.EdgeTimes == nil) {
		t.Error("the edges' times differ")
	}
	if !reflect.DeepEqual(got.Graph.EdgeFeatures, want.Graph.EdgeFeatures) {
		t.Error("the edges' features differ")
	}
	if (got.SparseFeatures == nil) != (want.SparseFeatures == nil) || got.SparseFeatures != nil && !sameSparse(got.SparseFeatures, want.SparseFeatures) {
		t.Error("the sparse features differ")
	}
	if (got.MultiLabels == nil) != (want.MultiLabels == nil) || got.MultiLabels != nil && (got.MultiLabels.Cols != want.MultiLabels.Cols || !slices.Equal(got.MultiLabels.Data, want.MultiLabels.Data)) {
		t.Error("the targets differ")
	}
	if got.Metric() != want.Metric() || got.Meta.Seed != want.Meta.Seed || !slices.Equal(got.Meta.KnownAccuracies, want.Meta.KnownAccuracies) {
		t.Errorf("the metadata differ: %+v and %+v", got.Meta, want.Meta)
	}
	if !maps.EqualFunc(got.Splits, want.Splits, slices.Equal[[]int32]) {
		t.Errorf("the splits differ: %v and %v", got.SplitNames(), want.SplitNames())
	}
	if got.Name() != want.Name() || got.Classes() != want.Classes() || got.Meta.Undirected != want.Meta.Undirected ||
		got.Meta.Source != want.Meta.Source || got.Meta.Licence != want.Meta.Licence || got.Meta.Citation != want.Meta.Citation {
		t.Errorf("the metadata differ: %+v and %+v", got.Meta, want.Meta)
	}
}

// stored writes d and returns its directory.
func stored(t *testing.T, d *Dataset) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sub", d.Name())
	if err := Write(dir, d); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWriteOpen(t *testing.T) {
	none := &graphops.Graph{Indptr: []int64{0}}
	for name, d := range map[string]*Dataset{
		"small":     small(t),
		"karate":    Karate(),
		"rich":      rich(t),
		"ones":      ones(t),
		"edged":     edged(t),
		"edged f16": edgedHalf(t),
		"empty":     {Graph: none, Meta: Metadata{Name: "empty"}},
		"no labels": {Graph: none, Meta: Metadata{Name: "bare"}, Features: &Matrix{Cols: 3}},
		"one node":  {Graph: &graphops.Graph{Indptr: []int64{0, 0}}, Labels: []int32{-1}, Meta: Metadata{Name: "one", NumClasses: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := stored(t, d)
			got, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, d)
			if got.Dir() != dir || got.Nodes() != d.Nodes() || got.FeatureDim() != d.FeatureDim() {
				t.Errorf("got %s in %s", got, got.Dir())
			}
			if err := got.Check(context.Background()); err != nil {
				t.Errorf("Check: %v", err)
			}
			// A dataset that was opened can be written again and gives the same files.
			again := filepath.Join(t.TempDir(), "again")
			if err := Write(again, got); err != nil {
				t.Fatal(err)
			}
			for _, e := range ls(t, dir) {
				a, _ := os.ReadFile(filepath.Join(dir, e))
				b, err := os.ReadFile(filepath.Join(again, e))
				if e == MetadataFile { // its content includes the files' times
					a, b = untimed.ReplaceAll(a, nil), untimed.ReplaceAll(b, nil)
				}
				if err != nil || !bytes.Equal(a, b) {
					t.Errorf("%s differs when it is written again: %v", e, err)
				}
			}
			for range 2 {
				if err := got.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
		})
	}
}

var untimed = regexp.MustCompile(`"modified": ".*"(,\s*"head_digest": ".*")?|,\s*"metadata_digest": ".*"`)

func ls(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestInMemoryMetadataIsNotTouchedByWrite(t *testing.T) {
	d := small(t)
	dir := stored(t, d)
	if d.Meta.NumNodes != 0 {
		t.Error("Write changed the metadata of its argument, which other goroutines may read concurrently")
	}
	want := []string{
		"features.npy", "indices.npy", "indptr.npy", "labels.npy", "metadata.json",
		"split_extra.npy", "split_test.npy", "split_train.npy", "split_val.npy",
	}
	if got := ls(t, dir); !slices.Equal(got, want) {
		t.Errorf("files: %v", got)
	}
	var m Metadata
	text, err := os.ReadFile(filepath.Join(dir, MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if m.NumNodes != 5 || m.NumEdges != 8 || m.FeatureDim != 2 || !slices.Equal(m.Splits, []string{"train", "val", "test", "extra"}) {
		t.Errorf("metadata: %+v", m)
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(d *Dataset)
		want string
	}{
		{"no graph", func(d *Dataset) { d.Graph = nil }, "has no graph"},
		{"no name", func(d *Dataset) { d.Meta.Name = "" }, "no name"},
		{"rows", func(d *Dataset) { d.Features.Rows = 4 }, "4 rows of features for 5 nodes"},
		{"values", func(d *Dataset) { d.Features.F32 = d.Features.F32[:9] }, "9 feature values for [5, 2]"},
		{"columns", func(d *Dataset) { d.Features = &Matrix{Rows: 5} }, "0 columns"},
		{"labels", func(d *Dataset) { d.Labels = d.Labels[:3] }, "3 labels for 5 nodes"},
		{"classes", func(d *Dataset) { d.Meta.NumClasses = 0 }, "NumClasses is 0"},
		{"no labels", func(d *Dataset) { d.Labels = nil }, "there are no labels"},
		{"a split's name is a path", func(d *Dataset) { d.Splits["../../x"] = nil }, `"../../x"`},
		{"a split without a name", func(d *Dataset) { d.Splits[""] = nil }, `split name ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := small(t)
			c.edit(d)
			dir := t.TempDir()
			err := Write(filepath.Join(dir, "x"), d)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want an error with %q", err, c.want)
			}
			if left := ls(t, dir); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	t.Run("exists", func(t *testing.T) {
		dir := stored(t, small(t))
		if err := Write(dir, Karate()); !errors.Is(err, fs.ErrExist) {
			t.Errorf("got %v", err)
		}
		if d, err := Open(dir); err != nil || d.Name() != "small" {
			t.Errorf("the existing directory: %v, %v", d, err)
		}
	})
	t.Run("parent is a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Write(filepath.Join(file, "x"), small(t)); err == nil {
			t.Error("no error")
		}
	})
}

// refused stores the dataset, edits its directory, and checks that Open then returns an error that contains want.
func refused(t *testing.T, d *Dataset, edit func(t *testing.T, dir string), want string) {
	t.Helper()
	dir := stored(t, d)
	edit(t, dir)
	got, err := Open(dir)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v; want an error with %q", err, want)
	}
	if got != nil {
		_ = got.Close()
	}
}

// putNPY replaces a file of a directory with an array.
func putNPY[T number](t *testing.T, dir, name string, dtype npy.Type, values []T, shape ...int) {
	t.Helper()
	if shape == nil {
		shape = []int{len(values)}
	}
	put(t, dir, name, append(npy.EncodeHeader(dtype, shape...), rawBytes(values)...))
}

// put writes a file. If the directory is a dataset's, its metadata is made that of an older version, whose digests
// do not vouch for all files.
func put(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, MetadataFile)); err == nil && name != MetadataFile {
		meta(t, dir, func(map[string]any) {})
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// meta edits the metadata, as put does.
func meta(t *testing.T, dir string, edit func(m map[string]any)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	edit(m)
	if digests, ok := m["digests"].(map[string]any); ok {
		delete(digests, "metadata_digest")
		for _, f := range digests["files"].(map[string]any) {
			delete(f.(map[string]any), "head_digest")
		}
	}
	if text, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	put(t, dir, MetadataFile, text)
}

// TestHostile opens and checks directories with one defect each: every error is one sentence that
// names the file.
func TestHostile(t *testing.T) {
	good := stored(t, small(t))
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	setMeta := func(key string, value any) func(*testing.T, string) {
		return func(t *testing.T, dir string) { meta(t, dir, func(m map[string]any) { m[key] = value }) }
	}
	for _, c := range []struct {
		name string
		edit func(t *testing.T, dir string)
		file string // the file that the error names
		want string
	}{
		{"no metadata", remove(MetadataFile), MetadataFile, "not a dataset directory"},
		{"no indptr", remove(indptrFile), indptrFile, "does not exist"},
		{"no indices", remove(indicesFile), indicesFile, "does not exist"},
		{"no features", remove(featuresFile), featuresFile, "feature_dim in metadata.json requires it (2)"},
		{"no labels", remove(labelsFile), labelsFile, "num_classes in metadata.json requires it"},
		{"no split", remove("split_val.npy"), "split_val.npy", "splits in metadata.json requires it (val)"},

		{"metadata is no JSON", func(t *testing.T, dir string) { put(t, dir, MetadataFile, []byte("name: x")) }, MetadataFile, "not the JSON object"},
		{"metadata is huge", func(t *testing.T, dir string) { put(t, dir, MetadataFile, make([]byte, maxMetadata+1)) }, MetadataFile, "at most"},
		{"metadata is empty", func(t *testing.T, dir string) { put(t, dir, MetadataFile, []byte("{}")) }, MetadataFile, "format_version is 0"},
		{"a later version", setMeta("format_version", 7), MetadataFile, "format_version is 7"},
		{"no name", setMeta("name", ""), MetadataFile, "name is missing"},
		{"negative nodes", setMeta("num_nodes", -1), MetadataFile, "num_nodes is -1"},
		{"too many nodes", setMeta("num_nodes", 1<<31), MetadataFile, "node ids are int32"},
		{"negative edges", setMeta("num_edges", -1), MetadataFile, "num_edges is -1"},
		{"negative features", setMeta("feature_dim", -2), MetadataFile, "feature_dim is -2"},
		{"negative classes", setMeta("num_classes", -2), MetadataFile, "num_classes is -2"},
		{"fraction of a node", setMeta("num_nodes", 1.5), MetadataFile, "not the JSON object"},
		{"other nodes", setMeta("num_nodes", 6), indptrFile, "its shape is [6]; by metadata.json it must be [7]"},
		{"other edges", setMeta("num_edges", 9), indptrFile, "runs from 0 to 8"},
		{"other features", setMeta("feature_dim", 3), featuresFile, "its shape is [5, 2]; by metadata.json it must be [5, 3]"},
		{"split in another directory", setMeta("splits", []string{"../../etc/passwd"}), MetadataFile, `split name "../../etc/passwd"`},
		{"absolute split", setMeta("splits", []string{"/etc/passwd"}), MetadataFile, "split name"},
		{"split twice", setMeta("splits", []string{"val", "val"}), MetadataFile, "listed twice"},

		{"indptr is empty", func(t *testing.T, dir string) { put(t, dir, indptrFile, nil) }, indptrFile, "not a .npy file"},
		{"indptr of int32", func(t *testing.T, dir string) {
			putNPY(t, dir, indptrFile, npyInt32, []int32{0, 1, 2, 3, 4, 8})
		}, indptrFile, "its elements are int32; they must be int64"},
		{"indptr starts late", func(t *testing.T, dir string) {
			putNPY(t, dir, indptrFile, npyInt64, []int64{1, 2, 4, 6, 8, 8})
		}, indptrFile, "runs from 1 to 8"},
		{"indptr falls", func(t *testing.T, dir string) {
			putNPY(t, dir, indptrFile, npyInt64, []int64{0, 2, 1, 6, 8, 8})
		}, indptrFile, "entry 2: it falls from 2 to 1"},
		{"indptr runs past the end", func(t *testing.T, dir string) {
			putNPY(t, dir, indptrFile, npyInt64, []int64{0, 2, 1 << 40, 1 << 40, 8, 8})
		}, indptrFile, "entry 2"},
		{"indptr is negative", func(t *testing.T, dir string) {
			putNPY(t, dir, indptrFile, npyInt64, []int64{0, -9, 4, 6, 8, 8})
		}, indptrFile, "entry 1"},
		{"source out of range", func(t *testing.T, dir string) {
			putNPY(t, dir, indicesFile, npyInt32, []int32{1, 3, 0, 2, 1, 5, 0, 2})
		}, indicesFile, "entry 5: source 5 of node 2, but the graph has the nodes 0 to 4"},
		{"negative source", func(t *testing.T, dir string) {
			putNPY(t, dir, indicesFile, npyInt32, []int32{1, 3, 0, 2, 1, 3, -1, 2})
		}, indicesFile, "entry 6: source -1"},
		{"sources do not ascend", func(t *testing.T, dir string) {
			putNPY(t, dir, indicesFile, npyInt32, []int32{3, 1, 0, 2, 1, 3, 0, 2})
		}, indicesFile, "entry 1: the sources of node 0 do not ascend"},
		{"not undirected", func(t *testing.T, dir string) {
			putNPY(t, dir, indicesFile, npyInt32, []int32{1, 3, 0, 2, 1, 3, 0, 4})
		}, MetadataFile, "some edge has no reverse edge"},
		{"header lies", func(t *testing.T, dir string) {
			put(t, dir, indicesFile, append(npy.EncodeHeader(npyInt32, 8), make([]byte, 28)...))
		}, indicesFile, "the header says int32 [8], which is 32 bytes, but the file holds 28"},
		{"misshaped", func(t *testing.T, dir string) {
			putNPY(t, dir, featuresFile, npyFloat32, make([]float32, 10), 10)
		}, featuresFile, "its shape is [10]"},
		{"transposed", func(t *testing.T, dir string) {
			putNPY(t, dir, featuresFile, npyFloat32, make([]float32, 10), 2, 5)
		}, featuresFile, "its shape is [2, 5]"},
		{"integer features", func(t *testing.T, dir string) {
			putNPY(t, dir, featuresFile, npyInt32, make([]int32, 10), 5, 2)
		}, featuresFile, "its elements are int32; they must be float32"},
		{"infinite feature", func(t *testing.T, dir string) {
			putNPY(t, dir, featuresFile, npyFloat32, []float32{0, 0, 0, 0, 0, inf, 0, 0, 0, 0}, 5, 2)
		}, featuresFile, "row 2, column 1 is +Inf"},

		{"label is not a class", func(t *testing.T, dir string) {
			putNPY(t, dir, labelsFile, npyInt32, []int32{0, 1, 2, 3, 0})
		}, labelsFile, "entry 3 is 3; the classes are 0 to 2"},
		{"label below -1", func(t *testing.T, dir string) {
			putNPY(t, dir, labelsFile, npyInt32, []int32{0, 1, 2, -2, 0})
		}, labelsFile, "entry 3 is -2"},
		{"label that no int32 holds", func(t *testing.T, dir string) {
			putNPY(t, dir, labelsFile, npyInt64, []int64{0, 1, 1 << 40, 0, 0})
		}, labelsFile, "entry 2 is 1099511627776"},
		{"too few labels", func(t *testing.T, dir string) {
			putNPY(t, dir, labelsFile, npyInt32, []int32{0, 1})
		}, labelsFile, "its shape is [2]"},

		{"split out of range", func(t *testing.T, dir string) {
			putNPY(t, dir, "split_test.npy", npyInt32, []int32{3, 5})
		}, "split_test.npy", "entry 1 is 5; the graph has the nodes 0 to 4"},
		{"negative split", func(t *testing.T, dir string) {
			putNPY(t, dir, "split_test.npy", npyInt32, []int32{-1})
		}, "split_test.npy", "entry 0 is -1"},
		{"split repeats", func(t *testing.T, dir string) {
			putNPY(t, dir, "split_test.npy", npyInt32, []int32{3, 1, 3})
		}, "split_test.npy", "entry 2 is 3, which is already in the split"},
		{"split is a matrix", func(t *testing.T, dir string) {
			putNPY(t, dir, "split_test.npy", npyInt32, []int32{3, 1}, 1, 2)
		}, "split_test.npy", "a split is a list"},
		{"split is longer than the graph", func(t *testing.T, dir string) {
			putNPY(t, dir, "split_test.npy", npyInt32, make([]int32, 6))
		}, "split_test.npy", "it lists 6 nodes"},
		{"split of floats", func(t *testing.T, dir string) {
			putNPY(t, dir, "split_test.npy", npyFloat32, []float32{1})
		}, "split_test.npy", "its elements are float32"},

		{"a directory in place of a file", func(t *testing.T, dir string) {
			remove(labelsFile)(t, dir)
			if err := os.Mkdir(filepath.Join(dir, labelsFile), 0o700); err != nil {
				t.Fatal(err)
			}
		}, labelsFile, "not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) { hostile(t, good, c.edit, c.file, c.want) })
	}
}

// hostile edits a copy of the directory good, opens and checks it, and expects an error that names
// the file and contains want.
func hostile(t *testing.T, good string, edit func(t *testing.T, dir string), file, want string) {
	t.Helper()
	dir := t.TempDir() // copies the files, because Write would sync each of them
	if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
		t.Fatal(err)
	}
	edit(t, dir)
	d, err := Open(dir)
	if err == nil {
		defer d.Close()
		err = d.Check(context.Background())
	}
	if err == nil {
		t.Fatal("no error")
	}
	if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), filepath.Join(dir, file)) {
		t.Errorf("got %v; want an error about %s with %q", err, file, want)
	}
	if !strings.HasPrefix(err.Error(), "dataset: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("not one sentence of this package: %q", err)
	}
}

func TestOpenErrors(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	put(t, filepath.Dir(file), "file", nil)
	if _, err := Open(file); err == nil || !strings.Contains(err.Error(), "is a file") {
		t.Errorf("file: %v", err)
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a dataset directory") {
		t.Errorf("empty directory: %v", err)
	}
}

func TestInt64LabelsAndSplitsAreConverted(t *testing.T) {
	want := small(t)
	dir := stored(t, want)
	putNPY(t, dir, labelsFile, npyInt64, []int64{0, 1, 2, -1, 0})
	putNPY(t, dir, "split_test.npy", npyInt64, []int64{4, 3})
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	same(t, d, want)
	if err := d.Check(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestCheckNoticesChanges(t *testing.T) {
	dir := stored(t, small(t))
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	later := time.Now().Add(time.Hour)
	path := filepath.Join(dir, labelsFile)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(context.Background()); err == nil || !strings.Contains(err.Error(), path+" was changed since it was opened") {
		t.Errorf("touched: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(context.Background()); err == nil || !strings.Contains(err.Error(), path+" was removed") {
		t.Errorf("removed: %v", err)
	}
}

func TestCheckStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Karate().Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCheckInMemory(t *testing.T) {
	d := small(t)
	if err := d.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	d.Labels = []int32{0, 0, 9, 0, 0}
	if err := d.Check(context.Background()); err == nil || !strings.Contains(err.Error(), "labels.npy of small: entry 2 is 9") {
		t.Errorf("got %v", err)
	}
	d.Features = nil
	d.Labels = d.Labels[:1]
	if err := d.Check(context.Background()); err == nil || !strings.Contains(err.Error(), "1 labels for 5 nodes") {
		t.Errorf("got %v", err)
	}
}

// TestTruncationInUse truncates a file while it is mapped: reading it gives an error that names the
// file and does not end the process.
func TestTruncationInUse(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("files are read, not mapped, on " + runtime.GOOS)
	}
	made := planted(t, 4000, 50)
	dir := stored(t, made)
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	path := filepath.Join(dir, featuresFile)
	if err := os.Truncate(path, 3*4096); err != nil {
		t.Fatal(err)
	}
	rows := make([]float32, d.Nodes()*d.FeatureDim())
	for _, threads := range []int{1, 2} {
		err := mapped.Guard(func() error {
			d.Features.Gather(rows, nil, threads)
			return nil
		})
		var fault *mapped.Fault
		if !errors.As(err, &fault) || fault.File != path || fault.Offset < 3*4096 {
			t.Errorf("gathering on %d threads: got %v; want a fault in %s", threads, err, path)
		}
	}
	var fault *mapped.Fault
	if err := Write(filepath.Join(t.TempDir(), "copy"), d); err == nil {
		t.Error("writing a truncated dataset gave no error")
	}
	d.stamps = nil // as if the files' sizes had not been compared
	if err := d.Check(context.Background()); !errors.As(err, &fault) || fault.File != path {
		t.Errorf("Check: got %v; want a fault in %s", err, path)
	}
}

// TestKilledWrite kills a process at several moments while it writes a dataset.
func TestKilledWrite(t *testing.T) {
	if dir := os.Getenv("GNB_TEST_WRITE"); dir != "" {
		if err := Write(dir, planted(t, 20_000, 50)); err != nil {
			t.Fatal(err)
		}
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	for round := range rounds {
		parent := t.TempDir()
		dir := filepath.Join(parent, "data")
		cmd := exec.Command(exe, "-test.run=^TestKilledWrite$")
		cmd.Env = append(os.Environ(), "GNB_TEST_WRITE="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The process is killed once the round's number of files have been created.
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
			if files, _ := filepath.Glob(filepath.Join(parent, ".data.tmp-*", "*")); len(files) > 2*round {
				break
			}
			if _, err := os.Stat(dir); err == nil {
				break
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for _, name := range ls(t, parent) {
			path := filepath.Join(parent, name)
			d, err := Open(path)
			if err != nil {
				if name == "data" || !strings.Contains(err.Error(), MetadataFile) {
					t.Errorf("round %d: %s: %v", round, name, err)
				}
				continue
			}
			// The directory is complete: it was renamed, or the process was killed just before.
			if err := d.Check(context.Background()); err != nil {
				t.Errorf("round %d: %s looks complete, but %v", round, name, err)
			}
			_ = d.Close()
		}
	}
}

func TestEditMetadata(t *testing.T) {
	dir := stored(t, rich(t))
	put(t, dir, "."+MetadataFile+".gnb-tmp-7", []byte("of a process that was killed"))
	err := EditMetadata(dir, func(m *Metadata) {
		m.Name, m.Citation, m.Metric = "renamed", "a book", MetricMicroF1
		m.NumNodes, m.Splits, m.FeatureFormat, m.MultiLabel = 9, nil, "", false // has no effect
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	want := rich(t)
	want.Meta.Name, want.Meta.Citation, want.Meta.Metric = "renamed", "a book", MetricMicroF1
	same(t, d, want)
	if slices.Contains(ls(t, dir), "."+MetadataFile+".gnb-tmp-7") {
		t.Error("a temporary file is left")
	}
	for what, edit := range map[string]func(m *Metadata){
		`metric is "luck"`: func(m *Metadata) { m.Metric = "luck" },
		"no name":          func(m *Metadata) { m.Name = "" },
	} {
		if err := EditMetadata(dir, edit); err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := EditMetadata(t.TempDir(), func(*Metadata) {}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no dataset: %v", err)
	}
}
