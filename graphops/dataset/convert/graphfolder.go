package convert

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = graphFolderReader{}

// graphFolderReader reads a folder of small graphs: a file or folder for each graph, of any format of one graph that this package
// detects, and a table labels.csv with a line for each. The table has a column with the graph's file (its name, with or without
// the ending), and columns of labels (kind label), numbers to predict (kind target) and maybe the split.
//
// The graphs are numbered in the order of the table's lines; names.graph.txt has their files.
type graphFolderReader struct{}

func (graphFolderReader) Name() string { return "graph-files" }

// Folder implements [folderReader].
func (graphFolderReader) Folder() bool { return true }

func (graphFolderReader) About() string {
	return "a folder of small graphs: a file each, in a format of one graph, and labels.csv with the file and the label of each"
}

func (graphFolderReader) detect(s *source) bool {
	return s.Dir && s.Find(tabular.CSVNames("labels")...) != "" && len(s.Files)+len(s.Dirs) > 1 && s.Find(slices.Concat(tabular.CSVNames("nodes"), tabular.CSVNames("edges"))...) == ""
}

// graphTable is the table of the graphs' answers.
type graphTable struct {
	files   []string
	lines   []int
	labels  *answerWords
	label   string
	targets []float32 // [files, names]
	names   []string
	splits  map[string][]int32
	t       *tabular.CSVFile
}

func (graphFolderReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	table, err := readGraphTable(ctx, s, o)
	if err != nil {
		return nil, err
	}
	paths, err := table.paths(s)
	if err != nil {
		return nil, err
	}
	graphs, err := table.answers(o)
	if err != nil {
		return nil, err
	}
	all := &joined{s: s, o: o, offsets: []int64{0}, indptr: []int64{0}, notices: map[string]*notice.Notice{}}
	const batch = 256
	for first := 0; first < len(paths); first += batch {
		part := paths[first:min(first+batch, len(paths))]
		read := make([]oneGraph, len(part))
		parallel.For(o.Threads, len(part), 1, func(i, _ int) { read[i] = readOne(ctx, part[i], o) })
		for i := range read {
			if err := all.add(part[i], &read[i]); err != nil {
				return nil, err
			}
		}
	}
	d, err := all.dataset()
	if err != nil {
		return nil, err
	}
	d.Graphs = graphs
	s.Keep("names.graph.txt", table.files)
	return d, nil
}

// readGraphTable reads labels.csv.
func readGraphTable(ctx context.Context, s *source, o Options) (*graphTable, error) {
	t, err := s.Table("labels", "the label of each graph")
	if err != nil {
		return nil, err
	}
	defer t.Close()
	g := &graphTable{splits: map[string][]int32{}, t: t}
	kinds := make([]columns.Kind, len(t.Header))
	for i, name := range t.Header {
		kinds[i] = o.columnGuide().KindOf("labels", name)
	}
	place := func(k columns.Kind, names ...string) int {
		if i := slices.Index(kinds, k); i >= 0 {
			return i
		}
		if i := t.Column(names...); i >= 0 && kinds[i] == "" {
			kinds[i] = k
			return i
		}
		return -1
	}
	id := place(columns.ID, "file", "filename", "graph", "name", "id")
	if id < 0 && kinds[0] == "" {
		id, kinds[0] = 0, columns.ID
		o.said.Add(notice.Notice{Kind: notice.Guessed, Where: filepath.Base(t.Path), What: fmt.Sprintf("the column %s is the file of each graph, by its place", tabular.Shown([]byte(t.Header[0]))), Option: "--kinds COLUMN=id names another"})
	}
	split := place(columns.Split, "split")
	label := slices.Index(kinds, columns.Label)
	var targets, rest []int
	for i, k := range kinds {
		switch k {
		case columns.Target:
			targets = append(targets, i)
		case "":
			rest = append(rest, i)
		}
	}
	if label < 0 && len(targets) == 0 {
		if label = place(columns.Label, "label", "class", "y", "target"); label < 0 && len(rest) == 1 {
			label, kinds[rest[0]] = rest[0], columns.Label
		}
	}
	switch {
	case id < 0:
		return nil, t.Wrong("line 1: no column is the file of each graph; --kinds COLUMN=id names it")
	case label < 0 && len(targets) == 0:
		return nil, t.Wrong("line 1: the columns are %s, and none is the label; --kinds COLUMN=label names a class, and --kinds COLUMN=target a number to predict", tabular.ShownNames(t.Header))
	}
	for _, i := range targets {
		g.names = append(g.names, t.Header[i])
	}
	if label >= 0 {
		g.labels, g.label = newAnswerWords(o), t.Header[label]
		g.labels.column = g.label
	}
	missing, seen := columns.NewMissing(o.Missing, o.Present), map[string]int{}
	err = t.Each(ctx, func(record []string) error {
		file, at := strings.Clone(record[id]), len(g.files)
		switch {
		case file == "":
			return t.At("the file of the graph is missing")
		case seen[file] > 0:
			return t.At("the graph %s has a line already, line %d", tabular.Shown([]byte(file)), seen[file])
		case at == math.MaxInt32-1:
			return t.At("there are more graphs than %d", at)
		}
		seen[file] = t.Line()
		g.files, g.lines = append(g.files, file), append(g.lines, t.Line())
		if label >= 0 {
			if err := g.labels.add(strings.TrimSpace(record[label]), int64(t.Line())); err != nil {
				return t.At("%w", err)
			}
		}
		for _, i := range targets {
			x, ok := float32(math.NaN()), true
			if !missing.Value(record[i]) {
				x, ok = tabular.Float([]byte(record[i]))
			}
			if !ok {
				return t.At("%s is %s; a number to predict is finite, or empty if it is unknown", t.Header[i], tabular.Shown([]byte(record[i])))
			}
			g.targets = append(g.targets, x)
		}
		if split >= 0 && record[split] != "" {
			name := splitWords[strings.ToLower(record[split])]
			if name == "" {
				return t.At("the split is %s; it is train, val, test or empty", tabular.Shown([]byte(record[split])))
			}
			g.splits[name] = append(g.splits[name], int32(at))
		}
		return nil
	})
	if err == nil && len(g.files) == 0 {
		err = t.Wrong("it has no graphs below its first line")
	}
	var left []int
	for i, k := range kinds {
		if k != "" {
			left = append(left, i)
		}
	}
	o.unreadColumns(t, len(g.files), left...)
	return g, err
}

