package inspect_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/inspect"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testkit/linkstest"
)

// TestMain becomes a worker if a run of these tests starts this binary as one.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}

func load(t *testing.T) *gnb.Dataset {
	t.Helper()
	ds, err := gnb.Load(t.Context(), "planted?nodes=3000&features=16&classes=4&seed=5")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds
}

// The batch is one of training: its hops have the sizes that the sampler gives for the same seeds,
// epoch and step. The neighbourhood has only edges of the graph, and per node at most as many as
// the fanouts allow.
func TestBatch(t *testing.T) {
	ds := load(t)
	o := inspect.Options{Fanouts: []int{4, 3}, Batch: 64, Step: 2, Epoch: 1, Seed: 9, Threads: 2, Draw: 5, Hidden: 8}
	e, err := inspect.Batch(t.Context(), ds, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sample.New(ds.Graph, sample.Config{Picker: sample.Fanouts{4, 3}, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	ids := sample.EpochOrder(9, 1, ds.Splits["train"])
	b, err := s.Sample(1, 2, sample.Seeds{IDs: ids[2*64 : 3*64]})
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Hops) != 2 || e.Seeds != 64 {
		t.Fatalf("%d hops, %d seeds", len(e.Hops), e.Seeds)
	}
	for i, h := range e.Hops {
		k := b.Blocks[1-i]
		if h.Dst != k.NumDst || h.Src != k.NumSrc || h.Edges != k.NumEdges() || h.Bytes <= 0 || h.Duplication < 1 {
			t.Errorf("hop %d is %+v, the sampler's %v", i+1, h, k)
		}
	}
	n := e.Around
	if n.Seed != b.Seeds[5] || n.Nodes[0].ID != n.Seed || n.LeftOut != 0 {
		t.Errorf("the neighbourhood of %d has %d nodes, %d left out; the seed is %d", n.Seed, len(n.Nodes), n.LeftOut, b.Seeds[5])
	}
	into := map[[2]int]int{} // number of edges by destination and hop
	for _, x := range n.Edges {
		src, dst := n.Nodes[x.Src], n.Nodes[x.Dst]
		if !hasEdge(ds, src.ID, dst.ID) {
			t.Errorf("edge %d → %d is not in the graph", src.ID, dst.ID)
		}
		if dst.Hop >= x.Hop || src.Hop > x.Hop {
			t.Errorf("an edge of hop %d from a node of hop %d to one of hop %d", x.Hop, src.Hop, dst.Hop)
		}
		into[[2]int{x.Dst, x.Hop}]++
	}
	for k, edges := range into {
		if most := o.Fanouts[k[1]-1]; edges > most {
			t.Errorf("node number %d has %d edges at hop %d of fanout %d", k[0], edges, k[1], most)
		}
	}
	var names []string
	at := 0.0
	for _, s := range e.Spans {
		names = append(names, s.Stage)
		if s.Seconds < 0 || s.Start < at-1e-9 || s.Bytes < 0 {
			t.Errorf("span %+v begins before the previous one ends, at %v", s, at)
		}
		at = s.Start + s.Seconds
	}
	if got, want := strings.Join(names, "; "), "sample; fetch; forward, layer 1; forward, layer 2; backward; all-reduce; optimizer"; got != want {
		t.Errorf("the stages are %s, want %s", got, want)
	}
	for _, want := range []string{"64 seeds", "fanout 4, 3", "epoch 1, step 2", "forward, layer 2", "around node"} {
		if !strings.Contains(e.String(), want) {
			t.Errorf("%q is missing in\n%s", want, e)
		}
	}
	if data, err := e.PNG(); err != nil || len(data) < 1000 {
		t.Errorf("the picture has %d bytes (%v)", len(data), err)
	}
}

func hasEdge(ds *gnb.Dataset, src, dst int32) bool {
	g := ds.Graph
	for _, u := range g.Indices[g.Indptr[dst]:g.Indptr[dst+1]] {
		if u == src {
			return true
		}
	}
	return false
}

// The seeds are given, the neighbourhood of a hub is truncated, and the features are sparse.
func TestBatchOfSeeds(t *testing.T) {
	ds := load(t)
	e, err := inspect.Batch(t.Context(), ds, []int32{7, 3, 11}, inspect.Options{Fanouts: []int{-1, -1, -1}, Draw: 1, Model: gnb.GCN, Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	if e.Seeds != 3 || e.Around.Seed != 3 || e.Around.LeftOut == 0 || len(e.Around.Nodes) > 300 || e.Model != "gcn" {
		t.Errorf("%d seeds; the neighbourhood of %d has %d nodes and %d left out; model %s", e.Seeds, e.Around.Seed, len(e.Around.Nodes), e.Around.LeftOut, e.Model)
	}
}

func TestBatchMisuse(t *testing.T) {
	ds := load(t)
	for want, ask := range map[string]func() error{
		"needs a dataset": func() error { _, err := inspect.Batch(t.Context(), nil, nil, inspect.Options{}); return err },
		"seed -1 is not a node": func() error {
			_, err := inspect.Batch(t.Context(), ds, []int32{-1}, inspect.Options{})
			return err
		},
		"cannot be negative": func() error {
			_, err := inspect.Batch(t.Context(), ds, nil, inspect.Options{Draw: -1})
			return err
		},
		"Draw is 9": func() error {
			_, err := inspect.Batch(t.Context(), ds, []int32{1, 2}, inspect.Options{Draw: 9})
			return err
		},
		"Step is 1000000": func() error {
			_, err := inspect.Batch(t.Context(), ds, nil, inspect.Options{Step: 1_000_000})
			return err
		},
		"Dropout is 1": func() error {
			_, err := inspect.Batch(t.Context(), ds, nil, inspect.Options{Dropout: 1})
			return err
		},
		`no such split "nope"`: func() error {
			_, err := inspect.Batch(t.Context(), ds, nil, inspect.Options{Split: "nope"})
			return err
		},
		"Fanouts": func() error {
			_, err := inspect.Batch(t.Context(), ds, nil, inspect.Options{Fanouts: []int{}})
			return err
		},
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// A dataset whose types have features of their own, and one type without, is measured as it is trained: in rows of the
// widest type. The report has each type's own width.
func TestBatchOfTypes(t *testing.T) {
	ds, err := linkstest.Shop()
	if err != nil {
		t.Fatal(err)
	}
	o := inspect.Options{Model: gnb.RGCN, Fanouts: []int{3, 3}, Threads: 1, Hidden: 8}
	if _, err := inspect.Batch(t.Context(), ds, []int32{0}, o); err == nil || !strings.Contains(err.Error(), "shop has no labels") {
		t.Errorf("without labels the error is %v", err)
	}
	ds.Labels, ds.Meta.NumClasses = make([]int32, ds.Nodes()), 2
	e, err := inspect.Batch(t.Context(), ds, []int32{0, 80, 200}, o)
	if err != nil {
		t.Fatal(err)
	}
	var widths []int
	for _, n := range e.Types {
		widths = append(widths, n.Features)
	}
	if !slices.Equal(widths, []int{2, 6, 0}) {
		t.Errorf("the types have %v features, want 2, 6 and 0", widths)
	}
	rows := 0
	for _, s := range e.Spans {
		if s.Stage == "forward, layer 1" {
			rows = e.Hops[1].Src
			if want := int64(4 * (6*rows + 8*e.Hops[1].Dst)); s.Bytes != want {
				t.Errorf("layer 1 reads and writes %d bytes, want %d: rows of 6 columns, and results of 8", s.Bytes, want)
			}
		}
	}
	if rows == 0 || !strings.Contains(e.String(), "types: user, 80 nodes, 2 features, 2 classes; item, 120 nodes, 6 features, 2 classes; brand, 4 nodes, ") {
		t.Errorf("the report has no layer 1, or no types:\n%s", e)
	}
}
