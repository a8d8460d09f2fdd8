package dataset

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/mapped"
)

// Share runs [Dataset.CheckOnce] and returns a memory file with the checked dataset, for worker
// processes that inherit its descriptor and open it with [OpenFD]. It is meant for a dataset that
// is not [Dataset.Stored] in a directory.
//
// The dataset keeps its memory file until it is closed or garbage-collected: a further call
// compares the arrays with the file, and checks and packs the dataset again only if one has
// changed. Concurrent calls wait for the first one. The caller must close the returned file, which
// is a duplicate. Linux only.
//
// Cost: a check and a copy of the dataset, for which memory must be free; later calls read
// everything once, at the speed of memory.
func (d *Dataset) Share(ctx context.Context, o CheckOnceOptions) (*os.File, error) {
	s := shareOf(d, true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("dataset: sharing %s: it was closed", d.Name())
	}
	same, err := s.holds(d)
	if err != nil {
		return nil, err
	}
	if !same {
		if err := s.pack(ctx, d, o); err != nil {
			return nil, err
		}
	}
	return duplicate(s.file)
}

// share is the memory file of a dataset.
type share struct {
	mu      sync.Mutex
	file    *os.File // nil if there is none
	content *Dataset // the file, mapped
	digests *Digests // of the content, if they have been requested
	closed  bool
}

// shares holds the shares by the datasets' addresses, not in the datasets, because callers may copy
// those.
var shares struct {
	sync.Mutex
	of map[weak.Pointer[Dataset]]*share
}

// shareOf returns the share of a dataset. If there is none it returns a new one or, without create,
// nil.
func shareOf(d *Dataset, create bool) *share {
	key := weak.Make(d)
	shares.Lock()
	defer shares.Unlock()
	s := shares.of[key]
	if s == nil && create {
		s = &share{}
		if shares.of == nil {
			shares.of = map[weak.Pointer[Dataset]]*share{}
		}
		shares.of[key] = s
		runtime.AddCleanup(d, unshare, key)
	}
	return s
}

// unshare frees the memory file of a dataset that was closed or garbage-collected.
func unshare(key weak.Pointer[Dataset]) {
	shares.Lock()
	s := shares.of[key]
	delete(shares.of, key)
	shares.Unlock()
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closed = true
		s.drop()
	}
}

func (s *share) drop() {
	if s.file != nil {
		_ = s.file.Close()    // closes the memory file
		_ = s.content.Close() // unmaps the memory file
	}
	s.file, s.content, s.digests = nil, nil, nil
}

// holds reports whether the file has the dataset's current content.
func (s *share) holds(d *Dataset) (same bool, err error) {
	if s.file == nil || d.checkShape() != nil {
		return false, nil
	}
	var now Metadata = d.Meta
	d.describe(&now)
	if !reflect.DeepEqual(now, s.content.Meta) {
		return false, nil
	}
	err = mapped.Guard(func() error {
		same = slices.EqualFunc(d.arrays(), s.content.arrays(), func(a, b array) bool {
			return a.section == b.section && a.dtype == b.dtype && slices.Equal(a.shape, b.shape) && bytes.Equal(a.body, b.body)
		})
		return nil
	})
	return same, err
}

// pack checks the dataset and packs it.
func (s *share) pack(ctx context.Context, d *Dataset, o CheckOnceOptions) error {
	s.drop()
	if err := d.CheckOnce(ctx, o); err != nil {
		return err
	}
	if m, err := machine.ReadMemory(); err == nil && d.Bytes() > m.Free {
		return fmt.Errorf("dataset: %s takes %d bytes of memory to share with the workers, because its arrays are not those of a directory, and %d are free: write it with dataset.Write and load that directory",
			d.Name(), d.Bytes(), m.Free)
	}
	f, err := d.packFD()
	if err != nil {
		return err
	}
	content, err := OpenFD(f)
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("dataset: sharing %s: %w", d.Name(), err)
	}
	s.file, s.content = f, content
	return nil
}

// sharedDigests returns the digests of a dataset whose memory file still has its content. They are
// computed once. ok is false if there is no such file.
func (d *Dataset) sharedDigests(compute func() (Digests, error)) (all Digests, ok bool, err error) {
	s := shareOf(d, false)
	if s == nil {
		return all, false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if same, err := s.holds(d); err != nil || !same {
		return all, false, err
	}
	if s.digests == nil {
		if all, err = compute(); err != nil {
			return all, true, err
		}
		s.digests = &all
	}
	return *s.digests, true, nil
}
