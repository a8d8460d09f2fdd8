package collective

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// ConnError is the error of a connection between two machines that broke or carried unexpected
// data.
type ConnError struct {
	// At is the collective that needed the connection, and Rank the rank that reports it.
	At   Site
	Rank int
	// The ranks FirstRank to LastRank run on the machine at the other end, whose address is Addr.
	FirstRank, LastRank int
	Addr                string
	Err                 error
}

func (e *ConnError) Error() string {
	peer := fmt.Sprintf("rank %d", e.FirstRank)
	if e.LastRank > e.FirstRank {
		peer = fmt.Sprintf("ranks %d to %d", e.FirstRank, e.LastRank)
	}
	why := e.Err.Error()
	if errors.Is(e.Err, io.EOF) || errors.Is(e.Err, io.ErrUnexpectedEOF) {
		why = "the other end closed it"
	}
	return fmt.Sprintf("collective: %v: rank %d lost its connection to %s on the machine at %s: %s", e.At, e.Rank, peer, e.Addr, why)
}

func (e *ConnError) Unwrap() error { return e.Err }

// carrier joins the first ranks of the machines. In a round each of them sends one frame to every other, and receives one.
type carrier interface {
	// run returns errDiffers after all heads have been sent and read.
	run(k round) error
	// abort ends all rounds. It tells the reason to the machines that it can still reach.
	abort(reason string)
	close() error
	// waited is how long this machine has waited for the heads of slower ones.
	waited() time.Duration
	// address returns the address of machine m, "" if it is unknown.
	address(m int) string
}

// wire joins the first ranks of the machines by one connection for each pair.
type wire struct {
	me    int // this machine
	group uint64
	peers []*peer // by machine; nil at me
	seq   uint64
	// headWait is how long this machine has waited for the heads of slower ones.
	headWait time.Duration

	ending sync.Mutex
	ended  bool // no wait may begin any more
}

type peer struct {
	machine int
	conn    net.Conn
	r       *bufio.Reader
	frame   []byte // memory of frames that are sent
	reading bool   // a large body is being read

	writing sync.Mutex
	cut     bool // a write ended inside of a frame, or the last frame was written
}

func (w *wire) waited() time.Duration { return w.headWait }

func (w *wire) address(m int) string { return w.peers[m].conn.RemoteAddr().String() }

func newWire(me int, group uint64, conns []net.Conn) *wire {
	w := &wire{me: me, group: group, peers: make([]*peer, len(conns))}
	for m, c := range conns {
		if m != me && c != nil {
			w.peers[m] = &peer{machine: m, conn: c, r: bufio.NewReaderSize(c, 64<<10)}
		}
	}
	return w
}

// round describes the frames of one round.
type round struct {
	kind uint32
	head []byte
	// body is what machine m gets; nil for nothing.
	body func(m int) [][]byte
	// meet checks the head from machine m; after errDiffers the body is not read.
	meet func(m int, head []byte) error
	// take reads the body from machine m. Bodies of several machines are read at a time.
	take taker
	// into, if it is set, is where the pieces of the body from machine m go, in the pieces in which that machine sends them.
	// take is then not used.
	into func(m int) [][]byte
}

// taker reads a body of size bytes from machine m.
type taker func(m int, size uint64, body io.Reader) error

var errDiffers = errors.New("the machines call different collectives")

// aborted is the error of a round in which another machine sent its reason to end.
type aborted struct{ reason string }

func (a *aborted) Error() string { return a.reason }

// failure is the error of the connection to machine m.
type failure struct {
	machine int
	err     error
}

func (f *failure) Error() string { return f.err.Error() }

// small is the size up to which bodies are sent and read in turn. A connection must take a frame
// with such a body without waiting for its reader, as those of TCP and Unix do.
const small = 16 << 10

