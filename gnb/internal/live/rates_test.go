package live

import (
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

func TestRateText(t *testing.T) {
	for _, c := range []struct {
		rate Rate
		want string
	}{
		{Rate{"edges/s", 12.34e6, 0}, "12.3 M edges/s"},
		{Rate{"edges/s", 12, 24}, "12 edges/s, 50 % of 24 edges/s"},
		{Rate{"FLOP/s", 41.2e9, 287e9}, "41.2 GFLOP/s, 14 % of 287 GFLOP/s"},
		{Rate{"FLOP/s", 412, 0}, "412 FLOP/s"},
		{Rate{"B/s", 36e9, 18e9}, "36.0 GB/s, 200 % of 18.0 GB/s"},
	} {
		if got := c.rate.beside(); got != c.want {
			t.Errorf("%+v is written as %q, want %q", c.rate, got, c.want)
		}
	}
	s := Snapshot{Rates: []Rate{{"edges/s", 0, 5}, {"B/s", math.NaN(), 0}}}
	if got := ratesText(&s); got != "" {
		t.Errorf("unknown rates are written as %q", got)
	}
	var b strings.Builder
	if ratesHTML(&b, &s); b.Len() > 0 {
		t.Errorf("unknown rates are shown as %q", b.String())
	}
}

func TestBottleneck(t *testing.T) {
	worker := func(shares ...any) (w Worker) {
		for i := 0; i < len(shares); i += 2 {
			w.Stages = append(w.Stages, StageShare{shares[i].(string), shares[i+1].(float64)})
		}
		return w
	}
	for _, c := range []struct {
		name string
		ws   []Worker
		want string
	}{
		{"nothing", nil, ""},
		{"no step yet", []Worker{worker("start", 1.0)}, ""},
		// Evaluation is not part of a step: 0.31 of 0.5.
		{"sampling", []Worker{worker("sample", 0.31, "forward", 0.1, "backward", 0.09, "evaluate", 0.5)}, "waits for sampling: 62 % of the step"},
		{"features", []Worker{worker("fetch", 0.6, "forward", 0.4)}, "waits for features: 60 % of the step"},
		{"computes", []Worker{worker("sample", 0.3, "forward", 0.25, "backward", 0.25, "optimizer", 0.2)}, "computes: 70 % of the step"},
		// One rank works while the other waits for it: the mean of both counts.
		{"uneven", []Worker{worker("forward", 0.4, "idle", 0.6), worker("forward", 0.2, "idle", 0.8)}, "waits for its slowest worker: 70 % of the step"},
		{"reduce", []Worker{worker("all-reduce", 0.9, "forward", 0.1)}, "adds up gradients: 90 % of the step"},
		{"own code", []Worker{worker("program", 0.9, "forward", 0.1)}, "is in the program's own code: 90 % of the step"},
		{"other names", []Worker{worker("brew", 0.9)}, ""},
	} {
		if got := bottleneck(c.ws); got != c.want {
			t.Errorf("%s: the run %q, want %q", c.name, got, c.want)
		}
	}
}

// A stage has the same colour whatever the other stages are; stages with a program's own names have
// different colours.
func TestStageColors(t *testing.T) {
	all := stageStyle([]string{"sample", "fetch", "forward", "idle", "mine", "yours"})
	few := stageStyle([]string{"forward", "yours"})
	if all["forward"] != few["forward"] {
		t.Errorf("forward is %s among many and %s among few", all["forward"], few["forward"])
	}
	seen := map[string]string{}
	for name := range stageColors {
		c := screen.CSS(stageColors[name])
		if other, ok := seen[c]; ok {
			t.Errorf("%s and %s are both %s", name, other, c)
		}
		seen[c] = name
	}
	if all["mine"] == all["yours"] {
		t.Error("two of a program's own stages have the same colour")
	}
}

// The learning rate is shown as a number, and as a curve once it changes.
func TestLearningRate(t *testing.T) {
	s := sampleRun(1000, 1, 0.5, screen.Running)
	var p painter
	plain, err := svgOf(&p, &s)
	if err != nil || strings.Contains(plain, "learning rate") {
		t.Errorf("a learning rate that stays the same has a chart (%v)", err)
	}
	s.LR = append(s.LR, chart.Point{Step: 250, Y: 0.0015}, chart.Point{Step: 400, Y: math.NaN()}, chart.Point{Step: 450, Y: 0})
	svg, err := svgOf(&p, &s)
	if err != nil || !strings.Contains(svg, ">learning rate<") || !strings.Contains(svg, ">0 to 0.003<") {
		t.Errorf("a learning rate that changes has no chart (%v)", err)
	}
	for _, e := range entries(&s) {
		if e.name == "learning rate" && e.value != "0 (from 0.003 at step 1)" {
			t.Errorf("the table has %q", e.value)
		}
	}
	s.LR = []chart.Point{{Step: 1, Y: 0}, {Step: 2, Y: 0}}
	if _, err := svgOf(&p, &s); err != nil {
		t.Error(err)
	}
}

// The legend explains how raw and smoothed losses are drawn.
func TestLossLegend(t *testing.T) {
	for _, c := range []struct {
		steps int
		want  []string
	}{
		{10, []string{">raw<"}},
		{100, []string{">raw<", ">local regression over ±6 steps<"}},
		{10000, []string{">raw: range of each 64 steps<", ">local regression over ±640 steps<"}},
	} {
		s := sampleRun(c.steps, 1, 1, screen.Running)
		var p painter
		svg, err := svgOf(&p, &s)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(svg, want) {
				t.Errorf("%d steps: %q is not in the picture", c.steps, want)
			}
		}
	}
}

// svgOf returns all charts, one after another.
func svgOf(p *painter, s *Snapshot) (string, error) {
	charts, err := p.SVGs(s)
	var b strings.Builder
	for _, c := range charts {
		b.Write(c.svg)
	}
	return b.String(), err
}

// A machine without the figure's font uses one with the same widths.
func TestFontsOfPictures(t *testing.T) {
	s := sampleRun(100, 1, 0.5, screen.Running)
	var p painter
	svg, err := svgOf(&p, &s)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(svg, "font-family:"); n < 10 || strings.Count(svg, "font-family:Liberation Sans,Arial,Helvetica,sans-serif;font-") != n {
		t.Errorf("there are %d texts, not all with fallback fonts:\n%.600s", n, svg)
	}
	if strings.Contains(svg, ":normal") {
		t.Error("default SVG properties are written")
	}
}

// A task besides the run's steps is shown at the end of a terminal's line if there is room.
func TestBarSaysWhatGoesOn(t *testing.T) {
	s := sampleRun(1000, 1, 0.5, screen.Evaluating)
	s.Detail = "evaluate: 100 of 900, 3s left"
	if line := barLine(screen.Style{}, &s, 200); !strings.HasSuffix(line, "left  "+s.Detail) {
		t.Errorf("with room: %q", line)
	}
	if line := barLine(screen.Style{}, &s, 70); strings.Contains(line, "evaluate:") || screen.Width(line) > 70 {
		t.Errorf("without: %q", line)
	}
}
