package pairs

import (
	"math"
	"sync"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/parallel"
)

// Around is what a [GraphDecoder] reads of a graph: the in-edges of the nodes of its pairs, and the in-degrees of all
// nodes. A *graphops.Graph implements it, and so does [Surroundings], where the edges are divided.
type Around interface {
	NumNodes() int
	InNeighbors(v int32) []int32
	InDegree(v int32) int
}

// GraphDecoder is a [Decoder] that also reads the graph around the two nodes of a pair.
//
// ScoreIn is Score for pairs of nodes of g, the graph that the embeddings were computed on: pair i is
// e.Src[i] → e.Dst[i], whose embeddings are the rows src[i] and dst[i] of h. It asks for the in-neighbours of these
// nodes alone. The score of a pair must not
// depend on whether g has an edge between its two nodes: in training it is there, and in a test it is not.
type GraphDecoder interface {
	Decoder
	ScoreIn(f *nn.Fwd, g Around, e Edges, h *nn.Tensor, src, dst []int32) *nn.Tensor
}

// ScoreIn scores pairs by a decoder, with the graph if it is a [GraphDecoder].
func ScoreIn(d Decoder, f *nn.Fwd, g Around, e Edges, h *nn.Tensor, src, dst []int32) *nn.Tensor {
	if d, ok := d.(GraphDecoder); ok {
		return d.ScoreIn(f, g, e, h, src, dst)
	}
	return d.Score(f, h, src, dst)
}

// structuralFeatures is the number of features of a pair.
const structuralFeatures = 3

var _ GraphDecoder = (*Structural)(nil)

// Structural is the score of another decoder plus that of a network over structural features of the pair:
//
//	score(u, v) = ends(h_u, h_v) + out·ReLU(hidden·s(u, v))
//	s(u, v) = (√CommonNeighbours, √AdamicAdar, √ResourceAllocation)
//
// Both layers have a bias. The features are those of the functions of these names: common in-neighbours
// of both nodes, without the two nodes themselves. Neither they nor their degrees change with an edge
// between the two nodes, so a training edge does not reveal itself. The network learns which of the
// heuristics to trust and how far, and embeddings add what common neighbours do not say. Square roots
// keep features of dense neighbourhoods small.
//
// Cost for a pair: the sum of both degrees, beside that of the other decoder. The features are computed by the CPU.
//
// Source: B. P. Chamberlain et al., "Graph neural networks for link prediction with subgraph sketching",
// ICLR 2023, arXiv:2209.15486, takes structural features of pairs into the decoder; X. Wang, H. Yang,
// M. Zhang, "Neural common neighbor with completion for link prediction", ICLR 2024, arXiv:2302.00890,
// takes embeddings of the common neighbours.
type Structural struct {
	Ends   Decoder    `nn:"ends"`
	Hidden *nn.Linear `nn:"hidden"`
	Out    *nn.Linear `nn:"out"`
}

// NewStructural returns a Structural with a decoder of the embeddings and a hidden layer for the features.
func NewStructural(ends Decoder, hidden int) *Structural {
	return &Structural{Ends: ends, Hidden: nn.NewLinear(structuralFeatures, hidden, true), Out: nn.NewLinear(hidden, 1, true)}
}

// Score implements [Decoder]. It panics, because the features need a graph.
func (s *Structural) Score(*nn.Fwd, *nn.Tensor, []int32, []int32) *nn.Tensor {
	panic(&tensor.Error{Op: "Structural", Detail: "it counts common neighbours, which needs a graph; score pairs by pairs.ScoreIn, or give TopOptions a Graph"})
}

// ScoreIn implements [GraphDecoder].
func (s *Structural) ScoreIn(f *nn.Fwd, g Around, e Edges, h *nn.Tensor, src, dst []int32) *nn.Tensor {
	if g == nil || e.Len() != len(src) {
		s.Score(f, h, src, dst)
	}
	if err := e.check("the pairs", g.NumNodes()); err != nil {
		panic(&tensor.Error{Op: "Structural", Detail: err.Error()})
	}
	x := make([]float32, structuralFeatures*e.Len())
	parallel.For(f.Config().Threads, e.Len(), pairGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			u, v := e.Src[i], e.Dst[i]
			var sum [structuralFeatures]float64
			for z := range common(g.InNeighbors(u), g.InNeighbors(v)) {
				if z != u && z != v {
					d := g.InDegree(z)
					sum[0] += commonNeighbours(d)
					sum[1] += adamicAdar(d)
					sum[2] += resourceAllocation(d)
				}
			}
			for k, y := range sum {
				x[structuralFeatures*i+k] = feature(y)
			}
		}
	})
	near := s.Out.Forward(f, f.ReLU(s.Hidden.Forward(f, f.Input(e.Len(), structuralFeatures, x, nil))))
	return f.Add(ScoreIn(s.Ends, f, g, e, h, src, dst), near)
}

func feature(sum float64) float32 { return float32(math.Sqrt(sum)) }

// near is the score of the features of a pair.
func (s *Structural) near(x [structuralFeatures]float32) float32 {
	out := s.Out.Bias.W[0]
	for k, a := range s.Hidden.Bias.W {
		for i, y := range x {
			a += s.Hidden.Weight.W[structuralFeatures*k+i] * y
		}
		out += s.Out.Weight.W[k] * max(0, a)
	}
	return out
}

// topIn is [TopK]. The features of all candidates of a node come from one pass over the neighbours of its
// neighbours, as in [Heuristic.TopK].
func (s *Structural) topIn(h []float32, cols int, nodes, candidates []int32, o TopOptions) (Top, error) {
	grid, ok := s.Ends.(GridDecoder)
	if !ok {
		return topByPairs(s, h, cols, nodes, candidates, o)
	}
	g := o.Graph
	out := Destinations(g)
	memory := sync.Pool{New: func() any {
		var m [structuralFeatures]sums
		for k := range m {
			m[k].of = make([]float64, g.NumNodes())
		}
		return &m
	}}
	far := s.near([structuralFeatures]float32{})
	return topByGrid(grid, h, cols, nodes, candidates, o, func(nodes []int32) func(i int, block []int32, scores []float32) {
		m := memory.Get().(*[structuralFeatures]sums)
		defer memory.Put(m)
		added := make([][]scored, len(nodes)) // by node: candidates with common neighbours, ascending
		for i, u := range nodes {
			for k, of := range []heuristic{commonNeighbours, adamicAdar, resourceAllocation} {
				m[k].add(g, out, u, of)
			}
			for _, v := range candidates {
				if m[0].of[v] > 0 {
					added[i] = append(added[i], scored{v, s.near([...]float32{feature(m[0].of[v]), feature(m[1].of[v]), feature(m[2].of[v])})})
				}
			}
			for k := range m {
				m[k].clear()
			}
		}
		return func(i int, block []int32, scores []float32) {
			at := added[i]
			for j, v := range block {
				if len(at) > 0 && at[0].id == v {
					scores[j] += at[0].score
					at = at[1:]
				} else {
					scores[j] += far
				}
			}
			added[i] = at
		}
	})
}
