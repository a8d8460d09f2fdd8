package tables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
)

// arrowFile is an open Parquet or Arrow file. The libraries panic on some damaged files, so their calls are guarded.
type arrowFile struct {
	path    string
	schema  *arrow.Schema
	parquet *pqarrow.FileReader
	random  *ipc.FileReader
	stream  *ipc.Reader
	close   func()
}

// guard turns a panic of the libraries, which a damaged file can cause, into an error.
func guard(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errParts
			if e, ok := p.(error); ok && !isRuntime(e) {
				err = fmt.Errorf("%w (%.200s)", errParts, phrase.CleanLine(e.Error()))
			}
		}
	}()
	return do()
}

// errParts is the error of a file in which the libraries come upon a contradiction.
var errParts = errors.New("it is damaged: its parts contradict each other; fetch or write it again")

// isRuntime reports whether an error is that of an index or an offset out of range, which the libraries wrap when they
// recover. Package ipc does not wrap those of a message's metadata, which [verifyArrow] has read before.
func isRuntime(err error) bool { return errors.As(err, new(runtime.Error)) }

// errNoFooter is the error of a Parquet file that was cut off: its footer is at its end.
var errNoFooter = errors.New("there is no footer")

// damaged returns the error for a file that cannot be read.
func (p *part) damaged(err error) error {
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case isRuntime(err):
		return fault("reading %s: %w", p.path, errParts)
	case errors.Is(err, errNoEnd):
		return fault("reading %s: it does not end as an Arrow file does: it was cut off, or its writer has not closed it; fetch or write it again", p.path)
	case errors.Is(err, errNoFooter):
		return fault("reading %s: it does not end with the footer of a Parquet file: it was cut off, or its writer has not closed it; fetch or write it again", p.path)
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return fault("reading %s: it ends in the middle of its data: it was cut off; fetch or write it again", p.path)
	}
	return fault("reading %s: %w", p.path, err)
}

func (p *part) openArrow() (a *arrowFile, err error) {
	f, err := atomicfile.Open(p.path)
	if err != nil {
		return nil, fault("%w", err)
	}
	a = &arrowFile{path: p.path, close: func() { _ = f.Close() }}
	err = guard(func() error { return a.open(f, p.format) })
	if err != nil {
		_ = f.Close()
		return nil, p.damaged(err)
	}
	return a, nil
}

func (a *arrowFile) open(f *os.File, format format) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if format != parquetFormat {
		if err := verifyArrow(f, info.Size(), format); err != nil {
			return err
		}
	}
	switch format {
	case parquetFormat:
		var tail [4]byte
		if _, err := f.ReadAt(tail[:], max(0, info.Size()-4)); err != nil || string(tail[:]) != "PAR1" {
			return errors.Join(errNoFooter, err)
		}
		props := parquet.NewReaderProperties(memory.DefaultAllocator)
		props.BufferedStreamEnabled, props.BufferSize = true, 1<<20
		r, err := file.NewParquetReader(f, file.WithReadProps(props))
		if err != nil {
			return err
		}
		batch, err := checkFooter(r, f, info.Size())
		if err != nil {
			return err
		}
		if a.parquet, err = pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: batch}, memory.DefaultAllocator); err != nil {
			return err
		}
		a.schema, err = a.parquet.Schema()
		return err
	case arrowFormat:
		r, err := ipc.NewFileReader(f)
		if err != nil {
			return err
		}
		a.random, a.schema = r, r.Schema()
	default:
		r, err := ipc.NewReader(f)
		if err != nil {
			return err
		}
		a.stream, a.schema = r, r.Schema()
	}
	return nil
}

// checkFooter compares the places of the column chunks with the file's size, and the sizes in the headers of their pages,
// so that a damaged file does not make the reader allocate memory. It returns how many rows a batch may have.
func checkFooter(r *file.Reader, f io.ReaderAt, size int64) (batch int64, err error) {
	if err := checkRows(r.NumRows(), size); err != nil {
		return 0, err
	}
	rows, wide := int64(0), int64(1)
	for g := range r.NumRowGroups() {
		m := r.MetaData().RowGroup(g)
		n := m.NumRows()
		if rows += n; n < 0 || rows > r.NumRows() {
			return 0, fmt.Errorf("its footer says that it has %d rows, and its row groups have more: it is damaged", r.NumRows())
		}
		row := int64(1)
		for c := range m.NumColumns() {
			chunk, err := m.ColumnChunk(c)
			if err != nil {
				return 0, err
			}
			value, err := checkPages(f, chunk, size)
			if err != nil {
				return 0, err
			}
			row += value
		}
		wide = max(wide, row)
	}
	return max(1, min(batchRows, batchBytes/wide)), nil
}

