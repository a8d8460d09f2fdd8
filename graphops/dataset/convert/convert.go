// Package convert converts graphs from the file formats of other tools into dataset directories.
//
// # Basics
//
// [Convert] detects the format of a file or folder, reads it, and writes a directory that
// [dataset.Open] opens. [Formats] lists the formats. The directory gets its name only when it is
// complete and synced, so a failed or killed conversion leaves no directory of that name.
//
// # What becomes of the nodes and edges
//
// Node ids stay as they are. An edge list does not store the number of nodes, so it is the largest
// id plus 1; ids that do not occur are nodes without neighbours, which a notice counts. If fewer than half of the ids
// occur, the conversion fails. Options.Relabel avoids this: it renumbers the ids that occur in
// ascending order, and the directory has the ids ([dataset.Dataset.IDs]). Formats whose first node is 1 (METIS, DIMACS,
// Graphs.jl, MatrixMarket) are renumbered from 0.
//
// An edge that occurs several times is kept once; where edges have weights, the
// weights are added, and where they have features, these are averaged. Edges of different times are
// different edges. Weights that are all 1 after that are dropped. Options.Undirected adds
// the opposite of each edge; an edge that is listed in both directions then counts as listed twice.
// A note says how many edges were merged.
//
// A dataset with a class for each node but no split gets ten random splits: see [RandomSplits]. One with numbers to predict
// and no split gets one at random: 60 % of the nodes with a target for train, 20 % for val and 20 % for test.
// Options.Split replaces the splits of the input.
//
// A note names the files of a folder that were not read.
//
// # Types
//
// [TypedReaders] read graphs whose nodes and edges have types: a folder with a table for each type, OGB's
// folders with types, DGL's CSVDataset, WordNet, and triples of a knowledge graph.
//
//	stats, err := convert.Convert(ctx, src, dst, convert.Options{
//		Readers:   convert.TypedReaders(),
//		Transform: convert.Transform(convert.Changes{Reverses: true}),
//	})
//
// The nodes of each type have successive ids, in the order of the types. Files of names in the
// directory of the result, one name a line in the order of ids within the type, lead from an id back
// to its name ([dataset.ReadNames]). Memory is that of the result, plus the names and, while the graph
// is built, some 30 bytes per edge.
//
// # Caveats
//
// Files are not trusted. Sizes in a header are compared with the file's size before memory is
// allocated, compressed data that expands more than lists of numbers can is refused, no input is
// executed, and the whole dataset is checked ([dataset.Dataset.Check]) before it is written. Errors
// name the file, the position and the reason.
//
// Refusing a file costs at most four times its size in memory, plus a fixed part: the program, 2
// MiB per thread for blocks of text, the first 4 MiB of decompressed text in parsed form (too
// little to tell a decompression bomb by its ratio), together 15 to 25 MB in the worst case, and
// the dictionary of an .xz file, at most 64 MiB. For compressed text that is valid up to the error,
// "its size" is the decompressed size: an edge takes 8 bytes in memory, however well its line is
// compressed.
package convert

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/encode"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/internal/tabular"
)

