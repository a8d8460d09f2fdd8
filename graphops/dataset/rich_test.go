package dataset

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// rich returns a dataset of five nodes with the contents that small lacks: weights, sparse
// features, multi-label targets, and several sets of splits.
func rich(t testing.TB) *Dataset {
	t.Helper()
	d := small(t)
	d.Meta = Metadata{
		Name: "rich", Undirected: true, Metric: MetricROCAUC, Seed: 7,
		KnownAccuracies: []KnownAccuracy{{Model: "GCN", Value: 81.5, Spread: 0.7, Source: "a paper"}},
	}
	d.Graph.EdgeWeights = []float32{0, 1, 2, 3, 4, 5, 6, 7}
	d.Features = nil
	d.SparseFeatures = &Sparse{Rows: 5, Cols: 4, Indptr: []int64{0, 2, 2, 3, 5, 6}, Indices: []int32{0, 3, 1, 1, 2, 3}, Values: []float32{1, -2, 3, 4, 5, 6}}
	d.Labels, d.MultiLabels = nil, &Multi{Rows: 5, Cols: 2, Data: []int8{0, 1, 1, 1, 0, 0, -1, 0, 1, -1}}
	d.Splits["train@1"], d.Splits["val@1"], d.Splits["test@1"] = []int32{1}, []int32{2}, []int32{}
	d.Splits["train@10"] = []int32{4}
	return d
}

// ones returns the dataset rich with features that are all 1 and without weights.
func ones(t testing.TB) *Dataset {
	t.Helper()
	d := rich(t)
	d.Meta.Name = "ones"
	d.Graph.EdgeWeights, d.SparseFeatures.Values = nil, nil
	return d
}

func sameSparse(a, b *Sparse) bool {
	return a.Rows == b.Rows && a.Cols == b.Cols && slices.Equal(a.Indptr, b.Indptr) && slices.Equal(a.Indices, b.Indices) &&
		(a.Values == nil) == (b.Values == nil) && bytes.Equal(rawBytes(a.Values), rawBytes(b.Values))
}

func TestRichSummary(t *testing.T) {
	d := rich(t)
	want := "rich: 5 nodes, 8 edges with weights, 4 features (sparse), 2 classes (any number per node); train 2, val 1, test 2, extra 0; 11 split sets; 250 B in memory"
	if d.String() != want {
		t.Errorf("got  %s\nwant %s", d, want)
	}
	names := []string{"train", "val", "test", "extra", "train@1", "val@1", "test@1", "train@10"}
	if !slices.Equal(d.SplitNames(), names) {
		t.Errorf("got %v", d.SplitNames())
	}
	if d.FeatureDim() != 4 || d.Classes() != 2 || d.Metric() != MetricROCAUC || Karate().Metric() != MetricAccuracy {
		t.Errorf("%d features, %d classes, %s", d.FeatureDim(), d.Classes(), d.Metric())
	}
}

