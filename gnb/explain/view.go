package explain

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/internal/simd"
)

// view is the neighbourhood of a node, as a function of its features and of masks of its edges.
type view struct {
	ctx    context.Context
	n      *predict.Neighbourhood
	o      Options
	f      *nn.Fwd
	edges  []edge // each once, whatever layers use it
	rows   map[*graphops.Block][]int32
	row    map[int64]int32 // of an edge's position
	output int             // column that is explained
	first  []float32       // the outputs, unchanged
}

// edge is an edge of the neighbourhood between rows of its nodes.
type edge struct {
	src, dst int32
	pos      int64
}

func newView(ctx context.Context, n *predict.Neighbourhood, o Options) (*view, error) {
	v := &view{ctx: ctx, n: n, o: o, f: nn.NewFwd(nn.Config{Threads: n.Threads}), rows: map[*graphops.Block][]int32{}, row: map[int64]int32{}}
	at := make(map[int32]int32, len(n.Nodes)) // row of a node, by its place
	for i, node := range n.Nodes {
		at[node.Place] = int32(i)
	}
	for _, b := range n.Blocks {
		indptr, ids := b.Indptr(), b.SrcIDs()
		for d := range b.NumDst {
			for e := indptr[d]; e < indptr[d+1]; e++ {
				pos := b.Pos(e)
				if _, ok := v.row[pos]; ok {
					continue
				}
				v.row[pos] = int32(len(v.edges))
				v.edges = append(v.edges, edge{at[ids[b.Indices()[e]]], at[ids[b.DstStart+d]], pos})
			}
		}
	}
	y, err := v.pass(nil, nil)
	if err != nil {
		return nil, err
	}
	if !simd.Finite(y) {
		return nil, fmt.Errorf("explain: the answer for node %s: %w; look for features that are not finite or very large", n.ID, gnb.ErrNotFinite)
	}
	v.first = y
	return v, v.choose()
}

// choose finds the output to explain.
func (v *view) choose() error {
	n := v.n
	if n.Kind != predict.Classes && n.Kind != predict.Labels && n.Kind != predict.Numbers {
		return fmt.Errorf("explain: the answers of the run are %s, and an explanation is of one class, label or number: %w", n.Kind, predict.ErrRequest)
	}
	if v.o.Output == "" {
		if n.Kind != predict.Numbers {
			v.output = nn.Argmax(v.first)
		}
		return nil
	}
	if v.output = slices.Index(n.Columns, v.o.Output); v.output < 0 {
		return fmt.Errorf("explain: Options.Output is %q, and the outputs are %s: %w", v.o.Output, listed(n.Columns), predict.ErrRequest)
	}
	return nil
}

// rowsOf returns the rows of the masks of a block's edges.
func (v *view) rowsOf(b *graphops.Block) []int32 {
	if rows, ok := v.rows[b]; ok {
		return rows
	}
	indptr := b.Indptr()
	rows := make([]int32, 0, b.NumEdges())
	for e := indptr[0]; e < indptr[b.NumDst]; e++ {
		r, ok := v.row[b.Pos(e)]
		if !ok {
			r = -1
		}
		rows = append(rows, r)
	}
	v.rows[b] = rows
	return rows
}

// forward computes the outputs of the node, from features x (nil: its own) and masks m of edges (nil: none). A network with one output
// for two classes gets a column of zeros for the first.
func (v *view) forward(x, m *nn.Tensor) (*nn.Tensor, error) {
	if m != nil {
		v.f.MaskEdges(m, v.rowsOf)
	}
	y, err := nn.TryForward(v.n.Model, v.f, v.n.Blocks, x)
	if err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	if y.Cols() == 1 && len(v.n.Columns) == 2 {
		y = v.f.Concat(v.f.Scale(y, 0), y)
	}
	return y, nil
}

func (v *view) input() *nn.Tensor {
	return v.f.Input(len(v.n.Nodes), v.n.Cols, v.n.X, v.n.Space)
}

// pass returns the outputs for changed features or masks, nil for those of the dataset.
func (v *view) pass(x, m []float32) ([]float32, error) {
	if err := v.ctx.Err(); err != nil {
		return nil, err
	}
	v.f.Reset(nn.Config{Threads: v.n.Threads})
	in := v.input()
	if x != nil {
		in = v.f.Input(len(v.n.Nodes), v.n.Cols, x, v.n.Space)
	}
	var mask *nn.Tensor
	if m != nil {
		mask = v.f.Input(len(m), 1, m, nil)
	}
	y, err := v.forward(in, mask)
	if err != nil {
		return nil, err
	}
	return slices.Clone(y.Data()), nil
}

