package get

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// fetchOptions describes the expected file and how to fetch it. The zero value accepts any file of up to
// 1 GiB.
type fetchOptions struct {
	size int64 // in bytes; 0: unknown
	sums checksums
	// maxSize bounds the size of a file of unknown size [1 GiB].
	maxSize int64
	// stall is how long the connection may deliver no data before it is closed [one minute].
	stall time.Duration
	// tries is the number of consecutive attempts that may fail without progress [5]. An attempt
	// that received bytes counts as progress. If no connection could ever be made, it is 2, because
	// there is probably no network.
	tries int
	// backoff is the pause after the first failure; it doubles with each one, up to
	// a minute [one second].
	backoff time.Duration
	// progress receives the number of bytes present and the total (0: unknown), at most ten times a
	// second and at the end.
	progress func(done, total int64)
	// note receives a sentence that says why an attempt failed and when the next one starts.
	note func(text string)
	// client makes the requests [default: a client that uses the proxies of the environment]. It
	// should have no overall timeout.
	client *http.Client
}

func (o fetchOptions) defaults() fetchOptions {
	if o.maxSize == 0 {
		o.maxSize = 1 << 30
	}
	if o.size > 0 {
		o.maxSize = o.size
	}
	if o.stall == 0 {
		o.stall = time.Minute
	}
	if o.tries == 0 {
		o.tries = 5
	}
	if o.backoff == 0 {
		o.backoff = time.Second
	}
	if o.client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DialContext = (&net.Dialer{Timeout: connectWithin}).DialContext
		o.client = &http.Client{CheckRedirect: checkRedirect, Transport: t}
	}
	if o.progress == nil {
		o.progress = func(int64, int64) {}
	}
	if o.note == nil {
		o.note = func(string) {}
	}
	return o
}

// connectWithin is the timeout for making a connection.
const connectWithin = 10 * time.Second

// noNetwork reports whether no connection could be made: the name does not resolve, or the host is
// unreachable.
func noNetwork(err error) bool {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// checkRedirect follows as many redirects as browsers do, and never from an encrypted connection to
// an unencrypted one.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("it was redirected more than 10 times")
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("it was redirected to %s, which is not encrypted", req.URL.Redacted())
	}
	return nil
}

// errWrongFile is the error for a file that arrived completely but is not the expected one.
var errWrongFile = errors.New("not the file that is expected")

// permanent is an error that would recur in another attempt.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

func never(format string, args ...any) error { return permanent{fmt.Errorf(format, args...)} }

// fetch downloads url to dst and creates dst's folder. A dst that matches o is left as it is. fetch
// returns when the file is complete, when the server gives a final refusal, after too many
// consecutive failures, or when ctx ends; the received bytes stay in dst.part for the next call.
//
// A download is written to dst.part and renamed to dst once it is complete with the right size and
// checksum, so dst is never incomplete. dst.part is resumed, also by another process, if the server
// still has the same file: dst.part.json keeps its URL and its validator (ETag or Last-Modified).
//
// The part is not written with package atomicfile, which removes the files of interrupted writers,
// while a part must be kept and resumed. A dst, dst.part or dst.part.json that is not a regular
// file is an error and is left unchanged.
func fetch(ctx context.Context, url, dst string, o fetchOptions) error {
	own := o.client == nil
	if o = o.defaults(); own {
		defer o.client.CloseIdleConnections()
	}
	fail := func(err error) error { return fmt.Errorf("downloading %s: %w", url, err) }
	if info, err := os.Stat(dst); err == nil && info.Mode().IsRegular() && o.verify(dst) == nil {
		o.progress(info.Size(), info.Size())
		return nil
	}
	if err := atomicfile.MkdirAll(filepath.Dir(dst), 0o777); err != nil {
		return fail(err)
	}
	d := &download{fetchOptions: o, url: url, dst: dst, part: dst + ".part"}
	for _, path := range []string{d.dst, d.part, d.statePath()} {
		if err := atomicfile.Replaceable(path); err != nil {
			return fail(err)
		}
	}
	failures, wrong, reached := 0, 0, sizeOf(dst+".part") > 0
	for {
		before := sizeOf(d.part)
		err := d.attempt(ctx)
		if err == nil {
			if err = d.finish(); err == nil {
				return nil
			}
		}
		if ctx.Err() != nil {
			return fail(ctx.Err())
		}
		if errors.Is(err, errWrongFile) {
			d.discard()
		}
		if p := (permanent{}); errors.As(err, &p) {
			return fail(p.error)
		}
		if errors.Is(err, errWrongFile) {
			// Retry once from the beginning: part of it may have been of another file.
			if wrong++; wrong == 2 {
				return fail(err)
			}
		}
		if sizeOf(d.part) > before && wrong == 0 {
			failures = 0
		}
		tries := o.tries
		if reached = reached || !noNetwork(err); !reached {
			tries = min(tries, 2)
		}
		if failures++; failures >= tries {
			return fail(fmt.Errorf("%w (%d attempts; what has arrived is kept, and the next attempt continues from there)", err, failures))
		}
		pause := min(o.backoff<<(failures-1), time.Minute)
		var later retryAfter
		if errors.As(err, &later) {
			pause = max(pause, min(later.pause, 5*time.Minute))
		}
		o.note(fmt.Sprintf("downloading %s: %v; trying again in %v", url, err, pause.Round(time.Millisecond)))
		select {
		case <-ctx.Done():
			return fail(ctx.Err())
		case <-time.After(pause):
		}
	}
}

// sizeOf returns the size of a file, 0 if it does not exist.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
