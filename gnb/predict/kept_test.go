package predict_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/tables"
)

// named returns the id of node v of a world.
func named(v int32) string {
	if v < oldNodes {
		return strconv.Itoa(int(v))
	}
	return fmt.Sprintf("new%d", v)
}

// upTo returns the additions of w whose new nodes are from, …, to-1, and what their edges need of nodes before them.
func (w *world) upTo(from, to int32) (a predict.Additions) {
	number := func(id string) int32 {
		n, _ := strconv.Atoi(strings.TrimPrefix(id, "new"))
		return int32(n)
	}
	for i, n := range w.added.Nodes {
		if v := w.news[i]; v >= from && v < to {
			a.Nodes = append(a.Nodes, n)
		}
	}
	for _, e := range w.added.Edges {
		if v := max(number(e.Source), number(e.Target)); v >= from && v < to {
			a.Edges = append(a.Edges, e)
		}
	}
	return a
}

// After Add a predictor answers as on the dataset with all nodes and edges appended, also for further new nodes on top, whatever layer
// was computed beforehand.
func TestAddedIsAsAppended(t *testing.T) {
	cases := map[string]struct {
		world worldOptions
		model gnb.AnyModel
		o     gnb.ModelOptions
	}{
		"sage":             {worldOptions{later: .1}, gnb.SAGE, gnb.ModelOptions{Hidden: 16, Layers: 3}},
		"sage directed":    {worldOptions{directed: true, later: .1}, gnb.SAGE, gnb.ModelOptions{Hidden: 5, Layers: 3, Norm: "layer", JK: "cat"}},
		"gcn":              {worldOptions{later: .1}, gnb.GCN, gnb.ModelOptions{Hidden: 16, Layers: 3}},
		"gcn directed":     {worldOptions{directed: true, weights: true, later: .1}, gnb.GCN, gnb.ModelOptions{Hidden: 16, Layers: 3}},
		"gin sparse":       {worldOptions{sparse: true, weights: true, later: .1}, gnb.GIN, gnb.ModelOptions{Hidden: 16, EdgeWeights: true, Layers: 3}},
		"gatv2 of edges":   {worldOptions{edgeCols: 4, directed: true, later: .1}, gnb.GATv2, gnb.ModelOptions{Hidden: 16, Heads: 2, Layers: 3}},
		"gatedgcn of half": {worldOptions{edgeCols: 3, half: true, later: .1}, gnb.GatedGCN, gnb.ModelOptions{Hidden: 16, Layers: 3}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.world)
			run := train(t, w.old, c.model, c.o)
			want, before := infer(t, run, w.all, 0), infer(t, run, w.old, 0)
			var ids []string
			var all []int32
			for v := range int32(oldNodes + newNodes) {
				ids, all = append(ids, named(v)), append(all, v)
			}
			for layer := range 4 {
				p := open(t, run, w.old, predict.Options{Threads: 1, Precompute: layer})
				a, err := p.Nodes(t.Context(), ids[:oldNodes]...)
				if err != nil {
					t.Fatal(err)
				}
				same(t, fmt.Sprintf("with layer %d computed beforehand", layer), a, before, all[:oldNodes])
				later := len(w.later) / 2
				for i, add := range []predict.Additions{w.upTo(oldNodes, 123), {Edges: w.later[:later]}, w.upTo(123, 126), {Edges: w.later[later:]}} {
					r, err := p.Add(t.Context(), add)
					if err != nil {
						t.Fatal(err)
					}
					if r.Nodes != len(add.Nodes) || (r.Refreshed > 0) != (layer > 0) {
						t.Errorf("addition %d of %d nodes gave %+v", i, len(add.Nodes), r)
					}
				}
				a, err = p.New(t.Context(), w.upTo(126, oldNodes+newNodes))
				if err != nil {
					t.Fatal(err)
				}
				same(t, "new nodes on top of added ones", a, want, all[126:])
				if _, err := p.Add(t.Context(), w.upTo(126, oldNodes+newNodes)); err != nil {
					t.Fatal(err)
				}
				if a, err = p.Nodes(t.Context(), ids...); err != nil {
					t.Fatal(err)
				}
				same(t, fmt.Sprintf("after all additions, with layer %d computed beforehand", layer), a, want, all)
			}
		})
	}
}

