// Package tally computes a network's metric on a split node by node. Ranks combine their tallies,
// and the result does not depend on the distribution of nodes over ranks. It also computes the digest of what all ranks
// sample, and counts what they sample more often than one rank would.
package tally

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/simd"
)

// Tally counts one rank's results on a split.
type Tally struct {
	metric metrics.Metric
	part   metrics.Tally
	ds     *dataset.Dataset
	// Of a divided dataset, the labels are in the parts.
	book *divided.Book

	withLoss bool
	loss     lossSum
	bad      int64 // rows with numbers that are not finite
}

// lossSum adds losses as integers in units of 2^-24, so that the sum has the same bits for any
// distribution of rows over workers. It holds up to 2^39: 2^31 rows at a mean of 256.
type lossSum struct{ units, count, bad int64 }

const (
	lossUnits = 1 << 24
	lossMost  = 1 << 20 // largest loss of a row; larger ones count as infinite
)

// add adds the loss of count rows or labels.
func (l *lossSum) add(sum float64, count int64) {
	l.count += count
	if sum < lossMost {
		l.units += int64(math.Round(sum * lossUnits))
	} else {
		l.bad++ // also NaN
	}
}

// mean returns the mean loss: NaN without rows, and +Inf if a row's loss was out of bounds.
func (l lossSum) mean() float64 {
	if l.bad > 0 {
		return math.Inf(1)
	}
	return float64(l.units) / lossUnits / float64(l.count)
}

// New makes a Tally for nodes of a dataset; with withLoss it also sums their losses. book is that of
// a divided dataset, else nil; nodes to count are those whose parts it has.
func New(ds *dataset.Dataset, book *divided.Book, withLoss bool) *Tally {
	m := Metric(ds)
	return &Tally{metric: m, part: m.New(ds.Classes()), ds: ds, book: book, withLoss: withLoss}
}

// multi reports whether a node can have several labels.
func multi(ds *dataset.Dataset) bool {
	return ds.MultiLabels != nil || divided.Is(ds) && ds.Meta.MultiLabel
}

// label returns a node's label, and targets its row of several labels.
func (t *Tally) label(v int32) int32 {
	if t.book == nil {
		return t.ds.Labels[v]
	}
	labels, _, err := t.book.Answers(t.book.PartOf(v))
	if err != nil {
		panic(err)
	}
	return labels[t.book.Row(v)]
}

func (t *Tally) targets(v int32) []int8 {
	if t.book == nil {
		return t.ds.MultiLabels.Row(int(v))
	}
	_, rows, err := t.book.Answers(t.book.PartOf(v))
	if err != nil {
		panic(err)
	}
	return rows.Row(t.book.Row(v))
}

// inData are the names of metrics in a dataset's metadata where they have others than in runs.
var inData = map[string]string{metrics.ROCAUCMetric.Name: dataset.MetricROCAUC, metrics.AveragePrecisionMetric.Name: dataset.MetricAP}

// Declared are the metrics that the program declares (gnb.DeclareMetric).
var Declared = entry.Registry[metrics.Metric]{Kind: "metric"}

// Metric returns the metric by which nodes of a dataset are measured. It is the accuracy if [CheckLabels] refuses the
// dataset's.
func Metric(ds *dataset.Dataset) metrics.Metric {
	m, err := metricOf(ds)
	if err != nil {
		return metrics.AccuracyMetric
	}
	return m
}

func metricOf(ds *dataset.Dataset) (metrics.Metric, error) {
	var all []string
	for _, m := range metrics.All {
		name := cmp.Or(inData[m.Name], m.Name)
		if name == ds.Metric() {
			return m, mine(m.Name)
		}
		all = append(all, name)
	}
	if !Declared.Has(ds.Metric()) {
		return metrics.Metric{}, fmt.Errorf("there is none called %q; there are %s, and those that the program declares (gnb.DeclareMetric)", ds.Metric(), strings.Join(all, ", "))
	}
	m, err := Declared.Get(ds.Metric())
	return m, cmp.Or(err, reserved(ds.Metric()))
}

// mine returns an error if a program declares a metric with the name of one of the library.
func mine(name string) error {
	if Declared.Has(name) {
		return fmt.Errorf("gnb: the program declares a metric %q, which is the name of one of the library; give its own another name", name)
	}
	return nil
}

// reserved returns an error for a name that a declared metric cannot have.
func reserved(name string) error {
	if name == "loss" || slices.ContainsFunc(metrics.All, func(m metrics.Metric) bool { return inData[m.Name] == name }) {
		return fmt.Errorf("gnb: the program declares a metric %q, which already means something in results and datasets; give it another name", name)
	}
	return nil
}

// Lower reports whether a lower value is better of the metric of that name in runs, if there is one; of a loss it is.
func Lower(name string) bool {
	if name == "loss" {
		return true
	}
	if m, err := Declared.Get(name); Declared.Has(name) && err == nil {
		return m.Lower
	}
	return slices.ContainsFunc(metrics.Numbers, func(m metrics.Metric) bool { return m.Name == name && m.Lower })
}

// Known reports whether there is a metric of nodes of that name in runs.
func Known(name string) bool {
	return slices.ContainsFunc(metrics.All, func(m metrics.Metric) bool { return m.Name == name }) || Declared.Has(name)
}

