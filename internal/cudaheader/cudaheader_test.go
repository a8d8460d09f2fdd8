package cudaheader

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every directory in which gorgonia.org/cu looks for a header is in the list, and no other.
func TestDirectoriesOfTheLibrary(t *testing.T) {
	c := exec.Command("go", "list", "-tags=cuda", "-f", `{{join .CgoCFLAGS "\n"}}`, "gorgonia.org/cu")
	c.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=1")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, flag := range strings.Fields(string(out)) {
		if dir, ok := strings.CutPrefix(flag, "-I"); ok && filepath.Clean(dir) != "/usr/include" { // a directory of the system anyway
			got = append(got, filepath.Clean(dir))
		}
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(installed)); !slices.Equal(got, want) {
		t.Errorf("gorgonia.org/cu looks in %q, and the list is %q", got, want)
	}
}

// The compiler finds the module's header although -I names the directory of another one, and the user's
// directories too.
func TestHeaderIsFoundFirst(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler")
	}
	own, other, users := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(dir, name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(own, "cuda.h", "int own;\n")
	write(other, "cuda.h", "int other;\n")
	write(users, "cuda.h", "int users;\n")
	write(users, "mine.h", "int mine;\n")
	source := write(t.TempDir(), "t.c", "#include <cuda.h>\n#include <mine.h>\n")
	before := installed
	installed = []string{other}
	defer func() { installed = before }()
	for _, name := range []string{"CPATH", "C_INCLUDE_PATH", ""} {
		c := exec.Command(gcc, "-I"+other, "-I"+filepath.Join(other, "missing"), "-E", source)
		get := func(n string) string {
			if n == name {
				return users
			}
			return ""
		}
		c.Env = os.Environ()
		for n, value := range Env(own, get) {
			c.Env = append(c.Env, n+"="+value)
		}
		out, err := c.Output()
		if text := string(out); !strings.Contains(text, "int own;") || strings.Contains(text, "int other;") || strings.Contains(text, "int users;") ||
			(name != "") != strings.Contains(text, "int mine;") || (name != "") != (err == nil) {
			t.Errorf("with the user's directory in %q: %v\n%s", name, err, text)
		}
	}
}

// The script for the shell sets the same variables.
func TestScript(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{"", "/mine"} {
		want := Env(filepath.Join(root, Dir), func(string) string { return own })
		c := exec.Command("bash", "-c", `. scripts/cuda-env.sh && printf '%s\n' "$CGO_ENABLED" "$CPATH" "$C_INCLUDE_PATH"`)
		c.Dir = root
		c.Env = append(os.Environ(), "CPATH="+own, "C_INCLUDE_PATH="+own)
		out, err := c.Output()
		if got := strings.Fields(string(out)); err != nil || !slices.Equal(got, []string{want["CGO_ENABLED"], want["CPATH"], want["C_INCLUDE_PATH"]}) {
			t.Errorf("with %q: %q, want %q (%v)", own, got, want, err)
		}
	}
}
