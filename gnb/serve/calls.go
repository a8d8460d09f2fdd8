package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
)

// description is the service's list of methods: each takes one message and returns a stream.
func (s *Server) description() *grpc.ServiceDesc {
	d := &grpc.ServiceDesc{ServiceName: bulk.Service, HandlerType: (*any)(nil), Metadata: "gnb/internal/bulk"}
	for name, answer := range map[string]func(*call, []byte) error{
		bulk.HelloMethod: s.answerHello, bulk.ArrayMethod: s.answerArray, bulk.RowsMethod: s.answerRows, bulk.SampleMethod: s.answerSample,
	} {
		d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: name, ServerStreams: true, Handler: func(_ any, g grpc.ServerStream) error {
			return s.answer(name, g, answer)
		}})
	}
	return d
}

// call is one request.
type call struct {
	g    grpc.ServerStream
	slot *slot
	out  bool         // it does not count as one of Options.Calls; see Server.reserve
	sent atomic.Int64 // bytes
	// since is when the client was last waited for, in nanoseconds; 0 if it is not.
	since atomic.Int64
}

// wait runs f, which waits for the client.
func (c *call) wait(f func() error) error {
	c.since.Store(time.Now().UnixNano())
	defer c.since.Store(0)
	return f()
}

// send sends b, in messages of at most [bulk.MaxFrame]. b must not change, also after the call, and
// must not be mapped from a file.
func (c *call) send(b []byte) error {
	for {
		n := min(len(b), bulk.MaxFrame)
		if err := c.sendBuffer(mem.SliceBuffer(b[:n])); err != nil {
			return err
		}
		if b = b[n:]; len(b) == 0 {
			return nil
		}
	}
}

// sendMapped is send for b that may be mapped from a file. It sends copies: gRPC reads messages in a
// goroutine of its own, where the fault of a file that became shorter would end the server.
func (c *call) sendMapped(b []byte) error {
	pool := mem.DefaultBufferPool()
	for {
		n := min(len(b), bulk.MaxFrame)
		piece := pool.Get(n)
		copy(*piece, b)
		if err := c.sendBuffer(mem.NewBuffer(piece, pool)); err != nil {
			return err
		}
		if b = b[n:]; len(b) == 0 {
			return nil
		}
	}
}

// sendBuffer sends one message, and frees it.
func (c *call) sendBuffer(b mem.Buffer) error {
	n := b.Len()
	err := c.wait(func() error { return c.g.SendMsg(&bulk.Frame{Out: mem.BufferSlice{b}}) })
	if err == nil {
		c.sent.Add(int64(n))
	}
	return err
}

// answer reads a request and sends its answer, when a slot is free.
func (s *Server) answer(name string, g grpc.ServerStream, answer func(*call, []byte) error) error {
	return s.watch(name, g, func(c *call) error {
		var in bulk.Frame
		if err := c.wait(func() error { return g.RecvMsg(&in) }); err != nil {
			return err
		}
		c.slot = s.slots.Get().(*slot)
		defer s.slots.Put(c.slot)
		return s.safely(func() error { return answer(c, in.Data) })
	})
}

// watch runs a request when fewer than Options.Calls run. It returns, which ends the request, when that waits too long
// for the client.
func (s *Server) watch(name string, g grpc.ServerStream, run func(*call) error) (err error) {
	start := time.Now()
	c := &call{g: g}
	defer func() { s.count.done(name, status.Code(err), time.Since(start), c.sent.Load()) }()
	select {
	case s.calls <- struct{}{}:
	case <-g.Context().Done():
		return status.FromContextError(g.Context().Err()).Err()
	}
	ended := make(chan error, 1)
	s.running.Go(func() {
		defer func() {
			if !c.out {
				<-s.calls
			}
		}()
		ended <- run(c)
	})
	look := time.NewTicker(max(time.Millisecond, s.o.SlowAfter/4))
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case now := <-look.C:
			if at := c.since.Load(); at > 0 && now.UnixNano()-at > int64(s.o.SlowAfter) {
				return status.Errorf(codes.DeadlineExceeded, "serve: the client has neither sent nor read anything for %v, the limit for slow clients; ask again, for less at once", s.o.SlowAfter)
			}
		}
	}
}

// safely turns faults of mapped files and panics into errors.
func (s *Server) safely(answer func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s.count.panics.Inc()
			err = status.Errorf(codes.Internal, "serve: a request ended in a panic: %v\n%s", r, debug.Stack())
		}
	}()
	err = mapped.Guard(answer)
	if _, ok := status.FromError(err); !ok {
		err = status.Error(codes.DataLoss, err.Error())
	}
	return err
}

