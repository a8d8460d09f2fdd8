package relink

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

// world is a cell's directory and the checkout that the cell imports: its package x embeds the file words and
// prints with package y of another module, which takes the place of a published one.
type world struct {
	t                  *testing.T
	root, name         string // of the cell's directory and module, new for each test, or Go's cache would hold the cell
	dir, out           string
	checkout, replaced string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if !canTell {
		t.Skip("only on Linux")
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(root, "cache"))
	t.Setenv("GOENV", filepath.Join(root, "goenv"))
	t.Setenv("GOFLAGS", "-trimpath -ldflags=-s")
	t.Setenv("GOWORK", "")
	t.Setenv("GOPROXY", "off")
	old := settle
	settle = 20 * time.Millisecond
	t.Cleanup(func() { settle = old })
	tries.Clear()
	name := fmt.Sprintf("gonb_%d", time.Now().UnixNano())
	w := &world{t, root, name, filepath.Join(root, name), filepath.Join(root, name, name), filepath.Join(root, "checkout"), filepath.Join(root, "replaced")}
	w.write("gonb/go.mod", "module "+name+"\n\ngo 1.26.0\n")
	w.write("gonb/go.work", "go 1.26.0\n\nuse (\n\t.\n\t"+w.checkout+"\n)\n")
	w.cell(1)
	w.write("checkout/go.mod", "module example.com/c\n\ngo 1.26.0\n\nrequire example.com/r v1.0.0\n\nreplace example.com/r => ../replaced\n")
	w.write("checkout/sub/x/x.go", "package x\n\nimport (\n\t_ \"embed\"\n\n\t\"example.com/r/y\"\n)\n\n//go:embed words\nvar words string\n\nfunc X(cell int) { println(cell, y.Y(), \"a\", words) }\n")
	w.write("checkout/sub/x/words", "one")
	w.write("replaced/go.mod", "module example.com/r\n\ngo 1.26.0\n")
	w.write("replaced/y/y.go", "package y\n\nfunc Y() int { return 1 }\n")
	return w
}

// file returns the path of a file; the directory "gonb" is the cell's.
func (w *world) file(name string) string {
	if rest, ok := strings.CutPrefix(name, "gonb/"); ok {
		return filepath.Join(w.dir, rest)
	}
	return filepath.Join(w.root, filepath.FromSlash(name))
}

func (w *world) write(name, text string) {
	w.t.Helper()
	file := w.file(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.RemoveAll(w.file(name)); err != nil {
		w.t.Fatal(err)
	}
}

// cell writes the n-th cell.
func (w *world) cell(n int) {
	w.t.Helper()
	w.write("gonb/main.go", fmt.Sprintf("package main\n\nimport \"example.com/c/sub/x\"\n\nfunc main() { x.X(%d) }\n", n))
}

func (w *world) command() *exec.Cmd {
	cmd := exec.Command("go", "build", "-o", w.out)
	cmd.Dir = w.dir
	return cmd
}

// build builds the cell and returns what its program prints, and whether it was built without "go build".
func (w *world) build() (text string, relinked bool) {
	w.t.Helper()
	time.Sleep(2 * settle)
	if text, err := Build(w.command(), w.out); err != nil || len(text) > 0 {
		w.t.Fatalf("%v: %s", err, text)
	}
	printed, err := exec.Command(w.out).CombinedOutput()
	if err != nil {
		w.t.Fatal(err)
	}
	id, err := exec.Command("go", "tool", "buildid", w.out).Output()
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(printed)), strings.HasPrefix(string(id), "relink")
}

// want builds the cell, with "go build" or without it, and checks what its program prints.
func (w *world) want(relinked bool, text string) {
	w.t.Helper()
	if got, r := w.build(); got != text || r != relinked {
		w.t.Errorf("the program prints %q, want %q; relinked: %t, want %t", got, text, r, relinked)
	}
}

