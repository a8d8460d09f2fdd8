package tabular

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Lost reports whether a number is not the float32 that was made of it although it should be: a whole number that becomes
// another one, or a number that becomes 0. Fractions are rounded as all numbers are.
func Lost(x float64, y float32) bool {
	return x == math.Trunc(x) && float64(y) != x || x != 0 && y == 0
}

// LostText is [Lost] for a text of a table.
func LostText(text string, n columns.Notation, y float32) bool {
	const exact = 1 << 24 // float32 has all whole numbers up to it
	if y > -exact && y < exact && y != 0 {
		return false
	}
	x, ok := n.Number(text)
	return ok && Lost(x, y)
}

// lostValues are numbers of one file and column that float32 cannot hold.
type lostValues struct {
	where, what string
	n           int64
	first       string
}

// Lose counts n numbers of a file that float32 cannot hold; what names the column, or is "the array".
func (m *Meter) Lose(path, what, first string, n int64) {
	if m == nil || n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	where := filepath.Base(path)
	for i := range m.lost {
		if l := &m.lost[i]; l.where == where && l.what == what {
			l.n += n
			return
		}
	}
	m.lost = append(m.lost, lostValues{where, what, n, first})
}

// SayLost reports the numbers that float32 cannot hold.
func (m *Meter) SayLost(said notice.Func) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lost {
		first := ""
		if l.first != "" {
			first = ", first " + l.first + ","
		}
		said.Add(notice.Notice{Kind: notice.Unrepresentable, Where: l.where, What: fmt.Sprintf("numbers of %s%s are whole and another one in float32, or become 0; scale them, or leave the column out if they are ids or codes", l.what, first), Count: l.n})
	}
	m.lost = nil
}

// lose counts a number of the record that was read last.
func (t *CSVFile) lose(column int, text string) {
	t.stored.meter.Lose(t.Path, fmt.Sprintf("the column %q", t.Header[column]), text, 1)
}

// Meter is the meter of the file.
func (f *File) Meter() *Meter { return f.stored.meter }
