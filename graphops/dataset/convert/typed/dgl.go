package typed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/dataset/convert/input"
)

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

// Folder implements [convert.FolderReader].
func (dglReader) Folder() bool { return true }

func (dglReader) Detect(s *convert.Source) bool {
	if !slices.Contains(s.Files, metaFile) {
		return false
	}
	text, err := readMeta(s)
	return err == nil && bytes.Contains(text, []byte("node_data"))
}

func readMeta(s *convert.Source) ([]byte, error) {
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

// dglTable is an entry of node_data or edge_data.
type dglTable struct {
	file  string
	names []string // the type, or the relation's three names
	// names of the columns
	graph, id, src, dst string
}

func (r dglReader) Read(ctx context.Context, s *convert.Source, o convert.Options) (*dataset.Dataset, error) {
	if err := refuse(s, r.Name(), o); err != nil {
		return nil, err
	}
	text, err := readMeta(s)
	if err != nil {
		return nil, err
	}
	nodes, edges, name, err := parseMeta(string(text))
	if err != nil {
		return nil, wrong(s, metaFile, "%w", err)
	}
	b, l := &builder{}, &tableLoader{ctx: ctx, s: s, o: o, ids: map[string]*input.Nodes{}, lists: true}
	for _, t := range nodes {
		if l.ids[t.names[0]] != nil {
			return nil, wrong(s, metaFile, "it has two tables of the node type %q", t.names[0])
		}
		n, err := l.nodes(t.file, t.names[0], input.NodeColumns{ID: strings.ToLower(t.id), Plain: true, Lists: true, Graph: t.graph}, true)
		if err != nil {
			return nil, err
		}
		b.nodes = append(b.nodes, n)
	}
	for _, t := range edges {
		l.graph = t.graph
		e, err := l.edges(t.file, graphops.Relation{Src: t.names[0], Name: t.names[1], Dst: t.names[2]}, strings.ToLower(t.src), strings.ToLower(t.dst))
		if err != nil {
			return nil, err
		}
		b.edges = append(b.edges, e)
	}
	d, err := l.dataset(b)
	if err == nil && convert.CheckName(name) == nil {
		d.Meta.Name = name
	}
	return d, err
}

// parseMeta reads meta.yaml.
func parseMeta(text string) (nodes, edges []dglTable, name string, err error) {
	v, err := parseYAML(text)
	if err != nil {
		return nil, nil, "", err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, nil, "", fmt.Errorf("it is a list; it has the keys dataset_name, node_data and edge_data")
	}
	name, _ = m["dataset_name"].(string)
	if sep, ok := m["separator"]; ok && !slices.Contains([]any{",", ";", "\t", `\t`, ""}, sep) {
		return nil, nil, "", fmt.Errorf("the separator is %q; tables with commas, semicolons or tabs are read", sep)
	}
	if nodes, err = metaTables(m, "node_data", "ntype", []string{"_V"}); err != nil {
		return nil, nil, "", err
	}
	edges, err = metaTables(m, "edge_data", "etype", []string{"_V", "_E", "_V"})
	return nodes, edges, name, err
}

// metaTables reads a list of tables; names is the type of a table that names none.
func metaTables(m map[string]any, key, typeKey string, names []string) (all []dglTable, err error) {
	list, ok := m[key].([]any)
	if !ok || len(list) == 0 {
		return nil, fmt.Errorf("it has no list %s of tables", key)
	}
	for i, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("entry %d of %s is no mapping with a file_name", i, key)
		}
		text := func(name, otherwise string) string {
			if v, ok := fields[name].(string); ok && v != "" {
				return v
			}
			return otherwise
		}
		t := dglTable{file: text("file_name", ""), names: names, graph: text("graph_id_field", "graph_id"), id: text("node_id_field", "node_id"), src: text("src_id_field", "src_id"), dst: text("dst_id_field", "dst_id")}
		if t.file == "" || !filepath.IsLocal(t.file) {
			return nil, fmt.Errorf("entry %d of %s has the file_name %q; it is a file of the folder", i, key, t.file)
		}
		switch v := fields[typeKey].(type) {
		case nil:
		case string:
			if len(names) != 1 {
				return nil, fmt.Errorf("entry %d of %s has the %s %q; it is a list of a source type, a name and a destination type", i, key, typeKey, v)
			}
			t.names = []string{v}
		case []any:
			t.names = nil
			for _, x := range v {
				word, ok := x.(string)
				if !ok {
					return nil, fmt.Errorf("entry %d of %s has the %s %v, which is no list of names", i, key, typeKey, v)
				}
				t.names = append(t.names, word)
			}
		}
		if len(t.names) != len(names) {
			return nil, fmt.Errorf("entry %d of %s has the %s %q; it has %d names", i, key, typeKey, t.names, len(names))
		}
		all = append(all, t)
	}
	return all, nil
}
