package collective

import (
	"fmt"
	"io"
)

func (c *mesh) Barrier(s Site) error {
	_, err := c.run(s, call{op: opBarrier})
	return err
}

func (c *mesh) AllGather(s Site, mine []byte) ([][]byte, error) {
	got := make([][]byte, c.machines()) // what machines sent
	all, err := c.run(s, call{
		op: opAllGather, mine: mine,
		body: func(given [][]byte, _ int) [][]byte { return packed(given) },
		take: intoBodies(got),
		result: func(given [][]byte) (all [][]byte, err error) {
			for m := range got {
				from := given
				if m != c.me {
					if from, err = unpack(got[m], c.count(m)); err != nil {
						return nil, c.malformed(s, m, err)
					}
				}
				all = append(all, from...)
			}
			return all, nil
		},
	})
	if err != nil {
		return nil, err
	}
	all[c.rank] = clone(all[c.rank]) // it may be the memory of mine
	return all, nil
}

// intoBodies reads bodies of any size.
func intoBodies(got [][]byte) taker {
	return func(m int, size uint64, r io.Reader) (err error) {
		got[m], err = readBody(r, size, 0)
		return err
	}
}

// intoLike is intoBodies for bodies that are about as large from call to call.
func (c *mesh) intoLike(got [][]byte) taker {
	return func(m int, size uint64, r io.Reader) (err error) {
		if got[m], err = readBody(r, size, c.came[m]); err == nil {
			c.came[m] = max(c.came[m], size)
		}
		return err
	}
}

func (c *mesh) malformed(s Site, m int, err error) error {
	return c.connError(s, &failure{m, err})
}

func (c *mesh) SumInt64(s Site, v []int64) error {
	got := make([][]byte, c.machines())
	var sum []byte
	result, err := c.run(s, call{
		op: opSumInt64, n: len(v), mine: int64Bytes(v),
		local: func(given [][]byte) error {
			sum = given[0]
			for _, b := range given[1:] {
				addInt64(sum, b)
			}
			return nil
		},
		body: func([][]byte, int) [][]byte { return [][]byte{sum} },
		take: exactly(8*len(v), intoBodies(got)),
		result: func([][]byte) ([][]byte, error) {
			for m, b := range got {
				if m != c.me {
					addInt64(sum, b)
				}
			}
			return [][]byte{sum}, nil
		},
	})
	if err != nil {
		return err
	}
	takeInt64(v, result[0])
	return nil
}

func exactly(want int, take taker) taker {
	return func(m int, size uint64, r io.Reader) error {
		if size != uint64(want) {
			return fmt.Errorf("it sent %d bytes instead of %d", size, want)
		}
		return take(m, size, r)
	}
}

func (c *mesh) Broadcast(s Site, root int, data []float32) error {
	if err := checkRoot(s, root, c.world); err != nil {
		return err
	}
	var mine []byte
	if c.rank == root {
		mine = float32Bytes(data)
	}
	from, got := c.machineOf(root), make([][]byte, c.machines())
	k := call{op: opBroadcast, n: len(data), aux: root, mine: mine}
	if c.me == from {
		k.body = func(given [][]byte, _ int) [][]byte { return [][]byte{given[root-c.first[from]]} }
	}
	k.take = func(m int, size uint64, r io.Reader) error {
		if m == from {
			return exactly(4*len(data), intoBodies(got))(m, size, r)
		}
		return nil
	}
	k.result = func(given [][]byte) ([][]byte, error) {
		if c.me == from {
			return [][]byte{given[root-c.first[from]]}, nil
		}
		return [][]byte{got[from]}, nil
	}
	result, err := c.run(s, k)
	if err != nil {
		return err
	}
	copy(float32Bytes(data), result[0])
	return nil
}

func (c *mesh) machineOf(rank int) int {
	m := 0
	for c.first[m+1] <= rank {
		m++
	}
	return m
}
