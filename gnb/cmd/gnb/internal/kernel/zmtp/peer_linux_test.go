package zmtp

import (
	"net"
	"net/netip"
	"os"
	"testing"
)

// The owner of a connection's other end is found in the system's table.
func TestOwner(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20 4 30 10 -1
   2: 0000000000000000FFFF00000100007F:C351 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1002        0 2 1
   3: 00000000000000000000000001000000:C352 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000  1003        0 2 1
`
	for _, c := range []struct {
		local, remote string
		uid           int
		found         bool
	}{
		{"127.0.0.1:50000", "127.0.0.1:8080", 1001, true},
		{"127.0.0.1:50001", "127.0.0.1:8080", 1002, true},
		{"[::1]:50002", "[::1]:8080", 1003, true},
		{"127.0.0.1:50003", "127.0.0.1:8080", 0, false},
	} {
		uid, ok := owner(table, netip.MustParseAddrPort(c.local), netip.MustParseAddrPort(c.remote))
		if uid != c.uid || ok != c.found {
			t.Errorf("%s to %s: %d, %t", c.local, c.remote, uid, ok)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	at, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	b, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Skip(err)
	}
	uid, ok := owner(string(b), at.RemoteAddr().(*net.TCPAddr).AddrPort(), at.LocalAddr().(*net.TCPAddr).AddrPort())
	if !ok || uid != os.Getuid() || !sameUser(at) {
		t.Errorf("a connection of this process belongs to user %d (found %t)", uid, ok)
	}
}
