package cluster

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Kinds of frames between rank 0 and another rank. A frame is its kind (1 byte), the length of its
// payload (4 bytes, little-endian) and the payload.
const (
	frameHello   = 'h' // the first frame of a connection
	frameRefusal = 'n' // a sentence: why the connection is refused

	// From rank 0.
	frameWelcome = 'w' // all ranks have joined: their numbers
	frameJob     = 'j' // a job begins
	frameStop    = 's' // the job is to stop
	frameAbort   = 'a' // the job is to end at once, with the reason
	frameEnd     = 'e' // the job has ended on all ranks
	frameBeat    = 'b' // rank 0 is alive; where it is in the job
	frameBye     = 'y' // no more jobs

	// From another rank. The payload begins with the job's number (4 bytes), except that of the last.
	framePulse   = 'p' // this rank is alive; its state
	frameMessage = 'm' // a message of the job
	frameEnded   = 'd' // the job has ended on this rank, with its last words
	frameSignal  = 'i' // the run is to be interrupted; the reason: "received the signal terminated"
)

const (
	// maxFrame is the largest payload of a frame: an event of multigpu has up to 64 MiB.
	maxFrame = 80 << 20
	// maxFirst is the largest payload of a frame of an unproven peer.
	maxFirst = 1 << 20
)

// wire is a connection that carries frames. Any goroutine may send; one receives.
type wire struct {
	conn net.Conn
	mu   sync.Mutex // of sending
	head [5]byte    // of the frame being received

	// patient makes send wait for a peer that does not read as long as frames come from it. It is set
	// before the first frame.
	patient bool
	heard   atomic.Int64 // when the last frame came, in nanoseconds since birth

	silence time.Duration // how long receive waits for bytes; 0 is no limit
}

var birth = time.Now()

// sendPatience is how long a peer may not read while a frame is sent to it.
var sendPatience = 30 * time.Second

// send sends a frame. After an error the connection is closed, because the peer may have received a part of
// the frame.
func (w *wire) send(kind byte, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.put(kind, payload)
	if err != nil {
		_ = w.conn.Close() // it is of no more use
	}
	return err
}

func (w *wire) put(kind byte, payload []byte) error {
	head := make([]byte, 5, 5+min(len(payload), 16<<10))
	head[0] = kind
	binary.LittleEndian.PutUint32(head[1:], uint32(len(payload)))
	if len(payload) <= 16<<10 { // in one packet
		return w.write(append(head, payload...))
	}
	if err := w.write(head); err != nil {
		return err
	}
	return w.write(payload)
}

func (w *wire) write(b []byte) error {
	for {
		if err := w.conn.SetWriteDeadline(time.Now().Add(sendPatience)); err != nil {
			return err
		}
		n, err := w.conn.Write(b)
		b = b[n:]
		slow := w.patient && errors.Is(err, os.ErrDeadlineExceeded) && time.Since(birth)-time.Duration(w.heard.Load()) < sendPatience
		if !slow {
			return err
		}
	}
}

func (w *wire) sendJSON(kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.send(kind, b)
}

// lastLook is the time for which a read continues after a silence. This process may have been
// stopped in the meantime; the peer's data is then waiting to be read.
const lastLook = 100 * time.Millisecond

// Read reads the peer's data and gives up after a silence.
func (w *wire) Read(b []byte) (n int, err error) {
	if w.silence == 0 {
		return w.conn.Read(b)
	}
	for _, wait := range []time.Duration{w.silence, lastLook} {
		if err := w.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
			return 0, err
		}
		if n, err = w.conn.Read(b); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return n, err
}

// receive returns the next frame; its payload has at most limit bytes and is the caller's.
func (w *wire) receive(limit int) (kind byte, payload []byte, err error) {
	if _, err := io.ReadFull(w, w.head[:]); err != nil {
		return 0, nil, err
	}
	w.heard.Store(int64(time.Since(birth)))
	n := int(binary.LittleEndian.Uint32(w.head[1:]))
	if n > limit {
		return 0, nil, fmt.Errorf("cluster: %s sent a frame of %d bytes, where at most %d can be", w.conn.RemoteAddr(), n, limit)
	}
	// A peer that claims a length must send that much before the memory is taken.
	payload = make([]byte, 0, min(n, 64<<10))
	for len(payload) < n {
		at := len(payload)
		payload = append(payload, make([]byte, min(n-at, max(at, 64<<10)))...)
		if _, err := io.ReadFull(w, payload[at:]); err != nil {
			return 0, nil, err
		}
	}
	return w.head[0], payload, nil
}
