// Package outfile writes results into files in the format that the end of the file's name says.
package outfile

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb/tables"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// Array is the end of the name of a NumPy array.
const Array = ".npy"

// rowFormats are the ends of names of files of rows.
var rowFormats = []string{".csv", ".json", ".jsonl", ".parquet", ".arrow", ".feather"}

// ErrFormat is matched by the error for a name that does not end in a format that the result can have.
var ErrFormat = errors.New("the result has no such format")

// IsArray reports whether a file is to be a NumPy array.
func IsArray(path string) bool { return end(path) == Array }

func end(path string) string { return strings.ToLower(filepath.Ext(path)) }

// Check returns an error that matches [ErrFormat] unless the name of the file ends in a format that the result can have: an
// array, rows, or both.
func Check(path string, array, rows bool) error {
	var all []string
	if array {
		all = append(all, Array)
	}
	if rows {
		all = append(all, rowFormats...)
	}
	if slices.Contains(all, end(path)) {
		return nil
	}
	last := len(all) - 1
	list := all[last]
	if last > 0 {
		list = strings.Join(all[:last], ", ") + " or " + list
	}
	return fmt.Errorf("--out %s: %w; name a file that ends in %s", path, ErrFormat, list)
}

// Probability is a number that CSV shows with six decimals.
type Probability float64

// Write writes rows with a header to a file, completely or not at all. A cell is a string, an int, a float32 or a Probability,
// of the same type in each row. The name of the file ends in a format of rows (see [Check]).
func Write(path string, header []string, rows iter.Seq[[]any]) error {
	if err := Check(path, false, true); err != nil {
		return err
	}
	var write func(w *bufio.Writer) error
	switch end(path) {
	case ".csv":
		write = func(w *bufio.Writer) error { return writeCSV(w, header, rows) }
	case ".json", ".jsonl":
		write = func(w *bufio.Writer) error { return writeJSON(w, end(path) == ".json", header, rows) }
	default:
		return tables.Write(path, batches{header, rows})
	}
	return atomicfile.WriteWith(path, 0o666, func(out io.Writer) error {
		w := bufio.NewWriter(out)
		if err := write(w); err != nil {
			return err
		}
		return w.Flush()
	})
}

func writeCSV(out io.Writer, header []string, rows iter.Seq[[]any]) error {
	w := csv.NewWriter(out)
	_ = w.Write(header) // Error returns the first error
	line := make([]string, len(header))
	for row := range rows {
		for i, cell := range row {
			line[i] = text(cell)
		}
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// text is a cell in CSV; a float32 is the shortest text that reads back as the number.
func text(cell any) string {
	switch x := cell.(type) {
	case string:
		return x
	case float32:
		return strconv.FormatFloat(float64(x), 'g', -1, 32)
	case Probability:
		return strconv.FormatFloat(float64(x), 'f', 6, 64)
	}
	return fmt.Sprint(cell)
}

// writeJSON writes an object a row: in an array, or one a line.
func writeJSON(w *bufio.Writer, array bool, header []string, rows iter.Seq[[]any]) error {
	keys := make([]string, len(header))
	for i, name := range header {
		raw, err := json.Marshal(name)
		if err != nil {
			return err
		}
		keys[i] = string(raw)
	}
	before, after := "", "\n"
	if array {
		before, after = "[\n", "\n"
	}
	n := 0
	for row := range rows {
		if n++; n > 1 && array {
			before = ",\n"
		}
		_, _ = w.WriteString(before)
		for i, cell := range row {
			raw, err := json.Marshal(cell)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(w, "%s%s: %s", map[bool]string{true: "{", false: ", "}[i == 0], keys[i], raw)
		}
		if _ = w.WriteByte('}'); !array {
			_, _ = w.WriteString(after)
		}
	}
	if array && n == 0 {
		_, _ = w.WriteString("[")
	}
	if array {
		_, _ = w.WriteString("\n]\n")
	}
	return nil // Flush returns the first error
}

// batches gives rows to package tables.
type batches struct {
	header []string
	rows   iter.Seq[[]any]
}

// Columns implements [tables.Columns].
func (b batches) Columns() ([]string, iter.Seq[[]any]) {
	return b.header, func(yield func([]any) bool) {
		const most = 1 << 16
		columns, n := make([]any, len(b.header)), 0
		for row := range b.rows {
			for i, cell := range row {
				columns[i] = appended(columns[i], cell)
			}
			if n++; n == most {
				if !yield(columns) {
					return
				}
				columns, n = make([]any, len(b.header)), 0
			}
		}
		if n > 0 {
			yield(columns)
		}
	}
}

// appended appends a cell to a column of its type.
func appended(column, cell any) any {
	switch x := cell.(type) {
	case int:
		c, _ := column.([]int64)
		return append(c, int64(x))
	case float32:
		c, _ := column.([]float32)
		return append(c, x)
	case Probability:
		c, _ := column.([]float64)
		return append(c, float64(x))
	}
	c, _ := column.([]string)
	return append(c, text(cell))
}
