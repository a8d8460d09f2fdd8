package backend

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda"
)

// Memory is memory that kernels read and that outlives a pass: the weights of a model, or a table of
// features on the device or in host memory that the device reads. It is the Dev of a
// [ops.Buffer] within it.
type Memory struct {
	Ptr cuda.Ptr
	// Half means that the elements are stored as f16. Cache and Slots describe copies of some rows
	// in faster memory: row r of the table is also row Slots[r] (i32) of Cache, in the table's
	// storage, unless Slots[r] is negative. Only SpMMRows and GatherRows read the cache.
	Half         bool
	Cache, Slots cuda.Ptr
	// Host means that the table is in host memory, which kernels read over a bus.
	Host bool
	// Some, if not nil, lists the only rows that exist, all in the cache. The table itself does not
	// exist, and reading other rows is an error.
	Some *Some
	// IDs, if not nil, is host memory with ids of rows that the device has at IDsAt: an operation that is given a part of
	// it reads them there.
	IDs   []int32
	IDsAt cuda.Ptr
	// Ended means that the table does not exist any more: reading it is an error.
	Ended bool

	own *cuda.Buffer
}

// Some are some rows of a table, valid until [Some.End].
type Some struct {
	ids   []int32
	has   map[int32]struct{} // the ids as a set, made at the first search
	ended bool
}

// SomeRows returns the rows ids of a table. They do not change until End.
func SomeRows(ids []int32) *Some { return &Some{ids: ids} }

// End removes the rows: using them later is an error.
func (s *Some) End() { *s = Some{ended: true} }

var (
	errSome  = errors.New("the features lie in host memory and only the rows of a batch are copied to the device, but an operation reads all of them; keep them on the device or in pinned memory (GNB_CUDA_FEATURES), or compute this on the CPU")
	errEnded = errors.New("the features lie in host memory and only the rows of a batch are copied to the device, but an operation reads them outside a batch, or reads those of an earlier batch; read them within the batch, or keep them on the device or in pinned memory (GNB_CUDA_FEATURES)")
)

// check returns an error if some of rows are missing. It searches for each id, unless the ids are
// those of Some itself or a part of them in the same memory.
func (s *Some) check(rows ops.Rows) error {
	switch {
	case rows.N == 0:
		return nil
	case s.ended:
		return errEnded
	}
	ids := rows.IDs
	if rows.Of != nil {
		if rows.Of.RowsAreNodes() {
			return s.node(int32(rows.From), rows.N)
		}
		ids = rows.Of.SrcIDs()[rows.From:]
	}
	ids = ids[:rows.N]
	if len(s.ids) > 0 && within(s.ids, ids) {
		return nil
	}
	for _, v := range ids {
		if err := s.node(v, 1); err != nil {
			return err
		}
	}
	return nil
}

// node describes why some of the nodes from v to v+n are missing.
func (s *Some) node(v int32, n int) error {
	if s.has == nil {
		s.has = make(map[int32]struct{}, len(s.ids))
		for _, v := range s.ids {
			s.has[v] = struct{}{}
		}
	}
	for end := v + int32(n); v < end; v++ {
		if _, ok := s.has[v]; !ok {
			return fmt.Errorf("the features of node %d are read, but they lie in host memory, only the rows of a batch are copied to the device, and the node is not in this batch; keep the features on the device or in pinned memory (GNB_CUDA_FEATURES), or sample the node", v)
		}
	}
	return nil
}

// within reports whether part is inside the memory of all; neither is empty.
func within(all, part []int32) bool {
	lo, at := uintptr(unsafe.Pointer(unsafe.SliceData(all))), uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	return at >= lo && at+uintptr(4*len(part)) <= lo+uintptr(4*len(all))
}

// size returns the number of bytes of an element.
func (m Memory) size() int {
	if m.Half {
		return 2
	}
	return 4
}

// kept holds copies of host memory in the order of their addresses; they do not overlap.
type kept []keptRange

type keptRange struct {
	host []byte // keeps the memory alive, and with it its address
	mem  *Memory
}

func start(host []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(host))) }

// bytesOf returns host memory as bytes.
func bytesOf[T float32 | uint16](host []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(host))), len(host)*int(unsafe.Sizeof(*new(T))))
}

// find returns the index of the range that holds the address, or of the first range behind it.
func (k kept) find(at uintptr) (int, bool) {
	return slices.BinarySearchFunc(k, at, func(r keptRange, at uintptr) int {
		switch lo := start(r.host); {
		case at < lo:
			return 1
		case at >= lo+uintptr(len(r.host)):
			return -1
		}
		return 0
	})
}

func (k *kept) free() {
	for _, r := range *k {
		r.mem.own.Free()
	}
	*k = nil
}

