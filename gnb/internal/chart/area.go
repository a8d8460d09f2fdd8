package chart

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Area is a chart on a picture and the values that it shows, for a page that shows the value under the pointer.
// Positions are in points, from the lower left corner of the picture.
type Area struct {
	Title string // distinguishes the chart from others of the picture
	Unit  string // of the x axis
	Box   vg.Rectangle
	Data  vg.Rectangle // between the axes
	X, Y  Axis
	Lines []Line
	// Whole says that values of x are whole numbers, Smooth that lines may be smoothed, because they have values over time,
	// and Dots that points are not connected, and in any order.
	Whole, Smooth, Dots bool
	Marks               []Mark
	Grid                *Grid
}

// Line is a curve of an Area.
type Line struct {
	Name   string
	Color  color.NRGBA
	Points []XY // ascending X; a Y that is not finite is a gap
}

// Mark is a bar or a path of an Area, about which the page shows a text.
type Mark struct {
	Text  string // lines
	Color color.NRGBA
	At    []vg.Point // two opposite corners of a bar, or the points of a path
	Bar   bool
}

// Grid is a matrix of an Area, drawn in cells of equal size that fill the area between the axes.
type Grid struct {
	Rows, Columns      []string
	RowLabel, ColLabel string      // what rows and columns are
	Values             [][]float64 // [rows][columns]
	Texts              [][]string  // shown in the place of the values, unless it is nil
}

// Area notes that a chart was drawn: pl into c, which is a part of the chart without its title, whole. It returns the
// note, to be completed before the next chart.
func (p *Painter) Area(title string, pl *Plot, c, whole draw.Canvas, lines []Line) *Area {
	a := p.area(title, whole.Rectangle, pl.DataCanvas(c).Rectangle)
	a.Unit, a.X, a.Y, a.Lines = pl.xlabel, pl.x, pl.y, lines
	return a
}

// Marks notes marks that were drawn in the part data of box.
func (p *Painter) Marks(title string, box, data vg.Rectangle, marks []Mark) {
	p.area(title, box, data).Marks = marks
}

// Grid notes a matrix that was drawn in the part data of box.
func (p *Painter) Grid(title string, box, data vg.Rectangle, g *Grid) {
	p.area(title, box, data).Grid = g
}

func (p *Painter) area(title string, box, data vg.Rectangle) *Area {
	same := func(a Area) bool { return a.Title == title }
	for base, n := title, 2; slices.ContainsFunc(p.Areas, same); n++ {
		title = fmt.Sprintf("%s (%d)", base, n)
	}
	p.Areas = append(p.Areas, Area{Title: title, Box: box, Data: data})
	return &p.Areas[len(p.Areas)-1]
}

// XYs returns points as those of a Line, thinned.
func XYs(points []Point) []XY {
	points = Thin(points)
	out := make([]XY, len(points))
	for i, q := range points {
		out[i] = XY{float64(q.Step), q.Y}
	}
	return out
}

// Bounds of what AreasJSON keeps of all charts of a picture.
const (
	maxValues = 5000     // points of lines: about 80 kB
	maxLines  = 60       // of one chart
	maxMarks  = 48 << 10 // bytes of marks and of grids; the first ones are kept
	maxText   = 400      // characters of one text
)

// valueDigits is the number of digits of a curve's values: one more than the page shows.
const valueDigits = 5

// AreasJSON returns the charts of a picture as JSON, for the script ([Script]). tail, if it is not empty, is the end of
// the picture's own data in base64, by which the page finds it.
// Between single quotes it is an attribute of HTML as it is.
func AreasJSON(tail string, width, height vg.Length, page bool, areas []Area) string {
	return areasJSON(tail, width, height, page, areas, 1)
}

// SavedRoom is the number of bytes that a picture with its charts may take in a saved notebook, beside the script.
func SavedRoom() int { return 200_000 - len(Pointer("", "{}")) }

// savedAreas returns the charts of a PNG on a page as JSON, with fewer values if the picture is large; "" if there is no
// room for them.
func savedAreas(png []byte, width, height vg.Length, areas []Area, most int) string {
	for less := 1; less <= 64; less *= 4 {
		text := areasJSON(Tail(png), width, height, true, areas, less)
		if base64.StdEncoding.EncodedLen(len(png))+len(text) <= most {
			return text
		}
	}
	return ""
}

