package tabular

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// SplitNames are the names of the splits that a table of nodes can name.
var SplitNames = columns.Parts

// NodeColumns says what a format gives a table of nodes. The zero value is that of the format csv.
type NodeColumns struct {
	// Guide recognises the columns.
	Guide *Guide
	// Table is what the options call the table in front of a column.
	Table string
	// ID is the name of the column of ids; "" recognises it.
	ID string
	// Plain means that the format documents masks of splits.
	Plain bool
	// Lists means that a feature can be a list of numbers, "0.1, 0.2" or "[0.1, 0.2]", as long in each line.
	Lists bool
	// Graph is the name of a column with the number of the line's graph, which must be one for all lines; "" is none.
	Graph string
	// NoFeatures leaves the other columns out.
	NoFeatures bool
	// Empty allows a table without nodes.
	Empty bool
	// Overlap allows a node in two splits.
	Overlap bool
}

// Nodes are the nodes of a table.
type Nodes struct {
	ids        *table
	Features   []string  // names of the columns of X
	X          []float32 // [nodes, Cols]
	Cols       int
	Labels     []int32            // nil: no labels
	ClassNames []string           // nil: labels are class ids
	Classes    int                // number of classes
	Splits     map[string][]int32 // by the split's name
}

// Len is the number of nodes.
func (n *Nodes) Len() int { return n.ids.Len() }

// Find returns the number of the node with an id.
func (n *Nodes) Find(id string) (int32, bool) {
	v, _, ok := n.ids.Find(id)
	return v, ok
}

// ID returns the id of node v.
func (n *Nodes) ID(v int) string { return string(n.ids.Word(v)) }

// Forget frees the ids.
func (n *Nodes) Forget() { n.ids = nil }

// ReadNodes reads a table of nodes, one a line, twice: it looks at all values before it says what the columns are. open
// opens the table.
func ReadNodes(ctx context.Context, open func() (*CSVFile, error), c NodeColumns) (*Nodes, error) {
	first, err := open()
	if err != nil {
		return nil, err
	}
	given := map[string]columns.Kind{}
	if c.ID != "" {
		given[c.ID] = columns.ID
	}
	if c.Graph != "" {
		given[strings.ToLower(c.Graph)] = columns.Skip
	}
	if c.ID != "" && first.Column(c.ID) < 0 {
		_ = first.Close()
		return nil, first.noID(c.ID)
	}
	cols, err := first.look(ctx, look{columns.Nodes, c.Table, given, c.Plain, c.Lists}, c.Guide)
	_ = first.Close()
	if err != nil {
		return nil, err
	}
	t, err := open()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if len(cols) != len(t.Header) {
		return nil, t.Wrong("it was changed while it was read")
	}
	return t.nodes(ctx, c, cols)
}

func (t *CSVFile) noID(name string) error {
	return t.Wrong(`line 1: no column is named %q, but %s; the first line names the columns, and --kinds COLUMN=id says which is the id`, name, ShownNames(t.Header))
}

