package boards

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// Scaling is a scaling curve, drawn by [ScalingPNG].
type Scaling struct {
	Title, Note string
	Points      []ScalingPoint // by ascending number of workers
	Ideal       []chart.Point  // the ideal speed-up per number of workers
}

// ScalingPoint holds the measurements of a [Scaling] with one number of workers.
type ScalingPoint struct {
	Workers                     int
	Cooperative                 bool        // they make batches together
	On                          string      // what they compute on, such as "2 cores"
	Speedup, Low, High          float64     // the median, the minimum and the maximum
	Stages                      []StageTime // of one step
	Efficiency                  float64     // Speedup divided by the ideal
	RepeatedEdges, RepeatedRows float64     // how often an edge is sampled and a row read, on average
}

// StageTime is the time that one stage takes per step.
type StageTime struct {
	Name    string
	Seconds float64
}

// ScalingPNG draws a curve at twice the resolution of a standard screen: the speed-up next to the
// ideal, the stages of a step, and the repeated work.
func ScalingPNG(s Scaling) (chart.Picture, error) {
	s = s.drawable()
	return screen.Titled(s.Title, s.Note, func(at *chart.Painter, dc draw.Canvas) {
		p := pen{at}
		if len(s.Points) == 0 {
			p.Empty(dc, "nothing was measured")
			return
		}
		a, b := dc.Max.X*0.34, dc.Max.X*0.70
		p.speedups(chart.Part(dc, 0, a-8), s)
		p.stageBars(chart.Part(dc, a, b-8), s)
		p.repeated(chart.Part(dc, b, dc.Max.X), s)
	})
}

// drawable is s with 0 in the place of numbers that no axis holds.
func (s Scaling) drawable() Scaling {
	s.Points, s.Ideal = slices.Clone(s.Points), slices.Clone(s.Ideal)
	for i := range s.Points {
		q := &s.Points[i]
		q.Stages = slices.Clone(q.Stages)
		for j := range q.Stages {
			tidy(&q.Stages[j].Seconds)
		}
		tidy(&q.Speedup, &q.Low, &q.High, &q.Efficiency, &q.RepeatedEdges, &q.RepeatedRows)
	}
	for i := range s.Ideal {
		tidy(&s.Ideal[i].Y)
	}
	return s
}

func tidy(xs ...*float64) {
	for _, x := range xs {
		if !chart.Finite(*x) {
			*x = 0
		}
	}
}

// ShowScaling shows a curve in the current cell, with text for viewers without pictures; outside a
// notebook it does nothing. It returns when the notebook has received the picture.
func ShowScaling(s Scaling, text string) error { return showScaling(s, text, screen.Options{}) }

func showScaling(s Scaling, text string, o screen.Options) error {
	return screen.ShowPicture(func() (chart.Picture, error) { return ScalingPNG(s) }, text, o)
}

// workersAxis marks the measured numbers of workers.
func workersAxis(s Scaling) (x chart.Axis, t chart.Ticks) {
	first, last := s.Points[0].Workers, s.Points[len(s.Points)-1].Workers
	x.Min, x.Max = float64(first), math.Max(float64(last), float64(first)+1)
	alone, _ := s.modes()
	for _, p := range alone {
		t = append(t, chart.Tick{Value: float64(p.Workers), Label: strconv.Itoa(p.Workers)})
	}
	return x, t
}

// modes are the points of independent workers and those of cooperative ones.
func (s Scaling) modes() (alone, together []ScalingPoint) {
	for _, q := range s.Points {
		if q.Cooperative {
			together = append(together, q)
		} else {
			alone = append(alone, q)
		}
	}
	return alone, together
}

