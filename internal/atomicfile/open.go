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

// ErrNotRegular is the error of Open for what is no regular file.
var ErrNotRegular = errors.New("it is not a regular file")

// Open opens a file for reading, if it is a regular one or a symbolic link to one. Opening a named
// pipe would wait for its other end, and reading a device can have effects, so neither is opened.
func Open(path string) (*os.File, error) { return openRegular(path, os.O_RDONLY, 0) }

func openRegular(path string, flag int, perm os.FileMode) (*os.File, error) {
	// Looked at before it is opened, which can have effects, and after, when it is certain.
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

// Exists says whether there is a regular file at path, or a link to one.
func Exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Replaceable returns an error where something that is no regular file is at path, which [Create] would
// write into: for files that are read back.
func Replaceable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return notRegular(path, info)
	}
	return nil
}

// ReadFile reads a regular file of at most limit bytes; a longer one is an error, as are those
// that [Open] does not open.
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
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) { // it was shortened meanwhile
		err = nil
	}
	return b[:n], err
}

func tooLong(path string, limit int64) error {
	return &fs.PathError{Op: "reading", Path: path, Err: fmt.Errorf("it has more than the %d bytes that such a file can have", limit)}
}

// Log is a file that grows at its end. It is for one goroutine at a time.
type Log struct {
	f     *os.File
	dirty bool
}

// OpenLog opens a regular file to append to it, and makes it where there is none.
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

// Write appends b. It is not durable before [Log.Sync].
func (l *Log) Write(b []byte) (int, error) {
	n, err := l.f.Write(b)
	if n > 0 {
		l.dirty = true
		tell(Op{Kind: OpWrite, Path: l.f.Name(), Bytes: int64(n)})
	}
	return n, err
}

// Sync makes what was written durable. Where nothing was written since the last call it costs
// nothing.
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

// There says whether the file is still where it was opened: whether anybody will find what is
// appended.
func (l *Log) There() bool { return same(l.f.Name(), l.f) }

// Close closes the file, without syncing it.
func (l *Log) Close() error { return l.f.Close() }
