package ops

import (
	"math"

	"github.com/graphnb/graphnb/internal/simd"
)

func (c *Processor) Binary(op BinaryOp, out, a, b Buffer, acc bool) {
	c.each(out.N, func(lo, hi int) {
		o, x, y := out.Host[lo:hi], a.Host[lo:hi], b.Host[lo:hi]
		switch op {
		case AddOp:
			simd.Plus(o, x, y, acc)
		case SubOp:
			simd.Minus(o, x, y, acc)
		case MulOp:
			simd.Times(o, x, y, acc)
		}
	})
}

func (c *Processor) Unary(op UnaryOp, out, x Buffer, alpha float32, acc bool) {
	c.each(out.N, func(lo, hi int) {
		o, v := out.Host[lo:hi], x.Host[lo:hi]
		switch {
		case op == ScaleOp && alpha == 1 && acc:
			simd.Add(o, v)
		case op == ScaleOp && alpha == 1:
			copy(o, v)
		case op == ScaleOp && acc:
			simd.Axpy(o, v, alpha)
		case op == ScaleOp:
			simd.Scale(o, v, alpha)
		case op == ReLUOp && !acc:
			simd.ReLU(o, v)
		case op == LeakyReLUOp && !acc:
			simd.LeakyReLU(o, v, alpha)
		case op == ExpOp && !acc:
			simd.Exp(o, v, 0)
		case op == SigmoidOp && !acc:
			simd.Scale(o, v, -1)
			simd.Exp(o, o, 0)
			for i, e := range o {
				o[i] = 1 / (1 + e)
			}
		case op == GELUOp:
			eachNormal(v, func(at int, x, cdf, _ []float32) { simd.Times(o[at:][:len(x)], x, cdf, acc) })
		default:
			for i := range o {
				y := unary(op, v[i], alpha)
				if acc {
					y += o[i]
				}
				o[i] = y
			}
		}
	})
}

func unary(op UnaryOp, x, alpha float32) float32 {
	switch op {
	case ReLUOp:
		if x <= 0 {
			return 0
		}
		return x
	case LeakyReLUOp:
		if x > 0 {
			return x
		}
		return alpha * x
	case ELUOp:
		if x > 0 {
			return x
		}
		return alpha * float32(math.Expm1(float64(x)))
	case SigmoidOp:
		return float32(1 / (1 + math.Exp(-float64(x))))
	case TanhOp:
		return float32(math.Tanh(float64(x)))
	case ExpOp:
		return float32(math.Exp(float64(x)))
	case SqrtOp:
		if x <= alpha {
			return 0
		}
		return float32(math.Sqrt(float64(x)))
	case ReciprocalOp:
		return 1 / (x + alpha)
	}
	return alpha * x
}

func (c *Processor) UnaryGrad(op UnaryOp, dx, dy, x, y Buffer, alpha float32, acc bool) {
	if op == ScaleOp {
		c.Unary(ScaleOp, dx, dy, alpha, acc)
		return
	}
	c.each(dx.N, func(lo, hi int) {
		d := dx.Host[lo:hi]
		g, in, out := dy.Host[lo:hi][:len(d)], x.Host[lo:hi][:len(d)], y.Host[lo:hi][:len(d)]
		switch op {
		case ReLUOp:
			simd.ReLUGrad(d, g, in, acc)
			return
		case LeakyReLUOp:
			simd.LeakyReLUGrad(d, g, in, alpha, acc)
			return
		case SigmoidOp:
			var ones, slope [512]float32
			for i := range ones {
				ones[i] = 1
			}
			for at := 0; at < len(d); at += len(slope) {
				end := min(at+len(slope), len(d))
				s := slope[:end-at]
				simd.Minus(s, ones[:len(s)], out[at:end], false)
				simd.Times(s, s, out[at:end], false)
				simd.Times(d[at:end], g[at:end], s, acc)
			}
			return
		case GELUOp: // its slope is Φ(x) + x·φ(x)
			eachNormal(in, func(at int, x, cdf, density []float32) {
				simd.Times(density, density, x, false)
				simd.Add(density, cdf)
				simd.Times(d[at:][:len(x)], g[at:][:len(x)], density, acc)
			})
			return
		}
		for i := range d {
			e := g[i] * slope(op, in[i], out[i], alpha)
			if acc {
				e += d[i]
			}
			d[i] = e
		}
	})
}

// slope is op'(x), with y = op(x).
func slope(op UnaryOp, x, y, alpha float32) float32 {
	switch op {
	case ELUOp:
		if x > 0 {
			return 1
		}
		return y + alpha
	case TanhOp:
		return 1 - y*y
	case SqrtOp:
		if y == 0 {
			return 0
		}
		return 0.5 / y
	case ReciprocalOp:
		return -(y * y)
	}
	return y // Exp
}

// eachNormal calls do with the distribution function and the density of the normal distribution for parts of x.
// do may write to both.
func eachNormal(x []float32, do func(at int, x, cdf, density []float32)) {
	var d, c [256]float32
	for lo := 0; lo < len(x); lo += len(d) {
		part := x[lo:min(lo+len(d), len(x))]
		cdf, density := c[:len(part)], d[:len(part)]
		simd.Normal(cdf, density, part)
		do(lo, part, cdf, density)
	}
}
