package dataset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// progress checks reports of progress: they only increase, up to one total.
type progress struct {
	t           *testing.T
	calls       int
	done, total int64
}

func (p *progress) report(done, total int64) {
	if p.calls++; done < p.done || done > total || total == 0 || p.total != 0 && total != p.total {
		p.t.Errorf("report %d: %d of %d after %d of %d", p.calls, done, total, p.done, p.total)
	}
	p.done, p.total = done, total
}

// Write reports the bytes on disk and the total, and leaves nothing behind when it is cancelled.
func TestWriteProgress(t *testing.T) {
	d := small(t)
	parent := t.TempDir()
	p := progress{t: t}
	if err := WriteWith(t.Context(), filepath.Join(parent, "a"), d, WriteOptions{Progress: p.report}); err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, name := range ls(t, filepath.Join(parent, "a")) {
		if name == MetadataFile {
			continue // it is written after all other files
		}
		info, err := os.Stat(filepath.Join(parent, "a", name))
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if p.calls < 3 || p.done != size || p.total != size {
		t.Errorf("%d reports, the last of %d of %d bytes; the files have %d", p.calls, p.done, p.total, size)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := WriteWith(ctx, filepath.Join(parent, "b"), d, WriteOptions{Progress: func(done, _ int64) {
		if done > 0 {
			cancel()
		}
	}})
	if left := ls(t, parent); !errors.Is(err, context.Canceled) || len(left) != 1 {
		t.Errorf("the cancelled Write returned %v and left %v", err, left)
	}
}
