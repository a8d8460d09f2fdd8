package tables

import (
	"bufio"
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/mapped"
)

// NewSplit is the name of the split with the nodes that the last [Append] added.
const NewSplit = "new"

// AppendOptions configure [Append]. The zero value is a good default.
type AppendOptions struct {
	// Name is the dataset's name; "" means that of the directory.
	Name string
	// Replace replaces a directory that was made of tables before.
	Replace bool
	// Threads is the number of threads that build the graph; 0 means GOMAXPROCS. It changes no bit of the result.
	Threads int
	// Quiet prints no warnings.
	Quiet bool
	// Notice receives what was dropped, merged or could not be represented. Note receives the same as text, one line each,
	// if Notice is nil; without both it is printed, unless Quiet is set.
	Notice func(notice.Notice)
	Note   func(text string)
	// Progress receives the number of bytes of text files read, and the total known so far.
	Progress func(done, total int64)
}

// Append adds new nodes and edges to a dataset that [Read] made, and writes the result as the directory dir; ds stays as
// it is. The dataset's [Recipe] encodes the new rows, so a node's features are what they would be, bit for bit, if Read
// had met it with the others and the same recipe. The tables have the columns of the recipe; those of labels and splits
// may be missing, and further columns are not read.
//
// Edges join new and old nodes by their original ids. A table of nodes or of edges may be left out. Old nodes keep
// their order and new ones follow them, within each type. The split [NewSplit] has the new nodes; a new node is in
// train, val or test only if a column of splits says so. An edge that the dataset has already is merged with it as [Read]
// merges equal edges: the result has the bits of all tables read together with the same recipe. The caller closes the
// result.
//
// Cost: one pass over the tables, and a copy of the dataset.
func Append(ctx context.Context, dir string, ds *dataset.Dataset, f Files, a AppendOptions) (*dataset.Dataset, error) {
	o := &Options{Name: a.Name, Replace: a.Replace, Threads: a.Threads, Quiet: a.Quiet, Note: a.Note, Notice: a.Notice, Progress: a.Progress}
	switch {
	case ds == nil:
		return nil, fault("Append needs a dataset")
	case ds.Dir() == "":
		return nil, fault("%s is in memory and has no recipe; open the directory that tables.Read wrote", ds.Name())
	case len(f.Nodes)+len(f.Edges) == 0:
		return nil, fault("there is no table to append")
	}
	if err := divided.CheckOpened(ctx, ds); err != nil {
		return nil, err
	}
	if err := free(dir, o.Replace); err != nil {
		return nil, err
	}
	if here, err := filepath.Abs(dir); err == nil && here == ds.Dir() {
		return nil, fault("%s is the dataset's own directory; choose another for the result", dir)
	}
	r, err := ReadRecipe(ds.Dir())
	if err != nil {
		return nil, err
	}
	if r.Graphs != nil || f.Graphs != "" {
		return nil, fault("%s has many graphs, to which nothing is appended; read the tables of new graphs with the recipe of this dataset (tables.Read with Options.Recipe, or gnb data convert --recipe)", ds.Name())
	}
	if r.Events || f.Events {
		return nil, fault("%s has events, to which nothing is appended so far; read all events again with the recipe of this dataset (tables.Read with Options.Recipe, or gnb data convert --recipe)", ds.Name())
	}
	if r.timesOfNodes() {
		return nil, fault("%s has times of nodes, to which nothing is appended so far; read all tables again with the recipe of this dataset (tables.Read with Options.Recipe, or gnb data convert --recipe)", ds.Name())
	}
	if r.predicts() {
		return nil, fault("%s has numbers to predict of edges, to which nothing is appended so far; read all tables with the recipe of this dataset (tables.Read with Options.Recipe, or gnb data convert --recipe), with empty cells where a number is to be predicted", ds.Name())
	}
	if o.Recipe = r; len(f.Nodes) == 0 && r.Nodes[0].Type != "" {
		f.Nodes = []Nodes{} // only edges; their relations are checked below
	}
	sources, edgeSources, err := f.open(o)
	if err != nil {
		return nil, err
	}
	old, err := r.oldNodes(ds)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		t := r.nodeTable(s.kind.Type)
		if t < 0 {
			return nil, fault("%s has nodes of type %s, which the dataset lacks; its types are %s", s.table.path, shown(s.kind.Type), r.typeNames())
		}
		if err := s.match(&r.Nodes[t], o); err != nil {
			return nil, err
		}
		if err := old[t].encode(ctx, s.table, true); err != nil {
			return nil, err
		}
		old[t].say(s.table, o)
	}
	list, err := r.newEdges(ctx, edgeSources, old, o)
	if err != nil {
		return nil, err
	}
	var d *dataset.Dataset
	err = mapped.Guard(func() error {
		d, err = r.join(ds, old, list, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.Meta.Source = ds.Meta.Source + "; appended " + f.describe()
	return finish(ctx, dir, d, r, old, o)
}

func (r *Recipe) typeNames() string {
	var all []string
	for _, t := range r.Nodes {
		all = append(all, shown(t.Type))
	}
	return strings.Join(all, ", ")
}

// oldNodes returns an entry for each type, with the ids that the dataset has.
func (r *Recipe) oldNodes(ds *dataset.Dataset) ([]*nodes, error) {
	missing := r.missing()
	all := make([]*nodes, len(r.Nodes))
	total := 0
	for t := range r.Nodes {
		n := &nodes{t: &r.Nodes[t], missing: missing, seed: r.Seed, idx: &index{}}
		if err := n.readIDs(ds); err != nil {
			return nil, err
		}
		n.from = n.idx.n
		total += n.from
		x := dataset.NodeFeatures{Dense: ds.Features, Sparse: ds.SparseFeatures}
		if s := ds.Schema(); s != nil {
			if len(s.Nodes) != len(r.Nodes) || s.Nodes[t].Count != n.from {
				return nil, fault("the recipe in %s is not that of the dataset: its types of nodes differ", ds.Dir())
			}
			x = ds.FeaturesOf(t)
		}
		if x.Cols() != n.t.Width && n.from > 0 || x.Sparse != nil != (n.t.Sparse && n.t.Width > 0 && n.from > 0) {
			return nil, fault("the recipe in %s makes %d features and the dataset has %d of %s; it is of another dataset", ds.Dir(), n.t.Width, x.Cols(), n.t.name(false))
		}
		all[t] = n
	}
	if total != ds.Nodes() {
		return nil, fault("%s has the ids of %d nodes, and the dataset has %d nodes", ds.Dir(), total, ds.Nodes())
	}
	return all, nil
}

// readIDs reads the ids of a type.
func (n *nodes) readIDs(ds *dataset.Dataset) error {
	path := filepath.Join(ds.Dir(), dataset.NamesFile(n.t.Type))
	in, err := ds.OpenFile(dataset.NamesFile(n.t.Type))
	if err != nil {
		return fault("reading the ids of the nodes: %w", err)
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, math.MaxInt32)
	for lines.Scan() {
		k, ok := keyOfText(lines.Text())
		if !ok {
			return fault("%s: line %d is empty; it is the id of a node", path, n.idx.n+1)
		}
		if _, ok := n.idx.add(k); !ok {
			return fault("%s: line %d: the id %s is there twice", path, n.idx.n+1, shown(k.String()))
		}
	}
	if err := lines.Err(); err != nil {
		return fault("reading %s: %w", path, err)
	}
	return nil
}

// newEdges reads the new edges, in the order of the recipe's relations; those without a table are empty.
func (r *Recipe) newEdges(ctx context.Context, sources []*source, all []*nodes, o *Options) ([]*edges, error) {
	byTable := make([]*source, len(r.Edges))
	for _, s := range sources {
		k := slices.IndexFunc(r.Edges, func(t Table) bool {
			return (t.Relation == nil) == (s.kind.Relation == nil) && (t.Relation == nil || *t.Relation == *s.kind.Relation)
		})
		switch {
		case k < 0 && s.kind.Relation == nil:
			return nil, fault("%s: the dataset has types of nodes; say the edges' relation and the types of their ends", s.table.path)
		case k < 0:
			return nil, fault("%s has edges of the relation %s, which the dataset lacks", s.table.path, s.kind.Relation)
		case byTable[k] != nil:
			return nil, fault("%s and %s have edges of the same relation; give one folder of files", byTable[k].table.path, s.table.path)
		}
		if err := s.match(&r.Edges[k], o); err != nil {
			return nil, err
		}
		byTable[k] = s
	}
	width, missing := r.edgeWidth(), r.missing()
	list := make([]*edges, len(r.Edges))
	for k := range r.Edges {
		e := &edges{t: &r.Edges[k], missing: missing, src: all[0].idx, dst: all[0].idx}
		if rel := e.t.Relation; rel != nil {
			a, b := r.nodeTable(rel.Src), r.nodeTable(rel.Dst)
			if a < 0 || b < 0 {
				return nil, fault("the recipe has the relation %s, and no nodes of the types of its ends", rel)
			}
			e.src, e.dst = all[a].idx, all[b].idx
		}
		if list[k] = e; byTable[k] != nil {
			if err := e.read(ctx, byTable[k].table, width); err != nil {
				return nil, err
			}
			e.say(byTable[k].table, o)
		}
	}
	return list, nil
}

func (r *Recipe) edgeWidth() int {
	width := 0
	for _, t := range r.Edges {
		width += t.Width
	}
	return width
}

// join makes the dataset of the old one and of what was read.
func (r *Recipe) join(ds *dataset.Dataset, all []*nodes, list []*edges, o *Options) (*dataset.Dataset, error) {
	counts, starts, was := make([]int, len(all)), make([]int, len(all)), make([]int, len(all))
	total := 0
	for t, n := range all {
		counts[t] = n.from + n.rows
		starts[t] = total
		total += counts[t]
		if t > 0 {
			was[t] = was[t-1] + all[t-1].from
		}
	}
	// now returns the new number of an old node.
	now := func(v int32) int32 {
		t := len(was) - 1
		for was[t] > int(v) || all[t].from == 0 && t > 0 {
			t--
		}
		return v + int32(starts[t]-was[t])
	}
	rows := rowsOf(list)
	g, c, err := r.joinGraph(ds.Dir(), ds.Graph, counts, total, list, now, o.Threads)
	if err != nil {
		return nil, err
	}
	r.merged = c
	if m := r.mergedOf(rows, ds.Graph, g); m.Repeats > 0 {
		o.say(m.Notice())
	}
	d := &dataset.Dataset{Graph: g, Splits: map[string][]int32{}, Meta: dataset.Metadata{Undirected: symmetric(g), NumClasses: ds.Meta.NumClasses, ClassNames: ds.Meta.ClassNames, Metric: ds.Meta.Metric, FeatureNames: ds.Meta.FeatureNames, EdgeFeatureNames: ds.Meta.EdgeFeatureNames, Notices: slices.Clone(ds.Meta.Notices)}}
	if ds.Labels != nil {
		d.Labels = make([]int32, 0, total)
	}
	for name, ids := range ds.Splits {
		if name != NewSplit {
			for _, v := range ids {
				d.Splits[name] = append(d.Splits[name], now(v))
			}
		}
	}
	if len(ds.Meta.TargetNames) != ds.TargetDim() || !slices.Equal(ds.Meta.TargetNames, r.targets()) {
		return nil, fault("the targets of the dataset are not those of its recipe; it was changed after tables.Read")
	}
	r.putTargets(d, all, ds.Targets, was)
	var x []dataset.NodeFeatures
	for t, n := range all {
		old := dataset.NodeFeatures{Dense: ds.Features, Sparse: ds.SparseFeatures}
		if ds.Schema() != nil {
			old = ds.FeaturesOf(t)
		}
		x = append(x, n.after(old))
		if ds.Labels != nil {
			d.Labels = append(d.Labels, ds.Labels[was[t]:was[t]+n.from]...)
			if n.labels == nil {
				n.labels = slices.Repeat([]int32{-1}, n.rows)
			}
			d.Labels = append(d.Labels, n.labels...)
		}
		n.eachSplit(func(name string, ids []int32) {
			for _, v := range ids {
				d.Splits[name] = append(d.Splits[name], int32(starts[t])+v)
			}
		})
		for i := range n.rows {
			d.Splits[NewSplit] = append(d.Splits[NewSplit], int32(starts[t]+n.from+i))
		}
	}
	if g.Schema == nil {
		d.Features, d.SparseFeatures = x[0].Dense, x[0].Sparse
		return d, nil
	}
	if slices.ContainsFunc(x, func(x dataset.NodeFeatures) bool { return x.Cols() > 0 }) {
		d.NodeFeatures = x
	}
	d.Meta.NodeTypes = slices.Clone(ds.Meta.NodeTypes)
	for t := range d.Meta.NodeTypes {
		d.Meta.NodeTypes[t].Count = counts[t]
	}
	return d, nil
}

// after returns the old features with the new rows below.
func (n *nodes) after(old dataset.NodeFeatures) dataset.NodeFeatures {
	fresh := n.matrix()
	switch {
	case n.rows == 0 || n.t.Width == 0:
		return old
	case n.from == 0:
		return fresh
	case old.Dense != nil:
		x := make([]float32, 0, (n.from+n.rows)*n.t.Width)
		x = append(append(x, old.Dense.Float32().F32...), fresh.Dense.F32...)
		return dataset.NodeFeatures{Dense: &dataset.Matrix{Rows: n.from + n.rows, Cols: n.t.Width, F32: x}}
	}
	a, b := old.Sparse, fresh.Sparse
	s := &graphops.Sparse{Rows: a.Rows + b.Rows, Cols: a.Cols, Indptr: slices.Clone(a.Indptr)}
	s.Indices, s.Values = slices.Concat(a.Indices, b.Indices), slices.Concat(a.Values, b.Values)
	for _, end := range b.Indptr[1:] {
		s.Indptr = append(s.Indptr, a.Indptr[a.Rows]+end)
	}
	return dataset.NodeFeatures{Sparse: s}
}

// joinGraph makes the graph of the old edges and the new ones, by the rule of Read: the copies of merged edges are put
// back first, so the result has the bits of the graph of all tables read together.
func (r *Recipe) joinGraph(dir string, g *graphops.Graph, counts []int, total int, list []*edges, now func(int32) int32, threads int) (*graphops.Graph, *copies, error) {
	if total > math.MaxInt32 {
		return nil, nil, fault("there are %d nodes together, and node ids are int32", total)
	}
	fresh, err := r.graphOf(counts, list, threads)
	if err != nil {
		return nil, nil, err
	}
	if g.Schema != nil && !slices.Equal(g.Schema.Relations, fresh.Schema.Relations) {
		return nil, nil, fault("the relations of the dataset are not those of its recipe; it was changed after tables.Read")
	}
	c, err := r.readCopies(dir, g)
	if err != nil {
		return nil, nil, err
	}
	width, weighted := r.edgeWidth(), r.weighted()
	a, b := g.EdgeData(), fresh.EdgeData()
	switch {
	case width > 0 && (a.Features == nil || a.Features.Half() || a.Features.Cols != width):
		return nil, nil, fault("the features of edges are not those of the recipe; the dataset was changed after tables.Read")
	case !weighted && a.Weights != nil:
		return nil, nil, fault("the edges have weights, and the recipe has none; the dataset was changed after tables.Read")
	}
	edges := g.NumEdges() + fresh.NumEdges() + int64(len(c.edge))
	src, dst := make([]int32, 0, edges), make([]int32, 0, edges)
	var data graphops.EdgeData
	if width > 0 {
		data.Features = &graphops.EdgeFeatures{Cols: width}
	}
	// old adds the edge e of the dataset, or copy k of it.
	old := func(u, v int32, e int64, k int) {
		src, dst = append(src, now(u)), append(dst, now(v))
		if a.Times != nil {
			data.Times = append(data.Times, a.Times[e])
		}
		if a.Types != nil {
			data.Types = append(data.Types, a.Types[e])
		}
		if weighted {
			w := g.Weight(e)
			if k >= 0 {
				w = c.weights[k]
			}
			data.Weights = append(data.Weights, w)
		}
		if width > 0 {
			x, at := a.Features.F32, e
			if k >= 0 {
				x, at = c.x, int64(k)
			}
			data.Features.F32 = append(data.Features.F32, x[at*int64(width):(at+1)*int64(width)]...)
		}
	}
	k := 0
	for v := range int32(g.NumNodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if k == len(c.edge) || c.edge[k] != e {
				old(g.Indices[e], v, e, -1)
				continue
			}
			for ; k < len(c.edge) && c.edge[k] == e; k++ {
				old(g.Indices[e], v, e, k)
			}
		}
	}
	for v := range fresh.NumNodes() {
		for _, u := range fresh.InNeighbors(int32(v)) {
			src, dst = append(src, u), append(dst, int32(v))
		}
	}
	data.Times, data.Types = append(data.Times, b.Times...), append(data.Types, b.Types...)
	if weighted {
		w := b.Weights
		if w == nil {
			w = slices.Repeat([]float32{1}, int(fresh.NumEdges()))
		}
		data.Weights = append(data.Weights, w...)
	}
	if width > 0 && b.Features != nil {
		data.Features.F32 = append(data.Features.F32, b.Features.F32...)
	}
	out, err := graphops.FromEdgesWith(total, src, dst, data, graphops.BuildOptions{KeepDuplicates: r.keepsCopies(), Threads: threads})
	if err == nil && fresh.Schema != nil {
		out, err = out.WithTypes(fresh.Schema, out.EdgeTypes)
	}
	if err != nil {
		return nil, nil, fault("%w", err)
	}
	return mergeEdges(out, threads)
}
