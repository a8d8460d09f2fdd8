package live

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"

	"github.com/graphnb/graphnb/internal/testneed"
)

// No text of a run or of a machine becomes an element, an attribute or a script of a page, wherever it stands.
func TestHostileNames(t *testing.T) {
	testneed.NotUnderRace(t, "it draws for long, in one goroutine")
	for what, text := range screentest.Hostile {
		t.Run(what, func(t *testing.T) {
			for _, state := range []string{screen.Running, screen.Done, screen.Failed, text} {
				s := sampleRun(40, 3, 0.5, screen.Running)
				s.Logged = []Series{{Name: "lr/a", Points: s.Loss}, {Name: "lr/b", Points: s.Loss}}
				s.Rows, s.Unit, s.Metric, s.Detail, s.Text = "x", "x", "x", "x", []string{"x", "y"}
				s.Drawn = []Drawn{
					{Name: "a", Text: "b", At: "c", PNG: []byte("png"), Width: 400, Height: 200, Areas: `{"charts":[]}`},
					{Name: "a", Head: []string{"x"}, Rows: [][]string{{"a", "b"}, {}}},
				}
				m := aMachine(3, 4)
				for i := range m.Samples {
					m.Samples[i].Note = "x"
					m.Samples[i].GPUs[2].Error = "x"
				}
				for _, g := range m.Samples[2].GPUs {
					s.GPUs = append(s.GPUs, GPU{GPU: g})
				}
				screentest.Poison(&s, text)
				screentest.Poison(&m, text)
				s.State, m.State = state, state

				var p painter
				charts, err := p.SVGs(&s)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range charts {
					screentest.CheckSVG(t, string(c.svg))
				}
				log := []string{screen.OneLine(text)}
				screentest.CheckHTML(t, liveHTML("id", &s, charts, log))
				screentest.CheckHTML(t, tableHTML("id", &s, log, charts[0].areas))
				screentest.CheckHTML(t, reasonHTML(&s))
				checkDrawn(t, drawnHTML("id", s.Drawn))
				d, err := m.drawing()
				if err != nil {
					t.Fatal(err)
				}
				screentest.CheckSVG(t, string(d.SVG))
				screentest.CheckHTML(t, monitorHTML("id", &m, d, ""))
				screentest.CheckHTML(t, monitorHTML("id", &m, screen.Drawing{}, d.Areas))
				pic, err := ComparisonPNG(Comparison{Metric: text, Runs: []ComparedRun{{Name: text, Loss: s.Loss, Metric: s.Loss}, {Name: text, Loss: s.Loss}}})
				if err != nil {
					t.Fatal(err)
				}
				screentest.CheckHTML(t, chart.Pointer(text, pic.Areas))
			}
		})
	}
}

// checkDrawn is CheckHTML for drawings whose charts are no JSON, but text of somebody else.
func checkDrawn(t *testing.T, s string) {
	t.Helper()
	from := strings.Index(s, "data-gnb='")
	to := from + len("data-gnb='") + strings.Index(s[from+len("data-gnb='"):], "'")
	if from < 0 || to < from {
		t.Fatalf("no charts in %.300s", s)
	}
	if in := s[from+len("data-gnb='") : to]; strings.ContainsAny(in, "<>") {
		t.Errorf("the charts are not escaped: %.200s", in)
	}
	screentest.CheckHTML(t, s[:from]+"data-gnb='{}"+s[to:])
}
