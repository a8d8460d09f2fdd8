package live

import (
	"fmt"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/phrase"
)

// entry is a row of the final table: a name and its value.
type entry struct{ name, value string }

// entries returns the run's numbers in the order of the final table.
func entries(s *Snapshot) []entry {
	var es []entry
	add := func(name, value string) {
		if value != "" {
			es = append(es, entry{name, value})
		}
	}
	add("run", screen.OneLine(s.Title))
	add("state", s.state())
	reason := "note"
	if s.State == screen.Failed || s.State == screen.Interrupted {
		reason = "reason"
	}
	add(reason, strings.Join(screen.Lines(s.Detail), "\n"))
	if s.Epoch > 0 {
		e := screen.Of(s.Epoch, s.Epochs)
		if s.State != screen.Done && (s.Step > 0 || s.Steps > 0) {
			e += ", step " + screen.Of(s.Step, s.Steps) + " of it"
		}
		add("epoch", e)
	}
	if n := len(s.Loss); n > 0 {
		add("steps", chart.Grouped(s.Loss[n-1].Step))
	}
	if s.Elapsed > 0 {
		add("time", screen.Elapsed(s.Elapsed))
	}
	if l, ok := recentLoss(s); ok {
		add("loss", screen.Value(l)+lossNote(s))
	}
	if lr, ok := lastOf(s.LR); ok {
		v := screen.Short(lr.Y)
		if changes(s.LR) {
			v += fmt.Sprintf(" (from %s at step %s)", screen.Short(s.LR[0].Y), chart.Grouped(s.LR[0].Step))
		}
		add("learning rate", v)
	}
	for _, m := range s.Metrics {
		last, ok := lastOf(m.Points)
		if !ok {
			continue
		}
		v := screen.Value(last.Y)
		word := "highest"
		if s.Lower {
			word = "lowest"
		}
		if best, n := extreme(m.Points, s.Lower); n > 1 && best.Step != last.Step {
			v += fmt.Sprintf(" (%s %s at epoch %d)", word, screen.Value(best.Y), best.Step)
		}
		add(strings.Join(screen.NonEmpty(screen.OneLine(m.Name), s.metric()), " "), v)
	}
	es = append(es, loggedEntries(s)...)
	return append(es, speedEntries(s)...)
}

// smallRun is the longest time of a run whose table has the numbers about its speed folded: they say little.
const smallRun = 5 * time.Second

// small reports whether the run was small.
func (s *Snapshot) small() bool {
	return s.State == screen.Done && s.Elapsed > 0 && s.Elapsed < smallRun
}

// speedEntries are the last of entries: about the speed, the memory and the machine.
func speedEntries(s *Snapshot) []entry {
	var es []entry
	add := func(name, value string) {
		if value != "" {
			es = append(es, entry{name, value})
		}
	}
	if seeds, edges, rss := s.totals(); len(s.Workers) > 0 {
		if seeds > 0 {
			add("throughput", fmt.Sprintf("%s %s, %s edges/s", screen.Number(seeds), s.perSec(), screen.Number(edges)))
		}
		if rss > 0 {
			add("memory", phrase.Bytes(rss))
		}
	}
	add("the run", bottleneck(s.Workers))
	add("in a second", ratesText(s))
	add("rows of features", screen.OneLine(s.Rows))
	for i := range s.GPUs {
		add(fmt.Sprintf("GPU %d", s.GPUs[i].Index), screen.OneLine(s.GPUs[i].Sum))
	}
	return es
}

// lossNote says over what the loss was averaged.
func lossNote(s *Snapshot) string {
	if s.ofEpoch() {
		return " (mean of the last epoch)"
	}
	n := min(50, len(s.Loss))
	if s.Steps > 0 {
		n = min(n, s.Steps)
	}
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(" (mean of the last %d steps)", n)
}

// extreme returns the largest finite value, or the smallest, the earliest of equal ones, and the number of finite
// values.
func extreme(p []chart.Point, lowest bool) (best chart.Point, n int) {
	for _, q := range p {
		if !chart.Finite(q.Y) {
			continue
		}
		if n == 0 || q.Y != best.Y && (q.Y < best.Y) == lowest {
			best = q
		}
		n++
	}
	return best, n
}

