package sample

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/philox"
)

// refWeighted follows the definition of Weighted with big integers and a scan.
func refWeighted(seed uint64, id int64, step int, c3 uint32, weights []float32, k int) []int32 {
	s := philox.NewStream(seed, id, step, c3)
	top := slices.Max(weights)
	if top == 0 {
		return nil
	}
	_, e := math.Frexp(float64(top)) // top = f·2^e with f in [1/2, 1)
	up := 62 - bits.Len(uint(len(weights))) - e
	q := make([]*big.Int, len(weights))
	for i, w := range weights {
		v, _ := new(big.Float).SetMantExp(big.NewFloat(float64(w)), up).Int(nil)
		if v.Sign() == 0 && w > 0 {
			v.SetInt64(1)
		}
		q[i] = v
	}
	var out []int32
	for range k {
		sum := new(big.Int)
		for _, v := range q {
			sum.Add(sum, v)
		}
		if sum.Sign() == 0 {
			break
		}
		r := new(big.Int).SetUint64(uint64(s.Next())<<32 | uint64(s.Next()))
		r.Mul(r, sum).Rsh(r, 64)
		at := 0
		for r.Cmp(q[at]) >= 0 {
			r.Sub(r, q[at])
			at++
		}
		out = append(out, int32(at))
		q[at] = new(big.Int)
	}
	slices.Sort(out)
	return out
}

func TestWeightedIsItsDefinition(t *testing.T) {
	h := Hop{seed: 77, step: 3, c3: philox.C3(philox.Sample, 1, 2)}
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.OneOf(rapid.Float32Range(0, 2), rapid.SampledFrom([]float32{0, 1, 1e-45, 1e-30, math.MaxFloat32, 1e-38}))
		weights := rapid.SliceOfN(weight, 2, 70).Draw(t, "weights")
		k := rapid.IntRange(0, len(weights)-1).Draw(t, "k")
		id := rapid.Int32Range(0, math.MaxInt32).Draw(t, "id")
		h.At(id)
		got := h.Weighted(weights, k, []int32{-7})
		want := append([]int32{-7}, refWeighted(77, int64(id), 3, h.c3, weights, k)...)
		if !slices.Equal(got, want) {
			t.Fatalf("picks %v, want %v", got, want)
		}
		positive := 0
		for _, w := range weights {
			if w > 0 {
				positive++
			}
		}
		if len(got)-1 != min(k, positive) {
			t.Fatalf("%d picks of %d positive weights, k is %d", len(got)-1, positive, k)
		}
	})
}

// Weighted draws each ordered pair of distinct positions i, j with probability w_i/S · w_j/(S-w_i):
// a chi-square test of the sets, with a fixed seed.
func TestWeightedDistribution(t *testing.T) {
	weights := []float32{1, 2, 3, 0, 6}
	const sum, trials = 12.0, 20000
	want := map[string]float64{}
	for i, a := range weights {
		for j, b := range weights {
			if i != j && a > 0 && b > 0 {
				want[fmt.Sprint([]int{min(i, j), max(i, j)})] += float64(a) / sum * float64(b) / (sum - float64(a))
			}
		}
	}
	got := map[string]float64{}
	h := Hop{seed: 11, c3: philox.C3(philox.Sample, 0, 0)}
	for v := range trials {
		h.At(int32(v))
		got[fmt.Sprint(h.Weighted(weights, 2, nil))]++
	}
	chi := 0.0
	for set, p := range want {
		d := got[set] - p*trials
		chi += d * d / (p * trials)
	}
	if len(got) != len(want) || chi > 20.5 { // 99.9th percentile with 5 degrees of freedom
		t.Errorf("chi-square %.1f, sets %v", chi, got)
	}
}

// If k is at least the number of positions, Weighted picks all of them but those of weight zero, without
// a draw.
func TestWeightedTakesAll(t *testing.T) {
	h := Hop{}
	for _, k := range []int{-1, 3, 9} {
		h.At(1)
		if got := h.Weighted([]float32{0, 2, 0}, k, nil); !slices.Equal(got, []int32{1}) {
			t.Errorf("k %d: %v", k, got)
		}
		first := h.Next()
		if h.At(1); h.Next() != first {
			t.Errorf("k = %d used a random draw", k)
		}
	}
	if got := h.Weighted([]float32{0, 0}, 1, nil); len(got) != 0 {
		t.Errorf("picks %v from no positions", got)
	}
}

