package answer_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/answer"
)

// listening serves at a free port until the test ends.
func listening(t *testing.T, s *answer.Server) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return l.Addr().String()
}

// slowly opens a connection and sends the beginning of a request.
func slowly(t *testing.T, address, begin string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, begin); err != nil {
		t.Fatal(err)
	}
	return c
}

// Clients that send their header or their body slowly, or do not read their answers, hold up no other client; the server ends their
// connections and keeps nothing of them.
func TestSlowClients(t *testing.T) {
	p := predictor(t, 1)
	s, err := answer.New(p, answer.Options{Calls: 1, Waiting: 1, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	address := listening(t, s)
	before := runtime.NumGoroutine()
	const body = "POST /v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
	var slow []net.Conn
	for range 40 {
		slow = append(slow, slowly(t, address, "GET /v1/nodes?id=1 HTTP/1.1\r\nHost: x\r\nX-Slow: "), slowly(t, address, body+`{"ids"`))
	}
	for range 4 { // asks again and again, and reads nothing
		c := slowly(t, address, "")
		slow = append(slow, c)
		go func() {
			for range 100_000 {
				_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second))
				if _, err := io.WriteString(c, "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
					return
				}
			}
		}()
	}
	drip := time.NewTicker(200 * time.Millisecond)
	defer drip.Stop()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: 3 * time.Second}
	defer client.CloseIdleConnections()
	for i := range 20 {
		r, err := client.Get(fmt.Sprintf("http://%s/v1/nodes?id=%d", address, i))
		if err != nil {
			t.Fatalf("request %d beside slow clients: %v", i, err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("request %d beside slow clients: status %d, %v", i, r.StatusCode, err)
		}
		_ = r.Body.Close()
		for _, c := range slow[:80] {
			_, _ = io.WriteString(c, "x")
		}
		<-drip.C
	}
	// After the time for a header, and that for a request, the server has ended their connections.
	for i, c := range slow[:80] {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		all, err := io.ReadAll(c)
		if err, ok := err.(net.Error); ok && err.Timeout() {
			t.Fatalf("the connection of slow client %d is open: it got %q", i, all)
		}
		if strings.Contains(string(all), " 200 ") {
			t.Errorf("slow client %d got %q", i, all)
		}
	}
	for _, c := range slow {
		_ = c.Close()
	}
	client.CloseIdleConnections()
	for i := 0; runtime.NumGoroutine() > before+4; i++ {
		if i == 200 {
			t.Fatalf("%d goroutines were there before the slow clients, and %d are there after them", before, runtime.NumGoroutine())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// All connections that a server takes can be those of slow clients: others are answered when their time is over.
func TestSlowClientsOnAllConnections(t *testing.T) {
	s, err := answer.New(predictor(t, 1), answer.Options{Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	address := listening(t, s)
	for range 4 {
		slowly(t, address, "GET /v1/nodes?id=1 HTTP/1.1\r\nX-Slow: ")
	}
	client := &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	r, err := client.Get("http://" + address + "/v1/nodes?id=1")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("status %d", r.StatusCode)
	}
}

// endless is a body without an end, which counts what is read of it.
type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",`)
	e.n += n
	return n, nil
}

// A body without an end, or of a claimed terabyte, is refused after the first megabyte, and a header without one too.
func TestHugeRequests(t *testing.T) {
	s, err := answer.New(predictor(t, 1), answer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	address := listening(t, s)
	for _, path := range []string{"/v1/nodes", "/v1/new", "/v1/scores", "/v1/explain"} {
		field := map[string]string{"/v1/nodes": "ids", "/v1/new": "nodes", "/v1/scores": "pairs", "/v1/explain": "id"}[path]
		sent := &endless{}
		begin := `{"` + field + `": [`
		if path == "/v1/explain" || path == "/v1/new" || path == "/v1/scores" { // a text that does not end
			begin = `{"` + field + `": "`
		}
		var more io.Reader = sent
		if begin[len(begin)-1] == '"' {
			more = &letters{}
		}
		r, err := http.Post("http://"+address+path, "application/json", io.MultiReader(strings.NewReader(begin), more))
		if err != nil {
			if !strings.Contains(err.Error(), "reset") && !strings.Contains(err.Error(), "broken pipe") {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		text, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if r.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), "too_large") || sent.n > 64<<20 {
			t.Errorf("%s: status %d, %s after %d bytes", path, r.StatusCode, text, sent.n)
		}
	}
	c := slowly(t, address, "POST /v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
	go func() { _, _ = io.Copy(c, io.LimitReader(&letters{}, 8<<20)) }()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, " 400 ") && !strings.Contains(line, " 413 ") {
		t.Errorf("a body of a terabyte: %q, %v", line, err)
	}
	c = slowly(t, address, "GET /v1/nodes?id=1 HTTP/1.1\r\nHost: x\r\nX-Long: ")
	go func() { _, _ = io.Copy(c, io.LimitReader(&letters{}, 8<<20)) }()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, " 431 ") {
		t.Errorf("a header without an end: %q, %v", line, err)
	}
	r, err := http.Get("http://" + address + "/v1/nodes?id=1")
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("after them: %v, %v", r, err)
	}
	_ = r.Body.Close()
}

// letters is a text without an end.
type letters struct{}

func (*letters) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'a'
	}
	return len(b), nil
}
