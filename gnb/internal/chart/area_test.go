package chart

import (
	"encoding/json"
	"image/color"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawn is what a page reads of a picture's charts.
type drawn struct {
	Tail   string
	Size   [2]float64
	Charts []struct {
		Title, Unit string
		Box, Data   [4]float64
		X, Y        [2]float64
		Lines       []struct {
			Name, Color string
			Points      []*float64
		}
	}
}

func TestAreas(t *testing.T) {
	var p Painter
	hostile := `</script><b>'"&` + "\u2028"
	points := []XY{{1, 0.5}, {2, math.NaN()}, {3, math.Inf(1)}, {4, 2.25}}
	svg, err := SVG(300, 200, func(c draw.Canvas) {
		x, y := Axis{Min: 0, Max: 4}, Axis{Min: 0, Max: 3}
		pl := p.NewPlot(x, y, Ticks{{0, "0"}, {4, "4"}}, Ticks{{0, "0"}, {3, "3"}}, "step")
		c = p.Titled(c, "a title")
		pl.Draw(c)
		p.Area(hostile, pl, c, c, []Line{{Name: hostile, Color: Blue, Points: points}})
	})
	if err != nil {
		t.Fatal(err)
	}
	attr := Attr(hostile, AreasJSON("end", 300, 200, false, p.Areas))
	text, ok := strings.CutPrefix(attr, "data-gnb='")
	text, key, ok2 := strings.Cut(text, "' data-gnb-key=")
	if !ok || !ok2 || strings.ContainsAny(text, "'<>&\u2028") || strings.ContainsAny(strings.Trim(key, `"`), `'"<>`) {
		t.Errorf("the attribute is %s", attr)
	}
	var d drawn
	if err := json.Unmarshal([]byte(text), &d); err != nil || len(d.Charts) != 1 || len(d.Charts[0].Lines) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	c := d.Charts[0]
	if l := c.Lines[0]; d.Tail != "end" || d.Size != [2]float64{300, 200} || c.Title != hostile || c.Unit != "step" || l.Name != hostile || l.Color != "#2080c8" {
		t.Errorf("the page reads %s", text)
	}
	got := c.Lines[0].Points
	for i, want := range points {
		x, y := got[2*i], got[2*i+1]
		if x == nil || *x != want.X || (y != nil) != Finite(want.Y) || y != nil && *y != want.Y {
			t.Errorf("point %d differs: %s", i, text)
		}
	}
	// The lower grid line is the lower end of the area between the axes; the page counts from the top.
	if low := c.Data[1] + c.Data[3]; low <= 100 || low >= 200 || c.Data[0] <= c.Box[0] || c.Data[0]+c.Data[2] > 300 {
		t.Errorf("the values are drawn in %v of %v", c.Data, c.Box)
	}
	if !strings.Contains(string(svg), "prefers-color-scheme:dark") {
		t.Error("the drawing has no colours for a dark page")
	}
}

// A picture with many long curves has a bounded size, and keeps the last value of each.
func TestAreasAreThinned(t *testing.T) {
	a := Area{Title: "x"}
	for range 40 {
		l := Line{Name: "curve"}
		for i := range 5000 {
			l.Points = append(l.Points, XY{float64(i), math.Sqrt(float64(i))})
		}
		a.Lines = append(a.Lines, l)
	}
	text := AreasJSON("", 1, 1, true, []Area{a})
	var d drawn
	if err := json.Unmarshal([]byte(text), &d); err != nil || len(text) > 120_000 {
		t.Fatalf("%d bytes, error %v", len(text), err)
	}
	for _, l := range d.Charts[0].Lines {
		if n := len(l.Points); n < 100 || *l.Points[n-2] != 4999 {
			t.Errorf("a curve of 5000 points has %d numbers and ends at %v", n, *l.Points[n-2])
		}
	}
}

// Marks and matrices are noted for the page, hostile text escaped, with positions from the upper left corner; equal titles
// are told apart, and what is too much is left out.
func TestMarksAndGrids(t *testing.T) {
	var p Painter
	box := vg.Rectangle{Min: vg.Point{X: 10, Y: 20}, Max: vg.Point{X: 110, Y: 90}}
	bar := Mark{Text: "a'</script>\nb", Color: Orange, At: []vg.Point{{X: 10, Y: 20}, {X: 30, Y: 60}}, Bar: true}
	p.Marks("same", box, box, []Mark{bar, {Text: "path", At: []vg.Point{{X: 1, Y: 2}, {X: 3, Y: 4}, {X: 5, Y: 6}}}})
	p.Grid("same", box, box, &Grid{Rows: []string{"r"}, Columns: []string{"c", "<d>"}, Values: [][]float64{{1, math.NaN()}}})
	many := make([]Mark, 5000)
	for i := range many {
		many[i] = bar
	}
	p.Marks("many", box, box, many)
	text := AreasJSON("", 200, 100, true, p.Areas)
	var d struct {
		Charts []struct {
			Title string
			Marks []struct {
				Text, Color string
				Bar         bool
				At          []float64
			}
			Grid *struct {
				Rows, Columns []string
				Cells         []*float64
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil || len(d.Charts) != 3 || strings.ContainsAny(text, "<>'") {
		t.Fatalf("%v: %.500s", err, text)
	}
	marks := d.Charts[0].Marks
	if len(marks) != 2 || marks[0].Text != bar.Text || !marks[0].Bar || marks[0].Color != hex(Orange) || !slices.Equal(marks[0].At, []float64{10, 80, 30, 40}) || len(marks[1].At) != 6 {
		t.Errorf("the marks are %+v", marks)
	}
	if g := d.Charts[1].Grid; d.Charts[1].Title != "same (2)" || g == nil || len(g.Cells) != 2 || *g.Cells[0] != 1 || g.Cells[1] != nil || g.Columns[1] != "<d>" {
		t.Errorf("the matrix is %+v", d.Charts[1])
	}
	if n := len(d.Charts[2].Marks); n < 100 || n > 1000 || len(text) > 60_000 {
		t.Errorf("of 5000 marks %d were kept, in %d bytes", n, len(text))
	}
}

// The script is one element, and constant.
func TestScript(t *testing.T) {
	s := Script()
	if s != Script() || strings.Count(s, "<script>") != 1 || strings.Count(s, "</script>") != 1 || !strings.HasSuffix(s, "</script>") || len(s) < 1000 {
		t.Errorf("the script has %d bytes and begins %.80q", len(s), s)
	}
	for _, bad := range []string{"innerHTML", "eval(", "document.write", "http:", "fetch("} {
		if strings.Contains(strings.ReplaceAll(s, "http://www.w3.org/2000/svg", ""), bad) {
			t.Errorf("the script contains %q", bad)
		}
	}
}

// Text has a contrast of at least 4.5 to 1 on a light page and, in the lighter colours of a dark page, on that of JupyterLab.
func TestContrast(t *testing.T) {
	contrast := func(a, b color.NRGBA) float64 {
		x, y := luminance(a), luminance(b)
		return (max(x, y) + 0.05) / (min(x, y) + 0.05)
	}
	dark := color.NRGBA{0x11, 0x11, 0x11, 0xff}
	var p Painter
	for _, c := range []color.NRGBA{Ink, Blue, Orange, Green, Purple, Amber, Sky, Plum, Olive, Grey} {
		word := p.Word(c)
		if c == Ink {
			word = p.Ink()
		}
		svg, err := SVG(100, 100, func(c draw.Canvas) { c.FillText(p.Text(8, word), vg.Point{X: 10, Y: 10}, "text") })
		if err != nil {
			t.Fatal(err)
		}
		_, rule, ok := strings.Cut(string(svg), "]{fill:#")
		var lighter [3]uint8
		for i := range lighter {
			for _, r := range rule[2*i : 2*i+2] {
				lighter[i] = lighter[i]<<4 | uint8(strings.IndexRune("0123456789abcdef", r))
			}
		}
		light := color.NRGBA{lighter[0], lighter[1], lighter[2], 0xff}
		if x, y := contrast(word, paper), contrast(light, dark); !ok || x < 4.5 || y < 4.5 {
			t.Errorf("%v: the contrast is %.1f on a light page and %.1f on a dark one", c, x, y)
		}
	}
}
