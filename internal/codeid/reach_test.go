package codeid

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// sources holds the files of a small program; "ROOT" marks the line of a root.
type sources map[string]string

var small = sources{
	"go.mod": "module example.com/u\n\nrequire (\n\texample.com/near v0.0.0\n\texample.com/far v1.2.0\n)\n\nreplace example.com/near => ./near\n",
	"main.go": `package main

import (
	"fmt"
	"math/rand"
	gnb "example.com/lib"
	"example.com/far/sub"
	"example.com/near"
	"example.com/u/inner"
)

const width = 64

const (
	none = iota
	first
	second
	unused
)

var rate, decay = 0.01, 0.5

// table is filled by init.
var table = map[string]int{}

func init() {
	table["a"] = 1
}

func init() {
	fmt.Println("hello")
}

var other = 3

// net is a network.
type net struct {
	Hidden int
	part
}

type part struct{ n int }

func (p *part) grow() { p.n += step }

const step = 2

func (n *net) Layer(x float64) float64 {
	other := x // a local of the same name
	if other < 0 {
		return relu(other)
	}
	return float64(n.Hidden)*other + rand.Float64()
}

func relu(x float64) float64 { return max(0, x) }

func (n net) String() string { return fmt.Sprint(n.Hidden) }

var Hidden = 7

var run = gnb.Program("run", func(w *gnb.Worker) { // ROOT
	m := net{Hidden: width}
	fmt.Println(m.Layer(rate), second, table["a"], sub.Do(), near.Value(), inner.Deep(1))
})

func helper() {}

func main() {
	fmt.Println("before", other, Hidden, unused, decay)
	helper()
}
`,
	"more.go":               "package main\n\nfunc elsewhere() int { return 1 }\n",
	"inner/inner.go":        "package inner\n\nvar factor = 3\n\nfunc Deep(x int) int { return x * factor }\n\nfunc Else() int { return 9 }\n",
	"inner/inner_test.go":   "package inner\n\nvar factor = 4\n",
	"near/go.mod":           "module example.com/near\n",
	"near/near.go":          "package near\n\ntype T struct{ k int }\n\nfunc Value() int { return make().get() }\n\nfunc make() T { return T{4} }\n\nfunc (t T) get() int { return t.k }\n",
	"near/ignored_main.go":  "//go:build ignore\n\npackage main\n\nfunc main() {}\n",
	"near/unused/unused.go": "package unused\n",
}

// edited returns a copy in which a text of one file is replaced.
func (s sources) edited(file, old, now string) sources {
	out := sources{}
	for name, text := range s {
		out[name] = text
	}
	out[file] = strings.ReplaceAll(out[file], old, now)
	return out
}

// parts writes the program into its own directory and returns its identity.
func (s sources) parts(t *testing.T, far string) (map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	line := 0
	for name, text := range s {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if before, _, ok := strings.Cut(text, "ROOT"); ok {
			line = 1 + strings.Count(before, "\n")
		}
	}
	p := newProgram(&debug.BuildInfo{Path: "example.com/u", Main: debug.Module{Path: "example.com/u"}, Deps: []*debug.Module{
		{Path: "example.com/far", Version: far},
		{Path: "example.com/lib", Version: "v0.1.0"},
		{Path: "example.com/near", Version: "v0.0.0", Replace: &debug.Module{Path: "./near", Version: "(devel)"}},
	}}, Options{Library: "example.com/lib"})
	p.notAfter = time.Now().Add(time.Hour)
	return p.reach([]Root{root("main.init.func1", filepath.Join(dir, "main.go"), line)})
}

