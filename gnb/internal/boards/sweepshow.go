package boards

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/phrase"
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
func NewSweep(o screen.Options) SweepSink {
	if screen.Pick(&o) != screen.Notebook {
		return sweepLines{live.New(o)}
	}
	n := &sweepCell{d: o.Display, id: screen.NewID()}
	n.Pump = screen.NewPump(time.Second/time.Duration(min(o.MaxFPS, 5)), n.frame) // a picture with hundreds of lines
	return n
}

// sweepLines shows a sweep as a run whose steps are trials.
type sweepLines struct{ sink live.Sink }

func (l sweepLines) Update(s Sweep)      { l.sink.Update(s.snapshot()) }
func (l sweepLines) Tell(line string)    { l.sink.Print(line) }
func (l sweepLines) Close(s Sweep) error { return l.sink.Close(s.snapshot()) }

func (s *Sweep) snapshot() live.Snapshot {
	r := live.Snapshot{Title: s.Title, State: s.State, Detail: s.Detail, Step: s.Done, Steps: s.Total, Unit: "trial", Elapsed: s.Elapsed, Left: s.Left}
	if b, ok := s.best(); ok {
		r.Metrics = []live.Series{{Name: "best " + s.Metric, Points: []chart.Point{{Step: s.Done, Y: b.Value}}}}
	}
	return r
}

// sweepCell shows a sweep in a cell: one output, updated in place. It keeps the latest state; its
// pump decides when to draw it.
type sweepCell struct {
	d  screen.Display
	id string

	mu     sync.Mutex
	latest Sweep
	*screen.Pump
}

func (n *sweepCell) keep(s Sweep) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latest = s
}

func (n *sweepCell) Update(s Sweep) {
	n.keep(s)
	n.Changed()
}

func (n *sweepCell) Tell(string) {} // the table shows it

func (n *sweepCell) Close(s Sweep) error {
	n.keep(s)
	return n.Pump.Close(s.State)
}

func (n *sweepCell) frame(f screen.Frame) error {
	n.mu.Lock()
	s := n.latest
	n.mu.Unlock()
	head := s.snapshot()
	plain := live.Line(&head)
	if !f.Last {
		d, err := s.drawing()
		if err != nil {
			d = screen.Drawing{}
		}
		return n.d.Send(screen.HTMLData(n.id, sweepHTML(n.id, &s, &head, d, "", 10), plain))
	}
	last, areas := screen.LastData(n.id, plain, func() (chart.Picture, error) { return SweepPNG(s) })
	if err := n.d.Send(last); err != nil {
		return err
	}
	if err := n.d.Send(screen.HTMLData("", sweepHTML(n.id, &s, &head, screen.Drawing{}, areas, 30), s.note())); err != nil {
		return err
	}
	return n.d.Sync()
}

// sweepHTML returns the head, the drawing if there is one, and a table of the best, running and
// failed trials. areas has the charts of the picture above it; "" if there is none.
func sweepHTML(id string, s *Sweep, head *live.Snapshot, d screen.Drawing, areas string, most int) string {
	var b strings.Builder
	b.WriteString(`<div style="max-width:880px;font-size:13px;line-height:1.45">`)
	live.HeadHTML(&b, head)
	fmt.Fprintf(&b, `<div style="%s">%s</div>`, screen.Faint, screen.Escape(s.note()))
	d.HTML(&b, id, live.Line(head))
	b.WriteString(screen.TableHead("width:100%"))
	cells := []string{screen.HeadCell(screen.NumberStyle, "trial"), screen.HeadCell(screen.NumberStyle, s.Metric)}
	for _, a := range s.Axes {
		cells = append(cells, screen.HeadCell(screen.NumberStyle, a.Name))
	}
	screen.Row(&b, true, append(cells, screen.HeadCell(screen.NumberStyle, "epochs"), screen.HeadCell(screen.NumberStyle, "time"), screen.HeadCell(screen.TextStyle+";width:30%", ""))...)
	rest := 0
	for i, t := range s.Trials {
		if i >= most && t.State != screen.Failed && t.State != screen.Running || i >= 10*most {
			rest++
			continue
		}
		sweepRow(&b, s, &t, i == 0)
	}
	b.WriteString("</table>")
	if rest > 0 {
		fmt.Fprintf(&b, `<div style="%s">and %s</div>`, screen.Faint, screen.Plural(rest, "more trial"))
	}
	b.WriteString(chart.Pointer(id, areas) + "</div>")
	return b.String()
}

func sweepRow(b *strings.Builder, s *Sweep, t *SweepTrial, first bool) {
	v := "–"
	if chart.Finite(t.Value) && t.State != screen.Failed {
		v = fmt.Sprintf("%.4f", t.Value)
	}
	if _, ok := s.best(); ok && first {
		v = fmt.Sprintf(`<span style="color:%s">&#9679;</span> <b>%s</b>`, screen.CSS(chart.Orange), v) // no colour of text is readable in all themes
	}
	cells := []string{screen.Cell(screen.NumberStyle, strconv.Itoa(t.Number)), screen.Cell(screen.NumberStyle, v)}
	for i := range s.Axes {
		x := ""
		if i < len(t.Values) {
			x = screen.Escape(screen.Cut(t.Values[i], 40))
		}
		cells = append(cells, screen.Cell(screen.NumberStyle, x))
	}
	note := ""
	if t.State != screen.Done {
		note = fmt.Sprintf(`<span style="color:%s">&#9679;</span> %s`, screen.CSS(screen.StateColor(t.State)), screen.Escape(t.State))
	}
	if t.Note != "" {
		note += ": " + phrase.HTML(screen.Cut(screen.OneLine(t.Note), 200))
	}
	screen.Row(b, false, append(cells, screen.Cell(screen.NumberStyle, screen.Count(t.Epochs)), screen.Cell(screen.NumberStyle, screen.Elapsed(time.Duration(t.Seconds*float64(time.Second)))),
		screen.Cell("text-align:left;padding:2px 0;border:0;white-space:normal", note))...)
}
