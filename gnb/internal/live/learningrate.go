package live

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// stripHeight is the room of the learning rate below the loss.
const stripHeight = 46

// changes reports whether to draw a curve of the learning rate: a constant one is a single number.
func changes(p []chart.Point) bool { return len(p) > 1 }

// chartHeight is the height of the charts.
func chartHeight(s *Snapshot) int {
	if changes(s.LR) {
		return chart.Height + stripHeight
	}
	return chart.Height
}

// lossLegend draws the legend of the two kinds of ink, right of the chart's title.
func (p *painter) lossLegend(c draw.Canvas, x vg.Length) {
	l := &p.loss
	if len(l.Buckets) == 0 {
		return
	}
	sty := p.Text(7.5, p.Ink())
	y := c.Max.Y - 13
	entry := func(txt string, swatch func(from, to vg.Length)) {
		if x+16+sty.Width(txt) > c.Max.X {
			return
		}
		swatch(x, x+11)
		c.FillText(sty, vg.Point{X: x + 14, Y: y}, txt)
		x += 14 + sty.Width(txt) + 9
	}
	line := func(s draw.LineStyle) func(from, to vg.Length) {
		return func(from, to vg.Length) { c.StrokeLine2(s, from, y+2.7, to, y+2.7) }
	}
	strong := line(draw.LineStyle{Color: chart.Blue, Width: vg.Points(chart.LineWidth)})
	h := l.Reach()
	if l.Span == 1 {
		if h == 0 {
			entry("raw", strong)
			return
		}
		entry("raw", line(draw.LineStyle{Color: chart.Alpha(chart.Blue, 0x60), Width: vg.Points(0.9)}))
	} else {
		entry(fmt.Sprintf("raw: range of each %s steps", chart.Grouped(l.Span)), func(from, to vg.Length) {
			c.FillPolygon(chart.Alpha(chart.Blue, 0x48), []vg.Point{{X: from, Y: y}, {X: to, Y: y}, {X: to, Y: y + 5.4}, {X: from, Y: y + 5.4}})
		})
	}
	entry(fmt.Sprintf("local regression over ±%s steps", chart.Grouped(h*l.Span)), strong)
}

// rateStrip draws the learning rate as steps, from 0 to its maximum, below a title that starts at
// left. c spans the steps of the loss chart; at returns a step's position.
func (p *painter) rateStrip(c draw.Canvas, left vg.Length, s *Snapshot, at func(step int) vg.Length) {
	hi := 0.0
	pts := chart.Thin(s.LR)
	for _, q := range pts {
		if chart.Finite(q.Y) {
			hi = max(hi, math.Abs(q.Y))
		}
	}
	const title = "learning rate"
	bold := p.Bold(8.5, p.Ink())
	c.FillText(bold, vg.Point{X: left + 4, Y: c.Max.Y - 8}, title)
	c.FillText(p.Text(7.5, p.Ink()), vg.Point{X: left + 14 + bold.Width(title), Y: c.Max.Y - 8}, "0 to "+screen.Short(hi))
	c.Max.Y -= 14
	c.Min.Y += 4
	if hi == 0 {
		hi = 1
	}
	height := func(y float64) vg.Length { return c.Min.Y + vg.Length(max(y, 0)/hi)*(c.Max.Y-c.Min.Y) }
	c.StrokeLine2(draw.LineStyle{Color: chart.BaseInk, Width: vg.Points(0.6)}, c.Min.X, height(0), c.Max.X, height(0))
	c.StrokeLine2(draw.LineStyle{Color: chart.GridInk, Width: vg.Points(0.6)}, c.Min.X, height(hi), c.Max.X, height(hi))
	last := pts[len(pts)-1]
	end := at(last.Step)
	if n := len(s.Loss); n > 0 {
		end = max(end, at(s.Loss[n-1].Step))
	}
	strong := draw.LineStyle{Color: chart.Green, Width: vg.Points(chart.LineWidth)}
	for _, run := range chart.Runs(len(pts), func(i int) bool { return chart.Finite(pts[i].Y) }) {
		var line []vg.Point
		for i := run[0]; i < run[1]; i++ {
			to := end
			if i+1 < len(pts) {
				to = at(pts[i+1].Step)
			}
			y := height(pts[i].Y)
			line = append(line, vg.Point{X: at(pts[i].Step), Y: y}, vg.Point{X: to, Y: y})
		}
		c.StrokeLines(strong, line)
	}
	if chart.Finite(last.Y) {
		sty := p.Bold(8, p.Word(chart.Green))
		sty.YAlign = draw.YCenter
		c.FillText(sty, vg.Point{X: end + 5, Y: height(last.Y)}, screen.Short(last.Y))
	}
}
