// Package serve answers requests for a graph's edges, features and labels over gRPC, so that
// trainers need no file of it. Package gnb/remote is its client, and the command gnb serve a server.
//
// # Basics
//
//	s, err := serve.New(ctx, ds, serve.Options{Token: token, Certificate: &cert})
//	err = s.Serve(ctx, listener) // until ctx ends, then it drains
//
// A server has a whole dataset, or some parts of one that package graphops/divided wrote. Its answers
// are functions of the requests alone, so a client repeats a request, at this server or at another
// one with the same data, and gets the same bytes.
//
// # Safety
//
// A server that listens beyond the loopback interface needs a certificate and a token, unless
// Options.Insecure is set. Requests beyond a limit get the status that names the limit: what a client
// can make a server allocate is bounded by Options.Memory, and by a request and a message of 1 MiB for
// each of twice Options.Calls. The health service needs no token; the reflection service does. A connection without a request
// that the server answers, but for health, ends after a minute, and sooner if all Options.Connections are taken.
//
// # Caveats
//
// Pickers of one's own are not on the server: it answers for sample.Fanouts, sample.Weighted and
// sample.Labor.
package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/machine"
)

// Options configure a [Server]. The zero value listens on loopback only, without a token.
type Options struct {
	// Parts are the parts of a divided dataset that the server has; nil means all on this machine.
	Parts []int
	// Token must come with each request if it is set.
	Token string
	// Certificate is the server's for TLS; nil means no TLS.
	Certificate *tls.Certificate
	// Insecure allows to listen beyond the loopback interface without a certificate or a token.
	Insecure bool
	// Limits bound requests and answers.
	Limits Limits
	// Calls is the number of requests that are answered at the same time; 0 means 64. Others wait.
	Calls int
	// Memory bounds the bytes of answers to requests for hops and for sparse rows that are being made or
	// sent, of all requests together but those for 1 MiB or less; 0 means 1 GiB. Requests wait for room without
	// counting as Calls, at most as many as there are Calls; further ones get the status UNAVAILABLE, and
	// clients repeat them. An answer that needs more alone is made when no other is.
	Memory int64
	// Connections is the number of open connections; 0 means 1024.
	Connections int
	// Streams is the number of open requests of one connection; 0 means 64.
	Streams int
	// SlowAfter is how long a client may take to send its request or to read 1 MiB; 0 means 30 s. Then
	// the request ends.
	SlowAfter time.Duration
	// Drain is how long open requests may take after the server was told to end; 0 means 10 s.
	Drain time.Duration
	// Threads is the number of threads of one request; 0 means GOMAXPROCS.
	Threads int
}

// The largest values of [Options] and [Limits].
const (
	MostNodes       = 1 << 27
	MostEdges       = 1 << 30
	MostBytes       = 1 << 36
	MostCalls       = 1 << 16
	MostConnections = 1 << 20
)

// Limits are the largest requests that a server answers.
type Limits struct {
	// Nodes is the number of nodes of a request; 0 means 1,048,576.
	Nodes int
	// Edges is the number of edges of an answer; 0 means 4,194,304. The features of these edges
	// have at most Bytes.
	Edges int
	// Bytes is the size of the rows of an answer; 0 means 64 MiB.
	Bytes int
}

// Service is a further service on the port of a [Server], such as package gnb/flight's. Its requests need the server's
// token, count as [Options.Calls], end when the client is slower than [Options.SlowAfter], and are in the metrics.
// Options.Memory does not count what they hold: each should hold a few MiB at most.
type Service interface {
	// Register adds the service. Its methods may send [bulk.Frame] instead of protocol buffers.
	Register(r grpc.ServiceRegistrar)
}

// Server serves one dataset.
type Server struct {
	o      Options
	data   *store
	hello  []byte
	health *health.Server
	count  *counters
	calls  chan struct{}
	memory *semaphore.Weighted // bytes of answers
	added  []Service
	conns  *conns          // set by Serve
	shared map[string]bool // the names of the added services
	waits  chan struct{}   // has an entry for each request that waits for memory
	slots  sync.Pool       // of *slot
	// running are the goroutines of requests. Those of slow clients outlive their requests briefly.
	running sync.WaitGroup
}

// slot is the working memory of a request.
type slot struct {
	answerer *sample.Answerer
	hop      sample.HopRequest
	reply    sample.HopReply
	rows     bulk.RowsRequest
	encoded  []byte
}

