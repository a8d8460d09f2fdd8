package boards

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Batch holds the measurements of one mini-batch, for [BatchPNG].
type Batch struct {
	Title, Note string
	Hops        []Hop  // the seeds' first
	Spans       []Span // of a step, one after the other
	// Nodes are the nodes sampled around one seed, Nodes[0]; Edges are pairs of indices into it,
	// source and destination. LeftOut more nodes are not shown.
	Nodes   []GraphNode
	Edges   [][2]int
	LeftOut int
}

// Hop is a hop of a [Batch].
type Hop struct {
	Edges, Sources int
	Duplication    float64 // mean edges per newly reached source
}

// Span is one stage of a step.
type Span struct {
	Name           string
	Start, Seconds float64
	Bytes          int64
}

// GraphNode is a node of a drawn graph, with the hop at which it was reached.
type GraphNode struct {
	Label string
	Hop   int
}

// BatchPNG draws a batch at twice the resolution of a plain screen: the
// neighbourhood of a seed, and the time line of a step.
func BatchPNG(b Batch) (chart.Picture, error) {
	return screen.Titled(b.Title, b.Note, func(at *chart.Painter, dc draw.Canvas) {
		p := pen{at}
		if len(b.Nodes) == 0 && len(b.Spans) == 0 {
			p.Empty(dc, "nothing was sampled")
			return
		}
		a := dc.Max.X * 0.36
		p.neighborhood(chart.Part(dc, 0, a-8), b)
		p.timeline(chart.Part(dc, a, dc.Max.X), b)
	})
}

// ShowBatch shows a batch in the current cell, with text for viewers without pictures; outside a
// notebook it does nothing. It returns when the notebook has received the picture.
func ShowBatch(b Batch, text string) error {
	return screen.ShowPicture(func() (chart.Picture, error) { return BatchPNG(b) }, text, screen.Options{})
}

// hopColors are the colours of nodes by hop, the seed's first.
var hopColors = []color.NRGBA{chart.Orange, chart.Blue, chart.Green, chart.Purple, chart.Amber, chart.Sky}

// place puts nodes on circles around the first node, one circle per hop.
func place(nodes []GraphNode, edges [][2]int) []vg.Point {
	hops := make([]int, len(nodes))
	for i, n := range nodes {
		hops[i] = n.Hop
	}
	return chart.Circles(hops, edges)
}

// neighborhood draws the nodes and edges sampled around the seed.
func (p pen) neighborhood(c draw.Canvas, b Batch) {
	title := "sampled around a seed"
	if len(b.Nodes) > 0 {
		title = "sampled around node " + b.Nodes[0].Label
	}
	c = p.Titled(c, title)
	foot := fmt.Sprintf("%s, %s", screen.Plural(len(b.Nodes), "node"), screen.Plural(len(b.Edges), "edge"))
	if b.LeftOut > 0 {
		foot += fmt.Sprintf("; %s not shown", screen.Plural(b.LeftOut, "node"))
	}
	c.FillText(p.Text(7.5, p.Ink()), vg.Point{X: c.Min.X + 4, Y: c.Min.Y + 4}, foot)
	c.Min.Y += 14
	r := min(c.Max.X-c.Min.X, c.Max.Y-c.Min.Y)/2 - 6
	if r <= 0 || len(b.Nodes) == 0 {
		return
	}
	p.hopLegend(c, b.Nodes)
	mid := c.Center()
	at := place(b.Nodes, b.Edges)
	for i := range at {
		at[i] = vg.Point{X: mid.X + r*at[i].X, Y: mid.Y + r*at[i].Y}
	}
	line := draw.LineStyle{Color: chart.Alpha(chart.Ink, 0x70), Width: vg.Points(0.6)}
	if len(b.Edges) > 150 {
		line.Color = chart.Alpha(chart.Ink, 0x40)
	}
	for _, e := range b.Edges {
		s, d := at[e[0]], at[e[1]]
		c.StrokeLine2(line, s.X, s.Y, d.X, d.Y)
	}
	size := vg.Points(3.2)
	if len(at) > 60 {
		size = vg.Points(2)
	}
	for i := len(at) - 1; i >= 0; i-- {
		g := draw.GlyphStyle{Color: hopColors[b.Nodes[i].Hop%len(hopColors)], Radius: size, Shape: draw.CircleGlyph{}}
		if i == 0 {
			g.Radius = vg.Points(4.2)
		}
		c.DrawGlyph(g, at[i])
	}
	if len(at) <= 24 {
		for i, n := range b.Nodes {
			c.FillText(p.Text(6.5, p.Ink()), vg.Point{X: at[i].X + 4.5, Y: at[i].Y - 2}, n.Label)
		}
	}
}

