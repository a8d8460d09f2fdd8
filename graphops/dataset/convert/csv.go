package convert

import (
	"context"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = csvReader{}

// csvReader reads a folder of two tables whose first lines name the columns. Each line of nodes.csv
// is a node with these columns: id, a unique word or number; label (optional), a word or a class
// id, empty if unknown; split (optional): train, val, test or empty. Every other column is a
// feature, a finite number. Node k is line k of the table, counted from 0. Each line of edges.csv
// is an edge: source, target and optionally weight; other columns are ignored, unless
// Options.EdgeFeatures or EdgeTimes name them. Package columns says which other names are recognised.
//
// Labels that are the whole numbers from 0 on are classes; others become classes in their order, listed in
// Metadata.ClassNames.
type csvReader struct{}

func (csvReader) Name() string { return "csv" }

// Folder implements [folderReader].
func (csvReader) Folder() bool { return true }

func (csvReader) About() string {
	return "a folder of two tables: nodes.csv (id, maybe label and split, every other column a feature) and edges.csv (source, target, maybe weight; --edge-features and --edge-times name others)"
}

func (csvReader) detect(s *source) bool {
	return s.Find(tabular.CSVNames("nodes")...) != "" && s.Find(tabular.CSVNames("edges")...) != ""
}

func (csvReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	open := func() (*tabular.CSVFile, error) { return s.Table("nodes", "the nodes, one a line") }
	nodes, err := tabular.ReadNodes(ctx, open, tabular.NodeColumns{Guide: o.columnGuide(), Table: "nodes", NoFeatures: o.Features != "", Overlap: o.OverlappingSplits})
	if err != nil {
		return nil, err
	}
	e, names, err := s.csvEdges(ctx, nodes, o)
	if err != nil {
		return nil, err
	}
	nodes.Forget()
	d, err := e.dataset(o)
	if err != nil {
		return nil, err
	}
	d.Labels, d.Meta.NumClasses, d.Meta.ClassNames, d.Meta.EdgeFeatureNames = nodes.Labels, nodes.Classes, nodes.ClassNames, names
	for name, ids := range nodes.Splits {
		d.Splits[name] = ids
	}
	if len(nodes.Features) > 0 {
		d.Features = &dataset.Matrix{Rows: d.Nodes(), Cols: nodes.Cols, F32: nodes.X}
		d.Meta.FeatureNames = dataset.KeepNames(nodes.Features, s.Base(""), o.said)
		o.note("the features are %s", strings.Join(nodes.Features, ", "))
	} else if o.Features == "" {
		o.note("%s has no node features; --features makes some", s.Path)
	}
	if len(d.Meta.ClassNames) > 0 {
		o.note("the classes are %s", strings.Join(d.Meta.ClassNames, ", "))
	}
	return d, nil
}

// csvEdges reads edges.csv, whose endpoints are ids of nodes, and returns the names of its features too.
func (s *source) csvEdges(ctx context.Context, ids *tabular.Nodes, o Options) (*edges, []string, error) {
	open := func() (*tabular.CSVFile, error) { return s.Table("edges", "the edges, one a line") }
	c, err := tabular.LookEdges(ctx, open, edgeAsk(o, "edges"))
	if err != nil {
		return nil, nil, err
	}
	t := c.CSVFile
	defer t.Close()
	for k, i := range c.Ends {
		if _, ok := ids.Find(c.Names[i]); c.Kinds[i].Why == "by its place" && ok {
			return nil, nil, t.Wrong("line 1: it has no names of columns, but the id %s of a node as its %s; a first line source,target names them", tabular.Shown([]byte(c.Names[i])), [2]string{"source", "target"}[k])
		}
	}
	var list [2]tabular.Pile[int32]
	err = c.Each(ctx, func(record []string) error {
		for k, i := range c.Ends {
			v, ok := ids.Find(record[i])
			if !ok {
				return t.At("the %s %s is the id of no node", t.Header[i], tabular.Shown([]byte(record[i])))
			}
			list[k].Add(v)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, nil, err
	case list[0].N == 0:
		return nil, nil, t.Wrong("it has no edges below its first line")
	}
	if names := c.Columns(); len(names) > 0 {
		o.note("the features of the edges are %s", strings.Join(names, ", "))
	}
	e := &edges{nodes: ids.Len(), src: list[0].Flat(), dst: list[1].Flat(), w: c.Weights.Flat(), times: c.Times.Flat()}
	if names := c.Columns(); len(names) > 0 {
		e.x = &graphops.EdgeFeatures{Cols: len(names), F32: c.X.Flat()}
	}
	return e, c.Columns(), nil
}

// edgeAsk is what the options ask of a table of edges.
func edgeAsk(o Options, table string) tabular.EdgeAsk {
	a := tabular.EdgeAsk{Guide: o.columnGuide(), Table: table}
	if !isNPY(o.EdgeFeatures) {
		a.Features = o.EdgeFeatures
	}
	if !isNPY(o.EdgeTimes) {
		a.Times = o.EdgeTimes
	}
	return a
}
