package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/expect"
	"github.com/graphnb/graphnb/internal/parallel"
)

// edgesOf are the typed edges of a block.
type edgesOf struct {
	block        *graphops.Block
	types        []uint16
	shares, coef []float32
	bases        int
}

func (s *edgesOf) kinds() ops.Kinds {
	return ops.Kinds{Types: s.types, Shares: ops.HostBuffer(s.shares)}
}

// randomEdges are typed edges whose block begins in the middle of its arrays and has one destination with
// many of the edges.
func randomEdges(r *rand.Rand, dst, src, edges, types, bases int) *edgesOf {
	degree := make([]int, dst)
	for range edges {
		degree[r.IntN(dst)*r.IntN(2)]++
	}
	h := graphops.HostBlock{NumDst: dst, NumSrc: src, Indptr: []int64{2}, Indices: []int32{-1, -1}}
	s := &edgesOf{bases: bases, shares: make([]float32, edges)}
	for _, n := range degree {
		for range n {
			h.Indices = append(h.Indices, r.Int32N(int32(src)))
			s.types = append(s.types, uint16(r.IntN(types)))
		}
		h.Indptr = append(h.Indptr, int64(len(h.Indices)))
	}
	s.block, s.coef = h.Block(), expect.Normals(r, types*bases)
	ops.TypedShares(s.shares, s.block, s.types, types, 1)
	return s
}

// The sums equal plain ones in float64, and have the same bits on any number of threads, where the gradient
// of the coefficients has many chunks.
func TestTypedInManyChunks(t *testing.T) {
	defer parallel.ShareFrom(parallel.ShareFrom(1))
	r := rand.New(rand.NewPCG(1, 2))
	const dst, src, edges, types, bases, cols = 3000, 500, 40_000, 7, 3, 5
	s := randomEdges(r, dst, src, edges, types, bases)
	h, dOut := expect.Normals(r, src*cols), expect.Normals(r, dst*bases*cols)
	type result struct{ out, dh, dCoef, shares []float32 }
	run := func(threads int) result {
		be := ops.CPU(threads)
		v := result{make([]float32, dst*bases*cols), make([]float32, src*cols), make([]float32, types*bases), make([]float32, edges)}
		ops.TypedShares(v.shares, s.block, s.types, types, threads)
		be.SpMMTyped(ops.HostBuffer(v.out), s.block, s.kinds(), ops.HostBuffer(s.coef), bases, ops.HostBuffer(h), nil, cols)
		be.SpMMTypedGrad(ops.HostBuffer(v.dh), ops.HostBuffer(dOut), s.block, s.kinds(), ops.HostBuffer(s.coef), bases, cols, false)
		be.TypedDot(ops.HostBuffer(v.dCoef), s.block, s.kinds(), ops.HostBuffer(dOut), ops.HostBuffer(h), bases, cols, false)
		return v
	}
	one, four := run(1), run(4)
	for i, pair := range [][2][]float32{{one.out, four.out}, {one.dh, four.dh}, {one.dCoef, four.dCoef}, {one.shares, four.shares}} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("result %d has other bits on 4 threads than on 1", i)
		}
	}
	out, dh, dCoef := make([]float64, len(one.out)), make([]float64, len(one.dh)), make([]float64, len(one.dCoef))
	size := make([]float64, len(dCoef))
	indptr := s.block.Indptr()
	for d := range dst {
		var ofType [types]int // edges that end at d
		for e := indptr[d]; e < indptr[d+1]; e++ {
			ofType[s.types[e-indptr[0]]]++
		}
		for e := indptr[d]; e < indptr[d+1]; e++ {
			u, n := int(s.block.Indices()[e]), int(e-indptr[0])
			same := ofType[s.types[n]]
			for k := range bases {
				at := int(s.types[n])*bases + k
				for c := range cols {
					x, g := float64(h[u*cols+c]), float64(dOut[(d*bases+k)*cols+c])
					out[(d*bases+k)*cols+c] += float64(s.coef[at]) * x / float64(same)
					dh[u*cols+c] += float64(s.coef[at]) * g / float64(same)
					dCoef[at] += x * g / float64(same)
					size[at] += math.Abs(x * g / float64(same))
				}
			}
		}
	}
	near := func(what string, got []float32, want []float64, limit func(i int) float64) {
		t.Helper()
		for i, v := range got {
			if !(math.Abs(float64(v)-want[i]) <= limit(i)) {
				t.Fatalf("%s: element %d is %g, want %g", what, i, v, want[i])
			}
		}
	}
	// Destination 0 has 20,000 edges: sums in float32 of as many terms.
	near("sum", one.out, out, func(i int) float64 { return 1e-3 + 1e-5*math.Abs(out[i]) })
	near("gradient of the rows", one.dh, dh, func(i int) float64 { return 1e-4 + 1e-5*math.Abs(dh[i]) })
	near("gradient of the coefficients", one.dCoef, dCoef, func(i int) float64 { return 1e-6 * size[i] })
}

// Permuting the sources with their rows changes nothing; the sum is linear in the coefficients.
func TestTypedSumProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		dst, src := rapid.IntRange(1, 9).Draw(rt, "destinations"), rapid.IntRange(1, 9).Draw(rt, "sources")
		bases, cols := rapid.IntRange(1, 4).Draw(rt, "bases"), rapid.IntRange(0, 20).Draw(rt, "columns")
		s := randomEdges(r, dst, src, rapid.IntRange(0, 40).Draw(rt, "edges"), 4, bases)
		h := expect.Normals(r, src*cols)
		sum := func(s *edgesOf, h []float32) []float32 {
			out := make([]float32, dst*bases*cols)
			ops.CPU(1).SpMMTyped(ops.HostBuffer(out), s.block, s.kinds(), ops.HostBuffer(s.coef), bases, ops.HostBuffer(h), nil, cols)
			return out
		}
		plain := sum(s, h)
		perm, moved := r.Perm(src), make([]float32, len(h))
		ids := slices.Clone(s.block.Indices())
		for u, to := range perm {
			copy(moved[to*cols:(to+1)*cols], h[u*cols:(u+1)*cols])
		}
		for i, u := range ids {
			if u >= 0 {
				ids[i] = int32(perm[u])
			}
		}
		other := *s
		other.block = graphops.HostBlock{NumDst: dst, NumSrc: src, Indptr: s.block.Indptr(), Indices: ids}.Block()
		if !slices.Equal(plain, sum(&other, moved)) {
			rt.Fatal("a permutation of the sources changes the sums")
		}
		other = *s
		other.coef = slices.Clone(s.coef)
		for i := range other.coef {
			other.coef[i] *= 2 // exact
		}
		for i, v := range sum(&other, h) {
			if v != 2*plain[i] {
				rt.Fatalf("doubled coefficients give %g at element %d, want %g", v, i, 2*plain[i])
			}
		}
	})
}
