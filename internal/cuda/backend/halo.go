package backend

import (
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
	"github.com/graphnb/graphnb/internal/cuda/nccl"
)

// FillHalo fills the halo of rows [·, cols], whose first h.Own rows are this rank's, with the rows of
// their owners, over c. All ranks call it for their blocks of one level. It does not wait.
func (b *Backend) FillHalo(c *nccl.Comm, h *graphops.Halo, rows ops.Buffer, cols int) {
	ids, packed := b.packed(h, cols)
	defer ids.Free()
	defer packed.Free()
	if n := total(h.To); n > 0 {
		b.gather(packed.Ptr, addr(rows), ids.Ptr, n, cols, Memory{})
	}
	c.Exchange(b.s, stretches(packed.Ptr, h.To, cols), stretches(haloOf(h, rows, cols), h.From, cols))
}

// AddHalo adds to the first h.Own rows of d [·, cols] the rows that the other ranks have for them in the
// halo of their d, over c: by rank, then row, with the CPU's bits. All ranks call it for their blocks of one
// level. It does not wait.
func (b *Backend) AddHalo(c *nccl.Comm, h *graphops.Halo, d ops.Buffer, cols int) {
	ids, packed := b.packed(h, cols)
	defer ids.Free()
	defer packed.Free()
	got := stretches(packed.Ptr, h.To, cols)
	c.Exchange(b.s, stretches(haloOf(h, d, cols), h.From, cols), got)
	at := ids.Ptr
	for r, to := range h.To {
		b.addRows(addr(d), got[r].At, at, len(to), cols)
		at += cuda.Ptr(4 * len(to))
	}
}

// Broadcast sends the kept rows of host memory ([Backend.Room]) of rank root to all ranks, over c. It does not wait.
func (b *Backend) Broadcast(c *nccl.Comm, host []float32, root int) {
	if x, ok := b.Kept(host); ok && len(host) > 0 {
		c.Broadcast(b.s, addr(x), len(host), root)
	}
}

// addRows adds row i of x [n, cols] to row ids[i] of out, for each i. No two ids are the same.
func (b *Backend) addRows(out, x, ids cuda.Ptr, n, cols int) {
	if n > 0 && cols > 0 {
		b.run("add_rows_f32", kernels.Rows(n, cols), out, x, ids, n, cols)
	}
}

// packed returns memory for the rows of h.To, one after the other, and the ids of these rows.
func (b *Backend) packed(h *graphops.Halo, cols int) (ids, rows *cuda.Buffer) {
	n := total(h.To)
	ids = b.alloc(cuda.Activations, 4*n)
	if n > 0 {
		fail(cuda.CopyIn(b.s, ids.Ptr, slices.Concat(h.To...)))
	}
	return ids, b.alloc(cuda.Activations, 4*n*cols)
}

// haloOf returns the address of the first halo row.
func haloOf(h *graphops.Halo, rows ops.Buffer, cols int) cuda.Ptr {
	return addr(rows) + cuda.Ptr(4*h.Own*cols)
}

// stretches divides consecutive rows by rank.
func stretches(at cuda.Ptr, lists [][]int32, cols int) []nccl.Floats {
	all := make([]nccl.Floats, len(lists))
	for r, l := range lists {
		all[r] = nccl.Floats{At: at, N: len(l) * cols}
		at += cuda.Ptr(4 * len(l) * cols)
	}
	return all
}

func total(lists [][]int32) (n int) {
	for _, l := range lists {
		n += len(l)
	}
	return n
}
