package docker

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// programs holds the programs that the tests have built, by module, package and tags.
var programs struct {
	sync.Mutex
	dir  string
	made map[string]string
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if programs.dir, err = os.MkdirTemp("", "docker-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(programs.dir)
		programs.made = map[string]string{}
		return m.Run()
	}())
}

// program builds a program, once for all tests, and returns its path. The module is a directory below the root.
func program(t *testing.T, module, pkg, tags string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	key := strings.Join([]string{module, pkg, tags}, " ")
	if file, ok := programs.made[key]; ok {
		return file
	}
	dir := filepath.Join(programs.dir, fmt.Sprint(len(programs.made)))
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	file := filepath.Join(dir, filepath.Base(filepath.Join(module, pkg)))
	build := []string{"-C", filepath.Join(root, module), "build", "-ldflags=-s", "-o", file}
	if tags != "" { // otherwise those of GOFLAGS, with which the other tests compile the same packages
		build = append(build, "-tags="+tags)
	}
	if out, err := exec.Command("go", append(build, pkg)...).CombinedOutput(); err != nil {
		if text := string(out); module != "." && (strings.Contains(text, "dial tcp") || strings.Contains(text, "GOPROXY=off")) {
			testneed.Skip(t, testneed.Network, "%s cannot be built: %s", module, text)
		}
		t.Fatalf("building %s of %s: %v\n%s", pkg, module, err, out)
	}
	programs.made[key] = file
	return file
}

// gnb returns the path of the command.
func gnb(t *testing.T) string {
	t.Helper()
	return program(t, ".", "./gnb/cmd/gnb", "")
}
