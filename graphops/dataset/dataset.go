// Package dataset is graphs with what is known of their nodes: features, labels
// and splits. They come from directories that are mapped rather than read
// ([Open]), from generators ([Karate], [Planted]), or from the caller, who fills
// in a [Dataset].
//
// # Basics
//
// [Load] takes what a user types: the path of a directory, or a generator such
// as "planted?nodes=20000". [Write] makes a directory, [Dataset.Check] reads all
// of one and says what is wrong with it. [Dataset.PackFD] and [OpenFD] hand a
// dataset in memory to another process without a copy of it in that process.
//
// # Format of a directory
//
//	metadata.json      sizes, name, origin: see [Metadata]
//	indptr.npy         int64   [nodes+1]  in-edges of v: indptr[v] to indptr[v+1]
//	indices.npy        int32   [edges]    their sources, ascending within a node
//	features.npy       float32 [nodes, features] row-major; optional
//	labels.npy         int32   [nodes], -1 where unknown; optional
//	split_NAME.npy     int32   [any] distinct node ids, for each split
//
// The arrays are those of NumPy, little-endian: np.load(path, mmap_mode="r")
// opens each. Labels and splits written as int64 are accepted, at the price of a
// converted copy.
//
// # Caveats
//
// The arrays of an opened dataset lie in mapped files: writing to them faults,
// as does reading them after [Dataset.Close]. Reading them is a fault as well
// when somebody truncates the files meanwhile; package mapped turns that into an
// error. Opening checks sizes only; [Dataset.Check] reads everything.
package dataset

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// Dataset is a graph with its nodes' features, labels and splits. It is
// read-only once made and safe for concurrent use, Close apart.
type Dataset struct {
	Graph *graphops.Graph
	// X [nodes, features] are the features, or nil where there are none.
	X *Matrix
	// Y [nodes] are the classes, -1 where a node's is unknown, or nil where there
	// are no labels.
	Y []int32
	// Splits are distinct node ids by the split's name. The names "train", "val"
	// and "test" are the ones that training looks for.
	Splits map[string][]int32
	// Meta describes the dataset. Its sizes are filled in from the arrays by Open,
	// Write and Pack; a caller who builds a Dataset sets Name and NumClasses.
	Meta Metadata

	dir    string
	stamps []stamp
	closer []io.Closer
}

// Metadata is the content of metadata.json.
type Metadata struct {
	FormatVersion int    `json:"format_version"`
	Name          string `json:"name"`
	NumNodes      int    `json:"num_nodes"`
	NumEdges      int64  `json:"num_edges"`   // directed
	FeatureDim    int    `json:"feature_dim"` // 0: no features.npy
	NumClasses    int    `json:"num_classes"` // 0: no labels.npy
	// Undirected promises that every edge has its opposite.
	Undirected bool `json:"undirected"`
	// Splits are the names of the splits, in the order of SplitNames.
	Splits   []string `json:"splits"`
	Source   string   `json:"source,omitempty"`   // where it comes from, or how it was made
	Licence  string   `json:"licence,omitempty"`  // SPDX name where there is one
	Citation string   `json:"citation,omitempty"` // paper and DOI
}

// Name is what the dataset is called.
func (d *Dataset) Name() string { return d.Meta.Name }

// Nodes is the number of nodes.
func (d *Dataset) Nodes() int { return d.Graph.NumNodes() }

// Edges is the number of directed edges: an undirected edge counts twice.
func (d *Dataset) Edges() int64 { return d.Graph.NumEdges() }

// Features is the number of features of a node, 0 where there are none.
func (d *Dataset) Features() int {
	if d.X == nil {
		return 0
	}
	return d.X.Cols
}

// Classes is the number of classes, 0 where there are no labels.
func (d *Dataset) Classes() int { return d.Meta.NumClasses }

// Dir is the directory that the dataset was opened from, or "" where it lies in
// memory.
func (d *Dataset) Dir() string { return d.dir }

// ErrNoSplit is the error of [Dataset.Split] for a name that does not exist.
var ErrNoSplit = errors.New("no such split")

// Split is the node ids of a split, in the dataset's own memory. An unknown name
// is an error that lists those that exist.
func (d *Dataset) Split(name string) ([]int32, error) {
	if ids, ok := d.Splits[name]; ok {
		return ids, nil
	}
	have := "it has none"
	if names := d.SplitNames(); len(names) > 0 {
		have = "it has " + strings.Join(names, ", ")
	}
	return nil, fmt.Errorf("dataset: %s: %w %q; %s", d.Name(), ErrNoSplit, name, have)
}

// SplitNames are the names of the splits: train, val and test first, then the
// others in alphabetical order.
func (d *Dataset) SplitNames() []string {
	names := make([]string, 0, len(d.Splits))
	for name := range d.Splits {
		names = append(names, name)
	}
	usual := []string{"test", "val", "train"}
	slices.SortFunc(names, func(a, b string) int {
		if i, j := slices.Index(usual, a), slices.Index(usual, b); i != j {
			return j - i
		}
		return strings.Compare(a, b)
	})
	return names
}

// String is a summary in one line.
func (d *Dataset) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s nodes, %s edges", d.Name(), group(int64(d.Nodes())), group(d.Edges()))
	if d.X != nil {
		fmt.Fprintf(&s, ", %s features", group(int64(d.X.Cols)))
	}
	if d.Y != nil {
		fmt.Fprintf(&s, ", %s classes", group(int64(d.Classes())))
	}
	for i, name := range d.SplitNames() {
		sep := ", "
		if i == 0 {
			sep = "; "
		}
		fmt.Fprintf(&s, "%s%s %s", sep, name, group(int64(len(d.Splits[name]))))
	}
	return s.String()
}

// group writes n with a comma between thousands.
func group(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Close unmaps the files of an opened dataset. Nobody may touch its arrays
// afterwards. For a dataset in memory it does nothing.
func (d *Dataset) Close() error {
	var errs []error
	for _, c := range d.closer {
		errs = append(errs, c.Close())
	}
	d.closer = nil
	return errors.Join(errs...)
}

// Matrix is a [Rows, Cols] matrix of float32, row-major.
type Matrix struct {
	Rows, Cols int
	F32        []float32 // [Rows·Cols]
}

// Row is row i, in the matrix's own memory.
func (m *Matrix) Row(i int) []float32 { return m.F32[i*m.Cols : (i+1)*m.Cols : (i+1)*m.Cols] }

// Gather copies the rows ids into dst [len(ids), Cols], on the given number of
// threads (0: GOMAXPROCS). Where ids is nil it copies the first rows, as many as
// dst holds. It panics where dst has another size, and on an id outside the
// matrix. Cost: one pass over the rows.
func (m *Matrix) Gather(dst []float32, ids []int32, threads int) {
	if m.Cols == 0 {
		return
	}
	rows := len(ids)
	if ids == nil {
		rows = len(dst) / m.Cols
	}
	if len(dst) != rows*m.Cols || ids == nil && rows > m.Rows {
		panic(fmt.Sprintf("dataset: gathering %d rows of a [%d, %d] matrix into %d values", rows, m.Rows, m.Cols, len(dst)))
	}
	grain := max(1, 1<<14/m.Cols) // 64 KiB a chunk
	parallel.For(threads, rows, grain, func(lo, hi int) {
		if ids == nil {
			copy(dst[lo*m.Cols:hi*m.Cols], m.F32[lo*m.Cols:])
			return
		}
		for i := lo; i < hi; i++ {
			copy(dst[i*m.Cols:(i+1)*m.Cols], m.Row(int(ids[i])))
		}
	})
}
