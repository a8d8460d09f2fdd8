package tabular

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Table is a text table of numbers, one row per line, all rows equally long.
type Table struct {
	Rows, Cols int
	Values     []float32 // row-major
}

// piece holds the rows of one block.
type piece struct {
	Table
	first int64 // line of the first row
}

// ReadTable reads a table of comma- or blank-separated text. With missing, unknown values (nan, or
// nothing between two commas) become NaN. It fails at the first block in which the number of rows
// exceeds rows; the caller checks for too few rows.
func ReadTable(ctx context.Context, f *File, missing bool, rows int64, threads int) (*Table, error) {
	t := &Table{}
	var first int64
	err := EachBlock(ctx, f, threads, func(b Block) (piece, error) { return parseRows(b, missing) }, func(p piece) error {
		if p.Rows == 0 {
			return nil
		}
		if t.Rows == 0 {
			t.Cols, first = p.Cols, p.first
			t.Values = make([]float32, 0, f.Expect(min(rows, 1<<40)*int64(min(p.Cols, 1<<20)), 4))
		}
		if p.Cols != t.Cols {
			return f.Wrong("line %d has %d columns, but line %d has %d", p.first, p.Cols, first, t.Cols)
		}
		if t.Rows += p.Rows; int64(t.Rows) > rows {
			return f.Wrong("line %d and those after it are too many: the graph has %d nodes, each with a line of its own", p.first+rows-int64(t.Rows-p.Rows), rows)
		}
		t.Values = append(t.Values, p.Values...)
		return nil
	})
	return t, err
}

func parseRows(b Block, missing bool) (piece, error) {
	p := piece{Table: Table{Values: make([]float32, 0, len(b.Text)/4)}}
	err := b.Lines(func(line []byte, number int64) error {
		if len(Trim(line)) == 0 && (p.Cols > 1 || !missing) {
			return nil
		}
		n, last := 0, byte(0)
		if end := bytes.TrimRight(line, " \t"); missing && len(end) > 0 {
			last = end[len(end)-1]
		}
		for {
			text, rest := Field(line)
			x, ok := float32(math.NaN()), true
			if len(text) > 0 {
				x, ok = Float(text)
			}
			if !ok || x != x && !missing {
				return AtLine(number, "column %d is %s; it must be a finite number", n+1, Shown(text))
			}
			p.Values = append(p.Values, x)
			n++
			if len(rest) == 0 {
				break
			}
			line = rest
		}
		if last == ',' || last == ';' { // nothing after the last separator is a value too
			p.Values = append(p.Values, float32(math.NaN()))
			n++
		}
		if p.Rows == 0 {
			p.Cols, p.first = n, number
		}
		if n != p.Cols {
			return AtLine(number, "there are %d columns, but line %d has %d", n, p.first, p.Cols)
		}
		p.Rows++
		return nil
	})
	return p, err
}

// ReadWholes reads lines of whole numbers, any count per line, and passes them on in order: number
// is the line's number, and values is valid only during the call. An empty line is a row without
// numbers.
func ReadWholes(ctx context.Context, f *File, threads int, row func(number int64, values []int64) error) error {
	type ragged struct {
		line   int64
		ends   []int32
		values []int64
	}
	parse := func(b Block) (ragged, error) {
		r := ragged{line: b.Line}
		err := b.Lines(func(line []byte, number int64) error {
			for line = Trim(line); len(line) > 0; {
				var text []byte
				text, line = Field(line)
				if len(text) == 0 { // nothing between two commas
					continue
				}
				x, ok := Whole(text)
				if !ok {
					if d, isFloat := Decimal(text); isFloat && d == math.Trunc(d) && math.Abs(d) < 1<<53 {
						x, ok = int64(d), true
					}
				}
				if !ok {
					return AtLine(number, "%s is not a whole number", Shown(text))
				}
				r.values = append(r.values, x)
			}
			r.ends = append(r.ends, int32(len(r.values)))
			return nil
		})
		return r, err
	}
	return EachBlock(ctx, f, threads, parse, func(r ragged) error {
		from := int32(0)
		for i, end := range r.ends {
			if err := row(r.line+int64(i), r.values[from:end]); err != nil {
				return err
			}
			from = end
		}
		return nil
	})
}

// ReadIDs reads one node id per line. A repeated id is an error.
func ReadIDs(ctx context.Context, f *File, nodes int, threads int) ([]int32, error) {
	ids := []int32{}
	seen := make([]uint64, (nodes+63)/64)
	err := ReadWholes(ctx, f, threads, func(number int64, values []int64) error {
		for _, v := range values {
			if err := Claim(seen, v, nodes); err != nil {
				return f.Wrong("line %d: %w", number, err)
			}
			ids = append(ids, int32(v))
		}
		return nil
	})
	return ids, err
}

// Claim marks node v as seen; v must exist and be new.
func Claim(seen []uint64, v int64, nodes int) error {
	if v < 0 || v >= int64(nodes) {
		return fmt.Errorf("the node %d is out of range: the graph has the nodes 0 to %d", v, nodes-1)
	}
	if seen[v/64]>>(v%64)&1 != 0 {
		return fmt.Errorf("the node %d is listed twice", v)
	}
	seen[v/64] |= 1 << (v % 64)
	return nil
}

// MaxClasses bounds class ids: a model has a weight for every class, so an invented id would later
// cost memory.
const MaxClasses = 1 << 20

// ClassesOf converts labels that are numbers of classes, of which -1 and NaN are unknown.
func ClassesOf(values []float32, where string, g *Guide) ([]int32, error) {
	y := make([]int32, len(values))
	var minus, nan, other int64
	zero, most := false, int32(-1)
	for v, x := range values {
		c, err := Class(float64(x))
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", v, err)
		}
		switch {
		case x != x:
			nan++
		case x == -1:
			minus++
		case x < 0:
			other++
		}
		y[v], most, zero = c, max(most, c), zero || c == 0
	}
	switch {
	case most < 0:
		return nil, ErrNoLabels
	case minus > 0 && most == 1 && !zero:
		return nil, errors.New("its labels are -1 and 1, and -1 usually means unknown; write 0 and 1 if they are two classes")
	}
	for _, u := range []struct {
		n    int64
		what string
	}{{minus, "-1"}, {nan, "NaN"}, {other, "negative numbers other than -1"}} {
		if u.n > 0 {
			g.Said.Add(notice.Notice{Kind: notice.Guessed, Where: where, What: "labels that are " + u.what + " are unknown", Count: u.n, Of: int64(len(y))})
		}
	}
	return y, nil
}

// Class converts a label to a class: NaN and negative numbers become -1, unknown.
func Class(x float64) (int32, error) {
	switch {
	case math.IsNaN(x) || x < 0:
		return -1, nil
	case x != math.Trunc(x):
		return 0, fmt.Errorf("the class %v is not a whole number: %w", x, columns.ErrFractions)
	case x >= MaxClasses:
		return 0, fmt.Errorf("the class %v is out of range: classes are 0 to %d", x, MaxClasses-1)
	}
	return int32(x), nil
}

// Target converts one of several labels of a node: 0, 1 or, if unknown, -1.
func Target(x float64) (int8, error) {
	switch {
	case math.IsNaN(x) || x == -1:
		return -1, nil
	case x == 0 || x == 1:
		return int8(x), nil
	}
	return 0, fmt.Errorf("the label %v is neither 0 nor 1", x)
}

// Classes returns the number of classes in labels.
func Classes(y []int32) int {
	if len(y) == 0 {
		return 0
	}
	return int(slices.Max(y)) + 1
}
