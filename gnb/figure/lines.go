package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/phrase"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines is a chart of curves.
type Lines struct {
	Title    string // names what the y axis shows
	Curves   []Curve
	XLabel   string
	Diagonal bool // also draw the line y = x, dashed
}

// Curve is a curve of [Lines].
type Curve struct {
	Name   string
	X, Y   []float64 // of equal length, X ascending; a Y that is not finite is a gap
	Points bool      // mark the points
}

func (l *Lines) check() error {
	for _, s := range l.Curves {
		if len(s.X) != len(s.Y) {
			return fmt.Errorf("Lines: X of the curve %q has %s and Y has %d", s.Name, phrase.Count(len(s.X), "number"), len(s.Y))
		}
	}
	return nil
}

func (l *Lines) words() string {
	text := l.Title + ":"
	for i, s := range l.Curves {
		if i > 0 {
			text += ","
		}
		if s.Name != "" {
			text += " " + s.Name
		}
		if n := len(s.Y); n > 0 {
			text += fmt.Sprintf(" %.4g to %.4g", s.Y[0], s.Y[n-1])
		} else {
			text += " without points"
		}
	}
	return text
}

func (l *Lines) paint(p *chart.Painter, c draw.Canvas) {
	c = titled(p, c, l.Title)
	var xs, ys [][]float64
	for _, s := range l.Curves {
		xs, ys = append(xs, s.X), append(ys, s.Y)
	}
	xlo, xhi := limits(xs...)
	ylo, yhi := limits(ys...)
	if l.Diagonal {
		lo, hi := min(xlo, ylo), max(xhi, yhi)
		xlo, xhi, ylo, yhi = lo, hi, lo, hi
	}
	x, xt := axis(xlo, xhi, 5, 0.3)
	y, yt := axis(ylo, yhi, 5, 0.5)
	pl := p.NewPlot(x, y, xt, yt, l.XLabel)
	pl.Add(chart.PlotFunc(func(c draw.Canvas, at func(x, y float64) vg.Point) {
		if l.Diagonal {
			lo, hi := math.Max(x.Min, y.Min), math.Min(x.Max, y.Max)
			c.StrokeLines(draw.LineStyle{Color: chart.Ink, Width: 1, Dashes: []vg.Length{3, 2.5}}, []vg.Point{at(lo, lo), at(hi, hi)})
		}
		var tags []chart.EndLabel
		for i, s := range l.Curves {
			look := glyph(i)
			color := hues[i%len(hues)]
			var last vg.Point
			pts := s.points()
			for _, r := range chart.Runs(len(pts), func(k int) bool { return chart.Finite(pts[k].X) && chart.Finite(pts[k].Y) }) {
				var line []vg.Point
				for _, q := range pts[r[0]:r[1]] {
					last = at(q.X, q.Y)
					line = append(line, last)
				}
				c.StrokeLines(draw.LineStyle{Color: color, Width: vg.Points(chart.LineWidth)}, line)
				if s.Points || len(line) == 1 {
					look.Radius = 2.2
					for _, q := range line {
						c.DrawGlyphNoClip(look, q)
					}
				}
			}
			if s.Name != "" && last != (vg.Point{}) {
				tags = append(tags, chart.EndLabel{At: last, Text: p.Fit(p.Bold(8, p.Ink()), phrase.CleanLine(s.Name), 60), Color: color})
			}
		}
		p.EndLabels(c, tags)
	}))
	whole := c
	c.Max.X -= l.nameRoom(p)
	pl.Draw(c)
	var shown []chart.Line
	for i, s := range l.Curves {
		shown = append(shown, chart.Line{Name: phrase.CleanLine(cmp.Or(s.Name, l.Title)), Color: hues[i%len(hues)], Points: s.points()})
	}
	if l.Diagonal {
		lo, hi := max(x.Min, y.Min), min(x.Max, y.Max)
		shown = append(shown, chart.Line{Name: "y = x", Color: chart.Ink, Points: []chart.XY{{X: lo, Y: lo}, {X: hi, Y: hi}}})
	}
	p.Area(phrase.CleanLine(l.Title), pl, c, whole, shown).Smooth = !l.Diagonal
}

// mostSpans is the number of parts of a curve of which the lowest and the highest value are drawn: more than a picture has
// columns.
const mostSpans = 800

// points returns the curve's points; of each of many parts of a long one the lowest and the highest, and a gap where nothing is
// finite.
func (s *Curve) points() (out []chart.XY) {
	n := len(s.X)
	step := max(1, (n+mostSpans-1)/mostSpans)
	if step <= 2 {
		step = 1
	}
	for from := 0; from < n; from += step {
		lo, hi := -1, -1
		for i := from; i < min(from+step, n); i++ {
			if !chart.Finite(s.X[i]) || !chart.Finite(s.Y[i]) {
				continue
			}
			if lo < 0 || s.Y[i] < s.Y[lo] {
				lo = i
			}
			if hi < 0 || s.Y[i] >= s.Y[hi] {
				hi = i
			}
		}
		if lo < 0 {
			out = append(out, chart.XY{X: s.X[from], Y: math.NaN()})
			continue
		}
		out = append(out, chart.XY{X: s.X[min(lo, hi)], Y: s.Y[min(lo, hi)]})
		if lo != hi {
			out = append(out, chart.XY{X: s.X[max(lo, hi)], Y: s.Y[max(lo, hi)]})
		}
	}
	return out
}

// nameRoom is the width that the curves' names need at their ends.
func (l *Lines) nameRoom(p *chart.Painter) vg.Length {
	style, wide := p.Bold(8, p.Ink()), vg.Length(0)
	for _, s := range l.Curves {
		if s.Name != "" {
			wide = max(wide, min(style.Width(phrase.CleanLine(s.Name)), 60)+8)
		}
	}
	return wide
}

func (l *Lines) copied() drawing {
	c := *l
	c.Curves = slices.Clone(l.Curves)
	for i := range c.Curves {
		s := &c.Curves[i]
		s.X, s.Y = slices.Clone(s.X), slices.Clone(s.Y)
	}
	return &c
}
