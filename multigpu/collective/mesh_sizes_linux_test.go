package collective_test

import (
	"fmt"
	"math"
	"net"
	"slices"
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

// A sum moves the bytes that ReduceBytes says, and heads of messages, in one round or in two, with the same bits.
func TestReduceBytes(t *testing.T) {
	for name, c := range map[string]struct {
		counts, first []int
		one, two      []int // elements of sums of one round, and of two
		uneven        bool  // machines send different numbers of bytes
	}{
		"one each":           {[]int{1, 1}, []int{0, 1}, []int{1, 30000, 1 << 18}, []int{1<<18 + 1}, false},
		"two and one":        {[]int{2, 1}, []int{0, 2}, []int{30000}, []int{300000}, false},
		"three machines":     {[]int{1, 1, 1}, []int{0, 1, 2}, []int{0, 2000}, []int{2049, 30000}, false},
		"parts of subtrees":  {[]int{3, 3}, []int{0, 3}, []int{2048}, []int{30000}, false},
		"a machine of three": {[]int{1, 3}, []int{0, 1}, []int{2000}, []int{30000}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			pair := func(t testing.TB) (net.Conn, net.Conn) {
				a, b := tcpPair(t)
				return counted{a, &sent}, counted{b, &sent}
			}
			comms := openMeshOver(t, pair, c.counts...)
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
			for _, n := range slices.Concat(c.one, c.two) {
				slots := make([][]float32, len(comms))
				for r := range slots {
					slots[r] = make([]float32, n)
					for i := range slots[r] {
						slots[r][i] = float32(math.Ldexp(float64(1+r*i%1001), i*r%40-20)) // the order of additions shows
					}
				}
				each(func(r int) (err error) {
					sums[r], err = comms[r].NewReducer(at, n, 1)
					return err
				})
				if t.Failed() {
					return
				}
				want := collective.ReduceTree(slots)
				before := sent.Load()
				each(func(r int) error {
					copy(sums[r].Slot(0), slots[r])
					got, err := sums[r].Reduce(at)
					for i := range got {
						if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
							return fmt.Errorf("element %d of %d at rank %d is %v, want %v", i, n, r, got[i], want[i])
						}
					}
					sums[r].Release()
					return err
				})
				moved, rounds := sent.Load()-before, collective.ReduceBytes(n, 1, len(comms), c.first)
				most := (rounds[0] + rounds[1]) * int64(len(c.counts))
				if moved > most+4096 || !c.uneven && moved < most-int64(16*len(c.counts)) { // shares differ by an element
					t.Errorf("a sum of %d moved %d bytes, and ReduceBytes says %v for each machine", n, moved, rounds)
				}
				if one := slices.Contains(c.one, n); one != (rounds[1] == 0) || rounds[0] < int64(2*n) {
					t.Errorf("a sum of %d moves %v bytes; one round is wanted: %v", n, rounds, one)
				}
			}
		})
	}
	if got := collective.ReduceBytes(30000, 2, 4, []int{0}); got != [2]int64{} {
		t.Errorf("one machine moves %v bytes", got)
	}
}