// New returns a server of a dataset, which must stay open. It reads the dataset once, for its
// digest and its degrees.
func New(ctx context.Context, ds *dataset.Dataset, o Options) (*Server, error) {
	o.Limits.Nodes = cmp.Or(o.Limits.Nodes, 1<<20)
	o.Limits.Edges = cmp.Or(o.Limits.Edges, 1<<22)
	o.Limits.Bytes = cmp.Or(o.Limits.Bytes, 64<<20)
	o.Calls, o.Connections, o.Streams = cmp.Or(o.Calls, 64), cmp.Or(o.Connections, 1024), cmp.Or(o.Streams, 64)
	o.Memory = cmp.Or(o.Memory, 1<<30)
	o.SlowAfter, o.Drain = cmp.Or(o.SlowAfter, 30*time.Second), cmp.Or(o.Drain, 10*time.Second)
	for _, b := range []struct {
		name        string
		value, most int64
	}{
		{"Limits.Nodes", int64(o.Limits.Nodes), MostNodes},
		{"Limits.Edges", int64(o.Limits.Edges), MostEdges},
		{"Limits.Bytes", int64(o.Limits.Bytes), MostBytes},
		{"Calls", int64(o.Calls), MostCalls},
		{"Connections", int64(o.Connections), MostConnections},
		{"Streams", int64(o.Streams), 1 << 16},
		{"Memory", o.Memory, 1 << 50},
		{"Threads", int64(o.Threads), int64(machine.MaxThreads())},
	} {
		if b.value < 0 || b.value > b.most {
			return nil, fmt.Errorf("serve: %s is %d; it is 1 to %d, or 0 for the default", b.name, b.value, b.most)
		}
	}
	if min(o.SlowAfter, o.Drain) < 0 {
		return nil, errors.New("serve: times cannot be negative")
	}
	if err := divided.CheckOpened(ctx, ds); err != nil {
		return nil, err
	}
	data, err := newStore(ctx, ds, o.Parts)
	if err != nil {
		return nil, err
	}
	if n := data.rows.Edges().FeatureBytes(); n > 0 { // features of edges are rows, too
		o.Limits.Edges = max(1, min(o.Limits.Edges, o.Limits.Bytes/n))
	}
	s := &Server{o: o, data: data, health: health.NewServer(), calls: make(chan struct{}, o.Calls), waits: make(chan struct{}, o.Calls), memory: semaphore.NewWeighted(o.Memory)}
	if s.hello, err = data.hello(o.Limits); err != nil {
		return nil, err
	}
	s.count = newCounters(s)
	s.slots.New = func() any {
		return &slot{answerer: sample.NewAnswerer(data.rows, sample.AnswererOptions{Threads: o.Threads, MaxEdges: o.Limits.Edges})}
	}
	return s, nil
}

// Metrics returns a handler that reports the server's counters to Prometheus.
func (s *Server) Metrics() http.Handler { return s.count.handler() }

// Add adds a service before [Server.Serve].
func (s *Server) Add(f Service) { s.added = append(s.added, f) }

// Digest is the digest of the served dataset.
func (s *Server) Digest() string { return s.data.digest }

// Parts are the parts that the server has; nil if the dataset is not divided.
func (s *Server) Parts() []int {
	if s.data.book == nil {
		return nil
	}
	return slices.Clone(s.data.here)
}

// Serve answers the requests that come to l until ctx ends. Then it says by its health service that
// it ends, takes no more requests, waits for the open ones up to Options.Drain, and returns nil. It
// closes l. A server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := s.Allowed(l.Addr()); err != nil {
		_ = l.Close()
		return err
	}
	o := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(4*s.o.Limits.Nodes + 1<<10), grpc.MaxSendMsgSize(2 * bulk.MaxFrame),
		grpc.MaxConcurrentStreams(uint32(s.o.Streams)), grpc.MaxHeaderListSize(16 << 10),
		grpc.StaticStreamWindowSize(256 << 10), grpc.StaticConnWindowSize(1 << 20), // what a connection can make the server hold
		grpc.ConnectionTimeout(20 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.StreamInterceptor(s.guard), grpc.UnaryInterceptor(s.guardUnary), grpc.WaitForHandlers(true),
		grpc.ForceServerCodecV2(bulk.ServerCodec{}),
	}
	if s.o.Certificate != nil {
		o = append(o, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{*s.o.Certificate}, MinVersion: tls.VersionTLS13})))
	}
	s.conns = newConns(l, s.o.Connections)
	g := grpc.NewServer(o...)
	for _, f := range s.added {
		f.Register(g)
	}
	s.shared = map[string]bool{}
	for name := range g.GetServiceInfo() {
		s.shared[name] = true
	}
	g.RegisterService(s.description(), s)
	healthpb.RegisterHealthServer(g, s.health)
	reflection.Register(g)
	ended := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-ctx.Done():
		case <-ended:
			return
		}
		s.health.Shutdown()
		hard := time.AfterFunc(s.o.Drain, g.Stop)
		g.GracefulStop()
		hard.Stop()
	})
	err := g.Serve(s.conns)
	close(ended)
	waiting.Wait()
	g.Stop()
	s.running.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}

// Allowed returns an error if other machines reach the address and the server has no certificate or token there, and is
// not [Options.Insecure]. Serve returns the same error.
func (s *Server) Allowed(a net.Addr) error {
	if t, ok := a.(*net.TCPAddr); !ok || t.IP.IsLoopback() || s.o.Insecure {
		return nil
	}
	var missing string
	switch {
	case s.o.Certificate == nil && s.o.Token == "":
		missing = "a certificate and a token"
	case s.o.Certificate == nil:
		missing = "a certificate"
	case s.o.Token == "":
		missing = "a token"
	default:
		return nil
	}
	return fmt.Errorf("serve: other machines reach %s, and the server has no protection there: give it %s, listen on 127.0.0.1, or allow it to be insecure", a, missing)
}
