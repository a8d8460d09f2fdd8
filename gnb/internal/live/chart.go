package live

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// charts draws the loss and, where there are any, the metrics beside it.
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

// hasMetrics reports whether the second chart is worth its room: there is a
// metric, or the first may still come.
func hasMetrics(s *Snapshot) bool {
	for _, m := range s.Metrics {
		if len(m.Points) > 0 {
			return true
		}
	}
	return !s.final() && (len(s.Metrics) > 0 || s.Epoch <= 1)
}

const (
	lossShare  = 0.53 // of the width, with metrics beside it
	chartGap   = 6    // on both sides of where they meet
	titleRoom  = 22   // above a chart
	labelRoom  = 30   // right of it, for the numbers at the curves' ends
	lineWidth  = 1.6
	labelLines = 9.5 // the least distance of two labels
	minSpan    = 0.1 // the least range of a share, such as an accuracy
)

func (p *painter) titled(c draw.Canvas, title string) draw.Canvas {
	c.FillText(p.bold(8.5, p.ink()), vg.Point{X: c.Min.X + 4, Y: c.Max.Y - 13}, title)
	c.Max.Y -= titleRoom
	c.Min.X += 4
	return c
}

// empty writes where a curve will be.
func (p *painter) empty(c draw.Canvas, txt string) {
	sty := p.text(8.5, p.ink())
	sty.XAlign, sty.YAlign = draw.XCenter, draw.YCenter
	c.FillText(sty, vg.Point{X: c.Center().X, Y: c.Center().Y + 6}, txt)
}

// lossChart shows the raw values as a faint band from the lowest to the highest
// of each column, the smoothed curve on it, and its last value; below it, where it
// changes, the learning rate.
func (p *painter) lossChart(c draw.Canvas, s *Snapshot) {
	const title = "loss per step"
	p.lossLegend(c, c.Min.X+4+p.bold(8.5, p.ink()).Width(title)+10)
	c = p.titled(c, title)
	strip := c
	if changes(s.LR) {
		c.Min.Y += stripHeight
	}
	lo, hi, ok := p.loss.limits()
	var x, y axis
	var xt, yt ticks
	y.Min, y.Max, yt = valueAxis(lo, hi, 5, 0.5)
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
	x.Min, x.Max, xt = countAxis(from, to, total, !s.final())
	if !ok {
		xt, yt = xt.blank(), yt.blank()
	}
	pl := p.newPlot(x, y, xt, yt, "step")
	if ok {
		pl.Add(lossCurve{p, s})
	}
	c.Max.X -= labelRoom
	pl.Draw(c)
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
		p.empty(c, "no step was finished")
	case !ok:
		p.empty(c, "waiting for the first step")
	}
}

type lossCurve struct {
	p *painter
	s *Snapshot
}

func (l lossCurve) Plot(c draw.Canvas, pl *plot) {
	tx, ty := pl.Transforms(&c)
	bs := l.p.loss.buckets
	at := func(x, y float64) vg.Point {
		return vg.Point{X: tx(x), Y: min(max(ty(y), c.Min.Y), c.Max.Y)}
	}
	faint := draw.LineStyle{Color: alpha(blue, 0x60), Width: vg.Points(0.9)}
	for _, run := range runs(len(bs), func(i int) bool { return bs[i].n > 0 }) {
		part := bs[run[0]:run[1]]
		if l.p.loss.span == 1 {
			line := make([]vg.Point, len(part))
			for i, b := range part {
				line[i] = at(b.step, b.mean())
			}
			c.StrokeLines(faint, line)
			continue
		}
		band := make([]vg.Point, 2*len(part))
		for i, b := range part {
			band[i] = at(b.step, b.hi)
			band[len(band)-1-i] = at(b.step, b.lo)
		}
		c.FillPolygon(alpha(blue, 0x48), band)
	}
	sm := l.p.loss.smooth()
	strong := draw.LineStyle{Color: blue, Width: vg.Points(lineWidth)}
	for _, run := range runs(len(sm), func(i int) bool { return !math.IsNaN(sm[i].y) }) {
		line := make([]vg.Point, 0, run[1]-run[0])
		for _, q := range sm[run[0]:run[1]] {
			line = append(line, vg.Point{X: tx(q.x), Y: ty(q.y)})
		}
		c.StrokeLines(strong, c.ClipLinesY(line)...)
		if len(sm) <= 12 {
			for _, q := range line {
				c.DrawGlyphNoClip(draw.GlyphStyle{Color: blue, Radius: vg.Points(2), Shape: draw.CircleGlyph{}}, q)
			}
		}
	}
	for i := len(sm) - 1; i >= 0; i-- {
		if !math.IsNaN(sm[i].y) {
			q := at(sm[i].x, sm[i].y)
			sty := l.p.bold(8, l.p.word(blue))
			sty.YAlign = draw.YCenter
			c.FillText(sty, vg.Point{X: q.X + 5, Y: q.Y}, value(sm[i].y))
			break
		}
	}
}

// runs returns the stretches [from, to) of 0..n in which ok holds.
func runs(n int, ok func(int) bool) (out [][2]int) {
	for i := 0; i < n; i++ {
		if !ok(i) {
			continue
		}
		from := i
		for i < n && ok(i) {
			i++
		}
		out = append(out, [2]int{from, i})
	}
	return out
}

// look is how a metric's curve is drawn: colour and shape both tell it apart.
type look struct {
	color color.NRGBA
	glyph draw.GlyphDrawer
}

