package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"
)

// The program is the notebook: the declarations of its cells in their order, and
// as main what its last cell does.
func TestSameAsNotebook(t *testing.T) {
	raw, err := os.ReadFile("../02-papers100m-gcn.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	var nb struct {
		Cells []struct {
			CellType string `json:"cell_type"`
			Source   []string
		}
	}
	if err := json.Unmarshal(raw, &nb); err != nil {
		t.Fatal(err)
	}
	declared, last := "", ""
	for _, c := range nb.Cells {
		if c.CellType != "code" {
			continue
		}
		// GoNB makes a main of what follows the line %%, and parses the flags first.
		before, after, is := strings.Cut(strings.Join(c.Source, ""), "%%\n")
		declared += before + "\n"
		if is {
			last = "func main() {\nflag.Parse()\n" + after + "\n}\n"
		}
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	want, got := decls(t, "package main\n"+declared+last), decls(t, string(program))
	for i := range max(len(want), len(got)) {
		a, b := "nothing", "nothing"
		if i < len(want) {
			a = want[i]
		}
		if i < len(got) {
			b = got[i]
		}
		if a != b {
			t.Errorf("declaration %d is in the notebook\n%s\nand in the program\n%s", i, a, b)
		}
	}
	if len(want) < 8 {
		t.Errorf("the notebook has %d declarations; this test looks for them in the wrong places", len(want))
	}
}

// decls are the declarations of a file, imports apart, each as gofmt writes it.
func decls(t *testing.T, src string) []string {
	t.Helper()
	// Cells import where they need it, in a file only what is first may.
	var imports []string
	src = regexp.MustCompile(`(?ms)^import \(.*?^\)$`).ReplaceAllStringFunc(src, func(s string) string {
		imports = append(imports, s)
		return ""
	})
	src = strings.Replace(src, "package main\n", "package main\n"+strings.Join(imports, "\n")+"\n", 1)
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "main.go", src, parser.ParseComments)
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	var out []string
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		var b bytes.Buffer
		c := &printer.CommentedNode{Node: d, Comments: f.Comments}
		if err := (&printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8}).Fprint(&b, fset, c); err != nil {
			t.Fatal(err)
		}
		out = append(out, b.String())
	}
	return out
}

// The program runs with two workers, both of which take part, and learns: what
// its flags say is what the run was given.
func TestRunsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and trains")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "papers100m")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, text)
	}
	cmd := exec.CommandContext(t.Context(), program, "-epochs", "1", "-hidden", "32", "-fanout", "10", "-batch", "100", "-lr", "0.02")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GNB_SMALL=1", "GNB_WORKERS=2", "GNB_RUNS="+filepath.Join(dir, "runs"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	m := regexp.MustCompile(`^test accuracy: ([\d.]+)\n$`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("it wrote %q\n%s", out, stderr.String())
	}
	if a, _ := strconv.ParseFloat(string(m[1]), 64); a < 0.45 || a > 0.9 {
		t.Errorf("test accuracy %v after an epoch, want 0.45 to 0.9: it was 0.558, and is 0.15 without the graph", a)
	}
	if n := strings.Count(stderr.String(), "epoch 0, step "); n != 5 {
		t.Errorf("%d losses were printed of the 50 steps, want every tenth:\n%s", n, stderr.String())
	}
	entries, err := os.ReadDir(filepath.Join(dir, "runs"))
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d runs, %v", len(entries), err)
	}
	run, err := runs.Open(filepath.Join(dir, "runs", entries[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"Hidden":32,"Epochs":1,"Batch":100,"Fanout":10,"LR":0.02}`; compact(run.Config.Args) != want {
		t.Errorf("the run's arguments are %s, want %s", run.Config.Args, want)
	}
	if s := run.Result.WorkerSeeds; len(s) != 2 || slices.Contains(s, 0) {
		t.Errorf("the workers trained on %v seeds", s)
	}
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
