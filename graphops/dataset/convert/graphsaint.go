package convert

import (
	"bytes"
	"context"
	"io"
	"strconv"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = saintReader{}

// saintReader reads the folders of GraphSAINT: adj_full.npz (a SciPy CSR matrix, row = source),
// class_map.json (for each node a class or a list of 0 and 1), role.json (the split: tr, va, te)
// and feats.npy, which may be missing. adj_train.npz is the subgraph of the training nodes; it can
// be derived from the other files, so it is not read.
//
// Source: H. Zeng et al., GraphSAINT, ICLR 2020, and its repository's README.
type saintReader struct{}

func (saintReader) Name() string { return "graphsaint" }

// Folder implements [folderReader].
func (saintReader) Folder() bool { return true }

func (saintReader) About() string {
	return "a GraphSAINT folder: adj_full.npz, class_map.json, role.json and maybe feats.npy"
}

func (saintReader) detect(s *source) bool {
	return s.Has("adj_full.npz") || s.Has("role.json") && s.Has("class_map.json")
}

func (saintReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	for _, part := range [][2]string{{"class_map.json", "the nodes' classes"}, {"role.json", "the split"}} {
		if err := s.need(part[0], part[1]); err != nil { // fail before reading for minutes
			return nil, err
		}
	}
	e, err := readCSR(ctx, s, "adj_full.npz", o)
	if err != nil {
		return nil, err
	}
	nodes := e.nodes
	d, err := e.dataset(o)
	if err != nil {
		return nil, err
	}
	if err := saintLabels(ctx, s, d); err != nil {
		return nil, err
	}
	if err := saintRoles(ctx, s, d); err != nil {
		return nil, err
	}
	if s.Has("feats.npy") && o.Features == "" {
		d.Features, err = s.features("feats.npy", nodes)
	} else if o.Features == "" {
		o.note("%s has no feats.npy, so the dataset has no features; --features makes some", s.Path)
	}
	return d, err
}

// need returns an error if the folder lacks the file.
func (s *source) need(name, what string) error {
	f, err := s.Open(name, what)
	if err != nil {
		return err
	}
	s.Meter.Total.Add(-f.Size) // the file is opened again later
	return f.Close()
}

// features reads a .npy file with a row for each node.
func (s *source) features(name string, nodes int) (*dataset.Matrix, error) {
	a, err := s.array(name, "the nodes' features")
	if err != nil {
		return nil, err
	}
	defer a.Close()
	cols, values, err := a.matrix(nodes)
	if err != nil {
		return nil, err
	}
	return &dataset.Matrix{Rows: nodes, Cols: cols, F32: values}, nil
}

// readCSR reads a square SciPy CSR matrix as edges from the row to the column.
func readCSR(ctx context.Context, s *source, name string, o Options) (*edges, error) {
	z, err := s.archive(name, "the graph")
	if err != nil {
		return nil, err
	}
	defer z.Close()
	if err := checkFormat(z); err != nil {
		return nil, err
	}
	indptr, rows, err := readIndptr(z)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	numEdges := indptr[rows]
	indices, err := z.array("indices")
	if err != nil {
		return nil, err
	}
	if indices.Len() != numEdges {
		return nil, indices.wrong("it has %d entries, but indptr ends at %d", indices.Len(), numEdges)
	}
	e := &edges{nodes: rows}
	if e.dst, err = indices.ids(int64(rows)); err != nil {
		return nil, err
	}
	e.src = make([]int32, numEdges)
	for v := range rows {
		for i := indptr[v]; i < indptr[v+1]; i++ {
			e.src[i] = int32(v)
		}
	}
	if z.has("data") {
		e.w, err = readWeights(z, numEdges)
	}
	z.sayUnread(o)
	return e, err
}

// checkFormat returns an error if SciPy's word for the format of a matrix is not csr: the arrays of a csc matrix have the same
// names, and would be read as the reverse of each edge.
func checkFormat(z *archive) error {
	if !z.has("format") {
		return nil
	}
	a, err := z.array("format")
	if err != nil {
		return err
	}
	if a.Len() != 1 || a.Type.Size > 64 {
		return a.wrong("it is %s, and not SciPy's word for the format of a matrix", a.Describe())
	}
	r, err := a.Open()
	if err != nil {
		return a.wrong("%w", err)
	}
	defer r.Close()
	word := make([]byte, a.Type.Size)
	if _, err := io.ReadFull(r, word); err != nil {
		return a.wrong("%w", err)
	}
	if word = bytes.ReplaceAll(word, []byte{0}, nil); string(word) != "csr" { // a character of Unicode has four bytes
		return a.wrong("the matrix is in SciPy's format %s; write it by scipy.sparse.save_npz(file, matrix.tocsr())", tabular.Shown(word))
	}
	return nil
}

// readIndptr reads the row ends of a square CSR matrix, and its shape if the archive has it.
func readIndptr(z *archive) (indptr []int64, rows int, err error) {
	a, err := z.array("indptr")
	if err != nil {
		return nil, 0, err
	}
	if len(a.Shape) != 1 || a.Len() == 0 || a.Len()-1 > MaxNodes {
		return nil, 0, a.wrong("it is %s; row ends are a list of nodes+1 numbers, and there can be %d nodes", a.Describe(), MaxNodes)
	}
	last := int64(0)
	err = a.eachWhole(func(i, x int64) error {
		if i == 0 && x != 0 || x < last {
			return a.wrong("entry %d is %d after %d; row ends begin at 0 and ascend", i, x, last)
		}
		last = x
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	indptr = make([]int64, a.Len())
	if err = a.eachWhole(func(i, x int64) error { indptr[i] = x; return nil }); err != nil {
		return nil, 0, err
	}
	rows = len(indptr) - 1
	if !z.has("shape") {
		return indptr, rows, nil
	}
	shape, err := z.array("shape")
	if err != nil {
		return nil, 0, err
	}
	err = shape.eachWhole(func(i, x int64) error {
		if x != int64(rows) || i > 1 {
			return shape.wrong("entry %d is %d, but the matrix is square with %d rows by its indptr", i, x, rows)
		}
		return nil
	})
	return indptr, rows, err
}

// readWeights reads the values of a CSR matrix.
func readWeights(z *archive, count int64) ([]float32, error) {
	a, err := z.array("data")
	if err != nil {
		return nil, err
	}
	if a.Len() != count {
		return nil, a.wrong("it has %d entries for %d edges", a.Len(), count)
	}
	return a.weights()
}

func saintLabels(ctx context.Context, s *source, d *dataset.Dataset) error {
	f, err := s.Open("class_map.json", "the nodes' classes")
	if err != nil {
		return err
	}
	defer f.Close()
	l := newLabels(d.Nodes())
	j := tabular.NewJSON(f, f.Wrong)
	err = j.Object(func(key string) error {
		v, err := strconv.ParseInt(key, 10, 64)
		if err != nil {
			return j.Wrong("the key %s is not a node", tabular.Shown([]byte(key)))
		}
		if l.count%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return l.read(j, v)
	})
	if err == nil {
		err = j.End()
	}
	if err != nil {
		return err
	}
	return l.store(d, f.Path)
}

func saintRoles(ctx context.Context, s *source, d *dataset.Dataset) error {
	f, err := s.Open("role.json", "the split")
	if err != nil {
		return err
	}
	defer f.Close()
	j := tabular.NewJSON(f, f.Wrong)
	names := map[string]string{"tr": "train", "va": "val", "te": "test"}
	seen := make([]uint64, (d.Nodes()+63)/64) // over all roles, which are disjoint
	err = j.Object(func(key string) error {
		name, known := names[key]
		if !known {
			return j.Wrong("the role %s is none of tr, va and te", tabular.Shown([]byte(key)))
		}
		if _, twice := d.Splits[name]; twice {
			return j.Wrong("the role %s occurs twice", key)
		}
		ids := []int32{}
		err := j.Array(func() error {
			v, err := j.Whole()
			if err != nil {
				return err
			}
			if err := tabular.Claim(seen, v, d.Nodes()); err != nil {
				return j.Wrong("role %s: %w", key, err)
			}
			ids = append(ids, int32(v))
			if len(ids)%4096 == 0 {
				return ctx.Err()
			}
			return nil
		})
		d.Splits[name] = ids
		return err
	})
	if err == nil {
		err = j.End()
	}
	for _, key := range []string{"tr", "va", "te"} {
		if _, ok := d.Splits[names[key]]; !ok && err == nil {
			err = f.Wrong("the role %s is missing", key)
		}
	}
	return err
}
