package convert

import (
	"bytes"
	"context"
	"errors"
	"regexp"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/convert/input"
	"github.com/graphnb/graphnb/graphops/dataset/internal/scan"
)

// edgeListReader reads lists of edges, one a line: two node ids and maybe a
// weight, separated by blanks, tabs, commas or semicolons. Lines that begin with
// #, % or // are comments (SNAP, KONECT), and a first line of words is a header.
type edgeListReader struct{}

func (edgeListReader) Name() string { return "edgelist" }

func (edgeListReader) About() string {
	return "a list of edges, one a line: two node ids and maybe a weight; plain, .gz, .bz2 or .xz"
}

func (edgeListReader) Detect(s *Source) bool {
	if s.Dir {
		return false
	}
	line, at := firstLine(s.Head)
	if line == nil {
		return false
	}
	a, rest := scan.Field(line)
	if header(a) { // the next line decides
		line, _ = firstLine(s.Head[at:])
		a, rest = scan.Field(line)
	}
	b, _ := scan.Field(rest)
	_, okA := scan.Whole(a)
	_, okB := scan.Whole(b)
	return okA && okB
}

// firstLine returns the first line of text that is not a comment, and the rest of the text from the
// line after it.
func firstLine(text []byte) (line []byte, next int) {
	for next < len(text) {
		line = text[next:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, next = line[:i], next+i+1
		} else {
			next = len(text)
		}
		if line = bytes.TrimRight(line, "\r"); !scan.Comment(line) {
			return line, next
		}
	}
	return nil, next
}

