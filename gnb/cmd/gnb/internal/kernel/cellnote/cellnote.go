// Package cellnote explains what a Go compiler cannot know of a notebook: variables of earlier cells, misspelt packages of
// GraphNB, and package variables that a cell sets too late for its workers. "gnb install" compiles it into GoNB, so it
// imports nothing but the standard library.
package cellnote

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// module is the path of the library's module.
const module = "github.com/graphnb/graphnb"

var (
	mu    sync.Mutex
	cells = map[string]int{} // of variables declared among statements, the number of the last cell that did
)

// Ran records the variables that a cell's program, which has compiled, declares among its statements.
func Ran(src []byte, cell int) {
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	for _, d := range f.Decls {
		if main, ok := d.(*ast.FuncDecl); ok && main.Recv == nil && main.Name.Name == "main" && main.Body != nil {
			for _, name := range declared(main.Body) {
				cells[name] = cell
			}
		}
	}
}

// declared returns the names that the statements of a block declare, without those of blocks in it.
func declared(b *ast.BlockStmt) []string {
	var names []string
	add := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok && id.Name != "_" {
			names = append(names, id.Name)
		}
	}
	for _, s := range b.List {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				for _, e := range s.Lhs {
					add(e)
				}
			}
		case *ast.DeclStmt:
			if g, ok := s.Decl.(*ast.GenDecl); ok {
				for _, spec := range g.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok {
						for _, id := range v.Names {
							add(id)
						}
					}
				}
			}
		}
	}
	return names
}

var (
	undefined = regexp.MustCompile(`(?m): undefined: (\w+)$`)
	notFound  = regexp.MustCompile(`cannot find module providing package ([\w./-]+)|no required module provides package ([\w./-]+)|does not contain package ([\w./-]+)|package ([\w./-]+) is not in std|([\w.-]+/[\w./-]+): (?:cannot find|module|invalid|unrecognized|reading|git ls-remote)`)
)

// Explain returns what the go command's errors for a cell leave out, a line for each, or "". packages are the names of the
// packages below gnb.
func Explain(output string, packages []string) string {
	var lines []string
	mu.Lock()
	for _, m := range undefined.FindAllStringSubmatch(output, -1) {
		if cell, ok := cells[m[1]]; ok {
			lines = append(lines, fmt.Sprintf("%[1]s was a variable among the statements of cell [%[2]d], and ended with that cell: each cell is a program of its own. "+
				"Make %[1]s again in this cell, or declare it above the line with %%%% of a cell (var %[1]s = …): such a declaration is part of all later cells", m[1], cell))
		}
	}
	mu.Unlock()
	for _, m := range notFound.FindAllStringSubmatch(output, -1) {
		name := strings.TrimRight(strings.Join(m[1:], ""), ".:")
		if meant := nearest(name, packages); meant != "" {
			lines = append(lines, fmt.Sprintf("%s is not a package of GraphNB; did you mean %q?", name, meant))
		} else if name == module || strings.HasPrefix(name, module+"/") {
			lines = append(lines, fmt.Sprintf("%s is not a package of GraphNB; cells import %s/gnb, and below it %s", name, module, strings.Join(packages, ", ")))
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// nearest returns the package of the library whose path is most like name, or "".
func nearest(name string, packages []string) string {
	best, most := "", 4 // at most three letters differ
	for _, p := range append([]string{""}, packages...) {
		p = path.Join(module, "gnb", p)
		if d := distance(name, p); d > 0 && d < most {
			best, most = p, d
		}
	}
	// "graphnb/links" lacks a part of the path.
	if base := path.Base(name); best == "" && strings.Contains(name, "graphnb") && slices.Contains(packages, base) {
		best = path.Join(module, "gnb", base)
		if best == name {
			return ""
		}
	}
	return best
}

// distance is the number of letters to insert, remove, replace or swap with the next.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Late returns a warning for each package variable that the statements of a cell's program set and that code of workers
// reads; "" if there is none. A worker is the same program, started again, and runs none of the cell's statements: it
// has the declared value. Its code is what package-level declarations refer to that call package gnb or one below it,
// such as "var Mine = gnb.Register(…)", directly or through functions and methods.
func Late(src []byte) string {
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return ""
	}
	ours := map[string]bool{}
	for _, i := range f.Imports {
		p := strings.Trim(i.Path.Value, "\"`")
		if p == module || strings.HasPrefix(p, module+"/") {
			name := path.Base(p)
			if i.Name != nil {
				name = i.Name.Name
			}
			ours[name] = true
		}
	}
	variables := map[string]bool{}
	bodies := map[string][]ast.Node{} // of functions, and of the methods of types
	var roots []ast.Node
	rootOf := map[ast.Node]string{}
	var main *ast.FuncDecl
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case d.Body == nil:
			case d.Recv != nil && len(d.Recv.List) == 1:
				if t := typeName(d.Recv.List[0].Type); t != "" {
					bodies[t] = append(bodies[t], d)
				}
			case d.Name.Name == "main":
				main = d
			default:
				bodies[d.Name.Name] = append(bodies[d.Name.Name], d)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok || d.Tok != token.VAR {
					continue
				}
				for _, id := range v.Names {
					variables[id.Name] = true
				}
				for _, e := range v.Values {
					if calls(e, ours) {
						roots = append(roots, e)
						rootOf[e] = v.Names[0].Name
					}
				}
			}
		}
	}
	if main == nil {
		return ""
	}
	set := assigned(main, variables)
	if len(set) == 0 {
		return ""
	}
	read := map[string]string{} // of variables, the declaration whose code reads them
	for _, r := range roots {
		seen := map[string]bool{}
		var visit func(n ast.Node)
		visit = func(n ast.Node) {
			hidden := locals(n)
			var look func(n ast.Node) bool
			look = func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					ast.Inspect(n.X, look) // n.Sel is the name of a field or method
					return false
				case *ast.Ident:
					if hidden[n.Name] {
						return true
					}
					if variables[n.Name] && read[n.Name] == "" {
						read[n.Name] = rootOf[r]
					}
					if bodies[n.Name] != nil && !seen[n.Name] {
						seen[n.Name] = true
						for _, b := range bodies[n.Name] {
							visit(b)
						}
					}
				}
				return true
			}
			ast.Inspect(n, look)
		}
		visit(r)
	}
	var lines []string
	for _, name := range set {
		if by := read[name]; by != "" && by != name {
			lines = append(lines, fmt.Sprintf("warning: this cell's statements set %[1]s, which the code of %[2]s reads. Workers run none of the statements, so %[1]s has its declared value in them: "+
				"declare %[1]s with the value that it should have, or make it an option of %[2]s", name, by))
		}
	}
	return strings.Join(lines, "\n")
}

