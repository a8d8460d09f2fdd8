package live

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/machine"
)

// monitorTerminal shows a machine as several lines that change in place.
type monitorTerminal struct {
	block
	style style
}

func (t *monitorTerminal) frame(f frame, m *Monitor) error {
	cols, rows := t.size()
	return t.draw(monitorLines(m, t.style, max(cols, 20)-1), cols, rows, f.last)
}

// monitorPlain writes one line every few seconds.
type monitorPlain struct {
	out   io.Writer
	every time.Duration
	last  time.Time // time of the last sample written
}

func (p *monitorPlain) frame(f frame, m *Monitor) error {
	s, ok := m.now()
	if since := s.Time.Sub(p.last); !ok || since == 0 || !f.last && since < p.every {
		return nil
	}
	p.last = s.Time
	parts := []string{s.Time.Format(time.TimeOnly) + "  " + hostLine(&s.Host)}
	for i := range s.GPUs {
		parts = append(parts, gpuLine(&s.GPUs[i], m.Run))
	}
	if s.Note != "" {
		parts = append(parts, oneLine(s.Note))
	}
	return write(p.out, strings.Join(parts, "; ")+"\n")
}

// gpuLine describes a GPU in one line.
func gpuLine(g *machine.GPU, run string) string {
	if g.Error != "" {
		return fmt.Sprintf("GPU %d: %s", g.Index, oneLine(g.Error))
	}
	return fmt.Sprintf("GPU %d %s busy, %s, %s, %s, %s", g.Index, shareText(g.Utilization), memoryText(g, run), figure(g.TemperatureC, " °C"), powerText(g), figure(g.ClockMHz, " MHz"))
}

func shareText(v machine.Value) string {
	if !v.Known() {
		return "–"
	}
	return sharePercent(float64(v))
}

// monitorLines returns the machine's current state in lines of at most w columns.
//
//	host   ━━━━━━━╸────  62 %  ▂▃▅▇  CPU 62 % of 2 cores, memory …
//	GPU 0  ━━━━━━━━━━╸─  91 %  ▂▃▅▇  21.0 GiB of 80.0 GiB (runs 20.0 GiB)  61 °C  340 of 700 W  1410 MHz
//	       slowed: power cap  PCIe in 5.00 GB/s out 2.00 GB/s  worker 0 of 20261121-…
func monitorLines(m *Monitor, st style, w int) []string {
	s, ok := m.now()
	title := strings.Join(nonEmpty(oneLine(m.Title), clock(m.Elapsed), oneLine(m.Detail)), "  ")
	if !ok {
		return []string{fit(title, w)}
	}
	out := []string{fit(title, w)}
	add := func(name string, share machine.Value, of func(s *machine.Sample) machine.Value, text string) {
		const bar, history = 12, 10
		head := fmt.Sprintf("%-6s ", name)
		gauge, percent := strings.Repeat(" ", bar), "    –"
		if share.Known() {
			gauge, percent = st.gauge(float64(share), bar), fmt.Sprintf("%5s", sharePercent(float64(share)))
		}
		spark := ""
		if !st.ascii {
			spark = fmt.Sprintf("%-*s  ", history, sparkline(m.recent(history, of)))
		}
		used := width(head) + bar + 1 + 5 + 2 + width(spark)
		out = append(out, head+gauge+" "+percent+"  "+spark+fit(text, max(w-used, 0)))
	}
	add("host", s.Host.CPU, func(s *machine.Sample) machine.Value { return s.Host.CPU }, hostLine(&s.Host))
	for i := range s.GPUs {
		g := &s.GPUs[i]
		text := strings.Join([]string{memoryText(g, m.Run), figure(g.TemperatureC, " °C"), powerText(g), figure(g.ClockMHz, " MHz")}, "  ")
		if g.Error != "" {
			text = oneLine(g.Error)
		}
		add(fmt.Sprintf("GPU %d", g.Index), g.Utilization, func(s *machine.Sample) machine.Value {
			if i >= len(s.GPUs) {
				return machine.Unknown()
			}
			return s.GPUs[i].Utilization
		}, text)
		if more := gpuNotes(g, m.Run); g.Error == "" && len(more) > 0 {
			out = append(out, fit("       "+strings.Join(more, "  "), w))
		}
		for k := range g.Instances {
			out = append(out, fit("       "+instanceNote(g, &g.Instances[k]), w))
		}
	}
	if s.Note != "" {
		out = append(out, fit(oneLine(s.Note), w))
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
		b.WriteRune(blocks[min(int(clamp01(float64(v))*float64(len(blocks))), len(blocks)-1)])
	}
	return b.String()
}
