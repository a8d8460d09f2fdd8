package tables

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset/columns"
)

// Times in files have a unit, of which a recipe keeps that of each column: an edge's time is a count of the unit, since
// 1970 if the column has dates, and a duration or a time of day is a number of units. Later files are converted to it.

// clocks is what the values of a column are, as far as times are concerned.
type clocks struct {
	instants, elapsed, plain int64
	zoneless                 int64 // instants without a zone
	fine                     unit  // the coarsest unit that has all instants
	unit                     unit  // the finest of the files' units, of what elapsed
}

// add looks at a value that is not missing.
func (c *clocks) add(v *vec, i int) {
	switch v.class {
	case instant:
		c.instants++
		if v.zoneless {
			c.zoneless++
		}
		if v.unit > c.fine {
			if c.fine = max(c.fine, seconds); v.unit > c.fine {
				part := v.i[i] % perSecond[v.unit] * (1e9 / perSecond[v.unit])
				c.fine = max(c.fine, finest(part))
			}
		}
		c.fine = max(c.fine, seconds)
	case elapsed:
		c.elapsed++
		c.unit = max(c.unit, v.unit)
	case float, whole, decimal:
		c.plain++
	}
}

// errTimes is wrapped by the errors for times of another kind than the recipe's.
var errTimes = errors.New("their unit is not known")

