package fetchfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// A pipe where a download keeps one of its files is an error, neither waited for nor replaced.
func TestGetOverPipes(t *testing.T) {
	for _, suffix := range []string{"", ".part", ".part.json"} {
		s := serve(t, good)
		dst := filepath.Join(t.TempDir(), "file")
		if err := syscall.Mkfifo(dst+suffix, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Get(t.Context(), s.URL, dst, fast(Options{})); !errors.Is(err, atomicfile.ErrNotRegular) {
			t.Errorf("a pipe at file%s: the error is %v", suffix, err)
		}
		if info, err := os.Lstat(dst + suffix); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			t.Errorf("the pipe at file%s is gone: %v", suffix, err)
		}
		if _, err := os.Lstat(dst); suffix != "" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a pipe at file%s, and there is a file: %v", suffix, err)
		}
	}
}
