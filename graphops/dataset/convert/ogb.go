package convert

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = ogbReader{}

// ogbReader reads the folders that OGB unpacks for node property prediction: raw/edge.csv.gz,
// num-node-list.csv.gz, node-feat.csv.gz (may be missing) and node-label.csv.gz, or raw/data.npz
// and node-label.npz (papers100M), with split/SCHEME/train, valid and test.csv.gz. --name chooses
// between several schemes. Edges are read as listed. OGB's loader adds the opposite edges of the
// products and proteins graphs; use --undirected for that. Folders of many graphs are read as ogb_graphs.go says.
//
// Source: W. Hu et al., Open Graph Benchmark, NeurIPS 2020, arXiv:2005.00687,
// and ogb/io/read_graph_raw.py.
type ogbReader struct{}

func (ogbReader) Name() string { return "ogb" }

// Folder implements [folderReader].
func (ogbReader) Folder() bool { return true }

func (ogbReader) About() string {
	return "an OGB folder: raw/edge.csv.gz (or raw/data.npz), raw/node-label.csv.gz or graph-label.csv.gz, split/SCHEME/train.csv.gz, …"
}

func (ogbReader) detect(s *source) bool {
	return slices.Contains(s.Dirs, "raw") && (slices.Contains(s.Dirs, "split") ||
		s.Find("raw/edge.csv.gz", "raw/edge.csv", "raw/data.npz", "raw/num-node-list.csv.gz", "raw/node-label.csv.gz", "raw/graph-label.csv.gz", "raw/graph-label.csv") != "")
}

func (ogbReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	if isOGBGraphs(s) {
		return ogbGraphs(ctx, s, o)
	}
	scheme, err := s.ogbScheme(o)
	if err != nil {
		return nil, err
	}
	read := ogbText
	if s.Has("raw/data.npz") {
		read = ogbBinary
	}
	d, err := read(ctx, s, o)
	if err != nil {
		return nil, err
	}
	for file, name := range map[string]string{"train": "train", "valid": "val", "test": "test"} {
		if d.Splits[name], err = ogbSplit(ctx, s, path.Join(scheme, file), d.Nodes(), o); err != nil {
			return nil, err
		}
	}
	if d.Features == nil && o.Features == "" {
		o.note("%s has no node features; --features makes some", s.Path)
	}
	return d, nil
}

// ogbScheme returns the folder of the split scheme.
func (s *source) ogbScheme(o Options) (string, error) {
	sub, err := newSource(path.Join(s.Path, "split"), s.Meter)
	if err != nil {
		return "", tabular.Errorf("%s is an OGB folder without split/, which holds the official split", s.Path)
	}
	switch {
	case slices.Contains(sub.Dirs, o.Name):
		return "split/" + o.Name, nil
	case len(sub.Dirs) == 1:
		return "split/" + sub.Dirs[0], nil
	case len(sub.Dirs) == 0:
		return "", tabular.Errorf("%s is empty; it should hold the official split, in a folder with train.csv.gz, valid.csv.gz and test.csv.gz", sub.Path)
	}
	return "", tabular.Errorf("%s holds several splits, %s: --name says which", sub.Path, strings.Join(sub.Dirs, ", "))
}

// csv opens NAME.csv.gz, or NAME.csv if the file has been decompressed.
func (s *source) csv(name, what string) (*tabular.File, error) {
	if !s.Has(name+".csv.gz") && s.Has(name+".csv") {
		return s.Open(name+".csv", what)
	}
	return s.Open(name+".csv.gz", what)
}

func ogbSplit(ctx context.Context, s *source, name string, nodes int, o Options) ([]int32, error) {
	f, err := s.csv(name, "a part of the split")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return tabular.ReadIDs(ctx, f, nodes, o.Threads)
}

// ogbCount reads the number in raw/num-node-list or raw/num-edge-list.
func ogbCount(ctx context.Context, s *source, name, what string, o Options) (int64, error) {
	f, err := s.csv(name, what)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	count, seen := int64(0), false
	err = tabular.ReadWholes(ctx, f, o.Threads, func(number int64, values []int64) error {
		for _, n := range values {
			if seen {
				return f.Wrong("line %d: the folder holds several graphs, and labels of nodes; of many graphs, labels of graphs are read (raw/graph-label.csv.gz)", number)
			}
			if n < 0 {
				return f.Wrong("line %d: the number is %d", number, n)
			}
			count, seen = n, true
		}
		return nil
	})
	if err == nil && !seen {
		err = f.Wrong("it is empty")
	}
	return count, err
}

