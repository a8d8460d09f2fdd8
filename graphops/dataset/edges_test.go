package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/simd"
)

// edged returns the dataset rich with features and times of its edges.
func edged(t testing.TB) *Dataset {
	t.Helper()
	d := rich(t)
	d.Meta.Name = "edged"
	x := &graphops.EdgeFeatures{Cols: 3, F32: make([]float32, 24)}
	for i := range x.F32 {
		x.F32[i] = float32(i) / 8
	}
	d.Graph = d.Graph.WithEdgeData(x, []int64{8, -7, 6, 5, 1 << 60, 3, 2, 1})
	return d
}

func edgedHalf(t testing.TB) *Dataset {
	t.Helper()
	d := edged(t)
	d.Meta.Name = "edged f16"
	x := d.Graph.EdgeFeatures
	h := &graphops.EdgeFeatures{Cols: x.Cols, F16: make([]uint16, len(x.F32))}
	simd.ToHalf(h.F16, x.F32)
	d.Graph = d.Graph.WithEdgeData(h, nil)
	return d
}

// Datasets without features and times of edges are stored in the same bytes as by versions that did
// not know any, but for the digests of headers and of the metadata.
func TestDatasetsWithoutEdgeDataKeepTheirBytes(t *testing.T) {
	for name, c := range map[string]struct {
		d    *Dataset
		want string
	}{
		"small":  {small(t), "d26ea49b934927ebf1d0142d0d502442d595bdc15576c884c2ab9cb3cfe0e429"},
		"karate": {Karate(), "660a098c3ab33b4ea59f208b69d1988840704a357248d39d48cdb1907f244c25"},
		"rich":   {rich(t), "0928f3a629a558d697302b113142251e2335ea073d6f7406a7b539f5cf5b6dfe"},
	} {
		dir := stored(t, c.d)
		h := sha256.New()
		for _, file := range ls(t, dir) {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if file == MetadataFile { // its content includes the files' times
				text = untimed.ReplaceAll(text, nil)
			}
			fmt.Fprintf(h, "%s %d\n%s\n", file, len(text), text)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != c.want {
			t.Errorf("%s: the files have the sum %s, want %s", name, got, c.want)
		}
	}
}

func TestEdgeDataSummary(t *testing.T) {
	for want, d := range map[string]*Dataset{
		"8 edges with weights with 3 features with times, ": edged(t),
		"8 edges with weights with 3 features (float16), ":  edgedHalf(t),
	} {
		if s := d.String(); !strings.Contains(s, want) {
			t.Errorf("the summary is %q; it should contain %q", s, want)
		}
	}
	if a, b := edged(t).Bytes()-rich(t).Bytes(), edgedHalf(t).Bytes()-rich(t).Bytes(); a != 8*3*4+8*8 || b != 8*3*2 {
		t.Errorf("features and times count %d bytes, features in float16 %d", a, b)
	}
}

// A directory's features and times are those of the mapped files, in the processes of a run too.
func TestOpenedEdgeData(t *testing.T) {
	d := open(t, stored(t, edged(t)))
	same(t, d, edged(t))
	if !d.Stored() || !d.known.opened(edgeFeatureArray(d.Graph.EdgeFeatures, edgeFeaturesFile)) {
		t.Error("the features of the edges are not those of the file")
	}
	view, err := d.WithSplitSet(1)
	if err != nil || !view.Stored() || view.EdgeFeatureDim() != 3 || !view.HasEdgeTimes() {
		t.Errorf("a view has lost features or times of its edges: %v", err)
	}
	d.Graph = d.Graph.WithEdgeData(d.Graph.EdgeFeatures, slices.Clone(d.Graph.EdgeTimes))
	if d.Stored() {
		t.Error("a dataset with other times counts as stored")
	}
	same(t, shared(t, d), d)
}

func TestEdgeFeatureType(t *testing.T) {
	for _, c := range []struct {
		d    *Dataset
		to   string
		half bool
	}{{edged(t), "f16", true}, {edged(t), "f32", false}, {edged(t), "", false}, {edgedHalf(t), "", true}, {edgedHalf(t), "f32", false}} {
		dir := filepath.Join(t.TempDir(), "d")
		if err := WriteWith(t.Context(), dir, c.d, WriteOptions{EdgeFeatureType: c.to}); err != nil {
			t.Fatal(err)
		}
		x, row := open(t, dir).Graph.EdgeFeatures, make([]float32, 3)
		if x.CopyRow(row, 7); x.Half() != c.half || !slices.Equal(row, []float32{21. / 8, 22. / 8, 23. / 8}) {
			t.Errorf("%s as %q: float16 is %v, the last row %v", c.d.Name(), c.to, x.Half(), row)
		}
	}
	d := edged(t)
	d.Graph.EdgeFeatures.F32[4] = 1e6
	if err := WriteWith(t.Context(), filepath.Join(t.TempDir(), "d"), d, WriteOptions{EdgeFeatureType: "f16"}); err == nil || !strings.Contains(err.Error(), "edge features: row 1, column 1 is 1e+06") {
		t.Errorf("got %v", err)
	}
	if err := WriteWith(t.Context(), filepath.Join(t.TempDir(), "d"), d, WriteOptions{EdgeFeatureType: "f8"}); err == nil || !strings.Contains(err.Error(), `"f8"`) {
		t.Errorf("got %v", err)
	}
}

func TestWriteRefusesEdgeData(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name string
		edit func(g *graphops.Graph)
		want string
	}{
		{"too few features", func(g *graphops.Graph) { g.EdgeFeatures.F32 = g.EdgeFeatures.F32[:23] }, "23 values of edge features for 8 edges with 3 features each"},
		{"no columns", func(g *graphops.Graph) { g.EdgeFeatures.Cols = 0 }, "edge features of 0 columns"},
		{"both types", func(g *graphops.Graph) { g.EdgeFeatures.F16 = make([]uint16, 24) }, "in both F32 and F16"},
		{"NaN", func(g *graphops.Graph) { g.EdgeFeatures.F32[11] = nan }, edgeFeaturesFile + " of edged: row 3, column 2 is NaN"},
		{"too few times", func(g *graphops.Graph) { g.EdgeTimes = g.EdgeTimes[1:] }, "7 edge times for 8 edges"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := edged(t)
			c.edit(d.Graph)
			if err := Write(filepath.Join(t.TempDir(), "x"), d); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want an error with %q", err, c.want)
			}
		})
	}
}

