package chart

import (
	"image"
	"image/color"
	"math"
	"testing"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Everything that a canvas draws looks as it does on the canvas of package vgimg.
func TestRaster(t *testing.T) {
	const w, h = 220, 160
	square := image.NewRGBA(image.Rect(0, 0, 4, 3))
	for i := range square.Pix {
		square.Pix[i] = uint8(i*37 | 3)
		if i%4 == 3 {
			square.Pix[i] = 255
		}
	}
	path := func(points ...vg.Point) (p vg.Path) {
		p.Move(points[0])
		for _, q := range points[1:] {
			p.Line(q)
		}
		return p
	}
	face := fonts().Cache().Lookup(font.Font{Typeface: "Liberation", Variant: "Sans"}, 12)
	for name, paint := range map[string]func(c draw.Canvas){
		"lines": func(c draw.Canvas) {
			c.SetLineWidth(3)
			c.Stroke(path(vg.Point{X: 10, Y: 10}, vg.Point{X: 60, Y: 100}, vg.Point{X: 90, Y: 20}, vg.Point{X: 200, Y: 20}))
			c.SetLineWidth(0.6)
			c.SetColor(color.NRGBA{200, 30, 90, 128})
			c.Stroke(path(vg.Point{X: 10, Y: 150}, vg.Point{X: 210, Y: 31.3}))
			c.SetLineWidth(0)
			c.Stroke(path(vg.Point{}, vg.Point{X: w, Y: h}))
		},
		"dashes": func(c draw.Canvas) {
			c.SetLineWidth(2)
			for i, d := range [][]vg.Length{{6, 3}, {6, 3, 1, 3}, {5}, {}} {
				c.SetLineDash(d, vg.Length(i))
				y := vg.Length(20 + 25*i)
				c.Stroke(path(vg.Point{X: 10, Y: y}, vg.Point{X: 150, Y: y}, vg.Point{X: 200, Y: y + 20}))
			}
		},
		"areas": func(c draw.Canvas) {
			c.SetColor(color.NRGBA{20, 130, 90, 200})
			c.Fill(path(vg.Point{X: 10, Y: 10}, vg.Point{X: 100, Y: 30}, vg.Point{X: 50, Y: 120}))
			p := path(vg.Point{X: 120, Y: 10}, vg.Point{X: 200, Y: 10}, vg.Point{X: 200, Y: 60}, vg.Point{X: 120, Y: 60})
			p.Close()
			c.Fill(p)
			c.SetLineWidth(4)
			c.Stroke(p)
		},
		"curves": func(c draw.Canvas) {
			var disc, arc, curve vg.Path
			disc.Move(vg.Point{X: 70, Y: 50})
			disc.Arc(vg.Point{X: 50, Y: 50}, 20, 0, 2*math.Pi)
			disc.Close()
			c.Fill(disc)
			arc.Arc(vg.Point{X: 120, Y: 60}, 40, 1, -2.5)
			c.Stroke(arc)
			curve.Move(vg.Point{X: 10, Y: 100})
			curve.QuadTo(vg.Point{X: 50, Y: 160}, vg.Point{X: 90, Y: 100})
			curve.CubeTo(vg.Point{X: 110, Y: 60}, vg.Point{X: 150, Y: 160}, vg.Point{X: 210, Y: 100})
			c.Stroke(curve)
		},
		"texts": func(c draw.Canvas) {
			c.SetColor(color.NRGBA{40, 40, 40, 255})
			c.FillString(face, vg.Point{X: 10, Y: 20}, "Wavy Tokens é 0.125 %")
			c.FillString(font.Face{Face: face.Face}, vg.Point{X: 10, Y: 40}, "without a size")
		},
		"transforms": func(c draw.Canvas) {
			c.Push()
			c.Translate(vg.Point{X: 40, Y: 30})
			c.Rotate(math.Pi / 2)
			c.SetColor(color.NRGBA{160, 0, 0, 255})
			c.SetLineWidth(5)
			c.Stroke(path(vg.Point{}, vg.Point{X: 80, Y: 0}))
			c.Scale(0.5, 2)
			c.Fill(path(vg.Point{X: 10, Y: -20}, vg.Point{X: 40, Y: -20}, vg.Point{X: 40, Y: -40}))
			c.Pop()
			c.Stroke(path(vg.Point{X: 100, Y: 100}, vg.Point{X: 180, Y: 100}))
		},
		"pictures": func(c draw.Canvas) {
			c.DrawImage(vg.Rectangle{Min: vg.Point{X: 24, Y: 24}, Max: vg.Point{X: 24 + 96, Y: 24 + 72}}, square)
		},
		"outside": func(c draw.Canvas) {
			c.SetLineWidth(10)
			c.Stroke(path(vg.Point{X: -500, Y: 80}, vg.Point{X: 900, Y: 90}))
			c.Fill(path(vg.Point{X: 1e6, Y: 0}, vg.Point{X: 2e6, Y: 0}, vg.Point{X: 2e6, Y: 5}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := newRaster(w, h)
			paint(draw.New(got))
			reference := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(color.Transparent))
			paint(draw.New(reference))
			want := reference.Image().(*image.RGBA)
			if got.img.Bounds() != want.Bounds() {
				t.Fatalf("bounds %v, want %v", got.img.Bounds(), want.Bounds())
			}
			drawn, difference, far := 0.0, 0.0, 0
			for i, p := range want.Pix {
				drawn += float64(p)
				d := math.Abs(float64(p) - float64(got.img.Pix[i]))
				difference += d
				if d > 100 {
					far++
				}
			}
			limit := 0.05
			switch name {
			case "texts":
				limit = 0.2 // package vgimg moves each glyph to a quarter of a pixel
			case "pictures":
				limit = 0.2 // package vgimg blurs the edges of pixels
			}
			if drawn == 0 || difference > limit*drawn || far > len(want.Pix)/2000 {
				t.Errorf("difference %.1f %% of what is drawn; %d of %d values differ by more than 100", 100*difference/drawn, far, len(want.Pix))
			}
		})
	}
}

// A line or a text at a place that is no number is not drawn, and nothing else is lost.
func TestRasterNaN(t *testing.T) {
	c := newRaster(20, 20)
	var p vg.Path
	p.Move(vg.Point{X: vg.Length(math.NaN()), Y: 3})
	p.Line(vg.Point{X: 5, Y: vg.Length(math.Inf(1))})
	c.Stroke(p)
	c.Fill(p)
	c.SetLineDash([]vg.Length{2, 1}, 0)
	c.Stroke(p)
	var far vg.Path
	far.Move(vg.Point{X: -5, Y: -5})
	far.Line(vg.Point{X: -1e300, Y: -5})
	c.Stroke(far)
	c.FillString(fonts().Cache().Lookup(font.Font{Typeface: "Liberation", Variant: "Sans"}, 12), vg.Point{X: vg.Length(math.NaN())}, "lost")
	for _, v := range c.img.Pix {
		if v != 0 {
			t.Fatal("something was drawn")
		}
	}
}
