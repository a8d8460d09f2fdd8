package simd

// Add computes o += x.
func Add(o, x []float32) {
	checkLen("Add", len(x), len(o))
	if len(o) == 0 || add(&o[0], &x[0], len(o)) {
		return
	}
	for i := range o {
		o[i] += x[i]
	}
}

// Axpy computes o += w·x.
func Axpy(o, x []float32, w float32) {
	checkLen("Axpy", len(x), len(o))
	if len(o) == 0 || axpy(&o[0], &x[0], len(o), w) {
		return
	}
	for i := range o {
		o[i] += float32(w * x[i])
	}
}

// Scale computes o = w·x.
func Scale(o, x []float32, w float32) {
	checkLen("Scale", len(x), len(o))
	if len(o) == 0 || scale(&o[0], &x[0], len(o), w) {
		return
	}
	for i := range o {
		o[i] = w * x[i]
	}
}

// Plus computes o = x + y, or o += x + y with acc.
func Plus(o, x, y []float32, acc bool) {
	checkLen("Plus", len(x), len(o))
	checkLen("Plus", len(y), len(o))
	switch {
	case len(o) == 0:
	case acc:
		if !add3(&o[0], &x[0], &y[0], len(o)) {
			for i := range o {
				o[i] += x[i] + y[i]
			}
		}
	case !add2(&o[0], &x[0], &y[0], len(o)):
		for i := range o {
			o[i] = x[i] + y[i]
		}
	}
}

// Minus computes o = x - y, or o += x - y with acc.
func Minus(o, x, y []float32, acc bool) {
	checkLen("Minus", len(x), len(o))
	checkLen("Minus", len(y), len(o))
	switch {
	case len(o) == 0:
	case acc:
		if !sub3(&o[0], &x[0], &y[0], len(o)) {
			for i := range o {
				o[i] += x[i] - y[i]
			}
		}
	case !sub2(&o[0], &x[0], &y[0], len(o)):
		for i := range o {
			o[i] = x[i] - y[i]
		}
	}
}

// Times computes o = x·y element by element, or o += x·y with acc.
func Times(o, x, y []float32, acc bool) {
	checkLen("Times", len(x), len(o))
	checkLen("Times", len(y), len(o))
	switch {
	case len(o) == 0:
	case acc:
		if !mul3(&o[0], &x[0], &y[0], len(o)) {
			for i := range o {
				o[i] += float32(x[i] * y[i])
			}
		}
	case !mul2(&o[0], &x[0], &y[0], len(o)):
		for i := range o {
			o[i] = x[i] * y[i]
		}
	}
}

// ReLU computes o = x where x > 0 or x is NaN, else +0.
func ReLU(o, x []float32) {
	checkLen("ReLU", len(x), len(o))
	if len(o) == 0 || relu(&o[0], &x[0], len(o)) {
		return
	}
	for i, v := range x {
		if v <= 0 {
			v = 0
		}
		o[i] = v
	}
}

// ReLUGrad computes d = g where x > 0 or x is NaN, else 0; with acc it adds this to d.
func ReLUGrad(d, g, x []float32, acc bool) {
	checkLen("ReLUGrad", len(g), len(d))
	checkLen("ReLUGrad", len(x), len(d))
	switch {
	case len(d) == 0:
	case acc:
		if !addAbove0(&d[0], &g[0], &x[0], len(d)) {
			for i, v := range x {
				if v <= 0 {
					d[i] += 0 // -0 becomes 0, as on the other paths
				} else {
					d[i] += g[i]
				}
			}
		}
	case !above0(&d[0], &g[0], &x[0], len(d)):
		for i, v := range x {
			if v <= 0 {
				d[i] = 0
			} else {
				d[i] = g[i]
			}
		}
	}
}

// LeakyReLU computes o = x where x > 0, else w·x.
func LeakyReLU(o, x []float32, w float32) {
	checkLen("LeakyReLU", len(x), len(o))
	if len(o) == 0 || leaky(&o[0], &x[0], len(o), w) {
		return
	}
	for i, v := range x {
		if !(v > 0) {
			v *= w
		}
		o[i] = v
	}
}

// LeakyReLUGrad computes d = g where x > 0, else w·g; with acc it adds this to d.
func LeakyReLUGrad(d, g, x []float32, w float32, acc bool) {
	checkLen("LeakyReLUGrad", len(g), len(d))
	checkLen("LeakyReLUGrad", len(x), len(d))
	switch {
	case len(d) == 0:
		return
	case acc && leakyGradAdd(&d[0], &g[0], &x[0], len(d), w):
		return
	case !acc && leakyGrad(&d[0], &g[0], &x[0], len(d), w):
		return
	}
	for i, v := range x {
		e := g[i]
		if !(v > 0) {
			e = float32(w * e)
		}
		if acc {
			e += d[i]
		}
		d[i] = e
	}
}
