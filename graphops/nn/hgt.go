package nn

import (
	"math"
	"strings"

	"github.com/graphnb/graphnb/graphops"
)

// HGTConv is the heterogeneous graph transformer: attention with H heads of D columns, whose weights depend on
// the types of nodes and edges. For each head, with τ the type of a node and r that of an edge,
//
//	y_v = A_τ(v)·gelu(Σ_u α_uv · V_τ(u)·x_u·M_r) , α_uv = softmax over u of μ_r · (Q_τ(v)·x_v) · (K_τ(u)·x_u·W_r) / √D
//
// over the in-edges u → v of all relations of a block's destinations. If y has as many columns as x, the result
// is s·y_v + (1 - s)·x_v with a trained s = sigmoid(skip_τ(v)). A destination without in-edges has a sum of 0.
//
// With sampled neighbours the softmax is over the sampled ones, as in PyG. Edge weights and features are ignored.
//
// Parameters and semantics are those of torch_geometric.nn.HGTConv: kqv_lin.lins.TYPE.weight [3·out, in] and
// bias, out_lin.lins.TYPE.weight [out, out] and bias, k_rel.weight and v_rel.weight [H·relations, D, D],
// skip.TYPE [1] and p_rel.SRC__NAME__DST [1, H]. PyG returns no rows for types that are no relation's
// destination.
//
// Source: Z. Hu, Y. Dong, K. Wang, Y. Sun, "Heterogeneous graph transformer", WWW 2020, arXiv:2003.01332,
// equations 3 to 5, doi:10.1145/3366423.3380027.
type HGTConv struct {
	KQV  map[string]*Linear `nn:"kqv_lin.lins"`
	Out  map[string]*Linear `nn:"out_lin.lins"`
	KRel *Param             `nn:"k_rel.weight"`
	VRel *Param             `nn:"v_rel.weight"`
	Skip map[string]*Param  `nn:"skip,vector"`
	PRel map[string]*Param  `nn:"p_rel"`

	Schema   *graphops.Schema `nn:"-"`
	Heads    int
	relation []string // the keys of PRel, by relation
}

// NewHGT returns an HGTConv for the nodes and edges of a schema, whose rows have in columns, with heads heads of
// out/heads columns.
func NewHGT(in, out, heads int, s *graphops.Schema) *HGTConv {
	const op = "HGTConv"
	checkSchema(op, s)
	if heads < 1 || out%heads != 0 {
		fail(op, "%d columns are not divisible by %d heads", out, heads)
	}
	d := out / heads
	rel := func() *Param {
		p := NewParam(heads*len(s.Relations)*d, d)
		p.FileShape = []int{heads * len(s.Relations), d, d}
		return p
	}
	c := &HGTConv{
		KQV: map[string]*Linear{}, Out: map[string]*Linear{}, KRel: rel(), VRel: rel(),
		Skip: map[string]*Param{}, PRel: map[string]*Param{}, Schema: s, Heads: heads,
	}
	for _, t := range s.Nodes {
		c.KQV[t.Name], c.Out[t.Name], c.Skip[t.Name] = NewLinear(in, 3*out, true), NewLinear(out, out, true), NewParam(1, 1)
	}
	for _, r := range s.Relations {
		key := strings.Join([]string{r.Src, r.Name, r.Dst}, "__")
		if c.PRel[key] != nil {
			fail(op, "two relations are named %s when their names are joined by __; rename one", key)
		}
		c.PRel[key] = NewParam(1, heads)
		c.relation = append(c.relation, key)
	}
	return c
}

// checkSchema panics unless the schema is valid and has relations.
func checkSchema(op string, s *graphops.Schema) {
	if s == nil || len(s.Relations) == 0 {
		fail(op, "the schema has no relations; give the schema of a graph with types, such as Graph.Schema")
	}
	if err := s.Validate(); err != nil {
		fail(op, "%v", err)
	}
}

// Reset initialises the parameters as PyG does: linear layers by PyTorch's, ones for skip and p_rel.
func (c *HGTConv) Reset(init func(p *Param, bound float64)) {
	bound := 1 / math.Sqrt(float64(max(c.KRel.Cols, 1)))
	init(c.KRel, bound)
	init(c.VRel, bound)
	for _, set := range []map[string]*Param{c.Skip, c.PRel} {
		for _, p := range set {
			for i := range p.W {
				p.W[i] = 1
			}
		}
	}
}

