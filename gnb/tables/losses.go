package tables

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// counted is how many values a note is about, and the first one.
type counted struct {
	n     int64
	first example
}

func (c *counted) add(b *batch, i int, value string) {
	if c.n++; c.n == 1 {
		c.first = example{b.at(i), strings.Clone(value)}
	}
}

// losses counts by column the whole numbers that a feature or a weight in float32 cannot hold: their neighbours have the
// same feature. A column with fractions is measured and not counted, and its numbers are rounded as all are.
type losses struct {
	t         *Table
	whole     []counted
	fractions []bool
}

func newLosses(t *Table) *losses {
	return &losses{t: t, whole: make([]counted, len(t.Columns)), fractions: make([]bool, len(t.Columns))}
}

// weight looks at a weight.
func (l *losses) weight(b *batch, v *vec, i int, x float64) {
	for c := range l.t.Columns {
		if l.t.Columns[c].Kind == Weight {
			l.number(c, b, v, i, x, float64(float32(x)))
		}
	}
}

// number looks at a number x, which is near by what float32 has kept.
func (l *losses) number(c int, b *batch, v *vec, i int, x, near float64) {
	switch {
	case x != math.Trunc(x):
		l.fractions[c] = true
	case math.Abs(near-x) >= .5, v.class == whole && (x >= 1<<63 || int64(x) != v.i[i]):
		l.whole[c].add(b, i, v.value(i))
	}
}

// say tells which columns have lost numbers.
func (l *losses) say(tab *table, o *Options) {
	if l == nil {
		return
	}
	for c, n := range l.whole {
		if n.n == 0 || l.fractions[c] {
			continue
		}
		col := &l.t.Columns[c]
		what, way := "their features", "if they are codes, they are a category (Kinds, --kinds), or leave the column out"
		if col.Kind == Target || col.Kind == Predict {
			what, way = "the targets", "subtract a common amount if their last digits matter"
		}
		if col.Kind == Weight {
			what, way = "their weights", "scale the weights if their last digits matter"
		}
		o.say(notice.Notice{
			Kind: notice.Unrepresentable, Where: filepath.Base(tab.path), Count: n.n,
			What: fmt.Sprintf("values of the column %s are whole numbers that float32 cannot tell from their neighbours, first %s (%s), so %s are rounded; %s", shown(col.Name), n.first.value, n.first.at, what, way),
		})
	}
}

// say tells what reading has changed.
func (n *nodes) say(tab *table, o *Options) {
	n.unknown.Where = filepath.Base(tab.path)
	n.unknown.Say(int64(n.rows), o.say)
	drawn := 0
	n.eachSplit(func(_ string, ids []int32) { drawn += len(ids) })
	if n.draw && drawn > 0 {
		o.say(notice.Notice{Kind: notice.Guessed, Where: n.unknown.Where, What: fmt.Sprintf("no column says the split, so %s are divided by seed %d and their id: 60 %% train, 20 %% val, 20 %% test", map[bool]string{true: "labelled " + n.row() + "s", false: n.row() + "s with a target"}[n.t.Classes != nil], n.seed), Count: int64(drawn)})
	}
	if n.outside > 0 {
		o.say(notice.Notice{Kind: notice.Dropped, Where: n.unknown.Where, What: "labelled " + n.row() + "s are in none of train, val and test, as the column of the split or the masks say", Count: n.outside, Of: int64(n.rows)})
	}
	k := 0
	for _, c := range n.t.Columns {
		if c.Kind != Target {
			continue
		}
		if k < len(n.lacking) && n.lacking[k] > 0 && n.lacking[k] < int64(n.rows) {
			o.say(notice.Notice{Kind: notice.Told, Where: n.unknown.Where, What: fmt.Sprintf("the target %s is missing; these %ss are not trained on, and it is predicted for them", shown(c.Name), n.row()), Count: n.lacking[k], Of: int64(n.rows)})
		}
		k++
	}
	n.lost.say(tab, o)
	if r := n.rounded; r.n > 0 {
		o.say(notice.Notice{
			Kind: notice.Unrepresentable, Where: filepath.Base(tab.path), Count: r.n,
			What: fmt.Sprintf("ids are written as spreadsheets write long numbers, first %s (%s), so their last digits are lost; export the ids as text", shown(r.first.value), r.first.at),
		})
	}
}

// spreadsheet reports whether a text looks like a long number that a spreadsheet program has shortened: 1.23457E+18.
func spreadsheet(s string) bool {
	head, exponent, ok := strings.Cut(s, "E+")
	if !ok || len(head) < 3 || head[1] != '.' || len(exponent) < 2 {
		return false
	}
	_, err := fmt.Sscanf(exponent, "%d", new(int))
	return err == nil && strings.Trim(head[:1]+head[2:]+exponent, "0123456789") == ""
}
