// Package boards draws and shows what is not one run: a hyper-parameter search ([Sweep]), a scaling
// curve ([Scaling]) and one batch under the microscope ([Batch]). It is given values and knows no
// study and no dataset.
package boards

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// Sweep is the state of a hyper-parameter search, for a [SweepSink] and for [SweepPNG].
type Sweep struct {
	Title  string
	State  string // one of a run's states
	Detail string // the reason, if State is Interrupted or Failed
	Metric string // the value by which trials are compared

	Done, Total   int           // ended trials, and all trials; Total 0 means unknown
	Elapsed, Left time.Duration // Left 0 means unknown

	Axes   []SweepAxis
	Trials []SweepTrial // best first
	Shares []SweepShare // importance of each parameter, highest first; empty until known
}

// SweepAxis is a parameter's range, with labels at heights from 0 to 1.
type SweepAxis struct {
	Name  string
	Marks []SweepMark
}

// SweepMark is a label at one height of an axis.
type SweepMark struct {
	At   float64
	Text string
}

// SweepTrial is one trial. At and Values have one element per axis: the height, NaN if the trial
// lacks the parameter, and the value as text.
type SweepTrial struct {
	Number  int
	State   string  // of a run, or "stopped"
	Value   float64 // NaN: unknown
	Epochs  int     // epochs at its last evaluation
	Seconds float64
	At      []float64
	Values  []string
	Note    string // why it failed
}

// SweepShare is the share, 0 to 1, of the trials' variance that a parameter explains.
type SweepShare struct {
	Name  string
	Share float64
}

// best returns the first trial, if it was trained to its end.
func (s *Sweep) best() (t SweepTrial, ok bool) {
	if len(s.Trials) == 0 || s.Trials[0].State != screen.Done || !chart.Finite(s.Trials[0].Value) {
		return t, false
	}
	return s.Trials[0], true
}

// note describes the sweep's progress in words.
func (s *Sweep) note() string {
	n := screen.Plural(s.Done, "trial")
	if s.Total > 0 {
		n = screen.Of(s.Done, s.Total) + " trials"
	}
	if b, ok := s.best(); ok {
		n += fmt.Sprintf(", best %s %s (trial %d)", screen.OneLine(s.Metric), screen.Value(b.Value), b.Number)
	}
	return n
}

// SweepPNG draws the trials as lines across their parameters to the metric (parallel coordinates;
// Inselberg 1985, doi:10.1007/BF01898350), the best one on top, and next to them the importance of
// each parameter.
func SweepPNG(s Sweep) (chart.Picture, error) {
	return screen.Titled(s.Title, s.note(), func(at *chart.Painter, c draw.Canvas) { pen{at}.sweep(c, &s) })
}

// drawing draws the same picture without its title.
func (s *Sweep) drawing() (screen.Drawing, error) {
	return screen.DrawSVG(chart.Height, func(at *chart.Painter, c draw.Canvas) { pen{at}.sweep(c, s) })
}

// mostLines is the maximum number of trials drawn, best first: more lines cannot be told apart.
const mostLines = 300

func (p pen) sweep(c draw.Canvas, s *Sweep) {
	left := c
	if len(s.Shares) > 0 {
		left.Max.X = c.Min.X + (c.Max.X-c.Min.X)*0.72
		p.shares(chart.Part(c, left.Max.X+14, c.Max.X), s)
	}
	p.parallel(left, s)
}

