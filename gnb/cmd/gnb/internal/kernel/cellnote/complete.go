package cellnote

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// selector matches a package's name and the letters after its point, at the end of what stands before the cursor.
var selector = regexp.MustCompile(`(?:^|[^\w.])(\w+)\.(\w*)$`)

// literal matches a package's name, a type of it, and the first letters of a field in a literal of that type.
var literal = regexp.MustCompile(`(?:^|[^\w.])(\w+)\.(\w+)\{(?:[^{}]*,\s*)?(\w*)$`)

// Complete returns the exported names of a package of GraphNB, or the fields of one of its types, that complete text,
// what stands before the cursor, and how many bytes of it they replace. It reads the package's sources, so that Tab has an answer while gopls, which
// knows all names, still starts. dir holds the cell's go.work.
func Complete(text, dir string, packages []string) (matches []string, replaced int) {
	var name, of, prefix string
	if m := literal.FindStringSubmatch(text); m != nil {
		name, of, prefix = m[1], m[2], m[3]
	} else if m := selector.FindStringSubmatch(text); m != nil {
		name, prefix = m[1], m[2]
	}
	place := "gnb"
	if name != "gnb" {
		if !slices.Contains(packages, name) {
			return nil, 0
		}
		place = "gnb/" + name
	}
	work, err := os.ReadFile(filepath.Join(dir, "go.work"))
	if err != nil {
		return nil, 0
	}
	for _, use := range strings.Fields(string(work)) {
		use = strings.Trim(use, "\"")
		if !filepath.IsAbs(use) {
			use = filepath.Join(dir, use)
		}
		mod, err := os.ReadFile(filepath.Join(use, "go.mod"))
		if err != nil || !bytes.Contains(mod, []byte("module "+module+"\n")) {
			continue
		}
		files, _ := filepath.Glob(filepath.Join(use, filepath.FromSlash(place), "*.go"))
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				matches = append(matches, exported(file, of, prefix)...)
			}
		}
	}
	slices.Sort(matches)
	return slices.Compact(matches), len(prefix)
}

// exported returns the exported names that a file declares, or the fields of its type of, that begin with prefix.
func exported(file, of, prefix string) (names []string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil || f.Name.Name == "main" {
		return nil
	}
	add := func(id *ast.Ident) {
		if id.IsExported() && strings.HasPrefix(id.Name, prefix) {
			names = append(names, id.Name)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if t, ok := s.Type.(*ast.StructType); ok && s.Name.Name == of {
						names = nil
						for _, field := range t.Fields.List {
							for _, id := range field.Names {
								add(id)
							}
						}
						return names
					}
					add(s.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						add(id)
					}
				}
			}
		}
	}
	if of != "" {
		return nil
	}
	return names
}
