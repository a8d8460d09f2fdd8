// Package fakenvml is a C library that imitates NVML for tests: the tests build it with gcc and
// load it like the driver's, by LD_LIBRARY_PATH.
package fakenvml

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/expect"
)

//go:embed src/nvml.c
var source []byte

// Library is a built library.
type Library struct {
	t      testing.TB
	dir    string
	script string
}

// Build builds libnvidia-ml.so.1 in a temporary directory of the test, with the header of go-nvml.
// Further arguments are for gcc, such as -DOLD. gcc runs once per process for the same arguments.
func Build(t testing.TB, args ...string) *Library {
	t.Helper()
	l := &Library{t: t, dir: t.TempDir()}
	l.script = filepath.Join(l.dir, "script")
	lib := filepath.Join(l.dir, "libnvidia-ml.so.1")
	expect.Built(t, strings.Join(append([]string{"nvml"}, args...), " "), lib, func() { compile(t, l.dir, lib, args) })
	l.Say("gpus 1")
	return l
}

// compile compiles the library to the file lib.
func compile(t testing.TB, dir, lib string, args []string) {
	t.Helper()
	header, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml/pkg/nvml").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	file := filepath.Join(dir, "nvml.c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{
		"-std=gnu11", "-O1", "-Wall", "-Werror", "-Wno-deprecated-declarations", "-DNVML_NO_UNVERSIONED_FUNC_DEFS=1", "-shared", "-fPIC",
		"-I", strings.TrimSpace(string(header)), "-o", lib, file,
	}, args...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
}

// Say replaces the library's script: see src/nvml.c. It takes effect at the next call.
func (l *Library) Say(lines ...string) {
	l.t.Helper()
	aside := l.script + ".new" // renamed, so that the library never reads half of it
	if err := os.WriteFile(aside, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Rename(aside, l.script); err != nil {
		l.t.Fatal(err)
	}
}

// Env returns the environment variables with which a process loads the library.
func (l *Library) Env() []string {
	return []string{"LD_LIBRARY_PATH=" + l.dir, "FAKE_NVML=" + l.script}
}

// Setenv adds Env to this process's environment, for the processes that it starts. (The loader
// reads LD_LIBRARY_PATH when a process starts.)
func (l *Library) Setenv(t *testing.T) {
	t.Helper()
	for _, e := range l.Env() {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
}
