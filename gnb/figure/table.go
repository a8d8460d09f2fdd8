package figure

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Table is a small table, for Worker.Log of package gnb: at most 50 rows of 20 columns are kept, and 100 characters of a cell.
type Table struct {
	Head []string   // names of columns
	Rows [][]string // each with a cell for each column
}

// Limits of a table that is kept.
const (
	mostRows  = 50
	mostCols  = 20
	mostChars = 100
)

func (t *Table) check() error {
	for i, r := range t.Rows {
		if len(r) != len(t.Head) {
			return fmt.Errorf("Table: there are %s and row %d has %s", phrase.Count(len(t.Head), "column name"), i, phrase.Count(len(r), "cell"))
		}
	}
	return nil
}

func (t *Table) words() string {
	text := fmt.Sprintf("%s, %s", phrase.Count(len(t.Rows), "row"), phrase.Count(len(t.Head), "column"))
	if len(t.Rows) > mostRows || len(t.Head) > mostCols {
		text += fmt.Sprintf(" (at most %d and %d are kept)", mostRows, mostCols)
	}
	return text
}

// kept returns the part of the table that is kept.
func (t *Table) kept() (head []string, rows [][]string) {
	cells := func(r []string) []string {
		r = slices.Clone(r[:min(len(r), mostCols)])
		for i, s := range r {
			r[i] = screen.Cut(phrase.CleanLine(s), mostChars)
		}
		return r
	}
	for _, r := range t.Rows[:min(len(t.Rows), mostRows)] {
		rows = append(rows, cells(r))
	}
	return cells(t.Head), rows
}
