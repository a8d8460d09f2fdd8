package events

import (
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// measure is a metric of ranks.
type measure struct {
	gnb.Metric
	of func(ranks []float64) float64
}

func hits(k int) func(ranks []float64) float64 {
	return func(ranks []float64) float64 { return pairs.HitsAt(ranks, k) }
}

var measures = []measure{
	{gnb.Metric{Name: "mrr", Title: "MRR"}, pairs.MRR},
	{gnb.Metric{Name: "hits_1", Title: "hits@1"}, hits(1)},
	{gnb.Metric{Name: "hits_3", Title: "hits@3"}, hits(3)},
	{gnb.Metric{Name: "hits_10", Title: "hits@10"}, hits(10)},
}

// measureOf returns the metric of a name.
func measureOf(name string) (measure, error) {
	for _, m := range measures {
		if m.Name == name {
			return m, nil
		}
	}
	return measure{}, fmt.Errorf("events: there is no metric %q; choose mrr, hits_1, hits_3 or hits_10", name)
}

// Splits implements [gnb.Task].
func (t *trainer) Splits() (names []string) {
	for _, split := range []string{"val", "test"} {
		if lo, hi := t.s.part(split); lo < hi {
			names = append(names, split)
		}
	}
	return names
}

// Chooses implements [gnb.Task].
func (t *trainer) Chooses() gnb.Metric {
	m, _ := measureOf(t.o.Metric) // checked where the run was launched
	return m.Metric
}

// Measure implements [gnb.Task].
func (t *trainer) Measure(splits ...string) (values []runs.NamedValue, err error) {
	ranks, err := t.rankings(splits)
	if err != nil {
		return nil, err
	}
	for i, split := range splits {
		for _, m := range measures {
			values = append(values, runs.NamedValue{Name: split + "_" + m.Name, Value: m.of(ranks[i])})
		}
		if split == "test" && t.w.Rank() == 0 && t.w.RunDir() != "" {
			if err := t.s.breakdown(ranks[i], t.banks[0].part(t.s, split)).write(t.w.RunDir()); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// prepare makes, once, the negatives of validation and test, and ranks by EdgeBank among them.
func (t *trainer) prepare() (err error) {
	if t.wrong != nil {
		return nil
	}
	if work := float64(t.s.Test-t.s.Train) * float64(t.s.Nodes); work > mostPermuted {
		t.w.Printf("negatives of validation and test are drawn uniformly from the destinations that exist by then: those of the Temporal Graph Benchmark permute all destinations for each event, which takes hours here")
		t.wrong = &drawnNegatives{temporal.NewDrawer(t.s.Events, temporal.DrawOptions{Count: t.o.EvalNegatives, Strict: true})}
	} else if t.wrong, err = temporal.TGB(t.s.Events, t.s.Train, t.s.Val, temporal.TGBOptions{Negatives: t.o.EvalNegatives, Seed: evalSeed}); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	if t.s.NodeTimes != nil {
		those := existing{t.wrong, t.s}
		if late, all := those.late(); late > 0 {
			t.w.Printf("%d of the %d negatives of validation and test do not exist yet at the time of their event, and are left out", late, all)
		}
		t.wrong = those
	}
	if t.banks, err = rankByBanks(t.s, t.wrong); err != nil {
		return err
	}
	for _, split := range t.Splits() {
		for _, b := range t.banks {
			mrr := pairs.MRR(b.part(t.s, split))
			t.w.Result(split+"_"+b.name+"_mrr", mrr)
			t.w.Printf("%s, which remembers %s and learns nothing: MRR %.3f on %s", b.title, b.what, mrr, split)
		}
	}
	return nil
}

// wrongOf are the negatives of validation and test.
type wrongOf interface{ Of(event int) []int32 }

// drawnNegatives draws them when they are needed.
type drawnNegatives struct{ *temporal.Drawer }

// Of implements [wrongOf].
func (d *drawnNegatives) Of(event int) []int32 { return d.Append(nil, evalSeed, 0, event) }

// existing are those that exist at the time of the event.
type existing struct {
	wrongOf
	s *stream
}

// Of implements [wrongOf].
func (x existing) Of(event int) []int32 {
	return slices.DeleteFunc(slices.Clone(x.wrongOf.Of(event)), func(v int32) bool { return !x.s.Exists(v, x.s.Time[event]) })
}

// late counts the negatives that do not exist yet, and all.
func (x existing) late() (late, all int) {
	for e := x.s.Train; e < x.s.Test; e++ {
		n := len(x.wrongOf.Of(e))
		late, all = late+n-len(x.Of(e)), all+n
	}
	return late, all
}

// mostPermuted is the most evaluated events times nodes for which the benchmark's negatives are made: some minutes.
const mostPermuted = 10e9

// evalSeed is the seed of the negatives of validation and test, which are the same for all runs: it is that of the Temporal Graph Benchmark.
const evalSeed = 42

// rankings goes through the stream from its beginning to the end of the last of the splits, and returns the rank of each
// event of each. The ranks of the run divide the questions of a step. Collective.
func (t *trainer) rankings(splits []string) (all [][]float64, err error) {
	all = make([][]float64, len(splits))
	end := 0
	for i, split := range splits {
		lo, hi := t.s.part(split)
		all[i], end = make([]float64, hi-lo), max(end, hi)
	}
	progress := t.w.Progress("evaluate", end)
	err = t.w.OnHost(t.net, func(threads int) error {
		if err := t.prepare(); err != nil {
			return err
		}
		state, err := t.model.begin(false)
		if err != nil {
			return err
		}
		f := nn.NewFwd(nn.Config{})
		defer f.Close()
		for lo, hi := t.s.stepOf(0); lo < end; lo, hi = t.s.stepOf(hi) {
			i := slices.IndexFunc(splits, func(split string) bool { from, to := t.s.part(split); return lo >= from && lo < to })
			if i >= 0 {
				first, _ := t.s.part(splits[i])
				if err := t.rank(f, state, lo, hi, all[i][lo-first:hi-first], threads); err != nil {
					return err
				}
			}
			if err := state.happen(t.s.Head(hi), lo, ranksOf(t.w, threads)); err != nil {
				return err
			}
			progress(hi)
		}
		return nil
	})
	if err != nil {
		t.w.Fail(err) // at once: the other ranks are at other collectives
	}
	for i := range all {
		t.w.AllReduce(all[i]) // each is known to one rank, and 0 on the others
	}
	return all, nil
}

// rank computes the ranks of this worker's share of the events [lo, hi), a step.
func (t *trainer) rank(f *nn.Fwd, state state, lo, hi int, ranks []float64, threads int) error {
	from, to := sample.Share(hi-lo, t.w.Rank(), t.w.World())
	for e := lo + from; e < lo+to; {
		q := t.s.before(lo)
		var events []int32
		for ; e < lo+to && len(q.cands) < scoresAtOnce; e++ {
			q.ask(t.s, int32(e), t.wrong.Of(e))
			events = append(events, int32(e))
		}
		if err := t.audit.check(q, events, state.taken()); err != nil {
			return err
		}
		var scores []float32
		if err := try(func() error {
			f.Reset(nn.Config{Threads: threads})
			out, err := state.scores(f, q, t.model.view(q))
			if err == nil {
				scores = out.Data()
			}
			return err
		}); err != nil {
			return fmt.Errorf("events: ranking by %s: %w", t.o.Model, err)
		}
		for i, event := range events {
			r := rankOf(scores[q.starts[i]:q.starts[i+1]])
			if math.IsNaN(r) {
				return fmt.Errorf("events: a score of event %d is not a number; take a smaller learning rate (LR, --lr)", event)
			}
			ranks[int(event)-lo] = r
		}
	}
	return nil
}

// rankOf is the rank of the first score among all, by the rule of the Temporal Graph Benchmark; NaN if a score is.
func rankOf(scores []float32) float64 {
	r, _ := pairs.Ranks(scores[:1], scores[1:]) // which divide among one
	return r[0]
}
