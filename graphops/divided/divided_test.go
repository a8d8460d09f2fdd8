package divided_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// planted returns a small dataset divided into four parts, where node v is in part v*v%3 + v%2;
// part 4 is empty.
func planted(t *testing.T) (*dataset.Dataset, []int32) {
	t.Helper()
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 600, Classes: 4, Features: 7})
	if err != nil {
		t.Fatal(err)
	}
	of := make([]int32, ds.Nodes())
	for v := range of {
		of[v] = int32(v*v%3 + v%2)
	}
	return ds, of
}

func write(t *testing.T, ds *dataset.Dataset, of []int32, o divided.Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "parts")
	if err := divided.Write(t.Context(), dir, ds, of, 4, o); err != nil {
		t.Fatal(err)
	}
	return dir
}

// timed returns the planted dataset with times of edges, some of which are events in an order that is not that of their positions.
func timed(t *testing.T) (*dataset.Dataset, []int32) {
	ds, of := planted(t)
	times := make([]int64, ds.Edges())
	features := make([]float32, 2*ds.Edges())
	for e := range times {
		times[e] = int64(e % 7)
		features[2*e] = float32(e)
	}
	timed := *ds
	timed.Graph, timed.Meta.TimeUnit = ds.Graph.WithEdgeData(&graphops.EdgeFeatures{Cols: 2, F32: features}, times), dataset.Seconds
	for at := range int64(7) {
		for e := ds.Edges() - 1; e >= 0; e-- {
			if times[e] == at && e%3 > 0 {
				timed.Events = append(timed.Events, e)
			}
		}
	}
	timed.Describe()
	return &timed, of
}

