package live

import (
	"encoding/base64"
	"fmt"
	"html"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"

	"github.com/janpfeifer/gonb/gonbui"
)

// SweepSink shows a [Sweep] while it runs: a cell gets a picture and a table, which stay, a
// terminal or a pipe a progress line.
type SweepSink interface {
	// Update shows the state s. The sink keeps s; it must not change.
	Update(s Sweep)
	// Tell adds a line, unless a table shows the same.
	Tell(line string)
	// Close shows the final state and ends the sink, as Close of [Sink] does.
	Close(final Sweep) error
}

// NewSweep makes the sink that fits where output goes, as [New] does.
func NewSweep(o Options) SweepSink {
	if pick(&o) != modeNotebook {
		return sweepLines{New(o)}
	}
	n := &sweepCell{d: o.Display, id: "gnb_" + gonbui.UniqueId()}
	n.pump = newPump(time.Second/time.Duration(min(o.MaxFPS, 5)), n.frame) // a picture with hundreds of lines
	return n
}

// sweepLines shows a sweep as a run whose steps are trials.
type sweepLines struct{ sink Sink }

func (l sweepLines) Update(s Sweep)      { l.sink.Update(s.snapshot()) }
func (l sweepLines) Tell(line string)    { l.sink.Print(line) }
func (l sweepLines) Close(s Sweep) error { return l.sink.Close(s.snapshot()) }

func (s *Sweep) snapshot() Snapshot {
	r := Snapshot{Title: s.Title, State: s.State, Detail: s.Detail, Step: s.Done, Steps: s.Total, Unit: "trial", Elapsed: s.Elapsed, Left: s.Left}
	if b, ok := s.best(); ok {
		r.Metrics = []Series{{Name: "best " + s.Metric, Points: []Point{{Step: s.Done, Y: b.Value}}}}
	}
	return r
}

// sweepCell shows a sweep in a cell: one output, updated in place. It keeps the latest state; its
// pump decides when to draw it.
type sweepCell struct {
	d  Display
	id string

	mu     sync.Mutex
	latest Sweep
	*pump
}

func (n *sweepCell) keep(s Sweep) Snapshot {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latest = s
	return s.snapshot()
}

func (n *sweepCell) Update(s Sweep) { n.update(n.keep(s)) }
func (n *sweepCell) Tell(string)    {} // the table shows it
func (n *sweepCell) Close(s Sweep) error {
	r := n.keep(s)
	return n.close(r, closeWait(&r))
}

func (n *sweepCell) frame(f frame) error {
	n.mu.Lock()
	s := n.latest
	n.mu.Unlock()
	plain := plainLine(&f.s)
	if !f.last {
		svg, err := guarded(func() ([]byte, error) { return sweepSVG(&s) })
		if err != nil {
			svg = nil
		}
		return n.d.Send(htmlData(n.id, sweepHTML(&s, &f.s, svg, 10), plain))
	}
	if err := n.d.Send(lastData(n.id, plain, func() ([]byte, int, int, error) { return SweepPNG(s) })); err != nil {
		return err
	}
	if err := n.d.Send(htmlData("", sweepHTML(&s, &f.s, nil, 30), s.note())); err != nil {
		return err
	}
	return n.d.Sync()
}

// sweepHTML returns the head, the picture if there is one, and a table of the best, running and
// failed trials.
func sweepHTML(s *Sweep, head *Snapshot, svg []byte, most int) string {
	var b strings.Builder
	b.WriteString(`<div style="max-width:880px;font-size:13px;line-height:1.45">`)
	headHTML(&b, head)
	fmt.Fprintf(&b, `<div style="%s">%s</div>`, faint, esc(s.note()))
	if len(svg) > 0 {
		fmt.Fprintf(&b, `<img style="width:100%%;max-width:880px;height:auto;margin:4px 0 0 0;background:transparent" alt="%s" src="data:image/svg+xml;base64,%s">`,
			esc(plainLine(head)), base64.StdEncoding.EncodeToString(svg))
	}
	b.WriteString(tableHead("width:100%"))
	cells := []string{headCell(num, "trial"), headCell(num, s.Metric)}
	for _, a := range s.Axes {
		cells = append(cells, headCell(num, a.Name))
	}
	row(&b, true, append(cells, headCell(num, "epochs"), headCell(num, "time"), headCell(txt+";width:30%", ""))...)
	rest := 0
	for i, t := range s.Trials {
		if i >= most && t.State != Failed && t.State != Running || i >= 10*most {
			rest++
			continue
		}
		sweepRow(&b, s, &t, i == 0)
	}
	b.WriteString("</table>")
	if rest > 0 {
		fmt.Fprintf(&b, `<div style="%s">and %s</div>`, faint, plural(rest, "more trial"))
	}
	b.WriteString("</div>")
	return b.String()
}

func headCell(style, name string) string { return head(style, esc(name)) }

func sweepRow(b *strings.Builder, s *Sweep, t *SweepTrial, first bool) {
	v := "–"
	if chart.Finite(t.Value) && t.State != Failed {
		v = fmt.Sprintf("%.4f", t.Value)
	}
	if _, ok := s.best(); ok && first {
		v = fmt.Sprintf(`<b style="color:%s">%s</b>`, css(chart.Orange), v)
	}
	cells := []string{cell(num, strconv.Itoa(t.Number)), cell(num, v)}
	for i := range s.Axes {
		x := ""
		if i < len(t.Values) {
			x = esc(cut(t.Values[i], 40))
		}
		cells = append(cells, cell(num, x))
	}
	note := ""
	if t.State != Done {
		note = fmt.Sprintf(`<span style="color:%s">&#9679;</span> %s`, css(stateColor(t.State)), esc(t.State))
	}
	if t.Note != "" {
		note += ": " + html.EscapeString(cut(oneLine(t.Note), 200))
	}
	row(b, false, append(cells, cell(num, known(t.Epochs)), cell(num, elapsed(time.Duration(t.Seconds*float64(time.Second)))),
		cell("text-align:left;padding:2px 0;border:0;white-space:normal", note))...)
}
