package screen

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Clamp returns x limited to 0 … 1; NaN becomes 0.
func Clamp(x float64) float64 {
	if !(x > 0) { // NaN too
		return 0
	}
	return min(x, 1)
}

// Number returns x with three significant digits and an SI prefix: "41.2 k". It uses a plain space
// because some terminals do not show narrow ones.
func Number(x float64) string {
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

// Value formats a loss or a metric: four significant digits at most.
func Value(x float64) string {
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

// Clock formats a duration as 00:12, 1:02:03 or 2d 03:04.
func Clock(d time.Duration) string {
	s := int64(max(d, 0).Round(time.Second) / time.Second)
	switch {
	case s >= 24*3600:
		return fmt.Sprintf("%dd %02d:%02d h", s/86400, s/3600%24, s/60%60)
	case s >= 3600:
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// Elapsed formats a finished duration: short ones keep a decimal.
func Elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return strconv.FormatFloat(max(d, 0).Seconds(), 'f', 1, 64) + " s"
	}
	return Clock(d)
}

// Percent formats a share that grows to 100 %: it rounds down, so that 100 % means done.
func Percent(share float64) string {
	return strconv.Itoa(int(Clamp(share)*100)) + " %"
}

// Of returns "3/20", or "3" if the total is unknown.
func Of(n, total int) string {
	if total > 0 {
		return fmt.Sprintf("%d/%d", n, total)
	}
	return strconv.Itoa(n)
}

// OneLine returns user text as a single line.
func OneLine(s string) string {
	return strings.Join(Lines(s), " ")
}

// Lines splits user text into clean lines; an empty text has none.
func Lines(s string) []string {
	s = strings.TrimRight(s, "\r\n")
	if s == "" {
		return nil
	}
	out := strings.Split(s, "\n")
	for i := range out {
		out[i] = phrase.CleanLine(out[i])
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

// Width returns the number of terminal columns that s takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += cellWidth(r)
	}
	return n
}

// Fit cuts s to at most w columns, the last of them an ellipsis.
func Fit(s string, w int) string {
	if Width(s) <= w {
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

// Plural returns "1 step", "2 steps".
func Plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return chart.Grouped(n) + " " + what
}

// NonEmpty returns the strings that are not empty, in the memory of s.
func NonEmpty(s ...string) []string {
	out := s[:0]
	for _, x := range s {
		if x != "" {
			out = append(out, x)
		}
	}
	return out
}

// Cut shortens a line to a maximum number of runes.
func Cut(s string, runes int) string {
	if len(s) <= runes {
		return s
	}
	r := []rune(s)
	if len(r) <= runes {
		return s
	}
	return string(r[:runes-1]) + "…"
}

// SharePercent formats a share, rounded to the nearest percent.
func SharePercent(x float64) string { return strconv.Itoa(int(Clamp(x)*100+0.5)) + " %" }

// WithUnit formats a number with its unit. A unit of measure begins with a capital and directly
// follows the number's prefix; the name of something counted follows a space.
func WithUnit(x float64, unit string) string {
	n := Number(x)
	unit = OneLine(unit)
	if unit == "" {
		return n
	}
	first, _ := utf8.DecodeRuneInString(unit)
	prefixed := n != "" && strings.ContainsRune("kMGT", rune(n[len(n)-1]))
	if !prefixed || !unicode.IsUpper(first) {
		n += " "
	}
	return n + unit
}

// Short formats a number such as a learning rate, with three significant digits.
func Short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }
