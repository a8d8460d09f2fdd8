package cli

import (
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// showAfter is the delay before progress is shown.
const showAfter = time.Second

// Progress shows the progress of a task, in a unit such as "B" for bytes, with the remaining time,
// until end is called or a report has another label. Any goroutine may report. With --json nothing
// is shown.
func Progress(out *Output) (report func(label, unit string, done, total int64), end func()) {
	var (
		mu    sync.Mutex
		bar   *screen.Bar
		shown string
		last  int64
	)
	finish := func() {
		if bar != nil {
			bar.Done()
			bar = nil
		}
	}
	report = func(label, unit string, done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if bar == nil || label != shown || done < last {
			finish()
			shown = label
			bar = screen.Progress(out.command.Name+": "+label, total, screen.BarOptions{
				Options: screen.Options{Quiet: out.JSON, Out: out.Stderr}, Unit: unit, After: showAfter,
			})
		}
		bar.Set(done, total)
		last = done
	}
	return report, func() {
		mu.Lock()
		defer mu.Unlock()
		finish()
	}
}
