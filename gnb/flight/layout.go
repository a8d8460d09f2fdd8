package flight

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

// layout says which columns a table that comes in has, and where. A position is -1 for a column that is not there.
type layout struct {
	table            string
	id, features     int
	width            int // of features, of nodes or of edges
	element          arrow.Type
	label, labels    int
	classes          int
	splits           []int // columns of names of splits
	masks            []int // columns that are one split each
	src, dst, weight int
	time             int
	names            []string // of all columns
	lost             int64    // numbers that float32 cannot hold, among the rows read last
}

// maxWidth is the largest number of features, or of classes of a node that can have several.
const maxWidth = 1 << 20

// layoutOf finds the columns of a table.
func layoutOf(table string, schema *arrow.Schema) (*layout, error) {
	l := &layout{table: table, id: -1, features: -1, label: -1, labels: -1, src: -1, dst: -1, weight: -1, time: -1}
	for i, f := range schema.Fields() {
		for _, name := range l.names {
			if name == f.Name {
				return nil, fmt.Errorf("two columns are named %.60q", name)
			}
		}
		l.names = append(l.names, f.Name)
		if err := l.add(i, f); err != nil {
			return nil, err
		}
	}
	switch {
	case table == nodesTable && l.id < 0:
		return nil, fmt.Errorf(`the table has no column "id", an integer for each node`)
	case table == edgesTable && (l.src < 0 || l.dst < 0):
		return nil, fmt.Errorf(`the table has no columns "src" and "dst", integers for each edge`)
	case l.label >= 0 && l.labels >= 0:
		return nil, fmt.Errorf("the table has both label and labels; a node has one class, or a row of 0 and 1")
	}
	return l, nil
}

// add takes the column i.
func (l *layout) add(i int, f arrow.Field) error {
	wrong := func(want string) error {
		return fmt.Errorf("the column %.60q is %.60s; it must be %s", f.Name, f.Type, want)
	}
	base, set, further := strings.Cut(f.Name, "@")
	switch {
	case l.table == nodesTable && f.Name == "id", l.table == nodesTable && f.Name == "label", l.table == edgesTable && (f.Name == "src" || f.Name == "dst"):
		if !arrow.IsInteger(f.Type.ID()) {
			return wrong("an integer")
		}
		*map[string]*int{"id": &l.id, "label": &l.label, "src": &l.src, "dst": &l.dst}[f.Name] = i
	case l.table == edgesTable && f.Name == "weight":
		if !arrow.IsFloating(f.Type.ID()) {
			return wrong("halffloat, float or double")
		}
		l.weight = i
	case l.table == edgesTable && f.Name == "time":
		if !arrow.IsInteger(f.Type.ID()) {
			return wrong("an integer (a time stamp cast to int64, for instance)")
		}
		l.time = i
	case f.Name == "features", l.table == nodesTable && f.Name == "labels":
		t, ok := f.Type.(*arrow.FixedSizeListType)
		if !ok {
			return wrong("a fixed_size_list: as many values in each row (pyarrow: FixedSizeListArray.from_arrays)")
		}
		n, kind := int(t.Len()), t.Elem().ID()
		switch {
		case n < 1 || n > maxWidth:
			return fmt.Errorf("the column %s has lists of %d values; they have 1 to %d", f.Name, n, maxWidth)
		case f.Name == "features" && !arrow.IsFloating(kind):
			return wrong("a fixed_size_list of halffloat, float or double")
		case f.Name == "labels" && kind != arrow.INT8:
			return wrong("a fixed_size_list of int8: 0, 1 or -1 for each class")
		case f.Name == "features":
			l.features, l.width, l.element = i, n, kind
		case n < 2:
			return fmt.Errorf("the column labels has one class; a node with one class has the column label, an integer")
		default:
			l.labels, l.classes = i, n
		}
	case l.table == nodesTable && base == "split" && splitSetName(set, further):
		if f.Type.ID() != arrow.STRING && f.Type.ID() != arrow.LARGE_STRING {
			return wrong("a string: train, val or test, or null")
		}
		l.splits = append(l.splits, i)
	case l.table == nodesTable && splitSetName(set, further) && (base == "train_mask" || base == "val_mask" || base == "test_mask"):
		if f.Type.ID() != arrow.BOOL {
			return wrong("a boolean")
		}
		l.masks = append(l.masks, i)
	case l.table == nodesTable:
		return fmt.Errorf("the column %.60q is none of nodes: id, features, label or labels, and split, or train_mask, val_mask and test_mask; leave it out or rename it", f.Name)
	default:
		return fmt.Errorf("the column %.60q is none of edges: src, dst, weight, features and time; leave it out or rename it", f.Name)
	}
	if len(l.splits)+len(l.masks) > maxSplitColumns {
		return fmt.Errorf("there are more than %d columns of splits", maxSplitColumns)
	}
	return nil
}

