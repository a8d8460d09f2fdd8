package nn

// Reads is what a model reads of a dataset.
type Reads struct {
	Features     bool // of nodes
	Edges        bool
	Weights      bool // of edges, which weigh messages; samplers read them apart from models
	EdgeFeatures bool
	Times        bool // of edges, as models of events do
	Types        bool // of nodes and relations of edges
}

// Reader is a model that declares what it reads, so that a run can say which data of its dataset has no effect.
type Reader interface{ Reads() Reads }

var _ = []Reader{(*SAGE)(nil), (*GCN)(nil), (*GAT)(nil), (*GATv2)(nil), (*GIN)(nil), (*GINE)(nil), (*GatedGCN)(nil), (*PNA)(nil), (*RGCN)(nil), (*HGT)(nil), (*MLP)(nil)}

// Reads implements [Reader].
func (m *SAGE) Reads() Reads {
	return Reads{Features: true, Edges: true, Weights: len(m.Convs) > 0 && m.Convs[0].Weighted}
}

// Reads implements [Reader].
func (m *GCN) Reads() Reads { return Reads{Features: true, Edges: true, Weights: true} }

// Reads implements [Reader].
func (m *GAT) Reads() Reads { return Reads{Features: true, Edges: true} }

// Reads implements [Reader].
func (m *GATv2) Reads() Reads {
	return Reads{Features: true, Edges: true, EdgeFeatures: len(m.Convs) > 0 && m.Convs[0].LinEdge != nil}
}

// Reads implements [Reader].
func (m *GIN) Reads() Reads {
	return Reads{Features: true, Edges: true, Weights: len(m.Convs) > 0 && m.Convs[0].Weighted}
}

// Reads implements [Reader].
func (m *GINE) Reads() Reads {
	r := Reads{Features: true, Edges: true}
	if len(m.Convs) > 0 {
		_, r.EdgeFeatures = m.Convs[0].(*GINEConv)
	}
	return r
}

// Reads implements [Reader].
func (m *GatedGCN) Reads() Reads {
	return Reads{Features: true, Edges: true, EdgeFeatures: len(m.Convs) > 0 && m.Convs[0].C != nil}
}

// Reads implements [Reader].
func (m *PNA) Reads() Reads {
	return Reads{Features: true, Edges: true, EdgeFeatures: len(m.Convs) > 0 && m.Convs[0].EdgeEncoder != nil}
}

// Reads implements [Reader].
func (m *RGCN) Reads() Reads { return Reads{Features: true, Edges: true, Types: true} }

// Reads implements [Reader].
func (m *HGT) Reads() Reads { return Reads{Features: true, Edges: true, Types: true} }

// Reads implements [Reader].
func (m *MLP) Reads() Reads { return Reads{Features: true} }

// weightedMean is the mean of the sources' rows weighted by the edges,
//
//	out[d] = Σ w_e·h[source of e] / Σ w_e
//
// over d's in-edges, 0 if there are none or their weights have the sum 0; without weights it is the mean.
func weightedMean(f *Fwd, b *Block, h *Tensor) *Tensor {
	if !b.Weighted() {
		return f.Aggregate(b, h, Mean)
	}
	sum := f.AggregateWeighted(b, h, b.Weights(), Sum)
	return f.MulRows(sum, f.Input(b.NumDst, 1, inverseWeights(b), sum.Space()))
}

// inverseWeights returns 1 divided by the weight of the in-edges of each destination, 0 if that is 0. Sums are in float64.
func inverseWeights(b *Block) []float32 {
	type key struct{}
	return b.MemoIn(key{}, func(old any) any {
		inv, _ := old.([]float32)
		if cap(inv) < b.NumDst {
			inv = make([]float32, b.NumDst)
		}
		inv = inv[:b.NumDst]
		indptr, weights := b.Indptr(), b.Weights()
		first := indptr[0]
		for d := range inv {
			sum := 0.0
			for _, w := range weights[indptr[d]-first : indptr[d+1]-first] {
				sum += float64(w)
			}
			if inv[d] = 0; sum != 0 {
				inv[d] = float32(1 / sum)
			}
		}
		return inv
	}).([]float32)
}
