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
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/simd"
)

// input is what a network reads to give one answer, and the network as a function of it.
type input struct {
	e        *Explanation // what is explained, without scores
	of       string       // that, in errors: "node 5"
	kind     predict.Kind
	outputs  []string // names of the columns of the output
	threads  int
	nodes    []predict.NeighbourNode
	ends     []int     // rows of the nodes that are explained: one, or both ends of a pair; none of a whole graph
	x        []float32 // [nodes, cols]
	cols     int
	own      []float32 // features of the whole graph
	space    *tensor.Space
	graph    int // the number of nodes of the graph
	blocks   []*graphops.Block
	forward  func(f *nn.Fwd, x, own *nn.Tensor) (*nn.Tensor, error)
	number   func(k int, x float32) float64 // in the unit of target k
	relation func(pos int64) string
	features func(typ string) []string
	ownNames []string
	tables   func(typ string) []predict.TableColumn
	raw      func(row int, c predict.TableColumn) (string, bool)
}

// all returns the features of nodes, and then those of the whole graph.
func (in *input) all() []float32 { return slices.Concat(in.x, in.own) }

// view is an input as a function of its features and of masks of its edges.
type view struct {
	ctx    context.Context
	n      *input
	o      Options
	f      *nn.Fwd
	x      []float32 // features of the nodes, and then of the whole graph
	edges  []edge    // each once, whatever layers use it
	rows   map[*graphops.Block][]int32
	row    map[int64]int32 // of an edge's position
	output int             // column that is explained
	than   int             // the column that is taken off it, or -1
	first  []float32       // the outputs, unchanged
}

// edge is an edge of the neighbourhood between rows of its nodes.
type edge struct {
	src, dst int32
	pos      int64
}

func newView(ctx context.Context, n *input, o Options) (*view, error) {
	v := &view{ctx: ctx, n: n, o: o, f: nn.NewFwd(nn.Config{Threads: n.threads}), x: n.all(), than: -1, rows: map[*graphops.Block][]int32{}, row: map[int64]int32{}}
	at := make(map[int32]int32, len(n.nodes)) // row of a node, by its place
	for i, node := range n.nodes {
		at[node.Place] = int32(i)
	}
	for _, b := range n.blocks {
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
		return nil, fmt.Errorf("explain: the answer for %s: %w; look for features that are not finite or very large", n.of, gnb.ErrNotFinite)
	}
	v.first = y
	return v, nil
}

// choose finds the output to explain.
func (v *view) choose() error {
	n := v.n
	if !slices.Contains([]predict.Kind{predict.Classes, predict.Labels, predict.Numbers, predict.Scores}, n.kind) {
		return fmt.Errorf("explain: the answers of the run are %s, and an explanation is of one class, label or number, or of the score of a pair (explain.Pair, --pair): %w", n.kind, predict.ErrRequest)
	}
	named := func(option, name string) (int, error) {
		k := slices.Index(n.outputs, name)
		if k < 0 {
			return 0, fmt.Errorf("explain: Options.%s is %q, and the outputs are %s: %w", option, name, listed(n.outputs), predict.ErrRequest)
		}
		return k, nil
	}
	var err error
	switch {
	case v.o.Output != "":
		if v.output, err = named("Output", v.o.Output); err != nil {
			return err
		}
	case n.kind == predict.Classes || n.kind == predict.Labels:
		v.output = nn.Argmax(v.first)
	}
	if v.o.Than == "" {
		return nil
	}
	if v.than, err = named("Than", v.o.Than); err != nil {
		return err
	}
	switch {
	case v.than == v.output:
		return fmt.Errorf("explain: Options.Than is the explained output %q itself; name another one: %w", v.o.Than, predict.ErrRequest)
	case n.kind == predict.Numbers:
		return fmt.Errorf("explain: Options.Than compares classes or labels, and the outputs are numbers of different units; leave it out: %w", predict.ErrRequest)
	case v.o.Method == Mask:
		return fmt.Errorf("explain: masks keep one answer, so Options.Than is not for the method mask; take gradients or leave-out: %w", predict.ErrRequest)
	}
	return nil
}

