// Package figure draws pictures of one's own numbers in the look of GraphNB's panels: points, bars, curves and heat
// maps, in a cell of a notebook, as PNG and as SVG.
//
// # Basics
//
// A [Figure] holds charts, which it places side by side, three to a row:
//
//	f := figure.New("planted").
//		Lines(figure.Lines{Title: "loss", XLabel: "step", Curves: []figure.Curve{{Name: "train", X: steps, Y: losses}}}).
//		Bars(figure.Bars{Title: "accuracy by class", Names: names, Values: accuracies, Max: 1})
//	err := f.Show()
//
// Show draws in the current cell and does nothing elsewhere; [Figure.Save] writes a file. In a trusted notebook the
// picture answers to the pointer: it shows the values of points, bars and cells, and a drag with the mouse button
// pressed zooms into points and curves.
//
// Worker.Log of package gnb takes figures, the charts alone, a [Table], and pictures ([image.Image]): they appear below the
// run's panel, in its directory and in TensorBoard. It copies them.
//
//	w.Log("weights", figure.Histogram{Values: figure.Numbers(weights)}, "mistakes", figure.Table{Head: head, Rows: rows})
//
// # Caveats
//
// A figure keeps the slices of its charts and reads them when it draws. Numbers that are not finite are left out, as
// gaps of a curve and as empty cells of a heat map.
//
// The colours are those of Okabe and Ito (2008), which colour-blind readers can distinguish.
package figure

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Figure is a picture of charts below a title. Make one with [New].
type Figure struct {
	title, note string
	charts      []drawing
}

// drawing is a chart that can be drawn, and described in words.
type drawing interface {
	check() error
	paint(p *chart.Painter, c draw.Canvas) // notes what the pointer shows, too
	words() string
	copied() drawing // without the slices of its user
}

// New returns a figure without charts.
func New(title string) *Figure { return &Figure{title: title} }

// Note sets the line below the title. It returns f.
func (f *Figure) Note(text string) *Figure {
	f.note = text
	return f
}

// Scatter adds a chart of points. It returns f, as the methods below do.
func (f *Figure) Scatter(s Scatter) *Figure { return f.add(&s) }

// Bars adds a chart of bars.
func (f *Figure) Bars(b Bars) *Figure { return f.add(&b) }

// Lines adds a chart of curves.
func (f *Figure) Lines(l Lines) *Figure { return f.add(&l) }

// Histogram adds a chart of how often values occur.
func (f *Figure) Histogram(h Histogram) *Figure { return f.add(&h) }

// HeatMap adds a matrix drawn in shades.
func (f *Figure) HeatMap(h HeatMap) *Figure { return f.add(&h) }

// Network adds a small graph.
func (f *Figure) Network(n Network) *Figure { return f.add(&n) }

// copied returns the figure without the slices of its user.
func (f *Figure) copied() *Figure {
	c := &Figure{title: f.title, note: f.note}
	for _, d := range f.charts {
		c.add(d.copied())
	}
	return c
}

func (f *Figure) add(d drawing) *Figure {
	f.charts = append(f.charts, d)
	return f
}

// Heights in points.
const (
	titleHeight = 16
	noteHeight  = 12
	gap         = 10 // between two charts
)

// most is the largest number of charts of one figure: more cannot be read.
const most = 24

// grid returns the numbers of columns and rows.
func (f *Figure) grid() (cols, rows int) {
	n := len(f.charts)
	switch {
	case n <= 3:
		cols = max(n, 1)
	case n == 4:
		cols = 2
	default:
		cols = 3
	}
	return cols, max((n+cols-1)/cols, 1)
}

// rowHeight is the height of a row of charts. A heat map alone is as high as its rows need.
func (f *Figure) rowHeight() vg.Length {
	if len(f.charts) == 1 {
		if h, ok := f.charts[0].(*HeatMap); ok {
			return vg.Length(min(max(260, 9*len(h.Rows)+110), 560))
		}
	}
	if cols, _ := f.grid(); cols < 3 {
		return 260
	}
	return chart.Height
}

