package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/atomicfile/powercut"
	"github.com/graphnb/graphnb/internal/filelock"
)

func put(t *testing.T, path, text string, perm os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), perm); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, perm); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, path, text string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != text {
		t.Errorf("%s has %q, %v; want %q", path, b, err, text)
	}
}

func ls(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// If the power is cut at any moment, the file is completely the old one or the new one; once
// WriteFile has returned, it is the new one.
func TestPowerCut(t *testing.T) {
	for _, old := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "new", "config.json")
		if old {
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			put(t, path, "old", 0o644)
		}
		var ops []atomicfile.Op
		stop := atomicfile.Observe(func(o atomicfile.Op) { ops = append(ops, o) })
		if err := atomicfile.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		err := atomicfile.WriteFile(path, []byte("new text"), 0o644)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		var d powercut.Disk
		for i, op := range ops {
			d.Apply(op)
			for _, s := range d.States(path) {
				if !s.Whole() && (old || !s.Missing) {
					t.Errorf("old file %v: a power cut after %v can leave %+v", old, ops[:i+1], s)
				}
			}
		}
		if s := d.States(path); len(s) != 1 || !s[0].Whole() || s[0].File == 0 || s[0].Size != 8 {
			t.Errorf("old file %v: after the last of %v a power cut can leave %+v", old, ops, s)
		}
	}
}

// The simulation detects a writer that leaves out any one step.
func TestPowerCutNoticesMissingSteps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	put(t, path, "old", 0o644)
	var ops []atomicfile.Op
	stop := atomicfile.Observe(func(o atomicfile.Op) { ops = append(ops, o) })
	err := atomicfile.WriteFile(path, []byte("new text"), 0o644)
	stop()
	if err != nil {
		t.Fatal(err)
	}
	for i, left := range ops {
		if left.Kind != atomicfile.OpSync && left.Kind != atomicfile.OpSyncDir {
			continue
		}
		var d powercut.Disk
		bad := false
		for j, op := range ops {
			if i == j {
				continue
			}
			d.Apply(op)
			for _, s := range d.States(path) {
				bad = bad || !s.Whole()
			}
		}
		if last := d.States(path); len(last) != 1 || last[0].File == 0 {
			bad = true // WriteFile has returned, but the old file may reappear
		}
		if !bad {
			t.Errorf("without %v the simulation finds no fault in %v", left, ops)
		}
	}
}

