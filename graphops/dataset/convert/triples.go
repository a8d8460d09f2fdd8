package convert

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = triplesReader{}

// triplesReader reads knowledge graphs: files of triples, one a line: head, relation and tail, with tabs
// between them. Entities and relations are numbered in the order in which they first occur, as PyG numbers
// them, and the files become a split of the edges. A first line of names, quotes around all fields, commas or
// blanks instead of tabs, and blanks around words are recognised, and said.
type triplesReader struct{}

const entityType = "entity"

// tripleParts are the names of the files, without their endings, of each split of edges.
var tripleParts = []struct {
	split string
	bases []string
}{{"train", []string{"train"}}, {"val", []string{"valid", "val", "dev"}}, {"test", []string{"test"}}}

// Folder implements [folderReader].
func (triplesReader) Folder() bool { return true }

func (triplesReader) Name() string { return "triples" }

func (triplesReader) About() string {
	return "a knowledge graph: train.txt, valid.txt and test.txt of triples (head, relation, tail, with tabs between them)"
}

func (triplesReader) detect(s *source) bool {
	names := tripleFiles(s)
	if names[0] == "" || names[1] == "" && names[2] == "" {
		return false
	}
	line, err := typedFirstLine(s, names[0])
	if err != nil {
		return false
	}
	l := layoutOf(string(line))
	n := len(l.split(string(line)))
	return n == 3 || l.separator == "\t" && n > 3
}

// layout is how a file of triples is written.
type layout struct {
	separator string // a tab, a comma, or "" for blanks
	quoted    bool   // each field of the first line is in quotes
	at        [3]int // the columns of head, relation and tail
	columns   int
	unread    []int // further columns
}

// layoutOf recognises the separator and quotes by the first line.
func layoutOf(line string) layout {
	l := layout{at: [3]int{0, 1, 2}, columns: 3}
	switch {
	case strings.Contains(line, "\t"):
		l.separator = "\t"
	case strings.Count(line, ",") >= 2:
		l.separator = ","
	}
	fields := l.split(line)
	l.quoted = len(fields) > 2 && !slices.ContainsFunc(fields, func(f string) bool { return !isQuoted(f) })
	return l
}

func isQuoted(f string) bool {
	return len(f) >= 2 && strings.HasPrefix(f, `"`) && strings.HasSuffix(f, `"`)
}

// split returns the fields of a line, without blanks around them.
func (l *layout) split(line string) []string {
	if l.separator == "" {
		return strings.Fields(line)
	}
	fields := strings.Split(line, l.separator)
	for i, f := range fields {
		fields[i] = strings.TrimSpace(f)
	}
	return fields
}

// unquote removes the quotes around a field.
func unquote(f string) string {
	if isQuoted(f) {
		f = strings.ReplaceAll(f[1:len(f)-1], `""`, `"`)
	}
	return strings.TrimSpace(f)
}

// tripleFiles returns the file of each split, "" if there is none.
func tripleFiles(s *source) []string {
	names := make([]string, len(tripleParts))
	for i, p := range tripleParts {
		for _, base := range p.bases {
			if names[i] == "" {
				names[i] = s.Find(base+".txt", base+".tsv", base+".txt.gz", base+".tsv.gz", base)
			}
		}
	}
	return names
}

// triples are the edges of a knowledge graph; a triple's time is the number of its file.
type triples struct {
	src, dst            []int32
	kinds               []uint16
	files               []int64
	entities, relations numbering
	plain               bool // neither options nor a first line name the columns
}

func (triplesReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	switch {
	case o.Undirected:
		return nil, tabular.Errorf("%s: the reverse of a triple is of another relation; convert without --undirected, and add reverse relations with Graph.WithReverses", s.Path)
	case o.LargestComponent || o.Relabel || o.EdgeFeatures != "" || o.EdgeTimes != "":
		return nil, tabular.Errorf("%s: the format triples has none of --largest-component, --relabel, --edge-features and --edge-times", s.Path)
	}
	l := &triples{entities: newNumbering(), relations: newNumbering(), plain: len(o.Kinds) == 0}
	for i, name := range tripleFiles(s) {
		switch {
		case name == "" && i == 0:
			return nil, tabular.Errorf("%s: train.txt is missing: it holds the triples to train on", s.Path)
		case name == "":
			continue
		}
		if err := l.read(ctx, s, name, int64(i), o); err != nil {
			return nil, err
		}
	}
	if err := l.checkOrder(s, o); err != nil {
		return nil, err
	}
	return l.dataset(s, o)
}