func (s *Server) answerHello(c *call, _ []byte) error { return c.send(s.hello) }

func (s *Server) answerArray(c *call, request []byte) error {
	a, ok := s.data.arrays[string(request)]
	if !ok {
		return status.Errorf(codes.NotFound, "serve: there is no array %.60q", request)
	}
	return c.sendMapped(a)
}

func (s *Server) answerRows(c *call, request []byte) error {
	q := &c.slot.rows
	if err := q.Decode(request); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	size := s.data.size(q.What)
	sparse := q.What == bulk.Features && s.data.largest >= 0
	switch n := len(q.Nodes); {
	case size == 0 && !sparse:
		return status.Errorf(codes.NotFound, "serve: the dataset has no %s", q.What)
	case n > s.o.Limits.Nodes:
		return tooMany("nodes", int64(n), int64(s.o.Limits.Nodes))
	case n*size > s.o.Limits.Bytes:
		return tooMany("bytes of rows", int64(n)*int64(size), int64(s.o.Limits.Bytes))
	}
	for _, v := range q.Nodes {
		if !s.data.has(v) {
			return status.Errorf(codes.OutOfRange, "serve: a request asks for the %s of node %d, but %s", q.What, v, s.data.where())
		}
	}
	if sparse {
		return s.answerSparse(c, q.Nodes)
	}
	most := max(1, bulk.MaxFrame/size)
	pool := mem.DefaultBufferPool()
	for nodes := q.Nodes; len(nodes) > 0; {
		n := min(most, len(nodes))
		b := pool.Get(n * size)
		s.data.gather(q.What, *b, nodes[:n])
		if err := c.sendBuffer(mem.NewBuffer(b, pool)); err != nil {
			return err
		}
		nodes = nodes[n:]
	}
	return nil
}

