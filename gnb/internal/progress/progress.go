// Package progress shows progress bars for work before a run, such as generating and checking a
// dataset.
package progress

import (
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
)

// Bar shows the progress of a task. Any goroutine may call its methods.
type Bar struct{ bar *live.Bar }

// Options configure a bar.
type Options struct {
	Unit  string        // "B" for bytes, "%"
	After time.Duration // shows nothing before the task has taken this long
	Quiet bool          // shows nothing
}

// Begin starts a bar; a total of 0 means unknown.
func Begin(label string, total int64, o Options) *Bar {
	return &Bar{live.ProgressWith(label, total, live.BarOptions{Options: live.Options{Quiet: o.Quiet}, Unit: o.Unit, After: o.After})}
}

// Set shows the amount done out of total.
func (b *Bar) Set(done, total int64) { b.bar.Set(done, total) }

// Done ends the bar.
func (b *Bar) Done() { b.bar.Done() }
