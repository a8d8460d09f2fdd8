package predict

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/simd"
)

// Node is a new node.
type Node struct {
	// ID names the node in edges, answers and errors. No node of the dataset or of the call has the same id (within a type).
	ID string `json:"id"`
	// Type is the type of the node in a dataset with types, else "".
	Type string `json:"type,omitempty"`
	// Columns are the values of the node by the columns of the tables that the dataset was made of, as text; "" where a value is
	// missing. The recipe of the dataset encodes them.
	Columns map[string]string `json:"columns,omitempty"`
	// Features are the features themselves, in the order of the dataset, in place of Columns.
	Features []float32 `json:"features,omitempty"`
}

// Edge is a new edge. At least one of its ends is a new node. In a dataset with types the ends are ids of nodes of the
// relation's types.
type Edge struct {
	Source string `json:"source"`
	Target string `json:"target"`
	// Relation is the relation in a dataset with types: "user:buys:item", or its name alone if no other has it.
	Relation string `json:"relation,omitempty"`
	// Columns are the values by the columns of the table of edges that the dataset was made of: its weight, its time and its features.
	Columns map[string]string `json:"columns,omitempty"`
	// Weight, Time and Features are these values in a dataset that was not made of tables. Nil means the weight 1.
	Weight   *float32  `json:"weight,omitempty"`
	Time     *int64    `json:"time,omitempty"`
	Features []float32 `json:"features,omitempty"`
}

// Additions are new nodes, and edges that join them to nodes of the dataset and to each other.
type Additions struct {
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges,omitempty"`
}

// New answers for new nodes, which are appended together for this call: row i of the answers is that of a.Nodes[i]. The
// answers have the bits of an inference on the dataset with the nodes and edges appended: for a dataset of tables, by
// [tables.Append].
//
// Errors are of the kinds [ErrRequest] and [ErrUnknownNode]; a neighbourhood that is too large is a [*LimitError].
//
// Cost: that of the nodes' neighbourhoods, and a copy of the in-edges of each known node that gets a new one.
func (p *Predictor) New(ctx context.Context, a Additions) (*Answers, error) {
	leave, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	st := p.state()
	o, said, err := newAdding(p, st).add(ctx, a)
	if err != nil {
		return nil, err
	}
	places, ids := make([]int32, len(o.nodes)), make([]string, len(o.nodes))
	for i := range o.nodes {
		places[i], ids[i] = o.nodes[i].place, o.nodes[i].id
	}
	r, err := p.answer(ctx, st, o, places, ids)
	if err != nil {
		return nil, err
	}
	r.Notices = said
	return r, nil
}

// adding collects the new nodes and edges of a call.
type adding struct {
	p      *Predictor
	st     *state
	keeps  bool // edges may join known nodes
	fresh  int  // the number of new in-edges
	merged int  // of which there are equal ones already
	nodes  []addedNode
	byType [][]int          // the numbers of the nodes, by type
	ids    []map[string]int // by type, the number within the new nodes of the type
	src    []int32          // places
	dst    []int32
	data   graphops.EdgeData
	said   notice.List
}

func newAdding(p *Predictor, st *state) *adding {
	return &adding{p: p, st: st, byType: make([][]int, p.types()), ids: make([]map[string]int, p.types())}
}

// add makes the overlay of new nodes and edges, and returns what the recipe made of their values.
func (x *adding) add(ctx context.Context, a Additions) (*overlay, notice.List, error) {
	if n := len(a.Edges); n > x.p.o.MaxEdges {
		return nil, nil, bad("a call has %d new edges, and the limit is %d; send fewer at once, or allow more (Options.MaxEdges, --max-edges)", n, x.p.o.MaxEdges)
	}
	if err := x.addNodes(ctx, a.Nodes); err != nil {
		return nil, nil, err
	}
	if err := x.addEdges(ctx, a.Edges); err != nil {
		return nil, nil, err
	}
	fresh, touched, err := x.graph()
	if err != nil {
		return nil, nil, err
	}
	x.fresh = len(fresh.Indices)
	o, merged, err := x.p.overlaid(x.st.over, x.nodes, fresh, touched)
	x.merged = merged
	return o, x.said, err
}

