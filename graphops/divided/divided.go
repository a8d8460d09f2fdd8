// Package divided stores a dataset in parts, one directory per part, so that a machine needs only
// the parts that it holds.
//
// # Basics
//
// [Write] writes the directory. It is itself a dataset directory, which [dataset.Open] opens, with
// the splits and, unless left out, the graph, but without features and labels. [Of] returns its
// [Book], which knows the part of each node, opens parts, and gathers rows of features and labels
// from the parts that are on this machine.
//
// Node ids are global everywhere: in splits, samples and messages. Only the arrays within a part's
// directory are in local ids.
//
// # Format
//
//	metadata.json      of the whole dataset, with "parts": see [dataset.Parts]
//	parts.npy          int32 [nodes] the part of each node
//	rows.npy           int32 [nodes] the row of each node among the own nodes of its part
//	in_degrees.npy     int32 [nodes] of the whole graph
//	out_degrees.npy    int32 [nodes]
//	names.TYPE.txt     original ids of the nodes, if the dataset has them ([dataset.NamesFile])
//	events.npy         int64 [events] positions of events' edges in the whole graph, if edges are events
//	split_NAME.npy, indptr.npy, indices.npy   as in every dataset, and what the edges have:
//	weights.npy, edge_features.npy, edge_times.npy, edge_types.npy
//	part-0000/         and so on, one per part
//
// Without topology, indptr.npy, indices.npy and what the edges have are absent. A part's directory has
//
//	metadata.json      with "part": see [dataset.PartOf]
//	nodes.npy          int32 [own+halo] global ids: own nodes ascending, then halo nodes ascending
//	indptr.npy         int64 [own+halo+1] in-edges of local nodes; halo nodes have none
//	indices.npy        int32 [edges] local ids of their sources, in the order of the global ids
//	first_edge.npy     int64 [own] position of an own node's first in-edge in the whole graph
//	weights.npy, edge_features.npy, edge_times.npy, edge_types.npy   of the edges, as in every dataset
//	features.npy or features_*.npy, labels.npy   rows of the own nodes only
//
// The halo of a part are the nodes of other parts with an edge into it. Sources are in the order of
// global ids, so that sums over a node's in-edges have the bits of the whole graph's.
//
// If types of nodes have features of widths of their own, parts have them in one width ([OneWidth]), and
// metadata.json says what each type has. A part's types of edges are numbers of the whole dataset's relations.
//
// metadata.json has sums of all files, those of a part the part's, and the digests of the undivided
// dataset and of each part ([dataset.Dataset.Digests]). Both name the division, which the digest of the undivided
// dataset and the part of each node identify. Opening a part compares these names and sizes; [Book.Check] and
// [Verify] read everything.
//
// # Caveats
//
// A part's [Part.Graph] is not a graph of its own: its edges are the in-edges of own nodes alone,
// and they do not ascend by local id. A Book is safe for concurrent use.
package divided

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/mapped"
)

// Names of the further arrays.
const (
	arrayParts      = "parts"
	arrayRows       = "rows"
	arrayInDegrees  = "in_degrees"
	arrayOutDegrees = "out_degrees"
	arrayNodes      = "nodes"
	arrayFirstEdge  = "first_edge"
)

// ErrAbsent is the error of [Book.Part] for a part that is not on this machine.
var ErrAbsent = errors.New("this part is not on this machine")

// Book knows which part has which node, and opens the parts that are on this machine.
type Book struct {
	ds       *dataset.Dataset
	of, rows []int32
	own      []int // nodes per part
	parts    []slot
	far      *far
}

// slot is a part, opened at its first use.
type slot struct {
	once sync.Once
	here bool
	part *Part
	err  error
}

// Part is one part of a divided dataset. Its slices are in mapped files, and must not be written to.
type Part struct {
	Index int
	Own   []int32 // global ids of the part's own nodes, ascending
	Halo  []int32 // global ids of nodes of other parts with an edge into the part, ascending
	// Graph has the in-edges of the own nodes by local id: row i of Own is i, row j of Halo is
	// len(Own)+j. The sources of a node are in the order of their global ids.
	Graph *graphops.Graph
	// FirstEdge are the positions, in the whole graph, of each own node's first in-edge.
	FirstEdge []int64
	// Features, Sparse, Labels and Multi are rows of the own nodes; those that the dataset does not
	// have are nil.
	Features *dataset.Matrix
	Sparse   *dataset.Sparse
	Labels   []int32
	Multi    *dataset.Multi

	book *Book
	ds   *dataset.Dataset
}

