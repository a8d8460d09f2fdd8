package tensor

import "math"

func (c *cpu) Binary(op BinaryOp, out, a, b Buffer, acc bool) {
	c.each(out.N, func(lo, hi int) {
		o := out.Host[lo:hi]
		x, y := a.Host[lo:hi][:len(o)], b.Host[lo:hi][:len(o)]
		switch {
		case op == AddOp && acc:
			for i := range o {
				o[i] += x[i] + y[i]
			}
		case op == AddOp:
			for i := range o {
				o[i] = x[i] + y[i]
			}
		case op == SubOp && acc:
			for i := range o {
				o[i] += x[i] - y[i]
			}
		case op == SubOp:
			for i := range o {
				o[i] = x[i] - y[i]
			}
		case op == MulOp && acc:
			for i := range o {
				o[i] += x[i] * y[i]
			}
		case op == MulOp:
			for i := range o {
				o[i] = x[i] * y[i]
			}
		}
	})
}

func (c *cpu) Unary(op UnaryOp, out, x Buffer, alpha float32, acc bool) {
	c.each(out.N, func(lo, hi int) {
		o := out.Host[lo:hi]
		v := x.Host[lo:hi][:len(o)]
		switch {
		case op == ScaleOp && alpha == 1 && acc:
			addTo(o, v)
		case op == ScaleOp && alpha == 1:
			copy(o, v)
		case op == ScaleOp && acc:
			addScaled(o, v, alpha)
		case op == ScaleOp:
			for i := range o {
				o[i] = alpha * v[i]
			}
		case op == ReLUOp && !acc:
			for i := range o {
				o[i] = relu(v[i])
			}
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
		return relu(x)
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
	}
	return alpha * x
}

func (c *cpu) UnaryGrad(op UnaryOp, dx, dy, x, y Buffer, alpha float32, acc bool) {
	if op == ScaleOp {
		c.Unary(ScaleOp, dx, dy, alpha, acc)
		return
	}
	c.each(dx.N, func(lo, hi int) {
		d := dx.Host[lo:hi]
		g, in, out := dy.Host[lo:hi][:len(d)], x.Host[lo:hi][:len(d)], y.Host[lo:hi][:len(d)]
		if op == ReLUOp {
			reluGrad(d, g, in, acc)
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

// relu is max(x, 0) by bits: the patterns from -0 to -Inf become 0, all others,
// NaN of either sign included, stay. The builtin max branches.
func relu(x float32) float32 {
	const negInf = 0xff800000
	b := math.Float32bits(x)
	keep := int32(^b|(negInf-b)) >> 31
	return math.Float32frombits(b & uint32(keep))
}

// reluGrad picks by bits instead of branching: signs of activations are as good
// as random, and a mispredicted branch costs more than the element.
func reluGrad(d, g, x []float32, acc bool) {
	g, x = g[:len(d)], x[:len(d)]
	for i := range d {
		e := math.Float32frombits(math.Float32bits(g[i]) & positive(x[i]))
		if acc {
			e += d[i]
		}
		d[i] = e
	}
}

// positive is all ones where x > 0 (or NaN with a clear sign), else 0.
func positive(x float32) uint32 {
	b := int32(math.Float32bits(x))
	return uint32(^b & -b >> 31)
}

// slope is op'(x), with y = op(x).
func slope(op UnaryOp, x, y, alpha float32) float32 {
	switch op {
	case LeakyReLUOp:
		if x > 0 {
			return 1
		}
		return alpha
	case ELUOp:
		if x > 0 {
			return 1
		}
		return y + alpha
	case SigmoidOp:
		return y * (1 - y)
	case TanhOp:
		return 1 - y*y
	}
	return y // Exp
}
