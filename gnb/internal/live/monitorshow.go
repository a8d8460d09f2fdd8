package live

import (
	"encoding/base64"
	"fmt"
	"html"
	"strings"
	"sync"
	"time"

	"github.com/janpfeifer/gonb/gonbui"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/machine"
)

// MonitorSink shows a [Monitor] while it watches: a cell gets a picture and a table, which stay, a
// terminal several lines that change in place, a pipe one line every few seconds.
type MonitorSink interface {
	// Update shows the state m, which includes the new samples. It returns at once.
	Update(m Monitor)
	// Close shows the final state and ends the sink, as Close of [Sink] does.
	Close(final Monitor) error
}

// NewMonitor makes the sink that fits where output goes, as [New] does.
func NewMonitor(o Options) MonitorSink {
	s := &monitorSink{}
	var draw func(f frame, m *Monitor) error
	least := time.Second / 5
	switch pick(&o) {
	case modeNotebook:
		c := &monitorCell{d: o.Display, id: "gnb_" + gonbui.UniqueId()}
		draw = c.frame
	case modeTerminal:
		t := &monitorTerminal{block: newBlock(o.Out), style: termStyle()}
		draw = t.frame
	case modePlain:
		p := &monitorPlain{out: o.Out, every: 5 * time.Second}
		draw = p.frame
	default:
		draw = func(frame, *Monitor) error { return nil }
	}
	s.pump = newPump(max(least, time.Second/time.Duration(o.MaxFPS)), func(f frame) error {
		s.mu.Lock()
		m := s.latest
		s.mu.Unlock()
		return draw(f, &m)
	})
	return s
}

// monitorSink keeps the latest state; its pump decides when to draw it.
type monitorSink struct {
	mu     sync.Mutex
	latest Monitor
	*pump
}

func (n *monitorSink) keep(m Monitor) Snapshot {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latest = m
	return Snapshot{Title: m.Title, State: m.State, Detail: m.Detail, Elapsed: m.Elapsed}
}

func (n *monitorSink) Update(m Monitor) { n.update(n.keep(m)) }

func (n *monitorSink) Close(m Monitor) error {
	s := n.keep(m)
	return n.close(s, closeWait(&s))
}

// monitorCell shows a machine in a cell: one output, updated in place.
type monitorCell struct {
	d  Display
	id string
}

func (c *monitorCell) frame(f frame, m *Monitor) error {
	plain := strings.Join(monitorLines(m, style{}, 400), "\n")
	if !f.last {
		svg, err := guarded(func() ([]byte, error) { return monitorSVG(m) })
		if err != nil {
			svg = nil
		}
		return c.d.Send(htmlData(c.id, monitorHTML(m, &f.s, svg), plain))
	}
	if err := c.d.Send(lastData(c.id, plain, func() ([]byte, int, int, error) { return MonitorPNG(*m) })); err != nil {
		return err
	}
	if len(m.gpus()) > 0 {
		if err := c.d.Send(htmlData("", monitorHTML(m, &f.s, nil), plain)); err != nil {
			return err
		}
	}
	return c.d.Sync()
}

// monitorHTML returns the head, the picture if there is one, one row per GPU, and the host's line.
func monitorHTML(m *Monitor, head *Snapshot, svg []byte) string {
	var b strings.Builder
	b.WriteString(`<div style="max-width:880px;font-size:13px;line-height:1.45">`)
	headHTML(&b, head)
	if len(svg) > 0 {
		fmt.Fprintf(&b, `<img style="width:100%%;max-width:880px;height:auto;margin:4px 0 0 0;background:transparent" alt="%s" src="data:image/svg+xml;base64,%s">`,
			esc(m.note()), base64.StdEncoding.EncodeToString(svg))
	}
	if gpus := m.gpus(); len(gpus) > 0 {
		gpuTableHead(&b)
		for i := range gpus {
			g := &gpus[i]
			gpuRow(&b, m.Run, i, g)
			notes := gpuNotes(g, m.Run)
			for k := range g.Instances {
				notes = append(notes, instanceNote(g, &g.Instances[k]))
			}
			gpuNoteRow(&b, g, notes)
		}
		b.WriteString("</table>")
	}
	s, ok := m.now()
	if ok {
		fmt.Fprintf(&b, `<div style="font-size:12px;padding:3px 0 0 0;%s">%s</div>`, faint, esc(hostLine(&s.Host)))
	}
	if s.Note != "" {
		fmt.Fprintf(&b, `<div style="margin:7px 0 2px 0;padding:1px 0 1px 9px;border-left:3px solid %s">%s</div>`, css(chart.Amber), html.EscapeString(cut(oneLine(s.Note), 400)))
	}
	b.WriteString("</div>")
	return b.String()
}

// gpuTableHead writes the start of the table of GPUs.
func gpuTableHead(b *strings.Builder) {
	b.WriteString(tableHead("width:100%"))
	row(b, true, headCell(txt, "GPU"), headCell(txt+";width:12%", "busy"), headCell(num, ""), headCell(txt+";width:12%", "memory"), headCell(txt, ""),
		headCell(num, "°C"), headCell(num, "power"), headCell(num, "clock"))
}

// gpuRow writes the i-th GPU's row.
func gpuRow(b *strings.Builder, run string, i int, g *machine.GPU) {
	name := fmt.Sprintf(`<span style="color:%s">&#9632;</span> %d <span style="%s">%s</span>`, css(gpuColor(i)), g.Index, faint, esc(cut(g.Name, 40)))
	busy, used := "", ""
	if g.Utilization.Known() {
		busy = stageBar([]StageShare{{"busy", float64(g.Utilization)}}, map[string]string{"busy": css(gpuColor(i))})
	}
	if g.MemoryTotal > 0 && g.MemoryUsed.Known() {
		runs := 0.0
		if v := g.MemoryOf(run); v.Known() {
			runs = float64(v / g.MemoryTotal)
		}
		used = stageBar([]StageShare{{"runs", runs}, {"others", max(float64(g.MemoryUsed/g.MemoryTotal)-runs, 0)}}, map[string]string{"runs": css(gpuColor(i)), "others": "rgba(128,128,128,0.45)"})
	}
	clock := figure(g.ClockMHz, " MHz")
	if g.ClockMHz.Known() && g.ClockMaxMHz.Known() {
		clock = figure(g.ClockMHz, "") + " of " + figure(g.ClockMaxMHz, " MHz")
	}
	row(b, false, cell(txt, name), cell(txt, busy), cell(num, shareText(g.Utilization)), cell(txt, used), cell(txt, esc(memoryText(g, run))), cell(num, figure(g.TemperatureC, "")), cell(num, powerText(g)), cell(num, clock))
}

// gpuNoteRow writes the notes below a GPU's row.
func gpuNoteRow(b *strings.Builder, g *machine.GPU, notes []string) {
	if len(notes) == 0 {
		return
	}
	text := esc(strings.Join(notes, " · "))
	if g.Error != "" {
		text = fmt.Sprintf(`<span style="color:%s">&#9679;</span> %s`, css(chart.Orange), text)
	}
	fmt.Fprintf(b, `<tr style="background:transparent"><td colspan="8" style="text-align:left;padding:0 0 3px 14px;border:0;white-space:normal;%s">%s</td></tr>`, faint, text)
}
