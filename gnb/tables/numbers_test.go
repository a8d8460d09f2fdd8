package tables

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// col is a column of an Arrow table, by the text of its values; "" is null.
type col struct {
	name   string
	of     arrow.DataType
	values []string
}

// arrowTable writes the columns as an Arrow IPC file.
func arrowTable(t *testing.T, path string, cols ...col) {
	t.Helper()
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = arrow.Field{Name: c.name, Type: c.of, Nullable: true}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for i, c := range cols {
		for _, s := range c.values {
			if s == "" {
				b.Field(i).AppendNull()
				continue
			}
			if err := b.Field(i).AppendValueFromString(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	writeArrow(t, path, b.NewRecordBatch(), false)
}

// idTables writes nodes and edges with ids of a type, and one number each.
func idTables(t *testing.T, of arrow.DataType, nodes, sources, targets []string) (dir string, f Files) {
	t.Helper()
	dir = t.TempDir()
	var x []string
	for i := range nodes {
		x = append(x, fmt.Sprint(i))
	}
	arrowTable(t, dir+"/nodes.arrow", col{"id", of, nodes}, col{"f", arrow.PrimitiveTypes.Int64, x})
	arrowTable(t, dir+"/edges.arrow", col{"source", of, sources}, col{"target", of, targets})
	return dir, Of(dir+"/nodes.arrow", dir+"/edges.arrow")
}

// What comes out of a column of ids is what went in, whatever its type; what the type cannot have held is refused.
func TestIDsAreExact(t *testing.T) {
	long := []string{"6221888200042590280", "6221888200042590281", "6221888200042590282"}
	huge := []string{"9223372036854775813", "9223372036854775814", "18446744073709551615"}
	for _, c := range []struct {
		name  string
		of    arrow.DataType
		ids   []string
		want  []string // nil: the same
		wrong string   // in the error
	}{
		{name: "int64", of: arrow.PrimitiveTypes.Int64, ids: long},
		{name: "uint64", of: arrow.PrimitiveTypes.Uint64, ids: long},
		{name: "uint64 from 2^63 on", of: arrow.PrimitiveTypes.Uint64, ids: huge},
		{name: "uint64 around 2^63", of: arrow.PrimitiveTypes.Uint64, ids: []string{"7", "9223372036854775807", "9223372036854775808"}},
		{name: "decimal of 19 digits", of: &arrow.Decimal128Type{Precision: 19}, ids: long},
		{name: "decimal of 38 digits", of: &arrow.Decimal128Type{Precision: 38}, ids: []string{"12345678901234567890123456789012345678", "12345678901234567890123456789012345679", "-1"}},
		{name: "decimal of 76 digits", of: &arrow.Decimal256Type{Precision: 76}, ids: append(slices.Clone(huge), strings.Repeat("9", 76))},
		{name: "decimal with places", of: &arrow.Decimal128Type{Precision: 20, Scale: 2}, ids: []string{"6221888200042590.00", "6221888200042590.50", "7.05"}, want: []string{"6221888200042590", "6221888200042590.5", "7.05"}},
		{name: "float64", of: arrow.PrimitiveTypes.Float64, ids: []string{"7", "9007199254740991", "-3"}},
		{name: "float64 above 2^53", of: arrow.PrimitiveTypes.Float64, ids: long, wrong: "row 1: the id is 6.22188820004259e+18"},
		{name: "float32 above 2^24", of: arrow.PrimitiveTypes.Float32, ids: []string{"1", "16777217", "3"}, wrong: "row 2: the id is 16777216"},
		{name: "moments of one second", of: arrow.FixedWidthTypes.Timestamp_ms, ids: []string{"2024-01-01T00:00:00.1Z", "2024-01-01T00:00:00.2Z", "2024-01-01T00:00:01Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, f := idTables(t, c.of, c.ids, c.ids[1:], c.ids[:len(c.ids)-1])
			ds, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true, Fit: "all"})
			if c.wrong != "" {
				sentence(t, err, c.wrong)
				if !errors.Is(err, errInexactID) {
					t.Errorf("the error is of another kind: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer ds.Close()
			if c.want == nil {
				c.want = c.ids
			}
			got, err := ds.IDs()
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("the ids are %q (%v), want %q", got, err, c.want)
			}
			if want := int64(len(c.ids) - 1); ds.Edges() != want {
				t.Errorf("%d edges, want %d", ds.Edges(), want)
			}
		})
	}
}

// An edge that names an id one off joins no other node, and an id that only looks like another one is explained.
func TestUnknownIDs(t *testing.T) {
	of := &arrow.Decimal128Type{Precision: 19}
	dir, f := idTables(t, of, []string{"6221888200042590280", "6221888200042594376"}, []string{"6221888200042590281"}, []string{"6221888200042594376"})
	_, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true})
	sentence(t, err, "6221888200042590281", "id of no node")
	for name, c := range map[string][2]string{"composed": {"Jos\u00e9", "Jose\u0301"}, "invisible": {"ab", "a\u200bb"}, "case": {"Ab", "aB"}} {
		t.Run(name, func(t *testing.T) {
			dir, f := pair(t, "id,f\n"+c[0]+",1\nx,2\n", "source,target\n"+c[1]+",x\n")
			_, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true})
			sentence(t, err, "line 2", "differs only in case, in invisible characters, or in how characters are composed")
		})
	}
}

// Whole numbers that a feature or a weight in float32 cannot hold are counted.
func TestLostDigits(t *testing.T) {
	for _, c := range []struct {
		name, nodes, edges string
		o                  Options
		want               string // in the notes; "" is no such note
	}{
		{"unscaled", "id,f\na,16777216\nb,16777217\nc,1700000001\n", "source,target\na,b\n", Options{Unscaled: true}, "(2)"},
		{"scaled apart", "id,f\na,1700000000\nb,1700000001\nc,1700000002\n", "source,target\na,b\n", Options{}, ""},
		{"an outlier", "id,f\na,1\nb,2\nc,9000000000000000\n", "source,target\na,b\n", Options{}, "(3)"},
		{"above 2^53", "id,f\na,9007199254740993\nb,9007199254740992\nc,1\n", "source,target\na,b\n", Options{}, "values of the column"},
		{"fractions", "id,f\na,1e9\nb,1700000001\nc,.5\n", "source,target\na,b\n", Options{Unscaled: true}, ""},
		{"weights", "id,f\na,1\nb,2\n", "source,target,weight\na,b,16777217\nb,a,16777216\n", Options{}, "so their weights are rounded"},
		{"features of edges", "id,f\na,1\nb,2\n", "source,target,x\na,b,16777217\nb,a,1\n", Options{Unscaled: true, Kinds: map[string]Kind{"x": Number}}, "so their features are rounded"},
		{"a spreadsheet's ids", "id,f\n1.23457E+18,1\n1.23458E+18,2\n", "source,target\n1.23457E+18,1.23458E+18\n", Options{}, "ids are written as spreadsheets write long numbers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, f := pair(t, c.nodes, c.edges)
			notes := ""
			c.o.Note = func(s string) { notes += s + "\n" }
			read(t, dir+"/ds", f, c.o)
			if c.want == "" && strings.Contains(notes, "whole numbers") || !strings.Contains(notes, c.want) {
				t.Errorf("the notes are %q, want %q", notes, c.want)
			}
		})
	}
	dir, f := pair(t, "id,f\na,1\nb,2\n", "source,target,weight\na,b,1e-50\n")
	_, err := Read(t.Context(), dir+"/ds", f, Options{Quiet: true})
	sentence(t, err, "line 2", "1e-50", "0 in float32")
}
