package collective

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// linkWire joins the first ranks of the machines by a [Link], whose ranks are the machines. In a round the machines exchange
// frames of one length, which hold heads and small bodies, and then the large bodies.
type linkWire struct {
	link   Link
	group  uint64
	seq    uint64
	frames []byte // sent and received, by machine
	wait   time.Duration

	send, recv [][]byte // of a step

	ending  sync.Mutex
	running bool
	closed  bool
}

// linkFrame is the length of a frame: [frameSize] bytes, the head, which has at most headers' two headers, and a small body.
const linkFrame = 2 * headerSize

func newLinkWire(l Link, group uint64) *linkWire {
	return &linkWire{link: l, group: group, frames: make([]byte, 2*l.Size()*linkFrame)}
}

func (w *linkWire) waited() time.Duration { return w.wait }

func (w *linkWire) address(int) string { return "" }

// abort ends this machine's rounds. The supervisor of the other machines' ranks ends their rounds.
func (w *linkWire) abort(string) { w.link.Abort() }

// close frees the link, after the round that is under way.
func (w *linkWire) close() error {
	w.ending.Lock()
	defer w.ending.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if w.running {
		w.link.Abort()
		return nil
	}
	return w.link.Close()
}

// begin and end bracket a round.
func (w *linkWire) begin() error {
	w.ending.Lock()
	defer w.ending.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.running = true
	return nil
}

func (w *linkWire) end() {
	w.ending.Lock()
	defer w.ending.Unlock()
	w.running = false
	if w.closed {
		_ = w.link.Close() // of memory alone
	}
}

func (w *linkWire) run(k round) error {
	if err := w.begin(); err != nil {
		return err
	}
	defer w.end()
	w.seq++
	n := w.link.Size()
	bodies, got := make([][][]byte, n), make([]*frame, n)
	start := time.Now()
	steps := []Step{
		func() (send, recv [][]byte, err error) { return w.heads(k, bodies) },
		func() (send, recv [][]byte, err error) {
			if k.kind == frameEnter {
				w.wait += time.Since(start)
			}
			if err := w.meet(k, got); err != nil {
				return nil, nil, err
			}
			return w.large(k, bodies, got)
		},
	}
	if k.kind == frameData && k.into != nil { // nothing to say but what both know
		steps = []Step{func() (send, recv [][]byte, err error) { return w.known(k) }}
	}
	if err := w.link.Run(steps...); err != nil {
		return err
	}
	if k.take == nil || k.into != nil {
		return nil
	}
	for m, f := range got {
		if f == nil {
			continue
		}
		b := w.small(m, f)
		if f.body > uint64(len(b)) {
			b = w.recv[m]
		}
		if err := takeAll(k.take, m, b); err != nil {
			return &failure{m, err}
		}
	}
	return nil
}

// takeAll gives a body to its taker.
func takeAll(take taker, m int, b []byte) error {
	r := bytes.NewReader(b)
	if err := take(m, uint64(len(b)), r); err != nil {
		return noEOF(err)
	}
	if r.Len() > 0 {
		return fmt.Errorf("it sent %d bytes too many", r.Len())
	}
	return nil
}

// frame is that for machine m, or from it.
func (w *linkWire) frame(m int, sent bool) []byte {
	at := 2 * m
	if sent {
		at++
	}
	return w.frames[at*linkFrame : (at+1)*linkFrame : (at+1)*linkFrame]
}

// heads exchanges frames. It keeps the bodies that do not fit into them.
func (w *linkWire) heads(k round, bodies [][][]byte) (send, recv [][]byte, err error) {
	me, n := w.link.Rank(), w.link.Size()
	w.send, w.recv = make([][]byte, n), make([][]byte, n)
	for m := range n {
		if m == me {
			continue
		}
		var body [][]byte
		if k.body != nil {
			body = k.body(m)
		}
		size := sizeOf(body)
		f := frame{kind: k.kind, machine: uint32(me), group: w.group, seq: w.seq, head: k.head, body: uint64(size)}
		b := f.appendTo(w.frame(m, true)[:0])
		switch {
		case len(b) > linkFrame:
			return nil, nil, fmt.Errorf("a head of %d bytes does not fit into a frame", len(k.head))
		case len(b)+size > linkFrame:
			bodies[m] = body
		default:
			for _, x := range body {
				b = append(b, x...)
			}
		}
		w.send[m], w.recv[m] = w.frame(m, true), w.frame(m, false)
	}
	return w.send, w.recv, nil
}