// hopLegend draws the legend of the hops' colours in a free corner.
func (p pen) hopLegend(c draw.Canvas, nodes []GraphNode) {
	hops := 0
	for _, n := range nodes {
		hops = max(hops, n.Hop)
	}
	at := vg.Point{X: c.Min.X + 7, Y: c.Max.Y - 6}
	for hop := range min(hops, len(hopColors)-1) + 1 {
		name := fmt.Sprintf("hop %d", hop)
		if hop == 0 {
			name = "seed"
		}
		c.DrawGlyph(draw.GlyphStyle{Color: hopColors[hop], Radius: vg.Points(2.4), Shape: draw.CircleGlyph{}}, at)
		c.FillText(p.Text(7.5, p.Ink()), vg.Point{X: at.X + 6, Y: at.Y - 2.7}, name)
		at.Y -= 10.5
	}
}

// timeline draws one bar per span, below each other, and describes the hops.
func (p pen) timeline(c draw.Canvas, b Batch) {
	c = p.Titled(c, "a step, in ms")
	small := p.Text(7.5, p.Ink())
	foot := c.Min.Y + 4
	for i := len(b.Hops) - 1; i >= max(0, len(b.Hops)-4); i-- {
		h := b.Hops[i]
		txt := fmt.Sprintf("hop %d: %s to %s; a new one is used by %.2f of them", i+1, screen.Plural(h.Edges, "edge"), screen.Plural(h.Sources, "source"), h.Duplication)
		c.FillText(small, vg.Point{X: c.Min.X + 4, Y: foot}, p.Fit(small, txt, c.Max.X-c.Min.X-8))
		foot += 10.5
	}
	c.Min.Y = foot + 2
	if len(b.Spans) == 0 {
		return
	}
	names, values := vg.Length(0), vg.Length(0)
	end := 0.0
	labels := make([]string, len(b.Spans))
	for i, s := range b.Spans {
		labels[i] = fmt.Sprintf("%.3g ms · %s", 1e3*s.Seconds, phrase.Bytes(s.Bytes))
		names, values = max(names, small.Width(s.Name)), max(values, small.Width(labels[i]))
		end = max(end, s.Start+s.Seconds)
	}
	left, right := c.Min.X+names+8, c.Max.X-values-8
	if right <= left || end <= 0 {
		return
	}
	others := 0
	row := min((c.Max.Y-c.Min.Y)/vg.Length(len(b.Spans)), 15)
	for i, s := range b.Spans {
		y := c.Max.Y - vg.Length(i+1)*row
		from := left + (right-left)*vg.Length(s.Start/end)
		to := max(from+0.5, left+(right-left)*vg.Length((s.Start+s.Seconds)/end))
		c.FillText(small, vg.Point{X: c.Min.X + 4, Y: y + 3}, s.Name)
		stage, _, _ := strings.Cut(s.Name, ",") // as in "forward, layer 1"
		c.FillPolygon(live.StageColor(stage, &others), []vg.Point{{X: from, Y: y + 1}, {X: to, Y: y + 1}, {X: to, Y: y + row - 2}, {X: from, Y: y + row - 2}})
		c.FillText(small, vg.Point{X: right + 6, Y: y + 3}, labels[i])
	}
}
