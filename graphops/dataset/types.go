package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
)

// NodeFeatures are the features of the nodes of one type, [count, any] with a row for each node in the
// order of ids: dense, or in compressed rows, or neither.
type NodeFeatures struct {
	Dense  *Matrix
	Sparse *Sparse
}

// Cols is the number of features of a node, 0 if there are none.
func (f NodeFeatures) Cols() int {
	switch {
	case f.Dense != nil:
		return f.Dense.Cols
	case f.Sparse != nil:
		return f.Sparse.Cols
	}
	return 0
}

func (f NodeFeatures) format() string {
	switch {
	case f.Sparse == nil:
		return ""
	case f.Sparse.Values == nil:
		return FormatCSROnes
	}
	return FormatCSR
}

// NodeType describes a type of nodes in [Metadata].
type NodeType struct {
	Name          string   `json:"name"`
	Count         int      `json:"count"`
	FeatureDim    int      `json:"feature_dim,omitempty"` // of features of its own
	FeatureFormat string   `json:"feature_format,omitempty"`
	NumClasses    int      `json:"num_classes,omitempty"` // at most that of the dataset; 0: no labels
	ClassNames    []string `json:"class_names,omitempty"`
	FeatureNames  []string `json:"feature_names,omitempty"` // of features of its own
}

// Schema returns the types of nodes and edges, or nil if the dataset has none.
func (d *Dataset) Schema() *graphops.Schema {
	switch {
	case d.Graph != nil:
		return d.Graph.Schema
	case d.Meta.Parts != nil: // the parts have the edges
		return d.Meta.Schema()
	}
	return nil
}

// FeaturesOf returns the features of the nodes of type t. If all nodes have features in one matrix, they
// are its rows: dense ones in the matrix's own memory.
func (d *Dataset) FeaturesOf(t int) NodeFeatures {
	if d.NodeFeatures != nil {
		return d.NodeFeatures[t]
	}
	lo, hi := d.Schema().Range(t)
	switch m, s := d.Features, d.SparseFeatures; {
	case m != nil && m.Half():
		return NodeFeatures{Dense: &Matrix{Rows: hi - lo, Cols: m.Cols, F16: m.F16[lo*m.Cols : hi*m.Cols]}}
	case m != nil:
		return NodeFeatures{Dense: &Matrix{Rows: hi - lo, Cols: m.Cols, F32: m.F32[lo*m.Cols : hi*m.Cols]}}
	case s != nil:
		ids := make([]int32, hi-lo)
		for i := range ids {
			ids[i] = int32(lo + i)
		}
		part := &Sparse{}
		s.Gather(ids, part, 0)
		return NodeFeatures{Sparse: part}
	}
	return NodeFeatures{}
}

// ClassesOf returns the number of classes of the nodes of type t, 0 if they have no labels. It is that of
// Meta.NodeTypes if that is set, and otherwise that of the dataset for a type with a known label.
func (d *Dataset) ClassesOf(t int) int {
	if len(d.Meta.NodeTypes) == len(d.Schema().Nodes) {
		return d.Meta.NodeTypes[t].NumClasses
	}
	lo, hi := d.Schema().Range(t)
	if d.Labels != nil && slices.ContainsFunc(d.Labels[lo:hi], func(y int32) bool { return y >= 0 }) {
		return d.Meta.NumClasses
	}
	return 0
}

// EdgesOf returns the edges of an edge split in its order, with their types, which are nil if the edges
// have none. For an unknown name the error lists the existing edge splits.
func (d *Dataset) EdgesOf(split string) (src, dst []int32, types []uint16, err error) {
	at, ok := d.EdgeSplits[split]
	if !ok {
		return nil, nil, nil, fmt.Errorf("dataset: %s: %w of edges %q; it has %v", d.Name(), ErrNoSplit, split, d.edgeSplitNames())
	}
	src, dst, types = d.Graph.EdgesAt(at)
	return src, dst, types, nil
}

func (d *Dataset) edgeSplitNames() []string {
	return sortedSplits(d.EdgeSplits)
}

