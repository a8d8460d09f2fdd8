package chart

import (
	"math"
	"strconv"
)

// Blank returns t without its numbers, for an axis without data.
func (t Ticks) Blank() Ticks {
	for i := range t {
		t[i].Label = " "
	}
	return t
}

// niceStep returns the smallest of 1, 2, 2.5, 5 times a power of ten that divides span into at
// most n parts.
func niceStep(span float64, n int) float64 {
	raw := span / float64(n)
	p := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*p >= raw*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// ValueAxis widens lo..hi to round numbers and marks them, n intervals at most. A range of
// positive values starts at 0 if that leaves at most the share empty of the axis unused.
func ValueAxis(lo, hi float64, n int, empty float64) (float64, float64, Ticks) {
	if big := math.Max(math.Abs(lo), math.Abs(hi)); !(hi-lo > 1e-9*big) || big < 1e-90 { // a single value, or none
		lo, hi = (lo+hi)/2, (lo+hi)/2
		d := math.Max(math.Abs(lo)*0.1, 0.1)
		lo, hi = lo-d, hi+d
		if lo < 0 && lo+d >= 0 {
			lo = 0
		}
	}
	if lo > 0 && lo < empty*hi {
		lo = 0
	}
	step := niceStep(hi-lo, n)
	lo = math.Floor(lo/step+1e-9) * step
	hi = math.Ceil(hi/step-1e-9) * step
	digits := 0
	for s := step; digits < 12 && math.Abs(s-math.Round(s)) > 1e-6*s; digits++ {
		s *= 10
	}
	var t Ticks
	for i := 0; i <= int(math.Round((hi-lo)/step)); i++ {
		v := lo + float64(i)*step
		label := strconv.FormatFloat(v, 'f', digits, 64)
		switch a := math.Max(math.Abs(lo), math.Abs(hi)); {
		case a >= 1e5 || a < 1e-3:
			label = strconv.FormatFloat(v, 'g', 3, 64)
		}
		t = append(t, Tick{Value: v, Label: label})
	}
	return lo, hi, t
}

// CountAxis marks whole numbers from lo to hi. During the run (live) the axis extends to a round
// number beyond hi, at most to total, so that the picture does not shift with every step.
func CountAxis(lo, hi, total int, live bool) (float64, float64, Ticks) {
	const far = 1 << 50 // prevents overflow of sums
	lo, hi, total = min(max(lo, 0), far), min(max(hi, 0), far), min(total, far)
	if live {
		ahead := roundUp(max(hi-lo, 4))
		if total > lo {
			ahead = min(ahead, max(total, hi)-lo)
		}
		hi = lo + max(ahead, 1)
	}
	hi = max(hi, lo+1)
	step := max(int(math.Round(niceStep(float64(hi-lo), 6))), 1)
	var t Ticks
	for v := (lo + step - 1) / step * step; v <= hi; v += step {
		t = append(t, Tick{Value: float64(v), Label: Grouped(v)})
	}
	if lo == 1 { // epochs: mark the first
		t = append(Ticks{{Value: 1, Label: "1"}}, t...)
		if len(t) > 1 && (t[1].Value == 1 || float64(hi) > 20*(t[1].Value-1)) {
			t = append(t[:1], t[2:]...)
		}
	}
	return float64(lo), float64(hi), t
}

// roundUp returns the next of 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten.
func roundUp(n int) int {
	p := 1
	for p*10 <= n {
		p *= 10
	}
	for _, m := range []int{10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100} {
		if v := (m*p + 9) / 10; v >= n {
			return v
		}
	}
	return n
}

// Grouped formats n with separators between thousands: 12,000.
func Grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// UnitSeconds are the seconds of each unit that TimeAxis chooses from.
var UnitSeconds = map[string]float64{"s": 1, "min": 60, "h": 3600}

// TimeAxis returns an axis of sec seconds in a suitable unit; while the time grows it extends to a
// round number beyond it.
func TimeAxis(sec float64, goesOn bool) (lo, hi float64, t Ticks, unit string) {
	unit = "s"
	switch {
	case sec > 4*3600:
		unit = "h"
	case sec > 240:
		unit = "min"
	}
	hi = math.Max(sec/UnitSeconds[unit], 1)
	if goesOn {
		least := 1
		if unit == "s" {
			least = 10
		}
		hi = float64(roundUp(max(least, int(math.Ceil(hi)))))
	}
	step := niceStep(hi, 5)
	for i := 0; float64(i)*step <= hi*(1+1e-9); i++ {
		v := float64(i) * step
		t = append(t, Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 4, 64)})
	}
	return 0, hi, t, unit
}
