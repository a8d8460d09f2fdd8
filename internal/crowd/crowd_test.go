package crowd

import (
	"io"
	"net"
	"testing"
)

// The address with most connections makes room, its oldest one first; one of another address stays.
func TestEvict(t *testing.T) {
	var s Crowd
	if s.Evict() {
		t.Error("an empty crowd has made room")
	}
	open := func(ip string) (net.Conn, net.Conn) {
		c, other := net.Pipe()
		t.Cleanup(func() { _, _ = c.Close(), other.Close() })
		return from{c, &net.TCPAddr{IP: net.ParseIP(ip), Port: 7}}, other
	}
	ended := func(c net.Conn) bool {
		_, err := c.Write([]byte("x"))
		return err == io.ErrClosedPipe
	}
	rank, _ := open("10.0.0.1")
	s.Add(rank)
	var crowd []net.Conn
	for i := range 300 {
		ip := "10.0.0.2"
		if i%3 > 0 {
			ip = []string{"fd00::1", "fd00::2"}[i%2] // of one network
		}
		c, other := open(ip)
		s.Add(c)
		if i%3 > 0 {
			crowd = append(crowd, other)
		}
	}
	for range 100 {
		s.Evict()
	}
	if s.Len() != 201 || !s.Remove(rank) || s.Remove(rank) || s.Len() != 200 {
		t.Errorf("%d connections are left", s.Len())
	}
	for i, c := range crowd {
		if ended(c) != (i < 100) {
			t.Fatalf("connection %d of the largest network: ended is %v", i, !(i < 100))
		}
		if i == 99 {
			break
		}
	}
}

type from struct {
	net.Conn
	at net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.at }
