package doctest

import (
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/archtest"
	"github.com/graphnb/graphnb/internal/testneed"
)

var root = filepath.Join("..", "..")

// imported reads each package once for all tests.
var imported = sync.OnceValues(func() (types.Importer, error) {
	return Importer(root, "image/color", "encoding/csv", "gonum.org/v1/plot/plotter", "gonum.org/v1/plot/vg/vgimg", archtest.Module+"/gnb/remote", archtest.Module+"/gnb/serve", archtest.Module+"/graphops/divided", archtest.Module+"/graphops/hotness")
})

func theImporter(t *testing.T) types.Importer {
	t.Helper()
	imp, err := imported()
	if err != nil {
		t.Fatal(err)
	}
	return imp
}

// pages returns all pages from which readers may copy code.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "tutorials/*.md", "bench/*.md", "notebooks/*.ipynb", "tutorials/*.ipynb"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if filepath.Base(path) != "CHANGELOG.md" { // CHANGELOG.md holds names that no longer exist
				all = append(all, path)
			}
		}
	}
	return all
}

// All Go code that the repository shows compiles.
func TestDocumentationCompiles(t *testing.T) {
	testneed.NotShort(t, "it compiles the code of every page")
	imp := theImporter(t)
	blocks, spans := 0, 0
	for _, path := range pages(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			pieces, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pieces {
				if p.Span {
					spans++
				} else {
					blocks++
				}
			}
			if err := Check(pieces, imp); err != nil {
				t.Error(err)
			}
		})
	}
	// The test would pass if it found no code, so it requires a minimum.
	if blocks < 10 || spans < 10 {
		t.Errorf("%d blocks and %d spans of Go found, want at least 10 of each", blocks, spans)
	}
}

// A mistake in a page is reported with its line, and correct code is not reported.
func TestPlantedMistakesAreFound(t *testing.T) {
	imp := theImporter(t)
	block := func(text string) string { return "# Page\n\n```go\n" + text + "\n```\n" }
	for _, c := range []struct{ name, text, want string }{
		{"statements", block("ds := gnb.Must(gnb.Load(ctx, \"karate\"))"), ""},
		{"a later block uses an earlier one", block("type A struct{ X int }") + block("fmt.Println(A{}.X)"), ""},
		{"a later declaration replaces", block("type A struct{ X int }\nfunc (a A) M() {}") + block("type A struct{ Y int }\nfunc (a A) M() {}") + block("fmt.Println(A{}.Y)"), ""},
		{"cell", block("import \"github.com/graphnb/graphnb/gnb\"\n\n%%\nfmt.Println(gnb.Version)"), ""},
		{"shell and kernel lines", block("!ls\n%goflags -x\nvar x = 1"), ""},
		{"own name wins over the context", block("type net struct{}") + block("_ = net{}"), ""},
		{"other language", "```python\nnn.Linear(3, 4)\n```\n`torch.nn.Linear(3)`", ""},
		{"types, functions and generic ones", "`gnb.Loader`, `gnb.Load`, `gnb.Must`, `w.Evaluate`, `[]runs.NamedValue{}`", ""},
		{"whatever it is given", "`gnb.Load(…)`", ""},
		{"arguments left out", "`w.Batches(\"train\", …)`", ""},
		{"variable of the page's code", block("func f(some gnb.Evaluation) {\n\tfor i := range 3 {\n\t\tn := i\n\t\t_ = n\n\t}\n}") + "`w.Evaluate(net, some, \"val\")`, `gnb.Loader{Batch: n}`", ""},
		{"more left out", "`if … { w.Printf(…) }`, `gnb.Loader{Sampler: …, Batch: 3}`", ""},
		{"fields left out", "`gnb.Loader{…}`, `gnb.Loader{Batch: 3, …}`", ""},
		{"several results", "`gnb.Load(ctx, \"x\")`", ""},
		{"statement in a sentence", "`for b := range w.Batches(\"train\", gnb.Loader{}) { w.Step(b.Loss(out), opt) }`", ""},
		{"table", "| PyG | ours |\n|---|---|\n| `nn.Lin(3)` | `nn.NewSAGE(3, 4)` |\n", ""},

		{"no such function", block("x := 1\nfmt.Println(x, gnb.Lode(ctx, \"karate\"))"), "page.md:5: undefined: gnb.Lode"},
		{"no such field", block("_ = gnb.Loader{Fanout: nil}"), "unknown field Fanout"},
		{"wrong type", block("var x int = \"a\""), "page.md:4"},
		{"unused variable in an inner block", block("if true {\n\ty := 1\n}"), "page.md:5: declared and not used: y"},
		{"no Go", block("func f( {"), "it is no Go"},
		{"span", "one\ntwo `gnb.Lode(ctx)`", "page.md:2: `gnb.Lode(ctx)`: undefined: gnb.Lode"},
		{"span of a variable", "`w.Stepp(loss, opt)`", "w.Stepp undefined"},
		{"span that is statements", "`lr = 1; w.Stepp(loss, opt)`", "w.Stepp undefined"},
		{"call of nothing", "`gnb.Lode(…)`", "page.md:1: `gnb.Lode`: undefined"},
		{"variable of nowhere", block("func f(some gnb.Evaluation) {}") + "`w.Evaluate(net, other, \"val\")`", "undefined: other"},
		{"wrong name where more is left out", "`if … { w.Prntf(…) }`", "w.Prntf undefined"},
		{"span that is not Go", "`gnb.Load(ctx,, x)`", "it is no Go"},
		{"our column", "| PyG | ours |\n|---|---|\n| `x` | `nn.NewSAG(3, 4)` |\n", "page.md:3: `nn.NewSAG(3, 4)`"},
		{"package that is not there", block("import \"example.com/none\"\n\nvar x = none.X"), "example.com/none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check(markdown("page.md", c.text), imp)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestNotebookPieces(t *testing.T) {
	const nb = `{"cells": [
		{"cell_type": "markdown", "source": ["A\n", "and ` + "`gnb.Load`" + `"]},
		{"cell_type": "code", "source": "var x = 1"},
		{"cell_type": "raw", "source": "gnb.Nothing"}]}`
	path := filepath.Join(t.TempDir(), "n.ipynb")
	if err := os.WriteFile(path, []byte(nb), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []Piece{{"n.ipynb cell 0", 2, "gnb.Load", true}, {"n.ipynb cell 1", 1, "var x = 1", false}}
	if !slices.Equal(got, want) {
		t.Errorf("pieces %v, want %v", got, want)
	}
}

func TestCells(t *testing.T) {
	got := fmt.Sprintf("%q", Cells("| `a` | b \\| c |  |"))
	if want := `["` + "`a`" + `" "b | c" ""]`; got != want {
		t.Errorf("cells %s, want %s", got, want)
	}
}