// A program that was built without "go build" is the same, but for the build ID. What has changed shows in the program.
func TestBuild(t *testing.T) {
	testneed.NotShort(t, "it builds programs")
	w := newWorld(t)
	w.want(false, "1 1 a one")
	w.cell(2)
	w.want(true, "2 1 a one")
	id := w.id()
	w.sameInfo()
	w.want(true, "2 1 a one")
	if again := w.id(); again != id {
		t.Errorf("the same cell has the build IDs %q and %q", id, again)
	}
	w.cell(3)
	w.want(true, "3 1 a one")
	if other := w.id(); other == id {
		t.Errorf("two cells have the build ID %q", id)
	}

	// The same size and, as far as a program can set it, the same time.
	file := filepath.Join(w.checkout, "sub", "x", "x.go")
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.write("checkout/sub/x/x.go", strings.Replace(string(text), `"a"`, `"b"`, 1))
	if err := os.Chtimes(file, before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	w.want(false, "3 1 b one")
	w.write("checkout/sub/x/words", "two")
	w.want(false, "3 1 b two")
	w.write("replaced/y/y.go", "package y\n\nfunc Y() int { return 2 }\n")
	w.want(false, "3 2 b two")
	w.write("replaced/y/init.go", "package y\n\nfunc init() { print(\"added \") }\n")
	w.want(false, "added 3 2 b two")
	w.cell(4)
	w.want(true, "added 4 2 b two")

	// Without a package's archive, and after it was built again.
	r := w.record()
	for _, path := range []string{"example.com/c/sub/x", "example.com/r/y"} {
		if err := os.Remove(r.Packages[path].Archive); err != nil {
			t.Fatal(err)
		}
	}
	w.cell(5)
	w.want(false, "added 5 2 b two")
	w.cell(6)
	w.want(true, "added 6 2 b two")

	// Another kernel has another directory and module.
	old := w.dir
	w.dir = filepath.Join(w.root, "gonb_other")
	if err := os.Rename(old, w.dir); err != nil {
		t.Fatal(err)
	}
	w.out = filepath.Join(w.dir, "gonb_other")
	w.write("gonb_other/go.mod", "module gonb_other\n\ngo 1.26.0\n")
	w.want(true, "added 6 2 b two")
	if info := w.info(); !strings.Contains(info, "mod\tgonb_other\t") || strings.Contains(info, w.name) {
		t.Errorf("the other kernel's program says %s", info)
	}
}

// sameInfo checks that the program has the build information that "go build" writes.
func (w *world) sameInfo() {
	w.t.Helper()
	info := w.info()
	if text, err := w.command().CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, text)
	}
	if want := w.info(); info != want {
		w.t.Errorf("the program's build information is\n%s\"go build\" makes\n%s", info, want)
	}
}

func (w *world) info() string {
	w.t.Helper()
	info, err := exec.Command("go", "version", "-m", w.out).Output()
	if err != nil {
		w.t.Fatal(err)
	}
	return string(info)
}

func (w *world) id() string {
	w.t.Helper()
	id, err := exec.Command("go", "tool", "buildid", w.out).Output()
	if err != nil {
		w.t.Fatal(err)
	}
	return string(id)
}

