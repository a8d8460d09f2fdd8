package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/internal/philox"
)

// The vector kernels agree with Uniform for every fanout that they support, for in-degrees from the
// fanout up to the largest, and for all counters. They write only their picks.
func TestFloyd(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for k := 1; k <= maxLanes; k++ {
			for range 20 {
				var nodes, n [width]int32
				for l := range nodes {
					nodes[l] = int32(r.Uint32() >> 1)
					switch r.IntN(4) {
					case 0:
						n[l] = int32(k + r.IntN(3))
					case 1:
						n[l] = int32(k + r.IntN(2*k))
					case 2:
						n[l] = int32(k + r.IntN(100*k))
					case 3:
						n[l] = math.MaxInt32 - int32(r.IntN(3))
					}
				}
				h := &Hop{seed: r.Uint64(), step: int(r.Uint32()), c3: philox.C3(philox.Evaluate, r.IntN(256), r.IntN(1<<20))}
				const beside = 1234567
				got := make([][width]int32, k+2)
				for l := range width {
					got[0][l], got[k+1][l] = beside, beside
				}
				floyd(got[1:k+1], &nodes, &n, h)
				for l := range width {
					if got[0][l] != beside || got[k+1][l] != beside {
						t.Fatalf("k=%d: wrote outside of the picks of lane %d", k, l)
					}
				}
				for l, v := range nodes {
					var one []int32
					for i := range k {
						one = append(one, got[1+i][l])
					}
					u := Hop{seed: h.seed, step: h.step, c3: h.c3}
					u.At(v)
					if want := plainUniform(&u, int(n[l]), k); !slices.Equal(one, want) {
						t.Fatalf("%d of %d for node %d, lane %d: %v, want %v", k, n[l], v, l, one, want)
					}
				}
			}
		}
	})
}

// plainUniform is Floyd's algorithm with a search over all earlier picks.
func plainUniform(h *Hop, n, k int) (picks []int32) {
	for j := n - k; j < n; j++ {
		t := int32(philox.Bounded(h.Next(), uint32(j+1)))
		if slices.Contains(picks, t) {
			t = int32(j)
		}
		picks = append(picks, t)
	}
	slices.Sort(picks)
	return picks
}

// Chunks of every length, with nodes that take all, some or none of their edges.
func TestLanes(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		var l lanes
		for _, k := range []int{0, 1, 2, 5, 15, 16, 17, maxLanes, maxLanes + 1, 100, math.MaxInt} {
			for _, count := range []int{0, 1, 7, 15, 16, 17, 31, 33, 64, 101, grain - 1, grain} {
				var nodes []int32
				var rows []inEdges
				var want []int64
				h := &Hop{seed: r.Uint64(), step: r.IntN(1000), c3: r.Uint32()}
				for range count {
					v, row := int32(r.IntN(1000)), inEdges{at: r.Int64N(1 << 40), n: r.IntN(2*min(k, 100) + 3)}
					nodes, rows = append(nodes, v), append(rows, row)
					u := Hop{seed: h.seed, step: h.step, c3: h.c3}
					u.At(v)
					picks := u.Uniform(row.n, min(k, row.n), nil)
					for _, p := range picks {
						want = append(want, row.at+int64(p))
					}
				}
				got := make([]int64, len(want))
				l.draw(h, k, nodes, rows, got)
				if !slices.Equal(got, want) {
					t.Fatalf("%d nodes, fanout %d: %v, want %v", count, k, got, want)
				}
			}
		}
	})
}

// Every instruction set makes the same batches as plain Go.
func TestPathsMakeTheSameBatches(t *testing.T) {
	g := benchGraph(4000, 20)
	var want []string
	onPaths(t, func(t *testing.T) {
		for i, fanouts := range []Fanouts{{15, 10, 5}, {3, 48, 1}, {49, 2}} {
			for threads := 1; threads <= 3; threads++ {
				s, err := New(g, Config{Picker: fanouts, Seed: 1 << 40, Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				d := NewDigest()
				for step := range 3 {
					b, err := s.Sample(5, step, Seeds{IDs: nodesTo(4000)[300*step:][:257]})
					if err != nil {
						t.Fatal(err)
					}
					d.AddBatch(b)
					b.Release()
				}
				if len(want) == i {
					want = append(want, d.Sum())
				}
				if d.Sum() != want[i] {
					t.Errorf("%v on %d threads: digest %s, plain Go's on one thread is %s", fanouts, threads, d.Sum(), want[i])
				}
			}
		}
	})
}
