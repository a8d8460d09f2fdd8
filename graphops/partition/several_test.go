package partition

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// There are three quantities, one of them rare and concentrated where the edges are. Each stays
// within its limit, and the cut is much smaller than a random division's.
func TestSeveral(t *testing.T) {
	g := made(t, 3000, 12000, true)
	r := rand.New(rand.NewPCG(3, 4))
	train := make([]int32, 3000)
	for v := range train {
		if r.IntN(3000) < v/2 { // rare among the first nodes, present in half of the last ones
			train[v] = 1
		}
	}
	for _, parts := range []int{2, 4, 8} {
		p := divide(t, g, parts, Options{More: [][]int32{g.InDegrees(), train}, Seed: 1})
		if len(p.Imbalances) != 3 || p.Imbalances[0] != p.Imbalance {
			t.Fatalf("imbalances %v", p.Imbalances)
		}
		for i, x := range p.Imbalances {
			if x > 1.03+float64(parts)/400 { // the limit comes from a mean that is rounded up to an integer
				t.Errorf("%d parts: quantity %d is %v times the mean: %v", parts, i, x, p.Imbalances)
			}
		}
		if random := divide(t, g, parts, Options{Method: Random}); 2*p.EdgeCut > random.EdgeCut {
			t.Errorf("%v\n%v", p, random)
		}
		t.Log(p, p.Imbalances)
	}
	for want, o := range map[string]Options{
		"2 weights for 3000 nodes": {More: [][]int32{{1, 2}}},
		"balances one quantity":    {More: [][]int32{train}, Method: Fennel},
	} {
		if _, err := Divide(t.Context(), g, 2, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
