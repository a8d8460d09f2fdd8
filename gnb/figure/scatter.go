package figure

import (
	"fmt"
	"image/color"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/phrase"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Scatter is a chart of points.
type Scatter struct {
	Title string    // names what the y axis shows
	X, Y  []float64 // of equal length; a point with a number that is not finite is left out
	// Group is the group of each point, which determines its colour and shape; a negative one is drawn faint and has
	// no name. Nil means that all points are in one group.
	Group  []int
	Names  []string // of the groups; a group without a name has its number
	XLabel string
	// Diagonal also draws the line y = x, dashed, and gives both axes the same range.
	Diagonal bool
}

// mostPoints is the number of points that are drawn; of more, every k-th.
const mostPoints = 3000

// mostLines is the number of groups that the pointer tells apart.
const mostLines = 40

// mostNames is the number of groups in a legend.
const mostNames = 14

func (s *Scatter) check() error {
	switch {
	case len(s.X) != len(s.Y):
		return fmt.Errorf("Scatter: X has %s and Y has %d", phrase.Count(len(s.X), "number"), len(s.Y))
	case s.Group != nil && len(s.Group) != len(s.X):
		return fmt.Errorf("Scatter: Group has %s and X has %d", phrase.Count(len(s.Group), "number"), len(s.X))
	}
	return nil
}

func (s *Scatter) words() string {
	return fmt.Sprintf("%s: %s", s.Title, phrase.Count(len(s.X), "point"))
}

// hues are the colours of groups, the most different ones first.
var hues = []color.NRGBA{chart.Blue, chart.Orange, chart.Green, chart.Purple, chart.Amber, chart.Sky, chart.Plum, chart.Olive, chart.Grey}

var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}}

// glyph returns the look of a group: hues repeat with another shape.
func glyph(group int) draw.GlyphStyle {
	if group < 0 {
		return draw.GlyphStyle{Color: chart.Alpha(chart.Grey, 0x50), Radius: 1, Shape: draw.CircleGlyph{}}
	}
	return draw.GlyphStyle{Color: hues[group%len(hues)], Radius: 1.5, Shape: shapes[group/len(hues)%len(shapes)]}
}

func (s *Scatter) groupOf(i int) int {
	if s.Group == nil {
		return 0
	}
	return s.Group[i]
}

func (s *Scatter) name(group int) string {
	if group < len(s.Names) {
		return phrase.CleanLine(s.Names[group])
	}
	return fmt.Sprint(group)
}

func (s *Scatter) paint(p *chart.Painter, c draw.Canvas) {
	c = titled(p, c, s.Title)
	xlo, xhi := limits(s.X)
	ylo, yhi := limits(s.Y)
	if s.Diagonal {
		lo, hi := min(xlo, ylo), max(xhi, yhi)
		xlo, xhi, ylo, yhi = lo, hi, lo, hi
	}
	x, xt := axis(xlo, xhi, 6, 0)
	y, yt := axis(ylo, yhi, 6, 0)
	whole := c
	c = legend(p, c, s.groups(), s.name)
	pl := p.NewPlot(x, y, xt, yt, s.XLabel)
	step := max(1, (len(s.X)+mostPoints-1)/mostPoints)
	pl.Add(chart.PlotFunc(func(c draw.Canvas, at func(x, y float64) vg.Point) {
		if s.Diagonal {
			lo, hi := max(x.Min, y.Min), min(x.Max, y.Max)
			c.StrokeLines(draw.LineStyle{Color: chart.Ink, Width: 1, Dashes: []vg.Length{3, 2.5}}, []vg.Point{at(lo, lo), at(hi, hi)})
		}
		// Points without a group first, below the others.
		for _, faint := range []bool{true, false} {
			for i := 0; i < len(s.X); i += step {
				if g := s.groupOf(i); (g < 0) == faint && chart.Finite(s.X[i]) && chart.Finite(s.Y[i]) {
					c.DrawGlyphNoClip(glyph(g), at(s.X[i], s.Y[i]))
				}
			}
		}
	}))
	pl.Draw(c)
	a := p.Area(phrase.CleanLine(s.Title), pl, c, whole, s.lines(step))
	a.Dots = true
}

// lines returns every step-th point for the pointer, one line for each group, in the order of their first points.
func (s *Scatter) lines(step int) (lines []chart.Line) {
	at := map[int]int{}
	for i := 0; i < len(s.X); i += step {
		g := s.groupOf(i)
		k, ok := at[g]
		if !ok && len(lines) == mostLines {
			k, ok = mostLines-1, true
			lines[k].Name = "other groups"
		}
		if !ok {
			k = len(lines)
			at[g] = k
			name := "no group"
			switch {
			case s.Group == nil:
				name = ""
			case g >= 0:
				name = s.name(g)
			}
			look := glyph(g).Color.(color.NRGBA)
			lines = append(lines, chart.Line{Name: name, Color: look})
		}
		lines[k].Points = append(lines[k].Points, chart.XY{X: s.X[i], Y: s.Y[i]})
	}
	return lines
}

// groups returns the groups that occur, in ascending order, if there is more than one.
func (s *Scatter) groups() (list []int) {
	var seen []bool
	for _, g := range s.Group {
		if g < 0 || g > 1<<16 {
			continue
		}
		for len(seen) <= g {
			seen = append(seen, false)
		}
		seen[g] = true
	}
	for g, ok := range seen {
		if ok {
			list = append(list, g)
		}
	}
	if len(list) < 2 {
		return nil
	}
	return list
}

// legend writes the groups' names at the right edge, and returns the canvas that remains.
func legend(p *chart.Painter, c draw.Canvas, groups []int, name func(int) string) draw.Canvas {
	if len(groups) == 0 {
		return c
	}
	left := len(groups) - mostNames
	if left > 0 {
		groups = groups[:mostNames-1]
		left++
	}
	style := p.Text(7.5, p.Ink())
	room := (c.Max.X - c.Min.X) / 3
	wide := vg.Length(0)
	texts := make([]string, 0, len(groups)+1)
	for _, g := range groups {
		texts = append(texts, p.Fit(style, name(g), room))
	}
	if left > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", left))
	}
	for _, t := range texts {
		wide = max(wide, style.Width(t))
	}
	x, y := c.Max.X-wide, c.Max.Y-6
	style.YAlign = draw.YCenter
	for i, t := range texts {
		if i < len(groups) {
			look := glyph(groups[i])
			look.Radius = 2.5
			c.DrawGlyphNoClip(look, vg.Point{X: x - 7, Y: y})
		}
		c.FillText(style, vg.Point{X: x, Y: y}, t)
		y -= 10.5
	}
	c.Max.X = x - 16
	return c
}

// titled writes a chart's title, shortened to its width, and returns the canvas that remains.
func titled(p *chart.Painter, c draw.Canvas, title string) draw.Canvas {
	return p.Titled(c, p.Fit(p.Bold(8.5, p.Ink()), phrase.CleanLine(title), c.Max.X-c.Min.X-6))
}

func (s *Scatter) copied() drawing {
	c := *s
	c.X, c.Y, c.Group, c.Names = slices.Clone(s.X), slices.Clone(s.Y), slices.Clone(s.Group), slices.Clone(s.Names)
	return &c
}