// describeTypes sets the metadata about types and edge splits.
func (d *Dataset) describeTypes(m *Metadata) {
	m.EdgeSplits = d.edgeSplitNames()
	s := d.Schema()
	m.EdgeTypes = s == nil && d.Graph != nil && d.Graph.EdgeTypes != nil
	if s == nil {
		m.NodeTypes, m.Relations = nil, nil
		return
	}
	m.Relations = append([]graphops.Relation(nil), s.Relations...)
	types := make([]NodeType, len(s.Nodes))
	for t, n := range s.Nodes {
		types[t] = NodeType{Name: n.Name, Count: n.Count, NumClasses: d.ClassesOf(t)}
		if len(m.NodeTypes) == len(types) {
			types[t].ClassNames, types[t].FeatureNames = m.NodeTypes[t].ClassNames, m.NodeTypes[t].FeatureNames
			if m.Parts != nil { // what the types had before all nodes got rows of one width
				types[t].FeatureDim, types[t].FeatureFormat = m.NodeTypes[t].FeatureDim, m.NodeTypes[t].FeatureFormat
			}
		}
		if d.NodeFeatures != nil {
			types[t].FeatureDim, types[t].FeatureFormat = d.NodeFeatures[t].Cols(), d.NodeFeatures[t].format()
		}
		types[t].FeatureNames = namesOf(types[t].FeatureNames, types[t].FeatureDim)
	}
	m.NodeTypes = types
}

// checkTypesShape returns an error if types, features of types or edge splits contradict sizes.
func (d *Dataset) checkTypesShape() error {
	s := d.Schema()
	if err := checkSplitNames(d.edgeSplitNames()); err != nil {
		return err
	}
	if s == nil {
		switch {
		case d.Graph != nil && d.Graph.EdgeTypes != nil && d.Meta.Part == nil:
			return errors.New("the edges have types, but the graph has no schema, which names them: see Graph.WithTypes")
		case d.NodeFeatures != nil:
			return errors.New("there are features by node type, but the graph has no schema: see Graph.WithTypes")
		case d.Graph == nil && len(d.EdgeSplits) > 0:
			return errors.New("a dataset divided into parts cannot have splits of edges yet")
		}
		return nil
	}
	switch {
	case s.NumNodes() != d.Nodes():
		return fmt.Errorf("the schema has %d nodes and the graph %d", s.NumNodes(), d.Nodes())
	case d.Meta.Part != nil:
		return errors.New("a part has a schema, which belongs to the whole dataset")
	case d.Graph == nil:
	case int64(len(d.Graph.EdgeTypes)) != d.Edges():
		return fmt.Errorf("%d edge types for %d edges", len(d.Graph.EdgeTypes), d.Edges())
	case len(d.Meta.NodeTypes) > 0 && len(d.Meta.NodeTypes) != len(s.Nodes):
		return fmt.Errorf("Meta.NodeTypes has %d entries for %d node types", len(d.Meta.NodeTypes), len(s.Nodes))
	case d.NodeFeatures != nil && len(d.NodeFeatures) != len(s.Nodes):
		return fmt.Errorf("there are features of %d node types, but the schema has %d", len(d.NodeFeatures), len(s.Nodes))
	case d.NodeFeatures != nil && (d.Features != nil || d.SparseFeatures != nil):
		return errors.New("there are features by node type and of all nodes: set NodeFeatures, or Features and SparseFeatures, to nil")
	}
	if err := s.Validate(); err != nil {
		return err
	}
	for t, x := range d.NodeFeatures {
		if err := checkNodeFeatures(s.Nodes[t], x); err != nil {
			return err
		}
	}
	for t, n := range d.Meta.NodeTypes {
		switch {
		case n.Name != s.Nodes[t].Name:
			return fmt.Errorf("entry %d of Meta.NodeTypes is %q, but node type %d is %q", t, n.Name, t, s.Nodes[t].Name)
		case n.NumClasses < 0 || n.NumClasses > d.Classes():
			return fmt.Errorf("node type %q has %d classes, but the dataset %d; it needs as many as its type with the most", n.Name, n.NumClasses, d.Classes())
		case len(n.ClassNames) > 0 && len(n.ClassNames) != n.NumClasses:
			return fmt.Errorf("class_names of node type %q has %d names for %d classes", n.Name, len(n.ClassNames), n.NumClasses)
		}
	}
	return nil
}

func checkNodeFeatures(n graphops.NodeType, x NodeFeatures) error {
	m, s := x.Dense, x.Sparse
	switch {
	case m != nil && s != nil:
		return fmt.Errorf("node type %q has dense and sparse features: set one of them to nil", n.Name)
	case m != nil && (m.Rows != n.Count || m.Cols <= 0 || m.F32 != nil && m.F16 != nil || max(len(m.F32), len(m.F16)) != m.Rows*m.Cols):
		return fmt.Errorf("the features of node type %q are [%d, %d] with %d values, for %d nodes", n.Name, m.Rows, m.Cols, max(len(m.F32), len(m.F16)), n.Count)
	case s != nil && (s.Rows != n.Count || s.Cols <= 0):
		return fmt.Errorf("the sparse features of node type %q are [%d, %d], for %d nodes", n.Name, s.Rows, s.Cols, n.Count)
	case s != nil:
		var bad *SparseError
		if err := s.CheckShape(); errors.As(err, &bad) {
			return fmt.Errorf("the sparse features of node type %q: %s: %s", n.Name, bad.Array, bad.Why)
		}
	}
	return nil
}

