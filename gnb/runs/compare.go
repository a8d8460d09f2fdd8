package runs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// Comparison holds, for several runs, the settings in which they differ and their results. See
// [Compare].
type Comparison struct {
	Runs []*Run
	// Settings are the settings that differ, in the order of their names.
	Settings []ComparedField
	// Results are the values that at least one of the runs reported.
	Results []ComparedField
}

// ComparedField is a field of the runs of a [Comparison].
type ComparedField struct {
	Name string
	// Values has a value for each run, "" where the run lacks the field.
	Values []string
}

// Compare compares runs by the settings in which they differ, their results, and their curves in
// one chart. In a cell it shows the curves as a picture; print the comparison for the rest. A run
// that is still training is included with its values so far.
//
//	runs.Compare(gnb.Must(runs.List(ctx, runs.Options{Filter: "dataset=planted", Sort: "-val_accuracy"}))...)
func Compare(runs ...*Run) Comparison {
	entry.Enter()
	c := newComparison(runs)
	if len(c.Runs) > 0 && !multigpu.InWorker() {
		p := c.picture()
		_ = live.ShowComparison(p, c.text(p)) // a broken display is no failure of the comparison
	}
	return c
}

// compareEvery is the interval at which CompareLive reads new metrics. It may spend at most
// 1/compareShare of the time on that.
const (
	compareEvery = time.Second
	compareShare = 20
)

// CompareLive is [Compare] for runs that other notebooks or terminals are training: it updates the
// comparison in place until all runs have ended, and returns the final comparison. A cell shows
// the picture, a terminal the text; a pipe gets the changed text on standard error, at most every
// 10 s. When ctx is cancelled (■) CompareLive returns the comparison so far; the runs continue.
func CompareLive(ctx context.Context, runs ...*Run) (Comparison, error) {
	entry.Enter()
	if multigpu.InWorker() {
		return Comparison{}, entry.ErrWorker
	}
	ctx, stop := multigpu.Interruptible(ctx)
	defer stop()
	start := time.Now()
	c, going, err := newComparison(runs).again()
	if err != nil {
		return c, err
	}
	sink := live.NewComparison(screen.Options{})
	for {
		p := c.picture()
		text := c.text(p)
		if going == 0 {
			p.State = screen.Done
			_ = sink.Close(p, text) // a broken display is no failure of the comparison
			return c, nil
		}
		left := fmt.Sprintf("%d of %s", going, phrase.Count(len(c.Runs), "run"))
		p.State = screen.Running
		sink.Update(p, text+"\nstill going: "+left)
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(max(compareEvery, compareShare*time.Since(start))):
			start = time.Now()
			var now Comparison
			if now, going, err = c.again(); err == nil {
				c = now
			}
		}
		if err != nil {
			p.State = screen.Interrupted
			_ = sink.Close(p, text+"\nno longer watched, and still going: "+left)
			return c, err
		}
	}
}

// again compares the same runs in their current state and counts those still training.
func (c Comparison) again() (now Comparison, going int, err error) {
	runs := slices.Clone(c.Runs)
	for i, r := range runs {
		if runfile.InUse(r.Dir) { // check before reading, so that the last read sees everything the run wrote
			going++
		}
		if runs[i], err = Open(r.Dir); err != nil {
			return c, going, err
		}
	}
	return newComparison(runs), going, nil
}

// newComparison compares runs and skips nil ones.
func newComparison(runs []*Run) Comparison {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r *Run) bool { return r == nil })
	c := Comparison{Runs: runs}
	settings, results := make([]map[string]string, len(runs)), make([]map[string]string, len(runs))
	for i, r := range runs {
		settings[i], results[i] = r.settings(), r.outcome()
	}
	c.Settings = slices.DeleteFunc(rows(settings), func(row ComparedField) bool { return len(slices.Compact(slices.Clone(row.Values))) == 1 })
	c.Results = rows(results)
	return c
}

func rows(of []map[string]string) []ComparedField {
	names := map[string]bool{}
	for _, m := range of {
		for n := range m {
			names[n] = true
		}
	}
	var out []ComparedField
	for _, n := range slices.Sorted(maps.Keys(names)) {
		row := ComparedField{Name: n}
		for _, m := range of {
			row.Values = append(row.Values, m[n])
		}
		out = append(out, row)
	}
	return out
}
