package live

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// Comparison is several runs in one figure, for [ComparisonPNG].
type Comparison struct {
	Title, Note string
	State       string // Running while some run trains and is watched, Interrupted when watching has ended
	Metric      string // what Points measure, such as "val accuracy"
	Runs        []ComparedRun
}

// ComparedRun is one run of a [Comparison].
type ComparedRun struct {
	Name   string        // distinct name of the run
	Result string        // its result in a few words
	Loss   []chart.Point // by step, ascending; NaN and Inf are gaps
	Metric []chart.Point // by epoch
}

// MostCompared is the maximum number of runs in a figure, which shows the first ones: more cannot
// be distinguished.
const MostCompared = 18

// runColors distinguish runs; with more runs than colours runDashes do too.
var (
	runColors = []color.NRGBA{chart.Blue, chart.Orange, chart.Green, chart.Purple, chart.Amber, chart.Ink}
	runDashes = [][]vg.Length{nil, {vg.Points(5), vg.Points(2.5)}, {vg.Points(1.5), vg.Points(2)}}
)

func runLine(i int) draw.LineStyle {
	return draw.LineStyle{Color: runColors[i%len(runColors)], Width: vg.Points(chart.LineWidth), Dashes: runDashes[i/len(runColors)%len(runDashes)]}
}

// legendLine is the height of a run's line below the charts.
const legendLine = 12

// ComparisonPNG draws the smoothed losses of runs in one chart, a metric of the runs in a second
// one, and a legend below.
func ComparisonPNG(c Comparison) (chart.Picture, error) {
	c.Runs = c.Runs[:min(len(c.Runs), MostCompared)]
	legend := vg.Length(len(c.Runs)*legendLine + 3) // a multiple of 3, that is whole CSS pixels
	return screen.Tall(c.Title, c.Note, chart.Height+legend, func(at *chart.Painter, dc draw.Canvas) {
		p := pen{at}
		if len(c.Runs) == 0 {
			p.Empty(dc, "no runs to compare")
			return
		}
		p.runLegend(dc, c)
		dc.Min.Y += legend
		var loss, metric []runCurve
		for i, r := range c.Runs {
			loss, metric = append(loss, smoothed(r.Loss)), append(metric, pointwise(r.Metric))
			loss[i].style, metric[i].style = runLine(i), runLine(i)
			loss[i].name, metric[i].name = r.Name, r.Name
		}
		mid := dc.Max.X * 0.5
		p.overlay(chart.Part(dc, 0, mid-8), "loss per step, smoothed", "step", loss, 0.5, 0)
		p.overlay(chart.Part(dc, mid+8, dc.Max.X), screen.OneLine(c.Metric)+" per epoch", "epoch", metric, 0.2, minSpan)
	})
}

// runLegend writes a line for each run, at the foot of the figure.
func (p pen) runLegend(c draw.Canvas, cmp Comparison) {
	sty := p.Text(8, p.Ink())
	for i, r := range cmp.Runs {
		y := c.Min.Y + vg.Length((len(cmp.Runs)-1-i)*legendLine) + 4
		c.StrokeLine2(runLine(i), c.Min.X+4, y+3, c.Min.X+26, y+3)
		result := p.Text(8, p.Ink())
		result.XAlign = draw.XRight
		c.FillText(result, vg.Point{X: c.Max.X - 4, Y: y}, screen.OneLine(r.Result))
		c.FillText(sty, vg.Point{X: c.Min.X + 32, Y: y}, p.Fit(sty, screen.OneLine(r.Name), c.Max.X-c.Min.X-44-result.Width(screen.OneLine(r.Result))))
	}
}

// runCurve is a run's line in a chart; a NaN is a gap in it.
type runCurve struct {
	name   string
	line   []chart.XY
	lo, hi float64 // the range to show; lo > hi if there is none
	style  draw.LineStyle
}

// smoothed returns the smoothed curve of noisy points.
func smoothed(points []chart.Point) runCurve {
	var c chart.Curve
	c.Take(points)
	return rangeOf(c.Smooth())
}

