package links

import (
	"errors"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/sample"
)

// RandomSplitOf is [RandomSplit] of a worker's dataset, wherever its edges are. In a run that asks the workers that own
// them (Topology "divided"), the split is divided among the workers too, and has the edges and numbers of the split of the
// whole graph: see Split.Divided. Collective then.
func RandomSplitOf(w *gnb.Worker, o SplitOptions) (*Split, error) {
	return splitOf(w, o, RandomSplit, pairs.RandomDivided)
}

// GivenSplitOf is [GivenSplit] of a worker's dataset, as [RandomSplitOf] is RandomSplit.
func GivenSplitOf(w *gnb.Worker, val, test Edges, o SplitOptions) (*Split, error) {
	return splitOf(w, o,
		func(ds *gnb.Dataset, o SplitOptions) (*Split, error) { return GivenSplit(ds, val, test, o) },
		func(p pairs.Peers, own *graphops.Graph, o SplitOptions) (*Split, error) {
			return pairs.GivenDivided(p, own, val, test, o)
		})
}

// TimeSplitOf is [TimeSplit] of a worker's dataset, as [RandomSplitOf] is RandomSplit.
func TimeSplitOf(w *gnb.Worker, val, test int64, o SplitOptions) (*Split, error) {
	return splitOf(w, o,
		func(ds *gnb.Dataset, o SplitOptions) (*Split, error) { return TimeSplit(ds, val, test, o) },
		func(p pairs.Peers, own *graphops.Graph, o SplitOptions) (*Split, error) {
			return pairs.ByTimeDivided(p, own, val, test, o)
		})
}

func splitOf(w *gnb.Worker, o SplitOptions, whole func(*gnb.Dataset, SplitOptions) (*Split, error), parted func(pairs.Peers, *graphops.Graph, SplitOptions) (*Split, error)) (*Split, error) {
	t := w.Owners()
	if t == nil {
		return whole(w.Dataset(), o)
	}
	own, peers, err := owned(w, t)
	if err != nil {
		return nil, err
	}
	return parted(peers, own, o)
}

// owned returns the graph of all nodes with the in-edges of this rank's nodes alone, and the ranks.
func owned(w *gnb.Worker, t *gnb.Owners) (*graphops.Graph, pairs.Peers, error) {
	ds := w.Dataset()
	peers := pairs.Peers{Rank: w.Rank(), World: w.World(), Exchange: func(send [][]byte) ([][]byte, error) {
		return t.Exchange("links of a divided graph", false, send)
	}}
	if divided.IsFar(ds) {
		return nil, peers, farEdges(ds)
	}
	if ds.Schema() != nil {
		return nil, peers, typedDivided(ds)
	}
	edges, rows, owner, err := t.Rows()
	if err != nil {
		return nil, peers, err
	}
	peers.Owner = owner
	own := &graphops.Graph{Indptr: make([]int64, ds.Nodes()+1), Indices: []int32{}}
	var data graphops.EdgeData
	data.SetLen(edges, 0)
	for v := range int32(ds.Nodes()) {
		if peers.Owner(v) == peers.Rank {
			row, ok := rows.Row(v)
			if !ok {
				return nil, peers, fmt.Errorf("links: rank %d does not have the in-edges of node %d, which belongs to it; divide the dataset again", peers.Rank, v)
			}
			for _, s := range row.Sources {
				if row.IDs != nil {
					if uint(s) >= uint(len(row.IDs)) {
						return nil, peers, fmt.Errorf("links: a part of %s is damaged: an in-edge of node %d comes from a node that it does not list; divide the dataset again", ds.Name(), v)
					}
					s = row.IDs[s]
				}
				own.Indices = append(own.Indices, s)
			}
			if edges.Bytes() > 0 {
				data.Append(row.Edges.Slice(row.At, row.At+int64(len(row.Sources))))
			}
		}
		own.Indptr[v+1] = int64(len(own.Indices))
	}
	return own.WithEdges(data), peers, nil
}

