package getdata

import (
	"context"
	"os"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
)

// Bar shows the progress of a task. Any goroutine may call its methods.
type Bar struct{ bar *screen.Bar }

// BarOptions configure a bar.
type BarOptions struct {
	Unit  string        // "B" for bytes, "%"
	After time.Duration // shows nothing before the task has taken this long
	Quiet bool          // shows nothing
}

// Begin starts a bar; a total of 0 means unknown.
func Begin(label string, total int64, o BarOptions) *Bar {
	return &Bar{screen.Progress(label, total, screen.BarOptions{Options: screen.Options{Quiet: o.Quiet}, Unit: o.Unit, After: o.After})}
}

// Set shows the amount done out of total.
func (b *Bar) Set(done, total int64) { b.bar.Set(done, total) }

// Done ends the bar.
func (b *Bar) Done() { b.bar.Done() }

// Check checks a dataset before a run, as [dataset.Dataset.CheckOnce] does, and shows a bar if that
// takes long. For a dataset in memory it returns the memory file that workers map, which the
// dataset keeps and so checks only once too; the caller closes it.
func Check(ctx context.Context, d *dataset.Dataset, o dataset.CheckOnceOptions, quiet bool) (*os.File, error) {
	bar := Begin("checking "+d.Name()+", the first time", 0, BarOptions{Unit: "B", After: time.Second, Quiet: quiet})
	defer bar.Done()
	o.Report = bar.Set
	if divided.Is(d) {
		return nil, divided.CheckOnce(ctx, d, o)
	}
	if d.Stored() {
		return nil, d.CheckOnce(ctx, o)
	}
	return d.Share(ctx, o)
}
