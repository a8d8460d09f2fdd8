package main

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/outfile"
	"github.com/graphnb/graphnb/gnb/events"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/phrase"
)

// inferEvents writes the scores of pairs, or the likeliest destinations of the next events of nodes, as of a moment.
func (i *linkInfer) inferEvents(ctx context.Context, out *cli.Output, run *runs.Run, ds *gnb.Dataset, file string, o gnb.InferOptions) error {
	switch {
	case o.Layer != 0:
		return cli.Usagef("--layer %d: run %s is on events, and its nodes have no rows without a moment; leave --layer out", o.Layer, run.Config.ID)
	case i.pairs == "" && i.k == 0:
		return cli.Usagef("run %s is on events; give --recommend K, for the likeliest destinations of the next events, or --pairs FILE, to score pairs", run.Config.ID)
	}
	if err := outfile.Check(file, true, true); err != nil {
		return cli.Usagef("%s", err)
	}
	po, names, err := i.moment(ds, o)
	if err != nil {
		return err
	}
	began := time.Now()
	if i.pairs != "" {
		e, err := i.readPairs(names)
		if err != nil {
			return err
		}
		scores, err := events.Score(ctx, run, ds, e.Src, e.Dst, po)
		if err != nil {
			return err
		}
		if outfile.IsArray(file) {
			err = dataset.WriteNPY(file, e.Len(), 1, scores)
		} else {
			err = writeScores(file, names, e, scores)
		}
		out.Result(map[string]any{"pairs": e.Len(), "seconds": time.Since(began).Seconds(), "out": file})
		out.Printf("%s in %.3f s\n%s\n", phrase.Count(e.Len(), "pair"), time.Since(began).Seconds(), file)
		return err
	}
	ro := events.RecommendOptions{PredictOptions: po, ExcludeKnown: i.exclude}
	nodes, err := readNodes(names, i.nodes)
	if err != nil {
		return err
	}
	if ro.Candidates, err = readCandidates(names, i.candidates); err != nil {
		return err
	}
	r, err := events.Recommend(ctx, run, ds, nodes, i.k, ro)
	if err != nil {
		return err
	}
	if outfile.IsArray(file) {
		err = dataset.WriteIDRows(file, len(r.Nodes), i.k, r.IDs)
	} else {
		err = writeTop(file, names, r.Nodes, r.Top)
	}
	out.Result(map[string]any{"nodes": len(r.Nodes), "events": r.Events, "as_of": r.AsOf, "seconds": time.Since(began).Seconds(), "out": file})
	out.Printf("%s, by %s up to time %d, in %.3f s\n%s\n", phrase.Count(len(r.Nodes), "node"), phrase.Count(r.Events, "event"), r.AsOf, time.Since(began).Seconds(), file)
	return err
}

// moment returns as of when to answer, and the names of nodes.
func (i *linkInfer) moment(ds *gnb.Dataset, o gnb.InferOptions) (po events.PredictOptions, names pairs.Names, err error) {
	po = events.PredictOptions{Final: o.Final, Threads: o.Threads}
	if i.asOf != "" {
		t, err := momentOf(i.asOf, ds)
		if err != nil {
			return po, names, err
		}
		po.AsOf = &t
	}
	ids, err := ds.IDs()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return po, names, err
	}
	return po, pairs.NewNames(ids), nil
}

// inferNodeEvents writes a run's answers about nodes as of a moment: rows of the id, the time and the answer, or an array with the ids beside
// it.
func (i *linkInfer) inferNodeEvents(ctx context.Context, out *cli.Output, run *runs.Run, ds *gnb.Dataset, file string, o gnb.InferOptions) error {
	if o.Layer != 0 {
		return cli.Usagef("--layer %d: run %s answers about nodes as of a moment, by the last layer; leave --layer out", o.Layer, run.Config.ID)
	}
	if err := outfile.Check(file, true, true); err != nil {
		return cli.Usagef("%s", err)
	}
	po, names, err := i.moment(ds, o)
	if err != nil {
		return err
	}
	nodes, err := readNodes(names, i.nodes)
	if err != nil {
		return err
	}
	began := time.Now()
	p, err := events.PredictNodes(ctx, run, ds, nodes, po)
	if err != nil {
		return err
	}
	at := temporal.Moment(p.AsOf, ds.Meta.TimeUnit)
	if outfile.IsArray(file) {
		if err = dataset.WriteNPY(file, p.Rows.Rows, p.Rows.Cols, p.Rows.F32); err == nil {
			err = writeIDs(file, func(yield func(string) bool) {
				for _, v := range p.Nodes {
					if !yield(names.Of(v)) {
						return
					}
				}
			})
		}
	} else {
		err = outfile.Write(file, append([]string{"id", "time"}, p.Names...), func(yield func([]any) bool) {
			for r, v := range p.Nodes {
				row := []any{names.Of(v), at}
				for _, x := range p.Rows.Row(r) {
					row = append(row, x)
				}
				if !yield(row) {
					return
				}
			}
		})
	}
	if err != nil {
		return err
	}
	out.Result(map[string]any{"nodes": len(p.Nodes), "events": p.Events, "as_of": p.AsOf, "until": p.Until, "columns": p.Names, "seconds": time.Since(began).Seconds(), "out": file})
	out.Printf("%s as of %s, about the time until %s, by %s, in %.3f s\n%s\n", phrase.Count(len(p.Nodes), "node"), at, temporal.Moment(p.Until, ds.Meta.TimeUnit), phrase.Count(p.Events, "event"), time.Since(began).Seconds(), file)
	return nil
}

// momentOf reads a time: a number in the unit of a dataset's times, or a date or RFC 3339 time if they count since 1970; a date without a
// zone is in UTC.
func momentOf(text string, ds *gnb.Dataset) (int64, error) {
	if t, err := strconv.ParseInt(text, 10, 64); err == nil {
		return t, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		switch ds.Meta.TimeUnit {
		case dataset.Seconds:
			return t.Unix(), nil
		case dataset.Milliseconds:
			return t.UnixMilli(), nil
		case dataset.Microseconds:
			return t.UnixMicro(), nil
		case dataset.Nanoseconds:
			return t.UnixNano(), nil
		}
		return 0, cli.Usagef("--as-of is the date %q, and the times of %s are plain numbers; give a number in their unit, or convert the data with --time-unit", text, ds.Name())
	}
	return 0, cli.Usagef("--as-of is %q; it is a number in the unit of the events' times, a date such as 2026-11-30 (in UTC), or a time such as 2026-11-30T09:00:00+01:00", text)
}
