package explain

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/tables"
)

// Graph explains the answer of a run of graphs.Train for a whole graph, by its id as graphs.Network.Graph takes it: which columns of its
// nodes and of the graph itself, which nodes and which edges it rests on. In a cell it draws the explanation.
//
// Errors are those of graphs.Open and of [GraphWith].
func Graph(ctx context.Context, run *runs.Run, ds *gnb.Dataset, id string, o Options) (*Explanation, error) {
	n, err := graphs.Open(ctx, run, ds, graphs.OpenOptions{})
	if err != nil {
		return nil, err
	}
	e, err := GraphWith(ctx, n, id, o)
	if err == nil {
		err = e.Show()
	}
	return e, err
}

// GraphWith explains the answer of a network for a whole graph. An unknown id is an error of kind graphs.ErrUnknownGraph.
//
// A virtual node, and pooling, read all nodes whatever edges are left out: the scores of edges are those of messages along them.
func GraphWith(ctx context.Context, n *graphs.Network, id string, o Options) (*Explanation, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	raw, err := newRawValues(n)
	if err != nil {
		return nil, err
	}
	var e *Explanation
	err = n.Graph(ctx, id, func(g *graphs.Input) (err error) {
		in := &input{
			e: &Explanation{Run: n.Run(), Dataset: n.Dataset().Name(), Graph: id}, of: "graph " + id, outputs: n.Columns(), threads: n.Threads(),
			x: g.X, cols: g.Cols, own: g.Own, space: g.Space, graph: len(g.Nodes), blocks: g.Blocks,
			forward: g.Forward, number: n.Number, relation: func(int64) string { return "" },
			features: func(string) []string { return n.FeatureNames() }, ownNames: n.OwnNames(),
			tables: func(string) []predict.TableColumn { return raw.list },
			raw:    func(row int, c predict.TableColumn) (string, bool) { return raw.value(g.Nodes[row], c.Name) },
		}
		switch a := n.Answers(); {
		case a.Numeric():
			in.kind = predict.Numbers
		case a.Several():
			in.kind = predict.Labels
		default:
			in.kind = predict.Classes
		}
		for i, v := range g.Nodes {
			in.nodes = append(in.nodes, predict.NeighbourNode{ID: g.Names[i], Place: v})
		}
		e, err = explained(ctx, in, o)
		return err
	})
	return e, err
}

// rawValues are the columns of the table of nodes of a dataset of graphs.
type rawValues struct {
	list    []predict.TableColumn // nil without tables
	columns map[string]*tables.Column
	decoder *tables.Decoder
}

func newRawValues(n *graphs.Network) (*rawValues, error) {
	r := &rawValues{columns: map[string]*tables.Column{}}
	ds := n.Dataset()
	if ds.Dir() == "" {
		return r, nil
	}
	recipe, err := tables.ReadRecipe(ds.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	r.decoder = tables.NewDecoder(ds, recipe)
	names, given := n.FeatureNames(), ds.Meta.FeatureNames
	for _, c := range r.decoder.Columns("") {
		of := predict.TableColumn{Name: c.Name}
		for _, name := range given[c.First : c.First+c.Width] {
			if at := slices.Index(names, name); at >= 0 {
				of.Inputs = append(of.Inputs, at)
			}
		}
		r.columns[c.Name] = c
		r.list = append(r.list, of)
	}
	return r, nil
}

func (r *rawValues) value(node int32, column string) (string, bool) {
	return r.decoder.Value("", int(node), r.columns[column])
}
