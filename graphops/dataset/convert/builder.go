package convert

import (
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/tabular"
)

// nodeTable is the nodes of one type, which are numbered from 0.
type nodeTable struct {
	name       string
	count      int
	features   *dataset.Matrix // nil: none
	names      []string        // of the features; nil: none
	labels     []int32         // nil: none
	classNames []string
	splits     map[string][]int32
}

// edgeTable is the edges of one relation; their ends are numbers of nodes within their types.
type edgeTable struct {
	graphops.Relation
	src, dst []int32
	weights  []float32 // nil: 1 each
	columns  []string  // names of the columns of x
	x        []float32 // [edges, columns]
	times    []int64
	read     []string // names of columns of the table that x is read from
}

// builder makes a dataset of tables by type.
type builder struct {
	nodes []nodeTable
	edges []edgeTable
}

// refuse returns an error for options that graphs with types do not have.
func refuse(s *source, format string, o Options) error {
	switch {
	case o.Undirected:
		return tabular.Errorf("%s: the reverse of an edge is of another relation; convert without --undirected and with --reverses", s.Path)
	case o.LargestComponent || o.Relabel:
		return tabular.Errorf("%s: the format %s has none of --largest-component and --relabel", s.Path, format)
	}
	return nil
}

// schema returns the types and relations of the tables.
func (b *builder) schema() *graphops.Schema {
	s := &graphops.Schema{}
	for _, n := range b.nodes {
		s.Nodes = append(s.Nodes, graphops.NodeType{Name: n.name, Count: n.count})
	}
	for _, e := range b.edges {
		s.Relations = append(s.Relations, e.Relation)
	}
	return s
}

// dataset makes the dataset, and frees the tables.
func (b *builder) dataset(s *source, o Options) (*dataset.Dataset, error) {
	fail := func(err error) (*dataset.Dataset, error) { return nil, tabular.Errorf("reading %s: %w", s.Path, err) }
	schema := b.schema()
	if err := schema.Validate(); err != nil {
		return fail(err)
	}
	total := 0
	for _, e := range b.edges {
		total += len(e.src)
	}
	switch {
	case schema.NumNodes() == 0:
		return fail(fmt.Errorf("none of its %d node types has nodes", len(schema.Nodes)))
	case total == 0:
		return fail(fmt.Errorf("none of its %d relations has edges", len(schema.Relations)))
	}
	if err := b.plausible(total); err != nil {
		return fail(err)
	}
	for r, e := range b.edges {
		if len(e.src) == 0 {
			o.said.Tell("%s: the relation %s has no edges", s.Path, schema.Relations[r])
		}
	}
	g, err := b.graph(schema, total, o)
	if err != nil {
		return fail(err)
	}
	d := &dataset.Dataset{Graph: g, Splits: map[string][]int32{}}
	b.addNodes(d, schema)
	for t, n := range schema.Nodes {
		if d.NodeFeatures == nil || d.NodeFeatures[t].Dense == nil {
			o.said.Tell("%s: the nodes of type %s have no features", s.Path, n.Name)
		}
	}
	return d, nil
}

// typedSpareNodes is how many nodes files may declare beyond four for each edge and those with a row of their own.
const typedSpareNodes = 1 << 20

// plausible returns an error for numbers of nodes that the files only declare, without rows or edges for them: a node takes
// memory, and an invented number must not.
func (b *builder) plausible(edges int) error {
	declared := int64(0)
	for _, n := range b.nodes {
		if n.features == nil && n.labels == nil {
			declared += int64(n.count)
		}
	}
	if declared > 4*int64(edges)+typedSpareNodes {
		return fmt.Errorf("it declares %d nodes that have neither features nor labels, and has %d edges", declared, edges)
	}
	return nil
}

