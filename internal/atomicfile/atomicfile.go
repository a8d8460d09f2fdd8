// Package atomicfile writes files and directories completely or not at all, even if the process is
// killed or the power fails: it writes under a temporary name in the same directory, syncs, renames
// over the old file, and syncs the directory.
//
// # Basics
//
//	err := atomicfile.WriteFile(path, data, 0o644)
//
//	f, err := atomicfile.Create(path, 0o644)
//	…                 // f.Write
//	err = f.Commit()  // or f.Abort()
//	err = atomicfile.BuildDir(dir, func(tmp string) error { … })
//
// A regular file is replaced and keeps its permission bits; a new file gets the given bits, less
// the umask. A symbolic link stays, and the file that it names is replaced. Other files (a device,
// a pipe, a socket) are written in place, like the shell's >, and so is the file or terminal that
// is this process's standard output or error.
//
// # Caveats
//
// The directory must be writable, because the rename happens there. A killed writer leaves a file
// .NAME.gnb-tmp-…; the next writer of the same name removes it, and [Sweep] removes all such files
// of a directory. A running writer locks its temporary file, so other processes do not remove it.
// Hard links to a file that is replaced keep the old content.
//
// A [File] must be used by one goroutine only. Several processes may write the same path; the last
// to commit wins.
package atomicfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/filelock"
)

// WriteFile writes data to path: see the package documentation. perm applies to a new file.
func WriteFile(path string, data []byte, perm os.FileMode) error {
	return WriteWith(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteWith writes the output of write to path: if write fails, the file at path does not change,
// unless path is written in place.
func WriteWith(path string, perm os.FileMode, write func(io.Writer) error) error {
	f, err := Create(path, perm)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}

// File is a file being written. It gets its name at Commit.
type File struct {
	f      *os.File
	path   string // path that the caller gave
	target string // path that is replaced by the rename; "" if the file is written in place
	keep   bool   // f must not be closed
	done   bool
}

// Create starts writing path. The caller must call Commit or Abort.
func Create(path string, perm os.FileMode) (*File, error) {
	target, info, err := resolve(path)
	if err != nil {
		return nil, &fs.PathError{Op: "writing", Path: path, Err: cause(err)}
	}
	f := &File{path: path}
	switch std := standard(info); {
	case std != nil:
		f.f, f.keep = std, true
		return f, nil
	case info != nil && info.IsDir():
		return nil, &fs.PathError{Op: "writing", Path: path, Err: errors.New("it is a directory")}
	case info != nil && (target == "" || !info.Mode().IsRegular()):
		if f.f, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
			return nil, err
		}
		return f, nil
	}
	if f.f, err = aside(target, perm); err != nil {
		return nil, &fs.PathError{Op: "making a file beside", Path: path, Err: cause(err)}
	}
	f.target = target
	if info != nil {
		if err := f.f.Chmod(info.Mode().Perm()); err != nil {
			f.Abort()
			return nil, f.fail(err)
		}
	}
	return f, nil
}

// Write writes to the temporary file, or to the file that is written in place.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.f.Write(b)
	if n > 0 {
		tell(Op{Kind: OpWrite, Path: f.f.Name(), Bytes: int64(n)})
	}
	return n, f.fail(err)
}

// fail replaces the temporary path in an error by the path that the caller gave.
func (f *File) fail(err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: "writing", Path: f.path, Err: cause(err)}
}

// cause returns the system's error without file names.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// Commit gives the file its name, and returns when the file would survive a power cut. After an
// error of the last step, syncing the directory, the file is already in place.
func (f *File) Commit() error {
	if f.done {
		return &fs.PathError{Op: "committing", Path: f.path, Err: fs.ErrClosed}
	}
	if f.target == "" {
		f.done = true
		if f.keep {
			return nil
		}
		return f.fail(f.f.Close())
	}
	if err := Sync(f.f); err != nil {
		f.Abort()
		return f.fail(err)
	}
	if err := rename(f.f, f.target); err != nil {
		f.Abort()
		return f.fail(err)
	}
	f.done = true
	tell(Op{Kind: OpRename, Path: f.f.Name(), To: f.target})
	_ = f.f.Close() // synced, so errors do not matter; closing releases the lock
	return SyncDir(filepath.Dir(f.target))
}

// Abort discards a file that has not been committed: the file at the path stays as it was. After
// Commit, Abort does nothing.
func (f *File) Abort() {
	if f.done {
		return
	}
	f.done = true
	if f.target != "" {
		if os.Remove(f.f.Name()) == nil {
			tell(Op{Kind: OpRemove, Path: f.f.Name()})
		}
	}
	if !f.keep {
		_ = f.f.Close()
	}
	if f.target != "" {
		_ = os.Remove(f.f.Name()) // for systems on which an open file cannot be removed
	}
}

// maxLinks is the number of symbolic links followed in a chain, as in Linux.
const maxLinks = 40

