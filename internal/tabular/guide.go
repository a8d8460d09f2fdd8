package tabular

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Guide says how the columns of tables are recognised, by the options, and takes the notices. The zero value guesses all.
type Guide struct {
	// Kinds corrects the kinds of columns, by "column" or "TABLE.column".
	Kinds map[string]columns.Kind
	// Decimal is the decimal separator, "," or "."; "" guesses it.
	Decimal string
	// Missing are further words for a missing value, and Present those that are values.
	Missing, Present []string
	// ManyClasses allows more classes than a label usually has.
	ManyClasses bool
	// Said takes the notices.
	Said notice.Func

	used map[string]bool // the corrections that a table had a column for
}

// CheckKinds returns an error for a correction of a kind that these readers do not have.
func (g *Guide) CheckKinds() error {
	known := []columns.Kind{columns.Number, columns.ID, columns.Label, columns.Split, columns.TrainMask, columns.ValMask, columns.TestMask, columns.Source, columns.Relation, columns.Target, columns.Weight, columns.Time, columns.Skip}
	for name, k := range g.Kinds {
		switch {
		case slices.Contains([]columns.Kind{columns.Category, columns.Text, columns.Date}, k):
			return Errorf("--kinds %s=%s: a column of kind %s is read by --format tables", name, k, k)
		case !slices.Contains(known, k):
			var all []string
			for _, k := range known {
				all = append(all, string(k))
			}
			return Errorf("--kinds %s=%s: the kinds are %s; --format tables has category, text, date and predict too", name, k, strings.Join(all, ", "))
		}
	}
	if g.Decimal != "" && g.Decimal != "," && g.Decimal != "." {
		return Errorf(`--decimal is %q; it is "," or "."`, g.Decimal)
	}
	return nil
}

// CheckUsed returns an error for a correction of a column that no table has.
func (g *Guide) CheckUsed() error {
	for name := range g.Kinds {
		if !g.used[name] {
			return Errorf("--kinds names a column %q, which no table has", name)
		}
	}
	return nil
}

// KindOf returns the options' kind of a column of a table, or "".
func (g *Guide) KindOf(table, column string) columns.Kind {
	for _, full := range []string{table + "." + column, column} {
		for name, k := range g.Kinds {
			if strings.EqualFold(name, full) {
				if g.used == nil {
					g.used = map[string]bool{}
				}
				g.used[name] = true
				return k
			}
		}
	}
	return ""
}

// words returns the words that are missing values.
func (g *Guide) words() *columns.Missing { return columns.NewMissing(g.Missing, g.Present) }

// look is what a format says of a table before its columns are recognised.
type look struct {
	of           columns.Of
	name         string                  // what the options call the table
	given        map[string]columns.Kind // kinds of columns, by their names
	plain, lists bool                    // see [columns.Table]
}

// look reads the rest of the table and says what its columns are.
func (t *CSVFile) look(ctx context.Context, l look, g *Guide) ([]columns.Column, error) {
	d := columns.Table{Of: l.of, Path: filepath.Base(t.Path), Names: t.Header, Decimal: g.Decimal, Separator: t.Separator(), Plain: l.plain, Lists: l.lists}
	for _, column := range t.Header {
		k := g.KindOf(l.name, column)
		if k == "" {
			k = l.given[column]
		}
		d.Kinds, d.Profiles = append(d.Kinds, k), append(d.Profiles, &columns.Profile{})
	}
	m := g.words()
	err := t.Each(ctx, func(record []string) error {
		for i, s := range record {
			p := d.Profiles[i]
			if p.Line = t.line; m.Value(s) {
				p.AddMissing()
			} else {
				p.AddText(s)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	cols, said, err := d.Decide()
	if err != nil {
		return nil, t.Wrong("%w", err)
	}
	for i, c := range cols {
		if c.Kind == "" && t.unnamed[i] {
			return nil, t.Wrong("line 1: column %d has no name", i+1)
		}
	}
	for _, n := range said {
		g.Said.Add(n)
	}
	return cols, nil
}

// Of returns the column of a kind, -1 if there is none.
func Of(cols []columns.Column, k columns.Kind) int {
	return slices.IndexFunc(cols, func(c columns.Column) bool { return c.Kind == k })
}

// Unknown counts the labels of a column that are unknown.
type Unknown struct {
	Where string
	words map[string]int64
	total int64
	minus bool // -1 is one of them
}

// Add takes an unknown label; nothing is not worth a notice.
func (u *Unknown) Add(word string) {
	if word == "" {
		return
	}
	if u.words == nil {
		u.words = map[string]int64{}
	}
	u.total++
	u.minus = u.minus || columns.LabelWord(word) == "-1"
	if _, ok := u.words[word]; ok || len(u.words) < 20 {
		u.words[strings.Clone(word)]++
	}
}

// Say reports the unknown labels among n.
func (u *Unknown) Say(n int64, said notice.Func) {
	if u.total == 0 {
		return
	}
	var all []string
	for w := range u.words {
		all = append(all, Shown([]byte(w)))
	}
	slices.Sort(all)
	said.Add(notice.Notice{Kind: notice.Guessed, Where: u.Where, What: fmt.Sprintf("labels that are %s are unknown", strings.Join(all, " or ")), Count: u.total, Of: n, Option: "--present WORD makes a class of it"})
}
