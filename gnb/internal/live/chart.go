package live

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// charts draws the loss and, if there are any, the metrics next to it.
func (p *painter) charts(c draw.Canvas, s *Snapshot) {
	left := c
	if hasMetrics(s) {
		mid := c.Min.X + (c.Max.X-c.Min.X)*lossShare
		left.Max.X = mid - chartGap
		right := c
		right.Min.X = mid + chartGap
		p.metricChart(right, s)
	}
	p.lossChart(left, s)
}

// hasMetrics reports whether to draw the second chart: there is a metric, or one may still arrive.
func hasMetrics(s *Snapshot) bool {
	for _, m := range s.Metrics {
		if len(m.Points) > 0 {
			return true
		}
	}
	return !s.final() && (len(s.Metrics) > 0 || s.Epoch <= 1)
}

const (
	lossShare = 0.53 // share of the width if there are metrics
	chartGap  = 6    // on both sides of the boundary between charts
	minSpan   = 0.1  // minimal range of the axis for a share, such as an accuracy
)

// lossChart shows the raw values as a faint band from the lowest to the highest of each column,
// the smoothed curve on it, and its last value; below it the learning rate, if it changes.
func (p *painter) lossChart(c draw.Canvas, s *Snapshot) {
	const title = "loss per step"
	p.lossLegend(c, c.Min.X+4+p.Bold(8.5, p.Ink()).Width(title)+10)
	c = p.Titled(c, title)
	strip := c
	if changes(s.LR) {
		c.Min.Y += stripHeight
	}
	lo, hi, ok := p.loss.Limits()
	var x, y chart.Axis
	var xt, yt chart.Ticks
	y.Min, y.Max, yt = chart.ValueAxis(lo, hi, 5, 0.5)
	from, to := 0, 0
	if n := len(s.Loss); n > 0 {
		from, to = s.Loss[0].Step, s.Loss[n-1].Step
		if from < to/2 {
			from = 0
		}
	}
	total := 0
	if s.Epochs > 0 && s.Steps > 0 && s.Steps < 1<<50/s.Epochs {
		total = s.Epochs * s.Steps
	}
	x.Min, x.Max, xt = chart.CountAxis(from, to, total, !s.final())
	if !ok {
		xt, yt = xt.Blank(), yt.Blank()
	}
	pl := p.NewPlot(x, y, xt, yt, "step")
	if ok {
		pl.Add(lossCurve{p, s})
	}
	whole := c
	c.Max.X -= chart.LabelRoom
	pl.Draw(c)
	p.lossArea(title, pl, c, whole)
	if changes(s.LR) {
		strip.Max.Y = strip.Min.Y + stripHeight
		left := strip.Min.X - 4
		strip.Min.X, strip.Max.X = pl.DataCanvas(c).Min.X, pl.DataCanvas(c).Max.X
		p.rateStrip(strip, left, s, func(step int) vg.Length {
			return strip.Min.X + vg.Length((float64(step)-x.Min)/(x.Max-x.Min))*(strip.Max.X-strip.Min.X)
		})
	}
	switch {
	case !ok && s.final():
		p.Empty(c, "no step was finished")
	case !ok:
		p.Empty(c, "waiting for the first step")
	}
}

// lossArea notes the values of the chart of the loss.
func (p *painter) lossArea(title string, pl *chart.Plot, c, whole draw.Canvas) {
	bs := p.loss.Buckets
	raw := chart.Line{Name: "loss", Color: chart.Sky, Points: make([]chart.XY, len(bs))}
	for i := range bs {
		raw.Points[i] = chart.XY{X: bs[i].Step, Y: bs[i].Mean()}
	}
	lines := []chart.Line{raw}
	if p.loss.Span > 1 {
		lines[0].Name = fmt.Sprintf("mean of %s steps", chart.Grouped(p.loss.Span))
	}
	if p.loss.Reach() > 0 {
		lines = append(lines, chart.Line{Name: "smoothed", Color: chart.Blue, Points: p.loss.Smooth()})
	} else {
		lines[0].Color = chart.Blue
	}
	if len(bs) > 0 {
		stepArea(&p.Painter, title, pl, c, whole, lines)
	}
}