func (edgeListReader) Read(ctx context.Context, s *Source, o Options) (*dataset.Dataset, error) {
	f, err := s.Open("", "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e := edgeFormat{start: startLine(s.Head)}
	l, err := readEdges(ctx, f, e, o)
	if err != nil {
		return nil, err
	}
	nodes, count := declared(s.Head)
	if n := int64(max(len(l.src), len(l.wide)/2)); n < count && 2*n != count {
		return nil, f.Wrong("its comments say %d edges, but there are %d: it was cut off or edited; fetch it again", count, n)
	}
	list, err := l.number(f, nodes, o)
	if err != nil {
		return nil, err
	}
	if !o.Relabel && !occurs(0, list.src, list.dst) {
		o.note("%s: no edge has the node 0, which stays without neighbours; where ids are counted from 1, --relabel counts them from 0", f.Path)
	}
	return list.dataset(o)
}

// snapComment matches SNAP's comment with the size of a graph. For an undirected graph, its number
// of edges may count both directions.
var snapComment = regexp.MustCompile(`(?m)^[#%].*\bNodes:\s*([0-9]{1,12})\s+Edges:\s*([0-9]{1,15})\b`)

// declared returns the numbers of nodes and edges that a comment declares, 0 if there is none.
func declared(head []byte) (nodes, numEdges int64) {
	if m := snapComment.FindSubmatch(head); m != nil {
		nodes, _ = scan.Whole(m[1])
		numEdges, _ = scan.Whole(m[2])
	}
	return nodes, numEdges
}

// startLine returns the number of the first line that is not a comment.
func startLine(head []byte) int64 {
	_, next := firstLine(head)
	if next == 0 {
		return 1
	}
	n := int64(bytes.Count(head[:next], []byte{'\n'}))
	if head[next-1] != '\n' {
		n++
	}
	return max(n, 1)
}

func occurs(v int32, lists ...[]int32) bool {
	for _, list := range lists {
		for _, u := range list {
			if u == v {
				return true
			}
		}
	}
	return false
}

// jlgReader reads the files of Julia's Graphs package (SNAPDatasets): a header
// "nodes,edges,u|d,name" and edges counted from 1.
type jlgReader struct{}

func (jlgReader) Name() string { return "jlg" }

func (jlgReader) About() string {
	return "an edge list of Julia's Graphs.jl: a line nodes,edges,u|d,name and edges counted from 1"
}

func (jlgReader) Detect(s *Source) bool {
	line, _ := firstLine(s.Head)
	_, _, _, ok := jlgHeader(line)
	return !s.Dir && ok
}

func jlgHeader(line []byte) (nodes, numEdges int64, undirected, ok bool) {
	parts := bytes.SplitN(line, []byte{','}, 4)
	if len(parts) < 3 {
		return 0, 0, false, false
	}
	nodes, okN := scan.Whole(parts[0])
	numEdges, okE := scan.Whole(parts[1])
	kind := string(bytes.TrimSpace(parts[2]))
	return nodes, numEdges, kind == "u", okN && okE && (kind == "u" || kind == "d")
}

func (jlgReader) Read(ctx context.Context, s *Source, o Options) (*dataset.Dataset, error) {
	f, err := s.Open("", "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	line, _ := firstLine(s.Head)
	nodes, count, undirected, ok := jlgHeader(line)
	at := startLine(s.Head)
	if !ok {
		return nil, f.Wrong("line %d: %s is not the header nodes,edges,u|d,name", at, scan.Shown(line))
	}
	return readCounted(ctx, f, edgeFormat{base: 1, noWeights: true, skip: at}, at, nodes, count, undirected, o)
}

// readCounted reads edges after a header that declares the numbers of nodes and edges.
func readCounted(ctx context.Context, f *input.File, e edgeFormat, line, nodes, count int64, undirected bool, o Options) (*dataset.Dataset, error) {
	if nodes < 0 || nodes > MaxNodes || count < 0 {
		return nil, f.Wrong("line %d: the header says %d nodes and %d edges; there can be %d nodes", line, nodes, count, MaxNodes)
	}
	o.Relabel = false // the header counts the nodes
	var l *edgeList
	if count == 0 {
		l = &edgeList{most: -1}
	} else {
		var err error
		if l, err = readEdges(ctx, f, e, o); err != nil {
			return nil, err
		}
	}
	switch {
	case int64(len(l.src)) != count:
		return nil, f.Wrong("line %d: the header says %d edges, but there are %d: the file was cut off or edited; fetch it again", line, count, len(l.src))
	case l.most >= nodes:
		return nil, f.Wrong("an edge names the node %d, but by the header in line %d the nodes are %d to %d", l.most+e.base, line, e.base, nodes-1+e.base)
	case !plausible(nodes, count):
		return nil, f.Wrong("line %d: the header says %d nodes, but the file has only %d edges", line, nodes, count)
	}
	list := &edges{nodes: int(nodes), src: l.src, dst: l.dst, w: l.w, undirected: undirected}
	return list.dataset(o)
}

// dimacsReader reads the graphs of the DIMACS challenges and of PACE: comments "c", a line "p KIND
// nodes edges", and edges counted from 1, each optionally after "a" or "e".
type dimacsReader struct{}

func (dimacsReader) Name() string { return "dimacs" }

func (dimacsReader) About() string {
	return `a DIMACS or PACE .gr file: "p sp|tw|edge nodes edges", then edges counted from 1`
}

func (dimacsReader) Detect(s *Source) bool {
	_, _, _, at := dimacsHeader(s.Head)
	return !s.Dir && at > 0
}

// dimacsHeader finds the line "p KIND nodes edges"; at is its number, 0 if there is no such line.
func dimacsHeader(head []byte) (kind string, nodes, numEdges, at int64) {
	b := input.Block{Text: head, Line: 1}
	done := errors.New("found")
	_ = b.Lines(func(line []byte, number int64) error {
		word, rest := scan.Field(line)
		switch {
		case scan.Comment(line) || string(word) == "c":
			return nil
		case string(word) != "p":
			return done
		}
		var texts [3][]byte
		for i := range texts {
			texts[i], rest = scan.Field(rest)
		}
		n, okN := scan.Whole(texts[1])
		m, okM := scan.Whole(texts[2])
		if okN && okM {
			kind, nodes, numEdges, at = string(texts[0]), n, m, number
		}
		return done
	})
	return kind, nodes, numEdges, at
}

func (dimacsReader) Read(ctx context.Context, s *Source, o Options) (*dataset.Dataset, error) {
	f, err := s.Open("", "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	kind, nodes, count, at := dimacsHeader(s.Head)
	e := edgeFormat{base: 1, skip: at}
	switch {
	case at == 0:
		return nil, f.Wrong(`it does not begin with comments and a line "p KIND nodes edges"`)
	case kind == "sp" || kind == "max":
		e.mark = 'a'
	case kind == "edge" || kind == "col":
		e.mark, e.noWeights = 'e', true
	case kind == "tw":
		e.noWeights = true
	default:
		return nil, f.Wrong("line %d: the problem is %s; sp (arcs with lengths), edge, col and tw (edges) are read", at, scan.Shown([]byte(kind)))
	}
	// Arcs (a) are directed; edges of the other kinds are undirected.
	return readCounted(ctx, f, e, at, nodes, count, e.mark != 'a', o)
}
