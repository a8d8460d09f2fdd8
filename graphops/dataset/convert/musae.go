package convert

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = musaeReader{}

// musaeReader reads the folders of MUSAE and its kin (B. Rozemberczki et al., Multi-Scale
// Attributed Node Embedding, 2021, doi:10.1093/comnet/cnab014; SNAP lists them as GitHub, Facebook,
// Twitch, LastFM and Deezer): NAME_edges.csv has a line per edge with its two nodes in the first
// two columns; NAME_features.json is an object with each node's list of features; NAME_target.csv
// has a line per node with its id (new_id if there is such a column) and its class. The last two
// files may be missing. Edges are undirected.
type musaeReader struct{}

func (musaeReader) Name() string { return "musae" }

// Folder implements [folderReader].
func (musaeReader) Folder() bool { return true }

func (musaeReader) About() string {
	return "a MUSAE folder: NAME_edges.csv, NAME_features.json (an object of lists) and NAME_target.csv"
}

func (musaeReader) detect(s *source) bool { return len(musaeNames(s)) > 0 }

// The endings of the file names; the first existing file of each kind is used.
var (
	musaeEdges    = []string{"_edges.csv", "_edges.csv.gz"}
	musaeFeatures = []string{"_features.json", "_features.json.gz"}
	musaeTargets  = []string{"_target.csv", "_target.csv.gz", "_targets.csv"}
)

// musaeNames returns the names of datasets that have edges and at least one other file.
func musaeNames(s *source) []string {
	var names []string
	for _, ending := range musaeEdges {
		for _, name := range s.prefixes("", ending) {
			if !slices.Contains(names, name) && (s.with(name, musaeFeatures) != "" || s.with(name, musaeTargets) != "") {
				names = append(names, name)
			}
		}
	}
	return names
}

// with returns the folder's file with the name and one of the endings, or "".
func (s *source) with(name string, endings []string) string {
	for _, ending := range endings {
		if s.Has(name + ending) {
			return name + ending
		}
	}
	return ""
}