// The test checks which declarations count, and which changes are noticed.
func TestReach(t *testing.T) {
	base, err := small.parts(t, "v1.2.0")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"constant `second`", "constant `step`", "constant `width`",
		"function `(*net).Layer`", "function `(*part).grow`",
		"function `example.com/near.T.get`", "function `example.com/near.Value`", "function `example.com/near.make`",
		"function `example.com/u/inner.Deep`", "function `init`", "function `net.String`", "function `relu`",
		"module example.com/far",
		"type `example.com/near.T`", "type `net`", "type `part`",
		"variable `example.com/u/inner.factor`", "variable `rate`", "variable `run`", "variable `table`",
	}
	if got := sortedKeys(base); !slices.Equal(got, want) {
		t.Fatalf("reached\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, c := range []struct {
		name    string
		now     sources
		changes string // the first reported change
		far     string
	}{
		{name: "another directory", now: small},
		{name: "a comment", now: small.edited("main.go", "// net is a network.", "// net is another.")},
		{name: "a comment within", now: small.edited("main.go", "return relu(other)", "return relu(other) /* of it */")},
		{name: "line breaks", now: small.edited("main.go", "fmt.Println(m.Layer(rate), second,", "fmt.Println(\n\t\tm.Layer(rate),\n\t\tsecond,")},
		{name: "a trailing comma", now: small.edited("main.go", "inner.Deep(1))", "inner.Deep(1),\n\t)")},
		{name: "one line", now: small.edited("main.go", "\tif other < 0 {\n\t\treturn relu(other)\n\t}", "\tif other < 0 { return relu(other); }")},
		{name: "white space", now: small.edited("main.go", "float64(n.Hidden)*other + ", "float64(n.Hidden) * other+ ")},
		{name: "main", now: small.edited("main.go", `"before"`, `"after"`)},
		{name: "a function that is not reached", now: small.edited("main.go", "func helper() {}", "func helper() { print(1) }")},
		{name: "a variable that a local is called like", now: small.edited("main.go", "var other = 3", "var other = 4")},
		{name: "a variable that a field is called like", now: small.edited("main.go", "var Hidden = 7", "var Hidden = 8")},
		{name: "the other of two variables", now: small.edited("main.go", "0.01, 0.5", "0.01, 0.6")},
		{name: "another constant of a group", now: small.edited("main.go", "\tunused\n", "\tunused\n\tmore\n")},
		{name: "an init that assigns nothing", now: small.edited("main.go", `"hello"`, `"goodbye"`)},
		{name: "a file", now: small.edited("more.go", "return 1", "return 2")},
		{name: "an import more", now: small.edited("main.go", `"fmt"`, "\"fmt\"\n\t_ \"os\"")},
		{name: "order", now: small.edited("main.go", "func relu(x float64) float64 { return max(0, x) }\n", "").
			edited("more.go", "package main\n", "package main\n\nfunc relu(x float64) float64 { return max(0, x) }\n")},
		{name: "a test", now: small.edited("inner/inner_test.go", "4", "5")},
		{name: "a function of another package that is not reached", now: small.edited("inner/inner.go", "return 9", "return 8")},
		{name: "a file that is not built", now: small.edited("near/ignored_main.go", "{}", "{ print(1) }")},

		{name: "the literal", now: small.edited("main.go", "inner.Deep(1)", "inner.Deep(2)"), changes: "variable `run` changed"},
		{name: "a constant", now: small.edited("main.go", "width = 64", "width = 65"), changes: "constant `width` changed"},
		{name: "iota", now: small.edited("main.go", "\tfirst\n", "\tfirst\n\tbetween\n"), changes: "constant `second` changed"},
		{name: "a variable", now: small.edited("main.go", "0.01, 0.5", "0.02, 0.5"), changes: "variable `rate` changed"},
		{name: "a method", now: small.edited("main.go", "return relu(other)", "return other"), changes: "function `(*net).Layer` changed"},
		{name: "a helper", now: small.edited("main.go", "max(0, x)", "max(0.1, x)"), changes: "function `relu` changed"},
		{name: "a method of an embedded type", now: small.edited("main.go", "p.n += step", "p.n -= step"), changes: "function `(*part).grow` changed"},
		{name: "what that names", now: small.edited("main.go", "step = 2", "step = 3"), changes: "constant `step` changed"},
		{name: "a type", now: small.edited("main.go", "Hidden int", "Hidden int32"), changes: "type `net` changed"},
		{name: "a method more", now: small.edited("more.go", "package main\n", "package main\n\nfunc (n *net) Extra() {}\n"), changes: "function `(*net).Extra` is new"},
		{name: "an init that assigns", now: small.edited("main.go", `table["a"] = 1`, `table["a"] = 2`), changes: "function `init` changed"},
		{name: "what an import's name means", now: small.edited("main.go", "math/rand", "math/rand/v2"), changes: "function `(*net).Layer` changed"},
		{name: "an operator", now: small.edited("main.go", "*other + rand", "*other - rand"), changes: "function `(*net).Layer` changed"},
		{name: "a package of the module", now: small.edited("inner/inner.go", "factor = 3", "factor = 4"), changes: "variable `example.com/u/inner.factor` changed"},
		{name: "a replaced module", now: small.edited("near/near.go", "T{4}", "T{5}"), changes: "function `example.com/near.make` changed"},
		{name: "a method of a replaced module", now: small.edited("near/near.go", "return t.k", "return -t.k"), changes: "function `example.com/near.T.get` changed"},
		{name: "a module's version", now: small, far: "v1.3.0", changes: "module example.com/far was v1.2.0 and is v1.3.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.far == "" {
				c.far = "v1.2.0"
				if same := strings.Join(sortedValues(c.now), "\x00") == strings.Join(sortedValues(small), "\x00"); same && c.name != "another directory" {
					t.Fatal("the edit does not change the source")
				}
			}
			now, err := c.now.parts(t, c.far)
			if err != nil {
				t.Fatal(err)
			}
			changes := Code{By: Source, Parts: base}.Changes(Code{By: Source, Parts: now})
			if got := strings.Join(changes, "; "); c.changes == "" && got != "" || !strings.HasPrefix(got, c.changes) {
				t.Errorf("%q, want %q", got, c.changes)
			}
		})
	}
}

