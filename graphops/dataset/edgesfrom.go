package dataset

import (
	"fmt"
	"sort"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
)

// edgesFrom is the in-edges of some nodes of a graph, in the order of the nodes, which are copied piece by piece.
type edgesFrom struct {
	rows   []int32
	from   []int64 // the graph's Indptr
	to     []int64 // where the edges of each of rows begin
	number func(node int32) int32
	piece  []byte
}

// selectEdges makes the sections of what edges have read it from o.Edges. g is the graph that is written.
func (o WriteOptions) selectEdges(parts []section, g *graphops.Graph) error {
	e := &edgesFrom{rows: o.Rows, from: o.Edges.Indptr, to: g.Indptr, number: o.Number}
	if len(e.to) <= len(e.rows) || e.number == nil {
		return fmt.Errorf("%d nodes have their edges from another graph, and the one that is written has %d offsets", len(e.rows), len(e.to))
	}
	for i, v := range e.rows {
		if want, got := int64(o.Edges.InDegree(v)), e.to[i+1]-e.to[i]; want != got {
			return fmt.Errorf("node %d has %d in-edges, and %d where it is written", v, want, got)
		}
	}
	whole := Dataset{Graph: o.Edges}
	for _, a := range whole.arrays() {
		for i := range parts {
			if s := &parts[i]; s.name == a.section && s.name != indptrFile {
				s.body, s.edges = a.body, e
			}
		}
	}
	return nil
}

// bytes returns n bytes, from byte at on, of what the edges have in body, in which each has size bytes; ids says that these
// are sources, which get their written numbers. The bytes are valid until the next call.
func (e *edgesFrom) bytes(body []byte, size, at, n int, ids bool) []byte {
	if n == 0 {
		return nil
	}
	edge, end := int64(at/size), int64((at+n+size-1)/size)
	first := edge
	if need := int(end-first) * size; cap(e.piece) < need {
		e.piece = make([]byte, 0, need)
	}
	e.piece = e.piece[:0]
	i := sort.Search(len(e.rows), func(i int) bool { return e.to[i+1] > edge }) // the node that has it
	for ; edge < end; i++ {
		lo := e.from[e.rows[i]] + edge - e.to[i]
		hi := e.from[e.rows[i]] + min(end, e.to[i+1]) - e.to[i]
		e.piece = append(e.piece, body[int(lo)*size:int(hi)*size]...)
		edge += hi - lo
	}
	if ids {
		for k, u := range unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(e.piece))), len(e.piece)/4) {
			*(*int32)(unsafe.Pointer(&e.piece[4*k])) = e.number(u)
		}
	}
	return e.piece[at-int(first)*size:][:n]
}
