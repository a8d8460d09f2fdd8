package chart

import (
	"math"
	"testing"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A line, an area and a text at a place that is no number, or far away, are not drawn, and nothing else is lost.
func TestPlacesThatAreNoNumbers(t *testing.T) {
	img, _ := raw(20, 20, func(c draw.Canvas) {
		nan, far := vg.Path{}, vg.Path{}
		nan.Move(vg.Point{X: vg.Length(math.NaN()), Y: 3})
		nan.Line(vg.Point{X: 5, Y: vg.Length(math.Inf(1))})
		far.Move(vg.Point{X: -5, Y: -5})
		far.Line(vg.Point{X: -1e300, Y: -5})
		for _, dashes := range [][]vg.Length{nil, {2, 1}} {
			c.SetLineDash(dashes, 0)
			c.Stroke(nan)
			c.Stroke(far)
		}
		c.Fill(nan)
		c.FillString(fonts().Cache().Lookup(font.Font{Typeface: "Liberation", Variant: "Sans"}, 12), vg.Point{X: vg.Length(math.NaN())}, "lost")
		c.FillPolygon(Blue, []vg.Point{{X: 15, Y: 1}, {X: 19, Y: 1}, {X: 19, Y: 5}, {X: 15, Y: 5}})
	})
	inked := 0
	for _, i := range img.Pix {
		if _, _, _, a := img.Palette[i].RGBA(); a != 0 {
			inked++
		}
	}
	if most := 12 * 12; inked == 0 || inked > most {
		t.Errorf("%d pixels are drawn; the square has at most %d", inked, most)
	}
}

// The faint edges of a heat map's white cells stay white.
func TestFaintWhite(t *testing.T) {
	img, _ := raw(30, 30, func(c draw.Canvas) {
		c.FillPolygon(paper, []vg.Point{{X: 5.1, Y: 5.1}, {X: 20.2, Y: 5.1}, {X: 20.2, Y: 20.3}, {X: 5.1, Y: 20.3}})
	})
	for _, c := range img.Palette {
		if r, g, b, a := c.RGBA(); r != a || g != a || b != a {
			t.Errorf("a white square has the colour %v", c)
		}
	}
}
