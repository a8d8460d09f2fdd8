package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/outfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/tables"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/machine"
)

const aboutTables = "a folder of tables in CSV, Parquet or Arrow, nodes and edges or nodes.TYPE and edges.SOURCE.RELATION.TARGET, with text, categories, dates and missing values; or a table of events with a source, a target and a time in each row"

// tableFlags are the flags of tables.
type tableFlags struct {
	kinds, layouts, unit, missing, fit, recipe string
	replace                                    bool
	events, bipartite                          bool
	questions                                  string
}

func newTableFlags(fs *flag.FlagSet) *tableFlags {
	t := &tableFlags{}
	fs.StringVar(&t.kinds, "kinds", "", "kinds of columns, such as `note=text,churned=label`")
	fs.StringVar(&t.layouts, "date-layout", "", "how tables write dates, such as `joined=2/1/2006`")
	fs.StringVar(&t.unit, "time-unit", "", "`unit` of edges' dates: s, ms, us or ns")
	fs.StringVar(&t.missing, "missing", "", "further `words` that mean a missing value")
	fs.StringVar(&t.fit, "fit", "", "`rows` that tables' recipe is fitted to: train, all, time")
	fs.StringVar(&t.recipe, "recipe", "", "`dataset` whose recipe encodes the tables")
	fs.BoolVar(&t.replace, "replace", false, "replace a dataset that was made of tables")
	fs.BoolVar(&t.events, "events", false, "read rows as events, each an edge of its own")
	fs.BoolVar(&t.bipartite, "bipartite", false, "events join two kinds of nodes (implies --events)")
	fs.StringVar(&t.questions, "questions", "", "events: `file` of answers about nodes over time")
	return t
}

var tableFlagNames = []string{"kinds", "date-layout", "time-unit", "missing", "fit", "recipe", "replace", "events", "bipartite", "questions"}

// chosen reports whether SRC is read as tables: by --format, by a flag of tables, or because it has files that only they
// can be.
func (t *tableFlags) chosen(fs *flag.FlagSet, format, src string) bool {
	if format != "auto" && format != "" {
		return format == "tables"
	}
	own, any := false, false
	fs.Visit(func(f *flag.Flag) {
		is := slices.Contains(tableFlagNames, f.Name)
		any, own = any || is, own || is && f.Name != "kinds" && f.Name != "missing" // other formats have these too
	})
	if own || tables.IsEvents(src) {
		return true
	}
	files, err := tables.Folder(src)
	if err != nil {
		return false
	}
	if any || files.Graphs != "" || files.Events {
		return true
	}
	for _, n := range files.Nodes {
		if !strings.Contains(n.Path, ".csv") && !strings.Contains(n.Path, ".tsv") {
			return true
		}
	}
	return false
}

// guide gives the formats other than tables the flags that they share with them.
func (t *tableFlags) guide(o *convert.Options, present string) error {
	kinds, err := pairsOf("kinds", t.kinds)
	if err != nil {
		return err
	}
	o.Kinds = map[string]columns.Kind{}
	for name, kind := range kinds {
		o.Kinds[name] = columns.Kind(kind)
	}
	if t.missing != "" {
		o.Missing = strings.Split(t.missing, ",")
	}
	if present != "" {
		o.Present = strings.Split(present, ",")
	}
	return nil
}

// pairsOf reads a list such as a=b,c=d.
func pairsOf(name, list string) (map[string]string, error) {
	all := map[string]string{}
	if list == "" {
		return all, nil
	}
	for _, p := range strings.Split(list, ",") {
		key, value, ok := strings.Cut(p, "=")
		if !ok || key == "" || value == "" {
			return nil, cli.Usagef("--%s: %q is not COLUMN=VALUE", name, p)
		}
		all[key] = value
	}
	return all, nil
}

