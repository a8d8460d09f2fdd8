package input

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/graphnb/graphnb/graphops/dataset/internal/scan"
	"github.com/graphnb/graphnb/graphops/dataset/internal/words"
)

// SplitNames are the names of the splits that a table of nodes can name.
var SplitNames = [3]string{"train", "val", "test"}

// splitOf returns the number of the split that a table calls word, -1 for none.
func splitOf(word string) (int, bool) {
	switch strings.ToLower(word) {
	case "train", "training":
		return 0, true
	case "val", "valid", "validation", "dev":
		return 1, true
	case "test":
		return 2, true
	case "", "none":
		return -1, true
	}
	return 0, false
}

// NodeColumns says what the columns of a table of nodes are. The zero value is that of the format csv.
type NodeColumns struct {
	// ID are the names that the column of ids can have; nil means id, node, node_id or nodeid.
	ID []string
	// Masks means that splits are columns train_mask, val_mask and test_mask of 0 and 1, or False and True, and not
	// one column split of names.
	Masks bool
	// Lists means that a feature can be a list of numbers, "0.1, 0.2" or "[0.1, 0.2]", as long in each line.
	Lists bool
	// Graph is the name of a column with the number of the line's graph, which must be one for all lines; "" is none.
	Graph string
	// NoFeatures leaves the other columns out.
	NoFeatures bool
	// Empty allows a table without nodes.
	Empty bool
}