// Options says how to convert. The zero value detects the format and changes nothing else.
type Options struct {
	// Format is the name of one of the [Formats]; "" and "auto" detect the format.
	Format string
	// Name chooses a dataset if the folder holds several, and names the result. The default is the
	// name of the file or folder.
	Name string
	// Undirected adds the opposite of every edge.
	Undirected bool
	// Features replaces the features: "FILE.npy" reads an array [nodes, any]; "one-hot:FILE.csv"
	// reads a line of class ids for each node and sets a 1 for the id at position r of the line in
	// the block of columns of position r; "random:DIM" draws DIM random columns; "degree" sets a 1 in the column of the
	// node's in-degree, where "degree:MAX" counts larger degrees as MAX; "constant" is one column of 1. For TU folders,
	// "labels" and "attributes" leave out the nodes' attributes and labels.
	Features string
	// Split divides the nodes, or the graphs of a dataset of many: "random:TRAIN,VAL,TEST" by shares; "stratified:TRAIN,VAL,TEST"
	// the same for each class; "folds:K" makes K sets of splits, of which set k tests on fold k and validates on the next;
	// "per-class:TRAIN,VAL,TEST" makes ten sets of TRAIN nodes of each class and VAL and TEST others (see [DrawSplits]); a
	// file or folder has lists of indices from 0: see [readSplits]. "" keeps the splits of the input. Graphs without any get
	// 80 % train, 10 % val and 10 % test, of each class if they have classes.
	Split string
	// Encode adds positional encodings to the features, as a list for [encode.Parse]: "rw:16,laplacian:8".
	Encode string
	// FeatureType is the stored type of dense features: see [dataset.WriteOptions].
	FeatureType string
	// EdgeFeatures and EdgeTimes are features and times of the edges: "FILE.npy", an array [edges, any]
	// of numbers or [edges] of whole numbers, in the order of the input's edges; or, for tables, the
	// names of columns of edges.csv, separated by commas, or "all" for every column of features that
	// has no other use. Of an undirected edge the reverse has the same. Where an edge occurs several
	// times, the copies of one time become one edge with the mean of their features.
	EdgeFeatures, EdgeTimes string
	// EdgeFeatureType is the stored type of the edges' features: see [dataset.WriteOptions].
	EdgeFeatureType string
	// LargestComponent keeps only the nodes of the largest connected component
	// ([dataset.LargestComponent]), renumbered in ascending order of id. Random splits are drawn
	// from these nodes.
	LargestComponent bool
	// Relabel renumbers the nodes of an edge list in ascending order of id.
	Relabel bool
	// OverlappingSplits allows a node to be in two of train, val and test.
	OverlappingSplits bool
	// Seed is the random seed of features and splits; 0 is a seed like any other.
	Seed uint64
	// Threads is the number of threads; 0 means GOMAXPROCS. It does not change the result, except
	// for the last bits of added weights.
	Threads int
	// Progress receives the number of input bytes read and the total known so far. Only one
	// goroutine calls it at a time.
	Progress func(done, total int64)
	// Finish receives the progress of the stages after reading: "build" (the graph, in units of
	// about equal time), "check" and "write" (both in bytes of the result). Only one goroutine
	// calls it at a time, about ten times a second.
	Finish func(stage string, done, total int64)
	// Kinds corrects what the columns of text tables are, by "column" or "TABLE.column", where TABLE is nodes, edges, a
	// node type or a relation. The columns of a list of edges without a first line of names are "1", "2" and so on.
	Kinds map[string]columns.Kind
	// Decimal is the decimal separator of text tables, "," or "."; "" guesses it.
	Decimal string
	// Missing are further words that mean a missing value, and Present words that do not, such as "None".
	Missing, Present []string
	// ManyClasses allows more than 50 classes with fewer than ten labels each on average.
	ManyClasses bool
	// Header says whether the first line of a file of triples or of edges names the columns: "yes", "no", or "" to guess.
	Header string
	// Notice receives what the reader guessed, dropped, merged, renumbered or could not represent, and facts about the
	// result. The dataset's metadata keeps all but the facts.
	Notice func(notice.Notice)
	// Note receives the notices as text, one line each, if Notice is nil.
	Note func(text string)

	// Readers are further formats, which are tried first: [TypedReaders] for graphs with types.
	Readers []Reader
	// Transform changes the dataset that was read, before the check.
	Transform func(*dataset.Dataset, notice.Func) (*dataset.Dataset, error)

	meter *tabular.Meter // of Convert
	guide *tabular.Guide
	said  notice.Func
}

// columnGuide says how the columns of tables are recognised.
func (o *Options) columnGuide() *tabular.Guide {
	if o.guide == nil {
		o.guide = &tabular.Guide{Kinds: o.Kinds, Decimal: o.Decimal, Missing: o.Missing, Present: o.Present, ManyClasses: o.ManyClasses, Said: o.said}
	}
	return o.guide
}