func (t *tableFlags) convert(ctx context.Context, fs *flag.FlagSet, src, dst string, c convert.Options, changes convert.Changes, out *cli.Output) error {
	allowed := append([]string{"format", "name", "undirected", "reverses", "seed", "threads", "json", "decimal", "present", "many-classes", "encode", "split"}, tableFlagNames...)
	var wrong error
	fs.Visit(func(f *flag.Flag) {
		if !slices.Contains(allowed, f.Name) && wrong == nil {
			wrong = cli.Usagef("--%s is not for tables; gnb data convert --help says which flags are", f.Name)
		}
	})
	if wrong != nil {
		return wrong
	}
	kinds, err := pairsOf("kinds", t.kinds)
	if err != nil {
		return err
	}
	layouts, err := pairsOf("date-layout", t.layouts)
	if err != nil {
		return err
	}
	files, found, err := t.files(src)
	if err != nil {
		return err
	}
	files.Questions = t.questions
	if found {
		out.Logf("gnb data: %s", notice.Notice{Kind: notice.Guessed, Where: filepath.Base(src), What: "its rows are events, because a column has times by its name; the result is a graph of events", Option: "--format edgelist reads edges"})
	}
	o := tables.Options{Name: c.Name, Kinds: map[string]tables.Kind{}, Layouts: layouts, TimeUnit: t.unit, Present: c.Present, Decimal: c.Decimal, ManyClasses: c.ManyClasses, Fit: t.fit, Undirected: c.Undirected, Reverses: changes.Reverses, Seed: c.Seed, Threads: c.Threads, Encode: c.Encode, Split: c.Split, Replace: t.replace, Quiet: true}
	for name, kind := range kinds {
		o.Kinds[name] = tables.Kind(kind)
	}
	if t.missing != "" {
		o.Missing = strings.Split(t.missing, ",")
	}
	if t.recipe != "" {
		if o.Recipe, err = tables.ReadRecipe(t.recipe); err != nil {
			return err
		}
	}
	return writeTables(dst, true, out, func(said func(notice.Notice), report func(done, total int64)) (*dataset.Dataset, error) {
		o.Notice, o.Progress = said, report
		return tables.Read(ctx, dst, files, o)
	})
}

// files returns the tables at src: those of a folder, or the only table of events. found says that no flag names it one.
func (t *tableFlags) files(src string) (f tables.Files, found bool, err error) {
	events := t.events || t.bipartite
	f, err = tables.Folder(src)
	switch {
	case err == nil:
		f.Events, f.Bipartite = f.Events || events, t.bipartite
		return f, false, nil
	case events || tables.IsEvents(src):
		return tables.Files{Edges: []tables.Edges{{Path: src}}, Events: true, Bipartite: t.bipartite}, !events, nil
	}
	return f, false, err
}

// writeTables runs a conversion of tables and prints its result, and the recipe if show is set.
func writeTables(dst string, show bool, out *cli.Output, run func(said func(notice.Notice), report func(done, total int64)) (*dataset.Dataset, error)) error {
	start := time.Now()
	report, end := cli.Progress(out)
	defer end()
	defer debug.SetGCPercent(debug.SetGCPercent(25)) // most of the memory is a few large arrays
	var said notice.List
	ds, err := run(func(n notice.Notice) {
		said.Add(n)
		out.Logf("gnb data: %s", n)
	}, func(done, total int64) { report("read", "B", done, total) })
	end()
	if err != nil {
		return err
	}
	defer ds.Close()
	recipe, err := tables.ReadRecipe(ds.Dir())
	if err != nil {
		return err
	}
	stats := convert.Stats{Format: "tables", Name: ds.Name(), Nodes: ds.Nodes(), Edges: ds.Edges(), Features: ds.FeatureDim(), Classes: ds.Classes(), Targets: ds.TargetDim(), EdgeFeatures: ds.EdgeFeatureDim(), EdgeTimes: ds.HasEdgeTimes(), Events: ds.Meta.NumEvents, PeakRSSBytes: machine.PeakRSS(), Seconds: time.Since(start).Seconds(), Notices: said.Done()}
	if s := ds.Schema(); s != nil {
		stats.Relations = len(s.Relations)
	}
	if g := ds.Graphs; g != nil {
		stats.Graphs, stats.GraphClasses, stats.GraphTargets = ds.NumGraphs(), g.Classes(), g.TargetDim()
	}
	if a := ds.EdgeAnswers; a != nil {
		stats.EdgeTargets, stats.TargetEdges = a.TargetDim(), len(ds.EdgeRows)
	}
	if show {
		out.Printf("%s", recipe)
	}
	out.Printf("%s, in %.2f s\nwritten to %s\n", stats, stats.Seconds, dst)
	out.Result(struct {
		convert.Stats
		Dir string `json:"dir"`
	}{stats, dst})
	return nil
}

