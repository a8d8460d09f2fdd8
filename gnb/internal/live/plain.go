package live

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"
)

// plainEvery is the minimum time between two progress lines in a pipe.
const plainEvery = 5 * time.Second

// plain writes lines: the log, one line per finished epoch and per state, and progress every few
// seconds. It never redraws.
type plain struct {
	w     io.Writer
	every time.Duration
	now   func() time.Time
	*pump

	mu    sync.Mutex
	epoch int       // the epoch in progress, as of the last line
	state string    // last state written
	quiet time.Time // time of the last progress line
}

func newPlain(o Options) *plain {
	p := &plain{w: o.Out, every: plainEvery, now: time.Now}
	p.pump = newPump(100*time.Millisecond, p.frame)
	return p
}

// Update notes the events that must not be skipped, the end of an epoch and a change of state,
// before the next snapshot can replace this one.
func (p *plain) Update(s Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell(&s)
	p.update(s)
}

func (p *plain) tell(s *Snapshot) {
	if p.epoch > 0 && s.Epoch > p.epoch {
		p.print(epochLine(s, s.Epoch-1))
		p.quiet = p.now()
	}
	p.epoch = max(p.epoch, s.Epoch)
	if st := s.state(); !s.final() && st != p.state {
		// Running and Evaluating alternate, so a change between them is not an event.
		if p.state == "" || st == Starting {
			p.print(strings.Join(nonEmpty(oneLine(s.Title), st), ": "))
			p.quiet = p.now()
		}
		p.state = st
	}
	if p.quiet.IsZero() {
		p.quiet = p.now()
	}
}

func (p *plain) Print(line string) { p.print(line) }
func (p *plain) Say(line string)   { p.print(line) }

func (p *plain) Close(s Snapshot) error {
	p.mu.Lock()
	if s.State == Done && p.epoch > 0 && s.Epoch >= p.epoch {
		p.print(epochLine(&s, s.Epoch))
	}
	p.mu.Unlock()
	return p.close(s, closeWait(&s))
}

func (p *plain) frame(f frame) error {
	var b strings.Builder
	writeLog(&b, &f, "", "\n")
	if f.last {
		for _, l := range closing(&f.s, math.MaxInt) {
			b.WriteString(l + "\n")
		}
	} else if p.due() && f.s.Epoch+f.s.Step > 0 {
		b.WriteString(progressLine(&f.s) + "\n")
	}
	return write(p.w, b.String())
}

// due reports whether the next progress line is due.
func (p *plain) due() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet.IsZero() || p.now().Sub(p.quiet) < p.every {
		return false
	}
	p.quiet = p.now()
	return true
}

func epochLine(s *Snapshot, epoch int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %s", of(epoch, s.Epochs))
	if p, ok := recentLoss(s); ok {
		b.WriteString("  loss " + value(p))
	}
	for _, m := range s.Metrics {
		if p, ok := lastOf(m.Points); ok {
			b.WriteString("  " + oneLine(m.Name) + " " + value(p.Y))
		}
	}
	if seeds, _, _ := s.totals(); seeds > 0 {
		b.WriteString("  " + number(seeds) + " seeds/s")
	}
	if s.Elapsed > 0 {
		b.WriteString("  " + elapsed(s.Elapsed))
	}
	return b.String()
}

func progressLine(s *Snapshot) string {
	parts := []string{"epoch " + of(s.Epoch, s.Epochs)}
	if s.Epoch == 0 {
		parts = nil
	}
	if s.Step > 0 {
		parts = append(parts, cmp.Or(s.Unit, "step")+" "+of(s.Step, s.Steps))
	}
	if share, ok := s.progress(); ok {
		parts = append(parts, percent(share))
	}
	for _, f := range facts(s) {
		parts = append(parts, f.text)
	}
	if !s.final() {
		parts = append(parts, cut(oneLine(s.Detail), 120))
	}
	return strings.Join(nonEmpty(parts...), "  ")
}

func nonEmpty(s ...string) []string {
	out := s[:0]
	for _, x := range s {
		if x != "" {
			out = append(out, x)
		}
	}
	return out
}
