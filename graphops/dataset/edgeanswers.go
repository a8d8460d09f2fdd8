package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/internal/philox"
)

// SetEdgeTargets gives edges numbers to predict: row i of targets [len(at), any] is what edge at[i], a position in
// Graph.Indices, has, with NaN where unknown. names are the targets' names, or nil. at may have any order, and has no edge
// twice. It replaces EdgeRows and EdgeAnswers; targets is copied. The splits are empty: see [Dataset.SplitEdges].
//
// It returns the row of EdgeAnswers of each row of targets, and an error for positions that are no edges, for an edge that is
// there twice, and for targets that do not fit.
func (d *Dataset) SetEdgeTargets(at []int64, targets *Matrix, names []string) (rows []int32, err error) {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("dataset: targets of edges of "+d.Name()+": "+format, args...)
	}
	switch {
	case d.Graph == nil || d.Meta.Parts != nil:
		return nil, wrong("the edges are in parts or at servers, which keep no targets; take the undivided dataset")
	case targets == nil || targets.F32 == nil || targets.Cols < 1 || len(targets.F32) != targets.Rows*targets.Cols:
		return nil, wrong("they are float32 in memory with a row for each edge: set Rows, Cols and F32")
	case targets.Rows != len(at):
		return nil, wrong("there are %d rows for %d edges", targets.Rows, len(at))
	case len(at) >= math.MaxInt32:
		return nil, wrong("there are %d edges, and rows are numbered by int32", len(at))
	case len(names) > 0 && len(names) != targets.Cols:
		return nil, wrong("there are %d names of %d targets", len(names), targets.Cols)
	}
	order := make([]int32, len(at))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(at[a], at[b]) })
	answers := &Dataset{Targets: targets.selected(order), Splits: map[string][]int32{}, Meta: Metadata{TargetNames: slices.Clone(names)}}
	positions, rows := make([]int64, len(at)), make([]int32, len(at))
	for row, i := range order {
		e := at[i]
		switch {
		case e < 0 || e >= d.Edges():
			return nil, wrong("position %d is none of the graph's edges, 0 to %d", e, d.Edges()-1)
		case row > 0 && e == positions[row-1]:
			return nil, wrong("edge %d is there twice", e)
		}
		positions[row], rows[i] = e, int32(row)
	}
	d.EdgeRows, d.EdgeAnswers = positions, answers
	d.describeEdges(&d.Meta)
	answers.Meta = *d.Meta.EdgeAnswers
	return rows, nil
}

// FindEdges returns the position in Graph.Indices of each edge src[i] → dst[i], of the given relation of a graph with types, 0
// without. Of several equal edges it is that of the first. It returns an error for an edge that the graph does not have. Cost: a
// search for each.
func (d *Dataset) FindEdges(src, dst []int32, relation int) ([]int64, error) {
	if d.Graph == nil || len(src) != len(dst) {
		return nil, fmt.Errorf("dataset: %s: finding edges needs the graph, and as many sources as destinations; there are %d and %d", d.Name(), len(src), len(dst))
	}
	g := d.Graph
	at := make([]int64, len(src))
	for i, u := range src {
		at[i] = -1
		if v := dst[i]; v >= 0 && int(v) < g.NumNodes() {
			e := g.Indptr[v] + int64(sort.Search(g.InDegree(v), func(k int) bool { return g.InNeighbors(v)[k] >= u }))
			for ; e < g.Indptr[v+1] && g.Indices[e] == u; e++ {
				if g.EdgeTypes == nil || int(g.EdgeTypes[e]) == relation {
					at[i] = e
					break
				}
			}
		}
		if at[i] < 0 {
			return nil, fmt.Errorf("dataset: %s has no edge %d → %d, which is number %d of those to find", d.Name(), u, dst[i], i)
		}
	}
	return at, nil
}

// RowNumbers returns times by which [graphops.FromEdgesWith] keeps all rows of a list of edges apart, also equal ones: the
// numbers of the rows in the order of their own times, nil if they have none. [FromRowNumbers] takes them back.
func RowNumbers(rows int, times []int64) []int64 {
	order := make([]int32, rows)
	for i := range order {
		order[i] = int32(i)
	}
	if times != nil {
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(times[a], times[b]) })
	}
	numbers := make([]int64, rows)
	for k, i := range order {
		numbers[i] = int64(k)
	}
	return numbers
}

// FromRowNumbers takes the numbers of rows back from a graph that was built of the edges src[i] → dst[i] with the numbers of
// [RowNumbers] as times. It returns the graph with the rows' own times, nil for none, and the position of each row's own edge:
// a reverse that was added has the number of its edge.
func FromRowNumbers(g *graphops.Graph, src, dst []int32, numbers, times []int64) (h *graphops.Graph, at []int64) {
	row := make([]int32, len(numbers))
	for i, k := range numbers {
		row[k] = int32(i)
	}
	at = slices.Repeat([]int64{-1}, len(src))
	var own []int64
	if times != nil {
		own = make([]int64, g.NumEdges())
	}
	for v := range int32(g.NumNodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			i := row[g.EdgeTimes[e]]
			if times != nil {
				own[e] = times[i]
			}
			if at[i] < 0 && g.Indices[e] == src[i] && v == dst[i] {
				at[i] = e
			}
		}
	}
	return g.WithEdgeData(g.EdgeFeatures, own), at
}

