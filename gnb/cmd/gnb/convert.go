package main

import (
	"context"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// convertDetail returns the text of --help, including the formats.
func convertDetail() string {
	var s strings.Builder
	s.WriteString("Converts a file or folder of another program into the dataset directory DST, which must not exist. It detects the format, unless --format names it:\n\n")
	for _, r := range slices.Concat(convert.TypedReaders(), convert.Formats()) {
		s.WriteString("  " + r.Name() + strings.Repeat(" ", max(1, 12-len(r.Name()))) + r.About() + "\n")
	}
	s.WriteString("  tables      " + aboutTables + "\n")
	s.WriteString("\nNodes of an edge list or of arrays keep their numbers, unless --relabel renumbers those of an edge list; nodes of a table have the numbers of its lines, from 0, and the formats tables, typed-csv, triples and wordnet store the original ids or names. A dataset with a class for each node and no split gets ten random splits of 20 train and 30 val nodes per class. DST does not exist before it is complete.")
	return s.String()
}

// dataCommandOf returns the word after "gnb data": some of its commands have flags that the others lack.
func dataCommandOf(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

func runConvert(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("convert SRC DST", convertDetail())
	var o convert.Options
	fs.StringVar(&o.Format, "format", "auto", "`format` of SRC, as listed above")
	fs.StringVar(&o.Name, "name", "", "`name` of the dataset in a folder (default SRC's name)")
	fs.BoolVar(&o.Undirected, "undirected", false, "add the reverse of every edge")
	fs.StringVar(&o.Features, "features", "", "other features: `FILE.npy`, one-hot:FILE.csv, random:DIM, degree or constant")
	fs.StringVar(&o.Encode, "encode", "", "positional `encodings`, such as rw:16,laplacian:8")
	fs.StringVar(&o.Split, "split", "", "`split`: random, stratified, folds:K, or a file of indices")
	fs.StringVar(&o.FeatureType, "feature-type", "", "`type` of dense features, f32 or f16 (default SRC's)")
	fs.StringVar(&o.EdgeFeatures, "edge-features", "", "features of edges: `FILE.npy`, columns of edges.csv, or all")
	fs.StringVar(&o.EdgeTimes, "edge-times", "", "times of edges: `FILE.npy`, or a column of edges.csv")
	fs.StringVar(&o.EdgeFeatureType, "edge-feature-type", "", "`type` of edge features, f32 or f16")
	fs.BoolVar(&o.LargestComponent, "largest-component", false, "keep and renumber only the largest connected component")
	fs.BoolVar(&o.Relabel, "relabel", false, "renumber the nodes of an edge list by ascending id")
	var changes convert.Changes
	without := fs.String("without", "", "`relations` to leave out, separated by commas")
	fs.BoolVar(&changes.Reverses, "reverses", false, "add the reverse of each relation")
	fs.BoolVar(&changes.SelfLoops, "typed-loops", false, "add a relation of self-loops for each node type")
	fs.BoolVar(&o.OverlappingSplits, "overlapping-splits", false, "allow nodes in two of train, val and test")
	fs.Uint64Var(&o.Seed, "seed", 0, "random seed of features and splits")
	fs.IntVar(&o.Threads, "threads", 0, "number of threads (default all CPUs)")
	fs.StringVar(&o.Decimal, "decimal", "", "decimal `separator` of text tables, \",\" or \".\" (default guessed)")
	present := fs.String("present", "", "`words` that are values, such as None")
	fs.BoolVar(&o.ManyClasses, "many-classes", false, "allow more classes than labels usually have")
	fs.StringVar(&o.Header, "header", "", "first line of edges or triples names columns, `yes|no`")
	tab := newTableFlags(fs)
	rest, err := out.Parse(fs, args, 3, 3)
	if err != nil {
		return err
	}
	if err := convert.CheckAddress(rest[1]); err != nil {
		return err
	}
	if tab.chosen(fs, o.Format, rest[1]) {
		return tab.convert(ctx, fs, rest[1], rest[2], o, changes, out)
	}
	if *without != "" {
		changes.Without = strings.Split(*without, ",")
	}
	if err := tab.guide(&o, *present); err != nil {
		return err
	}
	o.Readers, o.Transform = convert.TypedReaders(), convert.Transform(changes)
	report, end := cli.Progress(out)
	defer end()
	o.Progress = func(done, total int64) { report("read", "B", done, total) }
	o.Finish = func(stage string, done, total int64) { report(stage+" "+rest[2], options.UnitOf(stage), done, total) }
	o.Notice = func(n notice.Notice) { out.Logf("gnb data: %s", n) }
	// Most of the memory is a few large arrays; collecting garbage early keeps the peak near them.
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	stats, err := convert.Convert(ctx, rest[1], rest[2], o)
	end()
	if err != nil {
		return err
	}
	out.Printf("%s, in %.2f s\nwritten to %s\n", stats, stats.Seconds, rest[2])
	out.Result(struct {
		convert.Stats
		Dir string `json:"dir"`
	}{stats, rest[2]})
	return nil
}