// Parts have the events of the undivided dataset in their order, and its digest; with or without the whole graph, all edges are found
// again at their positions, with what they have.
func TestEventsInParts(t *testing.T) {
	ds, of := timed(t)
	want, err := ds.Digests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, noTopology := range []bool{false, true} {
		dir := write(t, ds, of, divided.Options{NoTopology: noTopology})
		parts, err := dataset.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer parts.Close()
		if err := divided.CheckOnce(t.Context(), parts, dataset.CheckOnceOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, err := parts.Digests(t.Context(), nil); err != nil || got != want {
			t.Errorf("the digests are %+v, %v; want %+v", got, err, want)
		}
		whole, err := divided.WithEdges(t.Context(), parts, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, w := whole.Graph, ds.Graph
		if !slices.Equal(g.Indptr, w.Indptr) || !slices.Equal(g.Indices, w.Indices) || !slices.Equal(g.EdgeTimes, w.EdgeTimes) || !slices.Equal(g.EdgeFeatures.F32, w.EdgeFeatures.F32) {
			t.Errorf("without topology %v: the edges are not those of the undivided dataset", noTopology)
		}
		if !slices.Equal(whole.Events, ds.Events) || whole.Meta.NumEvents != ds.Meta.NumEvents || !slices.Equal(parts.Events, ds.Events) {
			t.Errorf("without topology %v: the events are not those of the undivided dataset: %v", noTopology, whole)
		}
		if (whole == parts) == noTopology {
			t.Error("a graph that is here is copied")
		}
		if !noTopology {
			continue
		}
		if err := os.RemoveAll(dataset.PartDir(dir, 2)); err != nil {
			t.Fatal(err)
		}
		if _, err := divided.WithEdges(t.Context(), parts, nil); !errors.Is(err, divided.ErrAbsent) || !strings.Contains(err.Error(), "part 2") {
			t.Errorf("without part 2: %v", err)
		}
	}
}

// The original ids of a dataset of tables are in the directory of its parts too.
func TestOriginalIDs(t *testing.T) {
	ds, of := planted(t)
	dir := filepath.Join(t.TempDir(), "whole")
	if err := dataset.Write(dir, ds); err != nil {
		t.Fatal(err)
	}
	var names strings.Builder
	for v := range ds.Nodes() {
		fmt.Fprintf(&names, "person %d\n", 7*v)
	}
	if err := os.WriteFile(filepath.Join(dir, dataset.NamesFile("")), []byte(names.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	whole, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	parts, err := dataset.Open(write(t, whole, of, divided.Options{NoTopology: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close()
	want, _ := whole.IDs()
	if got, err := parts.IDs(); err != nil || len(got) != ds.Nodes() || !slices.Equal(got, want) {
		t.Errorf("the ids are %d, %v; want those of the undivided dataset", len(got), err)
	}
	if err := divided.CheckOnce(t.Context(), parts, dataset.CheckOnceOptions{}); err != nil {
		t.Error(err)
	}
}

// kinds returns datasets with each kind of features and labels.
func kinds(t *testing.T) map[string]*dataset.Dataset {
	plain, _ := planted(t)
	weighted, half, sparse, multi, bare := *plain, *plain, *plain, *plain, *plain
	w := make([]float32, plain.Edges())
	for i := range w {
		w[i] = float32(1+i%13) / 4
	}
	weighted.Graph = plain.Graph.WithEdgeWeights(w)
	var err error
	if half.Features, err = plain.Features.Float16(); err != nil {
		t.Fatal(err)
	}
	s := &dataset.Sparse{Rows: plain.Nodes(), Cols: 50, Indptr: []int64{0}}
	for v := range plain.Nodes() {
		for c := int32(v % 3); c < int32(v%5)*10; c += 7 {
			s.Indices, s.Values = append(s.Indices, c), append(s.Values, float32(v)+float32(c)/8)
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	sparse.Features, sparse.SparseFeatures = nil, s
	multi.Labels, multi.MultiLabels = nil, &dataset.Multi{Rows: plain.Nodes(), Cols: 4}
	for v := range plain.Nodes() {
		for c := range 4 {
			multi.MultiLabels.Data = append(multi.MultiLabels.Data, int8((v+c)%3-1))
		}
	}
	edges, halfEdges := *plain, *plain
	edges.Graph = weighted.Graph.WithEdges(edgeData(plain.Graph, graphops.EdgeShape{Weighted: true, FeatureCols: 3, Times: true}))
	halfEdges.Graph = plain.Graph.WithEdges(edgeData(plain.Graph, graphops.EdgeShape{FeatureCols: 2, Half: true}))
	bare.Features, bare.Labels, bare.Meta.NumClasses = nil, nil, 0
	return map[string]*dataset.Dataset{"plain": plain, "weighted": &weighted, "half": &half, "sparse": &sparse, "multi": &multi, "bare": &bare, "edges": &edges, "half edges": &halfEdges}
}

// edgeData gives edge e of a graph data that is different for every edge.
func edgeData(g *graphops.Graph, s graphops.EdgeShape) (d graphops.EdgeData) {
	n := len(g.Indices)
	d.SetLen(s, n)
	for e := range n {
		if s.Weighted {
			d.Weights[e] = float32(1+e%13) / 4
		}
		if s.Times {
			d.Times[e] = int64(e*7919%n) - 100
		}
		for c := range s.FeatureCols {
			if i := e*s.FeatureCols + c; s.Half {
				d.Features.F16[i] = uint16(i % 0x7c00)
			} else {
				d.Features.F32[i] = float32(i) / 16
			}
		}
	}
	return d
}

// A divided dataset holds every node, edge, weight, feature and label of the whole exactly once.
func TestWriteAndOpen(t *testing.T) {
	for name, ds := range kinds(t) {
		_, of := planted(t)
		for _, none := range []bool{false, true} {
			if none && name != "weighted" && !strings.Contains(name, "edges") {
				continue
			}
			t.Run(fmt.Sprintf("%s/topology=%v", name, !none), func(t *testing.T) {
				b, err := divided.Open(write(t, ds, of, divided.Options{NoTopology: none}))
				if err != nil {
					t.Fatal(err)
				}
				defer b.Close()
				same(t, b, ds, of)
				if (b.Dataset().Graph == nil) != none {
					t.Errorf("the graph is %v", b.Dataset().Graph)
				}
				if err := b.Check(t.Context()); err != nil {
					t.Error(err)
				}
				if whole := b.Dataset(); whole.EdgeShape() != ds.EdgeShape() || whole.EdgeFeatureDim() != ds.EdgeFeatureDim() || strings.Contains(name, "edges") && !strings.HasPrefix(whole.String(), ds.String()[:strings.Index(ds.String(), ";")]) {
					t.Errorf("the divided dataset is %s with %v, the whole one %s with %v", whole, whole.EdgeShape(), ds, ds.EdgeShape())
				}
				got, err := b.Dataset().Digests(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if want, err := ds.Digests(t.Context(), nil); err != nil || got != want {
					t.Errorf("the digests are %v, want %v (%v)", got, want, err)
				}
			})
		}
	}
}

func same(t *testing.T, b *divided.Book, ds *dataset.Dataset, of []int32) {
	t.Helper()
	g := ds.Graph
	seen := 0
	for i := range b.Parts() {
		p, err := b.Part(i)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(p.Own) || !slices.IsSorted(p.Halo) {
			t.Errorf("part %d: the nodes do not ascend", i)
		}
		halo := map[int32]bool{}
		for k, v := range p.Own {
			seen++
			if of[v] != int32(i) || b.PartOf(v) != i || b.Row(v) != k {
				t.Fatalf("node %d is row %d of part %d, want part %d", v, k, i, of[v])
			}
			if row, ok := p.Local(v); !ok || row != k {
				t.Fatalf("node %d is at %d, %v", v, row, ok)
			}
			var sources []int32
			for _, u := range p.Graph.InNeighbors(int32(k)) {
				sources = append(sources, p.Global(int(u)))
			}
			if !slices.Equal(sources, g.InNeighbors(v)) || p.FirstEdge[k] != g.Indptr[v] {
				t.Fatalf("node %d has the sources %v, want %v", v, sources, g.InNeighbors(v))
			}
			for _, u := range sources {
				if of[u] != int32(i) {
					halo[u] = true
				}
			}
			all, part := g.EdgeData(), p.Graph.EdgeData()
			got, want := part.Slice(p.Graph.Indptr[k], p.Graph.Indptr[k+1]), all.Slice(g.Indptr[v], g.Indptr[v+1])
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("the in-edges of node %d have %+v, want %+v", v, got, want)
			}
		}
		if len(halo) != len(p.Halo) {
			t.Errorf("part %d has %d halo nodes, want %d", i, len(p.Halo), len(halo))
		}
		for k, u := range p.Halo {
			if row, ok := p.Local(u); !halo[u] || !ok || row != len(p.Own)+k {
				t.Errorf("halo node %d is at %d, %v", u, row, ok)
			}
		}
	}
	if seen != ds.Nodes() || !slices.Equal(b.InDegrees(), g.InDegrees()) || !slices.Equal(b.OutDegrees(), g.OutDegrees()) {
		t.Errorf("the parts have %d nodes of %d, or other degrees", seen, ds.Nodes())
	}
	ids := []int32{5, 0, 599, 300, 5}
	switch {
	case ds.Features != nil:
		var x dataset.Matrix
		if missing, err := b.Gather(&x, ids, 2); err != nil || missing != nil {
			t.Fatal(missing, err)
		}
		for i, v := range ids {
			if x.Half() != ds.Features.Half() || !slices.Equal(x.Row(i), ds.Features.Row(int(v))) {
				t.Errorf("node %d has the features %v, want %v", v, x.Row(i), ds.Features.Row(int(v)))
			}
		}
	case ds.SparseFeatures != nil:
		var x, want dataset.Sparse
		if missing, err := b.GatherSparse(&x, ids, 2); err != nil || missing != nil {
			t.Fatal(missing, err)
		}
		ds.SparseFeatures.Gather(ids, &want, 1)
		if !slices.Equal(x.Indptr, want.Indptr) || !slices.Equal(x.Indices, want.Indices) || !slices.Equal(x.Values, want.Values) {
			t.Errorf("sparse rows %v, want %v", x, want)
		}
	}
	if ds.Labels != nil {
		got, _, err := b.Labels(nil, ids)
		for i, v := range ids {
			if err != nil || got[i] != ds.Labels[v] {
				t.Errorf("labels %v, %v", got, err)
			}
		}
	}
	if ds.MultiLabels != nil {
		got, _, err := b.Targets(nil, ids)
		for i, v := range ids {
			if err != nil || !slices.Equal(got[4*i:4*i+4], ds.MultiLabels.Row(int(v))) {
				t.Errorf("targets %v, %v", got, err)
			}
		}
	}
}

// A machine needs only its own parts; the other parts are reported as missing.
func TestOnePart(t *testing.T) {
	ds, of := planted(t)
	dir := write(t, ds, of, divided.Options{})
	for _, i := range []int{0, 1, 3} {
		if err := os.RemoveAll(dataset.PartDir(dir, i)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := divided.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.HasAll() || !b.Has(2) || b.Has(0) {
		t.Errorf("the local parts are %v", b.Here())
	}
	ids := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	var x dataset.Matrix
	missing, err := b.Gather(&x, ids, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range ids {
		if slices.Contains(missing, i) != (of[v] != 2) {
			t.Errorf("node %d of part %d is reported as missing: %v", v, of[v], missing)
		}
		if of[v] == 2 && !slices.Equal(x.Row(i), ds.Features.Row(int(v))) {
			t.Errorf("node %d has other features", v)
		}
	}
	if _, err := b.Part(1); !errors.Is(err, divided.ErrAbsent) || !strings.Contains(err.Error(), "part-0001") {
		t.Errorf("opening a part on another machine gave %v", err)
	}
	if _, err := b.Part(4); err == nil || !strings.Contains(err.Error(), "0 to 3") {
		t.Errorf("opening a part that does not exist gave %v", err)
	}
	if err := b.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := b.Dataset().Digests(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// An error names the file that is damaged, missing, from another division or not part of a dataset.
func TestDamage(t *testing.T) {
	testneed.NotShort(t, "it damages each file in several ways")
	_, of := planted(t)
	ds := kinds(t)["edges"]
	whole := write(t, ds, of, divided.Options{})
	other := slices.Clone(of)
	other[0], other[1], other[2] = other[1], other[0], other[1]
	flip := func(file string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, file)
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			raw[len(raw)-1] ^= 1
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cut := func(file string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, file)
			info, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, info.Size()-4)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	signed := regexp.MustCompile(`,\s*"(metadata|head)_digest": "[0-9a-f]*"`)
	edit := func(file, from, to string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, file)
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), from) {
				t.Fatalf("%s has no %s: %v", text, from, err)
			}
			text = signed.ReplaceAll(text, nil) // as an older version wrote it
			if err := os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(file string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		do   func(t *testing.T, dir string)
		want string
	}{
		"parts.npy":         {flip("parts.npy"), "parts.npy"},
		"rows.npy":          {flip("rows.npy"), "rows.npy"},
		"a part's nodes":    {flip("part-0001/nodes.npy"), "part-0001"},
		"a part's features": {flip("part-0001/features.npy"), "part-0001/features.npy is not what was written"},
		"a part's edges":    {flip("part-0000/indices.npy"), "part-0000"},
		"a part's degrees":  {flip("part-0003/indptr.npy"), "part-0003"},
		"a part's times":    {flip("part-0001/edge_times.npy"), "part-0001/edge_times.npy is not what was written"},
		"edge features":     {flip("part-0001/edge_features.npy"), "part-0001/edge_features.npy is not what was written"},
		"too few features":  {cut("part-0001/edge_features.npy"), "part-0001/edge_features.npy"},
		"no edge features":  {remove("part-0002/edge_features.npy"), "part-0002/edge_features.npy"},
		"no edge type":      {edit("metadata.json", `"edge_feature_type": "f32"`, `"edge_feature_type": ""`), `parts.edge_feature_type is "" for 3 features of edges`},
		"no features":       {remove("part-0002/features.npy"), "part-0002/features.npy"},
		"no metadata":       {remove("part-0002/metadata.json"), "part-0002"},
		"no parts.npy":      {remove("parts.npy"), "parts.npy"},
		"a part twice":      {func(t *testing.T, dir string) { replace(t, dir, 1, dataset.PartDir(dir, 0)) }, "is not part 1 of this division"},
		"of another division": {func(t *testing.T, dir string) {
			replace(t, dir, 1, dataset.PartDir(write(t, ds, other, divided.Options{}), 1))
		}, "part-0001"},
		"of other features": {func(t *testing.T, dir string) {
			changed := *ds
			changed.Features = &dataset.Matrix{Rows: ds.Features.Rows, Cols: ds.Features.Cols, F32: slices.Clone(ds.Features.F32)}
			changed.Features.F32[7] = 9
			replace(t, dir, int(of[1]), dataset.PartDir(write(t, &changed, of, divided.Options{}), int(of[1])))
		}, "is not part 2 of this division"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			c.do(t, dir)
			err := func() error {
				b, err := divided.Open(dir)
				if err != nil {
					return err
				}
				defer b.Close()
				return b.Check(t.Context())
			}()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; want %q in it", err, c.want)
			}
		})
	}
	t.Run("another edge type", func(t *testing.T) {
		dir := write(t, ds, of, divided.Options{NoTopology: true})
		edit("metadata.json", `"edge_feature_type": "f32"`, `"edge_feature_type": "f16"`)(t, dir)
		b, err := divided.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if _, err := b.Part(1); err == nil || !strings.Contains(err.Error(), "its edges have a weight, 3 features in float32, a time, and those of the whole dataset a weight, 3 features in float16, a time") {
			t.Errorf("the error is %v", err)
		}
	})
	dir := write(t, ds, of, divided.Options{})
	if _, err := dataset.Open(dataset.PartDir(dir, 2)); err == nil || !strings.Contains(err.Error(), "open the directory above it, "+dir) {
		t.Errorf("opening a part as a dataset gave %v", err)
	}
	if _, err := dataset.OpenPart(dir); err == nil {
		t.Error("opening the whole dataset as a part gave no error")
	}
	if err := divided.Write(t.Context(), dir, ds, of, 4, divided.Options{}); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("written twice: %v", err)
	}
	again, err := divided.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := divided.Write(t.Context(), dir+"2", again.Dataset(), of, 4, divided.Options{}); err == nil || !strings.Contains(err.Error(), "divided already") {
		t.Errorf("divided twice: %v", err)
	}
	of[3] = 4
	if err := divided.Write(t.Context(), dir+"3", ds, of, 4, divided.Options{}); err == nil || !strings.Contains(err.Error(), "node 3 is in part 4") {
		t.Errorf("a part number out of range gave %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "*")); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func replace(t *testing.T, dir string, part int, by string) {
	t.Helper()
	at := dataset.PartDir(dir, part)
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(at, os.DirFS(by)); err != nil {
		t.Fatal(err)
	}
}

const readParts = `
import glob, json, os, sys
import numpy as np
dir = sys.argv[1]
load = lambda *name: np.load(os.path.join(dir, *name), mmap_mode="r")
whole = json.load(open(os.path.join(dir, "metadata.json")))
parts, indptr, indices = load("parts.npy"), load("indptr.npy"), load("indices.npy")
assert parts.dtype == np.int32 and len(parts) == whole["num_nodes"]
edges = owned = 0
for i in range(whole["parts"]["count"]):
    name = "part-%04d" % i
    meta = json.load(open(os.path.join(dir, name, "metadata.json")))
    own = meta["part"]["own"]
    nodes, ptr, idx, first = [load(name, f + ".npy") for f in ("nodes", "indptr", "indices", "first_edge")]
    assert (nodes[:own] == np.flatnonzero(parts == i)).all() and load(name, "features.npy").shape == (own, whole["feature_dim"])
    for k, v in enumerate(nodes[:own]):
        assert first[k] == indptr[v] and (nodes[idx[ptr[k]:ptr[k+1]]] == indices[indptr[v]:indptr[v+1]]).all(), (i, v)
    edges, owned = edges + len(idx), owned + own
json.dump([owned, edges], sys.stdout)
`

func TestNumPy(t *testing.T) {
	exe := testneed.PythonWith(t, "numpy")
	ds, of := planted(t)
	cmd := exec.Command(exe, "-c", readParts, write(t, ds, of, divided.Options{}))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []int64
	if err := json.Unmarshal(out, &found); err != nil || !slices.Equal(found, []int64{int64(ds.Nodes()), ds.Edges()}) {
		t.Errorf("NumPy finds %s, want %d nodes and %d edges", out, ds.Nodes(), ds.Edges())
	}
}

// Parts hold the types of edges, and features of types and of relations in one width; damage gets a sentence.
func TestWriteTypes(t *testing.T) {
	karate := dataset.Karate()
	n := karate.Nodes()
	s := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "a", Count: 10}, {Name: "none", Count: 0}, {Name: "b", Count: n - 10}}}
	for _, ends := range [][2]string{{"a", "a"}, {"a", "b"}, {"b", "a"}, {"b", "b"}, {"none", "a"}} {
		s.Relations = append(s.Relations, graphops.Relation{Src: ends[0], Name: "knows", Dst: ends[1]})
	}
	types, of := make([]uint16, karate.Edges()), make([]int32, n)
	for v := range n {
		of[v] = int32(v % 4)
		for e := karate.Graph.Indptr[v]; e < karate.Graph.Indptr[v+1]; e++ {
			if karate.Graph.Indices[e] >= 10 {
				types[e] += 2
			}
			if v >= 10 {
				types[e]++
			}
		}
	}
	g, err := karate.Graph.WithTypes(s, types)
	if err != nil {
		t.Fatal(err)
	}
	edges := make([]*graphops.EdgeFeatures, len(s.Relations)) // of one and of two features
	edges[1], edges[3] = &graphops.EdgeFeatures{Cols: 1}, &graphops.EdgeFeatures{Cols: 2}
	for e, r := range g.EdgeTypes {
		if x := edges[r]; x != nil {
			x.F32 = append(x.F32, []float32{float32(e + 1), float32(-e - 1)}[:x.Cols]...)
		}
	}
	wide, err := graphops.EdgeFeaturesByRelation(g.EdgeTypes, edges)
	if err != nil {
		t.Fatal(err)
	}
	g = g.WithEdgeData(wide, nil)
	ds := karate.WithGraph(g)
	ds.Features, ds.SparseFeatures = nil, nil
	x := &dataset.Matrix{Rows: n - 10, Cols: 2, F32: make([]float32, 2*(n-10))}
	for i := range x.F32 {
		x.F32[i] = float32(i + 1)
	}
	ds.NodeFeatures = []dataset.NodeFeatures{{}, {}, {Dense: x}}
	for _, o := range []divided.Options{{}, {NoTopology: true}} {
		dir := write(t, ds, of, o)
		b, err := divided.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if err := divided.CheckOnce(t.Context(), b.Dataset(), dataset.CheckOnceOptions{}); err != nil {
			t.Error(err)
		}
		if m := b.Dataset().Meta.NodeTypes; !b.Dataset().Schema().Equal(s) || m[0].FeatureDim != 0 || m[2].FeatureDim != 2 || b.Dataset().FeatureDim() != 2 {
			t.Errorf("the parts have the schema %v and the types %v", b.Dataset().Schema(), m)
		}
		for i := range b.Parts() {
			p, err := b.Part(i)
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range p.Own {
				want := types[g.Indptr[v]:g.Indptr[v+1]]
				if got := p.Graph.EdgeTypes[p.Graph.Indptr[k]:p.Graph.Indptr[k+1]]; !slices.Equal(got, want) {
					t.Errorf("the edges into node %d have the types %v, want %v", v, got, want)
				}
				for e := range int64(len(want)) {
					own, there := []float32{7, 7}, []float32{8, 8}
					g.EdgeFeatures.CopyRow(own, g.Indptr[v]+e)
					p.Graph.EdgeFeatures.CopyRow(there, p.Graph.Indptr[k]+e)
					if !slices.Equal(own, there) {
						t.Errorf("edge %d into node %d has the features %v, want %v", e, v, there, own)
					}
				}
				row := []float32{0, 0}
				if v >= 10 {
					row = x.F32[2*(v-10):][:2]
				}
				if got := p.Features.Row(k); !slices.Equal(got, row) {
					t.Errorf("node %d has the features %v, want %v", v, got, row)
				}
			}
		}
		if top := b.Dataset(); top.EdgeFeatureDimOf(0) != 0 || top.EdgeFeatureDimOf(1) != 1 || top.EdgeFeatureDimOf(3) != 2 || top.EdgeFeatureDim() != 2 {
			t.Errorf("the relations have %v features of edges, of at most %d", top.Meta.EdgeFeatureDims, top.EdgeFeatureDim())
		}
		if err := os.Remove(filepath.Join(dataset.PartDir(dir, 1), "edge_types.npy")); err != nil {
			t.Fatal(err)
		}
		again, err := divided.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if _, err := again.Part(1); err == nil || !strings.Contains(err.Error(), "edge_types.npy: it does not exist, although edge_types in metadata.json requires it (true)") {
			t.Errorf("without a part's types of edges: %v", err)
		}
	}
	split := *karate
	split.EdgeSplits = map[string][]int64{"test": {0}}
	if err := divided.Write(t.Context(), filepath.Join(t.TempDir(), "parts"), &split, make([]int32, n), 1, divided.Options{}); err == nil || !strings.Contains(err.Error(), "karate has splits of edges, which parts do not hold yet") {
		t.Errorf("a dataset with splits of edges: %v", err)
	}
	timed := *karate
	timed.NodeTimes = make([]int64, n)
	if err := divided.Write(t.Context(), filepath.Join(t.TempDir(), "parts"), &timed, make([]int32, n), 1, divided.Options{}); err == nil || !strings.Contains(err.Error(), "karate has times of nodes, which parts do not hold yet") {
		t.Errorf("a dataset with times of nodes: %v", err)
	}
}

// A division has no edges of weight 0, and a part that has some is refused: workers that hold it would sample what others do
// not.
func TestEdgesOfWeightZeroAreLeftOut(t *testing.T) {
	ds, of := planted(t)
	w := make([]float32, ds.Edges())
	for i := range w {
		w[i] = float32(i % 3)
	}
	masked := *ds
	masked.Graph = ds.Graph.WithEdgeWeights(w)
	rest, zeros, err := masked.WithoutZeroWeights()
	if err != nil || zeros == 0 {
		t.Fatal(zeros, err)
	}
	dir := filepath.Join(t.TempDir(), "parts")
	if err := divided.Write(t.Context(), dir, &masked, of, 4, divided.Options{}); err != nil {
		t.Fatal(err)
	}
	parts, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close()
	events := masked
	events.Graph, events.Events = masked.Graph.WithEdgeData(nil, make([]int64, ds.Edges())), []int64{0, 1, 2}
	if err := divided.Write(t.Context(), filepath.Join(t.TempDir(), "parts"), &events, of, 4, divided.Options{}); err == nil || !strings.Contains(err.Error(), "1 of the 3 events of") {
		t.Errorf("events of weight 0: %v", err)
	}
	if parts.Edges() != rest.Edges() || parts.Edges() != masked.Edges()-zeros {
		t.Errorf("%d edges in parts, want %d", parts.Edges(), rest.Edges())
	}
	dividedtest.Older(t, dir) // else its digest says that the file is another one
	path := filepath.Join(dataset.PartDir(dir, 2), "weights.npy")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(raw[len(raw)-4:], []byte{0, 0, 0, 0})
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := divided.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Part(2); err == nil || !strings.Contains(err.Error(), "1 of its edges have weight 0") {
		t.Errorf("a part with an edge of weight 0: %v", err)
	}
}

// A run compares the identities of parts, which costs nothing, and Check and Verify compare all files: parts swapped, mixed from
// another division or other data, and a flipped bit of each file.
func TestPartsByTheirDigests(t *testing.T) {
	_, of := planted(t)
	ds := kinds(t)["edges"]
	other := slices.Clone(of)
	other[0], other[1], other[2] = other[1], other[0], other[1]
	changed := *ds
	changed.Features = &dataset.Matrix{Rows: ds.Features.Rows, Cols: ds.Features.Cols, F32: slices.Clone(ds.Features.F32)}
	changed.Features.F32[7] = 9
	whole := write(t, ds, of, divided.Options{NoTopology: true})
	for name, do := range map[string]func(dir string){
		"swapped": func(dir string) {
			a, b := dataset.PartDir(dir, 0), dataset.PartDir(dir, 1)
			if err := errors.Join(os.Rename(a, a+"x"), os.Rename(b, a), os.Rename(a+"x", b)); err != nil {
				t.Fatal(err)
			}
		},
		"of another division": func(dir string) {
			replace(t, dir, 3, dataset.PartDir(write(t, ds, other, divided.Options{NoTopology: true}), 3))
		},
		"of other data": func(dir string) {
			replace(t, dir, 3, dataset.PartDir(write(t, &changed, of, divided.Options{NoTopology: true}), 3))
		},
	} {
		dir := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		do(dir)
		b, err := divided.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		_, err0 := b.Part(0)
		_, err3 := b.Part(3)
		if err := errors.Join(err0, err3); !errors.Is(err, dataset.ErrOtherPart) {
			t.Errorf("%s: opening the parts gave %v", name, err)
		}
		if err := divided.Check(t.Context(), b.Dataset(), nil); !errors.Is(err, dataset.ErrOtherPart) {
			t.Errorf("%s: Check gave %v", name, err)
		}
	}
	tries, noticed := 0, 0
	for _, pattern := range []string{"*.*", "part-*/*"} {
		paths, err := filepath.Glob(filepath.Join(whole, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for k, path := range paths {
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			bad := slices.Clone(good)
			bad[(k*7919)%len(bad)] ^= 1 << (k % 8)
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			tries++
			ds, err := dataset.Open(whole)
			if err == nil {
				err = errors.Join(divided.Check(t.Context(), ds, nil), ds.Close())
			}
			if err == nil {
				t.Errorf("a flipped bit in %s was not noticed", path)
			} else {
				noticed++
			}
			if err := os.WriteFile(path, good, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d of %d flips noticed", noticed, tries)
	// A directory of an older version gets its digests and the name of its division.
	dividedtest.Older(t, whole)
	if err := divided.WriteDigests(t.Context(), whole, dataset.WriteDigestsOptions{}); err != nil {
		t.Fatal(err)
	}
	b, err := divided.Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := divided.Check(t.Context(), b.Dataset(), nil); err != nil || !b.Dataset().HasDigests() {
		t.Errorf("after WriteDigests: %v", err)
	}
}
