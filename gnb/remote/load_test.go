//go:build linux

package remote_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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
	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// loadProcess configures a process of the load tests: the server, or the process of all clients.
type loadProcess struct {
	Address string
	Hostile bool   // server only: small limits of time and memory
	Ready   string // server only: a file that it writes once it listens
	Clients int    // number of clients; 0 for the server
	Lasts   time.Duration
}

const loadVariable = "GNB_TEST_REMOTE_LOAD"

// underLoad makes clients request rows, labels and hops of all sizes from a server that is
// repeatedly killed and started again. server and clients return commands on the machines of the
// two. Every answer must be right, every request must be answered, and no goroutine may be left
// (each process's TestMain checks this, for the server after its last SIGTERM). It logs the output
// of the clients.
func underLoad(t *testing.T, server, clients func() *exec.Cmd, o loadProcess, away time.Duration) {
	t.Helper()
	with := func(cmd *exec.Cmd, o loadProcess, out *bytes.Buffer) *exec.Cmd {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if cmd.Env == nil {
			cmd.Env = os.Environ()
		}
		cmd.Env = append(cmd.Env, loadVariable+"="+string(text))
		cmd.Stdout, cmd.Stderr = out, out
		return cmd
	}
	var said bytes.Buffer
	var serving *exec.Cmd
	ready := ""
	begin := func() {
		t.Helper()
		said.Reset()
		ready = filepath.Join(t.TempDir(), "ready")
		serving = with(server(), loadProcess{Address: o.Address, Ready: ready}, &said)
		if err := serving.Start(); err != nil {
			t.Fatal(err)
		}
	}
	begin()
	defer func() { _ = serving.Process.Kill() }()
	var out bytes.Buffer
	asking := with(clients(), o, &out)
	if err := asking.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- asking.Wait() }()
	restarts, most := 0, int64(0)
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("the clients: %v\n%s", err, out.String())
			}
			running = false
		case <-time.After(away):
			most = max(most, pss(t, serving.Process.Pid))
			if err := serving.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = serving.Wait()
			time.Sleep(100 * time.Millisecond)
			begin()
			restarts++
		}
	}
	if restarts == 0 {
		t.Error("the server was never killed")
	}
	eventually(t, func() bool { // a signal before the server listens would end it at once
		_, err := os.Stat(ready)
		return err == nil
	})
	most = max(most, pss(t, serving.Process.Pid))
	if err := serving.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serving.Wait(); err != nil { // a leftover goroutine changes the exit status
		t.Errorf("the server: %v\n%s", err, said.String())
	}
	if limit := int64(512 << 20); most > limit {
		t.Errorf("the server had %d MiB of memory (Pss), more than %d", most>>20, limit>>20)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "load: ") {
			t.Logf("%s, %d kills, %d MiB (Pss) of the server at most", strings.TrimSpace(strings.TrimPrefix(line, "load: ")), restarts, most>>20)
		}
	}
}

// pss returns the memory of a process, with its share of shared pages.
func pss(t *testing.T, pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "Pss: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	t.Fatalf("no Pss in %s", b)
	return 0
}

// Fifty clients request all sizes from a server that is killed and started again: all answers are
// right, no request is lost, memory is bounded, and no goroutine is left. The test runs for three
// minutes with GNB_SOAK=1, otherwise briefly.
func TestManyClients(t *testing.T) {
	testneed.Raced(t, "many clients")
	here := func() *exec.Cmd { return exec.Command(os.Args[0], "-test.run=^TestLoadProcess$") }
	o, away := loadSize(freeAddress(t))
	underLoad(t, here, here, o, away)
}

