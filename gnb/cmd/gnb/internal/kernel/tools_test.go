package kernel

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Cells and the kernel communicate by gonb's protocol, so both sides must have the same version.
func TestToolsMatchTheModule(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	pinned := PinnedGoNB()
	if pinned == "" || !strings.Contains(string(b), "github.com/janpfeifer/gonb "+pinned) {
		t.Errorf("tools.mod pins GoNB %q, but go.mod has another version", pinned)
	}
	if !strings.Contains(string(toolsMod), "golang.org/x/tools/cmd/goimports") {
		t.Error("tools.mod lacks goimports, without which no cell runs")
	}
	if a, b := toolsKey("go1.26.1"), toolsKey("go1.26.2"); a == b {
		t.Error("the key of the tools does not depend on the Go version")
	}
}

func TestReplaceFileKeepsARunningProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gnb")
	if err := ReplaceFile(file, []byte("old"), 0o755); err != nil {
		t.Fatal(err)
	}
	running, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	if err := ReplaceFile(file, []byte("new"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 3)
	if _, err := running.Read(b); err != nil || string(b) != "old" {
		t.Errorf("the open file now has the content %q (%v)", b, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
}

func TestWithTag(t *testing.T) {
	for flags, want := range map[string]string{
		"":                         "-tags=cuda",
		"-ldflags=-s":              "-ldflags=-s -tags=cuda",
		"-ldflags=-s -tags=x,y -v": "-ldflags=-s -tags=x,y,cuda -v",
		"--tags=x":                 "-tags=x,cuda",
		"-tags=cuda,x":             "-tags=cuda,x",
		"-tags=a -tags=b":          "-tags=a -tags=b,cuda",
		"'-tags=x' -v":             "-tags=x,cuda -v",
	} {
		if got := withTag(flags, "cuda"); got != want {
			t.Errorf("%q becomes %q, want %q", flags, got, want)
		}
	}
}

// The packages that are built before the first cell are those that a cell may import.
func TestCellPackages(t *testing.T) {
	packages, err := cellPackages(t.Context(), filepath.Join("..", "..", "..", "..", ".."), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "/inspect", "/monitor", "/parts", "/runs", "/sweep"} {
		if !slices.Contains(packages, ModulePath+"/gnb"+want) {
			t.Errorf("gnb%s is not in %q", want, packages)
		}
	}
	for _, p := range packages {
		if strings.Contains(p, "internal") || strings.Contains(p, "cmd") || strings.HasSuffix(p, "published") {
			t.Errorf("%s is in the list, but is not for cells", p)
		}
	}
	if text := warmPackage(packages); !strings.Contains(text, "_ \""+packages[0]+"\"\n") {
		t.Error(text)
	}
}

// The package that fills the build cache builds in a workspace with the library, as a cell does.
func TestWarmCache(t *testing.T) {
	if testing.Short() {
		t.Skip("listing and building takes some seconds")
	}
	root, err := filepath.Abs(filepath.Join("..", "..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if err := WarmCache(t.Context(), root, "", t.Logf); err != nil {
		t.Error(err)
	}
}

// The go command that builds the tools and the library collects its garbage rarely, unless the user has set GOGC.
func TestGarbageOfBuilds(t *testing.T) {
	for set, want := range map[string]string{"": "400", "150": "150"} {
		t.Setenv("GOGC", set)
		dir := t.TempDir()
		script := "#!/bin/sh\nprintf %s \"$GOGC\" > " + filepath.Join(dir, "seen")
		if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		if err := runGo(t.Context(), dir, nil, "build"); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "seen")); err != nil || string(b) != want {
			t.Errorf("with GOGC=%q the go command has GOGC=%q (%v), want %s", set, b, err, want)
		}
	}
}

// A gopls that another Go version built is removed, so that it is built again; the current one stays.
func TestEditorOfAnotherGo(t *testing.T) {
	bin := t.TempDir()
	dir := EditorDir(bin)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	key, _, err := toolsCurrent(t.Context(), dir, EditorTools)
	if err != nil {
		t.Fatal(err)
	}
	put(ExeName("gopls"), "gopls")
	for _, c := range []struct {
		stamp string
		stays bool
	}{{key, true}, {"built by Go 1.20", false}} {
		put(toolsStamp, c.stamp)
		if err := LeaveEditor(t.Context(), bin); err != nil || HaveEditor(dir) != c.stays {
			t.Errorf("stamp %q: gopls is there: %v, %v", c.stamp, HaveEditor(dir), err)
		}
	}
}
