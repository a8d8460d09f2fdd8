package doctest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// Source is the part as a file of a package: its imports, and its text, in a function of the given
// name where it is statements. What these define and do not use is no error.
func (u *Unit) Source(p Part, pkg, function string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\n", pkg)
	own := u.names()
	for _, name := range p.Free {
		if path, ok := u.Imports[name]; ok && !own[name] {
			fmt.Fprintf(&b, "import %s %q\n", name, path)
		}
	}
	if p.Decls {
		fmt.Fprintf(&b, "//line %s:%d\n%s\n", p.File, p.Line, p.Text)
		return b.String()
	}
	text := p.Text
	if _, err := parser.ParseExpr(text); p.Kind == Span && err == nil && !strings.HasSuffix(text, ")") {
		text = "_ = " + text // a value alone is no statement
	}
	fmt.Fprintf(&b, "func %s() {\n//line %s:%d\n%s\n", function, p.File, p.Line, text)
	for _, name := range defined(text) {
		fmt.Fprintf(&b, "_ = %s\n", name)
	}
	b.WriteString("}\n")
	return b.String()
}

// defined are the names that the outermost statements define.
func defined(text string) []string {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p;func _(){"+text+"\n}", 0)
	if err != nil {
		return nil
	}
	var names []string
	for _, s := range file.Decls[0].(*ast.FuncDecl).Body.List {
		switch s := s.(type) {
		case *ast.AssignStmt:
			for _, e := range s.Lhs {
				if id, ok := e.(*ast.Ident); ok && s.Tok == token.DEFINE && id.Name != "_" {
					names = append(names, id.Name)
				}
			}
		case *ast.DeclStmt:
			if g, ok := s.Decl.(*ast.GenDecl); ok && g.Tok == token.VAR {
				names = append(names, declared(g)...)
			}
		}
	}
	return names
}

// ContextSource declares the variables of Context that the unit does not declare itself.
func (u *Unit) ContextSource(pkg string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\nimport (\n", pkg)
	for _, name := range []string{"context", "gnb", "nn", "runs"} {
		fmt.Fprintf(&b, "\t%s %q\n", name, Packages[name])
	}
	b.WriteString(")\n\n// Each import is used.\nvar (\n\t_ context.Context\n\t_ gnb.ModelConfig\n\t_ nn.ModelConfig\n\t_ runs.Run\n)\n\n")
	own := u.names()
	for _, name := range slices.Sorted(maps.Keys(Context)) {
		if !own[name] {
			fmt.Fprintf(&b, "var %s %s\n", name, Context[name])
		}
	}
	return b.String()
}