// tableHTML returns the final numbers as one table, with rows for the run and below them for its
// workers, and the end of the log. It is readable without its styles too, because GitHub drops
// them.
//
// areas has the charts of the picture above it, which answer to the pointer; "" if there is no picture.
func tableHTML(id string, s *Snapshot, log []string, areas string) string {
	var b strings.Builder
	b.WriteString(`<div style="max-width:880px;font-size:13px;line-height:1.45">` + screen.TableHead("width:100%"))
	const span = ` colspan="4"`
	es, more := entries(s), []entry(nil)
	if s.small() {
		es, more = es[:len(es)-len(speedEntries(s))], speedEntries(s)
	}
	line := func(e entry) {
		v := screen.Multiline(e.value)
		if e.name == "state" {
			v = fmt.Sprintf(`<span style="color:%s">&#9679;</span> <b>%s</b>`, screen.CSS(screen.StateColor(s.state())), v)
		}
		screen.Row(&b, false, screen.Head(screen.TextStyle+";vertical-align:top", screen.Escape(e.name)),
			`<td`+span+` style="text-align:left;padding:2px 0;border:0;white-space:normal">`+v+`</td>`)
	}
	for _, e := range es {
		line(e)
	}
	if s.small() {
		b.WriteString(`</table><details><summary style="` + screen.Faint + `">speed, memory and workers</summary>` + screen.TableHead("width:100%"))
		for _, e := range more {
			line(e)
		}
	}
	if len(s.Workers) > 0 {
		names, mean := stages(s.Workers)
		colors := stageStyle(names)
		const gap = ";padding-top:8px"
		screen.Row(&b, true, screen.Head(screen.TextStyle+gap, "worker"), screen.Head(screen.NumberStyle+gap, screen.Escape(s.perSec())), screen.Head(screen.NumberStyle+gap, "edges/s"),
			screen.Head(screen.NumberStyle+gap, "memory"), screen.Head(screen.TextStyle+gap+";width:60%", "time by stage"))
		row := func(name string, w *Worker) {
			screen.Row(&b, false, screen.Cell(screen.TextStyle, name), screen.Cell(screen.NumberStyle, screen.Rate(w.SeedsPerSec)), screen.Cell(screen.NumberStyle, screen.Rate(w.EdgesPerSec)),
				screen.Cell(screen.NumberStyle, screen.Memory(w.RSS)), screen.Cell(screen.TextStyle, stageBar(w.Stages, colors)))
		}
		if len(s.Workers) > 1 {
			all := together(s)
			row("all", &all)
		}
		rows, rest := workerRows(s)
		for _, w := range rows {
			row(w.name, w.Worker)
		}
		if rest != "" {
			fmt.Fprintf(&b, `<tr style="background:transparent"><td colspan="5" style="text-align:left;padding:2px 0;border:0;white-space:normal;%s">%s</td></tr>`, screen.Faint, screen.Escape(rest))
		}
		if len(names) > 0 {
			b.WriteString(`<tr style="background:transparent"><td colspan="4" style="border:0"></td><td style="text-align:left;padding:2px 0;border:0;white-space:normal">`)
			legend(&b, names, mean, colors)
			b.WriteString("</td></tr>")
		}
	}
	b.WriteString("</table>")
	if s.small() {
		b.WriteString("</details>")
	}
	logHTML(&b, log)
	b.WriteString(chart.Pointer(id, areas) + "</div>")
	return b.String()
}

// tablePlain returns the same as plain text.
func tablePlain(s *Snapshot, log []string) string {
	var b strings.Builder
	es := entries(s)
	w := 0
	for _, e := range es {
		w = max(w, screen.Width(e.name))
	}
	for _, e := range es {
		for i, l := range strings.Split(e.value, "\n") {
			name := e.name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&b, "%s%s  %s\n", name, strings.Repeat(" ", w-screen.Width(name)), l)
		}
	}
	rows, rest := workerRows(s)
	for _, w := range rows {
		fmt.Fprintf(&b, "worker %s: %s %s, %s edges/s, %s", w.name, screen.Rate(w.SeedsPerSec), s.perSec(), screen.Rate(w.EdgesPerSec), screen.Memory(w.RSS))
		for _, st := range w.Stages {
			fmt.Fprintf(&b, ", %s %s", screen.OneLine(st.Name), screen.SharePercent(st.Share))
		}
		b.WriteByte('\n')
	}
	if rest != "" {
		b.WriteString(rest + "\n")
	}
	for _, l := range log[max(len(log)-logLines, 0):] {
		b.WriteString(screen.Cut(l, 400) + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// Line describes the run's current state in one line.
func Line(s *Snapshot) string {
	if s.final() {
		return strings.Join(summary(s), ": ")
	}
	parts := screen.NonEmpty(screen.OneLine(s.Title), s.state())
	line := strings.Join(parts, ": ")
	if p := ProgressLine(s); p != "" {
		line += "  " + p
	}
	return line
}
