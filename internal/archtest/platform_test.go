package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// The module has no type errors on macOS, for which many packages have separate files.
// scripts/platforms.sh compiles the module and its tests for macOS and other platforms.
func TestMacOS(t *testing.T) {
	testneed.NotShort(t, "it checks the types of all packages")
	forMacOS(t)
	problems, checked, err := Mistyped(root, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	if checked < 60 {
		t.Errorf("only %d packages were checked", checked)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// A name that exists only on Linux is reported as missing.
func TestMistypedIsFound(t *testing.T) {
	testneed.NotShort(t, "it checks types for another platform")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module planted.test/m\n\ngo 1.26.0\n",
		"a_linux.go": "package m\n\nconst only = 1\n",
		"a.go":       "package m\n\nimport \"net/http\"\n\nvar C http.Client\n\nfunc F() int { return only }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	forMacOS(t)
	problems, checked, err := Mistyped(dir, "arm64")
	if err != nil || checked != 1 || len(problems) != 1 || !strings.Contains(problems[0].Error(), "undefined: only") {
		t.Errorf("%d packages, %v, %v", checked, problems, err)
	}
}

func forMacOS(t *testing.T) {
	t.Helper()
	t.Setenv("GOOS", "darwin")
	t.Setenv("GOARCH", "arm64")
	t.Setenv("CGO_ENABLED", "0")
}
