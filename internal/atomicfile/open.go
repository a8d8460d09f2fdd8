package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNotRegular is the error of Open for a file that is not regular.
var ErrNotRegular = errors.New("it is not a regular file")

// Open opens a regular file, or a symbolic link to one, for reading. It opens no other files:
// opening a named pipe would wait for its other end, and reading a device can have side effects.
func Open(path string) (*os.File, error) { return openRegular(path, os.O_RDONLY, 0) }

func openRegular(path string, flag int, perm os.FileMode) (*os.File, error) {
	// Checked before opening, which can have side effects, and again afterwards, because the file
	// may have been replaced.
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, notRegular(path, info)
	}
	if err != nil && (flag&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist)) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: cause(err)}
	}
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, perm)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func notRegular(path string, info fs.FileInfo) error {
	what := "special file"
	switch m := info.Mode(); {
	case m.IsDir():
		what = "directory"
	case m&fs.ModeNamedPipe != 0:
		what = "named pipe"
	case m&fs.ModeSocket != 0:
		what = "socket"
	case m&fs.ModeDevice != 0:
		what = "device"
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w but a %s; remove it", ErrNotRegular, what)}
}

// Replaceable returns an error if path is not a regular file: [Create] would write it in place. It
// is for files that are read back later.
func Replaceable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return notRegular(path, info)
	}
	return nil
}

// ReadFile reads a regular file of at most limit bytes. It returns an error for a longer file, and
// for files that [Open] refuses.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() > limit {
		err = tooLong(path, limit)
	}
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size(), info.Size()+1)
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) { // the file was shortened in the meantime
		err = nil
	}
	return b[:n], err
}

func tooLong(path string, limit int64) error {
	return &fs.PathError{Op: "reading", Path: path, Err: fmt.Errorf("it has more than the %d bytes that such a file can have", limit)}
}

// Log is an append-only file. Only one goroutine may use it at a time.
type Log struct {
	f     *os.File
	dirty bool
}

// OpenLog opens or creates a regular file for appending.
func OpenLog(path string, perm os.FileMode) (*Log, error) {
	_, err := os.Lstat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	f, err := openRegular(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, perm)
	if err != nil {
		return nil, err
	}
	if isNew {
		tell(Op{Kind: OpCreate, Path: path})
		if err := SyncDir(filepath.Dir(path)); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return &Log{f: f}, nil
}

// Write appends b. The data is durable after [Log.Sync].
func (l *Log) Write(b []byte) (int, error) {
	n, err := l.f.Write(b)
	if n > 0 {
		l.dirty = true
		tell(Op{Kind: OpWrite, Path: l.f.Name(), Bytes: int64(n)})
	}
	return n, err
}

// Sync makes the written data durable. It does nothing if nothing was written since the last call.
func (l *Log) Sync() error {
	if !l.dirty {
		return nil
	}
	if err := Sync(l.f); err != nil {
		return err
	}
	l.dirty = false
	return nil
}

// There reports whether the file still exists under its path, so that readers find the appended
// data.
func (l *Log) There() bool { return same(l.f.Name(), l.f) }

// Close closes the file without syncing it.
func (l *Log) Close() error { return l.f.Close() }
