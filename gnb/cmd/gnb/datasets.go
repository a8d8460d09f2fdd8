package main

import (
	"context"
	"errors"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
	"github.com/graphnb/graphnb/graphops/dataset/registry/get"
)

// loadDataset opens the DATASET argument of a command: a directory, a generator, or a published
// dataset, which is downloaded, verified and converted at its first use.
func loadDataset(ctx context.Context, out *output, spec string) (*dataset.Dataset, error) {
	o, end := getOptions(out, "load "+spec)
	defer end()
	return get.Load(ctx, spec, o)
}

// loadSplitSet is loadDataset with the splits of one set.
func loadSplitSet(ctx context.Context, out *output, spec string, set int) (*dataset.Dataset, error) {
	ds, err := loadDataset(ctx, out, spec)
	if err != nil {
		return nil, err
	}
	view, err := ds.WithSplitSet(set)
	if err != nil {
		ds.Close()
	}
	return view, err
}

// getOptions shows the progress of getting or loading a dataset until the function that
// it returns is called.
func getOptions(out *output, what string) (get.Options, func()) {
	report, done := progress(out)
	report(what, "%", 0, 0) // until the first report
	o := get.Options{
		Progress: func(p get.Progress) {
			if p.Stage != "generate" { // most generators end at once, and programs that read events want the result
				out.event("progress", map[string]any{"stage": p.Stage, "file": p.File, "done": p.Done, "total": p.Total})
			}
			report(p.Stage+" "+p.File, unitOf(p.Stage), p.Done, p.Total)
		},
		Note: func(text string) { out.logf("gnb data: %s", text) },
	}
	return o, done
}

// unitOf returns the unit of progress for a stage of making a dataset.
func unitOf(stage string) string {
	if stage == "build" || stage == "generate" {
		return "%"
	}
	return "B"
}

// listDatasets is "gnb data list".
func listDatasets(out *output) error {
	list, err := dataset.List()
	if err != nil {
		return err
	}
	for _, l := range list {
		state := l.Kind
		switch {
		case l.Dir != "":
			state = "here"
		case l.Kind == "published":
			state = "to get"
		}
		out.printf("%-20s %-10s %s\n", l.Name, state, l.Summary)
	}
	out.result(map[string]any{"datasets": list})
	return nil
}

// getDataset is "gnb data get NAME".
func getDataset(ctx context.Context, out *output, name string) error {
	e, ok := registry.Find(name)
	if !ok {
		return errors.New("there is no published dataset " + name + "; gnb data list shows all")
	}
	start := time.Now()
	o, end := getOptions(out, "get "+name)
	dir, err := get.Get(ctx, e, o)
	end()
	if err != nil {
		return err
	}
	ds, err := dataset.Open(dir)
	if err != nil {
		return err
	}
	defer ds.Close()
	out.printf("%s\nin %s\n", ds, dir)
	out.result(map[string]any{
		"name": ds.Name(), "nodes": ds.Nodes(), "edges": ds.Edges(), "features": ds.FeatureDim(), "classes": ds.Classes(),
		"dir": dir, "seconds": time.Since(start).Seconds(),
	})
	return nil
}
