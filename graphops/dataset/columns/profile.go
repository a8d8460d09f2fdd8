package columns

import (
	"fmt"
	"math"
	"strings"
)

// maxDistinct bounds the values that a profile remembers.
const maxDistinct = 1 << 16

// Profile is what the values of a column are, found in one pass. The zero value is an empty column.
type Profile struct {
	Rows, Missing int64
	// Line is where the next value is, for errors; a reader of text sets it.
	Line int

	wholes, others           int64 // typed numbers: whole ones, and those that are not
	words                    int64 // texts that are no numbers
	writing                  writing
	flags, parts             int64 // values that are 0, 1, True or False; names of splits
	small                    int64 // values that are 0, 1, 2 or -1
	counted                  int64 // values that are one more than the one before
	last                     int64
	distinct                 map[uint64]struct{}
	overflow                 int64
	noNumber, noPart, noFlag example // the first values that are none
}

type example struct {
	value string
	line  int
	is    bool
}

func (e *example) keep(value string, line int) {
	if !e.is {
		*e = example{strings.Clone(value), line, true}
	}
}

// at returns "line 3: " if the line is known.
func (e *example) at() string {
	if e.line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", e.line)
}

// AddMissing takes a missing value.
func (p *Profile) AddMissing() { p.Rows, p.Missing = p.Rows+1, p.Missing+1 }

// AddText takes the text of a value that is not missing.
func (p *Profile) AddText(s string) {
	p.Rows++
	p.see(Hash(s))
	if _, ok := Flag(s); ok {
		p.flags++
	} else {
		p.noFlag.keep(s, p.Line)
	}
	if _, ok := Part(s); ok {
		p.parts++
	} else {
		p.noPart.keep(s, p.Line)
	}
	if _, ok := NumberedPart(s); ok {
		p.small++
	}
	if p.writing.add(s) {
		if x, ok := plain(s); ok && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			p.count(int64(x))
		}
		return
	}
	p.words++
	p.noNumber.keep(s, p.Line)
}

// AddWhole takes a whole number of a file that stores numbers.
func (p *Profile) AddWhole(x int64) {
	p.Rows++
	p.see(uint64(x))
	p.wholes++
	p.count(x)
	if x == 0 || x == 1 {
		p.flags++
	}
	if x >= -1 && x <= 2 {
		p.small++
	}
}

// AddFloat takes a number of a file that stores numbers.
func (p *Profile) AddFloat(x float64) {
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		p.AddWhole(int64(x))
		return
	}
	p.Rows++
	p.see(math.Float64bits(x))
	p.others++
}

// AddOther takes a value of another type, such as a date, that is not missing.
func (p *Profile) AddOther(h uint64) {
	p.Rows++
	p.see(h)
	p.others++
}

func (p *Profile) count(x int64) {
	if p.counted == 0 || x == p.last+1 {
		p.counted++
	}
	p.last = x
}

// see remembers a value as long as there are few.
func (p *Profile) see(h uint64) {
	if p.overflow > 0 {
		return
	}
	if p.distinct == nil {
		p.distinct = map[uint64]struct{}{}
	}
	if p.distinct[h] = struct{}{}; len(p.distinct) > maxDistinct {
		p.overflow, p.distinct = p.Present(), nil
	}
}

// Present is how many values there are.
func (p *Profile) Present() int64 { return p.Rows - p.Missing }

// Distinct is how many different values there are; over reports that there are more, too many to count.
func (p *Profile) Distinct() (n int64, over bool) {
	if p.overflow > 0 {
		return maxDistinct, true
	}
	return int64(len(p.distinct)), false
}

// Unique reports whether no value, or nearly none where there are many, occurs twice.
func (p *Profile) Unique() bool {
	if p.overflow > 0 {
		return float64(maxDistinct) >= .95*float64(p.overflow)
	}
	return int64(len(p.distinct)) == p.Present()
}

// Whole reports whether every value is a whole number, and none is missing.
func (p *Profile) Whole() bool {
	return p.Rows > 0 && p.Missing == 0 && p.wholes+p.writing.by[0] == p.Rows && p.others == 0 && p.writing.fractions[0] == 0
}

// is reports whether the values are what a name needs.
func (p *Profile) is(n Need) bool {
	present := p.Present()
	switch n {
	case Absent:
		return present == 0
	case Wholes:
		return p.Whole()
	case Counting:
		return p.Whole() && p.counted == present
	case Words:
		return present > 0 && p.parts == present
	case Flags, Together:
		return present > 0 && p.flags == present
	}
	return true
}

// Hash is FNV-1a with the final mix of MurmurHash3: it is the same on every machine.
func Hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
