package live

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// Drawn is the last value of a name that the program logged to look at: a picture or a table.
type Drawn struct {
	Name, Text    string // Text says what it shows
	At            string // when it was logged, such as "step 1,200"
	PNG           []byte // at twice the resolution of a standard screen; nil for a table
	Width, Height int    // for display, in CSS pixels
	Areas         string // the charts of the picture, for the pointer

	Head []string // of a table
	Rows [][]string
}

const (
	drawnEvery = 500 * time.Millisecond // between two updates of what was drawn
	mostDrawn  = 180_000                // bytes of it in a notebook
	drawnRows  = 12                     // of a table
	halfPanel  = 440                    // CSS pixels
)

// drawnKey changes with what was drawn.
func drawnKey(all []Drawn) string {
	var b strings.Builder
	for i := range all {
		fmt.Fprintf(&b, "%q %q %s %s\n", all[i].Name, all[i].At, all[i].Text, chart.Tail(all[i].PNG))
	}
	return b.String()
}

// drawnHTML returns what was drawn: pictures, two narrow ones beside each other, and tables. The script of the page's other
// charts is theirs, too.
func drawnHTML(id string, all []Drawn) string {
	var b strings.Builder
	b.WriteString(`<div style="max-width:880px;font-size:13px;line-height:1.45">`)
	open, size, left := false, 0, 0
	for i := range all {
		d := &all[i]
		half := d.PNG != nil && d.Width <= halfPanel
		wide := 2 * halfPanel
		if half {
			wide = halfPanel
		}
		var inner strings.Builder
		fmt.Fprintf(&inner, `<div style="white-space:nowrap;overflow:hidden;text-overflow:ellipsis"><b>%s</b> <span style="%s">&nbsp; %s</span></div>`, screen.Escape(screen.Cut(d.Name, 60)), screen.Faint, screen.Escape(d.At))
		if d.PNG != nil {
			fmt.Fprintf(&inner, `<img style="width:%.1f%%;height:auto" alt="%s" %s src="data:image/png;base64,%s">`, min(100*float64(d.Width)/float64(wide), 100), screen.Escape(screen.Cut(d.Text, 400)),
				chart.Attr(id+" "+d.Name, d.Areas), base64.StdEncoding.EncodeToString(d.PNG))
		} else {
			tableOf(&inner, d)
		}
		if size += inner.Len(); size > mostDrawn {
			left++
			continue
		}
		if open && !half {
			b.WriteString("</div>")
			open = false
		}
		switch {
		case !half:
			b.WriteString(`<div style="padding:6px 0 0 0">` + inner.String() + "</div>")
			continue
		case !open:
			b.WriteString(`<div style="display:flex;width:100%;padding:6px 0 0 0">`)
		}
		b.WriteString(`<div style="width:50%;overflow:hidden">` + inner.String() + "</div>")
		if open {
			b.WriteString("</div>")
		}
		open = !open
	}
	if open {
		b.WriteString("</div>")
	}
	if left > 0 {
		fmt.Fprintf(&b, `<div style="%s">and %d more that the run's directory has</div>`, screen.Faint, left)
	}
	b.WriteString(chart.Script() + "</div>")
	return b.String()
}

// tableOf writes a logged table.
func tableOf(b *strings.Builder, d *Drawn) {
	b.WriteString(screen.TableHead("max-width:880px"))
	cells := make([]string, len(d.Head))
	for i, s := range d.Head {
		cells[i] = screen.HeadCell(screen.TextStyle, s)
	}
	screen.Row(b, true, cells...)
	for _, r := range d.Rows[:min(len(d.Rows), drawnRows)] {
		cells = cells[:0]
		for _, s := range r {
			cells = append(cells, screen.Cell(screen.TextStyle, screen.Escape(s)))
		}
		screen.Row(b, false, cells...)
	}
	b.WriteString("</table>")
	if n := len(d.Rows) - drawnRows; n > 0 {
		fmt.Fprintf(b, `<div style="%s">and %s</div>`, screen.Faint, screen.Plural(n, "more row"))
	}
}

// drawnPlain returns the same as plain text.
func drawnPlain(all []Drawn) string {
	var b strings.Builder
	for i := range all {
		d := &all[i]
		fmt.Fprintf(&b, "%s, %s: %s\n", screen.OneLine(d.Name), d.At, screen.OneLine(d.Text))
		for k, r := range append([][]string{d.Head}, d.Rows...) {
			if d.PNG != nil || k > drawnRows {
				break
			}
			b.WriteString("  " + screen.OneLine(strings.Join(r, " | ")) + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// showDrawn shows what was drawn as an output of its own, below the panel, if it has changed.
func (n *notebook) showDrawn(s *Snapshot, last bool) error {
	if len(s.Drawn) == 0 || !last && time.Since(n.drawnAt) < drawnEvery {
		return nil
	}
	key := drawnKey(s.Drawn)
	if key == n.drawnKey {
		return nil
	}
	n.drawnKey, n.drawnAt = key, time.Now()
	return n.d.Send(screen.HTMLData(n.id+"_drawn", drawnHTML(n.id, s.Drawn), drawnPlain(s.Drawn)))
}
