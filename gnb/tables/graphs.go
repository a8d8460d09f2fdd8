package tables

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/encode"
)

// This file reads tables of many graphs: a table of graphs, whose rows have ids, labels, targets and splits as those of nodes have,
// and a column of kind Graph in the tables of nodes and, if ids are only unique within a graph, of edges.

// graphColumns are the names of a column of kind Graph, and of the ids of a table of graphs.
var graphColumns = []string{"graph", "graphid", "molecule", "moleculeid", "mol", "molid"}

// presets gives the columns of tables of many graphs the kinds that their names say, where the options say nothing.
func (s *source) presets(d *columns.Table) {
	if !s.many {
		return
	}
	kind := Graph
	if s.graphs {
		kind = ID
	}
	if slices.Contains(d.Kinds, columns.Kind(kind)) {
		return
	}
	for _, want := range graphColumns {
		for i, name := range d.Names {
			if d.Kinds[i] == "" && columns.Key(name) == want {
				d.Kinds[i] = columns.Kind(kind)
				s.byName = name
				return
			}
		}
	}
}

// guessTarget makes the only column of numbers with fractions of a table of graphs the number to predict, if it has no label.
func (s *source) guessTarget(cols []Column, o *Options) {
	if !s.graphs || slices.ContainsFunc(cols, func(c Column) bool { return c.Kind == Label || c.Kind == Target }) {
		return
	}
	found := -1
	for i, c := range cols {
		if c.Kind == Number && s.profs[i].fractions() > 0 {
			if found >= 0 || c.Why == "as given" {
				return
			}
			found = i
		}
	}
	if found < 0 {
		return
	}
	c := &cols[found]
	c.Kind, c.Why = Target, "the only numbers with fractions, and there is no label"
	o.say(notice.Notice{Kind: notice.Guessed, Where: filepath.Base(s.table.path), What: fmt.Sprintf("there is no label, so the column %s, the only one of numbers with fractions, is the number to predict", shown(c.Name)), Option: columns.Option(c.Name, columns.Number) + " reads it otherwise"})
}

// errLocal is the error of an id that a node of another graph has too.
var errLocal = errors.New("ids of nodes are unique within their graphs only")

// within is how a table of nodes or edges names its graphs.
type within struct {
	graphs *nodes
	// local says that ids are unique within a graph only: the keys of nodes then begin with their graphs.
	local bool
	of    []int32 // the graph of each node
}

// graphAt returns the graph in a row, -1 without a column.
func (w *within) graphAt(b *batch, i int, v *vec) (int32, error) {
	if w == nil || v == nil {
		return -1, nil
	}
	k, err := keyOf(v, i)
	if errors.Is(err, errNoID) {
		return 0, fault("%s: the graph is missing; each row has the id of its graph", b.at(i))
	}
	if err != nil {
		return 0, fault("%s: the graph is %s: %w", b.at(i), v.value(i), err)
	}
	g := w.graphs.idx.find(k)
	if g < 0 {
		return 0, fault("%s: the graph %s is the id of no row of the table of graphs; remove the row, or add the graph to its table", b.at(i), shown(k.String()))
	}
	return g, nil
}

// keyIn returns the key of a node's id within a graph.
func (w *within) keyIn(g int32, k key) key {
	if w == nil || !w.local {
		return k
	}
	return key{text: true, word: w.graphs.idx.key(g).String() + "\t" + k.String()}
}

// trains reports whether a graph is in the split train of the first set, or no split is known.
func (n *nodes) trains() []bool {
	trains := make([]bool, n.rows)
	if len(n.splits) == 0 || len(n.splits[0][0])+len(n.splits[0][1])+len(n.splits[0][2]) == 0 {
		for g := range trains {
			trains[g] = true
		}
		return trains
	}
	for _, g := range n.splits[0][0] {
		trains[g] = true
	}
	return trains
}

