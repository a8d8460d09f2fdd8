package answer

import (
	"context"
	"errors"

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
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// nodes computes answers for known nodes, together with the other requests that wait for the same.
func (s *Server) nodes(ctx context.Context, ids []string) (outcome, error) {
	leave, err := s.enter()
	if err != nil {
		return outcome{}, err
	}
	defer leave()
	q := &asked{ctx, ids, make(chan outcome, 1)}
	s.line <- q // there is a place for each request that has entered
	select {
	case s.slots <- struct{}{}:
		s.work(q)
		<-s.slots
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

// together is the number of nodes of a joint computation, at most, unless one request has more.
const together = 256

// work computes requests of the line until q is among them: the goroutine of each other one waits for a slot too.
func (s *Server) work(q *asked) {
	for len(q.done) == 0 {
		var all []*asked
		n := 0
		for more := true; more && n < together; {
			select {
			case q := <-s.line:
				if q.ctx.Err() != nil {
					break // nobody waits for it
				}
				all = append(all, q)
				n += len(q.ids)
			default:
				more = false
			}
		}
		if len(all) == 0 {
			return
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
func (s *Server) ask(ctx context.Context, ids []string) (*predict.Answers, error) {
	a, err := s.predictor().Nodes(ctx, ids...)
	if errors.Is(err, predict.ErrClosed) { // it was replaced meanwhile
		a, err = s.predictor().Nodes(ctx, ids...)
	}
	return a, err
}
