package figure

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
)

// What is logged is drawn within bounds, from a copy; odd values are drawn too, and mistakes are a sentence.
func TestLogged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	noise := image.NewNRGBA(image.Rect(-5, 3, 1995, 1503))
	for i := range noise.Pix {
		noise.Pix[i] = uint8(r.Uint32())
	}
	values := []float64{1, 2, 2, 3, math.NaN(), math.Inf(1), 1e300}
	huge := Histogram{Values: []float64{-1e89, 1e89, math.MaxFloat64}}
	row := []string{strings.Repeat("x", 1000), "<b>"}
	var many [][]string
	for range 1000 {
		many = append(many, row)
	}
	confusion, err := Confusion([]string{"a", "b"}, []int32{0, 0, 1, -1}, []int{0, 1, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		v          any
		kind, text string
	}{
		"histogram": {Histogram{Title: "weights", Values: values, Bins: 4}, "histogram", "weights: 4 values from 1 to 3, mean 2; 3 values not finite"},
		"no value":  {Histogram{}, "histogram", "no finite values"},
		"all NaN":   {Histogram{Values: []float64{math.NaN()}}, "histogram", "no finite values; 1 value not finite"},
		"one value": {Histogram{Values: []float64{7, 7}}, "histogram", "2 values from 6.993 to 7.007, mean 7"},
		"huge":      {huge, "histogram", "2 values from -1e+89 to 1e+89, mean 0; 1 value not finite"},
		"many bins": {Histogram{Values: []float64{1, 2}, Bins: 1e9}, "histogram", "2 values from 1 to 2"},
		"matrix":    {confusion, "chart", "confusion: 2 rows, 2 columns"},
		"empty":     {HeatMap{}, "chart", "0 rows, 0 columns"},
		"bars":      {Bars{Names: []string{"a"}, Values: []float64{math.NaN()}}, "chart", "a NaN"},
		"curve":     {Lines{Title: "curve", Curves: []Curve{{X: []float64{1}, Y: []float64{math.Inf(-1)}}}}, "chart", "curve"},
		"points":    {Scatter{Title: "p"}, "chart", "p: 0 points"},
		"figure":    {New("both").Bars(Bars{}).Histogram(Histogram{Values: values}), "chart", "both"},
		"table":     {Table{Head: row, Rows: many}, "table", "1000 rows, 2 columns (at most 50 and 20 are kept)"},
		"no table":  {Table{}, "table", "0 rows, 0 columns"},
		"picture":   {noise, "picture", "a picture of 2000 × 1500 pixels"},
		"endless":   {image.NewUniform(color.White), "picture", "a picture of"},
		"a pixel":   {image.NewGray(image.Rect(0, 0, 1, 1)), "picture", "a picture of 1 × 1 pixels"},
		"a line":    {image.NewGray(image.Rect(0, 0, 30000, 1)), "picture", "a picture of 30000 × 1 pixels"},
	} {
		draw := logged(c.v)
		if draw == nil {
			t.Errorf("%s is not drawn", name)
			continue
		}
		d, err := draw()
		if err != nil || d.Kind != c.kind || !strings.Contains(d.Text, c.text) {
			t.Errorf("%s: %s %q, %v; want %s %q", name, d.Kind, d.Text, err, c.kind, c.text)
			continue
		}
		all, err := json.Marshal(d)
		if err != nil || len(all) > 90_000 {
			t.Errorf("%s: %d bytes, %v", name, len(all), err)
		}
		if c.kind == "table" {
			if len(d.Rows) > 50 || d.PNG != nil {
				t.Errorf("%s has %d rows", name, len(d.Rows))
			}
			continue
		}
		img, err := png.Decode(bytes.NewReader(d.PNG))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if b := img.Bounds(); c.kind != "picture" && (b.Dx() != 2*d.Width || b.Dy() != 2*d.Height || d.Areas != "" && !json.Valid([]byte(d.Areas))) || d.Width <= 0 || d.Height <= 0 || d.Width > 880 {
			t.Errorf("%s has the size %v and is shown at %d × %d", name, b, d.Width, d.Height)
		}
		if len(d.Counts) > 0 && len(d.Edges) != len(d.Counts)+1 {
			t.Errorf("%s has %d edges of %d bars", name, len(d.Edges), len(d.Counts))
		}
	}
	if d, err := logged(Histogram{Values: values, Bins: 2})(); err != nil || d.Sum != 8 || d.Squares != 18 || d.Counts[0] != 1 || d.Counts[1] != 3 || d.Edges[1] != 2 {
		t.Errorf("the histogram is %+v, %v", d.Counts, err)
	}
	if c := confusion; c.Texts[0][0] != "1" || c.Values[0][1] != 0.5 || c.Values[1][1] != 1 || c.Texts[1][0] != "0" {
		t.Errorf("the confusion matrix is %+v", c)
	}

	// Changes after the call are not drawn.
	h := HeatMap{Rows: []string{"before"}, Columns: []string{"a"}, Values: [][]float64{{1}}}
	draw := logged(h)
	h.Rows[0], h.Values[0][0] = "after", 99
	if d, err := draw(); err != nil || !strings.Contains(d.Areas, "before") || strings.Contains(d.Areas, "99") {
		t.Errorf("a changed matrix is drawn as %s (%v)", d.Areas, err)
	}

	var none *image.RGBA
	var nobody *Figure
	for name, c := range map[string]struct {
		v    any
		want string
	}{
		"ragged":     {Table{Head: []string{"a"}, Rows: [][]string{{"1", "2"}}}, "figure: Table: there are 1 column name and row 0 has 2 cells"},
		"matrix":     {HeatMap{Rows: []string{"a"}, Columns: []string{"b"}, Values: [][]float64{{1, 2}}}, "row 0 of Values has 2 numbers"},
		"bins":       {Histogram{Bins: -1}, "Bins is -1"},
		"nil":        {none, "figure: the picture is nil"},
		"no pixels":  {image.NewGray(image.Rectangle{}), "no pixels"},
		"nobody":     {nobody, "figure: the figure is nil"},
		"no charts":  {New("x"), "the figure has no charts"},
		"too uneven": {Lines{Curves: []Curve{{Name: "c", X: []float64{1}}}}, `X of the curve "c"`},
	} {
		if _, err := logged(c.v)(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	if logged(3) != nil || logged("text") != nil || logged(nil) != nil || runfile.Draw == nil {
		t.Error("numbers, text or nil are drawn, or nothing is")
	}
	if _, err := Confusion([]string{"a"}, []int{0}, []int{1}); err == nil || !strings.Contains(err.Error(), "element 0 has the class 0 and the predicted class 1, and there are 1 name") {
		t.Errorf("a class without a name: %v", err)
	}
	if _, err := Confusion(nil, []int{0}, []int{}); err == nil || !strings.Contains(err.Error(), "1 label and 0 predictions") {
		t.Errorf("too few predictions: %v", err)
	}
}

// BenchmarkLogged measures the drawing of one logged histogram.
func BenchmarkLogged(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	h := Histogram{Title: "weights", Values: make([]float64, 100_000)}
	for i := range h.Values {
		h.Values[i] = r.NormFloat64()
	}
	for b.Loop() {
		if _, err := logged(h)(); err != nil {
			b.Fatal(err)
		}
	}
}
