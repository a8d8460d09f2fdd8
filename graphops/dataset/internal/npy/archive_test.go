package npy

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"testing"
)

const (
	localMagic   = "PK\x03\x04"
	centralMagic = "PK\x01\x02"
	endMagic     = "PK\x05\x06"
	end64Magic   = "PK\x06\x06"
	find64Magic  = "PK\x06\x07"
	end64Size    = 56
)

// archive returns a zip archive written by the standard library.
func archive(t testing.TB, method uint16, contents ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for i := 0; i < len(contents); i += 2 {
		f, err := w.CreateHeader(&zip.FileHeader{Name: contents[i], Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(contents[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// readAll opens an archive and reads all of it.
func readAll(in []byte) (map[string]string, error) {
	entries, err := openArchive(bytes.NewReader(in), int64(len(in)))
	if err != nil {
		return nil, err
	}
	got := map[string]string{}
	for _, e := range entries {
		r, err := e.open()
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(io.LimitReader(r, 1<<20))
		if err != nil {
			return nil, err
		}
		got[e.Name] = string(b)
	}
	return got, nil
}

func TestArchive(t *testing.T) {
	long := strings.Repeat("graph", 40000)
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		got, err := readAll(archive(t, method, "a.npy", "alpha", "b.npy", long, "empty.npy", ""))
		if err != nil || len(got) != 3 || got["a.npy"] != "alpha" || got["b.npy"] != long || got["empty.npy"] != "" {
			t.Errorf("method %d: %d entries, %v", method, len(got), err)
		}
	}
	if got, err := readAll(archive(t, zip.Store)); err != nil || len(got) != 0 {
		t.Errorf("an empty archive gave %v %v", got, err)
	}
}

// zip64Archive returns an archive of one stored entry whose sizes are all in zip64 fields.
func zip64Archive(name, content string) []byte {
	le := binary.LittleEndian
	var b []byte
	b = append(b, localMagic...)
	b = le.AppendUint16(b, 45)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(b, crc32.ChecksumIEEE([]byte(content)))
	b = append(b, bytes.Repeat([]byte{0xff}, 8)...)
	b = le.AppendUint16(b, uint16(len(name)))
	b = le.AppendUint16(b, 20)
	b = append(b, name...)
	b = append(b, 1, 0, 16, 0)
	b = le.AppendUint64(le.AppendUint64(b, uint64(len(content))), uint64(len(content)))
	b = append(b, content...)
	at := len(b)
	b = append(b, centralMagic...)
	b = append(b, make([]byte, 12)...)
	b = le.AppendUint32(b, crc32.ChecksumIEEE([]byte(content)))
	b = append(b, bytes.Repeat([]byte{0xff}, 8)...)
	b = le.AppendUint16(b, uint16(len(name)))
	b = le.AppendUint16(b, 4+28)
	b = append(b, make([]byte, 10)...)
	b = append(b, 0xff, 0xff, 0xff, 0xff)
	b = append(b, name...)
	b = append(b, 9, 9, 0, 0) // an extra field of an unknown kind
	b = append(b, 1, 0, 24, 0)
	b = le.AppendUint64(le.AppendUint64(le.AppendUint64(b, uint64(len(content))), uint64(len(content))), 0)
	end := len(b)
	b = append(b, end64Magic...)
	b = le.AppendUint64(b, end64Size-12)
	b = append(b, make([]byte, 12)...)
	b = le.AppendUint64(le.AppendUint64(b, 1), 1)
	b = le.AppendUint64(le.AppendUint64(b, uint64(end-at)), uint64(at))
	b = append(b, find64Magic...)
	b = append(le.AppendUint64(append(b, 0, 0, 0, 0), uint64(end)), 1, 0, 0, 0)
	b = append(b, endMagic...)
	b = append(b, 0, 0, 0, 0)
	return append(append(b, bytes.Repeat([]byte{0xff}, 12)...), 0, 0)
}

func TestArchiveZip64(t *testing.T) {
	in := zip64Archive("a.npy", "alpha")
	if _, err := zip.NewReader(bytes.NewReader(in), int64(len(in))); err != nil {
		t.Fatalf("the test's own archive: %v", err)
	}
	if got, err := readAll(in); err != nil || got["a.npy"] != "alpha" {
		t.Errorf("%v %v", got, err)
	}
	for n := range in {
		if _, err := readAll(in[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are an archive", n, len(in))
		}
	}
}

func TestArchiveTruncated(t *testing.T) {
	in := archive(t, zip.Deflate, "a.npy", "alpha alpha alpha", "b.npy", strings.Repeat("b", 300))
	for n := range in {
		if _, err := readAll(in[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are an archive", n, len(in))
		}
	}
}

// No change of a single byte makes the archive read other contents without an error.
func TestArchiveDamaged(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		in := archive(t, method, "a.npy", "alpha alpha alpha", "b.npy", strings.Repeat("b", 300))
		want, err := readAll(in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in {
			for bit := range 8 {
				bad := bytes.Clone(in)
				bad[i] ^= 1 << bit
				got, err := readAll(bad)
				if err != nil {
					continue
				}
				for name, content := range got {
					if want[name] != content {
						t.Fatalf("method %d, byte %d, bit %d: %s reads as %q", method, i, bit, name, content)
					}
				}
			}
		}
	}
}

// many returns the names and contents of n entries.
func many(n int) (contents []string) {
	for i := range n {
		contents = append(contents, strconv.Itoa(i), "x")
	}
	return contents
}

func TestArchiveHostile(t *testing.T) {
	edit := func(in []byte, f func(central, end int)) []byte {
		f(bytes.Index(in, []byte(centralMagic)), bytes.LastIndex(in, []byte(endMagic)))
		return in
	}
	le := binary.LittleEndian
	small := func() []byte { return archive(t, zip.Deflate, "a.npy", strings.Repeat("a", 1000), "b.npy", "b") }
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"nothing", nil, "it is not a zip archive"},
		{"another file", []byte(strings.Repeat("x", 100)), "it is not a zip archive"},
		{"a path upwards", archive(t, zip.Store, "../a.npy", "x"), "is a path"},
		{"an absolute path", archive(t, zip.Store, "/etc/passwd", "x"), "is a path"},
		{"a path of Windows", archive(t, zip.Store, `..\a.npy`, "x"), "is a path"},
		{"a folder", archive(t, zip.Store, "a/", ""), "is a path"},
		{"no name", archive(t, zip.Store, "", "x"), "is not one of an array"},
		{"a zero in the name", archive(t, zip.Store, "a\x00.npy", "x"), "is a path"},
		{"the last of several files", archive(t, zip.Store, "a.npy", "alpha", "b.npy", "beta")[20:], "does not begin at byte -20"},
		{"300 entries", archive(t, zip.Store, many(300)...), "it has 300 entries; at most 256"},
		{"10,000 entries", archive(t, zip.Store, many(10000)...), "its directory takes more than 256 KiB"},
		{"a name twice", archive(t, zip.Store, "a.npy", "x", "a.npy", "y"), "listed twice"},
	} {
		if _, err := readAll(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one with %q", c.name, err, c.want)
		}
	}
	for _, c := range []struct {
		name string
		edit func(in []byte, central, end int)
		want string
	}{
		{"65,000 entries", func(in []byte, _, e int) { le.PutUint16(in[e+8:], 65000); le.PutUint16(in[e+10:], 65000) }, "no valid directory"},
		{"more entries than fit", func(in []byte, _, e int) { le.PutUint16(in[e+8:], 200); le.PutUint16(in[e+10:], 200) }, "no valid directory"},
		{"fewer entries", func(in []byte, _, e int) { le.PutUint16(in[e+8:], 1); le.PutUint16(in[e+10:], 1) }, "no valid directory"},
		{"a directory elsewhere", func(in []byte, _, e int) { le.PutUint32(in[e+16:], 0) }, "does not begin at byte 123"},
		{"no checksum", func(in []byte, c, _ int) { le.PutUint32(in[c+16:], 0) }, "has no checksum"},
		{"encrypted", func(in []byte, c, _ int) { in[c+8] |= 1 }, "encrypted"},
		{"another method", func(in []byte, c, _ int) { in[c+10] = 99 }, "method 99"},
		{"a bomb's size", func(in []byte, c, _ int) { le.PutUint32(in[c+24:], 1<<31) }, "which deflate cannot hold"},
		{"too small a size", func(in []byte, c, _ int) { le.PutUint32(in[c+24:], 999) }, "holds more than the 999 bytes"},
		{"too large a size", func(in []byte, c, _ int) { le.PutUint32(in[c+24:], 1001) }, "holds fewer than the 1001 bytes"},
		{"a wrong checksum", func(in []byte, c, _ int) { in[c+16] ^= 1 }, "was damaged"},
		{"content beyond the directory", func(in []byte, c, _ int) { le.PutUint32(in[c+20:], 1<<30) }, "beyond the directory"},
		{"content that reaches into the directory", func(in []byte, c, _ int) { le.PutUint32(in[c+20:], uint32(c)) }, "into the directory"},
		{"content that overlaps", func(in []byte, c, _ int) { le.PutUint32(in[c+20:], le.Uint32(in[c+20:])+60) }, "overlap"},
		{"one entry's content for both", func(in []byte, c, e int) {
			second := c + 4 + bytes.Index(in[c+4:], []byte(centralMagic))
			le.PutUint32(in[second+42:], 0)
		}, "is called"},
		{"an entry elsewhere", func(in []byte, c, _ int) { le.PutUint32(in[c+42:], 3) }, "does not begin at byte 3"},
		{"another name in the entry", func(in []byte, _, _ int) { in[30] = 'z' }, "is called"},
		{"another method in the entry", func(in []byte, _, _ int) { in[8] = 0 }, "has method 0 in its header"},
		{"zip64 of nothing", func(in []byte, _, e int) { le.PutUint32(in[e+16:], 0xffffffff) }, "does not begin at byte -"},
	} {
		in := small()
		edit(in, func(central, end int) { c.edit(in, central, end) })
		_, err := readAll(in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one with %q", c.name, err, c.want)
		}
	}
}

func FuzzArchive(f *testing.F) {
	f.Add(archive(f, zip.Store, "a.npy", "alpha", "b.npy", "beta"))
	f.Add(archive(f, zip.Deflate, "a.npy", strings.Repeat("a", 100)))
	f.Add(zip64Archive("a.npy", "alpha"))
	f.Fuzz(func(t *testing.T, in []byte) {
		entries, err := openArchive(bytes.NewReader(in), int64(len(in)))
		if err != nil {
			return
		}
		for _, e := range entries {
			if strings.ContainsAny(e.Name, "/\\") {
				t.Errorf("the name %q, which is a path, was accepted", e.Name)
			}
			r, err := e.open()
			if err != nil {
				continue
			}
			n, err := io.Copy(io.Discard, r)
			if n > e.size() || err == nil && n != e.size() {
				t.Errorf("%q has %d bytes of %d: %v", e.Name, n, e.size(), err)
			}
		}
	})
}
