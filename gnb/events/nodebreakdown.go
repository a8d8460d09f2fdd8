package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// NodeBreakdown says where a run of [TrainNodes] answers well: the questions of the test, in the order of time.
type NodeBreakdown struct {
	// Ask says in words what is asked, and Window over which time.
	Ask, Window string
	// Metric is the metric that chooses the best epoch, and Baselines are the names of the predictions that learn nothing.
	Metric    gnb.Metric
	Baselines []string
	// Whole is all of the test, and ByTime are at most ten parts of whole moments with about as many questions each.
	Whole  NodePart
	ByTime []NodePart
}

// NodePart are some questions of the test, with the metric of the model and those of the baselines; NaN is written as null, and is nil.
type NodePart struct {
	Name      string
	From, To  int64 // the times of its first and last question
	Questions int
	Model     *float64
	Baselines []*float64
}

// timePart are the questions [lo, hi) of the test.
type timePart struct{ lo, hi int }

// timeParts cuts the test into at most ten parts of whole moments.
func (r *nodeRows) timeParts() (parts []timePart) {
	lo, hi := r.part("test")
	for at, k := lo, 1; at < hi; k++ {
		end := max(at+1, lo+(hi-lo)*k/timeParts)
		for end < hi && r.times[end] == r.times[end-1] {
			end++
		}
		parts = append(parts, timePart{at, end})
		at = end
	}
	return parts
}

// breakdown is what was counted of the test.
func (t *nodeTrainer) breakdown(m *splitScores) (b NodeBreakdown) {
	b.Ask, b.Window, b.Metric = t.o.what(), t.o.Window, t.metric
	for _, of := range t.r.baselines() {
		b.Baselines = append(b.Baselines, of.title)
	}
	part := func(of timePart, row []scorer) NodePart {
		p := NodePart{From: t.r.times[of.lo], To: t.r.times[of.hi-1], Questions: of.hi - of.lo}
		p.Name = temporal.Stretch(p.From, p.To, t.r.unit)
		for k, s := range row {
			var value *float64
			for _, v := range s.Values("test") {
				if v.Name == "test_"+t.metric.Name && !math.IsInf(v.Value, 0) {
					value = &v.Value
				}
			}
			if k == 0 {
				p.Model = value
			} else {
				p.Baselines = append(p.Baselines, value)
			}
		}
		return p
	}
	lo, hi := t.r.part("test")
	b.Whole = part(timePart{lo, hi}, m.whole)
	for i, of := range m.parts {
		b.ByTime = append(b.ByTime, part(of, m.scores[i]))
	}
	return b
}

// nodeBreakdownFile is the file of a run's directory with its NodeBreakdown.
const nodeBreakdownFile = "nodes-over-time.json"

// write writes the breakdown into a run's directory.
func (b NodeBreakdown) write(dir string) error {
	raw, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		return fmt.Errorf("events: writing the parts of the test: %w", err)
	}
	return atomicfile.WriteFile(filepath.Join(dir, nodeBreakdownFile), append(raw, '\n'), 0o644)
}

// NodeBreakdownOf returns the breakdown of a run of [TrainNodes] that has measured its test.
func NodeBreakdownOf(run *runs.Run) (b NodeBreakdown, err error) {
	raw, err := os.ReadFile(filepath.Join(run.Dir, nodeBreakdownFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return b, fmt.Errorf("events: %s has no measures of parts of the test: it is no run of events.TrainNodes, or its test has not been measured", run.Dir)
	case err != nil:
		return b, fmt.Errorf("events: reading the parts of the test: %w", err)
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return b, fmt.Errorf("events: %s is damaged: %w", filepath.Join(run.Dir, nodeBreakdownFile), err)
	}
	return b, nil
}
