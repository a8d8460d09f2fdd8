package live

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Monitor is the recorded activity of a machine since watching began.
type Monitor struct {
	Title   string
	State   string // Running, or a final state
	Detail  string
	Elapsed time.Duration
	// Samples are in time order. A sink keeps the slice: elements already passed to it must not
	// change, but appending is allowed.
	Samples []machine.Sample
	// Run is the run whose share of GPU memory is shown; "" means all runs of GraphNB.
	Run string
}

// MonitorPNG draws a machine's activity over time at twice the resolution of a standard screen: its
// GPUs above the host.
func MonitorPNG(m Monitor) (chart.Picture, error) {
	return screen.Tall(m.Title, m.note(), m.height(), func(at *chart.Painter, dc draw.Canvas) { pen{at}.monitor(dc, &m) })
}

// drawing draws the same without title and note.
func (m *Monitor) drawing() (screen.Drawing, error) {
	return screen.DrawSVG(m.height(), func(at *chart.Painter, c draw.Canvas) { pen{at}.monitor(c, m) })
}

const (
	monitorRow    = 150 // height of a row of charts, in points
	monitorPoints = 110 // per curve: one per two pixels of a chart
)

func (m *Monitor) height() vg.Length {
	if len(m.gpus()) == 0 {
		return monitorRow
	}
	return 2 * monitorRow
}

// now returns the last sample, and whether there is one.
func (m *Monitor) now() (machine.Sample, bool) {
	if len(m.Samples) == 0 {
		return machine.Sample{}, false
	}
	return m.Samples[len(m.Samples)-1], true
}

func (m *Monitor) gpus() []machine.GPU {
	s, _ := m.now()
	return s.GPUs
}

func (m *Monitor) final() bool {
	return m.State == screen.Done || m.State == screen.Failed || m.State == screen.Interrupted
}

// note returns one line: what could not be read, and the host's current state.
func (m *Monitor) note() string {
	s, ok := m.now()
	if !ok {
		return "nothing was read yet"
	}
	return strings.Join(screen.NonEmpty(screen.OneLine(m.Detail), screen.OneLine(s.Note), hostLine(&s.Host)), " · ")
}

// hostLine returns "CPU 62 % of 2 cores, memory 3.1 of 24.0 GiB, disk …".
func hostLine(h *machine.Host) string {
	var parts []string
	if h.CPU.Known() {
		cores := strconv.FormatFloat(h.Cores, 'g', 3, 64)
		text := fmt.Sprintf("CPU %s of %s cores", screen.SharePercent(float64(h.CPU)), cores)
		if h.CPULimited {
			text += " (the container's limit"
			if h.CPUThrottled > 0.01 {
				text += fmt.Sprintf(", which held it back %s of the time", screen.SharePercent(float64(h.CPUThrottled)))
			}
			text += ")"
		}
		parts = append(parts, text)
	}
	if h.MemoryTotal > 0 {
		text := fmt.Sprintf("memory %s of %s", phrase.Bytes(h.MemoryUsed), phrase.Bytes(h.MemoryTotal))
		if h.MemoryLimited {
			text += " (limit)"
		}
		parts = append(parts, text)
	}
	if h.SwapUsed > 1<<28 {
		parts = append(parts, "swap "+phrase.Bytes(h.SwapUsed))
	}
	parts = append(parts, pair("disk", "read", h.DiskRead, "write", h.DiskWrite), pair("network", "in", h.NetReceive, "out", h.NetSend))
	return strings.Join(screen.NonEmpty(parts...), ", ")
}

// pair formats two rates; it returns "" if neither is known.
func pair(what, a string, x machine.Value, b string, y machine.Value) string {
	if !x.Known() && !y.Known() {
		return ""
	}
	return fmt.Sprintf("%s %s %s %s %s", what, a, perSecond(x), b, perSecond(y))
}

func perSecond(v machine.Value) string {
	if !v.Known() {
		return "–"
	}
	text := screen.Number(float64(v))
	if !strings.Contains(text, " ") {
		text += " "
	}
	return text + "B/s"
}

