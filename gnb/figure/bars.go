package figure

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/phrase"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bars is a chart of one bar for each name.
type Bars struct {
	Title  string // names what the bars show
	Names  []string
	Values []float64 // one for each name; one that is not finite has no bar
	Notes  []string  // one for each name or none, written below the names
	Max    float64   // where the axis ends; 0 means at the largest value
	XLabel string
}

func (b *Bars) check() error {
	switch n := len(b.Values); {
	case len(b.Names) != n:
		return fmt.Errorf("Bars: there are %s and %s", phrase.Count(len(b.Names), "name"), phrase.Count(n, "value"))
	case b.Notes != nil && len(b.Notes) != n:
		return fmt.Errorf("Bars: there are %s and %s", phrase.Count(len(b.Notes), "note"), phrase.Count(n, "value"))
	}
	return nil
}

func (b *Bars) words() string {
	text := b.Title + ":"
	for i, v := range b.Values {
		if i == 40 {
			return text + fmt.Sprintf(", and %d more", len(b.Values)-i)
		}
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s %.4g", b.Names[i], v)
	}
	return text
}

func (b *Bars) paint(p *chart.Painter, c draw.Canvas) {
	c = titled(p, c, b.Title)
	if len(b.Values) == 0 {
		p.Empty(c, "no values")
		return
	}
	lo, hi := limits(b.Values)
	lo, hi = min(lo, 0), max(hi, 0)
	if b.Max > 0 {
		hi = b.Max
	}
	y, yt := axis(lo, hi, 5, 1)
	n := len(b.Values)
	x := chart.Axis{Min: -0.6, Max: float64(n) - 0.4}
	style := p.Text(7.5, p.Ink())
	room := (c.Max.X - c.Min.X - 24) / vg.Length(n) // of one bar
	every := 1
	for vg.Length(every)*room < 14 {
		every++
	}
	var xt chart.Ticks
	for i, name := range b.Names {
		if i%every != 0 {
			continue
		}
		label := p.Fit(style, phrase.CleanLine(name), vg.Length(every)*room-2)
		if b.Notes != nil {
			label += "\n" + p.Fit(style, phrase.CleanLine(b.Notes[i]), vg.Length(every)*room-2)
		}
		xt = append(xt, chart.Tick{Value: float64(i), Label: label})
	}
	pl := p.NewPlot(x, y, xt, yt, b.XLabel)
	var marks []chart.Mark
	pl.Add(chart.PlotFunc(func(c draw.Canvas, at func(x, y float64) vg.Point) {
		for i, v := range b.Values {
			if !chart.Finite(v) {
				continue
			}
			half := 0.36
			q, r := at(float64(i)-half, 0), at(float64(i)+half, v)
			c.FillPolygon(chart.Blue, []vg.Point{q, {X: r.X, Y: q.Y}, r, {X: q.X, Y: r.Y}})
			text := fmt.Sprintf("%.4g\n%s", v, phrase.CleanLine(b.Names[i]))
			if b.Notes != nil {
				text += "\n" + phrase.CleanLine(b.Notes[i])
			}
			marks = append(marks, chart.Mark{Text: text, Color: chart.Blue, At: []vg.Point{q, r}, Bar: true})
		}
	}))
	pl.Draw(c)
	p.Marks(phrase.CleanLine(b.Title), c.Rectangle, pl.DataCanvas(c).Rectangle, marks)
}

func (b *Bars) copied() drawing {
	c := *b
	c.Names, c.Values, c.Notes = slices.Clone(b.Names), slices.Clone(b.Values), slices.Clone(b.Notes)
	return &c
}
