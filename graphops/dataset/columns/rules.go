// Package columns finds out what the columns of tables are: ids, labels, splits, ends of edges, an index that pandas
// wrote, numbers with a decimal comma, words for a missing value. Every reader of tables asks it, so the same file means
// the same in every format.
//
// [Rules] is the table of names. [Table.Decide] applies it to the columns of one table, with what their values are
// ([Profile]), and returns a notice for each guess. Options overrule every guess.
package columns

import (
	"slices"
	"strings"
	"unicode"
)

// Kind is what a column is for.
type Kind string

// The kinds of columns.
const (
	Number    Kind = "number"     // a feature: a number
	Category  Kind = "category"   // a feature: one of some values
	Text      Kind = "text"       // a feature: words
	Date      Kind = "date"       // a feature: a date
	ID        Kind = "id"         // names the node
	Label     Kind = "label"      // the node's class
	Split     Kind = "split"      // the name of the node's split
	TrainMask Kind = "train_mask" // 1 or true where the node is in the split train
	ValMask   Kind = "val_mask"   // the same of val
	TestMask  Kind = "test_mask"  // the same of test
	Source    Kind = "source"     // the id of an edge's source, the head of a triple
	Relation  Kind = "relation"   // the relation of a triple
	Target    Kind = "target"     // the id of an edge's target, the tail of a triple; of nodes, a number to predict
	Predict   Kind = "predict"    // a number to predict of an edge
	Weight    Kind = "weight"     // the edge's weight
	Time      Kind = "time"       // the edge's time
	Skip      Kind = "skip"       // not read
)

// Parts are the names of the splits, in the order of their numbers.
var Parts = [3]string{"train", "val", "test"}

// Masks are the kinds of masks, in the order of Parts.
var Masks = [3]Kind{TrainMask, ValMask, TestMask}

// Of says which tables a rule is for.
type Of string

// The tables.
const (
	Nodes   Of = "nodes"
	Edges   Of = "edges"
	Triples Of = "triples"
)

// Need is what the values of a column must be for its name to count.
type Need string

// The needs.
const (
	Anything Need = ""
	Wholes   Need = "whole numbers, none missing"
	Counting Need = "whole numbers that count the rows" // of nodes, if another column is the id
	Words    Need = "names of splits"
	Flags    Need = "0 and 1, or True and False"
	Together Need = "0 and 1, or True and False, and the table has a mask of train"
	Absent   Need = "nothing"
)

// Rule says what a column of a certain name is.
type Rule struct {
	Of   Of
	Kind Kind
	// Names are compared without case, and by letters and digits alone: trainMask, train_mask and "train mask" are one.
	// A # at the end stands for digits, or for nothing.
	Names []string
	// Plain is how many of the names, from the first, need no notice: those that the formats document.
	Plain int
	// Need is what the values must be. If they are not, the name does not count.
	Need Need
	// Why completes the sentence "the column is …".
	Why string
}

// Rules are the names that are recognised. Of several columns for one kind, the first name wins.
var Rules = rules()

