// Package tables makes datasets of tables: of nodes and edges in CSV, Parquet and Arrow files, or in folders of them as
// DuckDB and Spark write them. It finds what each column is for, turns columns into features, labels and splits, and
// keeps how it did so as the dataset's [Recipe], which [Append] applies, unchanged, to new nodes.
//
// # Basics
//
//	files := tables.Of("customers.csv", "calls.csv")
//	ds, err := tables.Read(ctx, "churn", files, tables.Options{Kinds: map[string]tables.Kind{"churned": tables.Label}})
//
// [Look] shows the kinds of columns without writing anything, and [Read] prints them; Options.Kinds corrects them.
// [Folder] finds the tables of a folder by their names. Names of columns are compared in lower case.
//
// # What columns become
//
//	number    one feature, (x - mean) / deviation; a missing value is the mean
//	category  one feature for each value, 1 or 0; over 64 values: each value sets two of 128 hashed features
//	text      bag of words hashed into 256 features: (1 + ln count) · idf, in rows of norm 1
//	date      age in days, scaled as a number; sine and cosine of the place in the year, the week and, if there
//	          are times of day, the day
//
// A column with missing values in the training nodes gets one more feature, 1 where the value is missing. Means,
// deviations, categories and idf = ln((1+n)/(1+df)) + 1 are those of the training nodes (Options.Fit); a category that
// these do not have is zeros. Features of edges are fitted to all edges. If less than a quarter of at least 64 features differs from zero on average, the features
// are stored in compressed rows.
//
// # Many graphs
//
// With a table of graphs (Files.Graphs, graphs.csv) the dataset has many graphs. A row is a graph, with an id and with columns of
// the kinds that nodes have: its label, numbers to predict, its split, features. Tables of nodes, and those of edges if ids of
// nodes are unique within a graph only, have a column of kind graph. Recipes are fitted to the nodes of the training graphs, and
// columns of edges become features, as those of nodes do.
//
// # Numbers of edges
//
// A column of edges of kind predict is a number to predict of each edge, such as the rating that a user gives a film; Kinds must
// say so. An empty cell is unknown. Then each row is an edge of its own, and equal ones are not merged. A column named split, or of
// kind split, divides the edges; without one, 80 % are train, 10 % val and 10 % test.
//
// # Events
//
// With Files.Events each row of the tables of edges is an event that happened at its time, and stays one of its own. Other columns
// become features of events, fitted to the events of training: those until the quantile 0.7 of all times, as
// [temporal.SplitTimes] divides them. A column named label is a number to predict. Tables of nodes may be missing. Notices say in which
// unit and zone times are read, and how many events were out of order, are equal to others, before 1970 or in the future.
//
// # Splits
//
// Without a column of splits, labelled nodes are divided into train (60 %), val (20 %) and test (20 %) by the seed and
// their id alone. Labels are classes in ascending order; a missing label is unknown.
//
// # Numbers and times
//
// An id is text or a whole number of any length; a floating-point id so large that neighbouring whole numbers are the same
// is an error. Features and weights are float32, and a note counts the whole numbers that it cannot hold. Dates of edges
// become counts since 1970 in the coarsest unit that has all of them (Options.TimeUnit); the recipe has the units of times
// and durations, to which later files are converted.
//
// # Equal edges
//
// Edges with the same ends, relation and time become one, with the sum of their weights and the mean of their features; a
// note says how many. After that, weights that are all 1 are dropped. With Undirected an edge and its reverse are equal.
// The copies of merged edges with weights or features are kept in [CopiesFile], for [Append].
//
// # Files
//
// The first bytes of a file tell its format. A folder is one table of all its files, in order of their paths; names that
// begin with _ or a point are ignored, and folders named key=value are columns. Text files may be compressed (gzip,
// bzip2, xz).
//
// # Caveats
//
// Files are not trusted: an error is one sentence with the file, the line or row and the way out, and nothing is
// written. Values are at most 1 MiB. Lists, structures and maps in Parquet and Arrow are not read. A table does not fit
// the recipe of another, and a recipe is not edited: it has a checksum.
package tables

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Files are the tables of a graph. Without types of nodes there is one table of nodes and one of edges.
type Files struct {
	Nodes []Nodes
	Edges []Edges
	// Graphs is the path of a table of graphs, if the dataset is to have many; "" if it is one graph. Its rows have an id and
	// what is known of a graph: labels, numbers to predict, splits, features. The nodes then have a column of kind [Graph].
	Graphs string
	// Events says that each row of the tables of edges is an event: an edge that happened at its time, which is not merged with an
	// equal one. The dataset then has the order of the events ([dataset.Dataset.Events]). Tables of nodes may be missing: nodes are
	// then the ends of events, in the order in which the tables have them.
	Events bool
	// Bipartite says that the sources and the targets of the only table of events are ids of two kinds of nodes, even where they are
	// equal. Their types have the names of the two columns.
	Bipartite bool
	// Questions is the path of a table of answers about nodes over time, besides events; "" if there is none. Its rows have the id of a node, a
	// time and answers: numbers to predict (kind [Target]) and labels (kind [Label]). See [dataset.Questions].
	Questions string
}

