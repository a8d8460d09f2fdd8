// Package zmtp is the kernel's side of Jupyter's five sockets: ROUTER, PUB and REP of ZeroMQ's
// protocol ZMTP 3.0 (https://rfc.zeromq.org/spec/23) without encryption. "gnb install" compiles it
// into GoNB in place of github.com/go-zeromq/zmq4, so it imports nothing but the standard library.
//
// Any user of the machine can connect to a kernel's TCP ports. Nothing that such a peer sends ends
// or stops the kernel:
//
//   - On Linux, a peer on the same machine must be a process of the kernel's user, or of root.
//   - A ROUTER returns only messages with a valid signature (HMAC-SHA256 with the connection file's
//     key), and skips others.
//   - A handshake has a time limit and blocks no other one. Frames, messages, commands, the number of
//     connections and the bytes queued for a peer are bounded, and memory is used only for bytes that
//     have arrived.
//   - A peer that does not read delays nobody else; one that falls too far behind is disconnected.
//
// What is refused is counted and logged: the first time, the tenth, the hundredth, and so on.
package zmtp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// Bounds of a socket. A stranger is a peer that has not yet sent a message with a valid signature.
const (
	maxMessage  = 256 << 20 // of a peer that has proved that it knows the key
	maxStranger = 4 << 20   // of a stranger
	maxSmall    = 1 << 16   // on PUB and REP: a subscription, or a heartbeat
	maxConns    = 256       // connections of a socket
	maxQueue    = 256 << 20 // bytes that wait until a subscriber or a known peer reads them
	maxReply    = 1 << 20   // the same of a stranger, and on REP

	handshakeLimit = 10 * time.Second
	queueLimit     = 5 * time.Second // how long a publisher waits for a peer whose queue is full
	closeLimit     = time.Second     // how long Close waits until the peers have read what was sent
)

// Msg is a message.
type Msg struct{ Frames [][]byte }

// NewMsgFrom returns the message with these frames.
func NewMsgFrom(frames ...[]byte) Msg { return Msg{Frames: frames} }

func (m Msg) String() string { return fmt.Sprintf("%q", m.Frames) }

// Socket is a listening socket.
type Socket interface {
	// Listen listens at tcp://HOST:PORT or ipc://PATH.
	Listen(endpoint string) error
	// Recv returns the next message. Its only error is that the socket is closed.
	Recv() (Msg, error)
	// Send queues a message: a ROUTER for the peers whose identity is the first frame, a PUB for its
	// subscribers, a REP for the peer whose message Recv returned last. Its only error is that the
	// socket is closed.
	Send(Msg) error
	// SendMulti is Send.
	SendMulti(Msg) error
	Close() error
}

// NewRouter returns a ROUTER that accepts messages signed with key; an empty key accepts all.
func NewRouter(_ context.Context, key []byte) Socket { return newSocket("ROUTER", key) }

// NewPub returns a PUB.
func NewPub(context.Context) Socket { return newSocket("PUB", nil) }

// NewRep returns a REP.
func NewRep(context.Context) Socket { return newSocket("REP", nil) }

// errClosed is the error of a closed socket.
var errClosed = errors.New("zmtp: the socket is closed")

// socket implements the three kinds.
type socket struct {
	kind string
	key  []byte
	in   chan received
	done chan struct{}

	mu       sync.Mutex
	listener net.Listener
	path     string // of an ipc socket, removed by Close
	conns    []*conn
	closed   bool
	refusals int

	last received // by REP's Recv
}

// received is a message and its connection.
type received struct {
	conn   *conn
	frames [][]byte
}

var _ Socket = (*socket)(nil)

func newSocket(kind string, key []byte) *socket {
	return &socket{kind: kind, key: key, in: make(chan received), done: make(chan struct{})}
}

func (s *socket) Listen(endpoint string) error {
	network, address, ok := strings.Cut(endpoint, "://")
	switch {
	case ok && network == "tcp":
	case ok && network == "ipc":
		network = "unix"
		s.path = address
	default:
		return fmt.Errorf("zmtp: listening at %q: the address must begin with tcp:// or ipc://", endpoint)
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("zmtp: %w", err)
	}
	s.listener = l
	go s.accept()
	return nil
}

func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.done)
	limit := make(chan struct{}) // for all peers together
	defer time.AfterFunc(closeLimit, func() { close(limit) }).Stop()
	for _, c := range s.conns {
		c.drain(limit)
		c.finish()
	}
	if s.path != "" {
		defer os.Remove(s.path)
	}
	if s.listener == nil {
		return nil
	}
	return s.listener.Close()
}

func (s *socket) Recv() (Msg, error) {
	select {
	case r := <-s.in:
		if s.kind == "REP" {
			s.last = r
			for i, f := range r.frames {
				if len(f) == 0 {
					s.last.frames = r.frames[:i+1]
					return Msg{Frames: r.frames[i+1:]}, nil
				}
			}
		}
		return Msg{Frames: r.frames}, nil
	case <-s.done:
		return Msg{}, errClosed
	}
}

