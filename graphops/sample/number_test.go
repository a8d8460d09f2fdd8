package sample

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// A sampler makes the same batches with a hash table as with the direct table.
func TestHashSampler(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	g := benchGraph(2000, 9)
	direct, err := New(g, Config{Picker: Fanouts{5, 4, 3}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	hashed, err := New(g, Config{Picker: Fanouts{5, 4, 3}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	hashed.numbers = graphops.NewNumbering(1 << 24) // with this many nodes it is a hash table
	for step := range 10 {
		var seeds []int32
		for _, v := range r.Perm(2000)[:r.IntN(300)] {
			seeds = append(seeds, int32(v))
		}
		a, errA := direct.Sample(0, step, Seeds{IDs: seeds})
		b, errB := hashed.Sample(0, step, Seeds{IDs: seeds})
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		for i := range a.Blocks {
			x, y := a.Blocks[i], b.Blocks[i]
			if fmt.Sprint(x.Indptr(), x.Indices(), x.EdgePos(), x.SrcIDs()) != fmt.Sprint(y.Indptr(), y.Indices(), y.EdgePos(), y.SrcIDs()) {
				t.Fatalf("step %d: block %d differs", step, i)
			}
		}
	}
}
