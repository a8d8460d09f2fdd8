package backend

import (
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
)

// sum holds the parameters of an aggregation for the kernels of spmm.cu.
type sum struct {
	out                  cuda.Ptr
	indptr, indices, via cuda.Ptr
	x                    cuda.Ptr
	table                Memory // the storage of x if x is a table
	w, at                cuda.Ptr
	first                int64
	rows, cols, heads    int
	long                 cuda.ChunkList // chunks of rows longer than kernels.LongRow
	mean, acc            bool
}

func (b *Backend) aggregate(s sum) {
	heads := max(s.heads, 1)
	// Four columns that are read together must belong to the same head.
	kernel, vector := spmm.pick(s.out, s.x, s.cols, s.table, s.cols/heads%4 == 0)
	from := []any{s.out, s.indptr, s.indices, s.via, s.x, s.table.Cache, s.table.Slots, s.w, s.at, s.first}
	how := []any{s.cols, heads, asFlag(s.mean), asFlag(s.acc)}
	b.run(kernel, kernels.Tiled(s.rows, s.cols, vector), slices.Concat(from, []any{s.rows}, how)...)
	if s.long.N == 0 {
		return
	}
	hub := "hub" + strings.TrimPrefix(kernel, "spmm")
	parts := b.room(&b.chunks, 4*s.long.Parts*s.cols)
	b.run(hub, kernels.HubSums(s.long.N, s.cols, vector), slices.Concat(from, []any{s.long.Ptr, s.long.N}, how, []any{parts})...)
	b.join(s.long, parts, s.out, s.indptr, s.cols, s.mean, s.acc)
}

// join adds the partial sums of the rows of several chunks.
func (b *Backend) join(long cuda.ChunkList, parts, out, indptr cuda.Ptr, cols int, mean, acc bool) {
	if long.Parts > 0 {
		b.run("hub_join_f32", kernels.Hubs(long.N, cols), out, parts, indptr, long.Ptr, long.N, cols, asFlag(mean), asFlag(acc))
	}
}

// greatest computes the maximum over rows of cols columns.
func (b *Backend) greatest(out, arg, indptr, indices, x cuda.Ptr, first int64, long cuda.ChunkList, rows, cols int, acc bool) {
	from := []any{out, arg, indptr, indices, x, first}
	b.run("max_f32", kernels.Tiled(rows, cols, 1), slices.Concat(from, []any{rows, cols, asFlag(acc)})...)
	if long.N == 0 {
		return
	}
	n, shape := long.Parts*cols, kernels.Hubs(long.N, cols)
	values := b.room(&b.chunks, 8*n)
	list, parts := []any{long.Ptr, long.N, cols, asFlag(acc)}, []any{values, values + cuda.Ptr(4*n)}
	b.run("hub_max_f32", shape, slices.Concat(from, list, parts)...)
	if long.Parts > 0 {
		b.run("hub_max_join_f32", shape, slices.Concat([]any{out, arg}, list, parts)...)
	}
}

// greatestGrad computes the gradient of a maximum by the out-edges of a block's sources.
func (b *Backend) greatestGrad(dx, dout, arg cuda.Ptr, a *cuda.BlockArrays, rows, cols int, acc bool) {
	from := []any{dx, dout, arg, a.TIndptr, a.TDst, a.TEdge}
	b.run("max_grad_f32", kernels.Tiled(rows, cols, 1), slices.Concat(from, []any{rows, cols, asFlag(acc)})...)
	if a.TLong.N == 0 {
		return
	}
	parts := b.room(&b.chunks, 4*a.TLong.Parts*cols)
	b.run("hub_max_grad_f32", kernels.Hubs(a.TLong.N, cols), slices.Concat(from, []any{a.TLong.Ptr, a.TLong.N, cols, asFlag(acc), parts})...)
	b.join(a.TLong, parts, dx, a.TIndptr, cols, false, acc)
}

// forms are the kernels of an operation on rows, by the storage of the rows and the number of
// columns that are read at a time.
type forms struct{ f32, f32x4, f16, f16x4 string }

var (
	spmm   = forms{"spmm_f32", "spmm_f32x4", "spmm_f16", "spmm_f16x4"}
	gather = forms{"gather_f32", "gather_f32x4", "gather_f16", "gather_f16x4"}
	// The rows of edge dot products are no tables.
	edgeDot = forms{f32: "edge_dot_f32", f32x4: "edge_dot_f32x4"}
)

// pick returns the kernel for rows of a table, and the number of columns that it reads at a time:
// four, with wide, if the width and the alignment of the rows allow it.
func (f *forms) pick(out, x cuda.Ptr, cols int, table Memory, wide bool) (kernel string, vector int) {
	wide = wide && cols%4 == 0 && (x|table.Cache)%cuda.Ptr(4*table.size()) == 0 && out%16 == 0
	switch {
	case table.Half && wide:
		return f.f16x4, 4
	case table.Half:
		return f.f16, 1
	case wide:
		return f.f32x4, 4
	}
	return f.f32, 1
}