// typeName returns the name of a receiver's type.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// calls reports whether an expression calls a function of the packages.
func calls(e ast.Expr, packages map[string]bool) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok && packages[id.Name] {
				found = true
			}
		}
		return !found
	})
	return found
}

// locals returns the names that a function declares anywhere in it: a use of them is not taken for that of a package
// variable.
func locals(n ast.Node) map[string]bool {
	names := map[string]bool{}
	fields := func(l *ast.FieldList) {
		if l != nil {
			for _, f := range l.List {
				for _, id := range f.Names {
					names[id.Name] = true
				}
			}
		}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			for _, name := range declared(n) {
				names[name] = true
			}
		case *ast.FuncDecl:
			fields(n.Recv)
		case *ast.FuncType:
			fields(n.Params)
			fields(n.Results)
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if id, ok := e.(*ast.Ident); ok {
						names[id.Name] = true
					}
				}
			}
		case *ast.IfStmt:
			initial(names, n.Init)
		case *ast.ForStmt:
			initial(names, n.Init)
		case *ast.SwitchStmt:
			initial(names, n.Init)
		case *ast.TypeSwitchStmt:
			initial(names, n.Init)
			initial(names, n.Assign)
		}
		return true
	})
	return names
}

// initial adds the names that the first statement of an if, for or switch declares.
func initial(names map[string]bool, s ast.Stmt) {
	if s != nil {
		for _, name := range declared(&ast.BlockStmt{List: []ast.Stmt{s}}) {
			names[name] = true
		}
	}
}

// assigned returns the package variables that a function assigns to, in order, without names that it declares itself.
func assigned(f *ast.FuncDecl, variables map[string]bool) []string {
	hidden := locals(f)
	var names []string
	add := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.ParenExpr:
				e = x.X
			case *ast.SelectorExpr: // a field of the variable
				e = x.X
			case *ast.IndexExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.Ident:
				if variables[x.Name] && !hidden[x.Name] && !slices.Contains(names, x.Name) {
					names = append(names, x.Name)
				}
				return
			default:
				return
			}
		}
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					add(e)
				}
			}
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				add(n.Key)
				add(n.Value)
			}
		}
		return true
	})
	return names
}
