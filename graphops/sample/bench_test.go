package sample

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// benchGraph has uniformly random edges: the worst case for caches.
func benchGraph(nodes, degree int) *graphops.Graph {
	r := rand.New(rand.NewPCG(1, 1))
	g := &graphops.Graph{Indptr: make([]int64, nodes+1), Indices: make([]int32, 0, nodes*degree)}
	for v := range nodes {
		from := len(g.Indices)
		for range r.IntN(2*degree + 1) {
			g.Indices = append(g.Indices, int32(r.IntN(nodes)))
		}
		slices.Sort(g.Indices[from:])
		g.Indptr[v+1] = int64(len(g.Indices))
	}
	return g
}

// A million nodes, 15 in-edges each on average, batches of 1024.
func BenchmarkSample(b *testing.B) {
	g := benchGraph(1<<20, 15)
	ids := make([]int32, g.NumNodes())
	for i := range ids {
		ids[i] = int32(i)
	}
	ids = EpochOrder(1, 0, ids)
	for _, fanouts := range []Fanouts{{15, 10, 5}, {25, 10}, {-1, 10}} {
		for _, threads := range []int{1, 2} {
			for _, release := range []bool{false, true} {
				b.Run(fmt.Sprintf("fanouts=%v/threads=%d/release=%v", fanouts, threads, release), func(b *testing.B) {
					s, err := New(g, Config{Picker: fanouts, Seed: 1, Threads: threads})
					if err != nil {
						b.Fatal(err)
					}
					b.ReportAllocs()
					edges, step := 0, 0
					for b.Loop() {
						lo := step * 1024 % len(ids)
						batch, err := s.Sample(0, step, ids[lo:lo+1024])
						if err != nil {
							b.Fatal(err)
						}
						edges += batch.Edges()
						if release {
							batch.Release()
						}
						step++
					}
					b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
				})
			}
		}
	}
}

// Random nodes, a third of them repeats, in tables for graphs of several sizes,
// after a first batch that touches all of the direct table.
func BenchmarkNumbering(b *testing.B) {
	for _, batch := range []int{100_000, 1_000_000} {
		for _, log := range []int{18, 20, 22, 24, 26} {
			tables := []struct {
				name string
				t    numbering
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
						c.t.begin()
						c.t.number(ids[:0], nodes)
					}
					b.ReportMetric(float64(b.N)*float64(batch)/b.Elapsed().Seconds()/1e6, "Mnodes/s")
				})
			}
		}
	}
}

func BenchmarkUniform(b *testing.B) {
	for _, c := range [][2]int{{20, 5}, {100, 15}, {1000, 40}, {1000, 200}} {
		b.Run(fmt.Sprintf("n=%d/k=%d", c[0], c[1]), func(b *testing.B) {
			h := Hop{seed: 1}
			var out []int32
			for b.Loop() {
				h.At(int32(len(out)))
				out = h.Uniform(c[0], c[1], out[:0])
			}
			b.ReportMetric(float64(b.N*c[1])/b.Elapsed().Seconds()/1e6, "Mpicks/s")
		})
	}
}
