package predict

import (
	"fmt"
	"math"
	"sort"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// numbering gives the dataset's nodes and new ones one space of ids, the places. Each type has room for new nodes behind its own, so
// places have the order of the ids that the nodes would have in the dataset with the new nodes appended. Networks see
// places; results depend on their order alone.
type numbering struct {
	schema *graphops.Schema // whose counts include the room; nil without types
	room   int              // new nodes of a type at most
	old    []int            // by type: the first node of the dataset, and at the end their number
	first  []int            // by type: the first place, and at the end their number
	of     []int32          // by node of the dataset its place; nil: the place is the node
}

func (n *numbering) number(nodes int, s *graphops.Schema, room int) error {
	n.room, n.old = room, []int{0, nodes}
	if s != nil {
		n.old = s.Starts()
		n.schema = &graphops.Schema{Relations: s.Relations}
		for _, t := range s.Nodes {
			n.schema.Nodes = append(n.schema.Nodes, graphops.NodeType{Name: t.Name, Count: t.Count + room})
		}
	}
	n.first = make([]int, len(n.old))
	for t, start := range n.old {
		n.first[t] = start + t*room
	}
	if n.places() > math.MaxInt32 {
		return fmt.Errorf("predict: %d nodes and room for %d new ones of each type are more than ids of 32 bits; set a smaller Options.MaxNew", nodes, room)
	}
	if n.types() > 1 {
		n.of = make([]int32, nodes)
		for t := range n.types() {
			part, shift := n.of[n.old[t]:n.old[t+1]], int32(n.first[t])
			parallel.For(0, len(part), 1<<16, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					part[i] = shift + int32(i)
				}
			})
		}
	}
	return nil
}

func (n *numbering) types() int { return len(n.old) - 1 }

func (n *numbering) places() int { return n.first[len(n.first)-1] }

// count is the number of nodes of a type in the dataset.
func (n *numbering) count(typ int) int { return n.old[typ+1] - n.old[typ] }

// place is the place of node v of the dataset.
func (n *numbering) place(v int32) int32 {
	if n.of == nil {
		return v
	}
	return n.of[v]
}

// typeOf is the type of the node at a place, and its number within the type.
func (n *numbering) typeOf(place int32) (typ, number int) {
	if n.types() > 1 {
		typ = sort.SearchInts(n.first[1:], int(place)+1)
	}
	return typ, int(place) - n.first[typ]
}

// node is the node of the dataset at a place, or -1 for a new one.
func (n *numbering) node(place int32) int32 {
	typ, number := n.typeOf(place)
	if number >= n.count(typ) {
		return -1
	}
	return int32(n.old[typ] + number)
}
