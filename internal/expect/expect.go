// Package expect compares the results of tests with what they expect, draws numbers for their inputs, and builds
// files that many tests of a process need once.
package expect

import (
	"math"
	"strings"
	"testing"
)

// Error checks that err is an error whose text has all parts.
func Error(tb testing.TB, err error, parts ...string) {
	tb.Helper()
	if err == nil {
		tb.Errorf("no error, want one with %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			tb.Errorf("the error is %q, want %q in it", err, p)
		}
	}
}

// Near fails if got differs from want by more than abs + rel·|want|.
func Near(tb testing.TB, what string, got []float32, want []float64, abs, rel float64) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= abs+rel*math.Abs(want[i])) {
			tb.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

// SameBits fails unless a and b have the same bits.
func SameBits(tb testing.TB, what string, a, b []float32) {
	tb.Helper()
	if len(a) != len(b) {
		tb.Fatalf("%s: %d and %d elements", what, len(a), len(b))
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			tb.Fatalf("%s: element %d is %v and %v", what, i, a[i], b[i])
		}
	}
}

// Progress checks reports of progress: they only increase, up to one total.
type Progress struct {
	T           testing.TB
	Calls       int
	Done, Total int64
}

// Report takes a report.
func (p *Progress) Report(done, total int64) {
	if p.Calls++; done < p.Done || done > total || total == 0 || p.Total != 0 && total != p.Total {
		p.T.Errorf("report %d: %d of %d after %d of %d", p.Calls, done, total, p.Done, p.Total)
	}
	p.Done, p.Total = done, total
}
