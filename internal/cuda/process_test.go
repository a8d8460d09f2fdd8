//go:build cuda && linux && cgo

package cuda

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/testneed"
)

// traces returns this process's traces of a GPU: mapped libraries and open device files.
func traces() ([]string, error) {
	var found []string
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "libcuda") || strings.Contains(line, "/dev/nvidia") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && strings.Contains(to, "nvidia") {
			found = append(found, to)
		}
	}
	return found, nil
}

// A process that is built with the cuda tag but does not call Open, as a cell's, loads no driver.
// The test runs itself as a child process, because other tests of this process may have loaded a
// driver. GNB_LIBCUDA names a driver that Open can find.
func TestNothingIsLoadedBeforeOpen(t *testing.T) {
	const child = "GNB_TEST_CUDA_TRACES"
	if os.Getenv(child) != "" {
		found, err := traces()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%d traces %q\n", len(found), found)
		if os.Getenv(child) == "open" {
			_, err := Open(Options{})
			fmt.Printf("open: %v\n", err)
			if found, _ = traces(); len(found) > 0 {
				fmt.Println("after open: libcuda is loaded")
			}
		}
		return
	}
	if fakegpu.Real() {
		t.Skip("it needs a C compiler to build a library")
	}
	run := func(mode string) string {
		c := exec.Command(os.Args[0], "-test.run=^TestNothingIsLoadedBeforeOpen$")
		c.Env = append(os.Environ(), child+"="+mode, "GNB_LIBCUDA="+fakeLibrary(t))
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if out := run("closed"); !strings.Contains(out, "0 traces") {
		t.Errorf("before Open: %s", out)
	}
	// traces finds the library once it is loaded.
	if out := run("open"); !strings.Contains(out, "0 traces") || !strings.Contains(out, "after open: libcuda is loaded") || !strings.Contains(out, "too old") {
		t.Errorf("after Open: %s", out)
	}
}

// fakeLibrary builds a libcuda.so.1 whose driver reports CUDA 10.0.
func fakeLibrary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	src := filepath.Join(dir, "old.c")
	text := "int cuInit(unsigned f) { return 0; }\nint cuDriverGetVersion(int *v) { *v = 10000; return 0; }\n"
	if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(dir, "libcuda.so.1")
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", lib, src).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return lib
}

func TestNoDriver(t *testing.T) {
	d, err := Open(Options{Library: "/nowhere/libcuda.so.1"})
	if d != nil || !errors.Is(err, ErrNoDriver) {
		t.Fatalf("device %v, error %v", d, err)
	}
	if text := err.Error(); !strings.Contains(text, "/nowhere/libcuda.so.1") || strings.Contains(text, "\n") {
		t.Errorf("%q does not name the library in one line", text)
	}
}

// On a machine with a real libcuda.so, programs do not require it, even if the linker by default
// records unneeded libraries: --as-needed comes before -lcuda on the linker's command line.
func TestLinkOrder(t *testing.T) {
	testneed.NotShort(t, "it links a program")
	if _, err := os.Stat("link_cu.go"); fakegpu.Real() || err != nil {
		t.Skip("it needs the go command and the sources, which a bundle of test programs lacks")
	}
	c := exec.Command("go", "test", "-c", "-tags", "cuda", "-ldflags=-v", "-o", filepath.Join(t.TempDir(), "test"), ".")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, flags, _ := strings.Cut(string(out), "host link:")
	before, _, found := strings.Cut(flags, `"-lcuda"`)
	if !found {
		t.Fatalf("no -lcuda on the linker's command line:\n%s", out)
	}
	for _, flag := range []string{`"-Wl,--as-needed"`, `internal/cuda/internal/shim/lib"`} {
		if !strings.Contains(before, flag) {
			t.Errorf("%s does not come before -lcuda", flag)
		}
	}
}

// A library loaded later must not bind to the shim's functions in place of the driver's.
func TestShimExportsNothing(t *testing.T) {
	f, err := elf.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range needed {
		if strings.Contains(n, "cuda") {
			t.Errorf("the program needs %s to start", n)
		}
	}
	syms, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range syms {
		if strings.HasPrefix(s.Name, "cu") && s.Name != "cuda" {
			t.Errorf("the program's dynamic symbols have %s", s.Name)
		}
	}
}
