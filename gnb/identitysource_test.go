package gnb_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"
)

// If a program's sources cannot be read, its run is identified by the revision from which it was
// built, or else by the executable. The run records which of them identifies it.
func TestIdentityWithoutSources(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	m := &identityModules{t: t, root: root, dir: t.TempDir(), bins: map[string]string{}}
	keep := func(s string) string { return s }
	wider := replaced("width = 8", "width = 9")
	commit := func(dir string) {
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "a"}} {
			cmd := exec.Command("git", args...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Skipf("git %s: %v: %s", strings.Join(args, " "), err, out)
			}
		}
	}
	build := func(name, edit string, before func(dir string), flags ...string) string {
		t.Helper()
		f := keep
		if edit != "" {
			f = wider
		}
		m.before = before
		m.tree(name, "1.5", "2.5", map[string]func(string) string{"base": f}, flags...)
		return m.bins["base"]
	}
	none := func(string) {}
	plain, wide := build("plain", "", none, "-ldflags=-s"), build("wide", "wider", none, "-ldflags=-s")
	tracked, trackedWide := build("tracked", "", commit, "-ldflags=-s", "-buildvcs=true"), build("tracked-wide", "wider", commit, "-ldflags=-s", "-buildvcs=true")
	// The sources are where they were compiled, or were moved away.
	source := func(bin string) string { return filepath.Join(filepath.Dir(filepath.Dir(bin)), "cmd") }
	there := func(t *testing.T, yes bool, bins ...string) {
		for _, bin := range bins {
			from, to := source(bin), source(bin)+"-moved"
			if yes {
				from, to = to, from
			}
			if err := os.Rename(from, to); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	}
	const gone = "its source is not where it was compiled"

	o := identityOptions{Data: "planted?nodes=400&features=8&classes=3&seed=2", Args: identityArgs{Epochs: 4000, LR: 1}, Workers: 1, Threads: 1}
	for _, c := range []struct {
		name, first, second string
		gone                bool // the sources are missing from the start
		by                  string
		change              func(t *testing.T)
		said                string
	}{
		{"executable, the same", plain, plain, true, "executable", nil, ""},
		{"executable, another", plain, wide, true, "executable", nil, "the program was built anew, and " + source(wide)},
		{"revision, the same", tracked, tracked, true, "revision", nil, ""},
		{"revision, another", tracked, trackedWide, true, "revision", nil, "its revision was git "},
		{"source, then revision", tracked, tracked, false, "source", func(t *testing.T) { there(t, false, tracked) }, ""},
		{
			"source, then executable", plain, plain, false, "source", func(t *testing.T) { there(t, false, plain) },
			"it was identified by the source and now by the executable, so the two cannot be compared: " + source(plain),
		},
		{"source, then newer", plain, plain, false, "source", func(t *testing.T) {
			if err := os.Chtimes(filepath.Join(source(plain), "base", "main.go"), time.Time{}, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}, "main.go is newer than the program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			there(t, !c.gone, plain, wide, tracked, trackedWide)
			home := t.TempDir()
			m.launch(t, c.first, home, o, false)
			found, err := filepath.Glob(filepath.Join(home, "*"))
			if err != nil || len(found) != 1 {
				t.Fatalf("%v, %v", found, err)
			}
			run, err := runs.Open(found[0])
			if err != nil {
				t.Fatal(err)
			}
			if code := run.Config.Identity.Code; code.By != c.by || strings.Contains(code.Why, gone) != c.gone || (code.By == "source") != (code.Why == "") {
				t.Errorf("the code is identified by %+v, want by %s", code, c.by)
			}
			if c.change != nil {
				c.change(t)
			}
			out := m.launch(t, c.second, home, o, true)
			if c.said == "" && !strings.Contains(out, "\nresuming run ") || !strings.Contains(out, c.said) || strings.Contains(out, "not resuming") != (c.said != "") {
				t.Errorf("it said\n%s\nwant %q", out, c.said)
			}
		})
	}
}