// arrowColumns returns the columns of a Parquet or Arrow file.
func (p *part) arrowColumns() (names []string, odd map[string]string, err error) {
	a, err := p.openArrow()
	if err != nil {
		return nil, nil, err
	}
	defer a.close()
	odd = map[string]string{}
	for _, f := range a.schema.Fields() {
		name := strings.ToLower(strings.TrimSpace(f.Name))
		names = append(names, name)
		if !readable(f.Type) {
			odd[name] = f.Type.Name()
		}
	}
	return names, odd, nil
}

func readable(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return readable(t.ValueType)
	case *arrow.NullType, *arrow.BooleanType, *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType, *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType,
		*arrow.Date32Type, *arrow.Date64Type, *arrow.TimestampType, *arrow.DurationType, *arrow.Time32Type, *arrow.Time64Type, *arrow.Float16Type:
		return true
	}
	return arrow.IsFloating(t.ID()) || arrow.IsInteger(t.ID()) || arrow.IsDecimal(t.ID())
}

func (p *part) eachArrow(ctx context.Context, t *table, want []bool, visit func(b *batch) error) error {
	a, err := p.openArrow()
	if err != nil {
		return err
	}
	defer a.close()
	var positions []int // columns of the file that are read
	to := map[string]int{}
	for i, f := range a.schema.Fields() {
		name := strings.ToLower(strings.TrimSpace(f.Name))
		c := slices.Index(t.names, name)
		if c < 0 {
			return fault("%s was changed while it was read", p.path)
		}
		if want[c] && readable(f.Type) {
			positions, to[f.Name] = append(positions, i), c
		}
	}
	var row int64
	// A goroutine reads the next batch while visit has one.
	type piece struct {
		b   *batch
		rec arrow.RecordBatch
	}
	pieces, quit := make(chan piece), make(chan struct{})
	take := func(rec arrow.RecordBatch) error {
		dictionaries := make([]*vec, rec.NumCols()) // read once for all slices
		for at := 0; at < int(rec.NumRows()); at += batchRows {
			b := &batch{n: min(batchRows, int(rec.NumRows())-at), file: p.path, first: row + 1, cols: make([]vec, len(t.names))}
			for i, f := range rec.Schema().Fields() {
				c, ok := to[f.Name]
				if !ok {
					continue
				}
				if at == 0 {
					if err := array.ValidateFull(rec.Column(i)); err != nil {
						return fmt.Errorf("the column %s, from row %d on: %w", shown(t.names[c]), b.first, errParts)
					}
				}
				var err error
				if d, ok := rec.Column(i).(*array.Dictionary); !ok {
					err = b.cols[c].fill(rec.Column(i), at, b.n)
				} else {
					if dictionaries[i] == nil {
						dictionaries[i] = &vec{}
						err = dictionaries[i].fill(d.Dictionary(), 0, d.Dictionary().Len())
					}
					if err == nil {
						err = b.cols[c].pick(dictionaries[i], d, at, b.n)
					}
				}
				if err != nil {
					return fmt.Errorf("the column %s, from row %d on: %w", shown(t.names[c]), b.first, err)
				}
			}
			row += int64(b.n)
			rec.Retain()
			select {
			case pieces <- piece{b, rec}:
			case <-quit:
				rec.Release()
				return errLeft
			}
		}
		return nil
	}
	go func() {
		defer close(pieces)
		err = guard(func() error { return a.each(ctx, positions, take) })
	}()
	var stop error // of visit, which must not pass as a defect of the file
	for x := range pieces {
		if stop == nil {
			if e := guard(func() error { stop = visit(x.b); return nil }); e != nil {
				stop = p.damaged(e)
			}
			if stop != nil {
				close(quit)
			}
		}
		x.rec.Release()
	}
	switch {
	case stop != nil:
		return stop
	case err != nil:
		return p.damaged(err)
	}
	return nil
}

