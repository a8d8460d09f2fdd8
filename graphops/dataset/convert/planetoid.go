// This file reads the citation networks Cora, CiteSeer and PubMed in the
// files of Yang, Cohen and Salakhutdinov (2016), doi:10.48550/arXiv.1603.08861,
// https://github.com/kimiyoung/planetoid.
//
// # Format
//
// A dataset NAME is eight files in one directory:
//
//	ind.NAME.allx        pickle of a CSR matrix: the features of nodes 0, 1, …
//	ind.NAME.ally        pickle of an array: their classes, one-hot
//	ind.NAME.tx, ty      the same for the test nodes
//	ind.NAME.test.index  text, a number a line: the node of each row of tx
//	ind.NAME.x, y        the training nodes: the first rows of allx and ally
//	ind.NAME.graph       pickle of a dict: node to the list of its neighbours
//
// Package npy (dataset/internal) decodes the pickles without executing them.
//
// # What becomes of it
//
// The result equals PyTorch Geometric's torch_geometric.datasets.Planetoid: undirected edges, each
// once, without self-loops, and the public split: the nodes of y are for training, the next 500 for
// validation and those of test.index for the test. Nodes that test.index skips (15 of CiteSeer's)
// are kept without features and in no split; their class is unknown (-1).
//
// Features stay sparse. [planetoidRead] divides each by the sum of its row, as Kipf and Welling (2017) and
// nearly every published result do; [readRaw] leaves them unchanged: 0 and 1 for Cora and CiteSeer.

package convert

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// valNodes is the size of the public validation split.
const valNodes = 500

var parts = []string{"x", "y", "tx", "ty", "allx", "ally", "graph", "test.index"}

// planetoidParts returns the sorted names of the datasets of which the directory holds at least the graph.
func planetoidParts(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("planetoid: %w", err)
	}
	var names []string
	for _, e := range entries {
		name, isInd := strings.CutPrefix(e.Name(), "ind.")
		name, isGraph := strings.CutSuffix(name, ".graph")
		if isInd && isGraph && name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// planetoidRead reads the dataset of the given name from a directory, its features divided by the sums of
// their rows. An empty name selects the only dataset of the directory.
//
// Each error names the file, the position in it and the reason. Memory is a few times the files'
// size, and at most four times for refused files.
func planetoidRead(dir, name string) (*dataset.Dataset, error) {
	d, err := readRaw(dir, name)
	if err != nil {
		return nil, err
	}
	normalizeRows(d.SparseFeatures)
	d.Meta.Source += "; features divided by their row's sum"
	return d, nil
}

// readRaw is like [planetoidRead], but leaves the features as they are in the files.
func readRaw(dir, name string) (*dataset.Dataset, error) {
	if name == "" {
		names, err := planetoidParts(dir)
		if err != nil {
			return nil, err
		}
		if len(names) != 1 {
			return nil, fmt.Errorf("planetoid: %s holds %d datasets (%s): choose one by its name", dir, len(names), strings.Join(names, ", "))
		}
		name = names[0]
	}
	if strings.ContainsAny(name, "/\\\x00") {
		return nil, fmt.Errorf("planetoid: the name %q has a path in it; it is the NAME of files ind.NAME.graph", name)
	}
	r := &reader{dir: dir, name: name}
	if err := r.findAll(); err != nil {
		return nil, err
	}
	return r.read()
}

// readFile reads a regular file.
func readFile(path string) ([]byte, error) {
	f, err := atomicfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, info.Size())
	_, err = io.ReadFull(f, text)
	return text, err
}

// normalizeRows divides each value by the sum of its row; a row whose sum is 0 is unchanged.
func normalizeRows(s *dataset.Sparse) {
	if s.Values == nil {
		s.Values = make([]float32, len(s.Indices))
		for i := range s.Values {
			s.Values[i] = 1
		}
	}
	for i := range s.Rows {
		row := s.Values[s.Indptr[i]:s.Indptr[i+1]]
		var sum float64
		for _, x := range row {
			sum += float64(x)
		}
		if sum == 0 {
			continue
		}
		for k, x := range row {
			row[k] = float32(float64(x) / sum)
		}
	}
}

