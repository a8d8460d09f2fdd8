package codeid

import "go/ast"

// named is what a declaration names: package-level names of its own package, and names
// of others by import.
type named struct {
	own   map[string]bool
	other map[foreign]bool
}

// foreign is a name of another package.
type foreign struct {
	imported imported
	name     string
}

// names collects what a declaration names. Names of local variables, fields, methods
// and labels are left out.
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

// ident notes a name, if it is one of the package level.
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

// local says whether a name is one that a function declares. Of scopes the parser knows
// enough: what is unresolved in a file is a name of the package level, of an import or a
// predeclared one.
func (v *namer) local(id *ast.Ident) bool {
	obj := id.Obj // deprecated, for go/types says more; that would have to load all imports
	return obj != nil && v.file.tree.Scope.Lookup(id.Name) != obj
}

// imported notes a name of another package, if id is an import's name.
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
	if !found { // a package that is called otherwise than its directory
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

// element walks an element of a literal, whose own type may be left out.
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

// shape says of a literal's type whether names among its keys are values, as in a map,
// rather than fields, and what its elements' type is.
func (v *namer) shape(typ ast.Expr, depth int) (keys bool, elem ast.Expr) {
	if depth > 20 { // a type that is declared by itself
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
	return false, nil // a struct, or a type of another package, which is one mostly
}

// predeclared are the names that Go declares by itself.
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