// addNodes gives the new nodes their places and features.
func (x *adding) addNodes(ctx context.Context, all []Node) error {
	p := x.p
	for i, n := range all {
		typ, err := p.newType(i, n)
		if err != nil {
			return err
		}
		if x.ids[typ] == nil {
			x.ids[typ] = map[string]int{}
		}
		number := len(x.byType[typ])
		known, err := x.st.lookup(typ, n.ID)
		if err != nil {
			return err
		}
		switch _, twice := x.ids[typ][n.ID]; {
		case n.ID == "":
			return bad("new node %d has no id; edges and answers name it by its id", i)
		case strings.ContainsAny(n.ID, "\n\r"):
			return bad("the id of new node %d, %q, has a line break", i, n.ID)
		case twice:
			return bad("two new nodes have the id %q; each has an id of its own", n.ID)
		case known >= 0:
			return bad("the id %q of new node %d is that of a node of %s already; give another id, or ask for the known node", n.ID, i, p.in.Name())
		case number+x.st.kept(typ) == p.room:
			return bad("there are more than %d new nodes of a type, with %d that were added before; send fewer at once, or allow more (Options.MaxNew)", p.room, x.st.kept(typ))
		case p.learns(typ):
			return bad("new node %q: the network of run %s reads a learned row for each %s, and a new one has none; train a run on features to predict new nodes", n.ID, p.run, cmp.Or(p.typeName(typ), "node"))
		}
		x.ids[typ][n.ID] = number
		x.byType[typ] = append(x.byType[typ], i)
		x.nodes = append(x.nodes, addedNode{id: n.ID, typ: typ, place: int32(p.first[typ] + x.st.count(typ) + number), key: keyOf(n.ID)})
	}
	for typ, members := range x.byType {
		if err := x.features(ctx, typ, members, all); err != nil {
			return err
		}
	}
	return nil
}

// newType returns the type of a new node.
func (p *Predictor) newType(i int, n Node) (int, error) {
	switch {
	case p.schema == nil && n.Type != "":
		return 0, bad("new node %d is of type %q, and the nodes of %s have no types; leave Type out", i, n.Type, p.in.Name())
	case p.schema == nil:
		return 0, nil
	}
	typ := p.schema.NodeType(n.Type)
	if typ < 0 {
		return 0, bad("new node %d is of type %q, and %s has the types %s", i, n.Type, p.in.Name(), p.typeNames())
	}
	return typ, nil
}