// ogbText reads the folders of csv.gz files.
func ogbText(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	nodes, err := ogbCount(ctx, s, "raw/num-node-list", "the number of nodes", o)
	if err != nil {
		return nil, err
	}
	if nodes > MaxNodes {
		return nil, tabular.Errorf("%s/raw/num-node-list.csv.gz says %d nodes; node ids are int32, so there can be %d", s.Path, nodes, MaxNodes)
	}
	count := int64(0)
	if s.Find("raw/num-edge-list.csv.gz", "raw/num-edge-list.csv") != "" {
		if count, err = ogbCount(ctx, s, "raw/num-edge-list", "the number of edges", o); err != nil {
			return nil, err
		}
	}
	// The labels come first: they are a small file with a line for each node, which verifies the
	// number of nodes before memory is allocated for it.
	f, err := s.csv("raw/node-label", "the nodes' labels")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := s.needCSV("raw/edge", "the edges"); err != nil {
		return nil, err
	}
	y, err := tabular.ReadTable(ctx, f, true, nodes, o.Threads)
	if err != nil {
		return nil, err
	}
	if int64(y.Rows) != nodes {
		return nil, f.Wrong("it has labels for %d nodes, but num-node-list says %d", y.Rows, nodes)
	}
	d, err := ogbEdges(ctx, s, int(nodes), count, o)
	if err != nil {
		return nil, err
	}
	if err := setColumn(d, y, f.Wrong, o); err != nil {
		return nil, err
	}
	if o.Features == "" && s.Find("raw/node-feat.csv.gz", "raw/node-feat.csv") != "" {
		d.Features, err = ogbFeatures(ctx, s, d.Nodes(), o)
	}
	return d, err
}

func (s *source) needCSV(name, what string) error {
	f, err := s.csv(name, what)
	if err != nil {
		return err
	}
	s.Meter.Total.Add(-f.Size) // the file is opened again later
	return f.Close()
}

func ogbEdges(ctx context.Context, s *source, nodes int, count int64, o Options) (*dataset.Dataset, error) {
	f, err := s.csv("raw/edge", "the edges")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	o.Relabel = false
	l, err := readEdges(ctx, f, edgeFormat{noWeights: true}, o)
	switch {
	case err != nil:
		return nil, err
	case count > 0 && int64(len(l.src)) != count:
		return nil, f.Wrong("it has %d edges, but num-edge-list says %d: it was cut off; fetch it again", len(l.src), count)
	case l.most >= int64(nodes):
		return nil, f.Wrong("an edge names the node %d, but the nodes are 0 to %d", l.most, nodes-1)
	}
	e := &edges{nodes: nodes, src: l.src, dst: l.dst}
	return e.dataset(o)
}

func ogbFeatures(ctx context.Context, s *source, nodes int, o Options) (*dataset.Matrix, error) {
	f, err := s.csv("raw/node-feat", "the nodes' features")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := tabular.ReadTable(ctx, f, false, int64(nodes), o.Threads)
	if err != nil {
		return nil, err
	}
	if t.Rows != nodes {
		return nil, f.Wrong("it has features for %d nodes, but num-node-list says %d", t.Rows, nodes)
	}
	return &dataset.Matrix{Rows: t.Rows, Cols: t.Cols, F32: t.Values}, nil
}

// ogbBinary reads raw/data.npz and raw/node-label.npz.
func ogbBinary(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	lz, err := s.archive("raw/node-label.npz", "the nodes' labels")
	if err != nil {
		return nil, err
	}
	defer lz.Close()
	la, err := lz.array("node_label")
	if err != nil {
		return nil, err
	}
	y, err := la.table()
	if err != nil {
		return nil, err
	}
	z, err := s.archive("raw/data.npz", "the graph")
	if err != nil {
		return nil, err
	}
	defer z.Close()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, err := z.array("edge_index")
	if err != nil {
		return nil, err
	}
	e, err := a.edgeIndex(int64(y.Rows))
	if err != nil {
		return nil, err
	}
	e.nodes = y.Rows
	d, err := e.dataset(o)
	if err != nil {
		return nil, err
	}
	if err := setColumn(d, y, la.wrong, o); err != nil {
		return nil, err
	}
	if o.Features == "" && z.has("node_feat") {
		xa, err := z.array("node_feat")
		if err != nil {
			return nil, err
		}
		cols, values, err := xa.matrix(d.Nodes())
		if err != nil {
			return nil, err
		}
		d.Features = &dataset.Matrix{Rows: d.Nodes(), Cols: cols, F32: values}
	}
	z.sayUnread(o)
	lz.sayUnread(o)
	return d, ctx.Err()
}
