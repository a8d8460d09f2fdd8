package feed

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// The first layer, computed in chunks from disk, has the bits of the layer computed from features
// in memory. This holds for any chunk size and for models that read in-neighbours, degrees, edge
// weights and all sources.
func TestFirstLayerFromDisk(t *testing.T) {
	testneed.Raced(t, "it computes the layer with many caches and windows")
	ds, err := datasets.Load("rmat?scale=9&degree=6&features=9&classes=3&seed=4")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	weights := make([]float32, ds.Edges())
	for i := range weights {
		weights[i] = r.Float32()
	}
	weighted := *ds
	weighted.Graph = &graphops.Graph{Indptr: ds.Graph.Indptr, Indices: ds.Graph.Indices, EdgeWeights: weights}
	edged := *ds
	edged.Graph = ds.Graph.WithEdgeData(&graphops.EdgeFeatures{Cols: 1, F32: weights}, nil)
	for name, ds := range map[string]*dataset.Dataset{"plain": ds, "weighted": &weighted, "features of edges": &edged} {
		for _, half := range []string{"f32", "f16"} {
			dir := filepath.Join(t.TempDir(), half)
			if err := dataset.WriteWith(t.Context(), dir, ds, dataset.WriteOptions{FeatureType: half}); err != nil {
				t.Fatal(err)
			}
			stored, err := dataset.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer stored.Close()
			firstLayer(t, name+" "+half, stored)
		}
	}
}

func firstLayer(t *testing.T, name string, ds *dataset.Dataset) {
	t.Helper()
	path, at, ok := ds.FeatureFile()
	if !ok {
		t.Fatal("the features of an opened dataset have no file")
	}
	own := onDisk{ds.Features}
	reader, err := plane.OpenDisk(path, at, ds.Nodes(), own.RowBytes(), plane.DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	n, cols := ds.Nodes(), ds.FeatureDim()
	config := nn.ModelConfig{In: cols, Hidden: 8, Out: 3, Layers: 2, Heads: 2, EdgeDim: ds.EdgeFeatureDim()}
	for kind, m := range map[string]nn.Model{"sage": nn.NewSAGEModel(config), "gcn": nn.NewGCNModel(config), "gat": nn.NewGATModel(config), "gatv2": nn.NewGATv2Model(config), "pna": nn.NewPNAModel(config)} {
		params, err := nn.Collect(m)
		if err != nil {
			t.Fatal(err)
		}
		params.Init(4)
		fwd := nn.NewFwd(nn.Config{Threads: 2})
		out, err := nn.LayerCols(m, fwd, 0, cols)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float32, n*out)
		input := func(f *nn.Fwd) *nn.Tensor {
			return f.TableInput(nn.Table{F32: ds.Features.F32, F16: ds.Features.F16}, n, cols, &nn.Space{})
		}
		if err := nn.LayerRowsFrom(m, fwd, 0, ds.Graph, input, 0, n, want, nil); err != nil {
			t.Fatal(err)
		}
		for _, rows := range []int{1, 7, 100, n} {
			f := &Fetcher{team: teamOf(collective.NewSingle(), ds), at: Place{LocalWorld: 1}, data: ds, own: own, disk: reader, source: reader, window: int64(rows * own.RowBytes()), defaultCache: int64(rows % 50 * own.RowBytes())}
			got := make([]float32, n*out)
			last := 0
			for _, cut := range [][2]int{{0, n / 3}, {n / 3, n / 3}, {n / 3, n}} {
				err := f.FirstLayer(ds.Graph, m, fwd, cut[0], cut[1], got[cut[0]*out:cut[1]*out], func(k int) { last = cut[0] + k })
				if err != nil {
					t.Fatal(err)
				}
			}
			if last != n {
				t.Errorf("%s, %s: %d of %d rows are reported", name, kind, last, n)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: the bits differ with chunks of %d rows", name, kind, rows)
			}
		}
	}
}

// A chunk has as many nodes as its rows allow, at least one, and holds each source of its nodes
// once.
func TestChunks(t *testing.T) {
	ds, err := datasets.Load("rmat?scale=8&degree=5&features=2&classes=2&seed=1")
	if err != nil {
		t.Fatal(err)
	}
	g, n := ds.Graph, ds.Nodes()
	sources := func(lo, hi int) map[int32]bool {
		all := map[int32]bool{}
		for v := lo; v < hi; v++ {
			all[int32(v)] = true
			for _, u := range g.InNeighbors(int32(v)) {
				all[u] = true
			}
		}
		return all
	}
	for _, most := range []int{1, 20, 90, n} {
		c := chunk{g: g, row: slices.Repeat([]int32{-1}, n)}
		for at := 0; at < n; {
			end := c.grow(at, n, most)
			where := fmt.Sprintf("chunk [%d, %d) of at most %d rows", at, end, most)
			if end <= at {
				t.Fatalf("%s: the chunk is empty", where)
			}
			want := sources(at, end)
			if len(want) > most && end > at+1 {
				t.Errorf("%s has %d rows", where, len(want))
			}
			if end < n && len(sources(at, end+1)) <= most {
				t.Errorf("%s has room for one more node", where)
			}
			ids := c.ids()
			if len(ids) != len(want) || slices.ContainsFunc(ids, func(v int32) bool { return !want[v] }) {
				t.Errorf("%s: the ids differ from the sources", where)
			}
			local := c.slices(ids)
			for v := at; v < end; v++ {
				var got []int32
				for _, u := range local.graph.InNeighbors(int32(v - at)) {
					got = append(got, ids[u])
				}
				if !slices.Equal(got, g.InNeighbors(int32(v))) {
					t.Fatalf("%s: node %d has the sources %v, want %v", where, v, got, g.InNeighbors(int32(v)))
				}
			}
			at = end
		}
	}
}
