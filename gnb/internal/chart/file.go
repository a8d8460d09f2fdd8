package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A figure's size in points; a point is 4/3 of a browser's pixels.
const (
	Width  = 660 // of every figure
	Height = 195 // of one with a single row of charts
	pngDPI = 192
)

// SVG returns the drawing of paint on a canvas of the given size as an SVG document.
func SVG(width, height vg.Length, paint func(c draw.Canvas)) ([]byte, error) {
	c := newSVG(width, height)
	paint(draw.New(c))
	return svgText(c)
}

// PNG returns the drawing of paint on a canvas of Width and the given height as a PNG at twice the
// resolution of a standard screen.
func PNG(height vg.Length, paint func(c draw.Canvas)) ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(Width, height), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(color.Transparent))
	paint(draw.New(c))
	var b bytes.Buffer
	if err := png.Encode(&b, paletted(c.Image())); err != nil {
		return nil, fmt.Errorf("encoding the figure: %w", err)
	}
	return b.Bytes(), nil
}

// svgCanvas is an SVG canvas that records the width of each text in the font used for layout.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

func newSVG(width, height vg.Length) *svgCanvas {
	return &svgCanvas{Canvas: vgsvg.New(width, height)}
}

func (c *svgCanvas) FillString(f font.Face, at vg.Point, text string) {
	c.widths = append(c.widths, f.Width(text))
	c.Canvas.FillString(f, at, text)
}

// svgText returns a drawing as SVG text. The browser's machine may lack the font, so each text has
// its width as an attribute, and the browser fits its own font into it.
func svgText(c *svgCanvas) ([]byte, error) {
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("writing the figure: %w", err)
	}
	parts := bytes.Split(b.Bytes(), []byte("<text "))
	if len(parts) != len(c.widths)+1 {
		return nil, fmt.Errorf("writing the figure: %d texts were drawn and %d written", len(c.widths), len(parts)-1)
	}
	svg := make([]byte, 0, b.Len()+48*len(c.widths))
	for i, part := range parts {
		if i > 0 {
			svg = fmt.Appendf(svg, `<text textLength="%.4g" lengthAdjust="spacingAndGlyphs" `, max(c.widths[i-1].Points(), 0.1))
		}
		svg = append(svg, part...)
	}
	for _, r := range [][2]string{
		{"font-family:Liberation Sans;", "font-family:Liberation Sans,Arial,Helvetica,sans-serif;"},
		{"font-variant:none;", ""},
		{"font-variant:normal;", ""},
		{"font-weight:normal;", ""},
		{"font-style:normal;", ""},
	} {
		svg = bytes.ReplaceAll(svg, []byte(r[0]), []byte(r[1]))
	}
	return svg, nil
}