// explained is the explained number among the outputs: one of them, or the difference of two.
func (v *view) explained(y []float32) float64 {
	if v.than < 0 {
		return float64(y[v.output])
	}
	return float64(y[v.output]) - float64(y[v.than])
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

// forward computes the outputs, from features x and own (nil: none), and masks m of edges (nil: none). A network with one output
// for two classes gets a column of zeros for the first.
func (v *view) forward(x, own, m *nn.Tensor) (*nn.Tensor, error) {
	if m != nil {
		v.f.MaskEdges(m, v.rowsOf)
	}
	y, err := v.n.forward(v.f, x, own)
	if err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	if y.Cols() == 1 && len(v.n.outputs) == 2 {
		y = v.f.Concat(v.f.Scale(y, 0), y)
	}
	return y, nil
}

// inputs makes tensors of features, those of nodes and those of the whole graph (nil if it has none), by one of the functions of a pass.
func (v *view) inputs(x []float32, make func(rows, cols int, x []float32, sp *tensor.Space) *nn.Tensor) (nodes, own *nn.Tensor) {
	nodes = make(len(v.n.nodes), v.n.cols, x[:len(v.n.x)], v.n.space)
	if len(v.n.own) > 0 {
		own = make(1, len(v.n.own), x[len(v.n.x):], nil)
	}
	return nodes, own
}

// pass returns the outputs for changed features or masks, nil for those of the dataset.
func (v *view) pass(x, m []float32) ([]float32, error) {
	if err := v.ctx.Err(); err != nil {
		return nil, err
	}
	v.f.Reset(nn.Config{Threads: v.n.threads})
	if x == nil {
		x = v.x
	}
	in, own := v.inputs(x, v.f.Input)
	var mask *nn.Tensor
	if m != nil {
		mask = v.f.Input(len(m), 1, m, nil)
	}
	y, err := v.forward(in, own, mask)
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
	v.f.Reset(nn.Config{Threads: v.n.threads, Grad: true})
	var leaves []*nn.Tensor
	var y *nn.Tensor
	var err error
	if x != nil {
		in, own := v.inputs(x, v.f.Leaf)
		if leaves = append(leaves, in); own != nil {
			leaves = append(leaves, own)
		}
		y, err = v.forward(in, own, nil)
	} else {
		leaves = append(leaves, v.f.Leaf(len(m), 1, m, nil))
		in, own := v.inputs(v.x, v.f.Input)
		y, err = v.forward(in, own, leaves[0])
	}
	if err != nil {
		return err
	}
	of := v.f.Cols(y, v.output, v.output+1)
	if v.than >= 0 {
		of = v.f.Sub(of, v.f.Cols(y, v.than, v.than+1))
	}
	if err := v.f.Backward(v.f.SumAll(of), 1); err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	at := 0
	for _, leaf := range leaves {
		g := leaf.Grad()
		for i, d := range g {
			sum[at+i] += share * float64(d)
		}
		at += leaf.Rows() * leaf.Cols()
	}
	return nil
}

// scores of features [nodes, columns], with those of the whole graph behind them, and of edges.
type scores struct{ features, edges []float64 }

func (v *view) scores() (s scores, err error) {
	s = scores{make([]float64, len(v.x)), make([]float64, len(v.edges))}
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
	if unit := v.unit(); err == nil && unit != 1 && v.o.Method != Mask {
		for _, all := range [][]float64{s.features, s.edges} {
			for i := range all {
				all[i] *= unit
			}
		}
	}
	for _, all := range [][]float64{s.features, s.edges} {
		if err == nil && slices.ContainsFunc(all, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
			err = fmt.Errorf("explain: the gradient for %s: %w; take --method leave-out, and look for features that are very large", v.n.of, gnb.ErrNotFinite)
		}
	}
	return s, err
}

// unit is what one of the network's output is in the unit of the explained target, if the numbers of targets are a linear function of outputs
// as standardised ones are; else 1, and the explanation says so. Other outputs have no unit.
func (v *view) unit() float64 {
	if v.n.kind != predict.Numbers {
		return 1
	}
	at := func(x float32) float64 { return v.n.number(v.output, x) }
	slope, y := at(1)-at(0), v.first[v.output]
	if want := at(0) + slope*float64(y); slope == 0 || math.Abs(at(y)-want) > 1e-4*(math.Abs(want)+math.Abs(slope)) {
		v.n.e.Notes = append(v.n.e.Notes, "scores are of the network's output, which the number is not a linear function of")
		return 1
	}
	return slope
}

// integrate sums gradients at points between 0 and 1 of the way from zeros to the features, and to masks of 1.
func (v *view) integrate(s *scores, points, shares []float64) error {
	x, m := make([]float32, len(v.x)), make([]float32, len(v.edges))
	for i, at := range points {
		for k, y := range v.x {
			x[k] = float32(at * float64(y))
		}
		if err := v.gradient(x, nil, shares[i], s.features); err != nil {
			return err
		}
		if len(m) == 0 || v.o.columnsOnly {
			continue
		}
		for k := range m {
			m[k] = float32(at)
		}
		if err := v.gradient(nil, m, shares[i], s.edges); err != nil {
			return err
		}
	}
	for k, y := range v.x {
		s.features[k] *= float64(y)
	}
	return nil
}

// mostPasses bounds the features of a graph that leaving out leaves out.
const mostPasses = 1 << 14

// leaveOut leaves out each edge, and sets each feature of the explained nodes to 0, or of all nodes and of the graph for a whole graph.
func (v *view) leaveOut(s *scores) error {
	m := ones(len(v.edges))
	for k := range m {
		if v.o.columnsOnly {
			break
		}
		m[k] = 0
		y, err := v.pass(nil, m)
		if err != nil {
			return err
		}
		m[k] = 1
		s.edges[k] = v.explained(v.first) - v.explained(y)
	}
	var at []int
	for _, row := range v.n.ends {
		for c := range v.n.cols {
			at = append(at, row*v.n.cols+c)
		}
	}
	if v.n.ends == nil {
		for i := range v.x {
			at = append(at, i)
		}
	}
	at = slices.DeleteFunc(at, func(i int) bool { return v.x[i] == 0 })
	if len(at) > mostPasses {
		return fmt.Errorf("explain: %s has %d features other than 0, and leaving out takes a pass for each; take --method gradients (explain.Gradients): %w", v.n.of, len(at), predict.ErrRequest)
	}
	for _, i := range at {
		changed := slices.Clone(v.x)
		changed[i] = 0
		y, err := v.pass(changed, nil)
		if err != nil {
			return err
		}
		s.features[i] = v.explained(v.first) - v.explained(y)
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
	edges, features := len(v.edges), len(v.x)
	w := make([]float32, edges+features) // logits of the masks, those of edges first
	r := rand.New(rand.NewPCG(v.o.Seed, 0x6d61736b))
	deviation := math.Sqrt2 * math.Sqrt(2/(2*float64(v.n.graph)))
	for i := range w {
		if w[i] = float32(0.1 * r.NormFloat64()); i < edges {
			w[i] = float32(deviation * r.NormFloat64())
		}
	}
	mask, grad, g := make([]float32, len(w)), make([]float32, len(w)), make([]float32, 0, len(w))
	reached := make([]float32, len(w)) // 0 for an edge or feature that the answer does not depend on: it has no mask
	adam := optim.NewAdam(optim.AdamOptions{LR: v.o.LR})
	for epoch := range v.o.Epochs {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		simd.Exp(mask, w, 0)
		for i, e := range mask {
			mask[i] = 1 - 1/(1+e)
		}
		v.f.Reset(nn.Config{Threads: v.n.threads, Grad: true})
		of, ofOwn := v.inputs(mask[edges:], v.f.Leaf)
		x, own := v.inputs(v.x, v.f.Input)
		x = v.f.Mul(x, of)
		if own != nil {
			own = v.f.Mul(own, ofOwn)
		}
		var m *nn.Tensor
		if edges > 0 {
			m = v.f.Leaf(edges, 1, mask[:edges], nil)
		}
		y, err := v.forward(x, own, m)
		if err != nil {
			return err
		}
		if err := v.f.Backward(v.loss(y), 1); err != nil {
			return fmt.Errorf("explain: %w", err)
		}
		g = g[:0]
		for _, leaf := range []*nn.Tensor{m, of, ofOwn} {
			if leaf != nil {
				g = append(g, leaf.Grad()...)
			}
		}
		if epoch == 0 {
			for i := range reached {
				if g[i] != 0 {
					reached[i] = 1
				}
			}
		}
		// The entropy's derivative by p is -log(p/(1-p)), which is minus the logit.
		slope := func(lo, hi int, size, entropies float64) {
			cost, entropy := float32(size), float32(entropies/float64(max(hi-lo, 1)))
			g, mask, w, reached, grad := g[lo:hi], mask[lo:hi], w[lo:hi], reached[lo:hi], grad[lo:hi]
			for i, d := range g {
				p := mask[i]
				grad[i] = (d + cost - entropy*w[i]) * p * (1 - p) * reached[i]
			}
		}
		slope(0, edges, maskEdgeSize, maskEdgeEntropy)
		slope(edges, len(w), maskNodeSize/float64(max(features, 1)), maskNodeEntropy)
		adam.Step(w, grad, 1)
	}
	for i, z := range w {
		p := 1 / (1 + math.Exp(-float64(z)))
		switch {
		case reached[i] == 0:
		case i < edges:
			s.edges[i] = p
		default:
			s.features[i-edges] = p
		}
	}
	return nil
}

// loss is the cross-entropy of the explained class, the binary one of a label or of the score of a pair, or the squared distance from the
// number.
func (v *view) loss(y *nn.Tensor) *nn.Tensor {
	one := v.f.Cols(y, v.output, v.output+1)
	switch v.n.kind {
	case predict.Classes:
		return v.f.Scale(v.f.SumAll(v.f.Cols(v.f.LogSoftmax(y), v.output, v.output+1)), -1)
	case predict.Labels, predict.Scores: // -log of the probability of what was predicted
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
