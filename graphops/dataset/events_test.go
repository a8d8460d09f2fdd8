package dataset_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// messages is the stream of the events 0 → 1 at 10, 2 → 1 at 20, 0 → 1 at 20, 1 → 2 at 20, 0 → 1 at 20 again, 3 → 0 at 30 with
// the weights 1 to 6 and a reverse of each, between 4 nodes.
func messages(t *testing.T) *dataset.Dataset {
	t.Helper()
	src, dst := []int32{0, 2, 0, 1, 0, 3}, []int32{1, 1, 1, 2, 1, 0}
	times := []int64{10, 20, 20, 20, 20, 30}
	numbers := dataset.RowNumbers(len(src), times)
	g, err := graphops.FromEdgesWith(4, src, dst, graphops.EdgeData{Weights: []float32{1, 2, 3, 4, 5, 6}, Times: numbers}, graphops.BuildOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	g, at := dataset.FromRowNumbers(g, src, dst, numbers, times)
	d := &dataset.Dataset{Graph: g, Events: at, Splits: map[string][]int32{}, Meta: dataset.Metadata{Name: "messages", Undirected: true, TimeUnit: dataset.Seconds}}
	d.Describe()
	return d
}

// stream returns source, destination, time and weight of each event.
func stream(d *dataset.Dataset) (all [][4]int64) {
	src, dst, _ := d.Graph.EdgesAt(d.Events)
	for i, e := range d.Events {
		all = append(all, [4]int64{int64(src[i]), int64(dst[i]), d.Graph.EdgeTimes[e], int64(d.Graph.EdgeWeights[e])})
	}
	return all
}

// Equal events at one time stay events of their own, in the order of the input, through a directory and shared memory; the digest
// of the structure tells another order apart.
func TestEventsAreKept(t *testing.T) {
	d, ctx := messages(t), context.Background()
	want := [][4]int64{{0, 1, 10, 1}, {2, 1, 20, 2}, {0, 1, 20, 3}, {1, 2, 20, 4}, {0, 1, 20, 5}, {3, 0, 30, 6}}
	if got := stream(d); !slices.Equal(got, want) {
		t.Fatalf("the events are %v, want %v", got, want)
	}
	digests, err := d.Digests(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "d")
	if err := dataset.Write(dir, d); err != nil {
		t.Fatal(err)
	}
	opened, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	f, err := d.Share(ctx, dataset.CheckOnceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := dataset.OpenFD(f)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	for name, got := range map[string]*dataset.Dataset{"opened": opened, "shared": shared} {
		if have, err := got.Digests(ctx, nil); err != nil || have != digests {
			t.Errorf("%s: the digests are %v, %v", name, have, err)
		}
		if err := got.Check(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s := stream(got); !slices.Equal(s, want) || got.Meta.NumEvents != 6 || got.Meta.TimeUnit != dataset.Seconds {
			t.Errorf("%s: the events are %v, %+v", name, s, got.Meta)
		}
		if text := got.String(); !strings.Contains(text, "with times, 6 events") {
			t.Errorf("%s: %s", name, text)
		}
	}
	other := *d
	other.Events = slices.Clone(d.Events)
	other.Events[1], other.Events[2] = other.Events[2], other.Events[1]
	if have, err := other.Digests(ctx, nil); err != nil || have.Structure == digests.Structure || have.Splits != digests.Splits {
		t.Errorf("in another order the digests are %v, %v", have, err)
	}
}

// A dataset of some nodes, and one without edges of weight 0, have the events between those nodes and with a weight, in their order.
func TestEventsOfFewerEdges(t *testing.T) {
	ctx := context.Background()
	some, err := messages(t).Subset([]int32{0, 1, 3})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := stream(some), [][4]int64{{0, 1, 10, 1}, {0, 1, 20, 3}, {0, 1, 20, 5}, {2, 0, 30, 6}}; !slices.Equal(got, want) || some.Meta.NumEvents != 4 {
		t.Errorf("of nodes 0, 1 and 3 the events are %v, want %v", got, want)
	}
	d := messages(t)
	for e, w := range d.Graph.EdgeWeights {
		if w == 3 || w == 6 {
			d.Graph.EdgeWeights[e] = 0
		}
	}
	rest, zeros, err := d.WithoutZeroWeights()
	if err != nil || zeros != 4 { // two events and their reverses
		t.Fatal(zeros, err)
	}
	if got, want := stream(rest), [][4]int64{{0, 1, 10, 1}, {2, 1, 20, 2}, {1, 2, 20, 4}, {0, 1, 20, 5}}; !slices.Equal(got, want) {
		t.Errorf("without weights of 0 the events are %v, want %v", got, want)
	}
	for _, s := range []*dataset.Dataset{some, rest} {
		if err := s.Check(ctx); err != nil {
			t.Error(err)
		}
	}
	if other := d.WithGraph(rest.Graph); other.Events != nil || other.Meta.NumEvents != 0 {
		t.Errorf("another graph has the events %v", other.Events)
	}
	if same := d.WithGraph(d.Graph); len(same.Events) != 6 {
		t.Error("the same graph has lost its events")
	}
	loops := messages(t)
	loops.Graph = loops.Graph.WithEdgeWeights(nil)
	with, err := loops.WithSelfLoops()
	if err != nil || with.Events != nil || with.Meta.NumEvents != 0 {
		t.Errorf("with self-loops: %v, %v", with, err)
	}
}

// What is wrong with events is one sentence that names the file and the entry.
func TestWrongEvents(t *testing.T) {
	cases := map[string]struct {
		change func(d *dataset.Dataset)
		want   string
	}{
		"position out of range": {func(d *dataset.Dataset) { d.Events[3] = 12 }, "events.npy of messages: entry 3 is 12; the positions of edges are 0 to 11"},
		"negative position":     {func(d *dataset.Dataset) { d.Events[0] = -1 }, "events.npy of messages: entry 0 is -1; the positions of edges are 0 to 11"},
		"one edge twice":        {func(d *dataset.Dataset) { d.Events[2] = d.Events[1] }, "the edge of an earlier event; each event has an edge of its own"},
		"out of order":          {func(d *dataset.Dataset) { d.Events[4], d.Events[5] = d.Events[5], d.Events[4] }, "entry 5: its edge has the time 20, and the event before it 30; events ascend in time"},
		"no times":              {func(d *dataset.Dataset) { d.Graph = d.Graph.WithEdgeData(nil, nil) }, "there are 6 events, but the edges have no times: set Graph.EdgeTimes, or leave Events out"},
		"more events than edges": {
			func(d *dataset.Dataset) { d.Events = make([]int64, 13) },
			"13 events of 12 edges: an event has an edge of its own",
		},
		"unknown unit": {func(d *dataset.Dataset) { d.Meta.TimeUnit = "days" }, `time_unit is "days"; it is s, ms, us or ns since 1970, or absent`},
	}
	for name, c := range cases {
		d := messages(t)
		d.Events = slices.Clone(d.Events)
		c.change(d)
		if err := d.Check(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err := dataset.Write(filepath.Join(t.TempDir(), "d"), d); err == nil {
			t.Errorf("%s: it is written", name)
		}
	}
	for name, c := range map[string]struct {
		key   string
		value any
		want  string
	}{
		"more events than edges": {"num_events", 600, "num_events is 600 for 12 edges"},
		"fewer than in the file": {"num_events", 5, "events.npy: its shape is [6]; by metadata.json it must be [5]"},
		"without times":          {"edge_times", false, "num_events is set, but edge_times is not"},
		"unknown unit":           {"time_unit", "h", `time_unit is "h"`},
	} {
		dir := filepath.Join(t.TempDir(), "d")
		if err := dataset.Write(dir, messages(t)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, dataset.MetadataFile)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		if m[c.key] == nil {
			t.Fatalf("%s: metadata.json has no %s", name, c.key)
		}
		m[c.key] = c.value
		delete(m, "digests") // they are those of the old text
		if text, err = json.Marshal(m); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := dataset.Open(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	dir := filepath.Join(t.TempDir(), "d")
	if err := errors.Join(dataset.Write(dir, messages(t)), os.Remove(filepath.Join(dir, "events.npy"))); err != nil {
		t.Fatal(err)
	}
	if _, err := dataset.Open(dir); err == nil || !strings.Contains(err.Error(), "events.npy: it does not exist, although num_events in metadata.json requires it (6)") {
		t.Errorf("without the file: %v", err)
	}
}
