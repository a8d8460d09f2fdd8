package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
)

// packFile writes content into a file and opens it.
func packFile(t *testing.T, content []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pack")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestPackOpen(t *testing.T) {
	for _, want := range []*Dataset{
		small(t),
		Karate(),
		rich(t),
		ones(t),
		edged(t),
		edgedHalf(t),
		{Graph: &graphops.Graph{Indptr: []int64{0}}, Meta: Metadata{Name: "empty"}},
	} {
		t.Run(want.Name(), func(t *testing.T) {
			var b bytes.Buffer
			if err := want.Pack(&b); err != nil {
				t.Fatal(err)
			}
			f := packFile(t, b.Bytes())
			d, err := OpenFD(f)
			if err != nil {
				t.Fatal(err)
			}
			_ = f.Close() // the mapping does not need the descriptor
			same(t, d, want)
			if !d.Mapped() || want.Mapped() {
				t.Errorf("Mapped returned %v, and %v for the original", d.Mapped(), want.Mapped())
			}
			if d.Dir() != "" {
				t.Errorf("Dir = %q", d.Dir())
			}
			if err := d.Check(context.Background()); err != nil {
				t.Error(err)
			}
			var again bytes.Buffer
			if err := d.Pack(&again); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
				t.Errorf("packing the dataset again gave a different file: %v", err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The arrays of a packed dataset begin on separate pages, because each is registered with a device
// separately.
func TestPackPages(t *testing.T) {
	var b bytes.Buffer
	if err := Karate().pack(&b, int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	d, err := OpenFD(packFile(t, b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	page := uintptr(os.Getpagesize())
	used := map[uintptr]string{}
	for _, a := range []struct {
		name string
		at   unsafe.Pointer
		n    int
	}{
		{"indptr", unsafe.Pointer(&d.Graph.Indptr[0]), 8 * len(d.Graph.Indptr)},
		{"indices", unsafe.Pointer(&d.Graph.Indices[0]), 4 * len(d.Graph.Indices)},
		{"features", unsafe.Pointer(&d.Features.F32[0]), 4 * len(d.Features.F32)},
		{"labels", unsafe.Pointer(&d.Labels[0]), 4 * len(d.Labels)},
	} {
		for p := uintptr(a.at) / page; p <= (uintptr(a.at)+uintptr(a.n)-1)/page; p++ {
			if used[p] != "" {
				t.Errorf("%s and %s share a page", used[p], a.name)
			}
			used[p] = a.name
		}
	}
	view, err := d.WithSplitSet(0)
	if err != nil || !view.Mapped() {
		t.Errorf("a view of a mapped dataset does not count as mapped: %v", err)
	}
	if looped, err := d.WithSelfLoops(); err != nil || looped.Mapped() {
		t.Errorf("a graph with added self-loops counts as mapped: %v", err)
	}
}

type shortWriter struct{ left int }

var errFull = errors.New("full")

func (w *shortWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestPackErrors(t *testing.T) {
	var whole bytes.Buffer
	if err := Karate().Pack(&whole); err != nil {
		t.Fatal(err)
	}
	for left := 0; left < whole.Len(); left += 500 {
		if err := Karate().Pack(&shortWriter{left}); !errors.Is(err, errFull) {
			t.Fatalf("a writer that fails after %d bytes gave %v", left, err)
		}
	}
	d := small(t)
	d.Labels = d.Labels[:2]
	if err := d.Pack(&whole); err == nil || !strings.Contains(err.Error(), "packing small: 2 labels for 5 nodes") {
		t.Errorf("got %v", err)
	}
}

func packOf(table string, rest []byte) []byte {
	b := append([]byte(packMagic), binary.LittleEndian.AppendUint64(nil, uint64(len(table)))...)
	b = append(b, table...)
	b = append(b, make([]byte, int(aligned(int64(len(b))))-len(b))...)
	return append(b, rest...)
}

func TestOpenFDRefuses(t *testing.T) {
	var whole bytes.Buffer
	if err := small(t).Pack(&whole); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"empty", nil, "not a packed dataset"},
		{"another format", make([]byte, 100), "not a packed dataset"},
		{"table cut off", whole.Bytes()[:40], "its table claims"},
		{"table of 2^64 bytes", append([]byte(packMagic), "\xff\xff\xff\xff\xff\xff\xff\xff{}"...), "its table claims"},
		{"table is no JSON", packOf("zzz", nil), "malformed"},
		{"sections cut off", whole.Bytes()[:whole.Len()-400], "claims"},
		{"no metadata", packOf("[]", nil), MetadataFile + ": it does not exist"},
		{"section outside", packOf(`[{"name":"x","offset":64,"size":1}]`, make([]byte, 64)), `section "x" claims 1 bytes at 64`},
		{"offset overflows", packOf(`[{"name":"x","offset":9223372036854775744,"size":64}]`, make([]byte, 64)), "claims"},
		{"negative offset", packOf(`[{"name":"x","offset":-64,"size":1}]`, make([]byte, 64)), "claims"},
		{"negative size", packOf(`[{"name":"x","offset":0,"size":-1}]`, make([]byte, 64)), "claims"},
		{"misaligned", packOf(`[{"name":"x","offset":4,"size":1}]`, make([]byte, 64)), "claims"},
		{"twice", packOf(`[{"name":"x","offset":0,"size":0},{"name":"x","offset":0,"size":0}]`, nil), "listed twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := OpenFD(packFile(t, c.content))
			if err == nil || d != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want an error with %q", err, c.want)
			}
		})
	}
}

func FuzzPack(f *testing.F) {
	for _, d := range []*Dataset{Karate(), rich(f), ones(f), edged(f), {Graph: &graphops.Graph{Indptr: []int64{0, 0}}, Meta: Metadata{Name: "one"}}} {
		var b bytes.Buffer
		if err := d.Pack(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
		f.Add(b.Bytes()[:b.Len()/2])
	}
	f.Add(packOf(`[{"name":"metadata.json","offset":0,"size":2}]`, []byte("{}")))
	f.Fuzz(func(t *testing.T, content []byte) {
		words := make([]uint64, len(content)/8+1) // aligned like a mapping
		data := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(content))
		copy(data, content)
		src, err := parsePack("fuzzed", data)
		if err != nil {
			return
		}
		d, err := load(src)
		if err != nil {
			return
		}
		if d.Check(context.Background()) == nil {
			// Every access that the accepted values promise must work.
			_ = d.Graph.Reverse(1)
			_ = d.String()
		}
	})
}

// TestPackedDatasetIsInherited hands a dataset to a child process, as a run hands it to workers.
func TestPackedDatasetIsInherited(t *testing.T) {
	if os.Getenv("GNB_TEST_PACKFD") != "" {
		d, err := OpenFD(os.NewFile(3, "inherited"))
		if err != nil {
			t.Fatal(err)
		}
		same(t, d, Karate())
		if err := d.Check(context.Background()); err != nil {
			t.Fatal(err)
		}
		return
	}
	f, err := Karate().packFD()
	if runtime.GOOS != "linux" {
		if err == nil || !strings.Contains(err.Error(), "need Linux") {
			t.Errorf("got %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("the packed memory can be written to")
	}
	if err := f.Truncate(0); err == nil {
		t.Error("the packed memory can be truncated")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestPackedDatasetIsInherited$")
	cmd.Env = append(os.Environ(), "GNB_TEST_PACKFD=1")
	cmd.ExtraFiles = []*os.File{f}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the child: %v\n%s", err, out)
	}
	// A name that the kernel refuses for a memory file is not an error.
	d := Karate()
	d.Meta.Name = strings.Repeat("long\x00name ", 100)
	g, err := d.packFD()
	if err != nil {
		t.Fatal(err)
	}
	_ = g.Close()
}
