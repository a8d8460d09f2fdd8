package convert

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

// array is a NumPy array in its own file or in an archive. It can be read more than once, so its
// values are checked in constant memory before they are loaded.
type array struct {
	*npy.Array
	label string // name in errors: FILE or FILE:ENTRY
	meter *tabular.Meter
	done  func() error
}

func (a *array) wrong(format string, args ...any) error {
	return tabular.Wrong(a.label, format, args...)
}

// Close closes the array's own file, if it has one.
func (a *array) Close() error { return a.done() }

// array opens a .npy file of the folder (or the file itself, if name is empty).
func (s *source) array(name, what string) (*array, error) {
	f, err := s.Open(name, what)
	if err != nil {
		return nil, err
	}
	a, err := arrayOf(f)
	if err != nil {
		_ = f.Close()
	}
	return a, err
}

// array parses the file's header; the array closes the file.
func arrayOf(f *tabular.File) (*array, error) {
	if f.Packed {
		return nil, f.Wrong("it is compressed; decompress it first")
	}
	h, err := npy.ReadHeader(f)
	if err != nil {
		return nil, f.Wrong("%w", err)
	}
	body := f.Size - int64(h.Len)
	if want, ok := h.Bytes(); !ok || want != body {
		return nil, f.Wrong("the header says %s, but %d bytes follow it; it was cut off or written wrongly: write it again with numpy.save", h.Describe(), body)
	}
	a := &npy.Array{Name: "it", Type: h.Type, Shape: h.Shape, Fortran: h.Fortran}
	a.Open = func() (io.ReadCloser, error) {
		return io.NopCloser(bufio.NewReaderSize(f.Section(int64(h.Len), body), 1<<18)), nil
	}
	return &array{Array: a, label: f.Path, meter: f.Meter(), done: f.Close}, nil
}

// archive is a .npz file.
type archive struct {
	*npy.File
	meter *tabular.Meter
}

// archive opens a .npz file of the folder.
func (s *source) archive(name, what string) (*archive, error) {
	if err := s.need(name, what); err != nil {
		return nil, err
	}
	f, err := npy.Open(s.Path + "/" + name)
	if err != nil {
		return nil, prefixed(err)
	}
	return &archive{f, s.Meter}, nil
}

// sayUnread reports the arrays of the archive that were not read.
func (z *archive) sayUnread(o Options) {
	if left := z.Unread(); len(left) > 0 {
		o.said.Add(notice.Notice{Kind: notice.Dropped, Where: filepath.Base(z.Path), What: "nothing was read of the arrays " + someOf(left), Count: int64(len(left))})
	}
}

// has reports whether the archive holds the array.
func (z *archive) has(name string) bool { return z.Find(name) != nil }

// array returns an array of the archive.
func (z *archive) array(name string) (*array, error) {
	a := z.Find(name)
	if a == nil {
		return nil, tabular.Errorf("reading %s: it has no array %q; it has %.200q", z.Path, name, z.Names())
	}
	return &array{Array: a, label: z.Path + ":" + name, meter: z.meter, done: func() error { return nil }}, nil
}

// eachWhole calls visit for every value of an array of whole numbers.
func (a *array) eachWhole(visit func(i int64, x int64) error) error {
	if !a.Type.Whole() {
		return a.wrong("it is %s; whole numbers are needed", a.Describe())
	}
	return each(a, a.EachInt, visit)
}

// eachFloat calls visit for every value of an array of numbers.
func (a *array) eachFloat(visit func(i int64, x float32) error) error {
	if !a.Type.Number() {
		return a.wrong("it is %s; numbers are needed", a.Describe())
	}
	return each(a, a.EachFloat, visit)
}

// each calls visit for every value of the blocks that read passes on, with its position in
// row-major order.
func each[T any](a *array, read func(func(at int64, xs []T) error) error, visit func(i int64, x T) error) error {
	inside := false // the error is visit's, which already names the array
	err := read(func(at int64, xs []T) error {
		for i, x := range xs {
			if err := visit(a.At(at+int64(i)), x); err != nil {
				inside = true
				return err
			}
		}
		return nil
	})
	if err != nil && !inside {
		err = a.wrong("%w", err)
	}
	return err
}