func TestHostileEdgeData(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(t *testing.T, dir string)
		want string
	}{
		{"no features", func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, edgeFeaturesFile)) }, "edge_feature_dim in metadata.json requires it (3)"},
		{"no times", func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, edgeTimesFile)) }, "edge_times in metadata.json requires it"},
		{"features of a vector", func(t *testing.T, dir string) { putNPY(t, dir, edgeFeaturesFile, npyFloat32, make([]float32, 24)) }, "its shape is [24]; by metadata.json it must be [8, 3]"},
		{"other columns", func(t *testing.T, dir string) { meta(t, dir, func(m map[string]any) { m["edge_feature_dim"] = 4 }) }, "its shape is [8, 3]; by metadata.json it must be [8, 4]"},
		{"negative columns", func(t *testing.T, dir string) { meta(t, dir, func(m map[string]any) { m["edge_feature_dim"] = -1 }) }, "edge_feature_dim is -1"},
		{"times too few", func(t *testing.T, dir string) { putNPY(t, dir, edgeTimesFile, npyInt64, make([]int64, 7)) }, "its shape is [7]; by metadata.json it must be [8]"},
		{"times in float32", func(t *testing.T, dir string) { putNPY(t, dir, edgeTimesFile, npyFloat32, make([]float32, 8)) }, "times are int64: choose a unit in which they are whole numbers"},
		{"times in int32", func(t *testing.T, dir string) { putNPY(t, dir, edgeTimesFile, npyInt32, make([]int32, 8)) }, "its elements are int32; they must be int64"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, edged(t), c.edit, c.want) })
	}
	// Values are found by Check.
	dir := stored(t, edged(t))
	path := filepath.Join(dir, edgeFeaturesFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(text[len(text)-4:], "\x00\x00\x80\x7f") // +Inf
	put(t, dir, edgeFeaturesFile, text)
	if err := open(t, dir).Check(t.Context()); err == nil || !strings.Contains(err.Error(), path+": row 7, column 2 is +Inf") {
		t.Errorf("got %v", err)
	}
}

