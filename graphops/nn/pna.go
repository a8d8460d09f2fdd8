package nn

import (
	"math"
	"slices"
	"strings"
)

var _ Conv = (*PNAConv)(nil)

// PNAConv joins several aggregations of its messages, each of them scaled by several functions of the destination's in-degree d:
//
//	y_v = lin(post([x_v, ⨁ scaler_s(d_v)·aggr_a over u of pre([x_v, x_u, edge_encoder(e_uv)])]))
//
// over the in-edges u → v of a block's destinations, for all scalers s and, within each, all aggregations a; pre, post, edge_encoder and
// lin are linear layers. e_uv are the edge's features, if EdgeDim is set.
//
//	aggregations: "mean", "min", "max", "sum", "var" and "std"; 0 without in-edges, and std is 0 where the variance is at most 1e-5
//	scalers: "identity" 1, "amplification" log(d+1)/δ, "attenuation" δ/log(max(d,1)+1), "linear" d/D, "inverse_linear" D/max(d,1)
//
// δ and D are the means of log(d+1) and of d over the nodes of the training set. With sampled neighbours the degree is the number of
// sampled ones, as in PyG. The variance is the mean of squared distances from the mean, where PyG takes a difference of two means,
// which rounds more.
//
// Parameters and semantics are those of torch_geometric.nn.PNAConv with towers=1: aggr_module.avg_deg_lin [1] and
// aggr_module.avg_deg_log [1] (D and δ, which are saved and not trained), edge_encoder.weight [in, EdgeDim], edge_encoder.bias,
// pre_nns.0.0.weight [in, 2·in or 3·in], pre_nns.0.0.bias, post_nns.0.0.weight [out, (1 + aggregations·scalers)·in],
// post_nns.0.0.bias, lin.weight [out, out] and lin.bias.
//
// Source: G. Corso, L. Cavalleri, D. Beaini, P. Liò, P. Veličković, "Principal neighbourhood aggregation for graph nets", NeurIPS 2020,
// arXiv:2004.05718, equations 5 to 8.
type PNAConv struct {
	AvgDegree    *Param  `nn:"aggr_module.avg_deg_lin,vector"`
	AvgLogDegree *Param  `nn:"aggr_module.avg_deg_log,vector"`
	EdgeEncoder  *Linear `nn:"edge_encoder,optional"` // nil: edges have no features
	Pre          *Linear `nn:"pre_nns.0.0"`
	Post         *Linear `nn:"post_nns.0.0"`
	Lin          *Linear `nn:"lin"`

	Aggregators []string
	Scalers     []string
}

// PNAOptions are the options of a PNAConv. The zero value has the aggregations and scalers of the paper, for graphs whose degree is
// not known.
type PNAOptions struct {
	EdgeDim     int      // number of features of an edge; 0 means none
	LogDegree   float64  // δ, the mean of log(d+1) over the nodes of the training set; 0 means 1, the value of d = 1.7
	Degree      float64  // D, the mean of d, which "linear" and "inverse_linear" read; 0 means 1
	Aggregators []string // nil means mean, min, max and std
	Scalers     []string // nil means identity, amplification and attenuation
}

var (
	pnaAggregators = []string{"mean", "min", "max", "std", "sum", "var"}
	pnaScalers     = []string{"identity", "amplification", "attenuation", "linear", "inverse_linear"}
)

// NewPNA returns a PNAConv.
func NewPNA(in, out int, o PNAOptions) *PNAConv {
	const op = "PNAConv"
	if o.Aggregators == nil {
		o.Aggregators = pnaAggregators[:4]
	}
	if o.Scalers == nil {
		o.Scalers = pnaScalers[:3]
	}
	checkNames(op, "Aggregators", o.Aggregators, pnaAggregators)
	checkNames(op, "Scalers", o.Scalers, pnaScalers)
	switch {
	case o.EdgeDim < 0:
		fail(op, "EdgeDim is %d; it is the number of features of an edge, or 0", o.EdgeDim)
	case !(o.LogDegree >= 0 && o.LogDegree < math.MaxFloat32) || !(o.Degree >= 0 && o.Degree < math.MaxFloat32):
		fail(op, "LogDegree is %v and Degree is %v; they are means over the training set, or 0 if those are not known", o.LogDegree, o.Degree)
	}
	orOne := func(v float64) float32 {
		if v == 0 {
			return 1
		}
		return float32(v)
	}
	ends := 2
	if o.EdgeDim > 0 {
		ends = 3
	}
	c := &PNAConv{
		AvgDegree: NewFixed(1, 1, orOne(o.Degree)), AvgLogDegree: NewFixed(1, 1, orOne(o.LogDegree)),
		Pre: NewLinear(ends*in, in, true), Post: NewLinear((1+len(o.Aggregators)*len(o.Scalers))*in, out, true), Lin: NewLinear(out, out, true),
		Aggregators: slices.Clone(o.Aggregators), Scalers: slices.Clone(o.Scalers),
	}
	if o.EdgeDim > 0 {
		c.EdgeEncoder = NewLinear(o.EdgeDim, in, true)
	}
	return c
}

