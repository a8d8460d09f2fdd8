package pairs

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops/metrics"
)

// AUC is the area under the ROC curve of scores of edges and of negatives: the fraction of pairs of
// both in which the edge has the higher score, ties counted half. It equals
// sklearn.metrics.roc_auc_score; NaN if there are no edges, no negatives, or a score is NaN.
func AUC(pos, neg []float32) float64 {
	scores := slices.Concat(pos, neg)
	labels := make([]int8, len(scores))
	for i := range pos {
		labels[i] = 1
	}
	return metrics.ROCAUC(scores, labels)
}

// AP is the average precision: the sum over the thresholds of (recall - recall at the threshold
// before)·precision, with one threshold for each distinct score. It equals
// sklearn.metrics.average_precision_score; NaN if there are no edges or a score is NaN. Cost: a
// sort.
func AP(pos, neg []float32) float64 {
	type row struct {
		score float32
		pos   bool
	}
	rows := make([]row, 0, len(pos)+len(neg))
	for i, scores := range [][]float32{pos, neg} {
		for _, s := range scores {
			if s != s {
				return math.NaN()
			}
			rows = append(rows, row{s, i == 0})
		}
	}
	if len(pos) == 0 {
		return math.NaN()
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(b.score, a.score) })
	ap, right := 0.0, 0
	for i := 0; i < len(rows); {
		j, before := i, right
		for ; j < len(rows) && rows[j].score == rows[i].score; j++ {
			if rows[j].pos {
				right++
			}
		}
		ap += float64(right-before) / float64(len(pos)) * float64(right) / float64(j)
		i = j
	}
	return ap
}

// Ranks returns the rank of each edge among its negatives, from 1: 1 + the number of negatives with
// a higher score + half of those with an equal one, which is the mean of the ranks that a tie
// allows. OGB's evaluator of ogbl-citation2 computes the same. neg [len(pos)·K] holds the K
// negatives of each edge. A rank is NaN if one of its scores is.
//
// It returns an error if neg does not divide among the edges.
func Ranks(pos, neg []float32) ([]float64, error) {
	if len(pos) == 0 && len(neg) == 0 {
		return nil, nil
	}
	if len(pos) == 0 || len(neg)%len(pos) != 0 {
		return nil, fmt.Errorf("pairs: %d scores of negatives do not divide among %d edges; give equally many for each", len(neg), len(pos))
	}
	k, ranks := len(neg)/len(pos), make([]float64, len(pos))
	for i, p := range pos {
		above, equal := 0, 0
		ranks[i] = 1
		for _, n := range neg[i*k : (i+1)*k] {
			switch {
			case n > p:
				above++
			case n == p:
				equal++
			case n != n || p != p:
				ranks[i] = math.NaN()
			}
		}
		ranks[i] += float64(above) + float64(equal)/2
	}
	return ranks, nil
}

// MRR is the mean reciprocal rank, NaN without ranks.
func MRR(ranks []float64) float64 {
	sum := 0.0
	for _, r := range ranks {
		sum += 1 / r
	}
	return sum / float64(len(ranks))
}

// HitsAt is the fraction of ranks that are at most k: Hits@K where each edge has its own
// negatives. Among fewer than k negatives it is 1, whatever the scores. 0 for k below 1; NaN without ranks, and if a rank is NaN.
func HitsAt(ranks []float64, k int) float64 {
	hits := 0
	for _, r := range ranks {
		switch {
		case r != r:
			return r
		case r <= float64(k):
			hits++
		}
	}
	return float64(hits) / float64(len(ranks))
}

// SharedHitsAt is the fraction of edges whose score is above that of the k-th best negative: Hits@K
// where all edges have the same negatives, as in OGB's evaluators of ogbl-collab, ogbl-ppa and
// ogbl-ddi. For k below 1 it is 0. NaN without edges, if a score is NaN, and with fewer than k negatives, where
// OGB's evaluators return 1 for any scores. Cost: a sort of the negatives.
func SharedHitsAt(pos, neg []float32, k int) float64 {
	for _, scores := range [][]float32{pos, neg} {
		for _, s := range scores {
			if s != s {
				return math.NaN()
			}
		}
	}
	switch {
	case len(pos) == 0:
		return math.NaN()
	case k < 1:
		return 0
	case len(neg) < k:
		return math.NaN()
	}
	sorted := slices.Clone(neg)
	slices.SortFunc(sorted, func(a, b float32) int { return cmp.Compare(b, a) })
	hits := 0
	for _, p := range pos {
		if p > sorted[k-1] {
			hits++
		}
	}
	return float64(hits) / float64(len(pos))
}

// RecallAt is the fraction of the relevant nodes that are among the first k of a ranking without
// repeats; 0 for k below 1, and NaN if none is relevant.
func RecallAt(ranking, relevant []int32, k int) float64 {
	hits := 0
	for _, v := range ranking[:max(0, min(k, len(ranking)))] {
		if slices.Contains(relevant, v) {
			hits++
		}
	}
	return float64(hits) / float64(len(relevant))
}

// NDCGAt is the normalised discounted cumulative gain of the first k of a ranking without repeats:
// the sum of 1/log2(1+position) over the relevant nodes, positions counted from 1, divided by the
// largest possible sum. 0 for k below 1, and NaN if no node is relevant.
func NDCGAt(ranking, relevant []int32, k int) float64 {
	if k < 1 && len(relevant) > 0 {
		return 0
	}
	gain, best := 0.0, 0.0
	for i, v := range ranking[:max(0, min(k, len(ranking)))] {
		if slices.Contains(relevant, v) {
			gain += 1 / math.Log2(float64(i)+2)
		}
	}
	for i := range max(0, min(k, len(relevant))) {
		best += 1 / math.Log2(float64(i)+2)
	}
	return gain / best
}
