package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// relationRow is a relation and its number of edges, nil if only the parts of a divided dataset have the edges, in the
// JSON result of gnb data info.
type relationRow struct {
	graphops.Relation
	Edges *int64 `json:"edges,omitempty"`
	// Features is the number of features of an edge.
	Features int `json:"features,omitempty"`
}

func (r relationRow) edges() int64 {
	if r.Edges == nil {
		return 0
	}
	return *r.Edges
}

// mostRelations is the number of relations that gnb data info prints; --json has all.
const mostRelations = 40

// schemaTable returns the types of nodes and the relations of a dataset as text, "" without types. The
// relations with the most edges come first where not all are shown.
func schemaTable(ds *dataset.Dataset, rows []relationRow) string {
	schema := ds.Schema()
	if schema == nil {
		return ""
	}
	var s strings.Builder
	width := len("node type")
	for _, n := range schema.Nodes {
		width = max(width, len(n.Name))
	}
	fmt.Fprintf(&s, "  %-*s %11s %9s %8s\n", width, "node type", "nodes", "features", "classes")
	for t, n := range schema.Nodes {
		cols := ds.FeatureDim()
		switch {
		case ds.NodeFeatures != nil:
			cols = ds.NodeFeatures[t].Cols()
		case slices.ContainsFunc(ds.Meta.NodeTypes, func(n dataset.NodeType) bool { return n.FeatureDim > 0 }): // the parts have rows of one width
			cols = ds.Meta.NodeTypes[t].FeatureDim
		}
		fmt.Fprintf(&s, "  %-*s %11d %9s %8s\n", width, n.Name, n.Count, orNone(cols), orNone(ds.ClassesOf(t)))
	}
	shown := rows
	if len(rows) > mostRelations {
		shown = slices.Clone(rows)
		slices.SortStableFunc(shown, func(a, b relationRow) int { return cmp.Compare(b.edges(), a.edges()) })
		shown = shown[:mostRelations]
	}
	width = len("relation")
	for _, r := range shown {
		width = max(width, len(r.String()))
	}
	features := func(cols string) string { return "" }
	if ds.EdgeFeatureDim() > 0 {
		features = func(cols string) string { return fmt.Sprintf(" %9s", cols) }
	}
	fmt.Fprintf(&s, "  %-*s %11s%s\n", width, "relation", "edges", features("features"))
	for _, r := range shown {
		edges := "in the parts"
		if r.Edges != nil {
			edges = fmt.Sprint(*r.Edges)
		}
		fmt.Fprintf(&s, "  %-*s %11s%s\n", width, r.String(), edges, features(orNone(r.Features)))
	}
	if more := len(rows) - len(shown); more > 0 {
		fmt.Fprintf(&s, "  and %d relations with fewer edges\n", more)
	}
	return s.String()
}

func orNone(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// relationRows returns the relations of a dataset with their edges; nil without types.
func relationRows(ds *dataset.Dataset) []relationRow {
	schema := ds.Schema()
	if schema == nil {
		return nil
	}
	rows := make([]relationRow, len(schema.Relations))
	for i, r := range schema.Relations {
		rows[i].Relation, rows[i].Features = r, ds.EdgeFeatureDimOf(i)
	}
	if ds.Graph != nil {
		for i, n := range ds.Graph.RelationEdges() {
			rows[i].Edges = &n
		}
	}
	return rows
}