func (s *socket) SendMulti(m Msg) error { return s.Send(m) }

func (s *socket) Send(m Msg) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	var to []*conn
	frames, wait := m.Frames, time.Duration(0)
	switch s.kind {
	case "ROUTER":
		for _, c := range s.conns {
			if len(frames) > 0 && c.identity != "" && c.identity == string(frames[0]) {
				to = append(to, c)
			}
		}
		if len(frames) > 0 {
			frames = frames[1:]
		}
	case "PUB":
		wait = queueLimit
		for _, c := range s.conns {
			if len(frames) > 0 && c.subscribed(frames[0]) {
				to = append(to, c)
			}
		}
	case "REP":
		if s.last.conn != nil {
			to = append(to, s.last.conn)
			frames = append(s.last.frames[:len(s.last.frames):len(s.last.frames)], frames...)
		}
	}
	s.mu.Unlock()
	for _, c := range to {
		if !c.send(message(frames), wait) {
			s.refuse("a peer that does not read its messages")
			s.remove(c)
		}
	}
	return nil
}

// refuse counts and logs something that was refused.
func (s *socket) refuse(what string) {
	s.mu.Lock()
	s.refusals++
	all := s.refusals
	s.mu.Unlock()
	n := all
	for n%10 == 0 {
		n /= 10
	}
	if n == 1 {
		log.Printf("a %s socket refused %s (refusals so far: %d)", s.kind, what, all)
	}
}

func (s *socket) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			select {
			case <-s.done:
				return
			case <-time.After(50 * time.Millisecond): // such as too many open files
			}
			continue
		}
		if !sameUser(c) {
			s.refuse("a connection of another user of this machine")
			c.Close()
			continue
		}
		cn := newConn(c)
		if !s.add(cn) {
			s.refuse(fmt.Sprintf("a connection beyond %d", maxConns))
			c.Close()
			continue
		}
		go func() {
			err := s.serve(cn)
			if errors.Is(err, errProtocol) {
				s.refuse("a peer: " + err.Error())
			}
			s.remove(cn)
		}()
	}
}

// add registers a connection. If there are too many, it first disconnects the oldest stranger of a
// ROUTER.
func (s *socket) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) >= maxConns {
		oldest := -1
		for i, other := range s.conns {
			if s.kind == "ROUTER" && !other.known {
				oldest = i
				break
			}
		}
		if oldest < 0 {
			return false
		}
		s.conns[oldest].finish()
		s.conns = append(s.conns[:oldest], s.conns[oldest+1:]...)
	}
	if s.closed {
		return false
	}
	s.conns = append(s.conns, c)
	return true
}

func (s *socket) remove(c *conn) {
	c.finish()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.conns {
		if other == c {
			s.conns = append(s.conns[:i], s.conns[i+1:]...)
			return
		}
	}
}

// serve shakes hands with a peer and receives its messages until it disconnects or breaks the
// protocol.
func (s *socket) serve(c *conn) error {
	r := bufio.NewReader(c.conn)
	if err := s.handshake(c, r); err != nil {
		return err
	}
	go c.write()
	limit := maxSmall
	switch s.kind {
	case "ROUTER":
		limit = maxStranger
	case "PUB":
		c.setLimit(maxQueue)
	}
	for {
		frames, err := readMessage(r, limit, c.command)
		if err != nil {
			return err
		}
		switch s.kind {
		case "PUB":
			c.subscribe(frames)
			continue
		case "ROUTER":
			if !signed(frames, s.key) {
				s.refuse("a message without a valid signature")
				continue
			}
			s.mu.Lock()
			c.known = true
			s.mu.Unlock()
			limit = maxMessage
			c.setLimit(maxQueue)
			frames = append([][]byte{[]byte(c.identity)}, frames...)
		}
		select {
		case s.in <- received{c, frames}:
		case <-c.done:
			return nil
		}
	}
}

func (s *socket) handshake(c *conn, r *bufio.Reader) error {
	if err := c.conn.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return err
	}
	if _, err := c.conn.Write(greeting[:]); err != nil {
		return err
	}
	if err := readGreeting(r); err != nil {
		return err
	}
	out := frame(flagCommand, ready(s.kind))
	if _, err := out.WriteTo(c.conn); err != nil {
		return err
	}
	flags, body, err := readFrame(r, maxCommand)
	if err != nil {
		return err
	}
	if flags&flagCommand == 0 {
		return fmt.Errorf("%w: a message before the command READY", errProtocol)
	}
	peer, err := readReady(body)
	if err != nil {
		return err
	}
	if !strings.Contains(map[string]string{"ROUTER": " REQ DEALER ROUTER ", "PUB": " SUB XSUB ", "REP": " REQ DEALER "}[s.kind], " "+peer["socket-type"]+" ") {
		return fmt.Errorf("%w: a peer of type %.20q on a %s socket", errProtocol, peer["socket-type"], s.kind)
	}
	id := peer["identity"]
	if id == "" {
		id = rand.Text()
	}
	s.mu.Lock()
	c.identity = id
	s.mu.Unlock()
	return c.conn.SetDeadline(time.Time{})
}