// EdgeSplitOptions say how [Dataset.SplitEdges] divides edges. The zero value takes 80 % for train, 10 % for val and 10 % for
// test, at random.
type EdgeSplitOptions struct {
	// Val and Test are shares of the edges, from 0 to 1; both 0 means 0.1 each. The others are train.
	Val, Test float64
	// ByTime puts the latest edges into test, and those before them into val. Edges of one time stay together, so that a split
	// can be larger than its share.
	ByTime bool
	// Seed is the random seed; 0 is a seed like any other.
	Seed uint64
}

// edgeSplitKey separates these draws from those of a run with the same seed.
const edgeSplitKey = 0x6564676573706c74

// SplitEdges replaces the splits of EdgeAnswers. A row whose targets are all unknown is in no split. Random splits keep all edges
// between two nodes together, in both directions: else a number of val could be that of a training edge. The splits depend on the
// edges, on which targets are known, on times if they are by time, and on the options. It changes the map of splits, so no other
// goroutine may read d meanwhile.
//
// It returns an error without targets of edges or, by time, without times of edges; and for shares that leave no edge for train, or
// none for a split that was asked for.
func (d *Dataset) SplitEdges(o EdgeSplitOptions) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("dataset: splits of the edges"+strings.TrimSuffix(" of "+d.Name(), " of ")+": "+format, args...) // tables have no name yet
	}
	if o.Val == 0 && o.Test == 0 {
		o.Val, o.Test = 0.1, 0.1
	}
	switch {
	case d.EdgeAnswers == nil:
		return wrong("no edge has a target")
	case !(o.Val >= 0 && o.Test >= 0 && o.Val+o.Test < 1):
		return wrong("val is %v and test %v of the edges; both are shares from 0 to 1, and their sum is below 1", o.Val, o.Test)
	case o.ByTime && d.Graph.EdgeTimes == nil:
		return wrong("they are to be by time, and the edges have no times; give a column of times (--kinds COLUMN=time), or divide at random")
	}
	rows := d.EdgeAnswers.LabelledRows()
	if len(rows) == 0 {
		return wrong("every target of every edge is unknown (NaN), so there is nothing to learn")
	}
	src, dst, _ := d.Graph.EdgesAt(d.EdgeRows)
	// Successive rows of one key stay together.
	key := func(row int32) [2]int64 {
		if o.ByTime {
			return [2]int64{-d.Graph.EdgeTimes[d.EdgeRows[row]]}
		}
		return [2]int64{int64(min(src[row], dst[row])), int64(max(src[row], dst[row]))}
	}
	slices.SortStableFunc(rows, func(a, b int32) int {
		x, y := key(a), key(b)
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
	})
	starts := []int32{0} // of groups of one key, and the end of the last one
	for i := 1; i <= len(rows); i++ {
		if i == len(rows) || key(rows[i]) != key(rows[i-1]) {
			starts = append(starts, int32(i))
		}
	}
	order := make([]int32, len(starts)-1)
	for i := range order {
		order[i] = int32(i)
	}
	if !o.ByTime {
		philox.Permute(o.Seed^edgeSplitKey, 0, philox.C3(philox.User, 0, 0), order)
	}
	var parts [3][]int32 // train, val, test
	nTest, nVal := int(math.Round(o.Test*float64(len(rows)))), int(math.Round(o.Val*float64(len(rows))))
	fits := func(k, n, share int) bool { // edges of one time can be more than the share
		return len(parts[k])+n <= share || o.ByTime && len(parts[k]) < share
	}
	for _, i := range order {
		group := rows[starts[i]:starts[i+1]]
		k := 0
		switch n := len(group); {
		case fits(2, n, nTest):
			k = 2
		case fits(1, n, nVal):
			k = 1
		}
		parts[k] = append(parts[k], group...)
	}
	for k, share := range []float64{1, o.Val, o.Test} {
		if share > 0 && len(parts[k]) == 0 {
			return wrong("with %v for val and %v for test of %d edges with a target, %s gets none; take other shares, or more edges", o.Val, o.Test, len(rows), []string{"train", "val", "test"}[k])
		}
	}
	d.EdgeAnswers.Splits = map[string][]int32{}
	d.EdgeAnswers.setSplits(0, parts[0], parts[1], parts[2])
	return nil
}

// describeEdges sets what the metadata says of the answers of edges.
func (d *Dataset) describeEdges(m *Metadata) {
	m.EdgeAnswers = nil
	if a := d.EdgeAnswers; a != nil {
		of := a.Meta
		a.describe(&of)
		of.NumNodes, of.Name = len(d.EdgeRows), d.Meta.Name
		m.EdgeAnswers = &of
	}
}

