package pairs

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// Exchange sends send[r] to rank r and returns what every rank has sent to this one, by rank. All ranks call it
// together. Its messages stay as they are until the next call.
type Exchange func(send [][]byte) ([][]byte, error)

// Peers are the ranks among which the nodes of a graph are divided. The owner of a node has its in-edges. A graph that
// is divided is, on each rank, a graph of all nodes with the in-edges of the rank's own nodes alone; functions of such
// graphs are collective: all ranks call them with the same options.
type Peers struct {
	Rank, World int
	// Owner is the rank that owns a node.
	Owner    func(v int32) int
	Exchange Exchange
}

// pieceNodes is the number of nodes about which the ranks exchange at a time.
const pieceNodes = 1 << 16

// owns reports whether this rank owns a node.
func (p Peers) owns(v int32) bool { return p.Owner(v) == p.Rank }

// toAll sends the same message to all ranks, and returns those of all.
func (p Peers) toAll(x Exchange, mine []byte) ([][]byte, error) {
	send := make([][]byte, p.World)
	for r := range send {
		send[r] = mine
	}
	return x(send)
}

// ofNodes returns a number of each node, which its owner knows: of is called for this rank's nodes. Memory: 8 bytes for each
// node.
func (p Peers) ofNodes(nodes int, of func(v int32) uint64) ([]uint64, error) {
	all := make([]uint64, nodes)
	for lo := 0; lo < nodes; lo += pieceNodes {
		hi := min(lo+pieceNodes, nodes)
		var mine []byte
		for v := int32(lo); int(v) < hi; v++ {
			if p.owns(v) {
				mine = binary.LittleEndian.AppendUint64(mine, of(v))
			}
		}
		got, err := p.toAll(p.Exchange, mine)
		if err != nil {
			return nil, err
		}
		for v := lo; v < hi; v++ {
			r := p.Owner(int32(v))
			if len(got[r]) < 8 {
				return nil, p.otherDivision(r)
			}
			all[v], got[r] = binary.LittleEndian.Uint64(got[r]), got[r][8:]
		}
		for r, b := range got {
			if len(b) > 0 {
				return nil, p.otherDivision(r)
			}
		}
	}
	return all, nil
}

func (p Peers) otherDivision(rank int) error {
	return fmt.Errorf("pairs: rank %d sent rank %d another number of values than its nodes have; all ranks must have the same division of the graph", rank, p.Rank)
}

// starts returns the sums of a number of each node before it, and the sum of all.
func (p Peers) starts(nodes int, of func(v int32) int) ([]int64, error) {
	counts, err := p.ofNodes(nodes, func(v int32) uint64 { return uint64(of(v)) })
	if err != nil {
		return nil, err
	}
	at := make([]int64, nodes+1)
	for v, n := range counts {
		at[v+1] = at[v] + int64(n)
	}
	return at, nil
}

