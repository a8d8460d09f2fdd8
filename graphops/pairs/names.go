package pairs

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// Names are the ids that the nodes of a dataset have in its source, such as the ids of a table's rows. The zero value has
// none. It is read-only and may be used concurrently.
type Names struct {
	of     []string         // by node
	number map[string]int32 // without ids that several nodes have
}

// NewNames returns the ids of nodes, in the order of their numbers, as Dataset.IDs of package dataset gives them; none if of is
// empty. An id that several nodes have, as nodes of two types may, is left out of what [Names.Edges] and [Names.Nodes]
// read. It keeps of. Memory: about 60 bytes for each node.
func NewNames(of []string) Names {
	if len(of) == 0 {
		return Names{}
	}
	n := Names{of, make(map[string]int32, len(of))}
	for v, name := range of {
		if _, twice := n.number[name]; twice {
			n.number[name] = -1
		} else {
			n.number[name] = int32(v)
		}
	}
	for _, name := range of {
		if n.number[name] < 0 {
			delete(n.number, name)
		}
	}
	return n
}

// Of returns the id of a node, or its number if the dataset has no ids.
func (n Names) Of(v int32) string {
	if n.of == nil {
		return fmt.Sprint(v)
	}
	return n.of[v]
}

// Edges reads edges as [ReadEdges] does, or, if each word behind a header is an id, the edges between the nodes with these
// ids; an id may be in double quotes. The error of a file that is neither names an id that the dataset lacks.
func (n Names) Edges(path string) (e Edges, err error) {
	ids, missing := n.read(path, 2)
	if missing == "" && len(ids) > 0 {
		for i := 0; i < len(ids); i += 2 {
			e = e.Append(ids[i], ids[i+1])
		}
		return e, nil
	}
	e, err = ReadEdges(path)
	return e, lacking(path, err, e.Len(), missing)
}

// Nodes reads a list of nodes as [ReadNodes] does, or, if each line behind a header is an id, the nodes with these ids.
func (n Names) Nodes(path string) ([]int32, error) {
	ids, missing := n.read(path, 1)
	if missing == "" && len(ids) > 0 {
		return ids, nil
	}
	nodes, err := ReadNodes(path)
	return nodes, lacking(path, err, len(nodes), missing)
}

// lacking returns the error of a file that has neither ids, because one is missing, nor, as n and err say, numbers.
func lacking(path string, err error, n int, missing string) error {
	switch {
	case missing == "" || err == nil && n > 0:
		return err
	case err == nil:
		return fmt.Errorf("pairs: reading %s: %q is not the id of one node of the dataset", path, missing)
	}
	return fmt.Errorf("%w; and %q is not the id of one node of the dataset", err, missing)
}

// read returns the nodes of a file's ids, row by row, and the first id that no node or several nodes have. A first line
// without any id is a header. For a file that cannot be read it returns nothing.
func (n Names) read(path string, columns int) (nodes []int32, missing string) {
	if len(n.number) == 0 {
		return nil, ""
	}
	in, err := atomicfile.Open(path)
	if err != nil {
		return nil, ""
	}
	defer in.Close()
	first := true
	err = eachLine(in, columns, func(_ int, text string) error {
		words := wordsOf(text, columns)
		row := make([]int32, 0, columns)
		lacks := ""
		for _, w := range words {
			if v, ok := n.number[w]; ok {
				row = append(row, v)
			} else if lacks == "" {
				lacks = w
			}
		}
		header := first && len(row) == 0
		first = false
		switch {
		case header:
		case len(row) != columns || len(words) != columns:
			missing = lacks
			return errStop
		default:
			nodes = append(nodes, row...)
		}
		return nil
	})
	if err != nil {
		return nil, missing
	}
	return nodes, ""
}

// errStop ends eachLine.
var errStop = errors.New("not a line of ids")

// wordsOf divides a line into its ids: at commas, as CSV, or, where it has none, at other separators. The only id of a line
// may have spaces.
func wordsOf(text string, columns int) []string {
	if columns == 1 || strings.Contains(text, ",") {
		r := csv.NewReader(strings.NewReader(text))
		r.TrimLeadingSpace = true
		if words, err := r.Read(); err == nil && len(words) == columns {
			for i := range words {
				words[i] = strings.TrimSpace(words[i])
			}
			return words
		}
	}
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ';' || c == ' ' || c == '\t' })
}
