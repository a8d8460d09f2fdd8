// Package crowd keeps the connections that have not proven yet who is at the other end, so that they keep nobody out: if
// there are too many, the oldest one of the address that has most of them makes room. A peer that belongs here proves it
// within milliseconds; one that says nothing is soon the oldest.
package crowd

import (
	"net"
	"slices"
	"sync"
)

// Crowd is a set of connections; the zero value is empty. It is safe for concurrent use.
type Crowd struct {
	mu  sync.Mutex
	all []member // oldest first
}

type member struct {
	conn net.Conn
	from string
}

// Add takes a new connection.
func (s *Crowd) Add(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, member{c, From(c)})
}

// Remove forgets a connection that has proven itself, or that has ended, and reports whether it was there.
func (s *Crowd) Remove(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.all)
	s.all = slices.DeleteFunc(s.all, func(x member) bool { return x.conn == c })
	return len(s.all) < n
}

// Len returns the number of connections.
func (s *Crowd) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// Evict closes the oldest connection of the address that has most of them, and reports whether there is one.
func (s *Crowd) Evict() bool {
	s.mu.Lock()
	if len(s.all) == 0 {
		s.mu.Unlock()
		return false
	}
	count := map[string]int{}
	most := s.all[0].from
	for _, x := range s.all {
		if count[x.from]++; count[x.from] > count[most] {
			most = x.from
		}
	}
	i := slices.IndexFunc(s.all, func(x member) bool { return x.from == most })
	c := s.all[i].conn
	s.all = slices.Delete(s.all, i, i+1)
	s.mu.Unlock()
	_ = c.Close() // its goroutine notices
	return true
}

// From is the address of a peer without its port. A network of 64 bits of IPv6 counts as one address, because a machine has
// it to itself.
func From(c net.Conn) string {
	a, ok := c.RemoteAddr().(*net.TCPAddr)
	switch {
	case !ok:
		return "this machine"
	case a.IP.To4() == nil && len(a.IP) == net.IPv6len:
		return a.IP.Mask(net.CIDRMask(64, 128)).String()
	}
	return a.IP.String()
}
