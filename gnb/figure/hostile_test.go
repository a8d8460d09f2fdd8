package figure_test

import (
	"testing"

	"github.com/graphnb/graphnb/gnb/figure"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

// Titles and names of a figure are text in its SVG.
func TestHostileNames(t *testing.T) {
	for what, text := range screentest.Hostile {
		t.Run(what, func(t *testing.T) {
			names := []string{text, text}
			svg, err := figure.New(text).Note(text).
				Scatter(figure.Scatter{Title: text, XLabel: text, Names: names, X: []float64{1, 2}, Y: []float64{1, 2}, Group: []int{0, 1}}).
				Lines(figure.Lines{Title: text, XLabel: text, Curves: []figure.Curve{{Name: text, X: []float64{0, 1}, Y: []float64{0, 1}}}}).
				Bars(figure.Bars{Title: text, Names: names, Values: []float64{1, 2}, Notes: names}).
				HeatMap(figure.HeatMap{Title: text, Rows: names, Columns: names, RowLabel: text, ColLabel: text, Values: [][]float64{{1, 2}, {3, 4}}}).SVG()
			if err != nil {
				t.Fatal(err)
			}
			screentest.CheckSVG(t, string(svg))
		})
	}
}
