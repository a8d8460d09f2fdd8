package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/outfile"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// numbersResult is what "gnb infer" prints of a run that predicts numbers.
type numbersResult struct {
	numbers.InferResult
	Values  map[string]float64 `json:"values,omitempty"`
	Columns []string           `json:"columns"`
	Notices notice.List        `json:"notices,omitempty"`
}

// inferNumbers writes predictions: an array, with the original ids beside it, or rows of the ids and the numbers.
func inferNumbers(ctx context.Context, run *runs.Run, ds *gnb.Dataset, file string, link *linkInfer, o gnb.InferOptions) (r numbersResult, err error) {
	if err := outfile.Check(file, true, true); err != nil {
		return r, cli.Usagef("%s", err)
	}
	if o.Layer != 0 {
		return r, cli.Usagef("--layer %d: run %s predicts numbers, which are those of the last layer; leave --layer out", o.Layer, run.Config.ID)
	}
	p, err := predictNumbers(ctx, run, ds, link, o)
	if err != nil {
		return r, err
	}
	p.Out = file
	r.InferResult, r.Columns, r.Notices, r.Values = p.InferResult, p.Names, p.Notices(), map[string]float64{}
	for _, v := range p.Values {
		r.Values[v.Name] = v.Value
	}
	if outfile.IsArray(file) {
		if err := dataset.WriteNPY(file, p.Rows.Rows, p.Rows.Cols, p.Rows.F32); err != nil || p.IDs == nil && p.Pairs == nil {
			return r, err
		}
		return r, writeIDs(file, func(yield func(string) bool) {
			for row := range p.Rows.Rows {
				if !yield(strings.Join(p.RowIDs(row), "\t")) {
					return
				}
			}
		})
	}
	return r, outfile.Write(file, append(p.IDNames(), p.Names...), func(yield func([]any) bool) {
		row := make([]any, 0, 2+p.Rows.Cols)
		for v := range p.Rows.Rows {
			row = row[:0]
			for _, id := range p.RowIDs(v) {
				row = append(row, id)
			}
			for _, x := range p.Rows.Row(v) {
				row = append(row, x)
			}
			if !yield(row) {
				return
			}
		}
	})
}

// predictNumbers predicts the numbers of nodes, of edges, or of the pairs that the flags give.
func predictNumbers(ctx context.Context, run *runs.Run, ds *gnb.Dataset, link *linkInfer, o gnb.InferOptions) (*numbers.Predictions, error) {
	if !numbers.TrainedEdges(run) {
		return numbers.Predict(ctx, run, ds, o)
	}
	po := numbers.PredictOptions{InferOptions: o, Training: link.training}
	if link.pairs == "" {
		return numbers.PredictEdges(ctx, run, ds, nil, po)
	}
	ids, err := ds.IDs()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := pairs.NewNames(ids)
	if had, err := numbers.OptionsOf(run); err == nil && had.Relation != "" && ds.Schema() != nil {
		r, err := pairs.NewRelation(ds.Schema(), had.Relation)
		if err != nil {
			return nil, err
		}
		names = names.Ends(r)
	}
	e, err := link.readPairs(names)
	if err != nil {
		return nil, err
	}
	return numbers.PredictEdges(ctx, run, ds, &e, po)
}

// writeIDs writes what says which node or edge each row is, a line for each, into a file beside that of the rows.
func writeIDs(file string, ids iter.Seq[string]) error {
	return atomicfile.WriteWith(strings.TrimSuffix(file, outfile.Array)+".ids.txt", 0o666, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		for id := range ids {
			fmt.Fprintln(b, id)
		}
		return b.Flush()
	})
}
