package answer

import (
	"context"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/explain"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

//go:embed openapi.json
var openAPI []byte

// problem is a refusal: what an answer says of an error.
type problem struct {
	status int
	kind   string
	text   string
}

func (p *problem) Error() string { return p.text }

// statusGone is what servers count for a client that closed its request.
const statusGone = 499

func refuse(status int, kind, format string, args ...any) error {
	return &problem{status, kind, fmt.Sprintf("answer: "+format, args...)}
}

// problemOf finds the status and the kind of an error.
func problemOf(err error) *problem {
	var own *problem
	var limit *predict.LimitError
	var body *http.MaxBytesError
	is := func(status int, kind string) *problem { return &problem{status, kind, err.Error()} }
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &body):
		return &problem{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("answer: the body has more than %d bytes; send less at a time", body.Limit)}
	case errors.As(err, &limit):
		return is(http.StatusRequestEntityTooLarge, "too_large")
	case errors.Is(err, predict.ErrUnknownNode):
		return is(http.StatusNotFound, "unknown_node")
	case errors.Is(err, predict.ErrRequest):
		return is(http.StatusBadRequest, "request")
	case errors.Is(err, errBusy):
		return is(http.StatusServiceUnavailable, "busy")
	case errors.Is(err, context.DeadlineExceeded):
		return &problem{http.StatusGatewayTimeout, "timeout", "answer: the answer took longer than a request may take; ask for fewer nodes, or take fewer neighbours (fanouts)"}
	case errors.Is(err, context.Canceled): // the client has gone, and reads nothing
		return &problem{statusGone, "gone", "answer: the client has closed the request"}
	case errors.Is(err, predict.ErrClosed):
		return is(http.StatusServiceUnavailable, "busy")
	case errors.Is(err, gnb.ErrNotFinite):
		return is(http.StatusInternalServerError, "not_finite")
	}
	return is(http.StatusInternalServerError, "internal")
}

// do is a call: it reads its request as JSON from body.
type do func(ctx context.Context, body io.Reader) (any, error)

// calls are the calls of the server by the last part of their paths.
func (s *Server) calls() map[string]do {
	all := map[string]do{
		"nodes": func(ctx context.Context, body io.Reader) (any, error) {
			var q struct {
				IDs []string `json:"ids"`
			}
			if err := read(body, &q); err != nil {
				return nil, err
			}
			return s.known(ctx, q.IDs)
		},
		"new": s.added, "scores": s.scores, "top": s.top, "explain": s.explained,
	}
	if s.o.Additions != "" {
		all["edges"] = s.kept
	}
	if s.o.Reload != nil {
		all["reload"] = s.reload
	}
	return all
}

// reloadLimit is the longest time of a reload, which may compute rows of all nodes.
const reloadLimit = time.Hour

// limit is the longest time of a call.
func (s *Server) limit(name string) time.Duration {
	if name == "reload" {
		return reloadLimit
	}
	return s.o.Timeout
}

// Handler returns the server's handler of HTTP requests and of gRPC calls, for a program that has more of them. gRPC needs a server with
// HTTP/2, as [Server.Serve] has it: without TLS, http.Server's Protocols with SetUnencryptedHTTP2.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for name, do := range s.calls() {
		pattern := "POST /v1/" + name
		mux.Handle(pattern, s.call(pattern, s.limit(name), func(ctx context.Context, r *http.Request) (any, error) { return do(ctx, r.Body) }))
	}
	add := func(pattern string, do func(ctx context.Context, r *http.Request) (any, error)) {
		mux.Handle(pattern, s.call(pattern, s.o.Timeout, do))
	}
	add("GET /v1/nodes", func(ctx context.Context, r *http.Request) (any, error) { return s.known(ctx, r.URL.Query()["id"]) })
	add("GET /v1/model", func(context.Context, *http.Request) (any, error) { return s.about() })
	mux.Handle("GET /metrics", s.authorized(s.stats.handler()))
	document := func(pattern, kind string, text []byte) {
		mux.Handle(pattern, s.authorized(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(text) // a client that has gone does not read it
		})))
	}
	document("GET /openapi.json", "application/json", openAPI)
	document("GET /answer.proto", "text/plain; charset=utf-8", protoText)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, refuse(http.StatusNotFound, "request", "there is nothing at %s %s; GET /openapi.json lists what there is", r.Method, r.URL.Path), nil)
	})
	// A page of another site must not make a browser on this machine ask.
	pages, calls := http.NewCrossOriginProtection().Handler(mux), s.grpc()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			calls.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// about says what the server answers.