func runAppend(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("append DATASET TABLES DST", "Adds the nodes and edges of a folder of tables to a dataset that gnb data convert --format tables made, and writes the result as the directory DST. The dataset's recipe encodes the new rows, so a model that was trained on the dataset predicts them. The split \"new\" has the new nodes. TABLES has nodes or edges, or both, named as for gnb data convert.")
	var o tables.AppendOptions
	fs.StringVar(&o.Name, "name", "", "`name` of the result (default DST's name)")
	fs.BoolVar(&o.Replace, "replace", false, "replace a dataset that was made of tables")
	fs.IntVar(&o.Threads, "threads", 0, "number of threads (default all CPUs)")
	rest, err := out.Parse(fs, args, 4, 4)
	if err != nil {
		return err
	}
	files, err := tables.Folder(rest[2])
	if err != nil && len(files.Nodes)+len(files.Edges) == 0 {
		return err
	}
	ds, err := dataset.Open(rest[1])
	if err != nil {
		return err
	}
	defer ds.Close()
	o.Quiet = true
	return writeTables(rest[3], false, out, func(said func(notice.Notice), report func(done, total int64)) (*dataset.Dataset, error) {
		o.Notice, o.Progress = said, report
		return tables.Append(ctx, rest[3], ds, files, o)
	})
}

// inferNodes computes the output for all nodes, and writes it with the original ids if the dataset has them.
func inferNodes(ctx context.Context, run *runs.Run, ds *gnb.Dataset, file string, o gnb.InferOptions) (gnb.InferResult, error) {
	if err := outfile.Check(file, true, true); err != nil {
		return gnb.InferResult{}, cli.Usagef("%s", err)
	}
	if !outfile.IsArray(file) {
		return inferTable(ctx, run, ds, file, o)
	}
	r, err := gnb.Infer(ctx, run, ds, file, o)
	if err != nil {
		return r, err
	}
	ids, err := r.IDs()
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return r, writeIDs(file, slices.Values(ids))
}

// inferTable writes a line for each node: its id, the most probable class and the probability.
func inferTable(ctx context.Context, run *runs.Run, ds *gnb.Dataset, file string, o gnb.InferOptions) (r gnb.InferResult, err error) {
	if o.Layer != 0 {
		return r, cli.Usagef("--out %s: a hidden layer has no classes to write as a table; name a file that ends in .npy", file)
	}
	if ds.MultiLabels != nil && ds.MultiLabels.Cols > 1 {
		return r, cli.Usagef("--out %s: a node of %s can have several classes, so there is no most probable one; name a file that ends in .npy", file, ds.Name())
	}
	dir, err := os.MkdirTemp("", "gnb-infer-")
	if err != nil {
		return r, fmt.Errorf("gnb infer: %w", err)
	}
	defer os.RemoveAll(dir)
	if r, err = gnb.Infer(ctx, run, ds, filepath.Join(dir, "logits.npy"), o); err != nil {
		return r, err
	}
	logits, err := r.Logits()
	if err != nil {
		return r, err
	}
	ids, err := r.IDs()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	r.Out = file
	all := predicted{ds, logits, ids}
	return r, outfile.Write(file, []string{"id", "class", "probability"}, func(yield func([]any) bool) {
		for v := range ds.Nodes() {
			if id, class, probability := all.of(v); !yield([]any{id, class, outfile.Probability(probability)}) {
				return
			}
		}
	})
}

// predicted are the predictions for the nodes of a dataset; ids may be nil.
type predicted struct {
	ds     *gnb.Dataset
	logits *dataset.Matrix
	ids    []string
}

// of returns the id of a node, its most probable class and the probability. One column is the logit of class 1 of two.
func (p predicted) of(v int) (id, class string, probability float64) {
	row := p.logits.Row(v)
	if len(row) == 1 {
		row = []float32{0, row[0]}
	}
	best, sum := nn.Argmax(row), 0.0
	for _, z := range row {
		sum += math.Exp(float64(z - row[best]))
	}
	id, class = fmt.Sprint(v), fmt.Sprint(best)
	if p.ids != nil {
		id = p.ids[v]
	}
	if names := p.ds.Meta.ClassNames; len(names) == len(row) {
		class = names[best]
	}
	return id, class, 1 / sum
}