// hear returns the options with a place for notices, and the list of them.
func (o Options) hear() (Options, *notice.List) {
	all := &notice.List{}
	o.said = func(n notice.Notice) {
		all.Add(n)
		switch {
		case o.Notice != nil:
			o.Notice(n)
		case o.Note != nil:
			o.Note(n.String())
		}
	}
	o.guide = nil
	o.columnGuide()
	return o, all
}

func (o *Options) formats() []Reader { return slices.Concat(o.Readers, Formats()) }

func (o *Options) note(format string, args ...any) {
	o.said.Tell(format, args...)
}

// stage returns the progress callback of a stage after reading.
func (o *Options) stage(name string) func(done, total int64) {
	if o.Finish == nil {
		return func(int64, int64) {}
	}
	var told time.Time
	return func(done, total int64) {
		if now := time.Now(); done == total || now.Sub(told) >= 100*time.Millisecond {
			told = now
			o.Finish(name, done, total)
		}
	}
}

// Stats describes a conversion.
type Stats struct {
	Format   string `json:"format"`
	Name     string `json:"name"`
	Nodes    int    `json:"nodes"`
	Edges    int64  `json:"edges"` // directed edges: an undirected edge counts twice
	Features int    `json:"features"`
	Classes  int    `json:"classes"`
	// Targets is the number of numbers to predict of a node.
	Targets int `json:"targets,omitempty"`
	// EdgeTargets is the number of numbers to predict of an edge, and TargetEdges that of the edges that can have some.
	EdgeTargets int `json:"edge_targets,omitempty"`
	TargetEdges int `json:"target_edges,omitempty"`
	// Graphs is the number of graphs of a dataset of many, GraphClasses that of their classes and GraphTargets that of the
	// numbers to predict of each; 0 for a dataset that is one graph.
	Graphs       int `json:"graphs,omitempty"`
	GraphClasses int `json:"graph_classes,omitempty"`
	GraphTargets int `json:"graph_targets,omitempty"`
	// EdgeFeatures is the number of features of an edge.
	EdgeFeatures int  `json:"edge_features,omitempty"`
	EdgeTimes    bool `json:"edge_times,omitempty"`
	// Events is the number of edges that are events.
	Events int64 `json:"events,omitempty"`
	// Relations is the number of relations of the edges, if they have types.
	Relations int `json:"relations,omitempty"`
	// TypesWithFeatures is the number of node types with features of their own.
	TypesWithFeatures int `json:"types_with_features,omitempty"`
	// Notices are what was guessed, dropped, merged, renumbered or not representable.
	Notices notice.List `json:"notices,omitempty"`
	// PeakRSSBytes is the largest resident set of the process so far; 0 if the system does not
	// report it.
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
	Seconds      float64 `json:"seconds"`
}

// String describes the dataset in one line.
func (s Stats) String() string {
	edges := phrase.Count(int(s.Edges), "edge")
	if s.Relations > 0 {
		edges += " of " + phrase.Count(s.Relations, "relation")
	}
	if s.EdgeFeatures > 0 {
		edges += " with " + phrase.Count(s.EdgeFeatures, "feature")
	}
	if s.EdgeTimes {
		edges += " with times"
	}
	if s.Events > 0 {
		edges += fmt.Sprintf(", %d of them events", s.Events)
	}
	features := fmt.Sprintf("%d features", s.Features)
	if s.TypesWithFeatures > 0 {
		features = "features of " + phrase.Count(s.TypesWithFeatures, "type")
	}
	if s.Graphs > 0 {
		of := ""
		if s.GraphClasses > 0 {
			of = fmt.Sprintf(" of %d classes", s.GraphClasses)
		}
		if s.GraphTargets > 0 {
			of += " with " + phrase.Count(s.GraphTargets, "target")
		}
		return fmt.Sprintf("%s (%s): %d graphs%s; %d nodes, %s, %s", s.Name, s.Format, s.Graphs, of, s.Nodes, edges, features)
	}
	answers := fmt.Sprintf("%d classes", s.Classes)
	switch {
	case s.Targets > 0 && s.Classes > 0:
		answers += ", " + phrase.Count(s.Targets, "target")
	case s.Targets > 0:
		answers = phrase.Count(s.Targets, "target")
	case s.EdgeTargets > 0 && s.Classes == 0:
		answers = ""
	}
	if s.EdgeTargets > 0 {
		answers = strings.TrimPrefix(answers+fmt.Sprintf(", %s of %s", phrase.Count(s.EdgeTargets, "target"), phrase.Count(s.TargetEdges, "edge")), ", ")
	}
	return fmt.Sprintf("%s (%s): %d nodes, %s, %s, %s", s.Name, s.Format, s.Nodes, edges, features, answers)
}

