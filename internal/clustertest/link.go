package clustertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

// Link describes the network of [HostsOver]. Its zero value delivers every packet at once.
type Link struct {
	// Delay is added to each packet, so it adds twice Delay to a round trip.
	Delay time.Duration
	// Loss is the probability that a packet vanishes, from 0 to 1. Whether the n-th packet of a host vanishes
	// depends on Seed, the host and n alone.
	Loss float64
	Seed uint64
	// Rate is the number of bits that a host sends per second, and receives per second; 0 is no limit. Up to 50 ms
	// of packets wait for a host's turn, and those beyond are dropped.
	Rate float64
}

// Traffic is what has passed over the network of [HostsOver], in packets unless said otherwise.
type Traffic struct {
	Delivered, Bytes int64         // bytes with the headers of all packets
	Lost             int64         // by Link.Loss
	Overflowed       int64         // beyond Link.Rate
	Cut              int64         // from or to a host whose cable is cut
	CPU              time.Duration // processor time that the forwarder has used
}

// HostsOver makes n hosts as [Hosts] does, joined by a process that adds a link's delay, loss and rate: this kernel,
// like that of many machines for tests, has no netem. It needs root, or a /dev/net/tun that users may open; else it
// skips the test.
//
// Each host has a TUN device, tun0, with packets of 9000 bytes, in place of eth0; everything else is as on the hosts
// of [Hosts]. A process, the test binary itself, reads the packets of all devices and writes them to their
// destinations. Where no packet is lost, up to 64 KiB of a TCP connection's packets pass at a time, as network cards pass
// them; packets count then as one. At 1 Gbit/s in both directions it still uses a fifth of a processor or more, so a test
// that measures speed reports [Network.Traffic].CPU.
//
//	w := clustertest.HostsOver(t, 2, clustertest.Link{Delay: time.Millisecond, Loss: 0.01})
//	out, err := w.Torchrun([]int{1, 1}, exe).CombinedOutput()
//	t.Logf("%+v", w.Traffic())
func HostsOver(t testing.TB, n int, l Link) *Network {
	t.Helper()
	if !testneed.Tun.Here() {
		testneed.Skip(t, testneed.Tun, "unshare -Urnm does not work here, or /dev/net/tun cannot be opened")
	}
	w := newNetwork(t, n, "tun")
	f := forwarding{Link: l}
	for _, h := range w.Hosts {
		f.PIDs = append(f.PIDs, h.pid)
	}
	w.forwarder = newForwarder(t, w, f)
	return w
}

// Traffic returns what has passed until now over a network of [HostsOver].
func (w *Network) Traffic() (sum Traffic) {
	w.t.Helper()
	if err := json.Unmarshal(w.forwarder.ask(w.t, "traffic"), &sum); err != nil {
		w.t.Fatal(err)
	}
	return sum
}

// forwarding is the input of the forwarder: the link, and for each host a process in its
// namespaces.
type forwarding struct {
	Link
	PIDs []string
}

// envForward is set in the forwarder.
const envForward = "CLUSTERTEST_FORWARD"

// forwarder is the process between the hosts. It answers each line with a line.
type forwarder struct {
	in  io.Writer
	out *bufio.Reader
}

func newForwarder(t testing.TB, w *Network, f forwarding) *forwarder {
	t.Helper()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := w.enter(w.router, []string{exe})
	cmd.Env = append(cmd.Env, envForward+"="+string(b))
	in, out, problems := converse(t, cmd)
	p := &forwarder{in, bufio.NewReader(out)}
	if _, err := p.out.ReadBytes('\n'); err != nil {
		_ = cmd.Wait()
		t.Fatalf("the forwarder does not start: %s", problems.String())
	}
	return p
}

func (p *forwarder) ask(t testing.TB, format string, args ...any) []byte {
	t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		t.Fatalf("the forwarder has ended: %v", err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the forwarder has ended: %v", err)
	}
	return line
}
