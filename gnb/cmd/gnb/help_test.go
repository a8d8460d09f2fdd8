package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A flag's help is a noun phrase of at most ten words, without a full stop.
func TestFlagHelpIsShort(t *testing.T) {
	here, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("internal/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	fset := token.NewFileSet()
	for _, name := range append(here, below...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || len(call.Args) < 3 {
				return true
			}
			if of, ok := fun.X.(*ast.Ident); !ok || of.Name != "fs" {
				return true
			}
			last, ok := call.Args[len(call.Args)-1].(*ast.BasicLit)
			if !ok || last.Kind != token.STRING {
				return true
			}
			help, err := strconv.Unquote(last.Value)
			if err != nil {
				t.Fatal(err)
			}
			checked++
			if words := len(strings.Fields(help)); words == 0 || words > 10 || strings.HasSuffix(help, ".") {
				t.Errorf("%v: the help %q has %d words; a flag's help has 1 to 10, without a full stop", fset.Position(last.Pos()), help, words)
			}
			return true
		})
	}
	if checked < 200 {
		t.Errorf("only %d flags were found", checked)
	}
}
