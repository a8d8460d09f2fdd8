package convert

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = ogbTypedReader{}

// ogbTypedReader reads the folders of OGB with types, such as ogbn-mag's:
//
//	raw/num-node-dict.csv.gz           names of the node types, and a line of their numbers of nodes
//	raw/triplet-type-list.csv.gz       a line for each relation: source type, name, destination type
//	raw/relations/A___R___B/edge.csv.gz, num-edge-list.csv.gz and maybe edge-feat.csv.gz
//	raw/node-feat/TYPE/node-feat.csv.gz, of some types
//	raw/nodetype-has-label.csv.gz and raw/node-label/TYPE/node-label.csv.gz
//	split/SCHEME/TYPE/train.csv.gz, valid.csv.gz and test.csv.gz
//
// Types and relations are in alphabetical order, as OGB's loader has them. Files can be decompressed already.
// --name chooses between several schemes.
//
// Source: W. Hu et al., Open Graph Benchmark, NeurIPS 2020, arXiv:2005.00687, and ogb/io/read_graph_raw.py.
type ogbTypedReader struct{}

func (ogbTypedReader) Name() string { return "ogb-typed" }

// Folder implements [folderReader].
func (ogbTypedReader) Folder() bool { return true }

func (ogbTypedReader) About() string {
	return "an OGB folder with types, such as ogbn-mag's: raw/num-node-dict.csv.gz, raw/relations/…, raw/node-feat/…, split/…"
}

func (ogbTypedReader) detect(s *source) bool {
	return findCSV(s, "raw/num-node-dict") != ""
}

// findCSV returns the name of a file with or without compression, "" if there is none.
func findCSV(s *source, name string) string { return s.Find(name+".csv.gz", name+".csv") }

// ogb reads one folder.
type ogb struct {
	ctx context.Context
	s   *source
	o   Options
	builder
}

// open opens NAME.csv.gz or NAME.csv.
func (l *ogb) open(name, what string) (*tabular.File, error) {
	found := findCSV(l.s, name)
	if found == "" {
		found = name + ".csv.gz"
	}
	return l.s.Open(found, what)
}

func (r ogbTypedReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	if err := refuse(s, r.Name(), o); err != nil {
		return nil, err
	}
	if o.EdgeFeatures != "" || o.EdgeTimes != "" {
		return nil, tabular.Errorf("%s: the format %s has none of --edge-features and --edge-times; it reads edge-feat.csv.gz by itself", s.Path, r.Name())
	}
	l := &ogb{ctx: ctx, s: s, o: o}
	for _, step := range []func() error{l.counts, l.relations, l.features, l.labels, l.splits} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return l.dataset(s, o)
}

