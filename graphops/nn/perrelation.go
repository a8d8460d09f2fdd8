package nn

import (
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// Conv is a graph convolution: it computes the rows [NumDst, out] of a block's destinations from the rows h
// [NumSrc, in] of its sources. The layers of this package are convolutions.
type Conv interface {
	Forward(f *Fwd, b *Block, h *Tensor) *Tensor
}

var _ Conv = (*RelationConv)(nil)

// RelationConv has a convolution for each relation:
//
//	y_v = Σ or mean over the relations r into v's type of conv_r(v's in-edges of r)
//
// Each convolution computes on the edges of its relation alone, for all destinations of the relation's type,
// also those without in-edges of it. Destinations of a type that is no relation's destination get zeros.
//
// It is torch_geometric.nn.HeteroConv, and its parameters have that layer's names: convs.<SRC___NAME___DST>.…,
// with # in the place of dots in names. DGL's HeteroGraphConv is the same.
//
// A convolution sees a block of its relation, in which Block.Degrees are those of all relations together: set
// GCNConv.BatchDegrees in it. Layers that add self-loops, such as GATConv, also add one to a destination whose
// relation has sources of another type.
type RelationConv struct {
	Convs map[string]Conv `nn:"convs"`

	Schema *graphops.Schema `nn:"-"`
	Aggr   Op
	keys   []string // of Convs, by relation
}

// PerRelation makes a RelationConv of the convolutions that conv returns for the relations of a schema. They
// must all have as many columns out. aggr, Sum or Mean, combines the relations of a destination.
//
//	conv := nn.PerRelation(graph.Schema, func(graphops.Relation) nn.Conv { return nn.NewSAGE(64, 64) }, nn.Sum)
func PerRelation(s *graphops.Schema, conv func(r graphops.Relation) Conv, aggr Op) *RelationConv {
	const op = "PerRelation"
	checkSchema(op, s)
	if aggr != Sum && aggr != Mean {
		fail(op, "the aggregation is %v; use Sum or Mean", aggr)
	}
	c := &RelationConv{Convs: map[string]Conv{}, Schema: s, Aggr: aggr}
	for _, r := range s.Relations {
		key := strings.ReplaceAll("<"+strings.Join([]string{r.Src, r.Name, r.Dst}, "___")+">", ".", "#")
		layer := conv(r)
		switch {
		case layer == nil:
			fail(op, "there is no convolution for the relation %s; return one for each relation", r)
		case c.Convs[key] != nil:
			fail(op, "two relations are named %s when their names are joined; rename one", key)
		}
		c.Convs[key] = layer
		c.keys = append(c.keys, key)
	}
	return c
}

// Forward returns y [NumDst, out] for h [NumSrc, in], in the space of the block's destinations. It copies the
// rows that each relation reads.
func (c *RelationConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	const op = "RelationConv"
	if c == nil || c.Schema == nil {
		fail(op, "the layer is nil; create it with PerRelation")
	}
	dsts := nodesOf(op, b, c.Schema, true)
	parts := blocksOf(op, b, c.Schema, dsts)
	sums, n, cols := make([]*Tensor, len(c.Schema.Nodes)), make([]int, len(c.Schema.Nodes)), -1
	for r, key := range c.keys {
		y := c.Convs[key].Forward(f, parts[r].block, f.Gather(h, parts[r].rows).SetSpace(tensor.SrcSpace(parts[r].block)))
		switch {
		case y.Rows() != parts[r].block.NumDst:
			fail(op, "the convolution of %s returned [%d,%d] for a block of %d destinations", c.Schema.Relations[r], y.Rows(), y.Cols(), parts[r].block.NumDst)
		case cols >= 0 && y.Cols() != cols:
			fail(op, "the convolution of %s returned %d columns, and another one %d; they must be equally many", c.Schema.Relations[r], y.Cols(), cols)
		}
		cols = y.Cols()
		t := c.Schema.NodeType(c.Schema.Relations[r].Dst)
		if n[t]++; sums[t] == nil {
			sums[t] = y
		} else {
			sums[t] = f.Add(sums[t], y)
		}
	}
	for t, y := range sums {
		lo, hi := dsts.of(t)
		if y == nil {
			sums[t] = f.Input(hi-lo, cols, make([]float32, (hi-lo)*cols), nil)
		} else if c.Aggr == Mean && n[t] > 1 {
			sums[t] = f.Scale(y, 1/float64(n[t]))
		}
	}
	return dsts.back(f, f.Stack(sums...)).SetSpace(tensor.DstSpace(b))
}

// relationBlock is the edges of one relation of a block: row i of its sources is row rows[i] of the block's.
type relationBlock struct {
	block *Block
	rows  []int32
}

type relationBlocksKey struct{ schema *graphops.Schema }

// blocksOf returns the block of each relation: its destinations are all those of the relation's type, in their
// order, and its sources these and then the others in the order of their first edges.
func blocksOf(op string, b *Block, s *graphops.Schema, dsts *nodeGroups) []relationBlock {
	types := edgeTypes(op, b, len(s.Relations))
	return b.Memo(relationBlocksKey{s}, func() any {
		indptr, indices, weights := b.Indptr(), b.Indices(), b.Weights()
		blocks, place := make([]relationBlock, len(s.Relations)), slices.Repeat([]int32{-1}, b.NumSrc)
		byType := edgesByType(types, len(s.Relations))
		_, ends := edgeEnds(b)
		own := b.OwnEdges()
		for r := range s.Relations {
			_, t := s.Ends(r)
			lo, hi := dsts.of(t)
			h := graphops.HostBlock{NumDst: hi - lo, Level: b.Level, Graph: b.Graph, Degrees: b.Degrees(), AsOf: b.AsOf(), Indptr: make([]int64, hi-lo+1), SrcIDs: []int32{}, EdgePos: []int64{}, Indices: []int32{}, Relation: r + 1}
			h.Trees, h.TreeTimes = b.TreesOf(dsts.rows[lo:hi])
			rows := make([]int32, 0, 2*(hi-lo))
			add := func(u int32) int32 {
				if place[u] < 0 {
					place[u] = int32(len(rows))
					rows = append(rows, u)
					h.SrcIDs = append(h.SrcIDs, b.SrcID(int(u)))
				}
				return place[u]
			}
			for _, d := range dsts.rows[lo:hi] {
				add(int32(b.DstStart) + d)
			}
			from, to := byType.of(r)
			for _, e := range byType.rows[from:to] {
				at := int(dsts.place[ends[e]]) - lo
				if at < 0 || at >= hi-lo {
					fail(op, "edge %d of the block has the relation %s, but its destination is of another type", e, s.Relations[r])
				}
				h.Indptr[at+1]++
				h.Indices = append(h.Indices, add(indices[indptr[0]+int64(e)]))
				h.EdgePos = append(h.EdgePos, b.Pos(indptr[0]+int64(e)))
				if weights != nil {
					h.Weights = append(h.Weights, weights[e])
				}
			}
			if own.Features != nil || own.Times != nil {
				h.Edges.SetLen(own.Shape(), to-from)
				h.Edges.Pick(0, &own, 0, byType.rows[from:to])
			}
			if weights != nil && h.Weights == nil {
				h.Weights = []float32{}
			}
			for d := range hi - lo {
				h.Indptr[d+1] += h.Indptr[d]
			}
			h.NumSrc = len(rows)
			for _, u := range rows {
				place[u] = -1
			}
			blocks[r] = relationBlock{h.Block(), rows}
		}
		return blocks
	}).([]relationBlock)
}
