package tables

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// Columns is what [Write] writes: a *report.Report has it, and a program's own type can.
type Columns interface {
	// Columns returns the names of the columns, and their rows in batches. A batch has a slice for each column, all of one
	// length: []int64, []float32, []float64 or []string, of the same type in each batch. An empty string is a missing
	// value. Write has finished with a batch before it asks for the next one.
	Columns() (names []string, batches iter.Seq[[]any])
}

// Write writes a table to a file that ends in .parquet, compressed by Zstandard, or in .arrow or .feather, an Arrow IPC
// file. The file appears completely or not at all. Memory: a batch, and with Parquet what its columns take compressed.
//
//	r := gnb.Must(report.Of(ctx, run, ds, report.Options{}))
//	gnb.Check(tables.Write("predictions.parquet", r))
func Write(path string, of Columns) error {
	if of == nil {
		return fault("Write needs columns, such as a report")
	}
	end := strings.ToLower(filepath.Ext(path))
	if end != ".parquet" && end != ".arrow" && end != ".feather" {
		return fault("writing %s: the name of the file ends in .parquet, .arrow or .feather; *report.Report writes CSV by WriteCSV", path)
	}
	names, batches := of.Columns()
	if err := checkNames(names); err != nil {
		return fault("writing %s: %w", path, err)
	}
	err := atomicfile.WriteWith(path, 0o666, func(w io.Writer) error {
		return guard(func() error { return writeBatches(w, end == ".parquet", names, batches) })
	})
	if err != nil {
		return fault("writing %s: %w", path, err)
	}
	return nil
}

func checkNames(names []string) error {
	seen := map[string]bool{}
	for _, name := range names {
		if name == "" || seen[name] {
			return fmt.Errorf("there are two columns named %q, or one without a name; each needs a name of its own", name)
		}
		seen[name] = true
	}
	if len(names) == 0 {
		return errors.New("there are no columns")
	}
	return nil
}

// recordWriter is a writer of Parquet or Arrow.
type recordWriter interface {
	Write(rec arrow.RecordBatch) error
	Close() error
}

func writeBatches(w io.Writer, asParquet bool, names []string, batches iter.Seq[[]any]) (err error) {
	var out recordWriter
	var schema *arrow.Schema
	for batch := range batches {
		if schema == nil {
			if schema, err = schemaOf(names, batch); err != nil {
				return err
			}
			if out, err = newRecordWriter(w, asParquet, schema); err != nil {
				return err
			}
		}
		rec, err := recordOf(schema, batch)
		if err != nil {
			return err
		}
		err = out.Write(rec)
		rec.Release()
		if err != nil {
			return err
		}
	}
	if out == nil {
		return errors.New("there are no rows, whose types the file needs")
	}
	return out.Close()
}

func newRecordWriter(w io.Writer, asParquet bool, schema *arrow.Schema) (recordWriter, error) {
	if !asParquet {
		return ipc.NewFileWriter(w, ipc.WithSchema(schema))
	}
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCreatedBy("GraphNB"))
	// The schema of Arrow in the file would only repeat that of Parquet. Closing the writer closes an io.Closer.
	return pqarrow.NewFileWriter(schema, struct{ io.Writer }{w}, props, pqarrow.DefaultWriterProps())
}

func schemaOf(names []string, batch []any) (*arrow.Schema, error) {
	if len(batch) != len(names) {
		return nil, fmt.Errorf("a batch has %d columns, and there are %d names", len(batch), len(names))
	}
	fields := make([]arrow.Field, len(names))
	for i, column := range batch {
		fields[i].Name = names[i]
		switch column.(type) {
		case []int64:
			fields[i].Type = arrow.PrimitiveTypes.Int64
		case []float32:
			fields[i].Type = arrow.PrimitiveTypes.Float32
		case []float64:
			fields[i].Type = arrow.PrimitiveTypes.Float64
		case []string:
			fields[i].Type, fields[i].Nullable = arrow.BinaryTypes.String, true
		default:
			return nil, fmt.Errorf("column %s is %T; columns are []int64, []float32, []float64 or []string", names[i], column)
		}
	}
	return arrow.NewSchema(fields, nil), nil
}

func recordOf(schema *arrow.Schema, batch []any) (arrow.RecordBatch, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	rows := -1
	for i, column := range batch {
		n, ok := 0, i < schema.NumFields()
		if ok {
			n, ok = fillColumn(b.Field(i), column)
		}
		switch {
		case !ok:
			return nil, fmt.Errorf("column %d is %T in a later batch; all batches have the types and the number of columns of the first one", i, column)
		case rows >= 0 && n != rows:
			return nil, fmt.Errorf("column %s has %d rows in a batch, and the columns before it have %d", schema.Field(i).Name, n, rows)
		}
		rows = n
	}
	if len(batch) != schema.NumFields() {
		return nil, fmt.Errorf("a batch has %d columns, and the first one has %d", len(batch), schema.NumFields())
	}
	return b.NewRecordBatch(), nil
}

// fillColumn appends a column, and returns its length; ok is false if it has another type.
func fillColumn(to array.Builder, column any) (n int, ok bool) {
	switch x := column.(type) {
	case []int64:
		b, ok := to.(*array.Int64Builder)
		if ok {
			b.AppendValues(x, nil)
		}
		return len(x), ok
	case []float32:
		b, ok := to.(*array.Float32Builder)
		if ok {
			b.AppendValues(x, nil)
		}
		return len(x), ok
	case []float64:
		b, ok := to.(*array.Float64Builder)
		if ok {
			b.AppendValues(x, nil)
		}
		return len(x), ok
	case []string:
		b, ok := to.(*array.StringBuilder)
		for i := 0; ok && i < len(x); i++ {
			if x[i] == "" {
				b.AppendNull()
			} else {
				b.Append(strings.ToValidUTF8(x[i], "\uFFFD"))
			}
		}
		return len(x), ok
	}
	return 0, false
}