func (musaeReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	names := musaeNames(s)
	if len(names) == 0 {
		return nil, tabular.Errorf("%s has no file NAME%s beside a NAME%s or NAME%s", s.Path, musaeEdges[0], musaeFeatures[0], musaeTargets[0])
	}
	name, err := s.choose(names, o)
	if err != nil {
		return nil, err
	}
	e, most, err := s.musaeEdges(ctx, s.with(name, musaeEdges), o)
	if err != nil {
		return nil, err
	}
	var rows *bags
	if file := s.with(name, musaeFeatures); file != "" && o.Features == "" {
		if rows, err = s.musaeBags(ctx, file); err != nil {
			return nil, err
		}
		most = max(most, rows.most)
	}
	t, err := s.musaeTargets(ctx, s.with(name, musaeTargets), o)
	if err != nil {
		return nil, err
	}
	e.nodes = int(most + 1)
	if t != nil {
		e.nodes = len(t.y)
		if most >= int64(e.nodes) {
			return nil, tabular.Errorf("%s has %d nodes, but another file of the folder names the node %d: the files are not of one set", s.Path+"/"+s.with(name, musaeTargets), e.nodes, most)
		}
	}
	if !plausible(int64(e.nodes), int64(len(e.src))) {
		return nil, tabular.Errorf("%s: the largest node is %d, but there are %d edges", s.Path, most, len(e.src))
	}
	e.undirected = true
	d, err := e.dataset(o)
	if err != nil {
		return nil, err
	}
	d.Meta.Name = name
	if t != nil && t.classes > 0 {
		d.Labels, d.Meta.NumClasses, d.Meta.ClassNames = t.y, t.classes, t.names
	} else if t != nil {
		o.note("%s: the column %s has %d different values for %d nodes; they are taken for no classes and left out", s.with(name, musaeTargets), tabular.Shown([]byte(t.column)), t.different, len(t.y))
	}
	if rows != nil {
		if d.SparseFeatures, err = rows.sparse(d.Nodes()); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// musaeEdges reads the first two columns of a table of node ids; most is the largest id.
func (s *source) musaeEdges(ctx context.Context, name string, o Options) (e *edges, most int64, err error) {
	f, err := s.Open(name, "the edges")
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	t, err := tabular.NewCSV(f)
	if err != nil {
		return nil, 0, err
	}
	if len(t.Header) < 2 {
		return nil, 0, t.Wrong("line 1: there is one column; the first two are the ends of an edge")
	}
	var ends [2]tabular.Pile[int32]
	err = t.Each(ctx, func(record []string) error {
		for k := range ends {
			v, ok := tabular.Whole([]byte(record[k]))
			if !ok || v < 0 || v >= MaxNodes {
				return t.At("the node %s is none; nodes are whole numbers from 0 on", tabular.Shown([]byte(record[k])))
			}
			most = max(most, v)
			ends[k].Add(int32(v))
		}
		return nil
	})
	if err == nil && ends[0].N == 0 {
		err = t.Wrong("it has no edges below its first line")
	}
	o.unreadColumns(t, ends[0].N, 0, 1)
	return &edges{src: ends[0].Flat(), dst: ends[1].Flat()}, most, err
}

// unreadColumns reports the columns of a table of n rows that are not read: all but those of the given places.
func (o *Options) unreadColumns(t *tabular.CSVFile, n int, read ...int) {
	var left []string
	for i, name := range t.Header {
		if !slices.Contains(read, i) {
			left = append(left, tabular.Shown([]byte(name)))
		}
	}
	if len(left) > 0 {
		o.said.Add(notice.Notice{Kind: notice.Dropped, Where: filepath.Base(t.Path), What: "columns that are not read: " + someOf(left), Count: int64(n), Option: "as nodes.csv and edges.csv (--format csv) all columns can be read"})
	}
}

// bags holds lists of features by node, in the order read.
type bags struct {
	f       *tabular.File
	of      tabular.Pile[int32] // the node of each list
	lengths tabular.Pile[int32]
	columns tabular.Pile[int32]
	most    int64 // the largest node
	cols    int64
}

// musaeBags reads an object of lists of whole numbers.
func (s *source) musaeBags(ctx context.Context, name string) (*bags, error) {
	f, err := s.Open(name, "the features")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, j := &bags{f: f, most: -1}, tabular.NewJSON(f, f.Wrong)
	err = j.Object(func(key string) error {
		if b.of.N%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		v, ok := tabular.Whole([]byte(key))
		if !ok || v < 0 || v >= MaxNodes {
			return j.Wrong("the key %s is not a node; nodes are whole numbers from 0 on", tabular.Shown([]byte(key)))
		}
		n := int32(0)
		err := j.Array(func() error {
			c, err := j.Whole()
			if err != nil {
				return err
			}
			if c < 0 || c >= MaxNodes {
				return j.Wrong("the node %d has the feature %d; features are whole numbers from 0 on", v, c)
			}
			b.columns.Add(int32(c))
			b.cols = max(b.cols, c+1)
			n++
			return nil
		})
		b.of.Add(int32(v))
		b.lengths.Add(n)
		b.most = max(b.most, v)
		return err
	})
	if err == nil {
		err = j.End()
	}
	switch {
	case err != nil:
		return nil, err
	case b.columns.N == 0:
		return nil, f.Wrong("no node has a feature")
	case !plausible(b.cols, int64(b.columns.N)):
		return nil, f.Wrong("the largest feature is %d, but the nodes have %d in all", b.cols-1, b.columns.N)
	}
	return b, nil
}

// sparse returns the features as a matrix of 0 and 1; a node without a list has an empty row.
func (b *bags) sparse(nodes int) (*dataset.Sparse, error) {
	m := &dataset.Sparse{Rows: nodes, Cols: int(b.cols), Indptr: make([]int64, nodes+1)}
	of, lengths, columns := b.of.Flat(), b.lengths.Flat(), b.columns.Flat()
	rows := make([][]int32, nodes)
	for i, v := range of {
		row := columns[:lengths[i]:lengths[i]]
		columns = columns[lengths[i]:]
		if rows[v] != nil {
			return nil, b.f.Wrong("the node %d has two lists", v)
		}
		slices.Sort(row)
		rows[v] = slices.Compact(row)
		if rows[v] == nil {
			rows[v] = []int32{}
		}
	}
	for v, row := range rows {
		m.Indptr[v+1] = m.Indptr[v] + int64(len(row))
	}
	m.Indices = make([]int32, 0, m.Indptr[nodes])
	for _, row := range rows {
		m.Indices = append(m.Indices, row...)
	}
	return m, nil
}

// musaeTarget holds the table of targets.
type musaeTarget struct {
	column    string
	y         []int32
	classes   int // 0: the column does not hold classes
	different int // number of different values
	names     []string
}

func (s *source) musaeTargets(ctx context.Context, name string, o Options) (*musaeTarget, error) {
	if name == "" {
		return nil, nil
	}
	f, err := s.Open(name, "the classes")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := tabular.NewCSV(f)
	if err != nil {
		return nil, err
	}
	id, label := t.Column("new_id", "id", "node", "node_id"), t.Column("target", "ml_target", "mature", "page_type", "label", "class", "y")
	if label < 0 && len(t.Header) == 2 && id >= 0 {
		label = 1 - id
	}
	if id < 0 || label < 0 {
		return nil, t.Wrong(`line 1: the columns are %s; a node has an "id" (or "new_id") and a "target"`, tabular.ShownNames(t.Header))
	}
	var ids, values tabular.Pile[int32]
	terms := tabular.NewTerms()
	err = t.Each(ctx, func(record []string) error {
		v, ok := tabular.Whole([]byte(record[id]))
		if !ok || v < 0 || v >= MaxNodes {
			return t.At("the node %s is none; nodes are whole numbers from 0 on", tabular.Shown([]byte(record[id])))
		}
		w := int32(-1)
		if record[label] != "" {
			var full bool
			if w, full = terms.Add(record[label]); full {
				return t.At("there are 4 GiB of labels")
			}
		}
		ids.Add(int32(v))
		values.Add(w)
		return nil
	})
	if err != nil {
		return nil, err
	}
	list, value := ids.Flat(), values.Flat()
	n := len(list)
	o.unreadColumns(t, n, id, label)
	if n == 0 {
		return nil, t.Wrong("it has no nodes below its first line")
	}
	out := &musaeTarget{column: t.Header[label], y: make([]int32, n), different: terms.Len()}
	seen := make([]uint64, (n+63)/64)
	for i, v := range list {
		if err := tabular.Claim(seen, int64(v), n); err != nil {
			return nil, t.Wrong("record %d: %w", i+1, err)
		}
		out.y[v] = value[i]
	}
	if n > 100 && 2*out.different > n { // a class has several nodes
		return out, nil
	}
	unknown := &tabular.Unknown{Where: filepath.Base(t.Path)}
	if out.names, out.classes, err = tabular.NumberLabels(out.y, terms, unknown, o.columnGuide()); err != nil {
		return nil, t.Wrong("the column %s: %w", tabular.Shown([]byte(out.column)), err)
	}
	return out, nil
}

// maxUnused and maxDepth bound the search for files that were not read.
const (
	maxUnused = 1000
	maxDepth  = 4
)

// unused returns the files of the folder that were not read, except documentation; with deep, also those of its folders.
func (s *source) unused(deep bool) (names []string) {
	var visit func(in *tabular.Source, above string, depth int)
	visit = func(in *tabular.Source, above string, depth int) {
		for _, file := range in.Files {
			plain := strings.ToLower(tabular.Stem(file))
			if !strings.HasPrefix(file, ".") && !strings.HasPrefix(plain, "readme") && !strings.HasPrefix(plain, "licen") &&
				!strings.HasPrefix(plain, "citation") && !s.Meter.WasRead(s.Path, above+file) {
				names = append(names, above+file)
			}
		}
		for _, dir := range in.Dirs {
			if !deep || depth == maxDepth || len(names) > maxUnused || strings.HasPrefix(dir, ".") {
				continue
			}
			if inside, err := tabular.Inspect(filepath.Join(in.Path, dir), s.Meter); err == nil {
				visit(inside, above+dir+"/", depth+1)
			}
		}
	}
	visit(s.Source, "", 0)
	return names
}