type reader struct {
	dir, name string
	size      int // bytes of the last pickle read
}

func (r *reader) path(part string) string { return filepath.Join(r.dir, "ind."+r.name+"."+part) }

// wrong returns an error about the file of one part.
func (r *reader) wrong(part, format string, args ...any) error {
	return fmt.Errorf("planetoid: reading %s: "+format, append([]any{r.path(part)}, args...)...)
}

// findAll checks that all parts exist before any is read.
func (r *reader) findAll() error {
	for _, part := range parts {
		info, err := os.Stat(r.path(part))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return r.wrong(part, "it does not exist; the dataset %s consists of ind.%s.{%s}", r.name, r.name, strings.Join(parts, ","))
		case err != nil:
			return fmt.Errorf("planetoid: %w", err)
		case !info.Mode().IsRegular():
			return r.wrong(part, "it is not a regular file")
		}
	}
	return nil
}

// decode decodes a pickle file.
func (r *reader) decode(part string) (npy.Value, error) {
	file, err := readFile(r.path(part))
	if err != nil {
		return npy.Value{}, fmt.Errorf("planetoid: %w", err)
	}
	r.size = len(file)
	v, err := npy.DecodePickle(file)
	if err != nil {
		return v, r.wrong(part, "%w", err)
	}
	return v, nil
}

func (r *reader) read() (*dataset.Dataset, error) {
	train, width, err := r.trainSize()
	if err != nil {
		return nil, err
	}
	all, err := r.labelled("allx", "ally", width)
	if err != nil {
		return nil, err
	}
	tests, err := r.labelled("tx", "ty", width)
	if err != nil {
		return nil, err
	}
	if train > all.rows() {
		return nil, r.wrong("y", "it has %d rows, but ind.%s.ally, whose first rows they are, has %d", train, r.name, all.rows())
	}
	if all.classes != tests.classes {
		return nil, r.wrong("ty", "it has %d classes and ind.%s.ally has %d", tests.classes, r.name, all.classes)
	}
	graph, err := r.graph()
	if err != nil {
		return nil, err
	}
	ids, err := r.testIndex(all.rows(), graph.NumNodes())
	if err != nil {
		return nil, err
	}
	if len(ids) != tests.rows() {
		return nil, r.wrong("test.index", "it lists %d nodes, but ind.%s.tx has %d rows", len(ids), r.name, tests.rows())
	}
	d := &dataset.Dataset{
		Graph:          graph,
		SparseFeatures: join(graph.NumNodes(), all.x, tests.x, ids),
		Labels:         make([]int32, graph.NumNodes()),
		Splits:         map[string][]int32{"train": span(0, train), "val": span(train, min(train+valNodes, all.rows())), "test": slices.Sorted(slices.Values(ids))},
		Meta: dataset.Metadata{
			Name:       r.name,
			NumClasses: all.classes,
			Undirected: true,
			Metric:     dataset.MetricAccuracy,
			Source:     fmt.Sprintf("Planetoid files ind.%s.*", r.name),
		},
	}
	for v := range d.Labels {
		d.Labels[v] = -1
	}
	copy(d.Labels, all.y)
	for i, v := range ids {
		d.Labels[v] = tests.y[i]
	}
	return d, nil
}

// span returns the ids from lo to hi-1.
func span(lo, hi int) []int32 {
	ids := make([]int32, hi-lo)
	for i := range ids {
		ids[i] = int32(lo + i)
	}
	return ids
}