func (f *Figure) height() vg.Length {
	_, rows := f.grid()
	h := f.rowHeight()*vg.Length(rows) + titleHeight
	if f.note != "" {
		h += noteHeight
	}
	return vg.Length(math.Ceil(float64(h)/3) * 3) // whole CSS pixels
}

// check returns the first mistake in the charts.
func (f *Figure) check() error {
	switch n := len(f.charts); {
	case n == 0:
		return errors.New("figure: the figure has no charts; add one with Scatter, Bars, Lines, Histogram, HeatMap or Network")
	case n > most:
		return fmt.Errorf("figure: the figure has %d charts and at most %d fit; make several figures", n, most)
	}
	for i, d := range f.charts {
		if err := d.check(); err != nil {
			return fmt.Errorf("figure: chart %d, %w", i+1, err)
		}
	}
	return nil
}

func (f *Figure) paint(p *chart.Painter, c draw.Canvas) {
	top := c.Max.Y
	line := func(style text.Style, words string, at vg.Length) {
		c.FillText(style, vg.Point{X: 4, Y: at}, p.Fit(style, phrase.CleanLine(words), c.Max.X-8))
	}
	line(p.Bold(9, p.Ink()), f.title, top-11)
	top -= titleHeight
	if f.note != "" {
		line(p.Text(8, p.Ink()), f.note, top-8)
		top -= noteHeight
	}
	c.Max.X -= 3
	cols, _ := f.grid()
	width := (c.Max.X + gap) / vg.Length(cols)
	for i, d := range f.charts {
		at := c
		at.Min.X = vg.Length(i%cols) * width
		at.Max.X = at.Min.X + width - gap
		at.Max.Y = top - vg.Length(i/cols)*f.rowHeight()
		at.Min.Y = at.Max.Y - f.rowHeight() + 4
		d.paint(p, at)
	}
}

// PNG returns the figure as a PNG on a white page, 660 points wide, at twice the resolution of a standard screen.
func (f *Figure) PNG() ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	pic, err := screen.Draw(f.height(), f.paint)
	if err != nil {
		return nil, fmt.Errorf("figure: %w", err)
	}
	return pic.PNG, nil
}

// SVG returns the figure as an SVG document without a background.
func (f *Figure) SVG() ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	data, err := chart.SVG(chart.Width, f.height(), func(c draw.Canvas) { f.paint(&chart.Painter{OnPage: true}, c) })
	if err != nil {
		return nil, fmt.Errorf("figure: %w", err)
	}
	return data, nil
}

// Save writes the figure to a file whose name ends in .png or .svg. The file appears completely or not at all.
func (f *Figure) Save(path string) error {
	var data []byte
	var err error
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".png":
		data, err = f.PNG()
	case ".svg":
		data, err = f.SVG()
	default:
		return fmt.Errorf("figure: %s ends in %q; the name of a figure's file ends in .png or .svg", path, ext)
	}
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("figure: %w", err)
	}
	return nil
}

// String describes the figure in words: its title and a line for each chart.
func (f *Figure) String() string {
	lines := []string{f.title}
	if f.note != "" {
		lines = append(lines, f.note)
	}
	for _, d := range f.charts {
		lines = append(lines, d.words())
	}
	return phrase.Clean(strings.Join(lines, "\n"))
}

// limits returns the range of the finite values.
func limits(xs ...[]float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, s := range xs {
		for _, x := range s {
			if chart.Finite(x) {
				lo, hi = min(lo, x), max(hi, x)
			}
		}
	}
	if lo > hi {
		return 0, 1
	}
	return lo, hi
}

// axis returns an axis with about n numbers for the values.
func axis(lo, hi float64, n int, empty float64) (a chart.Axis, t chart.Ticks) {
	a.Min, a.Max, t = chart.ValueAxis(lo, hi, n, empty)
	return a, t
}

// Show shows the figure in the current cell, with its text for viewers without pictures; outside a notebook it does
// nothing. It returns when the notebook has the picture.
func (f *Figure) Show() error {
	if err := f.check(); err != nil {
		return err
	}
	err := screen.ShowPicture(func() (chart.Picture, error) { return screen.Draw(f.height(), f.paint) }, f.String(), screen.Options{})
	if err != nil {
		return fmt.Errorf("figure: %w", err)
	}
	return nil
}
