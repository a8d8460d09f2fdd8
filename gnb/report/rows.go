package report

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/phrase"
)

// rows are what a report is of: the nodes or edges of a dataset, or the graphs of a dataset of many.
type rows struct {
	ds    *dataset.Dataset // whose nodes are the rows: it has their labels, targets and splits
	unit  string           // "node", "edge" or "graph"
	whole *dataset.Dataset // of graphs, the dataset that holds their nodes; nil for others
	edges *ends            // of edges; nil for others
}

// ends are the nodes that edges join.
type ends struct {
	ds       *dataset.Dataset // of the nodes
	src, dst []int32
	ids      func(row int) []string // of both ends
}

func nodesOf(ds *dataset.Dataset) rows { return rows{ds: ds, unit: "node"} }

// name returns the name of a row, by names of its nodes or graphs if there are some.
func (o rows) name(v int32, names []string) string {
	switch e := o.edges; {
	case e != nil && names != nil:
		return names[e.src[v]] + " → " + names[e.dst[v]]
	case e != nil:
		return strings.Join(e.ids(int(v)), " → ")
	case names != nil:
		return names[v]
	}
	return strconv.Itoa(int(v))
}

// Size is that of a graph.
type Size struct {
	Nodes int `json:"nodes"`
	Edges int `json:"edges"` // directed: an undirected edge counts twice
}

func (s Size) nodes() int { return s.Nodes }
func (s Size) edges() int { return s.Edges }

// size returns the size of a graph.
func (o rows) size(g int32) Size {
	lo, hi := o.whole.GraphSpan(g)
	return Size{int(hi - lo), int(o.whole.Graph.Indptr[hi] - o.whole.Graph.Indptr[lo])}
}

// degree returns the number of in-neighbours of a node, of both ends of an edge, 0 for a graph.
func (o rows) degree(v int32) int {
	if o.whole != nil {
		return 0
	}
	if e := o.edges; e != nil {
		return e.ds.Graph.InDegree(e.src[v]) + e.ds.Graph.InDegree(e.dst[v])
	}
	return o.ds.Graph.InDegree(v)
}

// neighbors returns the in-neighbours of a node, none for a graph.
func (o rows) neighbors(v int32) []int32 {
	if o.whole != nil {
		return nil
	}
	return o.ds.Graph.InNeighbors(v)
}

// names returns the names of the rows: given ones, else their original ids, nil without any.
func (o rows) names(given []string) (names []string, err error) {
	switch {
	case given != nil:
		return given, nil
	case o.whole != nil:
		names, err = o.whole.GraphIDs()
	default:
		names, err = o.ds.IDs()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return names, nil
}

// have begins an error for what the rows lack.
func (o rows) have() string {
	if o.whole == nil {
		return o.ds.Name() + " has"
	}
	return "the graphs of " + o.ds.Name() + " have"
}

// about are the heads of the columns that describe a row in a list, and aboutOf their values.
func (o rows) about() []string {
	if o.whole != nil {
		return []string{"nodes", "edges"}
	}
	return []string{"in-neighbours"}
}

func aboutOf(degree int, size *Size) []string {
	if size != nil {
		return []string{fmt.Sprint(size.Nodes), fmt.Sprint(size.Edges)}
	}
	return []string{fmt.Sprint(degree)}
}

// check checks predictions and options, and fills in the number of mistakes.
func (o rows) check(p *dataset.Matrix, opt *Options) error {
	n := o.ds.Nodes()
	of, named := n, o.unit
	if o.edges != nil { // names are those of nodes
		of, named = o.edges.ds.Nodes(), "node"
	}
	switch {
	case p.Rows != n:
		return fmt.Errorf("report: there are predictions for %s and %s has %d; they belong to different %s", phrase.Count(p.Rows, o.unit), o.ds.Name(), n, map[bool]string{true: "datasets", false: "graphs"}[o.whole != nil])
	case opt.IDs != nil && len(opt.IDs) != of:
		return fmt.Errorf("report: Options.IDs has %s and %s has %d %ss", phrase.Count(len(opt.IDs), "name"), o.ds.Name(), of, named)
	case opt.Mistakes < -1:
		return fmt.Errorf("report: Options.Mistakes is %d; give a number of mistakes to list, 0 for 10, -1 for none", opt.Mistakes)
	}
	opt.Mistakes = cmp.Or(opt.Mistakes, 10)
	return nil
}

// split returns the rows of a split and its name: of "" those of test, or all rows without one.
func (o rows) split(name string) (ids []int32, of string, err error) {
	ids, err = o.ds.Split(cmp.Or(name, "test"))
	switch {
	case err == nil:
		return ids, cmp.Or(name, "test"), nil
	case name != "":
		return nil, "", fmt.Errorf("report: %w", err)
	}
	ids = make([]int32, o.ds.Nodes())
	for v := range ids {
		ids[v] = int32(v)
	}
	return ids, "all", nil
}

// sizeParts is the number of parts of graphs by their size.
const sizeParts = 8

// part is a part of rows with about equal values, from low to high.
type part[R any, V cmp.Ordered] struct {
	rows      []R
	low, high V
}

// name is the part's range, with the words between its ends.
func (p part[R, V]) name(text func(V) string, between string) string {
	if low, high := text(p.low), text(p.high); low != high {
		return low + between + high
	}
	return text(p.low)
}

// equalParts divides rows, in the order of their values, into at most n parts of about equally many rows; rows with equal values
// are in one part.
func equalParts[R any, V cmp.Ordered](all []R, n int, value func(R) V) iter.Seq[part[R, V]] {
	return func(yield func(part[R, V]) bool) {
		order := slices.Clone(all)
		slices.SortStableFunc(order, func(a, b R) int { return cmp.Compare(value(a), value(b)) })
		for lo, k := 0, 0; lo < len(order); k++ {
			hi := lo + max(1, (len(order)-lo)/max(1, n-k))
			for hi < len(order) && value(order[hi]) == value(order[hi-1]) {
				hi++
			}
			if !yield(part[R, V]{order[lo:hi], value(order[lo]), value(order[hi-1])}) {
				return
			}
			lo = hi
		}
	}
}

// sized is a graph with the share of its predictions that are correct.
type sized struct {
	size    Size
	correct float64
}

// accuracyBySize groups graphs by their number of nodes or edges.
func accuracyBySize(all []sized, measure func(Size) int) (list []Group) {
	for p := range equalParts(all, sizeParts, func(s sized) int { return measure(s.size) }) {
		g := Group{Name: p.name(strconv.Itoa, "–"), Nodes: len(p.rows)}
		for _, s := range p.rows {
			g.Accuracy += s.correct / float64(len(p.rows))
		}
		list = append(list, g)
	}
	return list
}
