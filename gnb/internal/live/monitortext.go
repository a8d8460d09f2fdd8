package live

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/machine"
)

// monitorTerminal shows a machine as several lines that change in place.
type monitorTerminal struct {
	screen.Block
	style screen.Style
}

func (t *monitorTerminal) frame(f screen.Frame, m *Monitor) error {
	cols, rows := t.Size()
	return t.Draw(monitorLines(m, t.style, max(cols, 20)-1), cols, rows, f.Last)
}

// monitorPlain writes one line every few seconds.
type monitorPlain struct {
	out   io.Writer
	every time.Duration
	last  time.Time // time of the last sample written
}

func (p *monitorPlain) frame(f screen.Frame, m *Monitor) error {
	s, ok := m.now()
	if since := s.Time.Sub(p.last); !ok || since == 0 || !f.Last && since < p.every {
		return nil
	}
	p.last = s.Time
	parts := []string{s.Time.Format(time.TimeOnly) + "  " + hostLine(&s.Host)}
	for i := range s.GPUs {
		parts = append(parts, gpuLine(&s.GPUs[i], m.Run))
	}
	if s.Note != "" {
		parts = append(parts, screen.OneLine(s.Note))
	}
	return screen.Write(p.out, strings.Join(parts, "; ")+"\n")
}

// gpuLine describes a GPU in one line.
func gpuLine(g *machine.GPU, run string) string {
	if g.Error != "" {
		return fmt.Sprintf("GPU %d: %s", g.Index, screen.OneLine(g.Error))
	}
	return fmt.Sprintf("GPU %d %s busy, %s, %s, %s, %s", g.Index, shareText(g.Utilization), memoryText(g, run), figure(g.TemperatureC, " °C"), powerText(g), figure(g.ClockMHz, " MHz"))
}

func shareText(v machine.Value) string {
	if !v.Known() {
		return "–"
	}
	return screen.SharePercent(float64(v))
}

// monitorLines returns the machine's current state in lines of at most w columns.
//
//	host   ━━━━━━━╸────  62 %  ▂▃▅▇  CPU 62 % of 2 cores, memory …
//	GPU 0  ━━━━━━━━━━╸─  91 %  ▂▃▅▇  21.0 GiB of 80.0 GiB (runs 20.0 GiB)  61 °C  340 of 700 W  1410 MHz
//	       slowed: power cap  PCIe in 5.00 GB/s out 2.00 GB/s  worker 0 of 20261121-…
func monitorLines(m *Monitor, st screen.Style, w int) []string {
	s, ok := m.now()
	title := strings.Join(screen.NonEmpty(screen.OneLine(m.Title), screen.Clock(m.Elapsed), screen.OneLine(m.Detail)), "  ")
	if !ok {
		return []string{screen.Fit(title, w)}
	}
	out := []string{screen.Fit(title, w)}
	add := func(name string, share machine.Value, of func(s *machine.Sample) machine.Value, text string) {
		const bar, history = 12, 10
		head := fmt.Sprintf("%-6s ", name)
		gauge, percent := strings.Repeat(" ", bar), "    –"
		if share.Known() {
			gauge, percent = st.Gauge(float64(share), bar), fmt.Sprintf("%5s", screen.SharePercent(float64(share)))
		}
		spark := ""
		if !st.ASCII {
			spark = fmt.Sprintf("%-*s  ", history, sparkline(m.recent(history, of)))
		}
		used := screen.Width(head) + bar + 1 + 5 + 2 + screen.Width(spark)
		out = append(out, head+gauge+" "+percent+"  "+spark+screen.Fit(text, max(w-used, 0)))
	}
	add("host", s.Host.CPU, func(s *machine.Sample) machine.Value { return s.Host.CPU }, hostLine(&s.Host))
	for i := range s.GPUs {
		g := &s.GPUs[i]
		text := strings.Join([]string{memoryText(g, m.Run), figure(g.TemperatureC, " °C"), powerText(g), figure(g.ClockMHz, " MHz")}, "  ")
		if g.Error != "" {
			text = screen.OneLine(g.Error)
		}
		add(fmt.Sprintf("GPU %d", g.Index), g.Utilization, func(s *machine.Sample) machine.Value {
			if i >= len(s.GPUs) {
				return machine.Unknown()
			}
			return s.GPUs[i].Utilization
		}, text)
		if more := gpuNotes(g, m.Run); g.Error == "" && len(more) > 0 {
			out = append(out, screen.Fit("       "+strings.Join(more, "  "), w))
		}
		for k := range g.Instances {
			out = append(out, screen.Fit("       "+instanceNote(g, &g.Instances[k]), w))
		}
	}
	if s.Note != "" {
		out = append(out, screen.Fit(screen.OneLine(s.Note), w))
	}
	return out
}

// sparkline draws values from 0 to 1 as a row of block characters; a gap is a space.
func sparkline(vs []machine.Value) string {
	blocks := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range vs {
		if !v.Known() {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(blocks[min(int(screen.Clamp(float64(v))*float64(len(blocks))), len(blocks)-1)])
	}
	return b.String()
}
