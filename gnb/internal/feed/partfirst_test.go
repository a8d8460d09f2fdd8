package feed

import (
	"fmt"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// The first layer on another graph, computed in chunks from features in parts, has the bits of the layer
// computed from features in memory: for any chunk size, with sparse features too, and if each rank has the
// features of its own parts alone. Ranks have different numbers of chunks then.
func TestFirstLayerOnParts(t *testing.T) {
	dense, err := datasets.Load("rmat?scale=8&degree=5&features=9&classes=3&seed=4")
	if err != nil {
		t.Fatal(err)
	}
	half, sparse := *dense, *dense
	if half.Features, err = dense.Features.Float16(); err != nil {
		t.Fatal(err)
	}
	sparse.Features, sparse.SparseFeatures = nil, &dataset.Sparse{Rows: dense.Nodes(), Cols: 9, Indptr: []int64{0}, Values: []float32{}}
	for v := range dense.Nodes() {
		s := sparse.SparseFeatures
		for c := v % 3; c < 9; c += 1 + v%4 {
			s.Indices, s.Values = append(s.Indices, int32(c)), append(s.Values, float32(c+v%3)/8)
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	// Every third edge goes, so that the graph is not that of the parts. The nodes of the first half keep
	// no edges: their rank needs fewer chunks.
	n := dense.Nodes()
	g := &graphops.Graph{Indptr: make([]int64, n+1)}
	for v := range n {
		for i, u := range dense.Graph.InNeighbors(int32(v)) {
			if v >= n/2 && i%3 != 0 {
				g.Indices = append(g.Indices, u)
			}
		}
		g.Indptr[v+1] = int64(len(g.Indices))
	}
	m := nn.NewGCNModel(nn.ModelConfig{In: 9, Hidden: 8, Out: 3, Layers: 2})
	params, err := nn.Collect(m)
	if err != nil {
		t.Fatal(err)
	}
	params.Init(4)
	const out = 8
	for name, ds := range map[string]*dataset.Dataset{"dense": dense, "half": &half, "sparse": &sparse} {
		want := make([]float32, n*out)
		input := func(f *nn.Fwd) *nn.Tensor {
			if s := ds.SparseFeatures; s != nil {
				return f.SparseInput(s.Rows, s.Cols, s.Indptr, s.Indices, s.Values, &nn.Space{})
			}
			return f.TableInput(nn.Table{F32: ds.Features.F32, F16: ds.Features.F16}, n, 9, &nn.Space{})
		}
		if err := nn.LayerRowsFrom(m, nn.NewFwd(nn.Config{Threads: 1}), 0, g, input, 0, n, want, nil); err != nil {
			t.Fatal(err)
		}
		parts := dividedtest.Parts(t, ds, divided.Options{})
		for _, apart := range []bool{false, true} {
			for _, rows := range []int{0, 1, 7, 100} {
				got := make([]float32, n*out)
				for r, err := range ranks(t, 2, func(c collective.Comm) error {
					p, err := NewParts(parts, c.Rank(), 2, 2)
					if err != nil {
						return err
					}
					if p.apart = apart; apart {
						if name == "sparse" { // as the ranks agree
							if p.longest, err = p.longestRow(); err != nil {
								return err
							}
						}
						for i := range p.here {
							p.here[i] = p.Rank(i) == p.rank
						}
					}
					lo, hi, last := c.Rank()*n/2, (c.Rank()+1)*n/2, 0
					err = p.FirstLayer(PartFirst{Comm: c, Graph: g, Model: m, Threads: 1, Rows: rows}, nn.NewFwd(nn.Config{Threads: 1}), lo, hi, got[lo*out:hi*out], func(k int) { last = k })
					if err == nil && last != hi-lo {
						err = fmt.Errorf("%d of %d rows are reported", last, hi-lo)
					}
					return err
				}) {
					if err != nil {
						t.Fatalf("%s, rank %d: %v", name, r, err)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, apart %v: the bits differ with chunks of %d rows", name, apart, rows)
				}
			}
		}
	}
}
