package chart

import (
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Plot is a chart with axes, without a frame, with faint horizontal lines and small grey numbers.
//
// It lays a chart out as gonum.org/v1/plot does. That package links all its formats and fonts,
// twenty packages and 4 MB of each cell's program, so charts use only gonum's canvases.
type Plot struct {
	x, y     Axis
	xt, yt   Ticks
	xlabel   string
	style    text.Style // of numbers and of the label
	plotters []Plotter
}

// Axis is the range of values that an axis shows.
type Axis struct{ Min, Max float64 }

// norm returns a value's position on the axis, from 0 to 1.
func (a Axis) norm(v float64) float64 { return (v - a.Min) / (a.Max - a.Min) }

// Tick is a number on an axis. One without a label is not drawn.
type Tick struct {
	Value float64
	Label string
}

// Ticks are the numbers of an axis.
type Ticks []Tick

// size returns the width of the widest and the height of the tallest label.
func (t Ticks) size(sty text.Style) (w, h vg.Length) {
	for _, k := range t {
		if k.Label != "" {
			r := sty.Rectangle(k.Label).Size()
			w, h = max(w, r.X), max(h, r.Y)
		}
	}
	return w, h
}

// Plotter draws values into the area between the axes.
type Plotter interface {
	Plot(c draw.Canvas, pl *Plot)
}

// PlotFunc is a function as a plotter.
type PlotFunc func(c draw.Canvas, at func(x, y float64) vg.Point)

// Plot calls f with the function that returns the position of a value.
func (f PlotFunc) Plot(c draw.Canvas, pl *Plot) {
	tx, ty := pl.Transforms(&c)
	f(c, func(x, y float64) vg.Point { return vg.Point{X: tx(x), Y: ty(y)} })
}

const (
	axisPadding  = 4 // between an axis and the values
	labelPadding = 1 // between the label and the numbers
)

// NewPlot returns a plot without values. xlabel is printed below the right end of the x axis.
func (p *Painter) NewPlot(x, y Axis, xt, yt Ticks, xlabel string) *Plot {
	return &Plot{x: x, y: y, xt: xt, yt: yt, xlabel: xlabel, style: p.Text(7.5, p.Ink()), plotters: []Plotter{grid(yt)}}
}

// Add adds plotters, which draw in the order in which they were added.
func (pl *Plot) Add(ps ...Plotter) { pl.plotters = append(pl.plotters, ps...) }

// Transforms returns the functions from values to positions in the area between the axes.
func (pl *Plot) Transforms(c *draw.Canvas) (x, y func(float64) vg.Length) {
	x = func(v float64) vg.Length { return c.X(pl.x.norm(v)) }
	y = func(v float64) vg.Length { return c.Y(pl.y.norm(v)) }
	return x, y
}

// Draw draws the axes, and then the values.
func (pl *Plot) Draw(c draw.Canvas) {
	pl.drawX(pl.padX(draw.Crop(c, pl.left(), 0, 0, 0)))
	pl.drawY(pl.padY(draw.Crop(c, 0, 0, pl.below(), 0)))
	inner := pl.DataCanvas(c)
	for _, d := range pl.plotters {
		d.Plot(inner, pl)
	}
}

// DataCanvas returns the area between the axes of a plot drawn into c.
func (pl *Plot) DataCanvas(c draw.Canvas) draw.Canvas {
	return pl.padY(pl.padX(draw.Crop(c, pl.left(), 0, pl.below(), 0)))
}

// left returns the width left of the y axis.
func (pl *Plot) left() (w vg.Length) {
	if wide, _ := pl.yt.size(pl.style); wide > 0 {
		w = wide + pl.style.Width(" ")
	}
	return w + axisPadding
}

// below returns the height below the x axis.
func (pl *Plot) below() vg.Length {
	_, tall := pl.xt.size(pl.style)
	return pl.labelHeight() + tall + axisPadding
}

// labelHeight returns the height of the x axis's label with its padding.
func (pl *Plot) labelHeight() vg.Length {
	if pl.xlabel == "" {
		return 0
	}
	return pl.style.Height(pl.xlabel) + labelPadding
}

func (pl *Plot) descent() vg.Length { return pl.style.FontExtents().Descent }

// drawX writes the x axis's label and numbers along the lower edge.
func (pl *Plot) drawX(c draw.Canvas) {
	if pl.xlabel != "" {
		sty := pl.style
		sty.XAlign, sty.YAlign = draw.XCenter, draw.YBottom
		c.FillText(sty, vg.Point{X: c.Max.X - sty.Width(pl.xlabel)/2, Y: c.Min.Y + pl.descent()}, pl.xlabel)
	}
	sty := pl.style
	sty.XAlign, sty.YAlign = draw.XCenter, draw.YTop
	_, tall := pl.xt.size(sty)
	for _, t := range pl.xt {
		if x := c.X(pl.x.norm(t.Value)); t.Label != "" && c.ContainsX(x) {
			c.FillText(sty, vg.Point{X: x, Y: c.Min.Y + pl.labelHeight() + tall + pl.descent()}, t.Label)
		}
	}
}

// drawY writes the y axis's numbers along the left edge.
func (pl *Plot) drawY(c draw.Canvas) {
	sty := pl.style
	sty.XAlign, sty.YAlign = draw.XRight, draw.YCenter
	wide, _ := pl.yt.size(sty)
	for _, t := range pl.yt {
		if y := c.Y(pl.y.norm(t.Value)); t.Label != "" && c.ContainsY(y) {
			c.FillText(sty, vg.Point{X: c.Min.X + wide, Y: y + pl.descent()}, t.Label)
		}
	}
}

// padX leaves room at the right for the half of the last number of the x axis, and for its label.
func (pl *Plot) padX(c draw.Canvas) draw.Canvas {
	at, to, far := 1.0, vg.Length(0), c.Max.X
	reach := func(where float64, r vg.Rectangle) {
		if r.Size().X <= 0 || where > 1 {
			return
		}
		if x := c.X(where) + r.Min.X + r.Size().X; x > far {
			at, to, far = where, r.Min.X+r.Size().X, x
		}
	}
	sty := pl.style
	if pl.xlabel != "" {
		sty.XAlign, sty.YAlign = draw.XCenter, draw.YBottom
		reach(pl.x.norm(pl.x.Max)-pl.x.norm(0.5*sty.Width(pl.xlabel).Points()), sty.Rectangle(pl.xlabel))
	}
	sty.XAlign, sty.YAlign = draw.XCenter, draw.YTop
	for _, t := range pl.xt {
		if t.Label != "" {
			reach(pl.x.norm(t.Value), sty.Rectangle(t.Label))
		}
	}
	c.Max.X = c.Min.X + (c.Max.X-to-c.Min.X)/vg.Length(at)
	return c
}

// padY leaves room at the top for the half of the last number of the y axis.
func (pl *Plot) padY(c draw.Canvas) draw.Canvas {
	at, to, far := 1.0, vg.Length(0), c.Max.Y
	sty := pl.style
	sty.XAlign, sty.YAlign = draw.XRight, draw.YCenter
	ext := sty.FontExtents()
	for _, t := range pl.yt {
		r := sty.Rectangle(t.Label).Add(vg.Point{Y: ext.Height - ext.Ascent})
		where := pl.y.norm(t.Value)
		if t.Label == "" || r.Size().Y <= 0 || where > 1 {
			continue
		}
		if y := c.Y(where) + r.Min.Y + r.Size().Y; y > far {
			at, to, far = where, r.Min.Y+r.Size().Y, y
		}
	}
	c.Max.Y = c.Min.Y + (c.Max.Y-to-c.Min.Y)/vg.Length(at)
	return c
}

// grid draws a horizontal line per number of the y axis, the lowest one stronger: it is the x axis.
type grid Ticks

func (g grid) Plot(c draw.Canvas, pl *Plot) {
	_, ty := pl.Transforms(&c)
	for i, t := range g {
		sty := draw.LineStyle{Color: GridInk, Width: vg.Points(0.6)}
		if i == 0 {
			sty.Color = BaseInk
		}
		y := ty(t.Value)
		c.StrokeLine2(sty, c.Min.X, y, c.Max.X, y)
	}
}
