package convert

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/tabular"
)

// This file reads OGB's folders for graph property prediction: raw/num-node-list.csv.gz and num-edge-list.csv.gz have a number for
// each graph, raw/edge.csv.gz the edges of all graphs one after another with nodes numbered within each graph, node-feat.csv.gz
// and edge-feat.csv.gz (may be missing) their features, graph-label.csv.gz a line for each graph with one column or several, and
// split/SCHEME the lists of graphs. Edges are read as listed; OGB's loader adds the opposite edges of molecules, as --undirected
// does.
//
// Features that are small whole numbers are categories in OGB's molecules, of which its encoders sum an embedding each. They
// become one-hot features, on which a linear layer is such a sum.

// isOGBGraphs reports whether an OGB folder has many graphs.
func isOGBGraphs(s *source) bool {
	return s.Find("raw/graph-label.csv.gz", "raw/graph-label.csv") != ""
}

// maxCategory is the largest whole number that is taken for a category.
const maxCategory = 255

func ogbGraphs(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	if o.Features != "" && o.Features != onlyAttributes && o.Features != onlyLabels {
		o.note("%s: the features of nodes are not read, because --features makes others", s.Path)
	}
	graphs := &dataset.Dataset{Splits: map[string][]int32{}}
	f, err := s.csv("raw/graph-label", "the graphs' labels")
	if err != nil {
		return nil, err
	}
	err = readAnswers(ctx, f, graphs, "graph_labels", false, o)
	_ = f.Close()
	if err != nil {
		return nil, err
	}
	nodes, err := ogbOffsets(ctx, s, "raw/num-node-list", "nodes", graphs.Nodes(), o)
	if err != nil {
		return nil, err
	}
	counts, err := ogbOffsets(ctx, s, "raw/num-edge-list", "edges", graphs.Nodes(), o)
	if err != nil {
		return nil, err
	}
	e, err := ogbGraphEdges(ctx, s, nodes, counts, o)
	if err != nil {
		return nil, err
	}
	n, numEdges := nodes[len(nodes)-1], counts[len(counts)-1]
	x, labels, err := ogbCategories(ctx, s, "raw/edge-feat", "the edges' features", numEdges, o)
	if err != nil {
		return nil, err
	}
	var names []string
	if cols := x.cols() + labels.width(); cols > 0 && o.EdgeFeatures == "" {
		if cols > maxOneHot {
			return nil, tabular.Errorf("%s: the edges would have %d features; there can be %d", s.Path, cols, maxOneHot)
		}
		e.x = &graphops.EdgeFeatures{Cols: cols, F32: make([]float32, len(e.src)*cols)}
		parallel.For(o.Threads, len(e.src), 1<<12, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				fillRow(e.x.F32[i*cols:(i+1)*cols], i, x, labels)
			}
		})
		names = featureNames(x, labels)
	}
	if x, labels, err = ogbCategories(ctx, s, "raw/node-feat", "the nodes' features", n, o); err != nil {
		return nil, err
	}
	if x == nil && labels == nil && !plausible(n, numEdges) {
		return nil, tabular.Errorf("%s: raw/num-node-list says %d nodes, but there are %d edges and no features of nodes", s.Path, n, numEdges)
	}
	d, err := e.dataset(o)
	if err != nil {
		return nil, err
	}
	if names != nil {
		d.Meta.EdgeFeatureNames = dataset.KeepNames(names, "raw/edge-feat", o.said)
	}
	if cols := x.cols() + labels.width(); cols > 0 {
		d.Meta.FeatureNames = dataset.KeepNames(featureNames(x, labels), "raw/node-feat", o.said)
		d.Features, d.SparseFeatures = matrixOf(int(n), x, labels, o.Threads)
	} else if o.Features == "" {
		o.note("%s has no features of nodes; --features degree makes one-hot features of the degrees, and --features constant one feature that is 1", s.Path)
	}
	d.GraphOffsets, d.Graphs = nodes, graphs
	if !d.Graph.Symmetric() && !o.Undirected {
		o.said.Add(notice.Notice{Kind: notice.Told, Where: "raw/edge", What: "some edges have no reverse, and messages pass along edges only; OGB's loader adds the reverses of molecules, as --undirected does"})
	}
	scheme, err := s.ogbScheme(o)
	if err != nil {
		return nil, err
	}
	for _, part := range [][2]string{{"train", "train"}, {"valid", "val"}, {"test", "test"}} {
		if graphs.Splits[part[1]], err = ogbSplit(ctx, s, path.Join(scheme, part[0]), graphs.Nodes(), o); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// ogbOffsets reads a number for each of n graphs, as offsets.
func ogbOffsets(ctx context.Context, s *source, name, what string, n int, o Options) ([]int64, error) {
	f, err := s.csv(name, "the number of "+what+" of each graph")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at := make([]int64, 1, n+1)
	err = tabular.ReadWholes(ctx, f, o.Threads, func(line int64, values []int64) error {
		for _, v := range values {
			sum := at[len(at)-1] + v
			switch {
			case len(at) > n:
				return f.Wrong("line %d: it has more lines than there are graphs with a line of labels, %d", line, n)
			case v < 0:
				return f.Wrong("line %d: the number is %d", line, v)
			case sum < 0 || sum > math.MaxInt32 && what == "nodes" || sum > 1<<40:
				return f.Wrong("line %d: there are %d %s up to there, more than a dataset has", line, sum, what)
			}
			at = append(at, sum)
		}
		return nil
	})
	if err == nil && len(at) != n+1 {
		err = f.Wrong("it has %d numbers, but there are labels of %d graphs", len(at)-1, n)
	}
	return at, err
}

// ogbGraphEdges reads the edges, and numbers their nodes over all graphs.
func ogbGraphEdges(ctx context.Context, s *source, nodes, counts []int64, o Options) (*edges, error) {
	f, err := s.csv("raw/edge", "the edges")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	o.Relabel = false
	var l *edgeList
	if counts[len(counts)-1] == 0 {
		l = &edgeList{}
	} else if l, err = readEdges(ctx, f, edgeFormat{noWeights: true}, o); err != nil {
		return nil, err
	}
	if n := counts[len(counts)-1]; int64(len(l.src)) != n {
		return nil, f.Wrong("it has %d edges, but num-edge-list says %d: it was cut off; fetch it again", len(l.src), n)
	}
	for g := range len(nodes) - 1 {
		n := nodes[g+1] - nodes[g]
		for i := counts[g]; i < counts[g+1]; i++ {
			u, v := l.src[i], l.dst[i]
			if int64(u) >= n || int64(v) >= n {
				return nil, f.Wrong("edge %d is %d → %d, of graph %d, which has the nodes 0 to %d; nodes are numbered within each graph", i+1, u, v, g, n-1)
			}
			l.src[i], l.dst[i] = u+int32(nodes[g]), v+int32(nodes[g])
		}
	}
	return &edges{nodes: int(nodes[len(nodes)-1]), src: l.src, dst: l.dst}, nil
}

// ogbCategories reads features of n rows: numbers, or small whole numbers as one-hot columns. Both are nil if the file is not
// there, or others are wanted.
func ogbCategories(ctx context.Context, s *source, name, what string, n int64, o Options) (*numbers, *oneHotColumns, error) {
	if s.Find(name+".csv.gz", name+".csv") == "" || o.Features != "" && o.Features != onlyAttributes && name == "raw/node-feat" {
		return nil, nil, nil
	}
	f, err := s.csv(name, what)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	t, err := tabular.ReadTable(ctx, f, false, n, o.Threads)
	if err != nil {
		return nil, nil, err
	}
	if int64(t.Rows) != n {
		return nil, nil, f.Wrong("it has %d rows, but there are %d by the lists of numbers", t.Rows, n)
	}
	if o.Features == onlyAttributes || n == 0 || slices.ContainsFunc(t.Values, func(x float32) bool { return x < 0 || x > maxCategory || x != float32(int32(x)) }) {
		return &numbers{t}, nil, nil
	}
	b := &oneHotColumns{cols: t.Cols, values: make([]int64, len(t.Values))}
	for i, x := range t.Values {
		b.values[i] = int64(x)
	}
	if err := b.number(name, o); err != nil {
		return nil, nil, err
	}
	o.said.Add(notice.Notice{Kind: notice.Guessed, Where: name, What: fmt.Sprintf("%d columns of small whole numbers are categories, and become %d one-hot features", t.Cols, b.width()), Count: int64(t.Cols), Option: "--features attributes keeps the numbers"})
	return nil, b, nil
}