func sortedKeys[V any](m map[string]V) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func sortedValues(s sources) (out []string) {
	for _, k := range sortedKeys(s) {
		out = append(out, s[k])
	}
	return out
}

// Unreadable sources are reported.
func TestUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		now  sources
		want string
	}{
		"no directory":       {sources{"go.mod": small["go.mod"], "main.go": small["main.go"], "inner/inner.go": small["inner/inner.go"]}, "the directory of module example.com/near is not known"},
		"no package":         {small.edited("main.go", "example.com/u/inner", "example.com/u/gone"), errGone.Error()},
		"no such line":       {small.edited("main.go", "// ROOT", "").edited("more.go", "package main", "package main\n// ROOT"), "has no declaration at line"},
		"does not parse":     {small.edited("main.go", "var run =", "var run = ="), ""},
		"a package's clause": {small.edited("main.go", "package main", "package other\n\nfunc ("), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if parts, err := c.now.parts(t, "v1.2.0"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v, want %q", parts, err, c.want)
			}
		})
	}
}

// Code that is registered under a name is reached by the name.
func TestReachByName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "main.go")
	src := "package main\n\nvar run = call(\"model\")\n\nfunc call(string) int { return 1 }\n\nvar model = build()\n\nfunc build() int { return 2 }\n"
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProgram(&debug.BuildInfo{Path: "example.com/u", Main: debug.Module{Path: "example.com/u"}}, Options{Named: func(text string) []Root {
		if text == "model" {
			return []Root{root("main.init", path, 7)}
		}
		return nil
	}})
	p.notAfter = time.Now().Add(time.Hour)
	parts, err := p.reach([]Root{root("main.init", path, 3)})
	if want := []string{"function `build`", "function `call`", "variable `model`", "variable `run`"}; err != nil || !slices.Equal(sortedKeys(parts), want) {
		t.Errorf("%v, %v; want %v", sortedKeys(parts), err, want)
	}
}

// Paths written by -trimpath are not files.
func TestTrimmedPaths(t *testing.T) {
	p := newProgram(&debug.BuildInfo{Path: "example.com/u", Main: debug.Module{Path: "example.com/u"}}, Options{})
	if parts, err := p.reach([]Root{root("main.init.func1", "example.com/u/main.go", 3)}); err == nil || !strings.Contains(err.Error(), "-trimpath") {
		t.Errorf("%v, %v", parts, err)
	}
}

