package live

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/phrase"
)

func clamp01(x float64) float64 {
	if !(x > 0) { // NaN too
		return 0
	}
	return min(x, 1)
}

// number returns x with three significant digits and an SI prefix: "41.2 k". It uses a plain space
// because some terminals do not show narrow ones.
func number(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "–"
	}
	units := []string{"", " k", " M", " G", " T"}
	a, i := math.Abs(x), 0
	for a >= 999.5 && i < len(units)-1 {
		a, x, i = a/1000, x/1000, i+1
	}
	d := 0
	switch {
	case a == 0 || (i == 0 && a >= 99.95):
	case a < 9.995:
		d = 2
	case a < 99.95:
		d = 1
	}
	if i == 0 && a == math.Trunc(a) {
		d = 0
	}
	return strconv.FormatFloat(x, 'f', d, 64) + units[i]
}

// value formats a loss or a metric: four significant digits at most.
func value(x float64) string {
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "+Inf"
	case math.IsInf(x, -1):
		return "-Inf"
	case a == 0:
		return "0"
	case a < 0.001 || a >= 1e6:
		return strconv.FormatFloat(x, 'e', 2, 64)
	case a < 10:
		return strconv.FormatFloat(x, 'f', 3, 64)
	case a < 100:
		return strconv.FormatFloat(x, 'f', 2, 64)
	default:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
}

// clock formats a duration as 00:12, 1:02:03 or 2d 03:04.
func clock(d time.Duration) string {
	s := int64(max(d, 0).Round(time.Second) / time.Second)
	switch {
	case s >= 24*3600:
		return fmt.Sprintf("%dd %02d:%02d h", s/86400, s/3600%24, s/60%60)
	case s >= 3600:
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// elapsed formats a finished duration: short ones keep a decimal.
func elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return strconv.FormatFloat(max(d, 0).Seconds(), 'f', 1, 64) + " s"
	}
	return clock(d)
}

func percent(share float64) string {
	return strconv.Itoa(int(clamp01(share)*100)) + " %"
}

// of returns "3/20", or "3" if the total is unknown.
func of(n, total int) string {
	if total > 0 {
		return fmt.Sprintf("%d/%d", n, total)
	}
	return strconv.Itoa(n)
}

// Clean is [phrase.Clean].
func Clean(s string) string { return phrase.Clean(s) }

func clean(s string) string { return phrase.CleanLine(s) }

// oneLine returns user text as a single line.
func oneLine(s string) string {
	return strings.Join(lines(s), " ")
}

// lines splits user text into clean lines; an empty text has none.
func lines(s string) []string {
	s = strings.TrimRight(s, "\r\n")
	if s == "" {
		return nil
	}
	out := strings.Split(s, "\n")
	for i := range out {
		out[i] = clean(out[i])
	}
	return out
}

// cellWidth returns the number of terminal columns of r: East Asian wide and emoji take two,
// combining marks none.
func cellWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	case r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf,
		r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f,
		r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

func width(s string) int {
	n := 0
	for _, r := range s {
		n += cellWidth(r)
	}
	return n
}

// fit cuts s to at most w columns, the last of them an ellipsis.
func fit(s string, w int) string {
	if width(s) <= w {
		return s
	}
	if w <= 0 {
		return ""
	}
	n := 0
	for i, r := range s {
		if n += cellWidth(r); n > w-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// lastOf returns the last finite value of points, if there is one.
func lastOf(p []Point) (Point, bool) {
	for i := len(p) - 1; i >= 0; i-- {
		if chart.Finite(p[i].Y) {
			return p[i], true
		}
	}
	return Point{}, false
}

// totals returns the sums of the workers' rates and of their memory (rss).
func (s *Snapshot) totals() (seeds, edges float64, rss int64) {
	for i := range s.Workers {
		w := &s.Workers[i]
		seeds += w.SeedsPerSec
		edges += w.EdgesPerSec
		rss += w.RSS
	}
	return seeds, edges, rss
}