// run writes all heads and small bodies, then reads; large bodies are sent concurrently. It returns
// errDiffers after all heads have been sent and read, and any other error at once.
func (w *wire) run(k round) error {
	w.seq++
	if k.into != nil {
		k.take = readInto(k.into)
	}
	var bodies sync.WaitGroup
	var mu sync.Mutex
	var broken *failure
	fail := func(m int, err error) {
		mu.Lock()
		defer mu.Unlock()
		if broken == nil {
			broken = &failure{m, err}
			w.interrupt()
		}
	}
	// Each machine begins with the next one, so that not all send to the same one at first.
	others := append(w.peers[w.me+1:len(w.peers):len(w.peers)], w.peers[:w.me]...)
	for _, p := range others {
		large, err := w.send(p, k)
		if err != nil {
			fail(p.machine, err)
		} else if large != nil {
			bodies.Go(func() {
				if err := p.write(large); err != nil {
					fail(p.machine, err)
				}
			})
		}
	}
	differs, came := false, 0
	read := func(p *peer) error {
		p.reading = false
		f, err := w.receive(p, k.kind)
		if err == nil && k.meet != nil {
			err = k.meet(p.machine, f.head)
		}
		if err == nil {
			err = w.take(p, f.body, k.take, func(read func() error) {
				p.reading = true
				bodies.Go(func() {
					if err := read(); err != nil {
						fail(p.machine, err)
					}
				})
			})
		}
		mu.Lock()
		came++
		if errors.Is(err, errDiffers) {
			differs, err = true, nil
		}
		mu.Unlock()
		if err != nil {
			fail(p.machine, err)
		}
		return err
	}
	start := time.Now()
	for i, p := range others {
		if w.ready(p) {
			if read(p) != nil {
				break
			}
			continue
		}
		w.watch(others[:i], others[i:], read, fail)
		break
	}
	if k.kind == frameEnter {
		w.headWait += time.Since(start)
	}
	if differs { // a machine that differs reads no bodies, and may not send all of its own bodies
		w.interrupt()
	}
	bodies.Wait()
	switch {
	case differs && came == len(others):
		return errDiffers
	case broken == nil:
		return nil
	}
	if a, ok := errors.AsType[*aborted](broken.err); ok {
		return a
	}
	return broken
}

// watch reads the heads of slow machines and notices if another machine ends meanwhile.
func (w *wire) watch(done, slow []*peer, read func(*peer) error, fail func(int, error)) {
	var heads, watches sync.WaitGroup
	heads.Add(len(slow))
	watch := func(p *peer) {
		if p.reading {
			return
		}
		b, err := p.r.Peek(frameSize)
		switch {
		case err != nil:
		case begins(b, frameEnd):
			return // it had all that it waited for, and needs nothing more
		case begins(b, frameAbort):
			_, err = w.receive(p, frameAbort)
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			fail(p.machine, err)
		}
	}
	for _, p := range done {
		watches.Go(func() { watch(p) })
	}
	for _, p := range slow {
		watches.Go(func() {
			err := read(p)
			heads.Done()
			if err == nil {
				watch(p)
			}
		})
	}
	heads.Wait()
	for _, until := range []time.Time{longAgo, {}} {
		for _, p := range append(done[:len(done):len(done)], slow...) {
			if !p.reading {
				w.readUntil(p, until)
			}
		}
		watches.Wait()
	}
}

var longAgo = time.Unix(1, 0)

// interrupt ends all reads and writes that wait, for good.
func (w *wire) interrupt() {
	w.ending.Lock()
	defer w.ending.Unlock()
	w.ended = true
	for _, p := range w.peers {
		if p != nil {
			_ = p.conn.SetDeadline(longAgo) // fails only if it is closed
		}
	}
}

// patience is how long a machine waits for one other before it waits for all.
const patience = 20 * time.Millisecond