// graph makes the graph of all edges. Where one relation has weights, edges of the others have the weight 1. Relations have
// edge features of their own columns.
func (b *builder) graph(schema *graphops.Schema, total int, o Options) (*graphops.Graph, error) {
	starts := schema.Starts()
	src, dst := make([]int32, 0, total), make([]int32, 0, total)
	data := graphops.EdgeData{Types: make([]uint16, 0, total)}
	timed, untimed := -1, -1
	for r, e := range b.edges {
		if e.weights != nil && data.Weights == nil {
			data.Weights = make([]float32, 0, total)
		}
		if e.times != nil {
			timed = r
		} else if len(e.src) > 0 {
			untimed = r
		}
	}
	if timed >= 0 && untimed >= 0 {
		return nil, fmt.Errorf("the edges of %s have times, and those of %s have none; each edge needs a time, or none has one", schema.Relations[timed], schema.Relations[untimed])
	}
	for r := range b.edges {
		e := &b.edges[r]
		from, to := schema.Ends(r)
		for i := range e.src {
			src = append(src, int32(starts[from])+e.src[i])
			dst = append(dst, int32(starts[to])+e.dst[i])
			data.Types = append(data.Types, uint16(r))
			if data.Weights != nil {
				w := float32(1)
				if e.weights != nil {
					w = e.weights[i]
				}
				data.Weights = append(data.Weights, w)
			}
		}
		data.Times = append(data.Times, e.times...)
	}
	var err error
	if data.Features, err = b.edgeFeatures(schema, data.Types, o); err != nil {
		return nil, err
	}
	for r := range b.edges {
		e := &b.edges[r]
		e.src, e.dst, e.weights, e.x, e.times = nil, nil, nil, nil, nil
	}
	g, merged, err := Graph(schema.NumNodes(), src, dst, data, graphops.BuildOptions{Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	if merged.Repeats > 0 {
		o.said.Add(merged.Notice())
	}
	return g.WithTypes(schema, g.EdgeTypes)
}

// edgeFeatures returns the features of the edges, which are in the order of their relations: one matrix if the edges of all
// relations have the same columns, and otherwise those of each relation.
func (b *builder) edgeFeatures(schema *graphops.Schema, types []uint16, o Options) (*graphops.EdgeFeatures, error) {
	of := make([]*graphops.EdgeFeatures, len(b.edges))
	var first *edgeTable
	same := true
	for r := range b.edges {
		e := &b.edges[r]
		if len(e.src) == 0 {
			continue
		}
		if first == nil {
			first = e
		}
		same = same && slices.Equal(e.columns, first.columns)
		if len(e.columns) > 0 {
			of[r] = &graphops.EdgeFeatures{Cols: len(e.columns), F32: e.x}
			o.said.Tell("the features of the edges of %s are %v", schema.Relations[r], e.columns)
		}
	}
	switch {
	case !slices.ContainsFunc(of, func(x *graphops.EdgeFeatures) bool { return x != nil }):
		return nil, nil
	case !same:
		return graphops.EdgeFeaturesByRelation(types, of)
	}
	all := &graphops.EdgeFeatures{Cols: len(first.columns), F32: make([]float32, 0, len(types)*len(first.columns))}
	for _, x := range of {
		if x != nil {
			all.F32 = append(all.F32, x.F32...)
		}
	}
	return all, nil
}

// addNodes adds features, labels and splits of the nodes.
func (b *builder) addNodes(d *dataset.Dataset, schema *graphops.Schema) {
	starts := schema.Starts()
	types := make([]dataset.NodeType, len(b.nodes))
	for t := range b.nodes {
		n := &b.nodes[t]
		types[t] = dataset.NodeType{Name: n.name, Count: n.count}
		if n.features != nil && n.count > 0 {
			if d.NodeFeatures == nil {
				d.NodeFeatures = make([]dataset.NodeFeatures, len(b.nodes))
			}
			d.NodeFeatures[t].Dense = n.features
			types[t].FeatureNames = n.names
		}
		if n.labels != nil {
			if d.Labels == nil {
				d.Labels = slices.Repeat([]int32{-1}, schema.NumNodes())
			}
			copy(d.Labels[starts[t]:], n.labels)
			types[t].NumClasses, types[t].ClassNames = int(slices.Max(n.labels))+1, n.classNames
			d.Meta.NumClasses = max(d.Meta.NumClasses, types[t].NumClasses)
		}
		for name, ids := range n.splits {
			for _, v := range ids {
				d.Splits[name] = append(d.Splits[name], int32(starts[t])+v)
			}
		}
	}
	d.Meta.NodeTypes = types
}

// addCount adds a number of nodes to a total, which must stay below the largest number of nodes.
func addCount(total *int64, n int64) bool {
	*total += n
	return n >= 0 && *total <= math.MaxInt32
}
