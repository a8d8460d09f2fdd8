package dataset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/internal/expect"
)

// Write reports the bytes on disk and the total, and leaves nothing behind when it is cancelled.
func TestWriteProgress(t *testing.T) {
	d := small(t)
	parent := t.TempDir()
	p := expect.Progress{T: t}
	if err := WriteWith(t.Context(), filepath.Join(parent, "a"), d, WriteOptions{Progress: p.Report}); err != nil {
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
	if p.Calls < 3 || p.Done != size || p.Total != size {
		t.Errorf("%d reports, the last of %d of %d bytes; the files have %d", p.Calls, p.Done, p.Total, size)
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