// parallel draws one axis per parameter and one for the metric, and one line per trial.
func (p pen) parallel(c draw.Canvas, s *Sweep) {
	title := "trials: parameters and " + screen.OneLine(s.Metric)
	c = p.Titled(c, title)
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, t := range s.Trials {
		if chart.Finite(t.Value) && t.State != screen.Failed {
			lo, hi = min(lo, t.Value), max(hi, t.Value)
		}
	}
	if lo > hi || len(s.Axes) == 0 {
		p.Empty(c, "waiting for the first trial")
		return
	}
	from, to, marks := chart.ValueAxis(lo, hi, 5, 0)
	height := func(v float64) float64 { return (v - from) / (to - from) }
	metric := SweepAxis{Name: s.Metric}
	for _, m := range marks {
		metric.Marks = append(metric.Marks, SweepMark{height(m.Value), m.Label})
	}
	axes := append(slices.Clone(s.Axes), metric)
	const foot, pad, room = 16, 6, 44 // below for the names, at the side for the labels
	at := func(i int, h float64) vg.Point {
		x := c.Min.X + pad + (c.Max.X-c.Min.X-pad-room)*vg.Length(i)/vg.Length(len(axes)-1)
		return vg.Point{X: x, Y: c.Min.Y + foot + 4 + (c.Max.Y-c.Min.Y-foot-8)*vg.Length(screen.Clamp(h))}
	}
	var trials []chart.Mark
	for i := min(len(s.Trials), mostLines) - 1; i >= 0; i-- { // best on top
		t := s.Trials[i]
		if !chart.Finite(t.Value) || t.State == screen.Failed || len(t.At) != len(s.Axes) {
			continue
		}
		line := []vg.Point{}
		for a, h := range t.At {
			if chart.Finite(h) {
				line = append(line, at(a, h))
			}
		}
		line = append(line, at(len(axes)-1, height(t.Value)))
		style := sweepStyle(s, i, (t.Value-lo)/max(hi-lo, 1e-300))
		c.StrokeLines(style, line)
		color := style.Color.(color.NRGBA)
		color.A = 0xff
		trials = append(trials, chart.Mark{Text: t.words(s), Color: color, At: line})
	}
	slices.Reverse(trials) // the best ones first, as there may be too many
	foot0, top1 := at(0, 0), at(len(axes)-1, 1)
	p.Marks(title, c.Rectangle, vg.Rectangle{Min: foot0, Max: top1}, trials)
	room2 := (c.Max.X - c.Min.X - pad - room) / vg.Length(len(axes)-1)
	for i, a := range axes {
		foot, top := at(i, 0), at(i, 1)
		c.StrokeLine2(draw.LineStyle{Color: chart.BaseInk, Width: vg.Points(0.8)}, foot.X, foot.Y, top.X, top.Y)
		name := p.Text(8, p.Ink())
		name.XAlign = draw.XCenter
		x := foot.X
		switch i {
		case 0:
			name.XAlign, x = draw.XLeft, c.Min.X
		case len(axes) - 1:
			name.XAlign, x = draw.XRight, c.Max.X
		}
		c.FillText(name, vg.Point{X: x, Y: c.Min.Y + 3}, p.Fit(name, screen.OneLine(a.Name), max(room2-4, 30)))
		small := p.Text(7, p.Ink())
		last := vg.Length(math.Inf(-1))
		for _, m := range a.Marks {
			y := at(i, m.At).Y
			if y-last < 8 { // no room for the label
				continue
			}
			last = y
			c.StrokeLine2(draw.LineStyle{Color: chart.BaseInk, Width: vg.Points(0.8)}, foot.X, y, foot.X+2.5, y)
			// Place the label where lines meet, next to the axis and away from the middle.
			by := vg.Length(2)
			switch {
			case i == len(axes)-1:
				by = -2.5
			case m.At < 0.4:
				by = -7
			}
			c.FillText(small, vg.Point{X: foot.X + 4, Y: y + by}, p.Fit(small, screen.OneLine(m.Text), max(min(room2, room)-6, 24)))
		}
	}
}

// words describes a trial in lines: its number and metric, and its parameters.
func (t *SweepTrial) words(s *Sweep) string {
	var b strings.Builder
	fmt.Fprintf(&b, "trial %d: %s %s", t.Number, screen.Fit(screen.OneLine(s.Metric), 24), screen.Value(t.Value))
	if t.State != screen.Done {
		b.WriteString(", " + t.State)
	}
	for i, a := range s.Axes {
		if i < len(t.Values) {
			fmt.Fprintf(&b, "\n%s %s", screen.Fit(screen.OneLine(a.Name), 20), screen.Fit(screen.OneLine(t.Values[i]), 20))
		}
	}
	return b.String()
}

// sweepStyle returns the line of the i-th trial: orange for the best one, dashed grey for a stopped
// or running one, otherwise the bluer the better the trial ranks.
func sweepStyle(s *Sweep, i int, share float64) draw.LineStyle {
	if _, ok := s.best(); ok && i == 0 {
		return draw.LineStyle{Color: chart.Orange, Width: vg.Points(2)}
	}
	if s.Trials[i].State != screen.Done {
		return draw.LineStyle{Color: chart.Alpha(chart.Ink, 0x70), Width: vg.Points(0.7), Dashes: []vg.Length{vg.Points(2), vg.Points(2)}}
	}
	rank := 1 - float64(i)/float64(len(s.Trials))
	return draw.LineStyle{Color: color.NRGBA{chart.Blue.R, chart.Blue.G, chart.Blue.B, uint8(0x30 + 0xb0*screen.Clamp(rank)*screen.Clamp(0.4+0.6*share))}, Width: vg.Points(1)}
}

// shares draws one bar per parameter: the share of the variance that it explains.
func (p pen) shares(c draw.Canvas, s *Sweep) {
	c = p.Titled(c, "variance explained")
	sty, num := p.Text(8, p.Ink()), p.Text(8, p.Ink())
	num.XAlign = draw.XRight
	y := c.Max.Y - 6
	for _, sh := range s.Shares {
		if y < c.Min.Y+24 {
			break
		}
		c.FillText(sty, vg.Point{X: c.Min.X, Y: y}, p.Fit(sty, screen.OneLine(sh.Name), c.Max.X-c.Min.X-34))
		c.FillText(num, vg.Point{X: c.Max.X - 4, Y: y}, screen.SharePercent(sh.Share))
		y -= 6
		bar := func(to float64, col color.Color) {
			x := c.Min.X + (c.Max.X-4-c.Min.X)*vg.Length(to)
			c.FillPolygon(col, []vg.Point{{X: c.Min.X, Y: y}, {X: x, Y: y}, {X: x, Y: y + 3}, {X: c.Min.X, Y: y + 3}})
		}
		bar(1, chart.GridInk)
		bar(screen.Clamp(sh.Share), chart.Blue)
		y -= 15
	}
}
