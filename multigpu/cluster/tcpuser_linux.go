package cluster

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// tcpUser returns the user of the process at the other end of a TCP connection within this network namespace. The kernel
// tells it: its table of connections has the user of each socket. ok is false if the connection is not in the table, as one
// from another machine or namespace.
func tcpUser(c net.Conn) (uid int, ok bool) {
	local, ok1 := c.LocalAddr().(*net.TCPAddr)
	remote, ok2 := c.RemoteAddr().(*net.TCPAddr)
	if !ok1 || !ok2 {
		return 0, false
	}
	for file, ends := range map[string]func(*net.TCPAddr) string{"/proc/self/net/tcp": tableEntry4, "/proc/self/net/tcp6": tableEntry6} {
		if uid, ok := tcpUserIn(file, ends(remote), ends(local)); ok {
			return uid, true
		}
	}
	return 0, false
}

// tcpUserIn looks for the socket whose own address and peer are the given entries.
func tcpUserIn(file, own, peer string) (uid int, ok bool) {
	f, err := os.Open(file)
	if err != nil || own == "" || peer == "" {
		return 0, false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
		w := strings.Fields(lines.Text())
		if len(w) < 10 || w[1] != own || w[2] != peer || w[9] == "0" { // without an inode no process has the socket
			continue
		}
		uid, err := strconv.Atoi(w[7])
		return uid, err == nil
	}
	return 0, false
}

// tableEntry4 is an address as /proc/net/tcp has it: 0100007F:1F90, "" if it is not one of IPv4.
func tableEntry4(a *net.TCPAddr) string {
	ip := a.IP.To4()
	if ip == nil {
		return ""
	}
	return words(ip) + fmt.Sprintf(":%04X", a.Port)
}

// tableEntry6 is an address as /proc/net/tcp6 has it.
func tableEntry6(a *net.TCPAddr) string { return words(a.IP.To16()) + fmt.Sprintf(":%04X", a.Port) }

// words are the 32-bit words of an address in hexadecimal digits, each in the order of this machine's bytes.
func words(ip net.IP) string {
	var b strings.Builder
	for i := 0; i+4 <= len(ip); i += 4 {
		b.WriteString(strings.ToUpper(hex.EncodeToString([]byte{ip[i+3], ip[i+2], ip[i+1], ip[i]})))
	}
	return b.String()
}
