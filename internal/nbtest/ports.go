package nbtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// FreePort returns a port of this machine's loopback without a listener, for a server that is started
// next. It is none of those that the system gives to who asks for any port, so that until the
// server listens no other process gets it by chance. Where the system is set to give nearly all
// ports there are no others, and that can happen.
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

// systemPorts returns the first and the last port that the system gives out, Linux's default
// where it does not say.
func systemPorts() (first, last int) {
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if _, err := fmt.Sscan(string(text), &first, &last); err == nil {
			return first, last
		}
	}
	return 32768, 60999
}

// portsBeside returns the ports from..to-1, 2,000 at least, to choose from where the system
// gives out first..last: below them, above the numbers that servers are known by if that
// leaves enough, else above them, and where neither has room among them. It is what beside
// in ports.py does.
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
