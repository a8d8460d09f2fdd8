package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/gnb/predict"
)

// asked is a request for known nodes that waits to be computed.
type asked struct {
	ctx  context.Context
	ids  []string
	done chan outcome
}

// outcome is what was computed for a request: answers, of which it has the rows from at on.
type outcome struct {
	a   *predict.Answers
	at  int
	err error
}

// errBusy is the error of requests beyond Options.Waiting.
var errBusy = errors.New("answer: too many requests wait; ask again in a second, or start more servers")

// enter takes a place among the requests that wait or are computed.
func (s *Server) enter() (leave func(), err error) {
	select {
	case s.queue <- struct{}{}:
		return func() { <-s.queue }, nil
	default:
		return nil, errBusy
	}
}

// turn waits for a slot.
func (s *Server) turn(ctx context.Context) (end func(), err error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil { // both were so
		<-s.slots
		return nil, err
	}
	return func() { <-s.slots }, nil
}

// line are the requests for known nodes that wait, in the order in which they came.
type line struct {
	mu  sync.Mutex
	all []*asked
}

func (l *line) join(q *asked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, q)
}

// leave removes a request whose client does not wait any more.
func (l *line) leave(q *asked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.all, q); i >= 0 {
		l.all = slices.Delete(l.all, i, i+1)
	}
}

// together is the number of nodes of a joint computation, at most, unless one request has more: that one is computed alone.
const together = 256

// take removes the first requests that are computed together.
func (l *line) take() (all []*asked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, nodes := 0, 0
	for n < len(l.all) && (n == 0 || nodes+len(l.all[n].ids) <= together) {
		nodes += len(l.all[n].ids)
		n++
	}
	all = slices.Clone(l.all[:n])
	l.all = slices.Delete(l.all, 0, n)
	return all
}

// nodes computes answers for known nodes, together with the other requests that wait for the same.
func (s *Server) nodes(ctx context.Context, ids []string) (outcome, error) {
	leave, err := s.enter()
	if err != nil {
		return outcome{}, err
	}
	defer leave()
	q := &asked{ctx, ids, make(chan outcome, 1)}
	s.line.join(q)
	defer s.line.leave(q)
	select {
	case s.slots <- struct{}{}:
		s.work(q)
	case o := <-q.done:
		return o, o.err
	case <-ctx.Done():
		return outcome{}, ctx.Err()
	}
	select {
	case o := <-q.done: // computed here, or by another call meanwhile
		return o, o.err
	case <-ctx.Done():
		return outcome{}, ctx.Err()
	}
}

// work computes requests of the line in the slot that it has, and gives that back when q is among them: the goroutine of each other
// request waits for a slot too.
func (s *Server) work(q *asked) {
	defer func() { <-s.slots }()
	for len(q.done) == 0 && q.ctx.Err() == nil {
		all := s.line.take()
		if len(all) == 0 {
			return // another call computes q
		}
		s.compute(all)
	}
}

// compute answers requests together, and each alone if that fails: the mistake of one is not that of the others.
func (s *Server) compute(all []*asked) {
	if len(all) == 1 {
		q := all[0]
		a, err := s.ask(q.ctx, q.ids)
		q.done <- outcome{a, 0, err}
		return
	}
	var ids []string
	for _, q := range all {
		ids = append(ids, q.ids...)
	}
	s.stats.joined.Add(float64(len(all)))
	// No request's context is that of the others.
	within, cancel := context.WithTimeout(context.Background(), s.o.Timeout)
	defer cancel()
	a, err := s.ask(within, ids)
	if err != nil {
		for _, q := range all {
			s.compute([]*asked{q})
		}
		return
	}
	at := 0
	for _, q := range all {
		q.done <- outcome{a, at, nil}
		at += len(q.ids)
	}
}

// ask answers for known nodes.
func (s *Server) ask(ctx context.Context, ids []string) (a *predict.Answers, err error) {
	err = s.with(func(p *predict.Predictor) (err error) {
		a, err = p.Nodes(ctx, ids...)
		return err
	})
	return a, err
}

// with calls do with the predictor, again if that was replaced meanwhile.
func (s *Server) with(do func(p *predict.Predictor) error) (err error) {
	for range 3 {
		p := s.predictor()
		if p == nil {
			return fmt.Errorf("answer: the server has ended: %w", predict.ErrClosed)
		}
		if err = do(p); !errors.Is(err, predict.ErrClosed) {
			return err
		}
	}
	return err
}
