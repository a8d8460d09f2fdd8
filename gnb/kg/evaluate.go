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

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/parallel"
)

// scoreBytes bounds the scores that a ranking has in memory at a time.
const scoreBytes = 64 << 20

// measure is a metric of rankings. K is that of Hits@K, 0 for others.
type measure struct {
	gnb.Metric
	K  int
	of func(kge.Metrics) float64
}

var measures = []measure{
	{gnb.Metric{Name: "mrr", Title: "MRR"}, 0, func(m kge.Metrics) float64 { return m.MRR }},
	{gnb.Metric{Name: "hits_1", Title: "hits@1"}, 1, func(m kge.Metrics) float64 { return m.Hits1 }},
	{gnb.Metric{Name: "hits_3", Title: "hits@3"}, 3, func(m kge.Metrics) float64 { return m.Hits3 }},
	{gnb.Metric{Name: "hits_10", Title: "hits@10"}, 10, func(m kge.Metrics) float64 { return m.Hits10 }},
}

// measureOf returns the metric of a name.
func measureOf(name string) (measure, error) {
	for _, m := range measures {
		if m.Name == name {
			return m, nil
		}
	}
	return measure{}, fmt.Errorf("kg: there is no metric %q; choose mrr, hits_1, hits_3 or hits_10", name)
}

// value is a metric by its name.
func value(m kge.Metrics, name string) (float64, error) {
	of, err := measureOf(name)
	if err != nil {
		return 0, err
	}
	return of.of(m), nil
}

// hitsOf is the K of a metric hits_K, 0 for others.
func hitsOf(name string) int {
	m, _ := measureOf(name)
	return m.K
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
				return fmt.Errorf("kg: ranking by %s: %w", t.o.Decoder, err)
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

// Splits implements [gnb.Task].
func (t *trainer) Splits() (names []string) {
	if t.data.Val.Len() > 0 {
		names = append(names, "val")
	}
	if t.data.Test.Len() > 0 {
		names = append(names, "test")
	}
	return names
}

// Chooses implements [gnb.Task].
func (t *trainer) Chooses() gnb.Metric {
	m, _ := measureOf(t.o.Metric) // checked where the run was launched
	return m.Metric
}

// Measure implements [gnb.Task]: it ranks the triples of splits. Of the test it also writes the metrics of each relation.
func (t *trainer) Measure(splits ...string) (values []runs.NamedValue, err error) {
	for _, split := range splits {
		of, wrong := t.data.Val, t.wrongVal
		if split == "test" {
			of, wrong = t.data.Test, t.wrongTest
		}
		heads, tails, err := t.ranks(of)
		if err != nil {
			return nil, err
		}
		m := kge.Measure(slices.Concat(heads, tails))
		if v, err := value(m, t.o.Metric); err != nil || split == "val" && math.IsNaN(v) {
			if err == nil {
				err = fmt.Errorf("kg: the %s of the validation is not a number, because scores are not; take a smaller learning rate (LR, --lr)", t.o.Metric)
			}
			return nil, err
		}
		for _, v := range []runs.NamedValue{{Name: "mrr", Value: m.MRR}, {Name: "mean_rank", Value: m.MR}, {Name: "hits_1", Value: m.Hits1}, {Name: "hits_3", Value: m.Hits3}, {Name: "hits_10", Value: m.Hits10}} {
			if hitsOf(v.Name) <= wrong { // else even a wrong answer is a hit
				values = append(values, runs.NamedValue{Name: split + "_" + v.Name, Value: v.Value})
			}
		}
		if split == "test" {
			if err := t.writeRelations(heads, tails); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// writeRelations writes the metrics of each relation's test triples.
func (t *trainer) writeRelations(heads, tails []float64) error {
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
