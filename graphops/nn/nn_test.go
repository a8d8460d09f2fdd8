package nn

import (
	"errors"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/expect"
	"github.com/graphnb/graphnb/internal/testkit/ref"
)

// testGraph returns a graph that can be drawn by hand: a star into node 0, a self-loop at 2, a
// duplicate edge 1→3, a cycle 4→5→6→4, and node 7 without edges.
func testGraph(tb testing.TB) *graphops.Graph {
	tb.Helper()
	src := []int32{1, 2, 3, 4, 5, 2, 1, 1, 4, 5, 6, 0}
	dst := []int32{0, 0, 0, 0, 0, 2, 3, 3, 5, 6, 4, 6}
	g, err := graphops.FromEdges(8, src, dst, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// sampledBlock returns a block with the destinations first, sources that no edge uses, a
// destination without in-edges, a duplicate edge, and an Indptr that does not start at 0.
func sampledBlock() *Block {
	return graphops.HostBlock{
		NumDst: 3, NumSrc: 6,
		Indptr:  []int64{2, 5, 5, 7},
		Indices: []int32{9, 9, 3, 4, 4, 0, 5},
		SrcIDs:  []int32{70, 11, 25, 3, 40, 59},
	}.Block()
}

func testBlocks(tb testing.TB) map[string]*Block {
	g := withEdges(testGraph(tb))
	s := sampledBlock()
	sampled := graphops.HostBlock{
		NumDst: s.NumDst, NumSrc: s.NumSrc, Indptr: s.Indptr(), Indices: s.Indices(), SrcIDs: s.SrcIDs(),
		EdgePos: []int64{8, 1, 4, 0, 11}, Graph: g, // positions of any edges
	}.Block()
	weighted := g.WithEdgeWeights([]float32{0.5, 2, 0.25, 1, 3, 1.5, 0.75, 2, 1, 0.5, 4, 1})
	return map[string]*Block{
		"weighted":        weighted.Block(),
		"weighted slice":  weighted.Slice(3, 7),
		"whole graph":     g.Block(),
		"slice of graph":  g.Slice(3, 7),
		"sampled":         sampled,
		"no destinations": g.Slice(2, 2),
		"isolated node":   g.Slice(7, 8),
	}
}

func mustCollect(tb testing.TB, model any) *Params {
	tb.Helper()
	p, err := Collect(model)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// matrix returns a parameter in float64; nil gives nil, which means "no bias" in the reference.
func matrix(p *Param) ref.Matrix {
	if p == nil {
		return ref.Matrix{}
	}
	return ref.From(p.Rows, p.Cols, p.W)
}

// central checks analytic gradients g of a function at x by central differences of its float64
// reference. The step of 1e-5 leaves an error of about 1e-10, so the tolerance covers the float32
// arithmetic: sums of about 100 terms of size 1.
func central(tb testing.TB, what string, x ref.Matrix, g []float32, loss func() float64) {
	tb.Helper()
	const h = 1e-5
	want := make([]float64, len(x.Data))
	for i, v := range x.Data {
		x.Data[i] = v + h
		up := loss()
		x.Data[i] = v - h
		down := loss()
		x.Data[i] = v
		want[i] = (up - down) / (2 * h)
	}
	expect.Near(tb, what, g, want, 2e-5, 1e-4)
}

func TestTry(t *testing.T) {
	t.Parallel()
	if err := Try(func() {}); err != nil {
		t.Errorf("no panic gives %v", err)
	}
	err := Try(func() { NewParam(-1, 2) })
	var te *tensor.Error
	if !errors.As(err, &te) || te.Op != "NewParam" {
		t.Errorf("a misuse gives %v", err)
	}
	defer func() {
		if r := recover(); r != "something else" {
			t.Errorf("another panic arrives as %v", r)
		}
	}()
	_ = Try(func() { panic("something else") })
	t.Error("another panic was swallowed")
}

// If a device fails during a pass, Try returns an error that names the layer.
func TestFailureIsAnError(t *testing.T) {
	lost := errors.New("device 0 is lost")
	if err := Try(func() { panic(&ops.Failure{Err: lost}) }); !errors.Is(err, lost) || err.Error() != lost.Error() {
		t.Errorf("it is %v", err)
	}
}