// maxSplitColumns bounds the sets of splits that are taken in.
const maxSplitColumns = 300

// splitSetName reports whether the word after "@" is a number of a set of splits.
func splitSetName(set string, further bool) bool {
	if !further {
		return true
	}
	return set != "" && len(set) < 4 && set[0] != '0' && strings.Trim(set, "0123456789") == ""
}

// same returns an error unless another stream of the table has the same columns.
func (l *layout) same(o *layout) error {
	if strings.Join(l.names, "\x00") != strings.Join(o.names, "\x00") || l.element != o.element || l.width != o.width || l.classes != o.classes {
		return fmt.Errorf("the columns are %v, but those of an earlier stream of this table are %v, in this order; all streams need the same columns of the same types", l.names, o.names)
	}
	return nil
}

// rowCost is how many bytes of memory a row takes while the graph is built, at most.
func (l *layout) rowCost() int64 {
	if l.table == edgesTable {
		n := 32 // two ids, a weight, and what sorting takes
		if l.features >= 0 {
			n += 8 * l.width // as they came, and sorted
		}
		if l.time >= 0 {
			n += 16
		}
		return int64(n)
	}
	n := 16 + 4*len(l.splits) + 4*len(l.masks)
	if l.features >= 0 {
		n += 4 * l.width
	}
	return int64(n + 4 + l.classes)
}

// nodeRows are the rows of a record batch of nodes.
type nodeRows struct {
	id    []int64
	f32   []float32 // features, or
	f16   []uint16
	label []int64 // -1: unknown
	multi []int8
	split [][]string // by column, "" for none
	mask  [][]bool
}

// nodes reads a record batch of nodes.
func (l *layout) nodes(b arrow.RecordBatch) (r nodeRows, err error) {
	err = l.reading(b, func() error {
		if r.id, err = l.ids(b, l.id); err != nil {
			return err
		}
		if r.f32, r.f16, err = l.rows(b); err != nil {
			return err
		}
		if l.label >= 0 {
			if r.label, err = integers(l.names[l.label], b.Column(l.label), true); err != nil {
				return err
			}
			for i, y := range r.label {
				if y < -1 || y > math.MaxInt32 {
					return fmt.Errorf("the label of node %d is %d; a label is a class from 0, or null if it is unknown", r.id[i], y)
				}
			}
		}
		if l.labels >= 0 {
			values, err := l.values(b, l.labels, l.classes)
			if err != nil {
				return err
			}
			r.multi = values.(*array.Int8).Int8Values()
		}
		for _, i := range l.splits {
			names, err := words(b.Column(i))
			if err != nil {
				return fmt.Errorf("the column %s: %w", l.names[i], err)
			}
			r.split = append(r.split, names)
		}
		for _, i := range l.masks {
			a := b.Column(i).(*array.Boolean)
			mask := make([]bool, a.Len())
			for k := range mask {
				mask[k] = !a.IsNull(k) && a.Value(k)
			}
			r.mask = append(r.mask, mask)
		}
		return nil
	})
	return r, err
}

// edgeRows are the rows of a record batch of edges.
type edgeRows struct {
	src, dst []int64
	weight   []float32 // nil: none
	f32      []float32 // features, or
	f16      []uint16
	time     []int64
}

