package simd

import "math"

// Cosines computes o[j] = cos 2π(t·w[j] + b[j]): the angles are in turns. The angle is computed in float64, and 2⁻²⁵ of a turn
// is lost when its fraction becomes float32, so the result is within 3e-7 of the true value for angles up to 10⁸ turns; above, the
// rounding of the float64 angle adds to that. NaN and infinite angles give NaN.
func Cosines(o []float32, w, b []float64, t float64) {
	checkLen("Cosines", len(w), len(o))
	checkLen("Cosines", len(b), len(o))
	n := len(o) &^ 7
	if n > 0 && !cosines(&o[0], &w[0], &b[0], n, t) {
		n = 0
	}
	for j := n; j < len(o); j++ {
		o[j] = cosTurns(float64(t*w[j]) + b[j])
	}
}

// cosTurns computes cos 2πy as sin 2πq, where r is the distance of y to the nearest integer and q = 1/4 - r. sin 2πq is q times a
// polynomial of degree 4 in q² with the smallest possible maximum of the relative error, 5.3e-9.
func cosTurns(y float64) float32 {
	r := math.Abs(y - math.RoundToEven(y))
	q := float32(0.25 - r)
	u := q * q
	p := float32(39.71092*u) - 76.57499
	p = float32(p*u) + 81.602234
	p = float32(p*u) - 41.34168
	p = float32(p*u) + 6.2831855
	return p * q
}
