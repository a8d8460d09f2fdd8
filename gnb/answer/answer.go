package answer

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/graphnb/graphnb/gnb/predict"
)

// Options configure a server. The zero value listens on loopback only, without a token.
type Options struct {
	// Token is what requests must carry; "" means none.
	Token string
	// Certificate is the server's for TLS; nil means no TLS.
	Certificate *tls.Certificate
	// Insecure allows to listen beyond the loopback interface without a certificate or a token.
	Insecure bool
	// Calls is the number of requests that are computed at a time; 0 means GOMAXPROCS.
	Calls int
	// Waiting is the number of requests that may wait for that; 0 means 1024.
	Waiting int
	// MaxBody is the largest body of a request in bytes; 0 means 1 MiB.
	MaxBody int64
	// MaxNodes is the largest number of nodes, or pairs, of a request; 0 means 1024.
	MaxNodes int
	// Timeout is the longest time that a request may take, with its waiting; 0 means 10 s.
	Timeout time.Duration
	// Drain is how long [Server.Serve] waits for the requests in progress when its context ends; 0 means 10 s.
	Drain time.Duration
	// Reload opens the predictor that answers after a request for POST /v1/reload; nil means that there is no such request. The server
	// closes the one before.
	Reload func(ctx context.Context) (*predict.Predictor, error)
	// Additions allows POST /v1/edges, which keeps new nodes and edges: [InMemory] until the server ends, or in a file of this name,
	// whose additions a server makes again when it starts. "" refuses them.
	Additions string
	// Connections is the number of connections that are open at a time; 0 means 1024.
	Connections int
}

func (o *Options) complete() error {
	o.Calls, o.Waiting, o.MaxBody, o.MaxNodes = cmp.Or(o.Calls, runtime.GOMAXPROCS(0)), cmp.Or(o.Waiting, 1024), cmp.Or(o.MaxBody, 1<<20), cmp.Or(o.MaxNodes, 1024)
	o.Timeout, o.Drain, o.Connections = cmp.Or(o.Timeout, 10*time.Second), cmp.Or(o.Drain, 10*time.Second), cmp.Or(o.Connections, 1024)
	if min(o.Calls, o.Waiting, o.MaxNodes, o.Connections) < 1 || o.MaxBody < 1 || o.Timeout < 0 || o.Drain < 0 {
		return errors.New("answer: a limit of Options is negative; 0 means the default of each")
	}
	return nil
}

// Server answers requests by a predictor.
type Server struct {
	o     Options
	stats *counters
	slots chan struct{} // one for each call that is computed
	line  line
	why   chan struct{} // one for each explanation that is computed: they take no more than half of the slots
	queue chan struct{} // one for each request that waits or is computed

	reloads sync.Mutex    // one at a time
	log     log           // no addition during a reload
	ending  chan struct{} // closed when Serve ends
	ended   sync.Once

	mu sync.RWMutex
	p  *predict.Predictor
}

// New returns a server that answers by p, to which it makes the additions of Options.Additions. The caller closes the server, and what
// [Server.Use] returns, with nil after the server has ended.
func New(p *predict.Predictor, o Options) (*Server, error) {
	if p == nil {
		return nil, errors.New("answer: New needs a predictor (predict.Open)")
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	s := &Server{o: o, p: p, slots: make(chan struct{}, o.Calls), why: make(chan struct{}, max(1, o.Calls/2)), queue: make(chan struct{}, o.Waiting+o.Calls)}
	s.stats = newCounters(s)
	s.log.turn, s.ending = make(chan struct{}, 1), make(chan struct{})
	s.log.turn <- struct{}{}
	if path := o.Additions; path != "" && path != InMemory {
		err := s.log.open(path, headerOf(p))
		if err == nil {
			err = s.log.replay(context.Background(), p)
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Use makes p answer all requests that begin after it, and returns the predictor before. Requests in progress end with the one that
// they began with, and its Close waits for them.
func (s *Server) Use(p *predict.Predictor) (before *predict.Predictor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.p = s.p, p
	return before
}

func (s *Server) predictor() *predict.Predictor {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.p
}

// Allowed returns an error if other machines reach a listener's address without the certificate and the token that they need.
func (s *Server) Allowed(a net.Addr) error {
	if t, ok := a.(*net.TCPAddr); !ok || t.IP.IsLoopback() || s.o.Insecure || s.o.Certificate != nil && s.o.Token != "" {
		return nil
	}
	return fmt.Errorf("answer: other machines reach %s, and the server has no protection there: give it a certificate and a token, listen on 127.0.0.1, or allow it to be insecure", a)
}

// Serve answers requests at l until ctx ends; then it finishes those in progress, for at most Options.Drain. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := s.Allowed(l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	l = netutil.LimitListener(l, s.o.Connections)
	if c := s.o.Certificate; c != nil {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*c}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}})
	}
	server := &http.Server{
		Handler: s.Handler(), MaxHeaderBytes: 32 << 10, IdleTimeout: 30 * time.Second,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: s.o.Timeout + 5*time.Second, WriteTimeout: 2*s.o.Timeout + 10*time.Second,
	}
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("answer: %w", err)
	case <-ctx.Done():
	}
	s.ended.Do(func() { close(s.ending) })
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Drain)
	defer cancel()
	err := server.Shutdown(within)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(fmt.Errorf("answer: requests in progress took longer than the %v that the server waits for them", s.o.Drain), server.Close())
	}
	<-ended
	return err
}