// gradient adds share times the gradient of the explained output in the features x, or in the masks m, to sum.
func (v *view) gradient(x, m []float32, share float64, sum []float64) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	v.f.Reset(nn.Config{Threads: v.n.Threads, Grad: true})
	var leaf, y *nn.Tensor
	var err error
	if x != nil {
		leaf = v.f.Leaf(len(v.n.Nodes), v.n.Cols, x, v.n.Space)
		y, err = v.forward(leaf, nil)
	} else {
		leaf = v.f.Leaf(len(m), 1, m, nil)
		y, err = v.forward(v.input(), leaf)
	}
	if err != nil {
		return err
	}
	if err := v.f.Backward(v.f.SumAll(v.f.Cols(y, v.output, v.output+1)), 1); err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	for i, g := range leaf.Grad() {
		sum[i] += share * float64(g)
	}
	return nil
}

// scores of features [nodes, columns] and of edges.
type scores struct{ features, edges []float64 }

func (v *view) scores() (s scores, err error) {
	s = scores{make([]float64, len(v.n.X)), make([]float64, len(v.edges))}
	switch v.o.Method {
	case GradientInput:
		err = v.integrate(&s, []float64{1}, []float64{1})
	case LeaveOut:
		err = v.leaveOut(&s)
	case Mask:
		err = v.learn(&s)
	default:
		points, shares := legendre(v.o.Steps)
		err = v.integrate(&s, points, shares)
	}
	for _, all := range [][]float64{s.features, s.edges} {
		if err == nil && slices.ContainsFunc(all, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
			err = fmt.Errorf("explain: the gradient for node %s: %w; take --method leave-out, and look for features that are very large", v.n.ID, gnb.ErrNotFinite)
		}
	}
	return s, err
}

// integrate sums gradients at points between 0 and 1 of the way from zeros to the features, and to masks of 1.
func (v *view) integrate(s *scores, points, shares []float64) error {
	x, m := make([]float32, len(v.n.X)), make([]float32, len(v.edges))
	for i, at := range points {
		for k, y := range v.n.X {
			x[k] = float32(at * float64(y))
		}
		if err := v.gradient(x, nil, shares[i], s.features); err != nil {
			return err
		}
		if len(m) == 0 {
			continue
		}
		for k := range m {
			m[k] = float32(at)
		}
		if err := v.gradient(nil, m, shares[i], s.edges); err != nil {
			return err
		}
	}
	for k, y := range v.n.X {
		s.features[k] *= float64(y)
	}
	return nil
}

// leaveOut leaves out each edge, and sets each feature of the node itself to 0.
func (v *view) leaveOut(s *scores) error {
	m := ones(len(v.edges))
	for k := range m {
		m[k] = 0
		y, err := v.pass(nil, m)
		if err != nil {
			return err
		}
		m[k] = 1
		s.edges[k] = float64(v.first[v.output]) - float64(y[v.output])
	}
	own := v.n.X[:v.n.Cols] // the node is the first
	for c, x := range own {
		if x == 0 {
			continue
		}
		changed := slices.Clone(v.n.X)
		changed[c] = 0
		y, err := v.pass(changed, nil)
		if err != nil {
			return err
		}
		s.features[c] = float64(v.first[v.output]) - float64(y[v.output])
	}
	return nil
}

// Coefficients of the loss of [Mask], as in torch_geometric.explain.GNNExplainer.
const (
	maskEdgeSize    = 0.005 // of the sum of the masks of edges
	maskEdgeEntropy = 1.0   // of their mean entropy
	maskNodeSize    = 1.0   // of the mean of the masks of features
	maskNodeEntropy = 0.1   // of their mean entropy
)