// A file that is newer than the executable is not the source of the executable.
func TestNewer(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "main.go")
	if err := os.WriteFile(path, []byte("package main\n\nvar x = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sourceOf(dir, "main", false, time.Now().Add(-time.Hour)); err == nil || !strings.Contains(err.Error(), "main.go is newer than the program") {
		t.Errorf("got %v", err)
	}
	if _, err := sourceOf(dir, "main", false, time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
}

func TestChangesAcrossKinds(t *testing.T) {
	source := func(rev string) Code {
		return Code{By: Source, Parts: map[string]string{"function `a`": "1"}, Revision: rev}
	}
	for _, c := range []struct {
		name     string
		was, now Code
		want     string // "" if there is none
	}{
		{"library", Code{By: Library}, Code{By: Library}, ""},
		{"same revision, source gone", source("git 1"), Code{By: Revision, Revision: "git 1"}, ""},
		{"another revision, source gone", source("git 1"), Code{By: Revision, Revision: "git 2"}, "its revision was git 1 and is git 2"},
		{"another revision, same source", source("git 1"), source("git 2"), ""},
		{"same executable", Code{By: Executable, Executable: "a"}, Code{By: Executable, Executable: "a"}, ""},
		{"another executable", Code{By: Executable, Executable: "a"}, Code{By: Executable, Executable: "b", Why: "x.go is newer than the program"}, "built anew, and x.go is newer"},
		{"no executable", Code{By: Executable}, Code{By: Executable}, "built anew"},
		{"source and executable", source(""), Code{By: Executable, Executable: "a", Why: "main.go is newer than the program"}, "by the source and now by the executable, so the two cannot be compared: main.go is newer"},
		{"library and source", Code{By: Library}, source(""), "by the library's version and now by the source"},
	} {
		got := strings.Join(c.was.Changes(c.now), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestFunctionNames(t *testing.T) {
	for name, want := range map[string]string{
		"main.init.func1": "main", "gopkg.in/yaml%2ev3.(*Node).Encode": "gopkg.in/yaml.v3", "main.f[go.shape.struct { a/b.T }].func1": "main",
		"example.com/u/inner.Deep": "example.com/u/inner", "github.com/a/b_test.init": "github.com/a/b_test",
	} {
		if got := packageOf(name); got != want {
			t.Errorf("%s belongs to %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string][2]string{
		"main.(*trainer).Run-fm": {"trainer", "Run"}, "example.com/u.trainer.Run-fm": {"trainer", "Run"}, "main.(*box[...]).Run-fm": {"box", "Run"},
	} {
		if typ, method, ok := (Root{Function: name}).method(); !ok || typ != want[0] || method != want[1] {
			t.Errorf("%s is %s.%s, %v", name, typ, method, ok)
		}
	}
	if _, _, ok := (Root{Function: "main.run"}).method(); ok {
		t.Error("a function counts as a method value")
	}
}

func TestImportedNames(t *testing.T) {
	for path, names := range map[string]string{
		"math/rand": "rand", "math/rand/v2": "rand", "gopkg.in/yaml.v3": "yaml", "github.com/x/go-foo": "foo", "github.com/x/foo-go": "foo",
		"github.com/x/a-b": "ab", "example.com/v2": "example.com",
	} {
		if !mayBeNamed(path, names) {
			t.Errorf("a package with the path %s may be named %s", path, names)
		}
	}
	if mayBeNamed("math/rand", "cryptorand") {
		t.Error("mayBeNamed accepts any name")
	}
}

// A checkout of the library has the library's own packages, and those of a user who works in it.
func TestOfLibrary(t *testing.T) {
	p := newProgram(&debug.BuildInfo{Path: "example.com/lib/tries/one", Main: debug.Module{Path: "example.com/lib"}},
		Options{Library: "example.com/lib", Own: func(pkg string) bool { return pkg == "core" || pkg == "core/cmd" }})
	for _, c := range []struct {
		pkg, file string
		library   bool
	}{
		{"example.com/lib/core", "core.go", true},
		{"example.com/lib/core", "core_test.go", false},
		{"example.com/lib/core/cmd", "main.go", true},
		{"example.com/lib/core/mine", "mine.go", false},
		{"example.com/lib/tries/models", "models.go", false},
		{"main", "main.go", false},
		{"example.com/libother", "x.go", false},
	} {
		if got := p.ofLibrary(c.pkg, c.file); got != c.library {
			t.Errorf("%s of %s is the library's: %v, want %v", c.file, c.pkg, got, c.library)
		}
	}
}
