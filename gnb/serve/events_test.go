package serve_test

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
)

// A server has the events of its dataset, in their order and with its digest, whatever of it is copied.
func TestEventsAtServers(t *testing.T) {
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds := load(t, "planted?nodes=100&features=3&classes=2&degree=4&seed=3")
	times := make([]int64, ds.Edges())
	features := make([]float32, ds.Edges())
	for e := range times {
		times[e], features[e] = int64(e/4), float32(e)
	}
	ds = ds.WithGraph(ds.Graph.WithEdgeData(&graphops.EdgeFeatures{Cols: 1, F32: features}, times))
	ds.Events, ds.Meta.TimeUnit = []int64{3, 2, 5, 9}, dataset.Seconds
	ds.Describe()
	want, err := ds.Digests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := servetest.Start(t, ds, serve.Options{Limits: serve.Limits{Edges: 50}})
	for _, query := range []string{"", "?copy=topology", "?copy=all"} {
		copied := load(t, "grpc://"+s.Addr+query)
		if err := divided.CheckOnce(t.Context(), copied, dataset.CheckOnceOptions{}); err != nil {
			t.Error(err)
		}
		got, err := copied.Digests(t.Context(), nil)
		if err != nil || got != want {
			t.Errorf("%q: the digests are %+v, %v; want %+v", query, got, err, want)
		}
		all, err := divided.WithEdges(t.Context(), copied, nil)
		if err != nil {
			t.Fatal(err)
		}
		g := all.Graph
		if !slices.Equal(all.Events, ds.Events) || all.Meta.NumEvents != 4 || all.Meta.TimeUnit != dataset.Seconds {
			t.Errorf("%q: the copy has the events %v: %+v", query, all.Events, all.Meta)
		}
		if !slices.Equal(g.Indptr, ds.Graph.Indptr) || !slices.Equal(g.Indices, ds.Graph.Indices) || !slices.Equal(g.EdgeTimes, times) || !slices.Equal(g.EdgeFeatures.F32, features) {
			t.Errorf("%q: the edges are not those of the server", query)
		}
	}
}
