package feed

import (
	"context"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// awayRows reads the rows of learned embeddings of which each machine has some.
type awayRows struct {
	x     *plane.Exchange // made when needed
	read  []float32       // the rows of the last read
	away  []int32         // nodes of other machines
	place []int           // of each of them in a read
	got   []float32       // their rows
}

// ownShard is the learned rows on this machine.
type ownShard struct{ t *Embeddings }

func (o ownShard) Has(v int32) bool {
	return v >= 0 && int(v) < o.t.nodes && o.t.here(v)
}

func (o ownShard) Gather(dst []byte, ids []int32) error {
	width := 4 * o.t.Cols
	for i, v := range ids {
		if o.Has(v) {
			at := o.t.row(v) * o.t.Cols
			copy(dst[i*width:(i+1)*width], bytesOf(o.t.W[at:at+o.t.Cols]))
		}
	}
	return nil
}

// Read returns the rows of the distinct nodes ids [len(ids), cols], in memory that is valid until the next read. Every
// rank that asks others gets them in one request to each, and answers theirs. Collective if Apart is.
func (t *Embeddings) Read(ids []int32) ([]float32, error) {
	for i, v := range ids {
		if v < 0 || int(v) >= t.nodes {
			return nil, fmt.Errorf("gnb: learned embeddings of %d nodes have no row of node %d, which is number %d of a batch", t.nodes, v, i)
		}
	}
	a := &t.away
	n := len(ids) * t.Cols
	if cap(a.read) < n {
		a.read = make([]float32, n+n/4)
	}
	a.read = a.read[:n]
	if t.apart() {
		if err := t.readAway(ids); err != nil {
			return nil, err
		}
	}
	return a.read, ownShard{t}.Gather(bytesOf(a.read), ids)
}

// readAway reads the rows of nodes of other machines.
func (t *Embeddings) readAway(ids []int32) error {
	a := &t.away
	if a.x == nil {
		a.x = &plane.Exchange{Comm: t.o.Comm, Owner: t.owner, Own: ownShard{t}, RowBytes: 4 * t.Cols}
	}
	a.x.Site = t.o.Site("learned rows of other machines")
	a.away, a.place = a.away[:0], a.place[:0]
	for i, v := range ids {
		if !t.here(v) {
			a.away, a.place = append(a.away, v), append(a.place, i)
		}
	}
	if n := len(a.away) * t.Cols; cap(a.got) < n {
		a.got = make([]float32, n+n/4)
	}
	a.got = a.got[:len(a.away)*t.Cols]
	if err := a.x.Rows(context.Background(), a.away, bytesOf(a.got)); err != nil {
		return fmt.Errorf("gnb: getting %d learned rows of other machines: %w", len(a.away), err)
	}
	for k, i := range a.place {
		copy(a.read[i*t.Cols:(i+1)*t.Cols], a.got[k*t.Cols:])
	}
	return nil
}

// Leaf returns a copy of the rows of nodes as [nn.Embedding.Leaf] does. Collective if Apart is.
func (t *Embeddings) Leaf(f *nn.Fwd, ids []int32, sp *nn.Space) (*nn.Tensor, error) {
	if !t.apart() {
		return t.Embedding.Leaf(f, ids, sp), nil
	}
	rows, err := t.Read(ids)
	if err != nil {
		return nil, err
	}
	return f.Leaf(len(ids), t.Cols, rows, sp), nil
}

// Again returns the rows that the last pass has read, without a gradient and without other ranks.
func (t *Embeddings) Again(f *nn.Fwd, sp *nn.Space) *nn.Tensor {
	if t.some != nil {
		return t.mixedAgain(f, sp)
	}
	return f.Input(len(t.away.read)/t.Cols, t.Cols, t.away.read, sp)
}

// All returns a matrix of all rows that the ranks of this machine share, for a layer-wise evaluation whose rows do not
// stay with the ranks that own them. Release it. Collective.
func (t *Embeddings) All(site collective.Site) (collective.Matrix, error) {
	m, err := t.o.Comm.NewMatrix(site, t.nodes, t.Cols)
	if err != nil {
		return nil, err
	}
	if t.parts != nil { // the rows of an owner are no range
		lo, hi := collective.Share(t.nodes, t.rank, t.world)
		ids := make([]int32, hi-lo)
		for i := range ids {
			ids[i] = int32(lo + i)
		}
		rows, err := t.Read(ids)
		if err != nil {
			return nil, err
		}
		copy(m.Data()[lo*t.Cols:], rows)
		return m, m.Publish(site, lo, hi)
	}
	lo, hi := t.nodes, 0
	t.each(t.rank, 0, t.nodes, func(v int32, row int) {
		copy(m.Data()[int(v)*t.Cols:int(v+1)*t.Cols], t.W[row*t.Cols:])
		lo, hi = min(lo, int(v)), int(v)+1
	})
	return m, m.Publish(site, min(lo, hi), hi)
}

// Gather writes one of the table's parts to a slice [nodes, cols] at rank 0: the rows (0), or a part of their optimiser's
// state (1, 2). The other ranks pass nil. A message has at most pieceBytes. Collective.
func (t *Embeddings) Gather(part int, to []float32) error {
	site, from := t.o.Site("learned rows for rank 0"), [][]float32{t.W, t.m, t.v}[part]
	send := make([][]byte, t.world)
	var got [][]byte
	step := max(1, pieceBytes/(4*t.Cols))
	for lo := 0; lo < t.nodes; lo += step {
		hi := min(lo+step, t.nodes)
		send[0] = send[0][:0]
		if t.rank != 0 {
			rows := 0
			t.each(t.rank, lo, hi, func(int32, int) { rows++ })
			send[0] = slices.Grow(send[0], 4*t.Cols*rows) // growth by steps would leave several times as much behind
			t.each(t.rank, lo, hi, func(_ int32, row int) {
				send[0] = append(send[0], bytesOf(from[row*t.Cols:(row+1)*t.Cols])...)
			})
		}
		var err error
		if got, err = collective.AllToAllInto(t.o.Comm, site, send, got); err != nil {
			return err
		}
		if t.rank != 0 {
			continue
		}
		next := make([]int, t.world) // bytes of each rank's message that are in place
		for v := int32(lo); int(v) < hi; v++ {
			dst := to[int(v)*t.Cols : int(v+1)*t.Cols]
			r := t.owner(v)
			if r == 0 {
				copy(dst, from[t.row(v)*t.Cols:])
				continue
			}
			if next[r]+4*t.Cols <= len(got[r]) {
				copy(bytesOf(dst), got[r][next[r]:])
			}
			next[r] += 4 * t.Cols
		}
		for r, b := range got {
			if next[r] != len(b) {
				return fmt.Errorf("gnb: rank %d sent %d bytes of learned rows; expected %d; all ranks must have the same division of the dataset", r, len(b), next[r])
			}
		}
	}
	return nil
}

// scatter writes the rows of from [nodes, cols] at rank 0 to the memory of their owners. Collective.
func (t *Embeddings) scatter(from, to []float32) error {
	site := t.o.Site("learned rows of rank 0")
	send := make([][]byte, t.world)
	var got [][]byte
	step := max(1, pieceBytes/(4*t.Cols))
	for lo := 0; lo < t.nodes; lo += step {
		hi := min(lo+step, t.nodes)
		sizes := make([]int, t.world)
		for v := int32(lo); t.rank == 0 && int(v) < hi; v++ {
			sizes[t.owner(v)] += 4 * t.Cols
		}
		for r := range send {
			send[r] = slices.Grow(send[r][:0], sizes[r])
		}
		for v := int32(lo); t.rank == 0 && int(v) < hi; v++ {
			r := t.owner(v)
			send[r] = append(send[r], bytesOf(from[int(v)*t.Cols:int(v+1)*t.Cols])...)
		}
		var err error
		if got, err = collective.AllToAllInto(t.o.Comm, site, send, got); err != nil {
			return err
		}
		b, size := got[0], 0
		t.each(t.rank, lo, hi, func(_ int32, row int) {
			size += 4 * t.Cols
			b = b[copy(bytesOf(to[row*t.Cols:(row+1)*t.Cols]), b):]
		})
		if size != len(got[0]) {
			return fmt.Errorf("gnb: rank 0 sent %d bytes of learned rows; expected %d; all ranks must have the same division of the dataset", len(got[0]), size)
		}
	}
	return nil
}
