package tables

import (
	"fmt"
	"math"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/graphnb/graphnb/graphops/dataset/columns"
)

// day is in microseconds.
const day = 24 * 60 * 60 * 1e6

// defaults of [Options].
const (
	defaultOneHot = 64
	defaultHashed = 128
	defaultWords  = 256
)

// fitter collects over some rows what a column's recipe needs. Sums run in the order of rows, so the bits do not depend
// on threads or batches.
type fitter struct {
	c        *Column
	missing  *columns.Missing
	n, lost  int64
	mean, m2 float64 // of numbers, or of days since 1970
	latest   int64
	clock    bool
	values   map[string]bool // at most as many as get columns, and one more
	oneHot   int
	df       []int64
	filled   int64 // columns of words that are not zero, over all rows
	words    []wordCount
}

type wordCount struct {
	bucket int32
	n      int32
}

func newFitter(c *Column, o *Options, missing *columns.Missing) *fitter {
	f := &fitter{c: c, missing: missing, oneHot: o.oneHot(), latest: math.MinInt64}
	switch c.Kind {
	case Category:
		f.values = map[string]bool{}
	case Text:
		f.df = make([]int64, o.words())
		c.Buckets = o.words()
	}
	return f
}

// add takes the value of a row.
func (f *fitter) add(b *batch, v *vec, i int) error {
	if isMissing(v, i, f.missing) {
		f.lost++
		return nil
	}
	f.n++
	switch f.c.Kind {
	case Number:
		x, err := numberAt(f.c, b, v, i)
		if err != nil {
			return err
		}
		f.moments(x)
	case Date:
		t, err := timeAt(f.c, b, v, i)
		if err != nil {
			return err
		}
		f.latest = max(f.latest, t)
		f.clock = f.clock || t%int64(day) != 0
		f.moments(float64(t) / day)
	case Category:
		if len(f.values) <= f.oneHot {
			if s := v.value(i); !f.values[s] {
				f.values[string([]byte(s))] = true
			}
		}
	case Text:
		f.words = count(v.value(i), len(f.df), f.words[:0])
		for _, w := range f.words {
			f.df[w.bucket]++
		}
		f.filled += int64(len(f.words))
	}
	return nil
}

// moments adds x to mean and variance (Welford 1962, DOI 10.1080/00401706.1962.10490022).
func (f *fitter) moments(x float64) {
	d := x - f.mean
	f.mean += d / float64(f.n)
	f.m2 += d * (x - f.mean)
}

// end sets the column's fitted values, and returns how many features of a row are not zero on average.
func (f *fitter) end(o *Options) (filled float64) {
	c := f.c
	scale := 1.0
	if f.n > 0 && f.m2 > 0 {
		scale = math.Sqrt(f.m2 / float64(f.n))
	}
	c.Flag = f.lost > 0
	switch c.Kind {
	case Number:
		c.Mean, c.Shift, c.Scale = f.mean, f.mean, scale
		if o.Unscaled {
			c.Shift, c.Scale = 0, 1
		}
		filled = 1
	case Date:
		if f.n == 0 {
			f.latest = 0
		}
		c.Reference, c.Clock = f.latest, f.clock
		c.Mean = float64(f.latest)/day - f.mean
		c.Shift, c.Scale = c.Mean, scale
		if o.Unscaled {
			c.Shift, c.Scale = 0, 1
		}
		filled = 5
	case Category:
		filled = 1
		if len(f.values) > f.oneHot {
			c.Buckets = o.hashed()
			break
		}
		for s := range f.values {
			c.Values = append(c.Values, s)
		}
		slices.Sort(c.Values)
	case Text:
		c.Flag = false // a text without words has zeros
		c.IDF = make([]float64, len(f.df))
		for k, df := range f.df {
			c.IDF[k] = math.Log(float64(1+f.n+f.lost)/float64(1+df)) + 1
		}
		filled = float64(f.filled) / float64(max(1, f.n+f.lost))
	}
	c.Width = c.width()
	return filled
}

// width is the number of features that a column becomes.
func (c *Column) width() int {
	w := 0
	switch c.Kind {
	case Number:
		w = 1
	case Date:
		if w = 5; c.Clock {
			w = 7
		}
	case Category, Text:
		w = len(c.Values) + c.Buckets
	default:
		return 0
	}
	if c.Flag {
		w++
	}
	return w
}

func isMissing(v *vec, i int, words *columns.Missing) bool {
	return v.missing(i) || v.class == text && words.Value(v.s[i])
}

