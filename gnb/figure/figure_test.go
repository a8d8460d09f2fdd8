package figure_test

import (
	"bytes"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/figure"
)

// every returns a figure with one chart of each kind, and values that have no place in any of them.
func every() *figure.Figure {
	r := rand.New(rand.NewPCG(1, 2))
	s := figure.Scatter{Title: "second component", XLabel: "first component", Names: []string{"left", "right"}}
	for i := range 400 {
		s.X = append(s.X, r.NormFloat64()+float64(i%2)*3)
		s.Y = append(s.Y, r.NormFloat64())
		s.Group = append(s.Group, i%2)
	}
	s.X[0], s.Y[1], s.Group[2] = math.NaN(), math.Inf(1), -1
	l := figure.Lines{Title: "accuracy", XLabel: "confidence", Diagonal: true, Curves: []figure.Curve{
		{Name: "train", X: []float64{0, .25, .5, 1}, Y: []float64{0, .3, .4, .9}, Points: true},
		{Name: "test", X: []float64{0, .25, .5, 1}, Y: []float64{0, math.NaN(), .3, .7}},
	}}
	return figure.New("a figure").Note("of every kind of chart").Scatter(s).Lines(l).
		Bars(figure.Bars{Title: "F1", Names: []string{"a", "b", "a long name of a class"}, Values: []float64{.5, math.NaN(), .9}, Notes: []string{"10", "20", "30"}, Max: 1}).
		HeatMap(figure.HeatMap{Title: "confusion", Rows: []string{"a", "b"}, Columns: []string{"a", "b", "c"}, Values: [][]float64{{10, 0, 3}, {-1, math.NaN(), 5}}, RowLabel: "class", ColLabel: "predicted"})
}

func TestDraws(t *testing.T) {
	dir := t.TempDir()
	f := every()
	for _, name := range []string{"f.png", "f.svg"} {
		if err := f.Save(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "f.png"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	colours := map[any]int{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			colours[img.At(x, y)]++
		}
	}
	if img.Bounds().Dx() != 1760 || len(colours) < 20 {
		t.Errorf("the picture is %v with %d colours", img.Bounds(), len(colours))
	}
	svg, err := os.ReadFile(filepath.Join(dir, "f.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"a figure", "second component", "left", "predicted", "a long", "train"} {
		if !bytes.Contains(svg, []byte(word)) {
			t.Errorf("the SVG does not contain %q", word)
		}
	}
	text := f.String()
	for _, line := range []string{"a figure", "second component: 400 points", "accuracy: train 0 to 0.9, test 0 to 0.7", "F1: a 0.5, b NaN", "confusion: 2 rows, 3 columns"} {
		if !strings.Contains(text, line) {
			t.Errorf("the text lacks %q:\n%s", line, text)
		}
	}
}

// A saved figure stays small however many values it is given.
func TestLarge(t *testing.T) {
	const n = 200_000
	r := rand.New(rand.NewPCG(3, 4))
	s := figure.Scatter{Title: "points"}
	for i := range n {
		s.X, s.Y, s.Group = append(s.X, r.NormFloat64()), append(s.Y, r.NormFloat64()), append(s.Group, i%100)
	}
	h := figure.HeatMap{Title: "matrix"}
	for i := range 60 {
		h.Rows, h.Columns, h.Values = append(h.Rows, "class"), append(h.Columns, "class"), append(h.Values, make([]float64, 60))
		h.Values[i][i] = 1
	}
	data, err := figure.New("large").Scatter(s).HeatMap(h).PNG()
	if err != nil || len(data) > 200_000 {
		t.Errorf("the picture has %d bytes, error %v; at most 200,000 are wanted", len(data), err)
	}
}

func TestNothingToDraw(t *testing.T) {
	f := figure.New("").Scatter(figure.Scatter{}).Lines(figure.Lines{}).Bars(figure.Bars{}).HeatMap(figure.HeatMap{})
	if _, err := f.PNG(); err != nil {
		t.Error(err)
	}
	if err := f.Show(); err != nil { // not in a cell
		t.Error(err)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		f    *figure.Figure
		want string
	}{
		{figure.New("x"), "figure: the figure has no charts"},
		{figure.New("x").Scatter(figure.Scatter{X: []float64{1}}), "figure: chart 1, Scatter: X has 1 number and Y has 0"},
		{figure.New("x").Scatter(figure.Scatter{X: []float64{1}, Y: []float64{1}, Group: []int{1, 2}}), "Group has 2 numbers"},
		{figure.New("x").Lines(figure.Lines{Curves: []figure.Curve{{Name: "a", X: []float64{1}}}}), `X of the curve "a" has 1 number and Y has 0`},
		{figure.New("x").Bars(figure.Bars{Values: []float64{1}}), "there are 0 names and 1 value"},
		{figure.New("x").Bars(figure.Bars{Names: []string{"a"}, Values: []float64{1}, Notes: []string{"a", "b"}}), "there are 2 notes and 1 value"},
		{figure.New("x").HeatMap(figure.HeatMap{Rows: []string{"a"}}), "there are 1 row name and Values has 0 rows"},
		{figure.New("x").HeatMap(figure.HeatMap{Rows: []string{"a"}, Values: [][]float64{{1}}}), "row 0 of Values has 1 number"},
	} {
		if _, err := c.f.SVG(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	if err := every().Save("figure.pdf"); err == nil || !strings.Contains(err.Error(), "ends in .png or .svg") {
		t.Errorf("saving a PDF: %v", err)
	}
	f := figure.New("x")
	for range 25 {
		f.Bars(figure.Bars{})
	}
	if _, err := f.PNG(); err == nil || !strings.Contains(err.Error(), "at most 24 fit") {
		t.Errorf("25 charts: %v", err)
	}
}
