package convert

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = tablesReader{}

// tablesReader reads a folder with a table of nodes for each type, nodes.TYPE.csv, and a table of edges for each relation,
// edges.SOURCE.RELATION.DESTINATION.csv. The columns are those of the format csv: id, label, split and features of nodes;
// source, target and weight of edges, whose ends are ids of nodes of the relation's types. Types are in alphabetical
// order, and so are relations. Ids are unique within a type.
type tablesReader struct{}

func (tablesReader) Name() string { return "typed-csv" }

func (tablesReader) About() string {
	return "a folder of tables by type: nodes.TYPE.csv and edges.SOURCE.RELATION.DESTINATION.csv, with the columns of csv"
}

// Folder implements [folderReader].
func (tablesReader) Folder() bool { return true }

// part is a file of a table, and the name of what it holds: a type, or a relation with its ends.
type part struct{ file, name string }

// partsOf returns the tables of a folder whose names begin with a word, by their names.
func partsOf(s *source, word string) (parts []part) {
	for _, file := range s.Files {
		for _, ending := range []string{".csv", ".tsv", ".csv.gz", ".tsv.gz"} {
			if name, ok := strings.CutSuffix(file, ending); ok {
				if name, ok = strings.CutPrefix(name, word+"."); ok && name != "" {
					parts = append(parts, part{file, name})
				}
			}
		}
	}
	return parts
}

func (tablesReader) detect(s *source) bool {
	return len(partsOf(s, "nodes")) > 0 && len(partsOf(s, "edges")) > 0
}

func (r tablesReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	if err := refuse(s, r.Name(), o); err != nil {
		return nil, err
	}
	b, l := &builder{}, &tableLoader{ctx: ctx, s: s, o: o, ids: map[string]*tabular.Nodes{}}
	nodes, edges := partsOf(s, "nodes"), partsOf(s, "edges")
	switch {
	case len(nodes) == 0:
		return nil, tabular.Errorf("%s: there is no nodes.TYPE.csv, a table with the nodes of a type", s.Path)
	case len(edges) == 0:
		return nil, tabular.Errorf("%s: there is no edges.SOURCE.RELATION.DESTINATION.csv, a table with the edges of a relation", s.Path)
	}
	for _, p := range nodes {
		if l.ids[p.name] != nil {
			return nil, wrong(s, p.file, "it is a second table of the node type %q", p.name)
		}
		n, err := l.nodes(p.file, p.name, tabular.NodeColumns{}, false)
		if err != nil {
			return nil, err
		}
		b.nodes = append(b.nodes, n)
	}
	for _, p := range edges {
		first, last := strings.IndexByte(p.name, '.'), strings.LastIndexByte(p.name, '.')
		if first <= 0 || first == last || last == len(p.name)-1 {
			return nil, wrong(s, p.file, "its name is not edges.SOURCE.RELATION.DESTINATION.csv, with two types of nodes and the relation's name between them")
		}
		relation := graphops.Relation{Src: p.name[:first], Name: p.name[first+1 : last], Dst: p.name[last+1:]}
		e, err := l.edges(p.file, relation, "", "")
		if err != nil {
			return nil, err
		}
		b.edges = append(b.edges, e)
	}
	return l.dataset(b)
}

// tableLoader reads tables by type.
type tableLoader struct {
	ctx context.Context
	s   *source
	o   Options
	ids map[string]*tabular.Nodes // by type
	// place is the number of each line's node; nil: the number of the line.
	place map[string][]int32
	total int64
	lists bool   // features of edges can be lists of numbers
	graph string // column with the number of the graph, "" if there is none
}

// names is the file of names of a node type's nodes in the directory of the result.
func names(nodeType string) string { return "names." + nodeType + ".txt" }

// open opens a table.
func (l *tableLoader) open(file, what string) (*tabular.CSVFile, error) {
	f, err := l.s.Open(filepath.ToSlash(file), what)
	if err != nil {
		return nil, err
	}
	t, err := tabular.NewCSV(f)
	if err != nil {
		_ = f.Close()
	}
	return t, err
}

// nodes reads the table of a type's nodes. With sorted, nodes are numbered by ascending id: by number if all ids are
// whole numbers.
func (l *tableLoader) nodes(file, name string, c tabular.NodeColumns, sorted bool) (n nodeTable, err error) {
	open := func() (*tabular.CSVFile, error) { return l.open(file, "the nodes of type "+name) }
	c.Empty, c.NoFeatures, c.Guide, c.Table, c.Overlap = true, l.o.Features != "", l.o.columnGuide(), name, l.o.OverlappingSplits
	read, err := tabular.ReadNodes(l.ctx, open, c)
	if err != nil {
		return n, err
	}
	if !addCount(&l.total, int64(read.Len())) {
		return n, wrong(l.s, file, "with its nodes there are more than %d", math.MaxInt32)
	}
	n = nodeTable{name: name, count: read.Len(), labels: read.Labels, classNames: read.ClassNames, splits: map[string][]int32{}}
	if read.Cols > 0 {
		n.features = &dataset.Matrix{Rows: n.count, Cols: read.Cols, F32: read.X}
		n.names = dataset.KeepNames(read.Features, file, l.o.said)
		l.o.said.Tell("the features of the nodes of type %s are %s", name, strings.Join(read.Features, ", "))
	}
	for split, ids := range read.Splits {
		n.splits[split] = ids
	}
	if len(n.classNames) > 0 {
		l.o.said.Tell("the classes of the nodes of type %s are %s", name, strings.Join(n.classNames, ", "))
	}
	l.ids[name] = read
	if sorted {
		l.sort(&n, read)
	}
	return n, l.keepNames(name, read)
}

