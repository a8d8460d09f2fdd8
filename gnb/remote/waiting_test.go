package remote_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/gnb/remote"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
)

// While a client that reads nothing has all memory for answers, requests that wait for memory keep none waiting that
// needs no such memory. Beyond as many as there are calls, they are refused in a way that clients repeat.
func TestWaitingForMemory(t *testing.T) {
	ds := graph(t)
	const calls = 2
	s := servetest.Start(t, ds, serve.Options{SlowAfter: time.Hour, Calls: calls, Memory: 4 << 20, Limits: serve.Limits{Nodes: 1 << 20}})
	q := sample.HopRequest{Purpose: sample.Training, Picker: sample.UniformPicker, Fanout: 2, Nodes: make([]int32, 1<<17)} // 9 MB
	large := q.Append(nil)
	begin := func(ctx context.Context) (grpc.ClientStream, error) {
		conn := dial(t, s.Addr, grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
		g, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, bulk.Path(bulk.SampleMethod))
		if err == nil {
			err = errors.Join(g.SendMsg(&bulk.Frame{Out: mem.BufferSlice{mem.SliceBuffer(large)}}), g.CloseSend())
		}
		return g, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	slow, end := context.WithCancel(ctx)
	g, err := begin(slow)
	if err == nil {
		err = g.RecvMsg(&bulk.Frame{}) // so it has the memory
	}
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan error, 2*calls)
	for range 2 * calls {
		go func() {
			b, err := ask(ctx, dial(t, s.Addr), bulk.SampleMethod, large)
			var r sample.HopReply
			if err == nil {
				err = r.Decode(b)
			}
			if err == nil && len(r.Counts) != len(q.Nodes) {
				err = errors.New("an answer for other nodes")
			}
			answers <- err
		}()
	}
	for range calls {
		if err := <-answers; status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "2 requests wait for memory already") {
			t.Errorf("one request too many: %v", err)
		}
	}
	check(t, open(t, remote.Options{Timeout: 30 * time.Second}, s), ds, 1)
	end() // the slow client's memory is free
	for range calls {
		if err := <-answers; err != nil {
			t.Errorf("a request that has waited: %v", err)
		}
	}
	eventually(t, func() bool { return strings.Contains(metricsOf(s), "gnb_serve_busy 0\n") })
}
