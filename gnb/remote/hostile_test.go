package remote_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/gnb/remote"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
	"github.com/graphnb/graphnb/multigpu/cluster"
)

// between is a server that passes requests on to a real one, and answers as change says: hostile, damaged or slow.
func between(t *testing.T, s *servetest.Server, change func(method string, answer []byte, send func([]byte) error) error) string {
	t.Helper()
	conn := dial(t, s.Addr)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(grpc.ForceServerCodecV2(bulk.ServerCodec{}), grpc.UnknownServiceHandler(func(_ any, g grpc.ServerStream) error {
		path, _ := grpc.MethodFromServerStream(g)
		var in bulk.Frame
		if err := g.RecvMsg(&in); err != nil {
			return err
		}
		method := path[strings.LastIndexByte(path, '/')+1:]
		answer, err := ask(g.Context(), conn, method, in.Data)
		if err != nil {
			return err
		}
		return change(method, answer, func(b []byte) error {
			return g.SendMsg(&bulk.Frame{Out: mem.BufferSlice{mem.SliceBuffer(b)}})
		})
	}))
	ended := make(chan struct{})
	go func() {
		_ = g.Serve(l)
		close(ended)
	}()
	t.Cleanup(func() {
		g.Stop()
		<-ended
	})
	return "grpc://" + l.Addr().String()
}

// hello returns what a server says of itself, changed.
func hello(t *testing.T, answer []byte, change func(h *bulk.Hello)) []byte {
	t.Helper()
	var h bulk.Hello
	if err := json.Unmarshal(answer, &h); err != nil {
		t.Error(err)
	}
	change(&h)
	b, err := json.Marshal(h)
	if err != nil {
		t.Error(err)
	}
	return b
}

// A server that says of itself what cannot be is refused with a sentence, before anything is allocated for it.
func TestHostileHello(t *testing.T) {
	s := servetest.Start(t, graph(t), serve.Options{})
	for name, c := range map[string]struct {
		change func(h *bulk.Hello)
		want   string
	}{
		"row size that overflows":   {func(h *bulk.Hello) { h.RowBytes = math.MaxInt/8 + 1 }, "bytes of features"},
		"row size of other columns": {func(h *bulk.Hello) { h.RowBytes = 1 << 20 }, "features of a node"},
		"negative row size":         {func(h *bulk.Hello) { h.RowBytes = -4 }, "bytes of features"},
		"label size":                {func(h *bulk.Hello) { h.LabelBytes = 1 << 40 }, "of labels"},
		"nodes":                     {func(h *bulk.Hello) { h.Metadata.NumNodes = math.MaxInt }, "a graph of"},
		"negative nodes":            {func(h *bulk.Hello) { h.Metadata.NumNodes = -1 }, "a graph of"},
		"parts":                     {func(h *bulk.Hello) { h.Parts = 1 << 31 }, "parts of"},
		"parts of many nodes": {func(h *bulk.Hello) {
			h.Parts, h.Metadata.NumNodes, h.RowBytes, h.LabelBytes = 1<<30, math.MaxInt32, 0, 0
		}, "parts of"},
		"more events than edges": {func(h *bulk.Hello) {
			h.Metadata.NumEvents, h.Edges.Times, h.Arrays[bulk.EventsArray] = 1<<40, true, 8<<40
		}, "events of"},
		"events without a list": {func(h *bulk.Hello) { h.Metadata.NumEvents, h.Edges.Times = 2, true }, "2 events of"},
		"an array":              {func(h *bulk.Hello) { h.Arrays[bulk.IndptrArray] = math.MaxInt64 }, "an array"},
		"sparse rows":           {func(h *bulk.Hello) { h.Largest = math.MaxInt }, "sparse features"},
		"features of edges":     {func(h *bulk.Hello) { h.Edges.FeatureCols = math.MaxInt }, "features of each edge"},
		"a limit of 1":          {func(h *bulk.Hello) { h.Limits.Nodes, h.Metadata.NumNodes = 1, 1e6 }, "--max-nodes"},
		"no limit":              {func(h *bulk.Hello) { h.Limits.Edges = 0 }, "answers for no nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			address := between(t, s, func(method string, answer []byte, send func([]byte) error) error {
				if method == bulk.HelloMethod {
					answer = hello(t, answer, c.change)
				}
				return send(answer)
			})
			client, err := remote.Open(t.Context(), address, remote.Options{Timeout: 5 * time.Second})
			if err == nil {
				_ = client.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), strings.TrimPrefix(address, "grpc://")) {
				t.Errorf("the error is %v, want one with %q and the server", err, c.want)
			}
		})
	}
}

