package live

import (
	"fmt"
	"image/color"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// stageColors holds a fixed colour for each stage that package gnb times, so that a stage too short
// to draw does not change the others' colours. Neighbouring colours differ in lightness too. Time
// that belongs to no step is grey.
var stageColors = map[string]color.NRGBA{
	"sample": chart.Blue, "fetch": chart.Sky, "forward": chart.Green, "backward": chart.Amber,
	"all-reduce": chart.Purple, "optimizer": chart.Orange, "evaluate": chart.Plum, "checkpoint": chart.Olive,
	"idle": chart.Alpha(chart.Grey, 0x78), "program": chart.Alpha(chart.Grey, 0xc8), "start": chart.Alpha(chart.Grey, 0x40),
}

// otherColors are for stages with other names, in order of appearance.
var otherColors = []color.NRGBA{chart.Blue, chart.Sky, chart.Green, chart.Amber, chart.Orange, chart.Purple, chart.Plum, chart.Olive}

// StageColor returns a stage's colour; others counts the names without a fixed one.
func StageColor(name string, others *int) color.NRGBA {
	c, ok := stageColors[name]
	if !ok {
		c = otherColors[*others%len(otherColors)]
		*others++
	}
	return c
}

// stages returns the distinct stage names of all workers in order, with their mean shares.
func stages(ws []Worker) (names []string, mean map[string]float64) {
	mean = map[string]float64{}
	for _, w := range ws {
		for _, st := range w.Stages {
			if _, ok := mean[st.Name]; !ok {
				names = append(names, st.Name)
			}
			mean[st.Name] += screen.Clamp(st.Share) / float64(len(ws))
		}
	}
	return names, mean
}

func stageStyle(names []string) map[string]string {
	m, others := map[string]string{}, 0
	for _, n := range names {
		m[n] = screen.CSS(StageColor(n, &others))
	}
	return m
}

// waits groups the stages of a step by what the run waits for in them.
var waits = []struct {
	what   string
	stages []string
}{
	{"waits for sampling", []string{"sample"}},
	{"waits for features", []string{"fetch"}},
	{"computes", []string{"forward", "backward", "optimizer"}},
	{"adds up gradients", []string{"all-reduce"}},
	{"waits for its slowest worker", []string{"idle"}},
	{"is in the program's own code", []string{"program"}},
}

// bottleneck says what most of a training step goes to, such as "waits for sampling: 62 % of the
// step", as the mean over workers. It returns "" if no stage of a step is known, or if the program's
// own code is the only one: a program that samples and trains nothing has no steps.
func bottleneck(ws []Worker) string {
	_, mean := stages(ws)
	all, most, what := 0.0, 0.0, ""
	for _, w := range waits {
		sum := 0.0
		for _, name := range w.stages {
			sum += mean[name]
		}
		all += sum
		if sum > most {
			most, what = sum, w.what
		}
	}
	if what == "" || all == mean["program"] {
		return ""
	}
	return what + ": " + screen.SharePercent(most/all) + " of the step"
}

// together returns the row of all workers: rates and memory summed, stages averaged.
func together(s *Snapshot) Worker {
	seeds, edges, rss := s.totals()
	w := Worker{SeedsPerSec: seeds, EdgesPerSec: edges, RSS: rss}
	names, mean := stages(s.Workers)
	for _, n := range names {
		w.Stages = append(w.Stages, StageShare{n, mean[n]})
	}
	return w
}

// stageHead returns the title of the column of stage bars.
func stageHead(ws []Worker) string {
	title := `<span style="` + screen.Faint + `">time by stage</span>`
	if b := bottleneck(ws); b != "" {
		title = `<span style="` + screen.Faint + `">the run</span> <b>` + screen.Escape(b) + `</b>`
	}
	return title
}

// workersHTML writes one row for the run, one per worker, and the legend of their stages.
func workersHTML(b *strings.Builder, s *Snapshot) {
	if len(s.Workers) == 0 {
		return
	}
	names, mean := stages(s.Workers)
	colors := stageStyle(names)
	b.WriteString(screen.TableHead("width:100%"))
	h := []string{screen.Head(screen.NumberStyle, "worker"), screen.Head(screen.NumberStyle, "epoch"), screen.Head(screen.NumberStyle, "step"), screen.Head(screen.NumberStyle, screen.Escape(s.perSec())), screen.Head(screen.NumberStyle, "edges/s")}
	if len(names) > 0 {
		h = append(h, screen.Cell(screen.TextStyle+";width:45%", stageHead(s.Workers)))
	}
	screen.Row(b, true, append(h, screen.Head(screen.TextStyle, "now"), screen.Head(screen.NumberStyle, "memory"))...)
	line := func(w *Worker, name, now string) {
		cells := []string{
			screen.Cell(screen.NumberStyle, name), screen.Cell(screen.NumberStyle, screen.Count(w.Epoch)), screen.Cell(screen.NumberStyle, screen.Count(w.Step)),
			screen.Cell(screen.NumberStyle, screen.Rate(w.SeedsPerSec)), screen.Cell(screen.NumberStyle, screen.Rate(w.EdgesPerSec)),
		}
		if len(names) > 0 {
			cells = append(cells, screen.Cell(screen.TextStyle, stageBar(w.Stages, colors)))
		}
		screen.Row(b, false, append(cells, screen.Cell(screen.TextStyle+";width:80px", now), screen.Cell(screen.NumberStyle, screen.Memory(w.RSS)))...)
	}
	if len(s.Workers) > 1 {
		all := together(s)
		all.Epoch, all.Step = s.Epoch, s.Step
		line(&all, "all", "")
	}
	rows, rest := workerRows(s)
	for _, w := range rows {
		now := screen.Escape(w.Stage)
		if now == "" {
			now = "–"
		}
		line(w.Worker, w.name, now)
	}
	b.WriteString("</table>")
	if rest != "" {
		fmt.Fprintf(b, `<div style="font-size:12px;padding:3px 0 0 0;%s">%s</div>`, screen.Faint, screen.Escape(rest))
	}
	if len(names) > 0 {
		b.WriteString(`<div style="font-size:12px;padding:3px 0 0 0">`)
		legend(b, names, mean, colors)
		b.WriteString("</div>")
	}
}

func legend(b *strings.Builder, names []string, mean map[string]float64, colors map[string]string) {
	for _, n := range names {
		fmt.Fprintf(b, `<span style="white-space:nowrap"><span style="color:%s">&#9632;</span> %s <span style="%s">%s</span></span> &nbsp; `,
			colors[n], screen.Escape(n), screen.Faint, screen.SharePercent(mean[n]))
	}
}

// stageBar draws a worker's time as coloured segments of one bar.
func stageBar(st []StageShare, colors map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<div style="display:flex;width:100%%;height:10px;border-radius:3px;overflow:hidden;background-color:%s">`, screen.Track)
	sum := 0.0
	for _, s := range st {
		sum += screen.Clamp(s.Share)
	}
	scale := 100 / max(sum, 1)
	for _, s := range st {
		if w := screen.Clamp(s.Share) * scale; w >= 0.1 {
			fmt.Fprintf(&b, `<div title="%s %s" style="width:%.1f%%;height:10px;background-color:%s"></div>`, screen.Escape(s.Name), screen.SharePercent(s.Share), w, colors[s.Name])
		}
	}
	b.WriteString(`</div>`)
	return b.String()
}
