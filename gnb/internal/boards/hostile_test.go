package boards

import (
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

// No text of a sweep, a curve or a batch becomes an element, an attribute or a script of a page.
func TestHostileNames(t *testing.T) {
	for what, text := range screentest.Hostile {
		t.Run(what, func(t *testing.T) {
			pointer := func(pic chart.Picture, err error) string {
				if err != nil {
					t.Fatal(err)
				}
				html := chart.Pointer(text, pic.Areas)
				screentest.CheckHTML(t, html)
				return pic.Areas
			}
			s, c, b := sampleSweep(12, screen.Running), sampleScaling(1, 2, 4), sampleBatch(3)
			for i := range s.Trials {
				s.Trials[i].Note = "x"
			}
			screentest.Poison(&s, text)
			screentest.Poison(&c, text)
			screentest.Poison(&b, text)
			areas := pointer(SweepPNG(s))
			pointer(ScalingPNG(c))
			pointer(BatchPNG(b))
			d, err := s.drawing()
			if err != nil {
				t.Fatal(err)
			}
			screentest.CheckSVG(t, string(d.SVG))
			head := s.snapshot()
			screentest.CheckHTML(t, sweepHTML("id", &s, &head, d, "", 10))
			screentest.CheckHTML(t, sweepHTML("id", &s, &head, screen.Drawing{}, areas, 30))
		})
	}
}
