package expect

import (
	"os"
	"sync"
	"testing"
)

// built holds the files that this process has built, by key.
var built = struct {
	sync.Mutex
	files map[string][]byte
}{files: map[string][]byte{}}

// Built puts an executable file at path: build makes it there, once per process for a key, and later calls with the
// key write a copy.
func Built(tb testing.TB, key, path string, build func()) {
	tb.Helper()
	built.Lock()
	defer built.Unlock()
	if b, ok := built.files[key]; ok {
		if err := os.WriteFile(path, b, 0o700); err != nil {
			tb.Fatal(err)
		}
		return
	}
	build()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	built.files[key] = b
}
