package live

import (
	"encoding/base64"
	"fmt"
	"image/png"
	"math"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// painter draws the figures of this package. It caches drawings between frames; one goroutine uses
// it.
type painter struct {
	chart.Painter
	loss        chart.Curve
	left, right drawing // charts of the loss and of metrics
	below       drawing // of logged values
}

// drawing is a cached chart next to others.
type drawing struct {
	key   string
	svg   []byte
	src   string  // the same in base64
	areas string  // its charts, for the pointer
	share float64 // of the width
}

// SVGs returns the charts of s as SVG documents, from left to right and top to bottom, valid until the next call. It
// redraws a chart only if its data has changed: metrics change once per epoch, and a frame between
// two steps costs nothing.
func (p *painter) SVGs(s *Snapshot) ([]drawing, error) {
	if p.loss.Take(s.Loss) {
		p.left.key = ""
	}
	share := 1.0
	if hasMetrics(s) {
		share = lossShare
	}
	height := vg.Length(chartHeight(s))
	key := fmt.Sprint(s.final(), height, s.Epochs, s.Steps)
	err := p.left.draw(&p.Painter, fmt.Sprint(share, key), share, height, func(c draw.Canvas) { p.lossChart(c, s) })
	charts := []drawing{p.left}
	if err == nil && share < 1 {
		err = p.right.draw(&p.Painter, key+metricsKey(s.metric(), s.Metrics), 1-share, height, func(c draw.Canvas) { p.metricChart(c, s) })
		charts = append(charts, p.right)
	}
	if err == nil && len(s.Logged) > 0 {
		err = p.below.draw(&p.Painter, metricsKey(key, s.Logged), 1, loggedHeight(s), func(c draw.Canvas) { p.loggedCharts(c, s) })
		charts = append(charts, p.below)
	}
	return charts, err
}

// draw paints the chart, unless key is unchanged.
func (k *drawing) draw(p *chart.Painter, key string, share float64, height vg.Length, paint func(c draw.Canvas)) error {
	if key == k.key {
		return nil
	}
	*k = drawing{share: share}
	p.Areas = nil
	svg, err := chart.SVG(chart.Width*vg.Length(share), height, func(c draw.Canvas) {
		if share < 1 { // leave a gap to its neighbour
			if share == lossShare {
				c.Max.X -= chartGap
			} else {
				c.Min.X += chartGap
			}
		}
		paint(c)
	})
	if err != nil {
		return err
	}
	k.key, k.svg, k.src = key, svg, base64.StdEncoding.EncodeToString(svg)
	k.areas = chart.AreasJSON("", chart.Width*vg.Length(share), height, false, p.Areas)
	return nil
}

// metricsKey returns a key of drawn curves and of their title.
func metricsKey(title string, curves []Series) string {
	var b strings.Builder
	b.WriteString(title)
	for _, m := range curves {
		p, _ := lastOf(m.Points)
		fmt.Fprintf(&b, " %q %d %v", m.Name, len(m.Points), p)
	}
	return b.String()
}

// picture returns the charts below a title line. What has ended without a step, such as a ranking of pairs,
// has no charts: they would be empty.
func (p *painter) picture(s *Snapshot) (chart.Picture, error) {
	p.loss.Take(s.Loss)
	charts := chartHeight(s) + int(loggedHeight(s))
	bare := s.State == screen.Done && len(s.Loss) == 0 && len(s.Logged) == 0 && !hasMetrics(s)
	if bare {
		charts = 0
	}
	h := charts + screen.HeadHeight
	note := screen.OneLine(s.Detail)
	if note != "" {
		h += screen.NoteHeight
	}
	return p.Picture(chart.Width, vg.Length(h), chart.SavedRoom(), func(c draw.Canvas) {
		p.header(c, s, note)
		if bare {
			return
		}
		c.Max.Y = vg.Length(charts)
		below := c
		c.Min.Y, below.Max.Y = loggedHeight(s), loggedHeight(s)
		p.charts(c, s)
		p.loggedCharts(below, s)
	})
}

// header draws the title, the state and the progress of the run.
func (p *painter) header(c draw.Canvas, s *Snapshot, note string) {
	y := c.Max.Y - 11
	state, sty := s.state(), p.Bold(9, p.Ink())
	right := p.Text(8, p.Ink())
	right.XAlign = draw.XRight
	extent := extentOf(s)
	c.FillText(right, vg.Point{X: c.Max.X - 4, Y: y}, extent)
	room := c.Max.X - right.Width(extent) - 30 - sty.Width(state)
	title := p.Fit(sty, screen.OneLine(s.Title), room)
	c.FillText(sty, vg.Point{X: 4, Y: y}, title)
	x := vg.Length(4)
	if title != "" {
		x += sty.Width(title) + 10
	}
	col := screen.StateColor(state)
	c.SetColor(col)
	dot := vg.Path{}
	dot.Move(vg.Point{X: x + 6, Y: y + 3})
	dot.Arc(vg.Point{X: x + 3, Y: y + 3}, 3, 0, 2*math.Pi)
	dot.Close()
	c.Fill(dot)
	word := p.Text(9, p.Ink())
	if state == screen.Failed || state == screen.Interrupted {
		word = p.Bold(9, p.Ink())
	}
	c.FillText(word, vg.Point{X: x + 10, Y: y}, state)
	if note != "" {
		small := p.Text(8, p.Ink())
		c.FillText(small, vg.Point{X: 4, Y: y - screen.NoteHeight}, p.Fit(small, note, c.Max.X-8))
	}
}

// extentOf returns "20 epochs · 1,800 steps · learning rate 0.003 · 02:13", as far as known.
func extentOf(s *Snapshot) string {
	var parts []string
	switch {
	case s.Epoch > 0 && s.State == screen.Done && s.Epoch >= s.Epochs:
		parts = append(parts, screen.Plural(s.Epoch, "epoch"))
	case s.Epoch > 0:
		parts = append(parts, "epoch "+screen.Of(s.Epoch, s.Epochs))
	}
	if n := len(s.Loss); n > 0 {
		parts = append(parts, screen.Plural(s.Loss[n-1].Step, "step"))
	}
	if lr, ok := lastOf(s.LR); ok {
		parts = append(parts, "learning rate "+screen.Short(lr.Y))
	}
	if s.Elapsed > 0 {
		parts = append(parts, screen.Elapsed(s.Elapsed))
	}
	return strings.Join(parts, " · ")
}

// PNG draws the final figure of a run for a file: loss and accuracy below a line that describes
// them, at twice the resolution of a standard screen. It is compressed fast: the default level takes three times as long and saves 8 % of the bytes.
func PNG(s Snapshot) ([]byte, error) {
	var p painter
	p.Level = png.BestSpeed
	return screen.Guarded(func() ([]byte, error) {
		pic, err := p.picture(&s)
		return pic.PNG, err
	})
}
