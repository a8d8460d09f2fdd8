package main

import (
	"context"
	"errors"
	"io/fs"
	"math"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/outfile"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// inferGraphs writes what the network of a run of graphs says of each graph of a dataset, or its pooled rows.
func inferGraphs(ctx context.Context, out *cli.Output, run *runs.Run, ds *gnb.Dataset, file string, pooled bool, o gnb.InferOptions) error {
	if err := outfile.Check(file, true, true); err != nil {
		return cli.Usagef("%s", err)
	}
	if pooled && !outfile.IsArray(file) {
		return cli.Usagef("--out %s: pooled rows are an array; name a file that ends in .npy", file)
	}
	infer := graphs.Infer
	if pooled {
		infer = graphs.Embed
	}
	a, err := infer(ctx, run, ds, graphs.InferOptions{InferOptions: o})
	if err != nil {
		return err
	}
	ids, err := idsOfGraphs(ds)
	if err != nil {
		return err
	}
	switch {
	case outfile.IsArray(file):
		err = dataset.WriteNPY(file, a.Rows.Rows, a.Rows.Cols, a.Rows.F32)
	case a.Numeric():
		err = outfile.Write(file, append([]string{"graph"}, a.Columns()...), tableOfGraphs(a, ids, func(row []any, g int) []any {
			for _, x := range a.Row(g) {
				row = append(row, x)
			}
			return row
		}))
	case a.Several():
		err = outfile.Write(file, append([]string{"graph"}, a.Columns()...), tableOfGraphs(a, ids, func(row []any, g int) []any {
			for _, x := range a.Row(g) {
				row = append(row, outfile.Probability(1/(1+math.Exp(-float64(x)))))
			}
			return row
		}))
	default:
		err = outfile.Write(file, []string{"graph", "class", "probability"}, tableOfGraphs(a, ids, func(row []any, g int) []any {
			class, p := a.Class(g)
			return append(row, a.ClassName(class), outfile.Probability(p))
		}))
	}
	if err != nil {
		return err
	}
	fields := map[string]any{"graphs": a.Rows.Rows, "seconds": a.Seconds, "weights": a.Weights, "out": file}
	if len(a.Notices) > 0 {
		fields["notices"] = a.Notices
	}
	out.Result(fields)
	out.Printf("%d graphs in %.3f s\n%s\n", a.Rows.Rows, a.Seconds, file)
	return nil
}

// idsOfGraphs returns the original ids of the graphs of a dataset that was made of tables, nil for another.
func idsOfGraphs(ds *gnb.Dataset) ([]string, error) {
	ids, err := ds.GraphIDs()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return ids, err
}

// tableOfGraphs yields a row for each graph, which begins with its original id, or with its number.
func tableOfGraphs(a *graphs.Answers, ids []string, fill func(row []any, g int) []any) func(yield func([]any) bool) {
	return func(yield func([]any) bool) {
		for g := range a.Rows.Rows {
			name := any(g)
			if ids != nil {
				name = ids[g]
			}
			if !yield(fill([]any{name}, g)) {
				return
			}
		}
	}
}