// typedDivided is the error of edges with types that are divided.
func typedDivided(ds *gnb.Dataset) error {
	return fmt.Errorf("links: the edges of %s have types, which links on a divided graph cannot have; %s", ds.Name(), feed.WithTopology(ds))
}

// farEdges is the error of a split whose edges are at servers.
func farEdges(ds *gnb.Dataset) error {
	return fmt.Errorf("links: a split needs the edges on the machines of the workers, and those of %s are at servers; load %s", ds.Name(), ds.Meta.Parts.WithCopy("topology"))
}

// parted is what a loader has in a run that asks the owners of edges.
type parted struct {
	t     *gnb.Owners
	peers pairs.Peers
	share [][]int32 // the nodes of each rank's share of an evaluation
	in    []int32   // the in-degrees of the messages
}

// beside exchanges in the goroutine that samples.
func (d *parted) beside(send [][]byte) ([][]byte, error) {
	return d.t.Exchange("links of a divided graph", true, send)
}

// useParted makes the worker compute on the message graph of a divided split.
func (l *Loader) useParted(t *gnb.Owners) error {
	s := l.split
	if s.Divided == nil {
		return fmt.Errorf("links: the split has the whole graph of %s, and this run asks the owners of its edges; make the split by links.RandomSplitOf, GivenSplitOf or TimeSplitOf", l.w.Dataset().Name())
	}
	first := s.Divided.First()
	in := make([]int32, s.Message.NumNodes())
	for v := range in {
		in[v] = int32(first[v+1] - first[v])
	}
	var err error
	l.parted, err = useMessages(l.w, t, s.Divided.Peers(), s.Message, first, in)
	return err
}

// useMessages makes a worker compute on a divided graph: first are the positions of the nodes' first in-edges in the whole
// graph, and in the in-degrees. Collective.
func useMessages(w *gnb.Worker, t *gnb.Owners, peers pairs.Peers, g *graphops.Graph, first []int64, in []int32) (*parted, error) {
	d := &parted{t: t, peers: peers, share: make([][]int32, peers.World), in: in}
	for r := range d.share {
		lo, hi := sample.Share(g.NumNodes(), r, peers.World)
		for v := lo; v < hi; v++ {
			d.share[r] = append(d.share[r], int32(v))
		}
	}
	mine, err := peers.Gather(g, d.share)
	if err != nil {
		return nil, err
	}
	return d, t.Use(&ownRows{g, g.EdgeData(), first, peers}, in, func(x graphops.Degrees) graphops.Slicer { return graphops.SlicesWith(mine, x) })
}

// messagesOf returns a divided graph as messages of an evaluation. Collective.
func (d *parted) messagesOf(g *graphops.Graph) (m messages, err error) {
	m = messages{graph: g, parted: d}
	mine, err := d.peers.Gather(g, d.share)
	if err != nil {
		return m, err
	}
	if m.in, err = d.peers.Degrees(g); err != nil {
		return m, err
	}
	degrees, err := d.t.Degrees(&ownRows{g, g.EdgeData(), g.Indptr, d.peers}, m.in)
	m.slices = graphops.SlicesWith(mine, degrees)
	return m, err
}

// ownRows are the rows of a rank's nodes in a divided graph, for [sample.Answerer].
type ownRows struct {
	g     *graphops.Graph
	edges graphops.EdgeData
	first []int64 // positions in the whole graph
	peers pairs.Peers
}

// Edges implements [sample.Rows].
func (o *ownRows) Edges() graphops.EdgeShape { return o.edges.Shape() }

func (o *ownRows) has(v int32) bool {
	return uint(v) < uint(o.g.NumNodes()) && o.peers.Owner(v) == o.peers.Rank
}

// Row implements [sample.Rows].
func (o *ownRows) Row(v int32) (r sample.Row, ok bool) {
	if !o.has(v) {
		return r, false
	}
	lo := o.g.Indptr[v]
	return sample.Row{Sources: o.g.InNeighbors(v), First: o.first[v], Edges: &o.edges, At: lo}, true
}

