package columns

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Column is what a column was found to be. Kind is "" for a column without a role: a feature, if anything.
type Column struct {
	Kind Kind
	Why  string // "by its name", "as given", …
	// Set is the number of the set of splits that a mask belongs to, from 0. Every says that it belongs to all sets.
	Set   int
	Every bool
	// Numbered says that a column of kind Split has 0 for train, 1 for val and 2 for test: see [NumberedPart].
	Numbered bool
	// Notation is how its numbers are written.
	Notation Notation
}

// Part returns the number of the split that a value of a column of kind Split means, -1 for none.
func (c *Column) Part(text string) (part int, ok bool) {
	if c.Numbered {
		return NumberedPart(text)
	}
	return Part(text)
}

// Table is a table whose columns are to be told apart.
type Table struct {
	Of    Of
	Path  string // for notices
	Names []string
	// Profiles are what the values are, by column; nil if nobody has looked, then names alone decide.
	Profiles []*Profile
	// Kinds are the options' corrections, by column; "" is none. Nil is none for all.
	Kinds []Kind
	// Decimal is the options' decimal separator, "," or "."; "" guesses it.
	Decimal string
	// Separator is that between the columns of a text; 0 for other files.
	Separator rune
	// Plain means that the format documents masks, so they need no notice. Lists means that values can be lists of
	// numbers with commas between them, so no comma is a decimal one unless Decimal says so.
	Plain, Lists bool
}

// Decide returns what each column is, and a notice for each guess. An error names two columns of one kind, or a column of
// splits or masks with other values.
func (t *Table) Decide() ([]Column, notice.List, error) {
	d := &decider{Table: t, cols: make([]Column, len(t.Names))}
	if err := d.given(); err != nil {
		return nil, nil, err
	}
	d.names()
	d.others()
	if err := d.splits(); err != nil {
		return nil, nil, err
	}
	if err := d.numbers(); err != nil {
		return nil, nil, err
	}
	var all notice.List
	for _, s := range d.said {
		all.Add(s.Notice)
	}
	return d.cols, all, nil
}

type decider struct {
	*Table
	cols []Column
	said []said
}

// said is a notice about a column.
type said struct {
	column int
	notice.Notice
}

func (d *decider) say(column int, n notice.Notice) {
	n.Where = d.Path
	d.said = append(d.said, said{column, n})
}

func (d *decider) has(k Kind) bool {
	return slices.ContainsFunc(d.cols, func(c Column) bool { return c.Kind == k })
}

// once are the kinds of which a table has one column; nodes can have several targets.
var once = []Kind{ID, Label, Split, Source, Target, Relation, Weight, Time}

func (d *decider) given() error {
	for i := range d.cols {
		if i >= len(d.Kinds) || d.Kinds[i] == "" {
			continue
		}
		k := d.Kinds[i]
		if slices.Contains(once, k) && d.has(k) && !(k == Target && d.Of == Nodes) {
			return fmt.Errorf("two columns are to be of kind %s, and a table has one; one of them is %q", k, d.Names[i])
		}
		d.cols[i] = Column{Kind: k, Why: "as given"}
	}
	return nil
}

// names applies the rules in their order.
func (d *decider) names() {
	var masks []int // as in cols, the number in the name; -1: none
	for i, c := range d.cols {
		_, number, _ := maskOf(d.Names[i], func(r *Rule) bool { return r.Kind == c.Kind })
		masks = append(masks, number)
	}
	taken := map[Kind]bool{} // by the options
	for _, c := range d.cols {
		taken[c.Kind] = true
	}
	for r := range Rules {
		rule := &Rules[r]
		if rule.Of != d.Of || taken[rule.Kind] && slices.Contains(once, rule.Kind) {
			continue
		}
		best, place := -1, 0
		for i, name := range d.Names {
			if d.cols[i].Kind != "" {
				continue
			}
			at, number, ok := rule.match(Key(name))
			if !ok || !d.fits(i, rule.Need) && !(rule.Need == Flags && at == 0) { // train_mask is a mask, whatever it has
				continue
			}
			if !slices.Contains(once, rule.Kind) {
				d.take(i, rule, at)
				masks[i] = number
				continue
			}
			if best < 0 || at < place {
				best, place = i, at
			}
		}
		if best >= 0 && !d.has(rule.Kind) {
			d.take(best, rule, place)
		}
	}
	d.sets(masks)
}

