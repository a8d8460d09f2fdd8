package nn

import (
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

var (
	_ Module   = (*TimeEncoder)(nil)
	_ Resetter = (*TimeEncoder)(nil)
)

// TimeEncoder encodes spans of time as rows: y [N, d] of Δt [N, 1],
//
//	y_ij = cos(w_j·Δt_i + b_j)
//
// By default w and b are trained and begin as PyG's, from U(±1). With Geometric they begin with b = 0 and
//
//	w_j = a^(-j/a), a = √d, j = 0 … d-1
//
// which are 1, then ever lower frequencies down to about 1/d^(√d/2): spans of a second and of years both move some columns. Fixed keeps them,
// as GraphMixer does.
//
// Give it differences of times, subtracted as int64 and only then converted to float32: a difference of 10⁹ seconds is then right to
// 64 seconds, and one below 2²⁴ is exact. A float32 of a time since 1970 is wrong by a minute before it is subtracted.
// The angle is computed in float64, so it loses nothing more; PyTorch computes it in float32, and so its cosines of
// angles above 10⁴ differ from these by more than 10⁻³.
//
// Parameters and semantics are those of torch_geometric.nn.models.tgn.TimeEncoder: lin.weight [d, 1] and lin.bias [d]. The elements are
// computed by the CPU, also in a pass on a GPU.
//
// Sources: D. Xu, C. Ruan, E. Korpeoglu, S. Kumar, K. Achan, "Inductive representation learning on temporal graphs", ICLR 2020,
// arXiv:2002.07962; W. Cong, S. Zhang, J. Kang, B. Yuan, H. Wu, X. Zhou, H. Tong, M. Mahdavi, "Do we really need complicated model
// architectures for temporal networks?", ICLR 2023, arXiv:2302.11636, section 3.1 (Fixed).
type TimeEncoder struct {
	Weight *Param `nn:"lin.weight"`
	Bias   *Param `nn:"lin.bias,vector"`

	Geometric bool
}

// TimeOptions are the options of a TimeEncoder. The zero value is PyG's TGN.
type TimeOptions struct {
	Geometric bool // start from the frequencies a^(-j/a), a = √d, and b = 0
	Fixed     bool // keep these frequencies; implies Geometric
}

// NewTimeEncoder returns a TimeEncoder of cols columns whose frequencies are trained.
func NewTimeEncoder(cols int) *TimeEncoder { return NewTimeEncoderWith(cols, TimeOptions{}) }

// NewTimeEncoderWith returns a TimeEncoder of cols columns with options.
func NewTimeEncoderWith(cols int, o TimeOptions) *TimeEncoder {
	if cols < 1 {
		fail("NewTimeEncoder", "it has %d columns; it needs at least one", cols)
	}
	e := &TimeEncoder{Weight: NewParam(cols, 1), Bias: NewParam(1, cols), Geometric: o.Geometric || o.Fixed}
	if o.Fixed {
		e.Weight.Fixed, e.Bias.Fixed = true, true
	}
	e.geometric()
	return e
}

// geometric sets the frequencies of Geometric.
func (e *TimeEncoder) geometric() {
	if !e.Geometric {
		return
	}
	a := math.Sqrt(float64(len(e.Weight.W)))
	for j := range e.Weight.W {
		e.Weight.W[j] = float32(math.Pow(a, -float64(j)/a))
	}
	clear(e.Bias.W)
}

// Reset initialises the parameters; [Params.Init] calls it.
func (e *TimeEncoder) Reset(init func(p *Param, bound float64)) {
	if e.Geometric {
		e.geometric()
		return
	}
	init(e.Weight, 1)
	init(e.Bias, 1)
}

// timeGrain is the number of rows whose share of the gradients of w and b is summed in one piece.
const timeGrain = 256

// Forward returns y [N, d] for the spans dt [N, 1]. The rows keep their space.
func (e *TimeEncoder) Forward(f *Fwd, dt *Tensor) *Tensor {
	const op = "TimeEncoder"
	if e == nil {
		fail(op, "the layer is nil; create it with NewTimeEncoder")
	}
	if dt.Cols() != 1 {
		fail(op, "the spans are %v; give one span of time for each row", dt)
	}
	n, d, threads := dt.Rows(), len(e.Weight.W), f.Config().Threads
	w, b := f.Param(e.Weight), f.Param(e.Bias)
	turns := make([]float64, 3*d)
	freq, phase, ahead := turns[:d], turns[d:2*d], turns[2*d:]
	for j, v := range w.Data() {
		freq[j] = float64(v) / (2 * math.Pi)
	}
	for j, v := range b.Data() {
		phase[j] = float64(v) / (2 * math.Pi)
		ahead[j] = phase[j] + 0.25 // -sin x = cos(x + π/2)
	}
	y := f.CustomSet(op, []*Tensor{dt, w, b}, n, d, func(out []float32) {
		spans := dt.Data()
		parallel.ForEven(threads, n, max(1, 1<<14/d), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				simd.Cosines(out[i*d:(i+1)*d], freq, phase, float64(spans[i]))
			}
		})
	}, func(dOut []float32, dIn [][]float32) {
		spans, weight := dt.Data(), w.Data()
		// The sums of each chunk of rows are kept apart and added in their order, so their bits do not depend on the threads.
		parts := make([]float32, parallel.Chunks(n, timeGrain)*2*d)
		parallel.For(threads, n, timeGrain, func(lo, hi int) {
			part := parts[lo/timeGrain*2*d:][:2*d]
			slope := make([]float32, d)
			for i := lo; i < hi; i++ {
				simd.Cosines(slope, freq, ahead, float64(spans[i]))
				simd.Times(slope, slope, dOut[i*d:(i+1)*d], false)
				simd.Axpy(part[:d], slope, spans[i])
				simd.Add(part[d:], slope)
				if dIn[0] != nil {
					dIn[0][i] = simd.Dot(slope, weight)
				}
			}
		})
		for k, grad := range dIn[1:] {
			if grad == nil {
				continue
			}
			sum := make([]float64, d)
			for at := k * d; at < len(parts); at += 2 * d {
				for j, v := range parts[at : at+d] {
					sum[j] += float64(v)
				}
			}
			for j, v := range sum {
				grad[j] = float32(v)
			}
		}
	})
	return y.SetSpace(dt.Space())
}
