package convert

import (
	"bytes"
	"context"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ Reader = marketReader{}

// marketReader reads the adjacency matrix of a graph in the coordinate format of MatrixMarket: a line
// "%%MatrixMarket matrix coordinate FIELD SYMMETRY", comments, a line with the numbers of rows, columns and entries, and a
// line for each entry with its row and column, counted from 1, and its value unless FIELD is pattern. The entry of row i
// and column j is the edge from i to j; a symmetric matrix is an undirected graph.
//
// Source: R. F. Boisvert, R. Pozo, K. A. Remington, The Matrix Market exchange formats: initial design, NISTIR 5935, 1996.
type marketReader struct{}

func (marketReader) Name() string { return "mtx" }

func (marketReader) About() string {
	return "a MatrixMarket file in coordinate format: a square matrix, general or symmetric, with real, integer or no values"
}

const marketBanner = "%%matrixmarket"

func (marketReader) detect(s *source) bool {
	return !s.Dir && bytes.HasPrefix(bytes.ToLower(s.Head), []byte(marketBanner))
}

func (marketReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	f, err := s.Open("", "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	banner, _, _ := bytes.Cut(s.Head, []byte{'\n'})
	words := strings.Fields(strings.ToLower(string(banner)))
	if len(words) != 5 || words[0] != marketBanner || words[1] != "matrix" {
		return nil, f.Wrong("line 1: %s is not \"%%%%MatrixMarket matrix coordinate FIELD SYMMETRY\"", tabular.Shown(banner))
	}
	field, symmetry := words[3], words[4]
	switch {
	case words[2] != "coordinate":
		return nil, f.Wrong("line 1: the matrix is in the format %s; coordinate is read, which lists the entries", words[2])
	case field != "real" && field != "integer" && field != "pattern":
		return nil, f.Wrong("line 1: the values are %s; weights of edges are real or integer, and pattern has none", field)
	case symmetry != "general" && symmetry != "symmetric":
		return nil, f.Wrong("line 1: the matrix is %s, so an edge and its reverse have different values; write it as general", symmetry)
	}
	line, _ := firstLine(s.Head)
	var size [3]int64
	rest := line
	for i := range size {
		var text []byte
		var ok bool
		text, rest = tabular.Field(rest)
		if size[i], ok = tabular.Whole(text); !ok || size[i] < 0 {
			return nil, f.Wrong("line %d: %s is not the numbers of rows, columns and entries", startLine(s.Head), tabular.Shown(line))
		}
	}
	at := startLine(s.Head)
	switch {
	case len(rest) > 0:
		return nil, f.Wrong("line %d: %s is not the numbers of rows, columns and entries", at, tabular.Shown(line))
	case size[0] != size[1]:
		return nil, f.Wrong("line %d: the matrix has %d rows and %d columns; that of a graph is square. For edges between two kinds of nodes, make nodes.TYPE.csv and edges.SOURCE.RELATION.TARGET.csv of it", at, size[0], size[1])
	}
	pattern := field == "pattern"
	return readCounted(ctx, f, edgeFormat{base: 1, noWeights: pattern, needWeight: !pattern, skip: at}, at, size[0], size[2], symmetry == "symmetric", o)
}