func rules() []Rule {
	all := []Rule{
		{Nodes, Skip, []string{"", "unnamed#", "indexlevel#"}, 0, Absent, "empty"},
		{Nodes, Skip, []string{"", "unnamed#", "indexlevel#", "level0"}, 0, Wholes, "the index that pandas writes, which is no feature"},
		{Nodes, ID, []string{"id", "nodeid", "node"}, 2, Anything, "the id of the node"},
		{Nodes, Skip, []string{"index"}, 0, Counting, "the index that pandas writes, which is no feature"},
		{Nodes, Label, []string{"label", "class", "target", "y", "labels", "nodelabel", "classlabel"}, 1, Anything, "the label"},
		{Nodes, Split, []string{"split", "splits"}, 1, Anything, "the split"},
		{Nodes, Split, []string{"set", "subset", "partition", "fold", "dataset", "usage"}, 0, Words, "the split"},
	}
	for k, names := range [3][]string{{"train", "training"}, {"val", "valid", "validation", "dev"}, {"test", "testing"}} {
		r := Rule{Of: Nodes, Kind: Masks[k], Need: Flags, Why: "the mask of the split " + Parts[k]}
		short := Rule{Of: Nodes, Kind: Masks[k], Need: Together, Why: r.Why} // alone, these may be features
		for _, name := range names {
			r.Names = append(r.Names, name+"mask#", "mask"+name+"#", "isin"+name, name+"set", "in"+name+"set", "is"+name+"set", name+"split", "split"+name, name+"idx")
			short.Names = append(short.Names, "is"+name, "in"+name, name+"flag", name)
		}
		invalid := func(name string) bool { return strings.HasSuffix(name, "invalid") } // these mean something else
		r.Names, short.Names = slices.DeleteFunc(r.Names, invalid), slices.DeleteFunc(short.Names, invalid)
		if k == 0 { // a column is_train has no other use
			r.Names, short.Names = append(r.Names, short.Names...), nil
		}
		if all = append(all, r); short.Names != nil {
			all = append(all, short)
		}
	}
	return append(all,
		Rule{Edges, Skip, []string{"", "unnamed#", "indexlevel#"}, 0, Absent, "empty"},
		Rule{Edges, Skip, []string{"", "unnamed#", "indexlevel#", "level0"}, 0, Wholes, "the index that pandas writes"},
		Rule{Edges, Source, []string{"source", "src", "from", "sourceid", "srcid", "fromid", "head", "fromnode", "fromnodeid", "sourcenode", "start", "startid", "u", "nodefrom", "sender"}, 6, Anything, "the source"},
		Rule{Edges, Target, []string{"target", "dst", "to", "targetid", "dstid", "toid", "tail", "tonode", "tonodeid", "targetnode", "end", "endid", "v", "nodeto", "receiver", "dest", "destination"}, 6, Anything, "the target"},
		Rule{Edges, Weight, []string{"weight", "w", "weights", "edgeweight"}, 2, Anything, "the weight"},
		Rule{Edges, Time, []string{"time", "timestamp", "ts", "unixtime", "unixtimestamp", "datetime", "edgetime"}, 2, Anything, "the time"},
		Rule{Edges, Skip, []string{"index"}, 0, Counting, "the index that pandas writes"},
		Rule{Triples, Source, []string{"head", "subject", "source", "h", "s", "headentity", "headid", "from", "e1", "entity1", "sub", "src", "subj"}, 0, Anything, "the head"},
		Rule{Triples, Relation, []string{"relation", "predicate", "r", "p", "rel", "relationtype", "relationid", "type", "edge", "edgetype", "label", "pred"}, 0, Anything, "the relation"},
		Rule{Triples, Target, []string{"tail", "object", "target", "t", "o", "tailentity", "tailid", "to", "e2", "entity2", "obj", "dst"}, 0, Anything, "the tail"},
		Rule{Triples, Weight, []string{"weight", "score", "confidence"}, 0, Anything, "a score"},
	)
}

// Key returns what two names that mean the same have in common: their letters and digits, in lower case.
func Key(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// match reports whether a key is one of the rule's names; plain, whether that needs no notice; number is what stands
// for #, -1 if nothing does.
func (r *Rule) match(key string) (place int, number int, ok bool) {
	for i, name := range r.Names {
		stem, open := strings.CutSuffix(name, "#")
		if key == stem {
			return i, -1, true
		}
		if digits, found := strings.CutPrefix(key, stem); open && found && digits != "" {
			n, good := 0, len(digits) < 6
			for _, c := range digits {
				good = good && c >= '0' && c <= '9'
				n = 10*n + int(c-'0')
			}
			if good {
				return i, n, true
			}
		}
	}
	return 0, -1, false
}

// MaskOf returns the split in [Parts] whose mask a name is, such as that of an array; false if it is none, or has a number.
func MaskOf(name string) (part int, ok bool) {
	part, number, ok := maskOf(name, func(r *Rule) bool { return r.Need == Flags })
	return part, ok && number < 0
}

// maskOf returns the split whose mask a name is by one of the chosen rules, and the number in the name, -1 if it has none.
func maskOf(name string, chosen func(*Rule) bool) (part, number int, ok bool) {
	for r := range Rules {
		rule := &Rules[r]
		part := slices.Index(Masks[:], rule.Kind)
		if part < 0 || !chosen(rule) {
			continue
		}
		if _, number, ok := rule.match(Key(name)); ok {
			return part, number, true
		}
	}
	return 0, -1, false
}
