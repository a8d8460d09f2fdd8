package live

import (
	"math"
	"slices"
)

// maxBuckets is the number of columns a long curve is reduced to: about one per
// two pixels of the chart, more cannot be told apart.
const maxBuckets = 220

// bucket sums up neighbouring points.
type bucket struct {
	key    int // which stretch of steps
	step   float64
	lo, hi float64 // of the finite values
	sum    float64
	n      int // finite values; 0 is a gap
}

func (b *bucket) mean() float64 { return b.sum / float64(b.n) }

// curve reduces a growing list of points to at most maxBuckets buckets of equal
// numbers of steps. Each point is looked at once: a frame costs the points that
// are new, not all.
type curve struct {
	span    int // steps per bucket, a power of two
	taken   int // points consumed
	first   Point
	last    Point
	buckets []bucket
}

// take consumes what is new in points and reports whether anything was. Points
// that are not a continuation of the ones before (another run, a list that was
// thinned out) start anew.
func (c *curve) take(points []Point) (changed bool) {
	if c.taken > len(points) || c.taken > 0 && (!same(points[0], c.first) || !same(points[c.taken-1], c.last)) {
		*c = curve{buckets: c.buckets[:0]}
		changed = true
	}
	if c.taken == len(points) {
		return changed
	}
	if c.taken == 0 {
		c.first, c.span = points[0], 1
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

func (c *curve) add(p Point) {
	key := max(p.Step-c.first.Step, 0)
	for key/c.span >= maxBuckets {
		c.halve()
	}
	key /= c.span
	n := len(c.buckets)
	if n > 0 && c.buckets[n-1].key > key {
		key = c.buckets[n-1].key // steps that go back stay where the curve is
	}
	if n == 0 || c.buckets[n-1].key != key {
		c.buckets = append(c.buckets, bucket{key: key, step: float64(p.Step), lo: math.Inf(1), hi: math.Inf(-1)})
		n++
	}
	b := &c.buckets[n-1]
	b.step = max(b.step, float64(p.Step)) // at its last step, so that the curve ends where the run stands
	if finite(p.Y) {
		b.lo, b.hi = min(b.lo, p.Y), max(b.hi, p.Y)
		b.sum += p.Y
		b.n++
	}
}

func (c *curve) halve() {
	c.span *= 2
	out := c.buckets[:0]
	for _, b := range c.buckets {
		b.key /= 2
		if n := len(out); n > 0 && out[n-1].key == b.key {
			o := &out[n-1]
			o.step = max(o.step, b.step)
			o.lo, o.hi = min(o.lo, b.lo), max(o.hi, b.hi)
			o.sum += b.sum
			o.n += b.n
			continue
		}
		out = append(out, b)
	}
	c.buckets = out
}

// xy is a point of a line; a NaN is a gap in it.
type xy struct{ x, y float64 }

// smooth is the curve without its noise: a local linear regression (LOESS of
// degree 1, tricube weights; Cleveland 1979, doi:10.1080/01621459.1979.10481038)
// over a fifteenth of the buckets to each side. Unlike a moving average it
// neither lags behind a falling loss nor bends at the ends.
func (c *curve) smooth() []xy {
	bs := c.buckets
	h := c.reach()
	w := make([]float64, h+1)
	for d := range w {
		u := float64(d) / float64(h+1)
		w[d] = math.Pow(1-u*u*u, 3)
	}
	out := make([]xy, len(bs))
	for i := range bs {
		out[i] = xy{bs[i].step, math.NaN()}
		if bs[i].n == 0 {
			continue
		}
		var s0, s1, s2, t0, t1 float64
		for j := max(i-h, 0); j <= min(i+h, len(bs)-1); j++ {
			if bs[j].n == 0 {
				continue
			}
			d := float64(j - i)
			wj := w[max(j-i, i-j)]
			y := bs[j].mean()
			s0 += wj
			s1 += wj * d
			s2 += wj * d * d
			t0 += wj * y
			t1 += wj * d * y
		}
		if det := s0*s2 - s1*s1; det > 1e-12*s0*s2 && s2 > 0 {
			out[i].y = (s2*t0 - s1*t1) / det
		} else {
			out[i].y = t0 / s0
		}
	}
	return out
}

// reach is the buckets on each side of one that smooth regards.
func (c *curve) reach() int {
	if len(c.buckets) <= 16 { // few points are shown as they are
		return 0
	}
	return min(max(len(c.buckets)/15, 3), 16)
}

// limits is the range of y worth showing: all of it, but a few wild values at
// the start must not flatten the rest. The buckets' tops above a generous
// multiple of the 97th percentile are cut off.
func (c *curve) limits() (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	tops := make([]float64, 0, len(c.buckets))
	for i := range c.buckets {
		if b := &c.buckets[i]; b.n > 0 {
			lo, hi = min(lo, b.lo), max(hi, b.hi)
			tops = append(tops, b.hi)
		}
	}
	if len(tops) == 0 {
		return 0, 1, false
	}
	if len(tops) >= 20 {
		slices.Sort(tops)
		if p := tops[len(tops)*97/100]; hi-lo > 2.5*(p-lo) && p > lo {
			hi = lo + 1.3*(p-lo)
		}
	}
	return lo, hi, true
}
