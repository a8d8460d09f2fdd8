package zmtp

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const key = "a secret"

// listen starts a socket on a Unix socket and returns its path.
func listen(t *testing.T, s Socket) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	if err := s.Listen("ipc://" + path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return path
}

// peer is a client.
type peer struct {
	t    *testing.T
	conn net.Conn
}

// dial connects as a socket of this kind, or without a handshake if kind is "".
func dial(t *testing.T, path, kind, identity string) *peer {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	p := &peer{t, c}
	if kind == "" {
		return p
	}
	p.write(greeting[:])
	body := bytes.Replace(ready(kind), []byte("Identity\x00\x00\x00\x00"), fmt.Appendf(nil, "Identity\x00\x00\x00%c%s", len(identity), identity), 1)
	p.frames(frame(flagCommand, body))
	if err := readGreeting(c); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readFrame(c, maxCommand); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *peer) write(b []byte)       { _, _ = p.conn.Write(b) } // the socket may close the connection first
func (p *peer) frames(b net.Buffers) { _, _ = b.WriteTo(p.conn) }
func (p *peer) send(parts ...string) { p.frames(message(byteParts(parts))) }
func (p *peer) read() ([][]byte, error) {
	return readMessage(p.conn, maxMessage, func([]byte) error { return nil })
}

func byteParts(parts []string) [][]byte {
	var out [][]byte
	for _, s := range parts {
		out = append(out, []byte(s))
	}
	return out
}

// signedParts returns a message of the wire protocol with the given content.
func signedParts(key, content string) []string {
	mac := hmac.New(sha256.New, []byte(key))
	for _, s := range []string{"{}", "{}", "{}", content} {
		mac.Write([]byte(s))
	}
	return []string{"<IDS|MSG>", hex.EncodeToString(mac.Sum(nil)), "{}", "{}", "{}", content}
}

// A ROUTER returns signed messages with the peer's identity and answers the peer; whatever others
// send in between, it goes on.
func TestRouterReturnsSignedMessages(t *testing.T) {
	s := NewRouter(context.Background(), []byte(key))
	path := listen(t, s)
	good := dial(t, path, "DEALER", "me")
	long := strings.Repeat("x", 100000)
	for name, attack := range map[string]func(){
		"wrong key":       func() { dial(t, path, "DEALER", "a").send(signedParts("wrong", "{}")...) },
		"no signature":    func() { dial(t, path, "DEALER", "a").send("<IDS|MSG>", "", "{}", "{}", "{}", "{}") },
		"too few parts":   func() { dial(t, path, "DEALER", "a").send(signedParts(key, "{}")[:5]...) },
		"no delimiter":    func() { dial(t, path, "DEALER", "a").send("hello") },
		"many parts":      func() { dial(t, path, "DEALER", "a").send(slices.Repeat([]string{"x"}, 5000)...) },
		"huge frame":      func() { dial(t, path, "DEALER", "a").write([]byte("\x02\x40\x00\x00\x00\x00\x00\x00\x00x")) },
		"unknown flags":   func() { dial(t, path, "DEALER", "a").write([]byte("\xff\x01x")) },
		"silence":         func() { dial(t, path, "", "") },
		"half a greeting": func() { dial(t, path, "", "").write(greeting[:20]) },
		"HTTP": func() {
			dial(t, path, "", "").write([]byte("GET / HTTP/1.1\r\nHost: " + strings.Repeat("x", 80) + "\r\n\r\n"))
		},
		"wrong type":    func() { dial(t, path, "PUSH", "a") },
		"short READY":   func() { p := dial(t, path, "", ""); p.write(greeting[:]); p.write([]byte("\x04\x07\x05READY\xff")) },
		"message early": func() { p := dial(t, path, "", ""); p.write(greeting[:]); p.send("x") },
		"command in a message": func() {
			p := dial(t, path, "DEALER", "a")
			p.frames(frame(flagMore, []byte("x")))
			p.frames(frame(flagCommand, []byte("\x04PING\x00\x00")))
		},
	} {
		attack()
		good.send(signedParts(key, long)...)
		m, err := s.Recv()
		if err != nil || string(m.Frames[0]) != "me" || string(m.Frames[6]) != long {
			t.Fatalf("after %q: %v, %v", name, m.Frames[:1], err)
		}
		if err := s.Send(NewMsgFrom([]byte("me"), []byte("answer to "+name), nil)); err != nil {
			t.Fatal(err)
		}
		if got, err := good.read(); err != nil || len(got) != 2 || string(got[0]) != "answer to "+name {
			t.Fatalf("after %q: the answer is %q, %v", name, got, err)
		}
	}
	good.frames(frame(flagCommand, []byte("\x04PING\x00\x00tick")))
	if flags, body, err := readFrame(good.conn, 100); err != nil || flags != flagCommand || string(body) != "\x04PONGtick" {
		t.Errorf("PING is answered by %#x %q, %v", flags, body, err)
	}
	if err := s.Send(NewMsgFrom([]byte("nobody"), []byte("x"))); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Recv(); err == nil {
		t.Error("a closed socket receives")
	}
}

