package zmtp

import (
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// sameUser reports whether the peer of a connection may belong to the user of this process: false
// only if the peer is on this machine and the kernel's table of sockets names another user than
// this one and root. A peer elsewhere, or in another network namespace, has only its signature.
func sameUser(c net.Conn) bool {
	peer, ok := c.RemoteAddr().(*net.TCPAddr)
	own, ok2 := c.LocalAddr().(*net.TCPAddr)
	if !ok || !ok2 || !peer.IP.IsLoopback() && !peer.IP.Equal(own.IP) {
		return true
	}
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if uid, ok := owner(string(b), peer.AddrPort(), own.AddrPort()); ok {
			return uid == 0 || uid == os.Getuid()
		}
	}
	return true
}

// owner returns the user of the socket from local to remote in a table of /proc/net/tcp.
func owner(table string, local, remote netip.AddrPort) (uid int, ok bool) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 7 && f[1] != "" && address(f[1]) == plain(local) && address(f[2]) == plain(remote) {
			uid, err := strconv.Atoi(f[7])
			return uid, err == nil
		}
	}
	return 0, false
}

// plain returns an address without the form of an IPv4 address in IPv6.
func plain(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// address reads an address of /proc/net/tcp: words of 32 bits in the machine's order (taken as little endian),
// in hexadecimal, and the port.
func address(s string) netip.AddrPort {
	host, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(b)%4 != 0 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(b); i += 4 {
		b[i], b[i+1], b[i+2], b[i+3] = b[i+3], b[i+2], b[i+1], b[i]
	}
	a, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(n))
}