// keepNames puts the ids of a type's nodes beside the dataset, unless they are the numbers of the nodes.
func (l *tableLoader) keepNames(name string, read *tabular.Nodes) error {
	list, plain := make([]string, read.Len()), true
	for i := range list {
		v := i
		if p := l.place[name]; p != nil {
			v = int(p[i])
		}
		list[v] = read.ID(i)
		plain = plain && list[v] == fmt.Sprint(v)
		if strings.ContainsAny(list[v], "\r\n") {
			return tabular.Errorf("%s: the id %s of a node of type %s has a line break", l.s.Path, tabular.Shown([]byte(list[v])), name)
		}
	}
	if err := (&graphops.Schema{Nodes: []graphops.NodeType{{Name: name}}}).Validate(); err != nil {
		return tabular.Errorf("reading %s: %w", l.s.Path, err) // a file has the type's name
	}
	if !plain {
		l.s.Keep(names(name), list)
	}
	return nil
}

// sort numbers the nodes of a type by ascending id.
func (l *tableLoader) sort(n *nodeTable, read *tabular.Nodes) {
	order, numbers := make([]int32, n.count), make([]int64, n.count)
	whole := true
	for i := range order {
		order[i] = int32(i)
		x, ok := tabular.Whole([]byte(read.ID(i)))
		numbers[i], whole = x, whole && ok
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		if whole {
			return cmp.Compare(numbers[a], numbers[b])
		}
		return strings.Compare(read.ID(int(a)), read.ID(int(b)))
	})
	place := make([]int32, n.count)
	for to, from := range order {
		place[from] = int32(to)
	}
	if l.place == nil {
		l.place = map[string][]int32{}
	}
	l.place[n.name] = place
	if x := n.features; x != nil {
		rows := make([]float32, len(x.F32))
		for to, from := range order {
			copy(rows[to*x.Cols:(to+1)*x.Cols], x.F32[int(from)*x.Cols:])
		}
		x.F32 = rows
	}
	if n.labels != nil {
		labels := make([]int32, n.count)
		for to, from := range order {
			labels[to] = n.labels[from]
		}
		n.labels = labels
	}
	for _, ids := range n.splits {
		for i, v := range ids {
			ids[i] = place[v]
		}
		slices.Sort(ids)
	}
}

// edges reads the table of a relation's edges, whose ends are in the columns of the names src and dst; "" recognises them.
func (l *tableLoader) edges(file string, r graphops.Relation, src, dst string) (e edgeTable, err error) {
	e.Relation = r
	for _, end := range []string{r.Src, r.Dst} {
		if l.ids[end] == nil {
			return e, wrong(l.s, file, "its relation %s has the end %q, but there is no table of nodes of that type", r, end)
		}
	}
	open := func() (*tabular.CSVFile, error) { return l.open(file, "the edges of "+r.String()) }
	t, err := tabular.LookEdges(l.ctx, open, tabular.EdgeAsk{Guide: l.o.columnGuide(), Table: r.Name, Source: src, Target: dst, Features: l.o.EdgeFeatures, Times: l.o.EdgeTimes, Graph: l.graph, Lists: l.lists, Some: true})
	if err != nil {
		return e, err
	}
	defer t.Close()
	var list [2]tabular.Pile[int32]
	types := [2]string{r.Src, r.Dst}
	for k, i := range t.Ends {
		if _, ok := l.ids[types[k]].Find(t.Names[i]); t.Kinds[i].Why == "by its place" && ok {
			return e, t.Wrong("line 1: it has no names of columns, but the id %s of a node as its %s; a first line source,target names them", tabular.Shown([]byte(t.Names[i])), [2]string{"source", "target"}[k])
		}
	}
	err = t.Each(l.ctx, func(record []string) error {
		for k, i := range t.Ends {
			v, ok := l.ids[types[k]].Find(record[i])
			if !ok {
				return t.At("the %s %s is the id of no node of type %s", t.Header[i], tabular.Shown([]byte(record[i])), types[k])
			}
			if p := l.place[types[k]]; p != nil {
				v = p[v]
			}
			list[k].Add(v)
		}
		return nil
	})
	e.read, e.columns = t.Read, t.Columns()
	e.src, e.dst, e.weights, e.x, e.times = list[0].Flat(), list[1].Flat(), t.Weights.Flat(), t.X.Flat(), t.Times.Flat()
	return e, err
}

// dataset makes the dataset of all tables, and frees the ids.
func (l *tableLoader) dataset(b *builder) (*dataset.Dataset, error) {
	if err := b.checkColumns(l.s, l.o); err != nil {
		return nil, err
	}
	l.ids = nil
	return b.dataset(l.s, l.o)
}

// checkColumns returns an error if a column that an option names is in no table.
func (b *builder) checkColumns(s *source, o Options) error {
	for _, name := range strings.Split(strings.ToLower(o.EdgeFeatures), ",") {
		if name == "" || name == "all" || slices.ContainsFunc(b.edges, func(e edgeTable) bool { return slices.Contains(e.read, name) }) {
			continue
		}
		return tabular.Errorf("%s: --edge-features names %s, which is no column for a feature in any table of edges", s.Path, tabular.Shown([]byte(name)))
	}
	return nil
}