// Reader reads one format. Detect may be called with any source; Read may be called without Detect,
// if the user names the format.
type Reader interface {
	// Name is the value of Options.Format.
	Name() string
	// About describes the format in one line.
	About() string
	// detect reports whether the source looks like the format, by its file names and its first
	// bytes.
	detect(s *source) bool
	// read reads the whole source. The dataset's name may be empty.
	read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error)
}

// folderReader is a [Reader] that can be of folders instead of files.
type folderReader interface {
	Reader
	Folder() bool
}

// Formats returns the readers of this package in the order in which they are tried.
func Formats() []Reader {
	return []Reader{
		tuReader{},
		graphFolderReader{},
		saintReader{},
		sageReader{},
		ogbReader{},
		musaeReader{},
		csvReader{},
		planetoidReader{},
		numpyReader{},
		npzReader{},
		jlgReader{},
		dimacsReader{},
		metisReader{},
		marketReader{},
		adjacencyReader{},
		edgeListReader{},
	}
}

func (o *Options) formatNames() string {
	names := []string{"auto"}
	for _, r := range o.formats() {
		names = append(names, r.Name())
	}
	return strings.Join(append(names, "tables"), ", ")
}

// A dataset's name becomes a part of file names.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Convert reads the file or folder src and writes it as the dataset directory dst, which must not
// exist. It stops when ctx is cancelled. On an error, which names the file, the position and the
// reason, dst does not exist.
//
// Memory: the arrays of the result, and 16 bytes per edge while the graph is built (twice that when
// it is made undirected).
func Convert(ctx context.Context, src, dst string, o Options) (Stats, error) {
	start := time.Now()
	if o.Name != "" && (!namePattern.MatchString(o.Name) || strings.Contains(o.Name, "..")) {
		return Stats{}, tabular.Errorf("--name is %q; a name has at most 100 letters, digits, ., _ and -, and begins with a letter or digit", o.Name)
	}
	if err := checkFeatures(o.Features); err != nil {
		return Stats{}, err
	}
	if err := checkSplit(o.Split); err != nil {
		return Stats{}, err
	}
	if err := dataset.CheckFeatureType(o.FeatureType); err != nil {
		return Stats{}, tabular.Errorf("--feature-type: %w", err)
	}
	if err := dataset.CheckFeatureType(o.EdgeFeatureType); err != nil {
		return Stats{}, tabular.Errorf("--edge-feature-type: %w", err)
	}
	if o.Encode != "" {
		if _, err := encode.Parse(o.Encode); err != nil {
			return Stats{}, tabular.Errorf("--encode: %w", err)
		}
	}
	if _, err := os.Lstat(dst); err == nil {
		return Stats{}, tabular.Errorf("%s: %w; remove it or choose another directory", dst, fs.ErrExist)
	}
	m := &tabular.Meter{Report: o.Progress}
	if finish, stage, told := o.Finish, "", int64(0); finish != nil && o.Progress != nil {
		o.Finish = func(next string, done, total int64) {
			if read := m.Done.Load(); stage != next && read > told { // report the total before the next read starts
				o.Progress(read, read)
				told = read
			}
			stage = next
			finish(next, done, total)
		}
	}
	o.meter = m
	o, said := o.hear()
	if err := o.guide.CheckKinds(); err != nil {
		return Stats{}, err
	}
	if o.Header != "" && o.Header != "yes" && o.Header != "no" {
		return Stats{}, tabular.Errorf("--header is %q; it is yes or no", o.Header)
	}
	d, r, err := read(ctx, src, m, o)
	if err != nil {
		return Stats{}, err
	}
	defer d.Close()
	m.SayLost(o.said)
	d.Meta.Notices = dataset.KeepNotices(*said)
	if err := write(ctx, dst, d, m.Names, dataset.WriteOptions{Progress: o.stage("write"), Checked: true, FeatureType: o.FeatureType, EdgeFeatureType: o.EdgeFeatureType, Said: o.said}); err != nil {
		return Stats{}, err
	}
	if o.Progress != nil && o.Finish == nil {
		o.Progress(m.Done.Load(), m.Done.Load())
	}
	relations, with := 0, 0
	if schema := d.Schema(); schema != nil {
		relations = len(schema.Relations)
	}
	for _, x := range d.NodeFeatures {
		if x.Cols() > 0 {
			with++
		}
	}
	stats := Stats{
		Relations: relations, TypesWithFeatures: with, Format: r.Name(), Name: d.Name(), Nodes: d.Nodes(), Edges: d.Edges(), Features: d.FeatureDim(), Classes: d.Classes(), Targets: d.TargetDim(),
		EdgeFeatures: d.EdgeFeatureDim(), EdgeTimes: d.HasEdgeTimes(), Notices: said.Done(),
		PeakRSSBytes: machine.PeakRSS(), Seconds: time.Since(start).Seconds(),
	}
	if d.Graphs != nil {
		stats.Graphs, stats.GraphClasses, stats.GraphTargets = d.NumGraphs(), d.Graphs.Classes(), d.Graphs.TargetDim()
	}
	if a := d.EdgeAnswers; a != nil {
		stats.EdgeTargets, stats.TargetEdges = a.TargetDim(), len(d.EdgeRows)
	}
	return stats, nil
}

