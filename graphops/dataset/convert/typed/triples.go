package typed

import (
	"bufio"
	"bytes"
	"context"
	"errors"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/dataset/convert/input"
)

// triplesReader reads knowledge graphs: files of triples, one a line: head, relation and tail, with tabs
// between them. Entities and relations are numbered in the order in which they first occur, as PyG numbers
// them, and the files become a split of the edges.
type triplesReader struct{}

const entityType = "entity"

// tripleParts are the names of the files, without their endings, of each split of edges.
var tripleParts = []struct {
	split string
	bases []string
}{{"train", []string{"train"}}, {"val", []string{"valid", "val", "dev"}}, {"test", []string{"test"}}}

// Folder implements [convert.FolderReader].
func (triplesReader) Folder() bool { return true }

func (triplesReader) Name() string { return "triples" }

func (triplesReader) About() string {
	return "a knowledge graph: train.txt, valid.txt and test.txt of triples (head, relation, tail, with tabs between them)"
}

func (triplesReader) Detect(s *convert.Source) bool {
	names := tripleFiles(s)
	if names[0] == "" || names[1] == "" && names[2] == "" {
		return false
	}
	line, err := firstLine(s, names[0])
	return err == nil && bytes.Count(line, []byte{'\t'}) == 2
}

// tripleFiles returns the file of each split, "" if there is none.
func tripleFiles(s *convert.Source) []string {
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
}

func (triplesReader) Read(ctx context.Context, s *convert.Source, o convert.Options) (*dataset.Dataset, error) {
	switch {
	case o.Undirected:
		return nil, input.Errorf("%s: the reverse of a triple is of another relation; convert without --undirected, and add reverse relations with Graph.WithReverses", s.Path)
	case o.LargestComponent || o.Relabel || o.EdgeFeatures != "" || o.EdgeTimes != "":
		return nil, input.Errorf("%s: the format triples has none of --largest-component, --relabel, --edge-features and --edge-times", s.Path)
	}
	l := &triples{entities: newNumbering(), relations: newNumbering()}
	for i, name := range tripleFiles(s) {
		switch {
		case name == "" && i == 0:
			return nil, input.Errorf("%s: train.txt is missing: it holds the triples to train on", s.Path)
		case name == "":
			continue
		}
		if err := l.read(ctx, s, name, int64(i)); err != nil {
			return nil, err
		}
	}
	return l.dataset(s, o)
}

func (l *triples) read(ctx context.Context, s *convert.Source, name string, file int64) error {
	f, err := s.Open(name, "")
	if err != nil {
		return err
	}
	defer f.Close()
	lines, number := bufio.NewScanner(f), 0
	for lines.Scan() {
		number++
		if number%(1<<12) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line := bytes.TrimRight(lines.Bytes(), "\r")
		if len(line) == 0 {
			continue
		}
		fields := bytes.Split(line, []byte{'\t'})
		if len(fields) != 3 || len(fields[0]) == 0 || len(fields[1]) == 0 || len(fields[2]) == 0 {
			return wrong(s, name, "line %d has %d fields; a triple is a head, a relation and a tail, not empty, with tabs between them", number, len(fields))
		}
		head := l.entities.number(fields[0])
		kind := l.relations.number(fields[1])
		tail := l.entities.number(fields[2])
		if kind >= graphops.MaxRelations || len(l.entities.names) > convert.MaxNodes || len(l.src) > 1<<31-2 {
			return wrong(s, name, "line %d is one too many: a graph has at most %d relations, and %d nodes and edges", number, graphops.MaxRelations, convert.MaxNodes)
		}
		l.src, l.dst = append(l.src, int32(head)), append(l.dst, int32(tail))
		l.kinds, l.files = append(l.kinds, uint16(kind)), append(l.files, file)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return wrong(s, name, "line %d has more than %d bytes", number+1, bufio.MaxScanTokenSize)
	} else if err != nil {
		return err
	}
	if number == 0 {
		return wrong(s, name, "it has no triples")
	}
	return nil
}

func (l *triples) dataset(s *convert.Source, o convert.Options) (*dataset.Dataset, error) {
	schema := &graphops.Schema{Nodes: []graphops.NodeType{{Name: entityType, Count: len(l.entities.names)}}}
	for _, name := range l.relations.names {
		schema.Relations = append(schema.Relations, graphops.Relation{Src: entityType, Name: name, Dst: entityType})
	}
	// Equal triples of one file merge, as edges of one time do; those of different files stay apart.
	g, err := graphops.FromEdgesWith(schema.Nodes[0].Count, l.src, l.dst, graphops.EdgeData{Types: l.kinds, Times: l.files}, graphops.BuildOptions{Threads: o.Threads})
	if err != nil {
		return nil, input.Errorf("reading %s: %w", s.Path, err)
	}
	if more := int64(len(l.src)) - g.NumEdges(); more > 0 {
		o.Said().Tell("%s: %d of the triples repeat an earlier one of their file, and are dropped", s.Path, more)
	}
	splits := map[string][]int64{}
	for e, file := range g.EdgeTimes {
		name := tripleParts[file].split
		splits[name] = append(splits[name], int64(e))
	}
	if g, err = g.WithEdgeData(nil, nil).WithTypes(schema, g.EdgeTypes); err != nil {
		return nil, input.Errorf("reading %s: %w", s.Path, err)
	}
	s.Keep(dataset.EntityNames, l.entities.names)
	return &dataset.Dataset{Graph: g, Splits: map[string][]int32{}, EdgeSplits: splits}, nil
}
