package main

import (
	"context"
	"errors"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset/registry/get"
	"github.com/graphnb/graphnb/graphops/datasets"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
)

// listDatasets is "gnb data list".
func listDatasets(out *cli.Output) error {
	list, err := datasets.List()
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
		out.Printf("%-20s %-10s %s\n", l.Name, state, l.Summary)
	}
	out.Result(map[string]any{"datasets": list})
	return nil
}

// getDataset is "gnb data get NAME".
func getDataset(ctx context.Context, out *cli.Output, name string) error {
	e, ok := registry.Find(name)
	if !ok {
		return errors.New("there is no published dataset " + name + "; gnb data list shows all")
	}
	start := time.Now()
	o, end := options.GetOptions(out, "get "+name)
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
	out.Printf("%s\nin %s\n", ds, dir)
	out.Result(map[string]any{
		"name": ds.Name(), "nodes": ds.Nodes(), "edges": ds.Edges(), "features": ds.FeatureDim(), "classes": ds.Classes(),
		"dir": dir, "seconds": time.Since(start).Seconds(),
	})
	return nil
}
