package relink

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxTree bounds the files of a directory whose package embeds some.
const maxTree = 5000

// filesState returns a digest of files' identities, and when the last of them changed.
func filesState(files []string) (digest string, last time.Time, err error) {
	s := &state{h: sha256.New()}
	for _, file := range files {
		if err := s.file(file, nil); err != nil {
			return "", last, err
		}
	}
	return s.digest(), s.last, nil
}

// state returns a digest of what "go build" looks at to find out whether the package has changed, and when the last of
// it did.
func (p *pack) state() (digest string, last time.Time, err error) {
	s := &state{h: sha256.New()}
	if p.Tree {
		err = s.tree(p.Dir)
	} else {
		err = s.dir(p.Dir)
	}
	return s.digest(), s.last, err
}

type state struct {
	h    hash.Hash
	last time.Time
}

func (s *state) digest() string { return fmt.Sprintf("%x", s.h.Sum(nil)[:16]) }

// file adds a file; info is what a directory says about it, nil if nobody has asked.
func (s *state) file(path string, info fs.FileInfo) error {
	if info == nil || !info.Mode().IsRegular() { // a link: its target counts
		var err error
		if info, err = os.Stat(path); errors.Is(err, os.ErrNotExist) {
			_, err = fmt.Fprintf(s.h, "%q -\n", path)
			return err
		} else if err != nil {
			return err
		}
	}
	if at := changed(info); at.After(s.last) {
		s.last = at
	}
	_, err := io.WriteString(s.h, path+"\x00"+identityOf(info)+"\n")
	return err
}

func (s *state) dir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || name != "go.mod" && (!compiled[filepath.Ext(name)] || strings.HasSuffix(name, "_test.go")) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if err := s.file(dir+string(filepath.Separator)+name, info); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) tree(dir string) error {
	n := 0
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if n++; err != nil || n > maxTree {
			return errors.Join(err, errGo)
		}
		if e.IsDir() {
			_, err = fmt.Fprintf(s.h, "%q /\n", path)
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return s.file(path, info)
	})
}

// identity returns what changes when the file does, "" if there is none.
func identity(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return identityOf(info)
}
