package options

import (
	"context"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/registry/get"
)

// Load opens the DATASET argument of a command: a directory, a generator, or a published
// dataset, which is downloaded, verified and converted at its first use.
func Load(ctx context.Context, out *cli.Output, spec string) (*dataset.Dataset, error) {
	o, end := GetOptions(out, "load "+spec)
	defer end()
	return get.Load(ctx, spec, o)
}

// LoadSplitSet is Load with the splits of one set.
func LoadSplitSet(ctx context.Context, out *cli.Output, spec string, set int) (*dataset.Dataset, error) {
	ds, err := Load(ctx, out, spec)
	if err != nil {
		return nil, err
	}
	view, err := ds.WithSplitSet(set)
	if err != nil {
		ds.Close()
	}
	return view, err
}

// GetOptions shows the progress of getting or loading a dataset until the function that
// it returns is called.
func GetOptions(out *cli.Output, what string) (get.Options, func()) {
	report, done := cli.Progress(out)
	report(what, "%", 0, 0) // until the first report
	o := get.Options{
		Progress: func(p get.Progress) {
			if p.Stage != "generate" { // most generators end at once, and programs that read events want the result
				out.Event("progress", map[string]any{"stage": p.Stage, "file": p.File, "done": p.Done, "total": p.Total})
			}
			report(p.Stage+" "+p.File, UnitOf(p.Stage), p.Done, p.Total)
		},
		Note: func(text string) { out.Logf("gnb data: %s", text) },
	}
	return o, done
}

// UnitOf returns the unit of progress for a stage of making a dataset.
func UnitOf(stage string) string {
	if stage == "build" || stage == "generate" {
		return "%"
	}
	return "B"
}
