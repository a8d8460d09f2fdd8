package pairs

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// maxLine is the longest line of a file of edges.
const maxLine = 1 << 12

// ReadEdges reads edges from a text file, plain or compressed by gzip: one a line, its source and its
// destination separated by a comma, semicolon, tab or spaces. A first line with names of columns, such as
// source,target, is a header; other words there are an error. Empty lines, and lines that begin with #,
// are skipped.
//
// The error names the line. Memory: 8 bytes per edge.
func ReadEdges(path string) (Edges, error) {
	in, err := atomicfile.Open(path)
	if err != nil {
		return Edges{}, fmt.Errorf("pairs: %w", err)
	}
	defer in.Close()
	var e Edges
	if err := eachRow(in, 2, func(ids []int32) { e = e.Append(ids[0], ids[1]) }); err != nil {
		return Edges{}, fmt.Errorf("pairs: reading edges of %s: %w", path, err)
	}
	return e, nil
}

// ReadNodes reads a list of nodes from a text file as [ReadEdges] reads edges: one a line.
func ReadNodes(path string) ([]int32, error) {
	in, err := atomicfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("pairs: %w", err)
	}
	defer in.Close()
	var nodes []int32
	if err := eachRow(in, 1, func(ids []int32) { nodes = append(nodes, ids[0]) }); err != nil {
		return nil, fmt.Errorf("pairs: reading nodes of %s: %w", path, err)
	}
	return nodes, nil
}

// eachRow calls row with the ids of each line of a text.
func eachRow(in io.Reader, columns int, row func(ids []int32)) error {
	first, ids := true, make([]int32, columns)
	return eachLine(in, columns, func(n int, text string) error {
		if text[0] == '#' {
			return nil
		}
		fields := fieldsOf(text)
		if len(fields) != columns {
			return fmt.Errorf("line %d is %q; a line has %s", n, text, aLine[columns])
		}
		numbers := 0
		for i, f := range fields {
			v, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				continue
			}
			numbers++
			if v < 0 || v > math.MaxInt32 {
				return fmt.Errorf("line %d has the node %d; nodes are whole numbers from 0 to %d", n, v, math.MaxInt32)
			}
			ids[i] = int32(v)
		}
		switch {
		case numbers == columns:
			row(ids)
		case numbers > 0 || !first || !isHeader(fields):
			return fmt.Errorf("line %d is %q; nodes are whole numbers from 0 to %d, and a header has names such as source,target or node", n, text, math.MaxInt32)
		}
		first = false
		return nil
	})
}

// headers are names of columns of nodes, in small letters without separators.
var headers = map[string]bool{
	"source": true, "src": true, "from": true, "fromnode": true, "fromnodeid": true, "head": true, "u": true, "user": true, "userid": true, "sourceid": true, "srcid": true, "sourcenode": true, "row": true, "node1": true, "a": true,
	"target": true, "dst": true, "dest": true, "destination": true, "to": true, "tonode": true, "tonodeid": true, "tail": true, "v": true, "item": true, "itemid": true, "targetid": true, "dstid": true, "targetnode": true, "destinationid": true, "col": true, "column": true, "node2": true, "b": true,
	"node": true, "nodes": true, "nodeid": true, "id": true, "ids": true, "candidate": true, "candidates": true, "name": true, "names": true,
}

// isHeader reports whether all words of a line are names of columns.
func isHeader(words []string) bool {
	for _, w := range words {
		if !headers[strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(w))] {
			return false
		}
	}
	return true
}

// fieldsOf divides a line at its separators.
func fieldsOf(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ';' || c == ' ' || c == '\t' })
}

// aLine is what a line has, by the number of columns.
var aLine = [...]string{1: "a node id", 2: "a source and a destination"}

// eachLine calls line with the number and the text of each line that is not empty, without white space at its ends. It ends with line's first error.
func eachLine(in io.Reader, columns int, line func(n int, text string) error) error {
	r := bufio.NewReader(in)
	if magic, err := r.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		defer z.Close()
		r = bufio.NewReader(z)
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, maxLine), maxLine)
	n := 0
	for lines.Scan() && lines.Err() == nil { // an error of reading cuts the last line
		n++
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if text == "" {
			continue
		}
		if err := line(n, text); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("line %d is longer than %d bytes; a line has %s", n+1, maxLine, aLine[columns])
	} else if err != nil {
		return err
	}
	return nil
}
