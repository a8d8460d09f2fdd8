package cluster

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/graphnb/graphnb/internal/testneed"
)

func TestMain(m *testing.M) {
	if asked := os.Getenv(strangerVariable); asked != "" {
		beStranger(asked)
		return
	}
	goleak.VerifyTestMain(m)
}

// strangerVariable makes the program of these tests a process of another user, which does what the value says.
const strangerVariable = "GNB_TEST_STRANGER"

var beStranger = func(string) {}

// meetBy connects two sides over loopback and returns the result of each side's proof to the other.
func meetBy(t *testing.T, listener, dialler trust) (accepted, proved error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			err = listener.accept(c)
			if err != nil {
				_ = c.Close()
			} else {
				defer c.Close()
			}
		}
		done <- err
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	proved = dialler.prove(c)
	if proved != nil {
		_ = c.Close()
	}
	return <-done, proved
}

func TestProofs(t *testing.T) {
	a, b := trust{token: []byte("0123456789abcdef")}, trust{token: []byte("0123456789abcdeF")}
	long := trust{token: bytes.Repeat([]byte("x"), 200)}
	for _, c := range []struct {
		name              string
		listener, dialler trust
		ok                bool
		want              string
	}{
		{"the same token", a, a, true, ""},
		{"a long token", long, long, true, ""},
		{"other tokens", a, b, false, "it does not prove the token that rank 0 has"},
		{"none at the dialler", a, trust{}, false, "it does not prove the token that rank 0 has"},
		{"none at the listener", trust{}, a, false, "it has a token and rank 0 has none"},
		{"none, on one host", trust{}, trust{}, true, ""},
	} {
		accepted, proved := meetBy(t, c.listener, c.dialler)
		if (accepted == nil) != c.ok || (proved == nil) != c.ok {
			t.Errorf("%s: %v, %v", c.name, accepted, proved)
		}
		if !c.ok && (!strings.Contains(proved.Error(), c.want) || asRefusal(proved) == nil) {
			t.Errorf("%s: %v", c.name, proved)
		}
	}
}

// A proof depends on the side and on the random parts of both sides, and the token itself is never
// sent.
func TestProofIsFresh(t *testing.T) {
	a := trust{token: []byte("0123456789abcdef")}
	one, two := bytes.Repeat([]byte{1}, nonceLen), bytes.Repeat([]byte{2}, nonceLen)
	seen := map[string]bool{}
	for _, p := range [][]byte{a.proof("dialler", one, two), a.proof("listener", one, two), a.proof("dialler", two, one), a.proof("dialler", one, one)} {
		if seen[string(p)] || len(p) != 32 {
			t.Error("a proof repeats")
		}
		seen[string(p)] = true
	}
}

// A rank that connects to another service than a run's rank 0 gets an error that says so.
func TestAnotherService(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write([]byte(strings.Repeat("SSH-2.0-other ", 10)))
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	_, err = dial(context.Background(), l.Addr().String(), trust{}, hello{})
	if r := asRefusal(err); r == nil || !strings.Contains(r.why, "is not rank 0 of a run") {
		t.Errorf("%v", err)
	}
}

func TestTokenFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ name, token, file, want string }{
		{"a file", "", file("good", "0123456789abcdef\n", 0o600), ""},
		{"read only", "", file("readonly", "0123456789abcdef\n", 0o400), ""},
		{"readable by others", "", file("open", "0123456789abcdef\n", 0o644), "others may read the token file"},
		{"empty", "", file("empty", "\n", 0o600), "is empty"},
		{"short", "", file("short", "secret", 0o600), "needs at least 16"},
		{"a directory", "", dir, "is not a file"},
		{"missing", "", filepath.Join(dir, "none"), "no such file"},
		{"both", "0123456789abcdef", file("both", "0123456789abcdef", 0o600), "are both set"},
		{"a variable", "0123456789abcdef", "", ""},
		{"a short variable", "012345", "", "the token of GNB_TOKEN has 6 characters"},
	} {
		t.Setenv("GNB_TOKEN", c.token)
		t.Setenv("GNB_TOKEN_FILE", c.file)
		got, err := trustFromEnv()
		switch {
		case c.want == "" && (err != nil || string(got.token) != "0123456789abcdef"):
			t.Errorf("%s: %q, %v", c.name, got.token, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A frame's size is bounded, and the receiver allocates its memory only as the bytes arrive.
func TestFrames(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	in, out := &wire{conn: a}, &wire{conn: b}
	for _, n := range []int{0, 1, 100, 64 << 10, 300_001} {
		sent := bytes.Repeat([]byte{7}, n)
		go func() { _ = out.send(frameMessage, sent) }()
		kind, got, err := in.receive(maxFrame)
		if err != nil || kind != frameMessage || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes: %d %v", n, len(got), err)
		}
	}
	go func() {
		head := binary.LittleEndian.AppendUint32([]byte{frameHello}, maxFirst+1)
		_, _ = b.Write(head)
	}()
	if _, _, err := in.receive(maxFirst); err == nil {
		t.Error("a frame larger than the bound was received")
	}
}

// A wire that cannot send a whole frame closes its connection. A patient wire keeps sending as long
// as it receives frames.
func TestSlowReader(t *testing.T) {
	testneed.Raced(t, "it waits for a reader")
	defer func(d time.Duration) { sendPatience = d }(sendPatience)
	sendPatience = 500 * time.Millisecond
	a, b := net.Pipe()
	defer b.Close()
	if err := (&wire{conn: a}).send(frameMessage, []byte("x")); err == nil {
		t.Error("sending a frame without a reader gave no error")
	}
	if _, err := b.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection is still open: %v", err)
	}

	c, d := net.Pipe()
	defer c.Close()
	defer d.Close()
	slow, fast := &wire{conn: c, patient: true}, &wire{conn: d}
	go func() {
		for {
			if _, _, err := slow.receive(10); err != nil {
				return
			}
		}
	}()
	if err := fast.send(frameBeat, nil); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- slow.send(frameMessage, bytes.Repeat([]byte{7}, 100)) }()
	for range 15 { // 1.5 s, three times sendPatience
		if err := fast.send(frameBeat, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if _, got, err := fast.receive(100); err != nil || len(got) != 100 {
		t.Errorf("%d bytes: %v", len(got), err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// A server hands out each connection by its purpose and drops connections of strangers.
func TestServer(t *testing.T) {
	s := newServer(trust{token: []byte("0123456789abcdef")})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.serve(l)
	defer s.close()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	stranger, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Write(bytes.Repeat([]byte{0xff}, 1000)); err != nil {
		t.Fatal(err)
	}
	_ = stranger.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, stranger); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("a stranger was not dropped: %v", err)
	}
	_ = stranger.Close()
	// A connection of another run with the same token comes first, then one of this run.
	stray, err := dial(ctx, l.Addr().String(), s.trust, hello{For: forData, Session: "b", Job: 3, Channel: 1, From: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer stray.conn.Close()
	for len(s.channel(dataKey{"b", 3, 1, 2})) == 0 {
		time.Sleep(time.Millisecond)
	}
	w, err := dial(ctx, l.Addr().String(), s.trust, hello{For: forData, Session: "a", Job: 3, Channel: 1, From: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer w.conn.Close()
	c, err := s.take(ctx, dataKey{"a", 3, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := w.send(framePulse, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if kind, b, err := (&wire{conn: c}).receive(10); kind != framePulse || string(b) != "x" || err != nil {
		t.Errorf("%c %q %v", kind, b, err)
	}
	unused, err := dial(ctx, l.Addr().String(), s.trust, hello{For: forData, Session: "a", Job: 3, Channel: 0, From: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer unused.conn.Close()
	for len(s.channel(dataKey{"a", 3, 0, 2})) == 0 {
		time.Sleep(time.Millisecond)
	}
	s.forget(3)
	_ = unused.conn.SetReadDeadline(time.Now().Add(time.Minute))
	_ = stray.conn.SetReadDeadline(time.Now().Add(time.Minute))
	for name, w := range map[string]*wire{"of a job that ended": unused, "of another run": stray} {
		if _, err := w.conn.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("an unused connection %s is open: %v", name, err)
		}
	}
	ended, cancel := context.WithCancelCause(ctx)
	cancel(io.ErrUnexpectedEOF)
	if _, err := s.take(ended, dataKey{"a", 4, 0, 0}); err != io.ErrUnexpectedEOF {
		t.Errorf("taking a connection for an aborted job gave %v", err)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte{frameHello, 2, 0, 0, 0, '{', '}'})
	f.Add([]byte{frameJob, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		in, out := net.Pipe()
		go func() {
			_, _ = out.Write(b)
			_ = out.Close()
		}()
		w := &wire{conn: in}
		for {
			if _, p, err := w.receive(1 << 16); err != nil {
				break
			} else if len(p) > len(b) {
				t.Errorf("%d bytes of %d", len(p), len(b))
			}
		}
		_ = in.Close()
	})
}
