package codeid

import "go/ast"

// named holds the names that a declaration uses: package-level names of its own package, and names
// of imported packages.
type named struct {
	own   map[string]bool
	other map[foreign]bool
}

// foreign is a name of another package.
type foreign struct {
	imported imported
	name     string
}

// names collects the names that a declaration uses. It leaves out names of local variables, fields,
// methods and labels.
func (d *decl) names() named {
	v := &namer{d: d, file: d.file, out: named{map[string]bool{}, map[foreign]bool{}}}
	for _, n := range d.nodes {
		v.walk(n)
	}
	return v.out
}

type namer struct {
	d    *decl
	file *file
	out  named
}

func (v *namer) walk(n ast.Node) {
	if n == nil {
		return
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CommentGroup:
			return false
		case *ast.Field: // names of fields, methods and parameters
			v.walk(n.Type)
			return false
		case *ast.LabeledStmt:
			v.walk(n.Stmt)
			return false
		case *ast.BranchStmt:
			return false
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); !ok || !v.imported(id, n.Sel.Name) {
				v.walk(n.X)
			}
			return false
		case *ast.CompositeLit:
			v.literal(n, n.Type)
			return false
		case *ast.Ident:
			v.ident(n)
		}
		return true
	})
}

// ident records a name, if it is a package-level name.
func (v *namer) ident(id *ast.Ident) {
	if id.Name == "_" || v.local(id) {
		return
	}
	v.out.own[id.Name] = true
	if len(v.file.pkg.decls[id.Name]) == 0 && !predeclared[id.Name] {
		for _, im := range v.file.imports {
			if im.name == "." {
				v.out.other[foreign{im, id.Name}] = true
			}
		}
	}
}

// local reports whether a name is declared inside a function. The parser's scopes are enough: an
// unresolved name of a file is a package-level name, an import or predeclared.
func (v *namer) local(id *ast.Ident) bool {
	obj := id.Obj // deprecated in favour of go/types, which would have to load all imports
	return obj != nil && v.file.tree.Scope.Lookup(id.Name) != obj
}

// imported records a name of another package, if id is the name of an import.
func (v *namer) imported(id *ast.Ident, name string) bool {
	if v.local(id) || len(v.file.pkg.decls[id.Name]) > 0 {
		return false
	}
	found := false
	for _, im := range v.file.imports {
		if im.name == id.Name || im.name == "" && mayBeNamed(im.path, id.Name) {
			v.out.other[foreign{im, name}] = true
			found = true
		}
	}
	if !found { // a package whose name differs from its directory's
		for _, im := range v.file.imports {
			if im.name == "" {
				v.out.other[foreign{im, name}] = true
			}
		}
	}
	return true
}

// literal walks a composite literal, in which the keys of a struct are fields' names.
func (v *namer) literal(n *ast.CompositeLit, typ ast.Expr) {
	v.walkExpr(n.Type)
	keys, elem := v.shape(typ, 0)
	for _, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if _, ident := kv.Key.(*ast.Ident); keys || !ident {
				v.element(kv.Key, nil)
			}
			e = kv.Value
		}
		v.element(e, elem)
	}
}

// element walks an element of a literal; the element may omit its type.
func (v *namer) element(e, typ ast.Expr) {
	if lit, ok := e.(*ast.CompositeLit); ok && lit.Type == nil {
		v.literal(lit, typ)
		return
	}
	v.walkExpr(e)
}

func (v *namer) walkExpr(e ast.Expr) {
	if e != nil {
		v.walk(e)
	}
}

// shape reports whether names among the keys of a literal are values, as in a map, rather than
// fields, and returns the type of its elements.
func (v *namer) shape(typ ast.Expr, depth int) (keys bool, elem ast.Expr) {
	if depth > 20 { // a type declared in terms of itself
		return false, nil
	}
	switch t := typ.(type) {
	case *ast.ParenExpr:
		return v.shape(t.X, depth+1)
	case *ast.StarExpr:
		return v.shape(t.X, depth+1)
	case *ast.ArrayType:
		return true, t.Elt
	case *ast.MapType:
		return true, t.Value
	case *ast.IndexExpr:
		return v.shape(t.X, depth+1)
	case *ast.IndexListExpr:
		return v.shape(t.X, depth+1)
	case *ast.Ident:
		for _, d := range v.file.pkg.decls[t.Name] {
			if s, ok := d.whole.(*ast.TypeSpec); ok {
				return v.shape(s.Type, depth+1)
			}
		}
	}
	return false, nil // a struct, or a type of another package, which usually is one
}

// predeclared holds Go's predeclared names.
var predeclared = func() map[string]bool {
	m := map[string]bool{}
	for _, n := range []string{
		"any", "bool", "byte", "comparable", "complex64", "complex128", "error", "float32", "float64", "int", "int8", "int16", "int32", "int64",
		"rune", "string", "uint", "uint8", "uint16", "uint32", "uint64", "uintptr", "true", "false", "iota", "nil", "append", "cap", "clear",
		"close", "complex", "copy", "delete", "imag", "len", "make", "max", "min", "new", "panic", "print", "println", "real", "recover",
	} {
		m[n] = true
	}
	return m
}()