// place sets the columns by the first line of a file, if it names them, and by the options.
func (l *layout) place(first []string, o Options) (header bool, err error) {
	names := make([]string, len(first))
	for i, f := range first {
		names[i] = unquote(f)
	}
	kinds, header := columns.TripleColumns(names)
	switch {
	case o.Header == "no":
		kinds, header = nil, false
	case o.Header == "yes" && !header:
		kinds, header = nil, true
	}
	if kinds == nil {
		kinds = make([]columns.Kind, len(first))
		copy(kinds, []columns.Kind{columns.Source, columns.Relation, columns.Target})
		names = nil
	}
	for i := range kinds {
		name := strconv.Itoa(i + 1)
		if k := o.columnGuide().KindOf("triples", name); k != "" {
			kinds[i] = k
		} else if names != nil {
			if k = o.columnGuide().KindOf("triples", names[i]); k != "" {
				kinds[i] = k
			}
		}
	}
	l.columns = len(kinds)
	for part, k := range []columns.Kind{columns.Source, columns.Relation, columns.Target} {
		if l.at[part] = slices.Index(kinds, k); l.at[part] < 0 {
			return header, fmt.Errorf("has no column that is the %s of the triples; --kinds 1=source,2=relation,3=target names the columns", []string{"head", "relation", "tail"}[part])
		}
	}
	for i, k := range kinds {
		switch {
		case slices.Contains(l.at[:], i):
		case k == "":
			return header, fmt.Errorf("has %d fields; a triple is a head, a relation and a tail: --kinds %d=skip leaves column %d out", len(kinds), i+1, i+1)
		default:
			l.unread = append(l.unread, i)
		}
	}
	return header, nil
}

// say reports how a file is written.
func (l *layout) say(name string, header, trimmed, lines int64, said notice.Func) {
	say := func(kind notice.Kind, count int64, option, format string, args ...any) {
		said.Add(notice.Notice{Kind: kind, Where: name, What: fmt.Sprintf(format, args...), Count: count, Option: option})
	}
	if header > 0 {
		say(notice.Guessed, header, "--header no reads it as a triple", "the first line names the columns")
	}
	if l.separator != "\t" {
		say(notice.Guessed, lines, "", "%s separate the columns, and not tabs", map[string]string{",": "commas", "": "blanks"}[l.separator])
	}
	if l.quoted {
		say(notice.Guessed, lines, "", "quotes around words do not belong to them")
	}
	if trimmed > 0 {
		say(notice.Dropped, trimmed, "", "blanks around words of these lines")
	}
	if l.at != [3]int{0, 1, 2} {
		say(notice.Guessed, lines, "--kinds 1=source,2=relation,3=target", "head, relation and tail are the columns %d, %d and %d", l.at[0]+1, l.at[1]+1, l.at[2]+1)
	}
	for _, i := range l.unread {
		say(notice.Dropped, lines, "", "column %d is not read", i+1)
	}
}

func (l *triples) read(ctx context.Context, s *source, name string, file int64, o Options) error {
	f, err := s.Open(name, "")
	if err != nil {
		return err
	}
	defer f.Close()
	var (
		lines            = bufio.NewScanner(f)
		how              layout
		number, triples  int64
		headers, trimmed int64
		fields           []string
	)
	for lines.Scan() {
		number++
		if number%(1<<12) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line := strings.TrimSuffix(lines.Text(), "\r")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if fields == nil { // the first line
			how = layoutOf(line)
			fields = how.split(line)
			if len(fields) < 3 {
				return wrong(s, name, "line %d has %s; a triple is a head, a relation and a tail, not empty, with tabs between them", number, phrase.Count(len(fields), "field"))
			}
			header, err := how.place(fields, o)
			if err != nil {
				return wrong(s, name, "line %d %w", number, err)
			}
			if header {
				headers++
				continue
			}
		}
		fields = how.split(line)
		if len(fields) != how.columns {
			return wrong(s, name, "line %d has %s, and the first line has %d; a triple is a head, a relation and a tail, not empty, with tabs between them", number, phrase.Count(len(fields), "field"), how.columns)
		}
		if how.separator != "" {
			for _, part := range strings.Split(line, how.separator) {
				if part != strings.TrimSpace(part) {
					trimmed++
					break
				}
			}
		}
		var words [3]string
		for part, i := range how.at {
			if words[part] = fields[i]; how.quoted {
				words[part] = unquote(fields[i])
			}
			if words[part] == "" {
				return wrong(s, name, "line %d has an empty field; a triple is a head, a relation and a tail, not empty, with tabs between them", number)
			}
		}
		head := l.entities.number([]byte(words[0]))
		kind := l.relations.number([]byte(words[1]))
		tail := l.entities.number([]byte(words[2]))
		if kind >= graphops.MaxRelations || len(l.entities.names) > MaxNodes || len(l.src) > 1<<31-2 {
			return wrong(s, name, "line %d is one too many: a graph has at most %d relations, and %d nodes and edges", number, graphops.MaxRelations, MaxNodes)
		}
		l.src, l.dst = append(l.src, int32(head)), append(l.dst, int32(tail))
		l.kinds, l.files = append(l.kinds, uint16(kind)), append(l.files, file)
		triples++
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return wrong(s, name, "line %d has more than %d bytes", number+1, bufio.MaxScanTokenSize)
	} else if err != nil {
		return err
	}
	if triples == 0 {
		return wrong(s, name, "it has no triples")
	}
	how.say(name, headers, trimmed, triples, o.said)
	l.plain = l.plain && how.at == [3]int{0, 1, 2} && headers == 0
	return nil
}