// stepArea notes a chart of values over steps or epochs.
func stepArea(p *chart.Painter, title string, pl *chart.Plot, c, whole draw.Canvas, lines []chart.Line) {
	a := p.Area(title, pl, c, whole, lines)
	a.Whole, a.Smooth = true, true
}

type lossCurve struct {
	p *painter
	s *Snapshot
}

func (l lossCurve) Plot(c draw.Canvas, pl *chart.Plot) {
	tx, ty := pl.Transforms(&c)
	bs := l.p.loss.Buckets
	at := func(x, y float64) vg.Point {
		return vg.Point{X: tx(x), Y: min(max(ty(y), c.Min.Y), c.Max.Y)}
	}
	faint := draw.LineStyle{Color: chart.Alpha(chart.Blue, 0x60), Width: vg.Points(0.9)}
	for _, run := range chart.Runs(len(bs), func(i int) bool { return bs[i].N > 0 }) {
		part := bs[run[0]:run[1]]
		if l.p.loss.Span == 1 {
			line := make([]vg.Point, len(part))
			for i, b := range part {
				line[i] = at(b.Step, b.Mean())
			}
			c.StrokeLines(faint, line)
			continue
		}
		band := make([]vg.Point, 2*len(part))
		for i, b := range part {
			band[i] = at(b.Step, b.Hi)
			band[len(band)-1-i] = at(b.Step, b.Lo)
		}
		c.FillPolygon(chart.Alpha(chart.Blue, 0x48), band)
	}
	sm := l.p.loss.Smooth()
	strong := draw.LineStyle{Color: chart.Blue, Width: vg.Points(chart.LineWidth)}
	for _, run := range chart.Runs(len(sm), func(i int) bool { return !math.IsNaN(sm[i].Y) }) {
		line := make([]vg.Point, 0, run[1]-run[0])
		for _, q := range sm[run[0]:run[1]] {
			line = append(line, vg.Point{X: tx(q.X), Y: ty(q.Y)})
		}
		c.StrokeLines(strong, c.ClipLinesY(line)...)
		if len(sm) <= 12 {
			for _, q := range line {
				c.DrawGlyphNoClip(draw.GlyphStyle{Color: chart.Blue, Radius: vg.Points(2), Shape: draw.CircleGlyph{}}, q)
			}
		}
	}
	for i := len(sm) - 1; i >= 0; i-- {
		if !math.IsNaN(sm[i].Y) {
			q := at(sm[i].X, sm[i].Y)
			sty := l.p.Bold(8, l.p.Word(chart.Blue))
			sty.YAlign = draw.YCenter
			c.FillText(sty, vg.Point{X: q.X + 5, Y: q.Y}, screen.Value(sm[i].Y))
			break
		}
	}
}

var looks = []chart.Look{
	{Color: chart.Orange, Glyph: draw.CircleGlyph{}},
	{Color: chart.Blue, Glyph: draw.BoxGlyph{}},
	{Color: chart.Green, Glyph: draw.PyramidGlyph{}},
	{Color: chart.Purple, Glyph: draw.RingGlyph{}},
	{Color: chart.Ink, Glyph: draw.CrossGlyph{}},
}

// fixedLooks are the usual splits.
var fixedLooks = map[string]int{"val": 0, "valid": 0, "test": 1, "train": 2, "train batches": 2}

// usualSplit reports whether a curve of that name has a look of its own.
func usualSplit(name string) bool {
	_, ok := fixedLooks[name]
	return ok
}

// lookOf returns the fixed look of a usual split, or an unused look for another one.
func lookOf(ms []Series, i int) chart.Look {
	if k, ok := fixedLooks[ms[i].Name]; ok {
		return looks[k]
	}
	used := make([]bool, len(looks))
	for _, m := range ms {
		if k, ok := fixedLooks[m.Name]; ok {
			used[k] = true
		}
	}
	n := 0
	for j := range i {
		if _, ok := fixedLooks[ms[j].Name]; !ok {
			n++
		}
	}
	var free []chart.Look
	for k, u := range used {
		if !u {
			free = append(free, looks[k])
		}
	}
	return free[n%len(free)] // looks has more entries than fixedLooks, so free is not empty
}

