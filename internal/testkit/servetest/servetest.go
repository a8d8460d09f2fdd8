// Package servetest starts graph servers in the processes of tests.
package servetest

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Server is a server that a test can stop and start again at the same address.
type Server struct {
	Addr    string           // host:port
	Dataset *dataset.Dataset // that the next Start serves
	Options serve.Options
	Serving *serve.Server // while it runs
	// Stop drains the server and waits until it has ended. The end of the test calls it too; only the
	// first call after a Start has an effect.
	Stop func()

	t testing.TB
}

// Start starts a server of ds on a free port of the loopback interface.
func Start(t testing.TB, ds *dataset.Dataset, o serve.Options) *Server {
	t.Helper()
	s := &Server{t: t, Dataset: ds, Options: o, Addr: "127.0.0.1:0"}
	s.Start()
	t.Cleanup(func() { s.Stop() })
	return s
}

// Start starts the server again after Stop, at the same address.
func (s *Server) Start() {
	s.t.Helper()
	serving, err := serve.New(context.Background(), s.Dataset, s.Options)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := net.Listen("tcp", s.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Serving, s.Addr = serving, l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serving.Serve(ctx, l) }()
	s.Stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			s.t.Errorf("the server ended with %v", err)
		}
	})
}
