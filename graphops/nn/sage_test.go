package nn

import (
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/expect"
	"github.com/graphnb/graphnb/internal/testkit/ref"
)

// sageWeights are a SAGEConv's parameters in float64.
type sageWeights struct{ wl, bl, wr ref.Matrix }

func weightsOf(c *SAGEConv) sageWeights {
	w := sageWeights{wl: matrix(c.LinL.Weight), bl: matrix(c.LinL.Bias)}
	if c.LinR != nil {
		w.wr = matrix(c.LinR.Weight)
	}
	return w
}

// refSAGE follows the formula with plain loops.
func refSAGE(c *SAGEConv, w sageWeights, b *Block, h ref.Matrix) ref.Matrix {
	y := ref.Linear(ref.Aggregate(b, h, c.Aggr), w.wl, w.bl)
	if c.LinR != nil {
		own := ref.Linear(ref.Rows(h, b.DstStart, b.DstStart+b.NumDst), w.wr, ref.Matrix{})
		y = ref.Zip(y, own, func(x, y float64) float64 { return x + y })
	}
	if c.Normalize {
		y = ref.L2Normalize(y)
	}
	return y
}

var sageVariants = []struct {
	name string
	o    SAGEOptions
}{
	{"mean", SAGEOptions{}},
	{"sum", SAGEOptions{Aggr: Sum}},
	{"max", SAGEOptions{Aggr: Max}},
	{"mean normalized", SAGEOptions{Normalize: true}},
	{"max normalized", SAGEOptions{Aggr: Max, Normalize: true}},
	{"mean without root", SAGEOptions{NoRoot: true}},
	{"sum without bias", SAGEOptions{Aggr: Sum, NoBias: true}},
}

// By hand: node 2 receives from 0 and 1. With in = 2, out = 1,
// W_l = (1 2), b_l = 0.5, W_r = (10 20), x = (1 2) (3 5) (7 -1):
// mean (2 3.5) → 2 + 7 + 0.5 = 9.5, own 70 - 20 = 50, together 59.5;
// sum (4 7) → 18.5 + 50; max (3 5) → 13.5 + 50. Node 0 has no in-edges:
// 0.5 + 10 + 40 = 50.5, without root 0.5.
func TestSAGEByHand(t *testing.T) {
	t.Parallel()
	g, err := graphops.FromEdges(3, []int32{0, 1}, []int32{2, 2}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x := []float32{1, 2, 3, 5, 7, -1}
	for _, tc := range []struct {
		name       string
		o          SAGEOptions
		row0, row2 float32
	}{
		{"mean", SAGEOptions{}, 50.5, 59.5},
		{"sum", SAGEOptions{Aggr: Sum}, 50.5, 68.5},
		{"max", SAGEOptions{Aggr: Max}, 50.5, 63.5},
		{"mean without root", SAGEOptions{NoRoot: true}, 0.5, 9.5},
		{"sum without bias", SAGEOptions{Aggr: Sum, NoBias: true}, 50, 68},
		{"normalized", SAGEOptions{Normalize: true}, 1, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := NewSAGEWith(2, 1, tc.o)
			copy(c.LinL.Weight.W, []float32{1, 2})
			if c.LinL.Bias != nil {
				c.LinL.Bias.W[0] = 0.5
			}
			if c.LinR != nil {
				copy(c.LinR.Weight.W, []float32{10, 20})
			}
			f := NewFwd(Config{})
			b := g.Block()
			y := c.Forward(f, b, f.Input(3, 2, x, tensor.SrcSpace(b))).Data()
			if y[0] != tc.row0 || y[2] != tc.row2 {
				t.Errorf("nodes 0 and 2 are %v and %v, want %v and %v", y[0], y[2], tc.row0, tc.row2)
			}
		})
	}
}