// features sets the input rows of the new nodes of a type.
func (x *adding) features(ctx context.Context, typ int, members []int, all []Node) error {
	p := x.p
	width := p.in.FeatureDim()
	if p.in.NodeFeatures != nil {
		width = p.in.NodeFeatures[typ].Cols()
	}
	var rows []int // members with columns
	for _, i := range members {
		n := &all[i]
		switch {
		case n.Columns != nil && n.Features != nil:
			return bad("new node %q has Columns and Features; give one of them", n.ID)
		case n.Columns != nil && p.tables == nil:
			return bad("new node %q has columns, and %s was not made of tables, so it has no recipe to encode them; give its %d features", n.ID, p.in.Name(), width)
		case n.Columns != nil:
			rows = append(rows, i)
		case len(n.Features) != width && n.Features == nil && p.tables != nil:
			return bad("new node %q has neither columns nor features; give the columns of the tables of %s: %s", n.ID, p.in.Name(), p.columnsOf(typ))
		case len(n.Features) != width:
			return bad("new node %q has %d features, and a node of %s has %d", n.ID, len(n.Features), cmp.Or(p.typeName(typ), p.in.Name()), width)
		default:
			if c := slices.IndexFunc(n.Features, func(v float32) bool { return v-v != 0 }); c >= 0 {
				return bad("feature %d of new node %q is %v; features are finite", c, n.ID, n.Features[c])
			}
			x.nodes[i].x = p.fitted(typ, n.Features)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	ids, values := make([]string, len(rows)), make([]map[string]string, len(rows))
	for k, i := range rows {
		ids[k], values[k] = all[i].ID, all[i].Columns
	}
	f, err := p.tables.Nodes(ctx, p.typeName(typ), ids, values, x.said.Add)
	if err != nil {
		return kindError{err, ErrRequest}
	}
	for k, i := range rows {
		row := make([]float32, f.Cols())
		switch {
		case f.Dense != nil:
			row = f.Dense.Row(k)
		case f.Sparse != nil:
			columns, v := f.Sparse.Row(k)
			for j, c := range columns {
				row[c] = v[j]
			}
		}
		if len(row) != width {
			return bad("the recipe of %s makes %d features of a node, and the dataset has %d; it was changed after tables.Read", p.in.Name(), len(row), width)
		}
		x.nodes[i].x = p.fitted(typ, row)
	}
	return nil
}

// columnsOf lists the columns of the recipe for the nodes of a type.
func (p *Predictor) columnsOf(typ int) string {
	var names []string
	for _, t := range p.tables.Recipe().Nodes {
		if t.Type == p.typeName(typ) {
			for _, c := range t.Columns {
				if c.Width > 0 {
					names = append(names, c.Name)
				}
			}
		}
	}
	return strings.Join(names, ", ")
}

// fitted returns given features in the order and with the columns of the network's input.
func (p *Predictor) fitted(typ int, given []float32) []float32 {
	row := make([]float32, p.inputCols())
	if order := p.order[typ]; order != nil {
		for i, c := range order {
			row[i] = given[c]
		}
		return row
	}
	copy(row, given)
	return row
}

// end is one end of an edge.
type end struct {
	typ, number int // within the type; new nodes follow those of the dataset
	added       bool
}

// end finds a node by its id, among the new ones first.
func (x *adding) end(typ int, id string) (end, error) {
	if i, ok := x.ids[typ][id]; ok {
		return end{typ, x.st.count(typ) + i, true}, nil
	}
	number, err := x.st.within(typ, id)
	return end{typ, number, false}, err
}

// addEdges finds the ends of the new edges and encodes their data.
func (x *adding) addEdges(ctx context.Context, all []Edge) error {
	p := x.p
	shape := p.base.Edges()
	relations := make([]int, len(all))
	for i, e := range all {
		r, err := p.relationOf(i, e)
		if err != nil {
			return err
		}
		relations[i] = max(r, 0)
		a, b := 0, 0
		if r >= 0 {
			a, b = p.schema.Ends(r)
		}
		src, err := x.end(a, e.Source)
		if err != nil {
			return at(err, "the source of new edge %d", i)
		}
		dst, err := x.end(b, e.Target)
		if err != nil {
			return at(err, "the target of new edge %d", i)
		}
		if !src.added && !dst.added && !x.keeps {
			return bad("new edge %d joins %q and %q, which are both nodes of %s; an edge of a call has a new node at one end, and Add (POST /v1/edges) takes others", i, e.Source, e.Target, p.in.Name())
		}
		x.src, x.dst = append(x.src, int32(p.first[a]+src.number)), append(x.dst, int32(p.first[b]+dst.number))
	}
	x.data.SetLen(shape, len(all))
	if f := x.data.Features; f != nil {
		clear(f.F32)
		clear(f.F16)
	}
	if shape.Typed {
		for i, r := range relations {
			x.data.Types[i] = uint16(r)
		}
	}
	if p.tables != nil {
		return x.encodeEdges(ctx, all, relations)
	}
	for i := range all {
		if err := x.plainEdge(i, &all[i], relations[i]); err != nil {
			return err
		}
	}
	return nil
}

// relationOf returns the relation of a new edge, -1 without types.
func (p *Predictor) relationOf(i int, e Edge) (int, error) {
	switch {
	case p.schema == nil && e.Relation != "":
		return -1, bad("new edge %d is of relation %q, and the edges of %s have no relations; leave Relation out", i, e.Relation, p.in.Name())
	case p.schema == nil && p.base.Edges().Typed:
		return -1, bad("the edges of %s have types without names, so a new edge cannot say its type", p.in.Name())
	case p.schema == nil:
		return -1, nil
	case e.Relation == "":
		return -1, bad("new edge %d has no relation; %s has the relations %s", i, p.in.Name(), p.schema.RelationNames())
	}
	r, err := p.schema.Relation(e.Relation)
	if err != nil {
		return -1, bad("new edge %d: %w", i, err)
	}
	if p.tables != nil && r >= len(p.tables.Recipe().Edges) {
		return -1, bad("new edge %d is of relation %s, which is the reverse of another one and made of its edges; give the edge in the other direction", i, p.schema.Relations[r])
	}
	return r, nil
}

// plainEdge sets the data of an edge of a dataset that was not made of tables.
func (x *adding) plainEdge(i int, e *Edge, relation int) error {
	p, shape := x.p, x.p.base.Edges()
	if e.Columns != nil {
		return bad("new edge %d has columns, and %s was not made of tables, so it has no recipe to encode them", i, p.in.Name())
	}
	if err := x.weight(i, e.Weight); err != nil {
		return err
	}
	switch {
	case e.Time == nil && shape.Times:
		return bad("new edge %d has no time, and the edges of %s have times; give one", i, p.in.Name())
	case e.Time != nil && !shape.Times:
		return bad("new edge %d has a time, and the edges of %s have none", i, p.in.Name())
	case e.Time != nil:
		x.data.Times[i] = *e.Time
	}
	width := 0
	if f := p.base.arrays[0].Edges.Features; f != nil {
		if width = f.Cols; shape.Typed {
			width = f.Width(relation)
		}
	}
	if len(e.Features) != width {
		return bad("new edge %d has %d features, and such an edge of %s has %d", i, len(e.Features), p.in.Name(), width)
	}
	if c := slices.IndexFunc(e.Features, func(v float32) bool { return v-v != 0 }); c >= 0 {
		return bad("feature %d of new edge %d is %v; features are finite", c, i, e.Features[c])
	}
	x.edgeFeatures(i, e.Features)
	return nil
}

// weight sets the weight of an edge; nil means 1.
func (x *adding) weight(i int, given *float32) error {
	p, w := x.p, float32(1)
	if given != nil {
		w = *given
	}
	switch {
	case !(w > 0) || w > math.MaxFloat32:
		return bad("the weight of new edge %d is %v; weights are finite and above 0, and an edge of weight 0 is none: leave it out", i, w)
	case p.base.Edges().Weighted:
		x.data.Weights[i] = w
	case w != 1:
		return bad("the weight of new edge %d is %v, and the edges of %s have no weights: all count as 1", i, w, p.in.Name())
	}
	return nil
}

// edgeFeatures sets the first features of an edge, in the type that the dataset stores.
func (x *adding) edgeFeatures(i int, values []float32) {
	f := x.data.Features
	switch {
	case len(values) == 0:
	case f.F16 != nil:
		simd.ToHalf(f.F16[i*f.Cols:][:len(values)], values)
	default:
		copy(f.F32[i*f.Cols:], values)
	}
}

// encodeEdges sets the data of edges by the recipe, table by table.
func (x *adding) encodeEdges(ctx context.Context, all []Edge, relations []int) error {
	p, added := x.p, map[string][]string{}
	for i := range x.nodes {
		name := p.typeName(x.nodes[i].typ)
		added[name] = append(added[name], x.nodes[i].id)
	}
	byRelation := map[int][]int{}
	for i := range all {
		e := &all[i]
		if e.Weight != nil || e.Time != nil || e.Features != nil {
			return bad("new edge %d: %s was made of tables, so weights, times and features are given as Columns of its table", i, p.in.Name())
		}
		byRelation[relations[i]] = append(byRelation[relations[i]], i)
	}
	for _, r := range slices.Sorted(maps.Keys(byRelation)) {
		members := byRelation[r]
		var rel *graphops.Relation
		if p.schema != nil {
			rel = &p.schema.Relations[r]
		}
		src, dst, rows := make([]string, len(members)), make([]string, len(members)), make([]map[string]string, len(members))
		for k, i := range members {
			src[k], dst[k], rows[k] = all[i].Source, all[i].Target, all[i].Columns
		}
		got, err := p.tables.Edges(ctx, rel, src, dst, rows, added, x.said.Add)
		if err != nil {
			return kindError{err, ErrRequest}
		}
		shape := p.base.Edges()
		if shape.FeatureCols != got.Width || shape.Times != (got.Times != nil) {
			return bad("the edges of %s are not those of its recipe; it was changed after tables.Read", p.in.Name())
		}
		for k, i := range members {
			if got.Weights != nil {
				if got.Weights[k] == 0 { // as Infer leaves out edges of weight 0
					return bad("the weight of new edge %d is 0, which is no edge; leave it out", i)
				}
				if err := x.weight(i, &got.Weights[k]); err != nil {
					return err
				}
			} else if err := x.weight(i, nil); err != nil {
				return err
			}
			if got.Times != nil {
				x.data.Times[i] = got.Times[k]
			}
			x.edgeFeatures(i, got.X[k*got.Width:(k+1)*got.Width])
		}
	}
	return nil
}

// graph makes the new edges a graph by the rules of the dataset: in both directions or with their reverses, equal edges merged. Row i
// is that of the place touched[i]; these ascend.
func (x *adding) graph() (g *graphops.Graph, touched []int32, err error) {
	p := x.p
	touched = slices.Concat(x.src, x.dst)
	for i := range x.nodes {
		touched = append(touched, x.nodes[i].place)
	}
	slices.Sort(touched)
	touched = slices.Compact(touched)
	local := func(places []int32) []int32 {
		rows := make([]int32, len(places))
		for i, at := range places {
			k, _ := slices.BinarySearch(touched, at)
			rows[i] = int32(k)
		}
		return rows
	}
	undirected, reverses := p.in.Meta.Undirected && p.schema == nil, false
	if p.tables != nil {
		undirected, reverses = p.tables.Recipe().Undirected, p.tables.Recipe().Reverses && p.schema != nil
	}
	g, err = graphops.FromEdgesWith(len(touched), local(x.src), local(x.dst), x.data, graphops.BuildOptions{Undirected: undirected, Threads: 1})
	if err == nil && reverses {
		if g, err = g.WithTypes(x.schemaOf(touched), g.EdgeTypes); err == nil {
			g, err = g.WithReverses(1)
		}
		if err == nil && !slices.Equal(g.Schema.Relations, p.schema.Relations) {
			err = fmt.Errorf("the relations of %s are not those of its recipe; it was changed after tables.Read", p.in.Name())
		}
	}
	if err != nil {
		return nil, nil, bad("%w", err)
	}
	return g, touched, nil
}

// schemaOf is the schema of the graph of touched places, with the relations of the tables alone.
func (x *adding) schemaOf(touched []int32) *graphops.Schema {
	p := x.p
	s := &graphops.Schema{Relations: slices.Clone(p.schema.Relations[:len(p.tables.Recipe().Edges)])}
	at := 0
	for t, n := range p.schema.Nodes {
		from := at
		for at < len(touched) && int(touched[at]) < p.first[t+1] {
			at++
		}
		s.Nodes = append(s.Nodes, graphops.NodeType{Name: n.Name, Count: at - from})
	}
	return s
}