var gpuColors = []color.NRGBA{chart.Blue, chart.Orange, chart.Green, chart.Purple, chart.Amber, chart.Sky}

// gpuColor returns the colour of the i-th GPU's lines.
func gpuColor(i int) color.NRGBA { return gpuColors[i%len(gpuColors)] }

// timeLine is one value over time; a NaN is a gap. If there are more lines than colours, dashes
// tell them apart.
type timeLine struct {
	label  string
	color  color.NRGBA
	dashes []vg.Length
	of     func(s *machine.Sample) machine.Value
}

// dashed holds the dash patterns: element k is for lines that use a colour for the k-th time, from
// 0.
var dashed = [][]vg.Length{nil, {vg.Points(4), vg.Points(2)}, {vg.Points(1.5), vg.Points(1.5)}}

// monitor draws the charts, the GPUs' above the host's.
func (p pen) monitor(c draw.Canvas, m *Monitor) {
	one := func(row, column int, title string, scale, top float64, lines []timeLine) {
		box := c
		box.Min.X, box.Max.X = c.Max.X*vg.Length(column)/3, c.Max.X*vg.Length(column+1)/3-8
		box.Max.Y = c.Max.Y - vg.Length(row)*monitorRow
		box.Min.Y = box.Max.Y - monitorRow
		p.timeChart(box, m, title, scale, top, lines)
	}
	row := 0
	if gpus := m.gpus(); len(gpus) > 0 {
		each := func(of func(g *machine.GPU) machine.Value) (lines []timeLine) {
			for i := range gpus {
				lines = append(lines, timeLine{strconv.Itoa(gpus[i].Index) + ":", gpuColor(i), dashed[i/len(gpuColors)%len(dashed)], func(s *machine.Sample) machine.Value {
					if i >= len(s.GPUs) {
						return machine.Unknown()
					}
					return of(&s.GPUs[i])
				}})
			}
			return lines
		}
		one(0, 0, "GPU busy, %", 100, 100, each(func(g *machine.GPU) machine.Value { return g.Utilization }))
		one(0, 1, "GPU memory, GiB", 1.0/(1<<30), 0, each(func(g *machine.GPU) machine.Value { return g.MemoryUsed }))
		one(0, 2, "GPU power, W", 1, 0, each(func(g *machine.GPU) machine.Value { return g.PowerW }))
		row = 1
	}
	host := func(name string, i int, of func(h *machine.Host) machine.Value) timeLine {
		return timeLine{name, gpuColor(i), dashed[i], func(s *machine.Sample) machine.Value { return of(&s.Host) }}
	}
	one(row, 0, "host, %", 100, 100, []timeLine{
		host("CPU", 0, func(h *machine.Host) machine.Value { return h.CPU }),
		host("memory", 1, func(h *machine.Host) machine.Value {
			return machine.Value(float64(h.MemoryUsed) / float64(h.MemoryTotal))
		}),
	})
	one(row, 1, "disk, MB/s", 1e-6, 0, []timeLine{
		host("read", 0, func(h *machine.Host) machine.Value { return h.DiskRead }),
		host("write", 1, func(h *machine.Host) machine.Value { return h.DiskWrite }),
	})
	one(row, 2, "network, MB/s", 1e-6, 0, []timeLine{
		host("in", 0, func(h *machine.Host) machine.Value { return h.NetReceive }),
		host("out", 1, func(h *machine.Host) machine.Value { return h.NetSend }),
	})
}

// mostLabels is the maximum number of lines labelled at their ends; with more, the table identifies
// them.
const mostLabels = 8

