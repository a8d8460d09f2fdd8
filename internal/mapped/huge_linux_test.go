package mapped

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// A large file gets the advice to use large pages, a small one does not; both are read correctly.
func TestHugePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skipf("this kernel has no huge pages: %v", err)
	}
	for size, want := range map[int]bool{hugeFrom + 12345: true, 1 << 16: false} {
		content := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(flagsOf(t, f.Bytes()), " hg"); got != want {
			t.Errorf("%d bytes: advised %v, want %v", size, got, want)
		}
		if !bytes.Equal(f.Bytes(), content) {
			t.Errorf("a file of %d bytes is not read as it was written", size)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// flagsOf returns the kernel's flags of the mapping that begins at data.
func flagsOf(t *testing.T, data []byte) string {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(smaps), fmt.Sprintf("%x-", uintptr(unsafe.Pointer(&data[0]))))
	if !ok {
		t.Fatal("the mapping is not in /proc/self/smaps")
	}
	_, rest, _ = strings.Cut(rest, "VmFlags:")
	flags, _, _ := strings.Cut(rest, "\n")
	return flags
}
