package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/cudaheader"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The exported API of a package that other modules may import uses only types that those modules
// can name.
func TestPublicAPIIsNameable(t *testing.T) {
	testneed.NotShort(t, "it reads every public package with its types")
	t.Run("plain", func(t *testing.T) { nameable(t, "./...") })
	t.Run("cuda", func(t *testing.T) {
		if _, err := exec.LookPath("gcc"); err != nil {
			t.Skip("no C compiler")
		}
		include, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(cudaheader.Dir)))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range cudaheader.Env(include, os.Getenv) {
			t.Setenv(name, value)
		}
		nameable(t, "-tags=cuda", "./gnb") // further packages of gnb have no files for this tag
	})
}

func nameable(t *testing.T, args ...string) {
	t.Helper()
	wrong, public, err := Unnameable(root, Module, args...)
	if err != nil {
		t.Fatal(err)
	}
	if public < 10 {
		t.Errorf("only %d public packages found", public)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

// In a module whose public package exposes internal types in every possible way, each use is found
// and nothing else is.
func TestPlantedTypesAreFound(t *testing.T) {
	const module = "planted.test/m"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":              "module " + module + "\n\ngo 1.26.0\n",
		"internal/in/in.go":   "package in\n\ntype T struct{ N int }\n\ntype I interface{ M() }\n\nfunc (T) Deep() []T { return nil }\n",
		"internal/up/up.go":   "package up\n\nimport \"" + module + "/internal/in\"\n\nfunc F(in.T) {} // internal packages may\n",
		"cmd/tool/main.go":    "package main\n\nimport \"" + module + "/internal/in\"\n\nvar V in.T\n\nfunc main() {}\n",
		"good/good.go":        "package good\n\nimport \"" + module + "/internal/in\"\n\ntype G struct{ hidden in.T }\n\nfunc (G) unexported(in.T) {}\n\nfunc F(G) error { return nil }\n\nvar v in.T\n",
		"bad/bad.go":          "package bad\n\nimport \"" + module + "/internal/in\"\n\ntype Alias = in.T\n\ntype Embeds struct{ in.T }\n\ntype Field struct{ F map[string][]*in.T }\n\ntype Method struct{}\n\nfunc (*Method) M(chan in.T) {}\n\ntype Face interface{ M() func(in.T) }\n\ntype Generic[P in.I] struct{ V P }\n\nvar V Generic[in.I]\n\nconst Fine = 1\n",
		"bad/bad_test.go":     "package bad\n\nimport \"" + module + "/internal/in\"\n\nfunc Test(in.T) {}\n",
		"bad/internal/x/x.go": "package x\n\nimport \"" + module + "/internal/in\"\n\nvar V in.T\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, public, err := Unnameable(dir, module, "./...")
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		what, rest, _ := strings.Cut(g, " mentions internal/in.")
		name, _, _ := strings.Cut(rest, ",")
		got[i] = what + " " + name
	}
	want := []string{"bad.Alias T", "bad.Embeds.T T", "bad.Face.M T", "bad.Field.F T", "bad.Generic I", "bad.Method.M T", "bad.V I"}
	if public != 2 || !slices.Equal(got, want) {
		t.Errorf("in %d packages\ngot  %v\nwant %v", public, got, want)
	}
}