// checkTypes checks what metadata.json says about types.
func (m *Metadata) checkTypes() error {
	if m.EdgeTypes && (m.Part == nil || len(m.NodeTypes) > 0) {
		return errors.New("edge_types is true, which is for parts of a divided dataset alone; node_types and relations name the types of a whole one")
	}
	if len(m.NodeTypes) == 0 {
		if len(m.Relations) > 0 {
			return errors.New("there are relations, but no node_types")
		}
		return checkSplitNames(m.EdgeSplits)
	}
	s := m.Schema()
	if err := s.Validate(); err != nil {
		return err
	}
	if err := m.checkEdgeFeatureDims(); err != nil {
		return err
	}
	if s.NumNodes() != m.NumNodes {
		return fmt.Errorf("the counts of node_types add up to %d, but num_nodes is %d", s.NumNodes(), m.NumNodes)
	}
	for _, t := range m.NodeTypes {
		switch {
		case len(t.FeatureNames) > 0 && len(t.FeatureNames) != t.FeatureDim:
			return fmt.Errorf("feature_names of node type %q has %d names for %d features", t.Name, len(t.FeatureNames), t.FeatureDim)
		case t.FeatureDim < 0 || t.FeatureDim > 1<<31-1:
			return fmt.Errorf("feature_dim of node type %q is %d", t.Name, t.FeatureDim)
		case t.FeatureDim > 0 && m.FeatureDim > 0 && m.Parts == nil:
			return fmt.Errorf("node type %q has feature_dim %d, although all nodes have features (%d)", t.Name, t.FeatureDim, m.FeatureDim)
		case t.FeatureFormat != "" && (t.FeatureDim == 0 || t.FeatureFormat != FormatCSR && t.FeatureFormat != FormatCSROnes):
			return fmt.Errorf("feature_format of node type %q is %q with %d features", t.Name, t.FeatureFormat, t.FeatureDim)
		}
	}
	return checkSplitNames(m.EdgeSplits)
}

// Schema returns the types of nodes and edges that the metadata names, a new one, or nil if there are none.
func (m *Metadata) Schema() *graphops.Schema {
	if len(m.NodeTypes) == 0 {
		return nil
	}
	s := &graphops.Schema{Relations: m.Relations}
	for _, t := range m.NodeTypes {
		s.Nodes = append(s.Nodes, graphops.NodeType{Name: t.Name, Count: t.Count})
	}
	return s
}

func (d *Dataset) loadTypes(src source) error {
	m := &d.Meta
	if len(m.NodeTypes) == 0 && !m.EdgeTypes || d.Graph == nil {
		return nil
	}
	key, value := "node_types", any(m.Schema())
	if m.EdgeTypes {
		key, value = "edge_types", true
	}
	a, label, err := openNPY(src, edgeTypesFile, key, value)
	if err != nil {
		return err
	}
	if err := a.expect(label, []npy.Type{npyUint16}, int(m.NumEdges)); err != nil {
		return err
	}
	if d.Graph.EdgeTypes = view[uint16](a.data); m.EdgeTypes {
		return nil
	}
	d.Graph.Schema = m.Schema()
	if m.byRelation() {
		if err := d.loadEdgesByRelation(src); err != nil {
			return err
		}
	}
	var all []NodeFeatures
	for i, t := range m.NodeTypes {
		if t.FeatureDim == 0 || m.Parts != nil {
			continue
		}
		if all == nil {
			all = make([]NodeFeatures, len(m.NodeTypes))
		}
		if t.FeatureFormat != "" {
			all[i].Sparse, err = loadSparse(src, t.Name, t.Count, t.FeatureDim, t.FeatureFormat)
		} else {
			all[i].Dense, err = loadMatrix(src, t.Name, t.Count, t.FeatureDim)
		}
		if err != nil {
			return err
		}
	}
	d.NodeFeatures = all
	return nil
}

func (d *Dataset) loadEdgeSplits(src source) error {
	for _, name := range d.Meta.EdgeSplits {
		a, label, err := openNPY(src, edgeSplitFile(name), "edge_splits", name)
		if err != nil {
			return err
		}
		if len(a.shape) != 1 {
			return readError(label, "its shape is %s; a split of edges is a list of positions", npy.ShapeString(a.shape))
		}
		if err := a.expect(label, []npy.Type{npyInt64}, a.shape[0]); err != nil {
			return err
		}
		if d.EdgeSplits == nil {
			d.EdgeSplits = map[string][]int64{}
		}
		d.EdgeSplits[name] = view[int64](a.data)
	}
	return nil
}

