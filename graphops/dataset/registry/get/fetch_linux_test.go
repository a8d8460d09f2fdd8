package get

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// If a pipe has the name of one of a download's files, the download fails at once and does not
// replace the pipe.
func TestFetchOverPipes(t *testing.T) {
	for _, suffix := range []string{"", ".part", ".part.json"} {
		s := serve(t, good)
		dst := filepath.Join(t.TempDir(), "file")
		if err := syscall.Mkfifo(dst+suffix, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := fetch(t.Context(), s.URL, dst, fast(fetchOptions{})); !errors.Is(err, atomicfile.ErrNotRegular) {
			t.Errorf("a pipe at file%s: the error is %v", suffix, err)
		}
		if info, err := os.Lstat(dst + suffix); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			t.Errorf("the pipe at file%s is gone: %v", suffix, err)
		}
		if _, err := os.Lstat(dst); suffix != "" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("with a pipe at file%s, a file was written: %v", suffix, err)
		}
	}
}
