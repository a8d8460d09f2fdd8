package live

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
)

// closeWait is how long Close waits for a display. After an interrupt the kernel ends the cell
// within 5 seconds, and the run needs part of them.
func closeWait(s *Snapshot) time.Duration {
	if s.State == Interrupted {
		return 1500 * time.Millisecond
	}
	return 5 * time.Second
}

// terminal redraws one line in place, and log lines scroll above it. To avoid flicker, each frame
// is a single write that clears the rest of the line only after the new text.
type terminal struct {
	w     io.Writer
	width func() int
	style style
	*pump
}

func newTerminal(o Options) *terminal {
	t := &terminal{w: o.Out, width: func() int { return termWidth(o.Out) }, style: termStyle()}
	t.pump = newPump(time.Second/time.Duration(o.MaxFPS), t.frame)
	return t
}

func (t *terminal) Update(s Snapshot)      { t.update(s) }
func (t *terminal) Print(line string)      { t.print(line) }
func (t *terminal) Say(line string)        { t.print(line) }
func (t *terminal) Close(s Snapshot) error { return t.close(s, closeWait(&s)) }

func (t *terminal) frame(f frame) error {
	var b strings.Builder
	writeLog(&b, &f, "\r", eraseLine+"\n")
	if f.last {
		b.WriteString("\r" + eraseLine)
		for i, l := range closing(&f.s, t.width()) {
			if i == 0 {
				l = t.style.state(f.s.state(), l)
			}
			b.WriteString(l + "\n")
		}
	} else {
		b.WriteString("\r" + t.style.bar(&f.s, max(t.width(), 20)-1) + eraseLine)
	}
	return write(t.w, b.String())
}

const eraseLine = "\x1b[K"

func writeLog(b *strings.Builder, f *frame, before, after string) {
	if f.lost > 0 {
		fmt.Fprintf(b, "%s… %d lines left out%s", before, f.lost, after)
	}
	for _, l := range f.lines {
		b.WriteString(before + l + after)
	}
}

func write(w io.Writer, s string) error {
	if s == "" {
		return nil
	}
	if _, err := io.WriteString(w, s); err != nil {
		return fmt.Errorf("writing progress: %w", err)
	}
	return nil
}

// style describes what a terminal supports.
type style struct {
	color bool
	ascii bool
}

func termStyle() style {
	st := style{color: os.Getenv("NO_COLOR") == ""}
	for _, k := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(os.Getenv(k)); v != "" {
			st.ascii = !strings.Contains(v, "UTF-8") && !strings.Contains(v, "UTF8")
			break
		}
	}
	return st
}

const (
	sgrReset  = "\x1b[0m"
	sgrDim    = "\x1b[2m"
	sgrRed    = "\x1b[31m"
	sgrGreen  = "\x1b[32m"
	sgrYellow = "\x1b[33m"
	sgrCyan   = "\x1b[36m"
)

func (st style) paint(sgr, s string) string {
	if !st.color || s == "" {
		return s
	}
	return sgr + s + sgrReset
}

// state colours a text by the given state.
func (st style) state(state, s string) string {
	switch state {
	case Done:
		return st.paint(sgrGreen, s)
	case Failed:
		return st.paint(sgrRed, s)
	case Interrupted:
		return st.paint(sgrYellow, s)
	}
	return s
}

// gauge draws a bar of w columns, filled to the nearest half column.
func (st style) gauge(share float64, w int) string {
	full, half, empty := "━", "╸", "─"
	if st.ascii {
		full, half, empty = "#", "", "-"
	}
	n := int(clamp01(share)*float64(2*w) + 0.5)
	on := strings.Repeat(full, n/2)
	if n%2 == 1 {
		on += half
	}
	return st.paint(sgrCyan, on) + st.paint(sgrDim, strings.Repeat(empty, w-width(on)))
}

// bar returns the progress line, at most w columns wide: the more important parts first, as far as
// they fit, and the gauge in the remaining space.
//
//	epoch 3/20 ━━━━━━━╸──── 62 %  loss 0.412  val 0.873  41 k seeds/s  00:12 left
func (st style) bar(s *Snapshot, w int) string {
	head := s.state()
	if s.Epoch > 0 {
		head = "epoch " + of(s.Epoch, s.Epochs)
		if st := s.state(); st != Running {
			head += " " + st
		}
	}
	share, known := s.progress()
	tail := facts(s)
	if d := oneLine(s.Detail); d != "" { // last, if there is room
		tail = append(tail, fact{text: cut(d, 60)})
	}
	fixed := width(head)
	if known {
		const least = 6 // width of the smallest useful gauge, in columns
		fixed += 1 + least + len(" 100 %")
	}
	keep := make([]bool, len(tail))
	for _, left := range []bool{true, false} { // with the time left, which is not among the facts
		for i, f := range tail {
			if f.time == left && fixed+2+width(f.text) <= w {
				fixed += 2 + width(f.text)
				keep[i] = true
			}
		}
	}
	if fixed > w {
		return fit(head, w)
	}
	var b strings.Builder
	b.WriteString(head)
	if known {
		room := min(w-fixed+6, 30)
		b.WriteString(" " + st.gauge(share, room) + fmt.Sprintf(" %5s", percent(share)))
	}
	for i, f := range tail {
		if keep[i] {
			b.WriteString("  " + f.text)
		}
	}
	return b.String()
}

