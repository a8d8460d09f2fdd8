package serve_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/graphnb/graphnb/gnb/remote"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
)

const token = "a token of the server"

// strangers opens connections that speak gRPC, and answer pings, but have no token.
func strangers(t *testing.T, at string, n int) (all []*grpc.ClientConn) {
	t.Helper()
	for range n {
		c, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		c.Connect()
		all = append(all, c)
	}
	return all
}

// However many connections without a token there are, a trainer is served.
func TestStrangersKeepNoTrainerOut(t *testing.T) {
	const most = 50
	s := servetest.Start(t, dataset.Karate(), serve.Options{Token: token, Connections: most})
	for _, c := range strangers(t, s.Addr, most+30) {
		_, _ = healthpb.NewHealthClient(c).Check(t.Context(), &healthpb.HealthCheckRequest{}) // it needs no token
	}
	var clients []*remote.Client
	for range most / 2 {
		c, err := remote.Open(t.Context(), "grpc://"+s.Addr, remote.Options{Token: token, Timeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
	}
	strangers(t, s.Addr, most)
	for _, c := range clients {
		if err := c.Labels(t.Context(), []int32{1}, make([]byte, c.LabelBytes())); err != nil {
			t.Error(err)
		}
	}
}

// A connection keeps its place, also the last one, until another one needs it: as many trainers as there are places are
// served.
func TestLastPlace(t *testing.T) {
	const most = 2
	s := servetest.Start(t, dataset.Karate(), serve.Options{Token: token, Connections: most})
	waiting := strangers(t, s.Addr, most)
	for _, c := range waiting {
		if _, err := healthpb.NewHealthClient(c).Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range waiting {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		if c.WaitForStateChange(ctx, connectivity.Ready) {
			t.Errorf("connection %d of %d has ended, and no other one came", i, most)
		}
		stop()
	}
	for range most { // each takes the place of a stranger
		c, err := remote.Open(t.Context(), "grpc://"+s.Addr, remote.Options{Token: token, Timeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
}

// A connection without a request that the server answers ends, and one with a request stays.
func TestStrangersEnd(t *testing.T) {
	defer serve.SetProvenWithin(300 * time.Millisecond)()
	s := servetest.Start(t, dataset.Karate(), serve.Options{Token: token})
	silent, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c, err := remote.Open(t.Context(), "grpc://"+s.Addr, remote.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other, err := grpc.NewClient("passthrough:///"+s.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	w, err := healthpb.NewHealthClient(other).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for err == nil { // the request for health does not keep it
		_, err = w.Recv()
	}
	if ctx.Err() != nil {
		t.Error("a connection without a token is open after a minute")
	}
	_ = silent.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, silent); err != nil {
		t.Errorf("a silent connection has not ended: %v", err)
	}
	if err := c.Labels(t.Context(), []int32{1}, make([]byte, c.LabelBytes())); err != nil {
		t.Error(err)
	}
}