// tableOf describes the storage of a table's rows.
func tableOf(x ops.Buffer) Memory {
	if m, ok := x.Dev.(*Memory); ok {
		return *m
	}
	return Memory{}
}

// over describes a sum over the in-edges of a block's destinations or, with back, over the
// out-edges of its sources.
func over(a *cuda.BlockArrays, m *graphops.Block, out ops.Buffer, cols int) sum {
	return sum{out: addr(out), indptr: a.Indptr, indices: a.Indices, first: a.First, rows: m.NumDst, cols: cols, long: a.Long}
}

func back(a *cuda.BlockArrays, m *graphops.Block, out ops.Buffer, cols int) sum {
	return sum{out: addr(out), indptr: a.TIndptr, indices: a.TDst, rows: m.NumSrc, cols: cols, long: a.TLong}
}

// SpMM implements [ops.Backend].
func (b *Backend) SpMM(op tensor.Op, out, arg ops.Buffer, m *graphops.Block, h ops.Buffer, cols int) {
	defer runtime.KeepAlive(m)
	a := b.arrays(m)
	x, indices, ok := b.sliceSources(m, a, h, cols)
	if !ok {
		x, indices = addr(h), a.Indices
	}
	if op == tensor.Max {
		b.greatest(addr(out), optional(arg), a.Indptr, indices, x, a.First, a.Long, m.NumDst, cols, false)
		return
	}
	s := over(a, m, out, cols)
	s.x, s.indices, s.mean = x, indices, op == tensor.Mean
	b.aggregate(s)
}

// SpMMRows implements [ops.Backend]. It reads the table's rows in place, or gathers them first
// (see [sizes.GatherFirst]).
func (b *Backend) SpMMRows(op tensor.Op, out ops.Buffer, m *graphops.Block, w, table ops.Buffer, rows ops.Rows, cols int) {
	defer runtime.KeepAlive(m)
	defer runtime.KeepAlive(rows.Of)
	s := over(b.arrays(m), m, out, cols)
	s.w, s.mean = optional(w), op == tensor.Mean
	if x := b.sources(m, table, rows, cols); x != 0 {
		s.x = x
	} else {
		s.via, s.x, s.table = b.rowIDs(rows, table), tableAddr(table, rows), tableOf(table)
	}
	b.aggregate(s)
}

// sources returns the rows of a block's sources, gathered from a table in host memory if that is
// faster, and kept with the block; or 0 if they are read from the table.
func (b *Backend) sources(m *graphops.Block, table ops.Buffer, rows ops.Rows, cols int) cuda.Ptr {
	if rows.Of != m || rows.From != 0 || rows.N != m.NumSrc || !tableOf(table).Host || !sizes.GatherFirst(m.NumEdges(), rows.N) {
		return 0
	}
	a := b.arrays(m)
	if a.Rows != 0 && a.RowsOf == table.Dev {
		return a.Rows
	}
	mem, err := b.d.Alloc(cuda.Activations, int64(4*rows.N*cols))
	if err != nil {
		return 0 // no room; a failure of the device is reported elsewhere
	}
	c := b.more(a)
	c.mem = append(c.mem, mem)
	b.gather(mem.Ptr, addr(table), b.rowIDs(rows, table), rows.N, cols, tableOf(table))
	a.Rows, a.RowsOf = mem.Ptr, table.Dev
	return a.Rows
}

// GatherFirst reports whether the rows of a block's sources are gathered from a table before edges read them, and can be
// gathered by [Backend.GatherOn]: the table is in the host's memory, and the block was sampled on the device.
func (b *Backend) GatherFirst(m *graphops.Block, table Memory) bool {
	a := cuda.ArraysOf(m)
	return a != nil && a.SrcIDs != 0 && a.Ready == nil && table.Host && sizes.GatherFirst(m.NumEdges(), m.NumSrc)
}

// GatherOn gathers the rows of a block's sources into out, f32 [NumSrc, cols], on a stream that may differ from the backend's. The
// block's ids must not change before the stream has done it. It has few blocks of threads, for 192 kB in flight: 50 GB/s
// with a latency of 2 µs need 100 kB, and what exceeds that would wait in the bus's queue, before the reads of a sampler.
func (b *Backend) GatherOn(s *cuda.Stream, out cuda.Ptr, m *graphops.Block, table Memory, cols int) {
	const inFlight = 192 << 10
	kernel, vector := gather.pick(out, table.Ptr, cols, table, true)
	shape := kernels.Gathered(m.NumSrc, cols, vector)
	most := inFlight / (shape.X * shape.Y * kernels.GatheredItems * vector * table.size())
	s.Launch(kernel, cuda.Dim{X: min(shape.Grid, most)}, cuda.Dim{X: shape.X, Y: shape.Y}, 0,
		out, table.Ptr, table.Cache, table.Slots, cuda.ArraysOf(m).SrcIDs, m.NumSrc, cols)
}

