//go:build linux

package plane

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// hostRank configures a rank of a test over hosts. The rank runs in its own process.
type hostRank struct {
	Rank    int
	Listen  string
	Cached  int
	Ahead   int
	Compute time.Duration // computing time of a batch; with 0 the rank only checks rows
}

const hostRankVariable = "GNB_TEST_PLANE_RANK"

// onHosts runs one rank on each of two hosts and returns the output of rank 0.
func onHosts(t testing.TB, w *clustertest.Network, o hostRank) (printed string) {
	t.Helper()
	var wg sync.WaitGroup
	for r := range 2 {
		o.Rank, o.Listen = r, w.Hosts[0].Addr+":7000"
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		cmd := w.Hosts[r].Command(os.Args[0], "-test.run=^TestRankOnHost$", "-test.v")
		if cmd.Env == nil {
			cmd.Env = os.Environ()
		}
		cmd.Env = append(cmd.Env, hostRankVariable+"="+string(text))
		wg.Go(func() {
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "rows are right") {
				t.Errorf("rank %d: %v\n%s", r, err, out)
			}
			if r == 0 {
				printed = string(out)
			}
		})
	}
	wg.Wait()
	return printed
}

// Ranks on two hosts get the rows of each other's nodes, and a cache reduces the bytes on the
// network, as the interfaces' counters show.
func TestCacheOverHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts hosts")
	}
	w := clustertest.Hosts(t, 2)
	var sent [2]int64
	for i, cached := range []int{0, nodes / 4} {
		before, _ := w.Hosts[1].Counters()
		onHosts(t, w, hostRank{Cached: cached, Ahead: 3})
		after, _ := w.Hosts[1].Counters()
		sent[i] = after - before
	}
	if sent[1] >= sent[0]*4/5 {
		t.Errorf("host 1 sent %d bytes without a cache and %d with one", sent[0], sent[1])
	}
}

// BenchmarkWindowOverHosts measures a step with and without prefetch, for batches that compute for
// 30 ms, over 1 Gbit/s with a delay of 1 ms. The lower limit is the larger of the computing time
// and the time of the rows' bytes at the measured rate.
func BenchmarkWindowOverHosts(b *testing.B) {
	for b.Loop() {
		for _, ahead := range []int{2, 4} { // fewer would wait for their own answers
			w := clustertest.HostsOver(b, 2, clustertest.Link{Delay: time.Millisecond, Rate: 1e9})
			for line := range strings.Lines(onHosts(b, w, hostRank{Ahead: ahead, Compute: 30 * time.Millisecond})) {
				if rest, ok := strings.CutPrefix(line, "speed: "); ok {
					b.Logf("%d batches ahead: %s", ahead, strings.TrimSpace(rest))
				}
			}
		}
	}
}

// TestRankOnHost is the rank that the tests above start; run alone it does nothing.
func TestRankOnHost(t *testing.T) {
	text := os.Getenv(hostRankVariable)
	if text == "" {
		return
	}
	var o hostRank
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	conns := joined(t, o)
	spec := collective.Machines{
		Rank: o.Rank, World: 2, First: []int{0, 1}, Local: collective.NewSingle(), Conns: make([]net.Conn, 2), SplitConns: make([]net.Conn, 2),
	}
	spec.Conns[1-o.Rank], spec.SplitConns[1-o.Rank] = conns[0], conns[1]
	c, err := collective.NewMachines(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	beside, err := c.Split(collective.Site{Kind: "beside"})
	if err != nil {
		t.Fatal(err)
	}
	if o.Compute > 0 {
		measure(t, c, beside, o)
		fmt.Println("rows are right")
		return
	}
	x, own := exchange(beside), held{o.Rank, 2}
	cache, err := NewCache(context.Background(), x, hottest(own, o.Cached), nodes, rowBytes, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	const batches = 400
	w := Open(context.Background(), Options{Source: x, Own: own, Cache: cache, RowBytes: rowBytes, Bytes: 1 << 20, Batches: batches, Threads: 1})
	if err := loop(w, batchesOf(uint64(o.Rank), batches), o.Ahead, batches); err != nil {
		t.Fatal(err)
	}
	w.Wait()
	if err := c.Barrier(collective.Site{Kind: "end"}); err != nil {
		t.Fatal(err)
	}
	fmt.Println("rows are right")
}

// joined makes two connections between the ranks.
func joined(t *testing.T, o hostRank) (conns []net.Conn) {
	t.Helper()
	if o.Rank == 0 {
		l, err := net.Listen("tcp", o.Listen)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for range 2 {
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
		}
		return conns
	}
	for start := time.Now(); len(conns) < 2; {
		conn, err := net.Dial("tcp", o.Listen)
		switch {
		case err == nil:
			conns = append(conns, conn)
		case time.Since(start) > time.Minute:
			t.Fatal(err)
		default:
			time.Sleep(10 * time.Millisecond)
		}
	}
	return conns
}

// wide is an Own with long rows: rank r has the nodes with v % 2 == r.
type wide struct{ rank, bytes int }

func (o wide) Has(v int32) bool { return int(v)%2 == o.rank }

func (o wide) Gather(dst []byte, ids []int32) error {
	for i, v := range ids {
		dst[i*o.bytes] = byte(v)
	}
	return nil
}

// measure runs batches of 5,000 rows of 400 bytes that other ranks have. Each batch computes for a
// given time.
func measure(t *testing.T, c, beside collective.Comm, o hostRank) {
	const rows, bytes, batches = 5000, 400, 60
	site := collective.Site{Kind: "measure"}
	block := make([][]byte, 2)
	block[1-o.Rank] = make([]byte, 32<<20)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Barrier(site))
	start := time.Now()
	_, err := c.AllToAll(site, block) // both directions at the same time, as when rows are exchanged
	must(err)
	rate := float64(32<<20) / time.Since(start).Seconds()
	own := wide{o.Rank, bytes}
	x := &Exchange{Comm: beside, Site: site, Owner: func(v int32) int { return int(v) % 2 }, Own: own, RowBytes: bytes}
	w := Open(context.Background(), Options{Source: x, Own: own, RowBytes: bytes, Bytes: 1 << 30, Batches: batches, Threads: 1})
	var tickets []*Ticket
	ask := func(i int) {
		if i >= batches {
			return
		}
		ids := make([]int32, rows)
		for k := range ids {
			ids[k] = int32(2*(i*rows+k) + 1 - o.Rank)
		}
		ticket, err := w.Ask(ids)
		must(err)
		tickets = append(tickets, ticket)
	}
	for i := range o.Ahead {
		ask(i)
	}
	dst := make([]byte, rows*bytes)
	start = time.Now()
	for i := range batches {
		ask(i + o.Ahead)
		must(tickets[i].Gather(nil, dst))
		if dst[bytes] != byte(tickets[i].ids[1]) {
			t.Fatal("a wrong row")
		}
		time.Sleep(o.Compute)
		must(c.Barrier(site))
	}
	step := time.Since(start) / batches
	w.Close()
	w.Wait()
	bound := max(o.Compute.Seconds(), rows*bytes/rate)
	fmt.Printf("speed: %.0f MB/s, a step %v, %.1f MB of rows, bound %.1f ms, ratio %.2f\n", rate/1e6, step.Round(10*time.Microsecond), rows*bytes/1e6, 1e3*bound, step.Seconds()/bound)
}
