package plane

// tableNodes is the largest graph for which a table has an entry for each node, in at most 32 MiB.
const tableNodes = 1 << 23

// table has the slots of some nodes: by node in a graph of up to tableNodes, else, also of an unknown number, in a map.
type table struct {
	direct []int32 // one more than the slot, or 0
	rest   map[int32]int32
}

func newTable(nodes int) *table {
	if 0 < nodes && nodes <= tableNodes {
		return &table{direct: make([]int32, nodes)}
	}
	return &table{rest: map[int32]int32{}}
}

func (t *table) get(v int32) (at int32, ok bool) {
	if t.direct != nil {
		at = t.direct[v] - 1
		return at, at >= 0
	}
	at, ok = t.rest[v]
	return at, ok
}

func (t *table) put(v, at int32) {
	if t.direct != nil {
		t.direct[v] = at + 1
		return
	}
	t.rest[v] = at
}

func (t *table) drop(v int32) {
	if t.direct != nil {
		t.direct[v] = 0
		return
	}
	delete(t.rest, v)
}