func (t *CSVFile) nodes(ctx context.Context, c NodeColumns, cols []columns.Column) (*Nodes, error) {
	n := &Nodes{ids: wordsNew(), Splits: map[string][]int32{}}
	id, label, split := Of(cols, columns.ID), Of(cols, columns.Label), Of(cols, columns.Split)
	if id < 0 {
		return nil, t.noID(cmp.Or(c.ID, "id"))
	}
	var feature []int
	masks := make([][3]int, setsOf(cols)) // by set of splits: the columns, -1: none
	for set := range masks {
		masks[set] = [3]int{-1, -1, -1}
	}
	graph := t.OneGraph(c.Graph)
	for i := range t.Header {
		switch k := cols[i].Kind; k {
		case columns.TrainMask, columns.ValMask, columns.TestMask:
			part := slices.Index(columns.Masks[:], k)
			for set := range masks {
				m := &masks[set][part]
				switch {
				case set != cols[i].Set && !cols[i].Every:
					continue
				case *m >= 0:
					return nil, t.Wrong("line 1: the columns %s and %s are both masks of the split %s; --kinds COLUMN=skip leaves one out", Shown([]byte(t.Header[*m])), Shown([]byte(t.Header[i])), SplitNames[part])
				}
				*m = i
			}
		case "", columns.Number:
			if !c.NoFeatures && i != graph.column {
				feature = append(feature, i)
			}
		}
	}
	var (
		x       Pile[float32]
		terms   = NewTerms()
		y       Pile[int32] // index of the node's word, -1: none
		width   = slices.Repeat([]int{1}, len(feature))
		missing = c.Guide.words()
		unknown Unknown
		outside int64 // labelled nodes in no split
	)
	err := t.Each(ctx, func(record []string) error {
		node, isNew, full := n.ids.Add(record[id])
		switch {
		case full:
			return t.At("there are more nodes than int32 counts, or 4 GiB of ids")
		case !isNew:
			return t.At("the id %s is that of node %d already; ids are unique", Shown([]byte(record[id])), node)
		case record[id] == "":
			return t.At("the node has no id")
		}
		if err := graph.Check(record); err != nil {
			return err
		}
		for k, i := range feature {
			count := 0
			for text := range NumbersOf(record[i], c.Lists && cols[i].Notation == columns.Point) {
				v, ok := Feature(text, cols[i].Notation)
				if !ok {
					return t.At("the feature %s is %s; features are finite numbers: fill it in, give each word a column of 0 and 1, leave the column out, or read words and missing values with --format tables",
						Shown([]byte(t.Header[i])), Shown([]byte(record[i])))
				}
				if LostText(text, cols[i].Notation, v) {
					t.lose(i, text)
				}
				x.Add(v)
				count++
			}
			if node == 0 {
				width[k] = count
			}
			if count != width[k] {
				return t.At("the feature %s has %d numbers, and that of the first node %d", Shown([]byte(t.Header[i])), count, width[k])
			}
		}
		if label >= 0 {
			w, word := int32(-1), columns.LabelWord(record[label])
			if missing.Label(record[label]) || missing.Label(word) {
				unknown.Add(record[label])
			} else if w, full = terms.Add(word); full {
				return t.At("there are 4 GiB of labels")
			}
			y.Add(w)
		}
		in := split < 0 && len(masks) == 0
		if split >= 0 {
			k, ok := cols[split].Part(record[split])
			if !ok {
				return t.At("the split is %s; it must be train, val, test or nothing", Shown([]byte(record[split])))
			}
			if in = k >= 0; in {
				n.Splits[SplitNames[k]] = append(n.Splits[SplitNames[k]], node)
			}
		} else {
			for set := range masks {
				is, err := t.masked(n, record, masks[set], set, node, c.Overlap)
				if err != nil {
					return err
				}
				in = in || is
			}
		}
		if !in && label >= 0 && !missing.Label(record[label]) {
			outside++
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case n.ids.Len() == 0 && !c.Empty:
		return nil, t.Wrong("it has no nodes below its first line")
	}
	if outside > 0 {
		c.Guide.Said.Add(notice.Notice{Kind: notice.Dropped, Where: filepath.Base(t.Path), What: "labelled nodes are in none of train, val and test, as the column of the split or the masks say", Count: outside, Of: int64(n.ids.Len())})
	}
	for k, i := range feature {
		n.Cols += width[k]
		for j := range width[k] {
			name := t.Header[i]
			if width[k] > 1 {
				name = fmt.Sprintf("%s %d", name, j)
			}
			n.Features = append(n.Features, name)
		}
	}
	n.X = x.Flat()
	if label >= 0 && n.ids.Len() > 0 {
		n.Labels = y.Flat()
		unknown.Where = filepath.Base(t.Path) + ": column " + Shown([]byte(t.Header[label]))
		if n.ClassNames, n.Classes, err = NumberLabels(n.Labels, terms, &unknown, c.Guide); err != nil {
			return nil, t.Wrong("the column %s: %w", Shown([]byte(t.Header[label])), err)
		}
	}
	return n, nil
}

// setsOf returns the number of sets of splits of which columns are masks.
func setsOf(cols []columns.Column) (sets int) {
	for _, c := range cols {
		if slices.Contains(columns.Masks[:], c.Kind) {
			sets = max(sets, c.Set+1)
		}
	}
	return sets
}

// masked adds a node to the splits of one set whose masks say so. at is the number of the set.
func (t *CSVFile) masked(n *Nodes, record []string, masks [3]int, at int, node int32, overlap bool) (in bool, err error) {
	found := -1
	for k, i := range masks {
		if i < 0 {
			continue
		}
		set, ok := columns.Flag(record[i])
		switch {
		case !ok && !missingMask(record[i]):
			return false, t.At("%s is %s; a mask is 0 or 1, or False or True", t.Header[i], Shown([]byte(record[i])))
		case set && found >= 0 && !overlap:
			return false, t.At("the node is in the splits %s and %s; --overlapping-splits allows that", SplitNames[found], SplitNames[k])
		case set:
			found = k
			name := SplitNames[k]
			if at > 0 {
				name = fmt.Sprintf("%s@%d", name, at)
			}
			n.Splits[name] = append(n.Splits[name], node)
		}
	}
	return found >= 0, nil
}

func missingMask(s string) bool { return columns.NewMissing(nil, nil).Value(s) }

// Feature returns the number of a feature, which is finite in float32.
func Feature(text string, n columns.Notation) (float32, bool) {
	if n == columns.Point {
		v, ok := Float([]byte(text))
		return v, ok && v == v
	}
	x, ok := n.Number(text)
	return float32(x), ok && !math.IsInf(float64(float32(x)), 0)
}

// OneGraph checks that the lines of a table are of one graph.
type OneGraph struct {
	t      *CSVFile
	column int // -1: none
	first  string
	seen   bool
}

// OneGraph returns the check of the column of a name, where "" is no column.
func (t *CSVFile) OneGraph(name string) *OneGraph {
	g := &OneGraph{t: t, column: -1}
	if name != "" {
		g.column = t.Column(strings.ToLower(name))
	}
	return g
}

// Check returns an error for a record of a second graph.
func (g *OneGraph) Check(record []string) error {
	if g.column < 0 {
		return nil
	}
	text := record[g.column]
	if !g.seen {
		g.first, g.seen = text, true
	}
	if text != g.first {
		return g.t.At("its graph is %s, and that of the first line %s; datasets of one graph are read", Shown([]byte(text)), Shown([]byte(g.first)))
	}
	return nil
}

// Column is the number of the column, -1 if there is none.
func (g *OneGraph) Column() int { return g.column }

// NumbersOf yields the text of each number of a feature: the whole text, unless it is a list.
func NumbersOf(text string, lists bool) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if lists {
			if inside, ok := strings.CutPrefix(text, "["); ok {
				text, _ = strings.CutSuffix(inside, "]")
			}
		}
		for lists && strings.Contains(text, ",") {
			number, rest, _ := strings.Cut(text, ",")
			if !yield(strings.TrimSpace(number)) {
				return
			}
			text = rest
		}
		yield(strings.TrimSpace(text))
	}
}