// checkEdgeAnswersMeta checks the metadata of the answers of edges.
func (m *Metadata) checkEdgeAnswersMeta() error {
	switch {
	case m.NumNodes < 0 || m.NumNodes >= math.MaxInt32:
		return fmt.Errorf("num_nodes is %d; it is the number of edges with answers, in [0, %d]", m.NumNodes, math.MaxInt32-1)
	case m.TargetDim == 0 || m.NumEdges != 0 || m.FeatureDim != 0 || m.NumClasses != 0 || m.EdgeFeatureDim != 0 || len(m.NodeTypes) > 0 || m.Parts != nil || m.Part != nil || len(m.Arrays) > 0 || m.Graphs != nil || m.EdgeAnswers != nil:
		return errors.New("the answers of edges are targets and splits, and nothing else")
	}
	if err := m.checkSizes(); err != nil {
		return err
	}
	return checkSplitNames(m.Splits)
}

// checkEdgeAnswersShape returns an error if the sizes of the answers of edges contradict each other.
func (d *Dataset) checkEdgeAnswersShape() error {
	a := d.EdgeAnswers
	switch {
	case a == nil && d.EdgeRows == nil:
		return nil
	case a == nil || d.EdgeRows == nil:
		return errors.New("edges with answers have both EdgeRows and EdgeAnswers: see SetEdgeTargets")
	case d.Graph == nil || d.Meta.Parts != nil || d.Meta.Part != nil:
		return errors.New("a dataset divided into parts has no targets of edges")
	case a.Targets == nil || a.Graph != nil || a.Features != nil || a.SparseFeatures != nil || a.NodeFeatures != nil || a.Labels != nil || a.MultiLabels != nil || a.Graphs != nil || a.EdgeAnswers != nil || a.EdgeSplits != nil || a.Events != nil || a.NodeTimes != nil || a.Arrays != nil:
		return errors.New("the dataset EdgeAnswers has targets and splits, and nothing else")
	case len(d.EdgeRows) >= math.MaxInt32:
		return fmt.Errorf("%d edges have answers, but these rows are numbered by int32", len(d.EdgeRows))
	}
	if err := a.checkRows(len(d.EdgeRows), "edges with answers"); err != nil {
		return fmt.Errorf("of the edges: %w", err)
	}
	return nil
}

func (d *Dataset) loadEdgeAnswers(src source) error {
	m := d.Meta.EdgeAnswers
	if m == nil {
		return nil
	}
	a, label, err := openNPY(src, edgeRowsFile, "edge_answers", fmt.Sprintf("%d of them", m.NumNodes))
	if err != nil {
		return err
	}
	if err := a.expect(label, []npy.Type{npyInt64}, m.NumNodes); err != nil {
		return err
	}
	d.EdgeRows = view[int64](a.data)
	d.EdgeAnswers, err = d.loadRows(src, *m, ofEdges)
	return err
}

// checkEdgeAnswers reads the targets and splits of edges, and finds rows that are no edges.
func (d *Dataset) checkEdgeAnswers(r *reading) error {
	a := d.EdgeAnswers
	if a == nil {
		return nil
	}
	at := d.EdgeRows
	if err := r.next(8 * int64(len(at))); err != nil {
		return err
	}
	if i := firstBad(len(at), 1<<14, func(i int) bool { return at[i] < 0 || at[i] >= d.Edges() || i > 0 && at[i] <= at[i-1] }); i >= 0 {
		return d.wrong(edgeRowsFile, "entry %d is %d; positions of edges ascend, from 0 to %d", i, at[i], d.Edges()-1)
	}
	of := *a
	of.Meta.NumNodes, of.Meta.Name, of.dir = len(at), d.Meta.Name, d.dir
	of.Meta.OverlappingSplits = of.Meta.OverlappingSplits || d.Meta.OverlappingSplits
	for _, check := range []func(*reading) error{of.checkTargets, of.checkSplits} {
		if err := check(r); err != nil {
			return fmt.Errorf("%w (of edges, in the files named %s…)", err, ofEdges(""))
		}
	}
	return nil
}

// keepEdgeAnswers gives s, whose edges are some of d's, the answers of those. now returns the position in s of an edge of d, -1 for
// one that is not there; those that stay keep their order.
func (d *Dataset) keepEdgeAnswers(s *Dataset, now func(e int64) int64) error {
	s.EdgeRows, s.EdgeAnswers, s.Meta.EdgeAnswers = nil, nil, nil
	if d.EdgeAnswers == nil {
		return nil
	}
	var rows []int32
	at := []int64{}
	for row, e := range d.EdgeRows {
		if to := now(e); to >= 0 {
			rows, at = append(rows, int32(row)), append(at, to)
		}
	}
	answers, err := d.EdgeAnswers.subsetOfRows(rows, len(d.EdgeRows))
	if err != nil {
		return err
	}
	s.EdgeRows, s.EdgeAnswers = at, answers
	return nil
}

// subsetOfRows returns the rows ids, which ascend, of a description of n graphs or edges.
func (d *Dataset) subsetOfRows(ids []int32, n int) (*Dataset, error) {
	of := *d
	of.Meta.NumNodes = n
	of.Graph = &graphops.Graph{Indptr: make([]int64, n+1)}
	s, err := of.Subset(ids)
	if err != nil {
		return nil, err
	}
	s.Graph = nil
	return s, nil
}
