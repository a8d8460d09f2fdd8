package encode

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
)

type peer struct {
	Nodes       int
	Edges       [][2]int32
	RW          [][]float64
	Eigenvalues []float64
}

// peers returns graphs, their offsets, and one graph of all of them.
func peers(t *testing.T) ([]peer, []int64, *graphops.Graph) {
	t.Helper()
	raw, err := os.ReadFile("testdata/pyg.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []peer
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	at := []int64{0}
	var src, dst []int32
	for _, p := range all {
		for _, e := range p.Edges {
			src, dst = append(src, int32(at[len(at)-1])+e[0]), append(dst, int32(at[len(at)-1])+e[1])
		}
		at = append(at, at[len(at)-1]+int64(p.Nodes))
	}
	g, err := graphops.FromEdges(int(at[len(at)-1]), src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return all, at, g
}

// Return probabilities are those of PyG's AddRandomWalkPE, and eigenvectors belong to the eigenvalues that SciPy finds: they are
// orthonormal, and L·x = λ·x.
func TestPyGEncodesTheSame(t *testing.T) {
	all, at, g := peers(t)
	const k = 30
	x, err := Nodes(t.Context(), g, at, Options{Steps: 16, Laplacian: k})
	if err != nil {
		t.Fatal(err)
	}
	const cols = 16 + k
	for i, p := range all {
		for v := range p.Nodes {
			for step, want := range p.RW[v] {
				if got := x[(int(at[i])+v)*cols+step]; math.Abs(float64(got)-want) > 1e-6 { // PyG computes in float32
					t.Fatalf("graph %d: node %d returns after %d steps with the probability %v, and by PyG %v", i, v, step+1, got, want)
				}
			}
		}
		degree := make([]float64, p.Nodes)
		for _, e := range p.Edges {
			if e[0] != e[1] {
				degree[e[1]]++
			}
		}
		vectors := make([][]float64, k)
		for j := range vectors {
			vectors[j] = make([]float64, p.Nodes)
			for v := range p.Nodes {
				vectors[j][v] = float64(x[(int(at[i])+v)*cols+16+j])
			}
		}
		for j, y := range vectors {
			if j >= len(p.Eigenvalues) {
				if slices.ContainsFunc(y, func(z float64) bool { return z != 0 }) {
					t.Errorf("graph %d: there are %d eigenvalues, and column %d is %v", i, len(p.Eigenvalues), j, y)
				}
				continue
			}
			residual := make([]float64, p.Nodes) // L·y - λ·y
			for v := range p.Nodes {
				if residual[v] = -p.Eigenvalues[j] * y[v]; degree[v] > 0 {
					residual[v] += y[v]
				}
			}
			for _, e := range p.Edges {
				if e[0] != e[1] {
					residual[e[1]] -= y[e[0]] / math.Sqrt(degree[e[0]]*degree[e[1]])
				}
			}
			for v, r := range residual {
				if math.Abs(r) > 1e-6 {
					t.Errorf("graph %d, eigenvalue %v: the residual of node %d is %v", i, p.Eigenvalues[j], v, r)
				}
			}
			for l := range j + 1 {
				dot := 0.0
				for v := range y {
					dot += y[v] * vectors[l][v]
				}
				if want := map[bool]float64{true: 1}[l == j]; math.Abs(dot-want) > 1e-6 {
					t.Errorf("graph %d: columns %d and %d have the product %v", i, l, j, dot)
				}
			}
			largest := slices.IndexFunc(y, func(z float64) bool {
				return math.Abs(z) >= (1-1e-5)*max(slices.Max(y), -slices.Min(y))
			})
			if y[largest] < 0 {
				t.Errorf("graph %d: column %d has the other sign: %v", i, j, y)
			}
		}
	}
	abs, err := Nodes(t.Context(), g, at, Options{Laplacian: 2, Absolute: true})
	if err != nil {
		t.Fatal(err)
	}
	for v := range g.NumNodes() {
		if abs[2*v] != float32(math.Abs(float64(x[v*cols+16]))) {
			t.Errorf("node %d has the absolute value %v of %v", v, abs[2*v], x[v*cols+16])
		}
	}
}

// Encodings follow the features, dense or sparse, and have the same bits with any number of threads.
func TestAdd(t *testing.T) {
	d, err := datasets.Molecules(datasets.MoleculesOptions{Graphs: 300})
	if err != nil {
		t.Fatal(err)
	}
	o, err := Parse("rw:5,laplacian:3")
	if err != nil {
		t.Fatal(err)
	}
	var first *dataset.Dataset
	for _, o.Threads = range []int{1, 3} {
		e, err := Add(t.Context(), d, o)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = e
		}
		if !slices.Equal(e.Features.F32, first.Features.F32) {
			t.Error("the bits depend on the number of threads")
		}
	}
	if first.FeatureDim() != 12 || first.NumGraphs() != 300 || !slices.Equal(first.Meta.FeatureNames[3:6], []string{"F", "rw 1", "rw 2"}) || !slices.Equal(first.Features.Row(7)[:4], d.Features.Row(7)) || d.FeatureDim() != 4 {
		t.Errorf("%s with the features %v", first, first.Meta.FeatureNames)
	}
	if err := first.Check(t.Context()); err != nil {
		t.Error(err)
	}
	s := d.WithGraph(d.Graph)
	s.Features, s.SparseFeatures = nil, &dataset.Sparse{Rows: d.Nodes(), Cols: 2, Indptr: make([]int64, d.Nodes()+1), Indices: []int32{}}
	e, err := Add(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	dense := e.SparseFeatures.Dense()
	for i := range 50 {
		if !slices.Equal(dense[i*10+2:i*10+10], first.Features.Row(i)[4:]) {
			t.Fatalf("the sparse row %d is %v, want %v", i, dense[i*10:i*10+10], first.Features.Row(i))
		}
	}
	if err := e.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	for list, want := range map[string]string{"": "no encoding", "rw": "no encoding", "rw:0": "no encoding", "x:3": "there is no encoding", "rw:3,rw:4": "twice", "laplacian:2,laplacian-abs:2": "twice"} {
		if _, err := Parse(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", list, err, want)
		}
	}
	n := MaxLaplacianNodes + 1
	g := &graphops.Graph{Indptr: make([]int64, n+1)}
	if _, err := Nodes(t.Context(), g, nil, Options{Laplacian: 2}); err == nil || !strings.Contains(err.Error(), "at most 2048 nodes") {
		t.Errorf("a large graph: %v", err)
	}
	if x, err := Nodes(t.Context(), g, nil, Options{Steps: 2}); err != nil || slices.Max(x) != 0 {
		t.Errorf("nodes without edges: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Nodes(ctx, g, nil, Options{Steps: 2}); err == nil {
		t.Error("a cancelled context gives a result")
	}
}
