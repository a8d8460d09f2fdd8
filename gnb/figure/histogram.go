package figure

import (
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/phrase"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Histogram is a chart of how often values occur. Values that are not finite are left out, and counted in its words.
type Histogram struct {
	Title  string // names the values
	Values []float64
	Bins   int // the number of bars; 0 means 30, and at most 200 are drawn
	XLabel string
}

// Numbers returns numbers of any kind as a chart takes them.
func Numbers[T ~float32 | ~float64 | ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32](values []T) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// Limits of the number of bars.
const (
	usualBins = 30
	mostBins  = 200
)

func (h *Histogram) check() error {
	if h.Bins < 0 {
		return fmt.Errorf("Histogram: Bins is %d; it can be 0 for the default of %d, or a number of bars", h.Bins, usualBins)
	}
	return nil
}

// bins is what is drawn of a histogram.
type bins struct {
	title, xlabel  string
	edges, counts  []float64 // one edge more than counts
	sum, squares   float64
	finite, others int
}

// bins counts the values.
func (h *Histogram) bins() *bins {
	b := &bins{title: h.Title, xlabel: h.XLabel}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range h.Values {
		if !chart.Finite(v) {
			b.others++
			continue
		}
		b.finite++
		b.sum += v
		b.squares += v * v
		lo, hi = min(lo, v), max(hi, v)
	}
	if b.finite == 0 {
		return b
	}
	n := h.Bins
	if n == 0 {
		n = usualBins
	}
	n = min(n, mostBins)
	if hi-lo <= 1e-12*max(math.Abs(lo), math.Abs(hi)) { // one value
		d := max(math.Abs(lo)*1e-3, 1e-3)
		lo, hi = lo-d, hi+d
	}
	b.edges, b.counts = make([]float64, n+1), make([]float64, n)
	for i := range b.edges {
		b.edges[i] = lo + (hi-lo)*float64(i)/float64(n)
	}
	for _, v := range h.Values {
		if chart.Finite(v) {
			b.counts[min(max(int(float64(n)*(v-lo)/(hi-lo)), 0), n-1)]++
		}
	}
	return b
}

func (h *Histogram) words() string { return h.bins().words() }

func (h *Histogram) paint(p *chart.Painter, c draw.Canvas) { h.bins().paint(p, c) }

func (h *Histogram) copied() drawing { return h.bins() }

func (b *bins) check() error { return nil }

func (b *bins) copied() drawing { return b }

func (b *bins) words() string {
	text := b.title + ": "
	if b.title == "" {
		text = ""
	}
	if b.finite == 0 {
		text += "no finite values"
	} else {
		text += fmt.Sprintf("%s from %.4g to %.4g, mean %.4g", phrase.Count(b.finite, "value"), b.edges[0], b.edges[len(b.edges)-1], b.sum/float64(b.finite))
	}
	if b.others > 0 {
		text += fmt.Sprintf("; %s not finite", phrase.Count(b.others, "value"))
	}
	return text
}

func (b *bins) paint(p *chart.Painter, c draw.Canvas) {
	c = titled(p, c, b.title)
	if b.finite == 0 {
		p.Empty(c, "no finite values")
		return
	}
	x, xt := axis(b.edges[0], b.edges[len(b.edges)-1], 5, 0)
	y, yt := axis(0, slices.Max(b.counts), 4, 1)
	pl := p.NewPlot(x, y, xt, yt, b.xlabel)
	var marks []chart.Mark
	pl.Add(chart.PlotFunc(func(c draw.Canvas, at func(x, y float64) vg.Point) {
		for i, n := range b.counts {
			q, r := at(b.edges[i], 0), at(b.edges[i+1], n)
			seam := min((r.X-q.X)/8, 0.4)
			q.X, r.X = q.X+seam, r.X-seam
			if n > 0 {
				c.FillPolygon(chart.Blue, []vg.Point{q, {X: r.X, Y: q.Y}, r, {X: q.X, Y: r.Y}})
			}
			// The pointer finds a low bar from anywhere above it.
			marks = append(marks, chart.Mark{Text: fmt.Sprintf("%.0f\n%.4g to %.4g", n, b.edges[i], b.edges[i+1]), Color: chart.Blue, At: []vg.Point{q, {X: r.X, Y: c.Max.Y}}, Bar: true})
		}
	}))
	pl.Draw(c)
	p.Marks(phrase.CleanLine(b.title), c.Rectangle, pl.DataCanvas(c).Rectangle, marks)
}