// metricChart shows a curve per series with its name and last value at its end.
func (p *painter) metricChart(c draw.Canvas, s *Snapshot) {
	title := s.metric()
	if title == "" {
		title = "metrics"
	}
	p.curveChart(c, title+" per epoch", "epoch", s.Metrics, s.Epochs, s.final())
}

// curveChart is a chart of curves over epochs or steps, of which there are total, or an unknown number if it is 0.
func (p *painter) curveChart(c draw.Canvas, title, unit string, curves []Series, total int, final bool) {
	c = p.Titled(c, p.Fit(p.Bold(8.5, p.Ink()), screen.OneLine(title), c.Max.X-c.Min.X-4))
	lo, hi, first, last := math.Inf(1), math.Inf(-1), math.MaxInt, 1
	for _, m := range curves {
		for _, q := range m.Points {
			first, last = min(first, q.Step), max(last, q.Step)
			if chart.Finite(q.Y) {
				lo, hi = min(lo, q.Y), max(hi, q.Y)
			}
		}
	}
	ok := lo <= hi
	switch {
	case !ok:
		lo, hi = 0, 1
	case lo >= 0 && hi <= 1 && hi-lo < minSpan && unit == "epoch": // noise should not fill the chart
		lo = max((lo+hi-minSpan)/2, 0)
		lo = min(lo, 1-minSpan)
		hi = lo + minSpan
	}
	var x, y chart.Axis
	var xt, yt chart.Ticks
	y.Min, y.Max, yt = chart.ValueAxis(lo, hi, 5, 0.2)
	x.Min, x.Max, xt = chart.CountAxis(min(first, 1), last, total, !final)
	if !ok {
		xt, yt = xt.Blank(), yt.Blank()
	}
	pl := p.NewPlot(x, y, xt, yt, unit)
	if ok {
		pl.Add(metricCurves{p, curves})
	}
	// The width of the widest label.
	room := vg.Length(chart.LabelRoom)
	sty := p.Bold(8, p.Ink())
	for _, m := range curves {
		room = max(room, sty.Width(label(m))+8)
	}
	whole := c
	c.Max.X -= min(room, (c.Max.X-c.Min.X)/2)
	pl.Draw(c)
	if ok {
		lines := make([]chart.Line, len(curves))
		for i, m := range curves {
			lines[i] = chart.Line{Name: screen.Fit(screen.OneLine(cmp.Or(m.Name, title)), 24), Color: lookOf(curves, i).Color, Points: chart.XYs(m.Points)}
		}
		stepArea(&p.Painter, title, pl, c, whole, lines)
	}
	switch {
	case !ok && final:
		p.Empty(c, "nothing was evaluated")
	case !ok:
		p.Empty(c, "waiting for the first evaluation")
	}
}

// label returns the text at a curve's end.
func label(m Series) string {
	q, ok := lastOf(m.Points)
	if !ok {
		return screen.Fit(screen.OneLine(m.Name), 24)
	}
	return strings.TrimSpace(screen.Fit(screen.OneLine(m.Name), 24) + " " + screen.Value(q.Y))
}

type metricCurves struct {
	p  *painter
	ms []Series
}

func (l metricCurves) Plot(c draw.Canvas, pl *chart.Plot) {
	tx, ty := pl.Transforms(&c)
	var tags []chart.EndLabel
	for i, m := range l.ms {
		look := lookOf(l.ms, i)
		pts := chart.Thin(m.Points)
		var last vg.Point
		for _, run := range chart.Runs(len(pts), func(i int) bool { return chart.Finite(pts[i].Y) }) {
			line := make([]vg.Point, 0, run[1]-run[0])
			for _, q := range pts[run[0]:run[1]] {
				line = append(line, vg.Point{X: tx(float64(q.Step)), Y: ty(q.Y)})
			}
			marked := line
			if len(pts) > 30 {
				marked = line[len(line)-1:]
			}
			look.Curve(c, line, marked, 1.8)
			last = line[len(line)-1]
		}
		if _, ok := lastOf(m.Points); ok {
			tags = append(tags, chart.EndLabel{At: last, Text: label(m), Color: look.Color})
		}
	}
	l.p.EndLabels(c, tags)
}
