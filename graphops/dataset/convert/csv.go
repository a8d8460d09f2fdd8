package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/convert/input"
	"github.com/graphnb/graphnb/graphops/dataset/internal/scan"
	"github.com/graphnb/graphnb/graphops/dataset/internal/words"
)

// csvReader reads a folder of two tables whose first lines name the columns. Each line of nodes.csv
// is a node with these columns: id, a unique word or number; label (optional), a word or a class
// id, empty if unknown; split (optional): train, val, test or empty. Every other column is a
// feature, a finite number. Node k is line k of the table, counted from 0. Each line of edges.csv
// is an edge: source, target and optionally weight; other columns are ignored, unless
// Options.EdgeFeatures or EdgeTimes name them.
//
// Labels that are words become classes in alphabetical order, listed in Metadata.ClassNames; class
// ids stay as they are.
type csvReader struct{}

func (csvReader) Name() string { return "csv" }

// Folder implements [FolderReader].
func (csvReader) Folder() bool { return true }

func (csvReader) About() string {
	return "a folder of two tables: nodes.csv (id, maybe label and split, every other column a feature) and edges.csv (source, target, maybe weight; --edge-features and --edge-times name others)"
}

func (csvReader) Detect(s *Source) bool {
	return s.Find(input.CSVNames("nodes")...) != "" && s.Find(input.CSVNames("edges")...) != ""
}

func (csvReader) Read(ctx context.Context, s *Source, o Options) (*dataset.Dataset, error) {
	nodes, err := s.csvNodes(ctx, o)
	if err != nil {
		return nil, err
	}
	e, err := s.csvEdges(ctx, nodes.ids, o)
	if err != nil {
		return nil, err
	}
	nodes.ids = nil
	d, err := e.dataset(o)
	if err != nil {
		return nil, err
	}
	d.Labels, d.Meta.NumClasses, d.Meta.ClassNames = nodes.y, classes(nodes.y), nodes.classNames
	for k, ids := range nodes.splits {
		if len(ids) > 0 {
			d.Splits[splitNames[k]] = ids
		}
	}
	if len(nodes.features) > 0 {
		d.Features = &dataset.Matrix{Rows: d.Nodes(), Cols: len(nodes.features), F32: nodes.x}
		o.note("the features are %s", strings.Join(nodes.features, ", "))
	} else if o.Features == "" {
		o.note("%s has no node features; --features makes some", s.Path)
	}
	if len(d.Meta.ClassNames) > 0 {
		o.note("the classes are %s", strings.Join(d.Meta.ClassNames, ", "))
	}
	return d, nil
}

var splitNames = [3]string{"train", "val", "test"}

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

// csvNodes holds the columns of nodes.csv.
type csvNodes struct {
	ids        *words.Table
	features   []string  // names of the feature columns
	x          []float32 // [nodes, features]
	y          []int32   // nil: no labels
	classNames []string  // nil: labels are class ids
	splits     [3][]int32
}

