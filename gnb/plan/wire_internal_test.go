package plan

import (
	"context"
	"encoding/binary"
	"math"
	"net"
	"strings"
	"testing"
	"time"
)

// listening answers until the end of the test and returns the address.
func listening(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- AnswerNetwork(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// A network is measured, and can be said again in words.
func TestMeasureNetwork(t *testing.T) {
	at := listening(t)
	n, err := MeasureNetwork(t.Context(), at)
	if err != nil || !(n.BytesPerSecond > 1e5) || !(n.RoundTrip > 0 && n.RoundTrip < 10) {
		t.Fatalf("%+v, %v", n, err)
	}
	for _, n := range []Network{n, {BytesPerSecond: 1.7371e9, RoundTrip: 9.55e-6}, {BytesPerSecond: 5e13, RoundTrip: 2e-8}, {BytesPerSecond: 3, RoundTrip: 40}} {
		again, err := ParseNetwork(n.String())
		if err != nil || math.Abs(again.BytesPerSecond/n.BytesPerSecond-1) > 1e-3 || math.Abs(again.RoundTrip/n.RoundTrip-1) > 1e-3 {
			t.Errorf("%s is %+v, of %+v (%v)", n, again, n, err)
		}
	}
}

// A link's rate and delay are what is measured.
func TestMeasureSlowNetwork(t *testing.T) {
	near, far := net.Pipe()
	go func() {
		for answered(far) == nil {
		}
	}()
	defer far.Close()
	defer near.Close()
	slow := &slowConn{Conn: near, delay: 2 * time.Millisecond}
	trip, err := asked(slow, 0)
	if err != nil || trip < 0.002 {
		t.Errorf("a round trip takes %v s (%v)", trip, err)
	}
	if both, err := asked(slow, 1<<16); err != nil || both < 0.002 {
		t.Errorf("a transfer takes %v s (%v)", both, err)
	}
}

// slowConn delays each message that is sent.
type slowConn struct {
	net.Conn
	delay time.Duration
}

func (c *slowConn) Write(b []byte) (int, error) {
	time.Sleep(c.delay)
	return c.Conn.Write(b)
}

// Requests that are none end their connection, and the next machine is answered; so is one beside peers that say nothing.
func TestAnswerHostile(t *testing.T) {
	at := listening(t)
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		networkMagic + string(binary.LittleEndian.AppendUint64(nil, networkMost+1)),
		networkMagic + string(binary.LittleEndian.AppendUint64(nil, math.MaxUint64)),
	} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("%q is answered", text)
		}
		_ = c.Close()
	}
	for range networkPeers - 1 {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := asked(c, 0); err != nil {
		t.Error(err)
	}
}

// A machine that does not answer, or as another program does, is a sentence.
func TestMeasureNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 mail.example.org ESMTP ready\r\n"))
			defer c.Close()
		}
	}()
	for address, want := range map[string]string{l.Addr().String(): "another program answers", "127.0.0.1:1": "refused", "nowhere": "port"} {
		if _, err := MeasureNetwork(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "gnb bench network") {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	_ = l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MeasureNetwork(ctx, "127.0.0.1:1"); err == nil {
		t.Error("a measurement whose context has ended gave no error")
	}
}
