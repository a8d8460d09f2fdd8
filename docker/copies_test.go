package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scripts/copies.sh replaces copies that the user has not changed, keeps the others, and says which of those are old.
func TestCopiesOfNotebooks(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "mine")
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name+".ipynb"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	copies := func() string {
		t.Helper()
		out, err := exec.Command("bash", "../scripts/copies.sh", from, to).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(to, name+".ipynb"))
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	for _, name := range []string{"same", "newer", "run", "both", "removed", "removed and newer"} {
		write(from, name, "old")
	}
	if said := copies(); said != "" || read("same") != "old" {
		t.Fatalf("the first copies are %q: %s", read("same"), said)
	}
	write(from, "newer", "new")
	write(to, "run", "with outputs")
	write(from, "both", "new")
	write(to, "both", "mine")
	write(from, "removed and newer", "new")
	for _, name := range []string{"removed", "removed and newer"} {
		if err := os.Remove(filepath.Join(to, name+".ipynb")); err != nil {
			t.Fatal(err)
		}
	}
	said := copies()
	for name, want := range map[string]string{"same": "old", "newer": "new", "run": "with outputs", "both": "mine", "removed and newer": "new"} {
		if got := read(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := read("removed"); got == "old" {
		t.Error("a removed copy is made again")
	}
	if !strings.Contains(said, "both.ipynb") || strings.Contains(said, "run.ipynb") || strings.Contains(said, "newer.ipynb") {
		t.Errorf("it said %q", said)
	}
}
