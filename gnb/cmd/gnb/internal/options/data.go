package options

import (
	"context"
	"flag"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/registry/get"
	"github.com/graphnb/graphnb/graphops/divided"
)

// Verify adds the flag with which [Load] compares all files with their digests.
func Verify(out *cli.Output, fs *flag.FlagSet) {
	fs.BoolVar(&out.Verify, "verify", false, "read all files first, and compare their digests")
}

// Load is [Open], and checks the dataset before the command uses it.
func Load(ctx context.Context, out *cli.Output, spec string) (*dataset.Dataset, error) {
	ds, err := Open(ctx, out, spec)
	return checked(ctx, out, ds, err)
}

// LoadToWrite is Load for a dataset that is only written: the features of a generated one are drawn meanwhile.
func LoadToWrite(ctx context.Context, out *cli.Output, spec string) (*dataset.Dataset, error) {
	o, end := GetOptions(out, "load "+spec)
	o.ToWrite = true
	ds, err := get.Load(ctx, spec, o)
	end()
	return checked(ctx, out, ds, err)
}

// checked checks a dataset that was opened.
func checked(ctx context.Context, out *cli.Output, ds *dataset.Dataset, err error) (*dataset.Dataset, error) {
	if err != nil || ds.Dir() == "" {
		return ds, err
	}
	report, end := cli.Progress(out)
	err = divided.CheckOnce(ctx, ds, dataset.CheckOnceOptions{
		Verify: out.Verify, Report: func(done, total int64) { report("check "+ds.Name(), "B", done, total) },
	})
	end()
	if err != nil {
		ds.Close()
		return nil, err
	}
	return ds, nil
}

// Open opens the DATASET argument of a command: a directory, a generator, or a published
// dataset, which is downloaded, verified and converted at its first use.
func Open(ctx context.Context, out *cli.Output, spec string) (*dataset.Dataset, error) {
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
