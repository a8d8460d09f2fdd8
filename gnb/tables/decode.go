package tables

import (
	"math"
	"strconv"
	"time"

	"github.com/graphnb/graphnb/internal/simd"
)

// Decode returns the raw value that features stand for: the inverse of the recipe. x are the features of a row of the column's table, all
// of them, in the recipe's order; half says that they were stored as float16. A number or a date is the shortest one that the
// recipe encodes as x. "" is a missing value.
//
// exact is false where features do not tell the value: of hashed categories and texts, and where the row may have had another value
// or none, as a category that the recipe does not know. Then value says what is known, in words.
func (c *Column) Decode(x []float32, half bool) (value string, exact bool) {
	if c.Width == 0 || c.First+c.Width > len(x) {
		return "", false
	}
	own := x[c.First : c.First+c.Width]
	if c.Flag && own[c.Width-1] == 1 {
		return "", true
	}
	switch c.Kind {
	case Number:
		return c.decodeNumber(own[0], half)
	case Date:
		return c.decodeDate(own, half)
	case Category:
		for k, name := range c.Values {
			if own[k] == 1 {
				return name, true
			}
		}
		switch {
		case c.Buckets > 0:
			return "one of many categories", false
		case c.Flag:
			return "another category", false
		}
		return "another category, or missing", false
	case Text:
		n := 0
		for _, w := range own {
			if w != 0 {
				n++
			}
		}
		return "text of about " + strconv.Itoa(n) + " different words", false
	}
	return "", false
}

// encodes reports whether a feature is what a number becomes.
func encodes(number float64, feature float32, half bool) bool {
	y := float32(number)
	if half {
		var h [1]uint16
		var back [1]float32
		simd.ToHalf(h[:], []float32{y})
		simd.FromHalf(back[:], h[:])
		y = back[0]
	}
	return y == feature
}

func (c *Column) decodeNumber(x float32, half bool) (value string, exact bool) {
	y := float64(x)*c.Scale + c.Shift
	value = strconv.FormatFloat(y, 'g', -1, 64)
	try := func(format byte, digits int) bool { // with few digits, and near 0 with few decimals
		near, err := strconv.ParseFloat(strconv.FormatFloat(y, format, digits, 64), 64)
		if err != nil || !encodes((near-c.Shift)/c.Scale, x, half) {
			return false
		}
		for _, f := range []byte{'f', 'g'} {
			if s := strconv.FormatFloat(near+0, f, -1, 64); len(s) < len(value) {
				value = s
			}
		}
		return true
	}
	for digits := 1; digits < 17 && !try('g', digits); digits++ {
	}
	for decimals := 0; decimals < 12 && !try('f', decimals); decimals++ {
	}
	if !c.Flag && encodes((c.Mean-c.Shift)/c.Scale, x, half) { // a missing value that the rows of the fit did not have
		return value + ", or missing", false
	}
	return value, true
}

// decodeDate finds the time of an age. The age has 24 bits, so a time long before the reference is less precise than a second.
func (c *Column) decodeDate(own []float32, half bool) (value string, exact bool) {
	if own[1] == 0 && own[2] == 0 { // no day of the year has a sine and a cosine of 0
		return "", true
	}
	age := float64(own[0])*c.Scale + c.Shift
	at := float64(c.Reference) - age*day
	if math.IsNaN(at) || math.Abs(at) > 1e18 {
		return "", false
	}
	layout := c.Layout
	for _, step := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second, time.Millisecond} {
		t := time.UnixMicro(int64(math.Round(at))).UTC().Round(step)
		if (c.Clock || step == 24*time.Hour) && encodes((float64(c.Reference)/day-float64(t.UnixMicro())/day-c.Shift)/c.Scale, own[0], half) {
			if layout == "" {
				if layout = time.DateOnly; c.Clock {
					layout = "2006-01-02 15:04:05.999"
				}
			}
			return t.Format(layout), true
		}
	}
	return "about " + time.UnixMicro(int64(at)).UTC().Round(time.Second).Format(time.DateTime), false
}
