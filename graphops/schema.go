package graphops

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphnb/graphnb/internal/parallel"
)

// Schema names the types of a graph's nodes and the relations of its edges.
//
// A graph with types is one graph with one space of ids: the nodes of type 0 have the ids from 0 on,
// those of type 1 the ids that follow, and so on, in the order of Nodes. Relation r is Relations[r];
// [Graph.EdgeTypes] has r for each of its edges.
//
// A Schema is read-only once made and safe for concurrent use.
type Schema struct {
	Nodes     []NodeType `json:"nodes"`
	Relations []Relation `json:"relations"`
}

// NodeType is a type of nodes and their number, which can be 0.
type NodeType struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Relation is a kind of edges: from nodes of type Src to nodes of type Dst. Several relations can have
// the same name if their ends differ.
type Relation struct {
	Src  string `json:"src"`
	Name string `json:"name"`
	Dst  string `json:"dst"`
}

// String returns the three names with colons between them, such as "author:writes:paper".
func (r Relation) String() string { return r.Src + ":" + r.Name + ":" + r.Dst }

// ParseRelation returns the relation of its text, such as "author:writes:paper". The name in the middle
// can contain colons, because the names of node types cannot.
func ParseRelation(text string) (Relation, error) {
	first, last := strings.IndexByte(text, ':'), strings.LastIndexByte(text, ':')
	if first < 0 || first == last {
		return Relation{}, fmt.Errorf("graphops: the relation %q needs three names with colons between them: source type, name and destination type, such as author:writes:paper", text)
	}
	return Relation{text[:first], text[first+1 : last], text[last+1:]}, nil
}

const (
	// MaxRelations is the largest number of relations of a schema, and of its node types.
	MaxRelations = math.MaxUint16
	// LoopType is the type of the self-loops that [Block.SelfLooped] adds; see [Block.EdgeTypes].
	LoopType = math.MaxUint16

	maxTypeName = 200 // bytes; the names of node types are parts of names of files
)

