package kernels

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// loss runs the kernels of the cross-entropy in chunks of 40 rows, and returns the loss and the
// number of correct rows.
func loss(g *gpu, x, labels uint64, rows, cols int) (float32, int64) {
	const chunk = 40
	chunks := (rows + chunk - 1) / chunk
	losses, right, out, count := g.room(8*chunks), g.room(8*chunks), g.room(4), g.room(8)
	g.run("cross_entropy_f32", Losses(chunks, cols), losses, right, x, labels, rows, cols, chunk)
	g.run("cross_entropy_sum_f32", Blocks(1), out, count, losses, right, chunks)
	return get[float32](g, out, 1)[0], get[int64](g, count, 1)[0]
}

func TestCrossEntropy(t *testing.T) {
	each(t, func(g *gpu) {
		for _, s := range shapes {
			r, c := s[0], s[1]
			x, labels := matrix(r, c), make([]int32, r)
			for i := range labels {
				labels[i] = int32(i%(c+1)) - 1
				if c > 1 && i%4 == 0 {
					x[i*c+1] = x[i*c] // makes ties
				}
			}
			f := tensor.NewFwd(tensor.Config{Grad: true})
			leaf := f.Leaf(r, c, x, nil)
			want := nn.CrossEntropy(leaf, labels)
			if err := f.Backward(want.Sum, 1.5); err != nil {
				g.t.Fatal(err)
			}
			dx, dl := put(g, x), put(g, labels)
			got, right := loss(g, dx, dl, r, c)
			near(g.t, "loss", []float32{got}, want.Sum.Data(), 16)
			if right != want.Correct() {
				g.t.Errorf("%v: %d rows are correct, want %d", s, right, want.Correct())
			}
			for _, acc := range []bool{false, true} {
				out, grad := g.out(r*c, acc)
				for i, v := range leaf.Grad() {
					grad[i] += v
				}
				g.run("cross_entropy_grad_f32", Held(r, c), out, put(g, []float32{1.5}), dx, dl, r, c, asFlag(acc))
				same(g, "cross_entropy_grad_f32", out, grad, 16, s)
			}
		}
	})
}

// Large logits do not overflow and do not hide a small loss. NaN and infinity appear in the result,
// and such rows count as correct exactly if they do on the CPU.
func TestCrossEntropyRange(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	each(t, func(g *gpu) {
		for _, row := range [][]float32{{1000, 980, 990}, {-1000, -1000, -1001}, {20, 0, -300}, {0, 20, 5}, {nan, 1, 2}, {1, nan, 0}, {inf, 1, 2}, {-inf, -inf, -inf}, {1, -inf, 0}} {
			got, right := loss(g, put(g, row), put(g, []int32{0}), 1, 3)
			f := tensor.NewFwd(tensor.Config{Grad: true})
			leaf := f.Leaf(1, 3, row, nil)
			l := nn.CrossEntropy(leaf, []int32{0})
			want := l.Sum.Data()[0]
			if !(math.Abs(float64(got-want)) <= 1e-6*math.Abs(float64(want))) && (got == got || want == want) {
				g.t.Errorf("the loss of %g is %g, want %g", row, got, want)
			}
			if right != l.Correct() {
				g.t.Errorf("logits %g: %d rows are correct, want %d", row, right, l.Correct())
			}
			l.Backward()
			out := g.room(12)
			g.run("cross_entropy_grad_f32", Held(1, 3), out, put(g, []float32{1}), put(g, row), put(g, []int32{0}), 1, 3, 0)
			for i, v := range get[float32](g, out, 3) {
				w := leaf.Grad()[i]
				if !(math.Abs(float64(v-w)) <= 1e-6*math.Abs(float64(w))+1e-12) && (v == v || w == w) {
					g.t.Errorf("logits %g: the gradient is %g at %d, want %g", row, v, i, w)
				}
			}
		}
	})
}
