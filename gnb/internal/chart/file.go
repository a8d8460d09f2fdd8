package chart

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/graphnb/graphnb/internal/phrase"
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

// raw returns the drawing of paint on a canvas of the given size, without a page, at twice the resolution of a standard
// screen.
func raw(width, height vg.Length, paint func(c draw.Canvas)) (*image.Paletted, map[color.NRGBA]bool) {
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(color.Transparent))
	paint(draw.New(c))
	return paletted(c.Image().(*image.RGBA))
}

func (p *Painter) pngOf(img *image.Paletted) ([]byte, error) {
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: p.Level}).Encode(&b, img); err != nil {
		return nil, fmt.Errorf("encoding the figure: %w", err)
	}
	return b.Bytes(), nil
}

// Picture is a PNG at twice the resolution of a standard screen.
type Picture struct {
	PNG           []byte
	Width, Height int    // for display, in CSS pixels
	Areas         string // its charts, for the pointer (see [AreasJSON]); "" if none answers to it

	img   *image.Paletted // without a page
	areas map[color.NRGBA]bool
}

// Picture draws a picture of the given size in points, multiples of 3, on a page: paint draws with p. With its charts, in
// base64 and JSON, it takes at most the given number of bytes, if the picture alone does.
func (p *Painter) Picture(width, height vg.Length, most int, paint func(c draw.Canvas)) (Picture, error) {
	p.OnPage, p.Areas = true, nil
	defer func() { p.OnPage = false }()
	img, areas := raw(width, height, paint)
	data, err := p.pngOf(onPaper(img))
	pic := Picture{PNG: data, Width: int(width) * 4 / 3, Height: int(height) * 4 / 3, img: img, areas: areas}
	if err == nil {
		pic.Areas = savedAreas(data, width, height, p.Areas, most)
	}
	return pic, err
}

// ForCell returns the picture without a page, in colours for a light theme and a dark one.
func (p Picture) ForCell() (Picture, error) {
	if p.img == nil {
		return p, nil
	}
	data, err := new(Painter).pngOf(onAny(p.img, p.areas))
	if err != nil {
		return p, err
	}
	p.Areas = strings.Replace(p.Areas, Tail(p.PNG), Tail(data), 1)
	p.Areas = strings.Replace(p.Areas, `"page":true`, `"page":false`, 1)
	p.PNG, p.img, p.areas = data, nil, nil
	return p, nil
}

// Paint is [Painter.Picture] with a new painter. A picture without charts does not answer to the pointer.
func Paint(width, height vg.Length, most int, paint func(p *Painter, c draw.Canvas)) (Picture, error) {
	var p Painter
	pic, err := p.Picture(width, height, most, func(c draw.Canvas) { paint(&p, c) })
	if len(p.Areas) == 0 {
		pic.Areas = ""
	}
	return pic, err
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
	text = phrase.Legal(text) // the canvas escapes the rest
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
		{"font-family:" + family + ";", "font-family:Liberation Sans,Arial,Helvetica,sans-serif;"},
		{"font-variant:none;", ""},
		{"font-variant:normal;", ""},
		{"font-weight:normal;", ""},
		{"font-style:normal;", ""},
	} {
		svg = bytes.ReplaceAll(svg, []byte(r[0]), []byte(r[1]))
	}
	if head := bytes.Index(svg, []byte("\n<g ")); head >= 0 {
		svg = slices.Insert(svg, head, onDark(svg)...)
	}
	return svg, nil
}

// onDark returns a style sheet that makes the text of a drawing lighter where the element that shows it has a dark color-scheme.
func onDark(svg []byte) []byte {
	var rules []byte
	seen := map[string]bool{}
	for part := range bytes.SplitSeq(svg, []byte("<text ")) {
		head, _, _ := bytes.Cut(part, []byte(">"))
		_, fill, ok := bytes.Cut(head, []byte(";fill:#"))
		if !ok || len(fill) < 6 || seen[string(fill[:6])] {
			continue
		}
		seen[string(fill[:6])] = true
		v, err := strconv.ParseUint(string(fill[:6]), 16, 32)
		if err != nil {
			continue
		}
		lighter := func(b uint64) uint64 { return b + (255-b)*2/5 }
		rules = fmt.Appendf(rules, `text[style*="#%s"]{fill:#%02x%02x%02x!important}`, fill[:6], lighter(v>>16&0xff), lighter(v>>8&0xff), lighter(v&0xff))
	}
	if rules == nil {
		return nil
	}
	return slices.Concat([]byte("\n<style>@media(prefers-color-scheme:dark){"), rules, []byte("}</style>"))
}