// RankOf is the rank that has a part, of a run of world ranks on a dataset of so many parts.
func RankOf(part, parts, world int) int { return part * world / parts }

// Is reports whether a dataset is divided.
func Is(ds *dataset.Dataset) bool { return ds != nil && ds.Meta.Parts != nil }

// Open opens a divided dataset and returns its book. Closing the book closes the dataset.
func Open(dir string) (*Book, error) {
	ds, err := dataset.Open(dir)
	if err != nil {
		return nil, err
	}
	b, err := Of(ds)
	if err != nil {
		_ = ds.Close()
		return nil, err
	}
	return b, nil
}

// Of returns the book of an opened dataset, which must be divided. Cost: one pass over parts.npy
// and rows.npy.
func Of(ds *dataset.Dataset) (*Book, error) {
	if !Is(ds) {
		return nil, fmt.Errorf("divided: %s is not divided into parts; divide it with gnb partition", ds.Name())
	}
	n, count := ds.Nodes(), ds.Meta.Parts.Count
	b := &Book{ds: ds, own: make([]int, count), parts: make([]slot, count), far: &far{}}
	for _, a := range []struct {
		name string
		to   *[]int32
	}{{arrayParts, &b.of}, {arrayRows, &b.rows}, {arrayInDegrees, nil}, {arrayOutDegrees, nil}} {
		x := ds.Arrays[a.name].I32
		if len(x) != n || x == nil {
			return nil, b.wrong(a.name, "it has %d entries of int32 for %d nodes", len(x), n)
		}
		if a.to != nil {
			*a.to = x
		}
	}
	err := mapped.Guard(func() error {
		for v, p := range b.of {
			if p < 0 || int(p) >= count {
				return b.wrong(arrayParts, "entry %d is %d; the parts are 0 to %d", v, p, count-1)
			}
			if b.rows[v] != int32(b.own[p]) {
				return b.wrong(arrayRows, "entry %d is %d; node %d is number %d of part %d", v, b.rows[v], v, b.own[p], p)
			}
			b.own[p]++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range b.parts {
		if IsFar(ds) {
			break
		}
		_, err := os.Stat(dataset.PartDir(ds.Dir(), i))
		b.parts[i].here = !errors.Is(err, fs.ErrNotExist)
	}
	return b, nil
}

// wrong returns an error about an array of the book.
func (b *Book) wrong(name, format string, args ...any) error {
	return fmt.Errorf("divided: %s/%s.npy: "+format+"; divide the dataset again", append([]any{b.ds.Dir(), name}, args...)...)
}

// Dataset returns the divided dataset.
func (b *Book) Dataset() *dataset.Dataset { return b.ds }

// Parts returns the number of parts.
func (b *Book) Parts() int { return len(b.parts) }

// PartOf returns the part of a node.
func (b *Book) PartOf(v int32) int { return int(b.of[v]) }

// Row returns the row of a node among the own nodes of its part.
func (b *Book) Row(v int32) int { return int(b.rows[v]) }

// Of returns the part of each node. It must not be written to.
func (b *Book) Of() []int32 { return b.of }

// Own returns the number of own nodes of a part, which need not be on this machine.
func (b *Book) Own(part int) int { return b.own[part] }

// Half reports whether dense features are stored in float16.
func (b *Book) Half() bool { return b.ds.Meta.Parts.FeatureType == "f16" }

// OwnOf returns the own nodes of each part, ascending, also of parts that are not on this machine.
// Cost: one pass over the nodes, and 4 bytes for each.
func (b *Book) OwnOf() [][]int32 {
	own := make([][]int32, len(b.own))
	for i, n := range b.own {
		own[i] = make([]int32, 0, n)
	}
	for v, p := range b.of {
		own[p] = append(own[p], int32(v))
	}
	return own
}

// Has reports whether a part is on this machine.
func (b *Book) Has(part int) bool { return b.parts[part].here }

// HasAll reports whether every part is on this machine.
func (b *Book) HasAll() bool {
	return !slices.ContainsFunc(b.Here(), func(here bool) bool { return !here })
}

// Here returns, for each part, whether it is on this machine.
func (b *Book) Here() []bool {
	here := make([]bool, len(b.parts))
	for i := range here {
		here[i] = b.Has(i)
	}
	return here
}

// InDegrees and OutDegrees return the degrees of each node in the whole graph. They must not be
// written to.
func (b *Book) InDegrees() []int32 { return b.ds.Arrays[arrayInDegrees].I32 }

// OutDegrees returns the number of out-edges of each node in the whole graph.
func (b *Book) OutDegrees() []int32 { return b.ds.Arrays[arrayOutDegrees].I32 }

// Part returns a part, which is opened once and kept. The error names what is missing or damaged;
// that of a part that is not on this machine matches [ErrAbsent]. If the parts are at servers, it is
// made from the edges that these send, without features and labels.
func (b *Book) Part(i int) (*Part, error) {
	if i < 0 || i >= len(b.parts) {
		return nil, fmt.Errorf("divided: there is no part %d; %s has the parts 0 to %d", i, b.ds.Name(), len(b.parts)-1)
	}
	s := &b.parts[i]
	s.once.Do(func() {
		dir := dataset.PartDir(b.ds.Dir(), i)
		if IsFar(b.ds) {
			dir = b.ds.Meta.Parts.Servers
			var ds *dataset.Dataset
			if ds, s.err = b.farPart(i); s.err == nil {
				s.part, s.err = b.newPart(i, ds)
			}
			if s.err != nil {
				s.err = fmt.Errorf("divided: getting the edges of part %d of %s from %s: %w", i, b.ds.Name(), dir, s.err)
			}
			return
		}
		if !s.here {
			s.err = fmt.Errorf("divided: part %d of %s: %w: %s does not exist; copy it here, or start ranks on a machine that has it", i, b.ds.Name(), ErrAbsent, dir)
			return
		}
		var ds *dataset.Dataset
		if ds, s.err = dataset.OpenPart(dir); s.err != nil {
			return
		}
		if s.err = b.belongs(i, ds); s.err == nil {
			s.part, s.err = b.newPart(i, ds)
		}
		if s.err != nil {
			_ = ds.Close()
			s.err = fmt.Errorf("divided: %s is not part %d of %s: %w", dir, i, b.ds.Dir(), s.err)
		}
	})
	return s.part, s.err
}

// newPart checks an opened part against the book. It reads the ids of its nodes, and of edges the weights alone.
func (b *Book) newPart(i int, ds *dataset.Dataset) (*Part, error) {
	m, whole := &ds.Meta, &b.ds.Meta
	nodes, first := ds.Arrays[arrayNodes].I32, ds.Arrays[arrayFirstEdge].I64
	switch {
	case m.Part.Own != b.own[i]:
		return nil, fmt.Errorf("it has %d nodes of its own, and parts.npy gives it %d", m.Part.Own, b.own[i])
	case len(nodes) != m.NumNodes:
		return nil, fmt.Errorf("nodes.npy has %d entries of int32 for %d nodes", len(nodes), m.NumNodes)
	case len(first) != m.Part.Own:
		return nil, fmt.Errorf("first_edge.npy has %d entries of int64 for %d nodes", len(first), m.Part.Own)
	case m.FeatureDim != whole.FeatureDim || m.NumClasses != whole.NumClasses || m.MultiLabel != whole.MultiLabel ||
		m.FeatureFormat != whole.FeatureFormat:
		return nil, fmt.Errorf("its features or labels are of another kind: %d features and %d classes, and the whole dataset has %d and %d", m.FeatureDim, m.NumClasses, whole.FeatureDim, whole.NumClasses)
	case ds.Graph.EdgeShape() != b.ds.EdgeShape():
		return nil, fmt.Errorf("its edges have %v, and those of the whole dataset %v", ds.Graph.EdgeShape(), b.ds.EdgeShape())
	}
	if x := ds.Features; x != nil && x.Half() != b.Half() {
		return nil, fmt.Errorf("its features are not of the type %s that the whole dataset has", whole.Parts.FeatureType)
	}
	var zeros int64
	if err := mapped.Guard(func() error { _, zeros = ds.Graph.WithoutZeroWeights(); return nil }); err != nil {
		return nil, err
	}
	if zeros > 0 {
		return nil, fmt.Errorf("%d of its edges have weight 0, which a division leaves out; divide the dataset again (gnb partition)", zeros)
	}
	p := &Part{
		Index: i, Own: nodes[:m.Part.Own], Halo: nodes[m.Part.Own:], Graph: ds.Graph, FirstEdge: first,
		Features: ds.Features, Sparse: ds.SparseFeatures, Labels: ds.Labels, Multi: ds.MultiLabels, book: b, ds: ds,
	}
	return p, mapped.Guard(p.checkNodes)
}

// belongs compares the identity of a part with the one that the book names: the error is [dataset.ErrOtherPart].
func (b *Book) belongs(i int, ds *dataset.Dataset) error {
	p, whole := ds.Meta.Part, b.ds.Meta.Parts
	other := func(format string, args ...any) error {
		return fmt.Errorf("%w: its metadata.json says that it "+format+"; copy the part that was written with this directory", append([]any{dataset.ErrOtherPart}, args...)...)
	}
	got, want := ds.RecordedDigest(), whole.Sums[i]
	switch {
	case p.Index != i:
		return other("is part %d", p.Index)
	case whole.Division != "" && p.Division != whole.Division:
		return other("is of the division %.16s, not %.16s", cmp.Or(p.Division, "unknown"), whole.Division)
	case got != "" && want != "" && got != want:
		return other("has the digest %.16s, not %.16s", got, want)
	}
	return nil
}

// checkNodes compares the ids of the part's nodes with the book.
func (p *Part) checkNodes() error {
	b, n := p.book, p.book.ds.Nodes()
	for k, v := range p.Own {
		if v < 0 || int(v) >= n || b.PartOf(v) != p.Index || b.Row(v) != k {
			return fmt.Errorf("entry %d of nodes.npy is %d, which parts.npy does not make row %d of part %d", k, v, k, p.Index)
		}
		lo, hi := p.Graph.Indptr[k], p.Graph.Indptr[k+1]
		if hi < lo || lo < 0 || hi > p.Graph.NumEdges() {
			return fmt.Errorf("entry %d of indptr.npy falls from %d to %d", k+1, lo, hi)
		}
		if g := b.ds.Graph; g != nil && (p.FirstEdge[k] != g.Indptr[v] || hi-lo != int64(g.InDegree(v))) {
			return fmt.Errorf("node %d has %d in-edges from position %d, and %d from %d in the whole graph", v, hi-lo, p.FirstEdge[k], g.InDegree(v), g.Indptr[v])
		}
		if hi-lo != int64(b.InDegrees()[v]) {
			return fmt.Errorf("node %d has %d in-edges, and %d by in_degrees.npy", v, hi-lo, b.InDegrees()[v])
		}
	}
	for k, v := range p.Halo {
		if v < 0 || int(v) >= n || b.PartOf(v) == p.Index || k > 0 && v <= p.Halo[k-1] {
			return fmt.Errorf("entry %d of nodes.npy is %d; it must be a node of another part, and ascend", len(p.Own)+k, v)
		}
	}
	for k := len(p.Own); k < p.Graph.NumNodes(); k++ {
		if p.Graph.Indptr[k] != p.Graph.NumEdges() {
			return fmt.Errorf("halo node %d has in-edges", p.Halo[k-len(p.Own)])
		}
	}
	return nil
}

// Local returns the row of a node in the part: own nodes first, then halo nodes. ok is false if it
// is neither. Cost: constant for own nodes, a binary search for others.
func (p *Part) Local(v int32) (row int, ok bool) {
	if v < 0 || int(v) >= len(p.book.of) {
		return 0, false
	}
	if p.book.PartOf(v) == p.Index {
		return p.book.Row(v), true
	}
	k, ok := slices.BinarySearch(p.Halo, v)
	return len(p.Own) + k, ok
}

// Nodes returns the global ids of all rows: own nodes, then halo nodes.
func (p *Part) Nodes() []int32 { return p.ds.Arrays[arrayNodes].I32 }

// Global returns the global id of a row: of an own node or of a halo node.
func (p *Part) Global(row int) int32 {
	if row < len(p.Own) {
		return p.Own[row]
	}
	return p.Halo[row-len(p.Own)]
}

// Close closes the parts and the dataset, and ends requests to servers. No slice of them may be used
// afterwards.
func (b *Book) Close() error { return errors.Join(b.CloseParts(), b.ds.Close()) }

// CloseParts is Close without closing the dataset.
func (b *Book) CloseParts() error {
	errs := []error{b.closeFar()}
	for i := range b.parts {
		s := &b.parts[i]
		s.once.Do(func() { s.err = fmt.Errorf("divided: %s was closed", b.ds.Name()) })
		if s.part != nil {
			errs = append(errs, s.part.ds.Close())
		}
	}
	return errors.Join(errs...)
}
