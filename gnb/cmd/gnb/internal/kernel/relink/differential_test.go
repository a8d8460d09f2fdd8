package relink

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

var letters = regexp.MustCompile(`"[a-z]", words`)

// shows returns what a program prints, and its build information.
func (w *world) shows(program string) string {
	w.t.Helper()
	printed, err := exec.Command(program).CombinedOutput()
	if err != nil {
		w.t.Fatal(err)
	}
	info, err := exec.Command("go", "version", "-m", program).Output()
	if err != nil {
		w.t.Fatal(err)
	}
	return string(printed) + strings.TrimPrefix(string(info), program)
}

// After each of a random sequence of edits, of the cell, of the packages that it imports, of an embedded file and of build
// tags, Build gives what "go build" gives: a program with the same output and build information, or the same error. Some
// edits follow the last build at once, and some keep a file's size and time.
func TestSameAsGoBuild(t *testing.T) {
	testneed.NotShort(t, "it builds programs")
	w := newWorld(t)
	steps, seed := 30, uint64(1)
	if testneed.Soak.Here() {
		steps, seed = 300, uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const x = "checkout/sub/x/x.go"
	tagged, relinked := false, 0
	toggle := func(name, text string) {
		if _, err := os.Stat(w.file(name)); err == nil {
			w.remove(name)
		} else {
			w.write(name, text)
		}
	}
	source := func(letter, more, body string) string {
		return "package x\n\nimport (\n\t_ \"embed\"\n" + more + "\n\t\"example.com/r/y\"\n)\n\n//go:embed words\nvar words string\n\nfunc X(cell int) { println(cell, y.Y(), \"" + letter + "\", words)" + body + " }\n"
	}
	cell := func() {
		w.write("gonb/main.go", fmt.Sprintf("package main\n\n%s\n\nfunc main() { x.X(%d); println(%q) }\n",
			[]string{`import "example.com/c/sub/x"`, "import (\n\t\"example.com/c/sub/x\"\n\t_ \"example.com/r/y\"\n\t_ \"io\"\n)"}[rng.IntN(2)], rng.IntN(1000), strings.Repeat("a", rng.IntN(3))))
	}
	letter := func() string { return string(rune('a' + rng.IntN(26))) }
	edits := map[string]func(){
		"the cell again":          cell,
		"a package":               func() { w.write(x, source(letter(), "", "")) },
		"a package's imports":     func() { w.write(x, source(letter(), "\t\"strings\"\n", "; println(strings.ToUpper(\"b\"))")) },
		"a package with an error": func() { w.write(x, source(letter(), "", "; none()")) },
		"the cell with an error": func() {
			w.write("gonb/main.go", "package main\n\nimport \"example.com/c/sub/x\"\n\nfunc main() { x.None() }\n")
		},
		"an embedded file": func() { w.write("checkout/sub/x/words", letter()) },
		"another module": func() {
			w.write("replaced/y/y.go", fmt.Sprintf("package y\n\nfunc Y() int { return %d }\n", rng.IntN(100)))
		},
		"a new or removed file": func() { toggle("replaced/y/init.go", "package y\n\nfunc init() { print(\"added \") }\n") },
		"a file of a tag": func() {
			toggle("checkout/sub/x/tag.go", "//go:build t\n\npackage x\n\nfunc init() { print(\"tagged \") }\n")
		},
		"the size and time of before": func() {
			before, err := os.Stat(w.file(x))
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(w.file(x))
			if err != nil {
				t.Fatal(err)
			}
			w.write(x, letters.ReplaceAllString(string(text), `"`+letter()+`", words`))
			if err := os.Chtimes(w.file(x), before.ModTime(), before.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
		"the tags": func() {
			tagged = !tagged
			t.Setenv("GOFLAGS", map[bool]string{false: "-trimpath -ldflags=-s", true: "-trimpath -ldflags=-s -tags=t"}[tagged])
		},
	}
	names := slices.Sorted(maps.Keys(edits))
	for i := range steps {
		cell() // as a user edits it, most of the time alone
		what := "the cell"
		if rng.IntN(2) == 0 {
			what = names[rng.IntN(len(names))]
			edits[what]()
		}
		if rng.IntN(4) > 0 {
			time.Sleep(2 * settle)
		}
		text, err := Build(w.command(), w.out)
		reference := filepath.Join(w.root, "reference")
		goBuild := exec.Command("go", "build", "-o", reference)
		goBuild.Dir = w.dir
		want, wantErr := goBuild.CombinedOutput()
		if (err == nil) != (wantErr == nil) || string(text) != string(want) {
			t.Fatalf("edit %d, %s: %v: %s\n\"go build\": %v: %s", i, what, err, text, wantErr, want)
		}
		if err != nil {
			continue
		}
		if strings.HasPrefix(w.id(), "relink") {
			relinked++
		}
		if got, want := w.shows(w.out), w.shows(reference); got != want {
			t.Fatalf("edit %d, %s: the program prints and has\n%s\n\"go build\" makes\n%s", i, what, got, want)
		}
	}
	if relinked < steps/5 {
		t.Errorf("%d of %d programs were built without \"go build\"", relinked, steps)
	}
}
