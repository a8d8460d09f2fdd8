package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"slices"
	"strings"
)

// Unnameable returns one sentence for each exported name of the module's public packages that
// mentions a type of an internal package, because other modules cannot write that type's name. It
// also returns the number of public packages. args are passed to "go list", which compiles stale
// packages.
func Unnameable(dir, module string, args ...string) (wrong []string, public int, err error) {
	out, err := GoList(dir, append([]string{"-export", "-deps", "-json=ImportPath,Name,Export"}, args...)...)
	if err != nil {
		return nil, 0, err
	}
	exports := map[string]string{}
	var paths []string
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Name, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, 0, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if p.Name != "main" && p.Export != "" && strings.HasPrefix(p.ImportPath, module+"/") && !isInternal(p.ImportPath) {
			paths = append(paths, p.ImportPath)
		}
	}
	load := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for _, path := range paths {
		pkg, err := load.Import(path)
		if err != nil {
			return nil, 0, fmt.Errorf("the exported names of %s cannot be read: %w", path, err)
		}
		m := mentions{module: module}
		for _, name := range pkg.Scope().Names() {
			if o := pkg.Scope().Lookup(name); o.Exported() {
				m.object(strings.TrimPrefix(path, module+"/")+"."+name, o)
			}
		}
		wrong = append(wrong, m.wrong...)
	}
	slices.Sort(wrong)
	return slices.Compact(wrong), len(paths), nil
}

func isInternal(path string) bool { return slices.Contains(strings.Split(path, "/"), "internal") }

// mentions collects what exported names mention.
type mentions struct {
	module string
	wrong  []string
}

func (m *mentions) object(what string, o types.Object) {
	name, ok := o.(*types.TypeName)
	if !ok {
		m.typ(what, o.Type())
		return
	}
	if alias, ok := name.Type().(*types.Alias); ok {
		m.typ(what, alias.Rhs())
		return
	}
	named, ok := name.Type().(*types.Named)
	if !ok {
		return
	}
	m.params(what, named.TypeParams())
	m.typ(what, named.Underlying())
	for f := range named.Methods() {
		if f.Exported() {
			m.typ(what+"."+f.Name(), f.Type())
		}
	}
}

func (m *mentions) params(what string, l *types.TypeParamList) {
	for p := range l.TypeParams() {
		m.typ(what, p.Constraint())
	}
}

func (m *mentions) named(what string, o *types.TypeName, args *types.TypeList) {
	if p := o.Pkg(); p != nil && strings.HasPrefix(p.Path(), m.module+"/") && isInternal(p.Path()) {
		m.wrong = append(m.wrong, fmt.Sprintf("%s mentions %s.%s, which other modules cannot name; define the type in a public package", what, strings.TrimPrefix(p.Path(), m.module+"/"), o.Name()))
	}
	for t := range args.Types() {
		m.typ(what, t)
	}
}

// typ inspects one type as written: it does not enter named types, because their own package is
// checked separately.
func (m *mentions) typ(what string, t types.Type) {
	switch t := t.(type) {
	case *types.Named:
		m.named(what, t.Obj(), t.TypeArgs())
	case *types.Alias:
		m.named(what, t.Obj(), t.TypeArgs())
	case *types.Pointer:
		m.typ(what, t.Elem())
	case *types.Slice:
		m.typ(what, t.Elem())
	case *types.Array:
		m.typ(what, t.Elem())
	case *types.Chan:
		m.typ(what, t.Elem())
	case *types.Map:
		m.typ(what, t.Key())
		m.typ(what, t.Elem())
	case *types.Tuple:
		for v := range t.Variables() {
			m.typ(what, v.Type())
		}
	case *types.Signature:
		m.params(what, t.TypeParams())
		m.typ(what, t.Params())
		m.typ(what, t.Results())
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				m.typ(what+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for f := range t.ExplicitMethods() {
			if f.Exported() {
				m.typ(what+"."+f.Name(), f.Type())
			}
		}
		for e := range t.EmbeddedTypes() {
			m.typ(what, e)
		}
	case *types.Union:
		for term := range t.Terms() {
			m.typ(what, term.Type())
		}
	}
}
