package predict_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/simd"
)

func TestMain(m *testing.M) { runtest.MainWithRuns(m) }

// world is a random graph of which the last nodes are new: the dataset of the others, the dataset of all, and what Additions
// make of the difference.
type world struct {
	old, all *gnb.Dataset
	added    predict.Additions
	news     []int32 // numbers of the new nodes in all
	later    []predict.Edge
}

// worldOptions say what edges and nodes have.
type worldOptions struct {
	directed, weights, sparse, half bool
	edgeCols                        int
	// later is the share of the edges among old nodes that the old dataset lacks; they are in world.later.
	later float64
}

const (
	oldNodes = 120
	newNodes = 9
	cols     = 10
)

// newWorld makes a world. Nodes have 2 to 6 edges, some twice, one node of 30 has many, and new nodes have edges among each
// other; one has a self-loop, and one has none.
func newWorld(t testing.TB, o worldOptions) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 8))
	const n = oldNodes + newNodes
	var src, dst []int32
	var data graphops.EdgeData
	add := func(u, v int32) {
		src, dst = append(src, u), append(dst, v)
		if o.weights {
			data.Weights = append(data.Weights, float32(1+r.IntN(8))/4)
		}
		for range o.edgeCols {
			if data.Features == nil {
				data.Features = &graphops.EdgeFeatures{Cols: o.edgeCols}
			}
			data.Features.F32 = append(data.Features.F32, float32(r.NormFloat64()))
		}
	}
	for v := range int32(n - 1) {
		for range 2 + r.IntN(5) {
			u := r.Int32N(n - 1)
			if r.IntN(4) == 0 {
				u = 30
			}
			if u == v {
				continue
			}
			add(u, v)
			if r.IntN(6) == 0 {
				add(u, v)
			}
		}
	}
	add(oldNodes+1, oldNodes+1)
	add(oldNodes+2, oldNodes+3)
	add(oldNodes+3, oldNodes+2)
	add(7, 7)
	x := make([]float32, n*cols)
	for i := range x {
		if !o.sparse || r.IntN(4) == 0 {
			x[i] = float32(r.NormFloat64())
		}
	}
	isLater := make([]bool, len(src))
	for i := range src {
		if old := max(src[i], dst[i]) < oldNodes; old && o.edgeCols > 0 { // all edges of a pair: their features are averaged
			isLater[i] = float64(src[i]*dst[i]*37%100) < 100*o.later
		} else {
			isLater[i] = old && r.Float64() < o.later
		}
	}
	build := func(nodes int) *gnb.Dataset {
		var s, d []int32
		var e graphops.EdgeData
		for i := range src {
			if int(src[i]) >= nodes || int(dst[i]) >= nodes || nodes == oldNodes && isLater[i] {
				continue
			}
			s, d = append(s, src[i]), append(d, dst[i])
			if o.weights {
				e.Weights = append(e.Weights, data.Weights[i])
			}
			if o.edgeCols > 0 {
				if e.Features == nil {
					e.Features = &graphops.EdgeFeatures{Cols: o.edgeCols}
				}
				e.Features.F32 = append(e.Features.F32, data.Features.F32[i*o.edgeCols:(i+1)*o.edgeCols]...)
			}
		}
		if x := e.Features; x != nil && o.half {
			x.F16 = make([]uint16, len(x.F32))
			simd.ToHalf(x.F16, x.F32)
			x.F32 = nil
		}
		g, err := graphops.FromEdgesWith(nodes, s, d, e, graphops.BuildOptions{Undirected: !o.directed})
		if err != nil {
			t.Fatal(err)
		}
		ds := &gnb.Dataset{Graph: g, Splits: map[string][]int32{}, Labels: make([]int32, nodes)}
		ds.Meta.Name, ds.Meta.NumClasses, ds.Meta.ClassNames, ds.Meta.Undirected = "world", 3, []string{"a", "b", "c"}, !o.directed
		m := &dataset.Matrix{Rows: nodes, Cols: cols, F32: x[:nodes*cols]}
		switch {
		case o.sparse:
			ds.SparseFeatures = compressed(m)
		case o.half:
			if ds.Features, err = m.Float16(); err != nil {
				t.Fatal(err)
			}
		default:
			ds.Features = m
		}
		for v := range nodes {
			ds.Labels[v] = int32(v * 7 % 3)
			split := []string{"train", "train", "val", "test"}[v%4]
			ds.Splits[split] = append(ds.Splits[split], int32(v))
		}
		return ds
	}
	w := &world{old: build(oldNodes), all: build(n)}
	id := func(v int32) string {
		if v < oldNodes {
			return strconv.Itoa(int(v))
		}
		return fmt.Sprintf("new%d", v)
	}
	for v := int32(oldNodes); v < n; v++ {
		w.news = append(w.news, v)
		row := make([]float32, cols)
		if o.half {
			copy(row, w.all.Features.Row(int(v)))
		} else {
			copy(row, x[v*cols:(v+1)*cols])
		}
		w.added.Nodes = append(w.added.Nodes, predict.Node{ID: id(v), Features: row})
	}
	for i := range src {
		if src[i] < oldNodes && dst[i] < oldNodes && !isLater[i] {
			continue
		}
		e := predict.Edge{Source: id(src[i]), Target: id(dst[i])}
		if o.weights {
			e.Weight = &data.Weights[i]
		}
		if o.edgeCols > 0 {
			e.Features = data.Features.F32[i*o.edgeCols : (i+1)*o.edgeCols]
		}
		if isLater[i] {
			w.later = append(w.later, e)
			continue
		}
		w.added.Edges = append(w.added.Edges, e)
	}
	return w
}

