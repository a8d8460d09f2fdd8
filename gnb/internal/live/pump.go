package live

import (
	"errors"
	"runtime"
	"sync"
	"time"
)

// maxQueued bounds the log lines that wait for a blocked display.
const maxQueued = 10000

// frame is the content of one drawing.
type frame struct {
	s     Snapshot
	lines []string // log lines since the previous frame
	said  []string // lines to keep that are not part of the log
	lost  int      // log lines dropped since then because the display was blocked
	last  bool
}

// pump is a mailbox for one snapshot, and the goroutine that draws from it: the latest snapshot
// replaces earlier ones, at most one is drawn per interval, and the last is always drawn.
type pump struct {
	interval time.Duration
	draw     func(f frame) error

	mu      sync.Mutex
	next    frame
	dirty   bool
	closed  bool
	textLen int // lines of Snapshot.Text taken so far

	drawn int // frames drawn so far; used by run only

	wake chan struct{} // holds one token while there is something to draw
	quit chan struct{} // closed by close
	done chan struct{} // closed when the goroutine ends
	err  error         // the first drawing error; read after done
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

// put stores s and queues its new log lines; the caller holds mu.
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

// add queues text in one of the lists of p.next and requests a drawing.
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
		// After an error nothing more is drawn, but the mailbox is still emptied.
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

// Drawing takes at most 0.5 % of the time of the machine's CPUs, which the run needs (the kernel
// and the page use about as much again): a longer drawing is followed by a longer pause. The pause
// is at most longestRest, because if all CPUs are busy a drawing takes more time than it computes.
const (
	eagerFrames = 20 // exempt from the limit, so that short runs show progress too
	restShare   = 200
	longestRest = 150 * time.Millisecond
)

// rest returns the pause after a drawing.
func (p *pump) rest(took time.Duration) time.Duration {
	fair := min(restShare*took/time.Duration(runtime.NumCPU()), longestRest)
	if p.drawn <= eagerFrames {
		fair = 0
	}
	return max(p.interval-took, fair, took) // a drawing that waits for its reader is followed by an equal pause
}

var errStuck = errors.New("the display did not accept the final state in time (its reader has ended or is blocked); the run itself is not affected")

// close draws s as the last frame and waits for it, at most for the given time: a write to a
// display with a blocked reader cannot be cancelled, so its goroutine is then left behind. Calls
// after the first do nothing.
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