// signed reports whether frames are a message of Jupyter's wire protocol whose signature was made
// with key: identities, "<IDS|MSG>", the signature, then header, parent header, metadata and content.
func signed(frames [][]byte, key []byte) bool {
	for i, f := range frames {
		if string(f) != "<IDS|MSG>" {
			continue
		}
		if len(frames) < i+6 {
			return false
		}
		if len(key) == 0 {
			return true
		}
		mac := hmac.New(sha256.New, key)
		for _, part := range frames[i+2 : i+6] {
			mac.Write(part)
		}
		got, err := hex.DecodeString(string(frames[i+1]))
		return err == nil && hmac.Equal(mac.Sum(nil), got)
	}
	return false
}

// conn is a connection to a peer.
type conn struct {
	conn net.Conn
	done chan struct{}
	end  sync.Once

	identity string // set by the handshake, under the socket's mu; "" before it
	known    bool   // under the socket's mu

	mu     sync.Mutex
	topics [][]byte
	queue  []net.Buffers
	queued int           // bytes in queue or being written
	limit  int           // of queued
	more   chan struct{} // capacity 1: queue has grown
	less   chan struct{} // capacity 1: queue has shrunk
}

func newConn(c net.Conn) *conn {
	return &conn{conn: c, limit: maxReply, done: make(chan struct{}), more: make(chan struct{}, 1), less: make(chan struct{}, 1)}
}

// finish closes the connection.
func (c *conn) finish() {
	c.end.Do(func() {
		close(c.done)
		c.conn.Close()
	})
}

func (c *conn) setLimit(n int) {
	c.mu.Lock()
	c.limit = n
	c.mu.Unlock()
}

// drain waits until the peer has read what was sent to it.
func (c *conn) drain(limit <-chan struct{}) {
	for {
		c.mu.Lock()
		left := c.queued
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-c.less:
		case <-c.done:
			return
		case <-limit:
			return
		}
	}
}

// command answers PING.
func (c *conn) command(body []byte) error {
	rest, ok := bytes.CutPrefix(body, append([]byte{4}, "PING"...))
	if ok && len(rest) >= 2 && !c.send(frame(flagCommand, append(append([]byte{4}, "PONG"...), rest[2:]...)), 0) {
		return fmt.Errorf("%w: a peer that sends PING and does not read", errProtocol)
	}
	return nil
}

// maxTopics bounds the subscriptions of a peer.
const maxTopics = 1 << 10

// subscribe adds or removes a subscription.
func (c *conn) subscribe(frames [][]byte) {
	if len(frames) != 1 || len(frames[0]) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	topic := frames[0][1:]
	switch {
	case frames[0][0] == 1 && len(c.topics) < maxTopics:
		c.topics = append(c.topics, topic)
	case frames[0][0] == 0:
		for i, t := range c.topics {
			if bytes.Equal(t, topic) {
				c.topics = append(c.topics[:i], c.topics[i+1:]...)
				return
			}
		}
	}
}

func (c *conn) subscribed(topic []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.topics {
		if bytes.HasPrefix(topic, t) {
			return true
		}
	}
	return false
}

// send queues a message. If the queue is full, it waits so long for the peer to read, and then
// reports false.
func (c *conn) send(m net.Buffers, wait time.Duration) bool {
	size := 0
	for _, b := range m {
		size += len(b)
	}
	var limit <-chan time.Time
	for {
		c.mu.Lock()
		if c.queued == 0 || c.queued+size <= c.limit {
			c.queue = append(c.queue, m)
			c.queued += size
			c.mu.Unlock()
			signal(c.more)
			return true
		}
		c.mu.Unlock()
		if limit == nil {
			limit = time.After(wait)
		}
		select {
		case <-c.less:
		case <-c.done:
			return true
		case <-limit:
			return false
		}
	}
}

// write writes the queue until the connection ends.
func (c *conn) write() {
	defer c.finish()
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.mu.Unlock()
			select {
			case <-c.more:
				continue
			case <-c.done:
				return
			}
		}
		m := c.queue[0]
		c.queue[0] = nil
		c.queue = c.queue[1:]
		c.mu.Unlock()
		size := 0
		for _, b := range m {
			size += len(b)
		}
		if _, err := m.WriteTo(c.conn); err != nil {
			return
		}
		c.mu.Lock()
		c.queued -= size
		c.mu.Unlock()
		signal(c.less)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