// The same test over a network that loses packets.
func TestManyClientsOverLossyNetwork(t *testing.T) {
	testneed.Raced(t, "starts hosts")
	w := clustertest.HostsOver(t, 2, clustertest.Link{Delay: time.Millisecond, Loss: 0.01, Seed: 5})
	on := func(host int) func() *exec.Cmd {
		return func() *exec.Cmd { return w.Hosts[host].Command(os.Args[0], "-test.run=^TestLoadProcess$") }
	}
	o, away := loadSize(w.Hosts[0].Addr + ":7700")
	underLoad(t, on(0), on(1), o, away)
	if lost := w.Traffic().Lost; lost == 0 {
		t.Error("the network lost no packet")
	} else {
		t.Logf("the network lost %d packets of %d", lost, w.Traffic().Delivered+lost)
	}
}

// Clients that request the largest answers and read none of them, and clients that send messages
// that are too large, do not make the server's memory exceed its bound. Meanwhile the server
// answers a well-behaved client.
func TestHostileMemory(t *testing.T) {
	testneed.Raced(t, "many large answers")
	addr := freeAddress(t)
	text, err := json.Marshal(loadProcess{Address: addr, Hostile: true})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	server := exec.Command(os.Args[0], "-test.run=^TestLoadProcess$")
	server.Env, server.Stdout, server.Stderr = append(os.Environ(), loadVariable+"="+string(text)), &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill() }()
	good, err := remote.Open(t.Context(), "grpc://"+addr, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	ds := graph(t)
	all := make([]int32, 1<<18) // the edges of these nodes nearly fill the limit of an answer
	for i := range all {
		all[i] = int32(i % ds.Nodes())
	}
	edges := sample.HopRequest{Purpose: sample.Training, Picker: sample.UniformPicker, Fanout: -1, Nodes: all}
	large := edges
	large.Nodes = make([]int32, 2<<20)
	rows := bulk.RowsRequest{What: bulk.Features, Nodes: all}
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 10 {
		conn := dial(t, addr, grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10), grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(64<<20), grpc.CallContentSubtype(bulk.Subtype)))
		for range 2 {
			for method, body := range map[string][]byte{bulk.SampleMethod: edges.Append(nil), bulk.RowsMethod: rows.Append(nil)} {
				asking.Go(func() {
					g, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, bulk.Path(method))
					if err == nil && g.SendMsg(&bulk.Frame{Out: mem.BufferSlice{mem.SliceBuffer(body)}}) == nil {
						_ = g.CloseSend()
						<-ctx.Done() // reads no answer until the test ends
					}
				})
			}
		}
		asking.Go(func() {
			if _, err := ask(ctx, conn, bulk.SampleMethod, large.Append(nil)); status.Code(err) != codes.ResourceExhausted && ctx.Err() == nil {
				t.Errorf("a message of 8 MiB gave %v", err)
			}
		})
	}
	most := int64(0)
	for range 20 {
		check(t, good, ds, 1)
		most = max(most, pss(t, server.Process.Pid))
		time.Sleep(50 * time.Millisecond)
	}
	cancel()
	asking.Wait()
	if limit := int64(384 << 20); most > limit && !testneed.UnderRace() { // the race detector takes several times as much
		t.Errorf("the server had %d MiB of memory (Pss), more than %d", most>>20, limit>>20)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server: %v\n%s", err, said.String())
	}
	t.Logf("%d MiB (Pss) of the server at most", most>>20)
}

// freeAddress returns an address of this machine at which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func loadSize(addr string) (o loadProcess, away time.Duration) {
	o, away = loadProcess{Address: addr, Clients: 50, Lasts: 5 * time.Second}, 1500*time.Millisecond
	if testneed.Soak.Here() {
		o.Lasts, away = 3*time.Minute, 10*time.Second
	}
	return o, away
}

