package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

// request is a request to one of several servers. It may be sent several times.
type request struct {
	method string
	body   []byte
	what   string // what it asks for, in errors
	part   int    // for errors; -1 if it is for no part
	at     []int  // servers that can answer it, the first one preferred
	begin  func() // forgets the data of an earlier attempt
	take   func(data []byte) error
}

// The pause before a request is sent again, which doubles.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// Bounds of waiting for an answer.
const (
	// slowRate is the least number of bytes a second at which an answer may come, after Options.Timeout.
	slowRate = 64 << 10
	// noteEvery is the time after which the program says again what it waits for.
	noteEvery = time.Minute
)

// noteAfter is the time after which the program says what it waits for. Tests shorten it.
var noteAfter = 5 * time.Second

// attemptTimeout is how long one attempt may go without data before it is sent again: a server that
// has stopped, or a broken network, says nothing.
const attemptTimeout = 30 * time.Second

// do sends a request until it is answered or refused, the client is closed, or Options.Timeout has passed. After that the
// error is a [cluster.Lost], so that a launcher may start the run again.
func (c *Client) do(ctx context.Context, r request) error {
	start := time.Now()
	pause := firstPause
	var w wait
	for attempt := 0; ; attempt++ {
		s := c.servers[r.at[attempt%len(r.at)]]
		r.begin()
		stop := c.notes(s, &r, start, &w)
		err := c.attempt(ctx, s, r)
		stop()
		switch {
		case err == nil:
			s.answered.Store(true)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case c.isClosed():
			return r.wasClosed()
		case errors.As(err, &errSlow{}):
			return &cluster.Lost{Err: fmt.Errorf("remote: %s is too slow: %w for %s, since %s; look at its load and at the network, or raise the timeout: the program can be started again and resumes",
				s.address, err, r.what, start.Format(time.TimeOnly))}
		case !again(err):
			return fmt.Errorf("remote: %s refused the request for %s: %s", s.address, r.what, strings.TrimPrefix(status.Convert(err).Message(), "serve: "))
		}
		if !s.answered.Load() && attempt < len(r.at) { // perhaps it never will
			if err := c.unfit(ctx, s); err != nil {
				return fmt.Errorf("remote: %s cannot be asked for %s: %w", s.address, r.what, err)
			}
		}
		w.last.Store(&err)
		if left := c.o.Timeout - time.Since(start); left < pause {
			of := ""
			if r.part >= 0 && c.hello.Parts > 1 {
				of = fmt.Sprintf(" of part %d", r.part)
			}
			return &cluster.Lost{Err: fmt.Errorf("remote: %s has not answered the request for %s%s for %v (last: %s); start it again with the same data (gnb serve), or check the network: the program can be started again and resumes",
				s.address, r.what, of, time.Since(start).Round(time.Millisecond), status.Convert(err).Message())}
		}
		if (attempt+1)%len(r.at) == 0 { // every server was asked
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			case <-c.closed:
				return r.wasClosed()
			}
			pause = min(2*pause, lastPause)
		}
	}
}

func (c *Client) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

func (r request) wasClosed() error {
	return fmt.Errorf("remote: the request for %s ended because the client was closed", r.what)
}

// errTake is an answer that does not fit its request.
type errTake struct{ error }

// errSlow is an answer that comes too slowly to wait for its end.
type errSlow struct{ error }

// wait is what is known of a request that waits.
type wait struct {
	last atomic.Pointer[error] // of the last attempt
}

// notes says on Options.Notes, while an attempt lasts, what the program waits for: after noteAfter, and every noteEvery.
func (c *Client) notes(s *server, r *request, start time.Time, w *wait) (stop func()) {
	if time.Since(start) > noteAfter { // a short attempt would end before its timer
		c.say(s, r, start, w)
	}
	tick := time.AfterFunc(max(noteAfter-time.Since(start), 0), func() { c.say(s, r, start, w) })
	return func() { tick.Stop() }
}

// say says what the program waits for, unless it has said so lately: of all requests, one line a minute for each server.
func (c *Client) say(s *server, r *request, start time.Time, w *wait) {
	now := time.Now()
	if at := s.said.Load(); now.UnixNano()-at < int64(noteEvery) || !s.said.CompareAndSwap(at, now.UnixNano()) {
		return
	}
	why := ""
	if last := w.last.Load(); last != nil {
		why = ": " + status.Convert(*last).Message()
	}
	c.o.Notes(fmt.Sprintf("waiting for the server %s, asked for %s, since %s%s", s.address, r.what, start.Format(time.TimeOnly), why))
}

// again reports whether a request that failed in this way may succeed later.
func again(err error) bool {
	if errors.As(err, &errTake{}) {
		return false
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.Unknown, codes.Internal:
		return !strings.Contains(status.Convert(err).Message(), "serve: a request ended in a panic")
	}
	return false
}

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, s *server, r request) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(attemptTimeout, cancel)
	defer silent.Stop()
	var pairs []string
	if c.o.Token != "" {
		pairs = append(pairs, bulk.TokenKey, "Bearer "+c.o.Token)
	}
	if c.hello.Digest != "" {
		pairs = append(pairs, bulk.DatasetKey, c.hello.Digest)
	}
	g, err := s.conn.NewStream(metadata.AppendToOutgoingContext(ctx, pairs...), &grpc.StreamDesc{ServerStreams: true}, bulk.Path(r.method))
	if err != nil {
		return err
	}
	if err := g.SendMsg(&bulk.Frame{Out: mem.BufferSlice{mem.SliceBuffer(r.body)}}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := g.CloseSend(); err != nil {
		return err
	}
	var bad error
	got := 0
	in := bulk.Frame{In: func(data mem.BufferSlice) error {
		for _, b := range data {
			got += b.Len()
			if bad == nil {
				bad = r.take(b.ReadOnlyData())
			}
		}
		return nil
	}}
	for start := time.Now(); ; {
		err := g.RecvMsg(&in)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case bad != nil:
			return errTake{bad}
		}
		silent.Reset(attemptTimeout)
		if took := time.Since(start); took > c.o.Timeout+time.Duration(float64(got)/slowRate*float64(time.Second)) {
			return errSlow{fmt.Errorf("it has sent %d bytes in %v", got, took.Round(time.Second))}
		}
	}
}
