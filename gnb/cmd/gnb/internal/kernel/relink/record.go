package relink

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// record is what "go build" did for cells that differ in nothing but their text and imports, and from what.
type record struct {
	Compiler, Linker []string // programs and arguments
	Env              []string // for both
	Info             info
	Packages         map[string]*pack // of the programs, by import path
	Direct           []string         // modules from which cells imported packages
	Files            []string         // files on which all depends, among them those that must not be there
	State            string           // of Files
}

// pack is a package. Its archive was made with those of its imports.
type pack struct {
	Dir     string
	Tree    bool // it embeds files: all files below Dir count
	State   string
	Archive string // "" for packages of the compiler's own
	Size    int64
	Imports []string
	Module  string // "" for the standard library
}

// info is the build information of a program, quoted as "go build" prints it. Deps has a text for each module.
type info struct {
	Head, Tail string
	Deps       map[string]string
}

// Holes stand for what differs from cell to cell.
const (
	holeDir  = "{{dir}}"  // of the cell
	holeName = "{{name}}" // of its module
	holeWork = "{{work}}" // a temporary directory
	holeID   = "{{id}}"   // the first part of the build ID
)

// Files in the temporary directory.
const (
	objectFile    = holeWork + "/main.a"
	programFile   = holeWork + "/main"
	compileConfig = holeWork + "/importcfg"
	linkConfig    = holeWork + "/importcfg.link"
)

var holes = regexp.MustCompile(`\{\{(dir|name|work|id)\}\}`)

// maxRecords bounds the records that are kept; each has 0.1 to 0.3 MB.
const maxRecords = 100

// load returns the cell's record, nil if there is none.
func (c *cell) load() *record {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return nil
	}
	r := new(record)
	if json.Unmarshal(text, r) != nil || len(r.Compiler) == 0 || len(r.Linker) == 0 {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(c.file, now, now) // it was used: see save
	return r
}

// direct returns the packages that a package with these imports depends on directly.
func direct(imports []string) []string {
	all := append(slices.Clone(imports), "runtime")
	slices.Sort(all)
	return slices.Compact(all)
}

// closure returns the import paths of all packages of a program, sorted, or false if r does not have one of them.
func (r *record) closure(imports []string) ([]string, bool) {
	seen := map[string]bool{}
	todo := direct(imports)
	for len(todo) > 0 {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[path] {
			continue
		}
		seen[path] = true
		if path == "C" { // what cgo's code imports
			todo = append(todo, "runtime/cgo", "syscall")
			continue
		}
		p := r.Packages[path]
		if p == nil {
			return nil, false
		}
		todo = append(todo, p.Imports...)
	}
	delete(seen, "C")
	return slices.Sorted(maps.Keys(seen)), true
}

// covers returns the packages of the cell's program, and whether "go build" would let the cell import what it does:
// packages of the standard library, and of modules from which it let another cell import.
func (c *cell) covers(r *record) ([]string, bool) {
	for _, path := range c.imports {
		p := r.Packages[path]
		if p == nil || slices.Contains(strings.Split(path, "/"), "internal") || strings.HasPrefix(path, "vendor/") ||
			p.Module != "" && !slices.Contains(r.Direct, p.Module) {
			return nil, false
		}
	}
	return r.closure(c.imports)
}

// current returns nil if "go build" would find that of the packages in paths none has changed since r was made.
func (r *record) current(paths []string) error {
	if state, _, err := filesState(r.Files); err != nil || state != r.State {
		return errChanged
	}
	now := time.Now()
	for _, path := range paths {
		p := r.Packages[path]
		if p.Archive == "" {
			continue
		}
		info, err := os.Stat(p.Archive)
		if err != nil || info.Size() != p.Size {
			return errChanged
		}
		if now.Sub(info.ModTime()) > time.Hour { // Go removes from its cache what was not used for days
			_ = os.Chtimes(p.Archive, now, now)
		}
		if state, _, err := p.state(); err != nil || state != p.State {
			return errChanged
		}
	}
	return nil
}

// lists returns the lists of packages for the compiler and the linker.
func (c *cell) lists(r *record, paths []string) (compile, link string) {
	compile = "# import config\n"
	for _, path := range direct(c.imports) {
		if p := r.Packages[path]; p.Archive != "" {
			compile += "packagefile " + path + "=" + p.Archive + "\n"
		}
	}
	var b strings.Builder
	b.WriteString("packagefile " + holeName + "=" + objectFile + "\n")
	modules := map[string]bool{}
	for _, path := range paths {
		p := r.Packages[path]
		if modules[p.Module] = true; p.Archive != "" {
			b.WriteString("packagefile " + path + "=" + p.Archive + "\n")
		}
	}
	b.WriteString(`modinfo "` + r.Info.Head)
	for _, m := range slices.Sorted(maps.Keys(modules)) {
		b.WriteString(r.Info.Deps[m])
	}
	b.WriteString(r.Info.Tail + "\"\n")
	return compile, b.String()
}

// tries counts how often a record could not be made for a key and imports. Some never can.
var tries sync.Map

