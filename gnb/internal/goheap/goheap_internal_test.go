package goheap

import (
	"math/rand/v2"
	"testing"
)

func TestHeap(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name     string
		run      func(h *Heap)
		resident int64
	}{
		{"nothing is collected before the heap has its room", func(h *Heap) { h.Keep(10 * mb); h.Leave(50 * mb) }, 60 * mb},
		{"the first collection runs at the room", func(h *Heap) { h.Keep(10 * mb); h.Leave(60 * mb) }, 64 * mb},
		{"later ones run at the room more than what is in use", func(h *Heap) { h.Keep(10 * mb); h.Leave(1000 * mb) }, 74 * mb},
		{"more is kept than the room", func(h *Heap) { h.Keep(200 * mb) }, 200 * mb},
		{"replaced arrays leave gaps", func(h *Heap) { h.Keep(200 * mb); h.Replace(5 * mb) }, 210 * mb},
		{"the scavenger bounds the gaps", func(h *Heap) { h.Keep(136 * mb); h.Replace(1000 * mb) }, 220 * mb},
		{"without a collection arrays take fresh memory", func(h *Heap) { h.Keep(10 * mb); h.Replace(20 * mb) }, 30 * mb},
	} {
		h := New()
		if c.run(h); h.Resident() != c.resident {
			t.Errorf("%s: %d bytes are resident, want %d", c.name, h.Resident(), c.resident)
		}
	}
}

// A heap that grows KiB by KiB has the same size.
func TestHeapByPages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		h := New()
		var live, used, peak int64
		goal := int64(heapRoom)
		for range 10 {
			n, kept := r.Int64N(300)<<20, r.IntN(2) == 0
			h.alloc(n, kept)
			for range n >> 10 {
				if used+(1<<10) > goal {
					used, goal = live, live+heapRoom
				}
				if used += 1 << 10; kept {
					live += 1 << 10
				}
				peak = max(peak, used)
			}
		}
		if h.live != live || h.peak != peak || h.used != used {
			t.Fatalf("live %d, used %d, peak %d; KiB by KiB %d, %d, %d", h.live, h.used, h.peak, live, used, peak)
		}
	}
}