func TestPermissions(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	for _, perm := range []os.FileMode{0o755, 0o600, 0o666, 0o444} {
		put(t, script, "old", perm)
		if err := atomicfile.WriteFile(script, []byte("new"), 0o640); err != nil {
			t.Fatal(err)
		}
		want(t, script, "new")
		if info, _ := os.Stat(script); info.Mode().Perm() != perm {
			t.Errorf("the mode %v changed to %v", perm, info.Mode())
		}
		if err := os.Remove(script); err != nil {
			t.Fatal(err)
		}
	}
	plain, whole := filepath.Join(dir, "plain"), filepath.Join(dir, "whole")
	put(t, plain, "", 0o600)
	f, err := os.OpenFile(whole, os.O_CREATE, 0o666) // the system subtracts the umask
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := os.Remove(plain); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.WriteFile(plain, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	a, _ := os.Stat(plain)
	b, _ := os.Stat(whole)
	if a.Mode() != b.Mode() {
		t.Errorf("a new file has %v and should have %v", a.Mode(), b.Mode())
	}
}

func TestSymbolicLinks(t *testing.T) {
	dir := t.TempDir()
	sub, other := filepath.Join(dir, "sub"), filepath.Join(dir, "other", "deep")
	for _, d := range []string{sub, other} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(sub, "file"), "old", 0o600)
	links := map[string]string{
		"one": "sub/file", "two": "one", "abs": filepath.Join(sub, "file"), "dangling": "sub/made", "chain": "dangling",
		"jump": other, "up": "jump/../made", "loop": "loop", "nowhere": "none/x", "folder": "sub",
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for link, file := range map[string]string{
		"one": "sub/file", "two": "sub/file", "abs": "sub/file", "dangling": "sub/made", "chain": "sub/made",
		"up": "other/made", "folder/file": "sub/file",
	} {
		if err := atomicfile.WriteFile(filepath.Join(dir, link), []byte(link), 0o644); err != nil {
			t.Errorf("%s: %v", link, err)
			continue
		}
		want(t, filepath.Join(dir, file), link)
		if to, err := os.Readlink(filepath.Join(dir, link)); err != nil && link != "folder/file" || to != links[link] {
			t.Errorf("%s is no longer a link: %q, %v", link, to, err)
		}
	}
	for _, link := range []string{"loop", "nowhere", "folder", "sub", "jump", "."} {
		if err := atomicfile.WriteFile(filepath.Join(dir, link), nil, 0o644); err == nil {
			t.Errorf("%s was written", link)
		}
	}
	if got := ls(t, sub) + " " + ls(t, filepath.Join(dir, "other")); got != "file made deep made" {
		t.Errorf("there are %s", got)
	}
}

func TestFailures(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	put(t, path, "old", 0o644)
	broken := errors.New("broken")
	if err := atomicfile.WriteWith(path, 0o644, func(w io.Writer) error {
		if _, err := w.Write([]byte("half")); err != nil {
			t.Error(err)
		}
		return broken
	}); !errors.Is(err, broken) {
		t.Error(err)
	}
	want(t, path, "old")
	if got := ls(t, dir); got != "file" {
		t.Errorf("left: %s", got)
	}
	gone := filepath.Join(dir, "gone", "file")
	if err := atomicfile.WriteFile(gone, nil, 0o644); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := atomicfile.WriteFile(filepath.Join(path, "below"), nil, 0o644); err == nil {
		t.Error("writing below a file gave no error")
	}
	// The directory is removed during the write; the error names the file.
	if err := os.Mkdir(filepath.Dir(gone), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := atomicfile.Create(gone, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(gone)); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil || !strings.Contains(err.Error(), gone+":") {
		t.Errorf("Commit without the directory gave %v", err)
	}
	if err := f.Commit(); err == nil {
		t.Error("committed twice")
	}
	f.Abort()
}

// The next writer of the same file removes the temporary file of a killed writer. Temporary files
// of running writers and files of other origin stay.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	long := strings.Repeat("n", 255)
	for _, name := range []string{".file.gnb-tmp-1", ".file.gnb-tmp-", ".file.gnb-tmp-1x", ".other.gnb-tmp-1", "file.gnb-tmp-1", ".file.tmp"} {
		put(t, filepath.Join(dir, name), "half", 0o600)
	}
	living, err := atomicfile.Create(path, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.Held(path); err == nil {
		t.Error("the file exists before Commit")
	}
	if err := atomicfile.WriteFile(path, []byte("second"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := living.Write([]byte("first")); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(ls(t, dir), ".file.gnb-tmp-"); got != 3 {
		t.Errorf("there are %s", ls(t, dir))
	}
	if err := living.Commit(); err != nil {
		t.Fatal(err)
	}
	want(t, path, "first")
	if got := ls(t, dir); got != ".file.gnb-tmp- .file.gnb-tmp-1x .file.tmp .other.gnb-tmp-1 file file.gnb-tmp-1" {
		t.Errorf("there are %s", got)
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, long), []byte("long"), 0o644); err != nil {
		t.Fatal(err)
	}
	want(t, filepath.Join(dir, long), "long")
	living, err = atomicfile.Create(path, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	atomicfile.Sweep(dir)
	if got := ls(t, dir); strings.Contains(got, ".other") {
		t.Errorf("there are %s", got)
	}
	if err := living.Commit(); err != nil {
		t.Error(err)
	}
	want(t, path, "")
}

// If many goroutines write one file concurrently, the last to commit wins, none fails, and no
// temporary file is left.
func TestWritersOfOneFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	var g sync.WaitGroup
	for i := range 8 {
		g.Go(func() {
			for range 25 {
				if err := atomicfile.WriteFile(path, []byte(strings.Repeat(string(rune('a'+i)), 1000)), 0o644); err != nil {
					t.Error(err)
				}
			}
		})
	}
	g.Wait()
	b, err := os.ReadFile(path)
	if err != nil || len(b) != 1000 || strings.Count(string(b), string(b[:1])) != 1000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if got := ls(t, dir); got != "file" {
		t.Errorf("left: %s", got)
	}
}
