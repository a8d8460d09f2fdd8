package simd

import "math"

// SGD computes w -= lr·(scale·g + decay·w).
func SGD(w, g []float32, lr, scale, decay float32) {
	checkLen("SGD", len(g), len(w))
	if len(w) == 0 || sgd(&w[0], &g[0], len(w), lr, scale, decay) {
		return
	}
	for i := range w {
		d := float32(scale*g[i]) + float32(decay*w[i])
		w[i] -= float32(lr * d)
	}
}

// Momentum computes d = scale·g + decay·w, b = mu·b + d, w -= lr·b, or with nesterov
// w -= lr·(d + mu·b).
func Momentum(w, b, g []float32, lr, scale, decay, mu float32, isNesterov bool) {
	checkLen("Momentum", len(b), len(w))
	checkLen("Momentum", len(g), len(w))
	switch {
	case len(w) == 0:
		return
	case isNesterov && nesterov(&w[0], &b[0], &g[0], len(w), lr, scale, decay, mu):
		return
	case !isNesterov && momentum(&w[0], &b[0], &g[0], len(w), lr, scale, decay, mu):
		return
	}
	for i := range w {
		d := float32(scale*g[i]) + float32(decay*w[i])
		v := float32(mu*b[i]) + d
		b[i] = v
		if isNesterov {
			v = d + float32(mu*v)
		}
		w[i] -= float32(lr * v)
	}
}

// AdamStep holds the coefficients of one step of [Adam].
type AdamStep struct {
	Scale  float32 // factor of the gradient
	Decay  float32 // factor of the weight in the gradient
	B1, C1 float32 // factors of the gradient's mean and of the gradient added to it
	B2, C2 float32 // factors of the mean square and of the square added to it
	Keep   float32 // factor of the weight
	Size   float32 // factor of the step
	Root   float32 // divisor of the root of the mean square
	Eps    float32 // added to the divided root
}

// Adam is, element by element,
//
//	d = Scale·g + Decay·w
//	m = B1·m + C1·d
//	v = B2·v + (C2·d)·d
//	w = Keep·w - (Size·m) / (√v/Root + Eps)
func Adam(w, m, v, g []float32, s *AdamStep) {
	checkLen("Adam", len(m), len(w))
	checkLen("Adam", len(v), len(w))
	checkLen("Adam", len(g), len(w))
	if len(w) == 0 || adam(&w[0], &m[0], &v[0], &g[0], len(w), s.Scale, s.Decay, s.B1, s.C1, s.B2, s.C2, s.Keep, s.Size, s.Root, s.Eps) {
		return
	}
	for i, d := range g {
		d = float32(s.Scale*d) + float32(s.Decay*w[i])
		m[i] = float32(s.B1*m[i]) + float32(s.C1*d)
		v[i] = float32(s.B2*v[i]) + float32(float32(s.C2*d)*d)
		root := float32(math.Sqrt(float64(v[i])))
		w[i] = float32(s.Keep*w[i]) - float32(s.Size*m[i])/(root/s.Root+s.Eps)
	}
}