// sets numbers the sets of splits of masks by the numbers in their names: train_mask_1 and val_mask_1 are of one set. The only
// mask of a split, without a number, is of every set: test_mask beside train_mask_1 and train_mask_2.
func (d *decider) sets(number []int) {
	of := map[Kind]int{}
	for _, c := range d.cols {
		of[c.Kind]++
	}
	every := func(i int) bool { return of[d.cols[i].Kind] == 1 && number[i] < 0 }
	var numbers []int
	for i, c := range d.cols {
		if slices.Contains(Masks[:], c.Kind) && !every(i) {
			numbers = append(numbers, number[i])
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	for i := range d.cols {
		c := &d.cols[i]
		switch {
		case !slices.Contains(Masks[:], c.Kind):
		case every(i):
			c.Every = len(numbers) > 1
		default:
			c.Set, _ = slices.BinarySearch(numbers, number[i])
		}
	}
}

// saySets says how many sets of splits the masks are of, and which sets lack one.
func (d *decider) saySets() {
	sets := 1
	for _, c := range d.cols {
		if slices.Contains(Masks[:], c.Kind) {
			sets = max(sets, c.Set+1)
		}
	}
	if sets == 1 {
		return
	}
	d.say(-1, notice.Notice{Kind: notice.Guessed, What: "the masks are of several sets of splits, numbered from 0", Count: int64(sets), Option: "gnb train --split 1 takes the set 1"})
	lacking, first := int64(0), ""
	for _, k := range Masks {
		for set := range sets {
			has := func(c Column) bool { return c.Kind == k && (c.Every || c.Set == set) }
			if d.has(k) && !slices.ContainsFunc(d.cols, has) {
				if lacking++; first == "" {
					first = fmt.Sprintf("the set %d has no %s", set, k)
				}
			}
		}
	}
	if lacking > 0 {
		d.say(-1, notice.Notice{Kind: notice.Guessed, What: "some sets of splits lack a mask that others have; " + first, Count: lacking})
	}
}

func (d *decider) fits(i int, n Need) bool {
	if n == Together && !d.has(TrainMask) || n == Counting && !d.has(ID) && d.Of == Nodes {
		return false
	}
	return d.Profiles == nil && (n == Flags || n == Wholes && Key(d.Names[i]) != "") || d.Profiles != nil && d.Profiles[i].is(n) || n == Anything
}

// Option is the flag that gives a column another kind.
func Option(column string, kind Kind) string {
	if column == "" {
		return ""
	}
	if strings.ContainsAny(column, " \t'\"$&;()<>|*?") { // for a shell
		return fmt.Sprintf("--kinds %q", column+"="+string(kind))
	}
	return fmt.Sprintf("--kinds %s=%s", column, kind)
}

func (d *decider) take(i int, r *Rule, place int) {
	d.cols[i].Kind, d.cols[i].Why = r.Kind, "by its name"
	if place < r.Plain || d.Plain && slices.Contains(Masks[:], r.Kind) {
		return
	}
	n := notice.Notice{Kind: notice.Guessed, What: fmt.Sprintf("the column %s is %s, by its name", quote(d.Names[i]), r.Why), Option: option(d.Names[i], Number)}
	if r.Kind == Skip {
		d.cols[i].Why = r.Why
		n.Kind, n.What = notice.Dropped, fmt.Sprintf("the column %s is %s", quote(d.Names[i]), r.Why)
		if d.Profiles != nil {
			n.Count = d.Profiles[i].Present()
		}
	}
	if d.Of != Nodes && r.Kind != Skip {
		n.Option = option(d.Names[i], Skip)
	}
	d.say(i, n)
}

func option(column string, kind Kind) string {
	if o := Option(column, kind); o != "" {
		return o + " reads it otherwise"
	}
	return ""
}

func quote(name string) string { return strconv.Quote(name) }

// others finds the ids and ends that no name tells.
func (d *decider) others() {
	if d.Profiles == nil {
		return
	}
	guess := func(i int, k Kind, why string) {
		d.cols[i].Kind, d.cols[i].Why = k, why
		d.say(i, notice.Notice{Kind: notice.Guessed, What: fmt.Sprintf("the column %s is the %s, %s", quote(d.Names[i]), k, why), Option: option(d.Names[i], Skip)})
	}
	switch d.Of {
	case Nodes:
		for _, index := range []bool{false, true} {
			for i := range d.cols {
				p, key := d.Profiles[i], Key(d.Names[i])
				skipped := d.cols[i].Kind == Skip && d.cols[i].Why != "as given"
				if d.has(ID) || p.Missing > 0 || p.Present() == 0 || !p.Unique() || index != skipped && !(index && key == "index") {
					continue
				}
				if d.cols[i].Kind == "" && strings.HasSuffix(key, "id") || index {
					if skipped { // the index is the only id there is
						d.said = slices.DeleteFunc(d.said, func(s said) bool { return s.column == i })
					}
					guess(i, ID, map[bool]string{false: "by its name, and because each value is different", true: "because no other column is, and each value is different"}[index])
				}
			}
		}
		for i := range d.cols {
			if d.cols[i].Kind == "" && ownID(d.Names[i]) && d.Profiles[i].Whole() {
				d.cols[i].Kind, d.cols[i].Why = Skip, "ids of something else, by its name"
				d.say(i, notice.Notice{Kind: notice.Dropped, What: fmt.Sprintf("the column %s has ids of something else, by its name, and is no feature", quote(d.Names[i])), Count: d.Profiles[i].Present(), Option: option(d.Names[i], Number)})
			}
		}
	case Edges:
		for _, kind := range []Kind{Source, Target} {
			for i := range d.cols {
				if p := d.Profiles[i]; !d.has(kind) && d.cols[i].Kind == "" && p.Missing == 0 && p.Present() > 0 && p.others == 0 && p.writing.fractions[0] == 0 {
					guess(i, kind, "by its place")
				}
			}
		}
	}
}

// ownID reports whether a name ends like that of an id: user_id, userId or "user id", but not paid.
func ownID(name string) bool {
	for _, end := range []string{"_id", "-id", " id", "Id", "ID", ".id"} {
		if rest, ok := strings.CutSuffix(name, end); ok && rest != "" {
			return true
		}
	}
	return false
}

// splits checks the values of a column of splits, and of masks.
func (d *decider) splits() error {
	if d.Profiles == nil {
		return nil
	}
	for i := range d.cols {
		c, p := &d.cols[i], d.Profiles[i]
		switch {
		case c.Kind == Split && p.parts < p.Present():
			if p.small < p.Present() {
				return fmt.Errorf("%sthe column %s is the split, and has %s: it has train, val, test or nothing, or the numbers 0, 1 and 2 for them; %s says that it is something else", p.noPart.at(), quote(d.Names[i]), quote(p.noPart.value), Option(d.Names[i], Number))
			}
			c.Numbered = true
			d.say(i, notice.Notice{Kind: notice.Guessed, What: fmt.Sprintf("the column %s has numbers: 0 is train, 1 is val, 2 is test", quote(d.Names[i])), Count: p.Present(), Option: option(d.Names[i], Number)})
		case slices.Contains(Masks[:], c.Kind) && p.flags < p.Present():
			return fmt.Errorf("%sthe column %s is a mask of %s, and has %s: a mask is 0 or 1, or False or True; %s says that it is something else", p.noFlag.at(), quote(d.Names[i]), strings.TrimSuffix(string(c.Kind), "_mask"), quote(p.noFlag.value), Option(d.Names[i], Number))
		}
	}
	// Masks beside a column of splits would say it twice.
	if d.has(Split) {
		for i := range d.cols {
			if c := &d.cols[i]; slices.Contains(Masks[:], c.Kind) && c.Why != "as given" {
				c.Kind, c.Why = Skip, "the column of splits says it already"
				d.say(i, notice.Notice{Kind: notice.Dropped, What: fmt.Sprintf("the mask %s is not read, because the table has a column of splits", quote(d.Names[i])), Option: option(d.Names[i], Number)})
			}
		}
	}
	d.saySets()
	return nil
}

// numbers decides how the numbers of each column are written.
func (d *decider) numbers() error {
	if d.Profiles == nil || d.Lists && d.Decimal == "" {
		return nil
	}
	evidence := Point // what the columns that allow one notation alone use
	for i := range d.cols {
		p := d.Profiles[i]
		if n, undecided, ok := p.writing.sure(p.Present() - p.wholes - p.others); ok && !undecided && n != Point && p.writing.odd > 0 {
			evidence = n
			break
		}
	}
	for i := range d.cols {
		c, p := &d.cols[i], d.Profiles[i]
		n, undecided, ok := p.writing.sure(p.Present() - p.wholes - p.others)
		if !ok || p.writing.odd == 0 || c.Kind == Skip || c.Kind == ID || c.Kind == Source || c.Kind == Target && d.Of != Nodes || c.Kind == Category || c.Kind == Text {
			continue
		}
		if undecided {
			switch {
			case d.Decimal != "" || evidence != Point:
				n = evidence
			case d.Separator == ';':
				n = Comma
			case d.Separator == ',':
				n = Grouped
			default:
				return fmt.Errorf("the numbers of the column %s, such as 1,234, may have a decimal comma or commas between thousands; --decimal , or --decimal . says which the decimal separator is", quote(d.Names[i]))
			}
		}
		if d.Decimal == "," && p.writing.by[1] == p.Present() {
			n = Comma
		}
		if d.Decimal == "." && p.writing.by[2] == p.Present() {
			n = Grouped
		}
		c.Notation = n
		if d.Decimal == "" {
			what, other := "decimal commas", "."
			if n == Grouped {
				what, other = "separators between thousands", ","
			}
			d.say(i, notice.Notice{Kind: notice.Guessed, What: fmt.Sprintf("the numbers of the column %s have %s", quote(d.Names[i]), what), Count: p.writing.odd, Of: p.Present(), Option: fmt.Sprintf("--decimal %s reads them otherwise", other)})
		}
	}
	return nil
}