// Nodes is a table of nodes: a file, or a folder of files.
type Nodes struct {
	Type string // "" if nodes have no types
	Path string
}

// Edges is a table of edges: a file, or a folder of files. If nodes have types, the table has the edges of one relation.
type Edges struct {
	Source, Relation, Target string
	Path                     string
}

// Of returns the files of a graph without types of nodes.
func Of(nodes, edges string) Files {
	return Files{Nodes: []Nodes{{Path: nodes}}, Edges: []Edges{{Path: edges}}}
}

func (f *Files) describe() string {
	var all []string
	if f.Graphs != "" {
		all = append(all, filepath.Base(f.Graphs))
	}
	for _, n := range f.Nodes {
		all = append(all, filepath.Base(n.Path))
	}
	for _, e := range f.Edges {
		all = append(all, filepath.Base(e.Path))
	}
	return strings.Join(all, ", ")
}

// endings are removed from the name of a file to get that of its table.
var endings = []string{".gz", ".bz2", ".xz", ".csv", ".tsv", ".parquet", ".arrow", ".feather", ".ipc"}

// Folder finds the tables of a folder: nodes.csv and edges.csv, or nodes.TYPE.csv and edges.SOURCE.RELATION.TARGET.csv
// for a graph with types of nodes. A table graphs.csv makes it a dataset of many graphs. Tables named events.csv or
// events.SOURCE.RELATION.TARGET.csv, instead of edges, have events, and need no tables of nodes. The endings .tsv, .parquet, .arrow, .feather and .ipc do as well, those of compressed
// text, and folders without an ending. Types and relations are in alphabetical order.
func Folder(dir string) (Files, error) {
	var f Files
	plain := false // it has a table of edges that are no events
	entries, err := os.ReadDir(dir)
	if err != nil {
		return f, fault("%w", err)
	}
	for _, e := range entries {
		name := e.Name()
		for _, ending := range endings {
			name = strings.TrimSuffix(name, ending)
		}
		path := filepath.Join(dir, e.Name())
		kind, rest, _ := strings.Cut(name, ".")
		switch kind {
		case "graphs":
			if rest == "" {
				f.Graphs = path
			}
		case "nodes":
			f.Nodes = append(f.Nodes, Nodes{Type: rest, Path: path})
		case "edges", "events":
			if kind == "events" {
				f.Events = true
			} else {
				plain = true
			}
			edges := Edges{Path: path}
			if rest != "" {
				first, last := strings.IndexByte(rest, '.'), strings.LastIndexByte(rest, '.')
				if first <= 0 || first == last || last == len(rest)-1 {
					return f, fault("%s: its name is not %s.SOURCE.RELATION.TARGET, with two types of nodes and the relation's name between them", path, kind)
				}
				edges.Source, edges.Relation, edges.Target = rest[:first], rest[first+1:last], rest[last+1:]
			}
			f.Edges = append(f.Edges, edges)
		}
	}
	switch {
	case f.Events && plain:
		return f, fault("%s has tables of events and of edges; all rows are events, or none is: rename the tables of one kind", dir)
	case len(f.Nodes) == 0 && !f.Events || len(f.Edges) == 0:
		return f, fault("%s has %d tables of nodes and %d of edges; it needs nodes and edges with an ending such as .csv or .parquet, or nodes.TYPE and edges.SOURCE.RELATION.TARGET", dir, len(f.Nodes), len(f.Edges))
	}
	slices.SortFunc(f.Nodes, func(a, b Nodes) int { return strings.Compare(a.Type, b.Type) })
	slices.SortFunc(f.Edges, func(a, b Edges) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Relation, b.Relation), strings.Compare(a.Target, b.Target))
	})
	return f, f.check()
}

