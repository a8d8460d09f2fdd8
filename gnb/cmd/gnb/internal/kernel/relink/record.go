package relink

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// record is what "go build" did for a cell, and from what.
type record struct {
	Compiler, Linker []string // programs and arguments
	Env              []string // for both
	Compile, Link    string   // their lists of packages
	Sizes            []int64  // of the packages' archives, in the order of Link
	Inputs           inputs
	State            string
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

// maxRecords bounds the records that are kept; each has about 0.1 MB.
const maxRecords = 200

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
	return r
}

// packagefile finds the packages in a list for the compiler or the linker.
var packagefile = regexp.MustCompile(`(?m)^packagefile ([^=\n]+)=(.*)$`)

// current returns nil if "go build" would find that only the cell has changed since r was made.
func (c *cell) current(r *record) error {
	now := time.Now()
	i := 0
	for _, p := range packagefile.FindAllStringSubmatch(r.Link, -1) {
		if p[2] == objectFile {
			continue
		}
		info, err := os.Stat(p[2])
		if err != nil || i >= len(r.Sizes) || info.Size() != r.Sizes[i] {
			return errChanged
		}
		i++
		if now.Sub(info.ModTime()) > time.Hour { // Go removes from its cache what was not used for days
			_ = os.Chtimes(p[2], now, now)
		}
	}
	if i != len(r.Sizes) {
		return errChanged
	}
	state, _, err := r.Inputs.state()
	if err != nil || state != r.State {
		return errChanged
	}
	_ = os.Chtimes(c.file, now, now)
	return nil
}

// tries counts how often a record could not be made. Some never can.
var tries sync.Map

const maxTries = 3

// settle is how old a file must be before a record is made: its time may be too coarse to show another change soon after.
var settle = 2 * time.Second

// record runs "go build -x" and keeps what it did. It returns an error if "go build" has to be run, perhaps again for its
// message.
func (c *cell) record() error {
	n, _ := tries.LoadOrStore(c.key, 0)
	if n.(int) >= maxTries {
		return errGo
	}
	r := new(record)
	if err := c.look(r); err != nil {
		tries.Store(c.key, n.(int)+1)
		return err
	}
	before, last, err := r.Inputs.state()
	if err != nil {
		return err
	}
	settled := time.Since(last) > settle
	text, err := c.goCommand("build", "-x", "-o", c.out)
	if err != nil || !settled {
		return err
	}
	if err := c.parse(r, text); err != nil { // packages were compiled too, or something is new to parse
		tries.Store(c.key, n.(int)+1)
		return nil
	}
	if r.State, _, err = r.Inputs.state(); err != nil || r.State != before {
		return nil
	}
	if c.save(r) != nil {
		tries.Store(c.key, n.(int)+1)
	} else {
		tries.Delete(c.key)
	}
	return nil
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
	c.packages = map[string]bool{}
	in := &r.Inputs
	in.Files = append(in.Files, filepath.Join(env["GOROOT"], "VERSION"), filepath.Join(env["GOROOT"], "go.env"), filepath.Join(env["GOTOOLDIR"], "compile"), filepath.Join(env["GOTOOLDIR"], "link"))
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
		in.Files = append(in.Files, filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum"), filepath.Join(root, "vendor", "modules.txt"))
	}
	if text, err = c.goCommand("list", "-deps", "-json=ImportPath,Dir,Standard,CgoFiles,EmbedPatterns,Error,DepsErrors"); err != nil {
		return err
	}
	type pkg struct {
		ImportPath, Dir         string
		Standard                bool
		CgoFiles, EmbedPatterns []string
		Error                   *struct{}
	}
	err = each(text, func(p pkg) error {
		switch {
		case p.Error != nil, p.Dir == "", len(p.CgoFiles) > 0 && !p.Standard:
			return errGo
		case p.Dir == c.dir:
			return nil
		}
		c.packages[p.ImportPath] = true
		switch {
		case len(p.EmbedPatterns) > 0:
			in.Trees = append(in.Trees, p.Dir)
		default:
			in.Dirs = append(in.Dirs, p.Dir)
		}
		// A new go.mod above a package would make it one of another module.
		for _, root := range roots {
			if rel, err := filepath.Rel(root, p.Dir); err == nil && filepath.IsLocal(rel) {
				for dir := filepath.Dir(p.Dir); len(dir) > len(root); dir = filepath.Dir(dir) {
					in.Files = append(in.Files, filepath.Join(dir, "go.mod"))
				}
			}
		}
		// As would a new directory of the package's name in a module of the user.
		for _, m := range modules {
			if rest, ok := strings.CutPrefix(p.ImportPath, m.Path+"/"); ok && p.Dir != filepath.Join(m.Dir, rest) {
				in.Files = append(in.Files, filepath.Join(m.Dir, rest))
			}
		}
		return nil
	})
	slices.Sort(in.Files)
	in.Files = slices.Compact(in.Files)
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
