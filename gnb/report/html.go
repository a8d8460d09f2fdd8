package report

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/graphnb/graphnb/gnb/figure"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
)

// WriteHTML writes the report to a file as one page with its pictures and tables, which needs nothing else. The file appears completely
// or not at all.
func (r *Report) WriteHTML(path string) error {
	return writeHTML(path, r.title(), []string{r.summary()}, r.Figures(), r.tables())
}

// WriteHTML is [Report.WriteHTML] for numbers.
func (r *Numbers) WriteHTML(path string) error {
	var summaries []string
	for _, e := range r.Targets {
		summaries = append(summaries, e.summary(r.rows.unit))
	}
	return writeHTML(path, r.title(), summaries, r.Figures(), r.tables())
}

// WriteHTML is [Report.WriteHTML] for graphs.
func (r *Graphs) WriteHTML(path string) error {
	switch {
	case r.Classes != nil:
		return r.Classes.WriteHTML(path)
	case r.Numbers != nil:
		return r.Numbers.WriteHTML(path)
	}
	return nil
}

// style is the page's: light, as the pictures are, and readable on a phone.
const style = `:root{color-scheme:light}body{font:14px/1.45 system-ui,sans-serif;color:#2b2d30;background:#fff;max-width:920px;margin:24px auto;padding:0 16px}` +
	`h1{font-size:18px}h2{font-size:15px;margin:24px 0 6px}img{width:100%;min-width:640px;height:auto;margin:12px 0}.wide{overflow-x:auto}` +
	`table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:2px 14px 2px 0;text-align:right;white-space:nowrap}` +
	`th{font-weight:600;border-bottom:1px solid #ccc}th:first-child,td:first-child{text-align:left}`

func writeHTML(path, title string, summaries []string, figures []*figure.Figure, tables []table) error {
	var b strings.Builder
	line := func(tag, text string) {
		fmt.Fprintf(&b, "<%s>%s</%s>\n", tag, phrase.HTML(phrase.CleanLine(text)), tag)
	}
	b.WriteString("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n")
	line("title", title)
	b.WriteString("<style>" + style + "</style></head><body>\n")
	line("h1", title)
	for _, s := range summaries {
		line("p", s)
	}
	for _, f := range figures {
		svg, err := f.SVG()
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		fmt.Fprintf(&b, "<div class=\"wide\"><img alt=\"%s\" src=\"data:image/svg+xml;base64,%s\"></div>\n", phrase.HTML(phrase.CleanLine(f.String())), base64.StdEncoding.EncodeToString(svg))
	}
	for _, t := range tables {
		line("h2", t.name)
		b.WriteString("<div class=\"wide\"><table>\n")
		for i, row := range append([][]string{t.head}, t.rows...) {
			tag := "td"
			if i == 0 {
				tag = "th"
			}
			b.WriteString("<tr>")
			for _, cell := range row {
				fmt.Fprintf(&b, "<%s>%s</%s>", tag, phrase.HTML(phrase.CleanLine(cell)), tag)
			}
			b.WriteString("</tr>\n")
		}
		b.WriteString("</table></div>\n")
	}
	b.WriteString("</body></html>\n")
	err := atomicfile.WriteWith(path, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, b.String())
		return err
	})
	if err != nil {
		return fmt.Errorf("report: writing %s: %w", path, err)
	}
	return nil
}