func (s *Server) about() (any, error) {
	var about map[string]any
	err := s.with(func(p *predict.Predictor) error {
		about = map[string]any{"model": p.String(), "kind": p.Kind(), "columns": p.Columns(), "notices": p.Notices()}
		return nil
	})
	return about, err
}

// reload replaces the predictor.
func (s *Server) reload(ctx context.Context, _ io.Reader) (any, error) {
	s.reloads.Lock()
	defer s.reloads.Unlock()
	next, err := s.log.take(ctx) // what is kept meanwhile would be missing
	if err != nil {
		return nil, err
	}
	defer next()
	p, err := s.o.Reload(ctx)
	if err == nil {
		if err = s.log.replay(ctx, p); err != nil {
			err = errors.Join(err, p.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("answer: not reloaded, the run before answers on: %w", err)
	}
	return map[string]any{"model": p.String()}, s.Use(p).Close()
}

// call makes a handler of a function.
func (s *Server) call(pattern string, limit time.Duration, do func(ctx context.Context, r *http.Request) (any, error)) http.Handler {
	return s.authorized(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		if limit > s.o.Timeout { // the server's deadline is for the other calls
			_ = http.NewResponseController(w).SetWriteDeadline(start.Add(limit + time.Minute))
		}
		r.Body = http.MaxBytesReader(w, r.Body, s.o.MaxBody)
		value, err := do(ctx, r)
		s.stats.done(pattern, write(w, err, value), time.Since(start))
	}))
}

