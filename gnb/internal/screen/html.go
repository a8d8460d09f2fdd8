package screen

import (
	"encoding/base64"
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/phrase"
)

// HTML for cells. It uses only elements, attributes and style properties that Jupyter keeps in an
// untrusted notebook: no style or svg elements, no ids, and no script but the constant one of package chart, without which
// nothing but the pointer is missing. Text has the page's colour to fit any theme; secondary text is paler, not grey.

const (
	Faint       = "opacity:0.65"
	Border      = "rgba(128,128,128,0.25)"
	Track       = "rgba(128,128,128,0.18)"
	NumberStyle = "text-align:right;padding:2px 12px 2px 0;white-space:nowrap;border:0;font-variant-numeric:tabular-nums"
	TextStyle   = "text-align:left;padding:2px 12px 2px 0;white-space:nowrap;border:0"
)

// Escape returns user text as one line of HTML.
func Escape(s string) string { return phrase.HTML(OneLine(s)) }

// CSS returns a colour as a style property has it.
func CSS(c color.NRGBA) string {
	if c.A < 0xff {
		return fmt.Sprintf("rgba(%d,%d,%d,%.2f)", c.R, c.G, c.B, float64(c.A)/0xff)
	}
	return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
}

// Multiline returns user text as HTML with its line breaks.
func Multiline(s string) string {
	ls := Lines(s)
	for i := range ls {
		ls[i] = phrase.HTML(ls[i])
	}
	return strings.Join(ls, "<br>")
}

// TableHead overrides JupyterLab's style sheet for tables.
func TableHead(wide string) string {
	return `<table style="border-collapse:collapse;border:0;table-layout:auto;margin:2px 0 0 0;font-size:12px;line-height:1.35;` + wide + `">`
}

// Row writes a row of a table; top draws a line below it.
func Row(b *strings.Builder, top bool, cells ...string) {
	style := "background:transparent"
	if top {
		style += ";border-bottom:1px solid " + Border
	}
	fmt.Fprintf(b, `<tr style="%s">`, style)
	for _, c := range cells {
		b.WriteString(c)
	}
	b.WriteString("</tr>")
}

// Cell returns a cell of a table with the given HTML inside.
func Cell(style, inner string) string { return `<td style="` + style + `">` + inner + `</td>` }

// Head returns a paler cell, for names.
func Head(style, inner string) string {
	return `<td style="` + style + `;` + Faint + `">` + inner + `</td>`
}

// Drawing is a drawing of a panel, an SVG document, with its charts for the pointer; the zero value is none.
type Drawing struct {
	SVG   []byte
	Areas string // "": none answers to the pointer
}

// DrawSVG draws a drawing of the given height in points for a panel.
func DrawSVG(height vg.Length, paint func(p *chart.Painter, c draw.Canvas)) (Drawing, error) {
	return Guarded(func() (Drawing, error) {
		var p chart.Painter
		svg, err := chart.SVG(chart.Width, height, func(c draw.Canvas) { paint(&p, c) })
		return Drawing{svg, chart.AreasJSON("", chart.Width, height, false, p.Areas)}, err
	})
}

// HTML writes the drawing over the whole width, with text for viewers without pictures, unless there is none. key names it
// among the drawings of the page.
func (d Drawing) HTML(b *strings.Builder, key, text string) {
	if len(d.SVG) == 0 {
		return
	}
	fmt.Fprintf(b, `<img style="width:100%%;max-width:880px;height:auto;margin:4px 0 0 0;background:transparent" alt="%s" %s src="data:image/svg+xml;base64,%s">%s`,
		Escape(text), chart.Attr(key, d.Areas), base64.StdEncoding.EncodeToString(d.SVG), chart.Script())
}

// Count formats a count; "–" if it is not positive.
func Count(n int) string {
	if n <= 0 {
		return "–"
	}
	return chart.Grouped(n)
}

// Rate formats a number per second; "–" if it is not positive.
func Rate(x float64) string {
	if !(x > 0) {
		return "–"
	}
	return Number(x)
}

// Memory formats a number of bytes; "–" if it is not positive.
func Memory(n int64) string {
	if n <= 0 {
		return "–"
	}
	return phrase.Bytes(n)
}

// HeadCell is Head for user text.
func HeadCell(style, name string) string { return Head(style, Escape(name)) }
