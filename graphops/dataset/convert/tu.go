package convert

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = tuReader{}

// tuReader reads the text files of TU Dortmund's collection of many graphs (C. Morris et al., TUDataset, 2020,
// arXiv:2007.08663). Nodes and graphs are counted from 1:
//
//	DS_A.txt                an edge a line, over all graphs
//	DS_graph_indicator.txt  the graph of each node, ascending
//	DS_graph_labels.txt     the class of each graph, or several labels
//	DS_graph_attributes.txt numbers of each graph, which become targets
//	DS_node_attributes.txt  features of nodes; DS_node_labels.txt: whole numbers, one-hot after them
//	DS_edge_attributes.txt  features of edges; DS_edge_labels.txt: whole numbers, one-hot after them
//
// The features are those of PyG's TUDataset with use_node_attr and use_edge_attr. Unlike PyG, self-loops are kept, equal
// edges have the mean of their features, and a dataset can have labels and targets.
type tuReader struct{}

func (tuReader) Name() string { return "tu" }

// Folder implements [folderReader].
func (tuReader) Folder() bool { return true }

func (tuReader) About() string {
	return "a TU Dortmund folder of many graphs: NAME_A.txt, NAME_graph_indicator.txt, NAME_graph_labels.txt, …"
}

func (tuReader) detect(s *source) bool { return s.Dir && tuName(s.Files) != "" }

// The choices of --features that are of this format.
const (
	onlyLabels     = "labels"
	onlyAttributes = "attributes"
)

// tu is one dataset of a TU folder.
type tu struct {
	*source
	name    string
	o       Options
	offsets []int64
}

func (t *tu) file(part string) string {
	return t.with(t.name+"_"+part, []string{".txt", ".txt.gz"})
}

func (t *tu) open(part, what string) (*tabular.File, error) {
	if name := t.file(part); name != "" {
		return t.Open(name, what)
	}
	return t.Open(t.name+"_"+part+".txt", what)
}

