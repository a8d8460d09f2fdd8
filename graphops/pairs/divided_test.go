package pairs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
)

// together runs a function on ranks that exchange in memory. It returns the errors by rank.
func together(world int, f func(p Peers) error) []error {
	var mu sync.Mutex
	turn := sync.NewCond(&mu)
	mail, arrived, round, left := make([][][]byte, world), 0, 0, 0
	var sent [][][]byte // in the round before: no rank changes it before all have read it
	errs := make([]error, world)
	var wg sync.WaitGroup
	for r := range world {
		wg.Go(func() {
			x := func(send [][]byte) ([][]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				copied := make([][]byte, world)
				for to, b := range send {
					copied[to] = slices.Clone(b)
				}
				mail[r] = copied
				mine := round
				if arrived++; arrived == world {
					arrived, round, sent = 0, round+1, slices.Clone(mail)
					turn.Broadcast()
				}
				for mine == round {
					if left > 0 {
						return nil, errors.New("another rank has ended")
					}
					turn.Wait()
				}
				got := make([][]byte, world)
				for from := range got {
					got[from] = sent[from][r]
				}
				return got, nil
			}
			errs[r] = f(Peers{Rank: r, World: world, Owner: func(v int32) int { return sample.Owner(v, world) }, Exchange: x})
			mu.Lock()
			left++
			turn.Broadcast()
			mu.Unlock()
		})
	}
	wg.Wait()
	return errs
}

// ownEdges returns the graph with the in-edges of a rank's nodes alone.
func ownEdges(g *graphops.Graph, p Peers) *graphops.Graph {
	own := &graphops.Graph{Indptr: make([]int64, g.NumNodes()+1), Indices: []int32{}}
	var data graphops.EdgeData
	all := g.EdgeData()
	data.SetLen(all.Shape(), 0)
	for v := range int32(g.NumNodes()) {
		if p.owns(v) {
			own.Indices = append(own.Indices, g.InNeighbors(v)...)
			data.Append(all.Slice(g.Indptr[v], g.Indptr[v+1]))
		}
		own.Indptr[v+1] = int64(len(own.Indices))
	}
	return own.WithEdges(data)
}

// dense returns a graph with loops, copies of edges, isolated nodes, times and weights.
func dense(t *testing.T, nodes, edges int, undirected bool) *graphops.Graph {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(nodes), uint64(edges)))
	var e Edges
	for range edges {
		u, v := r.Int32N(int32(nodes-2)), r.Int32N(int32(nodes-2))
		e = e.Append(u, v)
		if r.IntN(5) == 0 {
			e = e.Append(u, v)
		}
	}
	if undirected { // with as many copies in both directions
		e = e.Join(Edges{e.Dst, e.Src})
	}
	g, err := graphops.FromEdges(nodes, e.Src, e.Dst, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	times, weights := make([]int64, g.NumEdges()), make([]float32, g.NumEdges())
	for i := range times {
		times[i], weights[i] = r.Int64N(40)-20+1<<40, r.Float32()
	}
	return g.WithEdgeWeights(weights).WithEdgeData(nil, times)
}

// mostly returns a graph without one in 20 of its edges.
func mostly(t *testing.T, g *graphops.Graph) *graphops.Graph {
	t.Helper()
	var gone Edges
	for v := range int32(g.NumNodes()) {
		for i, u := range g.InNeighbors(v) {
			if (g.Indptr[v]+int64(i))%20 == 0 {
				gone = gone.Append(u, v)
			}
		}
	}
	without, err := graphops.FromEdges(g.NumNodes(), gone.Src, gone.Dst, graphops.BuildOptions{})
	if err == nil {
		without, err = g.Without(without, 0)
	}
	if err != nil || without.Symmetric() {
		t.Fatal("the graph is still undirected", err)
	}
	return without
}

