package sample

import "github.com/graphnb/graphnb/internal/parallel"

// groupTrees is the number of trees of a group: few enough that its table stays in a core's caches, enough that handing out
// groups costs nothing. No result depends on it.
const groupTrees = 64

// treeRows gives the nodes of disjoint trees their rows: (tree, node) pairs are numbered in the order in which they come, the
// edges of a hop by their destinations' rows.
//
// Each tree's nodes are found without those of the others, so that groups of successive trees are for different threads. A
// hop has three steps: groups find which nodes are new and number them within the group; a sum over the destinations gives
// the row of the first new node of each; and groups give the nodes these rows.
type treeRows struct {
	groups  []treeGroup // of this batch, and behind them those of larger ones
	used    int
	threads int
	first   []int32 // of each destination: its new nodes, then the row of the first of them

	// Of the hop:
	indptr           []int64
	indices          []int32
	ids, of          []int32
	yield            func()
	find, give, seed func(lo, hi int) // stored because creating them again allocates
}

// treeGroup is the nodes of some successive trees.
type treeGroup struct {
	// slots is a hash table with linear probing, of the number of each node within the group.
	slots []treeSlot
	shift uint
	base  uint32 // numbers of this batch are above it

	nodes []treeNode // by number
	known int        // of them, those that had rows before the hop: its destinations
}

type treeNode struct{ tree, node, row int32 }

type treeSlot struct {
	tree, node int32
	number     uint32 // base + 1 + the number; at most base: an earlier batch's
}

// begin forgets all nodes, and gives the seeds of as many trees the first rows.
func (t *treeRows) begin(seeds []int32, threads int, yield func()) {
	t.used = parallel.Chunks(len(seeds), groupTrees)
	for len(t.groups) < t.used {
		t.groups = append(t.groups, treeGroup{})
	}
	if t.find == nil {
		t.find, t.give, t.seed = t.findIn, t.giveIn, t.seedIn
	}
	t.threads, t.yield, t.ids = threads, yield, seeds
	parallel.For(threads, len(seeds), groupTrees, t.seed)
	t.ids = nil
}

func (t *treeRows) seedIn(lo, hi int) {
	g := &t.groups[lo/groupTrees]
	g.begin()
	for tree := lo; tree < hi; tree++ {
		g.number(int32(tree), t.ids[tree])
		g.nodes[len(g.nodes)-1].row = int32(tree)
	}
}

// number replaces each source of a hop's edges by its row in the tree of its edge's destination, and appends those that have
// none yet to ids and, with their tree, to of. The destinations are the nodes that have rows.
func (t *treeRows) number(ids, of []int32, indptr []int64, indices []int32) (_, _ []int32) {
	t.indptr, t.indices = indptr, indices
	t.first = resize(t.first, len(ids))
	parallel.For(t.threads, t.used, 1, t.find)
	row := int32(len(ids))
	for d, n := range t.first {
		t.first[d] = row
		row += n
	}
	t.ids, t.of = grown(ids, int(row)), grown(of, int(row))
	parallel.For(t.threads, t.used, 1, t.give)
	ids, of = t.ids, t.of
	t.indptr, t.indices, t.ids, t.of = nil, nil, nil, nil
	return ids, of
}

// grown returns a slice of length n that begins with x.
func grown(x []int32, n int) []int32 {
	if n <= cap(x) {
		return x[:n]
	}
	y := make([]int32, n, n+n/8)
	copy(y, x)
	return y
}

// findIn numbers the sources of groups' edges within the group, and counts the new ones of each destination.
func (t *treeRows) findIn(lo, hi int) {
	for i := lo; i < hi; i++ {
		g := &t.groups[i]
		g.known = len(g.nodes)
		for k := range g.known {
			d := g.nodes[k]
			before := len(g.nodes)
			sources := t.indices[t.indptr[d.row]:t.indptr[d.row+1]]
			for at, v := range sources {
				sources[at] = g.number(d.tree, v)
			}
			t.first[d.row] = int32(len(g.nodes) - before)
		}
		t.yield()
	}
}

// giveIn gives the new nodes of groups their rows.
func (t *treeRows) giveIn(lo, hi int) {
	for i := lo; i < hi; i++ {
		g := &t.groups[i]
		fresh := g.known
		for k := range g.known {
			d := g.nodes[k]
			row := t.first[d.row]
			sources := t.indices[t.indptr[d.row]:t.indptr[d.row+1]]
			for at, number := range sources {
				if int(number) == fresh {
					n := &g.nodes[fresh]
					n.row = row
					t.ids[row], t.of[row] = n.node, n.tree
					row++
					fresh++
				}
				sources[at] = g.nodes[number].row
			}
		}
		t.yield()
	}
}

// begin forgets all nodes.
func (g *treeGroup) begin() {
	g.base += uint32(len(g.nodes))
	g.nodes = g.nodes[:0]
	if g.base > 1<<31 { // a batch has fewer than 2^31 nodes
		clear(g.slots)
		g.base = 0
	}
	if g.slots == nil {
		g.alloc(1 << 8)
	}
}

func (g *treeGroup) alloc(n int) {
	g.slots, g.shift = make([]treeSlot, n), 64
	for ; n > 1; n /= 2 {
		g.shift--
	}
}

// at returns the place of a node: its own, or a free one.
func (g *treeGroup) at(tree, node int32) *treeSlot {
	mask := uint(len(g.slots) - 1)
	for i := uint((uint64(uint32(tree))<<32 | uint64(uint32(node))) * 0x9E3779B97F4A7C15 >> g.shift); ; i++ {
		if s := &g.slots[i&mask]; s.number <= g.base || s.tree == tree && s.node == node {
			return s
		}
	}
}

// number returns a node's number within the group, the next one if it has none.
func (g *treeGroup) number(tree, node int32) int32 {
	s := g.at(tree, node)
	if s.number > g.base {
		return int32(s.number - g.base - 1)
	}
	n := len(g.nodes)
	if 2*(n+1) > len(g.slots) {
		g.grow()
		s = g.at(tree, node)
	}
	g.nodes = append(g.nodes, treeNode{tree: tree, node: node})
	*s = treeSlot{tree, node, g.base + 1 + uint32(n)}
	return int32(n)
}

// grow doubles the table.
func (g *treeGroup) grow() {
	g.alloc(2 * len(g.slots))
	for i, n := range g.nodes {
		*g.at(n.tree, n.node) = treeSlot{n.tree, n.node, g.base + 1 + uint32(i)}
	}
}
