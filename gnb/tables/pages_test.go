package tables

import (
	"errors"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/graphnb/graphnb/internal/tabular"
)

// longValues writes a Parquet file with a column of one long text in each row.
func longValues(t *testing.T, path string, rows, length int, dictionary bool) int64 {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "note", Type: arrow.BinaryTypes.String}}, nil)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithDictionaryDefault(dictionary), parquet.WithDictionaryPageSizeLimit(64<<20)), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", length)
	for at := 0; at < rows; at += 8 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := range min(8, rows-at) {
			b.Field(0).(*array.Int64Builder).Append(int64(at + i))
			b.Field(1).(*array.StringBuilder).Append(text)
		}
		rec := b.NewRecordBatch()
		if err := w.WriteBuffered(rec); err != nil {
			t.Fatal(err)
		}
		rec.Release()
		b.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A small Parquet file whose values repeat a long text takes memory for a few batches, and not for all its rows.
func TestParquetMemory(t *testing.T) {
	for name, dictionary := range map[string]bool{"dictionary": true, "plain": false} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/nodes.parquet"
			size := longValues(t, path, 768, 1<<20, dictionary) // 768 MiB
			tab, err := openTable(path, &tabular.Meter{})
			if err != nil {
				t.Fatal(err)
			}
			rows, most := 0, uint64(0)
			sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
			err = tab.each(t.Context(), slices.Repeat([]bool{true}, 2), func(b *batch) error {
				rows += b.n
				runtime.GC()
				metrics.Read(sample)
				most = max(most, sample[0].Value.Uint64())
				return nil
			})
			if err != nil || rows != 768 {
				t.Fatalf("%d rows, %v", rows, err)
			}
			if most > 384<<20 {
				t.Errorf("a file of %d bytes takes %d MiB", size, most>>20)
			}
		})
	}
}

// The sizes in a page's header are checked before the library believes them.
func TestPageHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		header []byte
		want   pageHeader
		err    error
	}{
		// Type data (0), 10 bytes plain, 6 packed, a data page of 3 values.
		"data":       {[]byte{0x15, 0, 0x15, 20, 0x15, 12, 0x2c, 0x15, 6, 0x15, 0, 0, 0}, pageHeader{plain: 10, packed: 6, values: 3}, nil},
		"dictionary": {[]byte{0x15, 4, 0x15, 20, 0x15, 12, 0x4c, 0x15, 6, 0x15, 0, 0, 0}, pageHeader{plain: 10, packed: 6, values: 3, dictionary: true}, nil},
		"cut":        {[]byte{0x15, 0, 0x15}, pageHeader{}, errDamaged},
		"a list":     {[]byte{0x19, 0, 0}, pageHeader{}, errDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			h, n, err := readPageHeader(strings.NewReader(string(c.header)), 0, int64(len(c.header)))
			if !errors.Is(err, c.err) || err == nil && (h != c.want || n != int64(len(c.header))) {
				t.Errorf("%+v of %d bytes, %v", h, n, err)
			}
		})
	}
	if err := checkRows(1<<40, 4800); err == nil {
		t.Error("2^40 rows in 4,800 bytes are believed")
	}
}
