package live

import (
	"errors"
	"runtime"
	"sync"
	"time"
)

// maxQueued bounds the log lines that wait for a display that does not move.
const maxQueued = 10000

// frame is what one drawing shows.
type frame struct {
	s     Snapshot
	lines []string // log lines since the previous frame
	said  []string // lines to keep, where they do not belong to the log
	lost  int      // lines that were dropped since, because the display stood still
	last  bool
}

// pump is a mailbox of one snapshot and the goroutine that draws from it: the
// latest wins, at most one drawing per interval, and the last is always drawn.
type pump struct {
	interval time.Duration
	draw     func(f frame) error

	mu      sync.Mutex
	next    frame
	dirty   bool
	closed  bool
	textLen int // lines of Snapshot.Text taken so far

	drawn int // frames so far; run's

	wake chan struct{} // one token: there is something to draw
	quit chan struct{} // closed by close
	done chan struct{} // closed when the goroutine ends
	err  error         // of drawing; read after done
}

func newPump(interval time.Duration, draw func(frame) error) *pump {
	p := &pump{
		interval: interval, draw: draw,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go p.run()
	return p
}

func (p *pump) update(s Snapshot) {
	s = s.own()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.put(s)
	}
}

// put stores s and takes the log lines that are new in it; the caller holds mu.
func (p *pump) put(s Snapshot) {
	if len(s.Text) > p.textLen {
		for _, l := range s.Text[p.textLen:] {
			p.queue(&p.next.lines, l)
		}
		p.textLen = len(s.Text)
	}
	p.next.s = s
	p.signal()
}

func (p *pump) print(text string) { p.add(&p.next.lines, text) }

func (p *pump) say(text string) { p.add(&p.next.said, text) }

// add queues text in one of the lists of p.next, and has it drawn.
func (p *pump) add(to *[]string, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.queue(to, text)
		p.signal()
	}
}

func (p *pump) queue(to *[]string, text string) {
	ls := lines(text)
	if ls == nil {
		ls = []string{""}
	}
	*to = append(*to, ls...)
	if n := len(*to) - maxQueued; n > 0 {
		*to = append([]string(nil), (*to)[n:]...)
		p.next.lost += n
	}
}

func (p *pump) signal() {
	p.dirty = true
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pump) run() {
	defer close(p.done)
	for {
		select {
		case <-p.wake:
		case <-p.quit:
		}
		start := time.Now()
		p.mu.Lock()
		f, dirty := p.next, p.dirty
		f.last = p.closed
		p.next.lines, p.next.said, p.next.lost, p.dirty = nil, nil, 0, false
		p.mu.Unlock()
		// After an error nothing more is drawn, but the mailbox still empties.
		if (dirty || f.last) && p.err == nil {
			p.err = p.draw(f)
			p.drawn++
		}
		if f.last {
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

// A drawing takes at most 0.5 % of the time of the machine's CPUs, which the run needs
// (and the kernel and the page take as much again): after a longer one the pause is
// longer, but not beyond longestRest, since where all CPUs are busy a drawing takes more
// time than it computes.
const (
	eagerFrames = 20 // come without that: short runs are seen to move, too
	restShare   = 200
	longestRest = 150 * time.Millisecond
)

// rest is the pause after a drawing.
func (p *pump) rest(took time.Duration) time.Duration {
	fair := min(restShare*took/time.Duration(runtime.NumCPU()), longestRest)
	if p.drawn <= eagerFrames {
		fair = 0
	}
	return max(p.interval-took, fair, took) // one that waits for its reader rests as long
}

var errStuck = errors.New("live: the display did not take the final state in time (its reader is gone or stands still); the run itself is not affected")

// close draws s as the last frame and waits for it, at most wait: a write to a
// display whose reader is stuck cannot be taken back, and its goroutine is then
// left behind. Only the first call does something.
func (p *pump) close(s Snapshot, wait time.Duration) error {
	s = s.own()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.put(s)
	p.closed = true
	p.mu.Unlock()
	close(p.quit)
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-p.done:
		return p.err
	case <-t.C:
		return errStuck
	}
}