func TestOpenedGraphHasTheWeights(t *testing.T) {
	d, err := Open(stored(t, rich(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Graph.Weight(5) != 5 || len(d.Graph.EdgeWeights) != 8 {
		t.Errorf("the graph's weights are %v", d.Graph.EdgeWeights)
	}
	same(t, rich(t), d)
}

func TestWithSplitSet(t *testing.T) {
	d := rich(t)
	if d.SplitSets() != 11 || d.SplitSet() != 0 || Karate().SplitSets() != 1 {
		t.Errorf("%d sets", d.SplitSets())
	}
	view, err := d.WithSplitSet(1)
	if err != nil {
		t.Fatal(err)
	}
	if got := view.SplitNames(); !slices.Equal(got, []string{"train", "val", "test", "extra"}) || !slices.Equal(got, view.Meta.Splits) {
		t.Errorf("the view has %v, its metadata %v", got, view.Meta.Splits)
	}
	if ids, err := view.Split("train"); err != nil || !slices.Equal(ids, []int32{1}) || view.SplitSet() != 1 || view.SplitSets() != 11 {
		t.Errorf("train of set 1 is %v: %v; set %d of %d", ids, err, view.SplitSet(), view.SplitSets())
	}
	if d.Splits["train"][1] != 2 || len(d.Splits) != 8 {
		t.Error("the view changed the dataset")
	}
	if !strings.Contains(view.String(), "train 1, val 1, test 0, extra 0 (split set 1 of 11)") {
		t.Errorf("%s", view)
	}
	// A view of a view is a view of the dataset; a set may lack some splits.
	tenth, err := view.WithSplitSet(10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenth.Split("val"); err == nil || !strings.Contains(err.Error(), "it has train, extra in each of 11 split sets") {
		t.Errorf("val of set 10: %v", err)
	}
	if zero, err := view.WithSplitSet(0); err != nil || !slices.Equal(zero.Splits["train"], d.Splits["train"]) {
		t.Errorf("back to set 0: %v", err)
	}
	for _, k := range []int{-1, 2, 11} {
		if _, err := d.WithSplitSet(k); err == nil || !strings.Contains(err.Error(), "no split set") {
			t.Errorf("set %d: %v", k, err)
		}
	}
	// A view that is packed becomes a dataset with one split set.
	var b bytes.Buffer
	if err := view.Pack(&b); err != nil {
		t.Fatal(err)
	}
	p, err := OpenFD(packFile(t, b.Bytes()))
	if err != nil || p.SplitSets() != 1 || !slices.Equal(p.Splits["train"], []int32{1}) {
		t.Errorf("packed: %v %v", p, err)
	}
}

func TestViewOfADirectory(t *testing.T) {
	dir := stored(t, rich(t))
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	view, err := d.WithSplitSet(1)
	if err != nil {
		t.Fatal(err)
	}
	if view.Dir() != dir {
		t.Errorf("Dir is %q", view.Dir())
	}
	if err := view.Check(context.Background()); err != nil {
		t.Error(err)
	}
	view.Splits["train"] = []int32{5}
	if err := view.Check(context.Background()); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "split_train@1.npy")+": entry 0 is 5") {
		t.Errorf("got %v", err)
	}
	if err := view.Close(); err != nil || d.closer != nil {
		t.Errorf("closing the view did not close the dataset: %v", err)
	}
}

func TestWriteRefusesRich(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(d *Dataset)
		want string
	}{
		{"both kinds of features", func(d *Dataset) { d.Features = &Matrix{Rows: 5, Cols: 1, F32: make([]float32, 5)} }, "both Features and SparseFeatures"},
		{"rows", func(d *Dataset) { d.SparseFeatures.Rows, d.SparseFeatures.Indptr = 4, d.SparseFeatures.Indptr[:5] }, "4 rows of sparse features for 5 nodes"},
		{"columns", func(d *Dataset) { d.SparseFeatures.Cols = 0 }, "0 columns"},
		{"indptr", func(d *Dataset) { d.SparseFeatures.Indptr = d.SparseFeatures.Indptr[:5] }, "the sparse features: Indptr: it has 5 entries for 5 rows"},
		{"elements", func(d *Dataset) { d.SparseFeatures.Indices = d.SparseFeatures.Indices[:5] }, "it runs from 0 to 6, but there are 5 elements"},
		{"values", func(d *Dataset) { d.SparseFeatures.Values = d.SparseFeatures.Values[:5] }, "5 values for 6 elements"},
		{"weights", func(d *Dataset) { d.Graph.EdgeWeights = d.Graph.EdgeWeights[:5] }, "5 weights for 8 edges"},
		{"both kinds of labels", func(d *Dataset) { d.Labels = make([]int32, 5) }, "both Labels and MultiLabels"},
		{"targets", func(d *Dataset) { d.MultiLabels.Data = d.MultiLabels.Data[:9] }, "9 targets for [5, 2]"},
		{"rows of targets", func(d *Dataset) { d.MultiLabels.Rows = 4 }, "4 rows of targets for 5 nodes"},
		{"metric", func(d *Dataset) { d.Meta.Metric = "luck" }, `metric is "luck"`},
		{"split set", func(d *Dataset) { d.Splits["train@x"] = nil }, `"train@x"`},
		{"split set 0", func(d *Dataset) { d.Splits["train@0"] = nil }, `"train@0"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := rich(t)
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
}

func TestHostileRich(t *testing.T) {
	good := stored(t, rich(t))
	type edit = func(t *testing.T, dir string)
	remove := func(name string) edit {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	setMeta := func(key string, value any) edit {
		return func(t *testing.T, dir string) { meta(t, dir, func(m map[string]any) { m[key] = value }) }
	}
	floats := func(name string, v ...float32) edit {
		return func(t *testing.T, dir string) { putNPY(t, dir, name, npyFloat32, v) }
	}
	ids := func(name string, v ...int32) edit {
		return func(t *testing.T, dir string) { putNPY(t, dir, name, npyInt32, v) }
	}
	offsets := func(v ...int64) edit {
		return func(t *testing.T, dir string) { putNPY(t, dir, featuresIndptrFile, npyInt64, v) }
	}
	nan := float32(math.NaN())
	for _, c := range []struct {
		name string
		edit edit
		file string
		want string
	}{
		{"no weights", remove(weightsFile), weightsFile, "weighted in metadata.json requires it"},
		{"no offsets", remove(featuresIndptrFile), featuresIndptrFile, "feature_format in metadata.json requires it (csr)"},
		{"no columns", remove(featuresIndicesFile), featuresIndicesFile, "requires it (csr)"},
		{"no values", remove(featuresValuesFile), featuresValuesFile, "requires it (csr)"},
		{"no split of a set", remove("split_val@1.npy"), "split_val@1.npy", "requires it (val@1)"},
		{"weights too few", floats(weightsFile, 1, 2, 3), weightsFile, "its shape is [3]; by metadata.json it must be [8]"},
		{"weights of int32", ids(weightsFile, 1, 2, 3, 4, 5, 6, 7, 8), weightsFile, "its elements are int32"},
		{"weight is negative", floats(weightsFile, 1, 2, 3, 4, -5, 6, 7, 8), weightsFile, "entry 4 is -5"},
		{"weight is infinite", floats(weightsFile, 1, 2, 3, 4, 5, 6, 7, inf), weightsFile, "entry 7 is +Inf"},
		{"weight is not a number", floats(weightsFile, nan, 2, 3, 4, 5, 6, 7, 8), weightsFile, "entry 0 is NaN"},
		{"unknown format", setMeta("feature_format", "coo"), MetadataFile, `feature_format is "coo"`},
		{"a format without features", setMeta("feature_dim", 0), MetadataFile, "feature_dim is 0"},
		{"too many columns", setMeta("feature_dim", 1<<31), MetadataFile, "columns are int32"},
		{"dense instead", setMeta("feature_format", ""), featuresFile, "feature_dim in metadata.json requires it"},
		{"targets without classes", setMeta("num_classes", 0), MetadataFile, "multi_label is true, but num_classes is 0"},
		{"one label a node", setMeta("multi_label", false), labelsFile, "its elements are int8; they must be int32"},
		{"other classes", setMeta("num_classes", 3), labelsFile, "its shape is [5, 2]; by metadata.json it must be [5, 3]"},
		{"unknown metric", setMeta("metric", "luck"), MetadataFile, `metric is "luck"`},
		{"offsets too few", offsets(0, 2, 2, 3, 6), featuresIndptrFile, "its shape is [5]"},
		{"offsets start late", offsets(1, 2, 2, 3, 5, 6), featuresIndptrFile, "it runs from 1 to 6"},
		{"offsets end early", offsets(0, 2, 2, 3, 5, 5), featuresIndptrFile, "it runs from 0 to 5, but features_indices.npy lists 6 elements"},
		{"offsets fall", offsets(0, 2, 1, 3, 5, 6), featuresIndptrFile, "entry 2: row 1 has the elements 2 to 1"},
		{"offsets run past the end", offsets(0, 2, 1<<40, 3, 5, 6), featuresIndptrFile, "entry 2"},
		{"offset is negative", offsets(0, -2, 2, 3, 5, 6), featuresIndptrFile, "entry 1"},
		{"column out of range", ids(featuresIndicesFile, 0, 4, 1, 1, 2, 3), featuresIndicesFile, "entry 1: column 4 in row 0"},
		{"column is negative", ids(featuresIndicesFile, 0, 3, -1, 1, 2, 3), featuresIndicesFile, "entry 2: column -1 in row 2"},
		{"columns do not ascend", ids(featuresIndicesFile, 3, 0, 1, 1, 2, 3), featuresIndicesFile, "entry 1: the columns of row 0 do not ascend"},
		{"column twice", ids(featuresIndicesFile, 0, 3, 1, 2, 2, 3), featuresIndicesFile, "entry 4: the columns of row 3 do not ascend"},
		{"columns are a matrix", func(t *testing.T, dir string) {
			putNPY(t, dir, featuresIndicesFile, npyInt32, make([]int32, 6), 2, 3)
		}, featuresIndicesFile, "it must be a list of columns"},
		{"values too few", floats(featuresValuesFile, 1, 2), featuresValuesFile, "its shape is [2]"},
		{"value is infinite", floats(featuresValuesFile, 1, -inf, 3, 4, 5, 6), featuresValuesFile, "entry 1: -Inf in row 0"},
		{"target is 2", func(t *testing.T, dir string) {
			putNPY(t, dir, labelsFile, npyInt8, []int8{0, 1, 1, 1, 0, 2, 0, 0, 0, 0}, 5, 2)
		}, labelsFile, "row 2, column 1 is 2"},
		{"target is -2", func(t *testing.T, dir string) {
			putNPY(t, dir, labelsFile, npyInt8, []int8{-2, 1, 1, 1, 0, 0, 0, 0, 0, 0}, 5, 2)
		}, labelsFile, "row 0, column 0 is -2"},
		{"split of a set is out of range", ids("split_train@1.npy", 7), "split_train@1.npy", "entry 0 is 7"},
		{"split set is a path", setMeta("splits", []string{"train@1/../../x"}), MetadataFile, "split name"},
	} {
		t.Run(c.name, func(t *testing.T) { hostile(t, good, c.edit, c.file, c.want) })
	}
}

// sparses draws a valid sparse matrix.
func sparses(t *rapid.T) *Sparse {
	s := &Sparse{Rows: rapid.IntRange(0, 20).Draw(t, "rows"), Cols: rapid.IntRange(1, 12).Draw(t, "cols"), Indptr: []int64{0}}
	if rapid.Bool().Draw(t, "values") {
		s.Values = []float32{}
	}
	for range s.Rows {
		mask := rapid.Uint16Range(0, 1<<s.Cols-1).Draw(t, "row")
		for c := range s.Cols {
			if mask>>c&1 != 0 {
				s.Indices = append(s.Indices, int32(c))
				if s.Values != nil {
					s.Values = append(s.Values, float32(1+len(s.Values)))
				}
			}
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	return s
}

// Gathering rows of a sparse matrix and making it dense commute, for every state of the reused
// memory.
func TestSparseGather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sparses(t)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		ids := []int32{}
		if s.Rows > 0 {
			ids = rapid.SliceOfN(rapid.Int32Range(0, int32(s.Rows)-1), 0, 600).Draw(t, "ids")
		}
		got := sparses(t) // the result must not depend on the earlier contents
		s.Gather(ids, got, rapid.IntRange(1, 3).Draw(t, "threads"))
		if err := got.Validate(); err != nil {
			t.Fatal(err)
		}
		if (got.Values == nil) != (s.Values == nil) {
			t.Fatal("values were added or lost")
		}
		want := &Matrix{Rows: len(ids), Cols: s.Cols, F32: make([]float32, len(ids)*s.Cols)}
		(&Matrix{Rows: s.Rows, Cols: s.Cols, F32: s.Dense()}).Gather(want.F32, ids, 1)
		if !slices.Equal(got.Dense(), want.F32) || got.Rows != want.Rows || got.Cols != want.Cols {
			t.Fatalf("rows %v: got %v, want %v", ids, got, want)
		}
	})
}
