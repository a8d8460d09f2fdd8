package runs

import "github.com/graphnb/graphnb/gnb/internal/runfile"

// Events calls f with each event of the run's metrics.jsonl, in order. It skips a last line that a
// kill cut short. It also skips damaged lines; the error gives their number, and f has received
// all other lines.
func (r *Run) Events(f func(Event)) error {
	_, err := runfile.ReadMetrics(r.Dir, 0, f)
	return err
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
