package gemm

import (
	"sync"
	"unsafe"
)

// buffer is reusable memory that grows and starts at a cache line.
type buffer struct{ mem []float32 }

// get returns n elements of any content.
func (b *buffer) get(n int) []float32 {
	if cap(b.mem) < n {
		const line = 16
		m := make([]float32, n+line)
		skip := (-uintptr(unsafe.Pointer(&m[0]))) % (4 * line) / 4
		b.mem = m[skip:]
	}
	b.mem = b.mem[:n]
	return b.mem
}

// worker holds the buffers that one goroutine needs to compute a block.
type worker struct {
	tile  tile
	ahead ahead
	// Rows gathered through an index; rounded rows of A, and these transposed or packed in groups;
	// rounded rows of B; and a chunk's packed B.
	gathered, a, turned, groups, narrow, b buffer
}

var workers = sync.Pool{New: func() any { return new(worker) }}

func getWorker() *worker { return workers.Get().(*worker) }

// free drops references to the caller's memory.
func (w *worker) free() {
	w.tile, w.ahead = tile{}, ahead{}
	workers.Put(w)
}
