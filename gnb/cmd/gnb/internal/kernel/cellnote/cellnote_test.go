package cellnote

import (
	"strings"
	"testing"
)

var packages = []string{"kg", "links", "runs", "scaling", "sweep"}

// A variable that an earlier cell declared among its statements is explained, any other name is not.
func TestUndefinedVariableOfACell(t *testing.T) {
	Ran([]byte("package main\nfunc main() {\n\tds, err := load()\n\tvar n, _ int\n\tif x := 1; x > 0 {\n\t\tinner := 2\n\t\t_ = inner\n\t}\n\tn = 2\n}\nfunc f() { hidden := 1 }\n"), 3)
	Ran([]byte("package main\nfunc main() { n := 3 }\n"), 5)
	Ran([]byte("package main\nfunc main() {"), 6)
	for name, cell := range map[string]string{"ds": "[3]", "err": "[3]", "n": "[5]", "inner": "", "hidden": "", "x": "", "other": ""} {
		got := Explain("# gonb\n./main.go:7:14: undefined: "+name+"\n", packages)
		if (got == "") != (cell == "") || !strings.Contains(got, cell) || cell != "" && !strings.HasPrefix(got, name+" ") {
			t.Errorf("undefined: %s is explained by %q", name, got)
		}
	}
	if got := Explain("./main.go:7:14: undefined: ds.X\n./main.go:8:1: undefined: runs.N\n", packages); got != "" {
		t.Errorf("fields are explained by %q", got)
	}
}

// An import that looks like one of GraphNB's packages is corrected; others are left alone.
func TestMisspeltImports(t *testing.T) {
	for text, want := range map[string]string{
		"main.go:3:8: cannot find module providing package github.com/graphnb/graphnb/gnb/linsk":                                   "gnb/links",
		"main.go:3:8: no required module provides package github.com/graphnb/graphnb/gnb/linsk; to add it:":                        "gnb/links",
		"gonb imports\n\tgithub.com/grapnhb/graphnb/gnb: cannot find module providing package github.com/grapnhb/graphnb/gnb":      "graphnb/gnb\"",
		"main.go:3:8: package graphnb/links is not in std (/usr/local/go/src/graphnb/links)":                                       "gnb/links",
		"module github.com/graphnb/graphnb@latest found (v0), but does not contain package github.com/graphnb/graphnb/gnb/quantum": "kg, links",
		"cannot find module providing package example.com/other":                                                                   "",
		"no required module provides package github.com/graphnb/graphnb/gnb/sweeps; to add it:\n\tgo get x":                        "gnb/sweep",
	} {
		if got := Explain(text, packages); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q is explained by %q, want %q", text, got, want)
		}
	}
}

// Package variables that statements set and workers' code reads are found through functions and methods.
func TestVariablesSetTooLate(t *testing.T) {
	const head = "package main\nimport \"github.com/graphnb/graphnb/gnb\"\nvar factor = 1.0\n"
	for name, c := range map[string]struct{ src, want string }{
		"in a literal":            {"var Mine = gnb.Register(func() float64 { return factor })\nfunc main() { factor = 2 }", "Mine"},
		"in a function":           {"var Mine = gnb.Register(build)\nfunc build() float64 { return scale() }\nfunc scale() float64 { return 2 * factor }\nfunc main() { factor *= 2 }", "Mine"},
		"in a method":             {"type L struct{}\nfunc (l *L) F() float64 { return factor }\nvar Mine = gnb.Register(func() any { return &L{} })\nfunc main() { factor++ }", "Mine"},
		"a field":                 {"var o struct{ A int }\nvar Mine = gnb.Register(func() int { return o.A })\nfunc main() { o.A = 1 }", "o,"},
		"recursion":               {"var Mine = gnb.Register(f)\nfunc f() float64 { g(); return factor }\nfunc g() { f() }\nfunc main() { factor = 2 }", "Mine"},
		"not set":                 {"var Mine = gnb.Register(func() float64 { return factor })\nfunc main() { println(factor) }", ""},
		"not read":                {"var Mine = gnb.Register(func() float64 { return 1 })\nfunc main() { factor = 2 }", ""},
		"a local of main":         {"var Mine = gnb.Register(func() float64 { return factor })\nfunc main() { factor := 1.0; factor = 2; _ = factor }", ""},
		"a local of the function": {"var Mine = gnb.Register(func(factor float64) float64 { return factor })\nfunc main() { factor = 2 }", ""},
		"a field of that name":    {"type T struct{ factor int }\nvar Mine = gnb.Register(func(t T) int { return t.factor })\nfunc main() { factor = 2 }", ""},
		"another package":         {"var Mine = strings.Map(func() float64 { return factor })\nfunc main() { factor = 2 }", ""},
		"only main's helper":      {"func show() { println(factor) }\nfunc main() { factor = 2; show() }", ""},
		"no program":              {"func main( {", ""},
	} {
		if got := Late([]byte(head + c.src + "\n")); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzCell(f *testing.F) {
	f.Add("package main\nvar a = gnb.X(func() int { return a.b[0] })\nfunc main() { for a, b = range c {}; switch x := y.(type) {}; (*a).b[1]++ }")
	f.Fuzz(func(_ *testing.T, src string) {
		Late([]byte(src))
		Explain(src, packages)
	})
}
