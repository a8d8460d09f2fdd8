package saving

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// truncateMetrics removes from a run's metrics the events that a resumed run will report again:
// those from the position of its checkpoint on (see [runs.Event]). It keeps restarts, which are not
// repeated, and appends the events in then. It also removes damaged lines; lost names them.
func truncateMetrics(r *runs.Run, at [3]int, then ...*runs.Event) (lost, err error) {
	var keep []byte
	put := func(e runs.Event) {
		if b, err := json.Marshal(e); err == nil {
			keep = runfile.AppendLine(keep, b)
		}
	}
	lost = r.Events(func(e runs.Event) {
		if e.Kind == runs.KindSteps {
			e.Records = slices.DeleteFunc(e.Records, func(s runs.Step) bool { return !before(s.At, at) })
			if len(e.Records) == 0 {
				return
			}
		} else if e.Kind != runs.KindRestart && !before(e.At, at) {
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
		return nil, fmt.Errorf("gnb: cutting the metrics of a run that resumes: %w", err)
	}
	return lost, nil
}

func before(a, b [3]int) bool { return slices.Compare(a[:], b[:]) < 0 }
