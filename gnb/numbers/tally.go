package numbers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/metrics"
)

// MetricOf returns a metric of numbers by its name: one of the library, or one that the program declares.
func MetricOf(name string) (gnb.Metric, error) {
	for _, m := range metrics.Numbers {
		if m.Name == name {
			return m, nil
		}
	}
	if !tally.Declared.Has(name) {
		return gnb.Metric{}, fmt.Errorf("numbers: Metric is %q; numbers are measured by mae, rmse, r2 and nmae, or by a metric that the program declares (gnb.DeclareMetric)", name)
	}
	m, err := tally.Declared.Get(name)
	if err == nil && m.New == nil {
		err = fmt.Errorf("numbers: the metric %s says not how outputs are counted; give its declaration New", m)
	}
	return m, err
}

// Tally measures a network's predictions of numbers on a split: by all of [metrics.Numbers] and, if it is another one, by
// the metric that chooses. What ranks have counted combines exactly, and the result does not depend on which rank counted
// which row. It is not safe for concurrent use.
type Tally struct {
	o       *LossOptions
	by      []gnb.Metric
	of      [][]metrics.Tally // of each target, by metric
	chooses string
	// Of two or more quantiles, the known targets, and those from the lowest to the highest prediction.
	known, inside int64

	row, middle []float32
}

// NewTally returns a tally of no rows. metric is the name of the metric that chooses, for instance "mae". The options are complete
// ([LossOptions.Complete]) and are kept.
func (o *LossOptions) NewTally(metric string) (*Tally, error) {
	chosen, err := MetricOf(metric)
	if err != nil {
		return nil, err
	}
	t := &Tally{o: o, by: metrics.Numbers, chooses: metric}
	if tally.Declared.Has(metric) {
		t.by = append([]gnb.Metric{chosen}, metrics.Numbers...)
	}
	for range o.Targets() {
		var all []metrics.Tally
		for _, m := range t.by {
			all = append(all, m.New(0))
		}
		t.of = append(t.of, all)
	}
	t.row, t.middle = make([]float32, o.Columns(o.Targets())), make([]float32, o.Targets())
	return t, nil
}

// Add counts a row of a network's outputs, which are finite, and its targets [Targets] in their unit, NaN if unknown.
func (t *Tally) Add(row, targets []float32) {
	t.o.Undo(t.row, row)
	t.o.Middle(t.middle, t.row)
	per := len(t.row) / len(t.middle)
	for i, y := range targets {
		if y != y {
			continue
		}
		for _, m := range t.of[i] {
			m.Add(t.middle[i:i+1], metrics.Answer{Numbers: targets[i : i+1]})
		}
		t.known++
		if of := t.row[i*per : (i+1)*per]; y >= of[0] && y <= of[per-1] {
			t.inside++
		}
	}
}

// Encode returns what was counted, for the tallies of other ranks.
func (t *Tally) Encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(t.known))
	b = binary.LittleEndian.AppendUint64(b, uint64(t.inside))
	for _, all := range t.of {
		for _, m := range all {
			raw := m.Encode()
			b = binary.LittleEndian.AppendUint32(b, uint32(len(raw)))
			b = append(b, raw...)
		}
	}
	return b
}

// Merge adds what another tally of the same options has encoded, in the order of ranks.
func (t *Tally) Merge(b []byte) error {
	cut := errors.New("numbers: what another rank counted in an evaluation was cut short")
	if len(b) < 16 {
		return cut
	}
	t.known += int64(binary.LittleEndian.Uint64(b))
	t.inside += int64(binary.LittleEndian.Uint64(b[8:]))
	b = b[16:]
	for _, all := range t.of {
		for _, m := range all {
			if len(b) < 4 || len(b)-4 < int(binary.LittleEndian.Uint32(b)) {
				return cut
			}
			end := 4 + int(binary.LittleEndian.Uint32(b))
			if err := m.Merge(b[4:end]); err != nil {
				return err
			}
			b = b[end:]
		}
	}
	return nil
}

// Values returns the measures by their names, such as "val_mae" for the split val. Of several targets each is the mean over
// the targets for which it exists, and the metric that chooses is also returned for each of names, the targets' own names:
// "val_mae_price". A measure that exists for no target is left out.
func (t *Tally) Values(split string, names []string) (values []runs.NamedValue) {
	for i, m := range t.by {
		sum, n := 0.0, 0
		for _, all := range t.of {
			if x, _ := all[i].Value(); !math.IsNaN(x) {
				sum += x
				n++
			}
		}
		if n > 0 {
			values = append(values, runs.NamedValue{Name: split + "_" + m.Name, Value: sum / float64(n)})
		}
	}
	if len(t.o.Quantiles) > 1 && t.known > 0 {
		values = append(values, runs.NamedValue{Name: split + "_coverage", Value: float64(t.inside) / float64(t.known)})
	}
	for i, m := range t.by {
		if m.Name != t.chooses || len(names) < 2 {
			continue
		}
		for k, name := range names {
			if x, _ := t.of[k][i].Value(); !math.IsNaN(x) {
				values = append(values, runs.NamedValue{Name: split + "_" + m.Name + "_" + nameOf(name), Value: x})
			}
		}
	}
	return values
}