// read detects the format, then reads and checks the dataset.
func read(ctx context.Context, src string, m *tabular.Meter, o Options) (*dataset.Dataset, Reader, error) {
	if err := CheckAddress(src); err != nil {
		return nil, nil, err
	}
	s, err := newSource(src, m)
	if err != nil {
		return nil, nil, err
	}
	folder := s
	r, s, err := find(s, o)
	if err != nil {
		return nil, nil, err
	}
	d, err := r.read(ctx, s, o)
	if err != nil {
		return nil, nil, err
	}
	if o.Transform != nil {
		if d, err = o.Transform(d, o.said.Add); err != nil {
			return nil, nil, tabular.Errorf("reading %s: %w", s.Path, err)
		}
	}
	if d, err = finish(ctx, d, s, r, m, o); err != nil {
		return nil, nil, err
	}
	if err := o.columnGuide().CheckUsed(); err != nil {
		return nil, nil, err
	}
	if left := folder.unused(isFolder(r)); len(left) > 0 {
		o.said.Add(notice.Notice{Kind: notice.Dropped, Where: filepath.Base(folder.Path), What: fmt.Sprintf("nothing was read of %s, which the format %s has no use for%s", someOf(left), r.Name(), andMore(left)), Count: int64(len(left))})
	}
	d.Meta.OverlappingSplits = o.OverlappingSplits
	if err := d.CheckWith(ctx, o.stage("check")); err != nil {
		return nil, nil, tabular.Errorf("reading %s: %w", s.Path, err)
	}
	return d, r, nil
}

// andMore says that files were no longer looked for.
func andMore(left []string) string {
	if len(left) <= maxUnused {
		return ""
	}
	return "; there may be more, because the search ends after some"
}