// speedups draws the speed-up per number of workers: a dashed line for the ideal, a point for the
// median, a bar from minimum to maximum and, if there is room, the efficiency below. Cooperative
// workers have a curve of their own, with boxes.
func (p pen) speedups(c draw.Canvas, s Scaling) {
	c = p.Titled(c, "speed-up")
	hi := 1.0
	for _, q := range s.Points {
		hi = math.Max(hi, q.High)
	}
	for _, q := range s.Ideal {
		hi = math.Max(hi, q.Y)
	}
	x, xt := workersAxis(s)
	var y chart.Axis
	var yt chart.Ticks
	y.Min, y.Max, yt = chart.ValueAxis(0, hi, 5, 1)
	alone, together := s.modes()
	unit := "workers"
	if len(xt) <= 5 {
		unit = "workers, efficiency"
		for i, q := range alone {
			xt[i].Label += fmt.Sprintf("\n%.0f %%", 100*q.Efficiency)
		}
	}
	pl := p.NewPlot(x, y, xt, yt, unit)
	pl.Add(chart.PlotFunc(func(c draw.Canvas, at func(x, y float64) vg.Point) {
		var ideal []vg.Point
		for _, q := range s.Ideal {
			ideal = append(ideal, at(float64(q.Step), q.Y))
		}
		c.StrokeLines(draw.LineStyle{Color: chart.Ink, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(3), vg.Points(2.5)}}, ideal)
		var tags []chart.EndLabel
		curve := func(points []ScalingPoint, l chart.Look) {
			var line []vg.Point
			spread := draw.LineStyle{Color: chart.Alpha(l.Color, 0x90), Width: vg.Points(3)}
			for _, q := range points {
				w := float64(q.Workers)
				lo, hi := at(w, q.Low), at(w, q.High)
				c.StrokeLine2(spread, lo.X, lo.Y, hi.X, hi.Y)
				line = append(line, at(w, q.Speedup))
			}
			l.Curve(c, line, line, 2.2)
			if n := len(line); n > 0 {
				tags = append(tags, chart.EndLabel{At: line[n-1], Text: fmt.Sprintf("%.2f", points[n-1].Speedup), Color: l.Color})
			}
		}
		curve(alone, chart.Look{Color: chart.Blue, Glyph: draw.CircleGlyph{}})
		curve(together, chart.Look{Color: chart.Orange, Glyph: draw.BoxGlyph{}})
		if len(ideal) > 0 {
			tags = append(tags, chart.EndLabel{At: ideal[len(ideal)-1], Text: "ideal", Color: chart.Ink})
		}
		p.EndLabels(c, tags)
	}))
	whole := c
	c.Max.X -= chart.LabelRoom
	pl.Draw(c)
	lines := []chart.Line{{Name: "independent", Color: chart.Blue, Points: xys(alone, speedup)}}
	if len(together) > 0 {
		lines = append(lines, chart.Line{Name: "cooperative", Color: chart.Orange, Points: xys(together, speedup)})
	}
	if len(s.Ideal) > 0 {
		lines = append(lines, chart.Line{Name: "ideal", Color: chart.Ink, Points: chart.XYs(s.Ideal)})
	}
	p.Area("speed-up", pl, c, whole, lines).Whole = true
}

func speedup(q ScalingPoint) float64 { return q.Speedup }

// xys returns a value of each point by its number of workers.
func xys(points []ScalingPoint, of func(ScalingPoint) float64) []chart.XY {
	out := make([]chart.XY, len(points))
	for i, q := range points {
		out[i] = chart.XY{X: float64(q.Workers), Y: of(q)}
	}
	return out
}