// TestLoadProcess is the process that the tests above start; run alone it does nothing.
func TestLoadProcess(t *testing.T) {
	text := os.Getenv(loadVariable)
	if text == "" {
		return
	}
	var o loadProcess
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	ds := graph(t)
	if o.Clients == 0 {
		ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
		defer stop()
		options := serve.Options{Calls: 16, Insecure: true}
		if o.Hostile {
			options = serve.Options{Memory: 64 << 20, SlowAfter: 20 * time.Second}
		}
		s, err := serve.New(ctx, ds, options)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", o.Address)
		if err != nil {
			t.Fatal(err)
		}
		if o.Ready != "" {
			if err := os.WriteFile(o.Ready, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Serve(ctx, l); err != nil {
			t.Fatal(err)
		}
		return
	}
	whole, err := sample.New(ds.Graph, loadSampling)
	if err != nil {
		t.Fatal(err)
	}
	var wholeMu sync.Mutex
	right := func(step int, seeds []int32, got *sample.Batch) bool {
		wholeMu.Lock()
		defer wholeMu.Unlock()
		want, err := whole.Sample(1, step, sample.Seeds{IDs: seeds})
		if err != nil {
			t.Error(err)
			return false
		}
		defer want.Release()
		a, b := sample.NewDigest(), sample.NewDigest()
		a.AddBatch(got)
		b.AddBatch(want)
		return a.Sum() == b.Sum()
	}
	var rows, hops, bytesOf atomic.Int64
	end := time.Now().Add(o.Lasts)
	var all sync.WaitGroup
	for i := range o.Clients {
		all.Go(func() {
			if err := ask1(t, o, i, end, right, &rows, &hops, &bytesOf); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	mine := pss(t, os.Getpid())
	if limit := int64(1 << 30); mine > limit {
		t.Errorf("the clients have %d MiB of memory (Pss), more than %d", mine>>20, limit>>20)
	}
	fmt.Printf("load: %d clients had %d answers of rows and %d batches, %d MiB, all right; %d MiB (Pss) of the clients\n", o.Clients, rows.Load(), hops.Load(), bytesOf.Load()>>20, mine>>20)
}

var loadSampling = sample.Config{Picker: sample.Fanouts{6, 4}, Seed: 8}

// ask1 is one client that sends requests until end.
func ask1(t *testing.T, o loadProcess, i int, end time.Time, right func(int, []int32, *sample.Batch) bool, rows, hops, size *atomic.Int64) error {
	c, err := remote.Open(t.Context(), "grpc://"+o.Address, remote.Options{Insecure: true})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d, err := c.Division(ctx)
	if err != nil {
		return err
	}
	s, err := sample.NewDivided(d, loadSampling)
	if err != nil {
		return err
	}
	ds := graph(t)
	r := mathrand.New(mathrand.NewPCG(uint64(i), 7))
	for first := true; (first || time.Now().Before(end)) && !t.Failed(); first = false {
		nodes := make([]int32, 1+r.IntN(1<<r.IntN(12)))
		for j := range nodes {
			nodes[j] = int32(r.IntN(ds.Nodes()))
		}
		y, x := make([]byte, 4*len(nodes)), make([]byte, len(nodes)*c.RowBytes())
		if err := cmp.Or(c.Labels(ctx, nodes, y), c.Rows(ctx, nodes, x)); err != nil {
			return err
		}
		for j, v := range nodes {
			for k, f := range ds.Features.Row(int(v)) {
				if binary.LittleEndian.Uint32(x[j*c.RowBytes()+4*k:]) != math.Float32bits(f) {
					return fmt.Errorf("node %d has another row", v)
				}
			}
			if int32(binary.LittleEndian.Uint32(y[4*j:])) != ds.Labels[v] {
				return fmt.Errorf("node %d has another label", v)
			}
		}
		rows.Add(2)
		step := r.IntN(1000)
		seeds := sample.EpochOrder(uint64(i), step, ds.Splits["train"])[:1+r.IntN(300)]
		b, err := s.Sample(1, step, sample.Seeds{IDs: seeds})
		if err != nil {
			return err
		}
		if !right(step, seeds, b) {
			return fmt.Errorf("client %d, step %d: another batch", i, step)
		}
		b.Release()
		hops.Add(1)
		size.Add(int64(len(x) + len(y)))
	}
	return nil
}