// table reads a table whose first line names node types and whose second has a value for each.
func (l *ogb) table(name, what string) (types, values []string, err error) {
	f, err := l.open(name, what)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	var lines [][]byte
	err = l.lines(f, func(line []byte, number int64) error {
		if len(lines) == 2 {
			return f.Wrong("line %d: the folder holds several graphs; datasets of one graph are read", number)
		}
		lines = append(lines, slices.Clone(line))
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if len(lines) != 2 {
		return nil, nil, f.Wrong("it has %d lines; it names the node types in the first line and has %s in the second", len(lines), what)
	}
	types, values = strings.Split(string(lines[0]), ","), strings.Split(string(lines[1]), ",")
	if len(types) != len(values) {
		return nil, nil, f.Wrong("it names %d node types and has values for %d", len(types), len(values))
	}
	for i := range types {
		types[i], values[i] = strings.TrimSpace(types[i]), strings.TrimSpace(values[i])
	}
	return types, values, nil
}

// lines calls visit for every line that is not blank.
func (l *ogb) lines(f *tabular.File, visit func(line []byte, number int64) error) error {
	return tabular.EachBlock(l.ctx, f, 1, func(b tabular.Block) (tabular.Block, error) {
		b.Text = slices.Clone(b.Text)
		return b, nil
	}, func(b tabular.Block) error {
		return b.Lines(func(line []byte, number int64) error {
			if len(tabular.Trim(line)) == 0 {
				return nil
			}
			return visit(line, number)
		})
	})
}

func (l *ogb) counts() error {
	types, values, err := l.table("raw/num-node-dict", "the number of nodes of each type")
	if err != nil {
		return err
	}
	total := int64(0)
	for i, name := range types {
		n, ok := tabular.Whole([]byte(values[i]))
		if !ok || !addCount(&total, n) {
			return wrong(l.s, "raw/num-node-dict.csv.gz", "the number of nodes of type %q is %s, and all types together have at most %d nodes", name, tabular.Shown([]byte(values[i])), MaxNodes)
		}
		l.nodes = append(l.nodes, nodeTable{name: name, count: int(n), splits: map[string][]int32{}})
	}
	slices.SortStableFunc(l.nodes, func(a, b nodeTable) int { return strings.Compare(a.name, b.name) })
	if err := l.schema().Validate(); err != nil {
		return wrong(l.s, "raw/num-node-dict.csv.gz", "%w", err)
	}
	return nil
}

func (l *ogb) relations() error {
	f, err := l.open("raw/triplet-type-list", "the relations")
	if err != nil {
		return err
	}
	defer f.Close()
	err = l.lines(f, func(line []byte, number int64) error {
		names := strings.Split(string(line), ",")
		if len(names) != 3 {
			return f.Wrong("line %d has %d fields; a relation is a source type, a name and a destination type, with commas between them", number, len(names))
		}
		l.edges = append(l.edges, edgeTable{Relation: graphops.Relation{Src: strings.TrimSpace(names[0]), Name: strings.TrimSpace(names[1]), Dst: strings.TrimSpace(names[2])}})
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(l.edges, func(a, b edgeTable) int {
		return slices.Compare([]string{a.Src, a.Name, a.Dst}, []string{b.Src, b.Name, b.Dst})
	})
	if err := l.schema().Validate(); err != nil {
		return f.Wrong("%w", err)
	}
	for r := range l.edges {
		if err := l.relation(r); err != nil {
			return err
		}
	}
	return nil
}

// relation reads the edges of relation r.
func (l *ogb) relation(r int) error {
	e, schema := &l.edges[r], l.schema()
	dir := "raw/relations/" + strings.Join([]string{e.Src, e.Name, e.Dst}, "___")
	f, err := l.open(dir+"/edge", "the edges of "+e.Relation.String())
	if err != nil {
		return err
	}
	defer f.Close()
	var ends [2]int64
	for k, t := range [2]string{e.Src, e.Dst} {
		ends[k] = int64(schema.Nodes[schema.NodeType(t)].Count)
	}
	var list [2]tabular.Pile[int32]
	err = tabular.ReadWholes(l.ctx, f, l.o.Threads, func(number int64, values []int64) error {
		switch len(values) {
		case 0:
			return nil
		case 2:
		default:
			return f.Wrong("line %d has %d numbers; an edge is two nodes", number, len(values))
		}
		for k, v := range values {
			if v < 0 || v >= ends[k] {
				return f.Wrong("line %d names the node %d, but num-node-dict says that the type %s has %d nodes, from 0", number, v, [2]string{e.Src, e.Dst}[k], ends[k])
			}
			list[k].Add(int32(v))
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.src, e.dst = list[0].Flat(), list[1].Flat()
	if findCSV(l.s, dir+"/num-edge-list") != "" {
		n, err := l.number(dir + "/num-edge-list")
		if err != nil {
			return err
		}
		if n != int64(len(e.src)) {
			return f.Wrong("it has %d edges, but num-edge-list says %d: it was cut off; fetch it again", len(e.src), n)
		}
	}
	if findCSV(l.s, dir+"/edge-feat") == "" || len(e.src) == 0 {
		return nil
	}
	t, err := l.rows(dir+"/edge-feat", "the edges' features", int64(len(e.src)), "edges")
	if err != nil {
		return err
	}
	for c := range t.Cols {
		e.columns = append(e.columns, fmt.Sprintf("%s %d", e.Name, c))
	}
	e.x = t.Values
	return nil
}

// number reads the one number of a file.
func (l *ogb) number(name string) (n int64, err error) {
	f, err := l.open(name, "a number")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	count := 0
	err = tabular.ReadWholes(l.ctx, f, 1, func(_ int64, values []int64) error {
		for _, x := range values {
			n = x
			count++
		}
		return nil
	})
	if err == nil && count != 1 {
		err = f.Wrong("it has %d numbers; datasets of one graph are read, which has one", count)
	}
	return n, err
}

// rows reads a table of finite numbers with a line for each of n things.
func (l *ogb) rows(name, what string, n int64, things string) (*tabular.Table, error) {
	f, err := l.open(name, what)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := tabular.ReadTable(l.ctx, f, false, n, l.o.Threads)
	if err == nil && int64(t.Rows) != n {
		err = f.Wrong("it has %d lines, but there are %d %s", t.Rows, n, things)
	}
	return t, err
}

func (l *ogb) features() error {
	for t := range l.nodes {
		n := &l.nodes[t]
		name := path.Join("raw/node-feat", n.name, "node-feat")
		if l.o.Features != "" || findCSV(l.s, name) == "" || n.count == 0 {
			continue
		}
		x, err := l.rows(name, "the nodes' features", int64(n.count), "nodes of type "+n.name)
		if err != nil {
			return err
		}
		n.features = &dataset.Matrix{Rows: x.Rows, Cols: x.Cols, F32: x.Values}
	}
	return nil
}

// flagged returns the types that a table marks True.
func (l *ogb) flagged(name, what string) (numbers []int, err error) {
	types, values, err := l.table(name, what)
	if err != nil {
		return nil, err
	}
	for i, t := range types {
		at := slices.IndexFunc(l.nodes, func(n nodeTable) bool { return n.name == t })
		if at < 0 {
			return nil, wrong(l.s, name+".csv.gz", "it names the node type %q, which num-node-dict does not", t)
		}
		switch strings.ToLower(values[i]) {
		case "true", "1":
			numbers = append(numbers, at)
		case "false", "0":
		default:
			return nil, wrong(l.s, name+".csv.gz", "the value of the node type %q is %s; it is True or False", t, tabular.Shown([]byte(values[i])))
		}
	}
	return numbers, nil
}

func (l *ogb) labels() error {
	types, err := l.flagged("raw/nodetype-has-label", "whether a type has labels")
	if err != nil {
		return err
	}
	for _, t := range types {
		n := &l.nodes[t]
		if n.count == 0 {
			continue
		}
		f, err := l.open(path.Join("raw/node-label", n.name, "node-label"), "the labels of the nodes of type "+n.name)
		if err != nil {
			return err
		}
		defer f.Close()
		y, err := tabular.ReadTable(l.ctx, f, true, int64(n.count), l.o.Threads)
		switch {
		case err != nil:
			return err
		case y.Rows != n.count:
			return f.Wrong("it has labels for %d nodes, but num-node-dict says %d", y.Rows, n.count)
		case y.Cols != 1:
			return f.Wrong("it has %d labels a node; graphs with types have one", y.Cols)
		}
		if n.labels, err = tabular.ClassesOf(y.Values, "labels of type "+n.name, l.o.columnGuide()); err != nil {
			return f.Wrong("%w", err)
		}
	}
	return nil
}

// scheme returns the folder of the split scheme, "" if there is none.
func (l *ogb) scheme() (string, error) {
	sub, err := tabular.Inspect(path.Join(l.s.Path, "split"), l.s.Meter)
	switch {
	case err != nil || len(sub.Dirs) == 0:
		l.o.said.Tell("%s: there is no folder split/SCHEME, so there is no official split", l.s.Path)
		return "", nil
	case slices.Contains(sub.Dirs, l.o.Name):
		return "split/" + l.o.Name, nil
	case len(sub.Dirs) == 1:
		return "split/" + sub.Dirs[0], nil
	}
	return "", tabular.Errorf("%s holds several splits, %s: --name says which", sub.Path, strings.Join(sub.Dirs, ", "))
}

func (l *ogb) splits() error {
	dir, err := l.scheme()
	if err != nil || dir == "" {
		return err
	}
	total := 0
	for _, e := range l.edges {
		total += len(e.src)
	}
	if err := l.plausible(total); err != nil { // before memory for each node
		return tabular.Errorf("reading %s: %w", l.s.Path, err)
	}
	var types []int
	if findCSV(l.s, dir+"/nodetype-has-split") != "" {
		if types, err = l.flagged(dir+"/nodetype-has-split", "whether a type has splits"); err != nil {
			return err
		}
	} else {
		for t, n := range l.nodes {
			if l.s.Has(path.Join(dir, n.name)) {
				types = append(types, t)
			}
		}
	}
	for _, t := range types {
		n := &l.nodes[t]
		for file, split := range map[string]string{"train": "train", "valid": "val", "test": "test"} {
			f, err := l.open(path.Join(dir, n.name, file), "a part of the split")
			if err != nil {
				return err
			}
			ids, err := tabular.ReadIDs(l.ctx, f, n.count, l.o.Threads)
			_ = f.Close()
			if err != nil {
				return err
			}
			n.splits[split] = ids
		}
	}
	return nil
}