// stageBars draws one bar per number of workers: the milliseconds of a step by stage.
func (p pen) stageBars(c draw.Canvas, s Scaling) {
	c = p.Titled(c, "ms of a step, by stage")
	var names []string
	seen := map[string]color.NRGBA{}
	hi, others := 0.0, 0
	for _, q := range s.Points {
		sum := 0.0
		for _, st := range q.Stages {
			if _, ok := seen[st.Name]; !ok {
				seen[st.Name] = live.StageColor(st.Name, &others)
				names = append(names, st.Name)
			}
			sum += 1e3 * st.Seconds
		}
		hi = math.Max(hi, sum)
	}
	var x, y chart.Axis
	var xt, yt chart.Ticks
	x.Min, x.Max = -0.5, float64(len(s.Points))-0.5
	for i, q := range s.Points {
		label := strconv.Itoa(q.Workers)
		switch {
		case q.Cooperative:
			label += "\ntogether"
		case len(s.Points) <= 4: // if there is room
			label += "\n" + screen.OneLine(q.On)
		}
		xt = append(xt, chart.Tick{Value: float64(i), Label: label})
	}
	y.Min, y.Max, yt = chart.ValueAxis(0, hi, 5, 1)
	pl := p.NewPlot(x, y, xt, yt, "workers")
	var marks []chart.Mark
	pl.Add(chart.PlotFunc(func(c draw.Canvas, at func(x, y float64) vg.Point) {
		for i, q := range s.Points {
			base, how := 0.0, ""
			if q.Cooperative {
				how = ", cooperative"
			}
			for _, st := range q.Stages {
				a, b := at(float64(i)-0.3, base), at(float64(i)+0.3, base+1e3*st.Seconds)
				text := fmt.Sprintf("%s: %.3g ms\n%s%s", st.Name, 1e3*st.Seconds, screen.Plural(q.Workers, "worker"), how)
				marks = append(marks, chart.Mark{Text: text, Color: seen[st.Name], At: []vg.Point{a, b}, Bar: true})
				c.FillPolygon(seen[st.Name], []vg.Point{a, {X: b.X, Y: a.Y}, b, {X: a.X, Y: b.Y}})
				base += 1e3 * st.Seconds
			}
		}
	}))
	sty := p.Text(7.5, p.Ink())
	room := vg.Length(0)
	for _, n := range names {
		room = max(room, sty.Width(n)+16)
	}
	at := vg.Point{X: c.Max.X - room + 6, Y: c.Max.Y - 8}
	whole := c
	c.Max.X -= room
	pl.Draw(c)
	p.Marks("ms of a step, by stage", whole.Rectangle, pl.DataCanvas(c).Rectangle, marks)
	for i := len(names) - 1; i >= 0; i-- { // in the order of the segments of a bar
		c.FillPolygon(seen[names[i]], []vg.Point{at, {X: at.X + 5, Y: at.Y}, {X: at.X + 5, Y: at.Y + 5}, {X: at.X, Y: at.Y + 5}})
		c.FillText(sty, vg.Point{X: at.X + 8, Y: at.Y}, names[i])
		at.Y -= 10.5
	}
}

// repeated draws how often an edge is sampled and a row read, on average.
func (p pen) repeated(c draw.Canvas, s Scaling) {
	c = p.Titled(c, "work done more than once")
	hi := 1.1
	for _, q := range s.Points {
		hi = math.Max(hi, math.Max(q.RepeatedEdges, q.RepeatedRows))
	}
	x, xt := workersAxis(s)
	var y chart.Axis
	var yt chart.Ticks
	y.Min, y.Max, yt = chart.ValueAxis(1, hi, 5, 0)
	pl := p.NewPlot(x, y, xt, yt, "workers")
	alone, _ := s.modes()
	kinds := []struct {
		name string
		look chart.Look
		of   func(ScalingPoint) float64
	}{
		{"rows", chart.Look{Color: chart.Orange, Glyph: draw.BoxGlyph{}}, func(q ScalingPoint) float64 { return q.RepeatedRows }},
		{"edges", chart.Look{Color: chart.Green, Glyph: draw.PyramidGlyph{}}, func(q ScalingPoint) float64 { return q.RepeatedEdges }},
	}
	pl.Add(chart.PlotFunc(func(c draw.Canvas, at func(x, y float64) vg.Point) {
		var tags []chart.EndLabel
		for _, k := range kinds {
			var line []vg.Point
			for _, q := range alone {
				line = append(line, at(float64(q.Workers), k.of(q)))
			}
			k.look.Curve(c, line, line, 2)
			tags = append(tags, chart.EndLabel{At: line[len(line)-1], Text: fmt.Sprintf("%s %.2f", k.name, k.of(alone[len(alone)-1])), Color: k.look.Color})
		}
		p.EndLabels(c, tags)
	}))
	whole := c
	c.Max.X -= 48
	pl.Draw(c)
	lines := make([]chart.Line, len(kinds))
	for i, k := range kinds {
		lines[i] = chart.Line{Name: k.name, Color: k.look.Color, Points: xys(alone, k.of)}
	}
	p.Area("work done more than once", pl, c, whole, lines).Whole = true
}