func (d *Dataset) checkNodeFeatures(r *reading) error {
	for t, x := range d.NodeFeatures {
		name := d.Schema().Nodes[t].Name
		if err := d.checkMatrix(r, x.Dense, ofType(featuresFile, name)); err != nil {
			return err
		}
		if err := d.checkSparseMatrix(r, x.Sparse, name); err != nil {
			return err
		}
	}
	return nil
}

// checkEdgeSplits finds positions out of range or out of order, and edges in two splits.
func (d *Dataset) checkEdgeSplits(r *reading) error {
	where := map[int64]string{}
	for _, name := range d.edgeSplitNames() {
		at := d.EdgeSplits[name]
		if err := r.next(8 * int64(len(at))); err != nil {
			return err
		}
		for i, e := range at {
			switch {
			case e < 0 || e >= d.Edges():
				return d.wrong(edgeSplitFile(name), "entry %d is %d; the graph has the edges 0 to %d", i, e, d.Edges()-1)
			case i > 0 && e <= at[i-1]:
				return d.wrong(edgeSplitFile(name), "entry %d is %d after %d; positions of edges must ascend", i, e, at[i-1])
			}
			if base, set := splitSet(name); set == 0 && slices.Contains([]string{"train", "val", "test"}, base) && !d.Meta.OverlappingSplits {
				if other := where[e]; other != "" {
					return d.wrong(edgeSplitFile(name), "entry %d is edge %d, which is also in the split %s of edges", i, e, other)
				}
				where[e] = name
			}
		}
	}
	return nil
}

// typesDigest identifies the schema; it is "" without types.
func (d *Dataset) typesDigest() string {
	s := d.Schema()
	if s == nil {
		return ""
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Sprint(s)
	}
	return string(text)
}

// typeArrays returns the arrays of features by node type.
func (d *Dataset) typeArrays() (parts []array) {
	for t, x := range d.NodeFeatures {
		name := d.Schema().Nodes[t].Name
		parts = append(append(parts, sparseArrays(x.Sparse, name)...), matrixArrays(x.Dense, name)...)
	}
	return parts
}

// matrixOf returns the dense features that a section stores, or nil.
func (d *Dataset) matrixOf(section string) *Matrix {
	if section == featuresFile {
		return d.Features
	}
	for t, x := range d.NodeFeatures {
		if x.Dense != nil && section == ofType(featuresFile, d.Schema().Nodes[t].Name) {
			return x.Dense
		}
	}
	return nil
}

// subsetTypes sets the features by type and the edge splits of s, a subset of d.
func (d *Dataset) subsetTypes(s *Dataset, ids []int32, number []int32) {
	for t, x := range d.NodeFeatures {
		lo, hi := d.Schema().Range(t)
		first, _ := slices.BinarySearch(ids, int32(lo))
		last, _ := slices.BinarySearch(ids, int32(hi))
		rows := slices.Clone(ids[first:last])
		for i := range rows {
			rows[i] -= int32(lo)
		}
		var y NodeFeatures
		if x.Dense != nil {
			y.Dense = x.Dense.selected(rows)
		}
		if x.Sparse != nil {
			y.Sparse = &Sparse{}
			x.Sparse.Gather(rows, y.Sparse, 0)
		}
		s.NodeFeatures = append(s.NodeFeatures, y)
	}
	for name := range d.EdgeSplits {
		if s.EdgeSplits == nil {
			s.EdgeSplits = map[string][]int64{}
		}
		kept, at, in := []int64{}, int64(0), d.EdgeSplits[name]
		for _, v := range ids {
			for e := d.Graph.Indptr[v]; e < d.Graph.Indptr[v+1]; e++ {
				if number[d.Graph.Indices[e]] == 0 {
					continue
				}
				if _, ok := slices.BinarySearch(in, e); ok {
					kept = append(kept, at)
				}
				at++
			}
		}
		s.EdgeSplits[name] = kept
	}
}

// selected returns the rows ids, in new memory.
func (m *Matrix) selected(ids []int32) *Matrix {
	r := &Matrix{Rows: len(ids), Cols: m.Cols}
	if m.Half() {
		r.F16 = make([]uint16, 0, len(ids)*m.Cols)
		for _, v := range ids {
			r.F16 = append(r.F16, m.F16[int(v)*m.Cols:][:m.Cols]...)
		}
		return r
	}
	r.F32 = make([]float32, len(ids)*m.Cols)
	m.Gather(r.F32, ids, 0)
	return r
}
