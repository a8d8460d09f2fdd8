package dataset

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
)

func TestReadNPY(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.npy")
	for _, x := range []Matrix{{Rows: 2, Cols: 3, F32: []float32{1, 2, 3, -4, 5, 6.5}}, {Rows: 0, Cols: 4, F32: []float32{}}} {
		if err := WriteNPY(path, x.Rows, x.Cols, x.F32); err != nil {
			t.Fatal(err)
		}
		got, err := ReadNPY(path)
		if err != nil {
			t.Fatal(err)
		}
		if got.Rows != x.Rows || got.Cols != x.Cols || !slices.Equal(got.F32, x.F32) {
			t.Errorf("read %v, want %v", got, x)
		}
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"short": {append(npy.EncodeHeader(npyFloat32, 2, 2), 0, 0), "x.npy"},
		"ints":  {npy.EncodeHeader(npyInt32, 0, 2), "<i4 [0, 2]"},
		"list":  {npy.EncodeHeader(npyFloat32, 0), "<f4 [0]"},
		"text":  {[]byte("0.5,1\n"), "x.npy"},
	} {
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadNPY(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %q in it", name, err, c.want)
		}
	}
	// A file much longer than its header claims is not read into memory.
	long := filepath.Join(dir, "long.npy")
	if err := WriteNPY(long, 1, 2, []float32{1, 2}); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, 1<<40); err != nil {
		t.Skip(err) // the file system has no sparse files
	}
	if _, err := ReadNPY(long); err == nil || !strings.Contains(err.Error(), "the file holds") {
		t.Errorf("the error of a file of a terabyte is %v", err)
	}
	if _, err := ReadNPY(filepath.Join(dir, "none.npy")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