// Named returns the dataset measured by the metric of that name in runs; "" keeps it.
func Named(ds *dataset.Dataset, name string) (*dataset.Dataset, error) {
	if name == "" || ds == nil {
		return ds, nil
	}
	var all []string
	for _, m := range metrics.All {
		if m.Name == name {
			if err := mine(name); err != nil {
				return nil, err
			}
			return ds.WithMetric(cmp.Or(inData[name], name))
		}
		all = append(all, m.Name)
	}
	if Declared.Has(name) {
		if err := reserved(name); err != nil {
			return nil, err
		}
		return ds.WithMetric(name)
	}
	return nil, fmt.Errorf("gnb: Metric is %q; nodes are measured by %s, or by a metric that the program declares (gnb.DeclareMetric)", name, strings.Join(all, ", "))
}

// instead says what of a dataset whose nodes have no labels can be predicted.
func instead(ds *dataset.Dataset) string {
	switch {
	case ds.Graphs != nil:
		return " of nodes; it has many graphs, which package gnb/graphs predicts (gnb train --task graphs)"
	case ds.Targets != nil:
		return " of nodes; it has targets, which package gnb/numbers predicts (gnb train --task numbers)"
	}
	return ""
}

// CheckLabels returns an error if a dataset's labels do not suit its metric.
func CheckLabels(ds *dataset.Dataset) error {
	switch {
	case ds.Labels == nil && ds.MultiLabels == nil && (!divided.Is(ds) || ds.Classes() == 0):
		return fmt.Errorf("gnb: %s has no labels%s", ds.Name(), instead(ds))
	}
	m, err := metricOf(ds)
	switch {
	case err != nil:
		return fmt.Errorf("gnb: the metric of %s: %w", ds.Name(), err)
	case m.New == nil:
		return fmt.Errorf("gnb: %s is to be measured by %s, which says not how outputs are counted; give its declaration New, or choose another metric (Metric, --metric)", ds.Name(), m)
	case m.Ranks && !multi(ds) && ds.Classes() != 2:
		return fmt.Errorf("gnb: %s is to be measured by %s, which takes two classes or several labels a node, and it has %d classes; choose another metric (Metric, --metric)", ds.Name(), m, ds.Classes())
	}
	return nil
}

// CheckSplit returns an error if no node of a split has a label. It reads nodes up to the first
// one with a label.
func CheckSplit(ds *dataset.Dataset, split string) error {
	ids, err := ds.Split(split)
	switch {
	case err != nil:
		return err
	case len(ids) == 0:
		return fmt.Errorf("gnb: %s's split %q is empty: there is nothing to train on", ds.Name(), split)
	case divided.Is(ds):
		return nil // an epoch without labels is reported at its end
	}
	has := func(v int32) bool {
		switch {
		case v < 0 || ds.MultiLabels == nil && int(v) >= len(ds.Labels) || ds.MultiLabels != nil && int(v) >= ds.MultiLabels.Rows:
			return true // the dataset's check, or the worker, reports the error
		case ds.MultiLabels != nil:
			return slices.ContainsFunc(ds.MultiLabels.Row(int(v)), func(y int8) bool { return y >= 0 })
		}
		return ds.Labels[v] >= 0
	}
	found := false
	if err := mapped.Guard(func() error {
		found = slices.ContainsFunc(ids, has)
		return nil
	}); err != nil || found {
		return err
	}
	return fmt.Errorf("gnb: none of the %d nodes of %s's split %q has a label: there is nothing to train on; give labels to some of them, or make the split of nodes that have one (gnb data convert)", len(ids), ds.Name(), split)
}

// Add counts node v, whose output is row.
func (t *Tally) Add(v int32, row []float32) {
	if !simd.Finite(row) {
		t.bad++
		return
	}
	known := metrics.Answer{}
	if multi(t.ds) {
		known.Labels = t.targets(v)
	} else if known.Class = t.label(v); known.Class < 0 {
		return
	}
	switch {
	case !t.withLoss:
	case known.Labels != nil:
		t.loss.add(nn.RowBCE(row, known.Labels))
	default:
		t.loss.add(nn.RowCrossEntropy(row, int(known.Class)), 1)
	}
	t.part.Add(row, known)
}

// WithLoss reports whether the tally sums losses.
func (t *Tally) WithLoss() bool { return t.withLoss }

// NotFinite reports whether an output had numbers that are not finite.
func (t *Tally) NotFinite() bool { return t.bad > 0 }

// Result is a split's metric over what was counted and merged. Loss is 0 unless the tally sums losses.
type Result struct {
	Value float64
	Count int64
	Loss  float64
}

// Result computes the metric.
func (t *Tally) Result() (r Result) {
	r.Value, r.Count = t.part.Value()
	if t.withLoss {
		r.Loss = t.loss.mean()
	}
	return r
}

// lossBytes is the size of an encoded loss.
const lossBytes = 24

// Encode writes what was counted for other ranks.
func (t *Tally) Encode() []byte {
	b := make([]byte, 0, lossBytes)
	for _, n := range []int64{t.loss.units, t.loss.count, t.loss.bad} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return append(b, t.part.Encode()...)
}

// Merge adds what another rank has encoded, in the order of ranks.
func (t *Tally) Merge(b []byte) error {
	if len(b) < lossBytes {
		return errors.New("gnb: what another rank counted in an evaluation was cut short")
	}
	for i, n := range []*int64{&t.loss.units, &t.loss.count, &t.loss.bad} {
		*n += int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return t.part.Merge(b[lossBytes:])
}