// trainSize returns the number of training nodes and the number of features.
func (r *reader) trainSize() (train int, width int64, err error) {
	v, err := r.decode("x")
	if err != nil {
		return 0, 0, err
	}
	x, err := v.CSR()
	if err != nil {
		return 0, 0, r.wrong("x", "%w", err)
	}
	if v, err = r.decode("y"); err != nil {
		return 0, 0, err
	}
	y, err := r.oneHot("y", v)
	if err != nil {
		return 0, 0, err
	}
	if int64(y.Shape[0]) != x.Rows {
		return 0, 0, r.wrong("y", "it has %d rows, but ind.%s.x has %d", y.Shape[0], r.name, x.Rows)
	}
	return y.Shape[0], x.Cols, nil
}

// nodes holds features and classes of some nodes.
type nodes struct {
	x       *dataset.Sparse
	y       []int32
	classes int
}

func (n *nodes) rows() int { return len(n.y) }

// labelled reads the features in one part and the classes in another.
func (r *reader) labelled(xPart, yPart string, width int64) (*nodes, error) {
	v, err := r.decode(xPart)
	if err != nil {
		return nil, err
	}
	x, err := r.features(xPart, v)
	if err != nil {
		return nil, err
	}
	if int64(x.Cols) != width {
		return nil, r.wrong(xPart, "it has %d columns, but ind.%s.x has %d", x.Cols, r.name, width)
	}
	if v, err = r.decode(yPart); err != nil {
		return nil, err
	}
	hot, err := r.oneHot(yPart, v)
	if err != nil {
		return nil, err
	}
	if hot.Shape[0] != x.Rows {
		return nil, r.wrong(yPart, "it has %d rows, but ind.%s.%s has %d", hot.Shape[0], r.name, xPart, x.Rows)
	}
	y, err := classesOf(hot)
	if err != nil {
		return nil, r.wrong(yPart, "%w", err)
	}
	return &nodes{x: x, y: y, classes: hot.Shape[1]}, nil
}

func (r *reader) features(part string, v npy.Value) (*dataset.Sparse, error) {
	found, err := v.CSR()
	if err != nil {
		return nil, r.wrong(part, "%w", err)
	}
	array := func(name string, a *npy.PickleArray) *npy.Array {
		return npy.InMemory(name, a.Type, a.Shape, a.Fortran, a.Data)
	}
	m := &npy.Matrix{
		Rows: found.Rows, Cols: found.Cols,
		Indptr: array("indptr", found.Indptr), Indices: array("indices", found.Indices), Data: array("data", found.Data),
	}
	if err := m.Check(); err != nil {
		return nil, r.wrong(part, "%w", err)
	}
	if m.Cols == 0 {
		return nil, r.wrong(part, "the matrix of features has no columns")
	}
	s := &dataset.Sparse{Rows: int(m.Rows), Cols: int(m.Cols)}
	if s.Indptr, s.Indices, s.Values, err = m.Load(); err != nil {
		return nil, r.wrong(part, "%w", err)
	}
	return s, nil
}

// oneHot returns a value as a matrix with one row per node and one column per class.
func (r *reader) oneHot(part string, v npy.Value) (*npy.Array, error) {
	a, ok := v.Array()
	if !ok {
		return nil, r.wrong(part, "it holds %v; a NumPy array was expected", v.Kind())
	}
	m := npy.InMemory("the array of classes", a.Type, a.Shape, a.Fortran, a.Data)
	if err := m.Is(2, false); err != nil {
		return nil, r.wrong(part, "%w", err)
	}
	// A class without nodes would cost memory later, in the model's width.
	if rows, cols := a.Shape[0], a.Shape[1]; cols == 0 || cols > rows+1<<10 {
		return nil, r.wrong(part, "it has %d classes for %d nodes", cols, rows)
	}
	return m, nil
}