// rowIDs returns the address of the rows' ids: those of a block on the device or of the table, or a copy. The
// caller keeps rows.Of alive until the kernel is launched.
func (b *Backend) rowIDs(r ops.Rows, table ops.Buffer) cuda.Ptr {
	if r.Of != nil {
		if a := cuda.ArraysOf(r.Of); a != nil && a.SrcIDs != 0 {
			b.ready(a)
			return a.SrcIDs + cuda.Ptr(4*r.From)
		}
	}
	if m, ok := table.Dev.(*Memory); ok && len(m.IDs) > 0 && len(r.IDs) > 0 && within(m.IDs, r.IDs) {
		return m.IDsAt + cuda.Ptr(uintptr(unsafe.Pointer(&r.IDs[0]))-uintptr(unsafe.Pointer(&m.IDs[0])))
	}
	return b.ids(r.IDs)
}

// GatherRows implements [ops.Backend].
func (b *Backend) GatherRows(out, table ops.Buffer, rows ops.Rows, cols int) {
	defer runtime.KeepAlive(rows.Of)
	if rows.Of != nil {
		if a := cuda.ArraysOf(rows.Of); a != nil && a.Rows != 0 && a.RowsOf == table.Dev {
			b.s.Copy(addr(out), a.Rows+cuda.Ptr(4*cols*rows.From), int64(4*cols*rows.N))
			return
		}
	}
	b.gather(addr(out), tableAddr(table, rows), b.rowIDs(rows, table), rows.N, cols, tableOf(table))
}

func (b *Backend) gather(out, x, ids cuda.Ptr, rows, cols int, table Memory) {
	kernel, vector := gather.pick(out, x, cols, table, true)
	b.run(kernel, kernels.Gathered(rows, cols, vector), out, x, table.Cache, table.Slots, ids, rows, cols)
}

// SpMMGrad implements [ops.Backend].
func (b *Backend) SpMMGrad(op tensor.Op, dh, dOut, arg ops.Buffer, m *graphops.Block, cols int, acc bool) {
	defer runtime.KeepAlive(m)
	a := b.transposed(m)
	if op == tensor.Max {
		b.greatestGrad(addr(dh), addr(dOut), addr(arg), a, m.NumSrc, cols, acc)
		return
	}
	s := back(a, m, dh, cols)
	s.x, s.acc = addr(dOut), acc
	if op == tensor.Mean {
		s.w, s.at = b.room(&b.parts, 4*m.NumDst), a.TDst
		b.run("shares_f32", kernels.Items(m.NumDst), s.w, a.Indptr, m.NumDst)
	}
	b.aggregate(s)
}

// GatherSrc implements [ops.Backend].
func (b *Backend) GatherSrc(msg ops.Buffer, m *graphops.Block, h ops.Buffer, cols int) {
	defer runtime.KeepAlive(m)
	a := b.arrays(m)
	b.gather(addr(msg), addr(h), a.Indices+cuda.Ptr(4*a.First), m.NumEdges(), cols, Memory{})
}

// ScatterSrc implements [ops.Backend].
func (b *Backend) ScatterSrc(dh ops.Buffer, m *graphops.Block, dMsg ops.Buffer, cols int, acc bool) {
	defer runtime.KeepAlive(m)
	a := b.transposed(m)
	s := back(a, m, dh, cols)
	s.indices, s.x, s.acc = a.TEdge, addr(dMsg), acc
	b.aggregate(s)
}

// Segment implements [ops.Backend].
func (b *Backend) Segment(op tensor.Op, out, arg ops.Buffer, m *graphops.Block, msg ops.Buffer, cols int, acc bool) {
	defer runtime.KeepAlive(m)
	a := b.arrays(m)
	if op == tensor.Max {
		b.greatest(addr(out), optional(arg), a.Indptr, 0, addr(msg), a.First, a.Long, m.NumDst, cols, acc)
		return
	}
	s := over(a, m, out, cols)
	s.indices, s.x, s.mean, s.acc = 0, addr(msg), op == tensor.Mean, acc
	b.aggregate(s)
}