// small is a body that travels in its frame.
func (w *linkWire) small(m int, f *frame) []byte {
	at := frameSize + len(f.head)
	return w.frame(m, false)[at:min(linkFrame, at+int(min(f.body, linkFrame)))]
}

// meet reads the frames.
func (w *linkWire) meet(k round, got []*frame) error {
	differs := false
	for m := range got {
		if m == w.link.Rank() {
			continue
		}
		f, err := readFrame(bytes.NewReader(w.frame(m, false)))
		if err == nil && (int(f.machine) != m || f.group != w.group || f.seq != w.seq || f.kind != k.kind) {
			err = fmt.Errorf("it sent frame %d of machine %d, want frame %d of machine %d; the ranks do not belong to the same run", f.seq, f.machine, w.seq, m)
		}
		if err == nil && k.meet != nil {
			err = k.meet(m, f.head)
		}
		if err == errDiffers { //nolint:errorlint // it is returned as it is
			differs, err = true, nil
		}
		if err != nil {
			return &failure{m, err}
		}
		got[m] = f
	}
	if differs { // then all machines see a difference, and none sends a body
		return errDiffers
	}
	return nil
}

// large exchanges the bodies that did not fit into frames.
func (w *linkWire) large(k round, bodies [][][]byte, got []*frame) (send, recv [][]byte, err error) {
	clear(w.send)
	clear(w.recv)
	if k.into != nil {
		return w.pieces(k, bodies, got)
	}
	for m, f := range got {
		if f == nil {
			continue
		}
		if body := bodies[m]; len(body) == 1 {
			w.send[m] = body[0]
		} else if body != nil {
			w.send[m] = joined(body)
		}
		if b := w.small(m, f); f.body > uint64(len(b)) {
			w.recv[m] = make([]byte, f.body)
		}
	}
	return w.send, w.recv, nil
}

// pieces exchanges bodies whose pieces go to places given beforehand. Small bodies have already
// arrived.
func (w *linkWire) pieces(k round, bodies [][][]byte, got []*frame) (send, recv [][]byte, err error) {
	var places [][][]byte
	for m, f := range got {
		var to [][]byte
		if f != nil {
			to = k.into(m)
			if size := sizeOf(to); f.body != uint64(size) {
				return nil, nil, &failure{m, fmt.Errorf("it sent %d bytes instead of %d", f.body, size)}
			}
			if b := w.small(m, f); uint64(len(b)) == f.body {
				for _, x := range to {
					b = b[copy(x, b):]
				}
				to = nil
			}
		}
		places = append(places, to)
	}
	return interleaved(bodies), interleaved(places), nil
}

// known exchanges bodies alone.
func (w *linkWire) known(k round) (send, recv [][]byte, err error) {
	bodies, places := make([][][]byte, w.link.Size()), make([][][]byte, w.link.Size())
	for m := range bodies {
		if m != w.link.Rank() {
			bodies[m], places[m] = k.body(m), k.into(m)
		}
	}
	return interleaved(bodies), interleaved(places), nil
}

// interleaved are messages by machine in the order of a [Step]: the first of each, then the second.
func interleaved(of [][][]byte) (messages [][]byte) {
	most := 0
	for _, list := range of {
		most = max(most, len(list))
	}
	messages = make([][]byte, most*len(of))
	for m, list := range of {
		for i, x := range list {
			messages[i*len(of)+m] = x
		}
	}
	return messages
}

// readInto is the taker of bodies whose pieces have their places.
func readInto(into func(m int) [][]byte) taker {
	return func(m int, size uint64, body io.Reader) error {
		places := into(m)
		if want := sizeOf(places); size != uint64(want) {
			return fmt.Errorf("it sent %d bytes instead of %d", size, want)
		}
		for _, x := range places {
			if _, err := io.ReadFull(body, x); err != nil {
				return err
			}
		}
		return nil
	}
}