// A predictor of tables keeps typed rows and edges, whose ids then are those of known nodes.
func TestAddedRowsOfTables(t *testing.T) {
	old, all, a, news := shop(t, tables.Options{Reverses: true, Kinds: map[string]tables.Kind{"value": tables.Skip}})
	run := train(t, old, gnb.RGCN, gnb.ModelOptions{Hidden: 16})
	want := infer(t, run, all, 0)
	for _, layer := range []int{0, 1, 2} {
		p := open(t, run, old, predict.Options{Precompute: layer})
		if _, err := p.Add(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, n := range a.Nodes {
			ids = append(ids, n.Type+":"+n.ID)
		}
		got, err := p.Nodes(t.Context(), ids...)
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("with layer %d computed beforehand", layer), got, want, news)
		if _, err := p.Add(t.Context(), a); !errors.Is(err, predict.ErrRequest) || !strings.Contains(err.Error(), "is that of a node of") {
			t.Errorf("the same nodes again: %v", err)
		}
	}
}

// Equal edges are merged and counted, in a dataset that has merged its own, and refused where their features were averaged; what fails
// changes nothing.
func TestAddedTwice(t *testing.T) {
	w := newWorld(t, worldOptions{directed: true})
	run := train(t, w.old, gnb.SAGE, gnb.ModelOptions{Hidden: 16})
	p := open(t, run, w.old, predict.Options{Precompute: 2})
	before, err := p.Numbered(t.Context(), 5, 6, 30)
	if err != nil {
		t.Fatal(err)
	}
	source := w.old.Graph.InNeighbors(30)[0]
	r, err := p.Add(t.Context(), predict.Additions{Edges: []predict.Edge{{Source: fmt.Sprint(source), Target: "30"}}})
	if err != nil || r.Edges != 0 || r.Merged != 1 {
		t.Errorf("an edge that is there gave %+v, %v", r, err)
	}
	for what, a := range map[string]predict.Additions{
		"there is nothing to add": {},
		"there is no such node":   {Edges: []predict.Edge{{Source: "5", Target: "6"}, {Source: "5", Target: "nobody"}}},
		"has 2 features":          {Nodes: []predict.Node{{ID: "x", Features: []float32{1, 2}}}, Edges: []predict.Edge{{Source: "5", Target: "x"}}},
	} {
		if _, err := p.Add(t.Context(), a); err == nil || !strings.Contains(fmt.Sprint(err, errors.Is(err, predict.ErrUnknownNode)), strings.Replace(what, "there is no such node", "true", 1)) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	after, err := p.Numbered(t.Context(), 5, 6, 30)
	if err != nil || !slices.Equal(after.Rows.F32, before.Rows.F32) {
		t.Errorf("additions that failed changed the answers (%v)", err)
	}
	w = newWorld(t, worldOptions{edgeCols: 2})
	p = open(t, train(t, w.old, gnb.GATv2, gnb.ModelOptions{Hidden: 16, Heads: 2}), w.old, predict.Options{})
	again := predict.Edge{Source: fmt.Sprint(w.old.Graph.InNeighbors(30)[0]), Target: "30", Features: []float32{1, 2}}
	if _, err := p.Add(t.Context(), predict.Additions{Edges: []predict.Edge{again}}); !errors.Is(err, predict.ErrRequest) || !strings.Contains(err.Error(), "are averaged") {
		t.Errorf("an edge with features that is there: %v", err)
	}
	w = newWorld(t, worldOptions{directed: true})
	small := open(t, run, w.old, predict.Options{MaxNew: 2})
	if _, err := small.Add(t.Context(), predict.Additions{Nodes: w.added.Nodes[:2]}); err != nil {
		t.Fatal(err)
	}
	if _, err := small.New(t.Context(), predict.Additions{Nodes: w.added.Nodes[2:3]}); !errors.Is(err, predict.ErrRequest) || !strings.Contains(err.Error(), "MaxNew") {
		t.Errorf("one node more than MaxNew: %v", err)
	}
}

// Additions that are made together are those one after another; a mistake in one makes none of them.
func TestAddAll(t *testing.T) {
	w := newWorld(t, worldOptions{later: .5, directed: true, weights: true})
	run := train(t, w.old, gnb.GCN, gnb.ModelOptions{Hidden: 16})
	var all []predict.Additions
	for v := int32(oldNodes); v < oldNodes+newNodes; v++ {
		all = append(all, w.upTo(v, v+1))
	}
	for _, e := range w.later {
		all = append(all, predict.Additions{Edges: []predict.Edge{e}})
	}
	if len(all) < 70 {
		t.Fatalf("%d additions are too few for what is tested", len(all))
	}
	together := open(t, run, w.old, predict.Options{Precompute: 1})
	if _, err := together.AddAll(t.Context(), append(slices.Clone(all), predict.Additions{Edges: []predict.Edge{{Source: "5", Target: "nobody"}}})); !errors.Is(err, predict.ErrUnknownNode) || !strings.Contains(err.Error(), fmt.Sprintf("addition %d", len(all)+1)) {
		t.Errorf("an edge to nobody at the end: %v", err)
	}
	r, err := together.AddAll(t.Context(), all)
	if err != nil || r.Nodes != newNodes || r.KeptNodes != newNodes {
		t.Fatal(r, err)
	}
	var nodes []int32
	var ids []string
	for v := range int32(oldNodes + newNodes) {
		nodes, ids = append(nodes, v), append(ids, named(v))
	}
	a, err := together.Nodes(t.Context(), ids...)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "additions together", a, infer(t, run, w.all, 0), nodes)
}

