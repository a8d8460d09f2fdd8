package serve_test

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
)

// A server hands out the edges of events with their times, and no list of events; the copy is whole.
func TestEventsAtServers(t *testing.T) {
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds := load(t, "planted?nodes=100&features=3&classes=2&degree=4&seed=3")
	times := make([]int64, ds.Edges())
	for e := range times {
		times[e] = int64(e)
	}
	ds = ds.WithGraph(ds.Graph.WithEdgeData(nil, times))
	ds.Events, ds.Meta.TimeUnit = []int64{0, 5, 9}, dataset.Seconds
	ds.Describe()
	s := servetest.Start(t, ds, serve.Options{})
	copied := load(t, "grpc://"+s.Addr+"?copy=all")
	if copied.Events != nil || copied.Meta.NumEvents != 0 || !slices.Equal(copied.Graph.EdgeTimes, times) || copied.Meta.TimeUnit != dataset.Seconds {
		t.Errorf("the copy has %d events, times from %d and the unit %q", copied.Meta.NumEvents, copied.Graph.EdgeTimes[0], copied.Meta.TimeUnit)
	}
	if err := copied.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if len(ds.Events) != 3 {
		t.Error("serving changes the dataset")
	}
}
