package doctest

import (
	"cmp"
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

// unit is a page in the form that is compiled.
type unit struct {
	fset    *token.FileSet
	imports map[string]string // import path by name: imports of the pieces, and Packages
	decls   []*decls
	place   map[string]place // of each declared name
	bodies  []Piece          // statements
}

// decls holds the declarations of a piece.
type decls struct {
	Piece
	text []byte
}

// place is the position of a declaration.
type place struct {
	in       *decls
	from, to int
}

const prefix = "package p;" // precedes a piece's text, on its first line

func newUnit() *unit {
	return &unit{fset: token.NewFileSet(), imports: maps.Clone(Packages), place: map[string]place{}}
}

// Check type-checks the pieces of one page and returns all errors.
func Check(pieces []Piece, imp types.Importer) error {
	u := newUnit()
	var spans []Piece
	for _, p := range pieces {
		if _, err := parser.ParseExpr(p.Text); p.Span && err == nil {
			spans = append(spans, p)
			continue
		}
		if err := u.add(p); err != nil {
			return err
		}
	}
	// Every file has all imports, except names that the page declares itself.
	var head strings.Builder
	head.WriteString(prefix)
	for _, name := range slices.Sorted(maps.Keys(u.imports)) {
		if u.place[name].in == nil {
			fmt.Fprintf(&head, "import %s %q;", name, u.imports[name])
		}
	}
	var wrong []error
	var files []*ast.File
	add := func(p Piece) {
		file, err := parser.ParseFile(u.fset, "", fmt.Sprintf("%s\n//line %s:%d\n%s\n", head.String(), p.File, p.Line, p.Text), 0)
		if err != nil {
			wrong = append(wrong, err)
			return
		}
		files = append(files, file)
	}
	add(Piece{File: "context", Line: 1, Text: contextSource(u)})
	for _, d := range u.decls {
		add(Piece{File: d.File, Line: d.Line, Text: string(d.text)})
	}
	for _, p := range u.bodies {
		// The body begins on the line of its first statement.
		p.Text = "func _() {" + p.Text + "\n" + uses(p.Text) + "}"
		add(p)
	}
	config := types.Config{Importer: imp, Error: func(err error) {
		if text := err.Error(); !strings.Contains(text, " imported ") || !strings.HasSuffix(text, "and not used") {
			wrong = append(wrong, err)
		}
	}}
	pkg, _ := config.Check("p", u.fset, files, nil) // config.Error has recorded the errors
	// A sentence refers to the variables of Context, or to those of some block of the page's code.
	places := []token.Pos{files[0].End() - 1}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if b, ok := n.(*ast.BlockStmt); ok {
				places = append(places, b.Rbrace)
			}
			return true
		})
	}
	for _, p := range spans {
		expr, _ := parser.ParseExpr(p.Text)
		var first error
		if !slices.ContainsFunc(places, func(at token.Pos) bool {
			err := types.CheckExpr(u.fset, pkg, at, expr, nil)
			first = cmp.Or(first, err)
			return err == nil
		}) {
			var e types.Error
			if errors.As(first, &e) {
				first = errors.New(e.Msg)
			}
			wrong = append(wrong, fmt.Errorf("%s:%d: `%s`: %w", p.File, p.Line, p.Text, first))
		}
	}
	return errors.Join(wrong...)
}

// split splits a cell at its line "%%", after which main's statements follow, and blanks the lines
// for the kernel or the shell.
func split(p Piece) []Piece {
	lines := strings.Split(p.Text, "\n")
	at := len(lines)
	for i, line := range lines {
		if at == len(lines) && (strings.HasPrefix(line, "%%") || strings.HasPrefix(line, "%main")) {
			at = i
		}
		if strings.HasPrefix(line, "%") || strings.HasPrefix(line, "!") {
			lines[i] = ""
		}
	}
	head, tail := p, p
	head.Text = strings.Join(lines[:at], "\n")
	tail.Text, tail.Line = strings.Join(lines[at:], "\n"), p.Line+at
	return slices.DeleteFunc([]Piece{head, tail}, func(p Piece) bool { return strings.TrimSpace(p.Text) == "" })
}

// contextSource declares the variables of Context that the page neither declares nor imports.
func contextSource(u *unit) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(Context)) {
		if _, imported := u.imports[name]; !imported && u.place[name].in == nil {
			fmt.Fprintf(&b, "var %s %s\n", name, Context[name])
		}
	}
	return b.String()
}

// add parses a piece. It removes the imports from its declarations, and blanks earlier declarations
// of the same names.
func (u *unit) add(p Piece) error {
	for _, part := range split(p) {
		if err := u.addPart(part); err != nil {
			return err
		}
	}
	return nil
}

func (u *unit) addPart(p Piece) error {
	file, err := parser.ParseFile(u.fset, "", prefix+p.Text, 0)
	if err != nil {
		// Report the error of parsing as statements, unless the text contains functions.
		if _, err2 := parser.ParseFile(u.fset, "", prefix+"func _(){"+p.Text+"\n}", 0); err2 != nil {
			if !strings.Contains(p.Text, "func ") {
				err = err2
			}
			return fmt.Errorf("%s:%d: it is no Go: %w\n%s", p.File, p.Line, err, p.Text)
		}
		u.bodies = append(u.bodies, p)
		return nil
	}
	d := &decls{p, []byte(p.Text)}
	u.decls = append(u.decls, d)
	for _, decl := range file.Decls {
		at := place{d, u.fset.Position(decl.Pos()).Offset - len(prefix), u.fset.Position(decl.End()).Offset - len(prefix)}
		if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			for _, s := range g.Specs {
				if err := u.importSpec(s.(*ast.ImportSpec)); err != nil {
					return fmt.Errorf("%s:%d: %w", p.File, p.Line, err)
				}
			}
			at.blank()
		}
		for _, name := range declared(decl) {
			if old := u.place[name]; old.in != nil {
				old.blank()
			}
			u.place[name] = at
		}
	}
	return nil
}

// blank overwrites a declaration with spaces; line numbers do not change.
func (p place) blank() {
	for i := p.from; i < p.to; i++ {
		if p.in.text[i] != '\n' {
			p.in.text[i] = ' '
		}
	}
}

func (u *unit) importSpec(s *ast.ImportSpec) error {
	path := strings.Trim(s.Path.Value, `"`)
	name := path[strings.LastIndex(path, "/")+1:]
	if s.Name != nil {
		name = s.Name.Name
	}
	if old, ok := u.imports[name]; ok && old != path {
		return fmt.Errorf("the import %s is %s here and %s elsewhere", name, path, old)
	}
	u.imports[name] = path
	return nil
}

// declared returns the names that a declaration declares at package level; a method's name is
// prefixed with its type.
func declared(d ast.Decl) []string {
	var names []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil && len(d.Recv.List) == 1 {
			name = strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*") + "." + name
		}
		names = append(names, name)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "_" || n == "init" || n == "main" })
}

// uses returns a use of each name that the outermost statements define, because a block that shows
// how to get a value need not use it.
func uses(body string) string {
	file, err := parser.ParseFile(token.NewFileSet(), "", prefix+"func _(){"+body+"\n}", 0)
	if err != nil {
		return ""
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
			if g := s.Decl.(*ast.GenDecl); g.Tok == token.VAR {
				names = append(names, declared(g)...)
			}
		}
	}
	return strings.Repeat("_,", max(0, len(names)-1)) + strings.Repeat("_=", min(1, len(names))) + strings.Join(names, ",")
}
