package tables

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// class is how a column's values are stored in a file.
type class uint8

const (
	absent  class = iota // every value is missing
	text                 // s
	float                // f
	whole                // i
	decimal              // s is the exact number, f the nearest float64
	instant              // i, in the unit, since 1970
	elapsed              // i, in the unit: a duration, or a time of day
)

// unit is the unit of times.
type unit uint8

const (
	noUnit unit = iota
	seconds
	millis
	micros
	nanos
)

var (
	unitNames = [...]string{"", "s", "ms", "us", "ns"}
	perSecond = [...]int64{0, 1, 1e3, 1e6, 1e9}
)

func (u unit) String() string { return unitNames[u] }

// unitOf returns the unit of a name, and whether there is one.
func unitOf(name string) (unit, bool) {
	for u, n := range unitNames {
		if n == name {
			return unit(u), true
		}
	}
	return noUnit, false
}

// in converts a count of one unit to another one; exact is false if it was rounded down, and fits if int64 holds it.
func (u unit) in(x int64, to unit) (y int64, exact, fits bool) {
	a, b := perSecond[u], perSecond[to]
	if a >= b {
		y = x / (a / b)
		if rest := x % (a / b); rest != 0 {
			if rest < 0 {
				y--
			}
			return y, false, true
		}
		return y, true, true
	}
	y = x * (b / a)
	return y, true, y/(b/a) == x
}

// time returns the instant of a count since 1970.
func (u unit) time(x int64) time.Time {
	s, _, _ := u.in(x, seconds)
	return time.Unix(s, (x-s*perSecond[u])*(1e9/perSecond[u])).UTC()
}

// finest returns the coarsest unit that has the fraction of a second, in nanoseconds.
func finest(nanosecond int64) unit {
	for u := seconds; u < nanos; u++ {
		if nanosecond%(1e9/perSecond[u]) == 0 {
			return u
		}
	}
	return nanos
}

// countOf returns an instant in a unit since 1970, as [unit.in] does.
func countOf(t time.Time, to unit) (count int64, exact, fits bool) {
	x, _, ok := seconds.in(t.Unix(), to)
	part := int64(t.Nanosecond()) / (1e9 / perSecond[to])
	if x > math.MaxInt64-part {
		ok = false
	}
	return x + part, int64(t.Nanosecond())%(1e9/perSecond[to]) == 0, ok
}

// vec is the values of one column in a batch: in s, f or i, by class.
type vec struct {
	class class
	unit  unit   // of instants and of what elapsed
	null  []bool // nil: none is missing
	s     []string
	f     []float64
	i     []int64
	// most is the number of bits of a whole number that a float of the file's type has; 0 means 53.
	most uint8
	// zoneless says that instants are those of a clock on a wall: the file's type has no time zone.
	zoneless bool
}

func (v *vec) missing(i int) bool { return v.class == absent || v.null != nil && v.null[i] }

// value returns a value as text, as an id or a category has it: a whole number has no point.
func (v *vec) value(i int) string {
	switch v.class {
	case text, decimal:
		return v.s[i]
	case float:
		if x := v.f[i]; x == float64(int64(x)) && x < 1<<53 && x > -1<<53 {
			return strconv.FormatInt(int64(x), 10)
		}
		return strconv.FormatFloat(v.f[i], 'g', -1, 64)
	case whole:
		return strconv.FormatInt(v.i[i], 10)
	case elapsed:
		return strconv.FormatInt(v.i[i], 10) + " " + v.unit.String()
	case instant:
		return v.unit.time(v.i[i]).Format(time.RFC3339Nano)
	}
	return ""
}

// exact reports whether a float is the number that was written into the file, as far as it can be known: from 2^53 on (or
// 2^24 in float32) neighbouring whole numbers are the same float.
func (v *vec) exact(i int) bool {
	most := v.most
	if most == 0 {
		most = 53
	}
	return v.class != float || math.Abs(v.f[i]) < float64(uint64(1)<<most)
}

// batch is some rows of a table. Its memory is valid only until the next batch.
type batch struct {
	n     int
	cols  []vec // by column of the table; those that were not asked for are absent
	file  string
	lines []int // of the rows, in a text file
	first int64 // number of the first row in the file, from 1
	cut   int   // times that were rounded down
}

// at returns where a row is, for an error.
func (b *batch) at(i int) string {
	if b.lines != nil {
		return fmt.Sprintf("%s: line %d", b.file, b.lines[i])
	}
	return fmt.Sprintf("%s: row %d", b.file, b.first+int64(i))
}

// shown shortens a value for an error, and quotes it.
func shown(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}
