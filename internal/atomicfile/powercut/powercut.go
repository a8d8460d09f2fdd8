// Package powercut computes, for tests, the states of files that a power cut could leave: from the
// operations that package atomicfile reports, it assumes for all data that was not synced the worse
// of lost and kept.
package powercut

import (
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// State is one state that a path can have after a power cut.
type State struct {
	// Missing reports that the file does not exist.
	Missing bool
	// File distinguishes files that had the same name in sequence: it counts up from 1 in the order
	// of creation. 0 is the file that existed before the first operation.
	File int
	// Bytes is the durable part of the Size bytes written.
	Bytes, Size int64
}

// Whole reports whether the file exists with all written data.
func (s State) Whole() bool { return !s.Missing && s.Bytes == s.Size }

type file struct {
	id           int
	synced, size int64
}

// Disk is a simulated file system whose names and contents may not have reached the disk. The zero
// value is empty; a path that no operation named counts as whole.
type Disk struct {
	files   int
	now     map[string]*file   // nil: removed
	durable map[string]*file   // as of the last sync of the directory
	pending map[string][]*file // changes since then
	dirs    map[string]bool    // created directories whose names are not durable
}

// Apply applies the next operation.
func (d *Disk) Apply(op atomicfile.Op) {
	if d.now == nil {
		d.now, d.durable, d.pending, d.dirs = map[string]*file{}, map[string]*file{}, map[string][]*file{}, map[string]bool{}
	}
	path := filepath.Clean(op.Path)
	switch op.Kind {
	case atomicfile.OpCreate:
		d.files++
		d.set(path, &file{id: d.files})
		d.durableAsMissing(path)
	case atomicfile.OpWrite:
		if f := d.now[path]; f != nil {
			f.size += op.Bytes
		} else {
			d.now[path] = &file{synced: 0, size: op.Bytes}
			d.durable[path] = d.now[path]
		}
	case atomicfile.OpSync:
		if f := d.now[path]; f != nil {
			f.synced, f.size = op.Bytes, max(f.size, op.Bytes)
		}
	case atomicfile.OpRename:
		to := filepath.Clean(op.To)
		f := d.now[path]
		d.set(path, nil)
		if _, known := d.durable[to]; !known {
			d.durable[to] = &file{} // the file that existed before
		}
		d.set(to, f)
	case atomicfile.OpRemove:
		d.set(path, nil)
	case atomicfile.OpMkdir:
		d.dirs[path] = true
	case atomicfile.OpSyncDir:
		for p, f := range d.now {
			if filepath.Dir(p) == path {
				d.durable[p] = f
				delete(d.pending, p)
			}
		}
		for p := range d.dirs {
			if filepath.Dir(p) == path {
				delete(d.dirs, p)
			}
		}
	}
}

func (d *Disk) durableAsMissing(path string) {
	if _, known := d.durable[path]; !known {
		d.durable[path] = nil
	}
}

func (d *Disk) set(path string, f *file) {
	d.now[path] = f
	d.pending[path] = append(d.pending[path], f)
}

// States returns the possible states of path if the power fails now. A file that no operation named
// has a single state, which is whole.
func (d *Disk) States(path string) []State {
	path = filepath.Clean(path)
	var out []State
	was, known := d.durable[path]
	if !known {
		was = &file{}
	}
	for _, f := range append([]*file{was}, d.pending[path]...) {
		if f == nil {
			out = append(out, State{Missing: true})
			continue
		}
		out = append(out, State{File: f.id, Bytes: f.synced, Size: f.size})
	}
	for dir := range d.dirs {
		if strings.HasPrefix(path, dir+string(filepath.Separator)) {
			out = append(out, State{Missing: true})
		}
	}
	return out
}
