package datasets

import (
	"math"
	"slices"
	"testing"
)

// A molecule's class is in its bonds and nowhere else: each has the same numbers of atoms N and O, and what else can be counted
// without edges has the same mean in both classes. The bits do not depend on threads.
func TestMolecules(t *testing.T) {
	d, err := molecules(MoleculesOptions{Graphs: 20_000, Noise: 0.1, Seed: 3}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	var sum, squares [2][4]float64 // by class, of atoms, bonds, rings' bonds and atoms F
	var count [2]int
	noise := 0.0
	for g := range int32(d.NumGraphs()) {
		lo, hi := d.GraphSpan(g)
		var kinds [4]int
		pairs, ring := 0, 0.0
		kind := func(v int32) int { return slices.Index(d.Features.Row(int(v)), 1) }
		for v := lo; v < hi; v++ {
			kinds[kind(v)]++
			if row := d.Graph.InNeighbors(v); len(row) == 0 || len(row) > 4 {
				t.Fatalf("graph %d: an atom has %d bonds", g, len(row))
			}
			for e := d.Graph.Indptr[v]; e < d.Graph.Indptr[v+1]; e++ {
				if kind(v) == nitrogen && kind(d.Graph.Indices[e]) == oxygen {
					pairs++
				}
				ring += float64(d.Graph.EdgeFeatures.F16[3*e+2] / one16)
			}
		}
		class := d.Graphs.Labels[g]
		if kinds[nitrogen] != 3 || kinds[oxygen] != 3 || (class == 1) != (pairs >= 2) {
			t.Fatalf("graph %d of class %d has the atoms %v and %d bonds between N and O", g, class, kinds, pairs)
		}
		z := float64(d.Graphs.Targets.F32[g]) - float64(pairs)
		noise += z * z
		count[class]++
		for j, x := range []float64{float64(hi - lo), float64(d.Graph.Indptr[hi] - d.Graph.Indptr[lo]), ring, float64(kinds[fluorine])} {
			sum[class][j] += x
			squares[class][j] += x * x
		}
	}
	if n := float64(d.NumGraphs()); math.Abs(float64(count[1])/n-0.5) > 0.02 || math.Abs(math.Sqrt(noise/n)-0.1) > 0.005 {
		t.Errorf("%d of the graphs are of class 1, the noise is %v", count[1], math.Sqrt(noise/n))
	}
	for j, what := range []string{"atoms", "bonds", "bonds of rings", "atoms F"} {
		a, b := sum[0][j]/float64(count[0]), sum[1][j]/float64(count[1])
		deviation := math.Sqrt(squares[0][j]/float64(count[0]) - a*a)
		if error := 5 * deviation * math.Sqrt(2/float64(count[0])); math.Abs(a-b) > error {
			t.Errorf("a molecule of class 0 has %v %s, and one of class 1 %v", a, what, b)
		}
	}
	if n := len(d.Graph.LargestComponent()); n > moleculeMost {
		t.Errorf("a component has %d atoms", n)
	}
	want, err := d.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, err := molecules(MoleculesOptions{Graphs: 20_000, Noise: 0.1, Seed: 3}, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := e.Digest(t.Context()); err != nil || got != want {
		t.Errorf("with 3 threads the digest is %s, want %s (%v)", got, want, err)
	}
}
