package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// testRows returns a table with more columns than are read, at an odd address, and ids of some of
// its rows.
func testRows(r *rand.Rand, rows, cols, n int, via bool) (*Rows, []int32) {
	t := &Rows{Stride: cols + 3, Data: withSpecials(r, rows*(cols+3), 1)}
	names := rows
	if via {
		names = 2 * rows
		for range names {
			t.Via = append(t.Via, r.Int32N(int32(rows)))
		}
	}
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = r.Int32N(int32(names))
	}
	return t, ids
}

func (t *Rows) at(id int32, col int) float32 {
	if t.Via != nil {
		id = t.Via[id]
	}
	return t.Data[int(id)*t.Stride+col]
}

func TestSumRows(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, cols := range sizes {
			for _, n := range []int{0, 1, 2, 7, 33} {
				for _, via := range []bool{false, true} {
					for _, acc := range []bool{false, true} {
						tab, ids := testRows(r, 50, cols, n+r.IntN(9), via)
						o := withSpecials(r, cols, 0)
						w := float32(r.NormFloat64())
						got, want := guarded(o), make([]float32, cols)
						for c := range want {
							for _, id := range ids[:n] {
								want[c] += tab.at(id, c)
							}
							switch want[c] *= w; {
							case n == 0 && acc:
								want[c] = o[c]
							case n == 0:
								want[c] = 0
							case acc:
								want[c] += o[c]
							}
						}
						SumRows(got, tab, ids, n, w, acc)
						sameBits(t, "SumRows", cols, got, want)
					}
				}
			}
		}
	})
}

func TestGatherRows(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, cols := range sizes {
			for _, n := range []int{0, 1, 5, 40} {
				for _, via := range []bool{false, true} {
					tab, ids := testRows(r, 50, cols, n, via)
					want := make([]float32, 0, n*cols)
					for _, id := range ids {
						for c := range cols {
							want = append(want, tab.at(id, c))
						}
					}
					for _, gather := range []func([]float32, *Rows, int, []int32){GatherRows, GatherRowsFar} {
						got := guarded(make([]float32, n*cols))
						gather(got, tab, cols, ids)
						sameBits(t, "GatherRows", cols, got, want)
						// The first element is at the start of a cache line.
						for first := range 16 {
							all := make([]float32, n*cols+first+1)
							if got = all[first : first+n*cols]; n*cols > 0 && uintptr(unsafe.Pointer(&got[0]))%64 == 0 {
								all[first+n*cols] = guard
								gather(got, tab, cols, ids)
								sameBits(t, "GatherRows of lines", cols, got, want)
							}
						}
					}
				}
			}
		}
	})
}

func TestHolds(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		tab := Rows{Data: make([]float32, 7*10+4), Stride: 10}
		for _, n := range sizes {
			ids := make([]int32, n)
			if !tab.Holds(ids, 4) {
				t.Fatalf("%d ids of 0 are not held", n)
			}
			for i := range ids {
				for _, c := range []struct {
					id, cols int
					want     bool
				}{{7, 4, true}, {7, 5, false}, {6, 10, true}, {8, 4, false}, {-1, 4, false}, {-1 << 31, 4, false}, {1<<31 - 1, 4, false}} {
					ids[i] = int32(c.id)
					if got := tab.Holds(ids, c.cols); got != c.want {
						t.Fatalf("id %d at %d of %d, %d columns: held %v, want %v", c.id, i, n, c.cols, got, c.want)
					}
				}
				ids[i] = 3
			}
		}
	})
	empty := Rows{Stride: 4}
	if empty.Holds([]int32{0}, 4) || !empty.Holds(nil, 4) {
		t.Error("an empty table holds row 0, or does not accept an empty list of ids")
	}
	via := Rows{Data: make([]float32, 100), Stride: 4, Via: []int32{1, 2}}
	if !via.Holds([]int32{1, 0}, 4) || via.Holds([]int32{2}, 4) {
		t.Error("with Via, ids are not checked against its length")
	}
}

