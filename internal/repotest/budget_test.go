package repotest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// .ci/budget.txt has a line for each package with tests, and none for a package that does not exist.
func TestBudgetNamesPackages(t *testing.T) {
	text, err := os.ReadFile("../../.ci/budget.txt")
	if err != nil {
		t.Fatal(err)
	}
	budgeted := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 2 {
			t.Errorf("%q is not \"PACKAGE MINUTES\"", line)
			continue
		}
		name := words[len(words)-2] // after "race" and "cuda"
		if tests, err := filepath.Glob(filepath.Join("../..", name, "*_test.go")); err != nil || len(tests) == 0 {
			t.Errorf("%q: there is no package %s with tests", line, name)
		}
		if set := strings.Join(words[:len(words)-1], " "); budgeted[set] {
			t.Errorf("%q has two lines", set)
		} else {
			budgeted[set] = true
		}
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}`, "./...")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimPrefix(strings.TrimSpace(name), "github.com/graphnb/graphnb/")
		if name != "" && !budgeted[name] {
			t.Errorf(".ci/budget.txt has no line for %s", name)
		}
	}
}