// records exchanges records of k words: each calls put with the rank that a record is for, -1 for all, and take gets those
// for this rank.
func (p Peers) records(x Exchange, k int, each func(put func(to int, words ...int32)), take func(words []int32)) error {
	send := make([][]byte, p.World)
	each(func(to int, words ...int32) {
		for r := range send {
			if to == r || to < 0 {
				for _, w := range words {
					send[r] = binary.LittleEndian.AppendUint32(send[r], uint32(w))
				}
			}
		}
	})
	got, err := x(send)
	if err != nil {
		return err
	}
	words := make([]int32, k)
	for r, b := range got {
		if len(b)%(4*k) != 0 {
			return fmt.Errorf("pairs: a message of %d bytes from rank %d has no records of %d bytes; all ranks must run the same version", len(b), r, 4*k)
		}
		for ; len(b) > 0; b = b[4*k:] {
			for i := range words {
				words[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
			}
			take(words)
		}
	}
	return nil
}

// Reverse returns, as a divided graph, the reverse of one: each rank gets the out-edges of its own nodes, each once.
// Collective.
func (p Peers) Reverse(g *graphops.Graph) (*graphops.Graph, error) {
	var e Edges
	for lo := 0; lo < g.NumNodes(); lo += pieceNodes {
		err := p.records(p.Exchange, 2, func(put func(to int, words ...int32)) {
			for v := int32(lo); int(v) < min(lo+pieceNodes, g.NumNodes()); v++ {
				for _, u := range g.InNeighbors(v) {
					put(p.Owner(u), u, v)
				}
			}
		}, func(w []int32) { e = e.Append(w[1], w[0]) })
		if err != nil {
			return nil, err
		}
	}
	return graphops.FromEdges(g.NumNodes(), e.Src, e.Dst, graphops.BuildOptions{})
}

// Gather returns a graph with the in-edges of the nodes that this rank wants from a divided graph, with what the edges have.
// want has the nodes that each rank wants, ascending; all ranks know all of it. Collective.
func (p Peers) Gather(g *graphops.Graph, want [][]int32) (*graphops.Graph, error) {
	rows, data, err := p.rows(p.Exchange, g, g.EdgeData(), want)
	if err != nil {
		return nil, err
	}
	out := &graphops.Graph{Indptr: make([]int64, g.NumNodes()+1), Indices: rows.sources}
	for i, v := range rows.nodes {
		out.Indptr[v+1] = rows.first[i+1] - rows.first[i]
	}
	for v := range g.NumNodes() {
		out.Indptr[v+1] += out.Indptr[v]
	}
	return out.WithEdges(data), nil
}

// Around returns the surroundings of the nodes that this rank wants in a divided graph; see [Peers.Gather]. degrees are the
// in-degrees of all nodes in it (see [Peers.Degrees]), and x connects the ranks. Collective. Memory: that of the in-edges.
func (p Peers) Around(x Exchange, g *graphops.Graph, degrees []int32, want [][]int32) (*Surroundings, error) {
	rows, _, err := p.rows(x, g, graphops.EdgeData{}, want)
	if err != nil {
		return nil, err
	}
	rows.degrees = degrees
	return rows, nil
}

var _ Around = (*Surroundings)(nil)

// Surroundings are the in-neighbours of some nodes of a divided graph, and the in-degrees of all. They implement [Around],
// and panic with a *tensor.Error if they are asked for the in-neighbours of another node.
type Surroundings struct {
	nodes   []int32 // ascending
	first   []int64 // [nodes+1]: their first in-edges in sources
	sources []int32
	degrees []int32 // of all nodes
}

// NumNodes implements [Around]: the number of nodes of the whole graph.
func (s *Surroundings) NumNodes() int { return len(s.degrees) }

// InDegree implements [Around].
func (s *Surroundings) InDegree(v int32) int { return int(s.degrees[v]) }

// InNeighbors implements [Around]. Cost: a search.
func (s *Surroundings) InNeighbors(v int32) []int32 {
	i, ok := slices.BinarySearch(s.nodes, v)
	if !ok {
		panic(&tensor.Error{Op: "InNeighbors", Detail: fmt.Sprintf("the in-neighbours of node %d are on the rank that owns it; a decoder reads those of the ends of its pairs alone", v)})
	}
	return s.sources[s.first[i]:s.first[i+1]]
}

// rows returns the in-edges of the nodes that this rank wants, with the given data of the edges of g.
func (p Peers) rows(x Exchange, g *graphops.Graph, all graphops.EdgeData, want [][]int32) (*Surroundings, graphops.EdgeData, error) {
	shape := all.Shape()
	answerer := sample.NewAnswerer(sample.RowsOf(g.WithEdges(all)), sample.AnswererOptions{})
	mine := want[p.Rank]
	out := &Surroundings{nodes: mine, first: make([]int64, 1, len(mine)+1), sources: []int32{}}
	var data graphops.EdgeData
	data.SetLen(shape, 0)
	pieces := 0
	for _, nodes := range want {
		pieces = max(pieces, (len(nodes)+pieceNodes-1)/pieceNodes)
	}
	send, replies := make([][]byte, p.World), make([]sample.HopReply, p.World)
	piece := func(nodes []int32, i int) []int32 {
		return nodes[min(i*pieceNodes, len(nodes)):min((i+1)*pieceNodes, len(nodes))]
	}
	for i := range pieces {
		for r, nodes := range want {
			q := sample.HopRequest{Purpose: sample.User, Picker: sample.UniformPicker, Fanout: -1, Nodes: slices.DeleteFunc(slices.Clone(piece(nodes, i)), func(v int32) bool { return !p.owns(v) })}
			var reply sample.HopReply
			if err := answerer.Answer(&q, &reply); err != nil {
				return nil, data, err
			}
			send[r] = reply.Append(send[r][:0])
		}
		got, err := x(send)
		if err != nil {
			return nil, data, err
		}
		for r := range got {
			if err := replies[r].Decode(got[r]); err != nil {
				return nil, data, fmt.Errorf("pairs: a message of rank %d: %w", r, err)
			}
		}
		node, edge := make([]int, p.World), make([]int, p.World)
		for _, v := range piece(mine, i) {
			r := p.Owner(v)
			a := &replies[r]
			if node[r] >= len(a.Counts) || edge[r]+int(a.Counts[node[r]]) > len(a.Sources) || !a.Edges.Has(shape, len(a.Sources)) {
				return nil, data, p.otherDivision(r)
			}
			n := int(a.Counts[node[r]])
			from, to := edge[r], edge[r]+n
			node[r], edge[r] = node[r]+1, to
			out.sources = append(out.sources, a.Sources[from:to]...)
			out.first = append(out.first, int64(len(out.sources)))
			some := a.Edges.Slice(int64(from), int64(to))
			data.Append(some)
		}
	}
	return out, data, nil
}

// Degrees returns the in-degrees of a divided graph, of all nodes. Collective.
func (p Peers) Degrees(g *graphops.Graph) ([]int32, error) {
	all, err := p.ofNodes(g.NumNodes(), func(v int32) uint64 { return uint64(g.InDegree(v)) })
	if err != nil {
		return nil, err
	}
	d := make([]int32, len(all))
	for v, n := range all {
		d[v] = int32(n)
	}
	return d, nil
}