// Forward returns y [NumDst, out] for h [NumSrc, in], in the space of the block's destinations. It stores no
// message: it needs memory for keys and values [NumSrc, out] and [pairs, out], with a pair for each source and
// relation that it has edges of, and a few matrices [edges, H].
func (c *HGTConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	const op = "HGTConv"
	if c == nil || c.Schema == nil {
		fail(op, "the layer is nil; create it with NewHGT")
	}
	out, relations := c.KRel.Cols*c.Heads, len(c.Schema.Relations)
	own := f.Dst(b, h)
	srcs, dsts := nodesOf(op, b, c.Schema, false), nodesOf(op, b, c.Schema, true)
	x, mine := srcs.grouped(f, h), dsts.grouped(f, own)
	// part is the rows of a linear layer's weight and bias [3·out] that make the keys, queries or values.
	part := func(g *nodeGroups, x *Tensor, i int) *Tensor {
		return g.back(f, g.stack(f, x, out, func(t int, rows *Tensor) *Tensor {
			l := c.KQV[c.Schema.Nodes[t].Name]
			bias := f.Rows(f.Reshape(f.Param(l.Bias), 3*out, 1), i*out, (i+1)*out)
			return f.Linear(rows, f.Rows(f.Param(l.Weight), i*out, (i+1)*out), bias)
		}))
	}
	key, query, value := part(srcs, x, 0), part(dsts, mine, 1), part(srcs, x, 2)

	pairs := sourcesOf(op, b, relations)
	typed := func(x *Tensor, rel *Param) *Tensor {
		w := c.byRelation(f, rel)
		return pairs.stack(f, f.Gather(x, pairs.rows), out, func(r int, rows *Tensor) *Tensor {
			return f.MatMul(rows, f.Rows(w, r*out, (r+1)*out))
		})
	}
	key, value = typed(key, c.KRel), typed(value, c.VRel)
	prior := make([]*Tensor, relations)
	for r, name := range c.relation {
		prior[r] = f.Param(c.PRel[name])
	}
	score := f.Mul(f.EdgeHeadDot(pairs.along, query, key, c.Heads), f.Gather(f.Stack(prior...), pairs.types))
	att := f.EdgeSoftmax(pairs.along, f.Scale(score, 1/math.Sqrt(float64(max(c.KRel.Cols, 1)))))
	sum := dsts.grouped(f, GELU(f, f.AggregateHeads(pairs.along, value, att)))
	y := dsts.stack(f, sum, out, func(t int, rows *Tensor) *Tensor {
		name := c.Schema.Nodes[t].Name
		y := c.Out[name].Forward(f, rows)
		if out != h.Cols() {
			return y
		}
		lo, hi := dsts.of(t)
		x := f.Rows(mine, lo, hi)
		return f.Add(x, f.ScaleBy(f.Sub(y, x), f.Sigmoid(f.Param(c.Skip[name]))))
	})
	return dsts.back(f, y).SetSpace(own.Space())
}

// byRelation returns the matrices of all heads of each relation as block matrices [relations·out, out], from
// those of each head and relation [H·relations·D, D].
func (c *HGTConv) byRelation(f *Fwd, rel *Param) *Tensor {
	d, heads, relations := rel.Cols, c.Heads, len(c.Schema.Relations)
	out := heads * d
	order := make([]int32, 0, relations*out)
	for r := range relations {
		for k := range heads {
			for i := range d {
				order = append(order, int32((k*relations+r)*d+i))
			}
		}
	}
	repeat, mask := make([]float32, d*out), make([]float32, relations*out*out)
	for i := range d {
		for k := range heads {
			repeat[i*out+k*d+i] = 1
		}
	}
	for row := range relations * out {
		k := row % out / d
		for i := range d {
			mask[row*out+k*d+i] = 1
		}
	}
	all := f.MatMul(f.Gather(f.Param(rel), order), f.Input(d, out, repeat, nil))
	return f.Mul(all, f.Input(relations*out, out, mask, nil))
}