// errLeft ends the reading of a file whose reader has left.
var errLeft = errors.New("the reader has left")

// each calls take for each record batch.
func (a *arrowFile) each(ctx context.Context, positions []int, take func(arrow.RecordBatch) error) error {
	switch {
	case a.parquet != nil && len(positions) > 0:
		m := a.parquet.Manifest
		var leaves []int
		for _, i := range positions {
			leaves = append(leaves, m.Fields[i].ColIndex)
		}
		r, err := a.parquet.GetRecordReader(ctx, leaves, nil)
		if err != nil {
			return err
		}
		defer r.Release()
		for r.Next() {
			if err := take(r.RecordBatch()); err != nil {
				return err
			}
		}
		if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	case a.parquet != nil: // no column is wanted but those of partitions
		n := a.parquet.ParquetReader().NumRows()
		for at := int64(0); at < n; at += batchRows {
			rec := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, min(batchRows, n-at))
			if err := take(rec); err != nil {
				return err
			}
		}
	case a.random != nil:
		for i := range a.random.NumRecords() {
			rec, err := a.random.RecordBatchAt(i)
			if err != nil {
				return err
			}
			err = take(rec)
			rec.Release()
			if err != nil {
				return err
			}
		}
	default:
		for a.stream.Next() {
			if err := take(a.stream.RecordBatch()); err != nil {
				return err
			}
		}
		return a.stream.Err()
	}
	return nil
}

