package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ Reader = edgeListReader{}

// edgeListReader reads lists of edges, one a line: two node ids, maybe a weight and maybe a time,
// separated by blanks, tabs, commas or semicolons. Lines that begin with #, % or // are comments
// (SNAP, KONECT), a first line of words names the columns, and attributes in braces are networkx's.
type edgeListReader struct{}

func (edgeListReader) Name() string { return "edgelist" }

func (edgeListReader) About() string {
	return "a list of edges, one a line: two node ids, maybe a weight and a time; plain, .gz, .bz2 or .xz"
}

func (edgeListReader) detect(s *source) bool {
	if s.Dir {
		return false
	}
	line, at := firstLine(s.Head)
	if line == nil {
		return false
	}
	a, rest := tabular.Field(line)
	if header(a) { // the next line decides
		line, _ = firstLine(s.Head[at:])
		a, rest = tabular.Field(line)
	}
	b, _ := tabular.Field(rest)
	_, okA := tabular.Whole(a)
	_, okB := tabular.Whole(b)
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
		if line = bytes.TrimRight(line, "\r"); !tabular.Comment(line) {
			return line, next
		}
	}
	return nil, next
}

func (edgeListReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	f, err := s.Open("", "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e, undirected, err := edgeListFormat(f, s.Head, o)
	if err != nil {
		return nil, err
	}
	l, err := readEdges(ctx, f, e, o)
	if err != nil {
		return nil, err
	}
	where := filepath.Base(f.Path)
	if e.either && l.times != nil {
		o.said.Add(notice.Notice{Kind: notice.Guessed, Where: where, What: "the third column has times, because each value looks like a UNIX time", Count: int64(len(l.times)), Option: "--kinds 3=weight reads weights"})
	}
	if err := l.adjacency(f, e, o); err != nil {
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
	list.undirected = undirected
	if o.Relabel {
		s.keepIDs(l.ids, where, o)
	} else if !occurs(0, list.src, list.dst) {
		o.said.Add(notice.Notice{Kind: notice.Guessed, Where: where, What: "no edge has the node 0, which stays without neighbours", Count: 1, Option: "where ids are counted from 1, --relabel counts them from 0"})
	}
	return list.dataset(o)
}

// keepIDs writes the ids of renumbered nodes, unless none has changed.
func (s *source) keepIDs(ids []int64, where string, o Options) {
	moved := int64(0)
	lines := make([]string, len(ids))
	for v, id := range ids {
		if lines[v] = strconv.FormatInt(id, 10); id != int64(v) {
			moved++
		}
	}
	if moved > 0 {
		s.Keep(dataset.NamesFile(""), lines)
		o.said.Add(notice.Notice{Kind: notice.Renumbered, Where: where, What: "nodes have other numbers than the ids of the file, which " + dataset.NamesFile("") + " has, one a line", Count: moved, Of: int64(len(ids))})
	}
}

// konectComment is the first line of KONECT's files.
var konectComment = regexp.MustCompile(`(?m)^%\s*(sym|asym|bip)\s+[a-z]+`)

// edgeListFormat recognises the columns of a list of edges by its comments, its first line and the options.
func edgeListFormat(f *tabular.File, head []byte, o Options) (e edgeFormat, undirected bool, err error) {
	where := filepath.Base(f.Path)
	e.start = startLine(head)
	line, at := firstLine(head)
	first, _ := tabular.Field(line)
	if e.named = header(first); o.Header != "" {
		e.named = o.Header == "yes"
	}
	var names []string
	if e.named {
		for rest := line; len(rest) > 0; {
			var name []byte
			name, rest = tabular.Field(rest)
			names = append(names, strings.ToLower(strings.Trim(string(name), `"'`)))
		}
		line, _ = firstLine(head[at:])
	}
	if m := konectComment.FindSubmatch(head); m != nil {
		switch string(m[1]) {
		case "bip":
			return e, false, f.Wrong("its first line says that it is bipartite (KONECT): sources and targets are nodes of two kinds that are both counted from 1; make nodes.TYPE.csv and edges.SOURCE.RELATION.TARGET.csv of it (--format typed-csv or tables)")
		case "sym":
			undirected = true
			o.said.Add(notice.Notice{Kind: notice.Guessed, Where: where, What: "the graph is undirected, because its first line says sym (KONECT)"})
		}
	}
	n := 0
	for rest := line; len(rest) > 0; n++ {
		if rest = tabular.Trim(rest); rest[0] == '{' {
			n++
			break
		}
		_, rest = tabular.Field(rest)
	}
	if names != nil && len(names) != n {
		if o.Header == "yes" {
			names = nil
		} else {
			return e, false, f.Wrong("line %d has %d names, but the line after it has %d columns", e.start, len(names), n)
		}
	}
	given := false
	e.kinds = make([]columns.Kind, n)
	for i := range e.kinds {
		k := o.columnGuide().KindOf("edges", strconv.Itoa(i+1))
		if k == "" && names != nil {
			k = o.columnGuide().KindOf("edges", names[i])
		}
		if e.kinds[i] = k; k == columns.Number {
			return e, false, f.Wrong("--kinds %d=number: a list of edges has no features; a folder of tables has", i+1)
		}
		given = given || k != ""
	}
	if names != nil {
		cols, said, err := (&columns.Table{Of: columns.Edges, Path: where, Names: names, Kinds: e.kinds}).Decide()
		if err != nil {
			return e, false, f.Wrong("%w", err)
		}
		for _, n := range said {
			o.said.Add(n)
		}
		for i, c := range cols {
			e.kinds[i] = c.Kind
		}
	}
	has := func(k columns.Kind) bool { return slices.Contains(e.kinds, k) }
	for _, k := range []columns.Kind{columns.Source, columns.Target} { // by their places
		for i := range e.kinds {
			if !has(k) && e.kinds[i] == "" {
				e.kinds[i] = k
			}
		}
	}
	var left []int
	for i, k := range e.kinds {
		if k == "" {
			left = append(left, i)
		}
	}
	switch {
	case len(left) == 0 && !given && n == 2 && e.kinds[0] == columns.Source:
		e.kinds = nil
	case len(left) == 1 && left[0] == 2 && n == 3 && e.kinds[0] == columns.Source && e.kinds[1] == columns.Target:
		e.kinds, e.either = nil, true
		if names != nil {
			o.said.Add(notice.Notice{Kind: notice.Guessed, Where: where, What: fmt.Sprintf("the column %q is the weight, or the time if its values look like UNIX times", names[2]), Option: "--kinds 3=weight, 3=time or 3=skip"})
		}
	case len(left) == 2 && n == 4 && left[0] == 2 && names == nil: // KONECT
		last := line
		for range 3 {
			_, last = tabular.Field(last)
		}
		if _, ok := timeOf(bytes.TrimSpace(last)); !ok && konectComment.Find(head) == nil {
			return e, false, f.Wrong("line %d: there are more columns than the format has, 4; an edge is two node ids, and maybe a weight and a time: --kinds 3=weight,4=time reads them so, and --kinds 3=skip,4=skip leaves them out", e.start)
		}
		e.kinds[2], e.kinds[3] = columns.Weight, columns.Time
		o.said.Add(notice.Notice{Kind: notice.Guessed, Where: where, What: "the third column has weights and the fourth times", Option: "--kinds 3=skip,4=skip leaves them out"})
	case names != nil || given:
		for _, i := range left {
			e.kinds[i] = columns.Skip
			name := strconv.Itoa(i + 1)
			if names != nil {
				name = names[i]
			}
			o.said.Add(notice.Notice{Kind: notice.Dropped, Where: where, What: fmt.Sprintf("the column %q is not read", name), Option: fmt.Sprintf("--kinds %d=weight or %d=time reads it", i+1, i+1)})
		}
	case n < 2:
		e.kinds = nil // the error comes with the line
	case n > 2:
		return e, false, f.Wrong("line %d: there are more columns than the format has, %d; an edge is two node ids and maybe a weight and a time: --kinds 3=weight,4=skip says what the columns are, and --format adjlist reads a node and its neighbours", e.start, n)
	}
	return e, undirected, nil
}

// adjacency returns an error for a list that seems to have a node and its neighbours in each line, all with two.
func (l *edgeList) adjacency(f *tabular.File, e edgeFormat, o Options) error {
	n := len(l.src)
	if !e.either || l.w == nil || n < 3 || o.Relabel || len(o.Kinds) > 0 || e.named {
		return nil
	}
	ids := map[int32]bool{}
	for i, u := range l.src {
		if i > 0 && u != l.src[i-1]+1 || n > 1<<20 {
			return nil
		}
		ids[u], ids[l.dst[i]] = true, true
	}
	for _, w := range l.w {
		if w != float32(int32(w)) || !ids[int32(w)] {
			return nil
		}
	}
	return f.Wrong("each line seems to have a node and two neighbours: --format adjlist reads it so, and --kinds 3=weight reads edges with weights")
}

// snapComment matches SNAP's comment with the size of a graph. For an undirected graph, its number
// of edges may count both directions.
var snapComment = regexp.MustCompile(`(?m)^[#%].*\bNodes:\s*([0-9]{1,12})\s+Edges:\s*([0-9]{1,15})\b`)

// declared returns the numbers of nodes and edges that a comment declares, 0 if there is none.
func declared(head []byte) (nodes, numEdges int64) {
	if m := snapComment.FindSubmatch(head); m != nil {
		nodes, _ = tabular.Whole(m[1])
		numEdges, _ = tabular.Whole(m[2])
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

var _ Reader = jlgReader{}

// jlgReader reads the files of Julia's Graphs package (SNAPDatasets): a header
// "nodes,edges,u|d,name" and edges counted from 1.
type jlgReader struct{}

func (jlgReader) Name() string { return "jlg" }

func (jlgReader) About() string {
	return "an edge list of Julia's Graphs.jl: a line nodes,edges,u|d,name and edges counted from 1"
}

func (jlgReader) detect(s *source) bool {
	line, _ := firstLine(s.Head)
	_, _, _, ok := jlgHeader(line)
	return !s.Dir && ok
}

func jlgHeader(line []byte) (nodes, numEdges int64, undirected, ok bool) {
	parts := bytes.SplitN(line, []byte{','}, 4)
	if len(parts) < 3 {
		return 0, 0, false, false
	}
	nodes, okN := tabular.Whole(parts[0])
	numEdges, okE := tabular.Whole(parts[1])
	kind := string(bytes.TrimSpace(parts[2]))
	return nodes, numEdges, kind == "u", okN && okE && (kind == "u" || kind == "d")
}

func (jlgReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	f, err := s.Open("", "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	line, _ := firstLine(s.Head)
	nodes, count, undirected, ok := jlgHeader(line)
	at := startLine(s.Head)
	if !ok {
		return nil, f.Wrong("line %d: %s is not the header nodes,edges,u|d,name", at, tabular.Shown(line))
	}
	return readCounted(ctx, f, edgeFormat{base: 1, noWeights: true, skip: at}, at, nodes, count, undirected, o)
}

// readCounted reads edges after a header that declares the numbers of nodes and edges.
func readCounted(ctx context.Context, f *tabular.File, e edgeFormat, line, nodes, count int64, undirected bool, o Options) (*dataset.Dataset, error) {
	if nodes < 0 || nodes > MaxNodes || count < 0 {
		return nil, f.Wrong("line %d: the header says %d nodes and %d edges; there can be %d nodes", line, nodes, count, MaxNodes)
	}
	if o.Relabel { // the header counts the nodes
		o.note("%s: --relabel changes nothing, because the header counts the nodes", filepath.Base(f.Path))
	}
	o.Relabel = false
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
	if e.base == 1 {
		o.fromOne(f, nodes)
	}
	list := &edges{nodes: int(nodes), src: l.src, dst: l.dst, w: l.w, undirected: undirected}
	return list.dataset(o)
}

// fromOne says that a file counts its nodes from 1.
func (o *Options) fromOne(f *tabular.File, nodes int64) {
	o.said.Add(notice.Notice{Kind: notice.Renumbered, Where: filepath.Base(f.Path), What: "nodes are counted from 1 in the file, and from 0 in the dataset", Count: nodes})
}

var _ Reader = dimacsReader{}

// dimacsReader reads the graphs of the DIMACS challenges and of PACE: comments "c", a line "p KIND
// nodes edges", and edges counted from 1, each optionally after "a" or "e".
type dimacsReader struct{}

func (dimacsReader) Name() string { return "dimacs" }

func (dimacsReader) About() string {
	return `a DIMACS or PACE .gr file: "p sp|tw|edge nodes edges", then edges counted from 1`
}

func (dimacsReader) detect(s *source) bool {
	_, _, _, at := dimacsHeader(s.Head)
	return !s.Dir && at > 0
}

// dimacsHeader finds the line "p KIND nodes edges"; at is its number, 0 if there is no such line.
func dimacsHeader(head []byte) (kind string, nodes, numEdges, at int64) {
	b := tabular.Block{Text: head, Line: 1}
	done := errors.New("found")
	_ = b.Lines(func(line []byte, number int64) error {
		word, rest := tabular.Field(line)
		switch {
		case tabular.Comment(line) || string(word) == "c":
			return nil
		case string(word) != "p":
			return done
		}
		var texts [3][]byte
		for i := range texts {
			texts[i], rest = tabular.Field(rest)
		}
		n, okN := tabular.Whole(texts[1])
		m, okM := tabular.Whole(texts[2])
		if okN && okM {
			kind, nodes, numEdges, at = string(texts[0]), n, m, number
		}
		return done
	})
	return kind, nodes, numEdges, at
}

func (dimacsReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
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
		return nil, f.Wrong("line %d: the problem is %s; sp (arcs with lengths), edge, col and tw (edges) are read", at, tabular.Shown([]byte(kind)))
	}
	// Arcs (a) are directed; edges of the other kinds are undirected.
	return readCounted(ctx, f, e, at, nodes, count, e.mark != 'a', o)
}