func TestRowsRefuse(t *testing.T) {
	tab := &Rows{Data: make([]float32, 8), Stride: 4}
	for name, f := range map[string]func(){
		"SumRows of more ids than there are":   func() { SumRows(make([]float32, 4), tab, []int32{1}, 2, 1, false) },
		"GatherRows of another length":         func() { GatherRows(make([]float32, 5), tab, 4, []int32{1}) },
		"GatherRows of a row that is not held": func() { GatherRows(make([]float32, 4), tab, 4, []int32{2}) },
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

func TestWeightedSumRows(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, cols := range fewSizes() {
			for _, n := range []int{0, 1, 2, 7, 33} {
				for mode := range 8 {
					via, acc, indexed := mode&1 > 0, mode&2 > 0, mode&4 > 0
					tab, ids := testRows(r, 50, cols, n+r.IntN(9), via)
					step := 1 + r.IntN(3)
					w := withSpecials(r, (n+40)*step, 1)
					var at []int32
					if indexed {
						for range n {
							at = append(at, r.Int32N(int32(n+40)))
						}
					}
					o := withSpecials(r, cols, 0)
					got, want := guarded(o), make([]float32, cols)
					for c := range want {
						for i, id := range ids[:n] {
							if indexed {
								i = int(at[i])
							}
							if v := w[i*step]; v != 0 {
								want[c] += v * tab.at(id, c)
							}
						}
						switch {
						case acc && n == 0:
							want[c] = o[c]
						case acc:
							want[c] += o[c]
						}
					}
					WeightedSumRows(got, tab, ids, n, w, step, at, acc)
					sameBits(t, "WeightedSumRows", cols, got, want)
				}
			}
		}
	})
}

func TestMaxRows(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, cols := range sizes {
			for _, n := range []int{0, 1, 2, 7, 33} {
				tab, ids := testRows(r, 50, cols, n+r.IntN(9), false)
				for i := range tab.Data { // creates ties
					if r.IntN(3) == 0 {
						tab.Data[i] = float32(r.IntN(3))
					}
				}
				want, wantArg := make([]float32, cols), make([]uint32, cols)
				for c := range want {
					wantArg[c] = ^uint32(0)
					for i, id := range ids[:n] {
						if v := tab.at(id, c); i == 0 || v > want[c] || v != v {
							want[c], wantArg[c] = v, uint32(100+i)
						}
					}
				}
				got, arg := guarded(withSpecials(r, cols, 0)), make([]uint32, cols+1)
				arg[cols] = 77
				MaxRows(got, arg[:cols], tab, ids, n, 100)
				sameBits(t, "MaxRows", cols, got, want)
				if !slices.Equal(arg[:cols], wantArg) || arg[cols] != 77 {
					t.Fatalf("%d columns, %d rows: arg is %v, want %v", cols, n, arg, wantArg)
				}
				got = guarded(withSpecials(r, cols, 0))
				MaxRows(got, nil, tab, ids, n, 100)
				sameBits(t, "MaxRows without arg", cols, got, want)
			}
		}
	})
}

func TestSumRowsWhere(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, cols := range sizes {
			for _, n := range []int{0, 1, 2, 7, 33} {
				for _, acc := range []bool{false, true} {
					tab, ids := testRows(r, 50, cols, n+r.IntN(9), false)
					args := make([]uint32, len(tab.Data))
					for i := range args {
						args[i] = r.Uint32N(3)
					}
					at := make([]int32, n)
					for i := range at {
						at[i] = r.Int32N(3)
					}
					o := withSpecials(r, cols, 0)
					got, want := guarded(o), make([]float32, cols)
					for c := range want {
						for i, id := range ids[:n] {
							if args[int(id)*tab.Stride+c] == uint32(at[i]) {
								want[c] += tab.at(id, c)
							}
						}
						switch {
						case acc && n == 0:
							want[c] = o[c]
						case acc:
							want[c] += o[c]
						}
					}
					SumRowsWhere(got, tab, ids, n, args, at, acc)
					sameBits(t, "SumRowsWhere", cols, got, want)
				}
			}
		}
	})
}

func TestDotRows(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := testRand()
		for _, cols := range sizes {
			for _, n := range []int{0, 1, 2, 7} {
				tab, ids := testRows(r, 50, cols, n+r.IntN(3), false)
				x := withSpecials(r, cols, 1)
				if r.IntN(2) == 0 { // no NaN in this case
					x = randoms(r, cols, 1)
					copy(tab.Data, randoms(r, len(tab.Data), 0))
				}
				const step = 3
				got := guarded(make([]float32, n*step))
				want := slices.Clone(got)
				for i, id := range ids[:n] {
					var lanes [32]float32
					for c, v := range x {
						lanes[c%32] += v * tab.at(id, c)
					}
					for half := 16; half > 0; half /= 2 {
						for l := range half {
							lanes[l] += lanes[l+half]
						}
					}
					want[i*step] = lanes[0]
				}
				DotRows(got, step, x, tab, ids, n)
				sameBits(t, "DotRows", cols, got, want)
				if n > 0 {
					one := guarded([]float32{Dot(x, tab.row(ids[0], cols))})
					sameBits(t, "Dot", cols, one, want[:1])
				}
			}
		}
	})
}
