package get

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/graphnb/graphnb/internal/testneed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// content is the file that the good server serves.
var content = func() []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 300_000)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}()

func sha(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// server answers request i by step i, and all later requests by the last step. It records the Range
// header of each.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	steps  []http.HandlerFunc
	ranges []string
}

func serve(t *testing.T, steps ...http.HandlerFunc) *server {
	s := &server{steps: steps}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		step := s.steps[min(len(s.ranges), len(s.steps)-1)]
		s.ranges = append(s.ranges, r.Header.Get("Range"))
		s.mu.Unlock()
		step(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// good serves the content with ranges and an ETag.
func good(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"v1"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// whole ignores ranges.
func whole(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(content)
}

// drop serves as good does and breaks the connection after n bytes.
func drop(n int, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		serve(&cut{ResponseWriter: w, left: n}, r)
	}
}

type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

// stalled sends n bytes and then nothing until the client disconnects.
func stalled(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write(content[:n])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func wrongBytes(w http.ResponseWriter, r *http.Request) {
	b := bytes.Clone(content)
	b[len(b)-5] ^= 1
	w.Header().Set("ETag", `"v1"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

func fast(o fetchOptions) fetchOptions {
	o.backoff = time.Millisecond
	if o.stall == 0 {
		o.stall = 10 * time.Second
	}
	return o
}

func TestFetch(t *testing.T) {
	testneed.NotShort(t, "it waits for servers")
	known := fetchOptions{size: int64(len(content)), sums: checksums{sha256: sha(content)}}
	quick := known
	quick.stall = 100 * time.Millisecond
	for _, c := range []struct {
		name   string
		o      fetchOptions
		steps  []http.HandlerFunc
		ranges string // ranges of the requests
		err    string // "" if the file arrives
	}{
		{"as it should be", known, []http.HandlerFunc{good}, "|", ""},
		{"nothing is known", fetchOptions{}, []http.HandlerFunc{good}, "|", ""},
		{"without ranges", known, []http.HandlerFunc{whole}, "|", ""},
		{"dropped, resumed", known, []http.HandlerFunc{drop(1000, good), drop(500, good), good}, "|bytes=1000-|bytes=1500-|", ""},
		{"dropped, resumed, nothing known", fetchOptions{}, []http.HandlerFunc{drop(1000, good), good}, "|bytes=1000-|", ""},
		{"dropped, no validator, nothing known", fetchOptions{}, []http.HandlerFunc{drop(1000, whole), whole}, "||", ""},
		{"dropped, ranges ignored", known, []http.HandlerFunc{drop(1000, good), whole}, "|bytes=1000-|", ""},
		{"dropped six times", known, []http.HandlerFunc{
			drop(100, good), drop(100, good), drop(100, good), drop(100, good), drop(100, good), drop(100, good), good,
		}, "|bytes=100-|bytes=200-|bytes=300-|bytes=400-|bytes=500-|bytes=600-|", ""},
		{"dropped without progress", known, []http.HandlerFunc{drop(0, good)}, "|||", "3 attempts"},
		{"stalled, resumed", quick, []http.HandlerFunc{stalled(7000), good}, "|bytes=7000-|", ""},
		{"stalled for ever", quick, []http.HandlerFunc{stalled(0)}, "|||", "nothing arrived for 100ms"},
		{"no answer", quick, []http.HandlerFunc{func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, good}, "||", ""},
		{"busy, then well", known, []http.HandlerFunc{status(503), status(500), good}, "|||", ""},
		{"busy for ever", known, []http.HandlerFunc{status(502)}, "|||", "502 Bad Gateway"},
		{"not found", known, []http.HandlerFunc{status(404)}, "|", "the server answered 404 Not Found"},
		{"forbidden", known, []http.HandlerFunc{status(403)}, "|", "403 Forbidden"},
		{"wrong bytes", known, []http.HandlerFunc{wrongBytes}, "||", "the SHA-256 of"},
		{"wrong bytes once", known, []http.HandlerFunc{wrongBytes, good}, "||", ""},
		{"wrong part, resumed", known, []http.HandlerFunc{drop(299_998, wrongBytes), good}, "|bytes=299998-||", ""},
		{"another file in between", fetchOptions{sums: known.sums}, []http.HandlerFunc{drop(1000, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"v0"`)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(make([]byte, 2000)))
		}), good}, "|bytes=1000-|", ""},
		{"too short", known, []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content[:9]) }}, "|", "has 9 bytes and 300000 are expected"},
		{"too long", known, []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "300001")
			_, _ = w.Write(append(bytes.Clone(content), 0))
		}}, "|", "has 300001 bytes and 300000 are expected"},
		{"endless", known, []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(content); err != nil {
					return
				}
			}
		}}, "|", "sends more than 300000 bytes"},
		{"length that lies, short", known, []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "300000")
			_, _ = w.Write(content[:50])
		}, good}, "|bytes=50-|", ""},
		{"over the limit", fetchOptions{maxSize: 1000}, []http.HandlerFunc{whole}, "|", "sends more than 1000 bytes"},
		{"over the limit by its length", fetchOptions{maxSize: 1000}, []http.HandlerFunc{good}, "|", "has 300000 bytes; at most 1000"},
		{"a web page", known, []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<!DOCTYPE html><html><body>Confirm that you are human"))
		}}, "|", "a web page"},
		{"a range that was not asked for", known, []http.HandlerFunc{drop(1000, good), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-9/300000")
			w.WriteHeader(206)
			_, _ = w.Write(content[:10])
		}, good}, "|bytes=1000-||", ""},
		{"a range that is nonsense", known, []http.HandlerFunc{drop(1000, good), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 1000--7/x")
			w.WriteHeader(206)
		}, good}, "|bytes=1000-||", ""},
		{"shrunk meanwhile", fetchOptions{}, []http.HandlerFunc{drop(1000, good), status(416), good}, "|bytes=1000-||", ""},
		{"redirected", known, []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, good}, "||", ""},
		{"redirected for ever", known, []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}}, "", "redirected more than 10 times"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.steps...)
			dir := t.TempDir()
			dst := filepath.Join(dir, "sub", "file")
			o := fast(c.o)
			o.tries = 3
			var last [2]int64
			o.progress = func(done, total int64) { last = [2]int64{done, total} }
			err := fetch(t.Context(), s.URL+"/file", dst, o)
			s.mu.Lock()
			asked := strings.Join(s.ranges, "|") + "|"
			s.mu.Unlock()
			if c.ranges != "" && asked != c.ranges {
				t.Errorf("the requested ranges are %s, want %s", asked, c.ranges)
			}
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), s.URL) {
					t.Errorf("got %v; want an error with %q", err, c.err)
				}
				if _, err := os.Stat(dst); err == nil {
					t.Error("the file exists nevertheless")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(dst)
			if err != nil || !bytes.Equal(got, content) {
				t.Fatalf("the file has other contents: %d bytes, %v", len(got), err)
			}
			if last[0] != int64(len(content)) {
				t.Errorf("the last progress was %v", last)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "sub", "*")); len(left) != 1 {
				t.Errorf("left: %v", left)
			}
			// A second call makes no request.
			if err := fetch(t.Context(), s.URL+"/file", dst, o); err != nil {
				t.Error(err)
			}
			if n := len(s.ranges); strings.Join(s.ranges[:n], "|")+"|" != asked && c.o.sums.known() {
				t.Error("the file was downloaded twice")
			}
		})
	}
}

