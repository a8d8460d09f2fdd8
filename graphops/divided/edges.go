package divided

import (
	"context"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/mapped"
)

// WithEdges returns ds itself if its whole graph is here. Otherwise it returns a dataset in memory with the graph that is in the
// parts of ds, or at its servers: each edge is at its position in the undivided dataset, with all that edges have, and events are
// listed. Features and labels of nodes stay where they are. The dataset's Origin is that of ds.
//
// It returns an error if a part is not on this machine ([ErrAbsent]), or if the edges do not fit in memory. Memory: 8 bytes for each
// node, 4 for each edge and the bytes of what it has, and 8 for each event at servers. Servers are asked in pieces of some MiB. report
// may be nil; it is told how many edges of how many have come.
func WithEdges(ctx context.Context, ds *dataset.Dataset, report func(done, total int64)) (*dataset.Dataset, error) {
	if !Is(ds) || ds.Graph != nil {
		return ds, nil
	}
	if report == nil {
		report = func(int64, int64) {}
	}
	w, err := gather(ctx, ds, report)
	if err != nil {
		return nil, fmt.Errorf("divided: getting all edges of %s: %w", ds.Name(), err)
	}
	return w, nil
}

func gather(ctx context.Context, ds *dataset.Dataset, report func(done, total int64)) (*dataset.Dataset, error) {
	b, err := Of(ds)
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.CloseParts() }()
	t, err := newTogether(b, report)
	if err != nil {
		return nil, err
	}
	events := ds.Events
	if IsFar(ds) {
		events, err = t.far(ctx)
	} else {
		err = mapped.Guard(func() error { return t.near(ctx) })
	}
	if err != nil {
		return nil, err
	}
	g := t.graph.WithEdges(t.data)
	if s := ds.Meta.Schema(); s != nil {
		if g, err = g.WithTypes(s, t.data.Types); err != nil {
			return nil, err
		}
	}
	w := ds.WithGraph(g)
	w.Events, w.Meta.NumEvents = events, int64(len(events))
	w.ComputedFrom(ds)
	return w, nil
}

// together puts the edges of all nodes into one graph.
type together struct {
	b     *Book
	graph *graphops.Graph
	data  graphops.EdgeData

	report func(done, total int64)
}

func newTogether(b *Book, report func(done, total int64)) (*together, error) {
	nodes, edges, shape := b.ds.Nodes(), b.ds.Meta.NumEdges, b.ds.EdgeShape()
	indptr := make([]int64, nodes+1)
	for v, d := range b.InDegrees() {
		if d < 0 {
			return nil, b.wrong(arrayInDegrees, "entry %d is %d", v, d)
		}
		indptr[v+1] = indptr[v] + int64(d)
	}
	if indptr[nodes] != edges {
		return nil, b.wrong(arrayInDegrees, "its sum is %d, and there are %d edges", indptr[nodes], edges)
	}
	if err := machine.Room(fmt.Sprintf("the %d edges of all parts", edges), float64(edges)*float64(4+shape.Bytes())); err != nil {
		return nil, fmt.Errorf("%w; take a machine with more memory, or a smaller dataset", err)
	}
	t := &together{b: b, graph: &graphops.Graph{Indptr: indptr, Indices: make([]int32, edges)}, report: report}
	t.data.SetLen(shape, int(edges))
	if x := t.data.Features; x != nil {
		x.Widths = b.ds.Meta.EdgeFeatureDims
	}
	return t, nil
}

// put takes the in-edges of a node.
func (t *together) put(v int32, row *sample.Row) error {
	lo, hi := t.graph.Indptr[v], t.graph.Indptr[v+1]
	switch n := int64(len(row.Sources)); {
	case n != hi-lo:
		return fmt.Errorf("node %d has %d in-edges, and %d by the in-degrees", v, n, hi-lo)
	case n == 0:
		return nil
	case row.First != lo:
		return fmt.Errorf("the first in-edge of node %d is at position %d, and at %d by the in-degrees", v, row.First, lo)
	}
	to := t.graph.Indices[lo:hi]
	copy(to, row.Sources)
	if row.IDs != nil {
		for i, s := range row.Sources {
			if uint(s) >= uint(len(row.IDs)) {
				return fmt.Errorf("an in-edge of node %d comes from a node that its part does not list; divide the dataset again", v)
			}
			to[i] = row.IDs[s]
		}
	}
	if row.Edges != nil && t.b.ds.EdgeShape().Bytes() > 0 {
		t.data.CopyRange(int(lo), row.Edges, int(row.At), int(row.At)+len(row.Sources))
	}
	return nil
}

// near takes the edges of all parts, which are on this machine.
func (t *together) near(ctx context.Context) error {
	all := make([]int, t.b.Parts())
	for i := range all {
		all[i] = i
	}
	rows, err := t.b.Rows(all)
	if err != nil {
		return err
	}
	for v := range int32(t.b.ds.Nodes()) {
		if v%(1<<12) == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			t.report(t.graph.Indptr[v], int64(len(t.graph.Indices)))
		}
		row, _ := rows.Row(v)
		if err := t.put(v, &row); err != nil {
			return err
		}
	}
	return nil
}

// gatherEdges is the number of edges that servers are asked for at a time.
const gatherEdges = 1 << 20

// far takes all edges from servers, and returns the list of events.
func (t *together) far(ctx context.Context) (events []int64, err error) {
	to, err := reach(ctx, t.b.ds)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if t.b.ds.Meta.NumEvents > 0 {
		if events, err = to.Events(ctx); err != nil {
			return nil, err
		}
	}
	s, err := allInEdges(ctx, to)
	if err != nil {
		return nil, err
	}
	nodes, indptr := int32(t.b.ds.Nodes()), t.graph.Indptr
	for lo := int32(0); lo < nodes; {
		hi := lo + 1
		for hi < nodes && indptr[hi+1]-indptr[lo] <= gatherEdges && hi-lo < gatherEdges {
			hi++
		}
		own := make([]int32, hi-lo)
		for i := range own {
			own[i] = lo + int32(i)
		}
		edges, err := inEdgesBy(s, own)
		if err != nil {
			return nil, err
		}
		for i, v := range own {
			row := edges(i)
			if err := t.put(v, &row); err != nil {
				return nil, fmt.Errorf("%s sent: %w", t.b.ds.Meta.Parts.Servers, err)
			}
		}
		lo = hi
		t.report(indptr[lo], indptr[nodes])
	}
	return events, nil
}
