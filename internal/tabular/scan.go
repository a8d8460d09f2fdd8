// This file reads numbers, fields of lines, and JSON from texts that are not trusted. Its errors are for the user:
// they say what is wrong at which place.

package tabular

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// AtLine returns an error about a line of a text.
func AtLine(line int64, format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{line}, args...)...)
}

// Shown formats text for an error: quoted, and truncated if long.
func Shown(text []byte) string {
	if len(text) > 40 {
		return strconv.Quote(string(text[:40])) + "…"
	}
	return strconv.Quote(string(text))
}

// Separator reports whether c separates numbers.
func Separator(c byte) bool { return c == ' ' || c == '\t' || c == ',' || c == ';' }

// Trim drops leading blanks (but no commas) of text.
func Trim(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	return text
}

// Comment reports whether a line holds no data: it is blank or marked as a comment.
func Comment(line []byte) bool {
	line = Trim(line)
	return len(line) == 0 || line[0] == '#' || line[0] == '%' || len(line) > 1 && line[0] == '/' && line[1] == '/'
}

// Field splits the first field off line. It returns the text before the next separator and the rest
// after it (blanks around a comma belong to the separator).
func Field(line []byte) (text, rest []byte) {
	line = Trim(line)
	end := 0
	for end < len(line) && !Separator(line[end]) {
		end++
	}
	text, rest = line[:end], Trim(line[end:])
	if len(rest) > 0 && (rest[0] == ',' || rest[0] == ';') {
		rest = Trim(rest[1:])
	}
	return text, rest
}

// Whole parses text as a whole number. Numbers of more than 18 digits are rejected.
func Whole(text []byte) (n int64, ok bool) {
	digits := text
	if len(text) > 0 && text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, true
}

// Powers of ten that a float64 represents exactly.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// Decimal parses text as a decimal number, correctly rounded to float64. It accepts nan and inf;
// callers reject them where they are not allowed.
func Decimal(text []byte) (float64, bool) {
	// Up to 15 digits and a power of ten up to 22 are exact, so one operation
	// rounds once (W. D. Clinger, How to read floating point numbers accurately,
	// PLDI 1990, doi:10.1145/93542.93557).
	i, negative := 0, false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		i, negative = 1, text[0] == '-'
	}
	var mantissa uint64
	digits, point := 0, -1
	for ; i < len(text) && digits <= 15; i++ {
		c := text[i]
		if c == '.' && point < 0 {
			point = digits
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		mantissa = mantissa*10 + uint64(c-'0')
		digits++
	}
	if i == len(text) && digits > 0 && digits <= 15 {
		x := float64(mantissa)
		if point >= 0 {
			x /= powers[digits-point]
		}
		if negative {
			x = -x
		}
		return x, true
	}
	if len(text) == 0 || len(text) > 64 || bytes.ContainsAny(text, "xX_") {
		return 0, false
	}
	x, err := strconv.ParseFloat(string(text), 64)
	return x, err == nil
}

// Float is like Decimal, for a value that a dataset stores as float32.
func Float(text []byte) (float32, bool) {
	x, ok := Decimal(text)
	return float32(x), ok && !math.IsInf(float64(float32(x)), 0)
}
