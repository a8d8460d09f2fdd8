package live

import (
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/phrase"
)

// logLines is the number of last log lines that a cell shows.
const logLines = 6

// liveHTML returns the panel during the run.
func liveHTML(id string, s *Snapshot, charts []drawing, log []string) string {
	var b strings.Builder
	size := 8<<10 + len(chart.Script())
	for i := range charts {
		size += len(charts[i].src) + len(charts[i].areas)
	}
	b.Grow(size)
	b.WriteString(`<div style="max-width:880px;font-size:13px;line-height:1.45">`)
	HeadHTML(&b, s)
	alt := screen.Escape(Line(s))
	b.WriteString(`<div style="display:flex;width:100%">`)
	for i := range charts {
		if i > 0 && charts[i].share == 1 {
			b.WriteString(`</div><div style="display:flex;width:100%">`)
		}
		fmt.Fprintf(&b, `<img style="width:%.1f%%;height:auto;margin:4px 0 0 0;background:transparent" alt="%s" %s src="data:image/svg+xml;base64,`, 100*charts[i].share, alt, chart.Attr(id, charts[i].areas))
		b.WriteString(charts[i].src)
		b.WriteString(`">`)
		alt = ""
	}
	b.WriteString(`</div>`)
	workersHTML(&b, s)
	gpusHTML(&b, s)
	ratesHTML(&b, s)
	if s.Rows != "" {
		fmt.Fprintf(&b, `<div style="font-size:12px;padding:3px 0 0 0">rows of features: %s</div>`, screen.Escape(s.Rows))
	}
	logHTML(&b, log)
	b.WriteString(chart.Script() + `</div>`)
	return b.String()
}

// HeadHTML writes the first lines of a panel: title, state, progress and times.
func HeadHTML(b *strings.Builder, s *Snapshot) {
	b.WriteString(`<div style="display:flex;align-items:baseline;padding:2px 0 5px 0">`)
	b.WriteString(`<div style="width:70%;white-space:nowrap;overflow:hidden;text-overflow:ellipsis">`)
	if s.Title != "" {
		fmt.Fprintf(b, `<b>%s</b> &nbsp; `, screen.Escape(s.Title))
	}
	fmt.Fprintf(b, `<span style="color:%s">&#9679;</span> %s`, screen.CSS(screen.StateColor(s.state())), screen.Escape(s.state()))
	if s.Epoch > 0 {
		fmt.Fprintf(b, ` <span style="%s">&nbsp; epoch %s`, screen.Faint, screen.Of(s.Epoch, s.Epochs))
		if s.Steps > 0 || s.Step > 0 {
			fmt.Fprintf(b, `, step %s`, screen.Of(s.Step, s.Steps))
		}
		b.WriteString(`</span>`)
	}
	if lr, ok := lastOf(s.LR); ok {
		fmt.Fprintf(b, ` <span style="%s">&nbsp; learning rate %s</span>`, screen.Faint, screen.Short(lr.Y))
	}
	// A temporary note is part of the line, so that the panel's height does not change.
	if s.Detail != "" && !s.final() {
		fmt.Fprintf(b, ` <span style="%s">&nbsp; %s</span>`, screen.Faint, phrase.HTML(screen.Cut(screen.OneLine(s.Detail), 160)))
	}
	fmt.Fprintf(b, `</div><div style="width:30%%;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"><span style="%s">%s`, screen.Faint, screen.Clock(s.Elapsed))
	if s.Left > 0 && !s.final() {
		fmt.Fprintf(b, ` elapsed,</span> %s left`, screen.Clock(s.Left))
	} else {
		b.WriteString(` elapsed</span>`)
	}
	b.WriteString(`</div></div>`)
	if share, ok := s.progress(); ok {
		fmt.Fprintf(b, `<div style="height:4px;border-radius:2px;background-color:%s;overflow:hidden"><div style="height:4px;width:%.1f%%;background-color:%s"></div></div>`,
			screen.Track, share*100, screen.CSS(screen.StateColor(s.state())))
	}
	if s.Detail != "" && s.final() {
		b.WriteString(reasonLine(s))
	}
}

func reasonLine(s *Snapshot) string {
	return fmt.Sprintf(`<div style="margin:7px 0 2px 0;padding:1px 0 1px 9px;border-left:3px solid %s">%s</div>`, screen.CSS(screen.StateColor(s.state())), screen.Multiline(s.Detail))
}

// reasonHTML returns the reason why a run ended early.
func reasonHTML(s *Snapshot) string {
	title := ""
	if s.Title != "" {
		title = `<b>` + screen.Escape(s.Title) + `</b> &nbsp; `
	}
	return fmt.Sprintf(`<div style="max-width:880px;font-size:13px;line-height:1.45">%s<span style="color:%s">&#9679;</span> %s%s</div>`,
		title, screen.CSS(screen.StateColor(s.state())), screen.Escape(s.state()), reasonLine(s))
}

// reasonPlain returns the same as plain text.
func reasonPlain(s *Snapshot) string {
	return strings.Join(append(screen.NonEmpty(screen.OneLine(s.Title), s.state()), screen.Lines(s.Detail)...), ": ")
}

func logHTML(b *strings.Builder, log []string) {
	log = log[max(len(log)-logLines, 0):]
	if len(log) == 0 {
		return
	}
	b.WriteString(`<div style="margin:6px 0 0 0;padding:4px 0 0 0;border-top:1px solid ` + screen.Border + `;font-family:monospace;font-size:11px;line-height:1.4;white-space:pre-wrap;` + screen.Faint + `">`)
	for i, l := range log {
		if i > 0 {
			b.WriteString("<br>")
		}
		b.WriteString(phrase.HTML(screen.Cut(l, 400)))
	}
	b.WriteString(`</div>`)
}
