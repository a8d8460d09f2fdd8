package gnb

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/simd"
)

// inspection is a rank's search, while a layer-wise evaluation is computed once more, for
// the first thing in its rows that is not finite.
type inspection struct {
	n     *network
	found string
	// at is where: 0 for parameters and input, then a layer counted from 1.
	at int
}

// input looks at the parameters, and at features and weights of the in-edges of the nodes
// [lo, hi).
func (s *inspection) input(ds *Dataset, lo, hi int) {
	if s.found = s.n.badParam(); s.found != "" {
		return
	}
	if g := ds.Graph; g.EdgeWeights != nil {
		first, last := g.Indptr[lo], g.Indptr[hi]
		if w := g.EdgeWeights[first:last]; !simd.Finite(w) {
			i := int64(simd.NotFinite(w)) + first
			v := lo
			for g.Indptr[v+1] <= i {
				v++
			}
			s.found = fmt.Sprintf("the weight of an edge into node %d is %v", v, g.EdgeWeights[i])
			return
		}
	}
	if x := ds.SparseFeatures; x != nil && ds.Features == nil {
		for v := lo; v < hi; v++ {
			cols, values := x.Row(v)
			if i := simd.NotFinite(values); i >= 0 {
				s.found = badFeature(fmt.Sprintf("node %d", v), int(cols[i]), values[i])
				return
			}
		}
		return
	}
	const rows = 1024
	ids, buf := make([]int32, 0, rows), make([]float32, rows*ds.Features.Cols)
	for v := lo; v < hi; v += rows {
		ids = ids[:0]
		for u := v; u < min(v+rows, hi); u++ {
			ids = append(ids, int32(u))
		}
		x := buf[:len(ids)*ds.Features.Cols]
		ds.Features.Gather(x, ids, 1)
		if i := simd.NotFinite(x); i >= 0 {
			s.found = badFeature(fmt.Sprintf("node %d", v+i/ds.Features.Cols), i%ds.Features.Cols, x[i])
			return
		}
	}
}

// layer looks at the rows of the nodes from lo on that a layer has computed.
func (s *inspection) layer(layer, lo, cols int, rows []float32) {
	if s.found != "" {
		return
	}
	if s.found = s.n.badOutput(layer, rows, cols, func(r int) int { return lo + r }); s.found != "" {
		s.at = layer + 1
	}
}

// watchRows ends the run where the output of a layer-wise evaluation is not finite in this
// rank's rows, or another's: it is computed once more to find where that began. bad is
// whether some of this rank's are not. Collective.
func (w *Worker) watchRows(n *network, bad bool) {
	sum := []int64{0}
	if bad {
		sum[0] = 1
	}
	w.check(w.comm.SumInt64(w.site("evaluate"), sum))
	if sum[0] == 0 {
		return
	}
	s := &inspection{n: n}
	lo, hi := sample.Share(w.ds.Nodes(), w.p.Rank, w.World())
	s.input(w.ds, lo, hi)
	w.inspect = s
	w.layerwise(n).Release()
	w.inspect = nil
	// What came first counts, on whichever rank.
	first := []int64{int64(n.model.NumLayers()) + 1}
	all := make([]int64, w.World())
	all[w.p.Rank] = first[0]
	if s.found != "" {
		all[w.p.Rank] = int64(s.at)
	}
	w.check(w.comm.SumInt64(w.site("evaluate"), all))
	for _, at := range all {
		first[0] = min(first[0], at)
	}
	if int64(s.at) > first[0] {
		s.found = ""
	}
	w.stopNotFinite(n, foundAt{w.loop.Pos.ReportedEpoch(), -1}, s.found, fmt.Sprintf("the output of model %q in an evaluation, once", n.name))
}

// watchEvaluation is [Worker.watchRows] for what an evaluation has counted. Collective.
func (w *Worker) watchEvaluation(n *network, how Evaluation, tallies []*tally) {
	bad := slices.ContainsFunc(tallies, func(t *tally) bool { return t.bad > 0 })
	if how.Fanouts == nil {
		w.watchRows(n, bad)
		return
	}
	sum := []int64{0}
	if bad {
		sum[0] = 1
	}
	w.check(w.comm.SumInt64(w.site("evaluate"), sum))
	if sum[0] > 0 {
		w.stopNotFinite(n, foundAt{w.loop.Pos.ReportedEpoch(), -1}, w.found, fmt.Sprintf("the output of model %q in an evaluation, once", n.name))
	}
}