// edges reads a record batch of edges.
func (l *layout) edges(b arrow.RecordBatch) (r edgeRows, err error) {
	err = l.reading(b, func() error {
		if r.src, err = l.ids(b, l.src); err != nil {
			return err
		}
		if r.dst, err = l.ids(b, l.dst); err != nil {
			return err
		}
		if l.weight >= 0 {
			a := b.Column(l.weight)
			if err := noNulls(l.names[l.weight], a); err != nil {
				return err
			}
			if err := l.weights(a); err != nil {
				return err
			}
			f32, f16, err := floats(l.names[l.weight], a)
			if f16 != nil {
				m := dataset.Matrix{Rows: len(f16), Cols: 1, F16: f16}
				f32 = m.Float32().F32
			}
			if r.weight = f32; err != nil {
				return err
			}
		}
		if r.f32, r.f16, err = l.rows(b); err != nil {
			return err
		}
		if l.time >= 0 {
			if r.time, err = times(l.names[l.time], b.Column(l.time)); err != nil {
				return err
			}
		}
		return nil
	})
	return r, err
}

// errBatch is the error of a record batch whose arrays contradict themselves.
var errBatch = errors.New("the record batch is damaged: its parts contradict each other; send it again")

// sane replaces the error of an index out of range, which the library wraps when it recovers from a damaged message.
func sane(err error) error {
	if errors.As(err, new(runtime.Error)) {
		return errBatch
	}
	return err
}

// reading validates the columns of a record batch, which a hostile client may have made, and calls f.
func (l *layout) reading(b arrow.RecordBatch, f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errBatch
		}
	}()
	for i, a := range b.Columns() {
		if err := array.ValidateFull(a); err != nil {
			return fmt.Errorf("the column %.60q: %w", l.names[i], errBatch)
		}
	}
	return f()
}

// ids reads a column of node ids.
func (l *layout) ids(b arrow.RecordBatch, i int) ([]int64, error) {
	ids, err := integers(l.names[i], b.Column(i), false)
	if err != nil {
		return nil, err
	}
	for k, v := range ids {
		if v < 0 || v >= math.MaxInt32 {
			return nil, fmt.Errorf("the column %s has the id %d in row %d of a record batch; ids are 0 to the number of nodes less 1, and at most %d", l.names[i], v, k, math.MaxInt32-1)
		}
	}
	return ids, nil
}

// values returns the elements of a column of lists of width elements each.
func (l *layout) values(b arrow.RecordBatch, i, width int) (arrow.Array, error) {
	a := b.Column(i).(*array.FixedSizeList)
	if err := noNulls(l.names[i], a); err != nil {
		return nil, err
	}
	if a.Len() == 0 {
		return array.NewSlice(a.ListValues(), 0, 0), nil
	}
	from, _ := a.ValueOffsets(0)
	to := from + int64(a.Len())*int64(width)
	if from < 0 || to > int64(a.ListValues().Len()) {
		return nil, fmt.Errorf("the column %s has fewer values than its %d rows of %d take", l.names[i], a.Len(), width)
	}
	values := array.NewSlice(a.ListValues(), from, to)
	return values, noNulls(l.names[i], values)
}

// rows returns the features of a record batch, as float or half; neither without a column of features.
func (l *layout) rows(b arrow.RecordBatch) ([]float32, []uint16, error) {
	if l.features < 0 {
		return nil, nil, nil
	}
	values, err := l.values(b, l.features, l.width)
	if err != nil {
		return nil, nil, err
	}
	l.lose(values)
	return floats(l.names[l.features], values)
}

// weights returns an error if a weight would be 0 in float32, and counts the digits that it loses.
func (l *layout) weights(a arrow.Array) error {
	l.lose(a)
	if d, ok := a.(*array.Float64); ok {
		for i, x := range d.Float64Values() {
			if x > 0 && float32(x) == 0 {
				return fmt.Errorf("the column weight has %v in row %d of a record batch, which is 0 in float32; scale the weights", x, i)
			}
		}
	}
	return nil
}