// conform converts the columns of a batch to the units of the recipe's. It changes what lies in b.
func (t *Table) conform(b *batch, at []int, missing *columns.Missing) error {
	for i := range t.Columns {
		if at[i] >= 0 {
			if err := t.Columns[i].conform(b, &b.cols[at[i]], missing); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Column) conform(b *batch, v *vec, missing *columns.Missing) error {
	want, _ := unitOf(c.Unit)
	have := ""
	switch {
	case v.class == absent || c.Kind == Skip:
		return nil
	case v.class == instant:
		if have = "dates"; c.Kind != Number && c.Kind != Time {
			return nil // as a date, or a word for one, it has no unit
		}
	case v.class == elapsed:
		have = "durations or times of day"
	case want == noUnit || c.Epoch && c.Layout != "": // plain, or text whose dates are parsed one by one
		return nil
	default:
		have = "plain values"
	}
	if of := c.counts(); of != have {
		for i := range b.n {
			if !isMissing(v, i, missing) {
				return fault("%s: the column %s has %s, and the recipe has %s there: %w; store them as in the first tables", b.at(i), shown(c.Name), have, of, errTimes)
			}
		}
		return nil
	}
	if want == v.unit {
		return nil
	}
	// Features are numbers, and may have fractions; an edge's time is whole.
	counts, exactly := make([]int64, b.n), true
	for i := range b.n {
		if v.missing(i) {
			continue
		}
		y, exact, fits := v.unit.in(v.i[i], want)
		switch {
		case !fits:
			return fault("%s: the column %s is %s, which is out of range in %s of 64 bits", b.at(i), shown(c.Name), v.value(i), want)
		case !exact && c.Kind == Time:
			if !c.Cut {
				return c.tooFine(b, i, v.value(i))
			}
			b.cut++
		case !exact:
			exactly = false
		}
		counts[i] = y
	}
	if exactly {
		v.i, v.unit = counts, want
		return nil
	}
	f := make([]float64, b.n)
	for i := range b.n {
		if !v.missing(i) {
			f[i] = float64(v.i[i]) / float64(perSecond[v.unit]/perSecond[want])
		}
	}
	v.class, v.f, v.i = float, f, nil
	return nil
}

// counts says what a column with a unit counts.
func (c *Column) counts() string {
	switch {
	case c.Unit == "":
		return "plain values"
	case c.Epoch:
		return "dates"
	}
	return "durations or times of day"
}

func (c *Column) tooFine(b *batch, i int, value string) error {
	return fault("%s: the time %s is finer than %s, the unit of the dataset's times: read all tables again with a finer TimeUnit (--time-unit), or round the time", b.at(i), shown(value), c.Unit)
}

// edgeTime returns an edge's time: a whole number as it is, and what has a unit in that of the column.
func (c *Column) edgeTime(b *batch, v *vec, i int, missing *columns.Missing) (int64, error) {
	if isMissing(v, i, missing) {
		return 0, fault("%s: the time is missing; skip the column, or give each row one", b.at(i))
	}
	want, _ := unitOf(c.Unit)
	switch {
	case v.class == whole || v.class == instant || v.class == elapsed:
		return v.i[i], nil // conform has converted it
	case v.class == text && c.Layout != "":
		at, err := time.Parse(c.Layout, v.s[i])
		if err != nil {
			return 0, notDate(c, b, v, i)
		}
		t, exact, fits := countOf(at, want)
		switch {
		case !fits:
			return 0, fault("%s: the time %s is out of range in %s of 64 bits", b.at(i), shown(v.s[i]), want)
		case !exact && !c.Cut:
			return 0, c.tooFine(b, i, v.s[i])
		case !exact:
			b.cut++
		}
		return t, nil
	}
	k, err := keyOf(v, i)
	switch {
	case err != nil:
		return 0, fault("%s: the time is %s: %w", b.at(i), v.value(i), err)
	case k.text:
		// Python writes whole numbers of floating point as 36.0.
		if x, err := strconv.ParseFloat(k.word, 64); err == nil && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return int64(x), nil
		}
		return 0, fault("%s: the time is %s; it is a whole number of 64 bits, or a date", b.at(i), shown(v.value(i)))
	}
	return k.num, nil
}

// timeAt returns a date in microseconds since 1970.
func timeAt(c *Column, b *batch, v *vec, i int) (int64, error) {
	var at time.Time
	switch v.class {
	case instant:
		at = v.unit.time(v.i[i])
	case text:
		if c.Layout == "" {
			return 0, notDate(c, b, v, i)
		}
		var err error
		if at, err = time.Parse(c.Layout, v.s[i]); err != nil {
			return 0, notDate(c, b, v, i)
		}
	default:
		return 0, notDate(c, b, v, i)
	}
	t, _, fits := countOf(at, micros)
	if !fits || t == math.MinInt64 {
		return 0, fault("%s: the column %s is %s, which is out of range in microseconds of 64 bits", b.at(i), shown(c.Name), shown(v.value(i)))
	}
	return t, nil
}

func notDate(c *Column, b *batch, v *vec, i int) error {
	written := ""
	if c.Layout != "" {
		written = ", written like " + c.Layout
	}
	return fault("%s: the column %s is %s, which is not a date%s; correct it, or name the word in Missing (--missing) if it means missing", b.at(i), shown(c.Name), shown(v.value(i)), written)
}

// setUnit sets the unit of a column of times of this kind, from what was found in it.
func (c *Column) setUnit(where string, p *profile, o *Options) error {
	k := &p.clocks
	mixed := k.elapsed > 0 && k.instants+k.plain > 0 || k.instants > 0 && k.plain > 0 && (c.Kind == Time || c.Kind == Number)
	if mixed && c.Kind != Skip {
		return fault("%s: %d of its values are dates, %d durations or times of day and %d plain numbers: %w; store them alike, or skip the column", where, k.instants, k.elapsed, k.plain, errTimes)
	}
	switch {
	case c.Kind == Time && (k.instants > 0 || c.Layout != ""):
		u := max(seconds, k.fine)
		if to, ok := unitOf(o.TimeUnit); ok && to != noUnit {
			c.Cut = to < u
			u = to
		}
		c.Unit, c.Epoch = u.String(), true
	case c.Kind == Number && k.instants > 0:
		c.Unit, c.Epoch = micros.String(), true
	case c.Kind != Skip && k.elapsed > 0:
		c.Unit = k.unit.String()
	}
	return nil
}

// unitWords says which unit a column has, for the table of columns.
func (c *Column) unitWords() string {
	switch {
	case c.Unit == "":
		return ""
	case c.Epoch:
		return fmt.Sprintf("%s since 1970", c.Unit)
	}
	return "in " + c.Unit
}
