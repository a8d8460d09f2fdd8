package graphops

import (
	"math"
	"math/bits"
	"slices"
)

// Numbering gives the nodes of a batch their rows, in order of first appearance. It is for one goroutine at a time.
type Numbering interface {
	// Begin forgets all nodes; the next row is 0.
	Begin()
	// Number replaces each node in nodes by its row in ids, appending those that
	// have none yet, and returns the extended ids. Nodes are valid ids.
	Number(ids, nodes []int32) []int32
	// Assign gives the nodes, which differ, the rows 0, 1, …; only after Begin, before Number.
	Assign(nodes []int32)
}

// DirectLimit is the number of nodes of the largest graph for which a [Numbering] has an entry per node. The
// table then takes at most 32 MiB. On random nodes of a graph of 2^20 nodes, a table of all nodes is as fast as a
// hash table of the batch; at 2^22 it takes 1.3 times less time in batches of 10^6 edges and 2.5 times more in
// batches of 10^5; from 2^24 on the hash table is faster in both (BenchmarkNumbering, Xeon with 2 MiB L2).
const DirectLimit = 1 << 23

// NewNumbering returns a Numbering of the nodes of a graph. It takes 4 bytes per node for graphs of up to 2^23 nodes,
// and grows with the batches for larger ones.
func NewNumbering(nodes int) Numbering {
	if nodes <= DirectLimit {
		return &directNumbers{rows: make([]int32, nodes), base: 1, next: 1}
	}
	return newHashNumbers(1 << 16)
}

var _ Numbering = (*directNumbers)(nil)

// directNumbers stores, for each node of the graph, base + its row in the batch. Entries below base
// belong to earlier batches, so entries are cleared only when base exceeds int32.
type directNumbers struct {
	rows       []int32
	base, next int32
}

func (t *directNumbers) Begin() {
	t.base = t.next
	if int64(t.base)+int64(len(t.rows)) > math.MaxInt32 {
		clear(t.rows)
		t.base, t.next = 1, 1
	}
}

// Number has no branch except the loop's: whether a node is new is unpredictable, and a
// mispredicted branch would wait for the table's cache miss and discard the loads started after it.
func (t *directNumbers) Number(ids, nodes []int32) []int32 {
	rows, base := t.rows, t.base
	// The place of the next new node is always written to, and counted only if the node is new; so
	// there is one place more than there can be new nodes.
	ids = slices.Grow(ids, min(len(nodes), len(rows)-len(ids))+1)
	room, n := ids[:cap(ids)], len(ids)
	for i, v := range nodes {
		r := rows[v] - base
		fresh := r >> 31 // all ones or 0: entries and base are not negative
		if fresh != 0 {
			r = int32(n) // a conditional move
		}
		room[n] = v
		n -= int(fresh)
		rows[v] = r + base
		nodes[i] = r
	}
	t.next = base + int32(n)
	return room[:n]
}

func (t *directNumbers) Assign(nodes []int32) {
	rows, base := t.rows, t.base
	for i, v := range nodes {
		rows[v] = base + int32(i)
	}
	t.next = base + int32(len(nodes))
}

var _ Numbering = (*hashNumbers)(nil)

// hashNumbers is an open-addressing table with linear probing. A slot holds the node in its high
// half and base + its row in the low half. Slots with a low half below base belong to earlier
// batches and count as empty.
type hashNumbers struct {
	slots      []uint64
	shift      uint // 64 - log2(len(slots))
	base, next uint32
	used       int
}

func newHashNumbers(size int) *hashNumbers {
	t := &hashNumbers{base: 1, next: 1}
	t.alloc(size)
	return t
}

func (t *hashNumbers) alloc(size int) {
	t.slots = make([]uint64, size)
	t.shift = 64 - uint(bits.TrailingZeros(uint(size)))
}

func (t *hashNumbers) Begin() {
	t.base, t.used = t.next, 0
	// A batch has fewer than 2^31 nodes.
	if t.base > math.MaxUint32-math.MaxInt32 {
		clear(t.slots)
		t.base, t.next = 1, 1
	}
}

// home is the first slot to look at: Fibonacci hashing (Knuth, TAOCP 3, 6.4).
func (t *hashNumbers) home(v int32) uint {
	return uint(uint64(uint32(v)) * 0x9E3779B97F4A7C15 >> t.shift)
}

func (t *hashNumbers) Number(ids, nodes []int32) []int32 {
	mask := uint(len(t.slots) - 1)
	for i, v := range nodes {
		for at := t.home(v); ; at = (at + 1) & mask {
			slot := t.slots[at]
			if uint32(slot) < t.base {
				t.slots[at] = uint64(uint32(v))<<32 | uint64(t.next)
				nodes[i] = int32(t.next - t.base)
				t.next++
				ids = append(ids, v)
				if t.used++; t.used*2 > len(t.slots) {
					t.grow(ids)
					mask = uint(len(t.slots) - 1)
				}
				break
			}
			if uint32(slot>>32) == uint32(v) {
				nodes[i] = int32(uint32(slot) - t.base)
				break
			}
		}
	}
	return ids
}

func (t *hashNumbers) Assign(nodes []int32) {
	t.Number(make([]int32, 0, len(nodes)), slices.Clone(nodes))
}

// grow doubles the table. ids are the nodes of the batch in the order of rows.
func (t *hashNumbers) grow(ids []int32) {
	t.alloc(2 * len(t.slots))
	mask := uint(len(t.slots) - 1)
	for row, v := range ids {
		at := t.home(v)
		for uint32(t.slots[at]) >= t.base {
			at = (at + 1) & mask
		}
		t.slots[at] = uint64(uint32(v))<<32 | uint64(t.base+uint32(row))
	}
}
