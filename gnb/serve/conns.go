package serve

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/graphnb/graphnb/internal/crowd"
)

// provenWithin is how long a connection may be open without a request that the server answers. Tests shorten it.
var provenWithin = time.Minute

// conns are the connections of a server. At most a number of them is open; a connection without a request that the server
// has answered, with the token if it has one, is a stranger's: it ends after provenWithin, and sooner if another one needs
// its place.
type conns struct {
	net.Listener
	most      int
	strangers crowd.Crowd

	mu     sync.Mutex
	room   sync.Cond
	open   map[string]*conn // by the peer's address
	n      int
	closed bool
}

func newConns(l net.Listener, most int) *conns {
	c := &conns{Listener: l, most: most, open: map[string]*conn{}}
	c.room.L = &c.mu
	return c
}

// conn is one connection.
type conn struct {
	net.Conn
	of    *conns
	end   *time.Timer
	close sync.Once
}

// Accept waits for a connection. If all places are taken, the oldest stranger of the address with most of them makes room
// for it; if there is none, the new connection waits until one ends.
func (c *conns) Accept() (net.Conn, error) {
	raw, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !c.makeRoom() {
		_ = raw.Close() // nobody serves it
		return nil, net.ErrClosed
	}
	one := &conn{Conn: raw, of: c}
	one.end = time.AfterFunc(provenWithin, func() {
		if c.strangers.Remove(one) {
			_ = one.Close() // gRPC notices
		}
	})
	c.mu.Lock()
	c.n++
	c.open[raw.RemoteAddr().String()] = one
	c.mu.Unlock()
	if _, ok := raw.RemoteAddr().(*net.TCPAddr); ok { // others have no address by which a request finds its connection
		c.strangers.Add(one)
	}
	return one, nil
}

// makeRoom waits for a place, and reports false if accepting has ended.
func (c *conns) makeRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.n >= c.most && !c.closed {
		c.mu.Unlock()
		gone := c.strangers.Evict()
		c.mu.Lock()
		if !gone && c.n >= c.most && !c.closed {
			c.room.Wait()
		}
	}
	return !c.closed
}

// Close ends accepting.
func (c *conns) Close() error {
	c.mu.Lock()
	c.closed = true
	c.room.Broadcast()
	c.mu.Unlock()
	return c.Listener.Close()
}

// proven says that the connection of a request is no stranger's.
func (c *conns) proven(ctx context.Context) {
	p, ok := peer.FromContext(ctx)
	if !ok || c == nil {
		return
	}
	c.mu.Lock()
	one := c.open[p.Addr.String()]
	c.mu.Unlock()
	if one != nil && c.strangers.Remove(one) {
		one.end.Stop()
	}
}

// Close frees the place of the connection.
func (c *conn) Close() error {
	c.close.Do(func() {
		c.end.Stop()
		c.of.strangers.Remove(c)
		c.of.mu.Lock()
		c.of.n--
		if at := c.RemoteAddr().String(); c.of.open[at] == c {
			delete(c.of.open, at)
		}
		c.of.room.Broadcast()
		c.of.mu.Unlock()
	})
	return c.Conn.Close()
}
