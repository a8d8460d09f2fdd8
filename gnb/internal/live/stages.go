package live

import (
	"fmt"
	"image/color"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/chart"
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

// stageColor returns a stage's colour; others counts the names without a fixed one.
func stageColor(name string, others *int) color.NRGBA {
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
			mean[st.Name] += clamp01(st.Share) / float64(len(ws))
		}
	}
	return names, mean
}

func stageStyle(names []string) map[string]string {
	m, others := map[string]string{}, 0
	for _, n := range names {
		m[n] = css(stageColor(n, &others))
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
	return what + ": " + sharePercent(most/all) + " of the step"
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
	title := `<span style="` + faint + `">time by stage</span>`
	if b := bottleneck(ws); b != "" {
		title = `<span style="` + faint + `">the run</span> <b>` + esc(b) + `</b>`
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
	b.WriteString(tableHead("width:100%"))
	h := []string{head(num, "worker"), head(num, "epoch"), head(num, "step"), head(num, "seeds/s"), head(num, "edges/s")}
	if len(names) > 0 {
		h = append(h, cell(txt+";width:45%", stageHead(s.Workers)))
	}
	row(b, true, append(h, head(txt, "now"), head(num, "memory"))...)
	line := func(w *Worker, name, now string) {
		cells := []string{
			cell(num, name), cell(num, known(w.Epoch)), cell(num, known(w.Step)),
			cell(num, rate(w.SeedsPerSec)), cell(num, rate(w.EdgesPerSec)),
		}
		if len(names) > 0 {
			cells = append(cells, cell(txt, stageBar(w.Stages, colors)))
		}
		row(b, false, append(cells, cell(txt+";width:80px", now), cell(num, memory(w.RSS)))...)
	}
	if len(s.Workers) > 1 {
		all := together(s)
		all.Epoch, all.Step = s.Epoch, s.Step
		line(&all, "all", "")
	}
	rows, rest := workerRows(s)
	for _, w := range rows {
		now := esc(w.Stage)
		if now == "" {
			now = "–"
		}
		line(w.Worker, w.name, now)
	}
	b.WriteString("</table>")
	if rest != "" {
		fmt.Fprintf(b, `<div style="font-size:12px;padding:3px 0 0 0;%s">%s</div>`, faint, esc(rest))
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
			colors[n], esc(n), faint, sharePercent(mean[n]))
	}
}

func sharePercent(x float64) string { return strconv.Itoa(int(clamp01(x)*100+0.5)) + " %" }

// stageBar draws a worker's time as coloured segments of one bar.
func stageBar(st []StageShare, colors map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<div style="display:flex;width:100%%;height:10px;border-radius:3px;overflow:hidden;background-color:%s">`, track)
	sum := 0.0
	for _, s := range st {
		sum += clamp01(s.Share)
	}
	scale := 100 / max(sum, 1)
	for _, s := range st {
		if w := clamp01(s.Share) * scale; w >= 0.1 {
			fmt.Fprintf(&b, `<div title="%s %s" style="width:%.1f%%;height:10px;background-color:%s"></div>`, esc(s.Name), sharePercent(s.Share), w, colors[s.Name])
		}
	}
	b.WriteString(`</div>`)
	return b.String()
}