// lose counts the numbers that float32 cannot hold.
func (l *layout) lose(a arrow.Array) {
	if d, ok := a.(*array.Float64); ok {
		for _, x := range d.Float64Values() {
			if tabular.Lost(x, float32(x)) {
				l.lost++
			}
		}
	}
}

// notices reports what a table has lost.
func (l *layout) notices() notice.List {
	if l.lost == 0 {
		return nil
	}
	return notice.List{{Kind: notice.Unrepresentable, Where: l.table, What: "features or weights are whole and another number in float32, or become 0", Count: l.lost}}
}

func noNulls(name string, a arrow.Array) error {
	if a.NullN() == 0 {
		return nil
	}
	return fmt.Errorf("the column %s has %d nulls; fill them in", name, a.NullN())
}

// integers returns the values of a column of integers; nulls are -1 where they may be.
func integers(name string, a arrow.Array, nulls bool) ([]int64, error) {
	if !nulls {
		if err := noNulls(name, a); err != nil {
			return nil, err
		}
	}
	all, err := whole(name, a)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if nulls && a.IsNull(i) {
			all[i] = -1
		} else if all[i] < 0 && !nulls {
			return nil, fmt.Errorf("the column %s has %d in row %d of a record batch; ids are not negative", name, all[i], i)
		}
	}
	return all, nil
}

// times returns the values of a column of times, which can be negative.
func times(name string, a arrow.Array) ([]int64, error) {
	if err := noNulls(name, a); err != nil {
		return nil, err
	}
	return whole(name, a)
}

// whole returns a copy of a column of integers, as int64; from 2^63 on they are an error.
func whole(name string, a arrow.Array) (all []int64, err error) {
	switch a := a.(type) {
	case *array.Int64:
		all = append(all, a.Int64Values()...)
	case *array.Int32:
		all = widened(a.Int32Values())
	case *array.Int16:
		all = widened(a.Int16Values())
	case *array.Int8:
		all = widened(a.Int8Values())
	case *array.Uint64:
		for i, x := range a.Uint64Values() {
			if x > math.MaxInt64 && !a.IsNull(i) {
				return nil, fmt.Errorf("the column %s has %d in row %d of a record batch; integers are below 2^63", name, x, i)
			}
		}
		all = widened(a.Uint64Values())
	case *array.Uint32:
		all = widened(a.Uint32Values())
	case *array.Uint16:
		all = widened(a.Uint16Values())
	case *array.Uint8:
		all = widened(a.Uint8Values())
	default:
		return nil, fmt.Errorf("the column %s is %s; it must be an integer", name, a.DataType())
	}
	return all, nil
}

func widened[T int8 | int16 | int32 | uint8 | uint16 | uint32 | uint64](x []T) []int64 {
	all := make([]int64, len(x))
	for i, v := range x {
		all[i] = int64(v)
	}
	return all
}

// floats returns numbers as float32, or float16 if they are.
func floats(name string, a arrow.Array) ([]float32, []uint16, error) {
	switch a := a.(type) {
	case *array.Float32:
		return a.Float32Values(), nil, nil
	case *array.Float16:
		v := a.Values()
		return nil, unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(v))), len(v)), nil
	case *array.Float64:
		all := make([]float32, a.Len())
		for i, v := range a.Float64Values() {
			all[i] = float32(v)
		}
		return all, nil, nil
	}
	return nil, nil, fmt.Errorf("the column %s is %s; it must be halffloat, float or double", name, a.DataType())
}

// words returns the names of splits, "" for none.
func words(a arrow.Array) ([]string, error) {
	all := make([]string, a.Len())
	for i := range all {
		if a.IsNull(i) {
			continue
		}
		var w string
		switch a := a.(type) {
		case *array.String:
			w = a.Value(i)
		case *array.LargeString:
			w = a.Value(i)
		}
		switch w {
		case "train", "val", "test", "":
			all[i] = strings.Clone(w)
		default:
			return nil, fmt.Errorf("a split is %.60q; it must be train, val, test or null", w)
		}
	}
	return all, nil
}
