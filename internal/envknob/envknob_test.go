package envknob

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/environment.md")

const page = "../../docs/environment.md"

func TestOn(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "false": false, "No": false, "OFF": false, "1": true, "yes": true, "2": true} {
		t.Setenv(Headless.Name, value)
		if Headless.On() != want {
			t.Errorf("with the value %q, the variable counts as %v", value, !want)
		}
		if got := Headless.OnIn([]string{"A=1", Headless.Name + "=1", Headless.Name + "=" + value}); got != want {
			t.Errorf("with the value %q last in a list, the variable counts as %v", value, got)
		}
	}
	if Headless.OnIn([]string{Headless.Name + "X=1"}) {
		t.Error("another variable with the same prefix turns it on")
	}
}

// All has every variable that is declared, once.
func TestAll(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "knobs.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if x, ok := n.(*ast.UnaryExpr); ok && x.Op == token.AND {
			declared++
		}
		return true
	})
	seen := map[*Knob]bool{}
	for _, k := range All() {
		seen[k] = true
	}
	if len(All()) != declared || len(seen) != declared || declared == 0 {
		t.Errorf("All has %d variables, %d different ones, and %d are declared", len(All()), len(seen), declared)
	}
}

// The tables of the page equal the source. "go test ./internal/envknob -update" writes them.
func TestPage(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const from, to = "<!-- tables: written by go test ./internal/envknob -update -->\n", "<!-- end of tables -->"
	text := string(raw)
	i, j := strings.Index(text, from), strings.Index(text, to)
	if i < 0 || j < i {
		t.Fatalf("%s lacks the lines that enclose its tables", page)
	}
	want := text[:i+len(from)] + tables() + text[j:]
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text != want {
		t.Errorf("the tables of %s are not those of this package; run go test ./internal/envknob -update", page)
	}
}

func tables() string {
	var b strings.Builder
	who := Audience("")
	for _, k := range All() {
		if k.For != who {
			who = k.For
			fmt.Fprintf(&b, "\n## %s\n\n| variable | effect |\n|---|---|\n", who)
		}
		fmt.Fprintf(&b, "| `%s=%s` | %s |\n", k.Name, k.Value, k.Doc)
	}
	b.WriteString("\n")
	return b.String()
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range All() {
		if seen[k.Name] || !strings.HasPrefix(k.Name, "GNB_") || k.Value == "" || k.Doc == "" {
			t.Errorf("%+v", *k)
		}
		seen[k.Name] = true
	}
}

// No other package writes a variable's name in its code, so that readers find its meaning here and
// the page lists all variables. Tests are exempt, including the variables that they pass to
// processes they start (GNB_…TEST…, GNB_BENCH…).
func TestNamesAreWrittenHereOnly(t *testing.T) {
	name := regexp.MustCompile(`^"GNB_[A-Z0-9_]+=?"$`)
	known := map[string]bool{}
	for _, k := range All() {
		known[k.Name] = true
	}
	files, inTests := 0, 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "build" || d.Name() == "testdata" || d.Name() == "envknob") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasPrefix(d.Name(), "zz_") {
			return nil
		}
		files++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING || !name.MatchString(lit.Value) {
				return true
			}
			spelled := strings.Trim(lit.Value, `"=`)
			switch own := strings.Contains(spelled, "TEST") || strings.HasPrefix(spelled, "GNB_BENCH_") || spelled == "GNB_PRODUCTS"; {
			case !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(filepath.Dir(path), "test"): // such as gnb/internal/runtest
				t.Errorf("%s: %s is spelled out; use the variable of package envknob", fset.Position(lit.Pos()), lit.Value)
			case !known[spelled] && !own:
				t.Errorf("%s: package envknob does not know %s", fset.Position(lit.Pos()), lit.Value)
			default:
				inTests++
			}
			return true
		})
		return nil
	})
	if err != nil || files < 300 || inTests < 50 {
		t.Errorf("%d files and %d names in tests were checked: %v", files, inTests, err)
	}
}