// Nodes are the nodes of a table.
type Nodes struct {
	ids        *words.Table
	Features   []string  // names of the columns of features
	X          []float32 // [nodes, Cols]
	Cols       int       // of X: as many as Features, or more if some are lists
	Labels     []int32   // nil: no labels
	ClassNames []string  // nil: labels are class ids
	Splits     [3][]int32
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

// Nodes reads a table of nodes, one a line.
func (t *CSVFile) Nodes(ctx context.Context, c NodeColumns) (*Nodes, error) {
	n := &Nodes{ids: words.New()}
	if c.ID == nil {
		c.ID = []string{"id", "node", "node_id", "nodeid"}
	}
	id, label, split := t.Column(c.ID...), t.Column("label", "class", "y", "target"), -1
	masks := [3]int{-1, -1, -1}
	if c.Masks {
		for k, name := range SplitNames {
			masks[k] = t.Column(name + "_mask")
		}
	} else {
		split = t.Column("split")
	}
	if id < 0 {
		return nil, t.Wrong(`line 1: no column is named %q, but %s; the first line names the columns`, c.ID[0], ShownNames(t.Header))
	}
	var feature []int
	graph := t.OneGraph(c.Graph)
	for i, name := range t.Header {
		if i != id && i != graph.column && i != label && i != split && !slices.Contains(masks[:], i) && !c.NoFeatures {
			feature = append(feature, i)
			n.Features = append(n.Features, name)
		}
	}
	var (
		x     Pile[float32]
		terms = NewTerms()
		y     Pile[int32] // index of the node's word, -1: none
		width = slices.Repeat([]int{1}, len(feature))
	)
	err := t.Each(ctx, func(record []string) error {
		node, isNew, full := n.ids.Add(record[id])
		switch {
		case full:
			return t.At("there are more nodes than int32 counts, or 4 GiB of ids")
		case !isNew:
			return t.At("the id %s is that of line %d of the nodes already; ids are unique", scan.Shown([]byte(record[id])), node+1)
		case record[id] == "":
			return t.At("the node has no id")
		}
		if err := graph.Check(record); err != nil {
			return err
		}
		for k, i := range feature {
			count := 0
			for text := range NumbersOf(record[i], c.Lists) {
				v, ok := scan.Float([]byte(text))
				if !ok || v != v {
					return t.At("the feature %s is %s; features are finite numbers: fill it in, give each word a column of 0 and 1, or leave the column out",
						scan.Shown([]byte(t.Header[i])), scan.Shown([]byte(record[i])))
				}
				x.Add(v)
				count++
			}
			if node == 0 {
				width[k] = count
			}
			if count != width[k] {
				return t.At("the feature %s has %d numbers, and that of the first node %d", scan.Shown([]byte(t.Header[i])), count, width[k])
			}
		}
		if label >= 0 {
			w := int32(-1)
			if record[label] != "" {
				if w, full = terms.Add(record[label]); full {
					return t.At("there are 4 GiB of labels")
				}
			}
			y.Add(w)
		}
		k, err := t.splitOf(record, split, masks)
		if err == nil && k >= 0 {
			n.Splits[k] = append(n.Splits[k], node)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case n.ids.Len() == 0 && !c.Empty:
		return nil, t.Wrong("it has no nodes below its first line")
	}
	for _, w := range width {
		n.Cols += w
	}
	n.X = x.Flat()
	if label >= 0 && n.ids.Len() > 0 {
		n.Labels = y.Flat()
		if n.ClassNames, err = NumberLabels(n.Labels, terms); err != nil {
			return nil, t.Wrong("the column %s: %w", scan.Shown([]byte(t.Header[label])), err)
		}
	}
	return n, nil
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
		return g.t.At("its graph is %s, and that of the first line %s; datasets of one graph are read", scan.Shown([]byte(text)), scan.Shown([]byte(g.first)))
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

// splitOf returns the number of a node's split, -1 for none.
func (t *CSVFile) splitOf(record []string, split int, masks [3]int) (int, error) {
	if split >= 0 {
		k, ok := splitOf(record[split])
		if !ok {
			return 0, t.At("the split is %s; it must be train, val, test or nothing", scan.Shown([]byte(record[split])))
		}
		return k, nil
	}
	found := -1
	for k, i := range masks {
		if i < 0 {
			continue
		}
		switch strings.ToLower(record[i]) {
		case "0", "false", "0.0", "":
		case "1", "true", "1.0":
			if found >= 0 {
				return 0, t.At("the node is in the splits %s and %s", SplitNames[found], SplitNames[k])
			}
			found = k
		default:
			return 0, t.At("%s is %s; a mask is 0 or 1, or False or True", t.Header[i], scan.Shown([]byte(record[i])))
		}
	}
	return found, nil
}

// ShownNames formats column names for an error.
func ShownNames(header []string) string {
	var all []string
	for i, name := range header {
		if i == 5 {
			all = append(all, "…")
			break
		}
		all = append(all, scan.Shown([]byte(name)))
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
type Terms struct{ t *words.Table }

// NewTerms returns Terms without words.
func NewTerms() *Terms { return &Terms{words.New()} }

// Len returns the number of words.
func (n *Terms) Len() int { return n.t.Len() }

// Add returns the number of a word; full reports that there is no room for it.
func (n *Terms) Add(word string) (number int32, full bool) {
	number, _, full = n.t.Add(word)
	return number, full
}

// NumberLabels replaces indices of words by classes, in place. If all words are numbers, these numbers
// are the classes; otherwise the classes follow the alphabetical order of the words, which NumberLabels
// returns.
func NumberLabels(y []int32, terms *Terms) ([]string, error) {
	n := terms.Len()
	if n == 0 {
		return nil, ErrNoLabels
	}
	value := make([]int32, n)
	numbers := 0
	var wrong error
	for i := range n {
		x, ok := scan.Decimal(terms.t.Word(i))
		if !ok {
			continue
		}
		numbers++
		var err error
		if value[i], err = Class(x); err != nil && wrong == nil {
			wrong = err
		}
	}
	var list []string
	switch {
	case numbers == n && wrong != nil:
		return nil, wrong
	case numbers == n:
		if slices.Max(value) < 0 {
			return nil, ErrNoLabels
		}
	case n > MaxClassNames || len(terms.t.Text()) > maxClassText || !utf8.Valid(terms.t.Text()):
		return nil, fmt.Errorf("there are %d different labels of %d bytes in all; the limit is %d names of classes, of %d bytes: does the column hold something other than labels?",
			n, len(terms.t.Text()), MaxClassNames, maxClassText)
	default:
		order := make([]int32, n)
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(terms.t.Word(int(a)), terms.t.Word(int(b))) })
		for c, i := range order {
			value[i] = int32(c)
			list = append(list, string(terms.t.Word(int(i))))
		}
	}
	for v, w := range y {
		if w >= 0 {
			y[v] = value[w]
		}
	}
	return list, nil
}