// Keep copies host memory to the device until Drop. Every pass uses the copy, and results written
// to it, such as gradients, stay there. Changes on one side reach the other by [Backend.Push] and
// [Backend.Pull]. It panics where a part is kept already.
func (b *Backend) Keep(host []float32) (*Memory, error) { return b.keep(host, cuda.Params) }

func (b *Backend) keep(host []float32, use cuda.Use) (*Memory, error) {
	own, err := b.d.Alloc(use, int64(4*len(host)))
	if err != nil {
		return nil, err
	}
	m := &Memory{Ptr: own.Ptr, own: own}
	if err := cuda.CopyIn(b.s, m.Ptr, host); err != nil {
		own.Free()
		return nil, err
	}
	b.Share(host, m)
	return m, nil
}

// Hold implements [ops.Keeper].
func (b *Backend) Hold(host []float32) (release func(), err error) {
	if _, ok := b.Kept(host); ok {
		return func() {}, nil
	}
	b.slice.free() // of the layer before; the device may have no room for both
	if _, err := b.keep(host, cuda.Activations); err != nil {
		return nil, err
	}
	return func() { b.Drop(host) }, nil
}

// Room implements [ops.Keeper]. The memory is optional, and a pass on its rows needs more: chunks of a layer, and for some
// layers the rows of all sources, transformed. So there is room only if four times as much is free.
func (b *Backend) Room(host []float32) (release func(), ok bool) {
	bytes := int64(4 * len(host))
	if m := b.d.Memory(); bytes == 0 || m.Limit-m.Reserved < 4*bytes {
		return nil, false
	}
	own, err := b.d.Alloc(cuda.Activations, bytes)
	if err != nil {
		return nil, false
	}
	b.Share(host, &Memory{Ptr: own.Ptr, own: own})
	return func() { b.Drop(host) }, true
}

// Share declares that the content of host memory is at mem: passes that are given host read mem.
// The caller keeps ownership of mem. The host memory then serves only as a name and may hold
// anything. Sharing the same memory again replaces mem, for passes that begin later. It panics if a
// part of it is already kept.
func (b *Backend) Share(host []float32, mem *Memory) { b.share(bytesOf(host), mem) }

// ShareHalf is Share for a table of float16; mem holds float16 too.
func (b *Backend) ShareHalf(host []uint16, mem *Memory) { b.share(bytesOf(host), mem) }

func (b *Backend) share(host []byte, mem *Memory) {
	if len(host) == 0 {
		return
	}
	i, found := b.kept.find(start(host))
	if found && start(b.kept[i].host) == start(host) && len(b.kept[i].host) == len(host) && b.kept[i].mem.own == nil {
		b.kept[i].mem = mem
		return
	}
	if found || i < len(b.kept) && start(host[len(host)-1:]) >= start(b.kept[i].host) {
		panic("backend: host memory is kept twice; drop it first")
	}
	b.kept = slices.Insert(b.kept, i, keptRange{host, mem})
}

// Drop ends what Keep or Share began. Memory of Keep is freed.
func (b *Backend) Drop(host []float32) { b.drop(bytesOf(host)) }

// DropHalf ends ShareHalf.
func (b *Backend) DropHalf(host []uint16) { b.drop(bytesOf(host)) }

func (b *Backend) drop(host []byte) {
	if len(host) == 0 {
		return
	}
	if i, found := b.kept.find(start(host)); found {
		b.kept[i].mem.own.Free()
		b.kept = slices.Delete(b.kept, i, i+1)
	}
}

// Kept implements [ops.Keeper].
func (b *Backend) Kept(host []float32) (ops.Buffer, bool) { return b.find(bytesOf(host), 4) }

// KeptHalf is Kept for a table of float16.
func (b *Backend) KeptHalf(host []uint16) (ops.Buffer, bool) { return b.find(bytesOf(host), 2) }

// find returns kept memory whose elements have size bytes.
func (b *Backend) find(host []byte, size int) (ops.Buffer, bool) {
	if len(host) == 0 {
		return ops.Buffer{Dev: b.empty}, true
	}
	i, found := b.kept.find(start(host))
	if !found {
		return ops.Buffer{}, false
	}
	r := b.kept[i]
	off := int(start(host) - start(r.host))
	if off+len(host) > len(r.host) {
		return ops.Buffer{}, false
	}
	return ops.Buffer{Dev: r.mem, Off: off / size, N: len(host) / size}, true
}

// Push copies kept host memory to the device again, Pull back from it. Both do
// nothing for memory that is not kept.
func (b *Backend) Push(host []float32) error {
	if x, ok := b.Kept(host); ok {
		return cuda.CopyIn(b.s, addr(x), host)
	}
	return nil
}

// Pull waits for the operations submitted before.
func (b *Backend) Pull(host []float32) error {
	if x, ok := b.Kept(host); ok {
		return cuda.CopyOut(b.s, host, addr(x))
	}
	return nil
}
