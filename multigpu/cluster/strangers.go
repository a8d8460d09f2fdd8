package cluster

import (
	"net"
	"slices"
	"sync"
)

// maxStrangers bounds the number of connections whose purpose is not yet known.
const maxStrangers = 512

// strangers are the connections whose purpose is not yet known. If there are too many, the oldest one of the address that has
// most of them makes room: a rank says within milliseconds what it is for, and a process that says nothing keeps nobody out.
type strangers struct {
	mu  sync.Mutex
	all []stranger // oldest first
}

type stranger struct {
	conn net.Conn
	from string
}

// add takes a new connection.
func (s *strangers) add(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) >= maxStrangers {
		count := map[string]int{}
		most := ""
		for _, x := range s.all {
			if count[x.from]++; most == "" || count[x.from] > count[most] {
				most = x.from
			}
		}
		i := slices.IndexFunc(s.all, func(x stranger) bool { return x.from == most })
		_ = s.all[i].conn.Close() // its goroutine notices
		s.all = slices.Delete(s.all, i, i+1)
	}
	s.all = append(s.all, stranger{c, peerOf(c)})
}

// remove forgets a connection whose purpose is known, or that has ended.
func (s *strangers) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(x stranger) bool { return x.conn == c })
}

// peerOf is the address of a peer without its port; one network of IPv6, which a machine has to itself, counts as one.
func peerOf(c net.Conn) string {
	a, ok := c.RemoteAddr().(*net.TCPAddr)
	switch {
	case !ok:
		return "this machine"
	case a.IP.To4() == nil && len(a.IP) == net.IPv6len:
		return a.IP.Mask(net.CIDRMask(64, 128)).String()
	}
	return a.IP.String()
}
