//go:build !linux

package plane

import "os"

// open opens a file. Reads go through the page cache.
func openFile(path string, _ bool) (f *os.File, align int64, isDirect bool, err error) {
	f, err = os.Open(path)
	return f, 1, false, err
}

func forget(*os.File, *request, *request) {}

func newMemory(n int) []byte { return make([]byte, n) }

func freeMemory([]byte) {}
