package convert

import (
	"context"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/convert/input"
	"github.com/graphnb/graphnb/graphops/dataset/internal/scan"
)

// csvReader reads a folder of two tables whose first lines name the columns. Each line of nodes.csv
// is a node with these columns: id, a unique word or number; label (optional), a word or a class
// id, empty if unknown; split (optional): train, val, test or empty. Every other column is a
// feature, a finite number. Node k is line k of the table, counted from 0. Each line of edges.csv
// is an edge: source, target and optionally weight; other columns are ignored, unless
// Options.EdgeFeatures or EdgeTimes name them.
//
// Labels that are words become classes in alphabetical order, listed in Metadata.ClassNames; class
// ids stay as they are.
type csvReader struct{}

func (csvReader) Name() string { return "csv" }

// Folder implements [FolderReader].
func (csvReader) Folder() bool { return true }

func (csvReader) About() string {
	return "a folder of two tables: nodes.csv (id, maybe label and split, every other column a feature) and edges.csv (source, target, maybe weight; --edge-features and --edge-times name others)"
}

func (csvReader) Detect(s *Source) bool {
	return s.Find(input.CSVNames("nodes")...) != "" && s.Find(input.CSVNames("edges")...) != ""
}

func (csvReader) Read(ctx context.Context, s *Source, o Options) (*dataset.Dataset, error) {
	t, err := s.Table("nodes", "the nodes, one a line")
	if err != nil {
		return nil, err
	}
	defer t.Close()
	nodes, err := t.Nodes(ctx, input.NodeColumns{NoFeatures: o.Features != ""})
	if err != nil {
		return nil, err
	}
	e, err := s.csvEdges(ctx, nodes, o)
	if err != nil {
		return nil, err
	}
	nodes.Forget()
	d, err := e.dataset(o)
	if err != nil {
		return nil, err
	}
	d.Labels, d.Meta.NumClasses, d.Meta.ClassNames = nodes.Labels, input.Classes(nodes.Labels), nodes.ClassNames
	for k, ids := range nodes.Splits {
		if len(ids) > 0 {
			d.Splits[input.SplitNames[k]] = ids
		}
	}
	if len(nodes.Features) > 0 {
		d.Features = &dataset.Matrix{Rows: d.Nodes(), Cols: len(nodes.Features), F32: nodes.X}
		o.note("the features are %s", strings.Join(nodes.Features, ", "))
	} else if o.Features == "" {
		o.note("%s has no node features; --features makes some", s.Path)
	}
	if len(d.Meta.ClassNames) > 0 {
		o.note("the classes are %s", strings.Join(d.Meta.ClassNames, ", "))
	}
	return d, nil
}

// csvEdges reads edges.csv, whose endpoints are ids of nodes.
func (s *Source) csvEdges(ctx context.Context, ids *input.Nodes, o Options) (*edges, error) {
	t, err := s.Table("edges", "the edges, one a line")
	if err != nil {
		return nil, err
	}
	defer t.Close()
	ends := [2]int{t.Column("source", "src", "from"), t.Column("target", "dst", "to")}
	weight := t.Column("weight", "w")
	if ends[0] < 0 || ends[1] < 0 {
		return nil, t.Wrong(`line 1: the columns are %s; an edge has a "source" and a "target", and maybe a "weight"`, input.ShownNames(t.Header))
	}
	more, err := findEdgeColumns(t, o, ends[0], ends[1], weight)
	if err != nil {
		return nil, err
	}
	var list [2]input.Pile[int32]
	var w input.Pile[float32]
	err = t.Each(ctx, func(record []string) error {
		for k, i := range ends {
			v, ok := ids.Find(record[i])
			if !ok {
				return t.At("the %s %s is the id of no node", t.Header[i], scan.Shown([]byte(record[i])))
			}
			list[k].Add(v)
		}
		if weight >= 0 {
			x, ok := scan.Float([]byte(record[weight]))
			if !ok || x != x || x < 0 {
				return t.At("the weight is %s; it is a finite number and not negative", scan.Shown([]byte(record[weight])))
			}
			w.Add(x)
		}
		return more.add(record)
	})
	switch {
	case err != nil:
		return nil, err
	case list[0].N == 0:
		return nil, t.Wrong("it has no edges below its first line")
	}
	for _, name := range t.Header {
		if i := t.Column(name); i != ends[0] && i != ends[1] && i != weight && i != more.time && !slices.Contains(more.features, i) {
			o.note("%s: the column %s is not read; --edge-features or --edge-times can name it", t.Path, scan.Shown([]byte(name)))
		}
	}
	if names := more.names(); names != "" {
		o.note("the features of the edges are %s", names)
	}
	e := &edges{nodes: ids.Len(), src: list[0].Flat(), dst: list[1].Flat(), w: w.Flat()}
	more.give(e)
	return e, nil
}
