package sweep

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/phrase"
)

// identify adds the identity of the data and of the model's code to the study.
func (s *sweep) identify(ctx context.Context) error {
	id, err := s.of.identify(ctx)
	s.study.Identity = id
	return err
}

// differencesOf returns the reasons why the sweep now cannot resume the trials of s: in Made the
// differences in data and code, because old and new trials would not be comparable; in Placed the
// settings that determine proposals.
func (s *Study) differencesOf(now *Study) (d saving.Differences) {
	was := runs.Config{Dataset: s.Dataset, Nodes: s.Nodes, Edges: s.Edges, SplitSet: s.SplitSet, Identity: s.Identity}
	is := runs.Config{Dataset: now.Dataset, Nodes: now.Nodes, Edges: now.Edges, SplitSet: now.SplitSet, Identity: now.Identity}
	d.Made = saving.DataChanges(was, is)
	if d.Unrecorded = s.Identity == nil; !d.Unrecorded {
		d.Made = append(d.Made, saving.CodeChanges(s.Identity.Code, now.Identity.Code)...)
	}
	differ := func(counts bool, name string, was, is any) {
		if counts && was != is {
			d.Placed = append(d.Placed, fmt.Sprintf("%s was %v and is %v", name, was, is))
		}
	}
	differ(true, "the model", s.Model, now.Model)
	differ(true, "the method", s.Method, now.Method)
	differ(true, "the seed", s.Seed, now.Seed)
	differ(true, "the metric", s.Metric, now.Metric)
	differ(true, "looking for the lowest", s.Minimize, now.Minimize)
	differ(isGrid(s.Method), "levels", s.Levels, now.Levels)
	differ(learns(s.Method), "trials at a time", s.Parallel, now.Parallel)
	differ(s.Method == methodASHA, "the first rung", s.MinEpochs, now.MinEpochs)
	differ(s.Method == methodASHA, "the reduction", s.Reduction, now.Reduction)
	return d
}

func (s *sweep) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// notGoingOn records why the last interrupted sweep is not resumed.
func (s *sweep) notGoingOn(old *Study, d saving.Differences) {
	s.note("not continuing the interrupted sweep %s: %s; starting a new sweep", old.ID,
		cmp.Or(phrase.Clauses(d.All()), "its version did not record its data and code"))
}

// change records the settings that changed since the sweep started.
func (s *sweep) change(old *Study) {
	s.study.Changes = old.Changes
	d := old.differencesOf(&s.study)
	what := d.Made
	if old.Identity != nil && old.Identity.Library != s.study.Identity.Library {
		s.note("the sweep was started with GraphNB %s and continues with %s: results may differ in the last bits", old.Identity.Library, s.study.Identity.Library)
	}
	if len(d.Made) > 0 {
		s.note("changed since the sweep was started: %s", phrase.Clauses(d.Made))
	}
	if d.Unrecorded {
		s.note("which data and code the sweep had was not recorded; they are taken to be these")
		what = append(what, "which data and code the sweep had was not recorded until then")
	}
	if len(what) > 0 {
		s.study.Changes = append(slices.Clone(old.Changes), runs.Change{When: time.Now().UTC().Truncate(time.Second), Step: int64(len(old.Trials)), What: what})
	}
}
