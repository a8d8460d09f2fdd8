// Package goheap predicts the size of a Go heap from what a program allocates.
package goheap

// Heap follows the size of a worker's Go heap through a run. A collection runs when the heap has reached its goal: the
// bytes that were in use at the last collection and heapRoom more, and heapRoom alone before the first one. Pages of
// dropped arrays stay resident until they are reused.
type Heap struct {
	live, used, goal int64 // bytes in use, those with garbage, and the size at which a collection runs
	peak             int64 // the largest used
	collections      int
	arrays           int64 // bytes of arrays that have become garbage
}

// heapRoom is the garbage that a worker's heap holds (entry.BoundGarbage).
const heapRoom = 64 << 20

// New returns an empty heap.
func New() *Heap { return &Heap{goal: heapRoom} }

// Keep allocates memory that stays in use.
func (h *Heap) Keep(bytes int64) { h.alloc(bytes, true) }

// Replace allocates arrays that become garbage.
func (h *Heap) Replace(bytes int64) {
	h.arrays += bytes
	h.alloc(bytes, false)
}

// Leave allocates small objects that become garbage.
func (h *Heap) Leave(bytes int64) { h.alloc(bytes, false) }

func (h *Heap) alloc(bytes int64, kept bool) {
	for h.used+bytes > h.goal {
		part := h.goal - h.used
		bytes -= part
		if kept {
			h.live += part
		}
		h.peak = max(h.peak, h.goal)
		h.used, h.goal = h.live, h.live+heapRoom
		h.collections++
		if !kept && bytes > heapRoom { // further collections are like this one
			h.peak = max(h.peak, h.goal)
			bytes %= heapRoom
		}
	}
	h.used += bytes
	if kept {
		h.live += bytes
	}
	h.peak = max(h.peak, h.used)
}

// Resident is the memory that the heap has taken of the system. New arrays do not fit exactly into the gaps of old ones: the
// heap then takes more than is in use, until it has a tenth more, which Go's scavenger leaves.
func (h *Heap) Resident() int64 {
	if h.collections == 0 {
		return h.peak
	}
	return h.peak + min(h.peak/10, h.arrays)
}
