package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/outfile"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// numbersResult is what "gnb infer" prints of a run that predicts numbers.
type numbersResult struct {
	numbers.InferResult
	Values  map[string]float64 `json:"values,omitempty"`
	Columns []string           `json:"columns"`
	Notices notice.List        `json:"notices,omitempty"`
}

// inferNumbers writes predictions: an array, with the original ids beside it, or rows of the id and the numbers.
func inferNumbers(ctx context.Context, run *runs.Run, ds *gnb.Dataset, file string, o gnb.InferOptions) (r numbersResult, err error) {
	if err := outfile.Check(file, true, true); err != nil {
		return r, cli.Usagef("%s", err)
	}
	if o.Layer != 0 {
		return r, cli.Usagef("--layer %d: run %s predicts numbers, which are those of the last layer; leave --layer out", o.Layer, run.Config.ID)
	}
	p, err := numbers.Predict(ctx, run, ds, o)
	if err != nil {
		return r, err
	}
	p.Out = file
	r.InferResult, r.Columns, r.Notices, r.Values = p.InferResult, p.Names, p.Notices(), map[string]float64{}
	for _, v := range p.Values {
		r.Values[v.Name] = v.Value
	}
	if outfile.IsArray(file) {
		if err := dataset.WriteNPY(file, p.Rows.Rows, p.Rows.Cols, p.Rows.F32); err != nil || p.IDs == nil {
			return r, err
		}
		return r, writeIDs(file, p.IDs)
	}
	return r, outfile.Write(file, append([]string{"id"}, p.Names...), func(yield func([]any) bool) {
		row := make([]any, 1+p.Rows.Cols)
		for v := range p.Rows.Rows {
			if row[0] = fmt.Sprint(v); p.IDs != nil {
				row[0] = p.IDs[v]
			}
			for c, x := range p.Rows.Row(v) {
				row[1+c] = x
			}
			if !yield(row) {
				return
			}
		}
	})
}

// writeIDs writes the original ids of the nodes, one a line, into a file beside that of their rows.
func writeIDs(file string, ids []string) error {
	return atomicfile.WriteWith(strings.TrimSuffix(file, outfile.Array)+".ids.txt", 0o666, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		for _, id := range ids {
			fmt.Fprintln(b, id)
		}
		return b.Flush()
	})
}