// Another process resumes the download where this one stopped.
func TestFetchAfterCancel(t *testing.T) {
	s := serve(t, stalled(5000), good)
	dst := filepath.Join(t.TempDir(), "file")
	ctx, cancel := context.WithCancel(t.Context())
	o := fast(fetchOptions{sums: checksums{sha256: sha(content)}})
	o.progress = func(done, _ int64) {
		if done == 5000 {
			cancel()
		}
	}
	// Depending on timing, Progress reports the first bytes after one read or after two, so a timer
	// cancels too.
	time.AfterFunc(300*time.Millisecond, cancel)
	if err := fetch(ctx, s.URL, dst, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	if sizeOf(dst+".part") != 5000 {
		t.Errorf("the partial file has %d bytes", sizeOf(dst+".part"))
	}
	o.progress = nil
	if err := fetch(t.Context(), s.URL, dst, o); err != nil {
		t.Fatal(err)
	}
	if s.ranges[1] != "bytes=5000-" {
		t.Errorf("the download started again from the beginning: %q", s.ranges)
	}
	// The partial file of another URL is not resumed.
	s2 := serve(t, good)
	dst2 := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dst2+".part", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fetch(t.Context(), s2.URL, dst2, o); err != nil || s2.ranges[0] != "" {
		t.Errorf("with a partial file of another URL: %v, %q", err, s2.ranges)
	}
}

// All bytes have arrived, but the process was killed before it renamed the file.
func TestFetchAfterTheLastByte(t *testing.T) {
	s := serve(t, good)
	dst := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dst+".part", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dst+".part.json", fmt.Appendf(nil, `{"url":%q,"validator":"\"v1\""}`, s.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fetch(t.Context(), s.URL, dst, fast(fetchOptions{sums: checksums{sha256: sha(content)}})); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(dst); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestFetchReplacesAWrongFile(t *testing.T) {
	s := serve(t, good)
	dst := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dst, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fetch(t.Context(), s.URL, dst, fast(fetchOptions{size: int64(len(content))})); err != nil || sizeOf(dst) != int64(len(content)) {
		t.Errorf("%d bytes, %v", sizeOf(dst), err)
	}
}

func TestFetchUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fetch(t.Context(), "http://127.0.0.1:1/x", filepath.Join(file, "x"), fast(fetchOptions{})); err == nil {
		t.Error("no error")
	}
}

func TestRetryAfter(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(429)
	})
	ctx, cancel := context.WithCancel(t.Context())
	o := fast(fetchOptions{})
	o.note = func(text string) {
		if !strings.Contains(text, "trying again in 5m0s") { // the server's one hour is cut to the maximum
			t.Errorf("note: %s", text)
		}
		cancel()
	}
	if err := fetch(ctx, s.URL, filepath.Join(t.TempDir(), "file"), o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRedirectToPlain(t *testing.T) {
	plain := serve(t, good)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL, http.StatusFound)
	}))
	t.Cleanup(secure.Close)
	o := fast(fetchOptions{client: secure.Client(), tries: 1})
	o.client.CheckRedirect = checkRedirect
	if err := fetch(t.Context(), secure.URL, filepath.Join(t.TempDir(), "file"), o); err == nil || !strings.Contains(err.Error(), "not encrypted") {
		t.Errorf("got %v", err)
	}
}

