package chart

import (
	"bytes"
	"encoding/json"
	"image/color"
	"image/png"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// In a cell, a picture has no page, its text is readable on a light page and on a dark one, opaque areas keep their
// colours, and the page's script finds it. In a file it has a white page.
func TestPictureForCell(t *testing.T) {
	area := color.NRGBA{0x12, 0x5a, 0x94, 0xff}
	pic, err := Paint(Width, 99, SavedRoom(), func(p *Painter, c draw.Canvas) {
		c.FillPolygon(area, []vg.Point{{X: 300, Y: 10}, {X: 400, Y: 10}, {X: 400, Y: 80}, {X: 300, Y: 80}})
		c.FillText(p.Bold(30, p.Ink()), vg.Point{X: 10, Y: 40}, "MMMM")
		p.Areas = append(p.Areas, Area{Title: "a"})
	})
	if err != nil {
		t.Fatal(err)
	}
	cell, err := pic.ForCell()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pic  Picture
		page bool
	}{"file": {pic, true}, "cell": {cell, false}} {
		img, err := png.Decode(bytes.NewReader(c.pic.PNG))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, a := img.At(0, 0).RGBA(); (a != 0) != c.page {
			t.Errorf("%s: the corner has the opacity %d", name, a)
		}
		if got := color.NRGBAModel.Convert(img.At(350*2*4/3, (99-40)*2*4/3)); got != area {
			t.Errorf("%s: the area has the colour %v", name, got)
		}
		var areas struct {
			Tail string
			Page bool
		}
		if err := json.Unmarshal([]byte(c.pic.Areas), &areas); err != nil || areas.Tail != Tail(c.pic.PNG) || areas.Page != c.page {
			t.Errorf("%s: %+v, %v", name, areas, err)
		}
		if c.page {
			continue
		}
		inked := 0
		for y := range img.Bounds().Dy() {
			for x := range 600 {
				if k := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA); k.A == 255 {
					inked++
					if l := luminance(k); 1.05/(l+0.05) < 4 || (l+0.05)/(luminance(color.NRGBA{0x11, 0x11, 0x11, 255})+0.05) < 4 {
						t.Fatalf("text has the colour %v, with too little contrast to a page", k)
					}
				}
			}
		}
		if inked < 500 {
			t.Errorf("%d pixels of text", inked)
		}
	}
}