// classesOf returns the column of the single nonzero element of each row, or -1 for a row of zeros.
func classesOf(hot *npy.Array) ([]int32, error) {
	cols := int64(hot.Shape[1])
	y := make([]int32, hot.Shape[0])
	for i := range y {
		y[i] = -1
	}
	err := hot.EachFloat(func(at int64, xs []float32) error {
		for i, x := range xs {
			if x == 0 {
				continue
			}
			k := hot.At(at + int64(i))
			row, col := k/cols, k%cols
			switch {
			case x != 1:
				return fmt.Errorf("row %d, column %d is %v; each row must have a single 1, in the column of its class", row, col, x)
			case y[row] >= 0:
				return fmt.Errorf("row %d has two classes, %d and %d", row, y[row], col)
			}
			y[row] = int32(col)
		}
		return nil
	})
	return y, err
}

// join returns n rows: the rows of all, and row i of tests at position ids[i]; other rows are
// empty.
func join(n int, all, tests *dataset.Sparse, ids []int32) *dataset.Sparse {
	from := make([]int32, n) // row of tests, plus 1; 0: none
	for i, v := range ids {
		from[v] = int32(i) + 1
	}
	elements := len(all.Indices) + len(tests.Indices)
	s := &dataset.Sparse{Rows: n, Cols: all.Cols, Indptr: make([]int64, n+1), Indices: make([]int32, 0, elements)}
	if all.Values != nil || tests.Values != nil {
		s.Values = make([]float32, 0, elements)
	}
	for v := range n {
		var cols []int32
		var values []float32
		switch {
		case v < all.Rows:
			cols, values = all.Row(v)
		case from[v] > 0:
			cols, values = tests.Row(int(from[v]) - 1)
		}
		s.Indices = append(s.Indices, cols...)
		if s.Values != nil && values != nil {
			s.Values = append(s.Values, values...)
		} else if s.Values != nil {
			for range cols {
				s.Values = append(s.Values, 1)
			}
		}
		s.Indptr[v+1] = int64(len(s.Indices))
	}
	return s
}

// graph reads the dict of neighbours; its keys are the nodes.
func (r *reader) graph() (*graphops.Graph, error) {
	v, err := r.decode("graph")
	if err != nil {
		return nil, err
	}
	if v.Kind() != npy.Dict {
		return nil, r.wrong("graph", "it holds %v; a dict of lists was expected", v.Kind())
	}
	n := v.Len()
	edges := 0
	for _, list := range v.Pairs() {
		edges += list.Len()
	}
	// Several keys can share one list.
	if edges > r.size {
		return nil, r.wrong("graph", "its %d bytes claim %d edges, because nodes share their lists: it is not believed", r.size, edges)
	}
	src, dst := make([]int32, 0, edges), make([]int32, 0, edges)
	seen := make([]bool, n)
	for k, list := range v.Pairs() {
		id, ok := k.Int()
		switch {
		case !ok:
			return nil, r.wrong("graph", "a key is %v, not the number of a node", k.Kind())
		case id < 0 || id >= int64(n):
			return nil, r.wrong("graph", "the key %d is not one of the %d nodes 0 to %d", id, n, n-1)
		case seen[id]:
			return nil, r.wrong("graph", "node %d has two lists of neighbours", id)
		case list.Kind() != npy.List:
			return nil, r.wrong("graph", "node %d has %v, not a list of neighbours", id, list.Kind())
		}
		seen[id] = true
		for i := range list.Len() {
			to, ok := list.At(i).Int()
			if !ok {
				return nil, r.wrong("graph", "neighbour %d of node %d is %v, not the number of a node", i, id, list.At(i).Kind())
			}
			if to < 0 || to >= int64(n) {
				return nil, r.wrong("graph", "neighbour %d of node %d is %d; the nodes are 0 to %d", i, id, to, n-1)
			}
			if to != id {
				src, dst = append(src, int32(to)), append(dst, int32(id))
			}
		}
	}
	g, err := graphops.FromEdges(n, src, dst, graphops.BuildOptions{Undirected: true})
	if err != nil {
		return nil, r.wrong("graph", "%w", err)
	}
	return g, nil
}
