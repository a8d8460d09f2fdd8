package tables

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/graphnb/graphnb/graphops/dataset/columns"
)

// layouts are the ways to write a date that are recognised.
var layouts = []string{
	"2006-01-02", time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05-07", "2006-01-02 15:04:05 -0700", "2006-01-02T15:04:05-0700", "2006-01-02T15:04",
	"2006/1/2", "2006/1/2 15:04:05", "2.1.2006", "2.1.2006 15:04", "2.1.2006 15:04:05",
	"1/2/2006", "2/1/2006", "1/2/2006 15:04", "2/1/2006 15:04", "1/2/2006 15:04:05", "2/1/2006 15:04:05", "2 Jan 2006", "Jan 2, 2006", "2 January 2006", "January 2, 2006",
}

const (
	// almost is the share of values of one kind above which the others are taken for errors.
	almost = 0.9
	// triesDates is how many values are tried as dates if none is one.
	triesDates = 1000
)

// example is a value and where it is.
type example struct{ at, value string }

// profile is what a column has, found in one pass.
type profile struct {
	columns.Profile
	typed, typedFractions int64 // numbers of a file that stores numbers
	dates, instants       int64
	words                 int64 // texts that are no numbers with a decimal point
	zeros                 bool  // a number begins with 0, as a postal code does
	alive                 uint32
	firstWord             example // neither a number nor missing
	firstNoDate           example
	tokens                int64
	clocks                clocks
	layout                string // of dates, if the options give one
	notation              columns.Notation
	points                int64 // numbers with a decimal point so far
}

// numbers is how many values are numbers.
func (p *profile) numbers() int64 {
	n, _ := p.Numbers(p.notation)
	return n + p.typed + p.clocks.elapsed
}

// fractions is how many values are numbers that are not whole.
func (p *profile) fractions() int64 {
	_, n := p.Numbers(p.notation)
	return n + p.typedFractions
}

// add looks at all values of a batch.
func (p *profile) add(b *batch, v *vec, missing *columns.Missing) {
	if p.Rows == 0 {
		p.alive = 1<<len(layouts) - 1
	}
	for i := range b.n {
		if isMissing(v, i, missing) {
			p.AddMissing()
			continue
		}
		p.clocks.add(v, i)
		switch v.class {
		case float, decimal:
			p.typed++
			if v.f[i] != math.Trunc(v.f[i]) {
				p.typedFractions++
			}
			p.AddFloat(v.f[i])
		case whole:
			p.typed++
			p.AddWhole(v.i[i])
		case elapsed:
			p.AddOther(uint64(v.i[i]))
		case instant:
			p.instants++
			p.AddOther(uint64(v.i[i]))
		case text:
			p.addText(b, i, v.s[i])
		}
	}
}

func (p *profile) addText(b *batch, i int, s string) {
	if b.lines != nil {
		p.Line = b.lines[i]
	}
	p.AddText(s)
	if p.layout != "" {
		if at, err := time.Parse(p.layout, s); err == nil {
			p.clocks.fine = max(p.clocks.fine, finest(int64(at.Nanosecond())))
		}
	}
	if n, _ := p.Numbers(columns.Point); n > p.points {
		p.points = n
		if len(s) > 1 && s[0] == '0' && s[1] != '.' && s[1] != ',' && s[1] != 'e' {
			p.zeros = true
		}
		return
	}
	if p.words++; p.words == 1 {
		p.firstWord = example{b.at(i), strings.Clone(s)}
	}
	p.tokens += int64(strings.Count(s, " ")) + 1
	if p.dates == 0 && p.words > triesDates {
		return
	}
	if now, fine := datesOf(s, p.alive); now != 0 {
		p.alive = now
		p.clocks.fine = max(p.clocks.fine, fine)
		p.dates++
	} else if p.firstNoDate.at == "" {
		p.firstNoDate = example{b.at(i), strings.Clone(s)}
	}
}

