package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/outfile"
	"github.com/graphnb/graphnb/gnb/kg"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// inferTriplesFlags are the names of the flags for runs on knowledge graphs.
var inferTriplesFlags = []string{"triples", "complete", "best", "known"}

// checkTriples returns an error for flags that do not fit each other or a run on a knowledge graph.
func (i *linkInfer) checkTriples(run *runs.Run, given map[string]bool) error {
	for _, name := range inferTriplesFlags {
		if given[name] && !kg.Trained(run) {
			return fmt.Errorf("--%s is for runs on knowledge graphs, and run %s is none; train one by gnb train --task triples --decoder complex", name, run.Config.ID)
		}
	}
	if !kg.Trained(run) {
		return nil
	}
	for _, name := range []string{"workers", "device", "features"} {
		if given[name] {
			return fmt.Errorf("--%s does not apply to run %s, whose triples are scored in this process on the CPU", name, run.Config.ID)
		}
	}
	switch {
	case given["triples"] == given["complete"]:
		return fmt.Errorf("run %s is on a knowledge graph; give either --triples FILE, to score triples, or --complete FILE, to find heads or tails", run.Config.ID)
	case (given["best"] || given["known"]) && !given["complete"]:
		return fmt.Errorf("--best and --known go with --complete FILE, which is missing")
	case i.best < 1:
		return fmt.Errorf("--best is %d; it is the number of entities for each triple, 1 or more", i.best)
	}
	return nil
}

// runTriples scores or completes triples, and writes the result as CSV or scores as an array.
func (i *linkInfer) runTriples(ctx context.Context, run *runs.Run, ds *dataset.Dataset, out string, o gnb.InferOptions) (linkResult, error) {
	ko := kg.InferOptions{Final: o.Final, Threads: o.Threads, Known: i.known}
	entities, err := kg.Names(ds)
	if err != nil {
		return linkResult{}, err
	}
	data, err := kg.Triples(ds)
	if err != nil {
		return linkResult{}, err
	}
	file, unknown := i.triples, false
	if i.complete != "" {
		file, unknown = i.complete, true
	}
	t, err := readTriples(file, data, entities, unknown)
	if err != nil {
		return linkResult{}, err
	}
	name := func(v int32) string {
		if entities == nil {
			return strconv.Itoa(int(v))
		}
		return entities[v]
	}
	if err := outfile.Check(out, !unknown, true); err != nil {
		return linkResult{}, err
	}
	began, n := time.Now(), t.Len()
	r := linkResult{Triples: &n, Out: out}
	if !unknown {
		scores, err := kg.Score(ctx, run, ds, t, ko)
		if err != nil {
			return linkResult{}, err
		}
		r.Seconds = time.Since(began).Seconds()
		if outfile.IsArray(out) {
			return r, dataset.WriteNPY(out, n, 1, scores)
		}
		return r, outfile.Write(out, []string{"head", "relation", "tail", "score"}, func(yield func([]any) bool) {
			for k, x := range scores {
				if !yield([]any{name(t.Head[k]), data.RelationNames[t.Rel[k]], name(t.Tail[k]), x}) {
					return
				}
			}
		})
	}
	rows, err := kg.Complete(ctx, run, ds, t, i.best, ko)
	if err != nil {
		return linkResult{}, err
	}
	r.Seconds = time.Since(began).Seconds()
	return r, outfile.Write(out, []string{"head", "relation", "tail", "rank", "score"}, func(yield func([]any) bool) {
		for k, row := range rows {
			for j, c := range row {
				h, tail := t.Head[k], t.Tail[k]
				if h == kg.Unknown {
					h = c.Entity
				} else {
					tail = c.Entity
				}
				if !yield([]any{name(h), data.RelationNames[t.Rel[k]], name(tail), j + 1, c.Score}) {
					return
				}
			}
		}
	})
}

// readTriples reads triples, one a line: head, relation and tail with tabs between them, or commas in a
// file without tabs. Each is a name; entities of a dataset without names are numbers, so that a number never stands for
// another entity than the one of this name. A first line with names of columns, such as head, relation and tail, is a
// header. If unknown is set, the head or the tail of each line is "?".
func readTriples(path string, data *kg.Data, entities []string, unknown bool) (t kge.Triples, err error) {
	in, err := atomicfile.Open(path)
	if err != nil {
		return t, fmt.Errorf("reading triples: %w", err)
	}
	defer in.Close()
	entity, relation := numbersOf(entities), numbersOf(data.RelationNames)
	find := func(of map[string]int32, count int, what, text string) (int32, error) {
		if v, ok := of[text]; ok {
			return v, nil
		}
		if v, ok := of[strings.TrimSpace(text)]; ok {
			return v, nil
		}
		if len(of) > 0 {
			return 0, fmt.Errorf("there is no %s of the name %q among the %d of the dataset; give a name as the dataset has it", what, text, count)
		}
		if v, err := strconv.Atoi(text); err == nil && v >= 0 && v < count {
			return int32(v), nil
		}
		return 0, fmt.Errorf("there is no %s %q; the dataset has no names, so give a number from 0 to %d", what, text, count-1)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimPrefix(strings.TrimSuffix(lines.Text(), "\r"), "\ufeff")
		if strings.TrimSpace(text) == "" {
			continue
		}
		sep := ","
		if strings.Contains(text, "\t") {
			sep = "\t"
		}
		fields := strings.Split(text, sep)
		if len(fields) != 3 {
			return t, fmt.Errorf("%s: line %d is %q; a line has a head, a relation and a tail, with tabs between them", path, n, text)
		}
		if _, header := columns.TripleColumns(fields); header && n == 1 && !slices.ContainsFunc([]string{fields[0], fields[2]}, func(f string) bool { _, ok := entity[f]; return ok }) {
			continue
		}
		ends := [2]int32{kg.Unknown, kg.Unknown}
		for k, f := range []string{fields[0], fields[2]} {
			if f == "?" && unknown {
				continue
			}
			if ends[k], err = find(entity, data.Entities, "entity", f); err != nil {
				return t, fmt.Errorf("%s: line %d: %w", path, n, err)
			}
		}
		if unknown && (ends[0] == kg.Unknown) == (ends[1] == kg.Unknown) {
			return t, fmt.Errorf("%s: line %d is %q; exactly one of head and tail is ?, the one to find", path, n, text)
		}
		r, err := find(relation, data.Relations, "relation", fields[1])
		if err != nil {
			return t, fmt.Errorf("%s: line %d: %w", path, n, err)
		}
		t = t.Append(ends[0], r, ends[1])
	}
	if err := lines.Err(); err != nil {
		return t, fmt.Errorf("reading triples of %s: %w", path, err)
	}
	if t.Len() == 0 {
		return t, fmt.Errorf("%s has no triples; write one on each line: head, relation and tail, with tabs between them", path)
	}
	return t, nil
}

// numbersOf returns the number of each name.
func numbersOf(names []string) map[string]int32 {
	of := make(map[string]int32, len(names))
	for i, name := range names {
		of[name] = int32(i)
	}
	return of
}