// Find implements [sample.Rows].
func (o *ownRows) Find(nodes []int32, out []sample.Place) int {
	for i, v := range nodes {
		if !o.has(v) {
			return i
		}
		out[i] = sample.Place{N: int32(o.g.InDegree(v)), At: o.g.Indptr[v], First: o.first[v]}
	}
	return len(nodes)
}

// Arrays implements [sample.Rows].
func (o *ownRows) Arrays() []sample.RowArray {
	return []sample.RowArray{{Sources: o.g.Indices, Edges: &o.edges, TimeOrder: o.g.TimeOrder}}
}

// draw returns the edges of a step and the negatives of all of them. Collective, in the goroutine that samples.
func (d *parted) draw(l *Loader, epoch, step int, items []int32) (all, neg Edges, err error) {
	if all, err = l.split.Divided.Edges(d.beside, items); err != nil {
		return all, neg, err
	}
	neg, err = l.negatives.DrawDivided(d.beside, epoch, step, items, all)
	return all, neg, err
}

// around returns the neighbours of the ends of this rank's share of a step's pairs. Collective, in the goroutine that samples.
func (d *parted) around(l *Loader, s *stepEdges) (*pairs.Surroundings, error) {
	want, k := make([][]int32, d.peers.World), l.negatives.PerEdge()
	for r := range want {
		lo, hi := sample.Share(s.all.Len(), r, d.peers.World)
		want[r] = ends(s.all.Slice(lo, hi).Join(s.neg.Slice(lo*k, hi*k)))
	}
	return d.peers.Around(d.beside, l.split.Message, d.in, want)
}

// destinations returns the destinations of the edges of a divided graph of the given nodes, of which each rank wants its
// share: the rows of a graph. Collective.
func (d *parted) destinations(g *graphops.Graph, undirected bool, nodes []int32) (*graphops.Graph, error) {
	if !undirected {
		var err error
		if g, err = d.peers.Reverse(g); err != nil {
			return nil, err
		}
	}
	want := make([][]int32, d.peers.World)
	for r := range want {
		lo, hi := sample.Share(len(nodes), r, d.peers.World)
		want[r] = nodes[lo:hi]
	}
	return d.peers.Gather(g, want)
}

// scoreBy calls score with pieces of this rank's share of pairs, and with what is around them in a divided graph of the
// given in-degrees. What it puts, by the number of the pair in its piece, is in the result; the scores of others are 0.
// Collective.
func (d *parted) scoreBy(g *graphops.Graph, in []int32, e Edges, score func(part Edges, around pairs.Around, put func(i int, score float32)) error) ([]float64, error) {
	out := make([]float64, e.Len())
	for lo := 0; lo < e.Len(); lo += scoreChunk * d.peers.World {
		piece := e.Slice(lo, min(lo+scoreChunk*d.peers.World, e.Len()))
		want := make([][]int32, d.peers.World)
		for r := range want {
			from, to := sample.Share(piece.Len(), r, d.peers.World)
			want[r] = ends(piece.Slice(from, to))
		}
		around, err := d.peers.Around(d.peers.Exchange, g, in, want)
		if err != nil {
			return nil, err
		}
		from, to := sample.Share(piece.Len(), d.peers.Rank, d.peers.World)
		if err := score(piece.Slice(from, to), around, func(i int, x float32) { out[lo+from+i] = float64(x) }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ends returns the distinct ends of edges, ascending.
func ends(e Edges) []int32 {
	nodes := slices.Concat(e.Src, e.Dst)
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// readsGraph reports whether a decoder reads the graph around a pair.
func readsGraph(d Decoder) bool {
	_, ok := d.(pairs.GraphDecoder)
	return ok
}

// errGraphTop is the error of recommending by a decoder that reads the graph around a pair.
func errGraphTop(name string) error {
	return fmt.Errorf("links: to recommend nodes, the decoder %s reads the neighbours of all nodes, and this run asks the owners of edges for them; take dot, bilinear, mlp or hadamard, or give each machine the whole graph", name)
}

var errWhole = errors.New("links: Whole needs the whole graph on each machine, and this run asks the owners of its edges; take Batches")
