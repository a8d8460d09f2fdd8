package testneed

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// skipping is a test that records the reason for which it was skipped.
type skipping struct {
	testing.TB
	reason string
}

func (s *skipping) Helper() {}
func (s *skipping) Skip(args ...any) {
	s.reason, _ = args[0].(string)
	panic(s)
}

// reason returns the reason for which f skips a test, or "" if it does not skip.
func reason(f func(testing.TB)) (why string) {
	s := &skipping{}
	defer func() {
		if recover() != nil {
			why = s.reason
		}
	}()
	f(s)
	return ""
}

func TestRealData(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_DATA", dir)
	if err := os.MkdirAll(filepath.Join(dir, "planetoid"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := RealData(t, "planetoid"); got != filepath.Join(dir, "planetoid") {
		t.Errorf("the file is found at %s", got)
	}
	if !Data.Here() {
		t.Error("the folder exists, but Data counts as missing")
	}
	why := reason(func(t testing.TB) { RealData(t, "planetoid/none") })
	if n, text, ok := Of(why); !ok || n.Name != "data" || !strings.Contains(text, "planetoid/none") {
		t.Errorf("the reason is %q", why)
	}
	t.Setenv("GNB_DATA", filepath.Join(dir, "none"))
	if Data.Here() {
		t.Error("Data counts as present without a folder")
	}
	// Without the variable, the folder is beside the checkout and not beside the package.
	t.Setenv("GNB_DATA", "")
	if got := DataDir(); !filepath.IsAbs(got) || filepath.Dir(filepath.Dir(got)) != filepath.Dir(root()) {
		t.Errorf("the folder is %s, want shared/data beside %s", got, root())
	}
}

func TestReasons(t *testing.T) {
	for _, n := range All() {
		why := reason(func(t testing.TB) { Skip(t, n, "no %s: %d", "x", 7) })
		got, text, ok := Of(why)
		if !ok || got.Name != n.Name || text != "no x: 7" || n.Way == "" || n.What == "" || n.Here == nil {
			t.Errorf("%s: %q is read as %q, %q, %v", n.Name, why, got.Name, text, ok)
		}
	}
	for _, other := range []string{"no data", "needs luck: none", "it needs data: x"} {
		if _, text, ok := Of(other); ok || text != other {
			t.Errorf("%q names a need", other)
		}
	}
	if why := reason(Root); (why == "") != (os.Geteuid() == 0) {
		t.Errorf("user %d: %q", os.Geteuid(), why)
	}
	if why := reason(func(t testing.TB) { PythonWith(t, "no_such_module") }); !strings.HasPrefix(why, "needs python: ") {
		t.Errorf("the reason for a missing module is %q", why)
	}
}

// All has each prerequisite that the package declares: a skip for another one would count as an ordinary skip.
func TestAllHasEachPrerequisite(t *testing.T) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "testneed.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var declared, listed []string
	for _, d := range parsed.Decls {
		vars, ok := d.(*ast.GenDecl)
		if !ok || vars.Tok != token.VAR {
			continue
		}
		for _, spec := range vars.Specs {
			for _, value := range spec.(*ast.ValueSpec).Values {
				lit, ok := value.(*ast.CompositeLit)
				if !ok {
					continue
				}
				if kind, ok := lit.Type.(*ast.Ident); ok && kind.Name == "Need" {
					name, _ := strconv.Unquote(lit.Elts[0].(*ast.BasicLit).Value)
					declared = append(declared, name)
				}
			}
		}
	}
	for _, n := range All() {
		listed = append(listed, n.Name)
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if len(declared) == 0 || !slices.Equal(declared, listed) {
		t.Errorf("All returns %v; declared are %v", listed, declared)
	}
}

// A skip for a lack of data, a browser, root or a network goes through this package, so that it is
// counted. Any other skip whose reason names one of these is an error.
func TestOtherSkipsNeedNothing(t *testing.T) {
	words := []string{"GNB_DATA", "GNB_PYTHON", "browser.sh", "Chromium", "root", "network"}
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name != "../.." && (strings.HasPrefix(name, ".") && name != ".." && name != "." || name == "build" || name == "testneed") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), ".Skip") {
			return err
		}
		files++
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || method.Sel.Name != "Skip" && method.Sel.Name != "Skipf" {
				return true
			}
			if of, ok := method.X.(*ast.Ident); ok && of.Name == "testneed" {
				return true
			}
			for _, a := range call.Args {
				lit, ok := a.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					continue
				}
				reason, _ := strconv.Unquote(lit.Value)
				for _, w := range words {
					if strings.Contains(reason, w) {
						t.Errorf("%s: a skip for want of %q; skip by testneed.Skip, or name the real reason", set.Position(call.Pos()), w)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Errorf("%d files with skips were found", files)
	}
}

// Without a package index, the network counts as missing.
func TestOffline(t *testing.T) {
	NotShort(t, "it asks an index that does not answer")
	if os.Getenv("GNB_TEST_OFFLINE") != "" {
		if Network.Here() {
			t.Error("pip has no index, but the network is reported as available")
		}
		return
	}
	c := exec.Command(os.Args[0], "-test.run", "^TestOffline$")
	c.Env = append(os.Environ(), "GNB_TEST_OFFLINE=1", "PIP_INDEX_URL=http://127.0.0.1:1/simple", "PIP_NO_INDEX=", "PIP_FIND_LINKS=", "PIP_EXTRA_INDEX_URL=")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
