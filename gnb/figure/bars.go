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
	// Across draws the bars from left to right below each other, with names, which may be long, and Notes before them and values behind
	// them. Bars below 0 have another colour. Max and XLabel are not used.
	Across bool
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
	if b.Across {
		b.paintAcross(p, c)
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

// mostAcross is the number of bars that are drawn below each other.
const mostAcross = 40

// paintAcross draws bars from left to right.
func (b *Bars) paintAcross(p *chart.Painter, c draw.Canvas) {
	n := min(len(b.Values), mostAcross)
	lo, hi := limits(b.Values[:n])
	lo, hi = min(lo, 0), max(hi, 0)
	if hi == lo {
		hi = lo + 1
	}
	format := "%.3g"
	if lo < 0 {
		format = "%+.3g"
	}
	row := min((c.Max.Y-c.Min.Y-2)/vg.Length(n), 17)
	style := p.Text(min(7.5, 0.8*row.Points()), p.Ink())
	style.YAlign = draw.YCenter
	names, notes, values := vg.Length(0), vg.Length(0), vg.Length(0)
	most := (c.Max.X - c.Min.X) * 0.45
	if b.Notes != nil {
		most = (c.Max.X - c.Min.X) * 0.3
	}
	texts, labels, beside := make([]string, n), make([]string, n), make([]string, n)
	for i := range n {
		texts[i] = p.Fit(style, phrase.CleanLine(b.Names[i]), most)
		if chart.Finite(b.Values[i]) {
			labels[i] = fmt.Sprintf(format, b.Values[i])
		}
		if b.Notes != nil {
			beside[i] = p.Fit(style, phrase.CleanLine(b.Notes[i]), most)
		}
		names, notes, values = max(names, style.Width(texts[i])), max(notes, style.Width(beside[i])), max(values, style.Width(labels[i]))
	}
	left := c.Min.X + 4 + names + 6
	if notes > 0 {
		left += notes + 6
	}
	// Labels stand behind the ends of bars, on both sides of 0.
	from, to := left+2, c.Max.X-values-6
	if lo < 0 {
		from += values + 3
	}
	if to <= from {
		return
	}
	x := func(v float64) vg.Length { return from + (to-from)*vg.Length((v-lo)/(hi-lo)) }
	zero := x(0)
	whole := c.Rectangle
	var marks []chart.Mark
	for i, v := range b.Values[:n] {
		y := c.Max.Y - vg.Length(i)*row
		mid := y - row/2
		c.FillText(style, vg.Point{X: c.Min.X + 4, Y: mid}, texts[i])
		if beside[i] != "" {
			right := style
			right.XAlign = draw.XRight
			c.FillText(right, vg.Point{X: left - 6, Y: mid}, beside[i])
		}
		if !chart.Finite(v) {
			continue
		}
		ink, end := chart.Blue, x(v)
		if v < 0 {
			ink = chart.Orange
		}
		q, r := vg.Point{X: min(zero, end), Y: y - 0.14*row}, vg.Point{X: max(zero, end), Y: y - 0.86*row}
		r.X = max(r.X, q.X+0.5)
		c.FillPolygon(ink, []vg.Point{q, {X: r.X, Y: q.Y}, r, {X: q.X, Y: r.Y}})
		label, at := style, vg.Point{X: end + 3, Y: mid}
		if v < 0 {
			label.XAlign, at.X = draw.XRight, end-3
		}
		c.FillText(label, at, labels[i])
		text := fmt.Sprintf("%.4g\n%s", v, phrase.CleanLine(b.Names[i]))
		if b.Notes != nil {
			text += "\n" + phrase.CleanLine(b.Notes[i])
		}
		marks = append(marks, chart.Mark{Text: text, Color: ink, At: []vg.Point{q, r}, Bar: true})
	}
	foot := c.Max.Y - vg.Length(n)*row
	c.StrokeLine2(draw.LineStyle{Color: chart.BaseInk, Width: vg.Points(0.6)}, zero, c.Max.Y, zero, foot)
	p.Marks(phrase.CleanLine(b.Title), whole, vg.Rectangle{Min: vg.Point{X: from, Y: foot}, Max: vg.Point{X: to, Y: c.Max.Y}}, marks)
}

func (b *Bars) copied() drawing {
	c := *b
	c.Names, c.Values, c.Notes = slices.Clone(b.Names), slices.Clone(b.Values), slices.Clone(b.Notes)
	return &c
}