// compressed returns a matrix in compressed rows.
func compressed(m *dataset.Matrix) *dataset.Sparse {
	s := &dataset.Sparse{Rows: m.Rows, Cols: m.Cols, Indptr: []int64{0}, Indices: []int32{}, Values: []float32{}}
	for v := range m.Rows {
		for c, y := range m.Row(v) {
			if y != 0 {
				s.Indices, s.Values = append(s.Indices, int32(c)), append(s.Values, y)
			}
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	return s
}

// train trains a run of a few steps.
func train(t testing.TB, ds *gnb.Dataset, model gnb.AnyModel, m gnb.ModelOptions) *runs.Run {
	t.Helper()
	o := gnb.TrainOptions{ModelOptions: m}
	o.Quiet, o.Threads, o.Workers, o.Epochs, o.Batch, o.Seed, o.RunDir = true, 1, 1, 2, 32, 3, t.TempDir()
	run, err := gnb.Train(t.Context(), ds, model, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// infer returns the rows of all nodes.
func infer(t testing.TB, run *runs.Run, ds *gnb.Dataset, layer int) *dataset.Matrix {
	t.Helper()
	r, err := gnb.Infer(t.Context(), run, ds, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Quiet: true, Threads: 1, Workers: 1, Layer: layer})
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Logits()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func open(t testing.TB, run *runs.Run, ds *gnb.Dataset, o predict.Options) *predict.Predictor {
	t.Helper()
	o.Quiet = true
	p, err := predict.Open(t.Context(), run, ds, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// same fails unless row i of the answers is row nodes[i] of want, bit for bit.
func same(t testing.TB, what string, a *predict.Answers, want *dataset.Matrix, nodes []int32) {
	t.Helper()
	if a.Rows.Rows != len(nodes) || a.Rows.Cols != want.Cols {
		t.Fatalf("%s: the answers are [%d, %d] for %d nodes and %d columns", what, a.Rows.Rows, a.Rows.Cols, len(nodes), want.Cols)
	}
	for i, v := range nodes {
		if got := a.Rows.Row(i); !slices.Equal(got, want.Row(int(v))) {
			t.Fatalf("%s: node %d (%s) has %v, and Infer says %v", what, v, a.IDs[i], got, want.Row(int(v)))
		}
	}
}

// Answers have the bits of Infer: for nodes of the dataset in any grouping, and for new nodes with those of Infer on the dataset with the
// new nodes appended. Also a hidden layer's, with 1 and with 2 threads.
func TestAnswersAreThoseOfInfer(t *testing.T) {
	cases := map[string]struct {
		world worldOptions
		model gnb.AnyModel
		o     gnb.ModelOptions
	}{
		"sage":               {worldOptions{}, gnb.SAGE, gnb.ModelOptions{Hidden: 16, Layers: 3}},
		"sage narrow":        {worldOptions{directed: true}, gnb.SAGE, gnb.ModelOptions{Hidden: 5, Norm: "layer"}},
		"sage half":          {worldOptions{half: true}, gnb.SAGE, gnb.ModelOptions{Hidden: 16, Residual: true, JK: "cat"}},
		"sage weighted":      {worldOptions{weights: true}, gnb.SAGE, gnb.ModelOptions{Hidden: 16, EdgeWeights: true, Norm: "batch"}},
		"gcn":                {worldOptions{}, gnb.GCN, gnb.ModelOptions{Hidden: 16, Layers: 3, Norm: "batch"}},
		"gcn weighted":       {worldOptions{weights: true}, gnb.GCN, gnb.ModelOptions{Hidden: 7}},
		"gcn directed":       {worldOptions{directed: true, weights: true}, gnb.GCN, gnb.ModelOptions{Hidden: 16, Arrangement: "strong", PreLinear: true}},
		"gcn sparse":         {worldOptions{sparse: true}, gnb.GCN, gnb.ModelOptions{Hidden: 16}},
		"gcn batch degrees":  {worldOptions{}, gnb.GCN, gnb.ModelOptions{Hidden: 16, BatchDegrees: true}},
		"gat":                {worldOptions{}, gnb.GAT, gnb.ModelOptions{Hidden: 16, Heads: 2}},
		"gatv2 of edges":     {worldOptions{edgeCols: 4}, gnb.GATv2, gnb.ModelOptions{Hidden: 16, Heads: 2}},
		"gin":                {worldOptions{}, gnb.GIN, gnb.ModelOptions{Hidden: 16, Norm: "batch"}},
		"gin weighted":       {worldOptions{weights: true, directed: true}, gnb.GIN, gnb.ModelOptions{Hidden: 16, EdgeWeights: true}},
		"gine of edges":      {worldOptions{edgeCols: 3}, gnb.GINE, gnb.ModelOptions{Hidden: 16, FeedForward: true}},
		"gatv2 of half":      {worldOptions{edgeCols: 3, half: true}, gnb.GATv2, gnb.ModelOptions{Hidden: 16, Heads: 2}},
		"gatedgcn of edges":  {worldOptions{edgeCols: 3, directed: true}, gnb.GatedGCN, gnb.ModelOptions{Hidden: 16, Norm: "batch"}},
		"pna of edges":       {worldOptions{edgeCols: 3, weights: true}, gnb.PNA, gnb.ModelOptions{Hidden: 16}},
		"mlp sparse":         {worldOptions{sparse: true}, gnb.MLP, gnb.ModelOptions{Hidden: 16}},
		"sage sparse scaled": {worldOptions{sparse: true}, gnb.SAGE, gnb.ModelOptions{Hidden: 16, ScaleInput: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.world)
			run := train(t, w.old, c.model, c.o)
			want, appended := infer(t, run, w.old, 0), infer(t, run, w.all, 0)
			for _, threads := range []int{1, 2} {
				p := open(t, run, w.old, predict.Options{Threads: threads})
				all := make([]int32, oldNodes)
				for v := range all {
					all[v] = int32(v)
				}
				for _, group := range [][]int32{all, {30}, {7}, {3, 119, 3, 0}, all[40:77]} {
					a, err := p.Numbered(t.Context(), group...)
					if err != nil {
						t.Fatal(err)
					}
					same(t, fmt.Sprintf("%d nodes, %d threads", len(group), threads), a, want, group)
				}
				a, err := p.New(t.Context(), w.added)
				if err != nil {
					t.Fatal(err)
				}
				same(t, fmt.Sprintf("new nodes, %d threads", threads), a, appended, w.news)
				if b, err := p.Numbered(t.Context(), all...); err != nil {
					t.Fatal(err)
				} else {
					same(t, "known nodes after new ones", b, want, all)
				}
			}
			p := open(t, run, w.old, predict.Options{Layer: 1})
			a, err := p.New(t.Context(), w.added)
			if err != nil || a.Kind != predict.Embeddings {
				t.Fatal(a, err)
			}
			same(t, "a hidden layer of new nodes", a, infer(t, run, w.all, 1), w.news)
		})
	}
}

// With fanouts, an answer does not depend on what is asked with it, and where fanouts reach all neighbours it is that of
// Infer.
func TestSampledAnswersDependOnTheNodeAlone(t *testing.T) {
	w := newWorld(t, worldOptions{})
	run := train(t, w.old, gnb.SAGE, gnb.ModelOptions{Hidden: 16, Layers: 2})
	p := open(t, run, w.old, predict.Options{Fanouts: []int{3, 2}, Seed: 4})
	all := make([]int32, oldNodes)
	for v := range all {
		all[v] = int32(v)
	}
	together, err := p.Numbered(t.Context(), all...)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []int32{0, 30, 61, 119} {
		a, err := p.Numbered(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "alone", a, together.Rows, []int32{v})
	}
	if full := infer(t, run, w.old, 0); slices.Equal(full.F32, together.Rows.F32) {
		t.Error("fanouts of 3 and 2 changed nothing")
	} else if wide := open(t, run, w.old, predict.Options{Fanouts: []int{oldNodes, -1}}); true {
		a, err := wide.Numbered(t.Context(), all...)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "fanouts above all degrees", a, full, all)
	}
	if other := open(t, run, w.old, predict.Options{Fanouts: []int{3, 2}, Seed: 5}); true {
		a, err := other.Numbered(t.Context(), all...)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(a.Rows.F32, together.Rows.F32) {
			t.Error("another seed drew the same neighbours")
		}
	}
	// A new node alone, and after another one that is not in its neighbourhood. Edges into it alone keep the others' degrees.
	lone := func(id string, from ...string) predict.Additions {
		a := predict.Additions{Nodes: []predict.Node{{ID: id, Features: make([]float32, cols)}}}
		for _, u := range from {
			a.Edges = append(a.Edges, predict.Edge{Source: u, Target: id})
		}
		return a
	}
	d := newWorld(t, worldOptions{directed: true})
	run = train(t, d.old, gnb.SAGE, gnb.ModelOptions{Hidden: 16, Layers: 2})
	p = open(t, run, d.old, predict.Options{Fanouts: []int{3, 2}, Seed: 4})
	x, y := lone("x", "1", "2", "3", "4", "5", "6"), lone("y", "7", "8", "9", "10", "11")
	alone, err := p.New(t.Context(), y)
	if err != nil {
		t.Fatal(err)
	}
	both, err := p.New(t.Context(), predict.Additions{Nodes: append(x.Nodes, y.Nodes...), Edges: append(x.Edges, y.Edges...)})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(alone.Rows.Row(0), both.Rows.Row(1)) {
		t.Error("a new node's draws depend on another new node")
	}
}

// Calls at the same time have the answers of calls one after the other.
func TestConcurrentCalls(t *testing.T) {
	w := newWorld(t, worldOptions{weights: true, edgeCols: 2})
	run := train(t, w.old, gnb.GATv2, gnb.ModelOptions{Hidden: 16, Heads: 2})
	want, appended := infer(t, run, w.old, 0), infer(t, run, w.all, 0)
	p := open(t, run, w.old, predict.Options{Threads: 1})
	var group sync.WaitGroup
	for k := range int32(8) {
		group.Go(func() {
			for i := range int32(6) {
				v := (k*17 + i*5) % oldNodes
				if a, err := p.Nodes(t.Context(), strconv.Itoa(int(v)), "30"); err != nil {
					t.Error(err)
				} else if !slices.Equal(a.Rows.Row(0), want.Row(int(v))) || !slices.Equal(a.Rows.Row(1), want.Row(30)) {
					t.Errorf("node %d has another answer among concurrent calls", v)
				}
				if a, err := p.New(t.Context(), w.added); err != nil {
					t.Error(err)
				} else if !slices.Equal(a.Rows.Row(2), appended.Row(oldNodes+2)) {
					t.Error("a new node has another answer among concurrent calls")
				}
			}
		})
	}
	group.Wait()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Nodes(t.Context(), "1"); !errors.Is(err, predict.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A neighbourhood with too many edges is refused by name; asked together, nodes whose neighbourhoods fit one by one are
// answered.
func TestLimits(t *testing.T) {
	w := newWorld(t, worldOptions{})
	run := train(t, w.old, gnb.SAGE, gnb.ModelOptions{Hidden: 16, Layers: 2})
	full := infer(t, run, w.old, 0)
	p := open(t, run, w.old, predict.Options{MaxEdges: 150})
	_, err := p.Nodes(t.Context(), "30")
	var limit *predict.LimitError
	if !errors.As(err, &limit) || limit.Node != "30" || limit.Hub != "30" || limit.Degree != w.old.Graph.InDegree(30) || limit.Limit != 150 {
		t.Fatalf("the hub's neighbourhood: %v", err)
	}
	sampled := open(t, run, w.old, predict.Options{MaxEdges: 150, Fanouts: []int{5, 5}})
	if _, err := sampled.Nodes(t.Context(), "30"); err != nil {
		t.Errorf("with fanouts: %v", err)
	}
	var fits []int32
	for v := range int32(oldNodes) {
		if _, err := p.Numbered(t.Context(), v); err == nil {
			fits = append(fits, v)
		} else if !errors.As(err, &limit) || limit.Node != strconv.Itoa(int(v)) {
			t.Fatalf("node %d: %v", v, err)
		}
	}
	if len(fits) < 3 {
		t.Fatalf("only %d nodes fit", len(fits))
	}
	a, err := p.Numbered(t.Context(), fits...)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "many that fit one by one", a, full, fits)
	tight := open(t, run, w.old, predict.Options{MaxEdges: 40})
	lone := predict.Additions{Nodes: w.added.Nodes[:1], Edges: []predict.Edge{{Source: w.added.Nodes[0].ID, Target: "30"}}}
	if _, err := tight.New(t.Context(), lone); !errors.As(err, &limit) || limit.Hub != "30" || limit.Node != lone.Nodes[0].ID {
		t.Errorf("an edge to the hub: %v", err)
	}
	if _, err := tight.New(t.Context(), predict.Additions{Nodes: lone.Nodes, Edges: slices.Repeat(lone.Edges, 41)}); !errors.Is(err, predict.ErrRequest) || !strings.Contains(err.Error(), "41 new edges") {
		t.Errorf("too many new edges: %v", err)
	}
	few := open(t, run, w.old, predict.Options{MaxNew: 2})
	if _, err := few.New(t.Context(), w.added); !errors.Is(err, predict.ErrRequest) || !strings.Contains(err.Error(), "MaxNew") {
		t.Errorf("too many new nodes: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Nodes(ctx, "1"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
}

// Requests that cannot be answered are refused with the place and the reason.
func TestHostileRequests(t *testing.T) {
	w := newWorld(t, worldOptions{})
	run := train(t, w.old, gnb.SAGE, gnb.ModelOptions{Hidden: 16})
	p := open(t, run, w.old, predict.Options{})
	nan, two := float32(0), float32(2)
	nan /= nan
	x := make([]float32, cols)
	for name, c := range map[string]struct {
		a    predict.Additions
		kind error
		want string
	}{
		"short features":  {predict.Additions{Nodes: []predict.Node{{ID: "n", Features: x[:3]}}}, predict.ErrRequest, `new node "n" has 3 features, and a node of world has 10`},
		"no features":     {predict.Additions{Nodes: []predict.Node{{ID: "n"}}}, predict.ErrRequest, "has 0 features"},
		"NaN":             {predict.Additions{Nodes: []predict.Node{{ID: "n", Features: append(slices.Clone(x[:9]), nan)}}}, predict.ErrRequest, "feature 9 of new node"},
		"columns":         {predict.Additions{Nodes: []predict.Node{{ID: "n", Columns: map[string]string{"a": "1"}}}}, predict.ErrRequest, "was not made of tables"},
		"no id":           {predict.Additions{Nodes: []predict.Node{{Features: x}}}, predict.ErrRequest, "has no id"},
		"twice":           {predict.Additions{Nodes: []predict.Node{{ID: "n", Features: x}, {ID: "n", Features: x}}}, predict.ErrRequest, "two new nodes have the id"},
		"known id":        {predict.Additions{Nodes: []predict.Node{{ID: "7", Features: x}}}, predict.ErrRequest, "is that of a node of world already"},
		"a type":          {predict.Additions{Nodes: []predict.Node{{ID: "n", Type: "user", Features: x}}}, predict.ErrRequest, "have no types"},
		"unknown source":  {predict.Additions{Nodes: []predict.Node{{ID: "n", Features: x}}, Edges: []predict.Edge{{Source: "120", Target: "n"}}}, predict.ErrUnknownNode, "the source of new edge 0"},
		"two known ends":  {predict.Additions{Nodes: []predict.Node{{ID: "n", Features: x}}, Edges: []predict.Edge{{Source: "1", Target: "2"}}}, predict.ErrRequest, "has a new node at one end"},
		"a weight":        {predict.Additions{Nodes: []predict.Node{{ID: "n", Features: x}}, Edges: []predict.Edge{{Source: "1", Target: "n", Weight: &two}}}, predict.ErrRequest, "have no weights"},
		"a NaN weight":    {predict.Additions{Nodes: []predict.Node{{ID: "n", Features: x}}, Edges: []predict.Edge{{Source: "1", Target: "n", Weight: &nan}}}, predict.ErrRequest, "weights are finite"},
		"a relation":      {predict.Additions{Nodes: []predict.Node{{ID: "n", Features: x}}, Edges: []predict.Edge{{Source: "1", Target: "n", Relation: "r"}}}, predict.ErrRequest, "have no relations"},
		"edge features":   {predict.Additions{Nodes: []predict.Node{{ID: "n", Features: x}}, Edges: []predict.Edge{{Source: "1", Target: "n", Features: x}}}, predict.ErrRequest, "has 10 features, and such an edge of world has 0"},
		"a huge weight n": {predict.Additions{Nodes: []predict.Node{{ID: "a\nb", Features: x}}}, predict.ErrRequest, "line break"},
	} {
		if _, err := p.New(t.Context(), c.a); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for _, id := range []string{"120", "-1", "x", "", "007", "1e3"} {
		if _, err := p.Nodes(t.Context(), id); !errors.Is(err, predict.ErrUnknownNode) {
			t.Errorf("node %q: %v", id, err)
		}
	}
	if _, err := p.Numbered(t.Context(), 120); !errors.Is(err, predict.ErrUnknownNode) {
		t.Errorf("node number 120: %v", err)
	}
	huge := slices.Repeat([]float32{3e38}, cols)
	if _, err := p.New(t.Context(), predict.Additions{Nodes: []predict.Node{{ID: "n", Features: huge}}}); !errors.Is(err, gnb.ErrNotFinite) || !strings.Contains(err.Error(), "node n") {
		t.Errorf("huge features: %v", err)
	}
	if _, err := p.Score(t.Context(), []predict.Pair{{Source: "1", Target: "2"}}, predict.Additions{}); !errors.Is(err, predict.ErrRequest) {
		t.Errorf("scores of a run of classes: %v", err)
	}
	if a, err := p.New(t.Context(), predict.Additions{}); err != nil || len(a.IDs) != 0 {
		t.Errorf("no new node: %v, %v", a, err)
	}
	if _, err := predict.Open(t.Context(), run, w.old, predict.Options{Fanouts: []int{1}}); err == nil || !strings.Contains(err.Error(), "2 hops") {
		t.Errorf("one fanout for two layers: %v", err)
	}
	if _, err := predict.Open(t.Context(), run, w.old, predict.Options{Layer: 3}); err == nil || !strings.Contains(err.Error(), "layers 1 to 2") {
		t.Errorf("layer 3 of two: %v", err)
	}
}
