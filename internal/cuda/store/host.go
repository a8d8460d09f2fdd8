package store

import (
	"fmt"
	"sync/atomic"

	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/graphnb/graphnb/internal/phrase"

	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/machine"
)

// Host limits the host memory that all workers of a run together may pin for data. Each worker has
// a Host with equal values. Without one a worker assumes that it is alone, and asks the host each
// time.
type Host struct {
	// Free is the number of bytes that the host had before any of them pinned memory. Limit is the
	// limit of the control group that determines it, 0 if there is none.
	Free, Limit int64
	Ranks       int  // workers on this machine
	Set         bool // Free is set by the user, not measured; it is the limit whatever the host has

	copies atomic.Int64 // bytes pinned by this worker since then
}

// hostMemory reads the host's memory; tests replace it.
var hostMemory = machine.ReadMemory

// pinnedFiles is how many bytes of files' pages this process has pinned in place. The host counts them as
// caches, and so as free. All workers pin the same pages.
var pinnedFiles atomic.Int64

// pages is what is pinned.
type pages int

const (
	ownPages  pages = iota // bytes of copies: each worker has its own
	filePages              // bytes of files pinned in place, which workers share
	heldPages              // bytes of memory files, which need no further memory
)

// take records n bytes that are about to be pinned, or returns an OutOfMemory if the host does not
// have them. This check is needed because pinning too much does not fail; instead the kernel kills
// a process. A sixteenth of the measured memory is left for the rest of a run.
func (h *Host) take(n int64, p pages) error {
	m, ranks, copies := machine.Memory{}, int64(1), int64(0)
	if h != nil {
		m, ranks, copies = machine.Memory{Free: h.Free, Limit: h.Limit}, int64(max(h.Ranks, 1)), h.copies.Load()
	} else {
		var err error
		if m, err = hostMemory(); err != nil {
			h.note(n, p)
			return nil //nolint:nilerr // unknown; rely on pinning to fail
		}
	}
	free := m.Free
	if h == nil || !h.Set {
		free -= m.Free / 16
	}
	need, each := n, ""
	switch {
	case p == ownPages && ranks > 1:
		need, each = n*ranks, fmt.Sprintf(" for each of %d workers", ranks)
	case p == heldPages && (h == nil || !h.Set):
		need = 0
	}
	used := pinnedFiles.Load() + copies*ranks
	if need == 0 || need+used <= free {
		h.note(n, p)
		return nil
	}
	of := "the host has"
	switch {
	case h != nil && h.Set:
		of = envknob.CUDAPinned.Name + "=" + phrase.Bytes(m.Free) + " leaves"
	case m.Limit > 0:
		of = "the container's memory limit of " + phrase.Bytes(m.Limit) + " leaves"
	}
	return fmt.Errorf("pinning %s of host memory%s: %w; %s %s", phrase.Bytes(n), each, cuda.OutOfMemory, of, phrase.Bytes(max(0, m.Free-used)))
}

// note counts pinned bytes; a negative n frees them.
func (h *Host) note(n int64, p pages) {
	switch {
	case p == filePages || p == heldPages && h != nil && h.Set:
		pinnedFiles.Add(n)
	case p == ownPages && h != nil:
		h.copies.Add(n)
	}
}
