package graphops

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
		t    Numbering
	}{
		{"direct", NewNumbering(nodes)},
		{"direct, worn", worn},
		{"hash", newHashNumbers(4)},
		{"hash, worn", hash},
	}
	for _, c := range cases {
		r := rand.New(rand.NewPCG(1, 2))
		for batch := range 20 {
			c.t.Begin()
			want, rows := []int32{}, map[int32]int32{}
			ids := []int32{}
			if batch%2 == 1 {
				for _, v := range r.Perm(nodes)[:r.IntN(1000)] {
					rows[int32(v)] = int32(len(want))
					want = append(want, int32(v))
				}
				c.t.Assign(want)
				ids = slices.Clone(want)
			}
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
				ids = c.t.Number(ids, list)
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
		h.Begin()
		list := make([]int32, 1000)
		for i := range list {
			list[i] = int32(7 * i)
		}
		h.Number(nil, list)
	}
	if len(h.slots) != 2048 {
		t.Errorf("%d slots for batches of 1000 nodes, want 2048", len(h.slots))
	}
}

func TestNumberingBySize(t *testing.T) {
	if _, ok := NewNumbering(DirectLimit + 1).(*hashNumbers); !ok {
		t.Error("a graph above the limit gets the table with an entry for each node")
	}
}

// Tables for graphs of several sizes number random nodes, a third of them repeated, after a first
// batch that touches all of the direct table.
func BenchmarkNumbering(b *testing.B) {
	for _, batch := range []int{100_000, 1_000_000} {
		for _, log := range []int{18, 20, 22, 24, 26} {
			tables := []struct {
				name string
				t    Numbering
			}{{"direct", &directNumbers{rows: make([]int32, 1<<log), base: 1, next: 1}}, {"hash", newHashNumbers(1 << 16)}}
			for _, c := range tables {
				b.Run(fmt.Sprintf("batch=%d/nodes=2^%d/%s", batch, log, c.name), func(b *testing.B) {
					if d, ok := c.t.(*directNumbers); ok {
						for i := range d.rows {
							d.rows[i] = 0
						}
					}
					r := rand.New(rand.NewPCG(1, 1))
					nodes, ids := make([]int32, batch), make([]int32, 0, batch)
					for b.Loop() {
						b.StopTimer()
						for i := range nodes {
							nodes[i] = int32(r.IntN(1 << log))
							if i%3 == 2 {
								nodes[i] = nodes[r.IntN(i)]
							}
						}
						b.StartTimer()
						c.t.Begin()
						c.t.Number(ids[:0], nodes)
					}
					b.ReportMetric(float64(b.N)*float64(batch)/b.Elapsed().Seconds()/1e6, "Mnodes/s")
				})
			}
		}
	}
}
