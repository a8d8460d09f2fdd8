package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// testSegments returns the offsets of some segments, including empty ones; the offsets do not start
// at 0.
func testSegments(r *rand.Rand) (indptr []int64, n int) {
	const first = 5
	indptr = []int64{first}
	for range r.IntN(6) {
		if r.IntN(4) > 0 {
			n += r.IntN(9)
		}
		indptr = append(indptr, first+int64(n))
	}
	return indptr, n
}

// The sums of segments equal those of adding their rows one by one, to the bit.
func TestSegments(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, cols := range fewSizes() {
			for mode := range 32 {
				via, acc, mean, indexed, large := mode&1 > 0, mode&2 > 0, mode&4 > 0, mode&8 > 0, mode&16 > 0
				rows := 50
				if large { // a large table, whose rows are prefetched
					if cols%16 != 1 {
						continue
					}
					rows = narrowTable/cols + 1
				}
				indptr, n := testSegments(r)
				tab, ids := testRows(r, rows, cols, n+r.IntN(5), via)
				w := withSpecials(r, n+40, 1)
				var at []int32
				if indexed {
					for range n {
						at = append(at, r.Int32N(int32(n+40)))
					}
				}
				was := withSpecials(r, (len(indptr)-1)*cols, 0)
				got, gotW := guarded(was), guarded(was)
				want, wantW := guarded(was), guarded(was)
				for s := range len(indptr) - 1 {
					lo, hi := indptr[s]-indptr[0], indptr[s+1]-indptr[0]
					k := float32(1)
					if mean && hi > lo {
						k = 1 / float32(hi-lo)
					}
					o := want[s*cols : (s+1)*cols]
					SumRows(o, tab, ids[lo:], int(hi-lo), k, acc)
					o = wantW[s*cols : (s+1)*cols]
					if indexed {
						WeightedSumRows(o, tab, ids[lo:], int(hi-lo), w, 1, at[lo:], acc)
					} else {
						WeightedSumRows(o, tab, ids[lo:], int(hi-lo), w[lo:], 1, nil, acc)
					}
				}
				name := fmt.Sprintf("of mode %d, offsets %d", mode, indptr)
				SumSegments(got, tab, cols, indptr, ids, mean, acc)
				sameBits(t, "SumSegments "+name, cols, got, want)
				WeightedSumSegments(gotW, tab, cols, indptr, ids, w, at, acc)
				sameBits(t, "WeightedSumSegments "+name, cols, gotW, wantW)
			}
		}
	})
}

// Scattering equals adding in the order of the segments.
func TestScatterSegments(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, cols := range sizes {
			for mode := range 8 {
				indptr, n := testSegments(r)
				tab, ids := testRows(r, 7, cols, n+r.IntN(5), false)
				tab.Stride = cols
				d := withSpecials(r, (len(indptr)-1)*cols, 1)
				var w []float32
				if mode&1 > 0 {
					w = withSpecials(r, n, 1)
					if mode&2 > 0 { // zeros, as after dropout
						for i := range w {
							w[i] *= float32(r.IntN(2))
						}
					}
				}
				got, want := guarded(tab.Data[:7*cols]), make([]float32, 7*cols)
				copy(want, got)
				for s := range len(indptr) - 1 {
					for i := indptr[s] - indptr[0]; i < indptr[s+1]-indptr[0]; i++ {
						for c := range cols {
							x := d[s*cols+c]
							switch {
							case w != nil && w[i] == 0:
								x = 0
							case w != nil:
								x *= w[i]
							}
							want[int(ids[i])*cols+c] += x
						}
					}
				}
				ScatterSegments(got, d, cols, indptr, ids, w)
				sameBits(t, fmt.Sprintf("ScatterSegments of mode %d, offsets %d", mode, indptr), cols, got, want)
			}
		}
	})
}

func TestAscending(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for range 3000 {
			indptr, n := testSegments(r)
			limit := 1 + r.IntN(60)
			ids := make([]int32, n+r.IntN(3))
			want := true
			for s := range len(indptr) - 1 {
				id := int32(-1)
				for i := indptr[s] - indptr[0]; i < indptr[s+1]-indptr[0]; i++ {
					before := id
					if id += 1 + r.Int32N(4); r.IntN(40) == 0 {
						id = r.Int32N(60) - 2
					}
					ids[i] = id
					want = want && id > before && int(id) < limit
				}
			}
			if got := Ascending(indptr, ids, limit); got != want {
				t.Fatalf("offsets %d, ids %d below %d: %v, want %v", indptr, ids, limit, got, want)
			}
		}
	})
}

func TestSegmentsRefuse(t *testing.T) {
	tab := &Rows{Data: make([]float32, 8), Stride: 4}
	for name, f := range map[string]func(){
		"more ids than there are":     func() { SumSegments(make([]float32, 4), tab, 4, []int64{0, 2}, []int32{1}, false, false) },
		"an output of another length": func() { SumSegments(make([]float32, 5), tab, 4, []int64{0, 1}, []int32{1}, false, false) },
		"offsets that descend":        func() { SumSegments(make([]float32, 8), tab, 4, []int64{0, 2, 1}, []int32{1, 1}, false, false) },
		"no offsets":                  func() { SumSegments(nil, tab, 4, nil, nil, false, false) },
		"too few weights": func() {
			WeightedSumSegments(make([]float32, 4), tab, 4, []int64{0, 1}, []int32{1}, nil, nil, false)
		},
		"too few places of weights": func() {
			WeightedSumSegments(make([]float32, 4), tab, 4, []int64{0, 1}, []int32{1}, []float32{1}, []int32{}, false)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