// answerSparse sends sparse rows: the three arrays of the matrix of these rows.
func (s *Server) answerSparse(c *call, nodes []int32) error {
	elements := int64(0)
	for _, v := range nodes {
		elements += int64(s.data.elements(v))
	}
	ones := s.data.ones()
	if n := bulk.SparseBytes(len(nodes), elements, ones); n > int64(s.o.Limits.Bytes) {
		return tooMany("bytes of rows", n, int64(s.o.Limits.Bytes))
	}
	free, err := s.reserve(c, bulk.SparseBytes(len(nodes), elements, ones))
	if err != nil {
		return err
	}
	defer free()
	// gRPC reads the memory after this call, so it is made for it.
	m, err := s.data.gatherSparse(nodes, s.o.Threads)
	if err != nil {
		return err
	}
	for _, b := range [][]byte{raw(m.Indptr), raw(m.Indices), raw(m.Values)} {
		if err := c.send(b); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) answerSample(c *call, request []byte) error {
	q, r := &c.slot.hop, &c.slot.reply
	if err := q.Decode(request); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if n := len(q.Nodes); n > s.o.Limits.Nodes {
		return tooMany("nodes", int64(n), int64(s.o.Limits.Nodes))
	}
	edges := int64(0)
	for _, v := range q.Nodes {
		if !s.data.has(v) {
			return status.Errorf(codes.OutOfRange, "serve: a request asks for the edges of node %d, but %s", v, s.data.where())
		}
		k := int64(s.data.in[v])
		if q.Fanout >= 0 {
			k = min(k, int64(q.Fanout))
		}
		edges += k
	}
	if edges <= int64(s.o.Limits.Edges) { // others are refused below, before memory is allocated
		free, err := s.reserve(c, 2*(int64(8+s.data.rows.Edges().Bytes())*edges+12*int64(len(q.Nodes)))) // the answer, and its encoding
		if err != nil {
			return err
		}
		defer free()
	}
	if err := c.slot.answerer.Answer(q, r); err != nil {
		var limit *sample.LimitError
		if errors.As(err, &limit) {
			return tooMany("edges of an answer", limit.Edges, limit.Limit)
		}
		return status.Error(codes.InvalidArgument, err.Error())
	}
	// gRPC reads the memory after this call, so the slot does not keep it.
	c.slot.encoded = r.Append(c.slot.encoded[:0])
	b := c.slot.encoded
	c.slot.encoded = nil
	if len(b) > bulk.MaxFrame { // a slot keeps no large memory, which nothing counts
		c.slot.reply = sample.HopReply{}
	}
	return c.send(b)
}

// reserve waits until the bytes of an answer have room. Call free when it is sent. An answer of one
// message does not wait for room. A request that waits does not count as one of Options.Calls meanwhile, so
// requests that need no room are answered; afterwards it waits for its turn again. That ends, because requests that
// count never wait for room.
func (s *Server) reserve(c *call, bytes int64) (free func(), err error) {
	bytes = min(bytes, s.o.Memory)
	free = func() { s.memory.Release(bytes) }
	switch {
	case bytes <= bulk.MaxFrame:
		return func() {}, nil
	case s.memory.TryAcquire(bytes):
		return free, nil
	}
	select {
	case s.waits <- struct{}{}:
		defer func() { <-s.waits }()
	default:
		return nil, status.Errorf(codes.Unavailable, "serve: %d requests wait for memory already; ask again later, or start the server with more memory for answers", cap(s.waits))
	}
	c.out = true
	<-s.calls
	if err := s.memory.Acquire(c.g.Context(), bytes); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	select {
	case s.calls <- struct{}{}:
		c.out = false
		return free, nil
	case <-c.g.Context().Done():
		free()
		return nil, status.FromContextError(c.g.Context().Err()).Err()
	}
}

func tooMany(what string, n, limit int64) error {
	return status.Errorf(codes.ResourceExhausted, "serve: a request has %d %s, over the server's limit of %d; ask for fewer nodes at once, or start the server with a larger limit", n, what, limit)
}

// guard refuses requests without the token, and those for another dataset.
func (s *Server) guard(to any, g grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := s.admit(g.Context(), info.FullMethod); err != nil {
		s.count.refused.Inc()
		return err
	}
	if name, ok := s.sharedMethod(info.FullMethod); ok {
		return s.watch(name, g, func(c *call) error {
			return s.safely(func() error { return next(to, &watched{ServerStream: g, c: c}) })
		})
	}
	return next(to, g)
}

// sharedMethod returns the name of a method of an added service.
func (s *Server) sharedMethod(path string) (name string, ok bool) {
	service, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name, s.shared[service]
}

// watched is the stream of a request to an added service.
type watched struct {
	grpc.ServerStream
	c *call
}

func (w *watched) SendMsg(m any) error {
	n := 0
	switch m := m.(type) {
	case *bulk.Frame:
		n = m.Out.Len() // before it is sent and freed
	case proto.Message:
		n = proto.Size(m)
	}
	err := w.c.wait(func() error { return w.ServerStream.SendMsg(m) })
	if err == nil {
		w.c.sent.Add(int64(n))
	}
	return err
}

func (w *watched) RecvMsg(m any) error {
	return w.c.wait(func() error { return w.ServerStream.RecvMsg(m) })
}

// guardUnary is guard for unary methods: those of the health service, and of added services.
func (s *Server) guardUnary(ctx context.Context, q any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (answer any, err error) {
	if err := s.admit(ctx, info.FullMethod); err != nil {
		s.count.refused.Inc()
		return nil, err
	}
	name, ok := s.sharedMethod(info.FullMethod)
	if !ok {
		return next(ctx, q)
	}
	start := time.Now()
	defer func() { s.count.done(name, status.Code(err), time.Since(start), 0) }()
	select {
	case s.calls <- struct{}{}:
		defer func() { <-s.calls }()
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	err = s.safely(func() (err error) {
		answer, err = next(ctx, q)
		return err
	})
	return answer, err
}

func (s *Server) admit(ctx context.Context, method string) error {
	if strings.HasPrefix(method, "/"+healthpb.Health_ServiceDesc.ServiceName+"/") {
		return nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	if s.o.Token != "" {
		given := strings.Join(md.Get(bulk.TokenKey), "")
		if given == "" {
			return status.Error(codes.Unauthenticated, "serve: the request has no token, and this server needs one; set GNB_TOKEN, or GNB_TOKEN_FILE, to the server's")
		}
		a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte("Bearer "+s.o.Token))
		if subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
			return status.Error(codes.Unauthenticated, "serve: the request's token is not this server's; set GNB_TOKEN, or GNB_TOKEN_FILE, to the server's")
		}
	}
	if want := strings.Join(md.Get(bulk.DatasetKey), ""); want != "" && want != s.data.digest {
		return status.Error(codes.FailedPrecondition, fmt.Sprintf("serve: the request is for the dataset %.12s, but this server has %s, %.12s; start it with the same data", want, s.data.ds.Name(), s.data.digest))
	}
	s.conns.proven(ctx)
	return nil
}
