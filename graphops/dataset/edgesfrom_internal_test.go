package dataset

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// Any piece of what the edges of some nodes have is that of all of it, for rows of any size, nodes without edges, and
// pieces that begin and end within an edge.
func TestEdgesFrom(t *testing.T) {
	whole := &graphops.Graph{Indptr: []int64{0, 3, 3, 5, 6, 10}, Indices: []int32{4, 1, 2, 0, 3, 3, 4, 0, 1, 2}}
	rows := []int32{4, 1, 0, 3, 1}
	e := &edgesFrom{rows: rows, from: whole.Indptr, to: []int64{0}, number: func(u int32) int32 { return 100 + u }}
	for _, size := range []int{4, 2, 12} {
		body := make([]byte, size*len(whole.Indices))
		for i := range body {
			body[i] = byte(i)
		}
		e.to = e.to[:1]
		var want []byte
		for _, v := range rows {
			want = append(want, body[size*int(whole.Indptr[v]):size*int(whole.Indptr[v+1])]...)
			e.to = append(e.to, int64(len(want)/size))
		}
		for at := range len(want) + 1 {
			for n := range len(want) - at + 1 {
				if got := e.bytes(body, size, at, n, false); !bytes.Equal(got, want[at:at+n]) {
					t.Fatalf("edges of %d bytes: %d bytes from %d on are %v, want %v", size, n, at, got, want[at:at+n])
				}
			}
		}
	}
	var want []int32
	for _, v := range rows {
		for _, u := range whole.InNeighbors(v) {
			want = append(want, 100+u)
		}
	}
	if got := e.bytes(rawBytes(whole.Indices), 4, 4, 4*len(want)-4, true); !bytes.Equal(got, rawBytes(want[1:])) {
		t.Errorf("the sources are %v, want %v", got, want[1:])
	}
	parts := []section{{name: indicesFile}}
	o := WriteOptions{Rows: rows, Edges: whole, Number: e.number}
	if err := o.selectEdges(parts, &graphops.Graph{Indptr: []int64{0, 4, 4, 7, 9, 9}}); err == nil || !strings.Contains(err.Error(), "node 3 has 1 in-edges, and 2 where it is written") {
		t.Errorf("other offsets: %v", err)
	}
	if err := o.selectEdges(parts, &graphops.Graph{Indptr: slices.Clone(e.to[:3])}); err == nil {
		t.Error("too few offsets pass")
	}
}
