package feed

import (
	"encoding/binary"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// shards says which rank owns the learned row of each node, and where the row is in the memory of its machine, which has
// the rows of its ranks, rank by rank. On several machines with parts a rank owns the nodes of its parts, else a range
// of ids.
type shards struct {
	nodes, world, rank int
	machine            []int  // of each rank; numbered from 0 in the order of ranks
	parts              *Parts // nil for ranges of ids
	// first is the first row of each part in the memory of its machine or, for ranges, the first node of each rank's
	// machine.
	first  []int
	lo, hi int // rows of this rank
	rows   int // of the machine that has most
}

// newShards divides nodes among ranks, of which this one is on a machine with the given number. Collective.
func newShards(c collective.Comm, site collective.Site, number, nodes int, parts *Parts) (*shards, error) {
	all, err := c.AllGather(site, binary.LittleEndian.AppendUint32(nil, uint32(number)))
	if err != nil {
		return nil, err
	}
	s := &shards{nodes: nodes, world: c.Size(), rank: c.Rank()}
	machines := 0
	for r, b := range all {
		if r > 0 && string(b) != string(all[r-1]) {
			machines++
		}
		s.machine = append(s.machine, machines)
	}
	machines++
	if machines > 1 && parts != nil && parts.Parts() > 1 {
		s.parts = parts
	}
	// held is the number of rows of each machine so far.
	held := make([]int, machines)
	if p := s.parts; p != nil {
		s.first, s.lo = make([]int, p.Parts()), -1
		for i := range s.first {
			m := s.machine[p.Rank(i)]
			s.first[i] = held[m]
			held[m] += p.Own(i)
			if p.Rank(i) == s.rank {
				if s.lo < 0 {
					s.lo = s.first[i]
				}
				s.hi = held[m]
			}
		}
		s.lo = max(s.lo, 0)
	} else {
		s.first = make([]int, s.world)
		for r := range s.world {
			lo, hi := collective.Share(nodes, r, s.world)
			m := s.machine[r]
			if r == 0 || m != s.machine[r-1] {
				s.first[r] = lo
			} else {
				s.first[r] = s.first[r-1]
			}
			if r == s.rank {
				s.lo, s.hi = held[m], held[m]+hi-lo
			}
			held[m] += hi - lo
		}
	}
	for _, n := range held {
		s.rows = max(s.rows, n)
	}
	return s, nil
}

// apart reports whether some rows are on another machine than others.
func (s *shards) apart() bool { return s.machine[s.world-1] > 0 }

// owner returns the rank that owns node v, which is one of the graph's.
func (s *shards) owner(v int32) int {
	if s.parts != nil {
		return s.parts.Rank(s.parts.PartOf(v))
	}
	return int(((int64(v)+1)*int64(s.world) - 1) / int64(s.nodes))
}

// row returns the position of node v's row in the memory of its machine.
func (s *shards) row(v int32) int {
	if s.parts != nil {
		return s.first[s.parts.PartOf(v)] + s.parts.Row(v)
	}
	return int(v) - s.first[s.owner(v)]
}

// here reports whether the row of node v is in the memory of this rank's machine.
func (s *shards) here(v int32) bool { return s.machine[s.owner(v)] == s.machine[s.rank] }

// each calls f with the nodes from lo to hi-1 that the rank owns, ascending, and their rows in the memory of its
// machine.
func (s *shards) each(rank, lo, hi int, f func(v int32, row int)) {
	if s.parts == nil {
		from, to := collective.Share(s.nodes, rank, s.world)
		lo, hi = max(lo, from), min(hi, to)
	}
	for v := int32(lo); int(v) < hi; v++ {
		if s.parts == nil || s.owner(v) == rank {
			f(v, s.row(v))
		}
	}
}

// nodeOf returns the node of one of this rank's rows.
func (s *shards) nodeOf(row int) (node int32) {
	s.each(s.rank, 0, s.nodes, func(v int32, at int) {
		if at == row {
			node = v
		}
	})
	return node
}
