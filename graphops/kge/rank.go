package kge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/graphnb/graphnb/graphops/pairs"
)

// Rank returns the filtered rank of an entity by the scores of all entities, from 1: 1 + the number of
// entities with a higher score + half of those with an equal one, without the entity itself and without
// known, the ascending answers of the same query. It is NaN if a score that counts is NaN. Cost: one pass
// over the scores.
func Rank(scores []float32, target int32, known []int32) float64 {
	mine := scores[target]
	above, equal, bad := 0, 0, mine != mine
	count := func(s float32, sign int) {
		switch {
		case s > mine:
			above += sign
		case s == mine:
			equal += sign
		}
	}
	unknown := 0 // scores that are NaN
	for _, s := range scores {
		count(s, 1)
		if s != s {
			unknown++
		}
	}
	count(mine, -1)
	for _, v := range known {
		if v == target {
			continue
		}
		count(scores[v], -1)
		if s := scores[v]; s != s {
			unknown--
		}
	}
	if bad || unknown > 0 {
		return math.NaN()
	}
	return 1 + float64(above) + float64(equal)/2
}

// Metrics are the metrics of ranks.
type Metrics struct {
	N int // ranks
	// MRR is the mean reciprocal rank, MR the mean rank. Hits1, Hits3 and Hits10 are the fractions of
	// ranks that are at most 1, 3 and 10. All are NaN without ranks, and if a rank is NaN.
	MRR, MR, Hits1, Hits3, Hits10 float64
}

// Measure returns the metrics of ranks.
func Measure(ranks []float64) Metrics {
	sum := 0.0
	for _, r := range ranks {
		sum += r
	}
	return Metrics{
		N: len(ranks), MRR: pairs.MRR(ranks), MR: sum / float64(len(ranks)),
		Hits1: pairs.HitsAt(ranks, 1), Hits3: pairs.HitsAt(ranks, 3), Hits10: pairs.HitsAt(ranks, 10),
	}
}

func (m Metrics) String() string {
	return fmt.Sprintf("MRR %.4f, Hits@1 %.4f, Hits@3 %.4f, Hits@10 %.4f, mean rank %.1f (%d ranks)", m.MRR, m.Hits1, m.Hits3, m.Hits10, m.MR, m.N)
}

// OfRelation is the metrics of one relation's triples: of queries for heads, for tails, and of both.
type OfRelation struct {
	Rel                int32
	Heads, Tails, Both Metrics
}

// ByRelation divides the ranks of triples by relation: heads[i] and tails[i] are the ranks of triple i's
// head and tail. Relations ascend; those without triples are left out.
func ByRelation(t Triples, heads, tails []float64) ([]OfRelation, error) {
	if len(heads) != t.Len() || len(tails) != t.Len() {
		return nil, fmt.Errorf("kge: %d ranks of heads and %d of tails do not belong to %d triples", len(heads), len(tails), t.Len())
	}
	of := map[int32][2][]float64{}
	for i, r := range t.Rel {
		x := of[r]
		of[r] = [2][]float64{append(x[0], heads[i]), append(x[1], tails[i])}
	}
	out := make([]OfRelation, 0, len(of))
	for r, x := range of {
		out = append(out, OfRelation{r, Measure(x[0]), Measure(x[1]), Measure(slices.Concat(x[0], x[1]))})
	}
	slices.SortFunc(out, func(a, b OfRelation) int { return cmp.Compare(a.Rel, b.Rel) })
	return out, nil
}

// Table returns a table of metrics by relation. names are the relations' names; nil means their numbers.
func Table(rows []OfRelation, names []string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "relation\ttriples\tMRR\tMRR of heads\tMRR of tails\tHits@10")
	for _, r := range rows {
		name := fmt.Sprint(r.Rel)
		if int(r.Rel) < len(names) {
			name = names[r.Rel]
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%.4f\t%.4f\t%.4f\t%.4f\n", name, r.Heads.N, r.Both.MRR, r.Heads.MRR, r.Tails.MRR, r.Both.Hits10)
	}
	_ = w.Flush()
	return strings.TrimRight(b.String(), "\n")
}