// pointwise returns a curve without smoothing.
func pointwise(points []chart.Point) runCurve {
	var line []chart.XY
	for _, q := range chart.Thin(points) {
		if !chart.Finite(q.Y) {
			q.Y = math.NaN()
		}
		line = append(line, chart.XY{X: float64(q.Step), Y: q.Y})
	}
	return rangeOf(line)
}

func rangeOf(line []chart.XY) runCurve {
	r := runCurve{line: line, lo: math.Inf(1), hi: math.Inf(-1)}
	for _, q := range line {
		if chart.Finite(q.Y) {
			r.lo, r.hi = min(r.lo, q.Y), max(r.hi, q.Y)
		}
	}
	return r
}

// overlay draws curves in one chart. empty is the share of the axis that may stay unused so that
// it starts at 0; least is the minimal range to show for shares.
func (p pen) overlay(c draw.Canvas, title, unit string, curves []runCurve, empty, least float64) {
	c = p.Titled(c, title)
	lo, from, to := math.Inf(1), math.Inf(1), math.Inf(-1)
	var tops []float64
	for _, r := range curves {
		if r.lo > r.hi {
			continue
		}
		lo, tops = min(lo, r.lo), append(tops, r.hi)
		from, to = min(from, r.line[0].X), max(to, r.line[len(r.line)-1].X)
	}
	if len(tops) == 0 {
		p.Empty(c, "nothing was reported")
		return
	}
	// A diverged run must not flatten the others.
	slices.Sort(tops)
	hi := tops[len(tops)-1]
	if hi-lo > 5*(tops[len(tops)/2]-lo) && tops[len(tops)/2] > lo {
		hi = lo + 3*(tops[len(tops)/2]-lo)
	}
	if lo >= 0 && hi <= 1 && hi-lo < least {
		lo = min(max((lo+hi-least)/2, 0), 1-least)
		hi = lo + least
	}
	var x, y chart.Axis
	var xt, yt chart.Ticks
	y.Min, y.Max, yt = chart.ValueAxis(lo, hi, 5, empty)
	x.Min, x.Max, xt = chart.CountAxis(int(min(from, 1)), int(to), 0, false)
	pl := p.NewPlot(x, y, xt, yt, unit)
	few := len(curves) <= 6
	pl.Add(chart.PlotFunc(func(c draw.Canvas, at func(x, y float64) vg.Point) {
		var tags []chart.EndLabel
		for _, r := range curves {
			var last vg.Point
			for _, run := range chart.Runs(len(r.line), func(i int) bool { return chart.Finite(r.line[i].Y) }) {
				var line []vg.Point
				for _, q := range r.line[run[0]:run[1]] {
					line = append(line, at(q.X, q.Y))
				}
				c.StrokeLines(r.style, c.ClipLinesY(line)...)
				last = line[len(line)-1]
				if len(r.line) <= 12 {
					for _, q := range line {
						if c.Contains(q) {
							c.DrawGlyphNoClip(draw.GlyphStyle{Color: r.style.Color, Radius: vg.Points(1.6), Shape: draw.CircleGlyph{}}, q)
						}
					}
				}
			}
			if end, ok := lastFinite(r.line); ok && few {
				last.Y = min(last.Y, c.Max.Y)
				tags = append(tags, chart.EndLabel{At: last, Text: screen.Value(end), Color: r.style.Color.(color.NRGBA)})
			}
		}
		p.EndLabels(c, tags)
	}))
	whole := c
	c.Max.X -= map[bool]vg.Length{true: chart.LabelRoom, false: 8}[few]
	pl.Draw(c)
	lines := make([]chart.Line, len(curves))
	for i, r := range curves {
		lines[i] = chart.Line{Name: screen.Fit(screen.OneLine(r.name), 48), Color: r.style.Color.(color.NRGBA), Points: r.line}
	}
	stepArea(p.Painter, title, pl, c, whole, lines)
}

func lastFinite(line []chart.XY) (float64, bool) {
	for _, q := range slices.Backward(line) {
		if chart.Finite(q.Y) {
			return q.Y, true
		}
	}
	return 0, false
}
