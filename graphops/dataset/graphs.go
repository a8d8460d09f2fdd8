package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/internal/parallel"
)

// GraphSpan returns the nodes lo to hi-1 of graph g.
func (d *Dataset) GraphSpan(g int32) (lo, hi int32) {
	return int32(d.GraphOffsets[g]), int32(d.GraphOffsets[g+1])
}

// describeGraphs sets what the metadata says of the graphs of a dataset of many.
func (d *Dataset) describeGraphs(m *Metadata) {
	if d.Graphs == nil {
		return
	}
	g := d.Graphs.Meta
	d.Graphs.describe(&g)
	g.NumNodes, g.Name = d.NumGraphs(), d.Meta.Name
	m.Graphs = &g
}

// checkGraphs checks the metadata of the graphs of a dataset.
func (m *Metadata) checkGraphs() error {
	switch {
	case m.NumNodes < 0 || m.NumNodes >= math.MaxInt32:
		return fmt.Errorf("num_nodes is %d; it is the number of graphs, in [0, %d]", m.NumNodes, math.MaxInt32-1)
	case m.NumEdges != 0 || m.EdgeFeatureDim != 0 || len(m.NodeTypes) > 0 || m.Parts != nil || m.Part != nil || len(m.Arrays) > 0 || m.Graphs != nil || m.EdgeAnswers != nil:
		return errors.New("graphs have features, labels, targets and splits, and nothing else")
	}
	if err := m.checkSizes(); err != nil {
		return err
	}
	return checkSplitNames(m.Splits)
}

// checkGraphsShape returns an error if the sizes of a dataset of many graphs contradict each other.
func (d *Dataset) checkGraphsShape() error {
	g, at := d.Graphs, d.GraphOffsets
	switch {
	case g == nil && at == nil && d.Meta.Graphs == nil:
		return nil
	case g == nil || len(at) == 0:
		return errors.New("a dataset of many graphs has both GraphOffsets and Graphs")
	case d.Graph == nil || d.Meta.Parts != nil || d.Meta.Part != nil:
		return errors.New("a dataset of many graphs is not divided into parts: its graphs are independent, so give each machine some of them")
	case g.Graph != nil || g.Graphs != nil || g.GraphOffsets != nil || g.NodeFeatures != nil || g.EdgeSplits != nil || g.EdgeAnswers != nil || g.Events != nil || g.NodeTimes != nil || g.Arrays != nil:
		return errors.New("the dataset Graphs has features, labels, targets and splits, and nothing else")
	case len(at)-1 >= math.MaxInt32:
		return fmt.Errorf("%d graphs, but graphs are numbered by int32", len(at)-1)
	case at[0] != 0 || at[len(at)-1] != int64(d.Nodes()):
		return fmt.Errorf("GraphOffsets run from %d to %d; they must run from 0 to the number of nodes, %d", at[0], at[len(at)-1], d.Nodes())
	}
	if err := g.checkRows(len(at)-1, "graphs"); err != nil {
		return fmt.Errorf("of the graphs: %w", err)
	}
	return nil
}

// filesOf is a source of the files of what a dataset describes beside its nodes: its graphs, or its edges with answers.
type filesOf struct {
	source
	file func(string) string
}

func (s filesOf) open(name string) ([]byte, string, error) { return s.source.open(s.file(name)) }

// loadRows loads what rows of a dataset have that are not its nodes; file names their files.
func (d *Dataset) loadRows(src source, m Metadata, file func(string) string) (*Dataset, error) {
	of := &Dataset{Meta: m, Splits: map[string][]int32{}, known: &known{wide: map[string][]int64{}}}
	for _, part := range []func(source) error{of.loadFeatures, of.loadLabels, of.loadTargets, of.loadSplits} {
		if err := part(filesOf{src, file}); err != nil {
			return nil, err
		}
	}
	for name, wide := range of.known.wide {
		d.known.wide[file(name)] = wide
	}
	of.known = nil
	return of, nil
}

func (d *Dataset) loadGraphs(src source) error {
	m := d.Meta.Graphs
	if m == nil {
		return nil
	}
	a, label, err := openNPY(src, graphOffsetsFile, "graphs", fmt.Sprintf("%d of them", m.NumNodes))
	if err != nil {
		return err
	}
	if err := a.expect(label, []npy.Type{npyInt64}, m.NumNodes+1); err != nil {
		return err
	}
	d.GraphOffsets = view[int64](a.data)
	if first, last := d.GraphOffsets[0], d.GraphOffsets[m.NumNodes]; first != 0 || last != int64(d.Meta.NumNodes) {
		return readError(label, "it runs from %d to %d; it must run from 0 to the number of nodes, %d", first, last, d.Meta.NumNodes)
	}
	d.Graphs, err = d.loadRows(src, *m, ofGraphs)
	return err
}

