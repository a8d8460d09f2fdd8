package nbtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// FreePort is a port of this machine's loopback where nobody listens, for a server
// that is started next. It lies below those that the system gives to who asks for any
// port, so that until the server listens no other process gets it by chance.
func FreePort() (string, error) {
	low := 32768
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if _, err := fmt.Sscan(string(text), &low); err != nil || low < 12000 {
			low = 32768
		}
	}
	var err error
	for range 1000 {
		port := strconv.Itoa(10000 + rand.IntN(low-10000))
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			return port, l.Close()
		}
	}
	return "", fmt.Errorf("nbtest: no free port below %d: %w", low, err)
}