// authorized refuses requests without the token.
func (s *Server) authorized(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.allows(r.Header.Get("Authorization")); err != nil {
			write(w, err, nil)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// allows returns an error for a request without the token, by its header Authorization.
func (s *Server) allows(header string) error {
	got, ok := strings.CutPrefix(header, "Bearer ")
	if s.o.Token == "" || ok && subtle.ConstantTimeCompare([]byte(got), []byte(s.o.Token)) == 1 {
		return nil
	}
	s.stats.refused.Inc()
	return refuse(http.StatusUnauthorized, "unauthorized", "the request has no token, or another one than this server's; send the header Authorization: Bearer TOKEN")
}

// write writes a value, or an error, and returns the status.
func write(w http.ResponseWriter, err error, value any) int {
	status := http.StatusOK
	var body []byte
	if err == nil {
		body, err = json.Marshal(value)
	}
	if err != nil {
		p := problemOf(err)
		status = p.status
		body, _ = json.Marshal(map[string]string{"error": p.text, "kind": p.kind}) // of strings
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	switch status {
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that has gone does not read it
	return status
}

// read decodes the body, which must have no other fields.
func read(body io.Reader, v any) error {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("more follows the value")
	}
	if body := (*http.MaxBytesError)(nil); errors.As(err, &body) {
		return err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(http.StatusRequestTimeout, "timeout", "the body did not come in the time that a request may take; send it faster, or less at a time")
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "request", "the body is not the JSON that is asked for: %v; GET /openapi.json describes it", err)
	}
	return nil
}

// count checks the number of nodes or pairs of a request.
func (s *Server) count(n int, what string) error {
	switch {
	case n == 0:
		return refuse(http.StatusBadRequest, "request", "the request has no %s; GET /openapi.json says how to name them", what)
	case n > s.o.MaxNodes:
		return refuse(http.StatusRequestEntityTooLarge, "too_large", "the request has %d %s and at most %d are answered at a time; ask several times", n, what, s.o.MaxNodes)
	}
	return nil
}

// part is answers for the rows of one request.
type part struct {
	Kind    predict.Kind     `json:"kind"`
	Answers []predict.Answer `json:"answers"`
	Notices notice.List      `json:"notices,omitempty"`
}

func (s *Server) known(ctx context.Context, ids []string) (any, error) {
	if err := s.count(len(ids), "nodes"); err != nil {
		return nil, err
	}
	o, err := s.nodes(ctx, ids)
	if err != nil {
		return nil, err
	}
	a := part{Kind: o.a.Kind}
	for i := range ids {
		a.Answers = append(a.Answers, o.a.Of(o.at+i))
	}
	return a, nil
}

// alone computes something else than answers for known nodes.
func alone[T any](ctx context.Context, s *Server, do func(p *predict.Predictor) (T, error)) (v T, err error) {
	leave, err := s.enter()
	if err != nil {
		return v, err
	}
	defer leave()
	end, err := s.turn(ctx)
	if err != nil {
		return v, err
	}
	defer end()
	err = s.with(func(p *predict.Predictor) (err error) {
		v, err = do(p)
		return err
	})
	return v, err
}

func (s *Server) added(ctx context.Context, body io.Reader) (any, error) {
	var q predict.Additions
	if err := read(body, &q); err != nil {
		return nil, err
	}
	if err := s.count(len(q.Nodes), "nodes"); err != nil {
		return nil, err
	}
	return alone(ctx, s, func(p *predict.Predictor) (any, error) { return p.New(ctx, q) })
}

func (s *Server) scores(ctx context.Context, body io.Reader) (any, error) {
	var q struct {
		Pairs []predict.Pair `json:"pairs"`
		predict.Additions
	}
	if err := read(body, &q); err != nil {
		return nil, err
	}
	if err := s.count(len(q.Pairs), "pairs"); err != nil {
		return nil, err
	}
	return alone(ctx, s, func(p *predict.Predictor) (any, error) {
		scores, err := p.Score(ctx, q.Pairs, q.Additions)
		return map[string]any{"scores": scores}, err
	})
}

func (s *Server) top(ctx context.Context, body io.Reader) (any, error) {
	var q predict.TopQuery
	if err := read(body, &q); err != nil {
		return nil, err
	}
	if q.K > s.o.MaxNodes {
		return nil, s.count(q.K, "targets")
	}
	return alone(ctx, s, func(p *predict.Predictor) (any, error) {
		top, err := p.Top(ctx, q)
		return map[string]any{"targets": top}, err
	})
}

// mostExplained is the number of nodes, and of edges, of an explanation that are sent: those with the largest scores.
const mostExplained = 1000

func (s *Server) explained(ctx context.Context, body io.Reader) (any, error) {
	var q struct {
		ID     string         `json:"id"`
		Pair   *predict.Pair  `json:"pair"`
		Method explain.Method `json:"method"`
		Output string         `json:"output"`
		Than   string         `json:"than"`
	}
	if err := read(body, &q); err != nil {
		return nil, err
	}
	if q.Pair != nil && q.ID != "" {
		return nil, refuse(http.StatusBadRequest, "request", "the request has an id and a pair; an explanation is of one of them")
	}
	select {
	case s.why <- struct{}{}:
		defer func() { <-s.why }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return alone(ctx, s, func(p *predict.Predictor) (any, error) {
		o := explain.Options{Method: q.Method, Output: q.Output, Than: q.Than}
		var e *explain.Explanation
		var err error
		if q.Pair != nil {
			e, err = explain.PairWith(ctx, p, *q.Pair, o)
		} else {
			e, err = explain.With(ctx, p, q.ID, o)
		}
		if err != nil {
			return nil, err
		}
		e.Nodes, e.Edges = e.Nodes[:min(len(e.Nodes), mostExplained)], e.Edges[:min(len(e.Edges), mostExplained)]
		return e, nil
	})
}
