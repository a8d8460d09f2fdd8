package live

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/png"
	"io"
	"math"
	"strconv"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/chart"
)

// A browser without the drawing's fonts squeezes each text into the room that the drawing has for
// it.
func TestLabelsFitInAnyFont(t *testing.T) {
	var p painter
	s := sampleRun(1000, 2, 0.5, Running)
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

// The numbers at the axes of saved pictures are readable on any page, even if a picture is shown at
// half its size: they have the contrast that WCAG 2 requires for small text.
func TestSavedTextStandsOut(t *testing.T) {
	s := sampleRun(1000, 2, 1, Done)
	var p painter
	run, _, _, err := p.PNG(&s)
	if err != nil {
		t.Fatal(err)
	}
	curve, _, _, err := ScalingPNG(Scaling{Title: "a", Points: []ScalingPoint{
		{Workers: 1, Speedup: 1, Low: 1, High: 1, RepeatedEdges: 1, RepeatedRows: 1},
		{Workers: 2, Speedup: 1.5, Low: 1, High: 2, RepeatedEdges: 1, RepeatedRows: 1.1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"run": run, "scaling": curve} {
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		b := img.Bounds()
		if _, _, _, a := img.At(b.Max.X-1, b.Max.Y-1).RGBA(); a != 0xffff {
			t.Errorf("%s: the picture is transparent", name)
		}
		// Left of the first chart there are only its numbers.
		dark, page := 1.0, halved(img, b.Max.X-4, b.Max.Y-4)
		for y := b.Min.Y + 120; y+1 < b.Max.Y-60; y += 2 {
			for x := 8; x < 40; x += 2 {
				dark = math.Min(dark, halved(img, x, y))
			}
		}
		if c := (page + 0.05) / (dark + 0.05); c < 4.5 {
			t.Errorf("%s: the numbers have a contrast of %.1f, want 4.5", name, c)
		}
	}
}

// halved returns the luminance of a pixel of the picture at half its size.
func halved(img image.Image, x, y int) float64 {
	sum := [3]float64{}
	for i := range 4 {
		r, g, b, _ := img.At(x+i%2, y+i/2).RGBA()
		for k, v := range []uint32{r, g, b} {
			sum[k] += float64(v) / 4 / 0xffff
		}
	}
	linear := func(v float64) float64 {
		if v <= 0.03928 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(sum[0]) + 0.7152*linear(sum[1]) + 0.0722*linear(sum[2])
}
