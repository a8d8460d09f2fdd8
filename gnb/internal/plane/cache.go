package plane

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Cache is a static cache: rows of other machines that are asked for once, before the first step, and then stay. It is
// read-only once made and safe for concurrent use.
type Cache struct {
	rowBytes int
	rows     []byte
	set      []uint64 // a bit for each node that is in the cache
	before   []int32  // the number of cached nodes before each word of set
	count    int
	asked    int // rows that this rank has asked the source for
}

// fillBytes is the size of one request that fills a cache.
const fillBytes = 16 << 20

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
	c := &Cache{rowBytes: rowBytes, set: make([]uint64, (nodes+63)/64), count: n}
	for i, v := range ids {
		if v < 0 || int(v) >= nodes || i > 0 && v == ids[i-1] {
			return nil, fmt.Errorf("gnb: node %d cannot be cached: the nodes are 0 to %d, and each is cached once", v, nodes-1)
		}
		c.set[v>>6] |= 1 << (v & 63)
	}
	c.before = make([]int32, len(c.set))
	for w := 1; w < len(c.set); w++ {
		c.before[w] = c.before[w-1] + int32(bits.OnesCount64(c.set[w-1]))
	}
	var err error
	if c.rows, err = by.Memory(n * rowBytes); err != nil {
		return nil, fmt.Errorf("gnb: making the cache of features: %w", err)
	}
	if err := c.fill(ctx, s, ids, by); err != nil {
		return nil, fmt.Errorf("gnb: filling the cache of features: %w", err)
	}
	return c, by.Wait()
}

// fill writes this rank's share of the rows.
func (c *Cache) fill(ctx context.Context, s Source, ids []int32, by Shared) error {
	lo, hi := collective.Share(len(ids), by.Rank, by.Ranks)
	chunk := max(1, fillBytes/max(1, c.rowBytes))
	calls := (hi - lo + chunk - 1) / chunk
	if together, ok := s.(Collective); ok {
		var err error
		if calls, err = together.Calls(calls); err != nil {
			return err
		}
	}
	var buffer []byte
	for i := range calls {
		from := min(lo+i*chunk, hi)
		part := ids[from:min(from+chunk, hi)]
		rows := c.rows[from*c.rowBytes:][:len(part)*c.rowBytes]
		away, to := part, rows
		if by.Own != nil {
			if err := mapped.Guard(func() error { return by.Own.Gather(rows, part) }); err != nil {
				return err
			}
			away = slices.DeleteFunc(slices.Clone(part), by.Own.Has)
		}
		if len(away) < len(part) {
			buffer = slices.Grow(buffer[:0], len(away)*c.rowBytes)[:len(away)*c.rowBytes]
			to = buffer
		}
		if err := s.Rows(ctx, away, to); err != nil {
			return err
		}
		c.asked += len(away)
		for k := 0; k < len(away) && len(away) < len(part); k++ {
			copy(c.row(c.find(away[k])), to[k*c.rowBytes:(k+1)*c.rowBytes])
		}
	}
	return nil
}

// Asked is the number of rows that this rank has asked the source for.
func (c *Cache) Asked() int { return c.asked }

// Len is the number of cached rows.
func (c *Cache) Len() int {
	if c == nil {
		return 0
	}
	return c.count
}

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
	word, bit := c.set[v>>6], uint64(1)<<(v&63)
	if word&bit == 0 {
		return -1
	}
	return c.before[v>>6] + int32(bits.OnesCount64(word&(bit-1)))
}

func (c *Cache) row(i int32) []byte {
	return c.rows[int(i)*c.rowBytes : (int(i)+1)*c.rowBytes]
}
