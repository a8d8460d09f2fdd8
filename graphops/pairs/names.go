package pairs

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// Names are the ids that the nodes of a dataset have in its source, such as the ids of a table's rows. The zero value has
// none. It is read-only and may be used concurrently.
type Names struct {
	of     []string         // by node
	number map[string]int32 // without ids that several nodes have
	whole  bool             // an id is a whole number
	// ends are the ids of the sources and of the destinations of a relation; nil: number for both.
	ends [2]map[string]int32
}

// Ends returns the names by which [Names.Edges] reads edges of a relation: the first id of a line is that of a source and the second
// that of a destination, so that nodes of both types may have the same ids. A nil r changes nothing.
func (n Names) Ends(r *Relation) Names {
	if r == nil || len(n.of) == 0 {
		return n
	}
	for k, span := range [2][2]int32{{r.SrcLo, r.SrcHi}, {r.DstLo, r.DstHi}} {
		of := NewNames(n.of[span[0]:span[1]])
		for name := range of.number {
			of.number[name] += span[0]
		}
		if n.ends[k] = of.number; of.number == nil {
			n.ends[k] = map[string]int32{}
		}
	}
	return n
}

// NewNames returns the ids of nodes, in the order of their numbers, as Dataset.IDs of package dataset gives them; none if of is
// empty. An id that several nodes have, as nodes of two types may, is left out of what [Names.Edges] and [Names.Nodes]
// read. It keeps of. Memory: about 60 bytes for each node.
func NewNames(of []string) Names {
	if len(of) == 0 {
		return Names{}
	}
	n := Names{of: of, number: make(map[string]int32, len(of))}
	for v, name := range of {
		n.whole = n.whole || isWhole(name)
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

// Edges reads edges between nodes with the ids of a file; an id may be in double quotes. Where no id of the dataset is a whole
// number, a file without any id is read as [ReadEdges] does, by the nodes' numbers. Any other word that is not an id is an
// error, so that a number never stands for another node than the one with this id.
func (n Names) Edges(path string) (e Edges, err error) {
	ids, numbers, err := n.read(path, 2)
	switch {
	case err != nil:
		return e, err
	case numbers:
		return ReadEdges(path)
	}
	for i := 0; i < len(ids); i += 2 {
		e = e.Append(ids[i], ids[i+1])
	}
	return e, nil
}

// Nodes reads a list of nodes by their ids or, where [Names.Edges] would, by their numbers, as [ReadNodes] does.
func (n Names) Nodes(path string) ([]int32, error) {
	ids, numbers, err := n.read(path, 1)
	if err == nil && numbers {
		return ReadNodes(path)
	}
	return ids, err
}

// read returns the nodes of a file's ids, row by row; numbers is true for a file that is to be read by the nodes' numbers. A
// first line with names of columns, such as source,target, and no id is a header. A line that begins with # and a blank, and
// has no id, is a comment; ids can begin with #.
func (n Names) read(path string, columns int) (nodes []int32, numbers bool, err error) {
	if len(n.of) == 0 {
		return nil, true, nil
	}
	in, err := atomicfile.Open(path)
	if err != nil {
		return nil, false, fmt.Errorf("pairs: %w", err)
	}
	defer in.Close()
	var wrong error // of the first line that is not ids
	words := false  // not all of which are numbers
	first, found := true, false
	err = eachLine(in, columns, func(line int, text string) error {
		of := wordsOf(text, columns)
		row, missing, whole := make([]int32, 0, columns), "", true
		for k, w := range of {
			number := n.number
			if columns == 2 && k < 2 && n.ends[k] != nil {
				number = n.ends[k]
			}
			if v, ok := number[w]; ok {
				row = append(row, v)
			} else if missing == "" {
				missing = w
			}
			whole = whole && isWhole(w)
		}
		comment := len(row) == 0 && text[0] == '#' && (len(text) == 1 || text[1] == ' ' || text[1] == '\t')
		header := first && len(row) == 0 && !whole && isHeader(of)
		if comment {
			return nil
		}
		wasFirst := first
		first, found = false, found || len(row) > 0
		switch {
		case header || wrong != nil:
		case len(of) != columns:
			words = !whole
			wrong = fmt.Errorf("pairs: reading %s: line %d is %q; a line has %s", path, line, text, aLine[columns])
		case len(row) < columns:
			words = !whole
			wrong = fmt.Errorf("pairs: reading %s: line %d: %q is not the id of one node of the dataset", path, line, missing)
			if wasFirst && len(row) == 0 {
				wrong = fmt.Errorf("%w; a header has names such as source,target or node", wrong)
			}
		default:
			nodes = append(nodes, row...)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("pairs: reading %s: %w", path, err)
	case wrong == nil:
		return nodes, len(nodes) == 0, nil
	case n.whole || found || words:
		return nil, false, wrong
	}
	return nil, true, nil
}

func isWhole(word string) bool {
	_, err := strconv.ParseInt(word, 10, 64)
	return err == nil
}

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
	return fieldsOf(text)
}