// readGraphs reads the table of graphs.
func (r *Recipe) readGraphs(ctx context.Context, s *source, o *Options, missing *columns.Missing) (*nodes, error) {
	read := func(given []int8) (*nodes, error) {
		n := &nodes{t: r.Graphs, missing: missing, seed: r.Seed, idx: &index{}, one: "graph", given: given}
		n.draw = o.Split == "" && (n.t.column(Label) != nil || n.t.column(Target) != nil) && !n.t.split()
		if o.Recipe == nil {
			fit := *o
			if o.Split != "" && given == nil { // its splits are not known yet
				fit.Fit = "all"
			}
			if err := n.fit(ctx, s.table, &fit); err != nil {
				return nil, err
			}
			o.said = fit.said
		}
		return n, n.encode(ctx, s.table, o.Recipe != nil)
	}
	plain := *r.Graphs
	plain.Columns = slices.Clone(plain.Columns)
	n, err := read(nil)
	if err != nil {
		return nil, err
	}
	if o.Split != "" {
		d := &dataset.Dataset{Labels: n.labels, Meta: dataset.Metadata{Name: filepath.Base(s.table.path), NumNodes: n.rows, NumClasses: len(n.t.Classes)}}
		if len(n.lacking) > 0 {
			d.Targets = &dataset.Matrix{Rows: n.rows, Cols: len(n.lacking), F32: n.targets}
		}
		if err := convert.Divide(ctx, d, o.Split, r.Seed); err != nil {
			return nil, fault("%w", err)
		}
		given := slices.Repeat([]int8{-1}, n.rows)
		for k, name := range splitNames {
			for _, g := range d.Splits[name] {
				given[g] = int8(k)
			}
		}
		if o.Recipe == nil {
			*r.Graphs = plain
			quiet := *o
			quiet.Notice = func(notice.Notice) {}
			whole := o
			o = &quiet
			n, err = read(given)
			if o = whole; err != nil {
				return nil, err
			}
		}
		n.splits, n.outside = make([][3][]int32, d.SplitSets()), 0
		for set := range n.splits {
			for k, name := range splitNames {
				n.splits[set][k] = d.Splits[dataset.SplitSetName(name, set)]
			}
		}
	}
	n.say(s.table, o)
	n.sayConstant(s.table, o)
	return n, nil
}

// sayConstant reports targets whose known values are all equal.
func (n *nodes) sayConstant(tab *table, o *Options) {
	var names []string
	for _, c := range n.t.Columns {
		if c.Kind == Target {
			names = append(names, c.Name)
		}
	}
	for k, name := range names {
		first, same, known := float32(0), true, 0
		for i := k; i < len(n.targets); i += len(names) {
			if y := n.targets[i]; y == y { //nolint:gocritic // not NaN
				if known++; known == 1 {
					first = y
				}
				same = same && y == first
			}
		}
		if same && known > 1 {
			o.say(notice.Notice{Kind: notice.Told, Where: filepath.Base(tab.path), What: fmt.Sprintf("every known value of the target %s is %v, so there is nothing to learn about it", shown(name), first)})
		}
	}
}

// group makes the nodes of each graph follow each other, in the order of the graphs and then of the rows.
func (n *nodes) group(tab *table, o *Options) {
	of := n.within.of
	if slices.IsSorted(of) {
		return
	}
	order := make([]int32, n.rows) // by new number, the row
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return int(of[a] - of[b]) })
	place := make([]int32, n.rows)
	idx, graph := &index{}, make([]int32, n.rows)
	for i, row := range order {
		place[row], graph[i] = int32(i), of[row]
		idx.add(n.idx.key(row))
	}
	n.idx, n.within.of = idx, graph
	n.labels = permuted(n.labels, 1, order)
	n.targets = permuted(n.targets, len(n.lacking), order)
	if n.t.Sparse {
		rows := &graphops.Sparse{}
		n.sparse.Gather(order, rows, o.Threads)
		n.sparse = rows
	} else {
		n.x = permuted(n.x, n.t.Width, order)
	}
	for set := range n.splits {
		for k, ids := range n.splits[set] {
			for i, v := range ids {
				ids[i] = place[v]
			}
			slices.Sort(n.splits[set][k])
		}
	}
	o.say(notice.Notice{Kind: notice.Renumbered, Where: filepath.Base(tab.path), What: "nodes are sorted by the order of their graphs, because the nodes of a graph follow each other", Count: int64(n.rows)})
}

// permuted returns the rows of x in an order; nil for nil.
func permuted[T any](x []T, cols int, order []int32) []T {
	if len(x) == 0 || cols == 0 {
		return x
	}
	to := make([]T, 0, len(x))
	for _, row := range order {
		to = append(to, x[int(row)*cols:int(row+1)*cols]...)
	}
	return to
}

