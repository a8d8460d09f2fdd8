package codeid

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// program describes the running program.
type program struct {
	options  Options
	info     *debug.BuildInfo
	notAfter time.Time // the time at which its sources were as compiled
	dirs     map[string]string
}

// started is the approximate start time of this process.
var started = time.Now()

func newProgram(info *debug.BuildInfo, o Options) *program {
	p := &program{options: o, info: info, notAfter: started, dirs: map[string]string{}}
	exe := executable()
	if info, err := os.Stat(exe); err == nil && !compiledAtStart(exe) {
		p.notAfter = info.ModTime()
	}
	return p
}

// executable returns the path of the program's file, even if another file has replaced it.
func executable() string {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self
	}
	path, _ := os.Executable()
	return path
}

// compiledAtStart reports whether "go run" started the program: it compiles the sources as they are
// when it is called, and may use an executable that it built earlier from the same sources.
func compiledAtStart(exe string) bool {
	if target, err := os.Readlink(exe); err == nil {
		exe = target
	}
	dir := filepath.Base(filepath.Dir(exe))
	return goRunDir.MatchString(dir) || dir == "exe" && strings.Contains(exe, "go-build")
}

var goRunDir = regexp.MustCompile(`^[0-9a-f]{64}-d$`)

// importPath returns a package's path as it appears in function names, where the program's own
// package is called main.
func (p *program) importPath(pkg string) string {
	if pkg == "main" {
		return p.info.Path
	}
	return pkg
}

// ofLibrary reports whether a package, or a function of it in a file, belongs to the library.
func (p *program) ofLibrary(pkg, file string) bool {
	lib := p.options.Library
	pkg = p.importPath(pkg)
	if lib == "" || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(pkg, ".test") || !within(pkg, lib) || strings.Contains(pkg, "/testdata/") {
		return false
	}
	return p.options.Own == nil || p.options.Own(strings.TrimPrefix(strings.TrimPrefix(pkg, lib), "/"))
}

// within reports whether a package has that path or is below it.
func within(pkg, path string) bool {
	return path != "" && (pkg == path || strings.HasPrefix(pkg, path+"/"))
}

// module returns the module of a package, nil for the standard library.
func (p *program) module(pkg string) *debug.Module {
	var best *debug.Module
	pkg = strings.TrimSuffix(pkg, "_test")
	for _, m := range append([]*debug.Module{&p.info.Main}, p.info.Deps...) {
		if within(pkg, m.Path) && (best == nil || len(m.Path) > len(best.Path)) {
			best = m
		}
	}
	return best
}

// versioned returns the module and version of a package, "" if it has no version.
func (p *program) versioned(pkg string) string {
	pkg = p.importPath(pkg)
	m := p.module(pkg)
	if m == nil || m.Path == p.info.Main.Path {
		return ""
	}
	switch r := m.Replace; {
	case r != nil && hasVersion(r):
		return m.Path + "@" + r.Path + " " + r.Version
	case r != nil || !hasVersion(m):
		return ""
	}
	return m.Path + "@" + m.Version
}

// hasVersion reports whether a module is not replaced by a directory.
func hasVersion(m *debug.Module) bool { return m.Version != "" && m.Version != "(devel)" }

// packageOfRoot returns the package of a root, nil for the standard library.
func (p *program) packageOfRoot(r Root) (*pkg, error) {
	path := ""
	if r.pkg != "main" && !strings.HasSuffix(r.pkg, "_test") {
		if path = r.pkg; p.module(path) == nil {
			return nil, nil
		}
	}
	if !filepath.IsAbs(r.File) {
		return nil, errors.New("it was compiled without the directories of its sources (-trimpath)")
	}
	name, err := clauseOf(r.File)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(r.File)
	p.learn(dir)
	return p.load(dir, name, strings.HasSuffix(r.File, "_test.go"), path)
}

// packageOfImport returns the package of an import whose module is a directory, nil for the
// standard library.
func (p *program) packageOfImport(path string) (*pkg, error) {
	m := p.module(path)
	if m == nil {
		return nil, nil
	}
	dir, ok := p.dirs[m.Path]
	if !ok {
		return nil, fmt.Errorf("the directory of module %s is not known", m.Path)
	}
	dir = filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(path, m.Path), "/")))
	name, err := importedName(dir)
	if err != nil {
		return nil, err
	}
	return p.load(dir, name, false, path)
}