// paths returns the file or folder of each graph.
func (g *graphTable) paths(s *source) ([]string, error) {
	here := map[string][]string{}
	for _, name := range slices.Concat(s.Files, s.Dirs) {
		here[name] = []string{name}
	}
	for _, name := range slices.Concat(s.Files, s.Dirs) {
		if stem := tabular.Stem(name); stem != name {
			here[stem] = append(here[stem], name)
		}
	}
	paths := make([]string, len(g.files))
	for i, file := range g.files {
		found := here[file]
		switch {
		case len(found) == 0:
			return nil, g.t.Wrong("line %d: the graph %s is the name of no file in %s", g.lines[i], tabular.Shown([]byte(file)), s.Path)
		case len(found) > 1:
			return nil, g.t.Wrong("line %d: the graph %s is %s; write the whole name", g.lines[i], tabular.Shown([]byte(file)), strings.Join(found, " and "))
		}
		paths[i] = filepath.Join(s.Path, found[0])
	}
	return paths, nil
}

// answers returns what the table says of the graphs.
func (g *graphTable) answers(o Options) (*dataset.Dataset, error) {
	graphs := &dataset.Dataset{Splits: g.splits, Meta: dataset.Metadata{NumNodes: len(g.files)}}
	where := filepath.Base(g.t.Path)
	if g.labels != nil {
		numeric, err := g.labels.numeric(g.t.File)
		if err != nil {
			return nil, err
		}
		if numeric {
			return nil, g.t.Wrong("the column %s has numbers with fractions, and a label is a class; --kinds %s=target predicts them as numbers", g.label, g.label)
		}
		if err := g.labels.store(g.t.File, graphs, where, o); err != nil {
			return nil, err
		}
	}
	if g.names != nil {
		t := &tabular.Table{Rows: len(g.files), Cols: len(g.names), Values: g.targets}
		return graphs, setAnswers(graphs, t, true, g.t.Wrong, where, g.names, o)
	}
	return graphs, nil
}

// oneGraph is a graph of the folder as it was read.
type oneGraph struct {
	d     *dataset.Dataset
	err   error
	said  notice.List
	meter *tabular.Meter
}

// readOne reads one graph by itself.
func readOne(ctx context.Context, path string, o Options) (r oneGraph) {
	m := &tabular.Meter{}
	r.meter = m
	own := Options{Relabel: o.Relabel, Undirected: o.Undirected, Decimal: o.Decimal, Missing: o.Missing, Present: o.Present, Header: o.Header, ManyClasses: true, Threads: 1, Notice: func(notice.Notice) {}, meter: m}
	own, said := own.hear()
	s, err := newSource(path, m)
	if err != nil {
		r.err = err
		return r
	}
	reader, s, err := find(s, own)
	if err != nil {
		r.err = err
		return r
	}
	r.d, r.err = reader.read(ctx, s, own)
	r.said = *said
	if r.err == nil && (r.d.Graphs != nil || r.d.Schema() != nil) {
		r.err = tabular.Errorf("%s has many graphs or types; each file of such a folder is one graph without types", path)
	}
	if r.err == nil && own.Undirected {
		r.err = makeUndirected(r.d, 1)
	}
	return r
}

// joined is the arrays of all graphs, one after another.
type joined struct {
	s        *source
	o        Options
	offsets  []int64
	indptr   []int64
	indices  []int32
	weights  []float32
	times    []int64
	edgeX    []float32
	edgeCols int
	x        []float32
	cols     int
	labels   []int32
	classes  int
	first    string // the first graph's path, with which the others are compared
	notices  map[string]*notice.Notice
	order    []string
}

