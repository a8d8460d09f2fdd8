package dataset

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/simd"
)

// shop is two users (0, 1) with two features, no shop, three items (2, 3, 4) with sparse features of
// another width, and classes of users and items.
func shop(t testing.TB) *Dataset {
	t.Helper()
	g, err := graphops.FromEdgesWith(5, []int32{0, 1, 0, 0, 2, 1}, []int32{2, 2, 4, 1, 0, 1},
		graphops.EdgeData{Types: []uint16{0, 0, 0, 1, 3, 1}}, graphops.BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(&graphops.Schema{
			Nodes: []graphops.NodeType{{Name: "user", Count: 2}, {Name: "shop", Count: 0}, {Name: "item", Count: 3}},
			Relations: []graphops.Relation{
				{Src: "user", Name: "likes", Dst: "item"},
				{Src: "user", Name: "knows", Dst: "user"},
				{Src: "shop", Name: "sells", Dst: "item"},
				{Src: "item", Name: "likes", Dst: "user"},
			},
		}, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &Dataset{
		Graph: g,
		NodeFeatures: []NodeFeatures{
			{Dense: &Matrix{Rows: 2, Cols: 2, F32: []float32{1, 2, 3, 4}}},
			{},
			{Sparse: &Sparse{Rows: 3, Cols: 7, Indptr: []int64{0, 1, 1, 3}, Indices: []int32{6, 0, 2}, Values: []float32{.5, 1, -1}}},
		},
		Labels:     []int32{1, -1, 2, 0, -1},
		Splits:     map[string][]int32{"train": {0, 3}, "test": {2}},
		EdgeSplits: map[string][]int64{"train": {0, 1, 5}, "val": {2}, "test": {4}},
		Meta: Metadata{
			Name: "shop", NumClasses: 3,
			NodeTypes: []NodeType{{Name: "user", NumClasses: 2}, {Name: "shop"}, {Name: "item", NumClasses: 3, ClassNames: []string{"a", "b", "c"}}},
		},
	}
}

func sameTypes(t *testing.T, got, want *Dataset) {
	t.Helper()
	same(t, got, want)
	if !got.Schema().Equal(want.Schema()) || !slices.Equal(got.Graph.EdgeTypes, want.Graph.EdgeTypes) {
		t.Errorf("the types are %v, not %v", got.Graph.EdgeTypes, want.Graph.EdgeTypes)
	}
	if !reflect.DeepEqual(got.EdgeSplits, want.EdgeSplits) {
		t.Errorf("the splits of edges are %v, not %v", got.EdgeSplits, want.EdgeSplits)
	}
	for k := range want.Schema().Nodes {
		a, b := got.FeaturesOf(k), want.FeaturesOf(k)
		if (a.Dense == nil) != (b.Dense == nil) || a.Dense != nil && (a.Dense.Cols != b.Dense.Cols || !bytes.Equal(rawBytes(a.Dense.F32), rawBytes(b.Dense.F32)) || !slices.Equal(a.Dense.F16, b.Dense.F16)) {
			t.Errorf("the dense features of type %d are %v, not %v", k, a.Dense, b.Dense)
		}
		if (a.Sparse == nil) != (b.Sparse == nil) || a.Sparse != nil && !sameSparse(a.Sparse, b.Sparse) {
			t.Errorf("the sparse features of type %d differ", k)
		}
		if got.ClassesOf(k) != want.ClassesOf(k) {
			t.Errorf("type %d has %d classes, not %d", k, got.ClassesOf(k), want.ClassesOf(k))
		}
	}
}

// A directory, a packed file and a memory file have the content of the dataset.
func TestStoredTypes(t *testing.T) {
	want := shop(t)
	dir := stored(t, want)
	d := open(t, dir)
	sameTypes(t, d, want)
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if !d.Stored() || len(d.Meta.NodeTypes) != 3 || d.Meta.NodeTypes[2].ClassNames[1] != "b" || d.Meta.NodeTypes[2].FeatureFormat != FormatCSR {
		t.Errorf("the metadata are %+v", d.Meta.NodeTypes)
	}
	if a, b := digests(t, d), digests(t, want); a != b {
		t.Errorf("opened, the digests differ in %v", a.Differences(b))
	}
	for _, file := range []string{edgeTypesFile, "features.user.npy", "features_indptr.item.npy", "features_indices.item.npy", "features_values.item.npy", "edge_split_val.npy"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
	d.Graph = d.Graph.Homogeneous()
	if d.Stored() {
		t.Error("without its types the dataset counts as stored")
	}
	sameTypes(t, shared(t, want), want)
}

func TestTypesSummary(t *testing.T) {
	want := "shop: 5 nodes of 3 types, 6 edges of 4 relations, features of 2 types, 3 classes, edges split into train, val, test; train 2, test 1; "
	if s := shop(t).String(); !strings.HasPrefix(s, want) {
		t.Errorf("got  %s\nwant %s…", s, want)
	}
	bare := shop(t)
	bare.NodeFeatures, bare.EdgeSplits, bare.Graph = nil, nil, bare.Graph.Homogeneous()
	if got := shop(t).Bytes() - bare.Bytes(); got != 6*2+4*4+8*4+4*3+4*3+8*5 {
		t.Errorf("types, features and splits of edges count %d bytes", got)
	}
}

func TestTypedFeatureType(t *testing.T) {
	for _, to := range []string{"f16", "f32", ""} {
		dir := filepath.Join(t.TempDir(), "d")
		if err := WriteWith(t.Context(), dir, shop(t), WriteOptions{FeatureType: to}); err != nil {
			t.Fatal(err)
		}
		x := open(t, dir).FeaturesOf(0).Dense
		if x.Half() != (to == "f16") || !slices.Equal(x.Row(1), []float32{3, 4}) {
			t.Errorf("as %q the features are float16: %v, row 1 is %v", to, x.Half(), x.Row(1))
		}
	}
	d := shop(t)
	half := make([]uint16, 4)
	simd.ToHalf(half, d.NodeFeatures[0].Dense.F32)
	d.NodeFeatures[0].Dense = &Matrix{Rows: 2, Cols: 2, F16: half}
	dir := filepath.Join(t.TempDir(), "d")
	if err := WriteWith(t.Context(), dir, d, WriteOptions{FeatureType: "f32"}); err != nil {
		t.Fatal(err)
	}
	if x := open(t, dir).FeaturesOf(0).Dense; x.Half() || !slices.Equal(x.F32, []float32{1, 2, 3, 4}) {
		t.Errorf("back in float32 the features are %v", x)
	}
}

// Features of all nodes in one matrix are also those of each type.
func TestFeaturesOfAllNodes(t *testing.T) {
	d := shop(t)
	d.NodeFeatures, d.Features = nil, &Matrix{Rows: 5, Cols: 1, F32: []float32{1, 2, 3, 4, 5}}
	if got := open(t, stored(t, d)).FeaturesOf(2).Dense; !slices.Equal(got.F32, []float32{3, 4, 5}) {
		t.Errorf("items have the features %v", got.F32)
	}
	d.Features, d.SparseFeatures = nil, &Sparse{Rows: 5, Cols: 2, Indptr: []int64{0, 1, 1, 1, 2, 2}, Indices: []int32{1, 0}}
	if got := d.FeaturesOf(2).Sparse; got.Rows != 3 || !slices.Equal(got.Dense(), []float32{0, 0, 1, 0, 0, 0}) {
		t.Errorf("items have the sparse features %v", got.Dense())
	}
	if got := d.FeaturesOf(1); got.Cols() != 2 || got.Sparse.Rows != 0 {
		t.Errorf("a type without nodes has the features %+v", got)
	}
}

func TestEdgesOf(t *testing.T) {
	src, dst, types, err := shop(t).EdgesOf("train")
	if err != nil || !slices.Equal(src, []int32{2, 0, 0}) || !slices.Equal(dst, []int32{0, 1, 4}) || !slices.Equal(types, []uint16{3, 1, 0}) {
		t.Errorf("the edges are %v → %v of %v (%v)", src, dst, types, err)
	}
	if _, _, _, err := shop(t).EdgesOf("dev"); err == nil || !strings.Contains(err.Error(), "train val test") {
		t.Errorf("the error is %v", err)
	}
}

func TestWriteRefusesTypes(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(d *Dataset)
		want string
	}{
		{"types without a schema", func(d *Dataset) { d.Graph.Schema, d.NodeFeatures = nil, nil }, "no schema"},
		{"features without a schema", func(d *Dataset) { d.Graph = d.Graph.Homogeneous() }, "features by node type, but the graph has no schema"},
		{"too few types", func(d *Dataset) { d.Graph.EdgeTypes = d.Graph.EdgeTypes[1:] }, "5 edge types for 6 edges"},
		{"a type out of range", func(d *Dataset) { d.Graph.EdgeTypes[5] = 4 }, edgeTypesFile + " of shop: entry 5: type 4, but the schema has 4 relations"},
		{"ends that contradict", func(d *Dataset) { d.Graph.EdgeTypes[0] = 0 }, "goes from item to user, but its relation is user:likes:item"},
		{"other counts", func(d *Dataset) { d.Graph.Schema.Nodes[1].Count = 1 }, "the schema has 6 nodes and the graph 5"},
		{"features of too few types", func(d *Dataset) { d.NodeFeatures = d.NodeFeatures[:2] }, "features of 2 node types, but the schema has 3"},
		{"features of other nodes", func(d *Dataset) { d.NodeFeatures[0].Dense.Rows = 3 }, `node type "user" are [3, 2] with 4 values, for 2 nodes`},
		{"features twice", func(d *Dataset) { d.NodeFeatures[2].Dense = &Matrix{Rows: 3, Cols: 1, F32: make([]float32, 3)} }, "dense and sparse features"},
		{"features of all nodes too", func(d *Dataset) { d.Features = &Matrix{Rows: 5, Cols: 1, F32: make([]float32, 5)} }, "by node type and of all nodes"},
		{"features not finite", func(d *Dataset) { d.NodeFeatures[0].Dense.F32[3] = float32(math.NaN()) }, "features.user.npy of shop: row 1, column 1 is NaN"},
		{"sparse columns out of range", func(d *Dataset) { d.NodeFeatures[2].Sparse.Indices[0] = 7 }, "features_indices.item.npy of shop: entry 0: column 7"},
		{"a class out of the type's range", func(d *Dataset) { d.Labels[1] = 2 }, "entry 1 is 2, but nodes of type user have 2 classes"},
		{"a label of a type without", func(d *Dataset) { d.Meta.NodeTypes[0].NumClasses = 0 }, "nodes of type user have 0 classes"},
		{"more classes than the dataset", func(d *Dataset) { d.Meta.NodeTypes[0].NumClasses = 4 }, `"user" has 4 classes, but the dataset 3`},
		{"names of classes", func(d *Dataset) { d.Meta.NodeTypes[2].ClassNames = []string{"a"} }, "1 names for 3 classes"},
		{"an edge out of range", func(d *Dataset) { d.EdgeSplits["val"][0] = 6 }, "edge_split_val.npy of shop: entry 0 is 6; the graph has the edges 0 to 5"},
		{"edges that do not ascend", func(d *Dataset) { d.EdgeSplits["train"][1] = 0 }, "entry 1 is 0 after 0"},
		{"an edge in two splits", func(d *Dataset) { d.EdgeSplits["test"][0] = 5 }, "entry 0 is edge 5, which is also in the split train of edges"},
		{"a path as name", func(d *Dataset) { d.EdgeSplits["../x"] = nil }, `the split name "../x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := shop(t)
			c.edit(d)
			if err := Write(filepath.Join(t.TempDir(), "x"), d); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want an error with %q", err, c.want)
			}
		})
	}
}

func TestHostileTypes(t *testing.T) {
	types := func(edit func(list []any)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { meta(t, dir, func(m map[string]any) { edit(m["node_types"].([]any)) }) }
	}
	of := func(list []any, i int) map[string]any { return list[i].(map[string]any) }
	for _, c := range []struct {
		name string
		edit func(t *testing.T, dir string)
		want string
	}{
		{"no file of types", func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, edgeTypesFile)) }, "node_types in metadata.json requires it"},
		{"types in int32", func(t *testing.T, dir string) { putNPY(t, dir, edgeTypesFile, npyInt32, make([]int32, 6)) }, "its elements are int32; they must be uint16"},
		{"too few types", func(t *testing.T, dir string) { putNPY(t, dir, edgeTypesFile, npyUint16, make([]uint16, 5)) }, "its shape is [5]; by metadata.json it must be [6]"},
		{"other counts", types(func(list []any) { of(list, 0)["count"] = 3 }), "add up to 6, but num_nodes is 5"},
		{"a negative count", types(func(list []any) { of(list, 0)["count"] = -1 }), `"user" has -1 nodes`},
		{"a name that is a path", types(func(list []any) { of(list, 0)["name"] = "../user" }), "no colon or slash"},
		{"a relation of no type", func(t *testing.T, dir string) {
			meta(t, dir, func(m map[string]any) { of(m["relations"].([]any), 0)["src"] = "robot" })
		}, `"robot", which is no node type`},
		{"relations without types", func(t *testing.T, dir string) { meta(t, dir, func(m map[string]any) { delete(m, "node_types") }) }, "relations, but no node_types"},
		{"other columns", types(func(list []any) { of(list, 0)["feature_dim"] = 3 }), "features.user.npy: its shape is [2, 2]; by metadata.json it must be [2, 3]"},
		{"no features", func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "features.user.npy")) }, "feature_dim in metadata.json requires it (2)"},
		{"a format of no features", types(func(list []any) { of(list, 1)["feature_format"] = "csr" }), `feature_format of node type "shop" is "csr" with 0 features`},
		{"no split of edges", func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "edge_split_val.npy")) }, "edge_splits in metadata.json requires it"},
		{"a split in int32", func(t *testing.T, dir string) { putNPY(t, dir, "edge_split_val.npy", npyInt32, []int32{1}) }, "they must be int64"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, shop(t), c.edit, c.want) })
	}
	// Values are found by Check.
	dir := stored(t, shop(t))
	putNPY(t, dir, edgeTypesFile, npyUint16, []uint16{3, 1, 1, 0, 0, 9})
	if err := open(t, dir).Check(context.Background()); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, edgeTypesFile)+": entry 5: type 9") {
		t.Errorf("got %v", err)
	}
}

// rated is shop with edge features of their own width for two relations, and none for the others.
func rated(t testing.TB) *Dataset {
	t.Helper()
	d := shop(t)
	of := []*graphops.EdgeFeatures{{Cols: 2}, {Cols: 1}, nil, nil}
	for e, r := range d.Graph.EdgeTypes {
		if x := of[r]; x != nil {
			for c := range x.Cols {
				x.F32 = append(x.F32, float32(10*e+c))
			}
		}
	}
	x, err := graphops.EdgeFeaturesByRelation(d.Graph.EdgeTypes, of)
	if err != nil {
		t.Fatal(err)
	}
	d.Graph = d.Graph.WithEdgeData(x, nil)
	return d
}

// Each relation's edge features are a file of their own.
func TestStoredEdgeWidths(t *testing.T) {
	d := rated(t)
	dir := stored(t, d)
	o := open(t, dir)
	sameTypes(t, o, d)
	if got := []int{o.EdgeFeatureDimOf(0), o.EdgeFeatureDimOf(1), o.EdgeFeatureDimOf(2), o.EdgeFeatureDim()}; !slices.Equal(got, []int{2, 1, 0, 2}) || !slices.Equal(o.Meta.EdgeFeatureDims, []int{2, 1, 0, 0}) {
		t.Errorf("the widths are %v, in metadata.json %v", got, o.Meta.EdgeFeatureDims)
	}
	for r, x := range d.Graph.EdgeFeatures.ByRelation {
		if x != nil && !slices.Equal(o.Graph.EdgeFeatures.ByRelation[r].F32, x.F32) {
			t.Errorf("relation %d has the features %v", r, o.Graph.EdgeFeatures.ByRelation[r].F32)
		}
	}
	if err := o.Check(t.Context()); err != nil || !o.Stored() {
		t.Errorf("stored %v, checked %v", o.Stored(), err)
	}
	if a, b := d.Bytes(), shop(t).Bytes(); a-b != 4*(3*2+2) {
		t.Errorf("the features count %d bytes", a-b)
	}
	other := rated(t)
	other.Graph.EdgeFeatures.ByRelation[1].F32[0]++
	if got := fmt.Sprint(digests(t, d).Differences(digests(t, other))); got != "[structure]" {
		t.Errorf("with another feature the digests differ in %s", got)
	}
	half := filepath.Join(t.TempDir(), "half")
	if err := WriteWith(t.Context(), half, d, WriteOptions{EdgeFeatureType: "f16"}); err != nil {
		t.Fatal(err)
	}
	row := make([]float32, 2)
	if h := open(t, half); !h.Graph.EdgeFeatures.Half() || h.EdgeFeatureDimOf(1) != 1 {
		t.Error("the features are not float16")
	} else if h.Graph.EdgeFeatures.CopyRow(row, 1); row[0] != 10 {
		t.Errorf("a row in float16 is %v", row)
	}
	s, err := d.Subset([]int32{0, 2, 4})
	if err == nil {
		err = s.Check(t.Context())
	}
	if err != nil || s.EdgeFeatureDimOf(0) != 2 {
		t.Errorf("a subset: %v", err)
	}
	changed := func(edit func(m map[string]any)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { meta(t, dir, edit) }
	}
	for _, c := range []struct {
		name string
		edit func(t *testing.T, dir string)
		want string
	}{
		{"a relation's file of another width", func(t *testing.T, dir string) {
			putNPY(t, dir, "edge_features.1.npy", npyFloat32, []float32{1, 2}, 1, 2)
		}, "edge_features.1.npy: its shape is [1, 2]; by metadata.json it must be [2, 1]"},
		{"no file", func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "edge_features.0.npy")) }, "edge_feature_dims in metadata.json requires it"},
		{"too few widths", changed(func(m map[string]any) { m["edge_feature_dims"] = []int{2, 1} }), "edge_feature_dims has 2 numbers for 4 relations"},
		{"a negative width", changed(func(m map[string]any) { m["edge_feature_dims"] = []int{2, -1, 0, 0} }), "edge_feature_dims of relation user:knows:user is -1"},
		{"no widest", changed(func(m map[string]any) { m["edge_feature_dims"] = []int{1, 1, 0, 0} }), "edge_feature_dim is 2, but the largest of edge_feature_dims 1"},
		{"an unknown type", func(t *testing.T, dir string) { putNPY(t, dir, edgeTypesFile, npyUint16, []uint16{3, 1, 1, 0, 0, 9}) }, "entry 5: type 9"},
		{"other types", func(t *testing.T, dir string) { putNPY(t, dir, edgeTypesFile, npyUint16, []uint16{3, 1, 0, 0, 0, 0}) }, "edge_features.0.npy: its shape is"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, rated(t), c.edit, c.want) })
	}
	dir = stored(t, rated(t))
	putNPY(t, dir, "edge_features.1.npy", npyFloat32, []float32{1, float32(math.NaN())}, 2, 1)
	if err := open(t, dir).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "edge_features.1.npy: the row of edge") {
		t.Errorf("NaN: %v", err)
	}
}

// Another type, name of a relation, feature, class or split of edges is another dataset.
func TestTypesDigest(t *testing.T) {
	a := digests(t, shop(t))
	for _, c := range []struct {
		edit func(d *Dataset)
		want string
	}{
		{func(d *Dataset) { d.Graph.Schema.Relations[1].Name = "hates" }, "[structure]"},
		{func(d *Dataset) {
			d.Graph.Schema, d.Graph.EdgeTypes, d.NodeFeatures, d.Meta.NodeTypes = nil, nil, nil, nil
		}, "[structure features labels]"},
		{func(d *Dataset) { d.NodeFeatures[0].Dense.F32[0] = 7 }, "[features]"},
		{func(d *Dataset) { d.NodeFeatures[2].Sparse.Values[0] = 7 }, "[features]"},
		{func(d *Dataset) { d.Meta.NodeTypes[0].NumClasses = 3 }, "[labels]"},
		{func(d *Dataset) { d.EdgeSplits["train"][2] = 3 }, "[splits]"},
	} {
		d := shop(t)
		c.edit(d)
		if got := fmt.Sprint(a.Differences(digests(t, d))); got != c.want {
			t.Errorf("the digests differ in %s, not %s", got, c.want)
		}
	}
}

func TestTypedSubsetAndViews(t *testing.T) {
	d := shop(t)
	s, err := d.Subset([]int32{0, 2, 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The edges left are 2→0, 0→2 and 0→4, before positions 0, 3 and 5.
	if !slices.Equal(s.FeaturesOf(0).Dense.F32, []float32{1, 2}) || !slices.Equal(s.FeaturesOf(2).Sparse.Indices, []int32{6, 0, 2}) || !slices.Equal(s.EdgeSplits["train"], []int64{0, 2}) || len(s.EdgeSplits["test"]) != 0 {
		t.Errorf("the subset is %v with the edges %v", s, s.EdgeSplits)
	}
	view, err := d.WithSplitSet(0)
	if err != nil || view.Schema() != d.Schema() || len(view.NodeFeatures) != 3 || len(view.EdgeSplits) != 3 {
		t.Errorf("a view lost types: %v", err)
	}
	if _, err := d.WithSelfLoops(); err == nil || !strings.Contains(err.Error(), "Graph.WithSelfLoops") {
		t.Errorf("self-loops without types: %v", err)
	}
	loops, err := d.Graph.WithSelfLoops(0)
	if err != nil {
		t.Fatal(err)
	}
	with := d.WithGraph(loops)
	if err := with.Check(t.Context()); err != nil || with.Schema() != loops.Schema || with.EdgeSplits != nil {
		t.Errorf("with other edges: %v", err)
	}
	if err := EditMetadata(stored(t, d), func(m *Metadata) { m.NodeTypes, m.Relations, m.EdgeSplits = nil, nil, nil }); err != nil {
		t.Fatal(err)
	}
}

// A dataset whose types have the same classes needs no Meta.NodeTypes.
func TestClassesOfTypes(t *testing.T) {
	d := shop(t)
	d.Meta.NodeTypes = nil
	o := open(t, stored(t, d))
	if got := []int{o.ClassesOf(0), o.ClassesOf(1), o.ClassesOf(2)}; !slices.Equal(got, []int{3, 0, 3}) {
		t.Errorf("the types have %v classes", got)
	}
}

// Types name files: names with dots are kept apart, and those that no file can have, or that would break a line, are refused
// when they are written and when they are read.
func TestNamesOfTypesInFiles(t *testing.T) {
	named := func(a, b string) *Dataset {
		d := shop(t)
		s := *d.Graph.Schema
		s.Nodes = slices.Clone(s.Nodes)
		s.Nodes[0].Name, s.Nodes[2].Name = a, b
		s.Relations = slices.Clone(s.Relations)
		for i, r := range s.Relations {
			rename := map[string]string{"user": a, "item": b, "shop": "shop"}
			s.Relations[i].Src, s.Relations[i].Dst = rename[r.Src], rename[r.Dst]
		}
		g := *d.Graph
		g.Schema = &s
		d.Graph = &g
		d.Meta.NodeTypes[0].Name, d.Meta.NodeTypes[2].Name = a, b
		return d
	}
	for _, c := range []struct {
		a, b string
		good bool
	}{
		{"a", "a.b", true},
		{"indptr", "npy", true},
		{"a.npy", "a", true},
		{"ü", "日本", true},
		{"a\nb", "c", false},
		{"a\rb", "c", false},
		{"../a", "c", false},
		{".a", "c", false},
		{"", "c", false},
		{"a\x00", "c", false},
	} {
		d := named(c.a, c.b)
		dir := filepath.Join(t.TempDir(), "d")
		err := Write(dir, d)
		if c.good != (err == nil) {
			t.Errorf("types %q and %q: %v", c.a, c.b, err)
		}
		if err == nil {
			sameTypes(t, open(t, dir), d)
			continue
		}
		dir = stored(t, shop(t))
		meta(t, dir, func(m map[string]any) { m["node_types"].([]any)[1].(map[string]any)["name"] = c.a })
		if _, err := Open(dir); err == nil {
			t.Errorf("a directory with the type %q was opened", c.a)
		}
	}
}