// An answer that does not end is cut off at the most that it can have.
func TestEndlessAnswer(t *testing.T) {
	s := servetest.Start(t, graph(t), serve.Options{})
	var sent atomic.Int64
	address := between(t, s, func(_ string, _ []byte, send func([]byte) error) error {
		for b := bytes.Repeat([]byte(" "), 1<<20); ; sent.Add(1 << 20) {
			if err := send(b); err != nil {
				return err
			}
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := remote.Open(t.Context(), address, remote.Options{}); err == nil || !strings.Contains(err.Error(), "says more than") {
		t.Errorf("the error is %v", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<30 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// An answer that comes drop by drop ends with a sentence that names the server, the request and the start.
func TestSlowAnswer(t *testing.T) {
	s := servetest.Start(t, graph(t), serve.Options{})
	address := between(t, s, func(method string, answer []byte, send func([]byte) error) error {
		if method == bulk.HelloMethod {
			return send(answer)
		}
		for _, b := range answer {
			if err := send([]byte{b}); err != nil {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	})
	c, err := remote.Open(t.Context(), address, remote.Options{Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Labels(t.Context(), []int32{1}, make([]byte, c.LabelBytes()))
	if err == nil || !strings.Contains(err.Error(), "too slow") || !strings.Contains(err.Error(), "since") || !strings.Contains(err.Error(), "the array parts") {
		t.Errorf("the error is %v", err)
	}
}

// Rows that no dataset has are refused where they come, with the node.
func TestHostileRows(t *testing.T) {
	for name, c := range map[string]struct {
		bytes  []byte
		labels bool
		want   string
	}{
		"NaN":         {binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN()))), false, "not finite"},
		"infinity":    {binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.Inf(-1)))), false, "not finite"},
		"a label":     {binary.LittleEndian.AppendUint32(nil, 1<<30), true, "the label 1073741824 of node 3"},
		"a low label": {binary.LittleEndian.AppendUint32(nil, math.MaxUint32-1), true, "the label -2 of node 3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := servetest.Start(t, graph(t), serve.Options{})
			address := between(t, s, func(method string, answer []byte, send func([]byte) error) error {
				if method == bulk.RowsMethod {
					copy(answer, c.bytes)
				}
				return send(answer)
			})
			client, err := remote.Open(t.Context(), address, remote.Options{Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if c.labels {
				err = client.Labels(t.Context(), []int32{3}, make([]byte, client.LabelBytes()))
			} else {
				err = client.Rows(t.Context(), []int32{3}, make([]byte, client.RowBytes()))
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "node 3") {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}

// Edges that no dataset has are refused where they come: features that are not finite, and types that do not exist.
func TestHostileEdges(t *testing.T) {
	plain := graph(t)
	x, halves := &graphops.EdgeFeatures{Cols: 3}, &graphops.EdgeFeatures{Cols: 3}
	x.F32, halves.F16 = make([]float32, 3*plain.Edges()), make([]uint16, 3*plain.Edges())
	of := graphops.NodeType{Name: "n", Count: plain.Nodes()}
	g, err := plain.Graph.WithTypes(&graphops.Schema{Nodes: []graphops.NodeType{of}, Relations: []graphops.Relation{{Src: "n", Name: "x", Dst: "n"}}}, make([]uint16, plain.Edges()))
	if err != nil {
		t.Fatal(err)
	}
	typed := plain.WithGraph(g)
	typed.Features, typed.NodeFeatures = nil, []dataset.NodeFeatures{{Dense: plain.Features}}
	for name, c := range map[string]struct {
		ds     *dataset.Dataset
		change func(d *graphops.EdgeData)
		want   string
	}{
		"NaN":      {withEdges(plain, x), func(d *graphops.EdgeData) { d.Features.F32[4] = float32(math.NaN()) }, "that are not finite (column 1)"},
		"infinity": {withEdges(plain, halves), func(d *graphops.EdgeData) { d.Features.F16[5] = 0xfc00 }, "that are not finite (column 2)"},
		"a type":   {typed, func(d *graphops.EdgeData) { d.Types[1] = 999 }, "an edge of type 999"},
	} {
		t.Run(name, func(t *testing.T) {
			s := servetest.Start(t, c.ds, serve.Options{})
			address := between(t, s, func(method string, answer []byte, send func([]byte) error) error {
				if method == bulk.SampleMethod {
					var r sample.HopReply
					if err := r.Decode(answer); err != nil {
						return err
					}
					c.change(&r.Edges)
					answer = r.Append(nil)
				}
				return send(answer)
			})
			client, err := remote.Open(t.Context(), address, remote.Options{Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			d, err := client.Division(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			sampler, err := sample.NewDivided(d, sample.Config{Picker: sample.Fanouts{5}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = sampler.Sample(0, 0, sample.Seeds{IDs: c.ds.Splits["train"][:20]})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), strings.TrimPrefix(address, "grpc://")) {
				t.Errorf("the error is %v, want one with %q and the server", err, c.want)
			}
		})
	}
}

// A list of events of edges that do not exist is refused, wherever it goes.
func TestHostileEvents(t *testing.T) {
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds := graph(t)
	times := make([]int64, ds.Edges())
	ds = ds.WithGraph(ds.Graph.WithEdgeData(nil, times))
	ds.Events = []int64{5, 3}
	ds.Describe()
	s := servetest.Start(t, ds, serve.Options{})
	address := between(t, s, func(method string, answer []byte, send func([]byte) error) error {
		if method == bulk.ArrayMethod && len(answer) == 16 {
			binary.LittleEndian.PutUint64(answer[8:], uint64(ds.Edges()))
		}
		return send(answer)
	})
	client, err := remote.Open(t.Context(), address, remote.Options{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, listed := client.Events(t.Context())
	_, all := client.Dataset(t.Context(), nil)
	_, topology := datasets.LoadWith(t.Context(), address+"?copy=topology", datasets.LoadOptions{})
	for _, err := range []error{listed, all, topology} {
		if want := fmt.Sprintf("event 1 is edge %d, but the edges are 0 to %d", ds.Edges(), ds.Edges()-1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// withEdges returns a dataset whose edges have features.
func withEdges(ds *dataset.Dataset, x *graphops.EdgeFeatures) *dataset.Dataset {
	other := *ds
	other.Graph = ds.Graph.WithEdgeData(x, nil)
	return &other
}

// A program says what it waits for before it gives up, and gives up at once where waiting cannot help.
func TestWaitingIsTold(t *testing.T) {
	defer remote.SetNoteAfter(200 * time.Millisecond)()
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never says anything
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	notes := make(chan string, 10)
	_, err = remote.Open(t.Context(), "grpc://"+l.Addr().String(), remote.Options{Timeout: time.Second, Notes: func(s string) { notes <- s }})
	if _, lost := errors.AsType[*cluster.Lost](err); !lost || len(notes) == 0 {
		t.Fatalf("%d notes, error %v; want one after which a launcher starts the run again", len(notes), err)
	}
	if s := <-notes; !strings.Contains(s, l.Addr().String()) || !strings.Contains(s, "what it serves") || !strings.Contains(s, "since") {
		t.Errorf("the program said %q", s)
	}
	if len(notes) != 0 {
		t.Errorf("it said %d more sentences within a minute", len(notes))
	}
}

func TestPermanentErrorsComeAtOnce(t *testing.T) {
	ssh, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ssh.Close()
	go func() {
		for {
			c, err := ssh.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.6\r\n"))
			go func() {
				time.Sleep(time.Second)
				_ = c.Close()
			}()
		}
	}()
	cert, _ := certificate(t)
	_, other := certificate(t)
	safe := servetest.Start(t, graph(t), serve.Options{Certificate: &cert})
	plain := servetest.Start(t, graph(t), serve.Options{})
	for name, c := range map[string]struct{ address, want string }{
		"an unknown authority":       {"grpcs://" + safe.Addr, "does not trust its certificate"},
		"another authority":          {"grpcs://" + safe.Addr + "?ca=" + other, "certificate"},
		"another service":            {"grpc://" + ssh.Addr().String(), "no graph server"},
		"another service, with TLS":  {"grpcs://" + ssh.Addr().String(), "does not speak TLS"},
		"a server without TLS":       {"grpcs://" + plain.Addr, "does not speak TLS"},
		"a server with TLS, without": {"grpc://" + safe.Addr, "begin the address with grpcs://"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			client, err := remote.Open(t.Context(), c.address, remote.Options{Timeout: time.Hour})
			if err == nil {
				_ = client.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			t.Log(time.Since(start))
		})
	}
}
