package plane

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/graphnb/graphnb/internal/mapped"
)

// Index has the positions of some nodes, in ascending order. It takes 3 bits for each node of the graph, is read-only and
// safe for concurrent use.
type Index struct {
	set    []uint64 // a bit for each of the nodes
	before []int32  // the number of them before each word of set
	count  int
}

// NewIndex returns the index of distinct, ascending nodes of a graph.
func NewIndex(ids []int32, nodes int) (*Index, error) {
	x := &Index{set: make([]uint64, (nodes+63)/64), count: len(ids)}
	for i, v := range ids {
		if v < 0 || int(v) >= nodes || i > 0 && v <= ids[i-1] {
			return nil, fmt.Errorf("gnb: node %d cannot be cached: the nodes are 0 to %d, and each is cached once", v, nodes-1)
		}
		x.set[v>>6] |= 1 << (v & 63)
	}
	x.before = make([]int32, len(x.set))
	for w := 1; w < len(x.set); w++ {
		x.before[w] = x.before[w-1] + int32(bits.OnesCount64(x.set[w-1]))
	}
	return x, nil
}

// Len is the number of nodes that have a position.
func (x *Index) Len() int { return x.count }

// Find returns the position of a node, or -1.
func (x *Index) Find(v int32) int32 {
	word, bit := x.set[v>>6], uint64(1)<<(v&63)
	if word&bit == 0 {
		return -1
	}
	return x.before[v>>6] + int32(bits.OnesCount64(word&(bit-1)))
}

// fillBytes is the size of one request that fills a cache.
const fillBytes = 16 << 20

// Fetch gets the rows of distinct, ascending nodes in pieces of up to 16 MiB: those that own has from there, the others
// from the source. Own may be nil, and so may the source if own has all rows. For each piece, memory returns where the rows of
// the n nodes from number from on go, and done, unless nil, is called when they are there. It returns the number of rows
// asked of the source. Collective if the source is; ranks may get different numbers of rows.
func Fetch(ctx context.Context, s Source, own Own, ids []int32, rowBytes int, memory func(from, n int) []byte, done func(from int, rows []byte) error) (asked int, err error) {
	piece := max(1, fillBytes/max(1, rowBytes))
	calls := (len(ids) + piece - 1) / piece
	if together, ok := s.(Collective); ok {
		if calls, err = together.Calls(calls); err != nil {
			return 0, err
		}
	}
	var buffer []byte
	for i := range calls {
		from := min(i*piece, len(ids))
		part := ids[from:min(from+piece, len(ids))]
		rows := memory(from, len(part))
		away, to := part, rows
		if own != nil {
			if err := mapped.Guard(func() error { return own.Gather(rows, part) }); err != nil {
				return asked, err
			}
			away = slices.DeleteFunc(slices.Clone(part), own.Has)
		}
		if len(away) < len(part) {
			buffer = slices.Grow(buffer[:0], len(away)*rowBytes)[:len(away)*rowBytes]
			to = buffer
		}
		if s != nil {
			if err := s.Rows(ctx, away, to); err != nil {
				return asked, err
			}
		}
		asked += len(away)
		if len(away) < len(part) {
			k := 0
			for _, v := range away {
				for part[k] != v {
					k++
				}
				copy(rows[k*rowBytes:(k+1)*rowBytes], to)
				to = to[rowBytes:]
			}
		}
		if done != nil {
			if err := done(from, rows); err != nil {
				return asked, err
			}
		}
	}
	return asked, nil
}