// The forward pass and every gradient, including the input's, equal the reference.
func TestSAGEGradients(t *testing.T) {
	t.Parallel()
	const in, out = 5, 3
	for _, v := range sageVariants {
		for name, b := range testBlocks(t) {
			t.Run(v.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := NewSAGEWith(in, out, v.o)
				p := mustCollect(t, c)
				p.Init(3)
				x := expect.Normal(b.NumSrc*in, 1)
				coef := expect.Normal(b.NumDst*out, 2) // coefficients of the outputs in the loss

				f := NewFwd(Config{Grad: true})
				h := f.Leaf(b.NumSrc, in, x, tensor.SrcSpace(b))
				y := c.Forward(f, b, h)
				rx, rw := ref.From(b.NumSrc, in, x), weightsOf(c)
				expect.Near(t, "forward", y.Data(), refSAGE(c, rw, b, rx).Data, 1e-5, 1e-5)
				if sp := y.Space(); b.NumDst > 0 && (sp == nil || sp.ID(0) != int64(b.DstID(0))) {
					t.Errorf("the space of the output is %v", sp)
				}
				if err := f.SumAll(f.Mul(y, f.Input(b.NumDst, out, coef, nil))).Backward(); err != nil {
					t.Fatal(err)
				}
				loss := func() float64 {
					s := 0.0
					for i, v := range refSAGE(c, rw, b, rx).Data {
						s += v * float64(coef[i])
					}
					return s
				}
				central(t, "input", rx, h.Grad(), loss)
				central(t, "lin_l.weight", rw.wl, c.LinL.Weight.G, loss)
				if c.LinL.Bias != nil {
					central(t, "lin_l.bias", rw.bl, c.LinL.Bias.G, loss)
				}
				if c.LinR != nil {
					central(t, "lin_r.weight", rw.wr, c.LinR.Weight.G, loss)
				}
			})
		}
	}
}

func TestLinearGradients(t *testing.T) {
	t.Parallel()
	for _, bias := range []bool{true, false} {
		for _, n := range []int{0, 1, 7} {
			const in, out = 4, 3
			l := NewLinear(in, out, bias)
			mustCollect(t, l).Init(5)
			x, coef := expect.Normal(n*in, 1), expect.Normal(n*out, 2)
			f := NewFwd(Config{Grad: true})
			h := f.Leaf(n, in, x, &Space{Start: 9})
			y := l.Forward(f, h)
			if y.Rows() != n || y.Cols() != out || y.Space() == nil {
				t.Fatalf("the output is %v in space %v", y, y.Space())
			}
			if err := f.SumAll(f.Mul(y, f.Input(n, out, coef, nil))).Backward(); err != nil {
				t.Fatal(err)
			}
			rx, rw, rb := ref.From(n, in, x), matrix(l.Weight), matrix(l.Bias)
			loss := func() float64 {
				s := 0.0
				for i, v := range ref.Linear(rx, rw, rb).Data {
					s += v * float64(coef[i])
				}
				return s
			}
			central(t, "input", rx, h.Grad(), loss)
			central(t, "weight", rw, l.Weight.G, loss)
			if bias {
				central(t, "bias", rb, l.Bias.G, loss)
			}
		}
	}
}

// The order of a node's in-edges, and of nodes in a block, does not matter: a permuted block gives
// permuted rows.
func TestSAGEPermutation(t *testing.T) {
	t.Parallel()
	b := sampledBlock()
	perm := []int32{2, 0, 1, 5, 3, 4} // the new row of each old row; destinations stay first
	h := graphops.HostBlock{NumDst: 3, NumSrc: 6, Indptr: []int64{0}, SrcIDs: make([]int32, 6)}
	old := []int{1, 2, 0} // the old destination of each new destination
	for _, d := range old {
		for e := b.Indptr()[d+1] - 1; e >= b.Indptr()[d]; e-- {
			h.Indices = append(h.Indices, perm[b.Indices()[e]])
		}
		h.Indptr = append(h.Indptr, int64(len(h.Indices)))
	}
	q := h.Block()
	const in, out = 5, 4
	x := expect.Normal(6*in, 1)
	px := make([]float32, len(x))
	for r, to := range perm {
		copy(px[int(to)*in:], x[r*in:(r+1)*in])
		q.SrcIDs()[to] = b.SrcIDs()[r]
	}
	for _, v := range sageVariants {
		c := NewSAGEWith(in, out, v.o)
		mustCollect(t, c).Init(1)
		f := NewFwd(Config{})
		y := c.Forward(f, b, f.Input(6, in, x, nil)).Data()
		py := c.Forward(f, q, f.Input(6, in, px, nil)).Data()
		for n, d := range old {
			want := make([]float64, out)
			for i := range want {
				want[i] = float64(y[d*out+i])
			}
			expect.Near(t, v.name, py[n*out:(n+1)*out], want, 1e-6, 1e-6) // the sums are added in another order
		}
	}
}