// EditMetadata does not change which files there are.
func TestEditMetadataKeepsEdgeData(t *testing.T) {
	dir := stored(t, edged(t))
	if err := EditMetadata(dir, func(m *Metadata) { m.Name, m.EdgeFeatureDim, m.EdgeTimes = "renamed", 0, false }); err != nil {
		t.Fatal(err)
	}
	if d := open(t, dir); d.Name() != "renamed" || d.EdgeFeatureDim() != 3 || !d.HasEdgeTimes() {
		t.Errorf("got %s", d)
	}
}

// Another feature or time of an edge is another dataset, by its digest and in the check before a run.
func TestEdgeDataDigest(t *testing.T) {
	a := digests(t, edged(t))
	other := edged(t)
	other.Graph.EdgeFeatures.F32[23]++
	later := edged(t)
	later.Graph.EdgeTimes[7]++
	for name, d := range map[string]*Dataset{"another feature": other, "another time": later, "no features": rich(t)} {
		if b := digests(t, d); !slices.Equal(a.Differences(b), []string{"structure"}) || a.Whole == b.Whole {
			t.Errorf("%s: the digests differ in %v", name, a.Differences(b))
		}
	}
}

func TestSelfLoopsHaveEdgeData(t *testing.T) {
	d := edged(t)
	d.Graph.EdgeWeights = nil
	s, err := d.WithSelfLoops()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	x, at, row := s.Graph.EdgeFeatures, int64(0), make([]float32, 3)
	for v := range int32(d.Nodes()) {
		mean, want := make([]float32, 3), make([]float32, 3)
		lo, hi := d.Graph.Indptr[v], d.Graph.Indptr[v+1]
		for e := lo; e < hi; e++ {
			d.Graph.EdgeFeatures.CopyRow(want, e)
			for c, y := range want {
				mean[c] += y / float32(hi-lo)
			}
		}
		for _, u := range s.Graph.InNeighbors(v) {
			x.CopyRow(row, at)
			time := s.Graph.EdgeTimes[at]
			if u == v {
				for c := range mean {
					if math.Abs(float64(mean[c]-row[c])) > 1e-6 || time != -7 {
						t.Errorf("the self-loop of node %d has the features %v at %d; want %v at -7", v, row, time, mean)
					}
				}
			} else {
				if d.Graph.EdgeFeatures.CopyRow(want, lo); !slices.Equal(row, want) || time != d.Graph.EdgeTimes[lo] {
					t.Errorf("the edge %d → %d has the features %v at %d; want %v at %d", u, v, row, time, want, d.Graph.EdgeTimes[lo])
				}
				lo++
			}
			at++
		}
	}
}

// checkSubsetEdges compares the features and times of the edges of node i of s, which is d's node
// ids[i].
func checkSubsetEdges(t *testing.T, d, s *Dataset, ids []int32, i int) {
	t.Helper()
	if d.EdgeFeatureDim() == 0 {
		return
	}
	at, want, got := s.Graph.Indptr[i], make([]float32, 3), make([]float32, 3)
	for e := d.Graph.Indptr[ids[i]]; e < d.Graph.Indptr[ids[i]+1]; e++ {
		if _, ok := slices.BinarySearch(ids, d.Graph.Indices[e]); !ok {
			continue
		}
		d.Graph.EdgeFeatures.CopyRow(want, e)
		s.Graph.EdgeFeatures.CopyRow(got, at)
		if !bytes.Equal(rawBytes(want), rawBytes(got)) || d.HasEdgeTimes() && d.Graph.EdgeTimes[e] != s.Graph.EdgeTimes[at] {
			t.Errorf("%s of %v: edge %d has other features or another time than edge %d before", d.Name(), ids, at, e)
		}
		at++
	}
}