// ready reports whether a frame begins to arrive within patience; an error counts as a frame.
func (w *wire) ready(p *peer) bool {
	if p.r.Buffered() > 0 {
		return true
	}
	w.readUntil(p, time.Now().Add(patience))
	_, err := p.r.Peek(1)
	w.readUntil(p, time.Time{})
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

func (w *wire) readUntil(p *peer, t time.Time) {
	w.ending.Lock()
	defer w.ending.Unlock()
	if !w.ended {
		_ = p.conn.SetReadDeadline(t)
	}
}

// send writes the head, and the body if it is small. It returns a large body, still to be written;
// the connection then stays locked for it.
func (w *wire) send(p *peer, k round) (large [][]byte, err error) {
	var body [][]byte
	if k.body != nil {
		body = k.body(p.machine)
	}
	size := sizeOf(body)
	f := frame{kind: k.kind, machine: uint32(w.me), group: w.group, seq: w.seq, head: k.head, body: uint64(size)}
	p.frame = f.appendTo(p.frame[:0])
	if size <= small {
		for _, b := range body {
			p.frame = append(p.frame, b...)
		}
		body = nil
	}
	p.writing.Lock()
	if err := p.put([][]byte{p.frame}); err != nil || body == nil {
		p.writing.Unlock()
		return nil, err
	}
	return body, nil
}

// write writes a large body.
func (p *peer) write(body [][]byte) error {
	defer p.writing.Unlock()
	err := p.put(body)
	if err != nil {
		p.cut = true
	}
	return err
}

// put writes under the lock.
func (p *peer) put(b net.Buffers) error {
	if p.cut {
		return net.ErrClosed
	}
	n, err := b.WriteTo(p.conn)
	if err != nil && n > 0 {
		p.cut = true
	}
	return err
}

func (w *wire) receive(p *peer, kind uint32) (*frame, error) {
	f, err := readFrame(p.r)
	if err != nil {
		return nil, err
	}
	switch f.kind {
	case frameAbort:
		return nil, &aborted{string(f.head)}
	case frameEnd:
		return nil, io.EOF
	}
	if int(f.machine) != p.machine || f.group != w.group || f.seq != w.seq || f.kind != kind {
		return nil, fmt.Errorf("it sent frame %d of machine %d, want frame %d of machine %d; the connections do not join the same run, or not in the same order",
			f.seq, f.machine, w.seq, p.machine)
	}
	return f, nil
}

// take reads a body; it reads a large body through beside.
func (w *wire) take(p *peer, size uint64, take taker, beside func(func() error)) error {
	read := func() error {
		body := io.LimitedReader{R: p.r, N: int64(size)}
		if take != nil {
			if err := take(p.machine, size, &body); err != nil {
				return noEOF(err)
			}
		}
		if body.N > 0 {
			return fmt.Errorf("it sent %d bytes too many", body.N)
		}
		return nil
	}
	if size > small {
		beside(read)
		return nil
	}
	return read()
}

// abort tells the reason to the other machines that can still be reached, and ends all waits.
func (w *wire) abort(reason string) {
	w.interrupt()
	var told sync.WaitGroup
	for _, p := range w.peers {
		if p == nil {
			continue
		}
		told.Go(func() {
			p.writing.Lock()
			defer p.writing.Unlock()
			if p.cut {
				_ = p.conn.Close() // the other end sees the connection end
				return
			}
			f := frame{kind: frameAbort, machine: uint32(w.me), group: w.group, head: []byte(reason[:min(len(reason), maxHead)])}
			_ = p.conn.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = p.conn.Write(f.appendTo(nil))
			p.cut = true
			_ = p.conn.SetWriteDeadline(longAgo)
		})
	}
	told.Wait()
}

// close closes the connections. If this machine has ended normally, it first tells the other
// machines so, because one of them may still wait for a third machine in the last collective.
func (w *wire) close() error {
	var errs []error
	for _, p := range w.peers {
		if p != nil {
			p.end(w)
			if err := p.conn.Close(); !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// end writes the last frame, unless the connection is of no use any more.
func (p *peer) end(w *wire) {
	w.ending.Lock()
	ended := w.ended
	w.ending.Unlock()
	if ended || !p.writing.TryLock() {
		return
	}
	defer p.writing.Unlock()
	if p.cut {
		return
	}
	p.cut = true
	f := frame{kind: frameEnd, machine: uint32(w.me), group: w.group}
	_ = p.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = p.conn.Write(f.appendTo(nil)) // the other machine may have gone
}