// Options say how tables are read. The zero value finds the kinds of columns itself.
type Options struct {
	// Name is the dataset's name; "" means that of the directory.
	Name string
	// Kinds corrects the kinds of columns. Where several tables have a column of that name, "TYPE.column",
	// "RELATION.column", "nodes.column" and "edges.column" name one. A column of edges becomes a feature only if Kinds
	// says so.
	Kinds map[string]Kind
	// Layouts says how the dates of a column are written, in the notation of package time, such as "02/01/2006" for day,
	// month and year. Columns that it does not name are read in the common layouts.
	Layouts map[string]string
	// TimeUnit is the unit of the edges' times that are dates: s, ms, us or ns since 1970. Of events whose times are plain numbers it is
	// the unit of these. "" means the coarsest unit that
	// has all of them; with a coarser one, times are rounded down. The recipe keeps the unit, to which [Append] converts.
	TimeUnit string
	// Missing are further words that mean a missing value, besides those of pandas, such as "", NA, NaN and null.
	Missing []string
	// Present are words that do not mean a missing value or an unknown label, although they usually do, such as None or -1.
	Present []string
	// Decimal is the decimal separator of numbers in text, "," or "."; "" guesses it from the columns.
	Decimal string
	// ManyClasses allows more than 50 classes with fewer than ten labels each on average.
	ManyClasses bool
	// Fit says to which nodes the recipe is fitted: "train" or "all"; "" means train. Without labels and splits it is all. Features of
	// events are fitted to the events until the quantile 0.7 of all times, or with "all" to all; a whole number is the last time of the events
	// that they are fitted to. The dataset records that time ([dataset.Metadata].FeaturesUntil).
	Fit string
	// OneHot is the largest number of values of a category that get a feature each; 0 means 64. Hashed is the number of
	// features of a category with more values; 0 means 128. Words is the number of features of a text; 0 means 256.
	OneHot, Hashed, Words int
	// Unscaled leaves numbers and ages as they are.
	Unscaled bool
	// Undirected adds the reverse of every edge of a graph without types; Reverses, those of a graph with types, as
	// relations of their own.
	Undirected, Reverses bool
	// Seed is the random seed of the splits; 0 is a seed like any other.
	Seed uint64
	// Recipe is applied instead of a fitted one; the options above but Name are ignored then.
	Recipe *Recipe
	// Split divides the graphs of a dataset of many, instead of a column of splits, as Split of [convert.Options] says: "random",
	// "stratified:0.8,0.1,0.1", "folds:10", or the path of lists of indices. Edges with numbers to predict are divided by
	// "random:0.8,0.1,0.1" or, by their times, "time:0.8,0.1,0.1".
	Split string
	// Encode adds positional encodings to the features of nodes, as a list for [encode.Parse] such as "rw:16,laplacian:8". It is
	// for datasets of many graphs; others grow by [Append], which would change the encodings of old nodes. With a
	// Recipe it is that of the recipe.
	Encode string
	// Replace replaces a directory that was made of tables before.
	Replace bool
	// Threads is the number of threads that build the graph; 0 means GOMAXPROCS. It changes no bit of the result.
	Threads int
	// Quiet prints nothing.
	Quiet bool
	// Notice receives what was guessed, dropped, merged or could not be represented, and warnings. Note receives the same
	// as text, one line each, if Notice is nil; without both it is printed, unless Quiet is set. The dataset's metadata
	// keep what was done.
	Notice func(notice.Notice)
	Note   func(text string)
	// Progress receives the number of bytes of text files read, and the total known so far.
	Progress func(done, total int64)

	said notice.List
}

func (o *Options) oneHot() int  { return cmp.Or(o.OneHot, defaultOneHot) }
func (o *Options) hashed() int  { return cmp.Or(o.Hashed, defaultHashed) }
func (o *Options) words() int   { return cmp.Or(o.Words, defaultWords) }
func (o *Options) fit() string  { return cmp.Or(o.Fit, "train") }
func (o *Options) fitAll() bool { return o.Fit == "all" }

// fitUntil returns the last time of the events that features are fitted to, if Fit says it.
func (o *Options) fitUntil() (t int64, given bool) {
	t, err := strconv.ParseInt(o.Fit, 10, 64)
	return t, err == nil
}

// say passes a notice on.
func (o *Options) say(n notice.Notice) {
	o.said.Add(n)
	switch {
	case o.Notice != nil:
		o.Notice(n)
	case o.Note != nil:
		o.Note(n.String())
	case !o.Quiet:
		fmt.Println("tables: " + n.String())
	}
}

func (o *Options) check() error {
	const most = 1 << 20
	_, given := o.fitUntil()
	switch {
	case o.Fit != "" && o.Fit != "train" && o.Fit != "all" && !given:
		return fault("Fit is %s; it is train, all, or for events a whole number, the last time of the events that features are fitted to", shown(o.Fit))
	case o.Decimal != "" && o.Decimal != "," && o.Decimal != ".":
		return fault(`Decimal (--decimal) is %s; it is "," or "."`, shown(o.Decimal))
	case !knownUnit(o.TimeUnit):
		return fault("TimeUnit (--time-unit) is %s; it is s, ms, us or ns", shown(o.TimeUnit))
	case o.OneHot < 0 || o.OneHot > most || o.Hashed < 0 || o.Hashed > most || o.Words < 0 || o.Words > most:
		return fault("OneHot, Hashed and Words are %d, %d and %d; each is 0 to %d", o.OneHot, o.Hashed, o.Words, most)
	}
	return nil
}
