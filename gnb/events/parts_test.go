package events_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/events"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/remote"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/runstest"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// listed are rounds of nodes with features, whose reverses are edges too and no events; events of one time are listed against the order of
// their edges, so that a reader of edges alone has another stream.
func listed(t *testing.T, n int) *dataset.Dataset {
	t.Helper()
	ds := rounds(n)
	x := &dataset.Matrix{Rows: ds.Nodes(), Cols: 3}
	for i := range x.Rows * x.Cols {
		x.F32 = append(x.F32, float32(i%7)/7)
	}
	ds.Features = x
	g, err := ds.Graph.Rebuild(graphops.BuildOptions{Undirected: true, KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	var every, at []int64
	for e := range g.NumEdges() {
		every = append(every, e)
	}
	src, dst, _ := g.EdgesAt(every)
	for e, u := range src {
		if u < dst[e] { // from a person to a place
			at = append(at, int64(e))
		}
	}
	slices.SortStableFunc(at, func(a, b int64) int { return int(g.EdgeTimes[a] - g.EdgeTimes[b]) })
	for i := 1; i < len(at); i++ {
		if g.EdgeTimes[at[i-1]] == g.EdgeTimes[at[i]] {
			at[i-1], at[i] = at[i], at[i-1]
			i++
		}
	}
	ds.Graph, ds.Events, ds.Meta.Undirected = g, at, true
	ds.Describe()
	return ds
}

// typed are the events of listed between types of nodes with features of their own width; the edges that are events have two features, and
// their reverses, of another relation, one.
func typed(t *testing.T, n int) *dataset.Dataset {
	t.Helper()
	ds := listed(t, n)
	event := map[int64]bool{}
	for _, e := range ds.Events {
		event[e] = true
	}
	g := ds.Graph
	types, by := make([]uint16, g.NumEdges()), []*graphops.EdgeFeatures{{Cols: 2}, {Cols: 1}}
	for e := range g.NumEdges() {
		x := g.EdgeFeatures.F32[e]
		if event[e] {
			by[0].F32 = append(by[0].F32, x, x*x-1)
			continue
		}
		types[e] = 1
		by[1].F32 = append(by[1].F32, -x)
	}
	const people = 20
	places := ds.Nodes() - people
	schema := &graphops.Schema{
		Nodes:     []graphops.NodeType{{Name: "person", Count: people}, {Name: "place", Count: places}},
		Relations: []graphops.Relation{{Src: "person", Name: "visits", Dst: "place"}, {Src: "place", Name: "of", Dst: "person"}},
	}
	g, err := g.WithTypes(schema, types)
	if err != nil {
		t.Fatal(err)
	}
	x, err := graphops.EdgeFeaturesByRelation(g.EdgeTypes, by)
	if err != nil {
		t.Fatal(err)
	}
	wide := ds.Features.F32
	r := ds.WithGraph(g.WithEdgeData(x, g.EdgeTimes))
	r.Events, r.Features = ds.Events, nil
	r.NodeFeatures = []dataset.NodeFeatures{
		{Dense: &dataset.Matrix{Rows: people, Cols: 3, F32: wide[:3*people]}}, {Dense: &dataset.Matrix{Rows: places, Cols: 2, F32: wide[:2*places]}},
	}
	r.Describe()
	return r
}

// atServers loads the address of servers with small limits, so that a request is split into many, that each have some of the parts, or all
// of an undivided dataset.
func atServers(t *testing.T, ds *dataset.Dataset, query string, parts ...[]int) *gnb.Dataset {
	t.Helper()
	limits := serve.Limits{Nodes: 20, Edges: 800, Bytes: 20_000}
	var hosts []string
	if parts == nil {
		parts = [][]int{nil}
	}
	for _, p := range parts {
		hosts = append(hosts, servetest.Start(t, ds, serve.Options{Parts: p, Limits: limits}).Addr)
	}
	return load(t, "grpc://"+strings.Join(hosts, ",")+query)
}

func load(t *testing.T, spec string) *gnb.Dataset {
	t.Helper()
	ds, err := gnb.Load(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds
}

func divide(t *testing.T, ds *dataset.Dataset, o divided.Options) *dataset.Dataset {
	t.Helper()
	return dividedtest.PartsBy(t, ds, 8, func(v int32) int { return int(v) * 5 % 8 }, o)
}

// Runs on 8 parts, with and without the whole graph, and at servers have the weights, losses and values of a run on the undivided dataset with
// as many workers times virtual ranks, and prove as many steps; and what they recommend is the same.
func TestInPartsAndAtServers(t *testing.T) {
	testneed.NotShort(t, "it trains many times")
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds := listed(t, 500)
	whole, apart := divide(t, ds, divided.Options{}), divide(t, ds, divided.Options{NoTopology: true})
	some := [][]int{{0, 1, 2, 5}, {3, 4, 6, 7}}
	served, topology, ofParts := atServers(t, ds, ""), atServers(t, ds, "?copy=topology"), atServers(t, apart, "", some...)
	cases := []onData{
		{"parts, 1 worker", whole, 1, 0},
		{"parts, 2 workers", whole, 2, 0},
		{"parts, 4 workers", whole, 4, 0},
		{"parts without the whole graph, 1 worker", apart, 1, 0},
		{"parts without the whole graph, 4 workers", apart, 4, 0},
		{"a server, 2 workers", served, 2, 4},
		{"a server of the topology", topology, 1, 8},
		{"servers of parts, 2 workers", ofParts, 2, 0},
	}
	for _, model := range []string{"counts", "tgn"} {
		sameOn(t, model, ds, cases)
	}
	for _, model := range []string{"walks", "mixer", "tgat"} {
		sameOn(t, model, ds, []onData{cases[1], cases[4], cases[5]})
	}
	bare := *ds // mixer then learns a row for each node
	bare.Features = nil
	bare.Describe()
	sameOn(t, "mixer", &bare, []onData{{"parts without features", divide(t, &bare, divided.Options{NoTopology: true}), 2, 0}})
	ofTypes := typed(t, 500)
	sameOn(t, "tgn", ofTypes, []onData{
		{"typed parts", divide(t, ofTypes, divided.Options{}), 2, 0},
		{"typed parts without the whole graph", divide(t, ofTypes, divided.Options{NoTopology: true}), 2, 0},
		{"a server of types", atServers(t, ofTypes, ""), 2, 4},
	})
}

// onData is a way to train.
type onData struct {
	name             string
	data             *gnb.Dataset
	workers, virtual int
}

// sameOn fails unless runs in all ways are the run on the undivided dataset.
func sameOn(t *testing.T, model string, ds *dataset.Dataset, cases []onData) {
	t.Helper()
	run := func(ds *gnb.Dataset, workers, virtual int) *runs.Run {
		t.Helper()
		o := events.Options{Model: model, Hidden: 8, Dropout: 0.1}
		o.Workers, o.VirtualRanks, o.Batch, o.Epochs, o.LR, o.Seed = workers, virtual, 50, 2, 0.01, 3
		o.Threads, o.RunDir, o.Quiet = 1, filepath.Join(t.TempDir(), "run"), true
		r, err := events.Train(t.Context(), ds, o)
		if err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		return r
	}
	want := run(ds, 1, 8)
	if n := want.Result.Values["proved_steps"]; n != 2*7 {
		t.Fatalf("%s: %v steps are proved, want 14", model, n)
	}
	top, err := events.Recommend(t.Context(), want, ds, nil, 3, events.RecommendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		got := run(c.data, c.workers, c.virtual)
		runstest.Same(t, model+", "+c.name, got, want, 11)
		if a, b := got.Config.Identity.Data, want.Config.Identity.Data; *a != *b && ds.NodeFeatures == nil { // those of types get one width for a run
			t.Errorf("%s, %s: the data has the digests %v, want %v", model, c.name, a, b)
		}
		same, err := events.Recommend(t.Context(), want, c.data, nil, 3, events.RecommendOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(same.Nodes, top.Nodes) || !slices.Equal(same.IDs, top.IDs) || !slices.Equal(same.Scores, top.Scores) {
			t.Errorf("%s, %s: other recommendations", model, c.name)
		}
	}
}

// What is learned and said of nodes over time is the same on parts and at servers.
func TestNodesInPartsAndAtServers(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds := tides(40)
	ds.Features = &dataset.Matrix{Rows: ds.Nodes(), Cols: 1}
	for v := range ds.Nodes() {
		ds.Features.F32 = append(ds.Features.F32, float32(v%4))
	}
	ds.Describe()
	apart := divide(t, ds, divided.Options{NoTopology: true})
	served := atServers(t, ds, "")
	for _, o := range []events.NodeOptions{{Ask: "sum", Of: "amount"}, {Model: "tgn", Neighbors: 3}} {
		run := func(ds *gnb.Dataset, workers, virtual int) *runs.Run {
			t.Helper()
			o := nodeOptions(t, o)
			o.Workers, o.VirtualRanks, o.Threads, o.Epochs, o.Hidden = workers, virtual, 1, 2, 8
			r, err := events.TrainNodes(t.Context(), ds, o)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		want := run(ds, 1, 8)
		said, err := events.PredictNodes(t.Context(), want, ds, nil, events.PredictOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []onData{{"parts", divide(t, ds, divided.Options{}), 4, 0}, {"parts without the whole graph", apart, 2, 0}, {"a server", served, 2, 4}} {
			runstest.Same(t, o.Model+" "+c.name, run(c.data, c.workers, c.virtual), want, 5)
			got, err := events.PredictNodes(t.Context(), want, c.data, nil, events.PredictOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Nodes) == 0 || !slices.Equal(got.Nodes, said.Nodes) || !slices.Equal(got.Rows.F32, said.Rows.F32) {
				t.Errorf("%s on %s: other predictions", o.Model, c.name)
			}
		}
	}
}

// A sweep on parts without the whole graph, and at a server, has the values of one on the undivided dataset.
func TestSweepOnParts(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds := listed(t, 300)
	values := func(ds *gnb.Dataset, virtual int) (found []float64) {
		t.Helper()
		study, err := sweep.RunTask(t.Context(), ds, events.Task, func(trial *sweep.Trial) events.Options {
			var o events.Options
			o.LR, o.Epochs, o.VirtualRanks, o.Workers = sweep.Choice(trial, "lr", 0.001, 0.1), 1, virtual, 1
			return o
		}, sweep.Options{Metric: "val_mrr", Method: "grid", Dir: filepath.Join(t.TempDir(), "sweep"), Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range study.Trials {
			found = append(found, trial.Value)
		}
		return found
	}
	want := values(ds, 8)
	if len(want) != 2 || want[0] == want[1] {
		t.Fatalf("the values are %v; want two different ones", want)
	}
	for name, got := range map[string][]float64{
		"parts": values(divide(t, ds, divided.Options{NoTopology: true}), 0), "a server": values(atServers(t, ds, ""), 8),
	} {
		if !slices.Equal(got, want) {
			t.Errorf("%s: the values are %v, want %v", name, got, want)
		}
	}
}

// A run on parts whose workers are killed at random steps goes on to the same bits, with one thread or two, and ends on the undivided
// dataset, which is the same data. With GNB_SOAK=1 it is killed ten times.
func TestKilledOnParts(t *testing.T) {
	testneed.NotShort(t, "it kills and resumes runs for seconds")
	kills := 2
	if envknob.Soak.On() {
		kills = 10
	}
	ds := listed(t, 500)
	dir := t.TempDir()
	undivided := filepath.Join(dir, "undivided")
	if err := dataset.Write(undivided, ds); err != nil {
		t.Fatal(err)
	}
	forms := []string{divide(t, ds, divided.Options{NoTopology: true}).Dir(), divide(t, ds, divided.Options{}).Dir(), undivided}
	start := func(o cellOptions) (ended bool) {
		t.Helper()
		o.Model, o.Workers, o.VirtualRanks = "tgn", 2, 4
		c := runtest.StartCell(t, "events", filepath.Join(dir, "runs"), o)
		err := c.Wait(2 * time.Minute)
		c.Gone(20 * time.Second)
		if err != nil && (o.Kill == 0 || !strings.Contains(c.Out.String(), "killed")) {
			t.Fatalf("%v\n%s", err, c.Out.String())
		}
		return err == nil
	}
	whole, killed := filepath.Join(dir, "whole"), filepath.Join(dir, "killed")
	start(cellOptions{Data: undivided, Dir: whole, Threads: 1})
	losses, err := runstest.Open(t, whole).Losses()
	if err != nil || len(losses) < 30 {
		t.Fatalf("%d steps, %v; want 30 or more, so that kills come at different steps", len(losses), err)
	}
	random := rand.New(rand.NewPCG(6, 7))
	o := cellOptions{Dir: killed}
	for k := range kills {
		o.Data, o.Threads = forms[k%2], 1+k%2
		o.Kill += 1 + random.Int64N(int64(len(losses)/(kills+1)))
		t.Logf("a kill after step %d of %d on %s", o.Kill, len(losses), filepath.Base(o.Data))
		if start(o) {
			t.Fatalf("the run ended before it was killed")
		}
		o.Resume = killed
	}
	o.Data, o.Kill = undivided, 0
	start(o)
	runstest.Same(t, "the killed run", runstest.Open(t, killed), runstest.Open(t, whole), 9)
}

// What cannot give all events is one sentence that says what is missing: a part that another machine has, and servers that end.
func TestEventsOutOfReach(t *testing.T) {
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds := listed(t, 200)
	o := events.Options{}
	o.Quiet, o.RunDir = true, filepath.Join(t.TempDir(), "run")
	part := dividedtest.PartsBy(t, ds, 2, func(v int32) int { return int(v) % 2 }, divided.Options{NoTopology: true})
	if err := os.RemoveAll(dataset.PartDir(part.Dir(), 1)); err != nil {
		t.Fatal(err)
	}
	_, err := events.Train(t.Context(), part, o)
	if !errors.Is(err, divided.ErrAbsent) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "part 1 of rounds: this part is not on this machine") {
		t.Errorf("without a part: %v", err)
	}
	s := servetest.Start(t, ds, serve.Options{})
	far := load(t, "grpc://"+s.Addr)
	divided.RegisterFar(func(ctx context.Context, address string) (divided.Far, error) {
		c, err := remote.Open(ctx, address, remote.Options{Timeout: time.Second})
		s.Stop() // between the greeting and the first edge
		return c, err
	})
	defer divided.RegisterFar(func(ctx context.Context, address string) (divided.Far, error) {
		return remote.Open(ctx, address, remote.Options{})
	})
	_, err = events.Train(t.Context(), far, o)
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), s.Addr) || !strings.Contains(err.Error(), "each worker needs the events of all nodes") {
		t.Errorf("without the server: %v", err)
	}
}