// resolve follows the symbolic links of path's last element. It returns the path at the end of the
// chain and information about the file there, nil if there is none. The target is "" if the file
// has no name of its own that could be replaced by a rename, such as a pipe behind /proc/self/fd.
func resolve(path string) (target string, info fs.FileInfo, err error) {
	if info, err = os.Stat(path); err == nil {
		if target, err = filepath.EvalSymlinks(path); err != nil {
			return "", info, nil //nolint:nilerr // it is there, under no name
		}
		if named, err := os.Stat(target); err != nil || !os.SameFile(named, info) {
			return "", info, nil //nolint:nilerr // as above
		}
		return target, info, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	// No file, or a dangling link: the file is created where the link points.
	target = path
	for range maxLinks {
		dir, base := filepath.Split(target)
		if dir == "" {
			dir = "."
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", nil, err
		}
		if base == "" || base == "." || base == ".." {
			return "", nil, errors.New("it names a directory")
		}
		target = filepath.Join(dir, base)
		text, err := os.Readlink(target)
		if err != nil {
			return target, nil, nil //nolint:nilerr // no link
		}
		if target = text; !filepath.IsAbs(text) {
			target = dir + string(filepath.Separator) + text // not cleaned: ".." may follow a symbolic link
		}
	}
	return "", nil, errors.New("too many symbolic links")
}

// standard returns this process's standard output or error if info describes that file, else nil.
func standard(info fs.FileInfo) *os.File {
	if info == nil {
		return nil
	}
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if f == nil {
			continue
		}
		if is, err := f.Stat(); err == nil && os.SameFile(is, info) {
			return f
		}
	}
	return nil
}

// Standard reports whether a file is this process's standard output or error.
func Standard(info fs.FileInfo) bool { return standard(info) != nil }

// Temporary names are .NAME.gnb-tmp-DIGITS.
const (
	mark    = ".gnb-tmp-"
	maxName = 200 // bytes of the name kept in the temporary name; file systems allow 255 in total
)

func asideName(base string) string {
	if len(base) > maxName {
		sum := sha256.Sum256([]byte(base))
		base = base[:maxName-17] + "-" + hex.EncodeToString(sum[:8])
	}
	return "." + base + mark
}

// aside removes the temporary files of dead processes, then creates and locks the one for target.
func aside(target string, perm os.FileMode) (*os.File, error) {
	dir, base := filepath.Split(target)
	name := asideName(base)
	sweep(dir, func(prefix string) bool { return prefix == name })
	for {
		path := filepath.Join(dir, name+strconv.FormatUint(uint64(rand.Uint32()), 10))
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		tell(Op{Kind: OpCreate, Path: path})
		switch err := filelock.LockFile(f); {
		case errors.Is(err, filelock.ErrNoLocks):
			return f, nil
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, filelock.ErrLocked):
			_ = f.Close()
			continue // another process removed it before it was locked
		case err != nil:
			_ = f.Close()
			_ = os.Remove(path)
			return nil, err
		}
		if same(path, f) {
			return f, nil
		}
		_ = f.Close() // removed between creation and locking
	}
}

// same reports whether path is still the file f.
func same(path string, f *os.File) bool {
	here, err1 := os.Lstat(path)
	held, err2 := f.Stat()
	return err1 == nil && err2 == nil && os.SameFile(here, held)
}

// Sweep removes the temporary files of killed writers in dir. It ignores files that cannot be
// removed.
func Sweep(dir string) { sweep(dir, func(string) bool { return true }) }

// unlockedAge is the age from which a temporary file counts as stale on systems without locks.
const unlockedAge = 24 * time.Hour

func sweep(dir string, ours func(prefix string) bool) {
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		i := strings.LastIndex(e.Name(), mark)
		if i <= 0 || e.Name()[0] != '.' || !e.Type().IsRegular() {
			continue
		}
		prefix, digits := e.Name()[:i+len(mark)], e.Name()[i+len(mark):]
		if digits == "" || strings.Trim(digits, "0123456789") != "" || !ours(prefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		switch lock, err := filelock.Lock(path); {
		case err == nil:
			if same(path, lock) {
				_ = os.Remove(path)
			}
			_ = filelock.Unlock(lock)
		case errors.Is(err, filelock.ErrNoLocks):
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > unlockedAge {
				_ = os.Remove(path)
			}
		}
	}
}

// Sync makes the data written to a regular file durable. It does nothing for other files.
func Sync(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	if err := f.Sync(); err != nil {
		return err
	}
	tell(Op{Kind: OpSync, Path: f.Name(), Bytes: info.Size()})
	return nil
}

// MkdirAll creates a directory and its missing parents, durably.
func MkdirAll(dir string, perm os.FileMode) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := MkdirAll(parent, perm); err != nil {
			return err
		}
	}
	return Mkdir(dir, perm)
}

// Mkdir creates a directory, durably, unless it exists. Its parent must exist.
func Mkdir(dir string, perm os.FileMode) error {
	if err := os.Mkdir(dir, perm); err != nil {
		if info, e := os.Stat(dir); e == nil && info.IsDir() {
			return nil // created by another process in the meantime
		}
		return err
	}
	tell(Op{Kind: OpMkdir, Path: dir})
	return SyncDir(filepath.Dir(dir))
}

// String returns the operation in one line.
func (o Op) String() string {
	s := fmt.Sprintf("%s %s", o.Kind, o.Path)
	if o.To != "" {
		s += " " + o.To
	}
	if o.Bytes > 0 {
		s += fmt.Sprintf(" %d", o.Bytes)
	}
	return s
}
