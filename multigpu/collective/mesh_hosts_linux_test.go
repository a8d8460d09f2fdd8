package collective_test

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// The ranks of two hosts are processes, connected by TCP at 1 Gbit/s. The interfaces' counters show
// that the data travels over the network.
func TestMachinesOverHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts hosts")
	}
	sent := overHosts(t, []int{2, 2}, false, nil)
	for m, n := range sent {
		if n < 5_000_000 {
			t.Errorf("host %d sent %d bytes over the network, want more than 5 MB", m+1, n)
		}
	}
}

// overHosts runs ranks on two hosts and returns the number of bytes that each host sent.
func overHosts(t testing.TB, counts []int, speed bool, printed func(string)) (sent [2]int64) {
	w := clustertest.Hosts(t, 2)
	var before [2]int64
	var wg sync.WaitGroup
	for m, n := range counts {
		before[m], _ = w.Hosts[m].Counters()
		files, err := collective.NewShared(n)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = files.Close() }()
		for r := range n {
			p := placed(counts, m, r)
			p.Listen, p.Speed = w.Hosts[0].Addr+":7000", speed
			cmd := w.Hosts[m].Command(os.Args[0], rankArgs...)
			wg.Go(func() {
				out := runRank(t, p, cmd, []*os.File{files.Control, files.Data})
				if p.Rank == 0 && printed != nil {
					printed(out)
				}
			})
		}
	}
	wg.Wait()
	for m := range counts {
		after, _ := w.Hosts[m].Counters()
		sent[m] = after - before[m]
	}
	return sent
}

// BenchmarkMachinesOverHosts compares the time of sums with the least that the network allows: the
// bytes at the measured rate, plus two round trips.
func BenchmarkMachinesOverHosts(b *testing.B) {
	for b.Loop() {
		overHosts(b, []int{1, 1}, true, func(out string) {
			for line := range strings.Lines(out) {
				if rest, ok := strings.CutPrefix(line, "speed: "); ok {
					b.Log(rest)
				}
			}
		})
	}
}

// speed measures first the connection alone, then sums over it.
func speed(t *testing.T, spec collective.Machines, other int) {
	conn, block := spec.SplitConns[other], make([]byte, 1<<20)
	const blocks = 64
	once := func(f func() error) {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	send := func(n int) func() error {
		return func() error { _, err := conn.Write(block[:n]); return err }
	}
	receive := func(n int) func() error {
		return func() error { _, err := io.ReadFull(conn, block[:n]); return err }
	}
	var trips []time.Duration
	for range 200 {
		start := time.Now()
		if other == 1 {
			once(send(1))
			once(receive(1))
		} else {
			once(receive(1))
			once(send(1))
		}
		trips = append(trips, time.Since(start))
	}
	slices.Sort(trips)
	trip := trips[len(trips)/2]
	start := time.Now()
	var sending sync.WaitGroup
	sending.Go(func() { // both directions at the same time, as in a sum of gradients
		out := make([]byte, len(block))
		for range blocks {
			if _, err := conn.Write(out); err != nil {
				t.Error(err)
			}
		}
	})
	for range blocks {
		once(receive(len(block)))
	}
	sending.Wait()
	rate := float64(blocks*len(block)) / time.Since(start).Seconds()
	c, err := collective.NewMachines(spec)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("speed: %.1f MB/s, round trip %v\n", rate/1e6, trip)
	for _, n := range []int{225_000, 5_000_000} {
		r, err := c.NewReducer(step, n, 1)
		if err != nil {
			t.Fatal(err)
		}
		var each []time.Duration
		for i := range 33 {
			if err := c.Barrier(step); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if _, err := r.Reduce(step); err != nil {
				t.Fatal(err)
			}
			if i >= 3 {
				each = append(each, time.Since(start))
			}
		}
		slices.Sort(each)
		least := time.Duration(float64(4*n)/rate*1e9) + 2*trip
		median := each[len(each)/2]
		fmt.Printf("speed: %.1f MB: median of 30 sums %v, bytes over the rate and two round trips %v, ratio %.2f\n",
			float64(4*n)/1e6, median, least, float64(median)/float64(least))
		r.Release()
	}
	once(c.Close)
}
