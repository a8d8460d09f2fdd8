package live

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// plain writes lines: the log, one line per finished epoch and per state, and progress every few
// seconds. It never redraws.
type plain struct {
	w     io.Writer
	every time.Duration
	now   func() time.Time
	mailbox

	mu    sync.Mutex
	epoch int       // the epoch in progress, as of the last line
	state string    // last state written
	quiet time.Time // time of the last progress line
}

func newPlain(o screen.Options) *plain {
	p := &plain{w: o.Out, every: screen.PlainEvery, now: time.Now}
	p.Pump = screen.NewPump(100*time.Millisecond, p.frame)
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
		p.Print(epochLine(s, s.Epoch-1))
		p.quiet = p.now()
	}
	p.epoch = max(p.epoch, s.Epoch)
	if st := s.state(); !s.final() && st != p.state {
		// Running and Evaluating alternate, so a change between them is not an event.
		if p.state == "" || st == screen.Starting {
			p.Print(strings.Join(screen.NonEmpty(screen.OneLine(s.Title), st), ": "))
			p.quiet = p.now()
		}
		p.state = st
	}
	if p.quiet.IsZero() {
		p.quiet = p.now()
	}
}

func (p *plain) Say(line string) { p.Print(line) }

func (p *plain) Close(s Snapshot) error {
	p.mu.Lock()
	if s.State == screen.Done && p.epoch > 0 && s.Epoch >= p.epoch {
		p.Print(epochLine(&s, s.Epoch))
	}
	p.mu.Unlock()
	return p.close(s)
}

func (p *plain) frame(f screen.Frame) error {
	var b strings.Builder
	f.Log(&b, "", "\n")
	s := p.snapshot()
	if f.Last {
		for _, l := range closing(&s, math.MaxInt) {
			b.WriteString(l + "\n")
		}
	} else if p.due() && s.Epoch+s.Step > 0 {
		b.WriteString(ProgressLine(&s) + "\n")
	}
	return screen.Write(p.w, b.String())
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
	fmt.Fprintf(&b, "epoch %s", screen.Of(epoch, s.Epochs))
	loss, ok := recentLoss(s)
	if s.Mean.Step == epoch && chart.Finite(s.Mean.Y) {
		loss, ok = s.Mean.Y, true
	}
	if ok {
		b.WriteString("  loss " + screen.Value(loss))
	}
	for _, m := range s.Metrics {
		if p, ok := lastOf(m.Points); ok {
			b.WriteString("  " + screen.OneLine(m.Name) + " " + screen.Value(p.Y))
		}
	}
	if seeds, _, _ := s.totals(); seeds > 0 {
		b.WriteString("  " + screen.Number(seeds) + " " + s.perSec())
	}
	if s.Elapsed > 0 {
		b.WriteString("  " + screen.Elapsed(s.Elapsed))
	}
	return b.String()
}

// ProgressLine describes the progress of a run in one line.
func ProgressLine(s *Snapshot) string {
	parts := []string{"epoch " + screen.Of(s.Epoch, s.Epochs)}
	if s.Epoch == 0 {
		parts = nil
	}
	if s.Step > 0 {
		parts = append(parts, cmp.Or(s.Unit, "step")+" "+screen.Of(s.Step, s.Steps))
	}
	if share, ok := s.progress(); ok {
		parts = append(parts, screen.Percent(share))
	}
	for _, f := range facts(s) {
		parts = append(parts, f.text)
	}
	if !s.final() {
		parts = append(parts, screen.Cut(screen.OneLine(s.Detail), 120))
	}
	return strings.Join(screen.NonEmpty(parts...), "  ")
}