// fill takes n values of an Arrow column without a dictionary, from at on.
func (v *vec) fill(col arrow.Array, at, n int) error {
	if col.NullN() > 0 {
		v.null = make([]bool, n)
		for i := range n {
			v.null[i] = col.IsNull(at + i)
		}
	}
	str := func(get func(i int) string) error {
		v.class, v.s = text, make([]string, n)
		for i := range n {
			if v.missing(i) {
				continue
			}
			s := get(at + i)
			if len(s) > maxCell {
				return fmt.Errorf("a value has %d bytes, of at most %d", len(s), maxCell)
			}
			if !utf8.ValidString(s) {
				return errors.New("a value is not UTF-8 text")
			}
			v.s[i] = strings.TrimSpace(s)
		}
		return nil
	}
	num := func(bits uint8, get func(i int) float64) {
		v.class, v.f, v.most = float, make([]float64, n), bits
		for i := range n {
			if v.missing(i) {
				continue
			}
			x := get(at + i)
			if math.IsNaN(x) { // pandas writes NaN for a missing number
				if v.null == nil {
					v.null = make([]bool, n)
				}
				v.null[i] = true
				continue
			}
			v.f[i] = x
		}
	}
	wholes := func(get func(i int) int64) {
		v.class, v.i = whole, make([]int64, n)
		for i := range n {
			if !v.missing(i) {
				v.i[i] = get(at + i)
			}
		}
	}
	times := func(c class, u unit, get func(i int) int64) {
		wholes(get)
		v.class, v.unit = c, u
	}
	decimals := func(get func(i int) *big.Int) error {
		const most = 76 // digits of a decimal of 256 bits
		scale := int(col.DataType().(arrow.DecimalType).GetScale())
		if scale < -most || scale > most {
			return fmt.Errorf("values have %d decimal places, of at most %d", scale, most)
		}
		v.class, v.s, v.f = decimal, make([]string, n), make([]float64, n)
		for i := range n {
			if !v.missing(i) {
				v.s[i] = decimalText(get(at+i), scale)
				v.f[i], _ = strconv.ParseFloat(v.s[i], 64)
			}
		}
		return nil
	}
	switch a := col.(type) {
	case *array.Null:
		v.class = absent
	case *array.Boolean:
		return str(func(i int) string { return map[bool]string{false: "false", true: "true"}[a.Value(i)] })
	case *array.String:
		return str(a.Value)
	case *array.LargeString:
		return str(a.Value)
	case *array.StringView:
		return str(a.Value)
	case *array.Binary:
		return str(func(i int) string { return string(a.Value(i)) })
	case *array.LargeBinary:
		return str(func(i int) string { return string(a.Value(i)) })
	case *array.BinaryView:
		return str(func(i int) string { return string(a.Value(i)) })
	case *array.Int8:
		wholes(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Int16:
		wholes(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Int32:
		wholes(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Int64:
		wholes(a.Value)
	case *array.Uint8:
		wholes(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Uint16:
		wholes(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Uint32:
		wholes(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Uint64:
		v.class = whole
		for i := range n {
			if !v.missing(i) && a.Value(at+i) > math.MaxInt64 {
				return str(func(i int) string { return strconv.FormatUint(a.Value(i), 10) })
			}
		}
		wholes(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Float16:
		num(11, func(i int) float64 { return float64(a.Value(i).Float32()) })
	case *array.Float32:
		num(24, func(i int) float64 { return float64(a.Value(i)) })
	case *array.Float64:
		num(53, a.Value)
	case *array.Decimal32:
		return decimals(func(i int) *big.Int { return big.NewInt(int64(a.Value(i))) })
	case *array.Decimal64:
		return decimals(func(i int) *big.Int { return big.NewInt(int64(a.Value(i))) })
	case *array.Decimal128:
		return decimals(func(i int) *big.Int { return a.Value(i).BigInt() })
	case *array.Decimal256:
		return decimals(func(i int) *big.Int { return a.Value(i).BigInt() })
	case *array.Date32:
		v.zoneless = true
		times(instant, seconds, func(i int) int64 { return int64(a.Value(i)) * 24 * 60 * 60 })
	case *array.Date64:
		v.zoneless = true
		times(instant, millis, func(i int) int64 { return int64(a.Value(i)) })
	case *array.Timestamp:
		of := a.DataType().(*arrow.TimestampType)
		v.zoneless = of.TimeZone == ""
		times(instant, arrowUnit(of.Unit), func(i int) int64 { return int64(a.Value(i)) })
	case *array.Duration:
		times(elapsed, arrowUnit(a.DataType().(*arrow.DurationType).Unit), func(i int) int64 { return int64(a.Value(i)) })
	case *array.Time32:
		times(elapsed, arrowUnit(a.DataType().(*arrow.Time32Type).Unit), func(i int) int64 { return int64(a.Value(i)) })
	case *array.Time64:
		times(elapsed, arrowUnit(a.DataType().(*arrow.Time64Type).Unit), func(i int) int64 { return int64(a.Value(i)) })
	default:
		return fmt.Errorf("values of type %s are not read", col.DataType())
	}
	return nil
}

// pick takes values that a column stores once each, in all.
func (v *vec) pick(all *vec, d *array.Dictionary, at, n int) error {
	values := d.Dictionary().Len()
	*v = vec{class: all.class, unit: all.unit, most: all.most, zoneless: all.zoneless, null: make([]bool, n)}
	if all.s != nil {
		v.s = make([]string, n)
	}
	if all.f != nil {
		v.f = make([]float64, n)
	}
	if all.i != nil {
		v.i = make([]int64, n)
	}
	for i := range n {
		if d.IsNull(at + i) {
			v.null[i] = true
			continue
		}
		k := d.GetValueIndex(at + i)
		if k < 0 || k >= values {
			return fmt.Errorf("an entry is number %d of %d values", k, values)
		}
		v.null[i] = all.missing(k)
		if all.s != nil {
			v.s[i] = all.s[k]
		}
		if all.f != nil {
			v.f[i] = all.f[k]
		}
		if all.i != nil {
			v.i[i] = all.i[k]
		}
	}
	return nil
}

func arrowUnit(u arrow.TimeUnit) unit {
	switch u {
	case arrow.Second:
		return seconds
	case arrow.Millisecond:
		return millis
	case arrow.Microsecond:
		return micros
	}
	return nanos
}

// decimalText writes x · 10^-scale exactly, without zeros at the end of a fraction.
func decimalText(x *big.Int, scale int) string {
	if scale <= 0 {
		if x.Sign() == 0 {
			return "0"
		}
		return x.String() + strings.Repeat("0", -scale)
	}
	digits, sign := x.String(), ""
	if x.Sign() < 0 {
		digits, sign = digits[1:], "-"
	}
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale+1-len(digits)) + digits
	}
	at := len(digits) - scale
	fraction := strings.TrimRight(digits[at:], "0")
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + digits[:at] + fraction
}