// timeChart draws lines over the time since the first sample. top is the upper end of the axis; 0
// chooses it from the values.
func (p pen) timeChart(c draw.Canvas, m *Monitor, title string, scale, top float64, lines []timeLine) {
	c = p.Titled(c, title)
	curves := make([][]chart.XY, len(lines))
	hi := 0.0
	known := false
	for i, l := range lines {
		curves[i] = m.curve(l.of, scale)
		for _, q := range curves[i] {
			if chart.Finite(q.Y) {
				known, hi = true, math.Max(hi, q.Y)
			}
		}
	}
	if top > 0 {
		hi = top
	}
	var x, y chart.Axis
	var xt, yt chart.Ticks
	y.Min, y.Max, yt = chart.ValueAxis(0, math.Max(hi, 1e-3), 4, 1)
	unit := ""
	x.Min, x.Max, xt, unit = chart.TimeAxis(m.span(), !m.final())
	if !known {
		xt, yt = xt.Blank(), yt.Blank()
	}
	perUnit := chart.UnitSeconds[unit]
	pl := p.NewPlot(x, y, xt, yt, unit)
	room := vg.Length(8)
	var tags []chart.EndLabel
	if known && len(lines) <= mostLabels {
		for i, l := range lines {
			if q, ok := lastKnown(curves[i]); ok {
				room = max(room, p.Bold(8, p.Ink()).Width(l.label+" "+screen.Number(q.Y))+10)
			}
		}
	}
	// Drawing far outside the picture would take minutes.
	within := func(v float64) float64 { return math.Max(0, math.Min(v, y.Max)) }
	pl.Add(chart.PlotFunc(func(c draw.Canvas, at func(x, y float64) vg.Point) {
		for i, l := range lines {
			curve := curves[i]
			for _, run := range chart.Runs(len(curve), func(i int) bool { return chart.Finite(curve[i].Y) }) {
				pts := make([]vg.Point, 0, run[1]-run[0])
				for _, q := range curve[run[0]:run[1]] {
					pts = append(pts, at(q.X/perUnit, within(q.Y)))
				}
				if len(pts) == 1 { // a single point
					c.DrawGlyphNoClip(draw.GlyphStyle{Color: l.color, Radius: vg.Points(1.5), Shape: draw.CircleGlyph{}}, pts[0])
					continue
				}
				c.StrokeLines(draw.LineStyle{Color: l.color, Width: vg.Points(chart.LineWidth), Dashes: l.dashes}, pts)
			}
			if q, ok := lastKnown(curve); ok && len(lines) <= mostLabels {
				tags = append(tags, chart.EndLabel{At: at(q.X/perUnit, within(q.Y)), Text: l.label + " " + screen.Number(q.Y), Color: l.color})
			}
		}
		p.EndLabels(c, tags)
	}))
	whole := c
	c.Max.X -= min(room, (c.Max.X-c.Min.X)/2)
	pl.Draw(c)
	if !known {
		p.Empty(c, "not known")
		return
	}
	shown := make([]chart.Line, len(lines))
	for i, l := range lines {
		shown[i] = chart.Line{Name: strings.TrimSuffix(l.label, ":"), Color: l.color, Points: slices.Clone(curves[i])}
		for k := range shown[i].Points {
			shown[i].Points[k].X /= perUnit
		}
	}
	p.Area(title, pl, c, whole, shown).Smooth = true
}

// span returns the seconds from the first sample to the last.
func (m *Monitor) span() float64 {
	if len(m.Samples) == 0 {
		return 0
	}
	return m.Samples[len(m.Samples)-1].Time.Sub(m.Samples[0].Time).Seconds()
}

// curve returns a value over the seconds since the first sample, in at most monitorPoints points,
// each the mean of its interval. Where the value is missing the curve has a gap.
func (m *Monitor) curve(of func(s *machine.Sample) machine.Value, scale float64) []chart.XY {
	n := len(m.Samples)
	k := max(1, (n+monitorPoints-1)/monitorPoints)
	var out []chart.XY
	for from := 0; from < n; from += k {
		part := m.Samples[from:min(from+k, n)]
		sum, known := 0.0, 0
		for i := range part {
			if v := of(&part[i]); v.Known() {
				sum += float64(v)
				known++
			}
		}
		q := chart.XY{X: part[len(part)-1].Time.Sub(m.Samples[0].Time).Seconds(), Y: math.NaN()}
		if known > 0 {
			q.Y = sum / float64(known) * scale
		}
		out = append(out, q)
	}
	return out
}

