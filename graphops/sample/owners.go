package sample

import (
	"errors"
	"fmt"
)

// Owners divides the nodes of a graph among ranks, for the batches of a [Cooperative] sampler. The
// samples do not depend on it; the number of rows that travel between ranks does. Several goroutines
// may call it at the same time.
type Owners interface {
	// Owner returns the rank, of world ranks, that owns a node: the same on all ranks.
	Owner(node int32, world int) int
}

// Owner is the rank of world ranks that owns a node if there are no [Owners]: a hash of the node's
// id, so that each rank has an even share of any batch, whatever the order of ids.
func Owner(node int32, world int) int {
	h := uint32(node) * 0x9E3779B1 // Fibonacci hashing
	h ^= h >> 15
	h *= 0x85EBCA77
	return int(uint64(h) * uint64(world) >> 32)
}

// ownersOf sets owner[i] to the owner of nodes[i]; without [Owners], by the hash.
func ownersOf[T uint8 | uint16](by Owners, world int, nodes []int32, owner []T) {
	if by == nil {
		for i, v := range nodes {
			owner[i] = T(Owner(v, world))
		}
		return
	}
	for i, v := range nodes {
		owner[i] = T(by.Owner(v, world))
	}
}

var _ Owners = RangeOwners(0)

// RangeOwners are [Owners] of consecutive ids. The value is the number of the graph's nodes: of n
// nodes, node v belongs to rank ⌊v·world/n⌋.
type RangeOwners int

// Owner implements [Owners].
func (n RangeOwners) Owner(node int32, world int) int {
	return int(int64(node) * int64(world) / max(1, int64(n)))
}

var _ Owners = (*PartOwners)(nil)

// PartOwners are [Owners] by a division of the nodes into parts, such as one of package partition,
// which gives a rank most neighbours of its nodes. The ranks own the parts in contiguous blocks: of
// n parts, part p belongs to rank ⌊p·world/n⌋. With fewer parts than ranks, some ranks own no nodes.
type PartOwners struct {
	of    []int32
	parts int
}

// NewPartOwners returns the owners for parts; of is the part of each node, which PartOwners keeps.
func NewPartOwners(of []int32, parts int) (*PartOwners, error) {
	if parts < 1 {
		return nil, errors.New("sample: owners by parts need at least one part")
	}
	for v, p := range of {
		if uint(p) >= uint(parts) {
			return nil, fmt.Errorf("sample: node %d is in part %d, but the parts are 0 to %d", v, p, parts-1)
		}
	}
	return &PartOwners{of, parts}, nil
}

// Owner implements [Owners].
func (p *PartOwners) Owner(node int32, world int) int {
	return int(int64(p.of[node]) * int64(world) / int64(p.parts))
}
