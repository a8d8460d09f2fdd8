package live

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

const (
	loggedColumns = 3
	loggedCharts  = 9   // at most; the table has all values
	loggedTall    = 118 // height of a row of charts, in points
)

// loggedChart is one small chart of logged values: curves of one measure on several splits, or a single curve.
type loggedChart struct {
	title  string
	curves []Series
}

// loggedGroups puts val_f1 and test_f1 into one chart f1, in the order of their first values.
func loggedGroups(logged []Series) (out []loggedChart) {
	at := map[string]int{}
	for _, m := range logged {
		title, curve := m.Name, ""
		if split, rest, ok := strings.Cut(m.Name, "_"); ok && rest != "" && usualSplit(split) {
			title, curve = rest, split
		}
		i, ok := at[title]
		if !ok {
			i = len(out)
			at[title] = i
			out = append(out, loggedChart{title: title})
		}
		out[i].curves = append(out[i].curves, Series{Name: curve, Points: m.Points})
	}
	return out
}

// loggedHeight returns the height of the charts of logged values, in points.
func loggedHeight(s *Snapshot) vg.Length {
	n := min(len(loggedGroups(s.Logged)), loggedCharts)
	return loggedTall * vg.Length((n+loggedColumns-1)/loggedColumns)
}

// loggedCharts draws what the program logged: a small chart for each measure, in rows.
func (p *painter) loggedCharts(c draw.Canvas, s *Snapshot) {
	groups := loggedGroups(s.Logged)
	groups = groups[:min(len(groups), loggedCharts)]
	columns := min(len(groups), loggedColumns)
	total := 0
	if s.Epochs > 0 && s.Steps > 0 && s.Steps < 1<<50/s.Epochs {
		total = s.Epochs * s.Steps
	}
	for i, g := range groups {
		cell, wide := c, (c.Max.X-c.Min.X)/vg.Length(columns)
		cell.Min.X += wide * vg.Length(i%columns)
		cell.Max.X = cell.Min.X + wide
		if i%columns < columns-1 {
			cell.Max.X -= 2 * chartGap
		}
		cell.Max.Y -= loggedTall * vg.Length(i/columns)
		cell.Min.Y = cell.Max.Y - loggedTall
		unit := "step"
		if len(s.Loss) == 0 {
			unit = "epoch" // a program without steps
		}
		p.curveChart(cell, g.title, unit, g.curves, total, s.final())
	}
}

// loggedEntries returns the rows of the final table for what the program logged.
func loggedEntries(s *Snapshot) (es []entry) {
	for _, m := range s.Logged {
		last, ok := lastOf(m.Points)
		if !ok {
			continue
		}
		v, lo, hi := screen.Value(last.Y), last.Y, last.Y
		for _, q := range m.Points {
			if chart.Finite(q.Y) {
				lo, hi = min(lo, q.Y), max(hi, q.Y)
			}
		}
		if lo < hi {
			v += fmt.Sprintf(" (from %s to %s)", screen.Value(lo), screen.Value(hi))
		}
		es = append(es, entry{screen.OneLine(m.Name), v})
	}
	return es
}