// lastKnown returns a curve's last point, and false if it is not known: a GPU that fell off the bus
// has no value to show.
func lastKnown(curve []chart.XY) (chart.XY, bool) {
	if n := len(curve); n > 0 && chart.Finite(curve[n-1].Y) {
		return curve[n-1], true
	}
	return chart.XY{}, false
}

// gpuNotes returns the text of a GPU's row: errors, why it is slow, its traffic, and which
// processes use it.
func gpuNotes(g *machine.GPU, run string) []string {
	notes := append(whySlow(g), screen.NonEmpty(pair("PCIe", "in", g.PCIeReceive, "out", g.PCIeSend), pair("NVLink", "in", g.NVLinkReceive, "out", g.NVLinkSend))...)
	for i, p := range g.Processes {
		if i == 4 {
			notes = append(notes, fmt.Sprintf("and %s", screen.Plural(len(g.Processes)-i, "other process")))
			break
		}
		who := fmt.Sprintf("%s %d", screen.OneLine(p.Name), p.PID)
		if p.Run != "" && (run == "" || p.Run == run) {
			who = fmt.Sprintf("worker %d of %s", p.Rank, screen.OneLine(p.Run))
		}
		if p.Memory.Known() {
			who += " " + bytesText(float64(p.Memory))
		}
		notes = append(notes, strings.TrimSpace(who))
	}
	return notes
}

// whySlow returns a GPU's error, and why its clocks are low.
func whySlow(g *machine.GPU) []string {
	notes := screen.NonEmpty(screen.OneLine(g.Error))
	if len(g.Throttled) > 0 {
		notes = append(notes, "slowed: "+strings.Join(g.Throttled, ", "))
	}
	return notes
}

// instanceNote describes an instance of a partitioned GPU.
func instanceNote(g *machine.GPU, m *machine.Instance) string {
	text := fmt.Sprintf("GPU %d:%d  %s  %s", g.Index, m.Index, screen.OneLine(m.Name), screen.OneLine(m.UUID))
	if m.MemoryUsed.Known() {
		text += fmt.Sprintf("  %s of %s", bytesText(float64(m.MemoryUsed)), bytesText(float64(m.MemoryTotal)))
	}
	return text
}

// figure formats a value for a cell of the table or a line.
func figure(v machine.Value, unit string) string {
	if !v.Known() {
		return "–"
	}
	return strconv.FormatFloat(float64(v), 'f', 0, 64) + unit
}

// memoryText returns "21.0 of 80.0 GiB" and the runs' share of it.
func memoryText(g *machine.GPU, run string) string {
	if !g.MemoryUsed.Known() {
		return "–"
	}
	text := bytesText(float64(g.MemoryUsed))
	if g.MemoryTotal > 0 {
		text += " of " + bytesText(float64(g.MemoryTotal))
	}
	if v := g.MemoryOf(run); v.Known() {
		what := "runs"
		if run != "" {
			what = "this run"
		}
		text += fmt.Sprintf(" (%s %s)", what, bytesText(float64(v)))
	}
	return text
}

// powerText returns "340 of 700 W".
func powerText(g *machine.GPU) string {
	if !g.PowerW.Known() || !g.PowerLimitW.Known() {
		return figure(g.PowerW, " W")
	}
	return figure(g.PowerW, "") + " of " + figure(g.PowerLimitW, " W")
}

// recent returns the last n values.
func (m *Monitor) recent(n int, of func(s *machine.Sample) machine.Value) []machine.Value {
	var out []machine.Value
	for i := len(m.Samples) - 1; i >= 0 && len(out) < n; i-- {
		out = append(out, of(&m.Samples[i]))
	}
	slices.Reverse(out)
	return out
}

// bytesText formats a measured number of bytes.
func bytesText[V ~float64](v V) string { return phrase.Bytes(int64(v)) }
