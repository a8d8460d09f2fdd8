package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/phrase"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// HeatMap is a matrix whose values are drawn in shades: white for 0 and the darkest for the largest absolute value,
// blue above 0 and orange below it.
type HeatMap struct {
	Title    string
	Rows     []string // names from top to bottom
	Columns  []string
	Values   [][]float64 // [rows][columns]; one that is not finite is an empty cell
	Texts    [][]string  // written into the cells if there is room; nil means the values
	RowLabel string      // what the rows are, written above their names
	ColLabel string
	// Max is the absolute value with the darkest shade; 0 means the largest one.
	Max float64
}

func (h *HeatMap) check() error {
	if len(h.Values) != len(h.Rows) {
		return fmt.Errorf("HeatMap: there are %s and Values has %s", phrase.Count(len(h.Rows), "row name"), phrase.Count(len(h.Values), "row"))
	}
	for i, row := range h.Values {
		if len(row) != len(h.Columns) {
			return fmt.Errorf("HeatMap: there are %s and row %d of Values has %s", phrase.Count(len(h.Columns), "column name"), i, phrase.Count(len(row), "number"))
		}
		if h.Texts != nil && (len(h.Texts) != len(h.Rows) || len(h.Texts[i]) != len(h.Columns)) {
			return fmt.Errorf("HeatMap: Texts has not the shape of Values, %d × %d", len(h.Rows), len(h.Columns))
		}
	}
	return nil
}

func (h *HeatMap) words() string {
	return fmt.Sprintf("%s: %s, %s", h.Title, phrase.Count(len(h.Rows), "row"), phrase.Count(len(h.Columns), "column"))
}

// shades is the number of shades of a colour: few, since a picture has at most 256 colours.
const shades = 32

// shade returns the colour of a share from -1 to 1.
func shade(v float64) color.NRGBA {
	ink := color.NRGBA{0x12, 0x5a, 0x94, 255} // chart.Blue and chart.Orange, darker, so that white text is readable on them
	if v < 0 {
		ink, v = color.NRGBA{0xa3, 0x46, 0x00, 255}, -v
	}
	v = math.Round(shades*min(v, 1)) / shades
	mix := func(x uint8) uint8 { return uint8(math.Round(255 - (255-float64(x))*v)) }
	return color.NRGBA{mix(ink.R), mix(ink.G), mix(ink.B), 255}
}

// paler reports whether white text has more contrast to a colour than the page's ink, by the relative luminance of WCAG 2.
func paler(c color.NRGBA) bool {
	linear := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	light := func(c color.NRGBA) float64 {
		return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
	}
	ink := (&chart.Painter{OnPage: true}).Ink()
	return 1.05/(light(c)+0.05) > (light(c)+0.05)/(light(ink)+0.05)
}

// cleaned returns names as they can be shown.
func cleaned(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = phrase.CleanLine(n)
	}
	return out
}

