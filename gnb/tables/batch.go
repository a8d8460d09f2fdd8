package tables

import (
	"fmt"
	"strconv"
	"time"
)

// class is how a column's values are stored in a file.
type class uint8

const (
	absent class = iota // every value is missing
	text
	float
	whole
	instant // microseconds since 1970
)

// vec is the values of one column in a batch: one of s, f and i, by class.
type vec struct {
	class class
	null  []bool // nil: none is missing
	s     []string
	f     []float64
	i     []int64
}

func (v *vec) missing(i int) bool { return v.class == absent || v.null != nil && v.null[i] }

// value returns a value as text, as an id or a category has it: a whole number has no point.
func (v *vec) value(i int) string {
	switch v.class {
	case text:
		return v.s[i]
	case float:
		if x := v.f[i]; x == float64(int64(x)) && x < 1<<53 && x > -1<<53 {
			return strconv.FormatInt(int64(x), 10)
		}
		return strconv.FormatFloat(v.f[i], 'g', -1, 64)
	case whole:
		return strconv.FormatInt(v.i[i], 10)
	case instant:
		return time.UnixMicro(v.i[i]).UTC().Format(time.RFC3339)
	}
	return ""
}

// batch is some rows of a table. Its memory is valid only until the next batch.
type batch struct {
	n     int
	cols  []vec // by column of the table; those that were not asked for are absent
	file  string
	lines []int // of the rows, in a text file
	first int64 // number of the first row in the file, from 1
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
