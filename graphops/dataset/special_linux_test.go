package dataset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/internal/testneed"
)

// A file of a dataset that is a pipe, which would block, or a device, which has no end, gives an
// error at once. This holds for every file that is read.
func TestSpecialFiles(t *testing.T) {
	testneed.Raced(t, "it waits for files that give nothing")
	pipe := func(t *testing.T, path string) {
		if err := unix.Mkfifo(path, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := os.Symlink(to, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder := func(t *testing.T, path string) {
		if err := os.Mkdir(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for what, put := range map[string]func(t *testing.T, path string){"pipe": pipe, "zeros": link("/dev/zero"), "random": link("/dev/urandom"), "folder": folder} {
		for _, name := range []string{MetadataFile, indptrFile, indicesFile, weightsFile, featuresValuesFile, featuresIndptrFile, labelsFile, "split_train.npy"} {
			t.Run(what+", "+name, func(t *testing.T) {
				dir := stored(t, rich(t))
				path := filepath.Join(dir, name)
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				put(t, path)
				soon(t, path, func() error {
					_, err := Open(dir)
					return err
				})
				if name == MetadataFile {
					soon(t, path, func() error { return EditMetadata(dir, func(*Metadata) {}) })
				} else {
					soon(t, path, func() error {
						_, err := ReadNPY(path)
						return err
					})
				}
			})
		}
	}
	// A file that is replaced by a pipe while the dataset is open counts as changed.
	dir := stored(t, rich(t))
	d := open(t, dir)
	path := filepath.Join(dir, labelsFile)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	pipe(t, path)
	soon(t, path, func() error { return d.Check(t.Context()) })
	soon(t, path, func() error {
		_, err := d.Digest(t.Context())
		return err
	})
	// The file with recorded sums may also be replaced by a pipe, a device or a directory.
	home := ownHome(t)
	dir = stored(t, small(t))
	d = openKeeping(t, dir)
	if err := os.MkdirAll(filepath.Join(home, "sums"), 0o777); err != nil {
		t.Fatal(err)
	}
	pipe(t, d.known.keptFile())
	meta(t, dir, func(m map[string]any) { delete(m, "digests") })
	d = openKeeping(t, dir)
	done := make(chan error, 1)
	go func() {
		_, err := d.Digest(t.Context())
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("reading blocks on a pipe")
	}
}

// soon checks that do returns an error that names the path, without blocking.
func soon(t *testing.T, path string, do func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want an error that names %s", err, path)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("reading blocks on %s", path)
	}
}
