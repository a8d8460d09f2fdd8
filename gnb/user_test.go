package gnb_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// userProgram builds the program of a user's module, a folder of testdata, in dir.
func userProgram(t *testing.T, dir, module string) (bin string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "gnb/testdata", module)
	// The workspace takes the checksums of the user's dependencies from the checkout's go.sum.
	work := fmt.Sprintf("go 1.26.0\n\nuse (\n\t%q\n\t%q\n)\n", root, folder)
	if err := os.WriteFile(filepath.Join(dir, "go.work"), []byte(work), 0o600); err != nil {
		t.Fatal(err)
	}
	bin = filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-ldflags=-s", "-o", bin, ".")
	build.Dir = folder
	build.Env = append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"), "GOFLAGS=-buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the user's program: %v\n%s", err, out)
	}
	return bin
}

// A user's module (in testdata) trains with its own layer, loss, sampler and program on 2 and on 4
// workers. The part of its main function before training runs once.
func TestUserModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	dir := t.TempDir()
	bin := userProgram(t, dir, "user")
	for _, workers := range []int{2, 4} {
		lines := filepath.Join(dir, "lines"+strconv.Itoa(workers))
		cmd := exec.Command(bin, lines, strconv.Itoa(workers))
		cmd.Env = append(os.Environ(), "GNB_RUNS="+filepath.Join(dir, "runs"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%d workers: %v\n%s", workers, err, out)
		}
		m := regexp.MustCompile(`test accuracy (0\.\d+)`).FindSubmatch(out)
		if m == nil {
			t.Fatalf("%d workers: no accuracy in\n%s", workers, out)
		}
		if acc, _ := strconv.ParseFloat(string(m[1]), 64); acc < 0.7 {
			t.Errorf("%d workers: test accuracy %v, want at least 0.7", workers, acc)
		}
		got, err := os.ReadFile(lines)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(got), "\n"); n != 1 {
			t.Errorf("%d workers: main's line was written %d times, want once", workers, n)
		}
	}
}
