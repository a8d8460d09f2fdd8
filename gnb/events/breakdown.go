package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// Breakdown says where a run answers well: the events of the test, by their time and by how often their pair was seen before.
type Breakdown struct {
	ByTime []Part // ten parts in order, of about as many events each
	BySeen []Part
}

// Part are some events of the test, with the mean reciprocal rank of the model and that of EdgeBank, which remembers all pairs.
type Part struct {
	Name          string
	From, To      int64 // of ByTime: the times of its first and last event
	Events        int
	MRR, EdgeBank float64
}

// breakdownFile is the file of a run's directory with its Breakdown.
const breakdownFile = "events.json"

// timeParts is the number of parts of Breakdown.ByTime.
const timeParts = 10

// seenParts are the parts of Breakdown.BySeen: the most earlier events of a pair.
var seenParts = []struct {
	name string
	most int
}{{"never", 0}, {"once", 1}, {"2 or 3 times", 3}, {"4 to 9 times", 9}, {"10 times or more", 1 << 62}}

// breakdown divides the events of the test, which have these ranks by the model and by EdgeBank.
func (s *stream) breakdown(ranks, bank []float64) Breakdown {
	var b Breakdown
	lo, hi := s.part("test")
	add := func(p *Part, i int) {
		p.Events++
		p.MRR += 1 / ranks[i]
		p.EdgeBank += 1 / bank[i]
	}
	for k := range timeParts {
		from, to := lo+(hi-lo)*k/timeParts, lo+(hi-lo)*(k+1)/timeParts
		if from == to {
			continue
		}
		p := Part{Name: temporal.Stretch(s.Time[from], s.Time[to-1], s.unit), From: s.Time[from], To: s.Time[to-1]}
		for e := from; e < to; e++ {
			add(&p, e-lo)
		}
		b.ByTime = append(b.ByTime, p)
	}
	for _, of := range seenParts {
		b.BySeen = append(b.BySeen, Part{Name: of.name})
	}
	seen := map[[2]int32]int{}
	for begin, end := s.stepOf(0); begin < hi; begin, end = s.stepOf(end) {
		for e := begin; e < end && begin >= lo; e++ {
			times, k := seen[[2]int32{s.Src[e], s.Dst[e]}], 0
			for times > seenParts[k].most {
				k++
			}
			add(&b.BySeen[k], e-lo)
		}
		for e := begin; e < end; e++ { // events of a step do not see each other
			seen[[2]int32{s.Src[e], s.Dst[e]}]++
		}
	}
	for _, parts := range [][]Part{b.ByTime, b.BySeen} {
		for i := range parts {
			if p := &parts[i]; p.Events > 0 {
				p.MRR /= float64(p.Events)
				p.EdgeBank /= float64(p.Events)
			}
		}
	}
	return b
}

// write writes the breakdown into a run's directory.
func (b Breakdown) write(dir string) error {
	raw, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		return fmt.Errorf("events: writing the parts of the test: %w", err)
	}
	return atomicfile.WriteFile(filepath.Join(dir, breakdownFile), append(raw, '\n'), 0o644)
}

// BreakdownOf returns the breakdown of a run of [Train] that has measured its test.
func BreakdownOf(run *runs.Run) (b Breakdown, err error) {
	raw, err := os.ReadFile(filepath.Join(run.Dir, breakdownFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return b, fmt.Errorf("events: %s has no measures of parts of the test: it is no run of events.Train, or its test has not been measured", run.Dir)
	case err != nil:
		return b, fmt.Errorf("events: reading the parts of the test: %w", err)
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return b, fmt.Errorf("events: %s is damaged: %w", filepath.Join(run.Dir, breakdownFile), err)
	}
	return b, nil
}