// Cells with other imports use the same record, if it has all of their packages.
func TestImports(t *testing.T) {
	testneed.NotShort(t, "it builds programs")
	w := newWorld(t)
	main := func(imports, body string) {
		w.write("gonb/main.go", "package main\n\nimport (\n"+imports+"\n)\n\nfunc main() { "+body+" }\n")
	}
	w.want(false, "1 1 a one")
	main(`"io"`, `println(io.EOF != nil)`)
	w.want(true, "true")
	if strings.Contains(w.info(), "\tdep\t") {
		t.Errorf("a program of the standard library has the build information %s", w.info())
	}
	w.sameInfo()
	main(`"example.com/r/y"`, `println(y.Y())`) // no cell has imported from its module
	w.want(false, "1")
	main(`"example.com/r/y"`, `println(y.Y() + 1)`)
	w.want(true, "2")
	w.sameInfo()
	main(`"sort"`, `println(len(sort.IntSlice{}))`)
	w.want(false, "0")
	main("\"sort\"\n\"example.com/c/sub/x\"", `x.X(len(sort.IntSlice{}))`)
	w.want(true, "0 1 a one")
	w.sameInfo()

	// A package that changed before a build that did not need those that import it: they are out of date too.
	w.write("replaced/y/y.go", "package y\n\nconst c = 5\n\nfunc Y() int { return c }\n")
	main("\"container/heap\"\n\"example.com/r/y\"", `_ = heap.Pop; println(y.Y())`)
	w.want(false, "5")
	w.cell(2)
	w.want(false, "2 5 a one")
	w.cell(3)
	w.want(true, "3 5 a one")

	// What "go build" refuses.
	for _, path := range []string{"internal/abi", "vendor/golang.org/x/net/idna"} {
		main(`_ "`+path+`"`, "")
		if text, err := Build(w.command(), w.out); err == nil {
			t.Errorf("a cell imports %s", path)
		} else if want, _ := w.command().CombinedOutput(); string(text) != string(want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
}

// record returns the record of the cell.
func (w *world) record() *record {
	w.t.Helper()
	c, err := readCell(w.command(), w.out)
	if err != nil {
		w.t.Fatal(err)
	}
	r := c.load()
	if r == nil {
		w.t.Fatal("there is no record")
	}
	return r
}

// Errors are those of "go build", for cells with a record and without.
func TestErrors(t *testing.T) {
	testneed.NotShort(t, "it builds programs")
	w := newWorld(t)
	check := func() {
		t.Helper()
		got, err := Build(w.command(), w.out)
		want, wantErr := w.command().CombinedOutput()
		if err == nil || wantErr == nil || string(got) != string(want) || err.Error() != wantErr.Error() {
			t.Errorf("%v: %s\nwant %v: %s", err, got, wantErr, want)
		}
	}
	const wrong = "package main\n\nimport \"example.com/c/sub/x\"\n\nfunc main() { x.X(\"text\") }\n"
	w.write("gonb/main.go", wrong)
	check()
	w.cell(1)
	w.want(false, "1 1 a one")
	w.write("gonb/main.go", wrong)
	check()
	w.write("gonb/main.go", "package main\n\nimport \"example.com/c/sub/x\"\n\nfunc f() { x.X(1) }\n")
	check()
	w.write("gonb/main.go", "package main\n\nimport \"example.com/c/none\"\n\nfunc main() { none.X(1) }\n")
	check()
	w.cell(2)
	w.want(true, "2 1 a one")
	w.write("checkout/sub/x/x.go", "package x\n\nfunc X(int) { return 1 }\n")
	w.cell(3)
	check()
}

// Each change after which "go build" may make another program, or none, ends the use of a record.
func TestChanges(t *testing.T) {
	testneed.NotShort(t, "it builds programs")
	w := newWorld(t)
	w.want(false, "1 1 a one")
	key := func() string {
		c, err := readCell(w.command(), w.out)
		if err != nil {
			return err.Error()
		}
		return c.key
	}
	r := w.record()
	paths, ok := r.closure([]string{"example.com/c/sub/x"})
	if !ok || !slices.Contains(paths, "example.com/r/y") {
		t.Fatalf("the cell's packages are %q", paths)
	}
	setenv := func(name, value string) func(t *testing.T) { return func(t *testing.T) { t.Setenv(name, value) } }
	write := func(name, text string) func(t *testing.T) { return func(*testing.T) { w.write(name, text) } }
	remove := func(name string) func(t *testing.T) { return func(*testing.T) { w.remove(name) } }
	cases := []struct {
		name   string
		change func(t *testing.T)
	}{
		{"no change", nil},
		{"file for another system", write("checkout/sub/x/x_windows.go", "package x\n")},
		{"file with a build tag", write("checkout/sub/x/tag.go", "//go:build never\n\npackage x\n")},
		{"file removed", remove("checkout/sub/x/tag.go")},
		{"C file", write("replaced/y/y.c", "")},
		{"embedded file", write("checkout/sub/x/words", "six")},
		{"file that a pattern may match", write("checkout/sub/x/deep/er", "")},
		{"go.mod of the checkout", write("checkout/go.mod", "module example.com/c\n\ngo 1.26.1\n\nrequire example.com/r v1.0.0\n\nreplace example.com/r => ../replaced\n")},
		{"go.sum of the checkout", write("checkout/go.sum", "")},
		{"go.mod of the replaced module", write("replaced/go.mod", "module example.com/r\n\ngo 1.26.1\n")},
		{"new module above a package", write("checkout/sub/go.mod", "module example.com/c/sub\n")},
		{"new module at a package", write("checkout/sub/x/go.mod", "module example.com/c/sub/x\n")},
		{"vendor directory", write("checkout/vendor/modules.txt", "")},
		{"go.work", write("gonb/go.work", "go 1.26.0\n\nuse .\n\nuse "+w.checkout+"\n")},
		{"go.work.sum", write("gonb/go.work.sum", "")},
		{"go.mod of the cell", write("gonb/go.mod", "module "+w.name+"\n\ngo 1.26.0\n\ngodebug panicnil=1\n")},
		{"second file of the cell", write("gonb/other.go", "package main\n")},
		{"file for a profile", write("gonb/default.pgo", "")},
		{"repository around the cell", write(".git", "")},
		{"directive", write("gonb/main.go", "//go:debug panicnil=1\npackage main\n\nimport \"example.com/c/sub/x\"\n\nfunc main() { x.X(1) }\n")},
		{"cgo", write("gonb/main.go", "package main\n\nimport \"C\"\nimport \"example.com/c/sub/x\"\n\nfunc main() { x.X(1) }\n")},
		{"GOFLAGS", setenv("GOFLAGS", "-trimpath -ldflags=-s -tags=t")},
		{"GOAMD64", setenv("GOAMD64", "v2")},
		{"GOEXPERIMENT", setenv("GOEXPERIMENT", "none")},
		{"CGO_ENABLED", setenv("CGO_ENABLED", "0")},
		{"CGO_CFLAGS", setenv("CGO_CFLAGS", "-O1")},
		{"GOWORK", setenv("GOWORK", "off")},
		{"PATH", setenv("PATH", os.Getenv("PATH")+":/nowhere")},
		{"go env -w", write("goenv", "GOAMD64=v3\n")},
		{"newer Go", func(t *testing.T) {
			w.write("newer/VERSION", "go1.99\n")
			w.write("newer/bin/go", "")
			if err := os.Chmod(filepath.Join(w.root, "newer", "bin", "go"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", filepath.Join(w.root, "newer", "bin")+":"+os.Getenv("PATH"))
		}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			w.cell(1)
			for _, name := range []string{"other.go", "default.pgo", "../.git", "../goenv"} {
				w.remove("gonb/" + name)
			}
			if _, err := r.take(); err != nil {
				t.Fatal(err)
			}
			before := key()
			if r.current(paths) != nil || before != key() {
				t.Fatal("without a change the record is out of date")
			}
			if tc.change == nil {
				return
			}
			tc.change(t)
			if err := r.current(paths); err == nil && key() == before {
				t.Error("the record is in use after the change")
			} else if err != nil && !errors.Is(err, errChanged) {
				t.Error(err)
			}
		})
	}
	for _, tool := range []string{"VERSION", "go.env", "compile", "link"} {
		if !strings.Contains(strings.Join(r.Files, "\n")+"\n", "/"+tool+"\n") {
			t.Errorf("%s is not in %q", tool, r.Files)
		}
	}
}

// Builds that are no plain cells never make a record.
func TestNotPlain(t *testing.T) {
	testneed.NotShort(t, "it builds programs")
	for name, change := range map[string]func(t *testing.T, w *world){
		"unknown flag":    func(t *testing.T, w *world) { t.Setenv("GOFLAGS", "-trimpath -gcflags=-N") },
		"cgo in a module": func(t *testing.T, w *world) { w.write("replaced/y/c.go", "package y\n\nimport \"C\"\n") },
		"script for go": func(t *testing.T, w *world) {
			real, err := exec.LookPath("go")
			if err != nil {
				t.Fatal(err)
			}
			w.write("bin/go", "#!/bin/sh\nexec "+real+" \"$@\"\n")
			if err := os.Chmod(filepath.Join(w.root, "bin", "go"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", filepath.Join(w.root, "bin")+":"+os.Getenv("PATH"))
		},
		"just written": func(t *testing.T, w *world) { settle = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			change(t, w)
			for n := range 2 {
				w.cell(n)
				if text, err := Build(w.command(), w.out); err != nil {
					t.Fatalf("%v: %s", err, text)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(w.root, "cache", "graphnb", "relink", "*")); len(left) > 0 {
				t.Errorf("there are records: %v", left)
			}
		})
	}
}

// What "go build -x" prints is taken only if all of it is known.
func TestSplit(t *testing.T) {
	env, args, err := split(`GOROOT='' /go/link -o $WORK/a "a b\n" x=y`)
	if err != nil || len(env) != 1 || env[0] != "GOROOT=" || strings.Join(args, "|") != "/go/link|-o|$WORK/a|a b\n|x=y" {
		t.Errorf("%q %q %v", env, args, err)
	}
	for _, line := range []string{"", "A='b'", "A=b c", `"a`, `"a"b`} {
		if _, _, err := split(line); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
	c := &cell{dir: "/d/gonb_x", name: "gonb_x"}
	for _, text := range []string{"", "WORK=/w\n", "WORK=/w\ngcc -c $WORK/b001/x\n", "WORK=/w\ncat >/w/b001/importcfg << 'EOF' # internal\n", "{{dir}}", "WORK=/w\n/go/compile -newflag ./main.go\n/go/link x\n"} {
		if err := c.parse(new(record), []byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