// areasJSON is AreasJSON with 1/less of the values.
func areasJSON(tail string, width, height vg.Length, page bool, areas []Area, less int) string {
	lines, values := 0, 0
	for i := range areas {
		shown := areas[i].Lines[:min(len(areas[i].Lines), maxLines)]
		lines += len(shown)
		for _, l := range shown {
			values += len(l.Points)
		}
	}
	most := maxValues
	if values > maxValues/less {
		most = max(maxValues/less/lines, 2)
	}
	room := maxMarks / less
	b := fmt.Appendf(nil, `{"tail":%s,"size":[%.6g,%.6g],"page":%v,"charts":[`, quoted(tail), width.Points(), height.Points(), page)
	rect := func(r vg.Rectangle) []byte { // from the upper left corner
		return fmt.Appendf(nil, `[%.5g,%.5g,%.5g,%.5g]`, r.Min.X.Points(), (height - r.Max.Y).Points(), r.Size().X.Points(), r.Size().Y.Points())
	}
	for i := range areas {
		a := &areas[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"title":%s,"unit":%s,"box":%s,"data":%s,"x":%s,"y":%s,"whole":%v,"smooth":%v,"dots":%v,"lines":[`, quoted(a.Title), quoted(a.Unit), rect(a.Box), rect(a.Data),
			numbers([]XY{{a.X.Min, a.X.Max}}, -1), numbers([]XY{{a.Y.Min, a.Y.Max}}, -1), a.Whole, a.Smooth, a.Dots)
		for k, l := range a.Lines[:min(len(a.Lines), maxLines)] {
			if k > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `{"name":%s,"color":"%s","points":%s}`, quoted(l.Name), hex(l.Color), numbers(thin(l.Points, most), valueDigits))
		}
		b = append(b, `],"marks":[`...)
		for k := range a.Marks {
			m := a.Marks[k].json(height)
			if room -= len(m); room < 0 {
				break
			}
			if k > 0 {
				b = append(b, ',')
			}
			b = append(b, m...)
		}
		b = append(b, ']')
		if a.Grid != nil {
			g := a.Grid.json()
			if room -= len(g); room >= 0 {
				b = append(append(b, `,"grid":`...), g...)
			}
		}
		b = append(b, '}')
	}
	return string(append(b, ']', '}'))
}

// quoted returns text as a JSON string that can stand between single quotes in HTML.
func quoted(s string) []byte {
	if r := []rune(s); len(r) > maxText {
		s = string(r[:maxText]) + "…"
	}
	b, err := json.Marshal(s) // writes <, > and & as numbers
	if err != nil {
		return []byte(`""`)
	}
	return bytes.ReplaceAll(b, []byte("'"), []byte(`\u0027`))
}

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

func (m *Mark) json(height vg.Length) []byte {
	at := make([]XY, len(m.At))
	for i, q := range m.At {
		at[i] = XY{math.Round(10*q.X.Points()) / 10, math.Round(10*(height-q.Y).Points()) / 10}
	}
	return fmt.Appendf(nil, `{"text":%s,"color":"%s","bar":%v,"at":%s}`, quoted(m.Text), hex(m.Color), m.Bar, numbers(at, -1))
}

func (g *Grid) json() []byte {
	list := func(texts []string) []byte {
		b := []byte{'['}
		for i, s := range texts {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, quoted(s)...)
		}
		return append(b, ']')
	}
	b := fmt.Appendf(nil, `{"rows":%s,"columns":%s,"rowLabel":%s,"colLabel":%s,"cells":[`, list(g.Rows), list(g.Columns), quoted(g.RowLabel), quoted(g.ColLabel))
	for i, row := range g.Values {
		for j, v := range row {
			if i+j > 0 {
				b = append(b, ',')
			}
			if g.Texts != nil {
				b = append(b, quoted(g.Texts[i][j])...)
			} else {
				b = number(b, v, valueDigits)
			}
		}
	}
	return append(b, ']', '}')
}

// numbers returns x and y of all points as one JSON array, with the given number of digits (-1: all), but whole x completely; a
// value that cannot be drawn is null.
func numbers(p []XY, digits int) []byte {
	b := []byte{'['}
	for i, q := range p {
		if i > 0 {
			b = append(b, ',')
		}
		x := digits
		if q.X == math.Trunc(q.X) { // steps may be more than digits
			x = -1
		}
		b = number(b, q.X, x)
		b = append(b, ',')
		b = number(b, q.Y, digits)
	}
	return append(b, ']')
}

func number(b []byte, v float64, digits int) []byte {
	if !Finite(v) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', digits, 64)
}
