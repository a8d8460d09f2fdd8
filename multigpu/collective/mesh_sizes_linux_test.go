package collective_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// counted counts the bytes that are written to a connection.
type counted struct {
	net.Conn
	sent *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.sent.Add(int64(len(b)))
	return c.Conn.Write(b)
}

// A sum moves the bytes that ReduceBytes says, and heads of messages.
func TestReduceBytes(t *testing.T) {
	const n = 30000
	for name, c := range map[string]struct{ counts, first []int }{
		"one each":           {[]int{1, 1}, []int{0, 1}},
		"two and one":        {[]int{2, 1}, []int{0, 2}},
		"three machines":     {[]int{1, 1, 1}, []int{0, 1, 2}},
		"parts of subtrees":  {[]int{3, 3}, []int{0, 3}},
		"a machine of three": {[]int{1, 3}, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*atomic.Int64
			pair := func(t testing.TB) (net.Conn, net.Conn) {
				a, b := tcpPair(t)
				x, y := &atomic.Int64{}, &atomic.Int64{}
				all = append(all, x, y)
				return counted{a, x}, counted{b, y}
			}
			comms := openMeshOver(t, pair, c.counts...)
			before := int64(0)
			var ranks sync.WaitGroup
			at := collective.Site{Kind: "test"}
			sums := make([]collective.Reducer, len(comms))
			each := func(f func(r int) error) {
				for r := range comms {
					ranks.Go(func() {
						if err := f(r); err != nil {
							t.Error(err)
						}
					})
				}
				ranks.Wait()
			}
			each(func(r int) (err error) {
				sums[r], err = comms[r].NewReducer(at, n, 1)
				return err
			})
			if t.Failed() {
				return
			}
			for _, x := range all {
				before += x.Load()
			}
			each(func(r int) error {
				_, err := sums[r].Reduce(at)
				return err
			})
			moved := -before
			for _, x := range all {
				moved += x.Load()
			}
			rounds := collective.ReduceBytes(n, 1, len(comms), c.first)
			most := (rounds[0] + rounds[1]) * int64(len(c.counts))
			if balanced := name == "one each" || name == "three machines" || name == "parts of subtrees"; balanced && moved < most || moved > most+4096 {
				t.Errorf("a sum moved %d bytes, and ReduceBytes says %v for each machine", moved, rounds)
			}
			if rounds[0] < 4*n/2 || rounds[1] < 4*n/2 {
				t.Errorf("%v bytes are less than half of the elements", rounds)
			}
		})
	}
	if got := collective.ReduceBytes(n, 2, 4, []int{0}); got != [2]int64{} {
		t.Errorf("one machine moves %v bytes", got)
	}
}
