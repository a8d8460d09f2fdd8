// Package kernel builds and runs the notebook kernel: GoNB and its tools, built from pinned
// sources; the environment in which cells are compiled; the supervision that ends every process with the kernel;
// and the stand-in for gopls while that is built. The commands "gnb install" and "gnb kernel" are its users.
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

	"github.com/graphnb/graphnb/internal/envknob"
)

// Settings of the go command that a kernel starts from.
type Settings struct{ GOPROXY, GOFLAGS, GOMODCACHE, CGO_CFLAGS string }

// GoSettings asks the go command, which knows the environment and the user's "go env -w".
func GoSettings(ctx context.Context, env []string) (Settings, error) {
	var s Settings
	c := exec.CommandContext(ctx, "go", "env", "-json", "GOPROXY", "GOFLAGS", "GOMODCACHE", "CGO_CFLAGS")
	c.Env = env
	b, err := c.Output()
	if err != nil {
		return s, fmt.Errorf("asking the go command for its Settings: %w; cells are compiled with it, so it must be on PATH", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("go env -json: %w", err)
	}
	return s, nil
}

// Env is the environment of GoNB and its cells: the tools in bin come first on PATH, and, where
// somebody may type in cells, what completes names; the temporary directory is dir, and the go command is set up for cells, with -tags cuda where env says where
// the header for that is.
func Env(env []string, s Settings, bin, dir string) []string {
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

// cellProxy puts the module cache before the user's proxies: GoNB runs "go get" before each cell,
// which asks the network otherwise (0.4 s a cell, and no cell runs offline).
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