func numberAt(c *Column, b *batch, v *vec, i int) (float64, error) {
	var x float64
	ok := true
	switch v.class {
	case float, decimal:
		x = v.f[i]
	case whole, instant, elapsed:
		x = float64(v.i[i])
	case text:
		if x, ok = columns.Notation(c.Notation).Number(v.s[i]); !ok {
			if s := v.s[i]; s == "true" || s == "false" {
				return map[string]float64{"true": 1}[s], nil
			}
		}
	}
	if !ok || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, fault("%s: the column %s is %s, which is not a finite number; correct it, or name the word in Missing (--missing) if it means missing", b.at(i), shown(c.Name), shown(v.value(i)))
	}
	return x, nil
}

// count returns how often each bucket's words occur in a text, in ascending order of bucket. A word is a run of letters
// and digits, in lower case.
func count(s string, buckets int, to []wordCount) []wordCount {
	var h uint64
	inside := false
	flush := func() {
		if inside {
			to = append(to, wordCount{int32(mix(h) % uint64(buckets)), 1})
		}
		inside = false
	}
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			flush()
			continue
		}
		if !inside {
			inside, h = true, 14695981039346656037
		}
		var buf [utf8.UTFMax]byte
		for _, c := range buf[:utf8.EncodeRune(buf[:], unicode.ToLower(r))] {
			h = (h ^ uint64(c)) * 1099511628211
		}
	}
	flush()
	slices.SortFunc(to, func(a, b wordCount) int { return int(a.bucket - b.bucket) })
	n := 0
	for i, w := range to {
		if i > 0 && to[n-1].bucket == w.bucket {
			to[n-1].n++
			continue
		}
		to[n] = w
		n++
	}
	return to[:n]
}

// encode writes the features of a value in column k of the recipe, in ascending order.
func (c *Column) encode(k int, b *batch, v *vec, i int, missing *columns.Missing, words *[]wordCount, to *features) error {
	lost := isMissing(v, i, missing)
	flag := c.First + c.Width - 1
	switch c.Kind {
	case Number:
		x := c.Mean
		if !lost {
			var err error
			if x, err = numberAt(c, b, v, i); err != nil {
				return err
			}
			to.lost.number(k, b, v, i, x, float64(float32((x-c.Shift)/c.Scale))*c.Scale+c.Shift)
		}
		to.put(c.First, (x-c.Shift)/c.Scale)
	case Date:
		if lost {
			to.put(c.First, (c.Mean-c.Shift)/c.Scale)
			break
		}
		t, err := timeAt(c, b, v, i)
		if err != nil {
			return err
		}
		to.put(c.First, (float64(c.Reference)/day-float64(t)/day-c.Shift)/c.Scale)
		at := time.UnixMicro(t).UTC()
		cyclic := func(k int, part float64) {
			sin, cos := math.Sincos(2 * math.Pi * part)
			to.put(c.First+k, sin)
			to.put(c.First+k+1, cos)
		}
		cyclic(1, float64(at.YearDay()-1)/365.25)
		cyclic(3, float64(at.Weekday())/7)
		if c.Clock {
			cyclic(5, float64(at.Hour()*3600+at.Minute()*60+at.Second())/86400)
		}
	case Category:
		if lost {
			break
		}
		s := v.value(i)
		if c.Buckets == 0 {
			if k, ok := slices.BinarySearch(c.Values, s); ok {
				to.put(c.First+k, 1)
			}
			break
		}
		// Two columns each: two categories that share both are rarer than two that share one.
		h := hash(s)
		x, y := int(h%uint64(c.Buckets)), int(h>>32%uint64(c.Buckets))
		to.put(c.First+min(x, y), 1)
		if x != y {
			to.put(c.First+max(x, y), 1)
		}
	case Text:
		if lost {
			break
		}
		*words = count(v.value(i), c.Buckets, (*words)[:0])
		norm := 0.0
		weigh := func(w wordCount) float64 { return (1 + math.Log(float64(w.n))) * c.IDF[w.bucket] }
		for _, w := range *words {
			x := weigh(w)
			norm += x * x
		}
		norm = math.Sqrt(norm)
		for _, w := range *words {
			to.put(c.First+int(w.bucket), weigh(w)/norm)
		}
	}
	if c.Flag && lost {
		to.put(flag, 1)
	}
	return nil
}

// names returns what the features are called.
func (c *Column) names() []string {
	var all []string
	switch c.Kind {
	case Number:
		all = []string{c.Name}
	case Date:
		all = []string{c.Name + " age", c.Name + " year sin", c.Name + " year cos", c.Name + " week sin", c.Name + " week cos"}
		if c.Clock {
			all = append(all, c.Name+" day sin", c.Name+" day cos")
		}
	case Category, Text:
		for _, s := range c.Values {
			all = append(all, c.Name+"="+s)
		}
		for k := range c.Buckets {
			all = append(all, fmt.Sprintf("%s hash %d", c.Name, k))
		}
	}
	if c.Flag {
		all = append(all, c.Name+" missing")
	}
	return all
}