func checkNames(op, field string, names, known []string) {
	if len(names) == 0 {
		fail(op, "%s is empty; choose at least one of %s", field, strings.Join(known, ", "))
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			fail(op, "%s has %q; choose of %s", field, name, strings.Join(known, ", "))
		}
	}
}

// Forward returns y [NumDst, out] for h [NumSrc, in], in the space of the block's destinations. It needs memory for some matrices
// [edges, in], two of them for the standard deviation. The parts of pre that belong to rows of nodes are computed for each node, not
// for each edge. On a GPU the degrees are computed by the host.
func (c *PNAConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	const op = "PNAConv"
	if c == nil {
		fail(op, "the layer is nil; create it with NewPNA")
	}
	own, in := f.Dst(b, h), c.Pre.Weight.Rows
	if h.Cols() != in {
		fail(op, "h is [%d,%d] and the layer was made for %d columns", h.Rows(), h.Cols(), in)
	}
	message := f.Add(f.GatherDst(b, f.Linear(own, partOf(f, c.Pre, 0, in), f.Param(c.Pre.Bias))), f.GatherSrc(b, f.Linear(h, partOf(f, c.Pre, in, 2*in), nil)))
	if c.EdgeEncoder != nil {
		edge := c.EdgeEncoder.Forward(f, f.EdgeInput(b, c.EdgeEncoder.Weight.Cols))
		message = f.Add(message, f.Linear(edge, partOf(f, c.Pre, 2*in, 3*in), nil))
	}
	all := f.Concat(c.aggregations(f, b, message)...)
	parts := []*Tensor{own}
	for _, scaler := range c.Scalers {
		y := all
		if scaler != "identity" {
			y = f.MulRows(all, f.Input(b.NumDst, 1, c.scales(b, scaler), all.Space()))
		}
		parts = append(parts, y)
	}
	return c.Lin.Forward(f, c.Post.Forward(f, f.Concat(parts...)))
}

// aggregations returns those of the messages [edges, in], [NumDst, in] each.
func (c *PNAConv) aggregations(f *Fwd, b *Block, message *Tensor) (all []*Tensor) {
	var mean, variance *Tensor
	if slices.ContainsFunc(c.Aggregators, func(a string) bool { return a == "mean" || a == "std" || a == "var" }) {
		mean = f.AggregateEdges(b, message, Mean)
	}
	if slices.ContainsFunc(c.Aggregators, func(a string) bool { return a == "std" || a == "var" }) {
		far := f.Sub(message, f.GatherDst(b, mean))
		variance = f.AggregateEdges(b, f.Mul(far, far), Mean)
	}
	for _, a := range c.Aggregators {
		var y *Tensor
		switch a {
		case "mean":
			y = mean
		case "sum":
			y = f.AggregateEdges(b, message, Sum)
		case "max":
			y = f.AggregateEdges(b, message, Max)
		case "min":
			y = f.Scale(f.AggregateEdges(b, f.Scale(message, -1), Max), -1)
		case "var":
			y = variance
		case "std":
			y = f.Sqrt(variance, 1e-5) // as PyG
		default:
			fail("PNAConv", "Aggregators has %q; choose of %s", a, strings.Join(pnaAggregators, ", "))
		}
		all = append(all, y)
	}
	return all
}

// scales returns the factor of each destination by a scaler.
func (c *PNAConv) scales(b *Block, scaler string) []float32 {
	type key struct {
		scaler            string
		logDegree, degree float32
	}
	delta, mean := c.AvgLogDegree.W[0], c.AvgDegree.W[0]
	if !(delta > 0) || !(mean > 0) {
		fail("PNAConv", "the mean of log(d+1) is %v and that of the degree d is %v; both must be above 0, as they are over a set with edges", delta, mean)
	}
	k := key{scaler, delta, mean}
	return b.MemoIn(k, func(old any) any {
		was, _ := old.([]float32)
		out, indptr := slices.Grow(was[:0], b.NumDst)[:b.NumDst], b.Indptr()
		for d := range out {
			n := float64(indptr[d+1] - indptr[d])
			var v float64
			switch scaler {
			case "amplification":
				v = math.Log(n+1) / float64(delta)
			case "attenuation":
				v = float64(delta) / math.Log(max(n, 1)+1)
			case "linear":
				v = n / float64(mean)
			case "inverse_linear":
				v = float64(mean) / max(n, 1)
			default:
				fail("PNAConv", "Scalers has %q; choose of %s", scaler, strings.Join(pnaScalers, ", "))
			}
			out[d] = float32(v)
		}
		return out
	}).([]float32)
}
