package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/color"
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
}

// Line is a curve of an Area.
type Line struct {
	Name   string
	Color  color.NRGBA
	Points []XY // ascending X; a Y that is not finite is a gap
}

// Area notes that a chart was drawn: pl into c, which is a part of the chart without its title, whole.
func (p *Painter) Area(title string, pl *Plot, c, whole draw.Canvas, lines []Line) {
	p.Areas = append(p.Areas, Area{
		Title: title, Unit: pl.xlabel, Box: whole.Rectangle, Data: pl.DataCanvas(c).Rectangle,
		X: pl.x, Y: pl.y, Lines: lines,
	})
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

// maxValues is how many points of all lines of a picture AreasJSON keeps: about 100 kB.
const maxValues = 6000

// valueDigits is the number of digits of a curve's values, as many as a float32 has.
const valueDigits = 7

// AreasJSON returns the charts of a picture as JSON, for the script ([Script]). tail, if it is not empty, is the end of
// the picture's own data in base64, by which the page finds it.
// Between single quotes it is an attribute of HTML as it is.
func AreasJSON(tail string, width, height vg.Length, page bool, areas []Area) string {
	name := func(s string) []byte {
		b, err := json.Marshal(s) // writes <, > and & as numbers
		if err != nil {
			return []byte(`""`)
		}
		return bytes.ReplaceAll(b, []byte("'"), []byte(`\u0027`))
	}
	lines := 0
	for i := range areas {
		lines += len(areas[i].Lines)
	}
	most := max(maxValues/max(lines, 1), 2)
	b := fmt.Appendf(nil, `{"tail":%s,"size":[%.6g,%.6g],"page":%v,"charts":[`, name(tail), width.Points(), height.Points(), page)
	rect := func(r vg.Rectangle) []byte { // from the upper left corner
		return fmt.Appendf(nil, `[%.5g,%.5g,%.5g,%.5g]`, r.Min.X.Points(), (height - r.Max.Y).Points(), r.Size().X.Points(), r.Size().Y.Points())
	}
	for i := range areas {
		a := &areas[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"title":%s,"unit":%s,"box":%s,"data":%s,"x":%s,"y":%s,"lines":[`, name(a.Title), name(a.Unit), rect(a.Box), rect(a.Data),
			numbers([]XY{{a.X.Min, a.X.Max}}, -1), numbers([]XY{{a.Y.Min, a.Y.Max}}, -1))
		for k, l := range a.Lines {
			if k > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `{"name":%s,"color":"#%02x%02x%02x","points":%s}`, name(l.Name), l.Color.R, l.Color.G, l.Color.B, numbers(thin(l.Points, most), valueDigits))
		}
		b = append(b, ']', '}')
	}
	return string(append(b, ']', '}'))
}

// numbers returns x and y of all points as one JSON array, y with the given number of digits (-1: all); a value that cannot be
// drawn is null.
func numbers(p []XY, digits int) []byte {
	b := []byte{'['}
	for i, q := range p {
		if i > 0 {
			b = append(b, ',')
		}
		b = number(b, q.X, -1)
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
