package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/graphnb/graphnb/internal/crowd"
)

// maxStrangers bounds the number of connections whose purpose is not yet known.
const maxStrangers = 512

// Bounds of connections for data that this process has not asked for yet.
const (
	maxKept      = 1024
	keptPatience = 5 * time.Minute
)

// server accepts this process's connections: authenticated ones over TCP, and ones of the same user
// over an abstract socket. It hands each to the receiver for its purpose.
type server struct {
	trust trust
	joins chan arrival // ranks that join; nil except on rank 0
	// collected is closed when no rank can join any more; nil except on rank 0.
	collected chan struct{}
	files     func(h hello, w *wire)
	// refused gets the reasons why ranks cannot join; nil except on rank 0.
	refused chan error

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	session   string // of this run, once it is known; connections for data of others are not kept
	data      map[dataKey]chan net.Conn
	kept      int         // connections in data
	strangers crowd.Crowd // whose purpose is not known yet
	running   sync.WaitGroup
}

// arrival is a rank that asks to join.
type arrival struct {
	hello hello
	wire  *wire
}

// dataKey names a connection between two machines: the one from machine From, for a channel of a
// job of a session.
type dataKey struct {
	session            string
	job, channel, from int
}

func newServer(t trust) *server {
	return &server{trust: t, data: map[dataKey]chan net.Conn{}}
}

// serve accepts connections of l until close.
func (s *server) serve(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = l.Close()
		return
	}
	s.listeners = append(s.listeners, l)
	s.running.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // too many open files, for example
				time.Sleep(50 * time.Millisecond)
				continue
			}
			if s.strangers.Add(c); s.strangers.Len() > maxStrangers {
				s.strangers.Evict()
			}
			go s.greet(c)
		}
	})
}

// greet determines the purpose of a connection.
func (s *server) greet(c net.Conn) {
	h, err := s.hello(c)
	s.strangers.Remove(c)
	if err != nil {
		_ = c.Close() // a stranger, or a peer that has got the reason
		if asRefusal(err) != nil && s.refused != nil {
			select {
			case s.refused <- err:
			default:
			}
		}
		return
	}
	switch h.For {
	case forJoin:
		if s.joins != nil {
			w := &wire{conn: c}
			select {
			case s.joins <- arrival{h, w}:
				return
			case <-s.collected:
				why := fmt.Sprintf("rank %d (%s) comes too late: rank 0 waits for no more ranks of this run; the launcher must start all ranks again", h.Rank, h.Host)
				_ = w.send(frameRefusal, []byte(why)) // it may have gone
			}
		}
	case forData:
		if s.keep(dataKey{h.Session, h.Job, h.Channel, h.From}, c) {
			return
		}
	case forFiles:
		if s.files != nil {
			s.files(h, &wire{conn: c})
		}
	}
	_ = c.Close() // nothing for it
}

func (s *server) hello(c net.Conn) (h hello, err error) {
	if u, ok := c.(*net.UnixConn); ok {
		err = sameUser(u)
	} else {
		err = s.trust.accept(c)
	}
	if err != nil {
		return h, err
	}
	w := wire{conn: c}
	if err := c.SetReadDeadline(time.Now().Add(proofPatience)); err != nil {
		return h, err
	}
	kind, b, err := w.receive(maxFirst)
	if err != nil {
		return h, err
	}
	if kind != frameHello {
		return h, errors.New("cluster: a connection began with another frame than a hello")
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return h, err
	}
	return h, c.SetReadDeadline(time.Time{})
}

// expect names the session of this run: connections for data of another one end now, and are not kept later.
func (s *server) expect(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = session
	for k, ch := range s.data {
		if k.session != session {
			s.drop(k, ch)
		}
	}
}

// keep holds a connection for data until this process takes it, and reports whether it does: not a second one, nor one of
// another run, nor more than it has room for. One that nothing takes for keptPatience ends.
func (s *server) keep(k dataKey, c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.session != "" && k.session != s.session || s.kept >= maxKept {
		return false
	}
	ch := s.channelLocked(k)
	select {
	case ch <- c:
	default: // a second one
		return false
	}
	s.kept++
	time.AfterFunc(keptPatience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		select {
		case waiting := <-ch:
			if waiting != c { // a later one
				ch <- waiting
				return
			}
			s.kept--
			_ = c.Close() // unused
			if s.data[k] == ch {
				delete(s.data, k)
			}
		default:
		}
	})
	return true
}

// drop closes the connection that waits for k, if there is one, and forgets k. s.mu is held.
func (s *server) drop(k dataKey, ch chan net.Conn) {
	delete(s.data, k)
	select {
	case c := <-ch:
		s.kept--
		_ = c.Close() // unused
	default:
	}
}

func (s *server) channel(k dataKey) chan net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channelLocked(k)
}

func (s *server) channelLocked(k dataKey) chan net.Conn {
	ch := s.data[k]
	if ch == nil {
		ch = make(chan net.Conn, 1)
		s.data[k] = ch
	}
	return ch
}

// take waits for a connection of data.
func (s *server) take(ctx context.Context, k dataKey) (net.Conn, error) {
	select {
	case c := <-s.channel(k):
		s.mu.Lock()
		s.kept--
		s.mu.Unlock()
		return c, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// forget closes the connections of a job, and of earlier ones, that nothing has taken.
func (s *server) forget(job int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, ch := range s.data {
		if k.job > job {
			continue
		}
		s.drop(k, ch)
	}
}

// close ends accepting.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	for _, l := range s.listeners {
		_ = l.Close() // no connection is lost by it
	}
	for k, ch := range s.data {
		if len(ch) > 0 {
			s.drop(k, ch) // nothing takes it any more
		}
	}
	s.mu.Unlock()
	s.running.Wait()
}

// dial connects to a server over TCP and sends the purpose.
func dial(ctx context.Context, address string, t trust, h hello) (*wire, error) {
	d := net.Dialer{Timeout: proofPatience}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	w := &wire{conn: c}
	if err := t.prove(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := w.sendJSON(frameHello, h); err != nil {
		return nil, err
	}
	return w, nil
}

// listenTCP listens at rank 0's address. If the host's name does not stand for an address of this
// machine (as a Kubernetes service's name does not), it listens at the address's port on all
// interfaces.
func listenTCP(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err == nil {
		return l, nil
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		if l, e := net.Listen("tcp", ":"+port); e == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("cluster: rank 0 cannot wait at %s: %w; set GNB_RENDEZVOUS=HOST:PORT to a free port of its machine", address, err)
}
