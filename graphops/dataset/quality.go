package dataset

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/graphnb/graphnb/internal/parallel"
)

// Spread is the smallest, the middle and the largest of some numbers.
type Spread struct {
	Min    int64   `json:"min"`
	Median float64 `json:"median"`
	Max    int64   `json:"max"`
}

func spreadOf(x []int64) (s Spread) {
	if len(x) == 0 {
		return s
	}
	slices.Sort(x)
	n := len(x)
	return Spread{x[0], float64(x[(n-1)/2]+x[n/2]) / 2, x[n-1]}
}

// GraphSizes says how large the graphs of a dataset of many are.
type GraphSizes struct {
	Graphs int    `json:"graphs"`
	Nodes  Spread `json:"nodes"`
	Edges  Spread `json:"edges"` // directed
	// WithoutNodes and WithoutEdges count graphs; one without nodes has no edges either.
	WithoutNodes int `json:"without_nodes"`
	WithoutEdges int `json:"without_edges"`
}

// String describes the sizes in one line.
func (s GraphSizes) String() string {
	return fmt.Sprintf("graphs: %d, with %d to %d nodes each (median %v) and %d to %d edges (median %v); without nodes: %d; without edges: %d",
		s.Graphs, s.Nodes.Min, s.Nodes.Max, s.Nodes.Median, s.Edges.Min, s.Edges.Max, s.Edges.Median, s.WithoutNodes, s.WithoutEdges)
}

// GraphSizes returns the sizes of the graphs of a dataset of many. It is zero for a dataset that is one graph.
func (d *Dataset) GraphSizes() GraphSizes {
	s := GraphSizes{Graphs: d.NumGraphs()}
	if d.Graph == nil || s.Graphs == 0 {
		return GraphSizes{}
	}
	nodes, edges := make([]int64, s.Graphs), make([]int64, s.Graphs)
	for g := range int32(s.Graphs) {
		lo, hi := d.GraphSpan(g)
		nodes[g], edges[g] = int64(hi-lo), d.Graph.Indptr[hi]-d.Graph.Indptr[lo]
		if nodes[g] == 0 {
			s.WithoutNodes++
		}
		if edges[g] == 0 {
			s.WithoutEdges++
		}
	}
	s.Nodes, s.Edges = spreadOf(nodes), spreadOf(edges)
	return s
}

