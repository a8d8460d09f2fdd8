// Package fakenvml is a test library in the shape of NVML, in C: the tests build it with gcc and have it
// loaded as they would the driver's, by LD_LIBRARY_PATH.
package fakenvml

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed src/nvml.c
var source []byte

// Library is one that was built.
type Library struct {
	t      testing.TB
	dir    string
	script string
}

// Build makes libnvidia-ml.so.1 in a directory of the test's, with the header that go-nvml brings. Further
// arguments are for gcc, such as -DOLD.
func Build(t testing.TB, args ...string) *Library {
	t.Helper()
	header, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml/pkg/nvml").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	l := &Library{t: t, dir: t.TempDir()}
	l.script = filepath.Join(l.dir, "script")
	file := filepath.Join(l.dir, "nvml.c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{
		"-std=gnu11", "-O1", "-Wall", "-Werror", "-Wno-deprecated-declarations", "-DNVML_NO_UNVERSIONED_FUNC_DEFS=1", "-shared", "-fPIC",
		"-I", strings.TrimSpace(string(header)), "-o", filepath.Join(l.dir, "libnvidia-ml.so.1"), file,
	}, args...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	l.Say("gpus 1")
	return l
}

// Say replaces what the library is told to do: see src/nvml.c. It counts from the next call on.
func (l *Library) Say(lines ...string) {
	l.t.Helper()
	aside := l.script + ".new" // never half of it
	if err := os.WriteFile(aside, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Rename(aside, l.script); err != nil {
		l.t.Fatal(err)
	}
}

// Env returns what a process has in its environment to load the library.
func (l *Library) Env() []string {
	return []string{"LD_LIBRARY_PATH=" + l.dir, "FAKE_NVML=" + l.script}
}

// Setenv puts Env into this process's environment, for those that it starts. (The loader reads
// LD_LIBRARY_PATH when a process starts.)
func (l *Library) Setenv(t *testing.T) {
	t.Helper()
	for _, e := range l.Env() {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
}

// Path returns the library's file, for a process that loads it by name.
func (l *Library) Path() string { return filepath.Join(l.dir, "libnvidia-ml.so.1") }