// Validate returns an error unless the schema has at least one node type; names are not empty, have no
// control characters and are unique (those of node types also where upper and lower case count as
// equal, because files are named by them, and without colons and slashes); counts are not negative and
// add up to at most 2^31-1; and each relation's ends are node types.
func (s *Schema) Validate() error {
	switch {
	case len(s.Nodes) == 0:
		return errors.New("graphops: a schema without node types; give at least one")
	case len(s.Nodes) > MaxRelations:
		return fmt.Errorf("graphops: a schema of %d node types; at most %d are possible", len(s.Nodes), MaxRelations)
	case len(s.Relations) > MaxRelations:
		return fmt.Errorf("graphops: a schema of %d relations; at most %d are possible", len(s.Relations), MaxRelations)
	}
	total, types, folded := 0, map[string]bool{}, map[string]string{}
	for i, t := range s.Nodes {
		if err := checkName(t.Name); err != nil {
			return fmt.Errorf("graphops: node type %d of the schema: %w", i, err)
		}
		if len(t.Name) > maxTypeName || strings.ContainsAny(t.Name, `:/\`) || t.Name[0] == '.' {
			return fmt.Errorf("graphops: node type %d of the schema is named %q; files are named by it, so it has at most %d bytes, no colon or slash, and no dot in front", i, t.Name, maxTypeName)
		}
		low := strings.ToLower(t.Name)
		if was, ok := folded[low]; ok {
			return fmt.Errorf("graphops: the schema has the node types %q and %q; their names must differ in more than case", was, t.Name)
		}
		folded[low], types[t.Name] = t.Name, true
		if t.Count < 0 || t.Count > math.MaxInt32-total {
			return fmt.Errorf("graphops: node type %q has %d nodes; counts are not negative, and all types together have at most %d nodes", t.Name, t.Count, math.MaxInt32)
		}
		total += t.Count
	}
	relations := map[Relation]bool{}
	for i, r := range s.Relations {
		if err := checkName(r.Name); err != nil {
			return fmt.Errorf("graphops: relation %d of the schema: %w", i, err)
		}
		for _, end := range []string{r.Src, r.Dst} {
			if !types[end] {
				return fmt.Errorf("graphops: relation %s of the schema has the end %q, which is no node type; the node types are %s", r, end, s.typeNames())
			}
		}
		if relations[r] {
			return fmt.Errorf("graphops: the schema has the relation %s twice", r)
		}
		relations[r] = true
	}
	return nil
}

// checkName returns an error unless a name is one line of text.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("its name is empty")
	case !utf8.ValidString(name):
		return fmt.Errorf("its name %q is not UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("its name %q has a control character", name)
	}
	return nil
}

func (s *Schema) typeNames() string {
	names := make([]string, 0, 8)
	for i, t := range s.Nodes {
		if i == cap(names) {
			return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(s.Nodes)-i)
		}
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// NumNodes is the number of nodes of all types.
func (s *Schema) NumNodes() int {
	n := 0
	for _, t := range s.Nodes {
		n += t.Count
	}
	return n
}

// Range returns the ids [lo, hi) of the nodes of type t.
func (s *Schema) Range(t int) (lo, hi int) {
	for _, before := range s.Nodes[:t] {
		lo += before.Count
	}
	return lo, lo + s.Nodes[t].Count
}

// Starts returns the first id of each type and, at the end, the number of nodes: [types+1], a new
// slice.
func (s *Schema) Starts() []int {
	starts := make([]int, len(s.Nodes)+1)
	for t, n := range s.Nodes {
		starts[t+1] = starts[t] + n.Count
	}
	return starts
}

// TypeOf returns the type of the node with this id, or -1 if there is no such node. Cost: O(types); for
// many nodes, take [Schema.NodeTypes].
func (s *Schema) TypeOf(id int32) int {
	left := int(id)
	for t, n := range s.Nodes {
		if left >= 0 && left < n.Count {
			return t
		}
		left -= n.Count
	}
	return -1
}

// NodeTypes returns the type of each node: [NumNodes], a new slice.
func (s *Schema) NodeTypes() []uint16 {
	types := make([]uint16, 0, s.NumNodes())
	for t, n := range s.Nodes {
		types = append(types, slices.Repeat([]uint16{uint16(t)}, n.Count)...)
	}
	return types
}

// NodeType returns the number of the node type with this name, or -1.
func (s *Schema) NodeType(name string) int {
	return slices.IndexFunc(s.Nodes, func(t NodeType) bool { return t.Name == name })
}

// Index returns the number of a relation, or -1.
func (s *Schema) Index(r Relation) int { return slices.Index(s.Relations, r) }

// Relation returns the number of the relation with this text: "author:writes:paper", or its name alone
// if no other relation has that name.
func (s *Schema) Relation(text string) (int, error) {
	if r, err := ParseRelation(text); err == nil {
		if i := s.Index(r); i >= 0 {
			return i, nil
		}
	}
	found := -1
	for i, r := range s.Relations {
		if r.Name != text {
			continue
		}
		if found >= 0 {
			return -1, fmt.Errorf("graphops: the relations %s and %s are both named %q; give all three names", s.Relations[found], r, text)
		}
		found = i
	}
	if found < 0 {
		return -1, fmt.Errorf("graphops: the graph has no relation %q; its relations are %s", text, s.RelationNames())
	}
	return found, nil
}

// RelationNames lists the first relations for an error, or is "none".
func (s *Schema) RelationNames() string {
	if len(s.Relations) == 0 {
		return "none"
	}
	var names []string
	for i, r := range s.Relations {
		if i == 8 {
			return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(s.Relations)-i)
		}
		names = append(names, r.String())
	}
	return strings.Join(names, ", ")
}

// Ends returns the numbers of the types of relation r's sources and destinations. Cost: O(types).
func (s *Schema) Ends(r int) (src, dst int) {
	return s.NodeType(s.Relations[r].Src), s.NodeType(s.Relations[r].Dst)
}

// Equal reports whether two schemas have the same types and relations in the same order; nil equals nil
// alone.
func (s *Schema) Equal(o *Schema) bool {
	if s == nil || o == nil {
		return s == o
	}
	return slices.Equal(s.Nodes, o.Nodes) && slices.Equal(s.Relations, o.Relations)
}

// Clone returns a copy that shares no memory.
func (s *Schema) Clone() *Schema {
	return &Schema{slices.Clone(s.Nodes), slices.Clone(s.Relations)}
}

// String returns the number of types, nodes and relations, in one line.
func (s *Schema) String() string {
	return fmt.Sprintf("schema: %d nodes of %d types, %d relations", s.NumNodes(), len(s.Nodes), len(s.Relations))
}

// WithTypes returns the graph with the given types of the edges by CSC position, which number the
// relations of s. The result shares the graph's arrays, data and types. A nil s means that all nodes have
// one type and the relations no names; with both nil the result is the graph without types.
//
// It returns an error if s is not valid or has another number of nodes than the graph, if there are not
// as many types as edges, if the types of equal edges do not ascend, or if an edge's type is no relation
// of s or its ends are not those of the relation, or if edge features are by relation, of other types. Cost: one pass over the edges.
func (g *Graph) WithTypes(s *Schema, types []uint16) (*Graph, error) {
	if s != nil {
		if err := s.Validate(); err != nil {
			return nil, err
		}
	}
	h := &Graph{
		Indptr: g.Indptr, Indices: g.Indices, EdgeWeights: g.EdgeWeights, EdgeFeatures: g.EdgeFeatures, EdgeTimes: g.EdgeTimes,
		EdgeTypes: types, Schema: s, looped: g.looped, zeros: &zeroWeights{}, byTime: &timeOrders{},
	}
	if err := h.ValidateTypes(0, h.NumNodes()); err != nil {
		return nil, err
	}
	if x := g.EdgeFeatures; !x.of(types) || s != nil && x != nil && x.ByRelation != nil && len(x.ByRelation) != len(s.Relations) {
		return nil, fmt.Errorf("graphops: WithTypes: the edge features are by relation, of %d relations and other types; set EdgeFeatures of the new types", len(x.ByRelation))
	}
	return h, nil
}

// ValidateTypes returns an error, a [*ValidationError], at the first edge into the nodes [lo, hi) whose
// type is no relation of the graph's schema, contradicts its ends, or is smaller than that of the edge
// before it between the same nodes. The graph without its types must be valid. Without types it does
// nothing. Cost: one pass over the edges, on GOMAXPROCS threads.
func (g *Graph) ValidateTypes(lo, hi int) error {
	switch {
	case g.Schema == nil && g.EdgeTypes == nil:
		return nil
	case len(g.EdgeTypes) != len(g.Indices) || g.EdgeTypes == nil:
		return invalid("EdgeTypes", -1, "it has %d entries, but there are %d edges", len(g.EdgeTypes), len(g.Indices))
	case g.Schema != nil && g.Schema.NumNodes() != g.NumNodes():
		return invalid("EdgeTypes", -1, "the schema has %d nodes, but the graph %d", g.Schema.NumNodes(), g.NumNodes())
	}
	var ranges []relationRange
	if g.Schema != nil {
		ranges = g.Schema.ranges()
	}
	bad := make([]error, parallel.Chunks(hi-lo, rowGrain))
	parallel.For(0, hi-lo, rowGrain, func(a, b int) {
		for v := lo + a; v < lo+b && bad[a/rowGrain] == nil; v++ {
			bad[a/rowGrain] = g.validateTypesOf(int32(v), ranges)
		}
	})
	return firstError(bad)
}

// relationRange holds the ids of a relation's sources and destinations.
type relationRange struct{ srcLo, srcHi, dstLo, dstHi int32 }

func (s *Schema) ranges() []relationRange {
	starts, ends := s.Starts(), map[string][2]int32{}
	for t, n := range s.Nodes {
		ends[n.Name] = [2]int32{int32(starts[t]), int32(starts[t+1])}
	}
	ranges := make([]relationRange, len(s.Relations))
	for i, r := range s.Relations {
		ranges[i] = relationRange{ends[r.Src][0], ends[r.Src][1], ends[r.Dst][0], ends[r.Dst][1]}
	}
	return ranges
}

func (r relationRange) has(src, dst int32) bool {
	return src >= r.srcLo && src < r.srcHi && dst >= r.dstLo && dst < r.dstHi
}

func (g *Graph) validateTypesOf(v int32, ranges []relationRange) error {
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		u, t := g.Indices[e], int(g.EdgeTypes[e])
		switch {
		case t == LoopType:
			return invalid("EdgeTypes", e, "type %d is kept for the self-loops that layers add", t)
		case g.Schema != nil && t >= len(ranges):
			return invalid("EdgeTypes", e, "type %d, but the schema has %d relations", t, len(ranges))
		case g.Schema != nil && !ranges[t].has(u, v):
			return invalid("EdgeTypes", e, "edge %d → %d goes from %s to %s, but its relation is %s", u, v, g.Schema.nameOf(u), g.Schema.nameOf(v), g.Schema.Relations[t])
		case e > g.Indptr[v] && g.Indices[e-1] == u && int(g.EdgeTypes[e-1]) > t:
			return invalid("EdgeTypes", e, "the types of the edges %d → %d do not ascend: %d follows %d", u, v, t, g.EdgeTypes[e-1])
		}
	}
	return nil
}

// nameOf returns the name of a node's type.
func (s *Schema) nameOf(id int32) string {
	if t := s.TypeOf(id); t >= 0 {
		return s.Nodes[t].Name
	}
	return "no type"
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// RelationEdges returns the number of edges of each relation: [relations], a new slice. Without a schema
// there are as many relations as the largest type needs. Cost: one pass over the edges.
func (g *Graph) RelationEdges() []int64 {
	var n []int64
	if g.Schema != nil {
		n = make([]int64, len(g.Schema.Relations))
	} else if len(g.EdgeTypes) > 0 {
		n = make([]int64, int(slices.Max(g.EdgeTypes))+1)
	}
	for _, t := range g.EdgeTypes {
		n[t]++
	}
	return n
}

// HasEdgeTypes reports whether the edges of the block's graph have types.
func (b *Block) HasEdgeTypes() bool {
	return b.own.Types != nil || b.Graph != nil && b.Graph.EdgeTypes != nil
}

// EdgeTypes returns the type of each edge: EdgeTypes()[e-Indptr()[0]] is edge e's. It is nil if the edges
// of the block's graph have none. A self-loop that [Block.SelfLooped] added has the type [LoopType]. The
// first call makes the slice, unless the block is a slice of the graph or of a part, whose memory it then is; it
// is valid as long as the block and must not be written to.
func (b *Block) EdgeTypes() []uint16 {
	if !b.HasEdgeTypes() {
		return nil
	}
	rows := b.edges()
	all := rows.Types
	if rows.pos == nil && rows.own == nil {
		return all[rows.from : rows.from+int64(b.NumEdges())]
	}
	type key struct{}
	return b.MemoIn(key{}, func(old any) any {
		was, _ := old.([]uint16)
		types := some(room(was, b.NumEdges()), true)
		for e := range types {
			types[e] = LoopType
			if at, ok := rows.row(int64(e)); ok {
				types[e] = all[at]
			}
		}
		return types
	}).([]uint16)
}