func (tuReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	var names []string
	for _, ending := range []string{"_graph_indicator.txt", "_graph_indicator.txt.gz"} {
		names = append(names, s.prefixes("", ending)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return nil, tabular.Errorf("%s has no file NAME_graph_indicator.txt, which has the graph of each node", s.Path)
	}
	name, err := s.choose(names, o)
	if err != nil {
		return nil, err
	}
	t := &tu{source: s, name: name, o: o}
	graphs, err := t.answers(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.indicator(ctx, graphs); err != nil {
		return nil, err
	}
	d, err := t.edges(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.features(ctx, d); err != nil {
		return nil, err
	}
	d.GraphOffsets, d.Graphs, d.Meta.Name = t.offsets, graphs, name
	graphs.Meta.NumNodes = d.NumGraphs()
	if !d.Graph.Symmetric() && !o.Undirected {
		o.said.Add(notice.Notice{Kind: notice.Told, Where: name + "_A.txt", What: "some edges have no reverse, and messages pass along edges only; --undirected adds the reverses"})
	}
	return d, nil
}

// answers reads the labels and targets of the graphs.
func (t *tu) answers(ctx context.Context) (*dataset.Dataset, error) {
	graphs := &dataset.Dataset{Splits: map[string][]int32{}}
	for _, part := range []string{"graph_labels", "graph_attributes"} {
		if t.file(part) == "" {
			continue
		}
		f, err := t.open(part, "")
		if err != nil {
			return nil, err
		}
		err = readAnswers(ctx, f, graphs, part, part == "graph_attributes", t.o)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
	}
	if graphs.Nodes() == 0 {
		t.o.note("%s has neither %s_graph_labels.txt nor %s_graph_attributes.txt, so nothing is known to predict of the graphs", t.Path, t.name, t.name)
	}
	return graphs, nil
}

// indicator reads the graph of each node, as offsets. The number of graphs is that of the labels or targets, if there are any.
func (t *tu) indicator(ctx context.Context, graphs *dataset.Dataset) error {
	f, err := t.open("graph_indicator", "the graph of each node")
	if err != nil {
		return err
	}
	defer f.Close()
	answers := int64(graphs.Nodes())
	t.offsets = make([]int64, 1, f.Expect(answers, 2)+1)
	nodes, graph := int64(0), int64(1)
	var empty, firstEmpty, firstLine int64
	skip := func(to, line int64) {
		for ; graph < to; graph++ {
			start := t.offsets[len(t.offsets)-1]
			if start == nodes {
				if empty++; empty == 1 {
					firstEmpty, firstLine = graph, line
				}
			}
			t.offsets = append(t.offsets, nodes)
		}
	}
	end := int64(0)
	err = tabular.ReadWholes(ctx, f, t.o.Threads, func(line int64, values []int64) error {
		end = line
		switch {
		case len(values) == 0:
			return nil
		case len(values) > 1:
			return f.Wrong("line %d: it has %d numbers; a node is of one graph", line, len(values))
		}
		g := values[0]
		switch {
		case g < 1:
			return f.Wrong("line %d: the graph is %d; graphs are counted from 1", line, g)
		case g < graph:
			return f.Wrong("line %d: node %d is of graph %d, but the node before it is of graph %d; the lines must ascend, because the nodes of a graph follow each other", line, nodes+1, g, graph)
		case answers > 0 && g > answers:
			return f.Wrong("line %d: node %d is of graph %d, but there are labels or attributes of %d graphs", line, nodes+1, g, answers)
		case g >= MaxNodes || nodes >= MaxNodes || g > 4*nodes+spareNodes:
			return f.Wrong("line %d: the graph is %d, after %d nodes; most graphs would have no nodes", line, g, nodes)
		}
		skip(g, line)
		nodes++
		return nil
	})
	if err != nil {
		return err
	}
	if nodes == 0 {
		return f.Wrong("it has no nodes")
	}
	last := graph
	skip(max(answers, last)+1, end)
	if empty > 0 {
		t.o.said.Add(notice.Notice{Kind: notice.Guessed, Where: t.name + "_graph_indicator.txt", What: fmt.Sprintf("graphs without nodes are kept, because no line names them; the first is graph %d, which line %d passes over", firstEmpty, firstLine), Count: empty, Of: int64(len(t.offsets) - 1)})
	}
	return nil
}

func (t *tu) edges(ctx context.Context) (*dataset.Dataset, error) {
	f, err := t.open("A", "the edges")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	nodes := t.offsets[len(t.offsets)-1]
	o := t.o
	o.Relabel = false
	l, err := readEdges(ctx, f, edgeFormat{base: 1, noWeights: true}, o)
	if err != nil {
		return nil, err
	}
	e := &edges{nodes: int(nodes), src: l.src, dst: l.dst}
	of := (&dataset.Dataset{Graph: &graphops.Graph{Indptr: make([]int64, nodes+1)}, GraphOffsets: t.offsets}).GraphOf()
	bad := int64(-1)
	for i, u := range e.src {
		v := e.dst[i]
		if int64(u) >= nodes || int64(v) >= nodes || of[u] != of[v] {
			bad = int64(i)
			break
		}
	}
	if bad >= 0 {
		line, err := t.dataLine(ctx, "A", bad)
		if err != nil {
			return nil, err
		}
		u, v := e.src[bad], e.dst[bad]
		if int64(max(u, v)) >= nodes {
			return nil, f.Wrong("line %d: the edge names the node %d, but %s_graph_indicator.txt has %d nodes", line, max(u, v)+1, t.name, nodes)
		}
		return nil, f.Wrong("line %d: the edge leads from node %d, of graph %d, to node %d, of graph %d; the graphs of a dataset have no edges between them", line, u+1, of[u]+1, v+1, of[v]+1)
	}
	loops := int64(0)
	for i, u := range e.src {
		if u == e.dst[i] {
			loops++
		}
	}
	if loops > 0 {
		t.o.note("%s_A.txt has %d self-loops, which are kept; PyG's TUDataset leaves them out", t.name, loops)
	}
	var labels *oneHotColumns
	x, err := t.table("edge_attributes", "edges", int64(len(e.src)))
	if err == nil {
		labels, err = t.labels(ctx, "edge_labels", "edges", int64(len(e.src)))
	}
	if err != nil {
		return nil, err
	}
	var names []string
	if cols := x.cols() + labels.width(); cols > 0 && o.EdgeFeatures == "" {
		if cols > maxOneHot {
			return nil, tabular.Errorf("%s: the edges would have %d features; there can be %d", t.Path, cols, maxOneHot)
		}
		e.x = &graphops.EdgeFeatures{Cols: cols, F32: make([]float32, len(e.src)*cols)}
		parallel.For(o.Threads, len(e.src), 1<<12, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				fillRow(e.x.F32[i*cols:(i+1)*cols], i, x, labels)
			}
		})
		names = featureNames(x, labels)
	}
	d, err := e.dataset(o)
	if err == nil && d.Graph.EdgeFeatures != nil && d.Graph.EdgeFeatures.Cols == len(names) {
		d.Meta.EdgeFeatureNames = dataset.KeepNames(names, t.name+"_A.txt", o.said)
	}
	return d, err
}

// dataLine returns the line of the entry with that number, from 0, of a file whose comments and empty lines are no entries.
func (t *tu) dataLine(ctx context.Context, part string, entry int64) (int64, error) {
	f, err := t.open(part, "")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	line, at := int64(0), int64(-1)
	err = tabular.EachBlock(ctx, f, 1, func(b tabular.Block) ([]int64, error) {
		var data []int64
		err := b.Lines(func(text []byte, number int64) error {
			if !tabular.Comment(text) {
				data = append(data, number)
			}
			return nil
		})
		return data, err
	}, func(data []int64) error {
		if line == 0 && entry < at+1+int64(len(data)) {
			line = data[entry-at-1]
		}
		at += int64(len(data))
		return nil
	})
	return line, err
}

// table reads a table of numbers with a row for each of the n nodes or edges; nil if the file is not there.
func (t *tu) table(part, of string, n int64) (*numbers, error) {
	if t.file(part) == "" {
		return nil, nil
	}
	f, err := t.open(part, "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	x, err := tabular.ReadTable(context.Background(), f, false, n, t.o.Threads)
	if err != nil {
		return nil, err
	}
	if int64(x.Rows) != n {
		return nil, f.Wrong("it has %d rows, but there are %d %s", x.Rows, n, of)
	}
	return &numbers{x}, nil
}

// labels reads labels of nodes or edges, one or several whole numbers a line; nil if the file is not there.
func (t *tu) labels(ctx context.Context, part, of string, n int64) (*oneHotColumns, error) {
	if t.file(part) == "" {
		return nil, nil
	}
	f, err := t.open(part, "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var values tabular.Pile[int64]
	b := &oneHotColumns{}
	rows := int64(0)
	err = tabular.ReadWholes(ctx, f, t.o.Threads, func(line int64, row []int64) error {
		switch {
		case len(row) == 0:
			return nil
		case rows == 0:
			b.cols = len(row)
		case len(row) != b.cols:
			return f.Wrong("line %d: it has %d labels, and the first line %d", line, len(row), b.cols)
		}
		if rows++; rows > n {
			return f.Wrong("line %d: it has more lines than there are %s, %d", line, of, n)
		}
		for _, v := range row {
			values.Add(v)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case rows != n:
		return nil, f.Wrong("it has %d rows, but there are %d %s", rows, n, of)
	}
	b.values = values.Flat()
	return b, b.number(t.name+"_"+part+".txt", t.o)
}

func (t *tu) features(ctx context.Context, d *dataset.Dataset) error {
	n := int64(d.Nodes())
	kind := t.o.Features
	if kind != "" && kind != onlyLabels && kind != onlyAttributes {
		return nil
	}
	var x *numbers
	var labels *oneHotColumns
	var err error
	if kind != onlyLabels {
		if x, err = t.table("node_attributes", "nodes", n); err != nil {
			return err
		}
	}
	if kind != onlyAttributes {
		if labels, err = t.labels(ctx, "node_labels", "nodes", n); err != nil {
			return err
		}
	}
	cols := x.cols() + labels.width()
	switch {
	case cols == 0 && kind != "":
		return tabular.Errorf("--features %s: %s has no file %s_node_%s.txt", kind, t.Path, t.name, kind)
	case cols == 0:
		t.o.note("%s has no features of nodes; --features degree makes one-hot features of the degrees, and --features constant one feature that is 1", t.Path)
		return nil
	case cols > maxFeatures:
		return tabular.Errorf("%s: the nodes would have %d features; there can be %d", t.Path, cols, maxFeatures)
	}
	d.Meta.FeatureNames = dataset.KeepNames(featureNames(x, labels), t.name+" nodes", t.o.said)
	d.Features, d.SparseFeatures = matrixOf(int(n), x, labels, t.o.Threads)
	return nil
}

// numbers is a table of numbers that may be nil.
type numbers struct{ *tabular.Table }

func (x *numbers) cols() int {
	if x == nil {
		return 0
	}
	return x.Cols
}

// oneHotColumns are whole numbers [rows, cols] that become a block of columns for each column: 1 in the column of the value.
type oneHotColumns struct {
	cols   int
	values []int64
	first  []int64           // the smallest value of each column, if its block has a column for each number from there on
	rank   []map[int64]int32 // otherwise: the columns of the values
	starts []int32           // of the blocks, and the end
	names  []string
}

// maxOneHot is the largest range of labels in which each number gets a column, as PyG gives it; of wider ranges only the
// values that occur get one.
const maxOneHot = 4096

// number finds the columns of the values.
func (b *oneHotColumns) number(where string, o Options) error {
	b.first, b.rank, b.starts = make([]int64, b.cols), make([]map[int64]int32, b.cols), []int32{0}
	for c := range b.cols {
		lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
		for i := c; i < len(b.values); i += b.cols {
			lo, hi = min(lo, b.values[i]), max(hi, b.values[i])
		}
		var list []int64
		if b.first[c] = lo; hi-lo < maxOneHot {
			for v := lo; v <= hi; v++ {
				list = append(list, v)
			}
		} else {
			seen := map[int64]int32{}
			for i := c; i < len(b.values); i += b.cols {
				if _, ok := seen[b.values[i]]; !ok {
					if len(seen) == 1<<16 {
						return tabular.Errorf("%s: column %d has more than %d different labels, each of which would be a feature; such numbers belong into the file of attributes", where, c+1, 1<<16)
					}
					seen[b.values[i]] = 0
					list = append(list, b.values[i])
				}
			}
			slices.Sort(list)
			for i, v := range list {
				seen[v] = int32(i)
			}
			b.rank[c] = seen
			o.said.Add(notice.Notice{Kind: notice.Renumbered, Where: where, What: fmt.Sprintf("the labels run from %d to %d, so only those that occur get a feature", lo, hi), Count: int64(len(list))})
		}
		for _, v := range list {
			name := "label=" + strconv.FormatInt(v, 10)
			if b.cols > 1 {
				name = fmt.Sprintf("label %d=%d", c, v)
			}
			b.names = append(b.names, name)
		}
		b.starts = append(b.starts, b.starts[c]+int32(len(list)))
	}
	return nil
}

func (b *oneHotColumns) width() int {
	if b == nil {
		return 0
	}
	return int(b.starts[b.cols])
}

// column returns the column of row i's value of column c.
func (b *oneHotColumns) column(i, c int) int32 {
	v := b.values[i*b.cols+c]
	if b.rank[c] != nil {
		return b.starts[c] + b.rank[c][v]
	}
	return b.starts[c] + int32(v-b.first[c])
}

func featureNames(x *numbers, labels *oneHotColumns) (names []string) {
	for j := range x.cols() {
		names = append(names, "attribute "+strconv.Itoa(j))
	}
	if labels != nil {
		names = append(names, labels.names...)
	}
	return names
}

// fillRow writes the features of row i.
func fillRow(row []float32, i int, x *numbers, labels *oneHotColumns) {
	at := x.cols()
	if x != nil {
		copy(row, x.Values[i*at:(i+1)*at])
	}
	if labels != nil {
		for c := range labels.cols {
			row[at+int(labels.column(i, c))] = 1
		}
	}
}

// sparseFrom is the number of columns from which features that are mostly zero are stored in compressed rows, as in package
// gnb/tables.
const sparseFrom = 64

// matrixOf returns the features of n rows, dense, or in compressed rows if there are many columns that are mostly zero.
func matrixOf(n int, x *numbers, labels *oneHotColumns, threads int) (*dataset.Matrix, *dataset.Sparse) {
	cols, each := x.cols()+labels.width(), x.cols()
	if labels != nil {
		each += labels.cols
	}
	if cols < sparseFrom || 4*each >= cols {
		m := &dataset.Matrix{Rows: n, Cols: cols, F32: make([]float32, n*cols)}
		parallel.For(threads, n, 1<<12, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				fillRow(m.Row(i), i, x, labels)
			}
		})
		return m, nil
	}
	s := &dataset.Sparse{Rows: n, Cols: cols, Indptr: make([]int64, n+1), Indices: make([]int32, n*each)}
	if x != nil {
		s.Values = make([]float32, n*each)
	}
	parallel.For(threads, n, 1<<12, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			s.Indptr[i+1] = int64(i+1) * int64(each)
			at := i * each
			for j := range x.cols() {
				s.Indices[at], s.Values[at] = int32(j), x.Values[i*x.Cols+j]
				at++
			}
			for c := range labels.cols {
				s.Indices[at] = int32(x.cols()) + labels.column(i, c)
				if s.Values != nil {
					s.Values[at] = 1
				}
				at++
			}
		}
	})
	return nil, s
}

// numberKind reports whether --kinds says that a column of graphs has numbers to predict.
func (o *Options) numberKind(column string) bool {
	return o.columnGuide().KindOf("graphs", column) == columns.Target
}