// learn trains masks of edges and features so that the network still gives the node its answer.
func (v *view) learn(s *scores) error {
	n, edges, features := len(v.n.Nodes), len(v.edges), len(v.n.X)
	w := make([]float32, edges+features) // logits of the masks, those of edges first
	r := rand.New(rand.NewPCG(v.o.Seed, 0x6d61736b))
	deviation := math.Sqrt2 * math.Sqrt(2/(2*float64(v.n.Graph)))
	for i := range w {
		if w[i] = float32(0.1 * r.NormFloat64()); i < edges {
			w[i] = float32(deviation * r.NormFloat64())
		}
	}
	mask, grad := make([]float32, len(w)), make([]float32, len(w))
	reached := make([]bool, len(w)) // an edge or feature that the answer does not depend on has no mask
	adam := optim.NewAdam(optim.AdamOptions{LR: v.o.LR})
	for epoch := range v.o.Epochs {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		for i, z := range w {
			mask[i] = float32(1 / (1 + math.Exp(-float64(z))))
		}
		v.f.Reset(nn.Config{Threads: v.n.Threads, Grad: true})
		of := v.f.Leaf(n, v.n.Cols, mask[edges:], v.n.Space)
		var m *nn.Tensor
		if edges > 0 {
			m = v.f.Leaf(edges, 1, mask[:edges], nil)
		}
		y, err := v.forward(v.f.Mul(v.input(), of), m)
		if err != nil {
			return err
		}
		if err := v.f.Backward(v.loss(y), 1); err != nil {
			return fmt.Errorf("explain: %w", err)
		}
		g := of.Grad()
		if m != nil {
			g = slices.Concat(m.Grad(), g)
		}
		if epoch == 0 {
			for i := range reached {
				reached[i] = g[i] != 0
			}
		}
		for i := range grad {
			size, entropy, all := maskEdgeSize, maskEdgeEntropy, edges
			if i >= edges {
				size, entropy, all = maskNodeSize/float64(features), maskNodeEntropy, features
			}
			p := float64(mask[i])
			slope := p * (1 - p)
			// The entropy's derivative by p is -log(p/(1-p)), which is minus the logit.
			if grad[i] = 0; reached[i] {
				grad[i] = float32((float64(g[i]) + size - entropy/float64(all)*float64(w[i])) * slope)
			}
		}
		adam.Step(w, grad, 1)
	}
	for i, z := range w {
		p := 1 / (1 + math.Exp(-float64(z)))
		switch {
		case !reached[i]:
		case i < edges:
			s.edges[i] = p
		default:
			s.features[i-edges] = p
		}
	}
	return nil
}

// loss is the cross-entropy of the explained class, the binary one of a label, or the squared distance from the number.
func (v *view) loss(y *nn.Tensor) *nn.Tensor {
	one := v.f.Cols(y, v.output, v.output+1)
	switch v.n.Kind {
	case predict.Classes:
		return v.f.Scale(v.f.SumAll(v.f.Cols(v.f.LogSoftmax(y), v.output, v.output+1)), -1)
	case predict.Labels: // -log of the probability of what was predicted
		sign := 1.0
		if v.first[v.output] < 0 {
			sign = -1
		}
		two := v.f.Concat(v.f.Scale(one, sign), v.f.Scale(one, 0))
		return v.f.Scale(v.f.SumAll(v.f.Cols(v.f.LogSoftmax(two), 0, 1)), -1)
	}
	d := v.f.Sub(one, v.f.Input(1, 1, []float32{v.first[v.output]}, one.Space()))
	return v.f.SumAll(v.f.Mul(d, d))
}

func ones(n int) []float32 { return slices.Repeat([]float32{1}, n) }

// legendre returns the points of Gauss-Legendre quadrature with n points between 0 and 1, and their shares, by Newton's method on the
// polynomial of degree n.
func legendre(n int) (points, shares []float64) {
	points, shares = make([]float64, n), make([]float64, n)
	for i := range n {
		x := math.Cos(math.Pi * (float64(i) + 0.75) / (float64(n) + 0.5))
		var slope float64
		for range 100 {
			p0, p1 := 1.0, x
			for k := 2; k <= n; k++ {
				p0, p1 = p1, (float64(2*k-1)*x*p1-float64(k-1)*p0)/float64(k)
			}
			slope = float64(n) * (x*p1 - p0) / (x*x - 1)
			step := p1 / slope
			if x -= step; math.Abs(step) < 1e-15 {
				break
			}
		}
		points[n-1-i], shares[n-1-i] = (x+1)/2, 1/((1-x*x)*slope*slope)
	}
	return points, shares
}
