package get

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// download is one file being downloaded.
type download struct {
	fetchOptions
	url, dst, part string
	total          int64 // 0: unknown
	reported       time.Time
}

// partState is the content of DST.part.json: it identifies the file to which the part belongs.
type partState struct {
	URL       string `json:"url"`
	Validator string `json:"validator"` // ETag or Last-Modified
}

func (d *download) statePath() string { return d.part + ".json" }

func (d *download) loadState() (s partState) {
	const most = 1 << 16 // bytes; far above the size of a URL and an ETag
	if text, err := atomicfile.ReadFile(d.statePath(), most); err == nil {
		_ = json.Unmarshal(text, &s) // an unreadable state gives the zero state, which matches no file
	}
	return s
}

func (d *download) discard() {
	_ = os.Remove(d.part)
	_ = os.Remove(d.statePath())
}

var errStalled = errors.New("stalled")

// retryAfter is an error with the pause that the server requests.
type retryAfter struct {
	error
	pause time.Duration
}

// attempt makes one request for the missing bytes, and appends the response.
func (d *download) attempt(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(d.stall, func() { cancel(errStalled) })
	defer stall.Stop()
	explain := func(err error) error {
		if errors.Is(context.Cause(ctx), errStalled) {
			return fmt.Errorf("nothing arrived for %v", d.stall)
		}
		return err
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return permanent{err}
	}
	// No compression in transit, so that positions are those of the file.
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "graphnb (https://github.com/graphnb/graphnb)")
	have, s := sizeOf(d.part), d.loadState()
	// Without a validator, a part is resumed only if a checksum can later detect that it was of
	// another file.
	if have > 0 && (s.URL != d.url || have > d.maxSize || s.Validator == "" && !d.sums.known()) {
		d.discard()
		have = 0
	}
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if s.Validator != "" {
			req.Header.Set("If-Range", s.Validator)
		}
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return explain(err)
	}
	defer resp.Body.Close()
	stall.Reset(d.stall)

	from, err := d.begin(resp, have)
	if err != nil || from < 0 {
		return err
	}
	f, err := os.OpenFile(d.part, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return permanent{err}
	}
	err = d.copy(f, from, resp.Body, stall)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = permanent{cerr}
	}
	return explain(err)
}

// begin checks the response's header and returns the position at which its body begins, -1 if
// nothing is missing.
func (d *download) begin(resp *http.Response, have int64) (from int64, err error) {
	d.total = d.size
	switch resp.StatusCode {
	case http.StatusOK: // the whole file, even if a range was requested
		from = 0
		if resp.ContentLength >= 0 {
			d.total = resp.ContentLength
		}
	case http.StatusPartialContent:
		first, total, ok := contentRange(resp.Header.Get("Content-Range"))
		if !ok || first != have {
			d.discard()
			return 0, fmt.Errorf("the server was asked for the bytes from %d on and answered with %q", have, resp.Header.Get("Content-Range"))
		}
		from = first
		if total >= 0 {
			d.total = total
		}
	case http.StatusRequestedRangeNotSatisfiable:
		_, total, _ := contentRange(resp.Header.Get("Content-Range"))
		if have > 0 && total == have {
			return -1, nil
		}
		d.discard()
		return 0, fmt.Errorf("the server has fewer than the %d bytes that had arrived", have)
	default:
		return 0, statusError(resp)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/html" {
		return 0, never("the server sent a web page instead of the file (it may want a confirmation in a browser)")
	}
	if d.size > 0 && d.total != d.size {
		return 0, never("the server's file has %d bytes and %d are expected: %w", d.total, d.size, errWrongFile)
	}
	if d.total > d.maxSize {
		return 0, never("the server's file has %d bytes; at most %d are taken", d.total, d.maxSize)
	}
	validator := resp.Header.Get("ETag")
	if strings.HasPrefix(validator, "W/") { // a weak validator does not identify bytes
		validator = ""
	}
	if validator == "" {
		validator = resp.Header.Get("Last-Modified")
	}
	text, err := json.Marshal(partState{URL: d.url, Validator: validator})
	if err != nil {
		return 0, permanent{err}
	}
	if err := atomicfile.WriteFile(d.statePath(), text, 0o644); err != nil {
		return 0, permanent{err}
	}
	return from, nil
}

func statusError(resp *http.Response) error {
	err := fmt.Errorf("the server answered %s", resp.Status)
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return retryAfter{err, time.Duration(max(0, seconds)) * time.Second}
	case code == http.StatusRequestTimeout, code >= 500:
		return err
	}
	return permanent{err}
}

// contentRange reads "bytes FIRST-LAST/TOTAL", where FIRST-LAST or TOTAL may be *.
func contentRange(s string) (first, total int64, ok bool) {
	s, isBytes := strings.CutPrefix(s, "bytes ")
	span, size, hasSize := strings.Cut(s, "/")
	if !isBytes || !hasSize {
		return 0, -1, false
	}
	total = -1
	if size != "*" {
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n < 0 {
			return 0, -1, false
		}
		total = n
	}
	if span == "*" {
		return 0, total, true
	}
	a, b, isSpan := strings.Cut(span, "-")
	first, err1 := strconv.ParseInt(a, 10, 64)
	last, err2 := strconv.ParseInt(b, 10, 64)
	if !isSpan || err1 != nil || err2 != nil || first < 0 || last < first || total >= 0 && last >= total {
		return 0, -1, false
	}
	return first, total, true
}

// copy truncates the file at position from and writes the body there.
func (d *download) copy(f *os.File, from int64, body io.Reader, stall *time.Timer) error {
	if err := f.Truncate(from); err != nil {
		return permanent{err}
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return permanent{err}
	}
	buf := make([]byte, 1<<17)
	for done := from; ; {
		n, err := body.Read(buf)
		if n > 0 {
			stall.Reset(d.stall)
			if done+int64(n) > d.maxSize {
				return never("the server sends more than %d bytes: %w", d.maxSize, errWrongFile)
			}
			if _, werr := f.Write(buf[:n]); werr != nil {
				return permanent{werr}
			}
			done += int64(n)
			d.report(done, false)
		}
		switch {
		case errors.Is(err, io.EOF):
			if d.total > 0 && done != d.total {
				return fmt.Errorf("the connection ended after %d of %d bytes", done, d.total)
			}
			d.report(done, true)
			return nil
		case err != nil:
			return fmt.Errorf("the connection broke after %d bytes: %w", done, err)
		}
	}
}

func (d *download) report(done int64, last bool) {
	if now := time.Now(); last || now.Sub(d.reported) >= 100*time.Millisecond {
		d.reported = now
		d.progress(done, max(d.total, 0))
	}
}

// finish verifies the part and renames it to its final name.
func (d *download) finish() error {
	if err := d.verify(d.part); err != nil {
		return err
	}
	f, err := os.OpenFile(d.part, os.O_RDWR, 0)
	if err != nil {
		return permanent{err}
	}
	err = atomicfile.Sync(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(d.part, d.dst)
	}
	if err != nil {
		return permanent{err}
	}
	_ = os.Remove(d.statePath())
	_ = atomicfile.SyncDir(filepath.Dir(d.dst)) // makes the name durable; if that fails, the file is complete anyway
	return nil
}
