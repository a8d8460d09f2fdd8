package doctest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// Check type-checks the unit and returns all that is wrong.
func (u *Unit) Check(imp types.Importer) error {
	fset := token.NewFileSet()
	var wrong []error
	var files []*ast.File
	add := func(name, text string) {
		file, err := parser.ParseFile(fset, name, text, 0)
		if err != nil {
			wrong = append(wrong, err)
			return
		}
		files = append(files, file)
	}
	add("context.go", u.ContextSource("p"))
	var spans []Part
	for _, p := range u.Parts {
		if _, err := parser.ParseExpr(p.Text); p.Kind == Span && err == nil {
			spans = append(spans, p)
			continue
		}
		add("", u.Source(p, "p", "_"))
	}
	// Expressions are looked at where every package can be named.
	var all strings.Builder
	all.WriteString("package p\n")
	own := u.names()
	for _, name := range slices.Sorted(maps.Keys(u.Imports)) {
		if !own[name] {
			fmt.Fprintf(&all, "import %s %q\n", name, u.Imports[name])
		}
	}
	all.WriteString("func _() {}\n")
	add("all.go", all.String())
	config := types.Config{Importer: imp, Error: func(err error) {
		if e := (types.Error{}); !errors.As(err, &e) || fset.Position(e.Pos).Filename != "all.go" { // its imports are unused
			wrong = append(wrong, err)
		}
	}}
	pkg, _ := config.Check("p", fset, files, nil) // Error has seen what is wrong
	// A sentence means the variables of Context, or those of some block of the page's code.
	places := []token.Pos{files[len(files)-1].End() - 1}
	for _, file := range files[:len(files)-1] {
		ast.Inspect(file, func(n ast.Node) bool {
			if b, ok := n.(*ast.BlockStmt); ok {
				places = append(places, b.Rbrace)
			}
			return true
		})
	}
	for _, p := range spans {
		expr, _ := parser.ParseExpr(p.Text)
		var err error
		for _, place := range places {
			e := types.CheckExpr(fset, pkg, place, expr, nil)
			if err == nil || e == nil {
				err = e
			}
			if e == nil {
				break
			}
		}
		if err != nil {
			var e types.Error
			if errors.As(err, &e) {
				err = errors.New(e.Msg)
			}
			wrong = append(wrong, fmt.Errorf("%s:%d: `%s`: %w", p.File, p.Line, p.Text, err))
		}
	}
	return errors.Join(wrong...)
}
