package live

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// terminal redraws one line in place, and log lines scroll above it. To avoid flicker, each frame
// is a single write that clears the rest of the line only after the new text.
type terminal struct {
	w     io.Writer
	width func() int
	style screen.Style
	mailbox
}

func newTerminal(o screen.Options) *terminal {
	t := &terminal{w: o.Out, width: func() int { return screen.TermWidth(o.Out) }, style: screen.TermStyle()}
	t.Pump = screen.NewPump(time.Second/time.Duration(o.MaxFPS), t.frame)
	return t
}

func (t *terminal) Update(s Snapshot)      { t.update(s) }
func (t *terminal) Say(line string)        { t.Print(line) }
func (t *terminal) Close(s Snapshot) error { return t.close(s) }

func (t *terminal) frame(f screen.Frame) error {
	var b strings.Builder
	f.Log(&b, "\r", screen.EraseLine+"\n")
	s := t.snapshot()
	if f.Last {
		b.WriteString("\r" + screen.EraseLine)
		for i, l := range closing(&s, t.width()) {
			if i == 0 {
				l = t.style.State(s.state(), l)
			}
			b.WriteString(l + "\n")
		}
	} else {
		b.WriteString("\r" + barLine(t.style, &s, max(t.width(), 20)-1) + screen.EraseLine)
	}
	return screen.Write(t.w, b.String())
}

// barLine returns the progress line, at most w columns wide: the more important parts first, as far as
// they fit, and the gauge in the remaining space.
//
//	epoch 3/20 ━━━━━━━╸──── 62 %  loss 0.412  val 0.873  41 k seeds/s  00:12 left
func barLine(st screen.Style, s *Snapshot, w int) string {
	head := s.state()
	if s.Epoch > 0 {
		head = "epoch " + screen.Of(s.Epoch, s.Epochs)
		if st := s.state(); st != screen.Running {
			head += " " + st
		}
	}
	share, known := s.progress()
	tail := facts(s)
	if d := screen.OneLine(s.Detail); d != "" { // last, if there is room
		tail = append(tail, fact{text: screen.Cut(d, 60)})
	}
	fixed := screen.Width(head)
	if known {
		const least = 6 // width of the smallest useful gauge, in columns
		fixed += 1 + least + len(" 100 %")
	}
	keep := make([]bool, len(tail))
	for _, left := range []bool{true, false} { // with the time left, which is not among the facts
		for i, f := range tail {
			if f.time == left && fixed+2+screen.Width(f.text) <= w {
				fixed += 2 + screen.Width(f.text)
				keep[i] = true
			}
		}
	}
	if fixed > w {
		return screen.Fit(head, w)
	}
	var b strings.Builder
	b.WriteString(head)
	if known {
		room := min(w-fixed+6, 30)
		b.WriteString(" " + st.Gauge(share, room) + fmt.Sprintf(" %5s", screen.Percent(share)))
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
		add("loss " + screen.Value(p))
	}
	for _, m := range headline(s) {
		if p, ok := lastOf(m.Points); ok {
			add(screen.OneLine(m.Name) + " " + screen.Value(p.Y))
		}
	}
	if seeds, _, _ := s.totals(); seeds > 0 {
		add(screen.Number(seeds) + " " + s.perSec())
	}
	if busy := gpusBusy(s); busy != "" {
		add(busy)
	}
	switch {
	case s.Left > 0 && !s.final():
		fs = append(fs, fact{screen.Clock(s.Left) + " left", true})
	case s.Elapsed > 0:
		fs = append(fs, fact{screen.Clock(s.Elapsed), true})
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
// The window is the last epoch's steps, at most 50. For a finished run it is the mean of the last epoch, as in the run's result.
func recentLoss(s *Snapshot) (float64, bool) {
	if s.ofEpoch() {
		return s.Mean.Y, true
	}
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

// ofEpoch reports whether recentLoss is the mean of the last epoch.
func (s *Snapshot) ofEpoch() bool {
	return s.State == screen.Done && s.Mean.Step > 0 && chart.Finite(s.Mean.Y)
}

// closing returns summary's lines and, for a finished run, how its time was spent, in lines of at
// most w columns where possible.
func closing(s *Snapshot, w int) []string {
	out := summary(s)
	if s.State != screen.Done {
		return out
	}
	var parts []string
	if b := bottleneck(s.Workers); b != "" {
		parts = append(parts, "the run "+b)
	}
	parts = append(parts, ratesTexts(s)...)
	if s.Rows != "" {
		parts = append(parts, "rows of features: "+screen.OneLine(s.Rows))
	}
	for i, p := range parts {
		if last := out[len(out)-1]; i > 0 && screen.Width(last)+2+screen.Width(p) <= w {
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
	if t := screen.OneLine(s.Title); t != "" {
		b.WriteString(t + ": ")
	}
	b.WriteString(s.state())
	if s.Epoch > 0 {
		fmt.Fprintf(&b, ", epoch %s", screen.Of(s.Epoch, s.Epochs))
		if s.State != screen.Done && s.Step > 0 {
			fmt.Fprintf(&b, ", step %s", screen.Of(s.Step, s.Steps))
		}
	}
	if p, ok := recentLoss(s); ok {
		b.WriteString(", loss " + screen.Value(p))
	}
	for _, m := range s.Metrics {
		if p, ok := lastOf(m.Points); ok {
			b.WriteString(", " + screen.OneLine(m.Name) + " " + screen.Value(p.Y))
		}
	}
	if seeds, _, _ := s.totals(); seeds > 0 {
		b.WriteString(", " + screen.Number(seeds) + " " + s.perSec())
	}
	if s.Elapsed > 0 {
		b.WriteString(", " + screen.Elapsed(s.Elapsed))
	}
	if s.stopped() {
		return []string{b.String()}
	}
	return append([]string{b.String()}, screen.Lines(s.Detail)...)
}
