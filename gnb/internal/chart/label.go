package chart

import (
	"cmp"
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes of margins and strokes of a chart, in points.
const (
	titleRoom  = 22  // above a chart
	LabelRoom  = 30  // right of it, for the numbers at the curves' ends
	LineWidth  = 1.6 // of a curve
	labelLines = 9.5 // minimal distance of two labels
)

// Titled writes a title above a chart, and returns the remaining canvas.
func (p *Painter) Titled(c draw.Canvas, title string) draw.Canvas {
	c.FillText(p.Bold(8.5, p.Ink()), vg.Point{X: c.Min.X + 4, Y: c.Max.Y - 13}, title)
	c.Max.Y -= titleRoom
	c.Min.X += 4
	return c
}

// Empty writes a text in the place of a curve that has no data yet.
func (p *Painter) Empty(c draw.Canvas, txt string) {
	sty := p.Text(8.5, p.Ink())
	sty.XAlign, sty.YAlign = draw.XCenter, draw.YCenter
	c.FillText(sty, vg.Point{X: c.Center().X, Y: c.Center().Y + 6}, txt)
}

// EndLabel is the text at the end of a curve.
type EndLabel struct {
	At    vg.Point
	Text  string
	Color color.NRGBA
}

// EndLabels writes labels right of the rightmost of them. They keep their order
// from top to bottom and a line's distance.
func (p *Painter) EndLabels(c draw.Canvas, labels []EndLabel) {
	tags := slices.Clone(labels)
	slices.SortStableFunc(tags, func(a, b EndLabel) int { return cmp.Compare(b.At.Y, a.At.Y) })
	ys := make([]float64, len(tags))
	for i := range tags {
		ys[i] = tags[i].At.Y.Points()
	}
	spread(ys, labelLines, c.Min.Y.Points(), c.Max.Y.Points())
	x := vg.Length(0)
	for _, t := range tags {
		x = max(x, t.At.X)
	}
	for i, t := range tags {
		sty := p.Bold(8, p.Word(t.Color))
		sty.YAlign = draw.YCenter
		c.FillText(sty, vg.Point{X: x + 6, Y: vg.Points(ys[i])}, t.Text)
	}
}

// spread moves the descending positions ys apart to a distance of at least d, within lo..hi if
// possible, with small moves.
func spread(ys []float64, d, lo, hi float64) {
	for range 40 {
		moved := false
		for i := 1; i < len(ys); i++ {
			if gap := ys[i-1] - ys[i]; gap < d-1e-6 {
				ys[i-1] += (d - gap) / 2
				ys[i] -= (d - gap) / 2
				moved = true
			}
		}
		if !moved {
			break
		}
	}
	if n := len(ys); n > 0 {
		if over := ys[0] - hi; over > 0 {
			for i := range ys {
				if limit := hi - float64(i)*d; ys[i] > limit {
					ys[i] = limit
				}
			}
		}
		if ys[n-1] < lo {
			for i := n - 1; i >= 0; i-- {
				if limit := lo + float64(n-1-i)*d; ys[i] < limit {
					ys[i] = limit
				}
			}
		}
	}
}
