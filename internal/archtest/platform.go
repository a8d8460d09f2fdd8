package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"path/filepath"
)

// Mistyped returns the type errors of the packages in dir and below, and the number of these packages.
// The caller sets GOOS, GOARCH and CGO_ENABLED=0. It takes a few seconds; compiling all packages, and
// those that they import, for another platform takes half a minute.
func Mistyped(dir, goarch string) (problems []error, checked int, err error) {
	out, err := GoList(dir, "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	if err != nil {
		return nil, 0, err
	}
	fset, done := token.NewFileSet(), packages{"unsafe": types.Unsafe}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return problems, checked, nil
		} else if err != nil {
			return nil, 0, fmt.Errorf("go list: %w", err)
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		found, err := p.check(fset, done, goarch)
		if err != nil {
			return nil, 0, err
		}
		problems = append(problems, found...)
		if p.own() {
			checked++
		}
	}
}

// listed is a package of "go list".
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
}

func (p listed) own() bool { return p.Module != nil && p.Module.Main }

// packages are the packages that have been checked; go list names those that a package imports first.
type packages map[string]*types.Package

// check checks the types of a package and adds it to done. The bodies of other modules' functions
// are not checked.
func (p listed) check(fset *token.FileSet, done packages, goarch string) (problems []error, err error) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	c := types.Config{
		Importer:         known{p.ImportMap, done},
		Sizes:            types.SizesFor("gc", goarch),
		IgnoreFuncBodies: !p.own(),
		Error:            func(err error) { problems = append(problems, err) },
	}
	done[p.ImportPath], _ = c.Check(p.ImportPath, fset, files, nil) // Error has received the errors
	return problems, nil
}

// known imports packages that have been checked.
type known struct {
	vendored map[string]string
	done     packages
}

func (k known) Import(path string) (*types.Package, error) {
	if at, ok := k.vendored[path]; ok {
		path = at
	}
	if p := k.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}
