package tables

import (
	"cmp"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops/dataset/columns"
)

const (
	leakValues  = 1 << 16 // 3 MB of a table of hashes
	leakClasses = 64
	// leakRows is the least number of labelled rows, and leakEach that of rows of a class, for a finding: with fewer,
	// chance separates classes often.
	leakRows = 20
	leakEach = 5
)

// leak finds out whether a column predicts the label exactly: by its values, by intervals of numbers, or by whether it
// is missing.
type leak struct {
	c       *Column
	rows    int64
	byValue map[uint64]int32 // nil: a value has two labels, or there are too many values
	span    map[int32]*span  // nil: there are too many classes
}

// span is what a class has in the column.
type span struct {
	lo, hi        float64
	here, missing int64
}

func newLeak(c *Column) *leak {
	return &leak{c: c, byValue: map[uint64]int32{}, span: map[int32]*span{}}
}

func (l *leak) add(v *vec, i int, class int32, missing *columns.Missing) {
	l.rows++
	var s *span
	if l.span != nil {
		if s = l.span[class]; s == nil {
			s = &span{lo: math.Inf(1), hi: math.Inf(-1)}
			if l.span[class] = s; len(l.span) > leakClasses {
				l.span = nil
			}
		}
	}
	if isMissing(v, i, missing) {
		if s != nil {
			s.missing++
		}
		return
	}
	x, h := 0.0, uint64(0)
	switch v.class {
	case text:
		h = hash(v.s[i])
		if l.c.Kind == Number {
			x, _ = columns.Notation(l.c.Notation).Number(v.s[i])
		}
	case float, decimal:
		x, h = v.f[i], math.Float64bits(v.f[i])
	default:
		x, h = float64(v.i[i]), uint64(v.i[i])
	}
	if s != nil {
		s.here++
		s.lo, s.hi = min(s.lo, x), max(s.hi, x)
	}
	if l.byValue == nil {
		return
	}
	if y, ok := l.byValue[h]; ok && y != class {
		l.byValue = nil
		return
	}
	if l.byValue[h] = class; len(l.byValue) > leakValues {
		l.byValue = nil
	}
}

// found says how the column predicts the label; "" if it does not.
func (l *leak) found() string {
	if l.rows < leakRows || len(l.span) < 2 {
		return ""
	}
	var here, missing, classes int64
	both := false
	numeric := l.c.Kind == Number
	spans := make([]*span, 0, len(l.span))
	for _, s := range l.span {
		both = both || s.here > 0 && s.missing > 0
		here, missing = here+s.here, missing+s.missing
		if s.here >= leakEach {
			classes++
		}
		numeric = numeric && s.here >= leakEach && s.missing == 0
		spans = append(spans, s)
	}
	if !both && here >= leakEach && missing >= leakEach {
		return "it is missing for some classes and never for the others"
	}
	if l.byValue != nil && classes >= 2 && missing == 0 && 2*int64(len(l.byValue)) <= l.rows {
		return "each of its values has one label alone"
	}
	if numeric {
		slices.SortFunc(spans, func(a, b *span) int { return cmp.Compare(a.lo, b.lo) })
		for k := 1; k < len(spans); k++ {
			if spans[k].lo <= spans[k-1].hi {
				return ""
			}
		}
		return "its ranges for the classes do not overlap"
	}
	return ""
}