// datesOf returns those of the layouts by which a text is a date, and the unit that the fraction of its second needs.
func datesOf(s string, alive uint32) (ok uint32, fine unit) {
	if len(s) < 8 || len(s) > 40 || strings.IndexFunc(s, unicode.IsDigit) < 0 {
		return 0, noUnit
	}
	for k := range layouts {
		if alive>>k&1 != 0 {
			if at, err := time.Parse(layouts[k], s); err == nil {
				ok |= 1 << k
				fine = finest(int64(at.Nanosecond()))
			}
		}
	}
	return ok, fine
}

// dateLayout returns the layout of a column whose values are dates; an error if two layouts read them differently.
func (p *profile) dateLayout(where string) (string, error) {
	if p.dates == 0 {
		return "", nil
	}
	first := ""
	for k, l := range layouts {
		if p.alive>>k&1 == 0 {
			continue
		}
		if first == "" {
			first = l
			continue
		}
		if strings.HasPrefix(first, "1/2/") && strings.HasPrefix(l, "2/1/") {
			return "", fault("%s: the dates can be read with the day first or the month first: say which, as in Layouts: {%s: %s} (--date-layout)", where, strconv.Quote(lastWord(where)), strconv.Quote(l))
		}
	}
	return first, nil
}

func lastWord(where string) string {
	_, name, ok := strings.Cut(where, "column ")
	if !ok {
		return where
	}
	name, _ = strconv.Unquote(name)
	return name
}

// guess returns the kind of a column by its values alone. where names the column in an error.
func (p *profile) guess(where string, oneHot int) (kind Kind, why string, err error) {
	n := p.Present()
	distinct, many := p.Distinct()
	numbers := p.numbers()
	for _, other := range []columns.Notation{columns.Comma, columns.Grouped} {
		if k, _ := p.Numbers(other); p.notation == columns.Point && numbers < n && k+p.typed >= max(numbers, int64(almost*float64(n))) {
			numbers = k + p.typed
		}
	}
	switch {
	case n == 0:
		return Skip, "every value is missing", nil
	case p.instants == n:
		return Date, "dates", nil
	case numbers == n && p.zeros && p.fractions() == 0:
		return Category, "numbers that begin with 0, such as postal codes", nil
	case numbers == n && p.clocks.elapsed == n:
		return Number, "durations or times of day", nil
	case numbers == n:
		return Number, "numbers", nil
	case p.dates == n:
		if _, err := p.dateLayout(where); err != nil {
			return "", "", err
		}
		return Date, "dates", nil
	case float64(numbers) >= almost*float64(n):
		return "", "", fault("%s: %d of its values are numbers, but %d are not, first %s (%s): correct them, name the word in Missing (--missing) if it means missing, or say the column's kind in Kinds (--kinds), such as category", where, numbers, n-numbers, shown(p.firstWord.value), p.firstWord.at)
	case float64(p.dates) >= almost*float64(n):
		return "", "", fault("%s: %d of its values are dates, but %d are not, first %s (%s): correct them, name the word in Missing (--missing) if it means missing, or say the column's kind in Kinds (--kinds), such as category", where, p.dates, n-p.dates, shown(p.firstNoDate.value), p.firstNoDate.at)
	}
	perValue := float64(p.tokens) / float64(max(1, p.words))
	few := !many && distinct <= int64(oneHot) && (distinct <= 10 || 4*distinct <= n)
	mixed := ""
	if numbers > 0 {
		mixed = fmt.Sprintf("; %d of %d are numbers", numbers, n)
	}
	switch {
	case few:
		return Category, fmt.Sprintf("%d values%s", distinct, mixed), nil
	case perValue >= 2.5:
		return Text, fmt.Sprintf("%.0f words a value%s", perValue, mixed), nil
	case p.Unique() && n >= 20:
		return Skip, "each row has a value of its own, as names do" + mixed, nil
	case many:
		return Category, fmt.Sprintf("over %d values%s", distinct, mixed), nil
	}
	return Category, fmt.Sprintf("%d values%s", distinct, mixed), nil
}

// hash is the same on every machine.
func hash(s string) uint64 { return columns.Hash(s) }

// mix is the finaliser of MurmurHash3.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
