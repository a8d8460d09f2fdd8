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

// Ready checks a dataset before it is used, as [divided.CheckOnce] does, and shows a bar if that takes long. It is the
// one door for data: what passes has values that no sampler, planner or model trips over. A nil dataset passes.
func Ready(ctx context.Context, d *dataset.Dataset, o dataset.CheckOnceOptions, quiet bool) error {
	if d == nil {
		return nil
	}
	bar := Begin("checking "+d.Name()+", the first time", 0, BarOptions{Unit: "B", After: time.Second, Quiet: quiet})
	defer bar.Done()
	o.Report = bar.Set
	return divided.CheckOnce(ctx, d, o)
}

// Opened is [Ready] for a dataset of a directory. One in memory passes: the check before a run reads it.
func Opened(ctx context.Context, d *dataset.Dataset, quiet bool) error {
	if d == nil || d.Dir() == "" {
		return nil
	}
	return Ready(ctx, d, dataset.CheckOnceOptions{}, quiet)
}

// Check is [Ready] before a run. For a dataset in memory it returns the memory file that workers map, which the
// dataset keeps and so checks only once too; the caller closes it.
func Check(ctx context.Context, d *dataset.Dataset, o dataset.CheckOnceOptions, quiet bool) (*os.File, error) {
	if divided.Is(d) || d.Stored() {
		return nil, Ready(ctx, d, o, quiet)
	}
	bar := Begin("checking "+d.Name()+", the first time", 0, BarOptions{Unit: "B", After: time.Second, Quiet: quiet})
	defer bar.Done()
	o.Report = bar.Set
	return d.Share(ctx, o)
}
