package getdata

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
)

// A file that a disk has damaged, which its times do not show, ends the context of a run; a good one does not.
func TestWatch(t *testing.T) {
	before := watchFrom
	watchFrom = 0
	defer func() { watchFrom = before }()
	made, err := datasets.Load("planted?nodes=3000&features=200")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "d")
	if err := dataset.Write(dir, made); err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []bool{false, true} {
		path := filepath.Join(dir, "features.npy")
		if damaged {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteAt([]byte{1}, 1<<20)
			if err := errors.Join(err, f.Close(), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
				t.Fatal(err)
			}
		}
		d, err := dataset.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		ctx, end := Watch(t.Context(), d)
		var damage *dataset.DigestError
		if !damaged {
			if err := end(); err != nil || d.Verified() {
				t.Errorf("a good dataset gave %v", err)
			}
			continue
		}
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.As(cause, &damage) || damage.Path != path {
			t.Errorf("the context ended with %v", cause)
		}
		if err := end(); !errors.As(err, &damage) {
			t.Errorf("the end gave %v", err)
		}
	}
}
