package chart

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Taking points in several calls gives the same curve as taking them all at once, every point lies
// in its bucket, and the number of buckets is bounded.
func TestCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "n")
		stride := rapid.SampledFrom([]int{1, 1, 2, 7, 1000}).Draw(t, "stride")
		first := rapid.IntRange(0, 5000).Draw(t, "first")
		seed := rapid.Uint32().Draw(t, "seed")
		pts := make([]Point, n)
		lo, hi, sum, finites := math.Inf(1), math.Inf(-1), 0.0, 0
		for i := range pts {
			seed = seed*1664525 + 1013904223
			y := float64(seed>>8) / (1 << 24)
			if seed%61 == 0 {
				y = math.NaN()
			} else {
				lo, hi, sum, finites = min(lo, y), max(hi, y), sum+y, finites+1
			}
			pts[i] = Point{first + i*stride, y}
		}
		var whole, parts Curve
		whole.Take(pts)
		for at := 0; at < n; {
			at = min(at+rapid.IntRange(1, n).Draw(t, "more"), n)
			if !parts.Take(pts[:at]) {
				t.Fatal("Take did not report new points")
			}
		}
		if whole.Take(pts) {
			t.Fatal("Take reported new points although there were none")
		}
		if whole.Span != parts.Span || !slices.EqualFunc(whole.Buckets, parts.Buckets, func(a, b Bucket) bool {
			return a.key == b.key && a.N == b.N && a.Lo == b.Lo && a.Hi == b.Hi && a.Step == b.Step && math.Abs(a.sum-b.sum) <= 1e-9*(1+math.Abs(a.sum))
		}) {
			t.Fatalf("in several calls: span %d, %d buckets; at once: span %d, %d buckets", parts.Span, len(parts.Buckets), whole.Span, len(whole.Buckets))
		}
		if len(whole.Buckets) > maxBuckets {
			t.Fatalf("%d buckets", len(whole.Buckets))
		}
		for i, b := range whole.Buckets {
			if b.key != (int(b.Step)-first)/whole.Span || i > 0 && b.key <= whole.Buckets[i-1].key {
				t.Fatalf("bucket %d has key %d and ends at step %g, with %d steps per bucket from %d on", i, b.key, b.Step, whole.Span, first)
			}
		}
		gotLo, gotHi, gotSum, gotN := math.Inf(1), math.Inf(-1), 0.0, 0
		for _, b := range whole.Buckets {
			if b.N > 0 {
				gotLo, gotHi, gotSum, gotN = min(gotLo, b.Lo), max(gotHi, b.Hi), gotSum+b.sum, gotN+b.N
			}
		}
		if gotLo != lo || gotHi != hi || gotN != finites || math.Abs(gotSum-sum) > 1e-9*(1+sum) {
			t.Fatalf("the buckets hold %d values in [%g, %g], the points %d in [%g, %g]", gotN, gotLo, gotHi, finites, lo, hi)
		}
		if last := whole.Buckets[len(whole.Buckets)-1].Step; last != float64(pts[n-1].Step) {
			t.Fatalf("the curve ends at step %g, the run at %d", last, pts[n-1].Step)
		}
		for i, q := range whole.Smooth() {
			if b := whole.Buckets[i]; (b.N == 0) != math.IsNaN(q.Y) || q.X != b.Step {
				t.Fatalf("the smoothed value is %v for bucket %+v", q, b)
			}
		}
	})
}

// A run that starts over, or a list of points that was thinned out, gives a new curve.
func TestCurveStartsOver(t *testing.T) {
	var c Curve
	c.Take([]Point{{1, 1}, {2, 2}, {3, 3}})
	for _, again := range [][]Point{{{1, 5}}, {{1, 5}, {2, 6}, {4, 7}}, {}} {
		if !c.Take(again) || len(c.Buckets) != len(again) {
			t.Errorf("after %v the curve has %d buckets", again, len(c.Buckets))
		}
	}
}

// Smoothing keeps straight lines, including their ends, and reduces noise.
func TestSmooth(t *testing.T) {
	line, noisy := Curve{Span: 1, first: Point{Step: 1}}, Curve{Span: 1, first: Point{Step: 1}}
	for i := range 200 {
		line.add(Point{i + 1, 3 - 0.01*float64(i)})
		noisy.add(Point{i + 1, 1 + 0.5*float64(i%2*2-1)})
	}
	for i, q := range line.Smooth() {
		if math.Abs(q.Y-(3-0.01*float64(i))) > 1e-9 {
			t.Fatalf("a line bends at %d: %g", i, q.Y)
		}
	}
	for i, q := range noisy.Smooth()[15:185] {
		if math.Abs(q.Y-1) > 0.03 {
			t.Fatalf("noise of 0.5 is still %g at %d", q.Y-1, i)
		}
	}
}