// fact is a number to show in the line.
type fact struct {
	text string
	time bool
}

// facts returns the numbers to the right of the gauge, most important first.
func facts(s *Snapshot) []fact {
	var fs []fact
	add := func(text string) { fs = append(fs, fact{text: text}) }
	if p, ok := recentLoss(s); ok {
		add("loss " + value(p))
	}
	for _, m := range headline(s) {
		if p, ok := lastOf(m.Points); ok {
			add(oneLine(m.Name) + " " + value(p.Y))
		}
	}
	if seeds, _, _ := s.totals(); seeds > 0 {
		add(number(seeds) + " seeds/s")
	}
	if busy := gpusBusy(s); busy != "" {
		add(busy)
	}
	switch {
	case s.Left > 0 && !s.final():
		fs = append(fs, fact{clock(s.Left) + " left", true})
	case s.Elapsed > 0:
		fs = append(fs, fact{clock(s.Elapsed), true})
	}
	return fs
}

// headline returns the metric for a short line: val, or otherwise the last one other than train.
func headline(s *Snapshot) []Series {
	pick := -1
	for i := range s.Metrics {
		if n := s.Metrics[i].Name; n == "val" {
			pick = i
			break
		} else if !strings.HasPrefix(n, "train") || pick < 0 {
			pick = i
		}
	}
	if pick < 0 {
		return nil
	}
	return s.Metrics[pick : pick+1]
}

// recentLoss returns the mean of the last losses, because the loss of a single batch is too noisy.
// The window is the last epoch's steps, at most 50.
func recentLoss(s *Snapshot) (float64, bool) {
	n := 50
	if s.Steps > 0 {
		n = min(n, s.Steps)
	}
	p := s.Loss[max(len(s.Loss)-n, 0):]
	sum, k := 0.0, 0
	for _, q := range p {
		if chart.Finite(q.Y) {
			sum += q.Y
			k++
		}
	}
	if k == 0 {
		if len(p) > 0 {
			return p[len(p)-1].Y, true
		}
		return 0, false
	}
	return sum / float64(k), true
}

// closing returns summary's lines and, for a finished run, how its time was spent, in lines of at
// most w columns where possible.
func closing(s *Snapshot, w int) []string {
	out := summary(s)
	if s.State != Done {
		return out
	}
	var parts []string
	if b := bottleneck(s.Workers); b != "" {
		parts = append(parts, "the run "+b)
	}
	parts = append(parts, ratesTexts(s)...)
	if s.Rows != "" {
		parts = append(parts, "rows of features: "+oneLine(s.Rows))
	}
	for i, p := range parts {
		if last := out[len(out)-1]; i > 0 && width(last)+2+width(p) <= w {
			out[len(out)-1] = last + "; " + p
		} else {
			out = append(out, p)
		}
	}
	return out
}

// summary returns the final state in one line, followed by the lines of a note. It omits the reason
// of a run that ended early: the caller that started the run receives the reason as an error and
// shows it.
func summary(s *Snapshot) []string {
	var b strings.Builder
	if t := oneLine(s.Title); t != "" {
		b.WriteString(t + ": ")
	}
	b.WriteString(s.state())
	if s.Epoch > 0 {
		fmt.Fprintf(&b, ", epoch %s", of(s.Epoch, s.Epochs))
		if s.State != Done && s.Step > 0 {
			fmt.Fprintf(&b, ", step %s", of(s.Step, s.Steps))
		}
	}
	if p, ok := recentLoss(s); ok {
		b.WriteString(", loss " + value(p))
	}
	for _, m := range s.Metrics {
		if p, ok := lastOf(m.Points); ok {
			b.WriteString(", " + oneLine(m.Name) + " " + value(p.Y))
		}
	}
	if seeds, _, _ := s.totals(); seeds > 0 {
		b.WriteString(", " + number(seeds) + " seeds/s")
	}
	if s.Elapsed > 0 {
		b.WriteString(", " + elapsed(s.Elapsed))
	}
	if s.stopped() {
		return []string{b.String()}
	}
	return append([]string{b.String()}, lines(s.Detail)...)
}
