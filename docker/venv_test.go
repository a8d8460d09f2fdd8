package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// installing is a python3 whose environments hold itself, and whose pip writes the program "tool", which begins with the
// path of its Python as pip's do.
const installing = `#!/bin/sh
case "$*" in
"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python3" ;;
"-m pip install "*) printf '#!%s\n' "$0" > "${0%python3}tool" ;;
esac
`

// A private environment is kept while its list and its place are the same, and made again where it was moved. One that
// is reached through a symbolic link gets programs that run without the link.
func TestMovedEnvironmentIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(at(name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("python3", installing, 0o700)
	write("list", "a==1\n", 0o600)
	install := func(venv string) (made bool) {
		t.Helper()
		c := exec.Command("bash", "install.sh", "python", at(venv), at("list"))
		c.Env = append(os.Environ(), "PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Contains(string(out), "making")
	}
	tool := func(venv, python string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(at(venv), "bin", "tool"))
		if want := "#!" + at(python) + "/bin/python3\n"; err != nil || string(b) != want {
			t.Errorf("the program in %s begins with %q, want %q (%v)", venv, b, want, err)
		}
	}
	for _, step := range []struct {
		what   string
		before func() error
		venv   string
		made   bool
		python string
	}{
		{"new", nil, "venv", true, "venv"},
		{"unchanged", nil, "venv", false, "venv"},
		{"through a link", func() error { return os.Symlink("venv", at("link")) }, "link", false, "venv"},
		{"another list, through a link", func() error { return os.WriteFile(at("list"), []byte("a==2\n"), 0o600) }, "link", true, "venv"},
		{"moved", func() error { return os.Rename(at("venv"), at("moved")) }, "moved", true, "moved"},
		{"unchanged after the move", nil, "moved", false, "moved"},
	} {
		if step.before != nil {
			if err := step.before(); err != nil {
				t.Fatal(err)
			}
		}
		if made := install(step.venv); made != step.made {
			t.Errorf("%s: the script made the environment: %v, want %v", step.what, made, step.made)
		}
		tool(step.venv, step.python)
	}
}
