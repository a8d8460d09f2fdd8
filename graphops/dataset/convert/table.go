package convert

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops/dataset/convert/input"
	"github.com/graphnb/graphnb/graphops/dataset/internal/scan"
)

// table is a text table of numbers, one row per line, all rows equally long.
type table struct {
	rows, cols int
	values     []float32 // row-major
}

// piece holds the rows of one block.
type piece struct {
	table
	first int64 // line of the first row
}

// readTable reads a table of comma- or blank-separated text. With missing, unknown values (nan, or
// nothing between two commas) become NaN. It fails at the first block in which the number of rows
// exceeds rows; the caller checks for too few rows.
func readTable(ctx context.Context, f *input.File, missing bool, rows int64, o Options) (*table, error) {
	t := &table{}
	var first int64
	err := input.EachBlock(ctx, f, o.Threads, func(b input.Block) (piece, error) { return parseRows(b, missing) }, func(p piece) error {
		if p.rows == 0 {
			return nil
		}
		if t.rows == 0 {
			t.cols, first = p.cols, p.first
			t.values = make([]float32, 0, f.Expect(min(rows, 1<<40)*int64(min(p.cols, 1<<20)), 4))
		}
		if p.cols != t.cols {
			return f.Wrong("line %d has %d columns, but line %d has %d", p.first, p.cols, first, t.cols)
		}
		if t.rows += p.rows; int64(t.rows) > rows {
			return f.Wrong("line %d and those after it are too many: the graph has %d nodes, each with a line of its own", p.first+rows-int64(t.rows-p.rows), rows)
		}
		t.values = append(t.values, p.values...)
		return nil
	})
	return t, err
}

func parseRows(b input.Block, missing bool) (piece, error) {
	p := piece{table: table{values: make([]float32, 0, len(b.Text)/4)}}
	err := b.Lines(func(line []byte, number int64) error {
		if len(scan.Trim(line)) == 0 && (p.cols > 1 || !missing) {
			return nil
		}
		n := 0
		for {
			text, rest := scan.Field(line)
			x, ok := float32(math.NaN()), true
			if len(text) > 0 {
				x, ok = scan.Float(text)
			}
			if !ok || x != x && !missing {
				return scan.AtLine(number, "column %d is %s; it must be a finite number", n+1, scan.Shown(text))
			}
			p.values = append(p.values, x)
			n++
			if len(rest) == 0 {
				break
			}
			line = rest
		}
		if p.rows == 0 {
			p.cols, p.first = n, number
		}
		if n != p.cols {
			return scan.AtLine(number, "there are %d columns, but line %d has %d", n, p.first, p.cols)
		}
		p.rows++
		return nil
	})
	return p, err
}

// readWholes reads lines of whole numbers, any count per line, and passes them on in order: number
// is the line's number, and values is valid only during the call. An empty line is a row without
// numbers.
func readWholes(ctx context.Context, f *input.File, o Options, row func(number int64, values []int64) error) error {
	type ragged struct {
		line   int64
		ends   []int32
		values []int64
	}
	parse := func(b input.Block) (ragged, error) {
		r := ragged{line: b.Line}
		err := b.Lines(func(line []byte, number int64) error {
			for line = scan.Trim(line); len(line) > 0; {
				var text []byte
				text, line = scan.Field(line)
				if len(text) == 0 { // nothing between two commas
					continue
				}
				x, ok := scan.Whole(text)
				if !ok {
					if d, isFloat := scan.Decimal(text); isFloat && d == math.Trunc(d) && math.Abs(d) < 1<<53 {
						x, ok = int64(d), true
					}
				}
				if !ok {
					return scan.AtLine(number, "%s is not a whole number", scan.Shown(text))
				}
				r.values = append(r.values, x)
			}
			r.ends = append(r.ends, int32(len(r.values)))
			return nil
		})
		return r, err
	}
	return input.EachBlock(ctx, f, o.Threads, parse, func(r ragged) error {
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

// readIDs reads one node id per line. A repeated id is an error.
func readIDs(ctx context.Context, f *input.File, nodes int, o Options) ([]int32, error) {
	ids := []int32{}
	seen := make([]uint64, (nodes+63)/64)
	err := readWholes(ctx, f, o, func(number int64, values []int64) error {
		for _, v := range values {
			if err := claim(seen, v, nodes); err != nil {
				return f.Wrong("line %d: %w", number, err)
			}
			ids = append(ids, int32(v))
		}
		return nil
	})
	return ids, err
}

// claim marks node v as seen; v must exist and be new.
func claim(seen []uint64, v int64, nodes int) error {
	if v < 0 || v >= int64(nodes) {
		return fmt.Errorf("the node %d is out of range: the graph has the nodes 0 to %d", v, nodes-1)
	}
	if seen[v/64]>>(v%64)&1 != 0 {
		return fmt.Errorf("the node %d is listed twice", v)
	}
	seen[v/64] |= 1 << (v % 64)
	return nil
}

// maxClasses bounds class ids: a model has a weight for every class, so an invented id would later
// cost memory.
const maxClasses = 1 << 20

// class converts a label to a class: NaN and negative numbers become -1, unknown.
func class(x float64) (int32, error) {
	switch {
	case math.IsNaN(x) || x < 0:
		return -1, nil
	case x != math.Trunc(x):
		return 0, fmt.Errorf("the class %v is not a whole number", x)
	case x >= maxClasses:
		return 0, fmt.Errorf("the class %v is out of range: classes are 0 to %d", x, maxClasses-1)
	}
	return int32(x), nil
}

// target converts one of several labels of a node: 0, 1 or, if unknown, -1.
func target(x float64) (int8, error) {
	switch {
	case math.IsNaN(x) || x == -1:
		return -1, nil
	case x == 0 || x == 1:
		return int8(x), nil
	}
	return 0, fmt.Errorf("the label %v is neither 0 nor 1", x)
}

// classes returns the number of classes in labels.
func classes(y []int32) int {
	if len(y) == 0 {
		return 0
	}
	return int(slices.Max(y)) + 1
}
