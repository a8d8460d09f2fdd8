package chart

import (
	"math"
	"slices"
)

// maxBuckets is the number of columns a long curve is reduced to: about one per two pixels of the
// chart, because more cannot be distinguished.
const maxBuckets = 220

// Point is a value at a step of the run (a loss) or at an epoch (a metric).
type Point struct {
	Step int
	Y    float64
}

// Bucket summarises neighbouring points.
type Bucket struct {
	key    int     // index of the range of steps
	Step   float64 // the last
	Lo, Hi float64 // of the finite values
	sum    float64
	N      int // finite values; 0 is a gap
}

// Mean returns the mean of the finite values.
func (b *Bucket) Mean() float64 { return b.sum / float64(b.N) }

// Curve reduces a growing list of points to at most maxBuckets buckets of equal numbers of steps.
// It reads each point once: the cost of a frame depends on the number of new points only.
type Curve struct {
	Span    int // steps per bucket, a power of two
	taken   int // points consumed
	first   Point
	last    Point
	Buckets []Bucket
}

// Take consumes the new points and reports whether there were any. Points that do not continue the
// earlier ones (another run, a thinned list) start a new curve.
func (c *Curve) Take(points []Point) (changed bool) {
	if c.taken > len(points) || c.taken > 0 && (!same(points[0], c.first) || !same(points[c.taken-1], c.last)) {
		*c = Curve{Buckets: c.Buckets[:0]}
		changed = true
	}
	if c.taken == len(points) {
		return changed
	}
	if c.taken == 0 {
		c.first, c.Span = points[0], 1
	}
	for _, p := range points[c.taken:] {
		c.add(p)
	}
	c.taken, c.last = len(points), points[len(points)-1]
	return true
}

func same(a, b Point) bool {
	return a.Step == b.Step && math.Float64bits(a.Y) == math.Float64bits(b.Y)
}

func (c *Curve) add(p Point) {
	key := max(p.Step-c.first.Step, 0)
	for key/c.Span >= maxBuckets {
		c.halve()
	}
	key /= c.Span
	n := len(c.Buckets)
	if n > 0 && c.Buckets[n-1].key > key {
		key = c.Buckets[n-1].key // earlier steps go to the last bucket
	}
	if n == 0 || c.Buckets[n-1].key != key {
		c.Buckets = append(c.Buckets, Bucket{key: key, Step: float64(p.Step), Lo: math.Inf(1), Hi: math.Inf(-1)})
		n++
	}
	b := &c.Buckets[n-1]
	b.Step = max(b.Step, float64(p.Step)) // the last step, so that the curve ends at the run's current step
	if Finite(p.Y) {
		b.Lo, b.Hi = min(b.Lo, p.Y), max(b.Hi, p.Y)
		b.sum += p.Y
		b.N++
	}
}

func (c *Curve) halve() {
	c.Span *= 2
	out := c.Buckets[:0]
	for _, b := range c.Buckets {
		b.key /= 2
		if n := len(out); n > 0 && out[n-1].key == b.key {
			o := &out[n-1]
			o.Step = max(o.Step, b.Step)
			o.Lo, o.Hi = min(o.Lo, b.Lo), max(o.Hi, b.Hi)
			o.sum += b.sum
			o.N += b.N
			continue
		}
		out = append(out, b)
	}
	c.Buckets = out
}

// XY is a point of a line; a NaN is a gap in it.
type XY struct{ X, Y float64 }

// Smooth returns the smoothed curve: a local linear regression (LOESS of degree 1, tricube
// weights; Cleveland 1979, doi:10.1080/01621459.1979.10481038) over a fifteenth of the buckets to
// each side. Unlike a moving average it neither lags behind a falling loss nor bends at the ends.
func (c *Curve) Smooth() []XY {
	bs := c.Buckets
	h := c.Reach()
	w := make([]float64, h+1)
	for d := range w {
		u := float64(d) / float64(h+1)
		w[d] = math.Pow(1-u*u*u, 3)
	}
	out := make([]XY, len(bs))
	for i := range bs {
		out[i] = XY{bs[i].Step, math.NaN()}
		if bs[i].N == 0 {
			continue
		}
		var s0, s1, s2, t0, t1 float64
		for j := max(i-h, 0); j <= min(i+h, len(bs)-1); j++ {
			if bs[j].N == 0 {
				continue
			}
			d := float64(j - i)
			wj := w[max(j-i, i-j)]
			y := bs[j].Mean()
			s0 += wj
			s1 += wj * d
			s2 += wj * d * d
			t0 += wj * y
			t1 += wj * d * y
		}
		if det := s0*s2 - s1*s1; det > 1e-12*s0*s2 && s2 > 0 {
			out[i].Y = (s2*t0 - s1*t1) / det
		} else {
			out[i].Y = t0 / s0
		}
	}
	return out
}

// Reach returns the number of buckets on each side that Smooth uses.
func (c *Curve) Reach() int {
	if len(c.Buckets) <= 16 { // few points are not smoothed
		return 0
	}
	return min(max(len(c.Buckets)/15, 3), 16)
}

// wild is how many times the range of nearly all values the first ones may exceed it.
const wild = 40

// Limits returns the range of y to show. It cuts off bucket maxima above a large multiple of the
// 97th percentile, so that a few outliers do not flatten the rest of the curve. The first steps, from which a loss
// falls, are in the range, unless they are wild.
func (c *Curve) Limits() (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	tops := make([]float64, 0, len(c.Buckets))
	start := math.Inf(-1) // the highest of the first values, which a spike is not
	for i := range c.Buckets {
		if b := &c.Buckets[i]; b.N > 0 {
			lo, hi = min(lo, b.Lo), max(hi, b.Hi)
			if len(tops) < 3 {
				start = max(start, b.Hi)
			}
			tops = append(tops, b.Hi)
		}
	}
	if len(tops) == 0 {
		return 0, 1, false
	}
	if len(tops) >= 20 {
		slices.Sort(tops)
		if p := tops[len(tops)*97/100]; hi-lo > 2.5*(p-lo) && p > lo {
			hi = lo + 1.3*(p-lo)
			if start-lo <= wild*(p-lo) {
				hi = max(hi, start)
			}
		}
	}
	return lo, hi, true
}

// Thin keeps every k-th point of a long curve, and the last.
func Thin(p []Point) []Point { return thin(p, maxBuckets) }

// thin is Thin for at most the given number of points.
func thin[T any](p []T, most int) []T {
	k := (len(p) + most - 1) / most
	if k <= 1 {
		return p
	}
	var out []T
	for i := (len(p) - 1) % k; i < len(p); i += k {
		out = append(out, p[i])
	}
	return out
}

// Runs returns the ranges [from, to) of 0..n in which ok holds.
func Runs(n int, ok func(int) bool) (out [][2]int) {
	for i := 0; i < n; i++ {
		if !ok(i) {
			continue
		}
		from := i
		for i < n && ok(i) {
			i++
		}
		out = append(out, [2]int{from, i})
	}
	return out
}

// Finite reports whether a value can be drawn.
func Finite(x float64) bool { return math.Abs(x) < 1e90 }
