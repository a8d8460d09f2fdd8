package columns

import (
	"math"
	"strconv"
	"strings"
)

// Notation is how the numbers of a column are written.
type Notation string

// The notations.
const (
	Point   Notation = ""        // 1234.5
	Comma   Notation = "comma"   // 1234,5 or 1.234,5
	Grouped Notation = "grouped" // 1,234.5 or 1 234.5
)

// Number returns the number that a text is. Only decimal notation counts, so nan, inf and 0x1 are no numbers.
func (n Notation) Number(s string) (float64, bool) {
	if n == Point {
		return plain(s)
	}
	group, point := byte(','), byte('.')
	if n == Comma {
		group, point = '.', ','
	}
	t, ok := ungroup(s, group, point)
	if !ok {
		return 0, false
	}
	return plain(t)
}

func plain(s string) (float64, bool) {
	if len(s) == 0 || len(s) > 400 {
		return 0, false
	}
	if c := s[0]; (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' {
		return 0, false
	}
	if strings.ContainsAny(s, "xX_pPnN") {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil
}

// spaces separate groups of three digits in French and Swiss notation.
var spaces = strings.NewReplacer("\u00a0", " ", "\u202f", " ", "\u2009", " ", "'", " ", "’", " ")

// ungroup removes the separators between groups of three digits, and makes the decimal separator a point. It returns
// false unless the text has digits in groups of three wherever it has a separator.
func ungroup(s string, group, point byte) (string, bool) {
	if len(s) > 400 {
		return "", false
	}
	s = spaces.Replace(s)
	whole, fraction, cut := strings.Cut(s, string(point))
	sign := ""
	if whole != "" && (whole[0] == '-' || whole[0] == '+') {
		sign, whole = whole[:1], whole[1:]
	}
	if strings.IndexByte(fraction, group) >= 0 || strings.IndexByte(fraction, point) >= 0 || strings.IndexByte(fraction, ' ') >= 0 {
		return "", false
	}
	sep := group
	if strings.IndexByte(whole, ' ') >= 0 {
		sep = ' '
	}
	if strings.IndexByte(whole, sep) >= 0 {
		groups := strings.Split(whole, string(sep))
		for i, g := range groups {
			if !digits(g) || i > 0 && len(g) != 3 || i == 0 && (len(g) == 0 || len(g) > 3) {
				return "", false
			}
		}
		whole = strings.Join(groups, "")
	}
	if strings.IndexByte(whole, ',') >= 0 || strings.IndexByte(whole, '.') >= 0 {
		return "", false
	}
	if !cut {
		return sign + whole, true
	}
	return sign + whole + "." + fraction, true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// writing counts by which notations the texts of a column are numbers.
type writing struct {
	by        [3]int64 // numbers by notation, in the order of notations
	fractions [3]int64 // of these, those that are not whole
	odd       int64    // numbers that are none with a decimal point alone
	differ    int64    // numbers that are different ones by the comma and by groups
}

var notations = [3]Notation{Point, Comma, Grouped}

func (w *writing) add(s string) (isNumber bool) {
	var xs [3]float64
	var ok [3]bool
	if strings.IndexByte(s, ',') < 0 && strings.IndexByte(s, '.') < 0 {
		if x, is := plain(s); is { // most numbers
			for k := range notations {
				w.by[k]++
				if x != math.Trunc(x) {
					w.fractions[k]++
				}
			}
			return true
		}
	}
	for k, n := range notations {
		if xs[k], ok[k] = n.Number(s); !ok[k] {
			continue
		}
		isNumber = true
		w.by[k]++
		if xs[k] != math.Trunc(xs[k]) {
			w.fractions[k]++
		}
	}
	if isNumber && !ok[0] {
		w.odd++
		if ok[1] && ok[2] && xs[1] != xs[2] {
			w.differ++
		}
	}
	return isNumber
}

// sure returns the notation by which all n values are numbers, if only one does. undecided reports that decimal commas
// and groups both do and mean different numbers.
func (w *writing) sure(n int64) (found Notation, undecided, ok bool) {
	switch {
	case n == 0:
		return Point, false, false
	case w.by[0] == n:
		return Point, false, true
	case w.by[1] == n && w.by[2] == n:
		return Grouped, w.differ > 0, true
	case w.by[1] == n:
		return Comma, false, true
	case w.by[2] == n:
		return Grouped, false, true
	}
	return Point, false, false
}
