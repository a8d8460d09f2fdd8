package remote_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/gnb/remote"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
	"github.com/graphnb/graphnb/internal/testneed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// graph is a small dataset with edge weights.
func graph(t testing.TB) *dataset.Dataset {
	t.Helper()
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 2000, Features: 12, Classes: 5, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	w := make([]float32, len(ds.Graph.Indices))
	for i := range w {
		w[i] = float32(i%7+1) / 4
	}
	ds.Graph = ds.Graph.WithEdgeWeights(w)
	return ds
}

func open(t testing.TB, o remote.Options, servers ...*servetest.Server) *remote.Client {
	t.Helper()
	var at []string
	for _, s := range servers {
		at = append(at, s.Addr)
	}
	c, err := remote.Open(t.Context(), "grpc://"+strings.Join(at, ","), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A program that imports this package loads a server's dataset, which is bit for bit the dataset of
// the server.
func TestLoad(t *testing.T) {
	for name, ds := range map[string]*dataset.Dataset{"weighted": graph(t), "half": half(t), "several labels": multi(t), "sparse": sparse(t, false), "ones": sparse(t, true)} {
		s := servetest.Start(t, ds, serve.Options{Limits: serve.Limits{Nodes: 700, Bytes: 20000}})
		got, err := datasets.Load("grpc://" + s.Addr + "?copy=all")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a, err := got.Digests(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := ds.Digests(t.Context(), nil); err != nil || a != b {
			t.Errorf("%s: the loaded dataset has the digests %+v, want %+v (%v)", name, a, b, err)
		}
	}
}

// A server leaves out edges of weight 0, which nothing samples: what trainers get is the dataset without them.
func TestZeroWeights(t *testing.T) {
	ds := graph(t)
	w := slices.Clone(ds.Graph.EdgeWeights)
	for i := range w {
		if i%3 == 0 {
			w[i] = 0
		}
	}
	ds.Graph = ds.Graph.WithEdgeWeights(w)
	rest, zeros, err := ds.WithoutZeroWeights()
	if err != nil || zeros == 0 {
		t.Fatal(zeros, err)
	}
	want, err := rest.Digests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := datasets.Load("grpc://" + servetest.Start(t, ds, serve.Options{}).Addr + "?copy=all")
	if err != nil {
		t.Fatal(err)
	}
	if a, err := got.Digests(t.Context(), nil); err != nil || a != want {
		t.Errorf("the copy has the digests %+v, want %+v (%v)", a, want, err)
	}
}

func half(t testing.TB) *dataset.Dataset {
	ds := graph(t)
	x := &dataset.Matrix{Rows: ds.Nodes(), Cols: 3, F16: make([]uint16, 3*ds.Nodes())}
	for i := range x.F16 {
		x.F16[i] = uint16(i % 30000)
	}
	ds.Features = x
	return ds
}

func sparse(t testing.TB, ones bool) *dataset.Dataset {
	ds := graph(t)
	s := &dataset.Sparse{Rows: ds.Nodes(), Cols: 40, Indptr: []int64{0}, Values: []float32{}}
	for v := range ds.Nodes() {
		for c := v % 7; v%5 > 0 && c < 40; c += 1 + v%13 {
			s.Indices, s.Values = append(s.Indices, int32(c)), append(s.Values, float32(c+v%3)/8)
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	if ones {
		s.Values = nil
	}
	ds.Features, ds.SparseFeatures = nil, s
	return ds
}

func multi(t testing.TB) *dataset.Dataset {
	ds := graph(t)
	ds.Labels, ds.Meta.NumClasses, ds.Meta.MultiLabel = nil, 3, true
	ds.MultiLabels = &dataset.Multi{Rows: ds.Nodes(), Cols: 3, Data: make([]int8, 3*ds.Nodes())}
	for i := range ds.MultiLabels.Data {
		ds.MultiLabels.Data[i] = int8(i%3 - 1)
	}
	return ds
}

// check compares rows, labels and batches from servers with those of the dataset.
func check(t testing.TB, c *remote.Client, ds *dataset.Dataset, rounds int) {
	t.Helper()
	d, err := c.Division(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []sample.Picker{sample.Fanouts{5, -1, 3}, sample.Weighted{Fanouts: sample.Fanouts{4, 3}}, sample.Labor{Fanouts: sample.Fanouts{4, 3}, BatchDependency: 5, Poisson: true}} {
		config := sample.Config{Picker: p, Seed: 11, Transpose: true}
		s, err := sample.NewDivided(d, config)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := sample.New(ds.Graph, config)
		if err != nil {
			t.Fatal(err)
		}
		got, want := sample.NewDigest(), sample.NewDigest()
		for step := range rounds {
			seeds := sample.EpochOrder(uint64(step), 0, ds.Splits["train"])[:50]
			a, err := s.Sample(2, step, sample.Seeds{IDs: seeds})
			if err != nil {
				t.Fatal(err)
			}
			b, err := whole.Sample(2, step, sample.Seeds{IDs: seeds})
			if err != nil {
				t.Fatal(err)
			}
			got.AddBatch(a)
			want.AddBatch(b)
			ids := a.InputIDs()
			x, y := make([]byte, len(ids)*c.RowBytes()), make([]byte, len(seeds)*c.LabelBytes())
			if err := errors.Join(c.Rows(t.Context(), ids, x), c.Labels(t.Context(), seeds, y)); err != nil {
				t.Fatal(err)
			}
			for i, v := range ids {
				var row []byte
				for _, f := range ds.Features.Row(int(v)) {
					row, _ = binary.Append(row, binary.LittleEndian, f)
				}
				if n := c.RowBytes(); !bytes.Equal(x[i*n:(i+1)*n], row) {
					t.Fatalf("node %d has a different row", v)
				}
			}
			for i, v := range seeds {
				if l := int32(binary.LittleEndian.Uint32(y[4*i:])); l != ds.Labels[v] {
					t.Fatalf("node %d has label %d, want %d", v, l, ds.Labels[v])
				}
			}
			for v := range int32(ds.Nodes()) {
				if d.Degrees.LoopedDegree(v) != ds.Graph.LoopedDegree(v) || d.Degrees.InDegree(v) != ds.Graph.InDegree(v) {
					t.Fatalf("node %d has a different degree", v)
				}
			}
		}
		if got.Sum() != want.Sum() {
			t.Fatalf("%T: another digest", p)
		}
	}
}

// A server's rows, labels and batches are those of the dataset, even if its limits require many
// requests.
func TestAnswers(t *testing.T) {
	ds := graph(t)
	for name, o := range map[string]serve.Options{"": {}, "small limits": {Limits: serve.Limits{Nodes: 100, Edges: 400, Bytes: 3000}, Calls: 2, Threads: 1}} {
		t.Run(name, func(t *testing.T) {
			s := servetest.Start(t, ds, o)
			check(t, open(t, remote.Options{}, s), ds, 3)
			w := httptest.NewRecorder()
			s.Serving.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			if text := w.Body.String(); !strings.Contains(text, `gnb_serve_requests_total{method="Sample",status="OK"}`) || !strings.Contains(text, "gnb_serve_panics_total 0\n") {
				t.Errorf("metrics:\n%s", text)
			}
		})
	}
}

// A server that ends and starts again causes a delay and no loss of data. With a second server
// there is no delay.
func TestServerComesBack(t *testing.T) {
	testneed.Raced(t, "it waits for a server")
	ds := graph(t)
	s := servetest.Start(t, ds, serve.Options{Drain: time.Nanosecond})
	c := open(t, remote.Options{}, s)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for range 4 {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			s.Stop()
			time.Sleep(50 * time.Millisecond)
			s.Start()
		}
	}()
	start := time.Now()
	for time.Since(start) < 1200*time.Millisecond {
		check(t, c, ds, 2)
	}
	close(stop)
	<-done
	other := startAnother(t, ds)
	both := open(t, remote.Options{Timeout: 20 * time.Second}, s, other)
	check(t, both, ds, 1)
	s.Stop()
	check(t, both, ds, 1)
}

func startAnother(t testing.TB, ds *dataset.Dataset) *servetest.Server {
	return servetest.Start(t, ds, serve.Options{})
}

// Servers with different parts answer as one server with the whole dataset. A part that several
// servers have stays available when one of them ends.
func TestParts(t *testing.T) {
	ds := graph(t)
	bare := dividedtest.Parts(t, ds, divided.Options{NoTopology: true})
	a, b := servetest.Start(t, bare, serve.Options{Parts: []int{0, 1}}), servetest.Start(t, bare, serve.Options{Parts: []int{2, 3}})
	c := open(t, remote.Options{}, a, b)
	check(t, c, ds, 2)
	if _, err := c.Dataset(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "without its topology") {
		t.Error(err)
	}
	if _, err := remote.Open(t.Context(), "grpc://"+a.Addr, remote.Options{}); err == nil || !strings.Contains(err.Error(), "no server of this address has part 2") {
		t.Error(err)
	}
	q := bulk.RowsRequest{What: bulk.Labels, Nodes: []int32{ownedBy(2)}}
	if _, err := ask(t.Context(), dial(t, a.Addr), bulk.RowsMethod, q.Append(nil)); status.Code(err) != codes.OutOfRange || !strings.Contains(err.Error(), "this server has the parts [0 1]") {
		t.Error(err)
	}
	whole := dividedtest.Parts(t, ds, divided.Options{})
	d, e := servetest.Start(t, whole, serve.Options{Parts: []int{0, 1, 2}}), servetest.Start(t, whole, serve.Options{Parts: []int{0, 2, 3}})
	three := open(t, remote.Options{Timeout: 20 * time.Second}, d, e, a)
	check(t, three, ds, 1)
	got, err := datasets.Load("grpc://" + d.Addr + "," + e.Addr + "?copy=all")
	if err != nil {
		t.Fatal(err)
	}
	x, err := got.Digests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if y, err := ds.Digests(t.Context(), nil); err != nil || x != y {
		t.Errorf("the loaded dataset has the digests %+v, want %+v (%v)", x, y, err)
	}
	d.Stop() // now e has parts 0 and 2, and a has part 1
	check(t, three, ds, 1)
	for _, c := range []struct {
		ds    *dataset.Dataset
		parts []int
		want  string
	}{{ds, []int{0}, "is not divided"}, {bare, []int{4}, "no part 4"}, {bare, []int{}, "no part of"}} {
		if _, err := serve.New(t.Context(), c.ds, serve.Options{Parts: c.parts}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// ownedBy returns a node of a part.
func ownedBy(part int) int32 {
	for v := int32(0); ; v++ {
		if sample.Owner(v, 4) == part {
			return v
		}
	}
}

// When a server is told to end, it answers the requests in progress and then stops.
func TestDrain(t *testing.T) {
	ds := graph(t)
	s := servetest.Start(t, ds, serve.Options{})
	conn := dial(t, s.Addr)
	g, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, bulk.Path(bulk.HelloMethod))
	if err != nil {
		t.Fatal(err)
	}
	// The server has received the request once it counts it as busy.
	eventually(t, func() bool { return strings.Contains(metricsOf(s), "gnb_serve_busy 1\n") })
	ended := make(chan struct{})
	go func() { s.Stop(); close(ended) }()
	eventually(t, func() bool {
		_, err := net.DialTimeout("tcp", s.Addr, time.Second)
		return err != nil
	})
	if err := errors.Join(g.SendMsg(&bulk.Frame{}), g.CloseSend()); err != nil {
		t.Fatal(err)
	}
	var in bulk.Frame
	if err := g.RecvMsg(&in); err != nil || !bytes.Contains(in.Data, []byte(`"protocol":4`)) {
		t.Errorf("a draining server answered %q, %v", in.Data, err)
	}
	<-ended
}

func metricsOf(s *servetest.Server) string {
	w := httptest.NewRecorder()
	s.Serving.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func eventually(t testing.TB, f func() bool) {
	t.Helper()
	for start := time.Now(); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatal("the condition was not met within 20 s")
		}
	}
}

func dial(t testing.TB, addr string, o ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	o = append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.CallContentSubtype(bulk.Subtype))}, o...)
	conn, err := grpc.NewClient("passthrough:///"+addr, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask sends one request as a user's own client would and returns the whole answer.
func ask(ctx context.Context, conn *grpc.ClientConn, method string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, bulk.Path(method))
	if err != nil {
		return nil, err
	}
	if err := g.SendMsg(&bulk.Frame{Out: mem.BufferSlice{mem.SliceBuffer(body)}}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := g.CloseSend(); err != nil {
		return nil, err
	}
	var all []byte
	for {
		var in bulk.Frame
		switch err := g.RecvMsg(&in); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		}
		all = append(all, in.Data...)
	}
}

// Each hostile request gets a status that names the mistake, and the server answers the next
// request.
func TestHostileRequests(t *testing.T) {
	ds := graph(t)
	s := servetest.Start(t, ds, serve.Options{Limits: serve.Limits{Nodes: 50, Edges: 300, Bytes: 1000}})
	conn := dial(t, s.Addr)
	hop := func(f func(q *sample.HopRequest)) []byte {
		q := sample.HopRequest{Purpose: sample.Training, Picker: sample.UniformPicker, Fanout: 2, Nodes: []int32{1, 2, 3}}
		f(&q)
		return q.Append(nil)
	}
	rows := func(what bulk.What, nodes ...int32) []byte {
		return (&bulk.RowsRequest{What: what, Nodes: nodes}).Append(nil)
	}
	many := make([]int32, 51)
	cut := rows(bulk.Features, 1, 2)
	lying := slices.Clone(cut)
	binary.LittleEndian.PutUint32(lying[8:], 1<<31)
	for name, c := range map[string]struct {
		method string
		body   []byte
		code   codes.Code
		want   string
	}{
		"a row beyond":      {bulk.RowsMethod, rows(bulk.Features, 2000), codes.OutOfRange, "node 2000"},
		"a negative row":    {bulk.RowsMethod, rows(bulk.Labels, -1), codes.OutOfRange, "node -1"},
		"many rows":         {bulk.RowsMethod, rows(bulk.Labels, many...), codes.ResourceExhausted, "51 nodes, over the server's limit of 50"},
		"many bytes":        {bulk.RowsMethod, rows(bulk.Features, many[:40]...), codes.ResourceExhausted, "1920 bytes of rows, over the server's limit of 1000"},
		"no kind":           {bulk.RowsMethod, rows(7, 1), codes.InvalidArgument, "rows of kind 7"},
		"cut short":         {bulk.RowsMethod, cut[:len(cut)-1], codes.InvalidArgument, "not what its 19 bytes hold"},
		"a false length":    {bulk.RowsMethod, lying, codes.InvalidArgument, "announces 2147483648 nodes"},
		"nothing":           {bulk.SampleMethod, nil, codes.InvalidArgument, "no request for a hop"},
		"noise":             {bulk.SampleMethod, bytes.Repeat([]byte{0xFF}, 200), codes.InvalidArgument, "no request for a hop"},
		"a node beyond":     {bulk.SampleMethod, hop(func(q *sample.HopRequest) { q.Nodes = []int32{5, 1 << 30} }), codes.OutOfRange, "node 1073741824"},
		"a fanout":          {bulk.SampleMethod, hop(func(q *sample.HopRequest) { q.Fanout = 1 << 30 }), codes.InvalidArgument, "fanout 1073741824"},
		"a hop":             {bulk.SampleMethod, hop(func(q *sample.HopRequest) { q.Hop = 300 }), codes.InvalidArgument, "hop 300"},
		"many edges":        {bulk.SampleMethod, hop(func(q *sample.HopRequest) { q.Fanout, q.Nodes = -1, ds.Splits["train"][:50] }), codes.ResourceExhausted, "edges of an answer, over the server's limit of 300"},
		"many nodes":        {bulk.SampleMethod, hop(func(q *sample.HopRequest) { q.Nodes = many }), codes.ResourceExhausted, "51 nodes"},
		"a picker":          {bulk.SampleMethod, hop(func(q *sample.HopRequest) { q.Picker = "main.Mine" }), codes.InvalidArgument, "the picker main.Mine, which is not here"},
		"a huge message":    {bulk.SampleMethod, make([]byte, 10<<20), codes.ResourceExhausted, "received message larger than max"},
		"no array":          {bulk.ArrayMethod, []byte("../../etc/passwd"), codes.NotFound, "no array"},
		"no method":         {"Delete", nil, codes.Unimplemented, "unknown method"},
		"another service's": {"../grpc.health.v1.Health/Check", nil, codes.Unimplemented, ""},
	} {
		_, err := ask(t.Context(), conn, c.method, c.body)
		if status.Code(err) != c.code || !strings.Contains(status.Convert(err).Message(), c.want) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.code, c.want)
		}
	}
	if _, err := ask(metadata.AppendToOutgoingContext(t.Context(), bulk.DatasetKey, "another"), conn, bulk.HelloMethod, nil); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a request for another dataset gave %v", err)
	}
	if b, err := ask(t.Context(), conn, bulk.RowsMethod, rows(bulk.Labels, 7)); err != nil || int32(binary.LittleEndian.Uint32(b)) != ds.Labels[7] {
		t.Errorf("a valid request after the hostile ones gave %v, %v", b, err)
	}
	if text := metricsOf(s); !strings.Contains(text, "gnb_serve_panics_total 0\n") {
		t.Errorf("metrics:\n%s", text)
	}
}

// The request of a client that reads no data ends with an error, while other clients get answers.
func TestSlowReader(t *testing.T) {
	ds := graph(t)
	s := servetest.Start(t, ds, serve.Options{SlowAfter: 300 * time.Millisecond, Calls: 2, Limits: serve.Limits{Nodes: 1 << 20, Bytes: 64 << 20}})
	conn := dial(t, s.Addr, grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, bulk.Path(bulk.RowsMethod))
	if err != nil {
		t.Fatal(err)
	}
	q := bulk.RowsRequest{Nodes: make([]int32, 1<<19)} // 24 MiB of rows
	if err := errors.Join(g.SendMsg(&bulk.Frame{Out: mem.BufferSlice{mem.SliceBuffer(q.Append(nil))}}), g.CloseSend()); err != nil {
		t.Fatal(err)
	}
	check(t, open(t, remote.Options{}, s), ds, 1)
	eventually(t, func() bool {
		return strings.Contains(metricsOf(s), `gnb_serve_requests_total{method="Rows",status="DeadlineExceeded"} 1`)
	})
	for err == nil {
		err = g.RecvMsg(&bulk.Frame{})
	}
	if status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "the limit for slow clients") {
		t.Errorf("the slow reader got %v", err)
	}
	eventually(t, func() bool { return strings.Contains(metricsOf(s), "gnb_serve_busy 0\n") })
}

