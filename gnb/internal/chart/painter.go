// Package chart draws the parts of GraphNB's pictures: axes, curves, labels and colours, from plain numbers.
//
// # Basics
//
// A picture is painted on a canvas of gonum's vg, and becomes a file with [SVG] or [PNG]. A
// [Painter] writes text, and makes the [Plot] of a chart, into which [Plotter] values draw:
//
//	svg, err := chart.SVG(chart.Width, chart.Height, func(c draw.Canvas) {
//		var p chart.Painter
//		var x, y chart.Axis
//		var xt, yt chart.Ticks
//		x.Min, x.Max, xt = chart.CountAxis(0, 1000, 1000, false)
//		y.Min, y.Max, yt = chart.ValueAxis(0.2, 1.9, 5, 0.5)
//		plot := p.NewPlot(x, y, xt, yt, "step")
//		plot.Add(chart.PlotFunc(func(c draw.Canvas, at func(x, y float64) vg.Point) { … }))
//		plot.Draw(p.Titled(c, "loss"))
//	})
//
// # Caveats
//
// This package knows nothing of runs, sweeps or machines: package live composes their pictures.
package chart

import (
	"image/color"
	"image/png"
	"sort"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// Painter draws the common parts of all charts. The zero value draws for a live panel, without a
// page.
type Painter struct {
	OnPage bool                 // the picture is drawn on a page of its own
	Areas  []Area               // the charts drawn so far that answer to the pointer
	Level  png.CompressionLevel // of pictures
}

// Ink returns the colour of text.
func (p *Painter) Ink() color.NRGBA {
	if p.OnPage {
		return pageInk
	}
	return Ink
}

// Word returns a colour for text that belongs to a curve of colour c: dark enough to read, and darker on a page.
func (p *Painter) Word(c color.NRGBA) color.NRGBA {
	switch {
	case !p.OnPage:
		return readable(c)
	case c == Ink:
		return pageInk
	}
	return darker(c, 7, 10)
}

// Text returns the style of text of a size in points.
func (p *Painter) Text(size float64, c color.Color) text.Style {
	return text.Style{
		Color:   c,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)},
		Handler: fonts(),
	}
}

// Bold is Text in bold.
func (p *Painter) Bold(size float64, c color.Color) text.Style {
	t := p.Text(size, c)
	t.Font.Weight = stdfont.WeightBold
	return t
}

// Fit shortens txt to a width on the canvas.
func (p *Painter) Fit(sty text.Style, txt string, room vg.Length) string {
	if sty.Width(txt) <= room {
		return txt
	}
	r := []rune(txt)
	r = r[:min(len(r), 400)]
	n := sort.Search(len(r), func(n int) bool { return sty.Width(string(r[:n+1])+"…") > room })
	return string(r[:n]) + "…"
}
