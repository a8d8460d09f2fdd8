package relink

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const mainGo = "main.go"

// cell is a program to build, and what chooses its record.
type cell struct {
	dir, name, out string
	goTool         string // the go command's program
	cc             string // the C compiler's name
	environ        []string
	source         []byte   // of main.go
	imports        []string // sorted
	key            string   // of its record
	file           string   // of its record
}

// errGo is the reason to leave a cell to "go build".
var errGo = errors.New("not a plain cell")

// readCell returns an error for each program that is not a plain cell. It reads what chooses a record.
func readCell(cmd *exec.Cmd, out string) (*cell, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	c := &cell{dir: cmd.Dir, name: filepath.Base(cmd.Dir), out: out, environ: cmd.Environ()}
	plain := canTell && filepath.IsAbs(c.dir) && filepath.Dir(out) == c.dir && len(c.name) >= 4 && // "gonb_" and an ID
		slices.Equal(cmd.Args[1:], []string{"build", "-o", out})
	if !plain {
		return nil, errGo
	}
	if c.goTool, err = filepath.EvalSymlinks(cmd.Path); err != nil {
		return nil, err
	}
	// A script in its place may run one Go today and another tomorrow.
	if _, err := os.Stat(filepath.Join(filepath.Dir(c.goTool), "..", "VERSION")); err != nil {
		return nil, err
	}
	if c.source, err = os.ReadFile(filepath.Join(c.dir, mainGo)); err != nil {
		return nil, err
	}
	if c.imports, err = plainImports(c.source); err != nil {
		return nil, err
	}
	if err := c.plainDir(); err != nil {
		return nil, err
	}
	env := goEnv(c.environ)
	key := "1\n" + identity(c.goTool) + "\n" + strings.Join(env, "\n") + "\n"
	config, err := userGoEnv(env)
	if err != nil {
		return nil, err
	}
	key += config + c.ccompiler(env) + "\n"
	for _, name := range []string{"go.mod", "go.sum", "go.work", "go.work.sum"} {
		text, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil && (!errors.Is(err, os.ErrNotExist) || name == "go.mod") {
			return nil, err
		}
		if relative.Match(text) {
			key += c.dir + "\n"
		}
		key += fmt.Sprintf("%s %t %q\n", name, err == nil, strings.ReplaceAll(string(text), c.name, holeName))
	}
	c.key = fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
	c.file = filepath.Join(cache, "graphnb", "relink", c.key)
	return c, nil
}

// relative matches a path in go.mod or go.work that means another directory in another place.
var relative = regexp.MustCompile(`\.\.|\./`)

// plainImports returns the sorted imports of a cell, and an error if "go build" would read more of it than the imports:
// a directive (//go:embed, //go:build, //go:debug) or cgo.
func plainImports(source []byte) ([]string, error) {
	text := string(source)
	if strings.Contains(text, "//go:") || strings.Contains(text, "+build") || strings.Contains(text, "{{") && holes.MatchString(text) {
		return nil, errGo
	}
	f, err := parser.ParseFile(token.NewFileSet(), mainGo, source, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	if f.Name.Name != "main" {
		return nil, errGo
	}
	var imports []string
	for _, i := range f.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil || path == "C" || path == "embed" {
			return nil, errGo
		}
		imports = append(imports, path)
	}
	slices.Sort(imports)
	return slices.Compact(imports), nil
}

// plainDir reports whether the cell's directory has main.go alone for "go build", and the directories above it nothing.
func (c *cell) plainDir() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	work := false
	for _, e := range entries {
		name := e.Name()
		if name != mainGo && (compiled[filepath.Ext(name)] || name == "vendor" || name == "default.pgo") {
			return errGo
		}
		work = work || name == "go.work"
	}
	for dir := c.dir; ; dir = filepath.Dir(dir) {
		for _, name := range []string{".git", ".hg", ".svn", ".bzr", ".fslckout", "_FOSSIL_", "go.work"} {
			if name == "go.work" && work {
				continue
			}
			if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
				return errGo
			}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// compiled has the extensions of the files that "go build" compiles.
var compiled = func() map[string]bool {
	m := map[string]bool{}
	for _, e := range strings.Fields(".go .c .cc .cpp .cxx .m .h .hh .hpp .hxx .f .F .for .f90 .s .S .sx .swig .swigcxx .syso") {
		m[e] = true
	}
	return m
}()

// goEnv returns the sorted variables that the go command and its tools read.
func goEnv(environ []string) []string {
	var env []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case strings.HasPrefix(name, "GONB_"):
		case strings.HasPrefix(name, "GO"), strings.HasPrefix(name, "CGO_"), strings.HasPrefix(name, "PKG_CONFIG"),
			strings.HasPrefix(name, "GCC"), strings.HasPrefix(name, "XDG_"),
			slices.Contains([]string{"PATH", "HOME", "CC", "CXX", "FC", "AR", "CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "LD_LIBRARY_PATH", "SOURCE_DATE_EPOCH"}, name):
			env = append(env, e)
		}
	}
	slices.Sort(env)
	return env
}

// ccompiler returns the C compiler and its program's identity. Without one, "go build" builds without cgo.
func (c *cell) ccompiler(env []string) string {
	c.cc = "gcc"
	for _, e := range env {
		if name, value, _ := strings.Cut(e, "="); name == "CC" && value != "" {
			c.cc = value
		}
	}
	path, err := exec.LookPath(c.cc)
	if err != nil {
		return ""
	}
	return path + " " + identity(path)
}

// userGoEnv returns the settings made with "go env -w".
func userGoEnv(env []string) (string, error) {
	file := ""
	for _, e := range env {
		if name, value, _ := strings.Cut(e, "="); name == "GOENV" {
			file = value
		}
	}
	if file == "off" {
		return "", nil
	}
	if file == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return "", err
		}
		file = filepath.Join(dir, "go", "env")
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return fmt.Sprintf("%q\n", text), err
}
