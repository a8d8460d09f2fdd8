package explain

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb/tables"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

var _ tables.Columns = Table(nil)

// Table is explanations as one table with a row for each score, for pandas and others:
//
//	of, output, method  what is explained: a node's id, "source → target" of a pair, or a graph; which output; by which method
//	kind                raw (a column of the tables), column (of features), node or edge
//	name, type          of the column or node, and the type of its nodes; of an edge its relation
//	source, target      of an edge
//	hop                 of a node, else -1
//	value               of a column, of the node or the source: see [Raw] and [Column]
//	own, target_own     the score of the column of the node or the source, and of the target of a pair; 0 for nodes and edges
//	score               that over the whole neighbourhood
type Table []*Explanation

var tableNames = []string{"of", "output", "method", "kind", "name", "type", "source", "target", "hop", "value", "own", "target_own", "score"}

// row is a row of a [Table].
type row struct {
	text              [8]string // of, output, method, kind, name, type, source, target
	hop               int64
	value             string
	own, other, score float64
}

// of names what is explained.
func (e *Explanation) of() string {
	switch {
	case e.Pair != nil:
		return shownPair(e.Pair)
	case e.Graph != "":
		return e.Graph
	}
	return e.Node
}

func (t Table) rows() iter.Seq[row] {
	return func(yield func(row) bool) {
		for _, e := range t {
			if !e.rows(yield) {
				return
			}
		}
	}
}

func (e *Explanation) rows(yield func(row) bool) bool {
	text := func(rest ...string) (t [8]string) {
		copy(t[:], append([]string{e.of(), e.Output, string(e.Method)}, rest...))
		return t
	}
	for _, r := range e.Raw {
		if !yield(row{text("raw", r.Name, r.Type), -1, r.Value, r.Own, r.Target, r.All}) {
			return false
		}
	}
	for _, c := range e.Columns {
		if !yield(row{text("column", c.Name, c.Type), -1, strconv.FormatFloat(c.Value, 'g', -1, 32), c.Own, c.Target, c.All}) {
			return false
		}
	}
	for _, n := range e.Nodes {
		if !yield(row{text("node", n.Node, n.Type), int64(n.Hop), "", 0, 0, n.Score}) {
			return false
		}
	}
	for _, x := range e.Edges {
		if !yield(row{text("edge", "", x.Relation, x.Src, x.Dst), -1, "", 0, 0, x.Score}) {
			return false
		}
	}
	return true
}

// Columns implements [tables.Columns], for tables.Write.
func (t Table) Columns() (names []string, batches iter.Seq[[]any]) {
	return tableNames, func(yield func([]any) bool) {
		var text [8][]string
		var hop []int64
		var value []string
		var own, other, score []float64
		for r := range t.rows() {
			for i, s := range r.text {
				text[i] = append(text[i], s)
			}
			hop, value = append(hop, r.hop), append(value, r.value)
			own, other, score = append(own, r.own), append(other, r.other), append(score, r.score)
		}
		var batch []any
		for _, column := range text {
			batch = append(batch, column)
		}
		if len(hop) > 0 {
			yield(append(batch, hop, value, own, other, score))
		}
	}
}

// Write writes the table to a file: CSV, Parquet, Arrow or, with all that the explanations hold, JSON, by the end of its name: .csv,
// .parquet, .arrow, .feather or .json. The file appears completely or not at all.
func (t Table) Write(path string) error {
	var err error
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		err = atomicfile.WriteWith(path, 0o666, t.writeCSV)
	case ".json":
		err = atomicfile.WriteWith(path, 0o666, func(w io.Writer) error {
			d := json.NewEncoder(w)
			d.SetIndent("", " ")
			return d.Encode([]*Explanation(t))
		})
	case ".parquet", ".arrow", ".feather":
		return tables.Write(path, t)
	default:
		return fmt.Errorf("explain: writing %s: the name of the file ends in .csv, .parquet, .arrow, .feather or .json", path)
	}
	if err != nil {
		return fmt.Errorf("explain: writing %s: %w", path, err)
	}
	return nil
}

func (t Table) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(tableNames); err != nil {
		return err
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 9, 64) }
	for r := range t.rows() {
		hop := strconv.FormatInt(r.hop, 10)
		if err := out.Write(append(r.text[:], hop, r.value, number(r.own), number(r.other), number(r.score))); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
