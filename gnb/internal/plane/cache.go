package plane

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
)

// Cache is a static cache: rows of other machines that are asked for once, before the first step, and then stay. It is
// read-only once made and safe for concurrent use.
type Cache struct {
	rowBytes int
	rows     []byte
	set      []uint64 // a bit for each node that is in the cache
	before   []int32  // the number of cached nodes before each word of set
	count    int
}

// fillBytes is the size of one request that fills a cache.
const fillBytes = 16 << 20

// NewCache asks the source for the rows of the hottest nodes, of which none may be on this machine: as many as fit
// limit bytes, the first in the list first. The ids are distinct and below nodes. Memory: the rows, and 3 bits for each
// node. Collective if the source is; ranks may cache different numbers of rows.
func NewCache(ctx context.Context, s Source, hottest []int32, nodes, rowBytes int, limit int64) (*Cache, error) {
	n := len(hottest)
	if rowBytes > 0 {
		n = int(min(int64(n), max(limit, 0)/int64(rowBytes)))
	}
	ids := slices.Clone(hottest[:n])
	slices.Sort(ids)
	c := &Cache{rowBytes: rowBytes, rows: make([]byte, n*rowBytes), set: make([]uint64, (nodes+63)/64), count: n}
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
	chunk := max(1, fillBytes/max(1, rowBytes))
	calls := (n + chunk - 1) / chunk
	if together, ok := s.(Collective); ok {
		var err error
		if calls, err = together.Calls(calls); err != nil {
			return nil, err
		}
	}
	for i := range calls {
		lo, hi := min(i*chunk, n), min((i+1)*chunk, n)
		if err := s.Rows(ctx, ids[lo:hi], c.rows[lo*rowBytes:hi*rowBytes]); err != nil {
			return nil, fmt.Errorf("gnb: filling the cache of features: %w", err)
		}
	}
	return c, nil
}

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