// splits are ways to split a graph and its parts.
func splits(g *graphops.Graph) map[string][2]func(p Peers, own *graphops.Graph, o SplitOptions) (*Split, error) {
	given, extra := Edges{}, Edges{}
	for v := int32(0); given.Len() < 9; v++ {
		if row := g.InNeighbors(v); len(row) > 0 && row[0] != v && row[0] > v {
			given = given.Append(row[0], v)
		}
	}
	extra = given.Slice(0, 4).Join(Edges{[]int32{int32(g.NumNodes() - 1)}, []int32{0}}) // an edge that the graph does not have
	val := given.Slice(4, 9)
	type split = func(p Peers, own *graphops.Graph, o SplitOptions) (*Split, error)
	return map[string][2]split{
		"random": {
			func(_ Peers, _ *graphops.Graph, o SplitOptions) (*Split, error) { return Random(g, o) },
			RandomDivided,
		},
		"by time": {
			func(_ Peers, _ *graphops.Graph, o SplitOptions) (*Split, error) {
				return ByTime(g, nil, 1<<40+12, 1<<40+16, o)
			},
			func(p Peers, own *graphops.Graph, o SplitOptions) (*Split, error) {
				return ByTimeDivided(p, own, 1<<40+12, 1<<40+16, o)
			},
		},
		"given": {
			func(_ Peers, _ *graphops.Graph, o SplitOptions) (*Split, error) { return Given(g, val, extra, o) },
			func(p Peers, own *graphops.Graph, o SplitOptions) (*Split, error) {
				return GivenDivided(p, own, val, extra, o)
			},
		},
	}
}

// A split of a divided graph has the edges, negatives and numbers of the split of the whole graph, and each rank the rows of
// its own nodes.
func TestDividedSplit(t *testing.T) {
	for kind, g := range map[string]*graphops.Graph{
		"undirected": dense(t, 80, 200, true), "directed": dense(t, 80, 200, false), "almost undirected": mostly(t, dense(t, 80, 200, true)),
	} {
		for name, by := range splits(g) {
			for _, o := range []SplitOptions{{Val: 0.2, Test: 0.1, Negatives: 3, Seed: 7}, {Disjoint: 0.4, KeepSource: true, Seed: 1}} {
				want, err := by[0](Peers{}, nil, o)
				if err != nil {
					t.Fatal(err)
				}
				for world := 1; world <= 3; world++ {
					errs := together(world, func(p Peers) error {
						s, err := by[1](p, ownEdges(g, p), o)
						if err != nil {
							return err
						}
						for what, pair := range map[string][2]Edges{"validation": {s.Val.Edges, want.Val.Edges}, "test": {s.Test.Edges, want.Test.Edges}, "reverses": {s.Test.Reverses, want.Test.Reverses}, "negatives of validation": {s.Val.Neg, want.Val.Neg}, "negatives of the test": {s.Test.Neg, want.Test.Neg}} {
							if !equalEdges(pair[0], pair[1]) {
								return fmt.Errorf("the edges of %s are %v, want %v", what, pair[0], pair[1])
							}
						}
						if fmt.Sprint(s.Notes(), s.Both) != fmt.Sprint(want.Notes(), want.Both) {
							return fmt.Errorf("the split says %q, want %q", s.Notes(), want.Notes())
						}
						if s.Predicted() != want.Train.Len() || s.String() != want.String() {
							return fmt.Errorf("the split is %v with %d edges to predict, want %v", s, s.Predicted(), want)
						}
						for what, pair := range map[string][2]*graphops.Graph{"message": {s.Message, want.Message}, "training": {s.Training, want.Training}} {
							if err := sameRows(p, pair[0], pair[1]); err != nil {
								return fmt.Errorf("the %s graph: %w", what, err)
							}
						}
						if !slices.Equal(s.Divided.First(), want.Message.Indptr) {
							return errors.New("other positions")
						}
						known, err := s.WithVal()
						wantKnown, wantErr := want.WithVal()
						if name == "random" && err == nil && wantErr == nil {
							err = sameRows(p, known, wantKnown)
						}
						if name == "random" && err != nil {
							return err
						}
						items := []int32{int32(s.Predicted() - 1), 0, 3, 17, 5}
						got, err := s.Divided.Edges(p.Exchange, items)
						if err != nil {
							return err
						}
						for k, i := range items {
							if got.Src[k] != want.Train.Src[i] || got.Dst[k] != want.Train.Dst[i] {
								return fmt.Errorf("edge %d is %d → %d, want %d → %d", i, got.Src[k], got.Dst[k], want.Train.Src[i], want.Train.Dst[i])
							}
						}
						if _, err := s.Divided.Edges(p.Exchange, []int32{int32(s.Predicted())}); err == nil {
							return errors.New("an edge that is not there was found")
						}
						return sameDraws(s, want)
					})
					if err := errors.Join(errs...); err != nil {
						t.Errorf("%s, %s, %d ranks, %+v: %v", name, kind, world, o, err)
					}
				}
			}
		}
	}
}