func (s *Source) csvNodes(ctx context.Context, o Options) (*csvNodes, error) {
	t, err := s.Table("nodes", "the nodes, one a line")
	if err != nil {
		return nil, err
	}
	defer t.Close()
	n := &csvNodes{ids: words.New()}
	id, label, split := t.Column("id", "node", "node_id", "nodeid"), t.Column("label", "class", "y", "target"), t.Column("split")
	if id < 0 {
		return nil, t.Wrong(`line 1: no column is named "id", but %s; the first line names the columns`, shownNames(t.Header))
	}
	var feature []int
	for i, name := range t.Header {
		if i != id && i != label && i != split && o.Features == "" {
			feature = append(feature, i)
			n.features = append(n.features, name)
		}
	}
	var (
		x     input.Pile[float32]
		terms = words.New()
		y     input.Pile[int32] // index of the node's word, -1: none
	)
	err = t.Each(ctx, func(record []string) error {
		node, isNew, full := n.ids.Add(record[id])
		switch {
		case full:
			return t.At("there are more nodes than int32 counts, or 4 GiB of ids")
		case !isNew:
			return t.At("the id %s is that of line %d of the nodes already; ids are unique", scan.Shown([]byte(record[id])), node+1)
		case record[id] == "":
			return t.At("the node has no id")
		}
		for _, i := range feature {
			v, ok := scan.Float([]byte(record[i]))
			if !ok || v != v {
				return t.At("the feature %s is %s; features are finite numbers: fill it in, give each word a column of 0 and 1, or leave the column out",
					scan.Shown([]byte(t.Header[i])), scan.Shown([]byte(record[i])))
			}
			x.Add(v)
		}
		if label >= 0 {
			w := int32(-1)
			if record[label] != "" {
				if w, _, full = terms.Add(record[label]); full {
					return t.At("there are 4 GiB of labels")
				}
			}
			y.Add(w)
		}
		if split >= 0 {
			k, ok := splitOf(record[split])
			if !ok {
				return t.At("the split is %s; it must be train, val, test or nothing", scan.Shown([]byte(record[split])))
			}
			if k >= 0 {
				n.splits[k] = append(n.splits[k], node)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case n.ids.Len() == 0:
		return nil, t.Wrong("it has no nodes below its first line")
	}
	n.x = x.Flat()
	if label >= 0 {
		n.y = y.Flat()
		if n.classNames, err = number(n.y, terms); err != nil {
			return nil, t.Wrong("the column %s: %w", scan.Shown([]byte(t.Header[label])), err)
		}
	}
	return n, nil
}

// shownNames formats column names for an error.
func shownNames(header []string) string {
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
	maxClassNames = 10_000
	maxClassText  = 128 << 10
)

var errNoLabels = errors.New("every label is unknown")

// number replaces indices of words by classes, in place. If all words are numbers, these numbers
// are the classes; otherwise the classes follow the alphabetical order of the words, which number
// returns.
func number(y []int32, terms *words.Table) ([]string, error) {
	n := terms.Len()
	if n == 0 {
		return nil, errNoLabels
	}
	value := make([]int32, n)
	numbers := 0
	var wrong error
	for i := range n {
		x, ok := scan.Decimal(terms.Word(i))
		if !ok {
			continue
		}
		numbers++
		var err error
		if value[i], err = class(x); err != nil && wrong == nil {
			wrong = err
		}
	}
	var list []string
	switch {
	case numbers == n && wrong != nil:
		return nil, wrong
	case numbers == n:
		if slices.Max(value) < 0 {
			return nil, errNoLabels
		}
	case n > maxClassNames || len(terms.Text()) > maxClassText || !utf8.Valid(terms.Text()):
		return nil, fmt.Errorf("there are %d different labels of %d bytes in all; the limit is %d names of classes, of %d bytes: does the column hold something other than labels?",
			n, len(terms.Text()), maxClassNames, maxClassText)
	default:
		order := make([]int32, n)
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(terms.Word(int(a)), terms.Word(int(b))) })
		for c, i := range order {
			value[i] = int32(c)
			list = append(list, string(terms.Word(int(i))))
		}
	}
	for v, w := range y {
		if w >= 0 {
			y[v] = value[w]
		}
	}
	return list, nil
}

// csvEdges reads edges.csv, whose endpoints are ids of nodes.
func (s *Source) csvEdges(ctx context.Context, ids *words.Table, o Options) (*edges, error) {
	t, err := s.Table("edges", "the edges, one a line")
	if err != nil {
		return nil, err
	}
	defer t.Close()
	ends := [2]int{t.Column("source", "src", "from"), t.Column("target", "dst", "to")}
	weight := t.Column("weight", "w")
	if ends[0] < 0 || ends[1] < 0 {
		return nil, t.Wrong(`line 1: the columns are %s; an edge has a "source" and a "target", and maybe a "weight"`, shownNames(t.Header))
	}
	more, err := findEdgeColumns(t, o, ends[0], ends[1], weight)
	if err != nil {
		return nil, err
	}
	var list [2]input.Pile[int32]
	var w input.Pile[float32]
	err = t.Each(ctx, func(record []string) error {
		for k, i := range ends {
			v, _, ok := ids.Find(record[i])
			if !ok {
				return t.At("the %s %s is the id of no node", t.Header[i], scan.Shown([]byte(record[i])))
			}
			list[k].Add(v)
		}
		if weight >= 0 {
			x, ok := scan.Float([]byte(record[weight]))
			if !ok || x != x || x < 0 {
				return t.At("the weight is %s; it is a finite number and not negative", scan.Shown([]byte(record[weight])))
			}
			w.Add(x)
		}
		return more.add(record)
	})
	switch {
	case err != nil:
		return nil, err
	case list[0].N == 0:
		return nil, t.Wrong("it has no edges below its first line")
	}
	for _, name := range t.Header {
		if i := t.Column(name); i != ends[0] && i != ends[1] && i != weight && i != more.time && !slices.Contains(more.features, i) {
			o.note("%s: the column %s is not read; --edge-features or --edge-times can name it", t.Path, scan.Shown([]byte(name)))
		}
	}
	if names := more.names(); names != "" {
		o.note("the features of the edges are %s", names)
	}
	e := &edges{nodes: ids.Len(), src: list[0].Flat(), dst: list[1].Flat(), w: w.Flat()}
	more.give(e)
	return e, nil
}