const maxTries = 3

// settle is how old a file must be before a record is made: its time may be too coarse to show another change soon after.
var settle = 2 * time.Second

// record runs "go build -x" and keeps what it did, with what is known from old. It returns an error if "go build" has to
// be run, perhaps again for its message.
func (c *cell) record(old *record) error {
	key := c.key + strings.Join(c.imports, " ")
	n, _ := tries.LoadOrStore(key, 0)
	if n.(int) >= maxTries {
		return errGo
	}
	failed := func(err error) error {
		tries.Store(key, n.(int)+1)
		return err
	}
	r := new(record)
	if err := c.look(r); err != nil {
		return failed(err)
	}
	if r.merge(old) != nil {
		old = nil
	}
	last, err := r.take()
	if err != nil {
		return failed(err)
	}
	settled := time.Since(last) > settle
	text, err := c.goCommand("build", "-x", "-o", c.out)
	if err != nil || !settled {
		return err
	}
	before := r.states()
	if err := c.parse(r, text); err != nil { // something is new to parse
		return failed(nil)
	}
	if _, err := r.take(); err != nil || r.states() != before {
		return nil
	}
	r.mergePackages(old)
	if c.save(r) != nil {
		return failed(nil)
	}
	tries.Delete(key)
	return nil
}

// take takes the states of all files, and returns when the last of them changed.
func (r *record) take() (last time.Time, err error) {
	if r.State, last, err = filesState(r.Files); err != nil {
		return last, err
	}
	for _, p := range r.Packages {
		var at time.Time
		if p.State, at, err = p.state(); err != nil {
			return last, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}

// states returns the states that take has taken.
func (r *record) states() string {
	all := r.State
	for _, path := range slices.Sorted(maps.Keys(r.Packages)) {
		all += r.Packages[path].State
	}
	return all
}

// merge adds to r the files of an older record, if they have not changed.
func (r *record) merge(old *record) error {
	if old == nil {
		return nil
	}
	if state, _, err := filesState(old.Files); err != nil || state != old.State {
		return errChanged
	}
	r.Files = append(r.Files, old.Files...)
	slices.Sort(r.Files)
	r.Files = slices.Compact(r.Files)
	return nil
}

// mergePackages adds to r the packages of an older record that were made with the archives that r has.
func (r *record) mergePackages(old *record) {
	if old == nil || !slices.Equal(r.Compiler, old.Compiler) || !slices.Equal(r.Linker, old.Linker) || !slices.Equal(r.Env, old.Env) ||
		r.Info.Head != old.Info.Head || r.Info.Tail != old.Info.Tail {
		return
	}
	stale := map[string]bool{}
	for changed := true; changed; {
		changed = false
		for path, p := range old.Packages {
			if stale[path] {
				continue
			}
			now := r.Packages[path]
			if now != nil && (now.Archive != p.Archive) || now == nil && slices.ContainsFunc(p.Imports, func(i string) bool { return stale[i] || i == "C" && stale["runtime/cgo"] }) {
				stale[path], changed = true, true
			}
		}
	}
	for path, p := range old.Packages {
		if r.Packages[path] == nil && !stale[path] {
			r.Packages[path] = p
		}
	}
	for m, text := range old.Info.Deps {
		if r.Info.Deps[m] == "" {
			r.Info.Deps[m] = text
		}
	}
	r.Direct = append(r.Direct, old.Direct...)
	slices.Sort(r.Direct)
	r.Direct = slices.Compact(r.Direct)
}

// goCommand runs the go command in the cell's directory and returns its standard output; for a build, its standard error.
func (c *cell) goCommand(args ...string) ([]byte, error) {
	cmd := exec.Command(c.goTool, args...)
	cmd.Dir, cmd.Env = c.dir, append(slices.Clip(c.environ), "PWD="+c.dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if args[0] == "build" {
		return stderr.Bytes(), err
	}
	return stdout.Bytes(), err
}

// plainFlag matches the flags in GOFLAGS with which a record can be made.
var plainFlag = regexp.MustCompile(`^--?(trimpath|buildvcs(=\w+)?|ldflags=-[sw]|tags=[\w,.]*|mod=readonly|p=\d+)$`)

// settings are those of "go env" that the compiler and the linker read, which the go command gives them.
var settings = strings.Fields("GOOS GOARCH GOROOT GOEXPERIMENT GOFIPS140 GO386 GOAMD64 GOARM GOARM64 GOMIPS GOMIPS64 GOPPC64 GORISCV64 GOWASM")

// local matches a module for which go.mod or go.work gives a directory, and the directory.
var local = regexp.MustCompile(`(?m)^\s*(?:replace\s+)?"?([^\s"]+)"?(?:\s+v\S+)?\s*=>\s*"?(\.{0,2}/[^\s"]*)`)

// look finds out what "go build" looks at for the cell.
func (c *cell) look(r *record) error {
	text, err := c.goCommand("env", "-json")
	if err != nil {
		return err
	}
	env := map[string]string{}
	if err := json.Unmarshal(text, &env); err != nil {
		return err
	}
	for _, f := range strings.Fields(env["GOFLAGS"]) {
		if !plainFlag.MatchString(f) {
			return errGo
		}
	}
	if w := env["GOWORK"]; env["CC"] != c.cc || env["GOCACHEPROG"] != "" || env["GOROOT"] == "" || w != "" && w != filepath.Join(c.dir, "go.work") {
		return errGo
	}
	for _, name := range settings {
		if value, ok := env[name]; ok {
			r.Env = append(r.Env, name+"="+value)
		}
	}
	r.Packages = map[string]*pack{}
	r.Files = append(r.Files, filepath.Join(env["GOROOT"], "VERSION"), filepath.Join(env["GOROOT"], "go.env"), filepath.Join(env["GOTOOLDIR"], "compile"), filepath.Join(env["GOTOOLDIR"], "link"))
	// The modules in directories of the user: those of the workspace, and those that take a module's place.
	if text, err = c.goCommand("list", "-m", "-json=Path,Dir"); err != nil {
		return err
	}
	type module struct{ Path, Dir string }
	var modules []module
	if err := each(text, func(m module) error { modules = append(modules, m); return nil }); err != nil {
		return err
	}
	for _, m := range slices.Clone(modules) {
		if m.Dir == "" {
			return errGo
		}
		for _, name := range []string{"go.mod", "go.work"} {
			text, err := os.ReadFile(filepath.Join(m.Dir, name))
			if name == "go.work" && m.Dir != c.dir || os.IsNotExist(err) {
				continue
			} else if err != nil {
				return err
			}
			for _, found := range local.FindAllSubmatch(text, -1) {
				dir := string(found[2])
				if !filepath.IsAbs(dir) {
					dir = filepath.Join(m.Dir, dir)
				}
				modules = append(modules, module{string(found[1]), filepath.Clean(dir)})
			}
		}
	}
	var roots []string
	for _, m := range modules {
		if m.Dir != c.dir {
			roots = append(roots, m.Dir)
		}
	}
	slices.Sort(roots)
	roots = slices.Compact(roots)
	for _, root := range roots {
		r.Files = append(r.Files, filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum"), filepath.Join(root, "vendor", "modules.txt"))
	}
	if text, err = c.goCommand("list", "-deps", "-json=ImportPath,Dir,Standard,CgoFiles,EmbedPatterns,Imports,ImportMap,Module,Error"); err != nil {
		return err
	}
	type pkg struct {
		ImportPath, Dir                  string
		Standard                         bool
		CgoFiles, EmbedPatterns, Imports []string
		ImportMap                        map[string]string
		Module                           *module
		Error                            *struct{}
	}
	err = each(text, func(p pkg) error {
		if p.Error != nil || p.Dir == "" || len(p.CgoFiles) > 0 && !p.Standard || !p.Standard && p.Module == nil {
			return errGo
		}
		for i, path := range p.Imports {
			if to, ok := p.ImportMap[path]; ok {
				p.Imports[i] = to
			}
		}
		if p.Dir == c.dir {
			imports := slices.Clone(p.Imports)
			if slices.Sort(imports); !slices.Equal(imports, c.imports) {
				return errGo
			}
			return nil
		}
		now := &pack{Dir: p.Dir, Tree: len(p.EmbedPatterns) > 0, Imports: p.Imports}
		r.Packages[p.ImportPath] = now
		if p.Module != nil {
			now.Module = p.Module.Path
			if slices.Contains(c.imports, p.ImportPath) {
				r.Direct = append(r.Direct, now.Module)
			}
		}
		// A new go.mod above a package would make it one of another module.
		for _, root := range roots {
			if rel, err := filepath.Rel(root, p.Dir); err == nil && filepath.IsLocal(rel) {
				for dir := filepath.Dir(p.Dir); len(dir) > len(root); dir = filepath.Dir(dir) {
					r.Files = append(r.Files, filepath.Join(dir, "go.mod"))
				}
			}
		}
		// As would a new directory of the package's name in a module of the user.
		for _, m := range modules {
			if rest, ok := strings.CutPrefix(p.ImportPath, m.Path+"/"); ok && p.Dir != filepath.Join(m.Dir, rest) {
				r.Files = append(r.Files, filepath.Join(m.Dir, rest))
			}
		}
		return nil
	})
	slices.Sort(r.Files)
	r.Files = slices.Compact(r.Files)
	return err
}

// each decodes a sequence of JSON values.
func each[T any](text []byte, do func(T) error) error {
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var v T
		if err := d.Decode(&v); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := do(v); err != nil {
			return err
		}
	}
}

// save keeps a record, and removes those that were not used for longest if there are too many.
func (c *cell) save(r *record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	dir := filepath.Dir(c.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(text); err != nil {
		return fmt.Errorf("%w, %w", err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), c.file); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= maxRecords {
		return err
	}
	used := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			used[e.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return used[a.Name()].Compare(used[b.Name()]) })
	for _, e := range entries[:len(entries)-maxRecords] {
		_ = os.Remove(filepath.Join(dir, e.Name()))
	}
	return nil
}