func equalEdges(a, b Edges) bool { return slices.Equal(a.Src, b.Src) && slices.Equal(a.Dst, b.Dst) }

// sameRows compares the rows of a rank's own nodes with those of the whole graph.
func sameRows(p Peers, got, want *graphops.Graph) error {
	for v := range int32(want.NumNodes()) {
		lo, hi := want.Indptr[v], want.Indptr[v+1]
		a, b := got.Indptr[v], got.Indptr[v+1]
		if !p.owns(v) {
			continue
		}
		if !slices.Equal(got.Indices[a:b], want.Indices[lo:hi]) || !slices.Equal(got.EdgeTimes[a:b], want.EdgeTimes[lo:hi]) || !slices.Equal(got.EdgeWeights[a:b], want.EdgeWeights[lo:hi]) {
			return fmt.Errorf("node %d has other in-edges", v)
		}
	}
	return nil
}

// sameDraws compares negatives of a divided split with those of the whole, of all kinds.
func sameDraws(s, want *Split) error {
	p := s.Divided.Peers()
	ids := []int32{5, 2, 9, 30, 11, 8}
	of := edgesAt(want.Train.Edges, ids)
	for from := Uniform; from <= InBatch; from++ {
		for k := range 8 {
			o := NegativeOptions{From: from, PerEdge: 1 + k%3, Strict: k < 4, BothEnds: k%2 == 0 && from != InBatch, Undirected: s.Undirected, Seed: 3}
			a, err := NewNegatives(want.Training, o)
			if err != nil {
				return err
			}
			b, err := NewDividedNegatives(p, s.Training, o)
			if err != nil {
				return err
			}
			x, err := a.Draw(2, 4, ids, of)
			if err != nil {
				return err
			}
			y, err := b.DrawDivided(p.Exchange, 2, 4, ids, of)
			if err != nil || !equalEdges(x, y) {
				return fmt.Errorf("the negatives of %+v are %v, want %v (%w)", o, y, x, err)
			}
		}
	}
	return nil
}

func edgesAt(e Edges, items []int32) (out Edges) {
	for _, i := range items {
		out = out.Append(e.Src[i], e.Dst[i])
	}
	return out
}