// The checksums are those that sha256sum and git hash-object print.
func TestVerifyChecksums(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := fetchOptions{size: 6, sums: checksums{
		sha256:  "5891B5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
		gitBlob: "ce013625030ba8dba906f756967f9e9ca394464a",
	}}
	if err := o.verify(path); err != nil {
		t.Error(err)
	}
	for _, wrong := range []fetchOptions{{size: 7}, {sums: checksums{sha256: "00"}}, {sums: checksums{gitBlob: "00"}}} {
		if err := wrong.verify(path); !errors.Is(err, errWrongFile) || !strings.Contains(err.Error(), path) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if err := o.verify(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-9/10", "bytes */10", "bytes 5-9/*", "bytes 9-5/10", "bytes 0-10/10", "bytes -1-2/3", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		first, total, ok := contentRange(s)
		if ok && (first < 0 || total < -1 || total >= 0 && first > total) {
			t.Errorf("%q: %d of %d", s, first, total)
		}
	})
}

// If no connection can be made there are two attempts, otherwise five.
func TestNoNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := "http://" + l.Addr().String() + "/file"
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer failing.Close()
	for url, want := range map[string]string{nowhere: "2 attempts", failing.URL: "5 attempts"} {
		notes := 0
		err := fetch(t.Context(), url, filepath.Join(t.TempDir(), "file"), fetchOptions{backoff: time.Millisecond, note: func(string) { notes++ }})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("after %d notes: %v, want %s", notes, err, want)
		}
	}
	if !noNetwork(&net.DNSError{Err: "no such host"}) || noNetwork(&net.OpError{Op: "read"}) {
		t.Error("an unknown host name must count as no network, and a broken connection must not")
	}
}