// Silent connections do not keep a client from connecting, however many they are.
func TestRouterDisconnectsStrangers(t *testing.T) {
	s := NewRouter(context.Background(), []byte(key))
	path := listen(t, s)
	known := dial(t, path, "DEALER", "known")
	known.send(signedParts(key, "1")...)
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	for range maxConns + 20 {
		dial(t, path, "", "")
	}
	dial(t, path, "DEALER", "late").send(signedParts(key, "2")...)
	if m, err := s.Recv(); err != nil || string(m.Frames[0]) != "late" {
		t.Fatalf("%v, %v", m, err)
	}
	known.send(signedParts(key, "3")...)
	if m, err := s.Recv(); err != nil || string(m.Frames[0]) != "known" {
		t.Fatalf("%v, %v", m, err)
	}
}

// Each subscriber gets the messages of its topics. One that does not read keeps none from the others.
func TestPublish(t *testing.T) {
	s := NewPub(context.Background())
	path := listen(t, s)
	all, some, idle := dial(t, path, "SUB", ""), dial(t, path, "SUB", ""), dial(t, path, "SUB", "")
	all.send("\x01")
	some.send("\x01b")
	some.send("\x01c")
	some.send("\x00c")
	some.send("not a subscription", "of one frame")
	idle.send("\x01")
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		q := s.(*socket)
		q.mu.Lock()
		n := 0
		for _, c := range q.conns {
			if c.subscribed([]byte("b")) {
				n++
			}
		}
		q.mu.Unlock()
		if n == 3 {
			break
		}
	}
	big := bytes.Repeat([]byte("x"), 1<<20)
	go func() {
		for i := range 8 {
			_ = s.Send(NewMsgFrom([]byte{"abcd"[i%4]}, big)) // fails only after Close
		}
	}()
	for i := range 8 {
		if m, err := all.read(); err != nil || string(m[0]) != "abcd"[i%4:i%4+1] || !bytes.Equal(m[1], big) {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	for range 2 {
		if m, err := some.read(); err != nil || string(m[0]) != "b" {
			t.Fatalf("%q, %v", m[0], err)
		}
	}
}

// A REP echoes what follows the envelope, and messages without one do not stop it.
func TestReply(t *testing.T) {
	s := NewRep(context.Background())
	path := listen(t, s)
	go func() {
		for {
			m, err := s.Recv()
			if err != nil || s.Send(m) != nil {
				return
			}
		}
	}()
	odd := dial(t, path, "REQ", "")
	odd.send("x")
	odd.send("")
	odd.send("a", "", "b")
	p := dial(t, path, "REQ", "")
	p.send("", "ping")
	if m, err := p.read(); err != nil || len(m) != 2 || string(m[1]) != "ping" {
		t.Errorf("%q, %v", m, err)
	}
}

// The answers queued before Close arrive.
func TestCloseSendsTheRest(t *testing.T) {
	s := NewRouter(context.Background(), nil)
	p := dial(t, listen(t, s), "DEALER", "me")
	p.send(signedParts("", "{}")...)
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("x"), 1<<22)
	if err := s.Send(NewMsgFrom([]byte("me"), big)); err != nil {
		t.Fatal(err)
	}
	go s.Close()
	if m, err := p.read(); err != nil || !bytes.Equal(m[0], big) {
		t.Error(err)
	}
}

// Peers that do not read hold up the end of a socket for a bounded time, however many they are.
func TestCloseLeavesPeersThatDoNotRead(t *testing.T) {
	s := NewPub(context.Background())
	path := listen(t, s)
	for range 3 {
		dial(t, path, "SUB", "").send("\x01")
	}
	for subscribers := 0; subscribers < 3; {
		time.Sleep(time.Millisecond)
		subscribers = 0
		for _, c := range s.(*socket).connections() {
			if c.subscribed(nil) {
				subscribers++
			}
		}
	}
	if err := s.Send(NewMsgFrom(make([]byte, 16<<20))); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the socket does not close")
	}
}

// connections returns the socket's connections.
func (s *socket) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.conns)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\x01\x01a\x00\x01b"))
	f.Add([]byte("\x02\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add(append([]byte{4, byte(len(ready("DEALER")))}, ready("DEALER")...))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			frames, err := readMessage(r, 1<<16, func(body []byte) error {
				_, err := readReady(body)
				return err
			})
			if err != nil {
				return
			}
			var out bytes.Buffer
			m := message(frames)
			if _, err := m.WriteTo(&out); err != nil {
				t.Fatal(err)
			}
			again, err := readMessage(&out, 1<<16, nil)
			if err != nil || !slices.EqualFunc(frames, again, bytes.Equal) {
				t.Fatalf("%q became %q, %v", frames, again, err)
			}
		}
	})
}