// checkOrder returns an error if the second column has entities and the third relations, as some tools write them. With
// fewer signs of that it says so.
func (l *triples) checkOrder(s *source, o Options) error {
	if !l.plain || len(l.relations.names) < 2 {
		return nil
	}
	heads, tails := make([]bool, len(l.entities.names)), make([]bool, len(l.entities.names))
	for i := range l.src {
		heads[l.src[i]], tails[l.dst[i]] = true, true
	}
	both, distinct, shared := 0, 0, 0
	for v := range heads {
		if tails[v] {
			distinct++
			if heads[v] {
				both++
			}
		}
	}
	for _, name := range l.relations.names {
		if v, ok := l.entities.of[name]; ok && heads[v] {
			shared++
		}
	}
	relations := len(l.relations.names)
	if both == 0 && 2*shared > relations && distinct <= relations {
		return tabular.Errorf("%s: the words of the second column are also heads, and those of the third never: the columns seem to be head, tail and relation; --kinds 2=target,3=relation reads them so, and --kinds 2=relation reads them as they are", s.Path)
	}
	if distinct < relations && relations > 20 {
		o.said.Add(notice.Notice{Kind: notice.Guessed, Where: filepath.Base(s.Path), What: fmt.Sprintf("the second column is the relation, although it has more different words than the %d of the third", distinct), Count: int64(relations), Option: "--kinds 2=target,3=relation turns them"})
	}
	return nil
}

func (l *triples) dataset(s *source, o Options) (*dataset.Dataset, error) {
	schema := &graphops.Schema{Nodes: []graphops.NodeType{{Name: entityType, Count: len(l.entities.names)}}}
	for _, name := range l.relations.names {
		schema.Relations = append(schema.Relations, graphops.Relation{Src: entityType, Name: name, Dst: entityType})
	}
	// Equal triples of one file merge, as edges of one time do; those of different files stay apart.
	g, err := graphops.FromEdgesWith(schema.Nodes[0].Count, l.src, l.dst, graphops.EdgeData{Types: l.kinds, Times: l.files}, graphops.BuildOptions{Threads: o.Threads})
	if err != nil {
		return nil, tabular.Errorf("reading %s: %w", s.Path, err)
	}
	if more := int64(len(l.src)) - g.NumEdges(); more > 0 {
		o.said.Add(notice.Notice{Kind: notice.Merged, Where: filepath.Base(s.Path), What: fmt.Sprintf("%d of the triples repeat an earlier one of their file, and are dropped", more), Count: more, Of: int64(len(l.src))})
	}
	splits := map[string][]int64{}
	for e, file := range g.EdgeTimes {
		name := tripleParts[file].split
		splits[name] = append(splits[name], int64(e))
	}
	if g, err = g.WithEdgeData(nil, nil).WithTypes(schema, g.EdgeTypes); err != nil {
		return nil, tabular.Errorf("reading %s: %w", s.Path, err)
	}
	s.Keep(dataset.EntityNames, l.entities.names)
	d := &dataset.Dataset{Graph: g, Splits: map[string][]int32{}, EdgeSplits: splits}
	for _, note := range d.EdgeOverlaps().Notes() {
		o.said.Tell("%s: %s", s.Path, note)
	}
	return d, nil
}
