package plane

import (
	"context"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// Cache is a static cache: rows of other machines that are asked for once, before the first step, and then stay. It is
// read-only once made and safe for concurrent use.
type Cache struct {
	Index
	rowBytes int
	rows     []byte
	asked    int // rows that this rank has asked the source for
}

// Shared says how the ranks of a machine make one cache, in memory that they share. Each of them asks for a share of the
// rows, and all read them.
type Shared struct {
	// Rank is the number of this rank among those of the machine, of which there are Ranks.
	Rank, Ranks int
	// Own is the rows that this rank has itself: it copies those of its share that are there, and asks for the others.
	Own Own
	// Memory returns the shared memory, of n bytes. Wait returns when all ranks of the machine have called it. Both are
	// collective.
	Memory func(n int) ([]byte, error)
	Wait   func() error
}

// NewCache asks the source for the rows of the hottest nodes, of which none may be on this machine: as many as fit
// limit bytes, the first in the list first. The ids are distinct and below nodes. Memory: the rows, and 3 bits for each
// node. Collective if the source is; ranks may cache different numbers of rows.
func NewCache(ctx context.Context, s Source, hottest []int32, nodes, rowBytes int, limit int64) (*Cache, error) {
	return NewSharedCache(ctx, s, hottest, nodes, rowBytes, limit, Shared{
		Ranks: 1, Memory: func(n int) ([]byte, error) { return make([]byte, n), nil }, Wait: func() error { return nil },
	})
}

// NewSharedCache is NewCache for the ranks of a machine, which pass the same nodes and limit.
func NewSharedCache(ctx context.Context, s Source, hottest []int32, nodes, rowBytes int, limit int64, by Shared) (*Cache, error) {
	n := len(hottest)
	if rowBytes > 0 {
		n = int(min(int64(n), max(limit, 0)/int64(rowBytes)))
	}
	ids := slices.Clone(hottest[:n])
	slices.Sort(ids)
	at, err := NewIndex(ids, nodes)
	if err != nil {
		return nil, err
	}
	c := &Cache{Index: *at, rowBytes: rowBytes}
	if c.rows, err = by.Memory(n * rowBytes); err != nil {
		return nil, fmt.Errorf("gnb: making the cache of features: %w", err)
	}
	lo, hi := collective.Share(n, by.Rank, by.Ranks) // this rank's share
	c.asked, err = Fetch(ctx, s, by.Own, ids[lo:hi], rowBytes, func(from, n int) []byte { return c.rows[(lo+from)*rowBytes:][:n*rowBytes] }, nil)
	if err != nil {
		return nil, fmt.Errorf("gnb: filling the cache of features: %w", err)
	}
	return c, by.Wait()
}

// Asked is the number of rows that this rank has asked the source for.
func (c *Cache) Asked() int { return c.asked }

// Row returns a node's row, or nil.
func (c *Cache) Row(v int32) []byte {
	at := c.find(v)
	if at < 0 {
		return nil
	}
	return c.row(at)
}

// find returns the position of a node's row, or -1.
func (c *Cache) find(v int32) int32 {
	if c == nil {
		return -1
	}
	return c.Find(v)
}

// Len is the number of cached rows.
func (c *Cache) Len() int {
	if c == nil {
		return 0
	}
	return c.Index.Len()
}

func (c *Cache) row(i int32) []byte {
	return c.rows[int(i)*c.rowBytes : (int(i)+1)*c.rowBytes]
}
