package pairs

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// reference computes the metrics from their definitions, in NumPy: thresholds one by one for the
// curves, and OGB's published formulas for Hits@K and MRR.
const reference = `
import json, sys
import numpy as np
d = json.load(sys.stdin)
pos, neg, k = np.array(d["Pos"]), np.array(d["Neg"]), d["K"]
y = np.r_[np.ones(len(pos)), np.zeros(len(neg))]
s = np.r_[pos, neg]
auc = np.mean((pos[:, None] > neg[None, :]) + 0.5 * (pos[:, None] == neg[None, :]))
ap, before = 0.0, 0.0
for t in np.unique(s)[::-1]:
    hit = s >= t
    recall, precision = y[hit].sum() / len(pos), y[hit].mean()
    ap += (recall - before) * precision
    before = recall
own = neg.reshape(len(pos), -1)
optimistic, pessimistic = (own > pos[:, None]).sum(1), (own >= pos[:, None]).sum(1)
rank = 0.5 * (optimistic + pessimistic) + 1
shared = 1.0 if len(neg) < k else (pos > np.sort(neg)[-k]).mean()
order, relevant = np.array(d["Ranking"]), np.array(d["Relevant"])
gain = np.isin(order[:k], relevant)
discount = 1 / np.log2(np.arange(2, k + 2))
print(json.dumps([auc, ap, (1 / rank).mean(), (rank <= k).mean(), shared, gain.sum() / len(relevant),
    (gain * discount[:len(gain)]).sum() / discount[:len(relevant)].sum()]))
`

func TestMetricsAgainstNumPy(t *testing.T) {
	testneed.NotShort(t, "starts Python several times")
	python := testneed.PythonWith(t, "numpy")
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ pos, each, levels, k int }{{1, 1, 2, 1}, {7, 3, 4, 2}, {40, 20, 1000, 10}, {25, 4, 1, 3}, {30, 7, 6, 50}} {
		in := struct {
			Pos, Neg          []float32
			Ranking, Relevant []int32
			K                 int
		}{K: c.k}
		for range c.pos {
			in.Pos = append(in.Pos, float32(r.IntN(c.levels)+r.IntN(2)))
			for range c.each {
				in.Neg = append(in.Neg, float32(r.IntN(c.levels)))
			}
		}
		for _, v := range r.Perm(30)[:20] {
			in.Ranking = append(in.Ranking, int32(v))
		}
		for _, v := range r.Perm(30)[:5] {
			in.Relevant = append(in.Relevant, int32(v))
		}
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(python, "-c", reference)
		cmd.Stdin = strings.NewReader(string(text))
		out, err := cmd.CombinedOutput()
		var want [7]float64
		if err == nil {
			err = json.Unmarshal(out, &want)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		ranks, err := Ranks(in.Pos, in.Neg)
		if err != nil {
			t.Fatal(err)
		}
		got := [7]float64{
			AUC(in.Pos, in.Neg), AP(in.Pos, in.Neg), MRR(ranks), HitsAt(ranks, c.k), SharedHitsAt(in.Pos, in.Neg, c.k),
			RecallAt(in.Ranking, in.Relevant, c.k), NDCGAt(in.Ranking, in.Relevant, c.k),
		}
		for i, name := range []string{"AUC", "AP", "MRR", "HitsAt", "SharedHitsAt", "RecallAt", "NDCGAt"} {
			if math.Abs(got[i]-want[i]) > 1e-12 { // both sum at most 800 float64 numbers below 1
				t.Errorf("%+v: %s is %v, and %v in NumPy", c, name, got[i], want[i])
			}
		}
	}
}

// Values of sklearn 1.5's examples of average_precision_score and roc_auc_score, of OGB's
// formulas, and ties by hand.
func TestMetrics(t *testing.T) {
	nan := float32(math.NaN())
	ranks := func(pos, neg []float32) []float64 {
		r, err := Ranks(pos, neg)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"sklearn's AP", AP([]float32{0.35, 0.8}, []float32{0.1, 0.4}), 0.8333333333333333},
		{"sklearn's AUC", AUC([]float32{0.35, 0.8}, []float32{0.1, 0.4}), 0.75},
		{"AP of ties is the share of edges", AP([]float32{1, 1}, []float32{1, 1, 1, 1, 1, 1}), 0.25},
		{"AUC of ties", AUC([]float32{1}, []float32{1}), 0.5},
		{"mean rank of a tie of 1 + 4", MRR(ranks([]float32{2}, []float32{2, 2, 2, 2})), 1 / 3.},
		{"perfect", MRR(ranks([]float32{2, 3}, []float32{1, 1, 1, 1})), 1},
		{"hits", HitsAt(ranks([]float32{2, 0}, []float32{3, 1, 5, 6}), 2), 0.5},
		{"shared hits are strict", SharedHitsAt([]float32{3, 2, 1}, []float32{2, 2, 0}, 2), 1 / 3.},
		{"recall", RecallAt([]int32{4, 5, 6}, []int32{6, 4}, 2), 0.5},
		{"NDCG", NDCGAt([]int32{5, 4}, []int32{4}, 2), 1 / math.Log2(3)},
		{"NDCG of a short ranking", NDCGAt([]int32{4}, []int32{4, 5}, 9), 1 / (1 + 1/math.Log2(3))},
	} {
		if math.Abs(c.got-c.want) > 1e-15 {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
	for name, x := range map[string]float64{
		"AP": AP([]float32{nan}, []float32{1}), "AUC": AUC([]float32{1}, []float32{nan}), "MRR": MRR(ranks([]float32{1}, []float32{nan})),
		"HitsAt": HitsAt(ranks([]float32{nan}, []float32{1}), 1), "SharedHitsAt": SharedHitsAt([]float32{1}, []float32{nan}, 1), "SharedHitsAt of few": SharedHitsAt([]float32{0}, []float32{1}, 2),
		"AP of nothing": AP(nil, []float32{1}), "AUC without negatives": AUC([]float32{1}, nil), "MRR of nothing": MRR(nil),
		"HitsAt of nothing": HitsAt(nil, 1), "recall of nothing": RecallAt([]int32{1}, nil, 1), "NDCG of nothing": NDCGAt([]int32{1}, nil, 1),
	} {
		if !math.IsNaN(x) {
			t.Errorf("%s is %v, want NaN", name, x)
		}
	}
	if _, err := Ranks([]float32{1, 2}, []float32{1, 2, 3}); err == nil || !strings.Contains(err.Error(), "3 scores of negatives do not divide among 2 edges") {
		t.Errorf("Ranks of 3 negatives of 2 edges gives %v", err)
	}
}

// Extreme arguments have values or errors.
func TestMetricsOfNothing(t *testing.T) {
	for name, got := range map[string]float64{
		"HitsAt": HitsAt([]float64{1}, 0), "SharedHitsAt": SharedHitsAt([]float32{1}, []float32{0}, 0),
		"RecallAt": RecallAt([]int32{1}, []int32{1}, -1), "NDCGAt": NDCGAt([]int32{1}, []int32{1}, -1),
	} {
		if got != 0 {
			t.Errorf("%s of k below 1 is %v, want 0", name, got)
		}
	}
	if _, err := Ranks(nil, []float32{1}); err == nil || !strings.Contains(err.Error(), "1 scores of negatives do not divide among 0 edges") {
		t.Error(err)
	}
	if ranks, err := Ranks(nil, nil); len(ranks) > 0 || err != nil {
		t.Error(ranks, err)
	}
}
