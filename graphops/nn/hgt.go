package nn

import (
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
)

var (
	_ Conv     = (*HGTConv)(nil)
	_ Resetter = (*HGTConv)(nil)
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
	order    []int    // the relations by source type
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
		c.order = append(c.order, len(c.order))
	}
	slices.SortStableFunc(c.order, func(a, b int) int { return c.source(a) - c.source(b) })
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

// source returns the source type of relation r.
func (c *HGTConv) source(r int) int {
	t, _ := c.Schema.Ends(r)
	return t
}

// Forward returns y [NumDst, out] for h [NumSrc, in], in the space of the block's destinations. It stores no
// message: it needs memory for the sources' rows, keys and values [pairs, in or out], with a pair for each source
// and relation that it has edges of, and a few matrices [edges, H].
func (c *HGTConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	const op = "HGTConv"
	if c == nil || c.Schema == nil {
		fail(op, "the layer is nil; create it with NewHGT")
	}
	out := c.KRel.Cols * c.Heads
	own := f.Dst(b, h)
	dsts := nodesOf(op, b, c.Schema, true)
	mine := dsts.grouped(f, own)
	query := dsts.back(f, dsts.stack(f, mine, out, func(t int, rows *Tensor) *Tensor {
		w, bias := c.part(f, t, 1)
		return f.Linear(rows, w, bias)
	}))
	pairs := sourcesOf(op, b, len(c.Schema.Relations))
	rows := f.Gather(h, pairs.rows)
	// typed returns the keys or the values of the pairs.
	typed := func(i int, m *Tensor) *Tensor {
		w, bias := c.joined(f, m, i)
		return pairs.stack(f, rows, out, func(r int, rows *Tensor) *Tensor { return f.Linear(rows, w[r], bias[r]) })
	}
	key, value := typed(0, f.MulRows(c.byRelation(f, c.KRel), c.priors(f))), typed(2, c.byRelation(f, c.VRel))
	att := f.EdgeSoftmax(pairs.along, f.EdgeHeadDot(pairs.along, query, key, c.Heads))
	sum := dsts.grouped(f, GELU(f, f.AggregateHeads(pairs.along, value, att)))
	y := dsts.stack(f, sum, out, func(t int, rows *Tensor) *Tensor {
		name := c.Schema.Nodes[t].Name
		l := c.Out[name]
		if out != h.Cols() {
			return l.Forward(f, rows)
		}
		// s·(rows·Aᵀ + b) + (1 - s)·x: the weights are smaller than the rows.
		lo, hi := dsts.of(t)
		skip := f.Param(c.Skip[name])
		s, rest := f.Sigmoid(skip), f.Sigmoid(f.Scale(skip, -1))
		y := f.Linear(rows, f.ScaleBy(f.Param(l.Weight), s), f.ScaleBy(f.Param(l.Bias), s))
		return f.AddProducts(f.ScaleBy(f.Rows(mine, lo, hi), rest), y)
	})
	return dsts.back(f, y).SetSpace(own.Space())
}

// part returns the rows of a type's weight [3·out, in] and bias that make its keys, queries or values, by i.
func (c *HGTConv) part(f *Fwd, typ, i int) (w, bias *Tensor) {
	l, out := c.KQV[c.Schema.Nodes[typ].Name], c.KRel.Cols*c.Heads
	return f.Rows(f.Param(l.Weight), i*out, (i+1)*out), f.Rows(f.Reshape(f.Param(l.Bias), 3*out, 1), i*out, (i+1)*out)
}

// each returns each relation's rows of a matrix that has them in c.order.
func (c *HGTConv) each(f *Fwd, m *Tensor) []*Tensor {
	n := m.Rows() / len(c.order)
	starts, parts := make([]int, len(c.order)+1), make([]*Tensor, len(c.order))
	for k := range starts {
		starts[k] = k * n
	}
	for k, rows := range f.Split(m, starts) {
		parts[c.order[k]] = rows
	}
	return parts
}

// joined returns for each relation the matrix and the bias that make its keys or values, by i, from rows of its
// sources: those of the source type, multiplied by the relation's own in m [relations·out, out].
func (c *HGTConv) joined(f *Fwd, m *Tensor, i int) (w, bias []*Tensor) {
	out := m.Cols()
	starts := make([]int, len(c.Schema.Nodes)+1) // of the source types
	for _, r := range c.order {
		starts[c.source(r)+1] += out
	}
	for t := range c.Schema.Nodes {
		starts[t+1] += starts[t]
	}
	var ws, biases []*Tensor
	for t, rows := range f.Split(m, starts) {
		if rows.Rows() > 0 {
			own, b := c.part(f, t, i)
			ws, biases = append(ws, f.MatMul(rows, own)), append(biases, f.MatMul(rows, b))
		}
	}
	return c.each(f, f.Stack(ws...)), c.each(f, f.Stack(biases...))
}

// priors returns μ/√D for each row of byRelation.
func (c *HGTConv) priors(f *Fwd) *Tensor {
	prior, d := make([]*Tensor, len(c.order)), c.KRel.Cols
	var heads []int32
	for k, r := range c.order {
		prior[k] = f.Param(c.PRel[c.relation[r]])
		for i := range c.Heads * d {
			heads = append(heads, int32(k*c.Heads+i/d))
		}
	}
	all := f.Scale(f.Stack(prior...), 1/math.Sqrt(float64(max(d, 1))))
	return f.Gather(f.Reshape(all, len(c.order)*c.Heads, 1), heads)
}

// byRelation returns the transposed matrices of all heads of each relation as block matrices [relations·out, out],
// in c.order, from those of each head and relation [H·relations·D, D].
func (c *HGTConv) byRelation(f *Fwd, rel *Param) *Tensor {
	d, heads, relations := rel.Cols, c.Heads, len(c.order)
	out := heads * d
	order := make([]int32, 0, relations*out*d)
	for _, r := range c.order {
		for row := range out {
			for i := range d {
				order = append(order, int32(((row/d*relations+r)*d+i)*d+row%d))
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
	turned := f.Reshape(f.Gather(f.Reshape(f.Param(rel), rel.Rows*d, 1), order), relations*out, d)
	return f.Mul(f.MatMul(turned, f.Input(d, out, repeat, nil)), f.Input(relations*out, out, mask, nil))
}