// ids reads the array as node ids below limit.
func (a *array) ids(limit int64) ([]int32, error) {
	err := a.eachWhole(func(i, x int64) error {
		if x < 0 || x >= limit {
			return a.wrong("entry %d is %d, but %s", i, x, idRange(limit))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]int32, a.Len())
	return out, a.eachWhole(func(i, x int64) error {
		out[i] = int32(x)
		return nil
	})
}

// lose counts the numbers that float32 cannot hold.
func (a *array) lose() error {
	n, err := a.CountLost()
	if err != nil {
		return a.wrong("%w", err)
	}
	a.meter.Lose(a.label, "the array", "", n)
	return nil
}

// floats reads the array as finite float32.
func (a *array) floats() ([]float32, error) {
	err := a.eachFloat(func(i int64, x float32) error {
		if x-x != 0 {
			return a.wrong("entry %d is %v; values must be finite in float32", i, x)
		}
		return nil
	})
	if err == nil {
		err = a.lose()
	}
	if err != nil {
		return nil, err
	}
	return a.load()
}

// weights reads the array as weights of edges.
func (a *array) weights() ([]float32, error) {
	err := a.eachFloat(func(i int64, x float32) error {
		if x-x != 0 || x < 0 {
			return a.wrong("entry %d is %v; a weight is finite in float32 and not negative", i, x)
		}
		return nil
	})
	if err == nil {
		err = a.lose()
	}
	if err != nil {
		return nil, err
	}
	return a.load()
}

// load reads the array as float32.
func (a *array) load() ([]float32, error) {
	out := make([]float32, a.Len())
	err := a.EachFloat(func(at int64, xs []float32) error {
		if !a.Fortran {
			copy(out[at:], xs)
			return nil
		}
		for i, x := range xs {
			out[a.At(at+int64(i))] = x
		}
		return nil
	})
	if err != nil {
		return nil, a.wrong("%w", err)
	}
	return out, nil
}

// matrix reads the array as features [rows, any].
func (a *array) matrix(rows int) (cols int, values []float32, err error) {
	switch err := a.Is(2, false); {
	case err != nil:
		return 0, nil, a.wrong("%w", err)
	case a.Shape[0] != rows:
		return 0, nil, a.wrong("it has %d rows, but the graph has %d nodes", a.Shape[0], rows)
	case a.Shape[1] == 0:
		return 0, nil, a.wrong("it has no columns")
	}
	values, err = a.floats()
	return a.Shape[1], values, err
}

// table reads labels: a vector as a column, or a matrix; NaN is unknown.
func (a *array) table() (*tabular.Table, error) {
	t := &tabular.Table{Cols: 1}
	switch len(a.Shape) {
	case 2:
		t.Cols = a.Shape[1]
	case 1:
	default:
		return nil, a.wrong("it is %s; labels have an entry or a row for each node", a.Describe())
	}
	if t.Cols == 0 || a.Shape[0] > MaxNodes {
		return nil, a.wrong("it is %s, and there can be %d nodes", a.Describe(), MaxNodes)
	}
	t.Rows = a.Shape[0]
	err := a.eachFloat(func(i int64, x float32) error {
		if x >= tabular.MaxClasses { // float32 represents all classes below this exactly
			return a.wrong("entry %d is %v; classes are 0 to %d", i, x, tabular.MaxClasses-1)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.Values, err = a.load()
	return t, err
}

// edgeIndex reads an array [2, edges] or [edges, 2] of ids below limit.
func (a *array) edgeIndex(limit int64) (*edges, error) {
	rows := len(a.Shape) == 2 && a.Shape[0] == 2
	if !rows && (len(a.Shape) != 2 || a.Shape[1] != 2) {
		return nil, a.wrong("it is %s; edges are [2, edges], sources first", a.Describe())
	}
	err := a.eachWhole(func(i, x int64) error {
		if x < 0 || x >= limit {
			return a.wrong("entry %d is %d, but %s", i, x, idRange(limit))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	n := a.Len() / 2
	e := &edges{src: make([]int32, n), dst: make([]int32, n)}
	pairs := !rows // the two ends of an edge are adjacent
	return e, a.eachWhole(func(i, x int64) error {
		switch {
		case pairs && i%2 == 0:
			e.src[i/2] = int32(x)
		case pairs:
			e.dst[i/2] = int32(x)
		case i < n:
			e.src[i] = int32(x)
		default:
			e.dst[i-n] = int32(x)
		}
		return nil
	})
}

func idRange(limit int64) string {
	if limit == math.MaxInt32 {
		return "node ids lie in [0, 2147483646]"
	}
	return fmt.Sprintf("the nodes are 0 to %d", limit-1)
}
