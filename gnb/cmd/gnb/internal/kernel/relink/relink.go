// Package relink builds a cell's program with the compiler and the linker alone, where "go build" would find that only the
// cell has changed. "gnb install" compiles it into GoNB, so it imports nothing but the standard library.
//
// "go build" loads, hashes and compares every package of a program, hundreds of them, before it compiles the one that
// changed. The first time that a cell imports something new, [Build] runs "go build -x" and keeps a [record]: the arguments
// of the compiler and the linker, and of each package its imports, its archive in Go's cache, and a digest of the names,
// sizes, times and inodes of all files that "go build" looks at, in GOROOT, the module cache and the user's checkouts. A
// cell that imports none but recorded packages is then built by compiler and linker with these arguments, while the
// digests of the packages that it needs are the same (and the environment, go.mod and go.work, which choose the record).
// Everything else is left to "go build": a cell that uses cgo, embeds files or has compiler
// directives, a program for which the linker needs a C compiler, unknown flags, any failure. A compile error is always
// that of "go build".
//
// A program built by Build has the build information that "go build" writes. Its build ID begins with "relink".
package relink

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Build runs cmd, a "go build -o out" of the program in cmd.Dir, or does what it would do, and returns the output of
// "go build" and its error. The name of the directory is that of the module, as GoNB has it.
func Build(cmd *exec.Cmd, out string) ([]byte, error) {
	c, err := readCell(cmd, out)
	if err != nil {
		return cmd.CombinedOutput()
	}
	r := c.load()
	if r != nil {
		err := c.replay(r)
		if err == nil {
			return nil, nil
		}
		if !errors.Is(err, errChanged) {
			text, err := cmd.CombinedOutput()
			if err == nil {
				_ = os.Remove(c.file) // "go build" can what the record cannot
			}
			return text, err
		}
	}
	if c.record(r) == nil {
		return nil, nil
	}
	return cmd.CombinedOutput()
}

// built remembers, for each program that replay built, from what it did.
var built sync.Map

// program is what replay built: from what, and the file's identity.
type program struct{ id, file string }

// id returns the first part of the program's build ID, a digest of everything from which it is made.
func (c *cell) id(r *record, link string) string {
	sum := sha256.Sum256([]byte(c.key + "\n" + c.name + "\n" + r.State + "\n" + link + "\n" + string(c.source)))
	return "relink" + base64.RawURLEncoding.EncodeToString(sum[:18])
}

// errChanged says that more than the cell has changed.
var errChanged = errors.New("a record is out of date")

// replay compiles and links the cell as r says. While the compiler runs, it finds out whether r is current.
func (c *cell) replay(r *record) error {
	paths, ok := c.covers(r)
	if !ok {
		return errChanged
	}
	current := make(chan error, 1)
	go func() { current <- r.current(paths) }()
	compile, link := c.lists(r, paths)
	id := c.id(r, link)
	if p, ok := built.Load(c.out); ok && p == (program{id, identity(c.out)}) {
		if err := <-current; err != nil {
			return err
		}
		now := time.Now()
		if err := os.Chtimes(c.out, now, now); err != nil { // "go build" sets the time too
			return err
		}
		c.remember(id)
		return nil
	}
	work, err := os.MkdirTemp("", "relink-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	fill := strings.NewReplacer(holeDir, c.dir, holeName, c.name, holeWork, work, holeID, id)
	for name, text := range map[string]string{compileConfig: compile, linkConfig: link} {
		if err := os.WriteFile(fill.Replace(name), []byte(fill.Replace(text)), 0o600); err != nil {
			return err
		}
	}
	err = c.tool(r.Compiler, r.Env, fill)
	if err := <-current; err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if err := c.tool(r.Linker, r.Env, fill); err != nil {
		return err
	}
	if now, err := os.ReadFile(filepath.Join(c.dir, mainGo)); err != nil || string(now) != string(c.source) {
		return errors.New(mainGo + " was written while it was compiled")
	}
	if err := os.Rename(fill.Replace(programFile), c.out); err != nil {
		return err
	}
	c.remember(id)
	return nil
}

// remember notes from what the cell's program was made.
func (c *cell) remember(id string) { built.Store(c.out, program{id, identity(c.out)}) }

// tool runs the compiler or the linker.
func (c *cell) tool(args, env []string, fill *strings.Replacer) error {
	filled := make([]string, len(args))
	for i, a := range args {
		filled[i] = fill.Replace(a)
	}
	cmd := exec.Command(filled[0], filled[1:]...)
	cmd.Dir, cmd.Env = c.dir, slices.Concat(c.environ, env, []string{"PWD=" + c.dir})
	if text, err := cmd.CombinedOutput(); err != nil {
		return errors.New(string(text) + err.Error())
	}
	return nil
}
