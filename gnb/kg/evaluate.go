package kg

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/parallel"
)

// scoreBytes bounds the scores that a ranking has in memory at a time.
const scoreBytes = 64 << 20

// value is a metric by its name.
func value(m kge.Metrics, name string) (float64, error) {
	switch name {
	case "mrr":
		return m.MRR, nil
	case "hits_1":
		return m.Hits1, nil
	case "hits_3":
		return m.Hits3, nil
	case "hits_10":
		return m.Hits10, nil
	}
	return 0, fmt.Errorf("kg: there is no metric %q; choose mrr, hits_1, hits_3 or hits_10", name)
}

// hitsOf is the K of a metric hits_K, 0 for others.
func hitsOf(metric string) int {
	return map[string]int{"hits_1": 1, "hits_3": 3, "hits_10": 10}[metric]
}

// FewEntities is the error of Hits@K where most queries have fewer than K other entities to compare with, so that they are
// hits for any scores.
type FewEntities struct {
	Metric   string
	Entities int
}

func (e *FewEntities) Error() string {
	return fmt.Sprintf("kg: %s says nothing for %d entities, because most queries have fewer than %d wrong answers, and so are hits for any scores; choose mrr, or a smaller number", e.Metric, e.Entities, hitsOf(e.Metric))
}

// wrongAnswers is the median number of wrong answers to the queries of triples: Hits@K of a larger K says nothing of most of
// them. filter has the right answers.
func (d *Data) wrongAnswers(of kge.Triples, filter *kge.Queries) int {
	both := kge.Reciprocal(of, d.Relations)
	n := make([]int, both.Len())
	for i, h := range both.Head {
		n[i] = d.Entities - len(filter.Answers(h, both.Rel[i]))
	}
	slices.Sort(n)
	if len(n) == 0 {
		return d.Entities
	}
	return n[len(n)/2]
}

// ranks returns the filtered ranks of the heads and tails of triples, which the workers divide. Collective.
func (t *trainer) ranks(of kge.Triples) (heads, tails []float64, err error) {
	both := kge.Reciprocal(of, t.data.Relations) // queries for tails, then for heads
	ranks := make([]float64, both.Len())
	err = t.w.OnHost(t.net, func(threads int) error {
		lo, hi := sample.Share(both.Len(), t.w.Rank(), t.w.World())
		rows := max(1, scoreBytes/(4*t.data.Entities))
		input, err := t.model.fixed(threads, t.whole)
		if err != nil {
			return fmt.Errorf("kg: the encoder before ranking: %w", err)
		}
		f := nn.NewFwd(nn.Config{})
		defer f.Close()
		for ; lo < hi; lo += rows {
			b := both.Slice(lo, min(lo+rows, hi))
			if err := nn.Try(func() {
				f.Reset(nn.Config{Threads: threads})
				h, r, e := input(f).rows(f, b.Head, b.Head, b.Rel, 0)
				n := t.data.Entities
				scores := t.model.Decoder.Tails(f, h, r, e).Data()
				parallel.For(threads, b.Len(), 16, func(from, to int) {
					for i := from; i < to; i++ {
						ranks[lo+i] = kge.Rank(scores[i*n:(i+1)*n], b.Tail[i], t.filter.Answers(b.Head[i], b.Rel[i]))
					}
				})
			}); err != nil {
				return fmt.Errorf("kg: ranking by %s: %w", t.a.Decoder, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	t.w.AllReduce(ranks) // each rank is known to one worker, and 0 on the others
	return ranks[of.Len():], ranks[:of.Len()], nil
}

// evaluate ranks the validation triples and reports whether the metric is the best so far. Only then the
// test triples are ranked too, and the metrics kept in best.
func (t *trainer) evaluate(best map[string]float64) (better bool, v float64, err error) {
	heads, tails, err := t.ranks(t.data.Val)
	if err != nil {
		return false, 0, err
	}
	m := kge.Measure(slices.Concat(heads, tails))
	values := []runs.NamedValue{{Name: "val_mrr", Value: m.MRR}}
	if t.wrongVal >= 10 {
		values = append(values, runs.NamedValue{Name: "val_hits_10", Value: m.Hits10})
	}
	t.w.Report(values...)
	v, err = value(m, t.a.Metric)
	if err == nil && math.IsNaN(v) {
		err = fmt.Errorf("kg: the %s of the validation is not a number, because scores are not; take a smaller learning rate (LR, --lr)", t.a.Metric)
	}
	if err != nil || !t.w.SaveBest(t.net, v) {
		return false, v, err
	}
	keep(best, "val", t.wrongVal, m)
	return true, v, t.test(best)
}

// test ranks the test triples, if there are some, keeps their metrics in best and writes those of each
// relation.
func (t *trainer) test(best map[string]float64) error {
	if t.data.Test.Len() == 0 {
		return nil
	}
	heads, tails, err := t.ranks(t.data.Test)
	if err != nil {
		return err
	}
	keep(best, "test", t.wrongTest, kge.Measure(slices.Concat(heads, tails)))
	if t.w.Rank() != 0 || t.w.RunDir() == "" {
		return nil
	}
	rows, err := kge.ByRelation(t.data.Test, heads, tails)
	if err != nil {
		return err
	}
	out := make([]Relation, len(rows))
	for i, r := range rows {
		out[i] = Relation{Name: fmt.Sprint(r.Rel), OfRelation: r}
		if int(r.Rel) < len(t.data.RelationNames) {
			out[i].Name = t.data.RelationNames[r.Rel]
		}
	}
	b, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return fmt.Errorf("kg: writing the metrics of relations: %w", err)
	}
	return atomicfile.WriteFile(filepath.Join(t.w.RunDir(), relationsFile), append(b, '\n'), 0o644)
}

// keep keeps the metrics of a part, without Hits@K of a K above the number of wrong answers.
func keep(best map[string]float64, part string, wrong int, m kge.Metrics) {
	for name, v := range map[string]float64{"mrr": m.MRR, "mean_rank": m.MR, "hits_1": m.Hits1, "hits_3": m.Hits3, "hits_10": m.Hits10} {
		if hitsOf(name) <= wrong {
			best[part+"_"+name] = v
		}
	}
}

// relationsFile is the file of a run's directory with the metrics of each relation.
const relationsFile = "relations.json"

// Relation is the metrics of one relation's test triples.
type Relation struct {
	Name string
	kge.OfRelation
}

// Relations returns the metrics of each relation's test triples at the best epoch of a run of [Train], in
// the order of the relations. [kge.Table] prints them.
func Relations(run *runs.Run) ([]Relation, error) {
	b, err := os.ReadFile(filepath.Join(run.Dir, relationsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("kg: %s has no metrics of relations: it is no run of kg.Train with test triples, or has not been evaluated yet", run.Dir)
	case err != nil:
		return nil, fmt.Errorf("kg: reading the metrics of relations: %w", err)
	}
	var rows []Relation
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, fmt.Errorf("kg: %s is damaged: %w", filepath.Join(run.Dir, relationsFile), err)
	}
	return rows, nil
}
