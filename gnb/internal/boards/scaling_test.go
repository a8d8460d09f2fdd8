package boards

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

func sampleScaling(workers ...int) Scaling {
	s := Scaling{Title: "strong scaling of sage on <reddit>", Note: "8 cores on the CPU, 2 threads a worker"}
	for _, n := range workers {
		x := float64(n)
		s.Points = append(s.Points, ScalingPoint{
			Workers: n, On: screen.Plural(min(2*n, 8), "core"), Speedup: math.Pow(x, 0.8), Low: math.Pow(x, 0.7), High: math.Pow(x, 0.85), Efficiency: math.Pow(x, 0.8) / min(x, 4),
			Stages:        []StageTime{{"sample", 0.002 / x}, {"forward", 0.02 / x}, {"backward", 0.03 / x}, {"all-reduce", 0.001 * x}},
			RepeatedEdges: 1 + 0.02*(x-1), RepeatedRows: 1 + 0.12*(x-1),
		})
		s.Ideal = append(s.Ideal, chart.Point{Step: n, Y: min(x, 4)})
	}
	return s
}

// A curve is drawn for any numbers. If GNB_LOOK names a directory, the pictures are written there
// for review.
func TestScalingPNG(t *testing.T) {
	odd := sampleScaling(1, 2)
	odd.Points[1] = ScalingPoint{Workers: 2, Speedup: math.NaN(), Low: math.Inf(-1), High: math.Inf(1), RepeatedEdges: math.NaN(), Stages: []StageTime{{"forward", math.Inf(1)}}}
	for name, s := range map[string]Scaling{
		"none": {Title: strings.Repeat("long ", 100)}, "one": sampleScaling(1), "four": sampleScaling(4), "three": sampleScaling(1, 2, 4), "eight": sampleScaling(1, 2, 3, 4, 6, 8, 12, 16), "odd": odd,
	} {
		screentest.CheckPicture(t, "scaling-"+name, func() (chart.Picture, error) { return ScalingPNG(s) })
	}
}

// In a cell a curve is one picture with its text; outside of a notebook nothing is shown.
func TestShowScaling(t *testing.T) {
	d := &screentest.Tape{}
	if err := showScaling(sampleScaling(1, 2, 4), "the numbers", screen.Options{Display: d}); err != nil {
		t.Fatal(err)
	}
	sent := d.All()
	if len(sent) != 2 || d.Syncs != 1 || sent[0].Data["text/plain"] != "the numbers" {
		t.Fatalf("the display got %v and %d syncs", sent, d.Syncs)
	}
	if b, ok := sent[0].Data["image/png"].([]byte); !ok || len(b) < 1000 {
		t.Errorf("no picture: %T", sent[0].Data["image/png"])
	}
	// The picture's charts answer to the pointer.
	if html := screentest.HTMLOf(sent[1]); screentest.CheckHTML(t, html) != "" || !strings.Contains(html, "ms of a step, by stage") || sent[1].Data["text/plain"] != "" {
		t.Errorf("after the picture there is %s", html)
	}
	var out bytes.Buffer
	if err := showScaling(sampleScaling(1), "", screen.Options{Out: &out}); err != nil || out.Len() > 0 {
		t.Errorf("outside of a notebook it wrote %q (%v)", out.String(), err)
	}
}

func TestSavedTextOfScalingStandsOut(t *testing.T) {
	pic, err := ScalingPNG(Scaling{Title: "a", Points: []ScalingPoint{
		{Workers: 1, Speedup: 1, Low: 1, High: 1, RepeatedEdges: 1, RepeatedRows: 1},
		{Workers: 2, Speedup: 1.5, Low: 1, High: 2, RepeatedEdges: 1, RepeatedRows: 1.1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	screentest.CheckContrast(t, "scaling", pic.PNG)
}
