package live

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
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
func NewMonitor(o screen.Options) MonitorSink {
	s := &monitorSink{}
	var draw func(f screen.Frame, m *Monitor) error
	least := time.Second / 5
	switch screen.Pick(&o) {
	case screen.Notebook:
		c := &monitorCell{d: o.Display, id: screen.NewID()}
		draw = c.frame
	case screen.Terminal:
		t := &monitorTerminal{Block: screen.NewBlock(o.Out), style: screen.TermStyle()}
		draw = t.frame
	case screen.Plain:
		p := &monitorPlain{out: o.Out, every: 5 * time.Second}
		draw = p.frame
	default:
		draw = func(screen.Frame, *Monitor) error { return nil }
	}
	s.Pump = screen.NewPump(max(least, time.Second/time.Duration(o.MaxFPS)), func(f screen.Frame) error {
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
	*screen.Pump
}

func (n *monitorSink) keep(m Monitor) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latest = m
}

func (n *monitorSink) Update(m Monitor) {
	n.keep(m)
	n.Changed()
}

func (n *monitorSink) Close(m Monitor) error {
	n.keep(m)
	return n.Pump.Close(m.State)
}

// head is the monitor's head line, in the form of a run's.
func (m *Monitor) head() *Snapshot {
	return &Snapshot{Title: m.Title, State: m.State, Detail: m.Detail, Elapsed: m.Elapsed}
}

// monitorCell shows a machine in a cell: one output, updated in place.
type monitorCell struct {
	d  screen.Display
	id string
}

func (c *monitorCell) frame(f screen.Frame, m *Monitor) error {
	plain := strings.Join(monitorLines(m, screen.Style{}, 400), "\n")
	if !f.Last {
		d, err := m.drawing()
		if err != nil {
			d = screen.Drawing{}
		}
		return c.d.Send(screen.HTMLData(c.id, monitorHTML(c.id, m, d, ""), plain))
	}
	last, areas := screen.LastData(c.id, plain, func() (chart.Picture, error) { return MonitorPNG(*m) })
	if err := c.d.Send(last); err != nil {
		return err
	}
	html, text := chart.Pointer(c.id, areas), ""
	if len(m.gpus()) > 0 {
		html, text = monitorHTML(c.id, m, screen.Drawing{}, areas), plain
	}
	if html != "" {
		if err := c.d.Send(screen.HTMLData("", html, text)); err != nil {
			return err
		}
	}
	return c.d.Sync()
}

// monitorHTML returns the head, the drawing if there is one, one row per GPU, and the host's line. areas has the charts of
// the picture above it; "" if there is none.
func monitorHTML(id string, m *Monitor, d screen.Drawing, areas string) string {
	var b strings.Builder
	b.WriteString(`<div style="max-width:880px;font-size:13px;line-height:1.45">`)
	HeadHTML(&b, m.head())
	d.HTML(&b, id, m.note())
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
		fmt.Fprintf(&b, `<div style="font-size:12px;padding:3px 0 0 0;%s">%s</div>`, screen.Faint, screen.Escape(hostLine(&s.Host)))
	}
	if s.Note != "" {
		fmt.Fprintf(&b, `<div style="margin:7px 0 2px 0;padding:1px 0 1px 9px;border-left:3px solid %s">%s</div>`, screen.CSS(chart.Amber), phrase.HTML(screen.Cut(screen.OneLine(s.Note), 400)))
	}
	b.WriteString(chart.Pointer(id, areas) + "</div>")
	return b.String()
}

// gpuTableHead writes the start of the table of GPUs.
func gpuTableHead(b *strings.Builder) {
	b.WriteString(screen.TableHead("width:100%"))
	screen.Row(b, true, screen.HeadCell(screen.TextStyle, "GPU"), screen.HeadCell(screen.TextStyle+";width:12%", "busy"), screen.HeadCell(screen.NumberStyle, ""), screen.HeadCell(screen.TextStyle+";width:12%", "memory"), screen.HeadCell(screen.TextStyle, ""),
		screen.HeadCell(screen.NumberStyle, "°C"), screen.HeadCell(screen.NumberStyle, "power"), screen.HeadCell(screen.NumberStyle, "clock"))
}

// gpuRow writes the i-th GPU's row.
func gpuRow(b *strings.Builder, run string, i int, g *machine.GPU) {
	name := fmt.Sprintf(`<span style="color:%s">&#9632;</span> %d <span style="%s">%s</span>`, screen.CSS(gpuColor(i)), g.Index, screen.Faint, screen.Escape(screen.Cut(g.Name, 40)))
	busy, used := "", ""
	if g.Utilization.Known() {
		busy = stageBar([]StageShare{{"busy", float64(g.Utilization)}}, map[string]string{"busy": screen.CSS(gpuColor(i))})
	}
	if g.MemoryTotal > 0 && g.MemoryUsed.Known() {
		runs := 0.0
		if v := g.MemoryOf(run); v.Known() {
			runs = float64(v / g.MemoryTotal)
		}
		used = stageBar([]StageShare{{"runs", runs}, {"others", max(float64(g.MemoryUsed/g.MemoryTotal)-runs, 0)}}, map[string]string{"runs": screen.CSS(gpuColor(i)), "others": "rgba(128,128,128,0.45)"})
	}
	clock := figure(g.ClockMHz, " MHz")
	if g.ClockMHz.Known() && g.ClockMaxMHz.Known() {
		clock = figure(g.ClockMHz, "") + " of " + figure(g.ClockMaxMHz, " MHz")
	}
	screen.Row(b, false, screen.Cell(screen.TextStyle, name), screen.Cell(screen.TextStyle, busy), screen.Cell(screen.NumberStyle, shareText(g.Utilization)), screen.Cell(screen.TextStyle, used), screen.Cell(screen.TextStyle, screen.Escape(memoryText(g, run))), screen.Cell(screen.NumberStyle, figure(g.TemperatureC, "")), screen.Cell(screen.NumberStyle, powerText(g)), screen.Cell(screen.NumberStyle, clock))
}

// gpuNoteRow writes the notes below a GPU's row.
func gpuNoteRow(b *strings.Builder, g *machine.GPU, notes []string) {
	if len(notes) == 0 {
		return
	}
	text := screen.Escape(strings.Join(notes, " · "))
	if g.Error != "" {
		text = fmt.Sprintf(`<span style="color:%s">&#9679;</span> %s`, screen.CSS(chart.Orange), text)
	}
	fmt.Fprintf(b, `<tr style="background:transparent"><td colspan="8" style="text-align:left;padding:0 0 3px 14px;border:0;white-space:normal;%s">%s</td></tr>`, screen.Faint, text)
}
