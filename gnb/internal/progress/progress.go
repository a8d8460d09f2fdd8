// Package progress shows bars for what precedes a run, such as generating and checking a dataset.
package progress

import (
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
)

// Bar shows how much of a task is done. Any goroutine may call its methods.
type Bar struct{ bar *live.Bar }

// Options say how a bar looks.
type Options struct {
	Unit  string        // "B" for bytes, "%"
	After time.Duration // shows nothing before the task has taken this long
	Quiet bool          // shows nothing
}

// Begin begins a bar; a total of 0 is unknown.
func Begin(label string, total int64, o Options) *Bar {
	return &Bar{live.ProgressWith(label, total, live.BarOptions{Options: live.Options{Quiet: o.Quiet}, Unit: o.Unit, After: o.After})}
}

// Set shows that done of total is done.
func (b *Bar) Set(done, total int64) { b.bar.Set(done, total) }

// Done ends the bar.
func (b *Bar) Done() { b.bar.Done() }
