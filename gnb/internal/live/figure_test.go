package live

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

// A browser without the drawing's fonts squeezes each text into the room that the drawing has for
// it.
func TestLabelsFitInAnyFont(t *testing.T) {
	var p painter
	s := sampleRun(1000, 2, 0.5, screen.Running)
	charts, err := p.SVGs(&s)
	if err != nil {
		t.Fatal(err)
	}
	texts := 0
	for _, c := range charts {
		dec := xml.NewDecoder(bytes.NewReader(c.svg))
		for {
			tok, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			e, ok := tok.(xml.StartElement)
			if !ok || e.Name.Local != "text" {
				continue
			}
			texts++
			attr := map[string]string{}
			for _, a := range e.Attr {
				attr[a.Name.Local] = a.Value
			}
			x, errX := strconv.ParseFloat(attr["x"], 64)
			width, errW := strconv.ParseFloat(attr["textLength"], 64)
			if errX != nil || errW != nil || attr["lengthAdjust"] != "spacingAndGlyphs" {
				t.Fatalf("a text has the attributes %v", attr)
			}
			if width < 1 && width != 0.1 || x < 0 || x+width > chart.Width*c.share+0.5 {
				t.Errorf("a text at %v has the width %v, the chart %v", x, width, chart.Width*c.share)
			}
		}
	}
	if texts < 15 {
		t.Errorf("%d texts, want those of two charts", texts)
	}
}

// What has no step has no empty charts.
func TestSavedWithoutSteps(t *testing.T) {
	height := func(s Snapshot) int {
		var p painter
		pic, err := p.picture(&s)
		if err != nil {
			t.Fatal(err)
		}
		return pic.Height
	}
	if h := height(Snapshot{Title: "recommend cora by gcn", State: screen.Done}); h > 2*screen.HeadHeight {
		t.Errorf("the picture is %d high, want the title alone", h)
	}
	if h := height(Snapshot{Title: "gcn on cora", State: screen.Failed}); h < chart.Height {
		t.Errorf("the picture of a run that failed before its first step is %d high, want the chart that says so", h)
	}
}

func TestSavedTextStandsOut(t *testing.T) {
	s := sampleRun(1000, 2, 1, screen.Done)
	var p painter
	pic, err := p.picture(&s)
	if err != nil {
		t.Fatal(err)
	}
	screentest.CheckContrast(t, "run", pic.PNG)
}
