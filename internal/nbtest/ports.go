package nbtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// FreePort returns a port of this machine's loopback without a listener, for a server that is
// started next. It avoids the ports that the system assigns to programs that ask for any port, so
// that no other process gets the port before the server listens. If the system assigns nearly all
// ports, this cannot be avoided.
func FreePort() (string, error) {
	from, to := portsBeside(systemPorts())
	var err error
	for range 1000 {
		port := strconv.Itoa(from + rand.IntN(to-from))
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			return port, l.Close()
		}
	}
	return "", fmt.Errorf("nbtest: no free port from %d to %d: %w", from, to-1, err)
}

// systemPorts returns the first and the last port that the system assigns, or Linux's defaults if
// the system does not report them.
func systemPorts() (first, last int) {
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if _, err := fmt.Sscan(string(text), &first, &last); err == nil {
			return first, last
		}
	}
	return 32768, 60999
}

// portsBeside returns a range from..to-1 of at least 2,000 ports outside of first..last, which the
// system assigns: below them, above well-known port numbers if that leaves enough; else above them;
// and if neither has room, among them. It gives the same range as the function beside in ports.py.
func portsBeside(first, last int) (from, to int) {
	const room, end = 2000, 65536
	switch {
	case first >= 10000+room:
		return 10000, min(first, end)
	case first >= 2048+room:
		return 2048, first
	case last < end-room:
		return max(last+1, 10000), end
	}
	return 10000, end
}