// someOf lists at most ten names and counts the rest.
func someOf(names []string) string {
	const most = 10
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// finish does the steps that all formats share.
func finish(ctx context.Context, d *dataset.Dataset, s *source, r Reader, m *tabular.Meter, o Options) (*dataset.Dataset, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch {
	case o.EdgeFeatures != "" && d.EdgeFeatureDim() == 0:
		return nil, tabular.Errorf("the format %s reads no features of edges; convert the edges as a folder of tables or of NumPy arrays", r.Name())
	case o.EdgeTimes != "" && !d.HasEdgeTimes():
		return nil, tabular.Errorf("the format %s reads no times of edges; convert the edges as a folder of tables or of NumPy arrays", r.Name())
	}
	err := checkClasses(d, o)
	if err == nil && d.Graphs != nil {
		err = checkClasses(d.Graphs, o)
	}
	if err != nil {
		if s == nil {
			return nil, tabular.Errorf("%w", err)
		}
		return nil, tabular.Errorf("reading %s: %w", s.Path, err)
	}
	if o.Undirected {
		if err := makeUndirected(d, o.Threads); err != nil {
			return nil, err
		}
	}
	// Some formats, such as GraphSAINT's, list both directions without declaring the graph
	// undirected.
	d.Meta.Undirected = d.Meta.Undirected || d.Schema() == nil && d.Graph.Symmetric()
	if d.Meta.Name == "" || o.Name != "" {
		d.Meta.Name = o.Name
	}
	if d.Meta.Name == "" {
		d.Meta.Name = s.Base(r.Name())
	}
	if d.Graphs != nil && o.LargestComponent {
		return nil, tabular.Errorf("%s has many graphs; --largest-component is for one graph", s.Path)
	}
	if (o.Features == onlyLabels || o.Features == onlyAttributes) && r.Name() != "tu" && !(d.Graphs != nil && r.Name() == "ogb" && o.Features == onlyAttributes) {
		return nil, tabular.Errorf("--features %s is for TU folders, and attributes for OGB's folders of many graphs; these files are of the format %s", o.Features, r.Name())
	}
	if o.Features != "" && o.Features != onlyLabels && o.Features != onlyAttributes {
		d.Meta.FeatureNames = nil
		if err := addFeatures(ctx, d, m, o); err != nil {
			return nil, err
		}
	}
	how := r.Name() + " files"
	if o.Features != "" {
		kind, path, ok := strings.Cut(o.Features, ":")
		switch {
		case ok:
			how += ", features " + kind + ":" + filepath.Base(path)
		case strings.HasSuffix(o.Features, ".npy"):
			how += ", features file:" + filepath.Base(o.Features)
		default:
			how += ", features " + o.Features
		}
	}
	if o.LargestComponent {
		nodes := d.Nodes()
		if d, err = d.Subset(dataset.LargestComponent(d.Graph)); err != nil {
			return nil, err
		}
		how += fmt.Sprintf(", largest component (%d of %d nodes)", d.Nodes(), nodes)
	}
	if o.Encode != "" {
		var err error
		if d, err = addEncodings(ctx, d, o); err != nil {
			return nil, err
		}
		how += ", encodings " + o.Encode
	}
	split, err := addSplits(ctx, d, m, o)
	if err != nil {
		return nil, err
	}
	how += split
	if d.Graphs == nil && d.Labels != nil && len(d.Splits) == 0 {
		const sets, train, val = 10, 20, 30
		if err := RandomSplits(d, sets, train, val, o.Seed); err != nil {
			return nil, err
		}
		how += fmt.Sprintf(", %d random splits of %d train and %d val nodes a class, seed %d", sets, train, val, o.Seed)
	}
	if d.Targets != nil && d.Labels == nil && len(d.Splits) == 0 {
		if err := splitTargets(d, o); err != nil {
			return nil, err
		}
		how += fmt.Sprintf(", a random split of the nodes with a target, seed %d", o.Seed)
	}
	if d.Meta.Source == "" {
		d.Meta.Source = "converted from " + how
	} else {
		d.Meta.Source += "; converted from " + how
	}
	return d, nil
}

// find chooses the reader, and the file if a folder holds several.
func find(s *source, o Options) (Reader, *source, error) {
	if o.Format != "" && o.Format != "auto" {
		for _, r := range o.formats() {
			if r.Name() == o.Format {
				s, err := enter(s, r, o)
				return r, s, err
			}
		}
		if o.Format == "tables" {
			return nil, nil, tabular.Errorf("the format tables is read by package gnb/tables, and by gnb data convert")
		}
		return nil, nil, tabular.Errorf("there is no format %q; the formats are %s", o.Format, o.formatNames())
	}
	if s.Dir {
		if s.Has("metadata.json") && s.Has("indptr.npy") {
			return nil, nil, tabular.Errorf("%s is a dataset directory already", s.Path)
		}
	}
	if !s.Dir && strings.Contains(filepath.Base(s.Path), "_A.") { // a list of edges otherwise
		if err := recognise(s); err != nil {
			return nil, nil, err
		}
	}
	if s.Dir { // not one graph of the format csv
		if err := manyTables(s); err != nil {
			return nil, nil, err
		}
	}
	for _, r := range o.formats() {
		if r.detect(s) {
			return r, s, nil
		}
	}
	if err := recognise(s); err != nil {
		return nil, nil, err
	}
	if s.Dir {
		if err := tableFiles(s); err != nil {
			return nil, nil, err
		}
		return findInside(s, o)
	}
	return nil, nil, tabular.Errorf("%s is of no known format (it begins with %s); --format says which it is: %s", s.Path, tabular.Shown(s.Head), o.formatNames())
}

// enter returns the source to read: for a one-file format, the file of the folder that the options
// choose.
func enter(s *source, r Reader, o Options) (*source, error) {
	if !s.Dir || isFolder(r) {
		if !s.Dir && isFolder(r) {
			return nil, tabular.Errorf("%s is a file; the format %s is %s", s.Path, r.Name(), r.About())
		}
		return s, nil
	}
	_, inside, err := findInside(s, o)
	return inside, err
}

// isFolder reports whether the format is a folder of files.
func isFolder(r Reader) bool {
	f, ok := r.(folderReader)
	return ok && f.Folder()
}

// findInside returns the only dataset file of a folder, or the one that --name chooses.
func findInside(s *source, o Options) (Reader, *source, error) {
	type found struct {
		reader Reader
		source *source
	}
	var all []found
	var names []string
	for _, file := range s.Files {
		if o.Name != "" && tabular.Stem(file) != o.Name && file != o.Name || slices.Contains([]string{"README.md", "README", "LICENSE"}, file) {
			continue
		}
		inside, err := newSource(s.Path+string(os.PathSeparator)+file, s.Meter)
		if err != nil {
			if o.Name != "" {
				return nil, nil, err
			}
			continue
		}
		for _, r := range o.formats() {
			if r.detect(inside) {
				all = append(all, found{r, inside})
				names = append(names, tabular.Stem(file))
				break
			}
		}
	}
	switch {
	case len(all) == 1:
		return all[0].reader, all[0].source, nil
	case len(all) > 1:
		return nil, nil, tabular.Errorf("%s holds several datasets, %s: --name says which", s.Path, strings.Join(names, ", "))
	case o.Name != "":
		return nil, nil, tabular.Errorf("%s has no dataset %q", s.Path, o.Name)
	}
	for _, file := range s.Files {
		if inside, err := newSource(filepath.Join(s.Path, file), s.Meter); err == nil {
			if err := recognise(inside); err != nil {
				return nil, nil, err
			}
		}
	}
	return nil, nil, tabular.Errorf("%s is a folder of no known format; --format says which it is: %s (gnb data convert --help describes them)", s.Path, o.formatNames())
}
