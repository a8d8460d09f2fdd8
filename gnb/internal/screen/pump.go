package screen

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// maxQueued bounds the log lines that wait for a blocked display.
const maxQueued = 10000

// Frame is the content of one drawing.
type Frame struct {
	Lines []string // log lines since the previous frame
	Said  []string // lines to keep that are not part of the log
	lost  int      // log lines dropped since then because the display was blocked
	Last  bool
}

// Pump is the goroutine that draws for a sink: it calls draw after a change, at most once per
// interval, and a last time when it is closed. The sink keeps the state that draw shows, so a newer
// state replaces one that has not been drawn; the pump keeps the lines.
type Pump struct {
	interval time.Duration
	draw     func(f Frame) error

	mu     sync.Mutex
	next   Frame
	dirty  bool
	closed bool

	drawn int // frames drawn so far; used by run only

	wake chan struct{} // holds one token while there is something to draw
	quit chan struct{} // closed by close
	done chan struct{} // closed when the goroutine ends
	err  error         // the first drawing error; read after done
}

// NewPump starts a pump; its user must close it.
func NewPump(interval time.Duration, draw func(Frame) error) *Pump {
	p := &Pump{
		interval: interval, draw: draw,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go p.run()
	return p
}

// Changed requests a drawing.
func (p *Pump) Changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.signal()
	}
}

// Print adds a line (or several) to the log.
func (p *Pump) Print(text string) { p.add(&p.next.Lines, text) }

// Say adds lines that the reader keeps.
func (p *Pump) Say(text string) { p.add(&p.next.Said, text) }

// add queues text in one of the lists of p.next and requests a drawing.
func (p *Pump) add(to *[]string, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.queue(to, text)
		p.signal()
	}
}

func (p *Pump) queue(to *[]string, text string) {
	ls := Lines(text)
	if ls == nil {
		ls = []string{""}
	}
	*to = append(*to, ls...)
	if n := len(*to) - maxQueued; n > 0 {
		*to = append([]string(nil), (*to)[n:]...)
		p.next.lost += n
	}
}

func (p *Pump) signal() {
	p.dirty = true
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *Pump) run() {
	defer close(p.done)
	for {
		select {
		case <-p.wake:
		case <-p.quit:
		}
		start := time.Now()
		p.mu.Lock()
		f, dirty := p.next, p.dirty
		f.Last = p.closed
		p.next.Lines, p.next.Said, p.next.lost, p.dirty = nil, nil, 0, false
		p.mu.Unlock()
		// After an error nothing more is drawn, but the mailbox is still emptied.
		if (dirty || f.Last) && p.err == nil {
			p.err = p.draw(f)
			p.drawn++
		}
		if f.Last {
			return
		}
		pause := time.NewTimer(p.rest(time.Since(start)))
		select {
		case <-pause.C:
		case <-p.quit:
			pause.Stop()
		}
	}
}

// Drawing takes at most 0.5 % of the time of the machine's CPUs, which the run needs (the kernel uses
// as much again, and a page in a browser 80 ms for each drawing): a longer drawing is followed by a longer
// pause. The pause is at most longestRest, because if all CPUs are busy a drawing takes more time than it
// computes. If all CPUs are busy the page is slow too, and longestRest is long enough for it to keep up: a
// page that falls behind answers no pings, so that the server closes its connection.
const (
	eagerFrames = 20 // exempt from the limit, so that short runs show progress too
	restShare   = 200
	longestRest = 500 * time.Millisecond
)

// rest returns the pause after a drawing.
func (p *Pump) rest(took time.Duration) time.Duration {
	fair := min(restShare*took/time.Duration(runtime.NumCPU()), longestRest)
	if p.drawn <= eagerFrames {
		fair = 0
	}
	return max(p.interval-took, fair, took) // a drawing that waits for its reader is followed by an equal pause
}

var ErrStuck = errors.New("the display did not accept the final state in time (its reader has ended or is blocked); the run itself is not affected")

// Close draws the last frame and waits for it, for a few seconds at most: a write to a display with
// a blocked reader cannot be cancelled, so its goroutine is then left behind. state is the state
// that the frame shows. Calls after the first do nothing.
func (p *Pump) Close(state string) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.signal()
	p.closed = true
	p.mu.Unlock()
	close(p.quit)
	t := time.NewTimer(closeWait(state))
	defer t.Stop()
	select {
	case <-p.done:
		return p.err
	case <-t.C:
		return ErrStuck
	}
}

// PlainEvery is the minimum time between two progress lines in a pipe.
const PlainEvery = 5 * time.Second

// closeWait is how long Close waits for a display. After an interrupt the kernel ends the cell
// within 5 seconds, and the run needs part of them.
func closeWait(state string) time.Duration {
	if state == Interrupted {
		return 1500 * time.Millisecond
	}
	return 5 * time.Second
}

// Log writes the frame's log lines, each between two texts, and the number of dropped lines.
func (f *Frame) Log(b *strings.Builder, before, after string) {
	if f.lost > 0 {
		fmt.Fprintf(b, "%s… %d lines left out%s", before, f.lost, after)
	}
	for _, l := range f.Lines {
		b.WriteString(before + l + after)
	}
}
