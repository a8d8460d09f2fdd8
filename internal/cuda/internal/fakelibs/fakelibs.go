// Package fakelibs has C libraries that imitate cuBLAS and NCCL for tests: they put their work on
// the streams of package fakegpu. The tests build them with gcc and load them like the real ones.
package fakelibs

import (
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/expect"
)

//go:embed src
var sources embed.FS

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
	expect.Built(t, strings.Join(append([]string{name}, args...), " "), lib, func() { compile(t, name, lib, args) })
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