func TestLimitsIgnoreAWildStart(t *testing.T) {
	c := Curve{Span: 1, first: Point{Step: 1}}
	for i := range 200 {
		y := 0.5 + 0.1*math.Sin(float64(i))
		if i == 0 {
			y = 80
		}
		c.add(Point{i + 1, y})
	}
	if lo, hi, ok := c.Limits(); !ok || lo > 0.41 || hi > 1 || hi < 0.6 {
		t.Errorf("the range is [%g, %g]", lo, hi)
	}
}

// A loss that falls fast at the start is shown from its first steps on.
func TestLimitsShowTheStart(t *testing.T) {
	c := Curve{Span: 1, first: Point{Step: 1}}
	for i := range 200 {
		c.add(Point{i + 1, 0.1 + 2.2*math.Exp(-float64(i)/2)})
	}
	if lo, hi, ok := c.Limits(); !ok || lo > 0.11 || hi < 2.3 {
		t.Errorf("the range is [%g, %g]", lo, hi)
	}
}

func TestValueAxis(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   []string
	}{
		{0.35, 1.6, []string{"0.0", "0.5", "1.0", "1.5", "2.0"}},
		{0.84, 0.873, []string{"0.84", "0.85", "0.86", "0.87", "0.88"}},
		{0, 1, []string{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}},
		{2, 2, []string{"1.8", "1.9", "2.0", "2.1", "2.2"}},
		{-3, 5, []string{"-4", "-2", "0", "2", "4", "6"}},
		{0, 0, []string{"0.00", "0.02", "0.04", "0.06", "0.08", "0.10"}},
	} {
		_, _, got := ValueAxis(c.lo, c.hi, 5, 0.5)
		var labels []string
		for _, t := range got {
			labels = append(labels, t.Label)
		}
		if !slices.Equal(labels, c.want) {
			t.Errorf("the axis of %g to %g has the marks %q, want %q", c.lo, c.hi, labels, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-1e80, 1e80)
		a, b := x.Draw(t, "a"), x.Draw(t, "b")
		a, b = min(a, b), max(a, b)
		lo, hi, ticks := ValueAxis(a, b, 5, 0.5)
		eps := 1e-6 * (hi - lo)
		if !(lo < hi) || a < lo-eps || b > hi+eps || len(ticks) < 2 || len(ticks) > 8 {
			t.Fatalf("%g to %g: axis %g to %g with %d ticks", a, b, lo, hi, len(ticks))
		}
	})
}

func TestCountAxis(t *testing.T) {
	for _, c := range []struct {
		lo, hi, total int
		live          bool
		wantHi        float64
		first, last   string
	}{
		{0, 10000, 10000, false, 10000, "0", "10,000"},
		{0, 6200, 10000, true, 8000, "0", "8,000"},
		{0, 9000, 9500, true, 9500, "0", "8,000"},
		{1, 12, 20, false, 12, "1", "12"},
		{1, 1, 20, true, 5, "1", "5"},
		{1, 20, 20, false, 20, "1", "20"},
		{0, 0, 0, false, 1, "0", "1"},
	} {
		_, hi, got := CountAxis(c.lo, c.hi, c.total, c.live)
		if hi != c.wantHi || got[0].Label != c.first || got[len(got)-1].Label != c.last {
			t.Errorf("%+v: the axis ends at %g and has the marks %v", c, hi, got)
		}
		for i := 1; i < len(got); i++ {
			if got[i].Value <= got[i-1].Value {
				t.Errorf("%+v: marks %v", c, got)
			}
		}
	}
}

func TestTimeAxis(t *testing.T) {
	for _, c := range []struct {
		sec    float64
		goesOn bool
		hi     float64
		unit   string
	}{
		{0, true, 10, "s"},
		{0, false, 1, "s"},
		{9, true, 10, "s"},
		{11, true, 12, "s"},
		{200, true, 200, "s"},
		{201, false, 201, "s"},
		{300, true, 5, "min"},
		{3600, true, 60, "min"},
		{5 * 3600, true, 5, "h"},
		{30 * 3600, true, 30, "h"},
		{30 * 3600, false, 30, "h"},
	} {
		lo, hi, ticks, unit := TimeAxis(c.sec, c.goesOn)
		if lo != 0 || hi != c.hi || unit != c.unit || len(ticks) < 2 || len(ticks) > 7 || ticks[len(ticks)-1].Value > hi*(1+1e-9) {
			t.Errorf("%v s, still running %t: the axis ends at %v %s, with the ticks %v", c.sec, c.goesOn, hi, unit, ticks)
		}
	}
}

func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ys := rapid.SliceOfN(rapid.Float64Range(0, 100), 0, 8).Draw(t, "ys")
		slices.Sort(ys)
		slices.Reverse(ys)
		spread(ys, 10, 0, 100)
		for i, y := range ys {
			if y < -1e-6 || y > 100+1e-6 {
				t.Fatalf("a label lies outside of the chart: %v", ys)
			}
			if i > 0 && ys[i-1]-y < 9 {
				t.Fatalf("labels overlap: %v", ys)
			}
		}
	})
}
