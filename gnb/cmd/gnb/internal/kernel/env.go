// Package kernel builds and runs the notebook kernel: GoNB and its tools, built from pinned
// sources; the environment in which cells are compiled; a supervisor that ends every process
// together with the kernel. The commands "gnb install" and "gnb kernel" use it.
package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/internal/cudaheader"
	"github.com/graphnb/graphnb/internal/envknob"
)

// Settings are the go command's settings on which a kernel's environment is based.
type Settings struct{ GOPROXY, GOFLAGS, GOMODCACHE string }

// GoSettings asks the go command, which reads both the environment and "go env -w".
func GoSettings(ctx context.Context, env []string) (Settings, error) {
	var s Settings
	c := exec.CommandContext(ctx, "go", "env", "-json", "GOPROXY", "GOFLAGS", "GOMODCACHE")
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

// Env returns the environment of GoNB and its cells: PATH begins with the tools in bin and, unless
// the kernel is headless, with gopls, which completes names; the temporary directory is dir; and
// the go command is configured for cells, with -tags cuda if env names the directory of cuda.h.
func Env(env []string, s Settings, bin, dir string) []string {
	set := map[string]string{
		"GOWORK":               "", // GoNB keeps its own go.work; GOWORK=off would hide the library
		"GOFLAGS":              CellFlags(s.GOFLAGS),
		"GOPROXY":              cellProxy(s),
		"TMPDIR":               dir,
		envknob.KernelDir.Name: dir,
	}
	if include, ok := lookup(env, envknob.CUDAInclude.Name); ok {
		maps.Copy(set, cudaheader.Env(include, func(name string) string {
			own, _ := lookup(env, name)
			return own
		}))
		set["GOFLAGS"] = withTag(set["GOFLAGS"], "cuda")
	}
	out := make([]string, 0, len(env)+len(set)+1)
	path := bin
	if !envknob.Headless.OnIn(env) { // each kernel's gopls needs 0.1 GiB
		path = bin + string(os.PathListSeparator) + EditorDir(bin)
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

// lookup returns the value of name in env.
func lookup(env []string, name string) (string, bool) {
	i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	if i < 0 {
		return "", false
	}
	return strings.TrimPrefix(env[i], name+"="), true
}

// cellProxy puts the module cache before the user's proxies: GoNB runs "go get" before each cell,
// which would otherwise ask the network, take 0.4 s per cell and fail offline.
func cellProxy(s Settings) string {
	local := "file://" + filepath.ToSlash(filepath.Join(s.GOMODCACHE, "cache", "download"))
	switch {
	case s.GOPROXY == "":
		return local
	case s.GOPROXY == local || strings.HasPrefix(s.GOPROXY, local+","):
		return s.GOPROXY
	}
	return local + "," + s.GOPROXY
}

// CellFlags returns the user's GOFLAGS without the flags that the go command refuses in a workspace
// (-mod=mod, -modfile). It adds flags that make linking faster: they leave out the tables of a debugger, and gRPC's pages
// about its requests, whose templates call methods by name, so that the linker would have to keep every method of every
// type.
func CellFlags(user string) string {
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
	return withTag(strings.Join(flags, " "), "grpcnotrace")
}
