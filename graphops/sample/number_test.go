package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Both numberings agree with a map over many consecutive batches, which start with the counters of
// earlier batches about to overflow.
func TestNumberings(t *testing.T) {
	const nodes = 5000
	worn := &directNumbers{rows: make([]int32, nodes), base: math.MaxInt32 - 3*nodes, next: math.MaxInt32 - 3*nodes}
	hash := newHashNumbers(4)
	hash.base = math.MaxUint32 - math.MaxInt32 - 3*nodes
	hash.next = hash.base
	cases := []struct {
		name string
		t    numbering
	}{
		{"direct", newNumbering(nodes)},
		{"direct, worn", worn},
		{"hash", newHashNumbers(4)},
		{"hash, worn", hash},
	}
	for _, c := range cases {
		r := rand.New(rand.NewPCG(1, 2))
		for batch := range 20 {
			c.t.begin()
			want, rows := []int32{}, map[int32]int32{}
			ids := []int32{}
			for range 3 {
				list := make([]int32, r.IntN(2000))
				for i := range list {
					list[i] = int32(r.IntN(1 + r.IntN(nodes)))
				}
				wantRows := make([]int32, len(list))
				for i, v := range list {
					row, ok := rows[v]
					if !ok {
						row = int32(len(want))
						rows[v] = row
						want = append(want, v)
					}
					wantRows[i] = row
				}
				ids = c.t.number(ids, list)
				if !slices.Equal(list, wantRows) || !slices.Equal(ids, want) {
					t.Fatalf("%s: the numbering of batch %d differs from a map's", c.name, batch)
				}
			}
		}
	}
}

// Repeated batches of equal size do not grow the table.
func TestHashTableStaysSmall(t *testing.T) {
	h := newHashNumbers(4)
	for range 50 {
		h.begin()
		list := make([]int32, 1000)
		for i := range list {
			list[i] = int32(7 * i)
		}
		h.number(nil, list)
	}
	if len(h.slots) != 2048 {
		t.Errorf("%d slots for batches of 1000 nodes, want 2048", len(h.slots))
	}
}

func TestNumberingBySize(t *testing.T) {
	if _, ok := newNumbering(directLimit + 1).(*hashNumbers); !ok {
		t.Error("a graph above the limit gets the table with an entry for each node")
	}
}

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
	hashed.numbers = newHashNumbers(2)
	for step := range 10 {
		var seeds []int32
		for _, v := range r.Perm(2000)[:r.IntN(300)] {
			seeds = append(seeds, int32(v))
		}
		a, errA := direct.Sample(0, step, seeds)
		b, errB := hashed.Sample(0, step, seeds)
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
