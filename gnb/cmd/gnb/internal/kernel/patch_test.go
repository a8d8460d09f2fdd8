package kernel

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// Each patch fits the pinned GoNB exactly once, and none undoes another. What they make compiles.
func TestPatchesFitGoNB(t *testing.T) {
	testneed.NotShort(t, "it builds packages of GoNB")
	src := t.TempDir()
	for name, b := range map[string][]byte{"go.mod": toolsMod, "go.sum": toolsSum} {
		if err := os.WriteFile(filepath.Join(src, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"GOFLAGS=", "GOWORK=off"}
	if err := patchGoNB(t.Context(), src, CellTools, env); err != nil {
		t.Fatal(err)
	}
	for _, p := range allPatches() {
		text, err := os.ReadFile(filepath.Join(src, "gonb", filepath.FromSlash(p.file)))
		if err != nil || !strings.Contains(string(text), p.replacement) {
			t.Errorf("%s lacks the patch %q (%v)", p.file, p.replacement, err)
		}
	}
	if err := runGo(t.Context(), src, env, "vet", goNB+"/internal/jpyexec", goNB+"/internal/dispatcher", goNB+"/internal/kernel"); err != nil {
		t.Error(err)
	}
	other := t.TempDir()
	if err := patchGoNB(t.Context(), other, EditorTools, env); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(other); len(left) > 0 {
		t.Errorf("the tools of the editor are patched too: %v", left)
	}
	if patchKey(CellTools) == "" || patchKey(EditorTools) != "" {
		t.Error("the stamp of the tools does not depend on the patches")
	}
}

// A cell's program gets the imports of the packages below gnb that it uses, and no others.
func TestRoomsAreImported(t *testing.T) {
	testneed.NotShort(t, "it builds a program")
	dir := t.TempDir()
	program := "package main\n\nimport (\"go/parser\"; \"go/token\"; \"os\"; \"path\"; \"regexp\"; \"strings\")\n" + importRooms + "func main() { for _, f := range os.Args[1:] { importRooms(f) } }\n"
	const at = `; import "github.com/graphnb/graphnb/gnb/`
	cases := []struct{ src, want string }{
		{"package main\n\nfunc main() { runs.Last(); sweep.Run(runs.List) }\n", "package main" + at + `runs"` + at + "sweep\"\n\nfunc main() { runs.Last(); sweep.Run(runs.List) }\n"},
		{"package main\n\nfunc main() { gnb.Load() }\n", "package main; import \"github.com/graphnb/graphnb/gnb\"\n\nfunc main() { gnb.Load() }\n"},
		{"package main // x\n\nimport \"a/runs\"\n\nfunc main() { runs.Last() }\n", ""},
		{"package main\n\nimport plan \"a/b\"\n\nvar kg = 1\n\nfunc main() { report := 2; plan.X(kg.X, report.Y, other.Z) }\n", ""},
		{"package main\n\nfunc main() { runs.Last( }\n", ""},
		{"", ""},
	}
	args := []string{"run", filepath.Join(dir, "main.go"), filepath.Join(dir, "missing")}
	for i, c := range cases {
		args = append(args, filepath.Join(dir, string(rune('a'+i))+".txt"))
		if err := os.WriteFile(args[len(args)-1], []byte(c.src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(args[1], []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := runGo(t.Context(), dir, []string{"GOFLAGS=", "GOWORK=off"}, args...); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		got, err := os.ReadFile(args[3+i])
		if c.want == "" {
			c.want = c.src
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%q becomes %q, want %q", c.src, got, c.want)
		}
	}
}

// The pattern finds the compiler's error for a name that hides a package, for each package that
// cells import.
func TestHiddenRoomIsFound(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join("..", "..", "..", "..")) // The directory of package gnb, with the packages below it.
	if err != nil {
		t.Fatal(err)
	}
	hidden, rooms := regexp.MustCompile(hiddenRoom), 0
	for _, e := range entries {
		if !e.IsDir() || slices.Contains([]string{"cmd", "internal", "published", "testdata"}, e.Name()) {
			continue
		}
		rooms++
		for _, text := range []string{
			"./main.go:3:5: ROOM already declared through import of package ROOM (\"github.com/graphnb/graphnb/gnb/ROOM\")",
			"./main.go:3:5: initialization cycle: ROOM refers to itself",
			"./main.go:4:40: ROOM.Choice undefined (type *Study has no field or method Choice)",
			"./main.go:6:30: ROOM.Options is not a type",
		} {
			if got := hidden.FindStringSubmatch(strings.ReplaceAll(text, "ROOM", e.Name())); got == nil || got[1] != e.Name() {
				t.Errorf("%s: found %q", strings.ReplaceAll(text, "ROOM", e.Name()), got)
			}
		}
	}
	if rooms < 6 {
		t.Errorf("%d packages were found below gnb", rooms)
	}
	if got := hidden.FindString("./main.go:3:5: study.Choice undefined (type int has no field or method Choice)"); got != "" {
		t.Errorf("found %q", got)
	}
}
