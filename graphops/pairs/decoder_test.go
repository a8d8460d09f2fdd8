package pairs

import (
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
)

// params collects a decoder's parameters and draws them.
func params(t *testing.T, d Decoder) []gradcheck.Input {
	t.Helper()
	if _, ok := d.(Dot); ok {
		return nil
	}
	p, err := nn.Collect(&struct{ D Decoder }{d})
	if err != nil {
		t.Fatal(err)
	}
	p.Init(7)
	var in []gradcheck.Input
	for _, e := range p.List() {
		in = append(in, gradcheck.Param(e.Param))
	}
	return in
}

// Each decoder has the scores of its formula, computed pair by pair in float64, and gradients that
// agree with central differences, with more and with fewer pairs than embeddings.
func TestDecoders(t *testing.T) {
	const nodes, dim = 5, 3
	for _, name := range []string{"dot", "bilinear", "mlp", "hadamard"} {
		for _, n := range []int{0, 2, 8} {
			d, err := NewDecoder(name, dim, 4)
			if err != nil {
				t.Fatal(err)
			}
			in := append([]gradcheck.Input{gradcheck.Random(nodes, dim, 3)}, params(t, d)...)
			src, dst := []int32{0, 4, 1, 1, 1, 3, 2, 0}[:n], []int32{1, 4, 2, 2, 0, 0, 0, 1}[:n]
			gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
				s := d.Score(f, x[0], src, dst)
				if s.Rows() != n || s.Cols() != 1 {
					t.Fatalf("%s: the scores of %d pairs are [%d,%d]", name, n, s.Rows(), s.Cols())
				}
				h, got := x[0].Data(), s.Data()
				for i := range src {
					u, v := h[int(src[i])*dim:][:dim], h[int(dst[i])*dim:][:dim]
					// Sums of at most 10 products of numbers below about 4.
					if want := formula(d, u, v); math.Abs(float64(got[i])-want) > 1e-4 {
						t.Fatalf("%s: pair %d has score %v, want %v", name, i, got[i], want)
					}
				}
				return s
			}, in...)
		}
	}
}

func formula(d Decoder, u, v []float32) float64 {
	dot := func(a []float32, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	switch d := d.(type) {
	case Dot:
		return dot(u, v)
	case *Bilinear:
		sum := 0.0
		for i := range u {
			for j := range v {
				sum += float64(u[i]) * float64(d.Weight.W[i*len(v)+j]) * float64(v[j])
			}
		}
		return sum
	case *MLP:
		x := append(append([]float32(nil), u...), v...)
		if d.Product {
			x = x[:len(u)]
			for i := range u {
				x[i] *= v[i]
			}
		}
		out := float64(d.Out.Bias.W[0])
		for k, b := range d.Hidden.Bias.W {
			out += float64(d.Out.Weight.W[k]) * max(0, float64(b)+dot(d.Hidden.Weight.W[k*len(x):][:len(x)], x))
		}
		return out
	}
	panic("a decoder without a formula")
}

// Each loss has the value of its formula, and gradients that agree with central differences.
func TestLosses(t *testing.T) {
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for _, c := range []struct {
		name    string
		perEdge []int
		weight  func(edges, k int) int
		of      func(s *nn.Tensor, k int) *nn.Loss
		want    func(pos float64, neg []float64) float64
	}{
		{"binary", []int{0, 1, 3}, func(p, k int) int { return p * (1 + k) }, BCE, func(pos float64, neg []float64) float64 {
			sum := -math.Log(sigmoid(pos))
			for _, n := range neg {
				sum -= math.Log(1 - sigmoid(n))
			}
			return sum
		}},
		{"softmax", []int{1, 4}, func(p, k int) int { return p }, Softmax, func(pos float64, neg []float64) float64 {
			sum := math.Exp(pos)
			for _, n := range neg {
				sum += math.Exp(n)
			}
			return -math.Log(math.Exp(pos) / sum)
		}},
		{"max-margin", []int{1, 4}, func(p, k int) int { return p * k }, func(s *nn.Tensor, k int) *nn.Loss { return MaxMargin(s, k, 0.5) }, func(pos float64, neg []float64) (sum float64) {
			for _, n := range neg {
				sum += max(0, 0.5-pos+n)
			}
			return sum
		}},
	} {
		for _, k := range c.perEdge {
			for _, edges := range []int{0, 1, 4} {
				gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
					l := c.of(x[0], k)
					s, want := x[0].Data(), 0.0
					for i := range edges {
						var neg []float64
						for _, n := range s[i*(1+k)+1 : (i+1)*(1+k)] {
							neg = append(neg, float64(n))
						}
						want += c.want(float64(s[i*(1+k)]), neg)
					}
					if got := float64(l.Sum.Data()[0]); math.Abs(got-want) > 1e-5*(1+want) || l.Weight != float64(c.weight(edges, k)) {
						t.Fatalf("%s of %d edges with %d negatives: sum %v, weight %v; want %v, %d", c.name, edges, k, got, l.Weight, want, c.weight(edges, k))
					}
					return l.Sum
				}, gradcheck.Random(edges*(1+k), 1, 5))
			}
		}
	}
}

func TestDecoderAndLossErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		of   func() error
		want string
	}{
		{"name", func() error { _, err := NewDecoder("cosine", 3, 0); return err }, `pairs: there is no decoder "cosine"; choose dot, bilinear, mlp, hadamard or structural`},
		{"columns", func() error { _, err := NewDecoder("mlp", 0, 0); return err }, "pairs: a decoder of 0 columns"},
		{"groups", func() error {
			_, _, err := Grouped(Edges{[]int32{0, 1}, []int32{1, 2}}, Edges{[]int32{0}, []int32{2}})
			return err
		}, "pairs: 1 negatives do not divide among 2 edges"},
		{"no edges", func() error { _, _, err := Grouped(Edges{}, Edges{[]int32{0}, []int32{2}}); return err }, "pairs: there are 1 negatives but no edges"},
		{"scores", func() error {
			return nn.Try(func() { f := nn.NewFwd(nn.Config{}); BCE(f.Input(5, 1, make([]float32, 5), nil), 1) })
		}, "BCE: the scores are [5,1], which are no groups of an edge and 1 negatives"},
		{"no negatives", func() error {
			return nn.Try(func() { f := nn.NewFwd(nn.Config{}); Softmax(f.Input(5, 1, make([]float32, 5), nil), 0) })
		}, "it needs at least one"},
		{"margin", func() error {
			return nn.Try(func() { f := nn.NewFwd(nn.Config{}); MaxMargin(f.Input(4, 1, make([]float32, 4), nil), 1, 0) })
		}, "a margin of 0"},
		{"row", func() error {
			return nn.Try(func() {
				f := nn.NewFwd(nn.Config{})
				Dot{}.Score(f, f.Input(2, 1, make([]float32, 2), nil), []int32{0}, []int32{2})
			})
		}, "row 2 was asked for at position 0, but h is [2,1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.of(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %v", err, c.want)
			}
		})
	}
}