func (h *HeatMap) paint(p *chart.Painter, c draw.Canvas) {
	c = titled(p, c, h.Title)
	c.Max.X -= 4
	rows, cols := len(h.Rows), len(h.Columns)
	if rows == 0 || cols == 0 {
		p.Empty(c, "no values")
		return
	}
	style := p.Text(7.5, p.Ink())
	wide := c.Max.X - c.Min.X
	names := style.Width(h.RowLabel)
	for _, r := range h.Rows {
		names = max(names, style.Width(p.Fit(style, phrase.CleanLine(r), wide/3)))
	}
	left, top := c.Min.X+names+4, c.Max.Y-2
	w := (c.Max.X - left) / vg.Length(cols)
	widest := vg.Length(12)
	for _, name := range h.Columns {
		widest = max(widest, style.Width(phrase.CleanLine(name)))
	}
	// Names that are wider than their columns are turned, if the columns are wide enough for a line of text.
	turned := widest+4 > w && w >= 7
	under := vg.Length(12)
	if turned {
		under = min(widest+4, (c.Max.Y-c.Min.Y)/3)
	}
	bottom := c.Min.Y + under + 12
	if h.RowLabel != "" {
		style.YAlign = draw.YTop
		c.FillText(style, vg.Point{X: c.Min.X, Y: top + 1}, h.RowLabel)
		top -= 11
	}
	tall := (top - bottom) / vg.Length(rows)
	most := h.Max
	if most <= 0 {
		for _, row := range h.Values {
			lo, hi := limits(row)
			most = max(most, math.Abs(lo), math.Abs(hi))
		}
	}
	for i, row := range h.Values {
		for j, v := range row {
			if !chart.Finite(v) {
				continue
			}
			x, y := left+vg.Length(j)*w, top-vg.Length(i)*tall
			seam := min(0.4, w/8, tall/8)
			share := 0.0
			if most > 0 {
				share = v / most
			}
			if fill := shade(share); p.OnPage || fill != (color.NRGBA{255, 255, 255, 255}) {
				// White cells are painted, too: a cell of a notebook with a dark theme shows the picture without its page.
				c.FillPolygon(fill, []vg.Point{{X: x + seam, Y: y - seam}, {X: x + w - seam, Y: y - seam}, {X: x + w - seam, Y: y - tall + seam}, {X: x + seam, Y: y - tall + seam}})
			}
			text := strconv.FormatFloat(v, 'g', 3, 64)
			if h.Texts != nil {
				text = phrase.CleanLine(h.Texts[i][j])
			}
			in := p.Text(7, p.Ink())
			if p.OnPage {
				in = p.Bold(7, color.Black)
			}
			if paler(shade(share)) {
				in = p.Bold(7, color.White)
			}
			if in.Width(text) <= w-2 && tall >= 8 {
				in.XAlign, in.YAlign = draw.XCenter, draw.YCenter
				c.FillText(in, vg.Point{X: x + w/2, Y: y - tall/2}, text)
			}
		}
	}
	data := vg.Rectangle{Min: vg.Point{X: left, Y: bottom}, Max: vg.Point{X: c.Max.X, Y: top}}
	p.Grid(phrase.CleanLine(h.Title), c.Rectangle, data, &chart.Grid{Rows: cleaned(h.Rows), Columns: cleaned(h.Columns), RowLabel: h.RowLabel, ColLabel: h.ColLabel, Values: h.Values, Texts: h.Texts})
	// Names of rows and columns, as many as have room.
	every := func(room vg.Length, need float64) int { return max(1, int(math.Ceil(need/room.Points()))) }
	style.XAlign, style.YAlign = draw.XRight, draw.YCenter
	for i := 0; i < rows; i += every(tall, 8.5) {
		c.FillText(style, vg.Point{X: left - 3, Y: top - (vg.Length(i)+0.5)*tall}, p.Fit(style, phrase.CleanLine(h.Rows[i]), wide/3))
	}
	step, room := 1, under
	if turned {
		style.Rotation, style.XAlign, style.YAlign = math.Pi/2, draw.XRight, draw.YCenter
	} else {
		style.XAlign, style.YAlign = draw.XCenter, draw.YTop
		step = every(w, min(widest, 34).Points()+4)
		room = vg.Length(step)*w - 2
	}
	for j := 0; j < cols; j += step {
		c.FillText(style, vg.Point{X: left + (vg.Length(j)+0.5)*w, Y: bottom - 2}, p.Fit(style, phrase.CleanLine(h.Columns[j]), room))
	}
	style.Rotation = 0
	if h.ColLabel != "" {
		style.XAlign, style.YAlign = draw.XRight, draw.YBottom
		c.FillText(style, vg.Point{X: c.Max.X, Y: c.Min.Y}, h.ColLabel)
	}
}

func (h *HeatMap) copied() drawing {
	c := *h
	c.Rows, c.Columns, c.Values, c.Texts = slices.Clone(h.Rows), slices.Clone(h.Columns), slices.Clone(h.Values), slices.Clone(h.Texts)
	for i := range c.Values {
		c.Values[i] = slices.Clone(c.Values[i])
	}
	for i := range c.Texts {
		c.Texts[i] = slices.Clone(c.Texts[i])
	}
	return &c
}
