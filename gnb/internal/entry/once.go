package entry

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/graphnb/graphnb/internal/envknob"
)

var saidOnce sync.Map

// Forget has FirstTime begin anew in this process, as another process would.
func Forget() { saidOnce.Clear() }

// FirstTime reports whether a text was not asked about before: in this process, or, in a notebook,
// in its kernel, of which every cell is a process of its own.
func FirstTime(text string) bool {
	if _, before := saidOnce.LoadOrStore(text, true); before {
		return false
	}
	dir := envknob.KernelDir.Get()
	if dir == "" {
		return true
	}
	sum := sha256.Sum256([]byte(text))
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("saidOnce-%x", sum[:8])), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return !errors.Is(err, fs.ErrExist)
	}
	_ = f.Close() // nothing was written
	return true
}
