package convert

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = dglReader{}

// dglReader reads the folders of DGL's CSVDataset: meta.yaml names a table for each type of nodes and each relation. Of a
// table of nodes, the column label has the classes, train_mask, val_mask and test_mask are the splits, and every other
// column is a feature, a number or a list of numbers. Types and relations are in the order of meta.yaml, and the nodes of a
// type in ascending order of id, as DGL numbers them. The dataset must have one graph.
//
// Source: docs.dgl.ai, "Loading data from CSV files", and python/dgl/data/csv_dataset_base.py.
type dglReader struct{}

const metaFile = "meta.yaml"

// maxMeta is the largest size of meta.yaml.
const maxMeta = 1 << 20

func (dglReader) Name() string { return "dgl-csv" }

func (dglReader) About() string {
	return "a folder of DGL's CSVDataset: meta.yaml, and the tables of nodes and edges that it names"
}

// Folder implements [folderReader].
func (dglReader) Folder() bool { return true }

func (dglReader) detect(s *source) bool {
	if !slices.Contains(s.Files, metaFile) {
		return false
	}
	text, err := readMeta(s)
	return err == nil && bytes.Contains(text, []byte("node_data"))
}

func readMeta(s *source) ([]byte, error) {
	f, err := s.Open(metaFile, "the names of the tables")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxMeta+1))
	if err == nil && len(text) > maxMeta {
		err = f.Wrong("it is larger than %d bytes; it only names tables", maxMeta)
	}
	return text, err
}

// dglMeta is meta.yaml.
type dglMeta struct {
	Name      string     `yaml:"dataset_name"`
	Separator string     `yaml:"separator"`
	Nodes     []dglTable `yaml:"node_data"`
	Edges     []dglTable `yaml:"edge_data"`
}

// dglTable is an entry of node_data or edge_data.
type dglTable struct {
	File     string   `yaml:"file_name"`
	NodeType string   `yaml:"ntype"`
	EdgeType []string `yaml:"etype"` // source type, name, destination type
	// Names of columns.
	Graph string `yaml:"graph_id_field"`
	ID    string `yaml:"node_id_field"`
	Src   string `yaml:"src_id_field"`
	Dst   string `yaml:"dst_id_field"`
}

func (r dglReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	if err := refuse(s, r.Name(), o); err != nil {
		return nil, err
	}
	text, err := readMeta(s)
	if err != nil {
		return nil, err
	}
	meta, err := parseMeta(text)
	if err != nil {
		return nil, wrong(s, metaFile, "%w", err)
	}
	b, l := &builder{}, &tableLoader{ctx: ctx, s: s, o: o, ids: map[string]*tabular.Nodes{}, lists: true}
	for _, t := range meta.Nodes {
		if l.ids[t.NodeType] != nil {
			return nil, wrong(s, metaFile, "it has two tables of the node type %q", t.NodeType)
		}
		n, err := l.nodes(t.File, t.NodeType, tabular.NodeColumns{ID: strings.ToLower(t.ID), Plain: true, Lists: true, Graph: t.Graph}, true)
		if err != nil {
			return nil, err
		}
		b.nodes = append(b.nodes, n)
	}
	for _, t := range meta.Edges {
		l.graph = t.Graph
		e, err := l.edges(t.File, graphops.Relation{Src: t.EdgeType[0], Name: t.EdgeType[1], Dst: t.EdgeType[2]}, strings.ToLower(t.Src), strings.ToLower(t.Dst))
		if err != nil {
			return nil, err
		}
		b.edges = append(b.edges, e)
	}
	d, err := l.dataset(b)
	if err == nil && CheckName(meta.Name) == nil {
		d.Meta.Name = meta.Name
	}
	return d, err
}

// parseMeta reads meta.yaml.
func parseMeta(text []byte) (*dglMeta, error) {
	m := &dglMeta{}
	if err := yaml.Unmarshal(text, m); err != nil {
		return nil, errors.New(strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")) // on one line
	}
	if !slices.Contains([]string{",", ";", "\t", `\t`, ""}, m.Separator) {
		return nil, fmt.Errorf("the separator is %q; tables with commas, semicolons or tabs are read", m.Separator)
	}
	for k, tables := range [][]dglTable{m.Nodes, m.Edges} {
		key := []string{"node_data", "edge_data"}[k]
		if len(tables) == 0 {
			return nil, fmt.Errorf("it has no list %s of tables", key)
		}
		for i := range tables {
			t := &tables[i]
			if t.File == "" || !filepath.IsLocal(t.File) {
				return nil, fmt.Errorf("entry %d of %s has the file_name %q; it is a file of the folder", i, key, t.File)
			}
			t.NodeType = cmp.Or(t.NodeType, "_V")
			if t.EdgeType == nil {
				t.EdgeType = []string{"_V", "_E", "_V"}
			}
			if len(t.EdgeType) != 3 {
				return nil, fmt.Errorf("entry %d of %s has the etype %q; it has a source type, a name and a destination type", i, key, t.EdgeType)
			}
			t.Graph, t.ID = cmp.Or(t.Graph, "graph_id"), cmp.Or(t.ID, "node_id")
			t.Src, t.Dst = cmp.Or(t.Src, "src_id"), cmp.Or(t.Dst, "dst_id")
		}
	}
	return m, nil
}
