package screen

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Bar is the progress of one task with a count. Its methods may be called from
// several goroutines. It owns a goroutine until Done.
type Bar struct {
	label string
	o     BarOptions
	total atomic.Int64
	n     atomic.Int64
	start time.Time
	now   func() time.Time

	show  func(line string, share float64, last bool) error
	gauge bool // show draws the share next to the line
	every time.Duration
	quit  chan struct{}
	done  chan struct{}
	once  sync.Once

	// State of the rate, used by the drawing goroutine only.
	lastN      int64
	lastT      time.Time
	sumN, sumT float64
}

// BarOptions configure a Bar; the zero value is the default.
type BarOptions struct {
	Options
	// Unit is the unit of the count, such as "rows". "B" counts bytes and shows KiB, MiB; "%"
	// shows the share of the total, which can be in any unit.
	Unit string
	// After is the time before the bar is shown; shorter tasks show nothing.
	After time.Duration
}

// Progress starts a bar for the given total; 0 means unknown, and the bar then shows the count
// alone. It appears where New would show a run: in the cell, on the terminal, or in a pipe as a
// line every few seconds.
func Progress(label string, total int64, o BarOptions) *Bar {
	b := &Bar{label: OneLine(label), now: time.Now, quit: make(chan struct{}), done: make(chan struct{})}
	b.start = b.now()
	b.lastT = b.start
	b.total.Store(total)
	m := Pick(&o.Options)
	b.o = o
	b.every = time.Second / time.Duration(min(o.MaxFPS, 10))
	switch m {
	case modeNone:
		close(b.done)
		return b
	case Notebook:
		b.show = b.notebook(NewID())
	case Terminal:
		b.show = b.terminal()
	case Plain:
		b.every = PlainEvery
		b.show = func(line string, _ float64, _ bool) error { return Write(o.Out, line+"\n") }
	}
	go b.run()
	return b
}

// Add counts n more.
func (b *Bar) Add(n int64) { b.n.Add(n) }

// SetTotal sets the total when it becomes known.
func (b *Bar) SetTotal(total int64) { b.total.Store(total) }

// Set sets the count and the total.
func (b *Bar) Set(done, total int64) {
	b.total.Store(total)
	b.n.Store(done)
}

// Write counts len(p) and discards p, for use of a bar of bytes in an io.MultiWriter or
// io.TeeReader.
func (b *Bar) Write(p []byte) (int, error) {
	b.Add(int64(len(p)))
	return len(p), nil
}

// Done shows the final count and ends the bar. It waits a few seconds at most until the count is
// shown. Later calls do nothing.
func (b *Bar) Done() {
	b.once.Do(func() {
		if b.show == nil {
			return
		}
		close(b.quit)
		t := time.NewTimer(5 * time.Second)
		defer t.Stop()
		select {
		case <-b.done:
		case <-t.C:
		}
	})
}

func (b *Bar) run() {
	defer close(b.done)
	// A task that takes no time needs no bar, only its last line.
	wait := min(b.every, 150*time.Millisecond)
	if b.every >= PlainEvery {
		wait = b.every
	}
	t := time.NewTimer(max(wait, b.o.After))
	defer t.Stop()
	var err error
	drawn := int64(-1)
	for {
		last := false
		select {
		case <-t.C:
		case <-b.quit:
			if b.now().Sub(b.start) < b.o.After {
				return
			}
			last = true
		}
		// Do not draw on a broken display.
		if n := b.n.Load(); err == nil && (last || n != drawn || b.every < PlainEvery) {
			line, share := b.line(last)
			err = b.show(line, share, last)
			drawn = n
		}
		if last {
			return
		}
		t.Reset(b.every)
	}
}

func (b *Bar) count(n int64) string {
	if b.o.Unit == "B" {
		return phrase.Bytes(n)
	}
	return chart.Grouped(int(n))
}

// line returns the text next to the gauge, and the share that is done (-1: unknown).
func (b *Bar) line(last bool) (string, float64) {
	n, total, now := b.n.Load(), b.total.Load(), b.now()
	spent := now.Sub(b.start)
	// The rate is an exponential average over the last seconds.
	if dt := now.Sub(b.lastT).Seconds(); dt > 0 {
		const memory = 10 // seconds
		keep := math.Exp(-dt / memory)
		b.sumN = keep*b.sumN + float64(n-b.lastN)
		b.sumT = keep*b.sumT + dt
		b.lastN, b.lastT = n, now
	}
	rate := 0.0
	if b.sumT > 0 {
		rate = b.sumN / b.sumT
	}
	if s := spent.Seconds(); last && s > 0 {
		rate = float64(n) / s
	}
	share := -1.0
	what := b.count(n)
	if total > 0 {
		share = Clamp(float64(n) / float64(total))
		if last && n >= total {
			what = b.count(n)
		} else {
			what += " of " + b.count(total)
		}
	}
	if b.o.Unit != "" && b.o.Unit != "B" {
		what += " " + OneLine(b.o.Unit)
	}
	var parts []string
	if n > 0 || total > 0 { // otherwise nothing is counted: show the time alone
		parts = append(parts, what)
	}
	if rate > 0 {
		if b.o.Unit == "B" {
			parts = append(parts, phrase.Bytes(int64(rate))+"/s")
		} else {
			parts = append(parts, Number(rate)+"/s")
		}
	}
	if b.o.Unit == "%" {
		parts = nil
		if share >= 0 && (last || !b.gauge) {
			parts = append(parts, Percent(share))
		}
	}
	switch {
	case last && total > 0 && n < total:
		parts = append(parts, "stopped after "+Elapsed(spent))
	case last:
		parts = append(parts, Elapsed(spent))
	case total > n && rate > 0:
		parts = append(parts, Clock(time.Duration(float64(total-n)/rate*float64(time.Second)))+" left")
	default:
		parts = append(parts, Clock(spent))
	}
	return strings.Join(NonEmpty(b.label, strings.Join(parts, "  ")), "  "), share
}

func (b *Bar) terminal() func(string, float64, bool) error {
	st, out := TermStyle(), b.o.Out
	b.gauge = true
	return func(line string, share float64, last bool) error {
		if last {
			return Write(out, "\r"+line+EraseLine+"\n")
		}
		w := max(TermWidth(out), 20) - 1
		gauge := ""
		if room := w - Width(line) - len("  100 %"); share >= 0 && room >= 6 {
			gauge = st.Gauge(share, min(room, 24)) + fmt.Sprintf(" %5s  ", Percent(share))
		} else if share >= 0 {
			line = Percent(share) + "  " + line
		}
		return Write(out, "\r"+gauge+Fit(line, w)+EraseLine)
	}
}

func (b *Bar) notebook(id string) func(string, float64, bool) error {
	d := b.o.Display
	return func(line string, share float64, last bool) error {
		var h strings.Builder
		h.WriteString(`<div style="max-width:880px;font-size:13px;line-height:1.45">`)
		if !last && share >= 0 {
			fmt.Fprintf(&h, `<div style="height:4px;border-radius:2px;background-color:%s;overflow:hidden"><div style="height:4px;width:%.1f%%;background-color:%s"></div></div>`,
				Track, share*100, CSS(chart.Blue))
		}
		h.WriteString(phrase.HTML(line) + `</div>`)
		out := HTMLData(id, h.String(), line)
		if last {
			return send(d, out)
		}
		return d.Send(out)
	}
}