// add appends a graph.
func (j *joined) add(path string, r *oneGraph) error {
	if r.err != nil {
		return r.err
	}
	j.s.Meter.Take(r.meter)
	for _, n := range r.said {
		if n.Kind == notice.Told {
			continue
		}
		key := string(n.Kind) + n.Where[min(len(n.Where), len(filepath.Base(path))):] + n.Option
		if j.notices[key] == nil {
			n.What += " (the first of the graphs that this is said of)"
			n.Count = 0
			j.notices[key], j.order = &n, append(j.order, key)
		}
		j.notices[key].Count++
	}
	g, d := r.d.Graph, r.d
	x := d.Features
	if d.SparseFeatures != nil {
		x = &dataset.Matrix{Rows: d.Nodes(), Cols: d.SparseFeatures.Cols, F32: d.SparseFeatures.Dense()}
	}
	cols, edgeCols := 0, 0
	if x != nil {
		x = x.Float32()
		cols = x.Cols
	}
	if g.EdgeFeatures != nil {
		edgeCols = g.EdgeFeatures.Cols
	}
	before := j.indptr[len(j.indptr)-1]
	nodes := j.offsets[len(j.offsets)-1]
	if j.first == "" {
		j.first, j.cols, j.edgeCols = path, cols, edgeCols
	}
	same := func(what string, has, had bool) error {
		if has != had {
			return tabular.Errorf("%s and %s are not alike: one of them has %s; the graphs of a dataset have the same", j.first, path, what)
		}
		return nil
	}
	started := len(j.offsets) > 1
	switch {
	case cols != j.cols || edgeCols != j.edgeCols:
		return tabular.Errorf("%s has %d features of nodes and %d of edges, and %s has %d and %d; the graphs of a dataset have the same", path, cols, edgeCols, j.first, j.cols, j.edgeCols)
	case nodes+int64(d.Nodes()) > math.MaxInt32:
		return tabular.Errorf("%s: the graphs up to here have more than %d nodes together", path, math.MaxInt32)
	}
	if started && before > 0 && g.NumEdges() > 0 {
		if err := same("times of edges", g.EdgeTimes != nil, j.times != nil); err != nil {
			return err
		}
	}
	if started && nodes > 0 && d.Nodes() > 0 {
		if err := same("labels of nodes", d.Labels != nil, j.labels != nil); err != nil {
			return err
		}
	}
	// A graph whose weights are all 1 has none.
	if g.EdgeWeights != nil && j.weights == nil {
		j.weights = slices.Repeat([]float32{1}, len(j.indices))
	}
	if j.weights != nil {
		if g.EdgeWeights != nil {
			j.weights = append(j.weights, g.EdgeWeights...)
		} else {
			j.weights = append(j.weights, slices.Repeat([]float32{1}, len(g.Indices))...)
		}
	}
	for v := range d.Nodes() {
		j.indptr = append(j.indptr, before+g.Indptr[v+1])
	}
	for _, u := range g.Indices {
		j.indices = append(j.indices, u+int32(nodes))
	}
	j.times = append(j.times, g.EdgeTimes...)
	if edgeCols > 0 {
		if g.EdgeFeatures.F32 == nil {
			row := make([]float32, edgeCols)
			for e := range g.NumEdges() {
				g.EdgeFeatures.CopyRow(row, e)
				j.edgeX = append(j.edgeX, row...)
			}
		} else {
			j.edgeX = append(j.edgeX, g.EdgeFeatures.F32...)
		}
	}
	if x != nil {
		j.x = append(j.x, x.F32...)
	}
	j.labels = append(j.labels, d.Labels...)
	j.classes = max(j.classes, d.Classes())
	j.offsets = append(j.offsets, nodes+int64(d.Nodes()))
	return nil
}

// dataset makes the dataset of the graphs.
func (j *joined) dataset() (*dataset.Dataset, error) {
	for _, key := range j.order {
		n := *j.notices[key]
		n.Of = int64(len(j.offsets) - 1)
		j.o.said.Add(n)
	}
	if len(j.indices) == 0 {
		return nil, tabular.Errorf("%s: none of its graphs has edges", j.s.Path)
	}
	g := &graphops.Graph{Indptr: j.indptr, Indices: j.indices, EdgeTimes: j.times}
	if j.edgeCols > 0 {
		g.EdgeFeatures = &graphops.EdgeFeatures{Cols: j.edgeCols, F32: j.edgeX}
	}
	if j.weights != nil {
		g = g.WithEdgeWeights(j.weights)
	}
	d := &dataset.Dataset{Graph: g, GraphOffsets: j.offsets, Splits: map[string][]int32{}, Labels: j.labels}
	d.Meta.NumClasses, d.Meta.Undirected = j.classes, j.o.Undirected // which each graph was made
	if j.cols > 0 {
		d.Features = &dataset.Matrix{Rows: int(j.offsets[len(j.offsets)-1]), Cols: j.cols, F32: j.x}
	}
	return d, nil
}