func weightedGraph(t *testing.T) *graphops.Graph {
	t.Helper()
	const n = 300
	var src, dst []int32
	for i := range n * 20 {
		src = append(src, int32(i*7919%n))
		dst = append(dst, int32(i*104729%(n-1)))
	}
	g, err := graphops.FromEdges(n, src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := make([]float32, g.NumEdges())
	for i := range w {
		w[i] = float32(i%7) / 4
	}
	return g.WithEdgeWeights(w)
}

// A weighted sampler picks by its weights, with the bits of the definition on any number of
// threads, and its blocks hold the weights of their edges.
func TestWeightedSampler(t *testing.T) {
	whole := weightedGraph(t)
	bare := whole.WithEdgeWeights(nil)
	g, zeros := whole.WithoutZeroWeights() // which the sampler takes
	if zeros == 0 {
		t.Fatal("no edge has weight 0")
	}
	seeds := []int32{299, 5, 17, 0, 250}
	for threads := 1; threads <= 3; threads++ {
		for _, c := range []struct {
			g *graphops.Graph
			w []float32
		}{{whole, nil}, {bare, whole.EdgeWeights}} {
			s, err := New(c.g, Config{Picker: Weighted{Fanouts{3, -1}}, Seed: 4, Threads: threads, Weights: c.w})
			if err != nil {
				t.Fatal(err)
			}
			b, err := s.Sample(1, 2, Seeds{IDs: seeds})
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range b.Blocks {
				if !slices.Equal(k.Graph.EdgeWeights, g.EdgeWeights) || len(k.Weights()) != k.NumEdges() {
					t.Fatalf("block %d has %d weights for %d edges", i, len(k.Weights()), k.NumEdges())
				}
				for e := range int64(k.NumEdges()) {
					if k.Weight(e) != g.EdgeWeights[k.Pos(e)] {
						t.Fatalf("block %d: edge %d has weight %v, want %v", i, e, k.Weight(e), g.EdgeWeights[k.Pos(e)])
					}
				}
			}
			last := b.Blocks[1]
			for d, v := range seeds {
				var got []int32
				for e := last.Indptr()[d]; e < last.Indptr()[d+1]; e++ {
					got = append(got, int32(last.Pos(e)-g.Indptr[v]))
				}
				var want []int32
				if g.InDegree(v) > 3 {
					want = refWeighted(4, int64(v), 2, philox.C3(philox.Sample, 0, 1), g.EdgeWeights[g.Indptr[v]:g.Indptr[v+1]], 3)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("node %d picks %v, want %v", v, got, want)
				}
			}
			b.Release()
		}
	}
}

func TestWeightedErrors(t *testing.T) {
	g := weightedGraph(t)
	_, err := New(g, Config{Picker: Fanouts{2}, Weights: make([]float32, 3)})
	if err == nil || !strings.Contains(err.Error(), "3 edge weights but the graph has") {
		t.Errorf("weights of a wrong length gave %v", err)
	}
	_, err = New(g.WithEdgeWeights(nil), Config{Picker: Weighted{Fanouts{2}}})
	if err == nil || !strings.Contains(err.Error(), "needs edge weights") {
		t.Errorf("no weights: %v", err)
	}
	if _, err = New(g, Config{Picker: Weighted{Fanouts{-2}}}); err == nil {
		t.Error("a fanout of -2 gave no error")
	}
	for _, bad := range []float32{-1, float32(math.NaN()), float32(math.Inf(1))} {
		w := slices.Clone(g.EdgeWeights)
		w[g.Indptr[5]+1] = bad
		s, err := New(g, Config{Picker: Weighted{Fanouts{2}}, Weights: w})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Sample(0, 0, Seeds{IDs: []int32{1, 5}})
		var pe *PickError
		if !errors.As(err, &pe) || pe.Node != 5 || !strings.Contains(err.Error(), fmt.Sprintf("has weight %v", bad)) {
			t.Errorf("a weight of %v gave %v", bad, err)
		}
	}
}