// TargetRange describes one target of some rows: its known values, and how many are unknown.
type TargetRange struct {
	Name      string  `json:"name"`
	Known     int64   `json:"known"`
	Unknown   int64   `json:"unknown"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
}

// String describes the target in a part of a line.
func (r TargetRange) String() string {
	if r.Known == 0 {
		return fmt.Sprintf("%s: no known value", r.Name)
	}
	text := fmt.Sprintf("%s: %.4g to %.4g, mean %.4g, deviation %.4g", r.Name, r.Min, r.Max, r.Mean, r.Deviation)
	if r.Known > 1 && r.Min == r.Max {
		text += " (all equal, so there is nothing to learn)"
	}
	if r.Unknown > 0 {
		text += fmt.Sprintf("; %d of %d unknown", r.Unknown, r.Known+r.Unknown)
	}
	return text
}

// TargetRanges describes the targets of the rows ids, one after another; nil means all rows.
func (d *Dataset) TargetRanges(ids []int32) []TargetRange {
	if d.Targets == nil {
		return nil
	}
	n := d.Targets.Rows
	if ids != nil {
		n = len(ids)
	}
	all := make([]TargetRange, d.Targets.Cols)
	for k := range all {
		r := &all[k]
		if r.Name = fmt.Sprintf("target %d", k); k < len(d.Meta.TargetNames) {
			r.Name = d.Meta.TargetNames[k]
		}
		m2 := 0.0
		for i := range n {
			v := i
			if ids != nil {
				v = int(ids[i])
			}
			y := float64(d.Targets.F32[v*d.Targets.Cols+k])
			if math.IsNaN(y) {
				r.Unknown++
				continue
			}
			if r.Known++; r.Known == 1 {
				r.Min, r.Max = y, y
			}
			r.Min, r.Max = min(r.Min, y), max(r.Max, y)
			delta := y - r.Mean
			r.Mean += delta / float64(r.Known)
			m2 += delta * (y - r.Mean)
		}
		if r.Known > 0 {
			r.Deviation = math.Sqrt(m2 / float64(r.Known))
		}
	}
	return all
}

// Leak counts rows of a split that equal a row of another split.
type Leak struct {
	Split string `json:"split"`
	Of    string `json:"of"`
	Rows  int64  `json:"rows"`
	// OtherLabel counts those of which every equal row there has another label.
	OtherLabel int64 `json:"other_label"`
}

// Duplicates says which nodes have equal features, or which graphs of a dataset of many are equal.
type Duplicates struct {
	// What is "nodes" or "graphs".
	What string `json:"what"`
	// Searched is the number of rows that were compared: all but Empty ones, which have features that are all 0, or no nodes.
	Searched int64 `json:"searched"`
	Empty    int64 `json:"empty"`
	// Copies counts rows that equal an earlier one.
	Copies int64 `json:"copies"`
	// Leaks are those across the splits of the first set, without pairs of splits that have none.
	Leaks []Leak `json:"leaks,omitempty"`
}

// Duplicates finds nodes whose features are equal, or graphs of a dataset of many that are equal: of the same nodes in the same
// order, with equal features, edges and features of edges. Equal graphs whose nodes have another order are not found.
//
// A row of test that equals one of train measures what the model remembers, not what it has learnt. Nodes with equal features can
// still differ by their neighbours.
//
// It returns nil for nodes without features, or whose features are not in memory or in a mapped file. Cost: one pass over the
// features (and edges of graphs), and 12 bytes for each row.
func (d *Dataset) Duplicates(ctx context.Context) (*Duplicates, error) {
	of, n, what := d, d.rows(), "nodes"
	row := d.featureBytes
	if d.Graphs != nil {
		of, n, what = d.Graphs, d.NumGraphs(), "graphs"
		row = d.graphBytes
	} else if d.FeatureDim() == 0 || d.Features != nil && d.Features.F32 == nil && d.Features.F16 == nil || d.Features == nil && d.SparseFeatures == nil && d.NodeFeatures == nil {
		return nil, nil
	}
	hashes := make([]uint64, n)
	parallel.For(0, n, 1<<8, func(lo, hi int) {
		var buffer []byte
		for i := lo; i < hi && ctx.Err() == nil; i++ {
			buffer = row(buffer[:0], int32(i))
			hashes[i] = hashOf(buffer)
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &Duplicates{What: what}
	order := make([]int32, 0, n)
	for i := range int32(n) {
		if hashes[i] == 0 {
			r.Empty++
		} else {
			order = append(order, i)
		}
	}
	r.Searched = int64(len(order))
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(hashes[a], hashes[b]), cmp.Compare(a, b)) })
	in, names := of.splitOfRows(n)
	leaks := map[[2]uint8]*Leak{}
	var a, b []byte
	for lo := 0; lo < len(order); {
		hi := lo + 1
		for hi < len(order) && hashes[order[hi]] == hashes[order[lo]] {
			hi++
		}
		group := order[lo:hi]
		lo = hi
		for len(group) > 1 { // rows of one hash are equal, but for a collision, which leaves a rest
			a = row(a[:0], group[0])
			var equal, rest []int32
			for _, v := range group {
				if b = row(b[:0], v); bytes.Equal(a, b) {
					equal = append(equal, v)
				} else {
					rest = append(rest, v)
				}
			}
			r.Copies += int64(len(equal) - 1)
			of.addLeaks(leaks, equal, in, names)
			group = rest
		}
	}
	for _, l := range leaks {
		r.Leaks = append(r.Leaks, *l)
	}
	slices.SortFunc(r.Leaks, func(a, b Leak) int {
		return cmp.Or(slices.Index(names, a.Split)-slices.Index(names, b.Split), slices.Index(names, a.Of)-slices.Index(names, b.Of))
	})
	return r, nil
}

// splitOfRows returns the number of the split of each row among names, from 1; 0 is none.
func (d *Dataset) splitOfRows(n int) (in []uint8, names []string) {
	in, names = make([]uint8, n), []string{"", "train", "val", "test"}
	for k, name := range names[1:] {
		for _, v := range d.Splits[name] {
			if int(v) < n && v >= 0 {
				in[v] = uint8(k + 1)
			}
		}
	}
	return in, names
}

// addLeaks counts equal rows of different splits.
func (d *Dataset) addLeaks(leaks map[[2]uint8]*Leak, equal []int32, in []uint8, names []string) {
	var labels [4]map[int32]bool
	for _, v := range equal {
		k := in[v]
		if labels[k] == nil {
			labels[k] = map[int32]bool{}
		}
		if len(d.Labels) > int(v) {
			labels[k][d.Labels[v]] = true
		}
	}
	for _, v := range equal {
		for k := uint8(1); k < in[v]; k++ { // val of train, test of train and of val
			if labels[k] == nil {
				continue
			}
			l := leaks[[2]uint8{in[v], k}]
			if l == nil {
				l = &Leak{Split: names[in[v]], Of: names[k]}
				leaks[[2]uint8{in[v], k}] = l
			}
			l.Rows++
			if len(d.Labels) > int(v) && d.Labels[v] >= 0 && !labels[k][d.Labels[v]] {
				l.OtherLabel++
			}
		}
	}
}

// hashOf returns a hash that is 0 only for bytes that are all 0.
func hashOf(b []byte) uint64 {
	h, any := uint64(len(b))*0x9e3779b97f4a7c15, false
	mix := func(x uint64) {
		any = any || x != 0
		hi, lo := bits.Mul64(h^x, 0xa0761d6478bd642f)
		h = hi ^ lo ^ 0xe7037ed1a0b428db
	}
	for len(b) >= 8 {
		mix(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	if len(b) > 0 {
		var last [8]byte
		copy(last[:], b)
		mix(binary.LittleEndian.Uint64(last[:]))
	}
	if !any {
		return 0
	}
	return max(h, 1)
}

func appendBytes[T int32 | uint16 | float32 | int64](to []byte, x []T) []byte {
	if len(x) == 0 {
		return to
	}
	return append(to, unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))...)
}

// featureBytes appends what node v has as features; nothing but zeros if all are 0.
func (d *Dataset) featureBytes(to []byte, v int32) []byte {
	switch x, s := d.Features, d.SparseFeatures; {
	case s != nil:
		lo, hi := s.Indptr[v], s.Indptr[v+1]
		for k := lo; k < hi; k++ { // from 1, because column 0 is something
			to = binary.LittleEndian.AppendUint32(to, uint32(s.Indices[k])+1)
		}
		if s.Values != nil {
			to = appendBytes(to, s.Values[lo:hi])
		}
	case x == nil:
	case x.F32 != nil:
		to = appendBytes(to, x.F32[int(v)*x.Cols:int(v+1)*x.Cols])
	case x.F16 != nil:
		to = appendBytes(to, x.F16[int(v)*x.Cols:int(v+1)*x.Cols])
	}
	return to
}

// graphBytes appends everything of graph g but its answers; nothing for a graph without nodes.
func (d *Dataset) graphBytes(to []byte, g int32) []byte {
	lo, hi := d.GraphSpan(g)
	if lo == hi {
		return to
	}
	to = binary.LittleEndian.AppendUint32(to, uint32(hi-lo))
	first, last := d.Graph.Indptr[lo], d.Graph.Indptr[hi]
	for v := lo; v < hi; v++ {
		to = binary.LittleEndian.AppendUint32(to, uint32(d.Graph.Indptr[v+1]-d.Graph.Indptr[v]))
		to = d.featureBytes(to, v)
	}
	for _, u := range d.Graph.Indices[first:last] {
		to = binary.LittleEndian.AppendUint32(to, uint32(u-lo))
	}
	if w := d.Graph.EdgeWeights; w != nil {
		to = appendBytes(to, w[first:last])
	}
	if x := d.Graph.EdgeFeatures; x != nil && x.ByRelation == nil {
		c := int64(x.Cols)
		if x.F32 != nil {
			to = appendBytes(to, x.F32[first*c:last*c])
		} else if x.F16 != nil {
			to = appendBytes(to, x.F16[first*c:last*c])
		}
	}
	if t := d.Graph.EdgeTimes; t != nil {
		to = appendBytes(to, t[first:last])
	}
	if d.Graphs.FeatureDim() > 0 {
		to = d.Graphs.featureBytes(to, g)
	}
	return to
}