// If a file is truncated while it is served, requests for it fail and the server continues.
func TestTruncatedFile(t *testing.T) {
	if !mapped.ReadOnly {
		t.Skip("files are read into memory here")
	}
	dir := filepath.Join(t.TempDir(), "graph")
	if err := dataset.Write(dir, graph(t)); err != nil {
		t.Fatal(err)
	}
	ds, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	s := servetest.Start(t, ds, serve.Options{})
	if err := os.Truncate(filepath.Join(dir, "indices.npy"), 0); err != nil {
		t.Fatal(err)
	}
	conn := dial(t, s.Addr)
	if _, err := ask(t.Context(), conn, bulk.ArrayMethod, []byte(bulk.IndicesArray)); status.Code(err) != codes.DataLoss || !strings.Contains(err.Error(), "indices.npy") {
		t.Errorf("requesting the truncated array gave %v", err)
	}
	if b, err := ask(t.Context(), conn, bulk.ArrayMethod, []byte(bulk.InDegreesArray)); err != nil || len(b) != 4*ds.Nodes() {
		t.Errorf("requesting another array gave %d bytes, %v", len(b), err)
	}
}

// Requests for health need no token; reflection and data need one. Connections from other machines
// need TLS.
func TestSecurity(t *testing.T) {
	ds := graph(t)
	const token = "a secret of 16 or more"
	cert, ca := certificate(t)
	s := servetest.Start(t, ds, serve.Options{Token: token, Certificate: &cert})
	safe := "grpcs://" + s.Addr + "?ca=" + ca
	c, err := remote.Open(t.Context(), safe, remote.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	check(t, c, ds, 1)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for name, f := range map[string]struct {
		address string
		o       remote.Options
		want    string
	}{
		"no token":      {safe, remote.Options{}, "has no token"},
		"a wrong token": {safe, remote.Options{Token: "another secret of 16"}, "token is not this server's"},
		"plain text":    {"grpc://" + s.Addr, remote.Options{Token: token}, "speaks TLS; begin the address with grpcs://"},
		"no trust":      {"grpcs://" + s.Addr, remote.Options{Token: token}, "certificate"},
		"beyond":        {"grpc://192.0.2.1:7700", remote.Options{}, "use grpcs://"},
		"no port":       {"grpc://localhost", remote.Options{}, "not HOST:PORT"},
		"twice":         {"grpc://localhost:1,localhost:1", remote.Options{}, "twice"},
		"an option":     {"grpc://localhost:1?x=1", remote.Options{}, "unknown option x"},
		"a scheme":      {"http://localhost:1", remote.Options{}, "does not begin with"},
		"no file":       {"grpcs://localhost:1?ca=/nowhere", remote.Options{}, "reading the certificate"},
	} {
		f.o.Timeout = 300 * time.Millisecond
		c, err := remote.Open(t.Context(), f.address, f.o)
		if err == nil {
			_ = c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: %v, want %q", name, err, f.want)
		}
	}
	plain := servetest.Start(t, ds, serve.Options{Token: token})
	conn := dial(t, plain.Addr)
	if h, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.CallContentSubtype("proto")); err != nil || h.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", h, err)
	}
	for ctx, want := range map[context.Context]codes.Code{
		t.Context(): codes.Unauthenticated,
		metadata.AppendToOutgoingContext(t.Context(), bulk.TokenKey, "Bearer "+token): codes.OK,
	} {
		g, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx, grpc.CallContentSubtype("proto"))
		if err != nil {
			t.Fatal(err)
		}
		_ = g.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
		r, err := g.Recv()
		if status.Code(err) != want || err == nil && !strings.Contains(fmt.Sprint(r), bulk.Service) {
			t.Errorf("reflection: %v, %v, want %v", r, err, want)
		}
		_ = g.CloseSend()
	}
	for name, o := range map[string]serve.Options{"a certificate and a token": {}, "a certificate": {Token: token}, "a token": {Certificate: &cert}} {
		s, err := serve.New(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(t.Context(), l); err == nil || !strings.Contains(err.Error(), "give it "+name+",") {
			t.Errorf("starting a server for all machines without %s gave %v", name, err)
		}
	}
}

