package doctest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// Part is a piece as a compiler takes it.
type Part struct {
	Piece
	Decls bool     // of a package; else statements
	Free  []string // names that the part uses and does not declare
}

// Unit is the parts of a page and what they import.
type Unit struct {
	Parts   []Part
	Imports map[string]string // path by name: those of the pieces, and Packages
}

// NewUnit sorts the pieces' lines into declarations and statements. The error is that of the first
// piece which is not Go.
func NewUnit(pieces []Piece) (*Unit, error) {
	u := &Unit{Imports: maps.Clone(Packages)}
	last := map[string]int{} // where a name was declared last: the part's index
	for _, p := range pieces {
		texts := []Piece{p}
		if p.Kind == Block {
			texts = split(p)
		}
		for _, t := range texts {
			part, names, err := u.part(t)
			if err != nil {
				return nil, err
			}
			if part == nil {
				continue
			}
			for _, name := range names {
				if old, ok := last[name]; ok {
					u.Parts[old].Text = without(u.Parts[old].Text, name)
				}
				last[name] = len(u.Parts)
			}
			u.Parts = append(u.Parts, *part)
		}
	}
	return u, nil
}

// split cuts a cell at its line "%%", behind which are main's statements, and blanks the lines that
// speak to the kernel or the shell.
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
	return []Piece{head, tail}
}

// part parses a text and takes its imports out; names are those it declares for the others. It is nil
// where there is nothing.
func (u *Unit) part(p Piece) (*Part, []string, error) {
	if strings.TrimSpace(p.Text) == "" {
		return nil, nil, nil
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", "package p;"+p.Text, parser.ParseComments)
	if err == nil {
		var names []string
		text := []byte(p.Text)
		for _, d := range file.Decls {
			names = append(names, declared(d)...)
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				for _, s := range g.Specs {
					if err := u.importSpec(s.(*ast.ImportSpec)); err != nil {
						return nil, nil, fmt.Errorf("%s:%d: %w", p.File, p.Line, err)
					}
				}
				blank(text, fset, g)
			}
		}
		p.Text = string(text)
		return &Part{p, true, free(file)}, names, nil
	}
	// The statements' error is the one to show, unless the text begins as declarations do.
	file, err2 := parser.ParseFile(fset, "", "package p;func _(){"+p.Text+"\n}", 0)
	if err2 != nil {
		if !strings.Contains(p.Text, "func ") {
			err = err2
		}
		return nil, nil, fmt.Errorf("%s:%d: it is no Go: %w\n%s", p.File, p.Line, err, p.Text)
	}
	return &Part{p, false, free(file)}, nil, nil
}

// blank overwrites a declaration with spaces; lines stay where they are.
func blank(text []byte, fset *token.FileSet, d ast.Node) {
	for i := offset(fset, d.Pos()); i < offset(fset, d.End()); i++ {
		if text[i] != '\n' {
			text[i] = ' '
		}
	}
}

func offset(fset *token.FileSet, p token.Pos) int {
	return fset.Position(p).Offset - len("package p;")
}

// without is declarations without those of a name.
func without(text, name string) string {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", "package p;"+text, 0)
	if err != nil {
		return text
	}
	out := []byte(text)
	for _, d := range file.Decls {
		if slices.Contains(declared(d), name) {
			blank(out, fset, d)
		}
	}
	return string(out)
}

// declared are the names that a declaration gives to a package; a method's has its type in front.
func declared(d ast.Decl) []string {
	var names []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil && len(d.Recv.List) == 1 {
			typ := d.Recv.List[0].Type
			if star, ok := typ.(*ast.StarExpr); ok {
				typ = star.X
			}
			name = types.ExprString(typ) + "." + name
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

// free are the names that a file uses and does not declare.
func free(file *ast.File) []string {
	var names []string
	for _, id := range file.Unresolved {
		names = append(names, id.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (u *Unit) importSpec(s *ast.ImportSpec) error {
	path := strings.Trim(s.Path.Value, `"`)
	name := path[strings.LastIndex(path, "/")+1:]
	if s.Name != nil {
		name = s.Name.Name
	}
	if old, ok := u.Imports[name]; ok && old != path {
		return fmt.Errorf("the import %s is %s here and %s elsewhere", name, path, old)
	}
	u.Imports[name] = path
	return nil
}

// names are what the unit declares.
func (u *Unit) names() map[string]bool {
	all := map[string]bool{}
	for _, p := range u.Parts {
		if !p.Decls {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p;"+p.Text, 0)
		if err != nil {
			continue // it parsed when the part was made
		}
		for _, d := range file.Decls {
			for _, n := range declared(d) {
				all[n] = true
			}
		}
	}
	return all
}
