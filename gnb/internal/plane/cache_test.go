package plane

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// The ranks of a machine make one cache: each asks for a share of the rows, and copies those that it has itself; all see
// every row, once in memory.
func TestSharedCache(t *testing.T) {
	for _, world := range []int{2, 3} {
		for _, n := range []int{0, 1, 7, nodes} {
			asked := make([]int, world)
			for r, err := range ranks(t, world, func(c collective.Comm) error {
				at := func(kind string) collective.Site { return collective.Site{Kind: kind} }
				beside, err := c.Split(at("beside"))
				if err != nil {
					return err
				}
				var ids []int32
				for v := range int32(nodes) {
					if len(ids) < n {
						ids = append(ids, v*7%nodes)
					}
				}
				cache, err := NewSharedCache(context.Background(), exchange(beside), ids, nodes, rowBytes, int64(n*rowBytes), Shared{
					Rank: c.Rank(), Ranks: world, Own: held{c.Rank(), world}, Wait: func() error { return c.Barrier(at("filled")) },
					Memory: func(size int) ([]byte, error) {
						m, err := c.NewMatrix(at("cache"), max(1, size/4), 1)
						if err != nil {
							return nil, err
						}
						return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(m.Data()))), size), nil
					},
				})
				if err != nil {
					return err
				}
				asked[c.Rank()] = cache.Asked()
				for v := range int32(nodes) {
					if row := cache.Row(v); (row != nil) != slices.Contains(ids, v) || row != nil && !bytes.Equal(row, rowsOf([]int32{v})) {
						return fmt.Errorf("the cache has a wrong row of node %d", v)
					}
				}
				if cache.Len() != n {
					return fmt.Errorf("the cache has %d rows, want %d", cache.Len(), n)
				}
				return c.Barrier(at("compared"))
			}) {
				if err != nil {
					t.Errorf("%d rows on %d ranks: rank %d: %v", n, world, r, err)
				}
			}
			sum := 0
			for _, k := range asked {
				if sum += k; k > (n+world-1)/world {
					t.Errorf("%d rows on %d ranks: the ranks asked for %v, and a share is at most %d", n, world, asked, (n+world-1)/world)
				}
			}
			if n == nodes && sum < nodes/4 {
				t.Errorf("%d rows on %d ranks: the ranks asked for %v", n, world, asked)
			}
		}
	}
}