// checkGraphs reads the offsets of a dataset of many graphs, and finds edges between two of them.
func (d *Dataset) checkGraphs(r *reading) error {
	if d.Graphs == nil {
		return nil
	}
	if err := d.checkGraphOffsets(r); err != nil {
		return err
	}
	graphs, indptr := d.NumGraphs(), d.Graph.Indptr
	for lo := 0; lo < graphs; lo += checkStep {
		n := min(checkStep, graphs-lo)
		if err := r.next(0); err != nil { // checkGraph has counted the edges
			return err
		}
		if i := firstBad(n, 1<<10, func(i int) bool { return d.leavesGraph(int32(lo+i)) >= 0 }); i >= 0 {
			e := d.leavesGraph(int32(lo + i))
			v, _ := slices.BinarySearchFunc(indptr, e, func(at, e int64) int {
				if at > e {
					return 1
				}
				return -1
			})
			return d.wrong(indicesFile, "entry %d: the edge %d → %d leads out of its graph: node %d is of graph %d, whose nodes are %d to %d", e, d.Graph.Indices[e], v-1, v-1, lo+i, d.GraphOffsets[lo+i], d.GraphOffsets[lo+i+1]-1)
		}
	}
	return d.checkGraphAnswers(r)
}

// leavesGraph returns the position of the first edge into graph g from another one, -1 if there is none.
func (d *Dataset) leavesGraph(g int32) int64 {
	lo, hi := d.GraphSpan(g)
	for e := d.Graph.Indptr[lo]; e < d.Graph.Indptr[hi]; e++ {
		if u := d.Graph.Indices[e]; u < lo || u >= hi {
			return e
		}
	}
	return -1
}

func (d *Dataset) checkGraphOffsets(r *reading) error {
	at := d.GraphOffsets
	if err := r.next(8 * int64(len(at))); err != nil {
		return err
	}
	if i := firstBad(len(at)-1, 1<<14, func(i int) bool { return at[i] > at[i+1] || at[i] < 0 || at[i+1] > int64(d.Nodes()) }); i >= 0 {
		return d.wrong(graphOffsetsFile, "entry %d is %d and the next is %d; the offsets must ascend from 0 to %d", i, at[i], at[i+1], d.Nodes())
	}
	return nil
}

// checkGraphAnswers checks the offsets, features, labels, targets and splits of the graphs of a dataset of many.
func (d *Dataset) checkGraphAnswers(r *reading) error {
	if d.Graphs == nil {
		return nil
	}
	if err := d.checkGraphOffsets(r); err != nil {
		return err
	}
	g := d.NamedGraphs()
	for _, check := range []func(*reading) error{g.checkLabels, g.checkMultiLabels, g.checkTargets, g.checkFeatures, g.checkSparse, g.checkSplits} {
		if err := check(r); err != nil {
			return fmt.Errorf("%w (of graphs, in the files named graph_…)", err)
		}
	}
	return nil
}

// NamedGraphs returns a view of Graphs with the name of the dataset, the number of graphs and the directory, which errors name.
func (d *Dataset) NamedGraphs() *Dataset {
	g := *d.Graphs
	g.Meta.NumNodes, g.Meta.Name, g.dir = d.NumGraphs(), d.Meta.Name, d.dir
	g.Meta.OverlappingSplits = g.Meta.OverlappingSplits || d.Meta.OverlappingSplits
	return &g
}

// SubsetOfGraphs returns the dataset of the graphs ids, which must ascend: its graph i is graph ids[i], with all its nodes
// and edges, and its splits of graphs contain only these. It shares no memory with d and has no directory.
//
// It returns an error for a dataset that is one graph, and if ids do not ascend or name a graph that does not exist. Cost: one
// pass over everything.
func (d *Dataset) SubsetOfGraphs(ids []int32) (*Dataset, error) {
	if d.Graphs == nil {
		return nil, fmt.Errorf("dataset: %s is one graph, not a dataset of many; choose nodes instead (Subset)", d.Name())
	}
	var nodes []int32
	at := []int64{0}
	for i, g := range ids {
		if g < 0 || int(g) >= d.NumGraphs() || i > 0 && g <= ids[i-1] {
			return nil, fmt.Errorf("dataset: %s: entry %d of the graphs to keep is %d; the graphs must ascend, from 0 to %d", d.Name(), i, g, d.NumGraphs()-1)
		}
		lo, hi := d.GraphSpan(g)
		for v := lo; v < hi; v++ {
			nodes = append(nodes, v)
		}
		at = append(at, int64(len(nodes)))
	}
	whole := *d
	whole.Graphs, whole.GraphOffsets = nil, nil
	s, err := whole.Subset(nodes)
	if err != nil {
		return nil, err
	}
	graphs, err := d.Graphs.subsetOfRows(ids, d.NumGraphs())
	if err != nil {
		return nil, err
	}
	s.Graphs, s.GraphOffsets = graphs, at
	s.Describe()
	return s, nil
}

// ErrNoGraphs is the error of what needs a dataset of many graphs for a dataset that is one graph.
var ErrNoGraphs = errors.New("it is one graph, not a dataset of many graphs")

// GraphOf returns the number of the graph of each node, in new memory.
func (d *Dataset) GraphOf() []int32 {
	of := make([]int32, d.Nodes())
	parallel.For(0, d.NumGraphs(), 1<<12, func(lo, hi int) {
		for g := lo; g < hi; g++ {
			for v := d.GraphOffsets[g]; v < d.GraphOffsets[g+1]; v++ {
				of[v] = int32(g)
			}
		}
	})
	return of
}
