//go:build !linux

package plane

import (
	"errors"
	"io"
	"os"
)

// open opens a file. Reads go through the page cache.
func openFile(path string, _ bool) (f *os.File, align int64, isDirect bool, err error) {
	f, err = os.Open(path)
	return f, 1, false, err
}

// preadOf returns the pread of a file. There is no O_DIRECT, so it may be several calls.
func preadOf(f *os.File) pread {
	return func(buf []byte, at int64) (int, error) {
		n, err := f.ReadAt(buf, at)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	}
}

func forget(*os.File, *request, *request) {}

func newMemory(n int) []byte { return make([]byte, n) }

func freeMemory([]byte) {}
