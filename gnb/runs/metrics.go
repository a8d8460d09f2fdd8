package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
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