// putGraphs makes the dataset one of many graphs.
func (r *Recipe) putGraphs(d *dataset.Dataset, of *within, o *Options) {
	n := of.graphs
	d.GraphOffsets = make([]int64, n.rows+1)
	for _, g := range of.of {
		d.GraphOffsets[g+1]++
	}
	empty := int64(0)
	for g := range n.rows {
		if d.GraphOffsets[g+1] == 0 {
			empty++
		}
		d.GraphOffsets[g+1] += d.GraphOffsets[g]
	}
	if empty > 0 {
		o.say(notice.Notice{Kind: notice.Guessed, Where: "graphs", What: "graphs of which no node has the id are kept, without nodes", Count: empty, Of: int64(n.rows)})
	}
	x := n.matrix()
	g := &dataset.Dataset{Features: x.Dense, SparseFeatures: x.Sparse, Labels: n.labels, Splits: map[string][]int32{}}
	g.Meta = dataset.Metadata{NumNodes: n.rows, NumClasses: len(n.t.Classes), FeatureNames: dataset.KeepNames(n.t.Features(), "graphs", o.say)}
	if !n.t.Numbered {
		g.Meta.ClassNames = n.t.Classes
	}
	names := (&Recipe{Nodes: []Table{*n.t}}).targets()
	if len(names) > 0 {
		g.Targets = &dataset.Matrix{Rows: n.rows, Cols: len(names), F32: n.targets}
		g.Meta.TargetNames = names
	}
	n.eachSplit(func(name string, ids []int32) { g.Splits[name] = ids })
	d.Graphs = g
}

// checkSame returns an error for an edge between two graphs, or of another graph than its row says (-1: nothing).
func (w *within) checkSame(b *batch, i int, said, u, v int32) error {
	if w == nil {
		return nil
	}
	name := func(g int32) string { return shown(w.graphs.idx.key(g).String()) }
	switch a, c := w.of[u], w.of[v]; {
	case a != c:
		return fault("%s: the edge leads from a node of the graph %s to one of the graph %s; the graphs of a dataset have no edges between them", b.at(i), name(a), name(c))
	case said >= 0 && said != a:
		return fault("%s: the row is of the graph %s, and its nodes of the graph %s; correct the row, or skip the column (--kinds)", b.at(i), name(said), name(a))
	}
	return nil
}

// errOneSplit is the error of Options.Split for tables of one graph.
var errOneSplit = errors.New("it divides the graphs of tables of many (graphs.csv), or edges with numbers to predict; nodes are divided by a column split, or at random")

// errOneGraph is the error of encodings for tables of one graph.
var errOneGraph = errors.New("positional encodings are for tables of many graphs (graphs.csv), because new nodes of one graph would change those of old ones; package graphops/encode computes them of a dataset")

// addEncodings adds positional encodings to the features.
func (r *Recipe) addEncodings(ctx context.Context, d *dataset.Dataset, o *Options) (*dataset.Dataset, error) {
	e, err := encode.Parse(r.Encode)
	if err != nil {
		return nil, fault("%w", err)
	}
	e.Threads = o.Threads
	if d, err = encode.Add(ctx, d, e); err != nil {
		return nil, fault("%w", err)
	}
	return d, nil
}

// checkGraphs returns an error unless tables of many graphs fit together.
func (f *Files) checkGraphs() error {
	if f.Graphs == "" {
		return nil
	}
	if len(f.Nodes) > 1 || len(f.Edges) > 1 || len(f.Nodes) == 1 && f.Nodes[0].Type != "" {
		return fault("with a table of graphs there is one table of nodes and one of edges, without types")
	}
	return nil
}

// graphColumn returns an error if the nodes of many graphs do not say of which graph they are.
func (r *Recipe) graphColumn(nodes, edges []*source) error {
	if r.Graphs == nil {
		for i, t := range slices.Concat(r.Nodes, r.Edges) {
			if c := t.column(Graph); c != nil {
				return fault("%s: the column %s is the graph of a row, and there is no table of graphs; add graphs.csv, with the id and the label of each", slices.Concat(nodes, edges)[i].table.path, shown(c.Name))
			}
		}
		return nil
	}
	if r.Nodes[0].column(Graph) == nil {
		return fault("%s: no column is the graph of the nodes; name it graph, or say which it is in Kinds (--kinds COLUMN=graph); the columns are %s", nodes[0].table.path, strings.Join(nodes[0].table.names, ", "))
	}
	if r.Nodes[0].Local && r.Edges[0].column(Graph) == nil {
		return fault("%s: two graphs have nodes of the same id, and no column is the graph of the edges; name it graph, or say which it is in Kinds (--kinds COLUMN=graph); the columns are %s", edges[0].table.path, strings.Join(edges[0].table.names, ", "))
	}
	return nil
}
