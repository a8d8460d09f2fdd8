// Package fakelibs has C libraries that imitate cuBLAS and NCCL for tests: they put their work on
// the streams of package fakegpu. The tests build them with gcc and load them like the real ones.
package fakelibs

import (
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/envknob"
)

//go:embed src
var sources embed.FS

// built holds the libraries that this process has compiled, by name and arguments.
var built = struct {
	sync.Mutex
	libs map[string][]byte
}{libs: map[string][]byte{}}

// Build compiles the library name ("cublas" or "nccl") and returns the path of lib<name>.so, which is a
// file of the test's own in a temporary directory. Further arguments are passed to gcc, such as
// -DVERSION=20800. gcc runs once per process for a name with its arguments.
//
// On a machine with a real device (GNB_GPU_CHECK), Build returns "", so that tests use the
// installed library. It then skips tests that pass arguments, because they need a faulty or old
// library.
func Build(t testing.TB, name string, args ...string) string {
	t.Helper()
	if envknob.GPUCheck.On() {
		if len(args) > 0 {
			t.Skip("needs a simulated library with a fault or of another version")
		}
		return ""
	}
	lib := filepath.Join(t.TempDir(), "lib"+name+".so")
	built.Lock()
	defer built.Unlock()
	key := strings.Join(append([]string{name}, args...), " ")
	if b, ok := built.libs[key]; !ok {
		compile(t, name, lib, args)
		b, err := os.ReadFile(lib)
		if err != nil {
			t.Fatal(err)
		}
		built.libs[key] = b
	} else if err := os.WriteFile(lib, b, 0o700); err != nil {
		t.Fatal(err)
	}
	return lib
}

// compile compiles a library to the file lib.
func compile(t testing.TB, name, lib string, args []string) {
	t.Helper()
	dir := filepath.Dir(lib)
	for _, f := range []string{"fake.h", name + ".c"} {
		b, err := sources.ReadFile("src/" + f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args = append([]string{"-std=gnu11", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", lib, filepath.Join(dir, name+".c")}, args...)
	if out, err := exec.Command("gcc", append(args, "-lm", "-ldl", "-lrt")...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
}
