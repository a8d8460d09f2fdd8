package clustertest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

// echo returns each datagram to its sender.
func echo(addr string) error {
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	for b := make([]byte, pingSize); ; {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return err
		}
		if _, err := c.WriteTo(b[:n], from); err != nil {
			return err
		}
	}
}

// pings is the output of ping: the numbers of the datagrams that were returned, and the shortest
// round-trip time.
type pings struct {
	Back     []int
	Shortest time.Duration
}

// The datagrams are few and small enough for a host's buffer to hold all of them while its process
// waits for a processor.
const pingCount, pingSize = 200, 64

// ping sends numbered datagrams, 200 µs apart.
func ping(addr string) error {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return err
	}
	sent := make([]time.Time, pingCount)
	go func() {
		for i := range sent {
			b := make([]byte, pingSize)
			binary.LittleEndian.PutUint32(b, uint32(i))
			sent[i] = time.Now()
			_, _ = c.Write(b) // the test counts lost datagrams
			time.Sleep(200 * time.Microsecond)
		}
	}()
	p := pings{Shortest: time.Hour}
	for b := make([]byte, pingSize); ; {
		if err := c.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		n, err := c.Read(b)
		if err != nil {
			break
		}
		if n == pingSize {
			i := int(binary.LittleEndian.Uint32(b))
			p.Back = append(p.Back, i)
			p.Shortest = min(p.Shortest, time.Since(sent[i]))
		}
	}
	return json.NewEncoder(os.Stdout).Encode(p)
}

// A link delays every packet, and loses the same packets for the same seed.
func TestLink(t *testing.T) {
	testneed.NotShort(t, "it waits for a slow link")
	t.Parallel()
	over := func(l Link) (p pings, sum Traffic) {
		w := HostsOver(t, 2, l)
		addr := listen(t, w.Hosts[1], "echo")
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		out, err := w.Hosts[0].Command(exe, "ping", addr).CombinedOutput()
		if err == nil {
			err = json.Unmarshal(out, &p)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return p, w.Traffic()
	}
	const delay = 3 * time.Millisecond
	first, sum := over(Link{Delay: delay, Loss: 0.1, Seed: 1})
	if first.Shortest < 2*delay {
		t.Errorf("a round trip took %v, less than twice %v", first.Shortest, delay)
	}
	if lost := pingCount - len(first.Back); lost < 10 || lost > 80 || sum.Lost != int64(lost) { // 38 expected
		t.Errorf("%d of %d datagrams were not returned, and the forwarder reports %+v", lost, pingCount, sum)
	}
	if sum.CPU <= 0 || sum.Bytes < int64(len(first.Back))*2*pingSize || sum.Delivered < int64(2*len(first.Back)) {
		t.Errorf("the forwarder reports %+v", sum)
	}
	t.Logf("shortest round trip %v, %+v", first.Shortest, sum)
	if again, _ := over(Link{Loss: 0.1, Seed: 1}); !slices.Equal(again.Back, first.Back) {
		t.Errorf("another run with the same seed lost other datagrams: %d were returned, first %d", len(again.Back), len(first.Back))
	}
	if other, _ := over(Link{Loss: 0.1, Seed: 2}); slices.Equal(other.Back, first.Back) {
		t.Errorf("another seed lost the same datagrams")
	}
}

// TCP works over a link with losses and a limited rate, at most at that rate; a cut cable carries
// nothing.
func TestLinkCarriesTCP(t *testing.T) {
	testneed.NotShort(t, "it waits for a connection over a cut cable")
	t.Parallel()
	w := HostsOver(t, 2, Link{Delay: time.Millisecond, Loss: 0.01, Rate: 400e6})
	a, b := w.Hosts[0], w.Hosts[1]
	addr := listen(t, b, "listen")
	start := time.Now()
	text, err := send(t, a, addr)
	took := time.Since(start)
	if err != nil || !strings.HasPrefix(text, "got 10000000") {
		t.Fatalf("sending 10 MB gave %v: %s", err, text)
	}
	if least := 200 * time.Millisecond; took < least {
		t.Errorf("10 MB at 400 Mbit/s took %v, less than %v", took, least)
	}
	sum := w.Traffic()
	if sum.Lost == 0 || sum.Bytes < 10e6 {
		t.Errorf("the forwarder reports %+v", sum)
	}
	t.Logf("10 MB %s, %+v", text, sum)
	if sent, _ := a.Counters(); sent < 10e6 {
		t.Errorf("host 1 has sent %d bytes", sent)
	}
	b.Cut()
	if text, err := send(t, a, addr); err == nil {
		t.Errorf("10 MB pass through a cut cable: %s", text)
	}
	b.Join()
	if text, err := send(t, a, addr); err != nil {
		t.Errorf("after the cable was reconnected, sending failed: %v: %s", err, text)
	}
	if sum := w.Traffic(); sum.Cut == 0 {
		t.Errorf("the forwarder reports %+v", sum)
	}
}