// curve draws a line, and a glyph of so many points' radius at those marked.
func (l look) curve(c draw.Canvas, line, marked []vg.Point, radius float64) {
	c.StrokeLines(draw.LineStyle{Color: l.color, Width: vg.Points(lineWidth)}, line)
	for _, q := range marked {
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: l.color, Radius: vg.Points(radius), Shape: l.glyph}, q)
	}
}

var looks = []look{
	{orange, draw.CircleGlyph{}},
	{blue, draw.BoxGlyph{}},
	{green, draw.PyramidGlyph{}},
	{purple, draw.RingGlyph{}},
	{ink, draw.CrossGlyph{}},
}

// fixedLooks are the usual splits.
var fixedLooks = map[string]int{"val": 0, "valid": 0, "test": 1, "train": 2, "train batches": 2}

// lookOf gives the usual splits a fixed look and the others what is left.
func lookOf(ms []Series, i int) look {
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
	var free []look
	for k, u := range used {
		if !u {
			free = append(free, looks[k])
		}
	}
	return free[n%len(free)] // looks is longer than the fixed ones: there is one
}

// metricChart shows a curve per series with its name and last value at its end.
func (p *painter) metricChart(c draw.Canvas, s *Snapshot) {
	title := s.metric()
	if title == "" {
		title = "metrics"
	}
	c = p.titled(c, title+" per epoch")
	lo, hi, first, last := math.Inf(1), math.Inf(-1), math.MaxInt, 1
	for _, m := range s.Metrics {
		for _, q := range m.Points {
			first, last = min(first, q.Step), max(last, q.Step)
			if finite(q.Y) {
				lo, hi = min(lo, q.Y), max(hi, q.Y)
			}
		}
	}
	ok := lo <= hi
	switch {
	case !ok:
		lo, hi = 0, 1
	case lo >= 0 && hi <= 1 && hi-lo < minSpan: // noise is not to fill the chart
		lo = max((lo+hi-minSpan)/2, 0)
		lo = min(lo, 1-minSpan)
		hi = lo + minSpan
	}
	var x, y axis
	var xt, yt ticks
	y.Min, y.Max, yt = valueAxis(lo, hi, 5, 0.2)
	x.Min, x.Max, xt = countAxis(min(first, 1), last, s.Epochs, !s.final())
	if !ok {
		xt, yt = xt.blank(), yt.blank()
	}
	pl := p.newPlot(x, y, xt, yt, "epoch")
	if ok {
		pl.Add(metricCurves{p, s.Metrics})
	}
	// The labels' room: the widest of them.
	room := vg.Length(labelRoom)
	sty := p.bold(8, p.ink())
	for _, m := range s.Metrics {
		room = max(room, sty.Width(label(m))+8)
	}
	c.Max.X -= min(room, (c.Max.X-c.Min.X)/2)
	pl.Draw(c)
	switch {
	case !ok && s.final():
		p.empty(c, "nothing was evaluated")
	case !ok:
		p.empty(c, "waiting for the first evaluation")
	}
}

// label is the text at a curve's end.
func label(m Series) string {
	q, ok := lastOf(m.Points)
	if !ok {
		return fit(oneLine(m.Name), 24)
	}
	return fit(oneLine(m.Name), 24) + " " + value(q.Y)
}

type metricCurves struct {
	p  *painter
	ms []Series
}

func (l metricCurves) Plot(c draw.Canvas, pl *plot) {
	tx, ty := pl.Transforms(&c)
	var tags []endLabel
	for i, m := range l.ms {
		look := lookOf(l.ms, i)
		pts := thin(m.Points)
		var last vg.Point
		for _, run := range runs(len(pts), func(i int) bool { return finite(pts[i].Y) }) {
			line := make([]vg.Point, 0, run[1]-run[0])
			for _, q := range pts[run[0]:run[1]] {
				line = append(line, vg.Point{X: tx(float64(q.Step)), Y: ty(q.Y)})
			}
			marked := line
			if len(pts) > 30 {
				marked = line[len(line)-1:]
			}
			look.curve(c, line, marked, 1.8)
			last = line[len(line)-1]
		}
		if _, ok := lastOf(m.Points); ok {
			tags = append(tags, endLabel{last, label(m), look.color})
		}
	}
	l.p.endLabels(c, tags)
}

// endLabel is the text at the end of a curve.
type endLabel struct {
	at    vg.Point
	text  string
	color color.NRGBA
}

// endLabels writes labels right of the rightmost of them. They keep their order
// from top to bottom and a line's distance.
func (p *painter) endLabels(c draw.Canvas, tags []endLabel) {
	slices.SortStableFunc(tags, func(a, b endLabel) int {
		switch {
		case a.at.Y > b.at.Y:
			return -1
		case a.at.Y < b.at.Y:
			return 1
		}
		return 0
	})
	ys := make([]float64, len(tags))
	for i := range tags {
		ys[i] = tags[i].at.Y.Points()
	}
	spread(ys, labelLines, c.Min.Y.Points(), c.Max.Y.Points())
	x := vg.Length(0)
	for _, t := range tags {
		x = max(x, t.at.X)
	}
	for i, t := range tags {
		sty := p.bold(8, p.word(t.color))
		sty.YAlign = draw.YCenter
		c.FillText(sty, vg.Point{X: x + 6, Y: vg.Points(ys[i])}, t.text)
	}
}

// thin keeps every k-th point of a long curve, and the last.
func thin(p []Point) []Point {
	k := (len(p) + maxBuckets - 1) / maxBuckets
	if k <= 1 {
		return p
	}
	var out []Point
	for i := (len(p) - 1) % k; i < len(p); i += k {
		out = append(out, p[i])
	}
	return out
}

// spread moves the descending positions ys apart to at least d, within lo..hi
// where that is possible, and as little as simple passes manage.
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