// ShownNames formats column names for an error.
func ShownNames(header []string) string {
	var all []string
	for i, name := range header {
		if i == 5 {
			all = append(all, "…")
			break
		}
		all = append(all, Shown([]byte(name)))
	}
	return strings.Join(all, ", ")
}

// The metadata, at most 1 MiB, must have room for the class names.
const (
	MaxClassNames = 10_000
	maxClassText  = 128 << 10
)

// ErrNoLabels is the error for labels without a known one.
var ErrNoLabels = errors.New("every label is unknown")

// Terms numbers words, such as labels, in the order in which they are added.
type Terms struct{ t *table }

// NewTerms returns Terms without words.
func NewTerms() *Terms { return &Terms{wordsNew()} }

// Len returns the number of words.
func (n *Terms) Len() int { return n.t.Len() }

// Add returns the number of a word; full reports that there is no room for it.
func (n *Terms) Add(word string) (number int32, full bool) {
	number, _, full = n.t.Add(word)
	return number, full
}

// NumberLabels replaces indices of words by classes, in place, and returns the number of classes. If the words are the
// whole numbers from 0 on, without gaps, these are the classes; otherwise the classes follow the order of the words, by
// number or by letters, which NumberLabels returns as their names.
func NumberLabels(y []int32, terms *Terms, unknown *Unknown, g *Guide) ([]string, int, error) {
	n := terms.Len()
	if n == 0 {
		return nil, 0, ErrNoLabels
	}
	known := int64(0)
	for _, w := range y {
		if w >= 0 {
			known++
		}
	}
	if !g.ManyClasses {
		if err := columns.CheckClasses(int64(n), known); err != nil {
			return nil, 0, err
		}
	}
	all := make([]string, n)
	for i := range all {
		all[i] = string(terms.t.Word(i))
	}
	if unknown.minus && n == 1 && all[0] == "1" {
		return nil, 0, columns.ErrMinusOne
	}
	names, place, numbered, err := columns.Classes(all)
	if err != nil {
		return nil, 0, err
	}
	if !numbered && (n > MaxClassNames || len(terms.t.Text()) > maxClassText || !utf8.Valid(terms.t.Text())) {
		return nil, 0, fmt.Errorf("there are %d different labels of %d bytes in all; the limit is %d names of classes, of %d bytes, in UTF-8: does the column hold something other than labels?",
			n, len(terms.t.Text()), MaxClassNames, maxClassText)
	}
	for v, w := range y {
		if w >= 0 {
			y[v] = place[w]
		}
	}
	unknown.Say(int64(len(y)), g.Said)
	if numbered {
		return nil, n, nil
	}
	if _, isNumber := columns.Point.Number(names[0]); isNumber {
		if _, isNumber = columns.Point.Number(names[n-1]); isNumber {
			g.Said.Add(notice.Notice{Kind: notice.Renumbered, Where: unknown.Where, What: fmt.Sprintf("the labels are numbers with gaps, or do not begin at 0, so class 0 is %s; the classes have their names", names[0]), Count: int64(n)})
		}
	}
	return names, n, nil
}
