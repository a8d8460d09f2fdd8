package figure

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

// What the pointer shows of a figure is complete, and bounded whatever the figure is given.
func TestPointer(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := Scatter{Title: "points", Names: []string{"left"}}
	var x, y []float64
	for i := range 20_000 {
		s.X, s.Y, s.Group = append(s.X, r.NormFloat64()), append(s.Y, r.NormFloat64()), append(s.Group, i%90-1)
		x, y = append(x, float64(i)), append(y, math.Sin(float64(i)/2000)+float64(i%2)/10)
	}
	s.X[0], s.Y[17] = math.Inf(1), math.NaN()
	l := Lines{Title: "curves"}
	for range 20 {
		l.Curves = append(l.Curves, Curve{Name: "a '<curve>'", X: x, Y: y})
	}
	h, b := HeatMap{Title: "matrix"}, Bars{Title: "bars"}
	for i := range 100 {
		h.Rows, h.Columns, h.Values = append(h.Rows, "class"), append(h.Columns, "class"), append(h.Values, make([]float64, 100))
		h.Values[i][i] = 1
		b.Names, b.Values = append(b.Names, strings.Repeat("name ", 200)), append(b.Values, float64(i))
	}
	small := HeatMap{Title: "small", Rows: []string{"a"}, Columns: []string{"b", "c"}, Values: [][]float64{{1, math.NaN()}}, Texts: [][]string{{"one", "none"}}}
	f := New("large").Scatter(s).Lines(l).HeatMap(small).Bars(b).HeatMap(h)
	var areas string
	screentest.CheckPicture(t, "figure-large", func() (chart.Picture, error) {
		pic, err := screen.Draw(f.height(), f.paint)
		areas = pic.Areas
		return pic, err
	})
	var d struct {
		Charts []struct {
			Title string
			Dots  bool
			Lines []struct {
				Name   string
				Points []*float64
			}
			Marks []struct{ Text string }
			Grid  *struct{ Cells []string }
		}
	}
	if err := json.Unmarshal([]byte(areas), &d); err != nil || len(d.Charts) != 5 {
		t.Fatalf("%v: %.300s", err, areas)
	}
	points, other := d.Charts[0], d.Charts[0].Lines[len(d.Charts[0].Lines)-1]
	if !points.Dots || len(points.Lines) != mostLines || other.Name != "other groups" || !strings.Contains(areas, `"no group"`) || !strings.Contains(areas, `"left"`) {
		t.Errorf("the points have %d groups, the last %q", len(points.Lines), other.Name)
	}
	if g := d.Charts[2].Grid; g == nil || len(g.Cells) != 2 || g.Cells[1] != "none" {
		t.Errorf("the small matrix is %+v", g)
	}
	if m := d.Charts[3].Marks; len(m) < 10 || !strings.HasPrefix(m[9].Text, "9\nname") {
		t.Errorf("there are %d bars", len(m))
	}
}
