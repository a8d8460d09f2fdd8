package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/graphnb/graphnb/internal/filelock"
)

var kernelCommand = command{"kernel", "run a notebook kernel (Jupyter starts it)", kernel}

const kernelHelp = `
What the kernelspec of "gnb install" starts: it runs the GoNB program that follows, in a temporary
directory of its own. When the kernel ends, in whatever way, every process that it started and the
directory are gone: cells, workers, and whatever a cell started.`

// kernelDirPrefix starts the names of kernels' directories.
const kernelDirPrefix = "gnb-kernel-"

// kernel runs "gnb kernel [--go-bin DIR] GONB ARGS…", or as the guard of a kernel "gnb kernel
// --guard DIR", or in gopls's place "gnb kernel --editor DIR -listen ADDRESS".
func kernel(ctx context.Context, args []string, out *output) error {
	flags := out.flags("GONB [arguments]", kernelHelp)
	goBin := flags.String("go-bin", "", "`directory` of the go command, used when PATH has none")
	editor := flags.String("editor", "", "serve as gopls, and pass on to the one in this `directory` once it is there")
	listen := flags.String("listen", "", "`address` of --editor, as gopls takes it")
	guard := flags.String("guard", "", "clean up after the kernel with this `directory` once standard input ends")
	help := flags.Usage
	flags.Usage = func() {}
	if err := flags.Parse(args); err != nil { // not out.parse: what follows GONB belongs to it
		if errors.Is(err, flag.ErrHelp) {
			help()
			return err
		}
		return &usageError{err}
	}
	if *guard != "" {
		return guardKernel(*guard)
	}
	if *editor != "" {
		return serveEditor(ctx, *editor, *listen)
	}
	if flags.NArg() == 0 {
		return usagef("it takes the GoNB program to run")
	}
	if _, err := exec.LookPath("go"); err != nil && *goBin != "" {
		if err := os.Setenv("PATH", os.Getenv("PATH")+string(os.PathListSeparator)+*goBin); err != nil {
			return err
		}
	}
	settings, err := goSettings(ctx, os.Environ())
	if err != nil {
		return err
	}
	sweepKernelDirs(os.TempDir())
	dir, release, err := newKernelDir(os.TempDir())
	if err != nil {
		return err
	}
	defer release()
	status, err := superviseKernel(flags.Args(), kernelEnv(os.Environ(), settings, filepath.Dir(flags.Arg(0)), dir), dir)
	if err != nil {
		return err
	}
	if status != 0 {
		return exitStatus(status)
	}
	return nil
}

// settings of the go command that a kernel starts from.
type settings struct{ GOPROXY, GOFLAGS, GOMODCACHE, CGO_CFLAGS string }

// goSettings asks the go command, which knows the environment and the user's "go env -w".
func goSettings(ctx context.Context, env []string) (settings, error) {
	var s settings
	c := exec.CommandContext(ctx, "go", "env", "-json", "GOPROXY", "GOFLAGS", "GOMODCACHE", "CGO_CFLAGS")
	c.Env = env
	b, err := c.Output()
	if err != nil {
		return s, fmt.Errorf("asking the go command for its settings: %w; cells are compiled with it, so it must be on PATH", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("go env -json: %w", err)
	}
	return s, nil
}

// kernelEnv is the environment of GoNB and its cells: the tools in bin come first on PATH, and, where
// somebody may type in cells, what completes names; the temporary directory is dir, and the go command is set up for cells, with -tags cuda where env says where
// the header for that is.
func kernelEnv(env []string, s settings, bin, dir string) []string {
	set := map[string]string{
		"GOWORK":               "", // GoNB keeps its own go.work; GOWORK=off would hide the library
		"GOFLAGS":              cellFlags(s.GOFLAGS),
		"GOPROXY":              cellProxy(s),
		"TMPDIR":               dir,
		envknob.KernelDir.Name: dir,
	}
	if i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, envknob.CUDAInclude.Name+"=") }); i >= 0 {
		maps.Copy(set, cudaSettings(strings.TrimPrefix(env[i], envknob.CUDAInclude.Name+"="), s.CGO_CFLAGS))
		set["GOFLAGS"] = withTag(set["GOFLAGS"])
	}
	out := make([]string, 0, len(env)+len(set)+1)
	path := bin
	if !envknob.Headless.OnIn(env) { // gopls takes 0.1 GiB a kernel
		path = bin + string(os.PathListSeparator) + editorDir(bin)
	}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if name == "PATH" {
			path += string(os.PathListSeparator) + value
		} else if _, ours := set[name]; !ours {
			out = append(out, e)
		}
	}
	for name, value := range set {
		out = append(out, name+"="+value)
	}
	return append(out, "PATH="+path)
}

// cellProxy puts the module cache before the user's proxies: GoNB runs "go get" before each cell,
// which asks the network otherwise (0.4 s a cell, and no cell runs offline).
func cellProxy(s settings) string {
	local := "file://" + filepath.ToSlash(filepath.Join(s.GOMODCACHE, "cache", "download"))
	switch {
	case s.GOPROXY == "":
		return local
	case s.GOPROXY == local || strings.HasPrefix(s.GOPROXY, local+","):
		return s.GOPROXY
	}
	return local + "," + s.GOPROXY
}

// cellFlags is the user's GOFLAGS without what the go command refuses in a workspace (-mod=mod,
// -modfile), and with symbol tables left out, which links faster.
func cellFlags(user string) string {
	flags := []string{"-ldflags=-s"}
	for _, f := range strings.Fields(user) {
		name, _, _ := strings.Cut(strings.TrimLeft(f, "-"), "=")
		switch name {
		case "mod", "modfile":
			continue
		case "ldflags":
			flags = flags[1:]
		}
		flags = append(flags, f)
	}
	return strings.Join(flags, " ")
}

// newKernelDir makes a kernel's own temporary directory in parent. The directory belongs to this
// process as long as it holds a lock on the file "lock" in it, whatever becomes of process ids and
// containers. release removes it.
func newKernelDir(parent string) (dir string, release func(), err error) {
	dir, err = os.MkdirTemp(parent, kernelDirPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("making the kernel's temporary directory: %w", err)
	}
	// Locked before it gets its name: a lock file that can be seen is a locked one or a dead one's.
	file := filepath.Join(dir, ".lock")
	var lock *os.File
	if err = os.WriteFile(file, nil, 0o600); err == nil {
		lock, err = filelock.Lock(file)
	}
	if err == nil || errors.Is(err, filelock.ErrNoLocks) { // where there are none, nobody sweeps
		err = os.Rename(file, filepath.Join(dir, "lock"))
	}
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, fmt.Errorf("locking the kernel's temporary directory: %w", err)
	}
	return dir, func() {
		removeAll(dir)
		_ = filelock.Unlock(lock)
	}, nil
}

// sweepKernelDirs removes the directories of kernels that died without a chance to.
func sweepKernelDirs(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, kernelDirPrefix+"*"))
	for _, dir := range dirs {
		lock, err := filelock.Lock(filepath.Join(dir, "lock"))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			// Being made, or its maker died within microseconds.
			if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > time.Hour {
				removeAll(dir)
			}
		case err == nil: // else it is alive, or another user's
			removeAll(dir)
			_ = filelock.Unlock(lock)
		}
	}
}

// removeAll removes dir, trying again while a dying process still writes into it.
func removeAll(dir string) {
	for range 50 {
		if os.RemoveAll(dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
