package live

import (
	"fmt"
	"html"
	"image/color"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/phrase"
)

// HTML for cells. It uses only elements, attributes and style properties that Jupyter keeps in an
// untrusted notebook: no script, style or svg elements, no ids. Text has the page's colour to fit
// any theme; secondary text is paler, not grey.

// logLines is the number of last log lines that a cell shows.
const logLines = 6

const (
	faint  = "opacity:0.65"
	border = "rgba(128,128,128,0.25)"
	track  = "rgba(128,128,128,0.18)"
	num    = "text-align:right;padding:2px 12px 2px 0;white-space:nowrap;border:0;font-variant-numeric:tabular-nums"
	txt    = "text-align:left;padding:2px 12px 2px 0;white-space:nowrap;border:0"
)

func esc(s string) string { return html.EscapeString(oneLine(s)) }

func css(c color.NRGBA) string {
	if c.A < 0xff {
		return fmt.Sprintf("rgba(%d,%d,%d,%.2f)", c.R, c.G, c.B, float64(c.A)/0xff)
	}
	return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
}

// liveHTML returns the panel during the run.
func liveHTML(s *Snapshot, charts []drawing, log []string) string {
	var b strings.Builder
	size := 8 << 10
	for i := range charts {
		size += len(charts[i].src)
	}
	b.Grow(size)
	b.WriteString(`<div style="max-width:880px;font-size:13px;line-height:1.45">`)
	headHTML(&b, s)
	alt := esc(plainLine(s))
	b.WriteString(`<div style="display:flex;width:100%">`)
	for i := range charts {
		fmt.Fprintf(&b, `<img style="width:%.1f%%;height:auto;margin:4px 0 0 0;background:transparent" alt="%s" src="data:image/svg+xml;base64,`, 100*charts[i].share, alt)
		b.WriteString(charts[i].src)
		b.WriteString(`">`)
		alt = ""
	}
	b.WriteString(`</div>`)
	workersHTML(&b, s)
	gpusHTML(&b, s)
	ratesHTML(&b, s)
	if s.Rows != "" {
		fmt.Fprintf(&b, `<div style="font-size:12px;padding:3px 0 0 0">rows of features: %s</div>`, esc(s.Rows))
	}
	logHTML(&b, log)
	b.WriteString(`</div>`)
	return b.String()
}

func headHTML(b *strings.Builder, s *Snapshot) {
	b.WriteString(`<div style="display:flex;align-items:baseline;padding:2px 0 5px 0">`)
	b.WriteString(`<div style="width:70%;white-space:nowrap;overflow:hidden;text-overflow:ellipsis">`)
	if s.Title != "" {
		fmt.Fprintf(b, `<b>%s</b> &nbsp; `, esc(s.Title))
	}
	fmt.Fprintf(b, `<span style="color:%s">&#9679;</span> %s`, css(stateColor(s.state())), esc(s.state()))
	if s.Epoch > 0 {
		fmt.Fprintf(b, ` <span style="%s">&nbsp; epoch %s`, faint, of(s.Epoch, s.Epochs))
		if s.Steps > 0 || s.Step > 0 {
			fmt.Fprintf(b, `, step %s`, of(s.Step, s.Steps))
		}
		b.WriteString(`</span>`)
	}
	if lr, ok := lastOf(s.LR); ok {
		fmt.Fprintf(b, ` <span style="%s">&nbsp; learning rate %s</span>`, faint, short(lr.Y))
	}
	// A temporary note is part of the line, so that the panel's height does not change.
	if s.Detail != "" && !s.final() {
		fmt.Fprintf(b, ` <span style="%s">&nbsp; %s</span>`, faint, html.EscapeString(cut(oneLine(s.Detail), 160)))
	}
	fmt.Fprintf(b, `</div><div style="width:30%%;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"><span style="%s">%s`, faint, clock(s.Elapsed))
	if s.Left > 0 && !s.final() {
		fmt.Fprintf(b, ` elapsed,</span> %s left`, clock(s.Left))
	} else {
		b.WriteString(` elapsed</span>`)
	}
	b.WriteString(`</div></div>`)
	if share, ok := s.progress(); ok {
		fmt.Fprintf(b, `<div style="height:4px;border-radius:2px;background-color:%s;overflow:hidden"><div style="height:4px;width:%.1f%%;background-color:%s"></div></div>`,
			track, share*100, css(stateColor(s.state())))
	}
	if s.Detail != "" && s.final() {
		b.WriteString(reasonLine(s))
	}
}

func reasonLine(s *Snapshot) string {
	return fmt.Sprintf(`<div style="margin:7px 0 2px 0;padding:1px 0 1px 9px;border-left:3px solid %s">%s</div>`, css(stateColor(s.state())), multiline(s.Detail))
}

// reasonHTML returns the reason why a run ended early.
func reasonHTML(s *Snapshot) string {
	title := ""
	if s.Title != "" {
		title = `<b>` + esc(s.Title) + `</b> &nbsp; `
	}
	return fmt.Sprintf(`<div style="max-width:880px;font-size:13px;line-height:1.45">%s<span style="color:%s">&#9679;</span> %s%s</div>`,
		title, css(stateColor(s.state())), esc(s.state()), reasonLine(s))
}

// reasonPlain returns the same as plain text.
func reasonPlain(s *Snapshot) string {
	return strings.Join(append(nonEmpty(oneLine(s.Title), s.state()), lines(s.Detail)...), ": ")
}

func multiline(s string) string {
	ls := lines(s)
	for i := range ls {
		ls[i] = html.EscapeString(ls[i])
	}
	return strings.Join(ls, "<br>")
}

// tableHead overrides JupyterLab's style sheet for tables.
func tableHead(wide string) string {
	return `<table style="border-collapse:collapse;border:0;table-layout:auto;margin:2px 0 0 0;font-size:12px;line-height:1.35;` + wide + `">`
}

func row(b *strings.Builder, top bool, cells ...string) {
	style := "background:transparent"
	if top {
		style += ";border-bottom:1px solid " + border
	}
	fmt.Fprintf(b, `<tr style="%s">`, style)
	for _, c := range cells {
		b.WriteString(c)
	}
	b.WriteString("</tr>")
}

func cell(style, inner string) string { return `<td style="` + style + `">` + inner + `</td>` }

func head(style, inner string) string {
	return `<td style="` + style + `;` + faint + `">` + inner + `</td>`
}

func known(n int) string {
	if n <= 0 {
		return "–"
	}
	return chart.Grouped(n)
}

func rate(x float64) string {
	if !(x > 0) {
		return "–"
	}
	return number(x)
}

func memory(n int64) string {
	if n <= 0 {
		return "–"
	}
	return phrase.Bytes(n)
}

func logHTML(b *strings.Builder, log []string) {
	log = log[max(len(log)-logLines, 0):]
	if len(log) == 0 {
		return
	}
	b.WriteString(`<div style="margin:6px 0 0 0;padding:4px 0 0 0;border-top:1px solid ` + border + `;font-family:monospace;font-size:11px;line-height:1.4;white-space:pre-wrap;` + faint + `">`)
	for i, l := range log {
		if i > 0 {
			b.WriteString("<br>")
		}
		b.WriteString(html.EscapeString(cut(l, 400)))
	}
	b.WriteString(`</div>`)
}

// cut shortens a line to a maximum number of runes.
func cut(s string, runes int) string {
	if len(s) <= runes {
		return s
	}
	r := []rune(s)
	if len(r) <= runes {
		return s
	}
	return string(r[:runes-1]) + "…"
}
