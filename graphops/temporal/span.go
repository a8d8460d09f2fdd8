package temporal

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/phrase"
)

// nanos are the nanoseconds of the units in which people write spans of time. There are no months and years: their lengths differ.
var nanos = map[string]int64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 86400e9, "w": 7 * 86400e9}

// ParseSpan reads a span of time in the unit of a dataset's times ([dataset.Metadata].TimeUnit): a whole number in that unit or, if times
// count since 1970, a number with ns, us, ms, s, m (minutes), h, d or w, such as "7d" or "1.5h". It returns an error for a span that is
// not above 0, that is no whole number of the unit, or that has a unit where times are plain numbers.
func ParseSpan(text, unit string) (int64, error) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	suffix := text[len(digits):]
	x, ok := new(big.Rat), len(digits) <= longestSpan && strings.Trim(digits, "+-.0123456789") == ""
	if ok {
		_, ok = x.SetString(digits)
	}
	per, known := nanos[suffix]
	switch {
	case !ok || suffix != "" && !known:
		return 0, phrase.Errorf("temporal", "%q is no span of time: it is a number with ns, us, ms, s, m, h, d or w, such as 7d or 90m, or a whole number in the unit of the times", text)
	case x.Sign() <= 0:
		return 0, phrase.Errorf("temporal", "the span of time %q is not above 0", text)
	}
	if suffix == "" {
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, phrase.Errorf("temporal", "the span of time %q has no unit, so it is a whole number in the unit of the times; write another number, or a unit such as in 7d", text)
		}
		return n, nil
	}
	one := nanos[unitNames[unit]]
	if one == 0 {
		return 0, phrase.Errorf("temporal", "the span of time is %q, and the times of the data are plain numbers; give a number in their unit, or convert the data with the unit of its times (TimeUnit, --time-unit)", text)
	}
	n := x.Mul(x, big.NewRat(per, one))
	if !n.IsInt() || n.Num().BitLen() > 62 {
		return 0, phrase.Errorf("temporal", "the span of time %q is no whole number of %s, the unit of the times of the data; take another one", text, unitNames[unit])
	}
	return n.Num().Int64(), nil
}

// longestSpan is the most digits of a span.
const longestSpan = 50

// unitNames are the units of times as spans are written in them.
var unitNames = map[string]string{dataset.Seconds: "s", dataset.Milliseconds: "ms", dataset.Microseconds: "us", dataset.Nanoseconds: "ns"}

// SpanText writes a span of time in the largest unit of which it is a whole number, so that [ParseSpan] reads it again; a plain number if unit
// is "".
func SpanText(span int64, unit string) string {
	one := nanos[unitNames[unit]]
	if one == 0 || span > math.MaxInt64/one {
		return strconv.FormatInt(span, 10)
	}
	best := cmp.Or(unitNames[unit], "")
	for name, per := range nanos {
		if per > nanos[best] && span*one%per == 0 {
			best = name
		}
	}
	return strconv.FormatInt(span*one/nanos[best], 10) + best
}