// The id of an added node is not one that calls take for another node.
func TestAddedIDs(t *testing.T) {
	old, _, a, _ := shop(t, tables.Options{Reverses: true, Kinds: map[string]tables.Kind{"value": tables.Skip}})
	p := open(t, train(t, old, gnb.RGCN, gnb.ModelOptions{Hidden: 16}), old, predict.Options{})
	n := a.Nodes[0]
	for i, of := range a.Nodes {
		if of.Type != n.Type {
			n.ID = of.Type + ":" + a.Nodes[i].ID
		}
	}
	if _, err := p.Add(t.Context(), predict.Additions{Nodes: []predict.Node{n}}); !errors.Is(err, predict.ErrRequest) || !strings.Contains(err.Error(), "begins with the type") {
		t.Errorf("a node %q of type %s: %v", n.ID, n.Type, err)
	}
}

// Rows that Open has computed layer by layer are computed again after an addition too, if the neighbourhood of all layers at once has more
// edges than a call may have.
func TestRefreshOfLargeNeighbourhoods(t *testing.T) {
	w := newWorld(t, worldOptions{directed: true})
	run := train(t, w.old, gnb.SAGE, gnb.ModelOptions{Hidden: 16, Layers: 3})
	most := 0
	for v := range int32(oldNodes) {
		most = max(most, w.old.Graph.InDegree(v))
	}
	few, all := open(t, run, w.old, predict.Options{Precompute: 3, MaxEdges: most + 5}), open(t, run, w.old, predict.Options{})
	a := predict.Additions{Edges: []predict.Edge{{Source: "30", Target: "77"}}}
	for _, p := range []*predict.Predictor{few, all} {
		if _, err := p.Add(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	got, err := few.Numbered(t.Context(), 77, 30, 3)
	if err != nil {
		t.Fatal(err)
	}
	want, err := all.Numbered(t.Context(), 77, 30, 3)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "rows computed again", got, want.Rows, []int32{0, 1, 2})
}

// Calls that run while edges arrive answer as before or as after them.
func TestAddUnderLoad(t *testing.T) {
	w := newWorld(t, worldOptions{later: .2})
	run := train(t, w.old, gnb.GCN, gnb.ModelOptions{Hidden: 16})
	p := open(t, run, w.old, predict.Options{Threads: 1, Precompute: 1})
	reference := open(t, run, w.old, predict.Options{Threads: 1})
	nodes := []int32{1, 30, 77}
	var mu sync.Mutex
	allowed := map[string]bool{}
	allow := func() {
		a, err := reference.Numbered(t.Context(), nodes...)
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		allowed[fmt.Sprint(a.Rows.F32)] = true
	}
	allow()
	stop := make(chan struct{})
	var readers sync.WaitGroup
	var seen sync.Map
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a, err := p.Numbered(t.Context(), nodes...)
				if err != nil {
					t.Error(err)
					return
				}
				seen.Store(fmt.Sprint(a.Rows.F32), true)
			}
		})
	}
	for _, e := range w.later {
		a := predict.Additions{Edges: []predict.Edge{e}}
		if _, err := reference.Add(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		allow()
		if _, err := p.Add(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	readers.Wait()
	seen.Range(func(rows, _ any) bool {
		if !allowed[rows.(string)] {
			t.Errorf("a call answered %s, which is the answer at no time", rows)
		}
		return true
	})
}

// Top ranks as links.Recommend does, for known nodes, added ones and new ones.
func TestTop(t *testing.T) {
	for _, decoder := range []string{"dot", "mlp"} {
		w := newWorld(t, worldOptions{directed: true})
		var o links.Options
		o.Quiet, o.Threads, o.Workers, o.Hidden, o.Dim, o.Batch, o.Epochs, o.Seed, o.RunDir, o.Decoder = true, 1, 1, 16, 8, 64, 1, 3, t.TempDir(), decoder
		run, err := links.Train(t.Context(), w.old, o)
		if err != nil {
			t.Fatal(err)
		}
		p := open(t, run, w.old, predict.Options{Threads: 1, Precompute: 2})
		check := func(ds *gnb.Dataset, v int32, known bool, got []predict.Ranked, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			want, err := links.Recommend(t.Context(), run, ds, []int32{v}, 40, links.RecommendOptions{InferOptions: links.InferOptions{InferOptions: gnb.InferOptions{Quiet: true, Threads: 1, Workers: 1}}, ExcludeKnown: !known})
			if err != nil {
				t.Fatal(err)
			}
			ids, scores := want.Of(0)
			if len(got) != len(ids) {
				t.Fatalf("%s: %d targets, and Recommend has %d", decoder, len(got), len(ids))
			}
			for i, r := range got {
				if r.ID != named(ids[i]) || r.Score != scores[i] {
					t.Fatalf("%s, node %d, known %v: rank %d is %v, and Recommend says %s %v", decoder, v, known, i, r, named(ids[i]), scores[i])
				}
			}
		}
		for _, v := range []int32{30, 7, 100} {
			for _, known := range []bool{false, true} {
				got, err := p.Top(t.Context(), predict.TopQuery{ID: named(v), K: 40, Known: known})
				check(w.old, v, known, got, err)
			}
		}
		// A new node that has edges from known nodes alone leaves their embeddings as they are.
		n := w.added.Nodes[0]
		a := predict.Additions{Nodes: []predict.Node{{ID: "guest", Features: n.Features}}, Edges: []predict.Edge{{Source: "30", Target: "guest"}, {Source: "4", Target: "guest"}}}
		guest, err := p.Top(t.Context(), predict.TopQuery{ID: "guest", K: 40, Additions: a})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Add(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		kept, err := p.Top(t.Context(), predict.TopQuery{ID: "guest", K: 40})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(guest, kept) {
			t.Errorf("%s: as a new node the guest has %v, as an added one %v", decoder, guest[:3], kept[:3])
		}
		if i := slices.IndexFunc(kept, func(r predict.Ranked) bool { return r.ID == "guest" }); i >= 0 {
			t.Errorf("a node is recommended to itself")
		}
		if got, err := p.Top(t.Context(), predict.TopQuery{ID: "30", K: 1000, Known: true}); err != nil || len(got) != oldNodes {
			t.Errorf("all targets of a node are %d, %v", len(got), err)
		}
		if _, err := open(t, run, w.old, predict.Options{}).Top(t.Context(), predict.TopQuery{ID: "1"}); !errors.Is(err, predict.ErrRequest) || !strings.Contains(err.Error(), "Precompute") {
			t.Errorf("without embeddings: %v", err)
		}
	}
	t.Run("typed", func(t *testing.T) {
		old, _, a, _ := shop(t, tables.Options{Reverses: true, Kinds: map[string]tables.Kind{"value": tables.Skip}})
		var o links.Options
		o.Quiet, o.Threads, o.Workers, o.Hidden, o.Dim, o.Batch, o.Epochs, o.Seed, o.RunDir = true, 1, 1, 16, 8, 64, 1, 3, t.TempDir()
		o.Relation, o.Model = "user:buys:item", gnb.RGCN
		run, err := links.Train(t.Context(), old, o)
		if err != nil {
			t.Fatal(err)
		}
		p := open(t, run, old, predict.Options{Precompute: 2})
		got, err := p.Top(t.Context(), predict.TopQuery{ID: "u3", K: 5, Known: true})
		if err != nil || len(got) != 5 {
			t.Fatal(got, err)
		}
		pairs := make([]predict.Pair, len(got))
		for i, r := range got {
			pairs[i] = predict.Pair{Source: "u3", Target: r.ID}
		}
		scores, err := p.Score(t.Context(), pairs, predict.Additions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range scores {
			if d := s - got[i].Score; cmp.Compare(d*d, 1e-10) > 0 {
				t.Errorf("the score of %s is %v, and Score says %v", got[i].ID, got[i].Score, s)
			}
		}
		if _, err := p.Top(t.Context(), predict.TopQuery{ID: a.Nodes[0].ID}); !errors.Is(err, predict.ErrUnknownNode) {
			t.Errorf("a node that is not there: %v", err)
		}
	})
}

// Layers that cannot be computed beforehand are refused.
func TestPrecomputeMisuse(t *testing.T) {
	w := newWorld(t, worldOptions{})
	run := train(t, w.old, gnb.SAGE, gnb.ModelOptions{Hidden: 16})
	for want, o := range map[string]predict.Options{
		"have the layers 1 to 2": {Precompute: 3}, "leave one of the two out": {Precompute: 1, Fanouts: []int{2, 2}}, "0 means none": {Precompute: -1},
		"more than 3 edges": {Precompute: 1, MaxEdges: 3},
	} {
		if _, err := predict.Open(t.Context(), run, w.old, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
