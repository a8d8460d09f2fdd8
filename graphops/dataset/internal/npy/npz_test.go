package npy_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy/npytest"
	"github.com/graphnb/graphnb/internal/testneed"
)

func TestOpen(t *testing.T) {
	path := npytest.Write(t, "a", npytest.Zip(t,
		npytest.Of("x", int32(1), 2, 3), npytest.Of("y", 1.5, -2),
		npytest.Array{Name: "names", Type: "|O", Shape: "(1,)", Data: []byte("\x80\x03cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR(K\x01(K\x01tcnumpy\ndtype\n(X\x02\x00\x00\x00O8K\x00K\x01tR\x89]X\x01\x00\x00\x00aatb.")},
	))
	f, err := npy.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if names := f.Names(); !slices.Equal(names, []string{"x", "y", "names"}) || f.Find("z") != nil {
		t.Errorf("the arrays are %v", names)
	}
	for range 2 { // arrays can be read repeatedly
		var got []int64
		if err := f.Find("x").EachInt(func(_ int64, xs []int64) error { got = append(got, xs...); return nil }); err != nil || !slices.Equal(got, []int64{1, 2, 3}) {
			t.Errorf("x is %v, %v", got, err)
		}
		var real []float32
		if err := f.Find("y").EachFloat(func(_ int64, xs []float32) error { real = append(real, xs...); return nil }); err != nil || !slices.Equal(real, []float32{1.5, -2}) {
			t.Errorf("y is %v, %v", real, err)
		}
	}
	if f.Find("names").Is(1, false) == nil {
		t.Error("objects are numbers")
	}
}

func TestRefused(t *testing.T) {
	objects := func(pickle string) []byte {
		return npytest.Zip(t, npytest.Array{Name: "names", Type: "|O", Shape: "(1,)", Data: []byte(pickle)})
	}
	x := npytest.Of("x", int32(1), 2, 3)
	var other bytes.Buffer
	w := zip.NewWriter(&other)
	if _, err := w.Create("readme.txt"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"empty", nil, "it is not a zip archive"},
		{"another file in it", other.Bytes(), `"readme.txt" is not an array`},
		{"2^40 elements", npytest.Zip(t, x.Reshaped("(1099511627776,)")), "x.npy: the header says int32 [1099511627776], but 12 bytes follow it"},
		{"2^80 elements", npytest.Zip(t, x.Reshaped("(1099511627776,1099511627776)")), "but 12 bytes follow it"},
		{"one too few", npytest.Zip(t, x.Reshaped("(2,)")), "the header says int32 [2], but 12 bytes follow it"},
		{"no header", npytest.Zip(t, npytest.Array{Name: "x", Type: "<i4', 'y", Shape: "()"}), "x.npy: its header is malformed"},
		{"code", objects("cos\nsystem\n(S'id'\ntR."), `names.npy: its Python objects: at byte 0: it names "system" of the module "os"`},
		{"objects cut off", objects("\x80\x03]"), "it ends here, before its end"},
		{"many objects", npytest.Zip(t, npytest.Array{Name: "names", Type: "|O", Shape: "(1,)", Data: make([]byte, 1<<20)}), "bytes of Python objects; at most"},
	} {
		path := npytest.Write(t, "a", c.content)
		_, err := npy.Open(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: the error is %v, want one with the path and %q", c.name, err, c.want)
		}
	}
	if _, err := npy.Open(filepath.Join(t.TempDir(), "none.npz")); !os.IsNotExist(errorCause(err)) {
		t.Errorf("opening a file that does not exist gave %v", err)
	}
	if _, err := npy.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

func errorCause(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return err
}

// A bomb and a header of 2^40 elements allocate no more than the size of their files.
func TestMemory(t *testing.T) {
	testneed.NotShort(t, "it reads large files")
	zeros := npytest.Array{Name: "x", Type: "|u1", Shape: "(67108864,)", Data: make([]byte, 64<<20)}
	for name, content := range map[string][]byte{
		"bomb":          npytest.Zip(t, zeros),
		"2^40 elements": npytest.Zip(t, zeros.Reshaped("(1099511627776,)")),
		"objects":       npytest.Zip(t, npytest.Array{Name: "x", Type: "|O", Shape: "(1,)", Data: bytes.Repeat([]byte("]"), 64<<20)}),
		"entries":       entries(t, 100000),
	} {
		path := npytest.Write(t, "a", content)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := npy.Open(path)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(4*len(content)+1<<20); got > limit {
			t.Errorf("%s: %d bytes were allocated for a file of %d", name, got, len(content))
		}
	}
}

// entries returns an archive of n empty entries.
func entries(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range n {
		if _, err := w.CreateRaw(&zip.FileHeader{Name: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func FuzzOpen(f *testing.F) {
	f.Add(npytest.Zip(f, npytest.Of("x", int32(1), 2, 3), npytest.Of("y", 1.5, -2)))
	f.Add(npytest.Zip(f, npytest.Array{Name: "names", Type: "|O", Shape: "(1,)", Data: []byte("]N\x85a.")}))
	path := filepath.Join(f.TempDir(), "a.npz")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := npy.Open(path)
		if err != nil {
			return
		}
		for _, a := range file.Arrays {
			if a.Type.Whole() {
				n := int64(0)
				if err := a.EachInt(func(_ int64, xs []int64) error { n += int64(len(xs)); return nil }); err == nil && n != a.Len() {
					t.Errorf("%s has %d elements of %d", a.Name, n, a.Len())
				}
			}
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
}
