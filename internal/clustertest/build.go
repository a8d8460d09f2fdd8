package clustertest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// Build builds the package in the current directory for this implementation, by the go command with the given arguments
// ("build", or "test", "-c"), and returns the program's path. The flags come from scripts/mpi-env.sh.
//
// As users set them, in CGO_CFLAGS and CGO_LDFLAGS, they make the go command compile package net and all that import it
// again, for each implementation. Build does so with GNB_SOAK=1 only. Otherwise the C compiler and the linker get them
// without these variables. The folder in -gcflags, which the compiler of Go code does not read, keeps apart what the
// build cache has of package mpi for each implementation.
func (m *MPI) Build(t testing.TB, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs a C compiler")
	}
	exe := filepath.Join(t.TempDir(), "program")
	script := filepath.Join(filepath.Dir(testneed.ClusterDir()), "scripts", "mpi-env.sh")
	shell := func(command string, args ...string) *exec.Cmd {
		cmd := exec.Command("bash", append([]string{"-c", `. "$0" && ` + command, script}, args...)...)
		cmd.Env = append(m.Env(), "GOGC=800") // the compiler is faster if it rarely collects its garbage
		return cmd
	}
	cmd := shell(`exec go "$@"`, append(args, "-tags=mpi", "-o", exe, ".")...)
	if !testneed.Soak.Here() {
		variables := shell(`printf '%s\n' "$CGO_CFLAGS" "$CGO_LDFLAGS"`)
		variables.Env = append(variables.Env, "CGO_CFLAGS=", "CGO_LDFLAGS=")
		out, err := variables.Output()
		compile, link, ok := strings.Cut(strings.TrimSpace(string(out)), "\n")
		if err != nil || !ok {
			t.Fatalf("the flags of %s: %v: %q", m.Name, err, out)
		}
		var include []string
		for _, flag := range strings.Fields(compile) {
			if dir, ok := strings.CutPrefix(flag, "-I"); ok {
				include = append(include, dir)
			}
		}
		cmd = exec.Command("go", append(args, "-tags=mpi", "-o", exe,
			"-gcflags=github.com/graphnb/graphnb/multigpu/mpi=-I="+m.Bin, "-ldflags=-s -extldflags '"+strings.TrimSpace(link)+"'", ".")...)
		cmd.Env = append(m.Env(), "CPATH="+strings.Join(include, string(filepath.ListSeparator)), "CGO_ENABLED=1", "GOGC=800")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building for %s: %v: %s", m.Name, err, out)
	}
	return exe
}