// Gather and Around return the rows that each rank asks for, and Reverse the out-edges of own nodes.
func TestGather(t *testing.T) {
	g := dense(t, 60, 150, false)
	want := [][]int32{{0, 1, 7, 59}, {}, {1, 2, 3, 30}}
	reversed := g.Reverse(1).Dedup(1)
	errs := together(3, func(p Peers) error {
		own := ownEdges(g, p)
		got, err := p.Gather(own, want)
		if err != nil {
			return err
		}
		for v := range int32(60) {
			lo, hi := g.Indptr[v], g.Indptr[v+1]
			if !slices.Contains(want[p.Rank], v) {
				hi = lo
			}
			a, b := got.Indptr[v], got.Indptr[v+1]
			if !slices.Equal(got.Indices[a:b], g.Indices[lo:hi]) || !slices.Equal(got.EdgeTimes[a:b], g.EdgeTimes[lo:hi]) || !slices.Equal(got.EdgeWeights[a:b], g.EdgeWeights[lo:hi]) {
				return fmt.Errorf("node %d has the in-edges %v, want %v", v, got.Indices[a:b], g.Indices[lo:hi])
			}
		}
		degrees, err := p.Degrees(own)
		if err != nil {
			return err
		}
		around, err := p.Around(p.Exchange, own, degrees, want)
		if err != nil {
			return err
		}
		for v := range int32(60) {
			if around.InDegree(v) != g.InDegree(v) || around.NumNodes() != 60 {
				return fmt.Errorf("node %d of %d has degree %d, want %d", v, around.NumNodes(), around.InDegree(v), g.InDegree(v))
			}
			var row []int32
			switch err := nn.Try(func() { row = around.InNeighbors(v) }); {
			case !slices.Contains(want[p.Rank], v) && (err == nil || !strings.Contains(err.Error(), "are on the rank that owns it")):
				return fmt.Errorf("node %d, which was not asked for: %w", v, err)
			case slices.Contains(want[p.Rank], v) && (err != nil || !slices.Equal(row, g.InNeighbors(v))):
				return fmt.Errorf("node %d has the in-edges %v, want %v: %w", v, row, g.InNeighbors(v), err)
			}
		}
		back, err := p.Reverse(own)
		if err != nil {
			return err
		}
		for v := range int32(60) {
			if p.owns(v) && !slices.Equal(back.InNeighbors(v), reversed.InNeighbors(v)) {
				return fmt.Errorf("node %d has the out-edges %v, want %v", v, back.InNeighbors(v), reversed.InNeighbors(v))
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// What a whole graph refuses, a divided one refuses with the same sentence.
func TestDividedErrors(t *testing.T) {
	g := dense(t, 40, 60, true)
	directed := dense(t, 40, 60, false)
	complete := func() *graphops.Graph {
		var e Edges
		for u := range int32(5) {
			for v := range int32(5) {
				if u != v {
					e = e.Append(u, v)
				}
			}
		}
		g, err := graphops.FromEdges(5, e.Src, e.Dst, graphops.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}()
	for name, c := range map[string]struct {
		g    *graphops.Graph
		o    SplitOptions
		want string
	}{
		"no reverse":      {directed, SplitOptions{Undirected: true}, "an edge of the graph has no reverse"},
		"tiny fraction":   {g, SplitOptions{Undirected: true, Val: 1e-6}, "leaves no edge for validation"},
		"too much":        {g, SplitOptions{Val: 0.7, Test: 0.4}, "leaves none to train on"},
		"tiny disjoint":   {g, SplitOptions{Undirected: true, Disjoint: 1e-9}, "leaves no edge to predict"},
		"complete":        {complete, SplitOptions{Undirected: true, Val: 0.2}, "take a graph with fewer edges"},
		"complete, heads": {complete, SplitOptions{Val: 0.2, KeepSource: true}, "leave KeepSource out"},
	} {
		_, alone := Random(c.g, c.o)
		errs := together(2, func(p Peers) error { _, err := RandomDivided(p, ownEdges(c.g, p), c.o); return err })
		for _, err := range errs {
			if err == nil || !strings.Contains(err.Error(), c.want) || alone == nil || err.Error() != alone.Error() {
				t.Errorf("%s: got %v, want %v", name, err, alone)
			}
		}
	}
	errs := together(2, func(p Peers) error {
		own := ownEdges(g, p)
		s, err := RandomDivided(p, own, SplitOptions{Undirected: true})
		if err != nil {
			return err
		}
		n, err := NewNegatives(g, NegativeOptions{})
		if err != nil {
			return err
		}
		for _, err := range []error{
			func() error { _, err := n.DrawDivided(p.Exchange, 0, 0, nil, Edges{}); return err }(),
			func() error { _, err := ByTimeDivided(p, own, 3, 2, SplitOptions{}); return err }(),
			func() error {
				_, err := GivenDivided(p, own, Edges{[]int32{99}, []int32{0}}, Edges{}, SplitOptions{})
				return err
			}(),
		} {
			if err == nil || !strings.HasPrefix(err.Error(), "pairs: ") {
				return fmt.Errorf("got %w, want an error", err)
			}
		}
		_ = s
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
