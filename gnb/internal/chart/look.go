package chart

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Look is the style of a metric's curve: both colour and shape distinguish it.
type Look struct {
	Color color.NRGBA
	Glyph draw.GlyphDrawer
}

// Curve draws a line, and glyphs of the given radius at the marked points.
func (l Look) Curve(c draw.Canvas, line, marked []vg.Point, radius float64) {
	c.StrokeLines(draw.LineStyle{Color: l.Color, Width: vg.Points(LineWidth)}, line)
	for _, q := range marked {
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: l.Color, Radius: vg.Points(radius), Shape: l.Glyph}, q)
	}
}

// Part returns the part of a canvas between two positions from left to right.
func Part(c draw.Canvas, from, to vg.Length) draw.Canvas {
	c.Min.X, c.Max.X = from, to
	return c
}
