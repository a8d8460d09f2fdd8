package tally

import (
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/phrase"
)

// ErrUndefined matches the error of a split on which the dataset's metric does not exist.
var ErrUndefined = errors.New("the metric does not exist on this split")

// Undefined says why the dataset's metric, or any loss, does not exist on a split; "" if it does. If
// the metric is the mean over some of several labels, partly names the others. Of a dataset in parts,
// whose labels are not in one file, it knows nothing.
func Undefined(ds *dataset.Dataset, split string) (why, partly string, err error) {
	ids, err := ds.Split(split)
	switch {
	case err != nil:
		return "", "", err
	case len(ids) == 0:
		return "the split is empty", "", nil
	case divided.Is(ds), CheckLabels(ds) != nil:
		return "", "", nil
	}
	err = mapped.Guard(func() error {
		seen := newSeen(ds)
		for _, v := range ids {
			if v >= 0 && int(v) < ds.Nodes() { // else the dataset's check, or the worker, reports the error
				seen.node(v)
			}
		}
		why, partly = seen.undefined()
		return nil
	})
	return why, partly, err
}

// seen are the labels of a split: for each column of labels, the numbers of its nodes of class 0 and of others.
type seen struct {
	ds      *dataset.Dataset
	ranked  string // the metric, if it ranks nodes
	columns [][2]int
	class   int32 // of the last node
}

func newSeen(ds *dataset.Dataset) *seen {
	s := &seen{ds: ds, columns: make([][2]int, 1)}
	if m := Metric(ds); m.Ranks {
		s.ranked = m.String()
	}
	if ds.MultiLabels != nil {
		s.columns = make([][2]int, ds.MultiLabels.Cols)
	}
	return s
}

func (s *seen) node(v int32) {
	if s.ds.MultiLabels == nil {
		if y := s.ds.Labels[v]; y >= 0 {
			s.class = y
			s.columns[0][min(y, 1)]++
		}
		return
	}
	for c, y := range s.ds.MultiLabels.Row(int(v)) {
		if y >= 0 {
			s.columns[c][min(y, 1)]++
		}
	}
}

// undefined is [Undefined] for the nodes seen.
func (s *seen) undefined() (why, partly string) {
	known, both := 0, 0
	for _, n := range s.columns {
		known += n[0] + n[1]
		if n[0] > 0 && n[1] > 0 {
			both++
		}
	}
	switch {
	case known == 0:
		return "none of its nodes has a label", ""
	case s.ranked == "" || both == len(s.columns):
		return "", ""
	case s.ds.MultiLabels == nil:
		return fmt.Sprintf("the %s takes nodes of two classes, and all of its %s are of class %d", s.ranked, phrase.Count(known, "labelled node"), s.class), ""
	case both == 0:
		return fmt.Sprintf("the %s takes positive and negative nodes, and none of its %s has both", s.ranked, phrase.Count(len(s.columns), "label")), ""
	}
	return "", fmt.Sprintf("it is the mean over %d of %d labels; the others do not have both positive and negative nodes", both, len(s.columns))
}

// CheckEvaluated returns an error that matches [ErrUndefined] if the metric of a split that chooses the best epoch does
// not exist, or, with byLoss, its loss.
func CheckEvaluated(ds *dataset.Dataset, split string, byLoss bool) error {
	why, _, err := Undefined(ds, split)
	if err != nil || why == "" {
		return err
	}
	wayOut := "make the split of other nodes (gnb data convert), or train without evaluation (Eval: \"none\", --eval none)"
	if Metric(ds).Ranks && byLoss && hasLabels(ds, split) {
		return nil
	}
	if Metric(ds).Ranks && hasLabels(ds, split) {
		wayOut = "choose the best epoch by the loss (BestBy: \"loss\", --best-by loss), or " + wayOut
	}
	return fmt.Errorf("gnb: %s's split %q cannot choose the best epoch, because %w: %s; %s", ds.Name(), split, ErrUndefined, why, wayOut)
}

func hasLabels(ds *dataset.Dataset, split string) bool { return CheckSplit(ds, split) == nil }

// Missing says why a split's value by a metric is not a number, "" if it is one.
func (r Result) Missing(m metrics.Metric) string {
	switch {
	case r.Count == 0:
		return "none of its nodes has a label"
	case !math.IsNaN(r.Value):
		return ""
	case m.Ranks:
		return "the " + m.String() + " takes positive and negative nodes, and they do not have both"
	}
	return "the " + m.String() + " of its nodes is not a number"
}