// load reads a package once per process: the program's code does not change, even if its sources
// do.
func (p *program) load(dir, name string, tests bool, path string) (*pkg, error) {
	key := strings.Join([]string{dir, name, strconv.FormatBool(tests)}, "\x00")
	read.Lock()
	defer read.Unlock()
	if q, ok := read.packages[key]; ok {
		return q, nil
	}
	q, err := sourceOf(dir, name, tests, p.notAfter)
	if err != nil {
		return nil, err
	}
	q.path = path
	if read.packages == nil {
		read.packages = map[string]*pkg{}
	}
	read.packages[key] = q
	return q, nil
}

// read caches the packages that load has read.
var read struct {
	sync.Mutex
	packages map[string]*pkg
}

// learn finds the directories of the modules without a version, starting from the directory of a
// package of one of them: by the go.mod above it, the replacements with which the program was
// built, and the workspace.
func (p *program) learn(dir string) {
	for top := dir; ; top = filepath.Dir(top) {
		if name := modulePath(filepath.Join(top, "go.mod")); name != "" {
			if _, known := p.dirs[name]; known {
				return
			}
			p.dirs[name] = top
			p.replaced(top)
			p.workspace(top)
			return
		}
		if top == filepath.Dir(top) {
			return
		}
	}
}

// replaced records the modules that a go.mod or go.work replaces by a directory.
func (p *program) replaced(top string) {
	for _, m := range p.info.Deps {
		if m.Replace == nil || hasVersion(m.Replace) {
			continue
		}
		dir := filepath.FromSlash(m.Replace.Path)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(top, dir)
		}
		if _, known := p.dirs[m.Path]; !known && modulePath(filepath.Join(dir, "go.mod")) != "" {
			p.dirs[m.Path] = dir
		}
	}
}

// workspace records the modules of a directory's workspace.
func (p *program) workspace(dir string) {
	file := os.Getenv("GOWORK")
	for top := dir; !filepath.IsAbs(file); top = filepath.Dir(top) {
		if _, err := os.Stat(filepath.Join(top, "go.work")); err == nil {
			file = filepath.Join(top, "go.work")
		} else if top == filepath.Dir(top) {
			return
		}
	}
	for _, use := range directives(file, "use") {
		used := filepath.FromSlash(use)
		if !filepath.IsAbs(used) {
			used = filepath.Join(filepath.Dir(file), used)
		}
		if name := modulePath(filepath.Join(used, "go.mod")); name != "" {
			if _, known := p.dirs[name]; !known {
				p.dirs[name] = used
			}
		}
	}
	p.replaced(filepath.Dir(file))
}

func modulePath(file string) string {
	if names := directives(file, "module"); len(names) > 0 {
		return names[0]
	}
	return ""
}

// directives returns the arguments of a verb in a go.mod or go.work file, in a line or in a block.
func directives(file, verb string) (out []string) {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	inside := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case inside && words[0] == ")":
			inside = false
		case inside:
			out = append(out, strings.Trim(words[0], "\"`"))
		case words[0] == verb && len(words) > 1 && words[1] == "(":
			inside = true
		case words[0] == verb && len(words) > 1:
			out = append(out, strings.Trim(words[1], "\"`"))
		}
	}
	return out
}

// mayBeNamed reports whether a package of this path may have the name, if its import does not
// rename it: most packages are named like the last part of their path.
func mayBeNamed(importPath, name string) bool {
	last := path.Base(importPath)
	if version.MatchString(last) {
		last = cmp.Or(path.Base(path.Dir(importPath)), last)
	}
	last, _, _ = strings.Cut(last, ".v")
	last = strings.TrimSuffix(strings.TrimPrefix(last, "go-"), "-go")
	return last == name || strings.ReplaceAll(last, "-", "") == name || strings.ReplaceAll(last, "-", "_") == name || strings.TrimSuffix(last, ".go") == name
}

var version = regexp.MustCompile(`^v[0-9]+$`)
