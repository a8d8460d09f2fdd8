// Package fakelibs has C libraries that imitate cuBLAS and NCCL for tests: they put their work on
// the streams of package fakegpu. The tests build them with gcc and load them like the real ones.
package fakelibs

import (
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/internal/envknob"
)

//go:embed src
var sources embed.FS

// Build makes lib<name>.so of name ("cublas", "nccl") in a directory of the test's and returns its file.
// Further arguments are for gcc, such as -DVERSION=20800.
//
// On a machine with a real device (GNB_GPU_CHECK) it is "", for the library that is there, and tests of
// libraries that go wrong are skipped.
func Build(t testing.TB, name string, args ...string) string {
	t.Helper()
	if envknob.GPUCheck.On() {
		if len(args) > 0 {
			t.Skip("it needs a library that goes wrong")
		}
		return ""
	}
	dir := t.TempDir()
	for _, f := range []string{"fake.h", name + ".c"} {
		b, err := sources.ReadFile("src/" + f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lib := filepath.Join(dir, "lib"+name+".so")
	args = append([]string{"-std=gnu11", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", lib, filepath.Join(dir, name+".c")}, args...)
	if out, err := exec.Command("gcc", append(args, "-lm", "-ldl", "-lrt")...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return lib
}
