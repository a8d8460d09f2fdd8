package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// Events calls f with each event of the run's metrics.jsonl, in order. It skips a last line that a
// kill cut short. It also skips damaged lines; the error gives their number, and f has received
// all other lines.
func (r *Run) Events(f func(Event)) error {
	_, err := readFrom(r.Dir, 0, f)
	return err
}

// readFrom calls f with the events of the metrics in dir from an offset on, for a growing file. It
// returns the offset after the last complete line, from which the next call continues.
func readFrom(dir string, from int64, f func(Event)) (next int64, err error) {
	next, err = runfile.ReadLines(filepath.Join(dir, runfile.Metrics), from, func(object []byte) bool {
		var e Event
		if json.Unmarshal(object, &e) != nil {
			return false
		}
		f(e)
		return true
	})
	if _, some := errors.AsType[*runfile.DamagedLines](err); err != nil && !some {
		err = fmt.Errorf("runs: reading a run's metrics: %w", err)
	}
	return next, err
}

// Steps reads the steps of a run from its metrics, in order.
func (r *Run) Steps() ([]Step, error) {
	var out []Step
	err := r.Events(func(e Event) { out = append(out, e.Records...) })
	return out, err
}

// Losses returns the losses of all steps, in order.
func (r *Run) Losses() ([]float64, error) {
	steps, err := r.Steps()
	out := make([]float64, len(steps))
	for i, s := range steps {
		out[i] = s.Loss
	}
	return out, err
}

// TruncateMetrics removes from the run's metrics the events that a resumed run will report again:
// those from the position of its checkpoint on (see [Event]). It keeps restarts, which are not
// repeated, and appends the events in then. It also removes damaged lines; lost names them.
func (r *Run) TruncateMetrics(at [3]int, then ...*Event) (lost, err error) {
	var keep []byte
	put := func(e Event) {
		if b, err := json.Marshal(e); err == nil {
			keep = runfile.AppendLine(keep, b)
		}
	}
	lost = r.Events(func(e Event) {
		if e.Kind == KindSteps {
			e.Records = slices.DeleteFunc(e.Records, func(s Step) bool { return !before(s.At, at) })
			if len(e.Records) == 0 {
				return
			}
		} else if e.Kind != KindRestart && !before(e.At, at) {
			return
		}
		put(e)
	})
	if err := runfile.IgnoreDamage(lost); err != nil {
		return nil, err
	}
	for _, e := range then {
		put(*e)
	}
	if err := atomicfile.WriteFile(filepath.Join(r.Dir, runfile.Metrics), keep, 0o644); err != nil {
		return nil, fmt.Errorf("runs: cutting the metrics of a run that resumes: %w", err)
	}
	return lost, nil
}

func before(a, b [3]int) bool { return slices.Compare(a[:], b[:]) < 0 }