// SegmentGrad implements [ops.Backend].
func (b *Backend) SegmentGrad(op tensor.Op, dMsg, dOut, arg ops.Buffer, m *graphops.Block, cols int, acc bool) {
	defer runtime.KeepAlive(m)
	a := b.arrays(m)
	winner := cuda.Ptr(0)
	if op == tensor.Max {
		winner = addr(arg)
	}
	b.run("segment_grad_f32", kernels.Tiled(m.NumDst, cols, 1), addr(dMsg), addr(dOut), winner, a.Indptr, a.First, m.NumDst, cols, asFlag(op == tensor.Mean), asFlag(acc))
}

// SpMMWeighted implements [ops.Backend].
func (b *Backend) SpMMWeighted(out ops.Buffer, m *graphops.Block, w ops.Buffer, heads int, h ops.Buffer, cols int, acc bool) {
	defer runtime.KeepAlive(m)
	a := b.arrays(m)
	s := over(a, m, out, cols)
	s.x, s.w, s.heads, s.acc = addr(h), optional(w), heads, acc
	if x, indices, ok := b.sliceSources(m, a, h, cols); ok {
		s.x, s.indices = x, indices
	}
	b.aggregate(s)
}

// SpMMWeightedGrad implements [ops.Backend].
func (b *Backend) SpMMWeightedGrad(dh, dOut, w ops.Buffer, heads int, m *graphops.Block, cols int, acc bool) {
	defer runtime.KeepAlive(m)
	a := b.transposed(m)
	s := back(a, m, dh, cols)
	s.x, s.w, s.at, s.heads, s.acc = addr(dOut), optional(w), a.TEdge, heads, acc
	b.aggregate(s)
}

// EdgeDot implements [ops.Backend].
func (b *Backend) EdgeDot(dw ops.Buffer, m *graphops.Block, dOut, h ops.Buffer, heads, cols int, acc bool) {
	defer runtime.KeepAlive(m)
	a := b.arrays(m)
	from := []any{addr(dw), a.Indptr, a.Indices, addr(dOut), addr(h), a.First}
	kernel, vector := edgeDot.pick(addr(dOut), addr(h), cols, Memory{}, cols/heads%4 == 0)
	b.run(kernel, kernels.Rows(m.NumDst*heads, cols/heads/vector), slices.Concat(from, []any{m.NumDst, cols, heads, asFlag(acc)})...)
	b.run("hub_edge_dot_f32", kernels.HubHeads(a.Long.N, heads, cols/heads), slices.Concat(from, []any{a.Long.Ptr, a.Long.N, cols, heads, asFlag(acc)})...)
}

// EdgeSoftmax implements [ops.Backend].
func (b *Backend) EdgeSoftmax(y ops.Buffer, m *graphops.Block, x ops.Buffer, cols int) {
	defer runtime.KeepAlive(m)
	a := b.arrays(m)
	b.run("edge_softmax_f32", kernels.Rows(m.NumDst, cols), addr(y), a.Indptr, addr(x), a.First, m.NumDst, cols)
	if a.Long.N == 0 {
		return
	}
	n := a.Long.Parts * cols
	sums := b.room(&b.chunks, 12*n)
	tops, list := sums+cuda.Ptr(8*n), []any{a.Long.Ptr, a.Long.N, cols}
	args := slices.Concat([]any{addr(y), a.Indptr, addr(x), a.First}, list, []any{tops, sums})
	b.hubSoftmax("hub_edge_softmax", a.Long, cols, args, append([]any{tops, sums}, list...))
}

// hubSoftmax launches the kernels of a softmax or its gradient for long rows: those named kernel_join_f32, with the
// arguments join, and kernel_end_f32, only if a row has several chunks.
func (b *Backend) hubSoftmax(kernel string, long cuda.ChunkList, cols int, args, join []any) {
	shape := kernels.Hubs(long.N, cols)
	b.run(kernel+"_f32", shape, args...)
	if long.Parts > 0 {
		b.run(kernel+"_join_f32", shape, join...)
		b.run(kernel+"_end_f32", shape, args...)
	}
}

// EdgeSoftmaxGrad implements [ops.Backend].
func (b *Backend) EdgeSoftmaxGrad(dx, dy, y ops.Buffer, m *graphops.Block, cols int, acc bool) {
	defer runtime.KeepAlive(m)
	a := b.arrays(m)
	b.run("edge_softmax_grad_f32", kernels.Rows(m.NumDst, cols), addr(dx), a.Indptr, addr(dy), addr(y), a.First, m.NumDst, cols, asFlag(acc))
	if a.Long.N == 0 {
		return
	}
	sums, list := b.room(&b.chunks, 8*a.Long.Parts*cols), []any{a.Long.Ptr, a.Long.N, cols}
	args := slices.Concat([]any{addr(dx), a.Indptr, addr(dy), addr(y), a.First}, list, []any{asFlag(acc), sums})
	b.hubSoftmax("hub_edge_softmax_grad", a.Long, cols, args, append([]any{sums}, list...))
}
