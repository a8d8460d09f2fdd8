package tables

import (
	"slices"
	"strings"
)

// Kind is what a column is for.
type Kind string

// The kinds of columns.
const (
	Number   Kind = "number"   // a feature: one column
	Category Kind = "category" // a feature: one column for each value, or hashed columns if there are many values
	Text     Kind = "text"     // a feature: a bag of words, hashed into columns
	Date     Kind = "date"     // a feature: age, and where it lies in year, week and day
	ID       Kind = "id"       // names the node
	Label    Kind = "label"    // the node's class; empty if unknown
	Split    Kind = "split"    // train, val, test or empty; of edges, if they have numbers to predict
	// 1 or true where the node is in the split train, val or test.
	TrainMask, ValMask, TestMask Kind = "train_mask", "val_mask", "test_mask"

	Source  Kind = "source"  // the id of an edge's source
	Predict Kind = "predict" // a number to predict of an edge, empty if unknown
	Target  Kind = "target"  // the id of an edge's target; in a table of nodes, a number to predict, empty if unknown
	Weight  Kind = "weight"  // the edge's weight
	Time    Kind = "time"    // the edge's time, or that from which a node exists: a whole number or a date
	Graph   Kind = "graph"   // the id of the graph of a node or an edge, in a dataset of many graphs
	Skip    Kind = "skip"    // not read
)

var (
	nodeKinds = []Kind{Number, Category, Text, Date, ID, Label, Target, Split, TrainMask, ValMask, TestMask, Graph, Time, Skip}
	edgeKinds = []Kind{Number, Category, Text, Date, Source, Target, Predict, Weight, Time, Split, Graph, Skip}
)

// feature reports whether a column of this kind becomes features.
func (k Kind) feature() bool { return k == Number || k == Category || k == Text || k == Date }

// masks are the kinds of masks, in the order of splitNames.
var masks = [3]Kind{TrainMask, ValMask, TestMask}

// Column is a column of a table: what was found in it, and what it becomes. The fields below Why are fitted to the
// values of the training nodes; new nodes are encoded with them unchanged.
type Column struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Why says why the column has this kind.
	Why string `json:"why,omitempty"`

	// First and Width are the columns of features that the column becomes.
	First int `json:"first,omitempty"`
	Width int `json:"width,omitempty"`
	// Mean takes the place of a missing number, and of a missing date's age. A number x becomes (x-Shift)/Scale.
	Mean  float64 `json:"mean,omitempty"`
	Shift float64 `json:"shift,omitempty"`
	Scale float64 `json:"scale,omitempty"`
	// Flag adds a column that is 1 where the value is missing.
	Flag bool `json:"flag,omitempty"`
	// Values are the categories with a column each; others have zeros. Nil with Buckets: hashed columns.
	Values []string `json:"values,omitempty"`
	// Buckets is the number of columns that categories or words are hashed into.
	Buckets int `json:"buckets,omitempty"`
	// IDF weighs the columns of words by how few texts have them.
	IDF []float64 `json:"idf,omitempty"`
	// Layout is how dates are written, as in package time; "" if the file stores dates as such.
	Layout string `json:"layout,omitempty"`
	// Reference is the time from which ages count back, in microseconds since 1970. Clock adds the time of day.
	Reference int64 `json:"reference,omitempty"`
	Clock     bool  `json:"clock,omitempty"`
	// Unit is the unit of an edge's times that are dates, and of durations and times of day: s, ms, us or ns; "" for plain
	// values. Epoch says that they count since 1970, and Cut that finer times are rounded down.
	Unit  string `json:"unit,omitempty"`
	Epoch bool   `json:"epoch,omitempty"`
	Cut   bool   `json:"cut,omitempty"`
	// Notation is how a text's numbers are written: "" with a decimal point, "comma" with a decimal comma, "grouped" with
	// separators between thousands. Numbered says that a split is written 0, 1 or 2.
	Notation string `json:"notation,omitempty"`
	Numbered bool   `json:"numbered,omitempty"`
	// Set is the number of the set of splits that a mask belongs to. Every says that it belongs to all sets.
	Set   int  `json:"set,omitempty"`
	Every bool `json:"every,omitempty"`
}

// correction returns the kind that the options give a column, or "". Kinds are given by the column's name or, to tell
// tables apart, by "TYPE.column" or "edges.column" and the like: see [Options].
func (o *Options) correction(table, column string) Kind {
	for name, kind := range o.Kinds {
		if strings.EqualFold(name, table+"."+column) {
			return kind
		}
	}
	for name, kind := range o.Kinds {
		if strings.EqualFold(name, column) {
			return kind
		}
	}
	return ""
}

// layout returns the layout that the options give a column of dates, or "".
func (o *Options) layout(table, column string) string {
	for name, layout := range o.Layouts {
		if strings.EqualFold(name, table+"."+column) || strings.EqualFold(name, column) {
			return layout
		}
	}
	return ""
}

// checkKinds returns an error for a correction that no table can follow.
func (o *Options) checkKinds(tables []*source) error {
	known := func(name string) (string, bool) {
		var all []string
		for _, s := range tables {
			for _, c := range s.table.names {
				if strings.EqualFold(name, c) || strings.EqualFold(name, s.name+"."+c) {
					return "", true
				}
				all = append(all, c)
			}
		}
		slices.Sort(all)
		return strings.Join(slices.Compact(all), ", "), false
	}
	for name, kind := range o.Kinds {
		if !slices.Contains(nodeKinds, kind) && !slices.Contains(edgeKinds, kind) {
			return fault("the kind of column %s is %s; kinds are number, category, text, date, id, label, split, train_mask, val_mask, test_mask, source, target, predict, weight, time, graph and skip", shown(name), shown(string(kind)))
		}
		if have, ok := known(name); !ok {
			return fault("Kinds names a column %s, which no table has; the columns are %s", shown(name), have)
		}
	}
	for name := range o.Layouts {
		if have, ok := known(name); !ok {
			return fault("Layouts names a column %s, which no table has; the columns are %s", shown(name), have)
		}
	}
	return nil
}