// certificate creates a certificate for 127.0.0.1 and a file with which clients can trust it.
func certificate(t testing.TB) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, x, x, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca
}

// The errors of a server that does not come back, of servers with different data, and of requests
// that a server refuses say what to do.
func TestErrors(t *testing.T) {
	ds := graph(t)
	s := servetest.Start(t, ds, serve.Options{})
	c := open(t, remote.Options{Timeout: 400 * time.Millisecond}, s)
	row := make([]byte, c.RowBytes())
	if err := c.Rows(t.Context(), []int32{2000}, row); err == nil || !strings.Contains(err.Error(), "node 2000 does not exist") {
		t.Error(err)
	}
	if err := c.Rows(t.Context(), []int32{1, 2}, row); err == nil || !strings.Contains(err.Error(), "there is room for 48") {
		t.Error(err)
	}
	d, err := c.Division(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mine, err := sample.NewDivided(d, sample.Config{Picker: everyOther{}, Hops: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mine.Sample(0, 0, sample.Seeds{IDs: []int32{1}}); err == nil || !strings.Contains(err.Error(), "refused the request for the edges of 1 nodes at hop 0") || !strings.Contains(err.Error(), "everyOther, which is not here") {
		t.Error(err)
	}
	s.Stop()
	if err := c.Rows(t.Context(), []int32{1}, row); err == nil || !strings.Contains(err.Error(), s.Addr+" has not answered the request for the features of 1 nodes for") || !strings.Contains(err.Error(), "start it again") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := open2(t, s).Rows(ctx, []int32{1}, row); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request with a cancelled context gave %v", err)
	}
	other := graph(t)
	other.Labels[0]++
	a, b := servetest.Start(t, ds, serve.Options{}), servetest.Start(t, other, serve.Options{})
	if _, err := remote.Open(t.Context(), "grpc://"+a.Addr+","+b.Addr, remote.Options{}); err == nil || !strings.Contains(err.Error(), "must have the same dataset") {
		t.Error(err)
	}
	split := graph(t)
	split.EdgeSplits = map[string][]int64{"test": {0}}
	if _, err := serve.New(t.Context(), split, serve.Options{}); err == nil || !strings.Contains(err.Error(), "has splits of edges, which servers do not send yet") {
		t.Error(err)
	}
	timed := graph(t)
	timed.NodeTimes = make([]int64, timed.Nodes())
	if _, err := serve.New(t.Context(), timed, serve.Options{}); err == nil || !strings.Contains(err.Error(), "has times of nodes, which servers do not send yet") {
		t.Error(err)
	}
	// A server that is started again with other data is detected.
	c = open(t, remote.Options{}, a)
	if err := c.Rows(t.Context(), []int32{1}, row); err != nil {
		t.Error(err)
	}
	a.Stop()
	a.Dataset = other
	a.Start()
	if err := c.Rows(t.Context(), []int32{1}, row); err == nil || !strings.Contains(err.Error(), "start it with the same data") {
		t.Error(err)
	}
}

// open2 returns a client that connected to its server before the server ended for good.
func open2(t testing.TB, s *servetest.Server) *remote.Client {
	t.Helper()
	s.Start()
	c := open(t, remote.Options{}, s)
	row := make([]byte, c.RowBytes())
	if err := c.Rows(t.Context(), []int32{1}, row); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	return c
}

type everyOther struct{}

func (everyOther) Pick(_ *sample.Hop, _ int32, nbrs, out []int32) []int32 {
	for i := 0; i < len(nbrs); i += 2 {
		out = append(out, int32(i))
	}
	return out
}
